//! What an answer is, told by its first bytes: gateways put errors and pages under any content type.

use memchr::memchr3;

/// The beginning of an answer. Blanks and byte order marks in front of it tell nothing.
#[derive(Debug, Default)]
pub(crate) enum Opening {
    /// Nothing that tells has arrived.
    #[default]
    Blank,
    /// Events, as it seems: the first bytes, to quote if no event comes out of them.
    Stream(Vec<u8>),
    /// JSON or a page: everything so far.
    Plain(Vec<u8>),
}

impl Opening {
    /// Takes the next bytes. `in_objects` says that the format streams plain objects, so that one opens a stream.
    pub(crate) fn take(&mut self, bytes: &[u8], in_objects: bool) {
        match self {
            Self::Blank => {
                let Some(at) = bytes.iter().position(|byte| !is_blank(*byte)) else { return };
                let (_, told) = bytes.split_at(at);
                *self = match told.first() {
                    Some(b'{') if in_objects => Self::Stream(told.iter().copied().take(QUOTED).collect()),
                    Some(b'{' | b'[' | b'<') => Self::Plain(told.to_vec()),
                    _ => Self::Stream(told.iter().copied().take(QUOTED).collect()),
                };
            }
            Self::Stream(first) => {
                let room = QUOTED.saturating_sub(first.len());
                first.extend(bytes.iter().take(room));
            }
            Self::Plain(body) => body.extend_from_slice(bytes),
        }
    }

    /// Whether it is a stream of plain objects.
    pub(crate) fn is_objects(&self) -> bool {
        matches!(self, Self::Stream(first) if first.first() == Some(&b'{'))
    }

    /// The first bytes of what is neither JSON nor a page and begins with no line of an event stream. A line that
    /// was cut within a known name is given the benefit of the doubt.
    pub(crate) fn foreign(&self) -> Option<&[u8]> {
        let Self::Stream(first) = self else { return None };
        if self.is_objects() {
            return None;
        }
        let is_known = match memchr3(b':', b'\n', b'\r', first) {
            Some(end) => first.get(..end).is_some_and(|name| name.is_empty() || FIELDS.contains(&name)),
            None => FIELDS.iter().any(|field| field.starts_with(first)),
        };
        (!is_known).then_some(first)
    }
}

/// Whether a byte in front of an answer tells nothing about it.
pub(crate) fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || BOM.contains(&byte)
}

const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];
const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];
/// Somewhat more than an error quotes, so that it can show that it left something out.
const QUOTED: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// What bytes are taken for, whole and one by one.
    #[track_caller]
    fn check(bytes: &[u8], expect: &str) {
        for size in [1, bytes.len().max(1)] {
            let mut opening = Opening::default();
            bytes.chunks(size).for_each(|chunk| opening.take(chunk, false));
            let given = match &opening {
                Opening::Blank => "blank".to_owned(),
                Opening::Plain(body) => format!("plain {}", String::from_utf8_lossy(body)),
                Opening::Stream(_) if opening.foreign().is_some() => "foreign".to_owned(),
                Opening::Stream(_) => "stream".to_owned(),
            };
            assert_eq!(given, expect, "{size} at a time");
        }
    }

    #[test]
    fn the_first_byte_that_is_no_blank_tells() {
        check(b"", "blank");
        check(b"\xEF\xBB\xBF \r\n", "blank");
        check(b"\xEF\xBB\xBF \n{\"a\": 1}\n", "plain {\"a\": 1}\n");
        check(b"[1]", "plain [1]");
        check(b"<!doctype html>", "plain <!doctype html>");
        for stream in ["data: {}", "event:x", ": hello", ":", "id\r\n", "ret", "\n\ndata\n"] {
            check(stream.as_bytes(), "stream");
        }
        for foreign in ["error code: 502", "datagram", "\"text\"", "no\n", "\u{1f}\u{8b}"] {
            check(foreign.as_bytes(), "foreign");
        }
        let mut opening = Opening::default();
        opening.take(&[b'x'; 9000], false);
        opening.take(&[b'x'; 9000], false);
        assert_eq!(opening.foreign().map(<[u8]>::len), Some(QUOTED));
        for (bytes, expect) in
            [(&b" {\"a\""[..], true), (b"data: {}", false), (b"[1]", false), (b"<html>", false)]
        {
            let mut opening = Opening::default();
            opening.take(bytes, true);
            assert_eq!((opening.is_objects(), opening.foreign()), (expect, None));
        }
    }
}
