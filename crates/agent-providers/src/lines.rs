//! JSON objects out of arbitrary byte chunks: one a line, pretty-printed, or one right behind the other.
//!
//! An object ends where its braces do, so that a whole body is read by the same rule as a line of a stream.

use crate::sse::{Frame, SseError};

/// Turns bytes into objects, in process and without a runtime. What is no object is given line by line, so that it
/// can be shown.
#[derive(Debug)]
pub(crate) struct ObjectFrames {
    /// The object, or the line that is none, as far as it has arrived.
    partial: Vec<u8>,
    at: At,
    depth: usize,
    limit: usize,
    failed: bool,
}

/// Where in the text the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Between objects.
    Gap,
    /// In an object, outside of texts.
    Object,
    /// In a text.
    Text,
    /// Behind the backslash of a text.
    Escape,
    /// In a line that is no object.
    Other,
}

impl ObjectFrames {
    /// A framer that refuses objects of more than `limit` bytes.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self { partial: Vec::new(), at: At::Gap, depth: 0, limit, failed: false }
    }

    /// Takes the next bytes, cut anywhere, and gives the objects they complete. An error is the last thing given.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Result<Frame, SseError>> {
        let mut out = Vec::new();
        for byte in bytes {
            if self.failed {
                break;
            }
            let ended = self.take(*byte);
            if self.partial.len() > self.limit {
                self.failed = true;
                self.partial = Vec::new();
                out.push(Err(SseError::TooLarge { limit: self.limit }));
            } else if ended {
                out.push(Ok(self.frame()));
            }
        }
        out
    }

    /// Takes the end of the bytes: what has not ended is given as it is.
    pub(crate) fn finish(&mut self) -> Vec<Result<Frame, SseError>> {
        if self.failed || self.partial.is_empty() { Vec::new() } else { vec![Ok(self.frame())] }
    }

    /// Takes one byte; `true` when it ends an object or a line that is none.
    fn take(&mut self, byte: u8) -> bool {
        let (next, is_kept) = match (self.at, byte) {
            (At::Gap, b'{') => {
                self.depth = 1;
                (At::Object, true)
            }
            (At::Gap, _) if byte.is_ascii_whitespace() || BOM.contains(&byte) => (At::Gap, false),
            (At::Gap, _) => (At::Other, true),
            // No text of JSON holds a line end: the object was cut, and what follows is another one.
            (At::Text | At::Escape | At::Other, b'\n') => (At::Gap, false),
            (At::Other, _) => (At::Other, true),
            (At::Escape, _) => (At::Text, true),
            (At::Text, b'\\') => (At::Escape, true),
            (At::Text, b'"') => (At::Object, true),
            (At::Text, _) => (At::Text, true),
            (At::Object, b'"') => (At::Text, true),
            (At::Object, b'{') => {
                self.depth += 1;
                (At::Object, true)
            }
            (At::Object, b'}') => {
                self.depth -= 1;
                (if self.depth == 0 { At::Gap } else { At::Object }, true)
            }
            (At::Object, _) => (At::Object, true),
        };
        if is_kept {
            self.partial.push(byte);
        }
        let ended = next == At::Gap && self.at != At::Gap;
        self.at = next;
        ended
    }

    fn frame(&mut self) -> Frame {
        let bytes = std::mem::take(&mut self.partial);
        Frame { event: "message".to_owned(), data: String::from_utf8_lossy(&bytes).into_owned() }
    }
}

const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes give these objects, whole and cut at every byte.
    #[track_caller]
    fn check(bytes: &[u8], expect: &[&str]) {
        let datas = |chunks: &[&[u8]]| -> Vec<String> {
            let mut frames = ObjectFrames::with_limit(1_000);
            let mut out: Vec<_> = chunks.iter().flat_map(|chunk| frames.push(chunk)).collect();
            out.extend(frames.finish());
            out.into_iter().map(|frame| frame.unwrap().data).collect()
        };
        assert_eq!(datas(&[bytes]), expect);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(datas(&[head, tail]), expect, "cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(datas(&single), expect, "one byte at a time");
    }

    #[test]
    fn an_object_ends_where_its_braces_do() {
        check(b"", &[]);
        check(b"{\"a\":1}\n{\"b\":{}}\r\n", &[r#"{"a":1}"#, r#"{"b":{}}"#]);
        check(b"\xEF\xBB\xBF \n{\n \"a\": {\n  \"b\": [1]\n }\n}\n", &["{\n \"a\": {\n  \"b\": [1]\n }\n}"]);
        check(b"{\"a\":1}{\"b\":2}", &[r#"{"a":1}"#, r#"{"b":2}"#]);
        check(br#"{"a":"}\"{\\"}{"b":2}"#, &[r#"{"a":"}\"{\\"}"#, r#"{"b":2}"#]);
        check("{\"a\":\"\u{5317}\"}\n".as_bytes(), &["{\"a\":\"\u{5317}\"}"]);
    }

    #[test]
    fn what_is_no_object_is_given_as_it_is() {
        check(b"{\"a\":1}\nupstream failed\n{\"b\":2}", &[r#"{"a":1}"#, "upstream failed", r#"{"b":2}"#]);
        check(b"{\"a\":\"cut\n{\"b\":2}", &[r#"{"a":"cut"#, r#"{"b":2}"#]);
        check(b"{\"a\":1}\n{\"b\":", &[r#"{"a":1}"#, r#"{"b":"#]);
    }

    #[test]
    fn an_object_is_bounded_and_the_stream_is_not() {
        let mut frames = ObjectFrames::with_limit(10);
        for _ in 0..50 {
            assert_eq!(frames.push(b"{\"a\":123}\n").len(), 1);
        }
        let mut out = frames.push(b"{\"b\":1}\n{\"a\":123456}");
        assert_eq!(out.pop(), Some(Err(SseError::TooLarge { limit: 10 })));
        assert_eq!(out.len(), 1, "what was complete is given first");
        assert!(frames.push(b"{}").is_empty() && frames.finish().is_empty());
    }
}
