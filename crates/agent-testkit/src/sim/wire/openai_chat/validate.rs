//! The rules of the chat completions service, in the order and the words of the real one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sim::api_error::ApiError;
use crate::sim::wire::openai::{check_id, check_model, check_name, check_tools, missing, refuse};
use crate::sim::wire::{Check, items};

/// Checks a request body as the service does.
pub(super) fn check(request: &Value) -> Check {
    if !request.is_object() {
        return Err(ApiError::invalid(
            "Invalid body: failed to parse JSON value. Please check the value to ensure it is valid JSON.",
        ));
    }
    check_model(request)?;
    let Some(messages) = request["messages"].as_array() else {
        return missing("messages");
    };
    if messages.is_empty() {
        return Err(empty_array("messages"));
    }
    limits(request)?;
    check_tools(request, "function")?;
    for (number, message) in messages.iter().enumerate() {
        check_message(&format!("messages[{number}]"), message)?;
    }
    pairing(messages)
}

fn limits(request: &Value) -> Check {
    let given = ["max_tokens", "max_completion_tokens"].map(|field| (field, &request[field]));
    if given.iter().all(|(_, limit)| !limit.is_null()) {
        let message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
        return refuse(message, "max_tokens");
    }
    for (field, limit) in given {
        if !limit.is_null() && limit.as_u64().is_none_or(|limit| limit == 0) {
            let message = format!(
                "Invalid '{field}': integer below minimum value. Expected a value >= 1, but got {limit} instead."
            );
            return Err(ApiError::invalid(message).at(field).coded("integer_below_min_value"));
        }
    }
    if !request["stream_options"].is_null() && request["stream"] != true {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return refuse(message, "stream_options");
    }
    Ok(())
}

fn check_message(place: &str, message: &Value) -> Check {
    let content = &message["content"];
    match message["role"].as_str() {
        Some("system" | "developer") => check_content(place, content, &["text"]),
        Some("user") => check_content(place, content, &["text", "image_url", "input_audio", "file"]),
        Some("assistant") => check_answer(place, message),
        Some("tool") => {
            check_id(&format!("{place}.tool_call_id"), &message["tool_call_id"], usize::MAX)?;
            check_content(place, content, &["text"])
        }
        Some(other) => refuse(
            format!(
                "Invalid value: '{other}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
            ),
            format!("{place}.role"),
        ),
        None => missing(&format!("{place}.role")),
    }
}

/// A text, or a list of parts of these kinds that is not empty.
fn check_content(place: &str, content: &Value, kinds: &[&str]) -> Check {
    let place = format!("{place}.content");
    match content {
        Value::String(_) => Ok(()),
        Value::Array(parts) if parts.is_empty() => Err(empty_array(&place)),
        Value::Array(parts) => parts
            .iter()
            .enumerate()
            .try_for_each(|(at, part)| check_part(&format!("{place}[{at}]"), part, kinds)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => refuse(
            format!("Invalid value for 'content': expected a string or an array of parts, got {content}."),
            place,
        ),
    }
}

fn check_part(place: &str, part: &Value, kinds: &[&str]) -> Check {
    let Some(kind) = part["type"].as_str() else {
        return missing(&format!("{place}.type"));
    };
    if !kinds.contains(&kind) {
        let supported = kinds.iter().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
        let message = format!("Invalid value: '{kind}'. Supported values are: {supported}.");
        return refuse(message, format!("{place}.type"));
    }
    let field = match kind {
        "image_url" => &part["image_url"]["url"],
        "text" | "refusal" => &part[kind],
        _ => return Ok(()),
    };
    if field.is_string() { Ok(()) } else { missing(&format!("{place}.{kind}")) }
}

fn check_answer(place: &str, message: &Value) -> Check {
    let calls = &message["tool_calls"];
    if !message["content"].is_null() {
        check_content(place, &message["content"], &["text", "refusal"])?;
    } else if calls.is_null() && message["refusal"].is_null() {
        let message = "Invalid value for 'content': expected a string, got null.";
        return refuse(message, format!("{place}.content"));
    }
    if calls.as_array().is_some_and(Vec::is_empty) {
        return Err(empty_array(&format!("{place}.tool_calls")));
    }
    for (at, call) in items(calls).enumerate() {
        let place = format!("{place}.tool_calls[{at}]");
        check_id(&format!("{place}.id"), &call["id"], LONGEST_ID)?;
        if call["type"] != "function" {
            return missing(&format!("{place}.type"));
        }
        check_name(&format!("{place}.function.name"), &call["function"]["name"])?;
        if !call["function"]["arguments"].is_string() {
            return missing(&format!("{place}.function.arguments"));
        }
    }
    Ok(())
}

/// Each call is answered by the tool messages right after it, and nothing else is answered.
fn pairing(messages: &[Value]) -> Check {
    let mut open: Option<(usize, BTreeSet<&str>)> = None;
    let mut answered = BTreeSet::new();
    for (number, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let waiting = open.as_mut().map(|(_, calls)| calls.remove(id));
            let place = format!("messages[{number}]");
            if waiting != Some(true) && open.is_some() && answered.contains(id) {
                return refuse(
                    format!("Duplicate value for 'tool_call_id' of '{id}' in message[{number}]."),
                    place,
                );
            }
            if waiting != Some(true) {
                let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
                return refuse(message, format!("{place}.role"));
            }
            answered.insert(id);
            continue;
        }
        unanswered(open.take())?;
        answered.clear();
        let calls: Vec<&str> = items(&message["tool_calls"]).filter_map(|call| call["id"].as_str()).collect();
        let set: BTreeSet<&str> = calls.iter().copied().collect();
        if set.len() < calls.len() {
            return refuse(
                format!("Duplicate value for 'id' in 'messages[{number}].tool_calls'."),
                format!("messages[{number}].tool_calls"),
            );
        }
        open = (!calls.is_empty()).then_some((number, set));
    }
    unanswered(open)
}

fn unanswered(open: Option<(usize, BTreeSet<&str>)>) -> Check {
    let Some((number, calls)) = open.filter(|(_, calls)| !calls.is_empty()) else { return Ok(()) };
    let missing = calls.into_iter().collect::<Vec<_>>().join(", ");
    refuse(
        format!(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {missing}"
        ),
        format!("messages[{number}].tool_calls"),
    )
}

fn empty_array(place: &str) -> ApiError {
    let message = format!(
        "Invalid '{place}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    );
    ApiError::invalid(message).at(place).coded("empty_array")
}

const LONGEST_ID: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a request with these further fields and messages; an empty expectation means that it is taken.
    #[track_caller]
    fn check_with(fields: &str, messages: &str, expect: &str) {
        let text = format!(r#"{{"model":"m",{fields}"messages":{messages}}}"#);
        let said = check(&serde_json::from_str(&text).unwrap())
            .map_or_else(|error| error.message, |()| String::new());
        assert!(if expect.is_empty() { said.is_empty() } else { said.contains(expect) }, "{said:?}");
    }

    #[track_caller]
    fn check_messages(messages: &str, expect: &str) {
        check_with("", messages, expect);
    }

    const USER: &str = r#"[{"role":"user","content":"go"}]"#;

    #[test]
    fn fields_that_must_be_there() {
        let check_text = |text: &str, expect: &str| {
            let error = check(&serde_json::from_str(text).unwrap()).unwrap_err();
            assert!(error.status == 400 && error.message.contains(expect), "{error:?}");
        };
        check_text("[]", "failed to parse");
        check_text("{}", "provide a model");
        check_text(r#"{"model":"m"}"#, "Missing required parameter: 'messages'");
        check_text(r#"{"model":"m","messages":[]}"#, "Invalid 'messages': empty array");
        check_with(r#""max_tokens":0,"#, USER, "Expected a value >= 1, but got 0");
        check_with(r#""max_tokens":1,"max_completion_tokens":1,"#, USER, "at the same time");
        check_with(r#""stream_options":{"include_usage":true},"#, USER, "only allowed when 'stream'");
        check_with(r#""stream":true,"stream_options":{"include_usage":true},"#, USER, "");
    }

    #[test]
    fn tools_and_choices() {
        let tool = |function: &str| format!(r#""tools":[{{"type":"function","function":{function}}}],"#);
        let named = tool(r#"{"name":"look","parameters":{"type":"object"}}"#);
        check_with(&named, USER, "");
        check_with(&tool(r#"{"name":"look"}"#), USER, "");
        check_with(&tool("{}"), USER, "Missing required parameter: 'tools[0].function.name'");
        check_with(&tool(r#"{"name":"a.b"}"#), USER, "'^[a-zA-Z0-9_-]+$'");
        check_with(&tool(r#"{"name":"a","parameters":{}}"#), USER, "got 'type: \"None\"'");
        check_with(r#""tools":[{"name":"a"}],"#, USER, "'tools[0].type'");
        let twice = r#"{"type":"function","function":{"name":"a"}}"#;
        check_with(&format!(r#""tools":[{twice},{twice}],"#), USER, "Duplicate function name 'a'");
        check_with(r#""tool_choice":"auto","#, USER, "'tool_choice' is only allowed when 'tools'");
        check_with(r#""parallel_tool_calls":true,"#, USER, "'parallel_tool_calls' is only allowed");
        let choice = |choice: &str| format!(r#"{named}"tool_choice":{choice},"#);
        check_with(&choice(r#""required""#), USER, "");
        check_with(&choice(r#""any""#), USER, "Invalid value: 'any'");
        check_with(&choice(r#"{"type":"function","function":{"name":"look"}}"#), USER, "");
        check_with(&choice(r#"{"type":"function","function":{"name":"leap"}}"#), USER, "'leap' not found");
    }

    #[test]
    fn roles_and_content() {
        check_messages(
            r#"[{"role":"developer","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}]"#,
            "",
        );
        check_messages(r#"[{"role":"model","content":"a"}]"#, "Invalid value: 'model'");
        check_messages(r#"[{"content":"a"}]"#, "'messages[0].role'");
        check_messages(r#"[{"role":"user"}]"#, "expected a string or an array of parts, got null");
        check_messages(r#"[{"role":"user","content":[]}]"#, "empty array");
        check_messages(
            r#"[{"role":"user","content":[{"type":"input_text","text":"a"}]}]"#,
            "Invalid value: 'input_text'",
        );
        check_messages(
            r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]"#,
            "",
        );
        check_messages(
            r#"[{"role":"user","content":[{"type":"image_url","image_url":"data:"}]}]"#,
            "Missing required",
        );
        check_messages(
            r#"[{"role":"system","content":[{"type":"image_url"}]}]"#,
            "Invalid value: 'image_url'",
        );
        check_messages(r#"[{"role":"assistant","content":null}]"#, "expected a string, got null");
        check_messages(r#"[{"role":"assistant","tool_calls":[]}]"#, "empty array");
    }

    /// `t1` a call, `=t1` its result, `u` the user, `a` the model's words; a bar begins the next message.
    fn talk(sketch: &str) -> String {
        let message = |words: &str| {
            match words.trim() {
            "u" => r#"{"role":"user","content":"x"}"#.to_owned(),
            "a" => r#"{"role":"assistant","content":"x"}"#.to_owned(),
            words => words.strip_prefix('=').map_or_else(
                || {
                    let call = |id| format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#);
                    let calls = words.split_whitespace().map(call).collect::<Vec<_>>().join(",");
                    format!(r#"{{"role":"assistant","content":null,"tool_calls":[{calls}]}}"#)
                },
                |id| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"x"}}"#),
            ),
        }
        };
        format!("[{}]", sketch.split('|').map(message).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn calls_and_results_pair() {
        let check_talk = |sketch: &str, expect: &str| check_messages(&talk(sketch), expect);
        check_talk("u | t1 t2 | =t2 | =t1 | a | u | t1 | =t1", "");
        check_talk("u | t1 | u", "did not have response messages: t1");
        check_talk("u | t1 t2 | =t1 | u | =t2", "did not have response messages: t2");
        check_talk("u | t1", "did not have response messages: t1");
        check_talk("u | =t1", "must be a response to a preceeding message");
        check_talk("u | t1 | =t9", "must be a response to a preceeding message");
        check_talk("u | t1 t2 | =t1 | =t1 | =t2", "Duplicate value for 'tool_call_id' of 't1'");
        check_talk("u | t1 t1 | =t1", "Duplicate value for 'id'");
        check_talk(
            &format!("u | {0} | ={0}", "x".repeat(41)),
            "maximum length 40, but got a string with length 41",
        );
    }

    #[test]
    fn the_parts_of_a_call() {
        let check_call = |call: &str, expect: &str| {
            check_messages(
                &format!(
                    r#"[{{"role":"assistant","tool_calls":[{call}]}},{{"role":"tool","tool_call_id":"t","content":""}}]"#
                ),
                expect,
            );
        };
        check_call(r#"{"id":"t","type":"function","function":{"name":"f","arguments":"{"}}"#, "");
        check_call(r#"{"id":"","type":"function"}"#, "empty string");
        check_call(r#"{"type":"function"}"#, "'messages[0].tool_calls[0].id'");
        check_call(r#"{"id":"t"}"#, "tool_calls[0].type");
        check_call(
            r#"{"id":"t","type":"function","function":{"name":"f","arguments":{}}}"#,
            "function.arguments",
        );
        check_messages(r#"[{"role":"tool","content":"x"}]"#, "'messages[0].tool_call_id'");
    }
}
