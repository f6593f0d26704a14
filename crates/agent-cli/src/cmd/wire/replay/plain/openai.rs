//! OpenAI Chat Completions and OpenAI Responses, read plainly.

use serde_json::Value;

use super::{Plain, PlainCall, count, word};

/// Reads a whole completion, or one chunk of a stream.
pub(super) fn chat(event: &Value, plain: &mut Plain) {
    let choices = event["choices"].as_array().into_iter().flatten();
    let first = choices.into_iter().find(|choice| choice["index"].as_u64().unwrap_or(0) == 0);
    let choice = first.unwrap_or(&Value::Null);
    for said in [&choice["message"], &choice["delta"]] {
        plain.say(&said["content"]);
        plain.say(&said["refusal"]);
        said["content"].as_array().into_iter().flatten().for_each(|part| plain.say(&part["text"]));
        for (place, call) in said["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let place = call["index"].as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(place);
            let known = plain.call(place);
            if let Some(id) = call["id"].as_str() {
                id.clone_into(&mut known.id);
            }
            if let Some(name) = call["function"]["name"].as_str() {
                name.clone_into(&mut known.name);
            }
            match call["function"]["arguments"].as_str() {
                Some(piece) => known.pieces.push_str(piece),
                None => known.input = call["function"]["arguments"].clone(),
            }
        }
    }
    count(&mut plain.usage[0], event["usage"]["prompt_tokens"].as_u64());
    count(&mut plain.usage[1], event["usage"]["completion_tokens"].as_u64());
}

/// Reads a whole response, or one event of a stream: its last one holds the whole response.
pub(super) fn responses(event: &Value, plain: &mut Plain) {
    let response = if event["response"].is_object() { &event["response"] } else { event };
    if !matches!(response["status"].as_str(), Some("completed" | "incomplete"))
        || !response["output"].is_array()
    {
        return;
    }
    for item in response["output"].as_array().into_iter().flatten() {
        match item["type"].as_str() {
            Some("message") => {
                for part in item["content"].as_array().into_iter().flatten() {
                    plain.say(&part["text"]);
                    plain.say(&part["refusal"]);
                }
            }
            Some("function_call") => plain.calls.push(PlainCall {
                id: word(&item["call_id"]),
                name: word(&item["name"]),
                pieces: word(&item["arguments"]),
                input: Value::Null,
            }),
            _ => {}
        }
    }
    count(&mut plain.usage[0], response["usage"]["input_tokens"].as_u64());
    count(&mut plain.usage[1], response["usage"]["output_tokens"].as_u64());
}
