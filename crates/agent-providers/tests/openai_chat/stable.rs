//! What was sent once stays the same buffers, and any conversation becomes a request that a strict server takes.

use std::collections::BTreeSet;

use agent_core::{
    AssistantPart, BLOCK_BYTES, Body, Entry, History, ProviderPart, RawJson, Rewrite, Text, ToolOutput,
};
use agent_providers::openai_chat::Quirks;
use proptest::prelude::*;
use serde_json::Value;

use super::ask::{Ask, call, history, item, note, step, talk, text, thought, user, words};

const PROVIDERS: [&str; 11] = [
    "openai-chat",
    "ollama-chat",
    "llamacpp",
    "vllm",
    "deepseek",
    "openrouter",
    "groq",
    "xai-chat",
    "mistral",
    "lmstudio",
    "unheard-of",
];

fn buffers(body: &Body) -> Vec<(usize, usize)> {
    body.buffers().map(|bytes| (bytes.as_ptr() as usize, bytes.len())).collect()
}

#[test]
fn the_next_body_holds_the_same_buffers_and_begins_with_the_same_bytes() {
    for provider in PROVIDERS {
        let ask = Ask::full(provider);
        let (mut encoder, mut log) = (ask.encoder(), talk());
        // Long enough to fill a block.
        let long = ToolOutput::text("r".repeat(BLOCK_BYTES));
        log.push(step(vec![words("long"), call("call_long", "look", "{}")], vec![long])).unwrap();
        let first = ask.encode(&mut *encoder, &log).request.body;
        log.push(step(vec![words("then"), call("call_c", "look", "{}")], vec![ToolOutput::text("r")]))
            .unwrap();
        let second = ask.encode(&mut *encoder, &log).request.body;
        let (old, new) = (buffers(&first), buffers(&second));
        let shared = old.len() - 3;
        assert_eq!(old[..shared], new[..shared], "{provider}");
        let (first, second) = (text(&first), text(&second));
        let kept = first.split_once("],\"stream\"").unwrap().0;
        assert!(second.starts_with(kept), "{provider}: {first}");
    }
}

#[test]
fn streaming_changes_the_very_end_only() {
    for provider in PROVIDERS {
        let (streamed, whole) = (Ask::full(provider), Ask { stream: false, ..Ask::full(provider) });
        let (streamed, whole) = (streamed.text(&talk()), whole.text(&talk()));
        let head = whole.strip_suffix(r#","stream":false}"#).unwrap();
        let tail = streamed.strip_prefix(head).unwrap();
        let plain = r#","stream":true}"#;
        let counted = r#","stream":true,"stream_options":{"include_usage":true}}"#;
        assert!(tail == plain || tail == counted, "{provider}: {tail}");
        assert_eq!(
            tail == counted,
            !matches!(provider, "openrouter" | "mistral" | "unheard-of"),
            "{provider}"
        );
    }
}

/// What every server of this format asks of the messages.
fn check_strict(provider: &str, sent: &str) -> Result<(), TestCaseError> {
    let body: Value = serde_json::from_str(sent).unwrap();
    let mut open: Vec<String> = Vec::new();
    let mut answered = BTreeSet::new();
    let mut before = String::new();
    for message in body["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            prop_assert!(!open.is_empty() && open.remove(0) == id, "{}: results in the order of calls", sent);
            prop_assert!(answered.insert(id.to_owned()));
        } else {
            prop_assert!(open.is_empty(), "{}: {} stands between calls and results", sent, role);
        }
        let may_repeat = !Quirks::of(provider).join_user || role == "tool";
        prop_assert!(may_repeat || before != role, "{}: two messages of {}", sent, role);
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        open = if role == "tool" { open } else { calls.iter().map(|call| id(call, provider)).collect() };
        check_content(message, !calls.is_empty() || message["refusal"].is_string(), sent)?;
        role.clone_into(&mut before);
    }
    prop_assert!(open.is_empty());
    Ok(())
}

fn id(call: &Value, provider: &str) -> String {
    let id = call["id"].as_str().unwrap();
    let is_nine = id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(provider != "mistral" || is_nine, "{id}");
    assert!((1..=40).contains(&id.len()), "{id}");
    let name = call["function"]["name"].as_str().unwrap();
    assert!((1..=64).contains(&name.len()) && name.is_ascii(), "{name}");
    let arguments = call["function"]["arguments"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(arguments).is_ok(), "{arguments}");
    id.to_owned()
}

fn check_content(message: &Value, may_be_empty: bool, sent: &str) -> Result<(), TestCaseError> {
    let is_said = |text: &str| !text.trim().is_empty();
    let good = match &message["content"] {
        Value::Null => may_be_empty,
        Value::String(text) => is_said(text) || may_be_empty && text.is_empty(),
        Value::Array(parts) => {
            !parts.is_empty() && parts.iter().all(|part| part["text"].as_str().is_none_or(is_said))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    prop_assert!(good, "{}", sent);
    Ok(())
}

fn entry(kind: u8, n: usize) -> Entry {
    let block = || {
        AssistantPart::Provider(ProviderPart {
            provider: "else".into(),
            kind: "odd".into(),
            raw: RawJson::parse("{}").unwrap(),
        })
    };
    let one = |id: &str| call(id, "notes.add", if n.is_multiple_of(2) { "{\"n\":1.0}" } else { "{broken" });
    match kind {
        0 => user(&format!("u{n} \u{1F600}")),
        1 => note(&format!("n{n}")),
        2 => step(vec![words(&format!("s{n}"))], vec![]),
        3 => step(vec![], vec![]),
        4 => step(vec![thought("hm"), block()], vec![]),
        5 => step(
            vec![item("openrouter", r#"{"type":"reasoning.text","text":"hm"}"#), one(&format!("c{n}"))],
            vec![ToolOutput::text(format!("r{n}"))],
        ),
        _ => step(
            vec![words("s"), one(&format!("call_{n}~2")), thought("hm"), one(&format!("functions.f:{n}"))],
            vec![ToolOutput::text("x".repeat(n * 7)), ToolOutput::error("")],
        ),
    }
}

fn log_of(kinds: &[u8], rewrite: Option<bool>) -> History {
    let mut log = history(kinds.iter().enumerate().map(|(n, kind)| entry(*kind, n)).collect());
    let at = agent_core::EntryId::at(kinds.len() / 2);
    if let Some(is_summary) = rewrite {
        let text = Text::new("We talked.").unwrap();
        log.push(Entry::Boundary(match is_summary {
            true => Rewrite::Summary { text, kept_from: at, strip_reasoning: true },
            false => {
                Rewrite::Cleared { results_to: at, keep_bytes: 5, strip_reasoning: false, offloaded: false }
            }
        }))
        .unwrap();
    }
    log
}

proptest! {
    /// Any history is a request that a strict server takes, for every provider; a used encoder gives the same bytes.
    #[test]
    fn any_conversation_is_taken(
        kinds in proptest::collection::vec(0u8..7, 1..9),
        rewrite in proptest::option::of(any::<bool>()),
    ) {
        let (whole, begun) = (log_of(&kinds, rewrite), log_of(&kinds[..kinds.len() / 2], None));
        for provider in PROVIDERS {
            let ask = Ask { reminders: vec!["now"], ..Ask::full(provider) };
            let mut encoder = ask.encoder();
            ask.encode(&mut *encoder, &begun);
            let sent = text(&ask.encode(&mut *encoder, &whole).request.body);
            prop_assert_eq!(&sent, &ask.told(&whole).0);
            check_strict(provider, &sent)?;
        }
    }
}
