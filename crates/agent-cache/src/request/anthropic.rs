//! Reads a body of Anthropic Messages.

use agent_core::Ttl;
use serde_json::value::RawValue;

use super::json::{array, text};
use super::{Aspect, Block, BlockKind, Level, Object, Request, RequestError, Role};

const MARK: &str = "cache_control";

pub(super) fn read(request: &mut Request, top: &Object<'_>) -> Result<(), RequestError> {
    settings(request, top);
    request.automatic = ttl(top, MARK)?;
    read_tools(request, top)?;
    if let Some(system) = top.get("system").filter(|it| it.get() != "null") {
        let at = Place { path: "system".into(), level: Level::System, role: Role::Developer, message: None };
        content(request, system, &at)?;
    }
    let messages = top.get("messages").and_then(array);
    let messages = messages.ok_or_else(|| request.shape("messages", "an array"))?;
    for (index, message) in messages.into_iter().enumerate() {
        let path = format!("messages[{index}]");
        let message = Object::read(message).ok_or_else(|| request.shape(&path, "an object"))?;
        let role = match message.text("role").as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::Developer,
            _ => Role::User,
        };
        let body = message.get("content").ok_or_else(|| request.shape(&path, "a message with content"))?;
        let path = format!("{path}.content");
        content(request, body, &Place { path, level: Level::Messages, role, message: Some(index) })?;
    }
    note_citations(request);
    Ok(())
}

/// Where blocks are read.
struct Place {
    path: String,
    level: Level,
    role: Role,
    message: Option<usize>,
}

fn settings(request: &mut Request, top: &Object<'_>) {
    let plain = [
        (Aspect::Speed, "speed"),
        (Aspect::ToolChoice, "tool_choice"),
        (Aspect::Thinking, "thinking"),
        (Aspect::TaskBudget, "task_budget"),
        (Aspect::Betas, "anthropic_beta"),
        (Aspect::ContextManagement, "context_management"),
        (Aspect::ServiceTier, "service_tier"),
    ];
    for (aspect, key) in plain {
        request.note_raw(aspect, top.get(key));
    }
    if let Some(output) = top.object("output_config") {
        request.note_raw(Aspect::Effort, output.get("effort"));
        request.note_raw(Aspect::OutputFormat, output.get("format"));
    }
}

fn read_tools(request: &mut Request, top: &Object<'_>) -> Result<(), RequestError> {
    let Some(tools) = top.get("tools").filter(|it| it.get() != "null") else { return Ok(()) };
    let tools = array(tools).ok_or_else(|| request.shape("tools", "an array"))?;
    let mut web = Vec::new();
    for (index, tool) in tools.into_iter().enumerate() {
        let path = format!("tools[{index}]");
        let tool = Object::read(tool).ok_or_else(|| request.shape(&path, "an object"))?;
        let kind = tool.text("type").unwrap_or_default();
        let bytes = tool.without(&[MARK]);
        let kind = if tool.is_true("defer_loading") {
            BlockKind::DeferredTool
        } else if kind.starts_with("web_search_") || kind.starts_with("web_fetch_") {
            web.push(bytes.clone());
            BlockKind::WebTool
        } else {
            BlockKind::Tool
        };
        let mark = ttl(&tool, &path)?;
        request.blocks.push(Block {
            path,
            level: Level::Tools,
            role: Role::Developer,
            message: None,
            kind,
            name: tool.text("name"),
            bytes: bytes.into(),
            mark,
        });
    }
    if !web.is_empty() {
        request.aspects.insert(Aspect::WebTools, web.join(","));
    }
    Ok(())
}

/// A plain string is one text block.
fn content(request: &mut Request, body: &RawValue, at: &Place) -> Result<(), RequestError> {
    if let Some(words) = text(body) {
        let bytes = format!(r#"{{"type":"text","text":{}}}"#, body.get());
        let kind = text_kind(&words, at, request.blocks.iter().all(Block::is_tool));
        request.blocks.push(block(at, at.path.clone(), kind, bytes));
        return Ok(());
    }
    let parts = array(body).ok_or_else(|| request.shape(&at.path, "a string or an array of blocks"))?;
    for (index, part) in parts.into_iter().enumerate() {
        let path = format!("{}[{index}]", at.path);
        let part = Object::read(part).ok_or_else(|| request.shape(&path, "an object"))?;
        let kind = part.text("type").unwrap_or_default();
        let first = request.blocks.iter().all(Block::is_tool);
        let kind = kind_of(&kind, &part, at, first);
        let mark = ttl(&part, &path)?;
        let inner = (kind == BlockKind::ToolResult).then(|| inner_mark(&part, &path)).transpose()?.flatten();
        let bytes = if inner.is_some() { without_inner(&part) } else { bytes_of(&part) };
        request.blocks.push(Block { mark: mark.or(inner), ..block(at, path, kind, bytes) });
    }
    Ok(())
}

fn block(at: &Place, path: String, kind: BlockKind, bytes: String) -> Block {
    let (level, role, message) = (at.level, at.role, at.message);
    Block { path, level, role, message, kind, name: None, bytes: bytes.into(), mark: None }
}

fn kind_of(kind: &str, part: &Object<'_>, at: &Place, first: bool) -> BlockKind {
    match kind {
        "text" => text_kind(&part.text("text").unwrap_or_default(), at, first),
        "image" => BlockKind::Image,
        "document" | "search_result" => BlockKind::Document,
        "tool_use" => BlockKind::ToolUse,
        "tool_result" => BlockKind::ToolResult,
        "thinking" | "redacted_thinking" => BlockKind::Thinking,
        "server_tool_use" | "mcp_tool_use" => BlockKind::ServerTool,
        it if it.ends_with("_tool_result") => BlockKind::ServerTool,
        _ => BlockKind::Other,
    }
}

fn text_kind(words: &str, at: &Place, first: bool) -> BlockKind {
    if words.is_empty() {
        BlockKind::EmptyText
    } else if first && at.level == Level::System && words.starts_with("x-anthropic-billing-header") {
        BlockKind::BillingHeader
    } else {
        BlockKind::Text
    }
}

/// A text without further fields is written one way, so that it equals the plain string.
fn bytes_of(part: &Object<'_>) -> String {
    let fields = ["type", "text", MARK];
    let plain = part.0.iter().all(|(name, _)| fields.contains(&name.as_str()));
    match part.get("text").filter(|_| plain && part.text("type").as_deref() == Some("text")) {
        Some(words) => format!(r#"{{"type":"text","text":{}}}"#, words.get()),
        None => part.without(&[MARK]),
    }
}

/// A marker inside the parts of a result stands on the result.
fn inner_mark(part: &Object<'_>, path: &str) -> Result<Option<Ttl>, RequestError> {
    let parts = part.get("content").and_then(array).unwrap_or_default();
    let marks = parts.into_iter().filter_map(Object::read).map(|inner| ttl(&inner, path));
    Ok(marks.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().next_back())
}

fn without_inner(part: &Object<'_>) -> String {
    part.written(&[MARK], |name, value| match array(value).filter(|_| name == "content") {
        Some(inner) => {
            let inner = inner.into_iter().map(|it| match Object::read(it) {
                Some(it) => it.without(&[MARK]),
                None => it.get().to_owned(),
            });
            format!("[{}]", inner.collect::<Vec<_>>().join(","))
        }
        None => value.get().to_owned(),
    })
}

fn ttl(object: &Object<'_>, path: &str) -> Result<Option<Ttl>, RequestError> {
    let Some(mark) = object.object(MARK) else { return Ok(None) };
    match mark.text("ttl").as_deref() {
        None | Some("5m") => Ok(Some(Ttl::FiveMinutes)),
        Some("1h") => Ok(Some(Ttl::OneHour)),
        Some(other) => Err(RequestError::Ttl { path: path.into(), ttl: other.into() }),
    }
}

fn note_citations(request: &mut Request) {
    let documents = request.blocks.iter().filter(|block| block.kind == BlockKind::Document);
    let cited = documents.into_iter().any(|block| {
        let value = super::raw(&block.bytes).ok().and_then(Object::read);
        value.and_then(|it| it.object("citations")).is_some_and(|it| it.is_true("enabled"))
    });
    if cited {
        request.aspects.insert(Aspect::Citations, "true".into());
    }
}
