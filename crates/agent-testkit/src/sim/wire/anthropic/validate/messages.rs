//! Rules about roles, and about each block on its own.

use serde_json::Value;

use super::{Check, items, not_blank, refuse, text_block};

pub(super) fn check(messages: &Value) -> Check {
    let Some(list) = messages.as_array() else {
        return refuse("messages: Field required");
    };
    if list.is_empty() {
        return refuse("messages: at least one message is required");
    }
    roles(list)?;
    for (number, message) in list.iter().enumerate() {
        scope(number, message)?;
        content(number, message, number + 1 == list.len())?;
    }
    Ok(())
}

fn roles(list: &[Value]) -> Check {
    let mut before: Option<&str> = None;
    for (number, message) in list.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        match (before, role) {
            (_, "system") => {
                let next = list.get(number + 1).map(|next| &next["role"]);
                if before != Some("user") || next.is_some_and(|role| role != "assistant") {
                    return refuse(format!(
                        "messages.{number}: a system message must follow a user message and be last or followed by an assistant message"
                    ));
                }
                continue;
            }
            (None, "assistant") => {
                return refuse("messages: first message must use the \"user\" role");
            }
            (Some(before), "user" | "assistant") if before == role => {
                return refuse(format!(
                    "messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"{role}\" roles in a row"
                ));
            }
            (_, "user" | "assistant") => before = Some(role),
            _ => {
                return refuse(format!("messages.{number}.role: Input should be 'user' or 'assistant'"));
            }
        }
    }
    Ok(())
}

/// Only a system message can be limited to its turn. One that was is no edit: it stays where it is.
fn scope(number: usize, message: &Value) -> Check {
    match (message["clear_at"].as_str(), &message["clear_at"]) {
        (_, Value::Null) => Ok(()),
        (Some("next_user_message" | "never"), _) if message["role"] == "system" => Ok(()),
        (Some(_), _) if message["role"] == "system" => {
            refuse(format!("messages.{number}.clear_at: Input should be 'next_user_message' or 'never'"))
        }
        (_, _) => refuse(format!("messages.{number}.clear_at: Extra inputs are not permitted")),
    }
}

fn content(number: usize, message: &Value, is_last: bool) -> Check {
    let is_last_answer = is_last && message["role"] == "assistant";
    let content = &message["content"];
    let is_empty = match content {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks.is_empty(),
        Value::Null => return refuse(format!("messages.{number}.content: Field required")),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            return refuse(format!("messages.{number}.content: Input should be a valid list"));
        }
    };
    if is_empty && !is_last_answer {
        return refuse(format!(
            "messages.{number}: all messages must have non-empty content except for the optional final assistant message"
        ));
    }
    if let (Some(text), false) = (content.as_str(), is_empty) {
        not_blank("messages", text)?;
    }
    for (position, part) in items(content).enumerate() {
        block(&format!("messages.{number}.content.{position}"), part)?;
    }
    if is_last_answer { trailing_space(content) } else { Ok(()) }
}

fn block(place: &str, block: &Value) -> Check {
    match block["type"].as_str() {
        None => refuse(format!("{place}.type: Field required")),
        Some("text") => text_block(place, block),
        Some("thinking") => require(place, block, "thinking", "signature"),
        Some("redacted_thinking") => require(place, block, "redacted_thinking", "data"),
        Some("tool_use") => tool_use(place, block),
        Some("tool_result") => {
            require(place, block, "tool_result", "tool_use_id")?;
            let mut texts = items(&block["content"]).filter(|part| part["type"] == "text");
            texts.try_for_each(|part| text_block(place, part))
        }
        // Images, documents and blocks of the provider's own tools have no rule that a script needs.
        Some(_) => Ok(()),
    }
}

fn tool_use(place: &str, block: &Value) -> Check {
    require(place, block, "tool_use", "name")?;
    require(place, block, "tool_use", "id")?;
    let id = block["id"].as_str().unwrap_or_default();
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if id.is_empty() || !id.chars().all(good) {
        return refuse(format!("{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"));
    }
    match block.get("input") {
        Some(Value::Object(_)) => Ok(()),
        Some(_) => refuse(format!("{place}.tool_use.input: Input should be a valid dictionary")),
        None => refuse(format!("{place}.tool_use.input: Field required")),
    }
}

fn require(place: &str, block: &Value, kind: &str, field: &str) -> Check {
    if block[field].is_string() { Ok(()) } else { refuse(format!("{place}.{kind}.{field}: Field required")) }
}

fn trailing_space(content: &Value) -> Check {
    let last = content.as_str().or_else(|| items(content).last().and_then(|block| block["text"].as_str()));
    if last.is_some_and(|text| text.ends_with(char::is_whitespace)) {
        return refuse("messages: final assistant content cannot end with trailing whitespace");
    }
    Ok(())
}
