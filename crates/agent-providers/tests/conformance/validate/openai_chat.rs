//! OpenAI Chat Completions: every call is answered by tool messages right behind it, and nothing is blank.

use agent_providers::WireFormat;
use serde_json::Value;

use super::{
    Rules, Verdict, arguments, check_body, check_list, ensure, items, plain_name, schema, text, words,
};

pub(super) const RULES: Rules = Rules {
    format: WireFormat::OpenAiChat,
    fields: &[
        "model",
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "max_completion_tokens",
        "temperature",
        "top_p",
        "top_k",
        "presence_penalty",
        "frequency_penalty",
        "seed",
        "stop",
        "stream",
        "stream_options",
        "reasoning_effort",
        "verbosity",
        "service_tier",
        "response_format",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
        "reasoning",
        "thinking",
        "store",
        "metadata",
        "user",
    ],
    list: "messages",
    check,
};

fn check(request: &Value) -> Verdict {
    if !request["tools"].is_null() {
        let tools = items(&request["tools"])?;
        ensure(!tools.is_empty(), || "tools: must not be empty".into())?;
        for tool in tools.iter().filter(|tool| tool["type"] == "function") {
            plain_name(text(&tool["function"], "name")?, LONGEST_NAME)?;
            schema(&tool["function"]["parameters"])?;
        }
    } else {
        ensure(request["tool_choice"].is_null(), || "tool_choice: only with tools".into())?;
    }
    let mut open: Vec<&str> = Vec::new();
    for message in items(&request["messages"])? {
        let role = text(message, "role")?;
        if role == "tool" {
            answer(message, &mut open)?;
            continue;
        }
        ensure(open.is_empty(), || format!("calls without an answer right behind them: {open:?}"))?;
        match role {
            "system" | "developer" => content(message, &["text"])?,
            "user" => content(message, &["text", "image_url", "file", "input_audio"])?,
            "assistant" => open = assistant(message)?,
            _ => return Err(format!("{role}: there is no such role")),
        }
    }
    ensure(open.is_empty(), || format!("calls without an answer: {open:?}"))
}

/// A text, or a list of parts of these types; never blank and never empty.
fn content(message: &Value, kinds: &[&str]) -> Verdict {
    let content = &message["content"];
    if content.is_string() {
        return words(message, "content").map(drop);
    }
    let parts = items(content)?;
    ensure(!parts.is_empty(), || format!("content: must not be empty in {message}"))?;
    for part in parts {
        let kind = text(part, "type")?;
        ensure(kinds.contains(&kind), || format!("{kind}: may not stand in a {} message", message["role"]))?;
        match kind {
            "text" => words(part, "text").map(drop)?,
            "image_url" => words(&part["image_url"], "url").map(drop)?,
            _ => ensure(part[kind].is_object(), || format!("{kind}: must be an object in {part}"))?,
        }
    }
    Ok(())
}

/// The ids of its calls.
fn assistant(message: &Value) -> Result<Vec<&str>, String> {
    let calls = &message["tool_calls"];
    if !message["content"].is_null() {
        content(message, &["text", "refusal"])?;
    } else {
        ensure(!calls.is_null(), || "an assistant message has neither content nor calls".into())?;
    }
    if calls.is_null() {
        return Ok(Vec::new());
    }
    let mut ids = Vec::new();
    for call in items(calls)? {
        let id = words(call, "id")?;
        ensure(!ids.contains(&id), || format!("{id}: two calls have this id"))?;
        ids.push(id);
        ensure(call["type"] == "function", || format!("{call}: must be of type function"))?;
        plain_name(text(&call["function"], "name")?, LONGEST_NAME)?;
        arguments(&call["function"])?;
    }
    ensure(!ids.is_empty(), || "tool_calls: must not be empty".into())?;
    Ok(ids)
}

/// Answers stand in the order of their calls.
fn answer(message: &Value, open: &mut Vec<&str>) -> Verdict {
    let id = words(message, "tool_call_id")?;
    ensure(open.first() == Some(&id), || format!("{id}: is not the call to be answered next ({open:?})"))?;
    open.remove(0);
    content(message, &["text"])
}

const LONGEST_NAME: usize = 64;

#[test]
fn what_is_refused() {
    let check = |list: &str, expect: &str| check_list(&RULES, list, expect);
    let user = r#"{"role":"user","content":"go"}"#;
    let calls = |ids: &[&str], arguments: &str| {
        let call = |id: &&str| {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}"#
            )
        };
        let calls = ids.iter().map(call).collect::<Vec<_>>().join(",");
        format!(r#"{{"role":"assistant","content":null,"tool_calls":[{calls}]}}"#)
    };
    let result = |id: &str| format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"r"}}"#);
    let (ab, a, b) = (calls(&["a", "b"], "{}"), result("a"), result("b"));
    check(&format!("[{user},{ab},{a},{b},{user}]"), "");
    check(&format!("[{user},{ab},{b},{a}]"), "b: is not the call to be answered next");
    check(&format!("[{user},{ab},{a},{user}]"), "without an answer right behind");
    check(&format!("[{user},{ab},{a}]"), "without an answer");
    check(&format!("[{user},{a}]"), "a: is not the call");
    check(&format!("[{}]", calls(&["a", "a"], "{}")), "two calls have this id");
    check(&format!("[{}]", calls(&["a"], "{")), "must be JSON");
    check(&format!("[{}]", calls(&[], "{}")), "tool_calls: must not be empty");
    check(r#"[{"role":"assistant","content":null}]"#, "neither content nor calls");
    check(r#"[{"role":"assistant","content":""}]"#, "must not be blank");
    check(r#"[{"role":"user","content":" \n"}]"#, "must not be blank");
    check(r#"[{"role":"user","content":[]}]"#, "must not be empty");
    check(r#"[{"role":"user","content":[{"type":"text","text":""}]}]"#, "must not be blank");
    check(r#"[{"role":"system","content":[{"type":"image_url"}]}]"#, "may not stand");
    check(r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]"#, "");
    check(r#"[{"role":"robot","content":"x"}]"#, "no such role");
    let tool = |name: &str| {
        format!(r#"[{{"type":"function","function":{{"name":"{name}","parameters":{{"type":"object"}}}}}}]"#)
    };
    check_body(&RULES, &format!(r#"{{"tools":{},"messages":[{user}]}}"#, tool("f")), "");
    check_body(&RULES, &format!(r#"{{"tools":{},"messages":[{user}]}}"#, tool("a.b")), "must match");
    check_body(&RULES, &format!(r#"{{"tool_choice":"required","messages":[{user}]}}"#), "only with tools");
}
