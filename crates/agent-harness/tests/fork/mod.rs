//! What branches off a session: another session, and a run beside it that shares its cached prefix (requirements D7, P12).

mod beside;

use agent_core::{EntryId, EventBody, SessionId};
use agent_harness::{HarnessError, Session};
use agent_store::{Store, StoreError};
use agent_testkit::Reply;

use crate::support::{Agent, block, id, talk, watch};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

fn named(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn put(what: &str) -> Reply {
    Reply::tool("put", format!(r#"{{"what":"{what}"}}"#))
}

async fn entries(agent: &Agent, name: &str) -> Vec<String> {
    agent.store.load(&named(name)).await.unwrap().unwrap().entries
}

/// Two turns: user, step, step, user, step.
async fn two_turns() -> Agent {
    let agent = Agent::new(vec![
        put("x"),
        Reply::text("It is put."),
        Reply::text("Goodbye."),
        Reply::text("Hello there."),
    ]);
    agent.say("put x").await;
    agent.say("bye").await;
    agent
}

#[test]
fn a_fork_goes_its_own_way() {
    block(async {
        let agent = two_turns().await;
        let before = entries(&agent, "s").await;
        let fork = agent.session().fork(EntryId::at(2), named("fork")).await.unwrap();
        assert_eq!(entries(&agent, "fork").await, before[..3]);
        let (events, end) = watch(fork.send("bye, then").await.unwrap()).await;
        assert_eq!(end.text, "Goodbye.");
        assert_eq!(events[0].seq, Some(3), "its events go on behind what says where it comes from");
        assert_eq!(entries(&agent, "s").await, before, "the other session is as it was");
        let requests = agent.model.requests();
        let [.., old, new] = &requests[..] else { panic!("{}", requests.len()) };
        let common = old.iter().zip(new.iter()).take_while(|(a, b)| a == b).count();
        let words = String::from_utf8(old[..common].to_vec()).unwrap();
        assert!(words.contains("It is put.") && !words.contains("bye, then"), "{words}");
        let told = agent.store.events(&named("fork"), 0).await.unwrap();
        let origin = EventBody::SessionForked { from: id(), at: EntryId::at(2) };
        assert_eq!(told[1].body, origin);
        assert_eq!(agent.effects.all(), ["x"], "nothing ran again");
    });
}

#[test]
fn what_is_known_as_of_the_newest_entry_comes_along() {
    block(async {
        let agent = two_turns().await;
        let newest = entries(&agent, "s").await.len() - 1;
        let state = |name: &'static str| {
            let store = agent.store.clone();
            async move { store.load(&named(name)).await.unwrap().unwrap().checkpoint }
        };
        let own = state("s").await;
        agent.session().fork(EntryId::at(newest), named("late")).await.unwrap();
        agent.session().fork(EntryId::at(newest - 1), named("early")).await.unwrap();
        let (late, early) = (state("late").await, state("early").await);
        assert_eq!((late.asked_ms, &late.slots), (own.asked_ms, &own.slots));
        assert!(own.asked_ms.is_some() && early.asked_ms.is_none());
        assert_eq!((late.last_turn, late.usage.total_input(), late.turn), (0, 0, None));
    });
}

/// What was said of turns comes along where all their entries do, and no later turn takes its number.
#[test]
fn what_was_said_of_turns_comes_along() {
    block(async {
        let agent = two_turns().await;
        let count = entries(&agent, "s").await.len();
        for (turn, to) in [(1, 2), (2, count)] {
            let text = agent_core::Text::new("They talked.").unwrap();
            let usage = agent_core::Usage::default();
            let (from, to) = (EntryId::at(0), EntryId::at(to));
            let (since, model) = (None, None);
            let round = agent_core::RoundSummary { turn, since, from, to, text, usage, model };
            agent.store.put_round(&id(), &round).await.unwrap();
        }
        let check = async |at: usize, name: &'static str, expect: &[u64]| {
            let fork = agent.session().fork(EntryId::at(at), named(name)).await.unwrap();
            let rounds = agent.store.rounds(&named(name)).await.unwrap();
            assert_eq!(rounds.iter().map(|round| round.turn).collect::<Vec<_>>(), expect, "{name}");
            fork
        };
        check(0, "first", &[]).await;
        check(count - 1, "all", &[1, 2]).await;
        let fork = check(count - 2, "some", &[1]).await;
        let (events, _) = watch(fork.send("bye, then").await.unwrap()).await;
        assert_eq!(
            events[0].turn.map(agent_core::TurnId::number),
            Some(2),
            "behind the turn that was told of"
        );
    });
}

#[test]
fn an_entry_that_is_not_there_and_a_name_that_is_are_refused() {
    block(async {
        let agent = two_turns().await;
        let session = agent.session();
        let refused = async |at: usize, name: &str| {
            let error = session.fork(EntryId::at(at), named(name)).await.unwrap_err();
            error.to_string()
        };
        insta::assert_snapshot!(refused(5, "fork").await, @"session s has 5 entries, so it has no beginning of 6; the step at work has no entry before it is complete");
        insta::assert_snapshot!(refused(1, "s").await, @"session s exists already; load it to go on with it, or choose another name");
        let nobody = agent.harness.session(named("nobody")).fork(EntryId::at(0), named("fork")).await;
        assert!(matches!(nobody, Err(HarnessError::Store(StoreError::Missing(_)))), "{nobody:?}");
        assert!(agent.store.load(&named("fork")).await.unwrap().is_none());
    });
}

#[test]
fn an_open_step_is_not_part_of_a_fork() {
    block(async {
        // `put` has begun and the run is dropped, so that the step has no entry.
        let agent = Agent::new(vec![Reply::text("Well.").call("put", r#"{"what":"x"}"#), Reply::text("Hm.")]);
        let mut run = agent.session().send("put x").await.unwrap();
        while let Some(event) = run.next().await {
            if matches!(event.body, EventBody::ActionsRequested { .. }) {
                break;
            }
        }
        drop(run);
        let record = agent.store.load(&id()).await.unwrap().unwrap();
        assert!(record.checkpoint.turn.is_some() && !record.journal.is_empty(), "a step is open: {record:?}");
        let at = record.entries.len() - 1;
        let beyond: Result<Session, _> = agent.session().fork(EntryId::at(at + 1), named("fork")).await;
        assert!(matches!(beyond, Err(HarnessError::Store(StoreError::NoEntry { .. }))), "{beyond:?}");
        let fork = agent.session().fork(EntryId::at(at), named("fork")).await.unwrap();
        let (_, end) = watch(fork.send("leave it").await.unwrap()).await;
        assert!(end.reason.is_success(), "{:?}", end);
        let record = agent.store.load(&named("fork")).await.unwrap().unwrap();
        let (history, repairs) = agent_core::History::load(&record.entries).unwrap();
        assert!(repairs.is_empty() && talk(&history).starts_with("user"), "{}", talk(&history));
    });
}
