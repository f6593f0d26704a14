//! What the program shares reaches the calls, and what a step cannot be asked for is told.

use std::sync::Arc;

use agent_core::{ModelProfile, RequestSettings, Thinking, ToolChoice};
use agent_harness::{ContextCx, ContextSource, HarnessConfig, SourceError};
use agent_prepare::{Choose, Context, Overrides, Pipeline};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, Call, ToolConfig, ToolSet};
use async_trait::async_trait;

use super::{Nothing, agent, bodies, changing, diagnosed, is_done, say, taken_up};
use crate::support::{Points, block, crash_after, id, talk, watch};

fn model(forced: bool, replies: Vec<Reply>) -> ScriptedModel {
    let profile = ModelProfile {
        forced_tool_choice: forced,
        forced_while_thinking: false,
        ..ModelProfile::conservative("scripted", "pilot")
    };
    ScriptedModel::new(replies).by_history().with_profile(profile)
}

#[test]
fn what_cannot_be_asked_is_told_once_a_loaded_session() {
    block(async {
        let script = vec![Reply::tool("look", r#"{"what":"a"}"#), Reply::text("ok"), Reply::text("ok")];
        let agent = agent(model(false, script), |config| {
            config.pipeline = Pipeline::standard().then(Choose::from_step(0, ToolChoice::Required));
        });
        let session = agent.session();
        let (events, end) = watch(session.send("go").await.unwrap()).await;
        is_done(&end);
        assert_eq!(
            diagnosed(&events),
            ["tool_choice: pilot cannot be forced to call a tool; it is asked to in words"],
            "two steps, one event"
        );
        let bodies = bodies(&agent.model);
        assert!(
            bodies.len() == 2 && bodies.iter().all(|body| body.contains("Call a tool now")),
            "{bodies:?}"
        );
        let (events, end) = watch(session.send("on").await.unwrap()).await;
        is_done(&end);
        assert_eq!(diagnosed(&events), [""; 0], "it was told already");
    });
}

#[test]
fn the_settings_of_the_session_decide_whether_a_tool_is_forced() {
    /// The session's settings, then what a stage changes of them.
    fn check(session: Option<Thinking>, step: Option<Thinking>, is_forced: bool) {
        block(async {
            let settings = |thinking| RequestSettings { thinking, ..RequestSettings::default() };
            let agent = agent(model(true, vec![Reply::text("ok")]), |config| {
                config.settings = settings(session);
                config.pipeline = changing(move |_| Overrides {
                    settings: settings(step),
                    tool_choice: Some(ToolChoice::Required),
                    ..Overrides::default()
                });
            });
            let (events, _) = say(&agent, "go").await;
            let body = bodies(&agent.model).remove(0);
            let choice = if is_forced { r#""tool_choice":"required""# } else { r#""tool_choice":"auto""# };
            assert!(body.contains(choice), "{session:?} {step:?} {body}");
            assert_eq!(body.contains("Call a tool now"), !is_forced, "{body}");
            let told =
                "tool_choice: pilot cannot be forced to call a tool while it thinks; it is asked to in words";
            let expect: &[&str] = if is_forced { &[] } else { &[told] };
            assert_eq!(diagnosed(&events), expect);
        });
    }
    check(None, None, true);
    check(Some(Thinking::Adaptive), None, false);
    check(Some(Thinking::Budget(1_024)), None, false);
    check(Some(Thinking::Disabled), None, true);
    check(Some(Thinking::Adaptive), Some(Thinking::Disabled), true);
    check(None, Some(Thinking::Adaptive), false);
}

#[derive(Debug)]
struct Tide(&'static str);

#[derive(Debug)]
struct Watch(u32);

/// Looks the tide up anew each time.
#[derive(Debug)]
struct Gauge(&'static str);

#[async_trait]
impl ContextSource for Gauge {
    async fn look_up(&self, _cx: &ContextCx<'_>) -> Result<Context, SourceError> {
        tokio::task::yield_now().await;
        match self.0 {
            "" => Err(SourceError::new("the tide", "the gauge is frozen")),
            tide => Ok(Context::default().with(Tide(tide))),
        }
    }
}

/// A tool that says what it finds in the context.
fn reads() -> ToolSet {
    let reads = ToolConfig::new("reads", "Reads.", Access::Read, |call: Call, _: Nothing| async move {
        tokio::task::yield_now().await;
        let context = &call.cx.context;
        Ok(format!("{:?} {:?}", context.get::<Tide>().map(|it| it.0), context.get::<Watch>().map(|it| it.0)))
    });
    ToolSet::builder().with(reads).freeze().unwrap()
}

fn with_tide(config: &mut HarnessConfig, tide: &'static str) {
    config.tools = reads();
    config.contexts = vec![Arc::new(Gauge(tide))];
    config.pipeline = changing(|cx| Overrides {
        context: Context::default().with(Watch(cx.of.step.number())),
        ..Overrides::default()
    });
}

fn calls() -> ScriptedModel {
    let call = || Reply::tool("reads", "{}");
    ScriptedModel::new(vec![call(), call(), Reply::text("ok")]).by_history()
}

#[test]
fn the_shared_context_reaches_the_calls_of_its_step() {
    block(async {
        let agent = agent(calls(), |config| with_tide(config, "low"));
        is_done(&say(&agent, "go").await.1);
        let said = talk(&agent.history().await);
        assert!(said.contains(r#"reads -> Some("low") Some(0)"#), "{said}");
        assert!(said.contains(r#"reads -> Some("low") Some(1)"#), "{said}");
    });
}

/// Breaks a run off after so many polls; the store and whether a response waits for its calls, or nothing at the end.
async fn broken_off(polls: usize) -> Option<(Points, bool)> {
    let first = agent(calls(), |config| with_tide(config, "low"));
    if crash_after(first.session().send("go").await.unwrap(), polls).await.is_some() {
        return None;
    }
    let record = first.store.load(&id()).await.unwrap();
    let has_calls = record.is_some_and(|record| record.journal.len() == 1);
    Some((first.store.clone(), has_calls))
}

#[test]
fn after_a_crash_the_calls_see_what_is_found_then() {
    let mut taken = 0;
    block(async {
        for polls in 0.. {
            let Some((store, has_calls)) = broken_off(polls).await else { break };
            if !has_calls {
                continue;
            }
            taken += 1;
            // Without what they read, they do not run, and the turn stays open.
            let blind = taken_up(calls(), store.clone(), |config| with_tide(config, ""));
            let error = blind.session().resume().await.unwrap().finish().await.unwrap_err();
            assert!(error.to_string().contains("the gauge is frozen"), "{error}");
            drop(blind);
            let next = taken_up(calls(), store, |config| with_tide(config, "high"));
            is_done(&watch(next.session().resume().await.unwrap()).await.1);
            let said = talk(&next.history().await);
            assert!(said.contains(r#"reads -> Some("high")"#), "{polls}: {said}");
        }
    });
    assert!(taken > 0, "the run was broken with its response journaled");
}
