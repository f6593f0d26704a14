//! What is quoted of a provider's words: short, and without keys.

use crate::wire::json::without_stand_ins;
use agent_core::{ModelError, ModelErrorKind, floor_boundary};

use super::ResponseHead;

/// At most `limit` bytes of a text, on a character boundary, with nothing in it that looks like a key.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut clean = redacted(text);
    if clean.len() > limit {
        clean.truncate(floor_boundary(&clean, limit));
        clean.push('\u{2026}');
    }
    clean
}

/// A data line that is not what the format promises.
pub(crate) fn protocol(what: &str, quote: &str) -> ModelError {
    let quote = without_stand_ins(quote);
    let quote = excerpt(&quote, QUOTE);
    ModelError::new(
        ModelErrorKind::Protocol,
        format!("{what}: {quote:?}; check that the address speaks the format it is configured for"),
    )
}

/// What to do about an encoding of the content: none is asked for, so none is undone.
pub(super) fn encoding_hint(head: &ResponseHead<'_>) -> Option<String> {
    let encoding = head.header("content-encoding").filter(|name| !name.is_empty())?;
    if encoding.eq_ignore_ascii_case("identity") {
        return None;
    }
    let encoding = excerpt(encoding, QUOTE);
    Some(format!(
        "; it arrived with content-encoding {encoding}, which was not asked for: turn compression off in the server or the proxy in front of it"
    ))
}

/// Hides what looks like a secret key: providers quote a wrong one back.
fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, start)) = KEY_STARTS.iter().filter_map(|s| Some((rest.find(s)?, *s))).min() {
        let (before, key) = rest.split_at(at);
        out.push_str(before);
        let good =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+' | '=' | '*');
        let secret = key.get(start.len()..).unwrap_or_default();
        let len = secret.find(|c| !good(c)).unwrap_or(secret.len());
        let (key, after) = key.split_at(start.len() + len);
        out.push_str(if len >= SHORTEST_KEY { "[redacted]" } else { key });
        rest = after;
    }
    out + rest
}

const KEY_STARTS: &[&str] = &["sk-", "xai-", "gsk_", "AIza", "Bearer "];
const SHORTEST_KEY: usize = 5;
/// Most bytes of a quote.
pub(crate) const QUOTE: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden() {
        assert_eq!(redacted("risk-free, Bearer abc.def/ghi= x sk-1"), "risk-free, [redacted] x sk-1");
        assert_eq!(
            redacted("key sk-in****-key, gsk_abcdef or AIzaSyABC."),
            "key [redacted], [redacted] or [redacted]"
        );
    }
}
