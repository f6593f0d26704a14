//! Compaction by itself and by hand: what is asked, written, told and put back.

use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantPart, EventBody, Finish, FinishKind, ModelEvent, ProviderPart, RawJson, ReadExtent, ReadStamp,
    TerminalReason, Todo, TodoStatus, Usage,
};
use agent_harness::{HarnessError, PostCompact, PostCompactCx, SourceError};
use agent_prepare::{Cascade, Cause, Level, Overrides, Pipeline, StageCx, Verdict};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, ToolConfig, ToolSet};
use async_trait::async_trait;

use super::{Does, Sums, agent, bodies, compacting, is_done, lines, model, say, taken_up, told, words};
use crate::support::{Agent, block, id, watch};

/// What compactions did, as a hook saw it.
#[derive(Debug, Clone, Default)]
struct Seen(Arc<Mutex<Vec<(String, usize)>>>);

#[async_trait]
impl PostCompact for Seen {
    async fn compacted(&self, cx: &PostCompactCx<'_>) -> Result<(), SourceError> {
        assert!(cx.after < cx.before);
        self.0.lock().unwrap().push((cx.tier.to_owned(), cx.history.entries().len()));
        Err(SourceError::new("the hook", "its log is full"))
    }
}

#[test]
fn a_full_context_is_summed_up_before_the_step() {
    let check = |sums: Sums, is_apart: bool| {
        block(async {
            let summary = model(vec![Reply::text("They said words.")]);
            let own = ScriptedModel::new(vec![Reply::text("They said words."), Reply::text("ok")]);
            let own = if is_apart {
                model(vec![Reply::text("-"), Reply::text("ok")])
            } else {
                own.with_profile(super::small())
            };
            let (apart, seen) = (summary.clone(), Seen::default());
            let hook = seen.clone();
            let agent = compacting(own, Cascade::new().then(sums.clone()), |config| {
                config.summary_model = Some(Arc::new(apart));
                config.after_compaction = vec![Arc::new(hook)];
            });
            let (events, end) = say(&agent, &words(2_950)).await;
            is_done(&end);
            assert_eq!(told(&events), ["level compact", "requested sums", "completed sums", "level calm"]);
            assert_eq!(*sums.causes.lock().unwrap(), [Cause::First], "asked once");
            assert_eq!(*seen.0.lock().unwrap(), [("sums".to_owned(), 2)]);
            assert!(
                super::diagnosed(&events).iter().any(|why| why.contains("its log is full")),
                "told, and no more"
            );
            let asked = if is_apart { bodies(&summary) } else { bodies(&agent.model) };
            if is_apart {
                assert_eq!((asked.len(), agent.model.requests().len()), (1, 1));
                assert!(asked[0].contains("Sum up.") && asked[0].contains(r#""tools":[]"#));
                assert!(asked[0].contains(r#""temperature":0.0"#), "{}", asked[0]);
            } else {
                assert_eq!((asked.len(), summary.requests().len()), (2, 0));
                assert!(asked[0].contains("wordword") && asked[0].contains("Sum up what was said."));
            }
            assert!(asked[0].contains(r#""max_output":300"#));
            let sent = bodies(&agent.model).pop().unwrap();
            assert!(
                sent.contains("They said words.") && !sent.contains("wordword") && !sent.contains("Sum up")
            );
            let record = agent.store.load(&id()).await.unwrap().unwrap();
            assert!(record.checkpoint.compaction.after > 0, "what compactions left is stored");
            assert_eq!(record.checkpoint.usage, end.usage, "what it cost counts");
            assert!(end.usage.output >= 4, "two answers: {:?}", end.usage);
            let rows = agent.store.usage(&id()).await.unwrap();
            let sum: u64 = rows.iter().map(|(_, usage)| usage.output).sum();
            assert_eq!(sum, end.usage.output, "each answer is recorded by a commit");
        });
    };
    check(Sums::apart(), true);
    check(Sums::on_prefix(), false);
}

#[test]
fn a_later_step_is_a_continuation() {
    block(async {
        let fat = ToolConfig::new("fat", "Says much.", Access::Read, |_, _: super::Nothing| async {
            Ok(lines(2_900))
        });
        let summary = model(vec![Reply::text("Sum.")]);
        let sums = Sums::apart();
        let tier = sums.clone();
        let agent = agent(model(vec![Reply::tool("fat", "{}"), Reply::text("ok")]), |config| {
            config.tools = ToolSet::builder().with(fat).freeze().unwrap();
            config.summary_model = Some(Arc::new(summary));
            config.pipeline = Pipeline::new(Cascade::new().then(tier));
        });
        let (events, _) = say(&agent, "go").await;
        assert!(told(&events).contains(&"completed sums".to_owned()), "{:?}", told(&events));
        assert_eq!(*sums.causes.lock().unwrap(), [Cause::Continuation]);
    });
}

#[test]
fn state_is_put_back_from_state() {
    block(async {
        let keeps = ToolConfig::new(
            "keeps",
            "Keeps.",
            Access::Read,
            |call: agent_tools::Call, _: super::Nothing| async move {
                call.cx.slots.update(|slots| {
                    let stamp = ReadStamp { hash: "00".into(), len: 1, seen: ReadExtent::Full };
                    slots.reads.insert("a.txt".into(), stamp);
                    slots.todos =
                        vec![Todo { id: "1".into(), text: "mend it".into(), status: TodoStatus::Pending }];
                });
                Ok(lines(2_900))
            },
        );
        let agent = agent(model(vec![Reply::tool("keeps", "{}"), Reply::text("ok")]), |config| {
            config.tools = ToolSet::builder().with(keeps).freeze().unwrap();
            config.summary_model = Some(Arc::new(model(vec![Reply::text("Sum.")])));
            config.pipeline = Pipeline::new(Cascade::new().then(Sums::apart()));
        });
        is_done(&say(&agent, "go").await.1);
        let record = agent.store.load(&id()).await.unwrap().unwrap();
        assert!(record.checkpoint.slots.reads.is_empty(), "files count as unread");
        assert_eq!(record.checkpoint.slots.todos.len(), 1);
        assert!(bodies(&agent.model).pop().unwrap().contains("mend it"));
    });
}

#[test]
fn at_the_blocking_limit_nothing_is_sent_until_it_is_compacted_by_hand() {
    block(async {
        let summary = model(vec![Reply::text("Sum.")]);
        let apart = summary.clone();
        let agent = compacting(
            model(vec![Reply::text("-"), Reply::text("ok")]),
            Cascade::new().then(Sums::apart()).manual(),
            |config| {
                config.summary_model = Some(Arc::new(apart));
            },
        );
        let (events, end) = say(&agent, &words(4_000)).await;
        assert_eq!(end.reason, TerminalReason::BlockingLimit);
        assert!(end.text.starts_with("I cannot go on"), "{}", end.text);
        assert_eq!(told(&events), ["level blocked"]);
        assert_eq!((agent.model.requests().len(), summary.requests().len()), (0, 0));
        let session = agent.session();
        assert_eq!(session.context().await.unwrap().level(), Level::Blocked);

        let done = session.compact().await.unwrap();
        let tiers: Vec<&str> = done.tiers.iter().map(|tier| tier.tier.as_str()).collect();
        assert_eq!((tiers, done.after.level(), summary.requests().len()), (vec!["sums"], Level::Calm, 1));
        assert!(done.usage.output > 0);
        assert_eq!(session.context().await.unwrap(), done.after);
        let stored = agent.store.events(&id(), 0).await.unwrap();
        assert_eq!(told(&stored), ["level blocked", "requested sums", "completed sums", "level calm"]);
        assert!(
            agent.store.load(&id()).await.unwrap().unwrap().checkpoint.turn.is_none(),
            "no turn was opened"
        );
        let mut run = session.send("go on").await.unwrap();
        assert!(run.context().is_some(), "the last one is known");
        while run.next().await.is_some() {}
        assert_eq!(run.context().unwrap().level(), Level::Calm);
        is_done(&run.finish().await.unwrap());
    });
}

#[test]
fn a_success_by_hand_closes_the_breaker() {
    block(async {
        let silent = vec![Reply::text(" "), Reply::text(" "), Reply::text(" "), Reply::text("Sum.")];
        let summary = ScriptedModel::new(silent).with_profile(super::small());
        let apart = summary.clone();
        let own = ScriptedModel::new(vec![Reply::text("ok"); 9]).with_profile(super::small());
        let agent = compacting(own, Cascade::new().then(Sums::apart()), |config| {
            config.summary_model = Some(Arc::new(apart));
        });
        let failures =
            || async { agent.store.load(&id()).await.unwrap().unwrap().checkpoint.compaction.failures };
        for n in 0..4_usize {
            let said = if n == 0 { words(2_920) } else { "more".into() };
            say(&agent, &said).await;
            assert_eq!(
                (failures().await as usize, summary.requests().len()),
                ((n + 1).min(3), (n + 1).min(3)),
                "{n}"
            );
        }
        let done = agent.session().compact().await.unwrap();
        assert_eq!((done.tiers.len(), failures().await), (1, 0));
    });
}

#[test]
fn what_cannot_be_compacted_says_so() {
    block(async {
        let agent = compacting(model(vec![Reply::text("ok")]), Cascade::new(), |_| {});
        assert!(matches!(agent.session().compact().await, Err(HarnessError::NothingToCompact(_))));
        let mut run = agent.session().send("go").await.unwrap();
        run.next().await.unwrap();
        drop(run);
        let store = agent.store.clone();
        drop(agent);
        let next = taken_up(model(vec![Reply::text("ok")]), store, |_| {});
        assert!(matches!(next.session().compact().await, Err(HarnessError::TurnOpen(_))));
        is_done(&say(&next, "go").await.1);
        let done = next.session().compact().await.unwrap();
        assert!(done.tiers.is_empty(), "{done:?}");
        assert_eq!(done.before, done.after);
    });
}

#[test]
fn the_count_survives_a_restart() {
    block(async {
        let own = || ScriptedModel::new(vec![Reply::text("a"), Reply::text("b")]).by_history();
        let agent = taken_up(own(), crate::support::Points::default(), |_| {});
        say(&agent, &words(500)).await;
        let before = agent.session().context().await.unwrap();
        let loaded = taken_up(own(), agent.store.clone(), |_| {});
        assert_eq!(loaded.session().context().await.unwrap(), before);
        assert!(before.used > 500 && before.fixed > 0);
        // The stages see the same.
        drop(agent);
        let seen = Arc::new(Mutex::new(None));
        let cell = seen.clone();
        let next = taken_up(own(), loaded.store.clone(), |config| {
            config.pipeline = Pipeline::standard().then(Does("look", move |cx: &StageCx<'_>| {
                *cell.lock().unwrap() = Some(cx.of.tokens);
                Verdict::Pass(Overrides::default())
            }));
        });
        say(&next, "four").await;
        assert_eq!(seen.lock().unwrap().unwrap().used, before.used + 1);
    });
}

/// A model whose provider makes the context smaller by itself: what its answers begin with.
#[derive(Debug)]
struct Server(ScriptedModel, Vec<ModelEvent>);

#[async_trait]
impl agent_core::LanguageModel for Server {
    fn profile(&self) -> &agent_core::ModelProfile {
        self.0.profile()
    }

    fn encoder(&self) -> Box<dyn agent_core::Encoder> {
        self.0.encoder()
    }

    async fn stream(
        &self,
        _request: agent_core::Outgoing,
        _cancel: &agent_core::Cancel,
    ) -> Result<agent_core::ModelStream, agent_core::ModelError> {
        let mut events = self.1.clone();
        events.push(ModelEvent::Part(AssistantPart::text("Yes.").unwrap()));
        events.push(ModelEvent::Finish(Finish { kind: FinishKind::Stop, raw: "end_turn".into() }));
        Ok(Box::pin(futures_util::stream::iter(events.into_iter().map(Ok))))
    }
}

fn served(begins: Vec<ModelEvent>) -> Agent {
    agent(model(vec![]), |config| {
        config.model = Arc::new(Server(model(vec![]), begins));
        config.tools = ToolSet::default();
    })
}

fn compaction() -> Vec<ModelEvent> {
    let raw =
        r#"{"iterations":[{"type":"compaction","input_tokens":900},{"type":"message","input_tokens":60}]}"#;
    let usage = Usage { input: 960, output: 9, raw: RawJson::parse(raw).ok(), ..Usage::default() };
    let block = RawJson::parse(r#"{"type":"compaction","content":"They spoke."}"#).unwrap();
    let block = ProviderPart { provider: "scripted".into(), kind: "compaction".into(), raw: block };
    vec![ModelEvent::Part(AssistantPart::Provider(block)), ModelEvent::Usage(usage)]
}

#[test]
fn what_the_provider_compacts_is_told_the_same_way() {
    block(async {
        let agent = served(compaction());
        let (events, end) = say(&agent, &words(900)).await;
        is_done(&end);
        assert_eq!(told(&events), ["requested server_compaction", "completed server_compaction"]);
        let used = agent.harness.session(id()).context().await.unwrap().used;
        assert!(used < 960, "{used}: the call that compacted is not in the context any more");
    });
}

#[test]
fn what_the_provider_leaves_unread_is_told_when_it_is_more() {
    block(async {
        let usage = Usage { input: 300, output: 9, ..Usage::default() };
        let agent = served(vec![ModelEvent::Usage(usage), ModelEvent::Cleared { tokens: 600 }]);
        let session = agent.session();
        let (events, end) = watch(session.send(words(900)).await.unwrap()).await;
        is_done(&end);
        assert_eq!(told(&events), ["requested server_context_editing", "completed server_context_editing"]);
        let sizes = events.iter().find_map(|event| {
            let EventBody::CompactionCompleted { before, after, .. } = event.body else { return None };
            Some((before, after))
        });
        assert_eq!(sizes, Some((900, 300)));
        assert!(session.context().await.unwrap().used < 400, "what was left unread is not counted");
        // The same words are left out of each request from then on.
        let (events, _) = watch(session.send("more").await.unwrap()).await;
        assert_eq!(told(&events), [""; 0]);
    });
}
