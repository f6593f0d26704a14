//! Requests in a form to read and to keep as snapshots: what differs from run to run is replaced.

mod pretty;
mod prompt;
mod redact;
mod wire;

use serde_json::Value;

pub use prompt::render_prompt;
pub use redact::{Redactions, redact};
pub use wire::{SnapshotError, render_prefixes, render_request, render_rows};

/// Shows what a model was asked: system blocks, tools by name, messages by role (requirement V4).
///
/// Takes bodies of a [`crate::ScriptedModel`] or requests of a [`crate::SimProvider`]. Call ids are numbered in
/// order of appearance over all requests, times and UUIDs become words (see [`redact`]). A body of another shape
/// is shown as its JSON, and one that is not JSON as its text.
pub fn render_requests<R: AsRef<[u8]>>(requests: &[R]) -> String {
    let mut renderer = Renderer::default();
    for (number, request) in requests.iter().enumerate() {
        renderer.line(0, &format!("request {}", number + 1));
        match serde_json::from_slice::<Value>(request.as_ref()) {
            Ok(body) if body["messages"].is_array() => renderer.prompt(&body),
            Ok(body) => renderer.text(1, &format!("{body:#}")),
            Err(_) => renderer.text(1, &String::from_utf8_lossy(request.as_ref())),
        }
    }
    redact(&renderer.out)
}

#[derive(Debug, Default)]
struct Renderer {
    out: String,
    /// Ids of calls in the order they were first seen.
    calls: Vec<String>,
}

impl Renderer {
    fn prompt(&mut self, body: &Value) {
        if let Some(model) = body["model"].as_str() {
            self.line(1, &format!("model {model}"));
        }
        let names: Vec<&str> = items(&body["tools"]).filter_map(tool_name).collect();
        if !names.is_empty() {
            self.line(1, &format!("tools {}", names.join(", ")));
            items(&body["tools"]).for_each(|tool| self.mark(tool));
        }
        if !is_blank(&body["system"]) {
            self.line(1, "system");
            self.content(&body["system"]);
        }
        for message in items(&body["messages"]) {
            self.line(1, message["role"].as_str().unwrap_or("(no role)"));
            self.content(&message["content"]);
            self.openai_calls(message);
        }
        if !is_blank(&body["marks"]) {
            self.line(1, &format!("marks {}", body["marks"]));
        }
    }

    fn content(&mut self, content: &Value) {
        match content {
            Value::String(text) => self.text(2, text),
            Value::Array(blocks) => blocks.iter().for_each(|block| self.block(block)),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => self.text(2, &content.to_string()),
        }
    }

    fn block(&mut self, block: &Value) {
        let text = |name: &str| block[name].as_str().unwrap_or_default();
        match text("type") {
            "text" => self.text(2, text("text")),
            "thinking" => self.text(2, &format!("(thinking) {}", text("thinking"))),
            "tool_use" => {
                let id = self.call(text("id"));
                let written = ["input", "invalid_input", "truncated_input"];
                let input = written.iter().map(|name| &block[*name]).find(|input| !input.is_null());
                let input = input.map(Value::to_string).unwrap_or_default();
                self.text(2, &format!("{id} {} {input}", text("name")));
            }
            "tool_result" => {
                let id = self.call(text("tool_use_id"));
                let sign = if block["is_error"] == true { "failed with" } else { "gave" };
                self.result(&format!("{id} {sign}"), &block["content"]);
            }
            _ => self.text(2, &unmarked(block).to_string()),
        }
        self.mark(block);
    }

    fn result(&mut self, head: &str, content: &Value) {
        if let Some(text) = content.as_str() {
            return self.text(2, &format!("{head} {text}"));
        }
        self.line(2, head);
        self.content(content);
    }

    /// Calls of the chat format stand beside the content.
    fn openai_calls(&mut self, message: &Value) {
        if let Some(id) = message["tool_call_id"].as_str() {
            let id = self.call(id);
            self.line(2, &format!("(answers {id})"));
        }
        for call in items(&message["tool_calls"]) {
            let id = self.call(call["id"].as_str().unwrap_or_default());
            let function = &call["function"];
            let text = |name: &str| function[name].as_str().unwrap_or_default();
            self.text(2, &format!("{id} {} {}", text("name"), text("arguments")));
        }
    }

    fn mark(&mut self, block: &Value) {
        let marker = &block["cache_control"];
        if !marker.is_null() {
            self.line(2, &format!("^^^ marked {}", marker["ttl"].as_str().unwrap_or("5m")));
        }
    }

    fn call(&mut self, id: &str) -> String {
        let known = self.calls.iter().position(|known| known == id);
        let number = known.unwrap_or_else(|| {
            self.calls.push(id.to_owned());
            self.calls.len() - 1
        });
        format!("[call {}]", number + 1)
    }

    /// Text line by line, so that a snapshot shows where lines end.
    fn text(&mut self, depth: usize, text: &str) {
        text.split('\n').for_each(|line| self.line(depth, line));
    }

    fn line(&mut self, depth: usize, text: &str) {
        let line = format!("{}{text}", "  ".repeat(depth));
        self.out.push_str(line.trim_end_matches(' '));
        self.out.push('\n');
    }
}

fn tool_name(tool: &Value) -> Option<&str> {
    tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()).or_else(|| tool["type"].as_str())
}

fn unmarked(block: &Value) -> Value {
    let mut block = block.clone();
    if let Some(fields) = block.as_object_mut() {
        fields.remove("cache_control");
    }
    block
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_readable_and_ids_are_numbered() {
        let first = r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"Be brief.\nToday is 2025-03-01.","cache_control":{"type":"ephemeral"}}],
            "tools":[{"name":"grep","input_schema":{}},{"name":"read","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"1h"}}],
            "messages":[{"role":"user","content":"find it"},
            {"role":"assistant","content":[{"type":"thinking","thinking":"Where?","signature":"s"},{"type":"tool_use","id":"toolu_9a","name":"grep","input":{"pattern":"x"}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_9a","is_error":true,"content":"no such file"},{"type":"image","source":{}}]}]}"#;
        let second = r#"{"messages":[{"role":"assistant","tool_calls":[{"id":"toolu_9a","function":{"name":"grep","arguments":"{}"}}]},{"role":"tool","tool_call_id":"toolu_9a","content":"at 2025-03-01T10:00:00Z"}]}"#;
        insta::assert_snapshot!(render_requests(&[first, second, "{\"input\":1}", "plain"]), @r#"
        request 1
          model m
          tools grep, read
            ^^^ marked 1h
          system
            Be brief.
            Today is [date].
            ^^^ marked 5m
          user
            find it
          assistant
            (thinking) Where?
            [call 1] grep {"pattern":"x"}
          user
            [call 1] failed with no such file
            {"source":{},"type":"image"}
        request 2
          assistant
            [call 1] grep {}
          tool
            at [time]
            (answers [call 1])
        request 3
          {
            "input": 1
          }
        request 4
          plain
        "#);
    }
}
