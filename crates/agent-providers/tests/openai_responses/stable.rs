//! Any history encodes to a request that a strict provider takes.

use std::collections::BTreeSet;

use agent_core::{
    AssistantPart, AssistantText, CacheProfile, CallId, ContentPart, Entry, EntryId, FilePart, FileSource,
    History, ModelProfile, ProviderData, ProviderPart, RawJson, Reasoning, Rewrite, Seal, Text, ToolCall,
    ToolInput, ToolOutput, ToolResult,
};
use proptest::prelude::*;
use serde_json::Value;

use super::ask::{Ask, encoder_of, history, model, note, text, user};

fn provider() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just("openai".to_owned()), 1 => Just("anthropic".to_owned())]
}

fn raw(json: &str) -> RawJson {
    RawJson::parse(json).unwrap()
}

fn part() -> impl Strategy<Value = AssistantPart> {
    let said = (provider(), any::<bool>()).prop_map(|(provider, has_data)| {
        let json = raw(r#"{"id":"msg_1","status":"completed","part":{"annotations":[{"url":"u"}]}}"#);
        let data = has_data.then_some(ProviderData { provider, json });
        AssistantPart::Text(AssistantText { text: Text::new("said").unwrap(), data })
    });
    let seals = [
        r#"{"id":"rs_1","type":"reasoning","encrypted_content":"e","summary":[]}"#,
        r#"{"id":"rs_1","type":"reasoning","summary":[]}"#,
    ];
    let thought = (provider(), prop::option::of(0..2usize)).prop_map(move |(provider, seal)| {
        let seal = seal.map(|which| Seal::Item { provider, raw: raw(seals[which]) });
        AssistantPart::Reasoning(Reasoning { text: "hm".into(), seal })
    });
    let call = ("[a-c.:]{0,3}", 0..4usize, any::<bool>()).prop_map(|(name, input, has_data)| {
        let input = match input {
            0 => ToolInput::finished(r#"{"n":1.0}"#),
            1 => ToolInput::finished("[2]"),
            2 => ToolInput::finished("{no"),
            _ => ToolInput::cut("{\"a"),
        };
        let json = raw(r#"{"id":"fc_1","status":"completed"}"#);
        let data = has_data.then_some(ProviderData { provider: "openai".into(), json });
        let id = CallId::new("later").unwrap();
        AssistantPart::ToolCall(ToolCall { id, name: format!("t{name}"), input, data })
    });
    let block = provider().prop_map(|provider| {
        let raw = raw(r#"{"id":"ws_1","type":"web_search_call","status":"completed"}"#);
        AssistantPart::Provider(ProviderPart { provider, kind: "web_search_call".into(), raw })
    });
    prop_oneof![2 => said, 2 => thought, 2 => call, 1 => block]
}

fn output(which: usize) -> ToolOutput {
    let source = FileSource::Base64("A".repeat(40));
    let picture = FilePart { media_type: "image/png".into(), source, name: None };
    match which % 5 {
        0 => ToolOutput::text("seen"),
        1 => ToolOutput::error("no"),
        2 => ToolOutput::Json(raw(r#"{"b":1.0}"#)),
        3 => ToolOutput::Content(vec![]),
        _ => ToolOutput::Content(vec![ContentPart::File(picture)]),
    }
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = prop_oneof![
        1 => Just(vec![]).prop_map(|parts| (0, parts)),
        1 => Just(vec![]).prop_map(|parts| (1, parts)),
        3 => prop::collection::vec(part(), 0..5).prop_map(|parts| (2, parts)),
    ];
    prop::collection::vec(entry, 0..8).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        numbered
            .map(|(n, (kind, parts))| match kind {
                0 => user("go"),
                1 => note("mind"),
                _ => numbered_step(n, parts),
            })
            .collect()
    })
}

fn numbered_step(n: usize, mut parts: Vec<AssistantPart>) -> Entry {
    let mut results = Vec::new();
    for (at, part) in parts.iter_mut().enumerate() {
        if let AssistantPart::ToolCall(call) = part {
            let odd = if at % 2 == 0 { "." } else { "" };
            call.id = CallId::new(format!("call_{n}{odd}_{at}")).unwrap();
            results.push(ToolResult { call: call.id.clone(), output: output(at + n) });
        }
    }
    Entry::Step(agent_core::StepRecord::new(agent_core::Response::of(parts), results).unwrap())
}

/// What a strict provider of this format says of an input.
fn complaint(items: &[Value]) -> Option<String> {
    let mut calls: BTreeSet<&str> = BTreeSet::new();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let next = items.get(at + 1);
        let call_id = item["call_id"].as_str().unwrap_or_default();
        let good = match item["type"].as_str().unwrap_or_default() {
            "message" => is_message(item),
            // Thinking must be followed by an item of the same answer.
            "reasoning" => {
                let follows =
                    next.is_some_and(|next| next["type"] != "function_call_output" && next["role"] != "user");
                item["encrypted_content"].is_string() && follows
            }
            "function_call" => {
                open.insert(call_id);
                let arguments: Option<Value> = serde_json::from_str(item["arguments"].as_str()?).ok();
                is_name(call_id)
                    && is_name(item["name"].as_str()?)
                    && arguments?.is_object()
                    && calls.insert(call_id)
            }
            "function_call_output" => open.remove(call_id) && is_output(&item["output"]),
            "web_search_call" => item["status"].is_string(),
            _ => false,
        };
        if !good {
            return Some(item.to_string());
        }
    }
    (!open.is_empty()).then(|| format!("no output for {open:?}"))
}

fn is_message(item: &Value) -> bool {
    if let Some(words) = item["content"].as_str() {
        return !words.trim().is_empty();
    }
    // A list of the model's is an item that the provider made, which has an id.
    let is_known = item["role"] != "assistant" || (item["id"].is_string() && item["status"].is_string());
    let wanted = if item["role"] == "assistant" { "output_" } else { "input_" };
    let parts = item["content"].as_array().cloned().unwrap_or_default();
    let good = |part: &Value| {
        let text = part["text"].as_str().is_none_or(|text| !text.trim().is_empty());
        part["type"].as_str().is_some_and(|kind| kind.starts_with(wanted)) && text
    };
    is_known && !parts.is_empty() && parts.iter().all(good)
}

fn is_output(output: &Value) -> bool {
    let parts = output.as_array();
    output.as_str().is_some_and(|text| !text.is_empty()) || parts.is_some_and(|parts| !parts.is_empty())
}

fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(good)
}

fn items(log: &History, profile: ModelProfile) -> Vec<Value> {
    let sent = text(&Ask::default().encode(&mut *encoder_of(profile), log).request.body);
    let body: Value = serde_json::from_str(&sent).unwrap();
    body["input"].as_array().unwrap().clone()
}

proptest! {
    #[test]
    fn any_history_encodes_to_a_valid_request(
        entries in entries(),
        boundary in prop::option::of((any::<bool>(), 0usize..8)),
        is_marked in any::<bool>(),
        vision in any::<bool>(),
    ) {
        let count = entries.len();
        let mut log = history(entries);
        if let Some((is_summary, at)) = boundary.filter(|_| count > 0) {
            let at = EntryId::at(at % (count + 1));
            let text = Text::new("so far").unwrap();
            let rewrite = if is_summary {
                Rewrite::Summary { text, kept_from: at, strip_reasoning: true }
            } else {
                Rewrite::Cleared { results_to: at, keep_bytes: 3, strip_reasoning: false, offloaded: false }
            };
            log.push(Entry::Boundary(rewrite)).unwrap();
        }
        let cache = CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
        let cache = if is_marked { cache } else { CacheProfile::None };
        let sent = items(&log, ModelProfile { cache, vision, ..model() });
        prop_assert_eq!(complaint(&sent), None, "{:?}", sent);
    }
}

#[test]
fn the_validator_complains() {
    let check = |input: &str| {
        let items: Vec<Value> = serde_json::from_str(input).unwrap();
        assert!(complaint(&items).is_some(), "{input}");
    };
    check(r#"[{"type":"message","role":"user","content":[]}]"#);
    check(r#"[{"type":"message","role":"user","content":[{"type":"output_text","text":"a"}]}]"#);
    check(
        r#"[{"type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"a"}]}]"#,
    );
    check(r#"[{"type":"reasoning","encrypted_content":"e"}]"#);
    check(r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]"#);
    check(r#"[{"type":"function_call_output","call_id":"a","output":"x"}]"#);
}
