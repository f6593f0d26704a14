//! The tools of a request, and which of them the model may or must call.

use std::borrow::Cow;

use agent_core::{ModelRequest, ToolCard, ToolChoice};

use crate::wire::choice::{self, Choice};
use crate::wire::form::Cx;
use crate::wire::json::{Fields, Loose, quoted, replaced, text_or_raw};
use crate::wire::schema::{Rules, sendable};

/// The tools as a field with its comma; nothing when no tool can be sent.
pub(super) fn list(cards: &[ToolCard], cx: &mut Cx<'_>) -> Vec<u8> {
    let entries: Vec<String> = cards.iter().filter_map(|card| entry(card, cx)).collect();
    if entries.is_empty() {
        return Vec::new();
    }
    format!(r#""tools":[{}],"#, entries.join(",")).into_bytes()
}

fn entry(card: &ToolCard, cx: &mut Cx<'_>) -> Option<String> {
    if card.is_hosted() {
        return cx.hosted(card).map(Cow::into_owned);
    }
    let function = function(card, cx)?;
    let fields = cx.own_fields(card);
    Some(if fields.is_empty() { function } else { replaced(&function, &fields) })
}

/// A tool of ours. Unless it is told otherwise, OpenAI makes each input of a tool required.
fn function(card: &ToolCard, cx: &mut Cx<'_>) -> Option<String> {
    let schema = sendable(card, Rules::OpenAi, cx)?;
    let mut out = format!(r#"{{"type":"function","name":{}"#, quoted(&cx.names.wire(card.name())));
    if !card.description().is_empty() {
        out.push_str(&format!(r#","description":{}"#, quoted(card.description())));
    }
    out.push_str(&format!(r#","parameters":{schema},"strict":false}}"#));
    Some(out)
}

/// The value of `tool_choice`; `None` where the model decides.
pub(super) fn choice(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Option<String> {
    Some(match choice::choice(request, cx)? {
        Choice::None => quoted("none"),
        Choice::Required => quoted("required"),
        Choice::Tool(card) => named(card, cx),
        Choice::Allowed { tools, required } => {
            let mode = if required { "required" } else { "auto" };
            let tools: Vec<String> = tools.into_iter().map(|card| named(card, cx)).collect();
            format!(r#"{{"type":"allowed_tools","mode":"{mode}","tools":[{}]}}"#, tools.join(","))
        }
    })
}

/// How a choice names a tool: one of ours by its name, one of the provider's by its type and what tells it apart.
fn named(card: &ToolCard, cx: &Cx<'_>) -> String {
    let data = card.data().filter(|_| card.is_hosted());
    match data.and_then(|data| hosted_choice(data.json.get())) {
        Some(choice) => choice,
        None => format!(r#"{{"type":"function","name":{}}}"#, quoted(&cx.names.wire(card.name()))),
    }
}

/// How a choice names the hosted tool of this entry.
fn hosted_choice(entry: &str) -> Option<String> {
    let entry = Fields::read(entry)?;
    let kept = entry.0.iter().filter(|(key, _)| matches!(key.as_ref(), "type" | "name" | "server_label"));
    let kept: Vec<String> = kept.map(|(key, raw)| format!("{}:{}", quoted(key), raw.get())).collect();
    Some(format!("{{{}}}", kept.join(",")))
}

/// The name of the card for a hosted tool of this entry: its type, and what tells it from others of the type.
pub(super) fn hosted_name(entry: &Fields<'_>) -> String {
    let text = |key: &str| entry.get(key).map(text_or_raw).filter(|text| !text.is_empty());
    let kind = text("type").unwrap_or("hosted".into());
    match text("name").or_else(|| text("server_label")) {
        Some(name) => format!("{kind}:{name}"),
        None => kind.into_owned(),
    }
}

/// The choice that a recorded request names; `None` when it has no word in our types.
pub(super) fn read_choice(raw: &str, cards: &[ToolCard]) -> Option<ToolChoice> {
    if raw.starts_with('"') {
        return match serde_json::from_str::<Loose<'_>>(raw).ok()?.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::None),
            "required" => Some(ToolChoice::Required),
            _ => None,
        };
    }
    let fields = Fields::read(raw)?;
    if text_or_raw(fields.get("type")?) != "allowed_tools" {
        return Some(ToolChoice::Tool(card_named(raw, cards)?));
    }
    let tools: Vec<&serde_json::value::RawValue> = serde_json::from_str(fields.get("tools")?.get()).ok()?;
    let tools: Option<Vec<String>> = tools.into_iter().map(|tool| card_named(tool.get(), cards)).collect();
    let required = fields.get("mode").map(text_or_raw).is_some_and(|mode| mode == "required");
    Some(ToolChoice::Allowed { tools: tools?, required })
}

/// The card that a choice names.
fn card_named(raw: &str, cards: &[ToolCard]) -> Option<String> {
    let fields = Fields::read(raw)?;
    let name = match text_or_raw(fields.get("type")?).as_ref() {
        "function" => text_or_raw(fields.get("name")?).into_owned(),
        _ => hosted_name(&fields),
    };
    cards.iter().any(|card| card.name() == name).then_some(name)
}
