//! JSON with line breaks, every byte of every value as it came.

/// Breaks what is wider than a line into its parts; numbers, strings and the order of members are not touched.
///
/// The text must be JSON.
pub(super) fn pretty(json: &str) -> String {
    let packed = packed(json);
    let widths = widths(&packed);
    let mut out = String::with_capacity(packed.len() * 2);
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = packed[at..].chars().next() {
        match next {
            '{' | '[' => {
                let width = widths.get(at).copied().unwrap_or(2);
                if width <= LINE || width == 2 {
                    out.push_str(&packed[at..at + width]);
                    at += width;
                    continue;
                }
                depth += 1;
                out.push(next);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(next);
            }
            ',' => {
                out.push(next);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                let end = at + string(&packed[at..]);
                out.push_str(&packed[at..end]);
                at = end;
                continue;
            }
            _ => out.push(next),
        }
        at += next.len_utf8();
    }
    out
}

/// The same without white space between values.
fn packed(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(next) = rest.chars().next() {
        let taken = if next == '"' { string(rest) } else { next.len_utf8() };
        if !next.is_ascii_whitespace() {
            out.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    out
}

/// For each position at which an object or array begins, how many bytes it has.
fn widths(packed: &str) -> Vec<usize> {
    let mut widths = vec![0; packed.len()];
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(next) = packed[at..].chars().next() {
        match next {
            '{' | '[' => open.push(at),
            '}' | ']' => {
                if let Some(start) = open.pop() {
                    widths[start] = at + 1 - start;
                }
            }
            _ => {}
        }
        at += if next == '"' { string(&packed[at..]) } else { next.len_utf8() };
    }
    widths
}

/// The length of the string at the beginning of the text, quotes included.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}

/// What fits in so many bytes stays on one line.
const LINE: usize = 90;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wide_values_are_broken_and_no_byte_of_a_value_is() {
        let json = r#" {"z": 12345678901234567890, "a":1.0,"s":"a \"{b}\" \\", "list":[{"type":"text","text":"Nothing of this is ever cut, however long the line may grow with it: x  y\u00e9"},[],{}]}"#;
        insta::assert_snapshot!(pretty(json), @r#"
        {
          "z": 12345678901234567890,
          "a": 1.0,
          "s": "a \"{b}\" \\",
          "list": [
            {
              "type": "text",
              "text": "Nothing of this is ever cut, however long the line may grow with it: x  y\u00e9"
            },
            [],
            {}
          ]
        }
        "#);
        assert_eq!(pretty(r#"{ "a" : [ 1, 2 ] }"#), r#"{"a":[1,2]}"#);
    }

    #[test]
    fn deep_nesting_is_no_recursion() {
        let deep = format!("{}{}", "[".repeat(2_000), "]".repeat(2_000));
        assert_eq!(packed(&pretty(&deep)), deep);
    }

    proptest! {
        #[test]
        fn only_white_space_between_values_changes(texts in proptest::collection::vec("\\PC{0,60}", 0..9)) {
            let json = serde_json::json!({"texts": texts, "more": [texts, {"a": texts}]}).to_string();
            prop_assert_eq!(packed(&pretty(&json)), json);
        }
    }
}
