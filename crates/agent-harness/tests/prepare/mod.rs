//! Steps are prepared: stages, sources of context, the preparation of a turn, compaction and what it asks of models.

mod ask;
mod cached;
mod call;
mod compact;
mod events;
mod notes;
mod offload;
mod overflow;
mod parked;
mod shared;
mod siblings;
mod stages;
// Cases end to end.
mod carried;
mod larger;
mod persist;
mod recovery;
mod skills;
mod window;
mod wording;

use std::sync::{Arc, Mutex};

use agent_core::{EntryId, Event, EventBody, ModelProfile, Rewrite, TerminalReason, Text};
use agent_harness::{Harness, HarnessConfig, TurnEnd};
use agent_prepare::{
    Ask, Cascade, Cause, Overrides, Pipeline, Stage, StageCx, Tier, TierCx, TierVerdict, Verdict, Way,
};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::ToolSet;

use crate::support::{Agent, Effects, Points, id, watch};

/// A small window: compaction begins above 2,764 tokens, and above 3,026 nothing is sent.
fn small() -> ModelProfile {
    ModelProfile {
        context_window: 4_096,
        max_output: 4_096,
        ..ModelProfile::conservative("scripted", "small")
    }
}

fn model(replies: Vec<Reply>) -> ScriptedModel {
    ScriptedModel::new(replies).by_history().with_profile(small())
}

/// An agent with other parts.
fn agent(model: ScriptedModel, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    taken_up(model, Points::default(), change)
}

/// The same on a store that has sessions.
fn taken_up(model: ScriptedModel, store: Points, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    let agent = Agent::with(model, store, Effects::default());
    let mut config = agent.harness.config().clone();
    change(&mut config);
    Agent { harness: Harness::new(config), ..agent }
}

/// An agent without tools that compacts with these tiers only.
fn compacting(model: ScriptedModel, cascade: Cascade, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    agent(model, |config| {
        config.tools = ToolSet::default();
        config.pipeline = Pipeline::new(cascade);
        change(config);
    })
}

/// The input of tools that need none.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// So many tokens of words.
fn words(tokens: usize) -> String {
    "word".repeat(tokens)
}

/// The same in lines that no cap cuts.
fn lines(tokens: usize) -> String {
    format!("{}end\n", "word".repeat(19)).repeat(tokens / 20)
}

/// A stage of a closure, with what it is called.
struct Does<F>(&'static str, F);

impl<F> std::fmt::Debug for Does<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl<F: Fn(&StageCx<'_>) -> Verdict + Send + Sync> Stage for Does<F> {
    fn name(&self) -> &'static str {
        self.0
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        (self.1)(cx)
    }
}

/// A pipeline of one stage that changes this.
fn changing(change: impl Fn(&StageCx<'_>) -> Overrides + Send + Sync + 'static) -> Pipeline {
    Pipeline::standard().then(Does("test", move |cx: &StageCx<'_>| Verdict::Pass(change(cx))))
}

/// Asks for a summary of everything, and says from why it was called.
#[derive(Debug, Clone)]
struct Sums {
    way: fn() -> Way,
    causes: Arc<Mutex<Vec<Cause>>>,
}

impl Sums {
    fn apart() -> Self {
        let way = || Way::Apart { system: text("Sum up."), words: text("All that was said.") };
        Self { way, causes: Arc::default() }
    }

    fn on_prefix() -> Self {
        Self { way: || Way::OnPrefix { words: text("Sum up what was said.") }, causes: Arc::default() }
    }
}

impl Tier for Sums {
    fn name(&self) -> &'static str {
        "sums"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        match cx.answer {
            None => {
                self.causes.lock().unwrap().push(cx.cause);
                TierVerdict::Ask(Ask { way: (self.way)(), max_output: 300 })
            }
            Some(Ok(text)) => {
                let kept_from = EntryId::at(cx.of.history.len());
                TierVerdict::Rewrite(Rewrite::Summary {
                    text: text.clone(),
                    kept_from,
                    strip_reasoning: false,
                })
            }
            Some(Err(failure)) => TierVerdict::Failed(failure.to_string()),
        }
    }
}

fn text(words: &str) -> Text {
    Text::new(words).unwrap()
}

/// The durable events that are about the context, a word each.
#[expect(clippy::wildcard_enum_match_arm, reason = "a script of some events")]
fn told(events: &[Event]) -> Vec<String> {
    let lines = events.iter().filter_map(|event| match &event.body {
        EventBody::CompactionRequested { tier, .. } => Some(format!("requested {tier}")),
        EventBody::CompactionCompleted { tier, before, after, .. } => {
            assert!(after < before, "{after} of {before}");
            Some(format!("completed {tier}"))
        }
        EventBody::CompactionFailed { tier, message } => Some(format!("failed {tier}: {message}")),
        EventBody::ContextLevel { level, .. } => Some(format!("level {level}")),
        EventBody::StepRetrying { kind, .. } => Some(format!("retrying {}", kind.as_str())),
        EventBody::Tombstone { .. } => Some("tombstone".into()),
        _ => None,
    });
    lines.collect()
}

fn diagnosed(events: &[Event]) -> Vec<String> {
    let lines = events.iter().filter_map(|event| {
        let EventBody::RequestDiagnostic(diagnostic) = &event.body else { return None };
        Some(format!("{}: {}", diagnostic.what, diagnostic.why))
    });
    lines.collect()
}

fn bodies(model: &ScriptedModel) -> Vec<String> {
    model.requests().iter().map(|body| String::from_utf8(body.to_vec()).unwrap()).collect()
}

async fn say(agent: &Agent, words: &str) -> (Vec<Event>, TurnEnd) {
    watch(agent.harness.session(id()).send(words).await.unwrap()).await
}

#[track_caller]
fn is_done(end: &TurnEnd) {
    assert_eq!(end.reason, TerminalReason::Done, "{:?}", end.error);
}
