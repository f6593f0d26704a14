//! What stages change reaches the request, the tools and the history, and nothing else.

use std::sync::Arc;

use agent_core::{
    CacheProfile, Entry, EventBody, ModelProfile, Note, NoteKind, RequestSettings, SystemBlock,
    TerminalReason, ToolChoice, Usage,
};
use agent_harness::{ContextCx, ContextSource, RetryPolicy, SourceError};
use agent_prepare::{Context, Overrides, Pipeline, StageCx, Synthesised, Verdict};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use async_trait::async_trait;

use super::{Does, agent, bodies, changing, is_done, say, small, taken_up, text};
use crate::support::{Agent, Points, block, crash_after, id};

/// The first request of an agent whose step is changed so.
fn first_request(change: fn(&StageCx<'_>) -> Overrides) -> String {
    block(async {
        let profile =
            ModelProfile { forced_tool_choice: true, ..ModelProfile::conservative("scripted", "pilot") };
        let model = ScriptedModel::new(vec![Reply::text("ok")]).with_profile(profile);
        let agent = agent(model, |config| config.pipeline = changing(change));
        is_done(&say(&agent, "go").await.1);
        bodies(&agent.model).remove(0)
    })
}

#[test]
fn each_field_reaches_the_request() {
    let check = |change: fn(&StageCx<'_>) -> Overrides, has: &str, lacks: &str| {
        let body = first_request(change);
        assert!(body.contains(has), "{has} in {body}");
        assert!(lacks.is_empty() || !body.contains(lacks), "{lacks} in {body}");
    };
    check(|_| Overrides::default(), r#""tool_choice":"auto""#, "");
    check(
        |_| Overrides { tool_choice: Some(ToolChoice::Tool("look".into())), ..Overrides::default() },
        r#""tool_choice":{"tool":"look"}"#,
        "",
    );
    check(
        |_| Overrides {
            system: SystemBlock::new("You are new.").map(|block| vec![block]),
            ..Overrides::default()
        },
        r#""system":[{"type":"text","text":"You are new."}]"#,
        "",
    );
    let settings = |_: &StageCx<'_>| Overrides {
        settings: RequestSettings { max_output: Some(77), ..RequestSettings::default() },
        ..Overrides::default()
    };
    check(settings, r#""max_output":77"#, "");
    check(|_| Overrides::default().remind("Mind the gap."), "Mind the gap.", "");
    check(|_| active_of(false), r#""name":"boom""#, "");
    check(|_| active_of(true), r#""name":"look""#, r#""name":"boom""#);
}

fn active_of(on_wire: bool) -> Overrides {
    Overrides {
        active_tools: Some(vec!["put".into(), "look".into()]),
        narrow_on_wire: Some(on_wire),
        ..Overrides::default()
    }
}

#[test]
fn words_for_a_step_go_and_notes_stay() {
    block(async {
        let script = vec![Reply::tool("look", r#"{"what":"a"}"#), Reply::text("ok")];
        let note = |words: &str| Note { kind: NoteKind::Reminder, text: text(words) };
        let agent = agent(ScriptedModel::new(script).by_history(), |config| {
            config.pipeline = changing(move |cx| match cx.of.step.number() {
                0 => Overrides::default().remind("only now").note(note("for good")),
                _ => Overrides::default(),
            });
        });
        is_done(&say(&agent, "go").await.1);
        let bodies = bodies(&agent.model);
        assert_eq!(bodies.len(), 2);
        assert!(bodies[0].contains("only now") && bodies[0].contains("for good"));
        assert!(!bodies[1].contains("only now") && bodies[1].contains("for good"));
        let history = agent.history().await;
        let notes = history.entries().iter().filter(|entry| matches!(entry, Entry::Note(_))).count();
        assert_eq!(notes, 1);
    });
}

#[test]
fn a_step_is_asked_of_another_model_and_the_break_is_declared() {
    block(async {
        let cached =
            |read, write| Usage { cache_read: read, cache_write_5m: write, output: 1, ..Usage::default() };
        let profile = |name: &str| ModelProfile {
            cache: CacheProfile::Automatic,
            ..ModelProfile::conservative("scripted", name)
        };
        let look = |usage| Reply::tool("look", r#"{"what":"a"}"#).costing(usage);
        let script =
            vec![look(cached(0, 500)), look(cached(0, 700)), Reply::text("end").costing(cached(500, 300))];
        let first = ScriptedModel::new(script.clone()).by_history().with_profile(profile("one"));
        let other = ScriptedModel::new(script).by_history().with_profile(profile("two"));
        let switched = other.clone();
        let agent = agent(first, |config| {
            config.pipeline = changing(move |cx| {
                let model: Option<Arc<dyn agent_core::LanguageModel>> = match cx.of.step.number() {
                    // A new handle each time is the same model.
                    1 => Some(Arc::new(switched.clone())),
                    _ => None,
                };
                Overrides { model, ..Overrides::default() }
            });
        });
        let (events, end) = say(&agent, "go").await;
        is_done(&end);
        assert_eq!((agent.model.requests().len(), other.requests().len()), (2, 1));
        let causes: Vec<&str> = events
            .iter()
            .filter_map(|event| {
                let EventBody::CacheBreak { cause, .. } = &event.body else { return None };
                Some(cause.as_str())
            })
            .collect();
        assert_eq!(causes, ["model_changed", "model_changed"]);
        // Back at the first model, the bytes it was sent before are sent again.
        let (a, b) = (&bodies(&agent.model)[0], &bodies(&agent.model)[1]);
        let end = a.rfind("\n],\n\"settings\"").unwrap();
        assert_eq!(a[..end], b[..end]);
    });
}

#[test]
fn another_system_prompt_is_told_with_the_step_that_has_it() {
    block(async {
        let script = vec![Reply::tool("look", r#"{"what":"a"}"#), Reply::text("ok")];
        let agent = agent(ScriptedModel::new(script).by_history(), |config| {
            config.pipeline = changing(|cx| Overrides {
                system: SystemBlock::new("Other.")
                    .filter(|_| cx.of.step.number() == 0)
                    .map(|block| vec![block]),
                ..Overrides::default()
            });
        });
        let (events, _) = say(&agent, "go").await;
        let hashes: Vec<&str> = events
            .iter()
            .filter_map(|event| {
                let EventBody::CacheSystemHash { system, .. } = &event.body else { return None };
                Some(&**system)
            })
            .collect();
        assert_eq!(hashes.len(), 3, "each step's own, and the one that was put in its place");
        assert_ne!(hashes[0], hashes[1]);
        assert_eq!(hashes[0], hashes[2]);
    });
}

#[test]
fn a_stage_ends_the_turn_without_a_model() {
    block(async {
        let agent = agent(ScriptedModel::new(vec![Reply::text("never")]), |config| {
            config.pipeline = Pipeline::standard().then(Does("stop", |_: &StageCx<'_>| {
                let reason = TerminalReason::NoProgress;
                Verdict::Finish(Synthesised { text: text("I stop here."), reason })
            }));
        });
        let (events, end) = say(&agent, "go").await;
        assert_eq!(
            (end.reason, end.text.as_str(), end.steps),
            (TerminalReason::NoProgress, "I stop here.", 1)
        );
        assert!(agent.model.requests().is_empty());
        let shown = events
            .iter()
            .any(|event| matches!(&event.body, EventBody::TextDelta { text, .. } if text == "I stop here."));
        assert!(shown, "who watches sees the words");
        assert!(events.iter().any(|event| matches!(event.body, EventBody::StepCompleted { .. })));
    });
}

#[derive(Debug)]
struct Found(u32);

/// Counts the steps that it was asked for; fails when told to.
#[derive(Debug)]
struct Looks {
    fails: bool,
}

#[async_trait]
impl ContextSource for Looks {
    async fn look_up(&self, cx: &ContextCx<'_>) -> Result<Context, SourceError> {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        if self.fails {
            return Err(SourceError::new("the ticket", "the database is away"));
        }
        Ok(Context::default().with(Found(cx.step.number() + 40)))
    }
}

#[test]
fn what_was_looked_up_is_there_for_the_stages() {
    block(async {
        let agent = agent(ScriptedModel::new(vec![Reply::text("ok")]), |config| {
            config.contexts =
                vec![Arc::new(Context::default().with("fixed")), Arc::new(Looks { fails: false })];
            config.pipeline = changing(|cx| {
                let (found, fixed) = (cx.context.get::<Found>().unwrap(), cx.context.get::<&str>().unwrap());
                Overrides::default().remind(format!("{} {fixed}", found.0))
            });
        });
        is_done(&say(&agent, "go").await.1);
        assert!(bodies(&agent.model)[0].contains("40 fixed"));
    });
}

#[test]
fn what_cannot_be_prepared_fails_the_turn_and_the_session_goes_on() {
    let check = |change: fn(&mut agent_harness::HarnessConfig), expect: &str| {
        block(async {
            let broken = agent(ScriptedModel::new(vec![Reply::text("ok")]), change);
            let (events, end) = say(&broken, "go").await;
            assert_eq!(end.reason.to_string(), "error(invalid_request)");
            assert!(end.error.unwrap().message.contains(expect));
            let told = events.iter().any(|event| {
                matches!(&event.body, EventBody::TurnFailed { message, .. } if message.contains(expect))
            });
            assert!(told, "{events:#?}");
            assert!(broken.model.requests().is_empty());
            let mended = ScriptedModel::new(vec![Reply::text("ok")]);
            drop(broken.harness);
            let mended = taken_up(mended, broken.store, |_| {});
            is_done(&say(&mended, "again").await.1);
        });
    };
    check(
        |config| config.contexts = vec![Arc::new(Looks { fails: true })],
        "the ticket cannot be read: the database is away",
    );
    check(
        |config| {
            config.pipeline =
                changing(|_| Overrides { active_tools: Some(vec!["lok".into()]), ..Overrides::default() });
        },
        "stage \"test\" names the tool \"lok\"",
    );
}

fn narrowed(model: ScriptedModel, store: Points, retry: RetryPolicy) -> Agent {
    taken_up(model, store, |config| {
        config.retry = retry;
        config.pipeline =
            changing(|_| Overrides { active_tools: Some(vec!["look".into()]), ..Overrides::default() });
    })
}

fn calls_put() -> ScriptedModel {
    let calls = Reply::tool("put", r#"{"what":"x"}"#).call("look", r#"{"what":"y"}"#);
    ScriptedModel::new(vec![calls, Reply::text("ok")]).by_history()
}

#[test]
fn a_call_of_an_inactive_tool_is_answered_with_what_is_active() {
    block(async {
        let agent = narrowed(calls_put(), Points::default(), RetryPolicy::never());
        is_done(&say(&agent, "go").await.1);
        assert!(agent.effects.all().is_empty(), "it did not run");
        let history = agent.history().await;
        let said = crate::support::talk(&history);
        assert!(
            said.contains("put -> Not run: `put` is not active in this step. Active now: `look`."),
            "{said}"
        );
        assert!(said.contains("look -> saw y"), "{said}");
    });
}

#[test]
fn after_a_crash_an_inactive_tool_is_still_inactive() {
    let mut taken = 0;
    for polls in 0.. {
        let ended = block(async {
            let agent = narrowed(calls_put(), Points::default(), RetryPolicy::never());
            let run = agent.session().send("go").await.unwrap();
            let ended = crash_after(run, polls).await.is_some();
            let journal =
                agent.store.load(&id()).await.unwrap().map(|record| record.journal).unwrap_or_default();
            let store = agent.store.clone();
            drop(agent);
            if ended || journal.is_empty() {
                return (ended, false);
            }
            // The next process has another pipeline: what was answered under the old one is judged by the old one.
            let next = taken_up(calls_put(), store, |_| {});
            let (_, end) = crate::support::watch(next.session().resume().await.unwrap()).await;
            is_done(&end);
            assert!(next.effects.all().is_empty(), "it ran after {polls} polls");
            (false, true)
        });
        taken += usize::from(ended.1);
        if ended.0 {
            break;
        }
    }
    assert!(taken > 1, "the run was broken with its response journaled");
}

#[test]
fn explaining_asks_no_model_of_a_stage_or_a_hook() {
    block(async {
        let other = ScriptedModel::new(vec![Reply::text("never")]).with_profile(small());
        let given = other.clone();
        let agent = agent(ScriptedModel::new(vec![Reply::text("never")]), |config| {
            config.pipeline = changing(move |_| {
                Overrides { model: Some(Arc::new(given.clone())), ..Overrides::default() }.remind("Hm.")
            });
        });
        let explained = agent.session().explain(None).await.unwrap();
        assert!(String::from_utf8(explained.body().to_vec()).unwrap().contains("Hm."));
        assert!(agent.model.requests().is_empty() && other.requests().is_empty());
    });
}
