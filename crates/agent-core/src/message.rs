//! What users, models and tools say: the parts of messages.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{CallId, RawJson, Text};

/// What a person (or a program in their place) said.
///
/// Invariant: at least one part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<UserPart>", into = "Vec<UserPart>")]
pub struct UserMessage(Vec<UserPart>);

/// A user message without content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a user message needs text or a file; the one given has neither")]
#[non_exhaustive]
pub struct EmptyMessage;

/// One part of a user message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UserPart {
    /// Words.
    Text(Text),
    /// An image or document.
    File(FilePart),
    /// Anything else one provider takes: a search result, a document with its settings. Kept and sent as it is.
    Provider(ProviderPart),
}

/// One part of what a model answered, in the order it said them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AssistantPart {
    /// Words for the user.
    Text(AssistantText),
    /// Thinking, with the provider's seal on it.
    Reasoning(Reasoning),
    /// A call that this side executes.
    ToolCall(ToolCall),
    /// Anything else: a server tool, its result, a compaction block. Kept as received and sent back as it is.
    Provider(ProviderPart),
}

/// Words of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs")]
pub struct AssistantText {
    /// The words.
    pub text: Text,
    /// What the provider attached (citations, item ids), for that provider only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ProviderData>,
}

/// Thinking of a model.
///
/// Without a seal it cannot be sent back to a provider that binds thinking; one that wants its own words back
/// (`reasoning_content`) takes them without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs")]
pub struct Reasoning {
    /// The visible words; may be empty when the provider shows none.
    pub text: String,
    /// The provider's proof that it wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

/// What makes thinking acceptable to the provider that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Seal {
    /// A signature over visible thinking.
    Signature {
        /// Who signed.
        provider: String,
        /// The signature, byte for byte.
        value: String,
    },
    /// Thinking that only the provider can read.
    Redacted {
        /// Who sealed.
        provider: String,
        /// The sealed data, byte for byte.
        data: String,
    },
    /// Thinking that goes back as the whole item it came in: its id, its summary, its sealed data.
    Item {
        /// Whose item it is.
        provider: String,
        /// The item, byte for byte.
        raw: RawJson,
    },
}

/// A model's request to run a tool of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs")]
pub struct ToolCall {
    /// Unique in its history.
    pub id: CallId,
    /// The tool's real name (not its wire name).
    pub name: String,
    /// What the model wrote.
    pub input: ToolInput,
    /// What the provider attached (a thought signature, an item id, who called), for that provider only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<ProviderData>,
}

/// The input of a call as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "every use must say what it does with input that is not complete"
)]
pub enum ToolInput {
    /// Complete JSON, byte for byte. Blank input, and `null`, is `{}`.
    Json(RawJson),
    /// The model finished, but this is not JSON. Never executed; never turned into `{}`.
    Invalid(String),
    /// Cut by the output limit. Never executed.
    Truncated(String),
}

/// The answer to one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs and tools")]
pub struct ToolResult {
    /// The call it answers.
    pub call: CallId,
    /// What came out.
    pub output: ToolOutput,
}

/// What a tool gives back to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutput {
    /// Words.
    Text(Text),
    /// A JSON value.
    Json(RawJson),
    /// A failure, in words that teach the next step.
    Error(Text),
    /// Refused by permission; the words say why and what to do instead.
    Denied(Text),
    /// Words, images and documents together.
    Content(Vec<ContentPart>),
}

/// One part of a tool's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContentPart {
    /// Words.
    Text(Text),
    /// An image or document.
    File(FilePart),
    /// Anything else one provider takes, such as a search result. Kept and sent as it is.
    Provider(ProviderPart),
    /// A deferred tool that a search found: a reference that the provider expands where it loads tools later
    /// ([`crate::ModelProfile::deferred_tools`]), and words everywhere else.
    Tool(FoundTool),
}

/// A deferred tool that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs and tools")]
pub struct FoundTool {
    /// Its real name (not its wire name).
    pub name: String,
    /// Its signature and description, for a model whose provider does not expand references.
    pub words: Text,
}

/// An image or a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs and tools")]
pub struct FilePart {
    /// IANA media type, for example `image/png`.
    pub media_type: String,
    /// Where the bytes are.
    pub source: FileSource,
    /// A name to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl FilePart {
    /// Its name and what it is, for example `boat.png (image/png)`.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{name} ({})", self.media_type),
            None => self.media_type.clone(),
        }
    }
}

/// Where a file's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileSource {
    /// In the message, base64; kept as given, never re-encoded.
    Base64(String),
    /// At an address the provider fetches.
    Url(String),
    /// Uploaded to the provider before.
    Reference {
        /// Whose id it is.
        provider: String,
        /// The id.
        id: String,
    },
}

/// Fields a provider attached to a part of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs")]
pub struct ProviderData {
    /// Whose data it is; no other provider sees it.
    pub provider: String,
    /// The data as received.
    pub json: RawJson,
}

/// A block only its provider understands, kept as the bytes received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a message part, matched and built by codecs")]
pub struct ProviderPart {
    /// Whose block it is; no other provider sees it.
    pub provider: String,
    /// The provider's word for its type, for example `server_tool_use`.
    pub kind: String,
    /// The block as received.
    pub raw: RawJson,
}

impl UserMessage {
    /// A message of words.
    pub fn text(text: impl Into<String>) -> Result<Self, EmptyMessage> {
        Text::new(text).map(|text| Self(vec![UserPart::Text(text)])).ok_or(EmptyMessage)
    }

    /// A message of several parts.
    pub fn new(parts: Vec<UserPart>) -> Result<Self, EmptyMessage> {
        if parts.is_empty() { Err(EmptyMessage) } else { Ok(Self(parts)) }
    }

    /// The parts, never none.
    pub fn parts(&self) -> &[UserPart] {
        &self.0
    }

    /// The words in it, for people and logs; files are named in brackets.
    pub fn plain(&self) -> String {
        let words = self.0.iter().map(|part| match part {
            UserPart::Text(text) => text.as_str().to_owned(),
            UserPart::File(file) => format!("[{}]", file.media_type),
            UserPart::Provider(part) => format!("[{}]", part.kind),
        });
        words.collect::<Vec<_>>().join("\n")
    }
}

impl TryFrom<Vec<UserPart>> for UserMessage {
    type Error = EmptyMessage;
    fn try_from(parts: Vec<UserPart>) -> Result<Self, EmptyMessage> {
        Self::new(parts)
    }
}

impl From<UserMessage> for Vec<UserPart> {
    fn from(message: UserMessage) -> Self {
        message.0
    }
}

impl AssistantPart {
    /// Plain words; `None` when blank.
    pub fn text(text: impl Into<String>) -> Option<Self> {
        Text::new(text).map(|text| Self::Text(AssistantText { text, data: None }))
    }

    /// The words, if this part is words.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text.text.as_str()) } else { None }
    }

    /// The call, if this part is one.
    pub fn as_call(&self) -> Option<&ToolCall> {
        if let Self::ToolCall(call) = self { Some(call) } else { None }
    }
}

impl ToolInput {
    /// Judges the finished input text of a call; blank text and `null` are the empty object (case S08).
    pub fn finished(text: &str) -> Self {
        if matches!(text.trim(), "" | "null") {
            return Self::Json(RawJson::empty_object());
        }
        RawJson::parse(text).map_or_else(|_| Self::Invalid(text.to_owned()), Self::Json)
    }

    /// Judges the input text of a call whose response was cut by the output limit.
    ///
    /// Text that is not JSON was cut; complete JSON stands, and `null` is the empty object.
    pub fn cut(text: &str) -> Self {
        if text.trim() == "null" {
            return Self::Json(RawJson::empty_object());
        }
        RawJson::parse(text).map_or_else(|_| Self::Truncated(text.to_owned()), Self::Json)
    }

    /// The input as a JSON object, for wires that take nothing else: what was stored as `null` is the empty one.
    /// `None` for what is no object.
    pub fn object(&self) -> Option<&str> {
        match self {
            Self::Json(json) if json.is_object() => Some(json.get()),
            Self::Json(json) if json.get().trim() == "null" => Some("{}"),
            Self::Json(_) | Self::Invalid(_) | Self::Truncated(_) => None,
        }
    }

    /// The input, when it may be executed.
    pub fn json(&self) -> Option<&RawJson> {
        match self {
            Self::Json(json) => Some(json),
            Self::Invalid(_) | Self::Truncated(_) => None,
        }
    }

    /// What the model wrote, whatever it is worth.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Json(json) => json.get(),
            Self::Invalid(text) | Self::Truncated(text) => text,
        }
    }
}

impl ToolOutput {
    /// Words, with `(no output)` in place of blank ones.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::or(text, "(no output)"))
    }

    /// A failure, with a fixed sentence in place of a blank one.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Error(Text::or(text, "The tool failed without a message. Try another way."))
    }

    /// A refusal, with a fixed sentence in place of a blank one.
    pub fn denied(text: impl Into<String>) -> Self {
        Self::Denied(Text::or(
            text,
            "Permission denied. Do not repeat this call; find another way or ask the user.",
        ))
    }

    /// Whether the model is told that the call failed.
    pub fn is_error(&self) -> bool {
        matches!(self, Self::Error(_) | Self::Denied(_))
    }

    /// The words in it, for people and logs; files are named in brackets.
    pub fn plain(&self) -> String {
        self.shared().as_ref().to_owned()
    }

    /// [`ToolOutput::plain`], sharing the bytes where the output is one text.
    pub fn shared(&self) -> Arc<str> {
        match self {
            Self::Text(text) | Self::Error(text) | Self::Denied(text) => text.shared(),
            Self::Json(json) => json.get().into(),
            Self::Content(parts) => {
                let words = parts.iter().map(|part| match part {
                    ContentPart::Text(text) => text.as_str().to_owned(),
                    ContentPart::File(file) => format!("[{}]", file.media_type),
                    ContentPart::Provider(part) => format!("[{}]", part.kind),
                    ContentPart::Tool(found) => found.words.as_str().to_owned(),
                });
                words.collect::<Vec<_>>().join("\n").into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part survives serde with equal bytes: writing what was read gives the same text again.
    #[track_caller]
    fn check(part: &AssistantPart, expect: &str) {
        let text = serde_json::to_string(part).unwrap();
        assert_eq!(text, expect);
        let again: AssistantPart = serde_json::from_str(&text).unwrap();
        assert_eq!(&again, part);
        assert_eq!(serde_json::to_string(&again).unwrap(), text);
    }

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    #[test]
    fn assistant_parts_round_trip_byte_identical() {
        check(&AssistantPart::text("hi").unwrap(), r#"{"text":{"text":"hi"}}"#);
        let signature = "s".repeat(5 * 1024);
        let seal = Seal::Signature { provider: "anthropic".into(), value: signature.clone() };
        check(
            &AssistantPart::Reasoning(Reasoning { text: String::new(), seal: Some(seal) }),
            &format!(
                r#"{{"reasoning":{{"text":"","seal":{{"signature":{{"provider":"anthropic","value":"{signature}"}}}}}}}}"#
            ),
        );
        let input = raw(r#"{"z":12345678901234567890,"a":1.0,"u":"\u00e9"}"#);
        let call = ToolCall {
            id: CallId::new("c1").unwrap(),
            name: "f".into(),
            input: ToolInput::Json(input),
            data: None,
        };
        check(
            &AssistantPart::ToolCall(call),
            r#"{"tool_call":{"id":"c1","name":"f","input":{"json":{"z":12345678901234567890,"a":1.0,"u":"\u00e9"}}}}"#,
        );
        let block = raw(r#"{"type":"server_tool_use","id":"s1","input":{"b":1,"a":2}}"#);
        check(
            &AssistantPart::Provider(ProviderPart {
                provider: "anthropic".into(),
                kind: "server_tool_use".into(),
                raw: block,
            }),
            r#"{"provider":{"provider":"anthropic","kind":"server_tool_use","raw":{"type":"server_tool_use","id":"s1","input":{"b":1,"a":2}}}}"#,
        );
    }

    #[test]
    fn user_parts_and_results_round_trip() {
        let image = FilePart {
            media_type: "image/png".into(),
            source: FileSource::Base64("iVBO+/w==".into()),
            name: None,
        };
        let message =
            UserMessage::new(vec![UserPart::Text(Text::new("see").unwrap()), UserPart::File(image.clone())])
                .unwrap();
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(
            text,
            r#"[{"text":"see"},{"file":{"media_type":"image/png","source":{"base64":"iVBO+/w=="}}}]"#
        );
        assert_eq!(serde_json::from_str::<UserMessage>(&text).unwrap(), message);
        assert!(serde_json::from_str::<UserMessage>("[]").is_err(), "an empty message cannot be loaded");
        assert!(serde_json::from_str::<UserMessage>(r#"[{"text":" "}]"#).is_err(), "nor a blank part");

        for output in [
            ToolOutput::text("ok"),
            ToolOutput::Json(raw(r#"{"n":1.0}"#)),
            ToolOutput::error("no"),
            ToolOutput::denied("never"),
            ToolOutput::Content(vec![ContentPart::Text(Text::new("t").unwrap()), ContentPart::File(image)]),
            ToolOutput::Content(vec![ContentPart::Tool(FoundTool {
                name: "look".into(),
                words: Text::new("look {}").unwrap(),
            })]),
        ] {
            let result = ToolResult { call: CallId::new("c").unwrap(), output };
            let text = serde_json::to_string(&result).unwrap();
            let again: ToolResult = serde_json::from_str(&text).unwrap();
            assert_eq!((serde_json::to_string(&again).unwrap(), again), (text, result));
        }
    }

    #[test]
    fn input_is_judged_once() {
        assert_eq!(ToolInput::finished(" \n").as_str(), "{}");
        assert_eq!(ToolInput::finished(" null").as_str(), "{}");
        assert_eq!(ToolInput::Json(raw("null")).object(), Some("{}"), "stored before it was judged");
        assert_eq!(ToolInput::finished("[null]").object(), None);
        assert_eq!(ToolInput::finished(r#"{"q":""}"#).as_str(), r#"{"q":""}"#);
        assert_eq!(ToolInput::finished(r#"{"a"#), ToolInput::Invalid(r#"{"a"#.into()));
        assert_eq!(ToolInput::cut(r#"{"a"#), ToolInput::Truncated(r#"{"a"#.into()));
        assert_eq!(ToolInput::cut("null").as_str(), "{}");
        assert_eq!(ToolInput::cut(r#"{"a":1}"#).as_str(), r#"{"a":1}"#);
        assert_eq!(ToolInput::cut(""), ToolInput::Truncated(String::new()), "nothing arrived before the cut");
    }

    #[test]
    fn blank_outputs_are_given_words() {
        assert_eq!(ToolOutput::text(" ").plain(), "(no output)");
        assert!(ToolOutput::error("").is_error());
        assert!(!ToolOutput::error("").plain().is_empty());
    }
}
