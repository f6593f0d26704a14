//! Anthropic Messages, read plainly.

use serde_json::Value;

use super::{Plain, PlainCall, count, sum, word};

/// Reads a whole message, or one event of a stream.
pub(super) fn read(event: &Value, plain: &mut Plain) {
    match event["type"].as_str() {
        Some("message_start") => usage(&event["message"]["usage"], plain),
        Some("content_block_start") => block(&event["content_block"], plain),
        Some("content_block_delta") => delta(&event["delta"], plain),
        Some("message_delta") => usage(&event["usage"], plain),
        _ => {
            event["content"].as_array().into_iter().flatten().for_each(|part| block(part, plain));
            usage(&event["usage"], plain);
        }
    }
}

fn block(block: &Value, plain: &mut Plain) {
    plain.in_call = block["type"] == "tool_use";
    match block["type"].as_str() {
        Some("text") => plain.say(&block["text"]),
        Some("tool_use") => plain.calls.push(PlainCall {
            id: word(&block["id"]),
            name: word(&block["name"]),
            pieces: String::new(),
            input: block["input"].clone(),
        }),
        _ => {}
    }
}

fn delta(delta: &Value, plain: &mut Plain) {
    plain.say(&delta["text"]);
    let call = plain.calls.last_mut().filter(|_| plain.in_call);
    if let (Some(piece), Some(call)) = (delta["partial_json"].as_str(), call) {
        call.pieces.push_str(piece);
    }
}

fn usage(usage: &Value, plain: &mut Plain) {
    if usage["iterations"].is_array() {
        plain.usage = [None; 2];
        return;
    }
    let input =
        ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"].map(|field| &usage[field]);
    count(&mut plain.usage[0], sum(&input));
    count(&mut plain.usage[1], usage["output_tokens"].as_u64());
}
