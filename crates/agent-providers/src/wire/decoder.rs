//! One answer while it is decoded: bytes in, events out, whatever the format.

use agent_core::{ModelError, ModelErrorKind, ModelEvent, floor_boundary};
use serde::de::IgnoredAny;

use super::json::mended;
use super::opening::{Opening, is_blank};
use super::{Codec, Dialect, End, Events, Json, Progress, lone};
use crate::classify::{QUOTE, ResponseHead, classify, protocol, with_head};
use crate::lines::ObjectFrames;
use crate::names::ToolNames;
use crate::sse::{DEFAULT_EVENT_LIMIT, Frame, FrameRef, Payload, SseError, SseFrames};
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
    bytes: u64,
    opening: Opening,
    answer: Answer,
}

/// What the frames so far say.
#[derive(Debug)]
struct Answer {
    codec: Box<dyn Codec>,
    state: State,
    /// Whether an event escaped half a surrogate pair: its stand-in may be in anything that follows.
    lone: bool,
    /// Grows with each event, and with each piece of a plain body; comments and blanks leave it.
    progress: u64,
    /// The first event, as long as none was of a type this format has.
    stranger: Stranger,
    /// Where the codec writes, emptied after each event.
    written: Vec<ModelEvent>,
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
        let answer = Answer {
            codec,
            state: State::Open,
            lone: false,
            progress: 0,
            stranger: Stranger::NoEvent,
            written: Vec::new(),
        };
        Self { frames, objects, bytes: 0, opening: Opening::Blank, answer }
    }

    /// Takes the next bytes, cut anywhere.
    pub fn push(&mut self, bytes: &[u8]) -> Events {
        let mut out = Vec::new();
        self.read(bytes, &mut out);
        out
    }

    /// Takes the next bytes and appends what they say.
    pub(crate) fn read(&mut self, bytes: &[u8], out: &mut Events) {
        let Self { frames, objects, opening, answer, .. } = self;
        if answer.state != State::Open {
            return;
        }
        self.bytes += bytes.len() as u64;
        opening.take(bytes, objects.is_some());
        if let Opening::Plain(body) = opening {
            answer.progress += u64::from(!bytes.iter().copied().all(is_blank));
            if body.len() > LARGEST_BODY {
                answer.fail(too_large(), out);
            }
            return;
        }
        match objects.as_mut().filter(|_| opening.is_objects()) {
            Some(objects) => {
                for frame in objects.push(bytes) {
                    answer.take(frame.as_ref().map(Frame::lend).map_err(Clone::clone), out);
                }
            }
            None => frames.read(bytes, |frame| answer.take(frame, out)),
        }
    }

    /// Takes the end of the stream.
    pub fn finish(&mut self) -> Events {
        let mut out = Vec::new();
        let Self { frames, objects, opening, answer, .. } = self;
        if answer.state != State::Open {
            return out;
        }
        if let Opening::Plain(body) = opening {
            let out = plain(answer.codec.as_mut(), body);
            let is_whole = out.last().is_some_and(Result::is_ok);
            answer.state = if is_whole { State::Complete } else { State::Failed };
            return out;
        }
        // A frame without its blank line that is no JSON was cut: the end is the fault, not the frame.
        let mut take = |frame: Result<FrameRef<'_>, SseError>| {
            if frame.as_ref().is_ok_and(|frame| is_whole(*frame)) {
                answer.take(frame, &mut out);
            }
        };
        frames.end(&mut take);
        for frame in objects.as_mut().map(ObjectFrames::finish).unwrap_or_default() {
            take(frame.as_ref().map(Frame::lend).map_err(Clone::clone));
        }
        answer.end(End::Bytes, &mut out);
        if self.answer.state == State::Open {
            let error = self.ended();
            self.answer.fail(error, &mut out);
        }
        out
    }

    /// Takes the failure of the connection in place of the stream's end.
    pub fn interrupt(&mut self, cause: &str) -> Events {
        let mut out = Vec::new();
        if !matches!(self.opening, Opening::Plain(_)) {
            self.answer.end(End::Bytes, &mut out);
        }
        if self.answer.state == State::Open {
            let error = ModelError::interrupted(&format!("after {} bytes ({cause})", self.bytes));
            self.answer.fail(error, &mut out);
        }
        out
    }

    /// Whether the terminal event arrived.
    pub fn is_complete(&self) -> bool {
        self.answer.state == State::Complete
    }

    /// Whether the bytes so far are events, and not a body that is of use only once it is whole.
    #[cfg(feature = "http")]
    pub(crate) fn is_streamed(&self) -> bool {
        matches!(self.opening, Opening::Stream(_))
    }

    /// A number that has grown when the answer has: a limit on standing still watches it (case S07).
    #[cfg(feature = "http")]
    pub(crate) fn progress(&self) -> u64 {
        self.answer.progress
    }

    /// Why an answer that ended here is no whole one.
    fn ended(&self) -> ModelError {
        if let Stranger::First(event) = &self.answer.stranger {
            return protocol("no event of the answer is of this format", event);
        }
        match self.opening.foreign().filter(|_| self.answer.progress == 0) {
            Some(first) => {
                protocol("the answer is neither an event stream nor JSON", &String::from_utf8_lossy(first))
            }
            None => ModelError::interrupted(&format!("after {} bytes", self.bytes)),
        }
    }
}

impl Answer {
    fn take(&mut self, frame: Result<FrameRef<'_>, SseError>, out: &mut Events) {
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
        let progress = self.codec.event(frame.event, &Json { text: &text, lone }, &mut self.written);
        self.put(out);
        match progress {
            Ok(Progress::Unknown) => self.stranger.unknown(data),
            Ok(Progress::More) => self.stranger = Stranger::Known,
            Ok(Progress::Complete) => self.state = State::Complete,
            Err(error) => self.fail(error, out),
        }
    }

    /// Lets the format say whether what arrived is whole. A plain body says so itself.
    fn end(&mut self, end: End, out: &mut Events) {
        if self.state != State::Open {
            return;
        }
        let progress = self.codec.end(end, &mut self.written);
        self.put(out);
        match progress {
            Ok(Progress::Complete) => self.state = State::Complete,
            Ok(Progress::Unknown | Progress::More) => {}
            Err(error) => self.fail(error, out),
        }
    }

    fn fail(&mut self, error: ModelError, out: &mut Events) {
        self.codec.abandon(&mut self.written);
        self.put(out);
        out.push(Err(if self.lone { lone::error(error) } else { error }));
        self.state = State::Failed;
    }

    fn put(&mut self, out: &mut Events) {
        let is_lone = self.lone;
        let written = self.written.drain(..);
        out.extend(written.map(|event| Ok(if is_lone { lone::event(event) } else { event })));
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

fn is_whole(frame: FrameRef<'_>) -> bool {
    match frame.payload() {
        Payload::Data(data) => serde_json::from_str::<IgnoredAny>(&mended(data).0).is_ok(),
        Payload::Done => true,
        Payload::KeepAlive => false,
    }
}

/// Most bytes of a body that is no stream.
pub(crate) const LARGEST_BODY: usize = 64 << 20;
