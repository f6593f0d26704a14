//! A format as one provider speaks it.

use serde::{Deserialize, Serialize};

use super::WireFormat;
use super::openai_chat::Quirks;

/// A wire format, the provider whose parts are tagged in it, and where that provider differs from the format.
///
/// ```
/// use agent_providers::{Dialect, WireFormat};
///
/// let plain = Dialect::from(WireFormat::Anthropic);
/// assert_eq!(plain.provider, "anthropic");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "plain data, written as a literal")]
pub struct Dialect {
    /// The format.
    pub format: WireFormat,
    /// The tag of parts that only this provider understands; one for each provider and format, since a part of one
    /// format means nothing in another.
    pub provider: String,
    /// Where the provider differs from the format of Chat Completions; nothing to other formats.
    #[serde(default)]
    pub quirks: Quirks,
}

impl From<WireFormat> for Dialect {
    fn from(format: WireFormat) -> Self {
        let provider = format.as_str();
        Self { format, provider: provider.to_owned(), quirks: Quirks::of(provider) }
    }
}
