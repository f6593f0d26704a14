//! The classic ways to break a cache, done on purpose: a check that cannot fail proves nothing.
//!
//! What our types allow is done by the agent itself (a clock that is declared to be static, tools in the order in which
//! they come). What they do not allow is done to the body on its way out, as a gateway or another agent would.

use agent_core::{Body, Outgoing};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One thing that is broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sabotage {
    /// The time of day in the system prompt, declared to be static.
    ClockInSystem,
    /// The day in the system prompt, declared to be static.
    DateInSystem,
    /// Dynamic tools in the order in which they come.
    ToolsAsTheyCome,
    /// A tool is left out of these requests.
    LeaveOutTool(Change),
    /// Words are other ones in these requests, wherever they stand in the body.
    Replace(Change),
    /// A note ahead of the model's last message, in each request where it is the last one.
    NoteBeforeLastAssistant(Change),
    /// A note behind the last message, with the marker on it.
    MarkerOnNote(Change),
    /// Markers stand on the user's own words only, never on results.
    MarkersOnTextOnly,
    /// No marker at all.
    NoMarkers,
    /// More markers than are allowed.
    FifthMarker(Change),
    /// Only the last marker of the conversation is left.
    NoBridge,
    /// Thinking is not sent back.
    StripThinking(Change),
}

/// Which requests, and which words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// The first request, from 1.
    #[serde(default = "second")]
    pub(crate) from: usize,
    /// Every how many requests from there on.
    #[serde(default = "each")]
    pub(crate) every: usize,
    /// The tool's name, or the words that were.
    #[serde(default)]
    pub(crate) what: String,
    /// The words that are.
    #[serde(default)]
    pub(crate) with: String,
}

/// The request as it leaves a broken agent; `number` counts from 1.
pub(crate) fn broken(sabotage: &[Sabotage], number: usize, request: Outgoing) -> Outgoing {
    if !sabotage.iter().any(Sabotage::is_on_the_wire) {
        return request;
    }
    let mut text = String::from_utf8_lossy(&request.body.to_vec()).into_owned();
    for it in sabotage.iter().filter(|it| it.is_on_the_wire()) {
        text = it.written(number, text);
    }
    let mut body = Body::default();
    body.push(text.into_bytes().into());
    Outgoing { body, ..request }
}

impl Sabotage {
    /// Whether it is done to the body, not by the agent.
    fn is_on_the_wire(&self) -> bool {
        !matches!(self, Self::ClockInSystem | Self::DateInSystem | Self::ToolsAsTheyCome)
    }

    fn written(&self, number: usize, text: String) -> String {
        if let Self::Replace(change) = self {
            return if change.hits(number) { text.replace(&change.what, &change.with) } else { text };
        }
        // Written anew whether or not it changes, so that the writing alone makes no difference.
        let Ok(mut body) = serde_json::from_str(&text) else { return text };
        self.change(number, &mut body);
        body.to_string()
    }

    fn change(&self, number: usize, body: &mut Value) {
        match self {
            Self::LeaveOutTool(change) if change.hits(number) => {
                let tools = list(body, "tools");
                tools.into_iter().for_each(|tools| tools.retain(|tool| tool["name"] != change.what.as_str()));
            }
            Self::NoteBeforeLastAssistant(change) if change.hits(number) => {
                note_before_last(body, &change.what)
            }
            Self::MarkerOnNote(change) if change.hits(number) => {
                let mut note = text(&change.what);
                note["cache_control"] = json!({"type": "ephemeral"});
                unmark(&mut body["messages"], |_| true);
                last_content(body).into_iter().for_each(|content| content.push(note.clone()));
            }
            Self::MarkersOnTextOnly => unmark(&mut body["messages"], |block| block["type"] != "text"),
            Self::NoMarkers => unmark(body, |_| true),
            Self::FifthMarker(change) if change.hits(number) => mark_all(body),
            Self::NoBridge => {
                let kept = last_content(body).and_then(|content| content.last().cloned());
                unmark(&mut body["messages"], |block| Some(block) != kept.as_ref());
            }
            Self::StripThinking(change) if change.hits(number) => {
                for content in contents(body) {
                    content.retain(|block| block["type"] != "thinking");
                }
            }
            Self::LeaveOutTool(_)
            | Self::NoteBeforeLastAssistant(_)
            | Self::MarkerOnNote(_)
            | Self::FifthMarker(_)
            | Self::StripThinking(_)
            | Self::ClockInSystem
            | Self::DateInSystem
            | Self::ToolsAsTheyCome
            | Self::Replace(_) => {}
        }
    }
}

impl Change {
    fn hits(&self, number: usize) -> bool {
        number.checked_sub(self.from).is_some_and(|past| past % self.every.max(1) == 0)
    }
}

/// A list in an object.
fn list<'v>(value: &'v mut Value, key: &str) -> Option<&'v mut Vec<Value>> {
    value.get_mut(key).and_then(Value::as_array_mut)
}

fn text(words: &str) -> Value {
    json!({"type": "text", "text": words})
}

/// The blocks of each message that has blocks.
fn contents(body: &mut Value) -> impl Iterator<Item = &mut Vec<Value>> {
    let messages = list(body, "messages").into_iter().flatten();
    messages.filter_map(|message| list(message, "content"))
}

fn last_content(body: &mut Value) -> Option<&mut Vec<Value>> {
    list(list(body, "messages")?.last_mut()?, "content")
}

/// Two messages of the user in a row would be refused: the note stands at the end of the one before the model's last.
fn note_before_last(body: &mut Value, words: &str) {
    let Some(messages) = list(body, "messages") else { return };
    let last = messages.iter().rposition(|message| message["role"] == "assistant");
    let before = last.and_then(|last| messages.get_mut(last.checked_sub(1)?));
    before.and_then(|before| list(before, "content")).into_iter().for_each(|it| it.push(text(words)));
}

/// Takes the markers off the blocks that are chosen, at any depth.
fn unmark(value: &mut Value, chosen: impl Fn(&Value) -> bool + Copy) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| unmark(item, chosen)),
        Value::Object(_) => {
            let take = chosen(value);
            if let Value::Object(members) = value {
                if take {
                    members.remove("cache_control");
                }
                members.values_mut().for_each(|member| unmark(member, chosen));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Puts a marker on each block that can carry one.
fn mark_all(body: &mut Value) {
    for block in contents(body).flatten().filter(|block| block["type"] != "thinking") {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn second() -> usize {
    2
}

fn each() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sabotage: &str, number: usize, expect: &str) {
        let body = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"Go."}]},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"tool_use","id":"c","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r","cache_control":{"type":"ephemeral"}}]}],"tools":[{"name":"edit"},{"name":"read"}]}"#;
        let sabotage: Sabotage = serde_json::from_str(sabotage).unwrap();
        let mut sent = Body::default();
        sent.push(body.into());
        let request = Outgoing { body: sent, stream: true, headers: Vec::new() };
        let bytes = broken(&[sabotage], number, request).body.to_vec();
        let after = String::from_utf8(bytes).unwrap();
        if expect.is_empty() {
            let same: Value = serde_json::from_str(&after).unwrap();
            assert_eq!(same, serde_json::from_str::<Value>(body).unwrap());
        } else {
            assert!(after.contains(expect) && !body.contains(expect), "{after}");
        }
    }

    #[test]
    fn each_breaks_what_it_names_and_only_where_it_says() {
        check(r#"{"leave_out_tool":{"what":"edit"}}"#, 2, r#""tools":[{"name":"read"}]"#);
        check(r#"{"leave_out_tool":{"what":"edit"}}"#, 1, "");
        check(r#"{"leave_out_tool":{"what":"edit","from":2,"every":2}}"#, 3, "");
        check(r#"{"replace":{"what":"Go.","with":"Gone."}}"#, 5, "Gone.");
        check(r#"{"replace":{"what":"Go.","with":"Gone.","from":6}}"#, 5, "");
        check(
            r#"{"note_before_last_assistant":{"what":"Mind."}}"#,
            2,
            r#""Mind.","type":"text"}],"role":"user"},{"content":[{"signature"#,
        );
        check(
            r#"{"marker_on_note":{"what":"Mind."}}"#,
            2,
            r#"{"cache_control":{"type":"ephemeral"},"text":"Mind.""#,
        );
        check(r#""markers_on_text_only""#, 1, r#"[{"content":"r","tool_use_id"#);
        check(r#""no_markers""#, 1, r#"[{"content":"r","tool_use_id"#);
        check(r#"{"fifth_marker":{}}"#, 2, r#"{"cache_control":{"type":"ephemeral"},"text":"Go.""#);
        check(r#""no_bridge""#, 2, "");
        check(r#"{"strip_thinking":{"from":3}}"#, 3, r#""content":[{"id":"c""#);
        check(r#""clock_in_system""#, 1, "");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the project's own fixtures")]
    fn each_has_a_fixture_that_it_turns_red() {
        // The reader names all there are.
        let known = serde_json::from_str::<Sabotage>("\"?\"").unwrap_err().to_string();
        let known: Vec<&str> = known.split('`').skip(3).step_by(2).collect();
        assert!(known.len() > 10, "{known:?}");
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cache/sabotage");
        let files =
            folder.read_dir().unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
        let all: String = files.collect();
        for name in known {
            assert!(all.contains(&format!("\"{name}\"")), "no fixture is broken by {name}");
        }
    }
}
