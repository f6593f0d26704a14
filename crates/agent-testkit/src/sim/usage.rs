//! The token accounting of the simulated provider, the same on every wire.
//!
//! Everything the service counts is counted here, so that this file can be replaced as one piece.

use agent_core::Usage;
use serde_json::Value;

use crate::script::Reply;

/// What an exchange costs: as the script says, or estimated.
///
/// The estimate is a quarter of the bytes of all names and texts in tools, system prompt and conversation. Cache markers
/// and JSON punctuation weigh nothing, so moving a marker does not change the count.
pub(super) fn account(request: &Value, reply: &Reply) -> Usage {
    if let Some(usage) = &reply.usage {
        return usage.clone();
    }
    let input: u64 = PROMPT.iter().map(|part| weight(&request[*part])).sum();
    Usage {
        input: tokens(input),
        output: tokens(reply.written() as u64),
        reasoning: tokens(reply.reasoning.as_ref().map_or(0, |text| text.len() as u64)),
        ..Usage::default()
    }
}

fn weight(value: &Value) -> u64 {
    match value {
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => {
            let counted = fields.iter().filter(|(name, _)| *name != "cache_control");
            counted.map(|(name, value)| name.len() as u64 + weight(value)).sum()
        }
    }
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// The fields of a request that the model reads, whatever the wire.
const PROMPT: [&str; 5] = ["tools", "system", "instructions", "messages", "input"];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn markers_weigh_nothing_and_words_do() {
        let plain = json!({"system": [{"type": "text", "text": "12345678"}], "messages": []});
        let marked = json!({"system": [{"type": "text", "text": "12345678", "cache_control": {"type": "ephemeral"}}], "messages": [], "max_tokens": 9});
        let reply = Reply::text("12345");
        assert_eq!(account(&plain, &reply), account(&marked, &reply));
        let usage = account(&plain, &reply);
        assert_eq!((usage.input, usage.output), (5, 2), "20 bytes are 5 tokens, 5 bytes are 2");
    }
}
