//! The whole harness over every format: what must go back goes back, over steps, turns, processes and providers.

mod answers;
mod restart;
mod switch;
#[path = "../../../agent-providers/tests/conformance/validate/mod.rs"]
mod validate;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    ContentPart, EventBody, FilePart, FileSource, ModelProfile, TerminalReason, Text, ToolOutput,
};
use agent_harness::{Harness, HarnessConfig, RetryPolicy};
use agent_providers::{ApiKey, HttpConfig, HttpModel, Vendor};
use agent_store::SqliteStore;
use agent_testkit::{RawReply, RecordedRequest, SimProvider, check_request};
use agent_tools::{Access, Tool, ToolConfig, ToolError, ToolSet};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::support::{Half, id, log, system_of, watch};
use answers::{Said, Voice};

/// Vendors of all formats, and a model of each.
const VENDORS: [(&str, &str); 10] = [
    ("anthropic", "claude-opus-5-5"),
    ("openai", "gpt-6-sol"),
    ("xai", "grok-4"),
    ("openai-chat", "gpt-6-sol"),
    ("deepseek", "deepseek-v4-flash"),
    ("mistral", "mistral-small-latest"),
    ("openrouter", "claude-opus-5-5"),
    ("groq", "llama-3.3-70b-versatile"),
    ("gemini", "gemini-3.8-flash"),
    ("ollama", "leaf:4b"),
];

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct What {
    what: String,
}

/// `look` and `notes.add` answer, `fail` cannot, `picture` shows an image.
fn tools() -> ToolSet {
    let picture = || {
        let source = FileSource::Base64("iVBORw0KGgo=".into());
        let file = FilePart { media_type: "image/png".into(), source, name: None };
        vec![ContentPart::Text(Text::new("A pot.").unwrap()), ContentPart::File(file)]
    };
    let says = |name: &str| {
        ToolConfig::new(name, "Looks.", Access::Read, |_, input: What| async move {
            Ok(format!("saw {}", input.what))
        })
        .build()
        .unwrap()
    };
    let fails = ToolConfig::new("fail", "Fails.", Access::Read, |_, _: What| async {
        Err::<String, _>(ToolError::Failed("The pot is empty. Fill it first.".into()))
    });
    let shows = ToolConfig::new("picture", "Shows.", Access::Read, move |_, _: What| async move {
        Ok(ToolOutput::Content(picture()))
    });
    let tools: Vec<Arc<dyn Tool>> =
        vec![says("look"), says("notes.add"), fails.build().unwrap(), shows.build().unwrap()];
    ToolSet::builder().extend(tools).freeze().unwrap()
}

/// What one process sent and was told.
struct Process {
    requests: Vec<RecordedRequest>,
    /// What could not be sent as asked, one a line.
    diagnostics: String,
}

/// A process of its own: opens the session that lies in a directory, says these words and is gone.
async fn process(vendor: &str, dir: &Path, replies: Vec<RawReply>, words: &[&str]) -> Process {
    let given = replies.len();
    let sim = SimProvider::replaying(replies).unwrap();
    let model = VENDORS.iter().find(|(name, _)| *name == vendor).unwrap().1;
    let vendor = Vendor::named(vendor).unwrap();
    let profile = ModelProfile { vision: true, known: true, ..vendor.profile(model) };
    let model = HttpModel::new(HttpConfig {
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: model.into(),
        profile: Some(profile),
        vendor,
        ..HttpConfig::default()
    });
    let store = SqliteStore::open(dir).unwrap();
    let mut config = HarnessConfig::new(Arc::new(model.unwrap()), Arc::new(store));
    config.tools = tools();
    config.prompt = system_of(&["Be brief.", "Be kind."]);
    config.retry = RetryPolicy { base_delay: Duration::from_millis(1), ..RetryPolicy::default() };
    config.jitter = Arc::new(Half);
    let session = Harness::new(config).session(id());
    let mut diagnostics = String::new();
    for words in words {
        let (events, end) = watch(session.send(*words).await.unwrap()).await;
        assert_eq!(end.reason, TerminalReason::Done, "{:?}\n{}", end.error, log(&events));
        for event in &events {
            if let EventBody::RequestDiagnostic(told) = &event.body {
                diagnostics.push_str(&format!("{}: {}\n", told.what, told.why));
            }
        }
    }
    let requests = sim.requests();
    assert_eq!(requests.len(), given, "every answer was asked for");
    Process { requests, diagnostics }
}

/// Holds of every one, and names all for whom it does not.
async fn each<N: std::fmt::Debug, F>(checks: impl IntoIterator<Item = (N, F)>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let checks: Vec<_> = checks.into_iter().map(|(name, check)| (name, tokio::spawn(check))).collect();
    let mut failed = Vec::new();
    for (name, check) in checks {
        if check.await.is_err() {
            failed.push(name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// Streams of these answers.
fn streams(voice: Voice, answers: &[Said]) -> Vec<RawReply> {
    answers.iter().map(|said| voice.streamed(said)).collect()
}

fn body(request: &RecordedRequest) -> String {
    String::from_utf8(request.body.to_vec()).unwrap()
}

/// Holds that the vendor's service takes a request.
#[track_caller]
fn check_valid(vendor: &str, request: &RecordedRequest) {
    let format = Vendor::named(vendor).unwrap().dialect.format;
    let body = plain(vendor, &body(request));
    let verdict = validate::rules(format).check(&body);
    assert_eq!(verdict, Ok(()), "{vendor}: {body}");
    if !matches!(format.as_str(), "gemini" | "ollama") {
        let checked = check_request(&request.path, body.as_bytes());
        assert!(checked.is_ok(), "{vendor}: {checked:?}: {body}");
    }
}

/// A request as the inventor of its format takes it: without what only this vendor has beyond the format.
fn plain(vendor: &str, body: &str) -> String {
    if !matches!(vendor, "deepseek" | "mistral") {
        return body.to_owned();
    }
    let mut request: Value = serde_json::from_str(body).unwrap();
    for message in request["messages"].as_array_mut().unwrap() {
        let calls = message["tool_calls"].is_array();
        let content = &mut message["content"];
        if let Some(parts) = content.as_array_mut() {
            parts.retain(|part| part["type"] != "thinking");
        }
        // Both want an empty text where the format has null.
        if calls && (content == "" || content.as_array().is_some_and(Vec::is_empty)) {
            *content = Value::Null;
        }
    }
    request.to_string()
}

/// A request up to the end of its last message, without cache markers, which move on.
fn conversation(vendor: &str, request: &RecordedRequest) -> String {
    let body = MARKERS.iter().fold(body(request), |body, marker| body.replace(marker, ""));
    let format = Vendor::named(vendor).unwrap().dialect.format;
    let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(&body).unwrap();
    let list = fields[validate::rules(format).list].get();
    let kept = list.trim_end_matches([']', '}', '"']);
    let end = list.as_ptr() as usize - body.as_ptr() as usize + kept.len();
    body[..end].to_owned()
}

const MARKERS: [&str; 2] =
    [r#","cache_control":{"type":"ephemeral"}"#, r#","prompt_cache_breakpoint":{"mode":"explicit"}"#];

/// Holds that each conversation is the beginning of the next one.
#[track_caller]
fn check_prefixes(vendor: &str, requests: &[RecordedRequest]) {
    let talks: Vec<String> = requests.iter().map(|request| conversation(vendor, request)).collect();
    for pair in talks.windows(2) {
        assert!(pair[1].starts_with(&pair[0]), "{vendor}:\n{}\n{}", pair[0], pair[1]);
    }
}

/// Holds that a later request to the provider of these answers has all of them that must go back.
#[track_caller]
fn check_kept(vendor: &str, answers: &[Said], request: &RecordedRequest) {
    let body = body(request);
    for said in answers {
        for kept in Voice::of(vendor).kept(said) {
            assert!(body.contains(&kept), "{vendor}, answer {}: {kept} is not in {body}", said.number);
        }
    }
}

/// Whether a request asks for a stream.
fn is_streamed(request: &RecordedRequest) -> bool {
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["stream"] == true || request.path.ends_with(":streamGenerateContent?alt=sse")
}
