//! Wire formats: what every decoder shares, and one module for each provider's own.
//!
//! A new format is a module with a `Codec`, a `Form` and an importer, and its lines in [`WireFormat`].

mod anthropic;
pub(crate) mod base64;
pub(crate) mod choice;
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

pub use dialect::Dialect;
pub use import::{ImportError, Imported};
pub use transcript::{Transcript, TranscriptError};

use std::borrow::Cow;
use std::fmt;

use agent_core::{Diagnostic, Encoder, ModelError, ModelErrorKind, ModelEvent, ModelProfile, floor_boundary};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::classify::{QUOTE, ResponseHead, classify, protocol, with_head};
use crate::lines::ObjectFrames;
use crate::names::ToolNames;
use crate::sse::{DEFAULT_EVENT_LIMIT, Frame, Payload, SseError, SseFrames};
use encoder::SessionEncoder;
use json::{mended, sound};
use opening::{Opening, is_blank};

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

/// Decodes one answer, in process: bytes in, events out.
///
/// Bytes that begin like JSON or a page (`{`, `[`, `<`) are a plain body, decoded at the end; others are a stream of
/// events. A format that streams plain objects takes `{` for the first of them, be there one or many. No content
/// type is asked: gateways send errors under any.
///
/// An answer that ends before its terminal event ends with an error of kind `interrupted` (requirement M8). After
/// an error nothing follows.
///
/// ```
/// use agent_core::ModelErrorKind;
/// use agent_providers::{StreamDecoder, ToolNames, WireFormat};
///
/// let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
/// assert!(decoder.push(b": keep-alive\n\n").is_empty());
/// let end = decoder.finish().pop().unwrap();
/// assert_eq!(end.unwrap_err().kind, ModelErrorKind::Interrupted);
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    frames: SseFrames,
    /// For formats that stream plain objects.
    objects: Option<ObjectFrames>,
    codec: Box<dyn Codec>,
    state: State,
    bytes: u64,
    opening: Opening,
    /// Whether an event escaped half a surrogate pair: its stand-in may be in anything that follows.
    lone: bool,
    /// Grows with each event, and with each piece of a plain body; comments and blanks leave it.
    progress: u64,
    /// The first event, as long as none was of a type this format has.
    stranger: Stranger,
}

/// Whether anything of this format was seen.
#[derive(Debug)]
enum Stranger {
    NoEvent,
    First(String),
    Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Complete,
    Failed,
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

impl StreamDecoder {
    /// A decoder for one answer. `names` gives back the real names of tools.
    pub fn new(dialect: &Dialect, names: ToolNames) -> Self {
        Self::with_event_limit(dialect, names, DEFAULT_EVENT_LIMIT)
    }

    /// A decoder that refuses a stream with an event of more than `limit` bytes.
    pub fn with_event_limit(dialect: &Dialect, names: ToolNames, limit: usize) -> Self {
        let frames = SseFrames::with_limit(limit);
        let objects = dialect.format.is_objects().then(|| ObjectFrames::with_limit(limit));
        let codec = dialect.codec(names);
        Self {
            frames,
            objects,
            codec,
            state: State::Open,
            bytes: 0,
            opening: Opening::Blank,
            lone: false,
            progress: 0,
            stranger: Stranger::NoEvent,
        }
    }

    /// Takes the next bytes, cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) -> Events {
        let mut out = Vec::new();
        if self.state != State::Open {
            return out;
        }
        self.bytes += bytes.len() as u64;
        self.opening.take(bytes, self.objects.is_some());
        if let Opening::Plain(body) = &self.opening {
            self.progress += u64::from(!bytes.iter().copied().all(is_blank));
            if body.len() > LARGEST_BODY {
                self.fail(too_large(), &mut out);
            }
            return out;
        }
        let frames = match self.objects.as_mut().filter(|_| self.opening.is_objects()) {
            Some(objects) => objects.push(bytes),
            None => self.frames.push(bytes),
        };
        for frame in frames {
            self.take(frame, &mut out);
        }
        out
    }

    /// Takes the end of the stream.
    pub fn finish(&mut self) -> Events {
        let mut out = Vec::new();
        if self.state != State::Open {
            return out;
        }
        if let Opening::Plain(body) = &self.opening {
            let out = plain(self.codec.as_mut(), body);
            let is_whole = out.last().is_some_and(Result::is_ok);
            self.state = if is_whole { State::Complete } else { State::Failed };
            return out;
        }
        let objects = self.objects.as_mut().map(ObjectFrames::finish).unwrap_or_default();
        for frame in self.frames.finish().into_iter().chain(objects) {
            // A frame without its blank line that is no JSON was cut: the end is the fault, not the frame.
            if frame.as_ref().is_ok_and(is_whole) {
                self.take(frame, &mut out);
            }
        }
        self.end(End::Bytes, &mut out);
        if self.state == State::Open {
            let error = self.ended();
            self.fail(error, &mut out);
        }
        out
    }

    /// Takes the failure of the connection in place of the stream's end.
    pub fn interrupt(&mut self, cause: &str) -> Events {
        let mut out = Vec::new();
        self.end(End::Bytes, &mut out);
        if self.state == State::Open {
            let error = ModelError::interrupted(&format!("after {} bytes ({cause})", self.bytes));
            self.fail(error, &mut out);
        }
        out
    }

    /// Whether the terminal event arrived.
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Whether the bytes so far are events, and not a body that is of use only once it is whole.
    #[cfg(feature = "http")]
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self.opening, Opening::Stream(_))
    }

    /// A number that has grown when the answer has: a limit on standing still watches it (case S07).
    #[cfg(feature = "http")]
    pub(crate) fn progress(&self) -> u64 {
        self.progress
    }

    /// Why an answer that ended here is no whole one.
    fn ended(&self) -> ModelError {
        if let Stranger::First(event) = &self.stranger {
            return protocol("no event of the answer is of this format", event);
        }
        match self.opening.foreign().filter(|_| self.progress == 0) {
            Some(first) => {
                protocol("the answer is neither an event stream nor JSON", &String::from_utf8_lossy(first))
            }
            None => ModelError::interrupted(&format!("after {} bytes", self.bytes)),
        }
    }

    fn take(&mut self, frame: Result<Frame, SseError>, out: &mut Events) {
        if self.state != State::Open {
            return;
        }
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                return self.fail(ModelError::new(ModelErrorKind::Protocol, error.to_string()), out);
            }
        };
        let data = match frame.payload() {
            Payload::Data(data) => data,
            Payload::Done => return self.end(End::Marked, out),
            Payload::KeepAlive => return,
        };
        self.progress += 1;
        if !data.starts_with('{') {
            return self.fail(protocol("an event is not a JSON object", data), out);
        }
        let (text, lone) = mended(data);
        self.lone |= lone;
        let mut events = Vec::new();
        let progress = self.codec.event(&frame.event, &Json { text: &text, lone }, &mut events);
        self.put(events, out);
        match progress {
            Ok(Progress::Unknown) => self.stranger.unknown(data),
            Ok(Progress::More) => self.stranger = Stranger::Known,
            Ok(Progress::Complete) => self.state = State::Complete,
            Err(error) => self.fail(error, out),
        }
    }

    /// Lets the format say whether what arrived is whole. A plain body says so itself.
    fn end(&mut self, end: End, out: &mut Events) {
        if self.state != State::Open || matches!(self.opening, Opening::Plain(_)) {
            return;
        }
        let mut events = Vec::new();
        let progress = self.codec.end(end, &mut events);
        self.put(events, out);
        match progress {
            Ok(Progress::Complete) => self.state = State::Complete,
            Ok(Progress::Unknown | Progress::More) => {}
            Err(error) => self.fail(error, out),
        }
    }

    fn fail(&mut self, error: ModelError, out: &mut Events) {
        let mut events = Vec::new();
        self.codec.abandon(&mut events);
        self.put(events, out);
        out.push(Err(if self.lone { lone::error(error) } else { error }));
        self.state = State::Failed;
    }

    fn put(&self, events: Vec<ModelEvent>, out: &mut Events) {
        let is_lone = self.lone;
        out.extend(events.into_iter().map(|event| Ok(if is_lone { lone::event(event) } else { event })));
    }
}

impl Stranger {
    fn unknown(&mut self, event: &str) {
        if matches!(self, Self::NoEvent) {
            *self = Self::First(event[..floor_boundary(event, QUOTE)].to_owned());
        }
    }
}

/// Decodes a body that was not streamed: an answer, or an error of any status and shape.
///
/// ```
/// use agent_core::ModelErrorKind;
/// use agent_providers::{ResponseHead, ToolNames, WireFormat, decode_body};
///
/// let head = ResponseHead { status: Some(502), ..ResponseHead::unknown() };
/// let events = decode_body(&WireFormat::Anthropic.into(), &ToolNames::default(), &head, b"<html>Bad gateway</html>");
/// assert_eq!(events[0].as_ref().unwrap_err().kind, ModelErrorKind::Transport);
/// ```
pub fn decode_body(dialect: &Dialect, names: &ToolNames, head: &ResponseHead<'_>, body: &[u8]) -> Events {
    if head.status.is_some_and(|status| status >= 300) {
        return vec![Err(classify(head, body))];
    }
    let events = if dialect.format.is_objects() {
        let mut decoder = StreamDecoder::new(dialect, names.clone());
        let mut events = decoder.push(body);
        events.extend(decoder.finish());
        events
    } else {
        plain(dialect.codec(names.clone()).as_mut(), body)
    };
    events.into_iter().map(|event| event.map_err(|error| with_head(error, head))).collect()
}

/// Decodes the body of a successful answer.
fn plain(codec: &mut dyn Codec, body: &[u8]) -> Events {
    let text = String::from_utf8_lossy(body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body));
    let (text, lone) = mended(&text);
    if let Err(error) = serde_json::from_str::<IgnoredAny>(&text) {
        let cut = error.is_eof();
        let error = if cut {
            ModelError::interrupted(&format!("after {} bytes", body.len()))
        } else {
            protocol("the answer is not JSON", &text)
        };
        return vec![Err(error)];
    }
    let mut events = Vec::new();
    let result = codec.body(&Json { text: &text, lone }, &mut events);
    let mut out: Events = events.into_iter().map(Ok).collect();
    out.extend(result.err().map(Err));
    if lone {
        out = out.into_iter().map(|item| item.map(lone::event).map_err(lone::error)).collect();
    }
    out
}

/// The failure of a body that is larger than any honest one.
pub(crate) fn too_large() -> ModelError {
    let message = format!("the answer is larger than {LARGEST_BODY} bytes; ask for a streamed one");
    ModelError::new(ModelErrorKind::Protocol, message)
}

fn is_whole(frame: &Frame) -> bool {
    match frame.payload() {
        Payload::Data(data) => serde_json::from_str::<IgnoredAny>(&mended(data).0).is_ok(),
        Payload::Done => true,
        Payload::KeepAlive => false,
    }
}

/// Most bytes of a body that is no stream.
pub(crate) const LARGEST_BODY: usize = 64 << 20;
