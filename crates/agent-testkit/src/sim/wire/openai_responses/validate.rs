//! The rules of the responses service, in the order and the words of the real one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::sim::api_error::ApiError;
use crate::sim::wire::Check;
use crate::sim::wire::openai::{check_id, check_model, check_name, check_tools, missing, refuse};

/// Checks a request body as the service does.
pub(super) fn check(request: &Value) -> Check {
    if !request.is_object() {
        return Err(ApiError::invalid("Invalid type for request body: expected an object."));
    }
    check_model(request)?;
    for (field, now) in MOVED {
        if !request[field].is_null() {
            let message = format!(
                "Unsupported parameter: '{field}'. In the Responses API, this parameter has moved to '{now}'."
            );
            return Err(ApiError::invalid(message).at(field).coded("unsupported_parameter"));
        }
    }
    limits(request)?;
    check_tools(request, "")?;
    match &request["input"] {
        Value::String(text) if !text.is_empty() => Ok(()),
        Value::Array(list) if !list.is_empty() => check_input(list, request["store"] == false),
        Value::Null => missing("input"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            refuse("Invalid 'input': expected a string or an array of items that is not empty.", "input")
        }
    }
}

fn limits(request: &Value) -> Check {
    let limit = &request["max_output_tokens"];
    if !limit.is_null() && limit.as_u64().is_none_or(|limit| limit < FEWEST_TOKENS) {
        let message = format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {FEWEST_TOKENS}, but got {limit} instead."
        );
        return Err(ApiError::invalid(message).at("max_output_tokens").coded("integer_below_min_value"));
    }
    // This provider remembers nothing, so it has no earlier response.
    if let Some(id) = request["previous_response_id"].as_str() {
        let message = format!("Previous response with id '{id}' not found.");
        let error = ApiError::invalid(message).at("previous_response_id");
        return Err(error.coded("previous_response_not_found"));
    }
    Ok(())
}

fn check_input(list: &[Value], forgets: bool) -> Check {
    let mut ids = BTreeSet::new();
    for (number, item) in list.iter().enumerate() {
        let place = format!("input[{number}]");
        check_item(&place, item, forgets)?;
        if let Some(id) = item["id"].as_str().filter(|id| !ids.insert(*id)) {
            let message = format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            );
            return refuse(message, "input");
        }
    }
    followers(list)?;
    pairing(list)
}

fn check_item(place: &str, item: &Value, forgets: bool) -> Check {
    match (item["type"].as_str(), item["role"].as_str()) {
        (Some("message") | None, Some(role)) => check_message(place, item, role),
        (Some("message") | None, None) => missing(&format!("{place}.role")),
        (Some("function_call"), _) => {
            check_prefix(place, item, "fc")?;
            check_id(&format!("{place}.call_id"), &item["call_id"], LONGEST_ID)?;
            check_name(&format!("{place}.name"), &item["name"])?;
            if item["arguments"].is_string() { Ok(()) } else { missing(&format!("{place}.arguments")) }
        }
        (Some("function_call_output"), _) => {
            check_id(&format!("{place}.call_id"), &item["call_id"], LONGEST_ID)?;
            check_content(&format!("{place}.output"), &item["output"], &SEEN)
        }
        (Some("reasoning"), _) => check_reasoning(place, item, forgets),
        // Items of the provider's own tools have no rule that a script needs.
        (Some(_), _) => Ok(()),
    }
}

fn check_message(place: &str, item: &Value, role: &str) -> Check {
    let kinds: &[&str] = match role {
        "user" | "system" | "developer" => &SEEN,
        "assistant" => &["output_text", "refusal"],
        other => {
            let message = format!(
                "Invalid value: '{other}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
            );
            return refuse(message, format!("{place}.role"));
        }
    };
    if role == "assistant" {
        check_prefix(place, item, "msg")?;
    }
    check_content(&format!("{place}.content"), &item["content"], kinds)
}

/// A text, or a list of parts of these kinds.
fn check_content(place: &str, content: &Value, kinds: &[&str]) -> Check {
    let Some(parts) = content.as_array() else {
        return if content.is_string() { Ok(()) } else { missing(place) };
    };
    for (at, part) in parts.iter().enumerate() {
        let kind = part["type"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            let supported = kinds.iter().map(|kind| format!("'{kind}'")).collect::<Vec<_>>().join(", ");
            let message = format!("Invalid value: '{kind}'. Supported values are: {supported}.");
            return Err(ApiError::invalid(message).at(format!("{place}[{at}]")).coded("invalid_value"));
        }
        if kind.ends_with("_text") && !part["text"].is_string() {
            return missing(&format!("{place}[{at}].text"));
        }
    }
    Ok(())
}

fn check_reasoning(place: &str, item: &Value, forgets: bool) -> Check {
    check_prefix(place, item, "rs")?;
    if !item["summary"].is_array() {
        return missing(&format!("{place}.summary"));
    }
    if forgets && !item["encrypted_content"].is_string() {
        let id = item["id"].as_str().unwrap_or_default();
        let message = format!(
            "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."
        );
        return Err(ApiError { status: 404, ..ApiError::invalid(message).at("input") });
    }
    Ok(())
}

/// An item's id, where it has one, says what it is.
fn check_prefix(place: &str, item: &Value, prefix: &str) -> Check {
    match item["id"].as_str() {
        Some(id) if !id.starts_with(prefix) => refuse(
            format!("Invalid '{place}.id': '{id}'. Expected an ID that begins with '{prefix}'."),
            format!("{place}.id"),
        ),
        Some(_) | None => Ok(()),
    }
}

/// Thinking stands right before what came of it.
fn followers(list: &[Value]) -> Check {
    for (number, item) in list.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
        let next = list.get(number + 1);
        let kind = next.and_then(|next| next["type"].as_str()).unwrap_or("message");
        let follows = next.is_some_and(|next| match kind {
            "message" => next["role"] == "assistant",
            "function_call_output" => false,
            _ => true,
        });
        if !follows {
            let id = item["id"].as_str().unwrap_or_default();
            let message =
                format!("Item '{id}' of type 'reasoning' was provided without its required following item.");
            return refuse(message, "input");
        }
    }
    Ok(())
}

/// Each call has one output somewhere behind it, and nothing else has one.
fn pairing(list: &[Value]) -> Check {
    let mut open = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for item in list {
        let call = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => {
                if !seen.insert(call) {
                    return refuse(format!("Duplicate function call with call_id {call}."), "input");
                }
                open.insert(call);
            }
            Some("function_call_output") if !open.remove(call) => {
                let message = format!("No tool call found for function call output with call_id {call}.");
                return refuse(message, "input");
            }
            _ => {}
        }
    }
    match open.first() {
        Some(call) => refuse(format!("No tool output found for function call {call}."), "input"),
        None => Ok(()),
    }
}

/// Parts that the model reads.
const SEEN: [&str; 3] = ["input_text", "input_image", "input_file"];

/// Fields of chat completions, and where they are here.
const MOVED: [(&str, &str); 5] = [
    ("messages", "input"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("response_format", "text.format"),
    ("reasoning_effort", "reasoning.effort"),
];

const FEWEST_TOKENS: u64 = 16;
const LONGEST_ID: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a request with these further fields and input; an empty expectation means that it is taken.
    #[track_caller]
    fn check_with(fields: &str, input: &str, expect: &str) {
        let text = format!(r#"{{"model":"m",{fields}"input":{input}}}"#);
        let said = check(&serde_json::from_str(&text).unwrap())
            .map_or_else(|error| error.message, |()| String::new());
        assert!(if expect.is_empty() { said.is_empty() } else { said.contains(expect) }, "{said:?}");
    }

    #[track_caller]
    fn check_input_of(input: &str, expect: &str) {
        check_with("", input, expect);
    }

    #[test]
    fn fields_that_must_be_there_and_fields_of_others() {
        let check_text = |text: &str, expect: &str| {
            let error = check(&serde_json::from_str(text).unwrap()).unwrap_err();
            assert!(error.status == 400 && error.message.contains(expect), "{error:?}");
        };
        check_text("[]", "expected an object");
        check_text("{}", "provide a model");
        check_text(r#"{"model":"m"}"#, "Missing required parameter: 'input'");
        check_text(r#"{"model":"m","messages":[]}"#, "has moved to 'input'");
        check_input_of(r#""go""#, "");
        check_input_of(r#""""#, "not empty");
        check_input_of("[]", "not empty");
        check_with(r#""max_tokens":9,"#, r#""go""#, "has moved to 'max_output_tokens'");
        check_with(r#""max_output_tokens":15,"#, r#""go""#, "Expected a value >= 16, but got 15");
        check_with(r#""previous_response_id":"resp_1","#, r#""go""#, "'resp_1' not found");
    }

    #[test]
    fn tools_have_their_fields_outside() {
        let tool = |fields: &str| format!(r#""tools":[{{"type":"function",{fields}}}],"#);
        let check_tool = |fields: &str, expect: &str| check_with(&tool(fields), r#""go""#, expect);
        check_tool(r#""name":"look","parameters":{"type":"object"}"#, "");
        check_tool(r#""function":{"name":"look"}"#, "Missing required parameter: 'tools[0].name'");
        check_tool(r#""name":"look","parameters":{"type":"array"}"#, "got 'type: \"array\"'");
        check_with(r#""tools":[{"type":"web_search"}],"tool_choice":"auto","#, r#""go""#, "");
        let named = |name: &str| {
            format!(r#"{}"tool_choice":{{"type":"function","name":"{name}"}},"#, tool(r#""name":"look""#))
        };
        check_with(&named("look"), r#""go""#, "");
        check_with(&named("leap"), r#""go""#, "'leap' not found");
    }

    #[test]
    fn messages_and_their_parts() {
        check_input_of(
            r#"[{"role":"user","content":"a"},{"type":"message","role":"developer","content":[{"type":"input_text","text":"b"}]}]"#,
            "",
        );
        check_input_of(
            r#"[{"role":"assistant","content":[{"type":"output_text","text":"a","annotations":[]}]}]"#,
            "",
        );
        check_input_of(
            r#"[{"role":"assistant","content":[{"type":"input_text","text":"a"}]}]"#,
            "Supported values are: 'output_text', 'refusal'",
        );
        check_input_of(
            r#"[{"role":"user","content":[{"type":"text","text":"a"}]}]"#,
            "Invalid value: 'text'",
        );
        check_input_of(
            r#"[{"role":"user","content":[{"type":"input_text"}]}]"#,
            "'input[0].content[0].text'",
        );
        check_input_of(r#"[{"role":"tool","content":"a"}]"#, "Invalid value: 'tool'");
        check_input_of(r#"[{"content":"a"}]"#, "'input[0].role'");
        check_input_of(r#"[{"role":"user"}]"#, "'input[0].content'");
        check_input_of(r#"[{"role":"assistant","id":"x1","content":"a"}]"#, "begins with 'msg'");
    }

    /// `t1` a call, `=t1` its output, `u` the user, `a` the model's words, `r` thinking.
    fn talk(sketch: &str) -> String {
        let item = |(number, word): (usize, &str)| match word {
            "u" => r#"{"role":"user","content":"x"}"#.to_owned(),
            "a" => r#"{"role":"assistant","content":"x"}"#.to_owned(),
            "r" => format!(r#"{{"type":"reasoning","id":"rs_{number}","summary":[]}}"#),
            word => word.strip_prefix('=').map_or_else(
                || format!(r#"{{"type":"function_call","call_id":"{word}","name":"f","arguments":"{{}}"}}"#),
                |id| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"x"}}"#),
            ),
        };
        format!("[{}]", sketch.split(' ').enumerate().map(item).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn calls_outputs_and_thinking_belong_together() {
        let check_talk = |sketch: &str, expect: &str| check_input_of(&talk(sketch), expect);
        check_talk("u r t1 t2 =t2 =t1 r a u", "");
        check_talk("u t1 u =t1", "");
        check_talk("u t1", "No tool output found for function call t1");
        check_talk("u =t1", "No tool call found for function call output with call_id t1");
        check_talk("u =t1 t1", "No tool call found");
        check_talk("u t1 =t1 =t1", "No tool call found");
        check_talk("u t1 =t1 t1 =t1", "Duplicate function call with call_id t1");
        check_talk("u r", "'rs_1' of type 'reasoning' was provided without its required following item");
        check_talk("u r u", "required following item");
        check_talk("u t1 r =t1", "required following item");
    }

    #[test]
    fn ids_say_what_they_are_and_come_once() {
        let twice = r#"{"role":"assistant","id":"msg_1","content":"a"}"#;
        check_input_of(&format!("[{twice},{twice}]"), "Duplicate item found with id msg_1");
        let call = |id: &str, more: &str| {
            format!(
                r#"[{{"type":"function_call","id":"{id}","call_id":"c","name":"f"{more}}},{{"type":"function_call_output","call_id":"c","output":""}}]"#
            )
        };
        check_input_of(&call("fc_1", r#","arguments":"{}""#), "");
        check_input_of(&call("call_1", r#","arguments":"{}""#), "begins with 'fc'");
        check_input_of(&call("fc_1", ""), "'input[0].arguments'");
    }

    #[test]
    fn thinking_is_sealed_where_nothing_is_kept() {
        let input = |more: &str| {
            format!(
                r#"[{{"type":"reasoning","id":"rs_1","summary":[]{more}}},{{"role":"assistant","content":"a"}}]"#
            )
        };
        check_input_of(&input(""), "");
        check_with(r#""store":false,"#, &input(""), "Item with id 'rs_1' not found");
        check_with(r#""store":false,"#, &input(r#","encrypted_content":"x""#), "");
        check_input_of(
            r#"[{"type":"reasoning","id":"rs_1"},{"role":"assistant","content":"a"}]"#,
            "'input[0].summary'",
        );
    }
}
