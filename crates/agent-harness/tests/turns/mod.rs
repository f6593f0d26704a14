//! Whole turns: events in order, continuation, failure, a second message.

use std::sync::Arc;

use agent_core::{BLOCK_BYTES, Body, EventBody, ModelError, ModelErrorKind, ModelProfile, TerminalReason};
use agent_harness::{Harness, HarnessConfig};
use agent_testkit::{Failure, Reply, ScriptedModel};
use agent_tools::ToolSet;

use crate::support::{Agent, Effects, Keeping, Points, block, id, log, system_of, talk, tools, watch};

#[test]
fn events_of_a_turn_with_tools() {
    block(async {
        let agent = Agent::new(vec![
            Reply::text("Looking.").call("look", r#"{"what":"a"}"#).call("put", r#"{"what":"b"}"#),
            Reply::text("Done."),
        ]);
        let (events, end) = agent.say("go").await;
        insta::assert_snapshot!(log(&events), @r#"
        1 [] session.started
        2 [turn_1] turn.started
        3 [turn_1] message.received go
        4 [turn_1/0] step.started
        5 [turn_1/0] cache.system_hash
        - [turn_1/0] text.delta Looking.
        - [turn_1/0] tool_input.delta
        - [turn_1/0] tool_input.delta {"what":"a"}
        - [turn_1/0] tool_input.delta
        - [turn_1/0] tool_input.delta {"what":"b"}
        6 [turn_1/0] actions.requested
        7 [turn_1/0] action.result completed
        8 [turn_1/0] action.result completed
        9 [turn_1/0] step.completed
        10 [turn_1/1] step.started
        11 [turn_1/1] cache.system_hash
        - [turn_1/1] text.delta Done.
        12 [turn_1/1] step.completed
        13 [turn_1] turn.completed done
        14 [] session.waiting
        "#);
        assert_eq!((end.reason, end.text.as_str(), end.steps), (TerminalReason::Done, "Done.", 2));
        insta::assert_snapshot!(talk(&agent.history().await), @"
        user: 1
        step: look -> saw a; put -> put b
        step:
        ");
        agent.model.check_complete().unwrap();

        let stored = agent_store::Store::events(&agent.store, &id(), 0).await.unwrap();
        let durable: Vec<_> = events.into_iter().filter(|event| event.seq.is_some()).collect();
        assert_eq!(stored, durable, "what was told is what is stored");
        assert!(stored.iter().zip(1..).all(|(event, seq)| event.seq == Some(seq)), "without a gap");
    });
}

#[test]
fn a_session_goes_on_turn_after_turn() {
    block(async {
        let agent = Agent::new(vec![Reply::text("one"), Reply::text("two")]);
        let session = agent.session();
        let first = session.send("a").await.unwrap().finish().await.unwrap();
        let second = session.send("b").await.unwrap().finish().await.unwrap();
        assert_eq!((first.text.as_str(), second.text.as_str()), ("one", "two"));
        assert_eq!((first.turn.number(), second.turn.number()), (1, 2));
        let bodies = agent.model.requests();
        let second = String::from_utf8(bodies[1].to_vec()).unwrap();
        assert!(second.contains("one"), "the first turn is in the second request: {second}");
        drop(session);
        assert_eq!(
            agent.session().resume().await.unwrap_err().to_string(),
            "session s has no open turn; send it a message"
        );
    });
}

#[test]
fn one_message_at_a_time() {
    block(async {
        let agent = Agent::new(vec![Reply::text("one")]);
        let session = agent.session();
        let run = session.send("a").await.unwrap();
        let error = session.clone().send("b").await.unwrap_err();
        assert_eq!(error.to_string(), "session s is at work on another message; wait for its run to finish");
        let other = agent.session().send("b").await.unwrap_err();
        assert!(
            matches!(other, agent_harness::HarnessError::Store(agent_store::StoreError::Busy { .. })),
            "{other}"
        );
        run.finish().await.unwrap();
    });
}

#[test]
fn failed_calls_end_the_turn_and_leave_the_session_usable() {
    let check = |failure: Failure, expect: TerminalReason| {
        block(async {
            let model = ScriptedModel::new(vec![Reply::text("hello there")]).failing(0, failure);
            let agent = Agent::with(model, Points::default(), Effects::default());
            let (events, end) = agent.say("a").await;
            assert_eq!(end.reason, expect);
            let names: Vec<_> =
                log(&events).lines().map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect();
            let closing = ["step.failed", "turn.failed", "session.waiting"];
            assert_eq!(names[names.len() - 3..], closing, "{names:?}");
            let (_, end) = agent.say("again").await;
            assert_eq!((end.reason, end.text.as_str()), (TerminalReason::Done, "hello there"));
            assert_eq!(
                talk(&agent.history().await),
                "user: 1\nuser: 1\nstep: ",
                "nothing of the failed step is kept"
            );
        });
    };
    let overloaded = ModelError::new(ModelErrorKind::Overloaded, "busy");
    check(Failure::Before(overloaded.clone()), TerminalReason::Error(ModelErrorKind::Overloaded));
    check(Failure::After { events: 2, error: overloaded }, TerminalReason::Error(ModelErrorKind::Overloaded));
    check(Failure::EndsEarly { events: 2 }, TerminalReason::Interrupted);
}

#[test]
fn a_failed_call_is_recorded_as_paid() {
    block(async {
        let mut paid = 0;
        for events in 0..6 {
            let failure =
                Failure::After { events, error: ModelError::new(ModelErrorKind::Overloaded, "busy") };
            let model = ScriptedModel::new(vec![Reply::text("hello there")]).failing(0, failure);
            let agent = Agent::with(model, Points::default(), Effects::default());
            let (_, end) = agent.say("a").await;
            let rows = agent_store::Store::usage(&agent.store, &id()).await.unwrap();
            let expect = (end.usage.total_input() > 0).then_some(end.usage.total_input());
            assert_eq!(
                rows.iter().map(|(_, usage)| usage.total_input()).collect::<Vec<_>>(),
                Vec::from_iter(expect)
            );
            paid += usize::from(expect.is_some());
        }
        assert!(paid > 0, "some of the calls failed after their tokens were known");
    });
}

#[test]
fn the_step_limit_ends_a_turn() {
    block(async {
        let replies = (0..50).map(|n| Reply::tool("look", format!(r#"{{"what":"{n}"}}"#))).collect();
        let agent = Agent::new(replies);
        let (_, end) = agent.say("loop").await;
        assert_eq!((end.reason, end.steps), (TerminalReason::MaxSteps, 40), "the default limit");
    });
}

/// The tools and the system prompt of a request body.
fn prompt(body: &[u8]) -> (String, String) {
    let request: serde_json::Value = serde_json::from_slice(body).unwrap();
    (request["tools"].to_string(), request["system"].to_string())
}

#[test]
fn a_session_keeps_the_prompt_it_began_with_or_says_so() {
    let check = |change: fn(&mut HarnessConfig)| {
        block(async {
            let store = Points::default();
            let model = ScriptedModel::new(vec![Reply::text("one"), Reply::text("two")]).by_history();
            let config = || {
                let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(store.clone()));
                config.prompt = system_of(&["As it began."]);
                config.tools = tools(&Effects::default());
                config
            };
            Harness::new(config()).session(id()).send("a").await.unwrap().finish().await.unwrap();
            let mut changed = config();
            change(&mut changed);
            let (events, _) = watch(Harness::new(changed).session(id()).send("b").await.unwrap()).await;
            let mut bodies = model.requests();
            // Another model keeps a log of its own.
            bodies.resize(2, bodies[0].clone());
            let said = events.iter().filter_map(|event| {
                if let EventBody::RequestDiagnostic(diagnostic) = &event.body {
                    Some(diagnostic.what.clone())
                } else {
                    None
                }
            });
            (prompt(&bodies[0]) == prompt(&bodies[1]), said.collect::<Vec<_>>())
        })
    };
    assert_eq!(check(|_| {}), (true, vec![]));
    let other_words = |config: &mut HarnessConfig| config.prompt = system_of(&["Other words."]);
    assert_eq!(check(other_words), (true, vec!["system".to_owned()]), "the stored prompt is sent");
    assert_eq!(check(|config| config.tools = ToolSet::default()), (false, vec!["tools".to_owned()]));
    let other_order = |config: &mut HarnessConfig| {
        let turned: Vec<_> = config.tools.iter().cloned().collect();
        config.tools = ToolSet::builder().extend(turned.into_iter().rev()).freeze().unwrap();
    };
    assert_eq!(check(other_order), (true, vec![]), "the stored order is sent");
    let other_model = |config: &mut HarnessConfig| {
        let model = ScriptedModel::new(vec![Reply::text("one"), Reply::text("two")]).by_history();
        config.model = Arc::new(model.with_profile(ModelProfile::conservative("scripted", "scripted-2")));
    };
    assert_eq!(check(other_model).1, ["model"]);
}

#[test]
fn bodies_of_a_session_share_the_buffers_of_old_entries() {
    block(async {
        // The input of each call fills a block.
        let what = "a".repeat(BLOCK_BYTES);
        let look = || Reply::text("Looking.").call("look", format!(r#"{{"what":"{what}"}}"#));
        let model = ScriptedModel::new(vec![look(), look(), Reply::text("Seen."), Reply::text("Again.")]);
        let model = Keeping::new(model);
        let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(Points::default()));
        config.tools = tools(&Effects::default());
        let session = Harness::new(config).session(id());
        for text in ["first", "second"] {
            session.send(text).await.unwrap().finish().await.unwrap();
        }
        let bodies = model.bodies();
        assert_eq!(bodies.len(), 4);
        for pair in bodies.windows(2) {
            let places = |body: &Body| {
                body.buffers().map(|bytes| (bytes.as_ptr() as usize, bytes.len())).collect::<Vec<_>>()
            };
            let (old, new) = (places(&pair[0]), places(&pair[1]));
            let shared = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
            // What fills no block yet is copied.
            let conversation: usize = old[..shared].iter().map(|(_, len)| len).sum();
            let end = pair[0].to_vec().windows(15).rposition(|at| at == b"}],\"max_tokens\"").unwrap();
            assert!(
                conversation + BLOCK_BYTES >= end,
                "{conversation} of {end} bytes are the very same buffers"
            );
            assert!(pair[1].to_vec().starts_with(&pair[0].to_vec()[..end]), "and all are the same bytes");
        }
    });
}
