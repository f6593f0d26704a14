//! Words that formats share: inputs that must be objects.

use std::borrow::Cow;

use agent_core::{BlobHash, Clip, ToolInput};
use sha2::{Digest as _, Sha256};

use super::json::{quoted, sound};

/// A text as it is shown where results are clipped; what was put whole elsewhere is named by its hash.
pub(crate) fn clipped(text: &str, clip: Option<Clip>) -> Cow<'_, str> {
    agent_core::clipped(text, clip, |text| BlobHash::of_digest(&Sha256::digest(text.as_bytes()).into()))
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
