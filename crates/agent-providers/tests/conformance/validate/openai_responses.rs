//! OpenAI Responses: items, of which a call needs its output and thinking needs what follows it.

use agent_providers::WireFormat;
use serde_json::Value;

use super::{
    Rules, Verdict, arguments, check_body, check_list, ensure, items, plain_name, schema, text, words,
};

pub(super) const RULES: Rules = Rules {
    format: WireFormat::OpenAiResponses,
    fields: &[
        "model",
        "input",
        "instructions",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_output_tokens",
        "temperature",
        "top_p",
        "reasoning",
        "text",
        "include",
        "store",
        "stream",
        "stream_options",
        "service_tier",
        "truncation",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
        "context_management",
        "max_tool_calls",
        "user",
    ],
    list: "input",
    check,
};

fn check(request: &Value) -> Verdict {
    if !request["instructions"].is_null() {
        words(request, "instructions")?;
    }
    if !request["tools"].is_null() {
        for tool in items(&request["tools"])?.iter().filter(|tool| tool["type"] == "function") {
            plain_name(text(tool, "name")?, LONGEST)?;
            schema(&tool["parameters"])?;
        }
    }
    let (mut open, mut seen): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let list = items(&request["input"])?;
    for (at, item) in list.iter().enumerate() {
        match kind(item)? {
            "message" => {
                // The items of one answer stay in their order, so that the model's words may follow its calls.
                let waits = item["role"] != "assistant" && !open.is_empty();
                ensure(!waits, || format!("calls without their output: {open:?}"))?;
                message(item)?;
            }
            "function_call" => {
                let id = words(item, "call_id")?;
                plain_name(id, LONGEST)?;
                plain_name(text(item, "name")?, LONGEST)?;
                arguments(item)?;
                ensure(!seen.contains(&id), || format!("{id}: two calls have this id"))?;
                seen.push(id);
                open.push(id);
            }
            "function_call_output" => output(item, &mut open)?,
            "reasoning" => {
                items(&item["summary"])?;
                let next = list.get(at + 1).map(kind).transpose()?;
                let role = list.get(at + 1).map_or(&Value::Null, |next| &next["role"]);
                let follows = next.is_some_and(|next| next != "function_call_output") && role != "user";
                ensure(follows, || "reasoning without the item that must follow it".into())?;
            }
            // Items of the provider's own tools come back as it gave them.
            _ => {}
        }
    }
    ensure(open.is_empty(), || format!("calls without their output: {open:?}"))
}

/// A message may leave its type out.
fn kind(item: &Value) -> Result<&str, String> {
    if item["type"].is_null() && item["role"].is_string() { Ok("message") } else { words(item, "type") }
}

fn message(item: &Value) -> Verdict {
    let role = text(item, "role")?;
    let kinds: &[&str] = match role {
        "assistant" => &["output_text", "refusal"],
        "user" | "system" | "developer" => INPUT,
        _ => return Err(format!("{role}: there is no such role")),
    };
    content(item, "content", kinds)
}

fn content(item: &Value, field: &str, kinds: &[&str]) -> Verdict {
    if item[field].is_string() {
        return words(item, field).map(drop);
    }
    let parts = items(&item[field])?;
    ensure(!parts.is_empty(), || format!("{field}: must not be empty in {item}"))?;
    for part in parts {
        let kind = text(part, "type")?;
        ensure(kinds.contains(&kind), || format!("{kind}: may not stand in {item}"))?;
        if kind.ends_with("_text") {
            words(part, "text")?;
        }
    }
    Ok(())
}

fn output(item: &Value, open: &mut Vec<&str>) -> Verdict {
    let id = words(item, "call_id")?;
    let at = open.iter().position(|call| *call == id);
    open.remove(at.ok_or_else(|| format!("{id}: an output without its call"))?);
    content(item, "output", INPUT)
}

const INPUT: &[&str] = &["input_text", "input_image", "input_file"];
const LONGEST: usize = 64;

#[test]
fn what_is_refused() {
    let check = |list: &str, expect: &str| check_list(&RULES, &format!("[{list}]"), expect);
    let user = r#"{"role":"user","content":"go"}"#;
    let call = |id: &str, arguments: &str| {
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{arguments}"}}"#)
    };
    let output = |id: &str| format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"r"}}"#);
    let (a, done) = (call("a", "{}"), output("a"));
    let thought = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    check(&format!("{user},{thought},{a},{},{done},{},{user}", call("b", "{}"), output("b")), "");
    check(&format!("{user},{a},{user}"), "calls without their output");
    check(&format!("{user},{a}"), "calls without their output");
    check(&format!("{user},{done}"), "an output without its call");
    check(&format!("{a},{done},{a},{done}"), "two calls have this id");
    check(&call("a", "{"), "must be JSON");
    check(&call("a:b", "{}"), "must match");
    check(&call(&"x".repeat(65), "{}"), "must match");
    check(&format!("{thought},{user}"), "must follow it");
    check(&format!("{user},{thought}"), "must follow it");
    check(r#"{"role":"user","content":""}"#, "must not be blank");
    check(r#"{"role":"user","content":[]}"#, "must not be empty");
    check(r#"{"role":"user","content":[{"type":"output_text","text":"x"}]}"#, "may not stand");
    check(r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":" "}]}"#, "blank");
    check(r#"{"role":"robot","content":"x"}"#, "no such role");
    check(r#"{"content":"x"}"#, "type: must be a text");
    check_body(&RULES, &format!(r#"{{"instructions":"","input":[{user}]}}"#), "must not be blank");
    let tool = r#"[{"type":"function","name":"a b","parameters":{"type":"object"}}]"#;
    check_body(&RULES, &format!(r#"{{"tools":{tool},"input":[{user}]}}"#), "must match");
}
