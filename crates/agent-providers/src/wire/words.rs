//! Words that formats share: clipped results, names of files, inputs that must be objects.

use std::borrow::Cow;

use agent_core::{FilePart, ToolInput, ceil_boundary, floor_boundary};

use super::json::{quoted, sound};

/// Head and tail of a long text with a note of what is gone between them.
pub(crate) fn clipped(text: &str, limit: Option<usize>) -> Cow<'_, str> {
    let Some(limit) = limit.filter(|limit| text.len() > *limit) else { return Cow::Borrowed(text) };
    let head = floor_boundary(text, limit.div_ceil(2));
    let tail = ceil_boundary(text, text.len() - limit / 2);
    Cow::Owned(format!("{}\n[{} bytes removed]\n{}", &text[..head], tail - head, &text[tail..]))
}

/// A file in words.
pub(crate) fn label(file: &FilePart) -> String {
    match &file.name {
        Some(name) => format!("{name} ({})", file.media_type),
        None => file.media_type.clone(),
    }
}

/// The input of a call, byte for byte; what is no JSON object is wrapped into one, where the wire takes no other.
pub(crate) fn object_input(input: &ToolInput) -> Cow<'_, str> {
    match input.object() {
        Some(object) => sound(object),
        None => Cow::Owned(format!(r#"{{"invalid_json":{}}}"#, quoted(input.as_str()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn clips_say_what_they_removed_and_split_no_character(text in "\\PC{0,60}", limit in 0usize..90) {
            let short = clipped(&text, Some(limit));
            if text.len() <= limit {
                proptest::prop_assert_eq!(short.as_ref(), text.as_str());
            } else {
                let (head, rest) = short.split_once("\n[").unwrap();
                let (removed, tail) = rest.rsplit_once(" bytes removed]\n").unwrap();
                proptest::prop_assert_eq!(head.len() + removed.parse::<usize>().unwrap() + tail.len(), text.len());
                proptest::prop_assert!(text.starts_with(head) && text.ends_with(tail));
                proptest::prop_assert!(head.len() + tail.len() <= limit);
            }
        }
    }

    #[test]
    fn inputs_are_objects() {
        let check = |given: ToolInput, expect: &str| assert_eq!(object_input(&given), expect);
        check(
            ToolInput::finished(r#"{ "b":1.0,"a":12345678901234567890 }"#),
            r#"{ "b":1.0,"a":12345678901234567890 }"#,
        );
        check(ToolInput::finished("[1]"), r#"{"invalid_json":"[1]"}"#);
        check(ToolInput::finished("{\"a"), r#"{"invalid_json":"{\"a"}"#);
        check(ToolInput::cut("{\"a"), r#"{"invalid_json":"{\"a"}"#);
        check(ToolInput::cut(""), r#"{"invalid_json":""}"#);
        check(ToolInput::finished(r#"{"a":"\ud83d"}"#), "{\"a\":\"\u{fffd}\"}");
    }
}
