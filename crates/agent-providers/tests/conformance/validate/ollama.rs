//! Ollama's own chat: contents are texts, inputs are objects, and results follow their calls.

use agent_providers::WireFormat;
use serde_json::Value;

use super::{Rules, Verdict, check_list, ensure, items, plain_name, schema, text};

pub(super) const RULES: Rules = Rules {
    format: WireFormat::Ollama,
    fields: &[
        "model",
        "messages",
        "tools",
        "format",
        "options",
        "think",
        "stream",
        "keep_alive",
        "logprobs",
        "top_logprobs",
    ],
    list: "messages",
    check,
};

fn check(request: &Value) -> Verdict {
    if !request["tools"].is_null() {
        for tool in items(&request["tools"])? {
            plain_name(text(&tool["function"], "name")?, 64)?;
            schema(&tool["function"]["parameters"])?;
        }
    }
    let mut open: Vec<&str> = Vec::new();
    for message in items(&request["messages"])? {
        let role = text(message, "role")?;
        ensure(matches!(role, "system" | "user" | "assistant" | "tool"), || {
            format!("{role}: there is no such role")
        })?;
        ensure((role == "tool") != open.is_empty(), || {
            format!("a {role} message behind the calls {open:?}")
        })?;
        let mut calls = Vec::new();
        if !message["tool_calls"].is_null() {
            for call in items(&message["tool_calls"])? {
                let function = &call["function"];
                calls.push(text(function, "name")?);
                plain_name(text(function, "name")?, 64)?;
                ensure(function["arguments"].is_object(), || format!("{call}: arguments are an object"))?;
            }
        }
        said(message, !calls.is_empty())?;
        if role == "tool" {
            let called = open.remove(0);
            let of = message["tool_name"].as_str().unwrap_or(called);
            ensure(of == called, || format!("a result of {of} where that of {called} is next"))?;
        } else {
            open = calls;
        }
    }
    ensure(open.is_empty(), || format!("calls without a result: {open:?}"))
}

/// Blank words may stand beside pictures, thinking and calls.
fn said(message: &Value, has_calls: bool) -> Verdict {
    let content = text(message, "content")?;
    let mut pictures = 0;
    if !message["images"].is_null() {
        for image in items(&message["images"])? {
            ensure(image.is_string(), || "images: each is a text of base64".into())?;
            pictures += 1;
        }
    }
    let thinks = message["thinking"].as_str().is_some_and(|text| !text.trim().is_empty());
    let says = !content.trim().is_empty() || pictures > 0 || has_calls || thinks;
    ensure(says, || format!("content: must not be blank in {message}"))
}

#[test]
fn what_is_refused() {
    let check = |list: &str, expect: &str| check_list(&RULES, &format!("[{list}]"), expect);
    let user = r#"{"role":"user","content":"go"}"#;
    let call = |arguments: &str| {
        format!(
            r#"{{"role":"assistant","content":"","tool_calls":[{{"function":{{"name":"f","arguments":{arguments}}}}}]}}"#
        )
    };
    let result = |name: &str| format!(r#"{{"role":"tool","tool_name":"{name}","content":"r"}}"#);
    let called = call("{}");
    check(&format!("{user},{called},{},{user}", result("f")), "");
    check(&format!("{user},{called},{}", result("g")), "a result of g");
    check(&format!("{user},{called},{user}"), "behind the calls");
    check(&format!("{user},{called}"), "without a result");
    check(&format!("{user},{}", result("f")), "a tool message behind the calls []");
    check(&call("[]"), "arguments are an object");
    check(&call(r#""{}""#), "arguments are an object");
    check(r#"{"role":"user","content":" "}"#, "must not be blank");
    check(r#"{"role":"user","content":"","images":["aGk="]}"#, "");
    check(r#"{"role":"user","content":[]}"#, "must be a text");
    check(r#"{"role":"robot","content":"x"}"#, "no such role");
}
