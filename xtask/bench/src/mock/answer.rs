//! One answer as events: twenty pieces of text, and but for the last step one call in nine pieces.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::{Value, json};

/// The events of an answer, each with its frame.
pub(super) fn events(step: usize, calls: bool) -> VecDeque<Bytes> {
    let usage = json!({ "input_tokens": 90 + step, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0 });
    let message = json!({ "id": format!("msg_b{step:05}"), "type": "message", "role": "assistant", "model": "bench-model",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage });
    let mut events = VecDeque::from([
        event("message_start", &json!({ "type": "message_start", "message": message })),
        block_start(0, &json!({ "type": "text", "text": "" })),
        event("ping", &json!({ "type": "ping" })),
    ]);
    for piece in 0..TEXT_PIECES {
        events.push_back(delta(0, &json!({ "type": "text_delta", "text": words(step, piece) })));
    }
    events.push_back(event("content_block_stop", &json!({ "type": "content_block_stop", "index": 0 })));
    if calls {
        call(step, &mut events);
    }
    let reason = if calls { "tool_use" } else { "end_turn" };
    let end = json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": { "output_tokens": 75 } });
    events.push_back(event("message_delta", &end));
    events.push_back(event("message_stop", &json!({ "type": "message_stop" })));
    events
}

fn call(step: usize, events: &mut VecDeque<Bytes>) {
    let block = json!({ "type": "tool_use", "id": format!("toolu_b{step:05}"), "name": "echo", "input": {} });
    events.push_back(block_start(1, &block));
    let input = input(step);
    let (mut rest, size) = (input.as_str(), input.len().div_ceil(INPUT_PIECES));
    // The first piece is empty, as the service sends it.
    events.push_back(input_piece(""));
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(size.min(rest.len()));
        events.push_back(input_piece(piece));
        rest = others;
    }
    events.push_back(event("content_block_stop", &json!({ "type": "content_block_stop", "index": 1 })));
}

/// What the call of a step asks for: some two hundred bytes of ASCII, a few of them escaped.
pub(super) fn input(step: usize) -> String {
    let mut text = format!("reading {step:05} of the \"north\" gauge:");
    while text.len() < INPUT_TEXT {
        text.push_str(" steady,");
    }
    json!({ "seq": step, "text": text }).to_string()
}

fn words(step: usize, piece: usize) -> String {
    format!("gauge {step:04}/{piece:02} is ok, ")
}

fn input_piece(piece: &str) -> Bytes {
    delta(1, &json!({ "type": "input_json_delta", "partial_json": piece }))
}

fn block_start(index: usize, block: &Value) -> Bytes {
    event(
        "content_block_start",
        &json!({ "type": "content_block_start", "index": index, "content_block": block }),
    )
}

fn delta(index: usize, delta: &Value) -> Bytes {
    event("content_block_delta", &json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

const TEXT_PIECES: usize = 20;
const INPUT_PIECES: usize = 8;
const INPUT_TEXT: usize = 170;

#[cfg(test)]
mod tests {
    use super::*;

    fn count(events: &VecDeque<Bytes>, part: &str) -> usize {
        events.iter().filter(|event| String::from_utf8_lossy(event).contains(part)).count()
    }

    #[test]
    fn an_answer_has_its_shape() {
        let with_call = events(3, true);
        assert_eq!(count(&with_call, "\"text_delta\""), 20);
        assert_eq!(count(&with_call, "\"input_json_delta\""), 9);
        assert_eq!(count(&with_call, "\"tool_use\""), 2, "the block and the reason");
        let last = events(4, false);
        assert_eq!((count(&last, "tool_use"), count(&last, "end_turn")), (0, 1));
        assert!((180..=220).contains(&input(1).len()), "{}", input(1).len());
        assert_eq!(input(1).len(), input(1_000).len() - 3);
    }
}
