//! The first difference between a request and an earlier one of its conversation.

use super::{Cause, Divergence};
use crate::miss::changed;
use crate::prefix::Prefix;
use crate::request::Object;
use crate::{Aspect, Block, BlockKind, CacheRules, Level, Request};

/// A request with what is in its prefix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) request: &'a Request,
    pub(super) prefix: &'a Prefix,
}

impl<'a> Side<'a> {
    fn level(self, level: Level) -> Vec<&'a Block> {
        let blocks = self.prefix.segments.iter().map(move |segment| &self.request.blocks[segment.block]);
        blocks.filter(|block| block.level == level && block.kind != BlockKind::WebTool).collect()
    }

    /// Whether the last marker, the automatic one included, stands on this block.
    fn is_last_mark(self, block: &Block) -> bool {
        let last = match self.request.automatic {
            Some(_) => self.request.blocks.iter().rfind(|block| block.can_carry_mark()),
            None => self.request.blocks.iter().rfind(|block| block.mark.is_some()),
        };
        last.is_some_and(|last| std::ptr::eq(last, block))
    }
}

/// Blocks that both begin with, and how many bytes they have.
pub(super) fn shared(before: Side<'_>, after: Side<'_>) -> (usize, u64) {
    let pairs = before.prefix.segments.iter().zip(&after.prefix.segments);
    let block = |request: &'_ Request, at: usize| (request.blocks[at].bytes.clone(), request.blocks[at].role);
    let equal = pairs.take_while(|(a, b)| {
        a.hash == b.hash || (block(before.request, a.block) == block(after.request, b.block))
    });
    let equal = equal.count();
    let segments = after.prefix.segments.iter().take(equal);
    (equal, segments.map(|segment| after.request.blocks[segment.block].bytes.len() as u64).sum())
}

/// The first difference in the order of the prefix; `None` when the later request only goes on.
pub(super) fn first_difference(before: Side<'_>, after: Side<'_>, rules: &CacheRules) -> Option<Divergence> {
    setting(before, after, rules, Level::Tools)
        .or_else(|| tools(&before.level(Level::Tools), &after.level(Level::Tools)))
        .or_else(|| setting(before, after, rules, Level::System))
        .or_else(|| system(&before.level(Level::System), &after.level(Level::System)))
        .or_else(|| setting(before, after, rules, Level::Messages))
        .or_else(|| messages(before, after))
}

fn setting(before: Side<'_>, after: Side<'_>, rules: &CacheRules, level: Level) -> Option<Divergence> {
    let lost = rules.invalidates.keys().filter(|aspect| rules.loses(**aspect) == Some(level));
    let mut lost = lost.filter(|aspect| changed(before.request, after.request, **aspect, rules)).copied();
    let aspect = lost.next()?;
    let cause = if aspect == Aspect::Model { Cause::ModelChanged } else { Cause::SettingChanged };
    let value = |request: &Request| request.aspects.get(&aspect).cloned().unwrap_or_default();
    let mut found = Divergence::new(aspect.name(), cause);
    (found.before, found.after) = (clip(&value(before.request)), clip(&value(after.request)));
    Some(found)
}

fn tools(before: &[&Block], after: &[&Block]) -> Option<Divergence> {
    let pairs = before.iter().zip(after);
    let at = pairs.take_while(|(a, b)| a.bytes == b.bytes).count();
    let holds = |list: &[&Block], tool: &Block| list.iter().any(|it| it.name == tool.name);
    match (before.get(at), after.get(at)) {
        (None, None) => None,
        (Some(gone), None) => Some(named(gone, gone, Cause::ToolRemoved)),
        (None, Some(new)) => Some(named(new, new, Cause::ToolAdded)),
        (Some(old), Some(new)) if old.name == new.name => Some(differ(old, new, Cause::ToolChanged)),
        (Some(_), Some(new)) if !holds(before, new) => Some(named(new, new, Cause::ToolAdded)),
        (Some(old), Some(_)) if !holds(after, old) => Some(named(old, old, Cause::ToolRemoved)),
        (Some(old), Some(new)) => {
            let mut found = named(new, new, Cause::ToolsReordered);
            found.before = old.name.clone().unwrap_or_default();
            Some(found)
        }
    }
}

fn named(at: &Block, tool: &Block, cause: Cause) -> Divergence {
    let mut found = Divergence::new(&at.path, cause);
    found.after = tool.name.clone().unwrap_or_default();
    if cause == Cause::ToolRemoved {
        std::mem::swap(&mut found.before, &mut found.after);
    }
    found
}

fn system(before: &[&Block], after: &[&Block]) -> Option<Divergence> {
    let at = before.iter().zip(after).take_while(|(a, b)| a.bytes == b.bytes).count();
    match (before.get(at), after.get(at)) {
        (None, None) => None,
        (Some(old), Some(new)) => Some(differ(old, new, Cause::SystemChanged)),
        (Some(gone), None) => Some(Divergence::new(&gone.path, Cause::SystemChanged)),
        (None, Some(new)) => Some(Divergence::new(&new.path, Cause::SystemChanged)),
    }
}

fn messages(before: Side<'_>, after: Side<'_>) -> Option<Divergence> {
    let (old, new) = (before.level(Level::Messages), after.level(Level::Messages));
    let same = |a: &Block, b: &Block| a.bytes == b.bytes && a.role == b.role;
    let at = old.iter().zip(&new).take_while(|(a, b)| same(a, b)).count();
    // The conversation goes on, or was taken back to an earlier point: both keep what was sent.
    let (Some(gone), Some(come)) = (old.get(at), new.get(at)) else { return None };
    let later = |list: &[&Block], block: &Block| list.iter().skip(at + 1).any(|it| same(it, block));
    let is_passing = before.is_last_mark(gone);
    if gone.kind == BlockKind::Thinking && come.kind != BlockKind::Thinking {
        return Some(Divergence::new(&gone.path, Cause::ThinkingStripped));
    }
    let text = |block: &Block| block.text();
    // A block that comes again further on was never meant to stay where it was.
    if later(&old, come) || (is_passing && later(&new, gone)) {
        let cause = if is_passing { Cause::MarkOnPassingBlock } else { Cause::MessageRemoved };
        return Some(Divergence { before: clip(&text(gone)), ..Divergence::new(&gone.path, cause) });
    }
    if later(&new, gone) {
        let found = Divergence::new(&come.path, Cause::MessageInserted);
        return Some(Divergence { after: clip(&text(come)), ..found });
    }
    let continued = old.iter().zip(&new).skip(at + 1).any(|(a, b)| same(a, b));
    if at == 0 && !continued {
        return Some(Divergence::new(&come.path, Cause::NewConversation));
    }
    let both_results = gone.kind == BlockKind::ToolResult && come.kind == BlockKind::ToolResult;
    let cause = if both_results && come.bytes.len() < gone.bytes.len() && call(gone) == call(come) {
        Cause::ResultShortened
    } else if is_passing {
        Cause::MarkOnPassingBlock
    } else {
        Cause::MessageEdited
    };
    Some(differ(gone, come, cause))
}

/// The id of the call that a result answers.
fn call(block: &Block) -> Option<String> {
    let object = crate::request::object(&block.bytes)?;
    ["tool_use_id", "tool_call_id", "call_id"].into_iter().find_map(|key| object.text(key))
}

/// Two blocks in the same place: the member that differs, and how.
fn differ(old: &Block, new: &Block, cause: Cause) -> Divergence {
    let (a, b) = (crate::request::object(&old.bytes), crate::request::object(&new.bytes));
    let member = a.as_ref().zip(b.as_ref()).and_then(|(a, b)| member(a, b));
    let path = match &member {
        Some((name, ..)) if name != "text" => format!("{}.{name}", new.path),
        _ => new.path.clone(),
    };
    let (before, after) = match &member {
        Some((_, before, after)) => (before.as_str(), after.as_str()),
        None => (&*old.bytes, &*new.bytes),
    };
    let cause = if equal_json(&old.bytes, &new.bytes) { Cause::Reserialised } else { cause };
    Divergence::new(path, cause).with_change(before, after)
}

/// The first member that differs, with its JSON on both sides. What a chat tool is lies one level down.
fn member(a: &Object<'_>, b: &Object<'_>) -> Option<(String, String, String)> {
    let value = |object: &Object<'_>, key: &str| object.get(key).map(|raw| raw.get().to_owned());
    let keys = a.0.iter().chain(&b.0).map(|(key, _)| key);
    let key = keys.into_iter().find(|key| value(a, key) != value(b, key))?;
    if let Some((a, b)) = a.object(key).zip(b.object(key)).filter(|_| key == "function") {
        return member(&a, &b).map(|(inner, before, after)| (format!("{key}.{inner}"), before, after));
    }
    Some((key.clone(), value(a, key).unwrap_or_default(), value(b, key).unwrap_or_default()))
}

/// Equal once parsed: only the writing differs. Numbers are compared as they are read.
fn equal_json(a: &str, b: &str) -> bool {
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
    a != b && parse(a).is_some_and(|a| Some(numbers_as_floats(a)) == parse(b).map(numbers_as_floats))
}

/// `1` and `1.0` are one number.
fn numbers_as_floats(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Number(number), Value::from),
        Value::Array(items) => Value::Array(items.into_iter().map(numbers_as_floats).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| (key, numbers_as_floats(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

fn clip(text: &str) -> String {
    let cut = agent_core::floor_boundary(text, 90);
    if cut == text.len() { text.into() } else { format!("{}…", &text[..cut]) }
}
