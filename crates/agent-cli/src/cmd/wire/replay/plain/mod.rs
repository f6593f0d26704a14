//! A second, plain reading of a recorded body, to hold the decoder's reading against: no repair, no classification,
//! just the fields where the providers' documentation puts them.

mod anthropic;
mod gemini;
mod ollama;
mod openai;

use agent_providers::{Decoded, WireFormat};
use serde_json::Value;

/// What a body says when it is read plainly.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plain {
    text: String,
    calls: Vec<PlainCall>,
    /// Whether pieces of input that arrive belong to the last call.
    in_call: bool,
    /// All input, and output; `None` where the body does not say or sums inner calls.
    usage: [Option<u64>; 2],
}

/// A call, its input in the pieces it came in or as one value.
#[derive(Debug, Default, Clone, PartialEq)]
struct PlainCall {
    /// Empty in formats without ids.
    id: String,
    name: String,
    pieces: String,
    input: Value,
}

impl Plain {
    /// Reads one JSON message or a stream of events; `None` when it is neither.
    pub(super) fn read(format: WireFormat, body: &str) -> Option<Self> {
        let whole = serde_json::from_str::<Value>(body).ok();
        let events: Vec<Value> = match &whole {
            Some(Value::Array(chunks)) => chunks.clone(),
            Some(message) => vec![message.clone()],
            None => body.lines().filter_map(event).collect(),
        };
        if events.is_empty() {
            return None;
        }
        let mut plain = Self::default();
        for event in &events {
            match format {
                WireFormat::Anthropic => anthropic::read(event, &mut plain),
                WireFormat::OpenAiChat => openai::chat(event, &mut plain),
                WireFormat::OpenAiResponses => openai::responses(event, &mut plain),
                WireFormat::Gemini => gemini::read(event, &mut plain),
                WireFormat::Ollama => ollama::read(event, &mut plain),
                _ => return None,
            }
        }
        Some(plain)
    }

    /// What differs from the decoder's reading, in words.
    pub(super) fn differences(&self, decoded: &Decoded) -> Vec<String> {
        let mut differences = Vec::new();
        if self.text != decoded.text {
            differences.push(format!("text: {} bytes, plainly read {}", decoded.text.len(), self.text.len()));
        }
        let ours: Vec<_> =
            decoded.calls.iter().map(|call| (call.name.as_str(), value(call.input.as_str()))).collect();
        let plain: Vec<_> = self.calls.iter().map(|call| (call.name.as_str(), call.value())).collect();
        if ours != plain {
            differences.push(format!("calls: {ours:?}, plainly read {plain:?}"));
        }
        for (ours, plain) in decoded.calls.iter().zip(&self.calls) {
            if !plain.id.is_empty() && plain.id != ours.id.as_str() {
                differences.push(format!("call id: {}, plainly read {}", ours.id, plain.id));
            }
        }
        let usage = &decoded.usage;
        let counted = [("input", usage.total_input()), ("output", usage.output)];
        for ((name, ours), plain) in counted.iter().zip(self.usage) {
            if plain.is_some_and(|plain| plain != *ours) {
                differences.push(format!("usage {name}: {ours}, plainly read {}", plain.unwrap_or_default()));
            }
        }
        differences
    }

    /// The call with this place among those of the answer.
    fn call(&mut self, place: usize) -> &mut PlainCall {
        if self.calls.len() <= place {
            self.calls.resize(place + 1, PlainCall::default());
        }
        &mut self.calls[place]
    }

    fn say(&mut self, text: &Value) {
        self.text.push_str(text.as_str().unwrap_or_default());
    }
}

impl PlainCall {
    fn value(&self) -> Value {
        if self.pieces.trim().is_empty() { without_empty(self.input.clone()) } else { value(&self.pieces) }
    }
}

/// A line of a stream of events, or of JSON lines.
fn event(line: &str) -> Option<Value> {
    serde_json::from_str(line.strip_prefix("data:").unwrap_or(line)).ok().filter(Value::is_object)
}

fn value(json: &str) -> Value {
    without_empty(serde_json::from_str(json).unwrap_or(Value::Null))
}

/// No input, an empty one and one that was cut to nothing are the same to a plain reader.
fn without_empty(input: Value) -> Value {
    if input.as_object().is_some_and(serde_json::Map::is_empty) { Value::Null } else { input }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn sum(counts: &[&Value]) -> Option<u64> {
    let counts: Vec<u64> = counts.iter().filter_map(|count| count.as_u64()).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// A later report of usage replaces what the earlier one said of the same thing.
fn count(known: &mut Option<u64>, newer: Option<u64>) {
    *known = newer.or(*known);
}

#[cfg(test)]
mod tests {
    use agent_providers::{ResponseHead, WireFormat, decode_response};

    use super::*;

    fn check(body: &str, tamper: impl Fn(&mut Decoded), expect: &str) {
        let format = WireFormat::Anthropic;
        let mut decoded = decode_response(&format.into(), &[body.as_bytes()], &ResponseHead::unknown());
        tamper(&mut decoded);
        assert_eq!(Plain::read(format, body).unwrap().differences(&decoded).join("; "), expect);
    }

    #[test]
    fn differences_are_found() {
        let body = r#"{"content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":2}}"#;
        check(body, |_| {}, "");
        check(body, |decoded| decoded.text.push('!'), "text: 3 bytes, plainly read 2");
        check(body, |decoded| decoded.usage.output = 9, "usage output: 9, plainly read 2");
        check(
            body,
            |decoded| decoded.calls.clear(),
            r#"calls: [], plainly read [("f", Object {"a": Number(1)})]"#,
        );
    }

    #[test]
    fn streams_are_read_too() {
        let body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n\
            data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
            data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n\
            data: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
            data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n\
            data: {\"type\":\"message_stop\"}\n\n";
        check(body, |_| {}, "");
        check(body, |decoded| decoded.usage.input = 0, "usage input: 0, plainly read 5");
        assert_eq!(Plain::read(WireFormat::Anthropic, "<html>"), None);
    }
}
