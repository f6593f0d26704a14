//! An answer without a script: it says what was asked.

use agent_core::{Usage, floor_boundary};
use serde_json::Value;

use crate::script::Reply;

/// Says what the user said last, how much came with it, and what of it was read from the cache.
pub(super) fn reply(request: &Value, usage: &Usage) -> Reply {
    let words = last_words(request);
    let cut = floor_boundary(&words, MOST_BYTES);
    let more = if cut < words.len() { "…" } else { "" };
    let (messages, tools) = (conversation(request).count(), tools(request));
    let tools = if tools.is_empty() { "no tools".to_owned() } else { format!("the tools {tools}") };
    let (total, read, write) = (usage.total_input(), usage.cache_read, usage.cache_write());
    Reply::text(format!(
        "You said: {:?}{more}\nI got {messages} messages and {tools}: {total} tokens, of which {read} were read from the cache and {write} written to it.",
        &words[..cut]
    ))
}

/// Messages, or items of a conversation; a plain input is one.
fn conversation(request: &Value) -> impl Iterator<Item = &Value> {
    let list = request["messages"].as_array().or_else(|| request["input"].as_array());
    let plain = request["input"].is_string().then_some(&request["input"]);
    list.into_iter().flatten().chain(plain)
}

fn last_words(request: &Value) -> String {
    let said = conversation(request).filter_map(|message| match message {
        Value::String(words) => Some(words.clone()),
        Value::Object(_) if message["role"] == "user" => Some(words_of(&message["content"])),
        Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => None,
    });
    said.filter(|words| !words.is_empty()).last().unwrap_or_default()
}

fn words_of(content: &Value) -> String {
    if let Some(words) = content.as_str() {
        return words.to_owned();
    }
    let parts = content.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn tools(request: &Value) -> String {
    let tools = request["tools"].as_array().into_iter().flatten();
    let names = tools.filter_map(|tool| tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()));
    names.collect::<Vec<_>>().join(", ")
}

const MOST_BYTES: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(request: &Value, expect: &str) {
        let usage = Usage { input: 3, cache_read: 90, ..Usage::default() };
        let text = reply(request, &usage).text.unwrap();
        assert!(text.starts_with(expect), "{text}");
        assert!(
            text.ends_with("93 tokens, of which 90 were read from the cache and 0 written to it."),
            "{text}"
        );
    }

    #[test]
    fn the_last_words_of_the_user_on_every_wire() {
        check(&json!({"input": "go"}), "You said: \"go\"\nI got 1 messages and no tools");
        check(
            &json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                {"role": "user", "content": [{"type": "tool_result"}]}], "tools": [{"name": "x"}, {"function": {"name": "y"}}]}),
            "You said: \"a\"\nI got 3 messages and the tools x, y",
        );
        check(
            &json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "é".repeat(300)}]}]}),
            &format!("You said: \"{}\"…", "é".repeat(200)),
        );
    }
}
