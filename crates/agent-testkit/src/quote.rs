//! Text as a JSON string.

/// The text in quotes, escaped.
pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
