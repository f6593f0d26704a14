//! The commonest events, above all one more piece of a block, read in one pass over their bytes.
//!
//! An answer is thousands of these. A reader for any JSON goes over each of them several times; this one takes the
//! fields that are always there, in any order, and hands whatever else there is to the general reader.

use std::borrow::Cow;

/// More of a block's words or of a call's input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UsualDelta<'e> {
    pub(super) index: u32,
    /// The delta's type.
    pub(super) kind: &'static str,
    pub(super) words: Cow<'e, str>,
}

/// The delta of an event; `None` when the event is anything more or less than that.
pub(super) fn usual_delta(event: &str) -> Option<UsualDelta<'_>> {
    let mut scan = Scan::of(event);
    let (mut kind, mut index, mut delta) = (None, None, None);
    scan.object(|scan| match scan.word(&["type", "index", "delta"])? {
        "type" => fill(&mut kind, scan.value(&["content_block_delta"])?),
        "index" => fill(&mut index, scan.number()?),
        _ => fill(&mut delta, scan.delta()?),
    })?;
    let (kind, words) = delta.filter(|_| scan.is_over() && kind.is_some())?;
    Some(UsualDelta { index: index?, kind, words })
}

/// The block of an event that only ends one; `None` when the event is anything more or less than that.
pub(super) fn usual_stop(event: &str) -> Option<u32> {
    let mut scan = Scan::of(event);
    let (mut kind, mut index) = (None, None);
    scan.object(|scan| match scan.word(&["type", "index"])? {
        "type" => fill(&mut kind, scan.value(&["content_block_stop"])?),
        _ => fill(&mut index, scan.number()?),
    })?;
    index.filter(|_| scan.is_over() && kind.is_some())
}

/// Whether an event says its type, which is this one, and nothing else.
pub(super) fn is_bare(event: &str, kind: &'static str) -> bool {
    let mut scan = Scan::of(event);
    let mut said = None;
    let read = scan.object(|scan| {
        scan.word(&["type"])?;
        fill(&mut said, scan.value(&[kind])?)
    });
    read.is_some() && scan.is_over()
}

struct Scan<'e> {
    text: &'e str,
    /// What is not read yet of it.
    rest: &'e [u8],
}

impl<'e> Scan<'e> {
    fn of(text: &'e str) -> Self {
        Self { text, rest: text.as_bytes() }
    }

    /// A delta's type and words.
    fn delta(&mut self) -> Option<(&'static str, Cow<'e, str>)> {
        let (mut kind, mut words) = (None, None);
        self.object(|scan| match scan.word(&["type", "text", "partial_json", "thinking"])? {
            "type" => fill(&mut kind, scan.value(&["text_delta", "input_json_delta", "thinking_delta"])?),
            key => fill(&mut words, (key, scan.words()?)),
        })?;
        let (kind, (key, words)) = (kind?, words?);
        let is_usual = matches!(
            (kind, key),
            ("text_delta", "text") | ("thinking_delta", "thinking") | ("input_json_delta", "partial_json")
        );
        is_usual.then_some((kind, words))
    }

    /// An object that is not empty, field by field.
    fn object(&mut self, mut field: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        loop {
            field(self)?;
            match self.take()? {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// One of these names of fields, and the colon behind it.
    #[inline(always)]
    fn word(&mut self, names: &[&'static str]) -> Option<&'static str> {
        let name = self.value(names)?;
        self.expect(b':')?;
        Some(name)
    }

    /// One of these texts, none of which is written with an escape. Where it is called the texts are known, so that they
    /// are compared a word at a time.
    #[inline(always)]
    fn value(&mut self, texts: &[&'static str]) -> Option<&'static str> {
        self.expect(b'"')?;
        for text in texts {
            if let Some([b'"', rest @ ..]) = self.rest.strip_prefix(text.as_bytes()) {
                self.rest = rest;
                return Some(text);
            }
        }
        None
    }

    /// A text of any kind. Deltas are short, so that looking at one byte after the other is the quickest.
    fn words(&mut self) -> Option<Cow<'e, str>> {
        self.expect(b'"')?;
        // JSON has no control characters in a text.
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..b' ');
        let mut end = self.rest.iter().position(special)?;
        let is_plain = self.rest.get(end) == Some(&b'"');
        while self.rest.get(end) == Some(&b'\\') {
            let behind = end + 2;
            end = behind + self.rest.get(behind..)?.iter().position(special)?;
        }
        let start = self.text.len() - self.rest.len();
        let inner = self.text.get(start..start + end)?;
        self.rest = self.rest.get(end..)?.strip_prefix(b"\"")?;
        if is_plain {
            return Some(Cow::Borrowed(inner));
        }
        let general = || serde_json::from_str(self.text.get(start - 1..=start + end)?).ok();
        unescaped(inner).or_else(general).map(Cow::Owned)
    }

    /// A count as JSON writes it.
    fn number(&mut self) -> Option<u32> {
        let first = self.take().filter(u8::is_ascii_digit)?;
        let mut number = u32::from(first - b'0');
        while let [digit @ b'0'..=b'9', rest @ ..] = self.rest {
            number = number.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
            self.rest = rest;
            if first == b'0' {
                return None;
            }
        }
        Some(number)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.take()? == byte).then_some(())
    }

    /// The next byte that is no white space.
    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.rest = self.rest.get(1..)?;
        Some(byte)
    }

    /// The same, left where it is.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.rest {
                [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] => self.rest = rest,
                [byte, ..] => return Some(*byte),
                [] => return None,
            }
        }
    }

    /// Whether nothing follows.
    fn is_over(&mut self) -> bool {
        self.peek().is_none()
    }
}

/// A text whose escapes are all of one character, as those of the input of a call mostly are.
fn unescaped(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((plain, escape)) = rest.split_once('\\') {
        out.push_str(plain);
        out.push(match escape.as_bytes().first()? {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            _ => return None,
        });
        rest = escape.get(1..)?;
    }
    out.push_str(rest);
    Some(out)
}

/// A field is there once.
fn fill<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    slot.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::ToolNames;
    use crate::wire::{StreamDecoder, WireFormat};

    #[track_caller]
    fn check(event: &str, expect: Option<(u32, &str, &str)>) {
        let given = usual_delta(event);
        let given = given.as_ref().map(|delta| (delta.index, delta.kind, delta.words.as_ref()));
        assert_eq!(given, expect, "{event}");
    }

    #[test]
    fn usual_deltas_are_read_and_others_are_not() {
        let text = |index: &str, delta: &str| {
            format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{{delta}}}}}"#)
        };
        let hi = r#""type":"text_delta","text":"hi""#;
        check(&text("7", hi), Some((7, "text_delta", "hi")));
        check(
            r#" {"delta" : {"partial_json":"{\"a\\n","type":"input_json_delta"},"index":0, "type":"content_block_delta"} "#,
            Some((0, "input_json_delta", "{\"a\\n")),
        );
        check(
            &text("0", r#""type":"thinking_delta","thinking":"\u00e9""#),
            Some((0, "thinking_delta", "\u{e9}")),
        );
        for index in ["-1", "1.0", "1e0", "01", "4294967296", "null", "\"1\"", ""] {
            check(&text(index, hi), None);
        }
        for delta in [
            "",
            r#""type":"text_delta""#,
            r#""type":"text_delta","thinking":"hi""#,
            r#""type":"text_delta","text":null"#,
            r#""type":"text_delta","text":"a","text":"b""#,
            r#""type":"text_delta","text":"hi","more":1"#,
            r#""type":"signature_delta","signature":"x""#,
            "\"type\":\"text_delta\",\"text\":\"a\tb\"",
            r#""type":"text_delta","text":"\x""#,
        ] {
            check(&text("0", delta), None);
        }
        check(&(text("0", hi) + "x"), None);
        check(r#"{"type":"content_block_delta","index":0,"delta":["text_delta","hi"]}"#, None);
        check(&text("0", hi).replace("content_block_delta", "content_block_stop"), None);
        check(r#"{"type":"content_block_delta","index":0"#, None);
    }

    #[test]
    fn events_without_words_are_read_where_they_say_nothing_else() {
        let stop = |index: &str, more: &str| {
            usual_stop(&format!(r#"{{"type":"content_block_stop","index":{index}{more}}}"#))
        };
        assert_eq!(stop("7", ""), Some(7));
        assert_eq!(usual_stop(r#"{ "index" : 0, "type": "content_block_stop" } "#), Some(0));
        for (index, more) in [("null", ""), ("01", ""), ("7", r#","more":1"#), ("7", r#","index":7"#)] {
            assert_eq!(stop(index, more), None, "{index}{more}");
        }
        assert_eq!(usual_stop(r#"{"type":"content_block_stop"}"#), None);
        assert!(is_bare(r#"{"type": "ping"}"#, "ping"));
        for other in [r#"{"type":"ping","a":1}"#, r#"{"type":"pong"}"#, r#"{"type":"ping"}x"#, "{}", "[]"] {
            assert!(!is_bare(other, "ping"), "{other}");
        }
    }

    /// What an answer says with this event in each of its blocks; without a name, every event takes the general way.
    fn said(event: &str, is_named: bool) -> String {
        let name = if is_named { "event: content_block_delta\n" } else { "" };
        let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
        let mut all = decoder.push(b"data: {\"type\":\"message_start\",\"message\":{}}\n\n");
        for block in [
            r#"{"type":"text","text":""}"#,
            r#"{"type":"thinking","thinking":""}"#,
            r#"{"type":"tool_use","id":"c","name":"f","input":{}}"#,
            r#"{"type":"server_tool_use","id":"s","name":"f","input":{}}"#,
        ] {
            for frame in [
                format!(r#"data: {{"type":"content_block_start","index":0,"content_block":{block}}}"#),
                format!("{name}data: {event}"),
                format!("{name}data: {event}"),
                r#"data: {"type":"content_block_stop","index":0}"#.to_owned(),
            ] {
                all.extend(decoder.push(format!("{frame}\n\n").as_bytes()));
            }
        }
        all.extend(decoder.finish());
        // The number of bytes in front of the break is another one without names.
        format!("{all:?}").split("after ").next().unwrap_or_default().to_owned()
    }

    fn events() -> impl Strategy<Value = String> {
        let kind =
            prop_oneof![Just("text_delta"), Just("thinking_delta"), Just("input_json_delta"), Just("odd")];
        let key = prop_oneof![Just("text"), Just("thinking"), Just("partial_json"), Just("type"), Just("x")];
        let value = prop_oneof![
            "\\PC{0,6}".prop_map(|text| serde_json::to_string(&text).unwrap()),
            Just(r#""\ud83d""#.to_owned()),
            Just(r#""\ude00\n\"""#.to_owned()),
            Just("null".to_owned()),
            Just("{\"a\":1}".to_owned()),
            Just("7".to_owned()),
        ];
        let index =
            prop_oneof![4 => Just("0"), 1 => Just("1"), 1 => Just("null"), 1 => Just("0.0"), 1 => Just("00")];
        let parts = (kind, prop::collection::vec((key, value), 0..3), index, 0..3_usize, any::<bool>());
        parts.prop_map(|(kind, fields, index, order, is_first)| {
            let mut fields: Vec<_> = fields.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
            fields.insert(if is_first { 0 } else { fields.len() }, format!("\"type\":\"{kind}\""));
            let mut parts = [
                "\"type\":\"content_block_delta\"".to_owned(),
                format!("\"index\": {index}"),
                format!("\"delta\":{{{}}}", fields.join(" ,")),
            ];
            parts.rotate_left(order);
            format!("{{{}}}", parts.join(","))
        })
    }

    proptest! {
        #[test]
        fn the_short_way_and_the_general_one_agree(event in events(), cut in prop::option::of(0usize..90)) {
            let event = match cut {
                Some(at) => event[..agent_core::floor_boundary(&event, at)].to_owned(),
                None => event,
            };
            prop_assert_eq!(said(&event, true), said(&event, false));
        }
    }
}
