//! Every wording in which providers refuse a prompt as too long, over a real wire (requirement P10).

use std::sync::Arc;

use agent_core::{ModelErrorKind, ModelProfile, TerminalReason};
use agent_harness::{Harness, HarnessConfig, RetryPolicy};
use agent_providers::{ApiKey, Catalog, HttpConfig, HttpModel, Vendor};
use agent_store::MemoryStore;
use agent_testkit::{Fault, Pick, Reply, ScriptedModel, SimOptions, SimProvider, Source, Wording};
use agent_tools::{Access, Call, OutputCap, PermissionMode, ToolConfig, ToolSet};

use super::{lines, told};
use crate::support::{Half, id, watch};

fn block<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

/// What a turn with such a refusal comes to.
struct Came {
    reason: TerminalReason,
    told: Vec<String>,
    /// Requests to the provider, the first turn's included, and to the model of summaries.
    requests: (usize, usize),
    /// Bytes of the refused request and of the last one.
    sizes: (usize, usize),
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    #[expect(dead_code, reason = "tells the calls apart")]
    n: u32,
}

/// A tool whose results have about 3,000 tokens.
fn look() -> ToolSet {
    let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, ..OutputCap::default() };
    let look = ToolConfig::new("look", "Looks.", Access::Read, |_: Call, _: Look| async { Ok(lines(3_000)) });
    ToolSet::builder().with(look.cap(cap)).freeze().unwrap()
}

/// A service, and how the conversation with it is made smaller.
#[derive(Clone, Copy)]
struct Case {
    vendor: &'static str,
    model: &'static str,
    /// Steps of the first turn.
    looks: usize,
    tier: &'static str,
    /// Summaries that are asked for.
    summaries: usize,
}

/// Two turns, of which the second is refused so often in these words.
async fn turn(case: Case, wording: Wording, times: usize) -> Came {
    let Case { vendor, model, looks, .. } = case;
    let calls = (0..looks).map(|n| Reply::tool("look", format!(r#"{{"n":{n}}}"#)));
    let last = Reply::text("done").fault_times(times, &Fault::Overflow { wording });
    let script: Vec<Reply> = calls.chain([Reply::text("ok"), last]).collect();
    let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
    let sim = SimProvider::start_with(Source::Script(script.into()), options).unwrap();
    let name = Vendor::named(vendor).unwrap().dialect.provider;
    let window = |profile| ModelProfile { context_window: 60_000, max_output: 8_000, ..profile };
    let own = HttpModel::new(HttpConfig {
        vendor: Vendor::named(vendor).unwrap(),
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: model.into(),
        profile: Some(window(Catalog::builtin().profile(&name, model))),
        ..HttpConfig::default()
    });
    let profile = window(ModelProfile::conservative("scripted", "sum"));
    let summary = ScriptedModel::new(vec![Reply::text("They spoke."); 3]).with_profile(profile);
    let mut config = HarnessConfig::new(Arc::new(own.unwrap()), Arc::new(MemoryStore::new()));
    config.summary_model = Some(Arc::new(summary.clone()));
    config.retry = RetryPolicy { max_attempts: 4, ..RetryPolicy::default() };
    config.jitter = Arc::new(Half);
    config.tools = look();
    config.permissions.mode = PermissionMode::Bypass;
    let session = Harness::new(config).session(id());
    let (_, first) = watch(session.send("look").await.unwrap()).await;
    assert_eq!(first.reason, TerminalReason::Done, "{:?}", first.error);
    let (events, end) = watch(session.send("go on").await.unwrap()).await;
    let bodies: Vec<usize> = sim.requests().iter().map(|request| request.body.len()).collect();
    Came {
        reason: end.reason,
        told: told(&events),
        requests: (bodies.len(), summary.requests().len()),
        sizes: (bodies[looks + 1], bodies[bodies.len() - 1]),
    }
}

/// Holds of one service, and names every wording for which it does not.
#[track_caller]
fn check(case: Case) {
    let Case { vendor, looks, tier, summaries, .. } = case;
    let mended =
        [format!("requested {tier}"), format!("completed {tier}"), "retrying context_overflow".into()];
    let overflow = TerminalReason::Error(ModelErrorKind::ContextOverflow);
    let wordings: Vec<Wording> = Wording::all().collect();
    assert!(wordings.len() >= 25, "{}", wordings.len());
    let mut wrong = Vec::new();
    for wording in wordings {
        for (times, reason) in [(1, &TerminalReason::Done), (2, &overflow)] {
            let came = block(turn(case, wording, times));
            let is_as_told = came.reason == *reason && came.told == mended;
            // The refused request is sent once more, whatever comes of it.
            let is_once = came.requests == (looks + 3, summaries) && came.sizes.1 < came.sizes.0 * 2 / 3;
            if !(is_as_told && is_once) {
                let Came { reason, told, requests, sizes } = came;
                wrong.push(format!("{wording:?}, {times}: {reason:?} {told:?} {requests:?} {sizes:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{vendor}:\n{}", wrong.join("\n"));
}

#[test]
fn each_wording_on_messages() {
    check(Case { vendor: "anthropic", model: "claude-opus-5", looks: 3, tier: "summary", summaries: 1 });
}

#[test]
fn each_wording_on_chat_completions() {
    check(Case { vendor: "openai-chat", model: "gpt-6-sol", looks: 6, tier: "clear_results", summaries: 0 });
}

#[test]
fn each_wording_on_responses() {
    check(Case { vendor: "openai", model: "gpt-6-sol", looks: 6, tier: "clear_results", summaries: 0 });
}
