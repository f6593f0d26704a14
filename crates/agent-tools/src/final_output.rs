//! The tool by which a model hands over the result of a task, checked against a type.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::{Access, ToolConfig};

/// The name of the tool for the final output (requirement L3).
pub const FINAL_OUTPUT_TOOL: &str = "final_output";

/// What a task may give as its result: a type with a schema that is an object, read from JSON.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the final output of a task",
    note = "derive `serde::Deserialize` and `schemars::JsonSchema` for it"
)]
pub trait FinalOutput: DeserializeOwned + JsonSchema + Send + 'static {}

impl<T: DeserializeOwned + JsonSchema + Send + 'static> FinalOutput for T {}

/// A tool that takes a `T` and does nothing with it: that the call was valid is the point. A misfit comes back to the model
/// as an error that says what is wanted.
///
/// ```
/// use agent_tools::{FINAL_OUTPUT_TOOL, ToolSet, final_output};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Report {
///     /// How many tests fail.
///     failing: u32,
/// }
///
/// let tools = ToolSet::builder().with(final_output::<Report>()).freeze()?;
/// assert!(tools.get(FINAL_OUTPUT_TOOL).is_some());
/// # Ok::<(), agent_tools::ToolSetError>(())
/// ```
pub fn final_output<T: FinalOutput>() -> ToolConfig<T, String> {
    ToolConfig::new(FINAL_OUTPUT_TOOL, DESCRIPTION, Access::Session, |_, _: T| async {
        Ok("Delivered.".to_owned())
    })
    .idempotent()
}

const DESCRIPTION: &str = "Hands over the result of the task and ends it. Call it once, when the work is done and checked, with everything that was asked for; what stands in words beside it is not passed on. When the input does not fit, mend it and call again.";
