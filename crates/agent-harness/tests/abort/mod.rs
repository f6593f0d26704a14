//! Stopping a turn at every point leaves a session that goes on.

use agent_core::{Entry, EventBody, TerminalReason};
use agent_testkit::{Failure, Reply, ScriptedModel};

use crate::support::{Agent, Effects, Points, block, talk, watch};

fn replies() -> Vec<Reply> {
    vec![
        Reply::text("Looking at it.").call("look", r#"{"what":"a"}"#).call("put", r#"{"what":"b"}"#),
        Reply::tool("put", r#"{"what":"c"}"#),
        Reply::text("All done."),
        Reply::text("Yes?"),
        Reply::text("Yes?"),
    ]
}

/// Cancels after so many polls; whether the run was over before.
async fn abort_after(agent: &Agent, polls: usize) -> bool {
    let mut run = agent.session().send("go").await.unwrap();
    let cancel = run.cancel();
    let mut seen = 0;
    let mut terminal = 0;
    let (mut requested, mut answered) = (0, 0);
    let mut work = Box::pin(async move {
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        (events, run.finish().await.unwrap())
    });
    let (events, end) = std::future::poll_fn(|cx| {
        if seen == polls {
            cancel.cancel();
        }
        seen += 1;
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            cx.waker().wake_by_ref();
        }
        polled
    })
    .await;
    for event in &events {
        if let EventBody::ActionsRequested { calls } = &event.body {
            requested += calls.len();
        }
        answered += usize::from(matches!(event.body, EventBody::ActionResult { .. }));
        let name = serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
        terminal += usize::from(matches!(name.as_str(), "turn.completed" | "turn.failed"));
    }
    assert_eq!(terminal, 1, "one terminal event");
    assert_eq!(requested, answered, "every requested call has its result event");
    assert!(matches!(end.reason, TerminalReason::Aborted | TerminalReason::Done), "{:?}", end.reason);
    end.reason == TerminalReason::Done
}

#[test]
fn at_every_point() {
    block(async {
        for polls in 0..200 {
            let agent = Agent::new(replies());
            let done = abort_after(&agent, polls).await;
            let before = talk(&agent.history().await);
            let (_, end) = agent.say("still there?").await;
            assert!(
                end.reason.is_success() || end.reason == TerminalReason::Done,
                "after {polls} polls: {end:?}"
            );
            let after = talk(&agent.history().await);
            assert!(after.starts_with(&before), "what was said stays");
            let effects = agent.effects.all();
            assert!(
                effects.iter().collect::<std::collections::BTreeSet<_>>().len() == effects.len(),
                "{effects:?}"
            );
            if done {
                assert!(polls > 15, "the points before the end were tried: {polls}");
                return;
            }
        }
        panic!("the turn never ended by itself");
    });
}

#[test]
fn half_an_answer_is_kept() {
    block(async {
        let model = ScriptedModel::new(vec![Reply::text("The first half of it")])
            .failing(0, Failure::Hangs { events: 3 });
        let agent = Agent::with(model, Points::default(), Effects::default());
        let mut run = agent.session().send("go").await.unwrap();
        let cancel = run.cancel();
        while let Some(event) = run.next().await {
            if serde_json::to_string(&event).unwrap().contains("text.delta") {
                cancel.cancel();
            }
        }
        let end = run.finish().await.unwrap();
        assert_eq!(end.reason, TerminalReason::Aborted);
        assert!("The first half of it".starts_with(&end.text) && !end.text.is_empty(), "{:?}", end.text);
        assert!(matches!(agent.history().await.entries().last(), Some(Entry::Step(_))));
    });
}

#[test]
fn tools_wind_up_or_are_given_up() {
    block(async {
        let reply = Reply::tool("slow", r#"{"what":"a"}"#)
            .call("stuck", r#"{"what":"b"}"#)
            .call("put", r#"{"what":"c"}"#);
        let agent = Agent::new(vec![reply, Reply::text("next")]);
        let run = agent.session().send("go").await.unwrap();
        let cancel = run.cancel();
        let began = agent.effects.clone();
        let (watched, ()) = tokio::join!(watch(run), async move {
            while began.all().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        let (_, end) = watched;
        assert_eq!(end.reason, TerminalReason::Aborted);
        assert_eq!(agent.effects.all(), ["slow began", "slow stopped"]);
        insta::assert_snapshot!(talk(&agent.history().await), @"
        user: 1
        step: slow -> The call was cancelled before it finished; it may have had part of its effect.; stuck -> Interrupted: the user stopped the turn while this call ran, and it did not wind up in time. It may have had part of its effect; look at the present state before you go on.; put -> Not run: the user stopped the turn before this call ran.
        ");
    });
}
