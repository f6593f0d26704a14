//! Gemini, read plainly.

use serde_json::Value;

use super::{Plain, PlainCall, count, sum, word};

/// Reads a whole answer, or one chunk of a stream: they look alike.
pub(super) fn read(event: &Value, plain: &mut Plain) {
    for part in event["candidates"][0]["content"]["parts"].as_array().into_iter().flatten() {
        if part["thought"] != true {
            plain.say(&part["text"]);
        }
        let call = &part["functionCall"];
        if call.is_object() {
            let input = call["args"].clone();
            let (id, name) = (word(&call["id"]), word(&call["name"]));
            plain.calls.push(PlainCall { id, name, pieces: String::new(), input });
        }
    }
    let usage = &event["usageMetadata"];
    count(&mut plain.usage[0], sum(&[&usage["promptTokenCount"], &usage["toolUsePromptTokenCount"]]));
    count(&mut plain.usage[1], sum(&[&usage["candidatesTokenCount"], &usage["thoughtsTokenCount"]]));
}
