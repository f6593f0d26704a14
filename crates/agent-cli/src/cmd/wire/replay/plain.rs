//! A second, plain reading of a recorded body, to hold the decoder's reading against: no streaming, no repair, no
//! classification, just the fields where the provider's documentation puts them.

use agent_providers::Decoded;
use serde_json::Value;

/// What a body says when it is read plainly.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plain {
    text: String,
    /// Id, name and input of each call.
    calls: Vec<(String, String, Value)>,
    /// Input, output, cache read, cache write; `None` where the body does not say or sums inner calls.
    usage: [Option<u64>; 4],
}

impl Plain {
    /// Reads one JSON message or a stream of events.
    pub(super) fn read(body: &str) -> Option<Self> {
        match serde_json::from_str::<Value>(body) {
            Ok(message) => Some(Self::of_message(&message)),
            Err(_) => Self::of_stream(body),
        }
    }

    /// What differs from the decoder's reading, in words.
    pub(super) fn differences(&self, decoded: &Decoded) -> Vec<String> {
        let mut differences = Vec::new();
        if self.text != decoded.text {
            differences.push(format!("text: {} bytes, plainly read {}", decoded.text.len(), self.text.len()));
        }
        let calls = decoded.calls.iter().map(|call| {
            let input = serde_json::from_str(call.input.as_str()).unwrap_or(Value::Null);
            (call.id.as_str().to_owned(), call.name.clone(), input)
        });
        let calls: Vec<_> = calls.collect();
        if calls != self.calls {
            differences.push(format!("calls: {calls:?}, plainly read {:?}", self.calls));
        }
        let usage = &decoded.usage;
        let ours = [usage.input, usage.output, usage.cache_read, usage.cache_write()];
        for (name, (ours, plain)) in USAGE.iter().zip(ours.iter().zip(&self.usage)) {
            if plain.is_some_and(|plain| plain != *ours) {
                differences.push(format!("usage {name}: {ours}, plainly read {}", plain.unwrap_or_default()));
            }
        }
        differences
    }

    fn of_message(message: &Value) -> Self {
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut plain = Self { usage: usage(&message["usage"]), ..Self::default() };
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => plain.text.push_str(block["text"].as_str().unwrap_or_default()),
                Some("tool_use") => {
                    plain.calls.push((word(&block["id"]), word(&block["name"]), block["input"].clone()))
                }
                _ => {}
            }
        }
        plain
    }

    fn of_stream(body: &str) -> Option<Self> {
        let mut plain = Self::default();
        let mut reported = Value::Null;
        let mut input = String::new();
        let mut seen = false;
        for line in body.lines().filter_map(|line| line.strip_prefix("data:")) {
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            seen = true;
            match event["type"].as_str() {
                Some("message_start") => reported = event["message"]["usage"].clone(),
                Some("content_block_start") if event["content_block"]["type"] == "tool_use" => {
                    let block = &event["content_block"];
                    input.clear();
                    plain.calls.push((word(&block["id"]), word(&block["name"]), block["input"].clone()));
                }
                Some("content_block_start") => {
                    plain.text.push_str(event["content_block"]["text"].as_str().unwrap_or_default())
                }
                Some("content_block_delta") => plain.delta(&event["delta"], &mut input),
                Some("message_delta") => merge(&mut reported, &event["usage"]),
                _ => {}
            }
        }
        plain.usage = usage(&reported);
        seen.then_some(plain)
    }

    fn delta(&mut self, delta: &Value, input: &mut String) {
        if let Some(text) = delta["text"].as_str() {
            self.text.push_str(text);
        }
        if let (Some(piece), Some(call)) = (delta["partial_json"].as_str(), self.calls.last_mut()) {
            input.push_str(piece);
            if let Ok(whole) = serde_json::from_str(input) {
                call.2 = whole;
            }
        }
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn merge(reported: &mut Value, newer: &Value) {
    let (Some(reported), Some(newer)) = (reported.as_object_mut(), newer.as_object()) else { return };
    for (key, value) in newer.iter().filter(|(_, value)| !value.is_null()) {
        reported.insert(key.clone(), value.clone());
    }
}

fn usage(usage: &Value) -> [Option<u64>; 4] {
    if usage["iterations"].is_array() {
        return [None; 4];
    }
    FIELDS.map(|field| usage[field].as_u64())
}

const USAGE: [&str; 4] = ["input", "output", "cache read", "cache write"];
const FIELDS: [&str; 4] =
    ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

#[cfg(test)]
mod tests {
    use agent_providers::{ResponseHead, WireFormat, decode_response};

    use super::*;

    fn check(body: &str, tamper: impl Fn(&mut Decoded), expect: &str) {
        let mut decoded =
            decode_response(&WireFormat::Anthropic.into(), &[body.as_bytes()], &ResponseHead::unknown());
        tamper(&mut decoded);
        assert_eq!(Plain::read(body).unwrap().differences(&decoded).join("; "), expect);
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
            r#"calls: [], plainly read [("c", "f", Object {"a": Number(1)})]"#,
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
        assert_eq!(Plain::read("<html>"), None);
    }
}
