//! Wire formats: what a format is, and one module for each; what they share lies beside them, a file a noun.
//!
//! A new format is a module with a `Codec`, a `Form` and an importer, and its lines in [`WireFormat`].

mod anthropic;
pub(crate) mod base64;
pub(crate) mod choice;
mod decoder;
mod dialect;
mod encoder;
pub(crate) mod form;
mod gemini;
mod import;
mod joined;
pub(crate) mod json;
mod limits;
mod lone;
mod marks;
mod ollama;
pub mod openai_chat;
mod openai_responses;
mod opening;
pub(crate) mod parts;
pub(crate) mod schema;
mod strangers;
pub(crate) mod tail;
mod transcript;
pub(crate) mod words;

#[cfg(feature = "http")]
pub(crate) use decoder::{LARGEST_BODY, too_large};
pub use decoder::{StreamDecoder, decode_body};
pub use dialect::Dialect;
pub use import::{ImportError, Imported};
pub use transcript::{Transcript, TranscriptError};

use std::borrow::Cow;
use std::fmt;

use agent_core::{Diagnostic, Encoder, ModelError, ModelEvent, ModelProfile};
use serde::{Deserialize, Serialize};

use crate::names::ToolNames;
use encoder::SessionEncoder;
use json::sound;

/// What a decoder gives: events, and at most one error, which is the last item.
pub type Events = Vec<Result<ModelEvent, ModelError>>;

/// A provider's format of requests and responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WireFormat {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and what calls itself compatible with it.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI Responses, sent without state.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Google Gemini, `generateContent`.
    Gemini,
    /// Ollama's own `/api/chat`; it also speaks Chat Completions.
    Ollama,
}

/// What a format adds to the shared part: the meaning of one event and of a plain body.
pub(crate) trait Codec: fmt::Debug + Send {
    /// Takes the JSON of one event. `name` is the event's name on the stream; a type inside the JSON wins.
    fn event(
        &mut self,
        name: &str,
        json: &Json<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError>;

    /// Takes the body of an answer that was not streamed.
    fn body(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// Takes the end of the stream, or its mark: what is there may be whole although no event says so. Formats whose
    /// last event is one of their own leave it.
    fn end(&mut self, _end: End, _out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        Ok(Progress::More)
    }

    /// Gives what is certain although the answer ends here: blocks that were complete and only waited.
    fn abandon(&mut self, out: &mut Vec<ModelEvent>);
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// An event of a type that the format does not have; it is skipped.
    Unknown,
    More,
    Complete,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// With `[DONE]`.
    Marked,
    /// With the bytes, or with the connection.
    Bytes,
}

/// The JSON of one event, made readable.
#[derive(Debug)]
pub(crate) struct Json<'j> {
    pub(crate) text: &'j str,
    /// Whether stand-ins for halves of surrogate pairs are in it.
    pub(crate) lone: bool,
}

impl WireFormat {
    /// All formats.
    pub const ALL: [Self; 5] =
        [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses, Self::Gemini, Self::Ollama];

    /// The format's name, as written in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    /// Whether its streams are plain JSON objects, one a line, and no events.
    fn is_objects(self) -> bool {
        self == Self::Ollama
    }

    /// The format of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }
}

impl Dialect {
    fn codec(&self, names: ToolNames) -> Box<dyn Codec> {
        match self.format {
            WireFormat::Anthropic => Box::new(anthropic::decode::MessagesCodec::new(self, names)),
            WireFormat::OpenAiChat => Box::new(openai_chat::decode::ChatCodec::new(self, names)),
            WireFormat::OpenAiResponses => {
                Box::new(openai_responses::decode::ResponsesCodec::new(self, names))
            }
            WireFormat::Gemini => Box::new(gemini::decode::GenerateCodec::new(self, names)),
            WireFormat::Ollama => Box::new(ollama::decode::ChatCodec::new(self, names)),
        }
    }
}

/// An encoder for one session with a model. `names` is shared with the decoders of its answers.
///
/// What stays comes first in a body, so that the body of one step is the beginning of the next one's; streaming
/// changes its last bytes only.
///
/// ```
/// use agent_core::{Entry, History, ModelRequest, RequestSettings, ToolChoice, UserMessage};
/// use agent_providers::{Catalog, ToolNames, WireFormat, encoder};
///
/// let mut history = History::new();
/// history.push(Entry::User(UserMessage::text("hi")?))?;
/// let profile = Catalog::builtin().profile("anthropic", "claude-haiku-4-5");
/// let mut encoder = encoder(&WireFormat::Anthropic.into(), profile, ToolNames::default());
/// let encoded = encoder.encode(&ModelRequest {
///     system: &[],
///     tools: &[],
///     draft: &history.draft(),
///     settings: &RequestSettings { max_output: Some(99), ..Default::default() },
///     tool_choice: &ToolChoice::Auto,
///     marks: &[],
///     stream: true,
/// });
/// assert_eq!(
///     String::from_utf8(encoded.request.body.to_vec())?,
///     concat!(
///         r#"{"model":"claude-haiku-4-5","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"#,
///         r#""max_tokens":99,"stream":true}"#
///     )
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encoder(dialect: &Dialect, profile: ModelProfile, names: ToolNames) -> Box<dyn Encoder> {
    match dialect.format {
        WireFormat::Anthropic => {
            Box::new(SessionEncoder::new(anthropic::encode::MessagesForm::default(), profile, names))
        }
        WireFormat::OpenAiChat => openai_chat::encode::encoder(&dialect.quirks, profile, names),
        WireFormat::OpenAiResponses => {
            Box::new(SessionEncoder::new(openai_responses::encode::ResponsesForm, profile, names))
        }
        WireFormat::Gemini => Box::new(SessionEncoder::new(gemini::encode::GenerateForm, profile, names)),
        WireFormat::Ollama => Box::new(SessionEncoder::new(ollama::encode::ChatForm, profile, names)),
    }
}

/// Reads the body of a recorded request. Cache markers are ignored; what cannot be represented is reported.
///
/// ```
/// use agent_providers::{WireFormat, import_request};
///
/// let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
/// let imported = import_request(&WireFormat::Anthropic.into(), body)?;
/// assert_eq!((imported.history.len(), imported.settings.max_output), (1, Some(9)));
/// # Ok::<(), agent_providers::ImportError>(())
/// ```
pub fn import_request(dialect: &Dialect, body: &[u8]) -> Result<Imported, ImportError> {
    let text = String::from_utf8_lossy(body);
    let sound = sound(&text);
    let mut imported = match dialect.format {
        WireFormat::Anthropic => anthropic::import::import(dialect, sound.as_bytes()),
        WireFormat::OpenAiChat => openai_chat::import::import(dialect, sound.as_bytes()),
        WireFormat::OpenAiResponses => openai_responses::import::import(dialect, sound.as_bytes()),
        WireFormat::Gemini => gemini::import::import(dialect, sound.as_bytes()),
        WireFormat::Ollama => ollama::import::import(dialect, sound.as_bytes()),
    }?;
    if matches!(text, Cow::Owned(_)) || matches!(sound, Cow::Owned(_)) {
        imported.diagnostics.push(Diagnostic {
            what: "body".to_owned(),
            why: "what is no Unicode in it (bytes, halves of surrogate pairs) became U+FFFD".to_owned(),
        });
    }
    Ok(imported)
}
