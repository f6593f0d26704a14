//! Server-sent events out of arbitrary byte chunks (requirement M8).
//!
//! The grammar is the work of `eventsource-stream`, which is fed one whole line at a time: it panics on a leading
//! byte order mark, is quadratic in the length of what it is fed, and drops a last event without its blank line.
//! This module strips the mark, splits lines on bytes, bounds an event and flushes at the end. The parser only takes
//! its bytes from a stream it owns, so lines reach it through a queue that both sides hold.
//!
//! It costs thousands of instructions a line, and an answer is thousands of events that are all of one shape: a name
//! and one line of data. These are read here; the first line of another kind hands the event over, from its beginning.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use eventsource_stream::{EventStream, EventStreamError};
use futures_core::Stream;
use memchr::memchr2;

/// Turns bytes into frames, in process and without a runtime.
///
/// ```
/// use agent_providers::SseFrames;
///
/// let mut frames = SseFrames::default();
/// assert!(frames.push(b"\xEF\xBB\xBFdata: {\"a\":").is_empty());
/// let frame = frames.push(b"1}\r\n\r\n").remove(0)?;
/// assert_eq!(frame.data, r#"{"a":1}"#);
/// # Ok::<(), agent_providers::SseError>(())
/// ```
pub struct SseFrames {
    /// Made for the first event that is not of the usual shape.
    parser: Option<Box<Parser>>,
    usual: Usual,
    /// The bytes of a line whose end has not arrived.
    partial: Vec<u8>,
    /// Invariant: a line feed at the start of the next bytes belongs to a line that has ended.
    after_cr: bool,
    event_bytes: usize,
    limit: usize,
    state: State,
}

/// The whole grammar.
struct Parser {
    lines: Lines,
    events: EventStream<Lines>,
}

/// The event at work while it has the usual shape.
#[derive(Debug)]
struct Usual {
    name: String,
    data: String,
    has_data: bool,
    /// Whether it has another shape, and its lines go to the parser.
    is_over: bool,
}

/// A frame that is lent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameRef<'f> {
    /// The event's name; `message` when none was given.
    pub(crate) event: &'f str,
    /// Its data lines, joined by line feeds.
    pub(crate) data: &'f str,
}

/// How far the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No line has ended, so byte order marks may stand here.
    FirstLine,
    Reading,
    /// Nothing is given any more.
    Failed,
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the two fields of the grammar that carry meaning here")]
pub struct Frame {
    /// The event's name; `message` when none was given.
    pub event: String,
    /// Its data lines, joined by line feeds.
    pub data: String,
}

/// What a frame's data is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Payload<'f> {
    /// Nothing, or a comment that a gateway wrapped into data: proof of life only.
    KeepAlive,
    /// The `[DONE]` of OpenAI-compatible servers.
    Done,
    /// Data, expected to be JSON.
    Data(&'f str),
}

/// A stream that cannot be read as events.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// One event is larger than the limit.
    #[error(
        "one event of the stream is larger than {limit} bytes; ask for a shorter answer, or raise the event limit (`event_limit` of the model's configuration)"
    )]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The grammar refused a line.
    #[error("a line of the stream is no event-stream line; the server does not speak server-sent events")]
    Grammar,
}

/// Most bytes of one event unless told otherwise: 16 MiB.
pub const DEFAULT_EVENT_LIMIT: usize = 16 << 20;

impl SseFrames {
    /// A framer that refuses events of more than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            parser: None,
            usual: Usual::default(),
            partial: Vec::new(),
            after_cr: false,
            event_bytes: 0,
            limit,
            state: State::FirstLine,
        }
    }

    /// Takes the next bytes, cut anywhere, and gives the frames they complete. An error is the last thing given.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Result<Frame, SseError>> {
        let mut out = Vec::new();
        self.read(bytes, |frame| out.push(frame.map(FrameRef::to_owned)));
        out
    }

    /// Takes the end of the stream: a last event that lacks its blank line, or its line end, is given now.
    pub fn finish(&mut self) -> Vec<Result<Frame, SseError>> {
        let mut out = Vec::new();
        self.end(|frame| out.push(frame.map(FrameRef::to_owned)));
        out
    }

    /// Takes the next bytes and lends the frames they complete.
    pub(crate) fn read(&mut self, mut bytes: &[u8], mut give: impl FnMut(Result<FrameRef<'_>, SseError>)) {
        while self.state != State::Failed && !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes.first() == Some(&b'\n') {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            if let Some((frame, rest)) = self.whole(bytes) {
                give(Ok(frame));
                (self.event_bytes, bytes) = (0, rest);
                continue;
            }
            let end = memchr2(b'\n', b'\r', bytes);
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.event_bytes + self.partial.len() + line.len() > self.limit {
                self.fail();
                give(Err(SseError::TooLarge { limit: self.limit }));
            } else if end.is_none() {
                self.partial.extend_from_slice(line);
            } else {
                self.after_cr = rest.first() == Some(&b'\r');
                self.end_line(line, &mut give);
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
    }

    /// An event of the usual shape that the bytes begin with and that is whole, and the bytes behind it: it is lent as it
    /// lies. Line by line it would be copied and looked at three times over.
    fn whole<'b>(&self, bytes: &'b [u8]) -> Option<(FrameRef<'b>, &'b [u8])> {
        let is_between = self.state == State::Reading && self.partial.is_empty() && self.usual.is_new();
        let (event, rest) = line(bytes.strip_prefix(b"event: ").filter(|_| is_between)?)?;
        let (data, rest) = line(rest.strip_prefix(b"data: ")?)?;
        let rest = rest.strip_prefix(b"\n")?;
        let is_allowed = bytes.len() - rest.len() <= self.limit && !event.is_empty();
        is_allowed.then_some((FrameRef { event, data }, rest))
    }

    /// Takes the end of the stream and lends what it completes.
    pub(crate) fn end(&mut self, mut give: impl FnMut(Result<FrameRef<'_>, SseError>)) {
        if self.state != State::Failed {
            if !self.partial.is_empty() {
                self.end_line(b"", &mut give);
            }
            self.end_line(b"", &mut give);
        }
    }

    /// A line has ended: what waits of it, and its rest.
    fn end_line(&mut self, rest: &[u8], give: &mut impl FnMut(Result<FrameRef<'_>, SseError>)) {
        let mut partial = std::mem::take(&mut self.partial);
        let line = if partial.is_empty() {
            rest
        } else {
            partial.extend_from_slice(rest);
            partial.as_slice()
        };
        let line = self.without_marks(line);
        self.event_bytes = match line.first() {
            None => 0,
            Some(b':') => self.event_bytes,
            Some(_) => self.event_bytes + line.len(),
        };
        // Bytes that are no text become U+FFFD, since the line is all there is.
        match std::str::from_utf8(line) {
            Ok(line) => self.take_line(line, give),
            Err(_) => self.take_line(&String::from_utf8_lossy(line), give),
        }
        partial.clear();
        self.partial = partial;
    }

    /// The first line without the byte order marks in front of it.
    fn without_marks<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        if self.state != State::FirstLine {
            return line;
        }
        self.state = State::Reading;
        let marks = line.chunks_exact(BOM.len()).take_while(|chunk| *chunk == BOM).count();
        line.get(marks * BOM.len()..).unwrap_or_default()
    }

    fn take_line(&mut self, line: &str, give: &mut impl FnMut(Result<FrameRef<'_>, SseError>)) {
        if !self.usual.is_over && self.usual.take(line) {
            if line.is_empty() {
                self.usual.end(give);
            }
            return;
        }
        let parser = self.parser.get_or_insert_with(Box::default);
        for line in self.usual.hand_over().into_iter().flatten() {
            parser.lines.put(line.into_bytes());
        }
        parser.lines.put(format!("{line}\n").into_bytes());
        self.usual.is_over = !line.is_empty();
        if let Err(error) = parser.parse(give) {
            self.fail();
            give(Err(error));
        }
    }

    fn fail(&mut self) {
        self.state = State::Failed;
        self.partial = Vec::new();
    }
}

impl Parser {
    fn parse(&mut self, give: &mut impl FnMut(Result<FrameRef<'_>, SseError>)) -> Result<(), SseError> {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(event)) = Pin::new(&mut self.events).poll_next(&mut context) {
            match event {
                Ok(event) => give(Ok(FrameRef { event: &event.event, data: &event.data })),
                Err(EventStreamError::Transport(never)) => match never {},
                Err(EventStreamError::Utf8(_) | EventStreamError::Parser(_)) => {
                    return Err(SseError::Grammar);
                }
            }
        }
        Ok(())
    }
}

impl Default for Parser {
    fn default() -> Self {
        let lines = Lines::default();
        // The parser panics on a byte order mark in what it is fed first.
        lines.put(b"\n".to_vec());
        Self { events: EventStream::new(lines.clone()), lines }
    }
}

/// With room for usual events, so that an answer does not find it out by growing.
impl Default for Usual {
    fn default() -> Self {
        let (name, data) = (String::with_capacity(32), String::with_capacity(256));
        Self { name, data, has_data: false, is_over: false }
    }
}

impl Usual {
    /// Takes a line of the usual shape; `false` when it is of another one.
    fn take(&mut self, line: &str) -> bool {
        if let Some(value) = field(line, "data:").filter(|_| !self.has_data) {
            self.has_data = true;
            self.data.push_str(value);
        } else if let Some(value) = field(line, "event:") {
            self.name.clear();
            self.name.push_str(value);
        } else {
            return line.is_empty() || line.starts_with(':');
        }
        true
    }

    /// Gives the event, if it has data, and begins the next one.
    fn end(&mut self, give: &mut impl FnMut(Result<FrameRef<'_>, SseError>)) {
        if self.has_data {
            let event = if self.name.is_empty() { "message" } else { &self.name };
            give(Ok(FrameRef { event, data: &self.data }));
        }
        self.clear();
    }

    /// The lines taken so far, for the parser; nothing when it has them.
    fn hand_over(&mut self) -> [Option<String>; 2] {
        let name = (!self.name.is_empty()).then(|| format!("event: {}\n", self.name));
        let data = self.has_data.then(|| format!("data: {}\n", self.data));
        self.clear();
        [name, data]
    }

    /// Whether no line of an event was taken.
    fn is_new(&self) -> bool {
        self.name.is_empty() && !self.has_data && !self.is_over
    }

    fn clear(&mut self) {
        self.name.clear();
        self.data.clear();
        self.has_data = false;
    }
}

/// The bytes up to a line feed, if they are text, and those behind it.
fn line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr2(b'\n', b'\r', bytes).filter(|end| bytes.get(*end) == Some(&b'\n'))?;
    let (line, rest) = bytes.split_at(end);
    Some((std::str::from_utf8(line).ok()?, rest.get(1..)?))
}

/// The value of a field, without the one space that may stand in front of it.
fn field<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    let value = line.strip_prefix(name)?;
    Some(value.strip_prefix(' ').unwrap_or(value))
}

impl Default for SseFrames {
    fn default() -> Self {
        Self::with_limit(DEFAULT_EVENT_LIMIT)
    }
}

impl fmt::Debug for SseFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.partial.len();
        f.debug_struct("SseFrames").field("waiting", &waiting).field("state", &self.state).finish()
    }
}

impl Frame {
    /// Sorts the data: gateways re-emit comments as data (case S02).
    pub fn payload(&self) -> Payload<'_> {
        self.lend().payload()
    }

    pub(crate) fn lend(&self) -> FrameRef<'_> {
        FrameRef { event: &self.event, data: &self.data }
    }
}

impl<'f> FrameRef<'f> {
    pub(crate) fn to_owned(self) -> Frame {
        Frame { event: self.event.to_owned(), data: self.data.to_owned() }
    }

    pub(crate) fn payload(self) -> Payload<'f> {
        match self.data.trim() {
            "" => Payload::KeepAlive,
            "[DONE]" => Payload::Done,
            data if data.starts_with(':') => Payload::KeepAlive,
            data => Payload::Data(data),
        }
    }
}

/// The line that waits to be read: a stream for `eventsource-stream`, a queue for us.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<VecDeque<Vec<u8>>>>);

impl Lines {
    fn put(&self, line: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(line);
    }
}

impl Stream for Lines {
    type Item = Result<Vec<u8>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
            Some(line) => Poll::Ready(Some(Ok(line))),
            None => Poll::Pending,
        }
    }
}

const BOM: &[u8] = b"\xEF\xBB\xBF";

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(chunks: &[&[u8]]) -> Vec<Result<Frame, SseError>> {
        let mut sse = SseFrames::default();
        let mut out: Vec<_> = chunks.iter().flat_map(|chunk| sse.push(chunk)).collect();
        out.extend(sse.finish());
        out
    }

    /// The stream gives these data, whole and cut at every byte.
    #[track_caller]
    fn check(stream: &[u8], expect: &[&str]) {
        let datas = |chunks: &[&[u8]]| -> Vec<String> {
            frames(chunks).into_iter().map(|frame| frame.unwrap().data).collect()
        };
        assert_eq!(datas(&[stream]), expect);
        for at in 0..=stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(datas(&[head, tail]), expect, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(datas(&bytes), expect, "one byte at a time");
    }

    #[test]
    fn line_endings() {
        check(b"data: a\n\ndata: b\n\n", &["a", "b"]);
        check(b"data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check(b"data: a\r\rdata: b\r\r", &["a", "b"]);
        check(b"data: a\n\r\ndata: b\r\n\ndata: c\r\r\n", &["a", "b", "c"]);
    }

    #[test]
    fn fields_and_comments() {
        check(b": hello\n\n:\n\ndata:a\n\n", &["a"]);
        check(b"data: a\n: inside\ndata:  b\n\n", &["a\n b"]);
        check(b"retry: 5\nid: 1\nwhat: x\nevent: y\ndata\n\n", &[""]);
        check(b"event: lonely\n\ndata: a\n\n", &["a"]);
        check(
            b"id: 1\n\nevent: x\ndata: a\n\nevent: x\ndata: b\r\n\nevent: x\ndata: c\ndata: d\n\n",
            &["a", "b", "c\nd"],
        );
    }

    #[test]
    fn marks_and_missing_ends() {
        check(b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", &["a"]);
        check(b"\xEF\xBB\xBF\n\xEF\xBB\xBFdata: a\n\ndata: b\n\n", &["b"]);
        check(b"data: a\n", &["a"]);
        check(b"data: a", &["a"]);
        check(b"", &[]);
    }

    #[test]
    fn characters_are_decoded_in_whole_lines() {
        check("data: \u{5317}\u{1F30D}\n\n".as_bytes(), &["\u{5317}\u{1F30D}"]);
        check(b"data: a\xFFb\n\ndata: c\n\n", &["a\u{FFFD}b", "c"]);
    }

    #[test]
    fn an_event_is_bounded_and_the_stream_is_not() {
        let mut sse = SseFrames::with_limit(20);
        for _ in 0..50 {
            assert_eq!(sse.push(b"data: 0123456789\n\n").len(), 1);
            assert!(sse.push(b": comments cost\n").is_empty());
        }
        let mut out = sse.push(b"data: fine\n\ndata: 01234567890123456789");
        assert_eq!(out.pop(), Some(Err(SseError::TooLarge { limit: 20 })));
        assert_eq!(out.len(), 1, "what was complete is given first");
        assert!(sse.push(b"\n\ndata: more\n\n").is_empty() && sse.finish().is_empty());
    }

    proptest::proptest! {
        /// What is read here is what the parser would read: a line of a field that nobody knows, at the beginning of each
        /// event, hands all of them over and says nothing.
        #[test]
        fn the_usual_event_is_read_as_the_parser_reads_it(
            events in proptest::collection::vec(proptest::collection::vec(0usize..LINES.len(), 0..5), 0..8),
            chunk in 1usize..60,
        ) {
            let lines = |events: &[Vec<usize>], first: &str| -> String {
                let event = |event: &Vec<usize>| {
                    let lines = event.iter().map(|line| format!("{}\n", LINES[*line])).collect::<String>();
                    format!("{first}{lines}\n")
                };
                events.iter().map(event).collect()
            };
            let (usual, parsed) = (lines(&events, ""), lines(&events, "nobody: knows\n"));
            let chunks: Vec<&[u8]> = usual.as_bytes().chunks(chunk).collect();
            proptest::prop_assert_eq!(frames(&chunks), frames(&[parsed.as_bytes()]));
        }
    }

    const LINES: [&str; 14] = [
        "data: a",
        "data:b",
        "data:  two",
        "data:",
        "data",
        "event: x",
        "event:y",
        "event:",
        "event",
        ": comment",
        "id: 7",
        "retry: 5",
        "what: x",
        "dataset: no",
    ];

    #[test]
    fn data_is_sorted() {
        let check = |data: &str, expect: Payload<'_>| {
            assert_eq!(Frame { event: String::new(), data: data.into() }.payload(), expect);
        };
        check(": PROCESSING", Payload::KeepAlive);
        check(" ", Payload::KeepAlive);
        check("[DONE]", Payload::Done);
        check("{}", Payload::Data("{}"));
    }
}
