//! One result larger than the window, and a summariser that fails in five ways, over real HTTP (case P04).

use std::sync::Arc;
use std::time::Duration;

use agent_core::{Entry, History, ModelProfile, Rewrite, TerminalReason, ToolOutput};
use agent_harness::{AskPolicy, Harness, HarnessConfig};
use agent_providers::{ApiKey, HttpConfig, HttpModel, Vendor};
use agent_store::{MemoryStore, Store};
use agent_testkit::{Fault, Pick, Reply, SimOptions, SimProvider, Source, Wording};
use agent_tools::{Access, OutputCap, ToolConfig, ToolSet};

use super::{lines, told};
use crate::support::{Half, id, watch};

/// Tokens of the window.
const WINDOW: u32 = 200_000;
/// Tokens of the result.
const RESULT: usize = 210_000;

/// A service that refuses what does not fit into the window.
fn service(replies: Vec<Reply>) -> SimProvider {
    let options =
        SimOptions { pick: Pick::InOrder, context_window: Some(WINDOW.into()), ..SimOptions::default() };
    SimProvider::start_with(Source::Script(replies.into()), options).unwrap()
}

fn model(sim: &SimProvider, name: &str) -> Arc<HttpModel> {
    let vendor = Vendor::named("anthropic").unwrap();
    let profile = ModelProfile { context_window: WINDOW, max_output: 20_000, ..vendor.profile(name) };
    let config = HttpConfig {
        vendor,
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: name.into(),
        profile: Some(profile),
        ..HttpConfig::default()
    };
    Arc::new(HttpModel::new(config).unwrap())
}

/// What a turn with such a result comes to.
struct Came {
    told: Vec<String>,
    /// The questions that the summariser got.
    asked: Vec<String>,
    /// The request behind the compaction.
    last: String,
    history: History,
}

/// A turn with one large result, whose summariser answers so.
async fn turn(answer: Reply, ask: AskPolicy) -> Came {
    let own = service(vec![Reply::tool("fat", "{}"), Reply::text("read it")]);
    let apart = service(vec![answer; 4]);
    let fat = ToolConfig::new("fat", "Says much.", Access::Read, |_, _: super::Nothing| async {
        Ok(lines(RESULT))
    });
    let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, ..OutputCap::default() };
    let store = Arc::new(MemoryStore::new());
    let mut config = HarnessConfig::new(model(&own, "claude-opus-5"), store.clone());
    config.summary_model = Some(model(&apart, "claude-haiku-4-5"));
    config.tools = ToolSet::builder().with(fat.cap(cap)).freeze().unwrap();
    config.jitter = Arc::new(Half);
    config.ask = ask;
    let (events, end) = watch(Harness::new(config).session(id()).send("go").await.unwrap()).await;
    assert_eq!((end.reason, end.text.as_str()), (TerminalReason::Done, "read it"), "{:?}", end.error);
    assert!(own.refusals().is_empty(), "{:?}", own.refusals());
    let text = |body: &[u8]| String::from_utf8(body.to_vec()).unwrap();
    let record = store.load(&id()).await.unwrap().unwrap();
    Came {
        told: told(&events),
        asked: apart.requests().iter().map(|request| text(&request.body)).collect(),
        last: text(&own.requests().pop().unwrap().body),
        history: History::load(&record.entries).unwrap().0,
    }
}

/// Holds of every answer: the question fits, what was said stays, and the next step runs.
fn check_turn(came: &Came, asked: usize, what: &str) {
    assert_eq!(came.asked.len(), asked, "{what}: {:?}", came.told);
    for body in &came.asked {
        assert!(body.len() / 4 < 180_000 && !body.contains(r#""tools":"#), "{what}: {}", body.len());
    }
    assert!(came.last.len() / 4 < 10_000, "{what}: {}", came.last.len());
    let steps = came.history.entries().iter().filter_map(|entry| match entry {
        Entry::Step(step) => step.pairs().next().map(|(_, result)| &result.output),
        Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
    });
    let outputs: Vec<&ToolOutput> = steps.collect();
    assert!(outputs.len() == 1 && outputs[0].plain().len() / 4 > RESULT - 100, "{what}: what was said stays");
}

/// An answer that is no summary: the result is clipped without a model.
async fn check_failing(answer: Reply, ask: AskPolicy, asked: usize, failure: &str) {
    let came = turn(answer, ask).await;
    check_turn(&came, asked, failure);
    let failed = format!("failed summary: {failure}");
    let told: Vec<&str> = came.told.iter().map(String::as_str).collect();
    let [level, requested, why, .., shrunk, calm] = told[..] else { panic!("{told:?}") };
    assert_eq!((level, requested), ("level blocked", "requested summary"), "{told:?}");
    assert!(why.starts_with(&failed), "{why}");
    assert_eq!((shrunk, calm), ("completed shrink_results", "level calm"), "{told:?}");
    let summed =
        came.history.entries().iter().any(|it| matches!(it, Entry::Boundary(Rewrite::Summary { .. })));
    assert!(!summed && came.last.contains(" bytes removed; whole: blob:"), "{failure}");
}

#[tokio::test]
async fn the_question_is_too_long() {
    let overflow = Fault::Overflow { wording: Wording::default() };
    let answer = Reply::text("never").fault_times(4, &overflow);
    check_failing(answer, AskPolicy::default(), 3, "context_overflow: the provider answered 400").await;
}

#[tokio::test]
async fn the_answer_is_a_call() {
    let why = "the model called fat instead of answering";
    check_failing(Reply::tool("fat", "{}"), AskPolicy::default(), 1, why).await;
}

#[tokio::test]
async fn the_answer_is_blank() {
    let why = "the model answered without a word";
    check_failing(Reply::text(" \n "), AskPolicy::default(), 1, why).await;
}

#[tokio::test]
async fn the_answer_never_comes() {
    let ask = AskPolicy { deadline: Duration::from_secs(2), attempts: 1 };
    let answer = Reply::text("never").fault(Fault::Stall { after: 1 });
    check_failing(answer, ask, 1, "no answer came within 2000 ms").await;
}

#[tokio::test]
async fn the_answer_is_longer_than_its_room() {
    let answer = Reply::text(format!("## Done\n{}", lines(30_000)));
    let came = turn(answer, AskPolicy::default()).await;
    check_turn(&came, 1, "too much");
    let expect = ["level blocked", "requested summary", "completed summary", "level calm"];
    assert_eq!(came.told, expect);
}
