//! A turn is put together once (requirement P18).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use agent_core::{SystemBlock, TerminalReason};
use agent_harness::{CallChanges, CallCx, PrepareCall, SourceError};
use agent_prepare::{Cascade, Overrides, Pipeline};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, ToolConfig, ToolSet};
use agent_turn::step_count;
use async_trait::async_trait;

use super::{Sums, agent, bodies, changing, diagnosed, is_done, say, small, taken_up};
use crate::support::{Points, block, crash_after, id, watch};

type Make = dyn Fn() -> Result<CallChanges, SourceError> + Send + Sync;

/// Counts how often it was asked.
struct Hook {
    asked: Arc<AtomicU32>,
    make: Box<Make>,
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

#[async_trait]
impl PrepareCall for Hook {
    async fn prepare_call(&self, _cx: &CallCx<'_>) -> Result<CallChanges, SourceError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        (self.make)()
    }
}

fn hook(
    make: impl Fn() -> Result<CallChanges, SourceError> + Send + Sync + 'static,
) -> (Arc<Hook>, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    (Arc::new(Hook { asked: asked.clone(), make: Box::new(make) }), asked)
}

fn tools() -> ToolSet {
    let peek = ToolConfig::new("peek", "Peeks.", Access::Read, |_, _: super::Nothing| async {
        Ok("peeked".to_owned())
    });
    ToolSet::builder().with(peek).freeze().unwrap()
}

fn script() -> Vec<Reply> {
    vec![Reply::tool("peek", "{}"), Reply::tool("peek", "{}"), Reply::tool("peek", "{}"), Reply::text("ok")]
}

#[test]
fn all_of_a_turn_is_replaced_once_and_declared() {
    block(async {
        let other = ScriptedModel::new(script()).by_history().with_profile(small());
        let given = other.clone();
        let (hook, asked) = hook(move || {
            Ok(CallChanges {
                model: Some(Arc::new(given.clone())),
                tools: Some(tools()),
                stop: Some(Arc::new(step_count(3))),
                system: SystemBlock::new("For this turn.").map(|block| vec![block]),
                pipeline: Some(changing(|_| Overrides::default().remind("From the other pipeline."))),
            })
        });
        let agent = agent(ScriptedModel::new(vec![]), |config| config.prepare_call = Some(hook));
        let session = agent.session();
        let (events, end) = watch(session.send("go").await.unwrap()).await;
        assert_eq!((end.reason, end.steps), (TerminalReason::MaxSteps, 3));
        assert_eq!(asked.load(Ordering::SeqCst), 1, "once for three steps");
        assert!(agent.model.requests().is_empty());
        for body in bodies(&other) {
            for has in ["For this turn.", r#""name":"peek""#, "From the other pipeline."] {
                assert!(body.contains(has), "{has} in {body}");
            }
            assert!(!body.contains(r#""name":"look""#));
        }
        let declared = diagnosed(&events);
        for what in ["model", "tools", "system"] {
            assert!(
                declared.iter().any(|why| why.starts_with(&format!("{what}: `prepare_call` gave"))),
                "{declared:?}"
            );
        }
        let (events, _) = watch(session.send("once more").await.unwrap()).await;
        assert_eq!(
            (asked.load(Ordering::SeqCst), diagnosed(&events).len()),
            (2, 0),
            "told once a loaded session"
        );
    });
}

#[test]
fn a_turn_that_is_taken_up_is_put_together_again() {
    for polls in 1..40 {
        block(async {
            let change = || Ok(CallChanges { tools: Some(tools()), ..CallChanges::default() });
            let model =
                || ScriptedModel::new(vec![Reply::tool("peek", "{}"), Reply::text("ok")]).by_history();
            let first =
                taken_up(model(), Points::default(), |config| config.prepare_call = Some(hook(change).0));
            let run = first.session().send("go").await.unwrap();
            if crash_after(run, polls).await.is_some() {
                return;
            }
            let store = first.store.clone();
            drop(first);
            let is_open = store.load(&id()).await.unwrap().is_some_and(|it| it.checkpoint.turn.is_some());
            if !is_open {
                return;
            }
            let (hook, asked) = hook(change);
            let next = taken_up(model(), store, |config| config.prepare_call = Some(hook));
            is_done(&say(&next, "go").await.1);
            assert_eq!(asked.load(Ordering::SeqCst), 1);
            let said = crate::support::talk(&next.history().await);
            assert!(said.contains("peek -> peeked"), "after {polls} polls: {said}");
        });
    }
}

#[test]
fn a_hook_that_fails_fails_the_turn() {
    block(async {
        let (hook, _) = hook(|| Err(SourceError::new("the plan of the customer", "no answer")));
        let agent = agent(ScriptedModel::new(vec![Reply::text("never")]), |config| {
            config.prepare_call = Some(hook);
            config.pipeline = Pipeline::standard();
        });
        let (_, end) = say(&agent, "go").await;
        assert!(end.error.unwrap().message.contains("the plan of the customer cannot be read"));
        assert!(agent.model.requests().is_empty());
    });
}

#[test]
fn a_compaction_by_hand_goes_by_the_parts_of_the_agent() {
    block(async {
        let wordy = ToolConfig::new("wordy", super::words(900), Access::Read, |_, _: super::Nothing| async {
            Ok(String::new())
        });
        let wordy = ToolSet::builder().with(wordy).freeze().unwrap();
        let given = super::model(vec![Reply::text("ok")]);
        let summary = ScriptedModel::new(vec![Reply::text("Sum.")]).with_profile(small());
        let (other, apart) = (given.clone(), summary.clone());
        let (hook, asked) = hook(move || {
            Ok(CallChanges {
                model: Some(Arc::new(other.clone())),
                tools: Some(wordy.clone()),
                pipeline: Some(Pipeline::new(Cascade::new())),
                ..CallChanges::default()
            })
        });
        let agent =
            super::compacting(super::model(vec![]), Cascade::new().then(Sums::on_prefix()), |config| {
                config.prepare_call = Some(hook.clone());
                config.model = Arc::new(summary);
            });
        let session = agent.session();
        is_done(&watch(session.send(super::words(1_500)).await.unwrap()).await.1);
        let stored = agent.harness.session(id()).context().await.unwrap();
        let done = session.compact().await.unwrap();
        let tiers: Vec<&str> = done.tiers.iter().map(|tier| tier.tier.as_str()).collect();
        assert_eq!((tiers, asked.load(Ordering::SeqCst)), (vec!["sums"], 1), "not asked again");
        assert_eq!((given.requests().len(), apart.requests().len()), (1, 1), "the agent's model summed up");
        assert!(bodies(&apart)[0].contains(r#""tools":[]"#), "{}", bodies(&apart)[0]);
        // However the session came into memory, the same is measured.
        assert_eq!(done.before.fixed, stored.fixed, "the tools of a turn that is over do not count");
        assert_eq!(done.before.fixed, 0);
    });
}
