//! Ollama's own chat, read plainly.

use serde_json::Value;

use super::{Plain, PlainCall, count, word};

/// Reads a whole answer, or one line of a stream: they look alike.
pub(super) fn read(event: &Value, plain: &mut Plain) {
    let message = &event["message"];
    plain.say(&message["content"]);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let input = call["function"]["arguments"].clone();
        let name = word(&call["function"]["name"]);
        plain.calls.push(PlainCall { name, input, ..PlainCall::default() });
    }
    count(&mut plain.usage[0], event["prompt_eval_count"].as_u64());
    count(&mut plain.usage[1], event["eval_count"].as_u64());
}
