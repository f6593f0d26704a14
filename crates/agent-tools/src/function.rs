//! What a function under the attribute `tool` may take and return.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{IntoEnd, ToolError};

/// What a tool function returns: a `Result` of an output and a failure.
#[diagnostic::on_unimplemented(
    message = "a tool function cannot return `{Self}`",
    note = "return `Result<String, ToolError>`; in place of `String` anything that is `IntoEnd`, such as `Json(value)` or `ToolOutput`"
)]
pub trait ToolReturn {
    /// What it gives when it succeeds.
    type Output: IntoEnd + Send + 'static;

    /// The same with the failure as a `ToolError`.
    fn into_result(self) -> Result<Self::Output, ToolError>;
}

#[diagnostic::do_not_recommend]
impl<O: IntoEnd + Send + 'static> ToolReturn for Result<O, ToolError> {
    type Output = O;

    fn into_result(self) -> Result<O, ToolError> {
        self
    }
}

/// What an argument of a tool function may be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it: the one reads what the model writes, the other tells the model what to write"
)]
pub trait ToolField {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema> ToolField for T {}

/// Compiles where `T` can be an argument.
pub const fn is_field<T: ToolField>() {}
