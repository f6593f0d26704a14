//! Reads bodies of OpenAI Chat Completions and OpenAI Responses.

use agent_core::Ttl;
use serde_json::value::RawValue;

use super::json::{array, text};
use super::{Aspect, Block, BlockKind, Level, Object, Request, RequestError, Role};

const MARK: &str = "prompt_cache_breakpoint";

pub(super) fn read_chat(request: &mut Request, top: &Object<'_>) -> Result<(), RequestError> {
    settings(request, top);
    for (aspect, key) in [
        (Aspect::OutputFormat, "response_format"),
        (Aspect::Effort, "reasoning_effort"),
        (Aspect::Verbosity, "verbosity"),
    ] {
        request.note_raw(aspect, top.get(key));
    }
    read_tools(request, top)?;
    let messages = top.get("messages").and_then(array);
    let messages = messages.ok_or_else(|| request.shape("messages", "an array"))?;
    let mut level = Level::System;
    for (index, message) in messages.into_iter().enumerate() {
        let path = format!("messages[{index}]");
        let message = Object::read(message).ok_or_else(|| request.shape(&path, "an object"))?;
        let role = role_of(&message);
        // Instructions ahead of the conversation are the system level; later ones belong to the conversation.
        level = if role == Role::Developer { level } else { Level::Messages };
        chat_message(request, &message, &Place { path, level, role, message: Some(index) })?;
    }
    Ok(())
}

pub(super) fn read_responses(request: &mut Request, top: &Object<'_>) -> Result<(), RequestError> {
    settings(request, top);
    if let Some(words) = top.object("text") {
        request.note_raw(Aspect::OutputFormat, words.get("format"));
        request.note_raw(Aspect::Verbosity, words.get("verbosity"));
    }
    if let Some(reasoning) = top.object("reasoning") {
        request.note_raw(Aspect::Effort, reasoning.get("effort"));
    }
    read_tools(request, top)?;
    if let Some(words) = top.get("instructions").filter(|it| it.get() != "null") {
        let at =
            Place { path: "instructions".into(), level: Level::System, role: Role::Developer, message: None };
        request.blocks.push(at.block(at.path.clone(), BlockKind::Text, words.get()));
    }
    let input = top.get("input").ok_or_else(|| request.shape("input", "a string or an array of items"))?;
    if text(input).is_some() {
        let at = Place { path: "input".into(), level: Level::Messages, role: Role::User, message: Some(0) };
        request.blocks.push(at.block(at.path.clone(), BlockKind::Text, input.get()));
        return Ok(());
    }
    let items = array(input).ok_or_else(|| request.shape("input", "a string or an array of items"))?;
    let mut level = Level::System;
    for (index, item) in items.into_iter().enumerate() {
        let path = format!("input[{index}]");
        let item = Object::read(item).ok_or_else(|| request.shape(&path, "an object"))?;
        let (role, kind) = item_kind(&item);
        level = if role == Role::Developer { level } else { Level::Messages };
        let at = Place { path, level, role, message: Some(index) };
        item_blocks(request, &item, &at, kind);
    }
    Ok(())
}

/// Where blocks are read.
struct Place {
    path: String,
    level: Level,
    role: Role,
    message: Option<usize>,
}

impl Place {
    fn block(&self, path: String, kind: BlockKind, bytes: &str) -> Block {
        let (level, role, message) = (self.level, self.role, self.message);
        Block { path, level, role, message, kind, name: None, bytes: bytes.into(), mark: None }
    }
}

fn settings(request: &mut Request, top: &Object<'_>) {
    for (aspect, key) in [
        (Aspect::ToolChoice, "tool_choice"),
        (Aspect::ParallelTools, "parallel_tool_calls"),
        (Aspect::CacheKey, "prompt_cache_key"),
        (Aspect::ServiceTier, "service_tier"),
    ] {
        request.note_raw(aspect, top.get(key));
    }
    let options = top.object("prompt_cache_options");
    let option = |key| options.as_ref().and_then(|it| it.text(key));
    request.explicit_only = option("mode").as_deref() == Some("explicit");
    let long = option("ttl").as_deref() == Some("12h")
        || top.text("prompt_cache_retention").as_deref() == Some("24h");
    request.ttl = if long { Ttl::OneHour } else { Ttl::FiveMinutes };
}

fn read_tools(request: &mut Request, top: &Object<'_>) -> Result<(), RequestError> {
    let Some(tools) = top.get("tools").filter(|it| it.get() != "null") else { return Ok(()) };
    let tools = array(tools).ok_or_else(|| request.shape("tools", "an array"))?;
    for (index, tool) in tools.into_iter().enumerate() {
        let path = format!("tools[{index}]");
        let object = Object::read(tool).ok_or_else(|| request.shape(&path, "an object"))?;
        let function = object.object("function");
        let name = function.as_ref().and_then(|it| it.text("name")).or_else(|| object.text("name"));
        let deferred = object.is_true("defer_loading");
        let kind = if deferred { BlockKind::DeferredTool } else { BlockKind::Tool };
        let at = Place { path, level: Level::Tools, role: Role::Developer, message: None };
        let bytes = object.without(&[]);
        request.blocks.push(Block { name, ..at.block(at.path.clone(), kind, &bytes) });
    }
    Ok(())
}

fn role_of(message: &Object<'_>) -> Role {
    match message.text("role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::Developer,
        Some("tool" | "function") => Role::Tool,
        _ => Role::User,
    }
}

/// What stands beside content and calls, then the content part by part, then the calls.
fn chat_message(request: &mut Request, message: &Object<'_>, at: &Place) -> Result<(), RequestError> {
    let result = at.role == Role::Tool;
    let rest = message.without(&["role", "content", "tool_calls"]);
    if rest != "{}" {
        let kind = if result { BlockKind::ToolResult } else { BlockKind::Other };
        request.blocks.push(at.block(at.path.clone(), kind, &rest));
    }
    let kind = |words: Option<&str>| match words {
        _ if result => BlockKind::ToolResult,
        Some("") => BlockKind::EmptyText,
        _ => BlockKind::Text,
    };
    let path = format!("{}.content", at.path);
    if let Some(body) = message.get("content").filter(|it| it.get() != "null") {
        if let Some(words) = text(body) {
            request.blocks.push(at.block(path, kind(Some(&words)), body.get()));
        } else {
            let parts = array(body).ok_or_else(|| request.shape(&path, "a string or an array of parts"))?;
            for (index, part) in parts.into_iter().enumerate() {
                let path = format!("{path}[{index}]");
                let part = Object::read(part).ok_or_else(|| request.shape(&path, "an object"))?;
                let picture = part.get("image_url").is_some();
                let kind = if picture { BlockKind::Image } else { kind(part.text("text").as_deref()) };
                let mark = part.get(MARK).map(|_| request.ttl);
                let block = at.block(path, kind, &part.without(&[MARK]));
                request.blocks.push(Block { mark, ..block });
            }
        }
    }
    let calls = message.get("tool_calls").and_then(array).unwrap_or_default();
    for (index, call) in calls.into_iter().enumerate() {
        let path = format!("{}.tool_calls[{index}]", at.path);
        request.blocks.push(at.block(path, BlockKind::ToolUse, call.get()));
    }
    Ok(())
}

fn item_kind(item: &Object<'_>) -> (Role, BlockKind) {
    let kind = item.text("type").unwrap_or_else(|| "message".into());
    match kind.as_str() {
        "message" => (role_of(item), BlockKind::Text),
        "reasoning" => (Role::Assistant, BlockKind::Thinking),
        it if it.ends_with("_call_output") => (Role::Tool, BlockKind::ToolResult),
        "function_call" | "custom_tool_call" => (Role::Assistant, BlockKind::ToolUse),
        it if it.ends_with("_call") => (Role::Assistant, BlockKind::ServerTool),
        _ => (Role::Developer, BlockKind::Other),
    }
}

/// An item is one block, or one for each part of its content or output, since a breakpoint stands behind a part. What
/// stands beside the parts belongs to the first of them.
fn item_blocks(request: &mut Request, item: &Object<'_>, at: &Place, kind: BlockKind) {
    let list = ["content", "output"].into_iter().find_map(|key| Some((key, array(item.get(key)?)?)));
    let parts = list.filter(|(_, parts)| !parts.is_empty());
    let Some((key, parts)) = parts else {
        request.blocks.push(at.block(at.path.clone(), kind, &item.without(&[])));
        return;
    };
    let alone = parts.len() == 1;
    let ttl = request.ttl;
    for (index, part) in parts.into_iter().enumerate() {
        let (bytes, mark, picture) = unmarked(part);
        let bytes = match index {
            0 => item.written(
                &[],
                |name, value| if name == key { format!("[{bytes}]") } else { value.get().into() },
            ),
            _ => bytes,
        };
        let path = if alone { at.path.clone() } else { format!("{}.{key}[{index}]", at.path) };
        let kind = if picture { BlockKind::Image } else { kind };
        request.blocks.push(Block { mark: mark.then_some(ttl), ..at.block(path, kind, &bytes) });
    }
}

/// A part without its breakpoint, whether it had one, and whether it is a picture.
fn unmarked(part: &RawValue) -> (String, bool, bool) {
    match Object::read(part) {
        Some(part) => {
            let picture = part.text("type").as_deref() == Some("input_image");
            (part.without(&[MARK]), part.get(MARK).is_some(), picture)
        }
        None => (part.get().to_owned(), false, false),
    }
}
