//! What goes over the wire, whole and step by step, as snapshots (requirement V4).

use std::path::Path;
use std::sync::Arc;

use agent_core::TerminalReason;
use agent_harness::{Harness, HarnessConfig};
use agent_prompt::{Fragment, Layer, Session, Static, Value};
use agent_providers::{ApiKey, HttpConfig, HttpModel, Vendor};
use agent_store::MemoryStore;
use agent_testkit::{RecordedRequest, Redactions, Reply, SimProvider, render_prefixes, render_request};
use agent_tools::{Access, ToolConfig, ToolSet};

use crate::support::{id, watch};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct What {
    /// What to look at.
    what: String,
}

/// Two turns of a gardener who looks twice at once, on the wire of a vendor; a workspace lies in `dir`.
async fn two_turns(vendor: &str, model: &str, dir: &Path) -> Vec<RecordedRequest> {
    let sim = SimProvider::start(vec![
        Reply::text("I look at both beds.")
            .call("look", r#"{"what": "bed 1"}"#)
            .call("look", r#"{"what":"bed 2","depth":12345678901234567890}"#),
        Reply::text("Bed 2 is dry since 2026-11-28."),
        Reply::text("Water it \"slowly\"."),
    ])
    .unwrap();
    let model = HttpModel::new(HttpConfig {
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: model.into(),
        vendor: Vendor::named(vendor).unwrap(),
        ..HttpConfig::default()
    });
    let place = dir.to_owned();
    let look = ToolConfig::new("look", "Looks at a bed.", Access::Read, move |_, input: What| {
        let seen = format!("{}: see {}", input.what, place.join("beds.txt").display());
        async move { Ok(seen) }
    });
    let mut config = HarnessConfig::new(Arc::new(model.unwrap()), Arc::new(MemoryStore::new()));
    config.tools = ToolSet::builder().with(look).freeze().unwrap();
    let rules = Value::declared(RULES.repeat(150), "long, and the same in every run");
    config.prompt.add(Fragment::<Static>::new(Layer::Session, "rules", rules).unwrap());
    let place = Value::session(format!("You work in {}.", dir.display()));
    config.prompt.add(Fragment::<Session>::new(Layer::Session, "place", place).unwrap());
    let session = Harness::new(config).session(id());
    for words in ["Which bed is dry?", "What do I do?"] {
        let (_, end) = watch(session.send(words).await.unwrap()).await;
        assert_eq!(end.reason, TerminalReason::Done, "{:?}", end.error);
    }
    assert!(sim.refusals().is_empty(), "{:?}", sim.refusals());
    sim.requests()
}

const RULES: &str = "Look before you speak of a plant. ";

/// Folders differ from run to run, and with them nothing that is shown may.
fn redactions(dir: &Path) -> Redactions {
    Redactions::default().path(dir, "[dir]")
}

#[tokio::test]
async fn a_whole_request() {
    let dir = tempfile::tempdir().unwrap();
    let requests = two_turns("anthropic", "claude-opus-5-5", dir.path()).await;
    assert_eq!(requests.len(), 3);
    insta::assert_snapshot!("request_3", render_request(&requests[2].body, &redactions(dir.path())).unwrap());
}

#[tokio::test]
async fn no_step_moves_what_was_sent() {
    for (vendor, model) in
        [("anthropic", "claude-opus-5-5"), ("openai", "gpt-6-sol"), ("openai-chat", "gpt-6-sol")]
    {
        let dir = tempfile::tempdir().unwrap();
        let requests = two_turns(vendor, model, dir.path()).await;
        let shown = render_prefixes(&requests, &redactions(dir.path())).unwrap();
        insta::assert_snapshot!(format!("prefixes_{vendor}"), shown);
    }
}

#[tokio::test]
async fn the_folder_of_a_run_moves_no_number() {
    let (short, long) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let long = long.path().join("a/much/longer/path/than/the/other");
    let shown = async |dir: &Path| {
        let requests = two_turns("anthropic", "claude-opus-5-5", dir).await;
        render_prefixes(&requests, &redactions(dir)).unwrap()
    };
    assert_eq!(shown(short.path()).await, shown(&long).await);
}
