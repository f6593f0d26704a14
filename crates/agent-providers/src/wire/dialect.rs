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
#[serde(from = "Written")]
#[expect(clippy::exhaustive_structs, reason = "plain data, written as a literal")]
pub struct Dialect {
    /// The format.
    pub format: WireFormat,
    /// The tag of parts that only this provider understands; one for each provider and format, since a part of one
    /// format means nothing in another.
    pub provider: String,
    /// Where the provider differs from the format of Chat Completions; nothing to other formats. Where none are written,
    /// those the provider is known for.
    pub quirks: Quirks,
}

/// The written form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: WireFormat,
    provider: String,
    quirks: Option<Quirks>,
}

impl Dialect {
    /// The format as this provider is known to speak it; of an unknown one the least is assumed.
    ///
    /// ```
    /// use agent_providers::{Dialect, WireFormat};
    ///
    /// let mistral = Dialect::of(WireFormat::OpenAiChat, "mistral");
    /// assert_ne!(mistral.quirks, Dialect::from(WireFormat::OpenAiChat).quirks);
    /// ```
    pub fn of(format: WireFormat, provider: &str) -> Self {
        Self { format, provider: provider.to_owned(), quirks: Quirks::of(provider) }
    }
}

/// The format as its inventor speaks it.
impl From<WireFormat> for Dialect {
    fn from(format: WireFormat) -> Self {
        Self::of(format, format.as_str())
    }
}

impl From<Written> for Dialect {
    fn from(Written { format, provider, quirks }: Written) -> Self {
        let quirks = quirks.unwrap_or_else(|| Quirks::of(&provider));
        Self { format, provider, quirks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quirks_that_are_not_written_are_those_the_provider_is_known_for() {
        let read = |text: &str| serde_json::from_str::<Dialect>(text);
        let mistral = Dialect::of(WireFormat::OpenAiChat, "mistral");
        assert_eq!(read(r#"{"format":"openai-chat","provider":"mistral"}"#).unwrap(), mistral);
        assert_eq!(read(&serde_json::to_string(&mistral).unwrap()).unwrap(), mistral);
        let own = read(r#"{"format":"openai-chat","provider":"mistral","quirks":{}}"#).unwrap();
        assert_eq!(own.quirks, Quirks::default());
        assert!(read(r#"{"format":"openai-chat","provider":"mistral","colour":3}"#).is_err());
    }
}
