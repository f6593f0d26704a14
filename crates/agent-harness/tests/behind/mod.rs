//! Work behind turns: nobody waits for it, nothing of it is lost silently, and a session is taken up from what it wrote.

mod steps;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_core::{
    Cancel, Encoder, Entry, EventBody, LanguageModel, ModelError, ModelProfile, ModelStream, Outgoing,
    Rewrite, RoundSummary, TerminalReason,
};
use agent_harness::{
    AfterTurn, AfterTurnCx, Background, Drained, Harness, HarnessConfig, Next, RoundSummaries, SourceError,
};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use async_trait::async_trait;

use crate::support::{Agent, Effects, Hands, Points, block, crash_after, id, talk, watch};

/// Takes a while, or never ends; counts how often it began and ended.
#[derive(Debug, Default)]
struct Slow {
    takes: Option<Duration>,
    began: AtomicUsize,
    ended: AtomicUsize,
}

#[async_trait]
impl AfterTurn for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    async fn run(&self, cx: &AfterTurnCx) -> Result<(), SourceError> {
        self.began.fetch_add(1, Ordering::SeqCst);
        match self.takes {
            Some(takes) => tokio::time::sleep(takes).await,
            None => {
                cx.cancel.cancelled().await;
                return Ok(());
            }
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

fn agent(replies: Vec<Reply>, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    let agent = Agent::with(ScriptedModel::new(replies).by_history(), Points::default(), Effects::default());
    let mut config = agent.harness.config().clone();
    change(&mut config);
    Agent { harness: Harness::new(config), ..agent }
}

/// Another process on the same store, with a script of its own.
fn again(agent: &Agent, replies: Vec<Reply>, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    let next = Agent::with(ScriptedModel::new(replies), agent.store.clone(), Effects::default());
    let mut config = next.harness.config().clone();
    change(&mut config);
    Agent { harness: Harness::new(config), ..next }
}

#[test]
fn nobody_waits_for_what_never_ends() {
    block(async {
        let slow = Arc::new(Slow::default());
        let work = slow.clone();
        let agent =
            agent(vec![Reply::text("one"), Reply::text("two")], |config| config.after_turn = vec![work]);
        let began = tokio::time::Instant::now();
        for text in ["hello", "again"] {
            let (events, end) = agent.say(text).await;
            assert_eq!(end.reason, TerminalReason::Done);
            assert!(matches!(events.last().unwrap().body, EventBody::SessionWaiting {}));
        }
        assert_eq!(began.elapsed(), Duration::ZERO, "of virtual time");
        let drained = agent.harness.drain(Duration::from_secs(1)).await;
        assert_eq!(drained, Drained { finished: 0, stopped: 2 });
        assert_eq!(slow.began.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn what_is_begun_is_finished_before_the_end() {
    block(async {
        let slow = Arc::new(Slow { takes: Some(Duration::from_secs(30)), ..Slow::default() });
        let work = slow.clone();
        let replies = ["one", "two", "three"].map(Reply::text).to_vec();
        let agent = agent(replies, |config| {
            config.after_turn = vec![work];
            config.background = Background::new(1);
        });
        for text in ["a", "b", "c"] {
            agent.say(text).await;
        }
        let began = tokio::time::Instant::now();
        let drained = agent.harness.drain(Duration::from_secs(300)).await;
        assert_eq!(drained, Drained { finished: 3, stopped: 0 });
        assert_eq!(began.elapsed(), Duration::from_secs(90), "one at a time");
        assert_eq!(slow.ended.load(Ordering::SeqCst), 3);
    });
}

/// Whoever drives: an engine that does one step a wake has the same done behind the turn, once.
#[test]
fn an_engine_has_it_done_too() {
    block(async {
        let slow = Arc::new(Slow { takes: Some(Duration::ZERO), ..Slow::default() });
        let work = slow.clone();
        let replies = vec![Reply::tool("look", r#"{"what":"x"}"#), Reply::text("one")];
        let agent = agent(replies, |config| config.after_turn = vec![work]);
        crash_after(agent.session().send("go").await.unwrap(), 3).await;
        for (next, finished) in [(Next::Step, 0), (Next::Ended(TerminalReason::Done), 1)] {
            let revision = agent.store.state(&id()).await.unwrap().unwrap().revision;
            for again in [false, true] {
                assert_eq!(agent.session().run_step(revision).await.unwrap().next, next);
                let drained = agent.harness.drain(Duration::from_secs(1)).await;
                assert_eq!(drained.finished, if again { 0 } else { finished });
            }
        }
        assert_eq!(slow.ended.load(Ordering::SeqCst), 1);
    });
}

/// Only what was brought to its end is looked at behind.
#[test]
fn a_turn_that_did_not_end_well_has_nothing_behind_it() {
    block(async {
        let slow = Arc::new(Slow::default());
        let work = slow.clone();
        let agent =
            agent(vec![Reply::tool("slow", r#"{"what":"x"}"#)], |config| config.after_turn = vec![work]);
        let run = agent.session().send("go").await.unwrap();
        run.cancel().cancel();
        assert_eq!(watch(run).await.1.reason, TerminalReason::Aborted);
        agent.harness.drain(Duration::from_secs(1)).await;
        assert_eq!(slow.began.load(Ordering::SeqCst), 0);
    });
}

/// What an agent would do is looked at without doing it, or counting it as done.
#[test]
fn an_agent_that_is_only_looked_at_has_nothing_behind_it() {
    block(async {
        let slow = Arc::new(Slow { takes: Some(Duration::ZERO), ..Slow::default() });
        let work = slow.clone();
        let agent = agent(vec![Reply::text("one")], |config| config.after_turn = vec![work]);
        let message = agent_core::UserMessage::text("hello").unwrap();
        agent.session().explain(Some(message)).await.unwrap();
        agent_harness::examine(agent.harness.config()).await;
        agent.harness.drain(Duration::from_secs(1)).await;
        assert_eq!(slow.began.load(Ordering::SeqCst), 0);
        assert!(agent.harness.config().process.spent().is_empty());
        agent.say("hello").await;
        agent.harness.drain(Duration::from_secs(1)).await;
        assert_eq!((slow.ended.load(Ordering::SeqCst), agent.harness.config().process.spent().len()), (1, 1));
    });
}

#[derive(Debug)]
struct Broken(bool);

#[async_trait]
impl AfterTurn for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    async fn run(&self, _: &AfterTurnCx) -> Result<(), SourceError> {
        assert!(!self.0, "it breaks down");
        Err(SourceError::new("the harbour", "it is closed"))
    }
}

#[test]
fn what_fails_behind_a_turn_harms_nobody() {
    block(async {
        let agent = agent(vec![Reply::text("one"), Reply::text("two")], |config| {
            config.after_turn = vec![Arc::new(Broken(true)), Arc::new(Broken(false))];
        });
        for text in ["a", "b"] {
            assert_eq!(agent.say(text).await.1.reason, TerminalReason::Done);
        }
        assert_eq!(agent.harness.drain(Duration::from_secs(1)).await.stopped, 0);
    });
}

const WORDS: [&str; 5] = ["planted tulips", "planted roses", "watered", "weeded", "raked"];

/// A session of five turns, with words on the first `told` of them.
async fn told(told: usize, clock: &Hands) -> Agent {
    let replies = (0..WORDS.len()).map(|at| Reply::text(format!("{at} {}", "done ".repeat(400)))).collect();
    let agent = agent(replies, |config| config.clock = Arc::new(clock.clone()));
    let words = WORDS.map(Reply::text).to_vec();
    let cheap: Arc<ScriptedModel> = Arc::new(ScriptedModel::new(words));
    let summaries: Arc<dyn AfterTurn> = Arc::new(RoundSummaries::by(cheap));
    for (at, text) in WORDS.iter().enumerate() {
        let mut config = agent.harness.config().clone();
        config.after_turn = (at < told).then(|| summaries.clone()).into_iter().collect();
        let harness = Harness::new(config);
        watch(harness.session(id()).send(format!("{at}: {text}?")).await.unwrap()).await;
        harness.drain(Duration::from_secs(60)).await;
    }
    agent
}

/// The boundary that a session has when it was taken up.
async fn boundary(agent: &Agent) -> Option<(String, usize)> {
    let history = agent.history().await;
    history.entries().iter().rev().find_map(|entry| {
        let Entry::Boundary(Rewrite::Summary { text, kept_from, .. }) = entry else { return None };
        Some((text.as_str().to_owned(), kept_from.position()))
    })
}

#[test]
fn a_session_is_taken_up_from_what_was_said_of_its_turns() {
    let check = |words: usize, raw: Option<usize>, later_ms: i64| {
        block(async {
            let clock = Hands::default();
            let first = told(words, &clock).await;
            clock.forward(later_ms);
            let next = again(&first, vec![Reply::text("ok")], |config| {
                config.clock = Arc::new(clock.clone());
                config.raw_rounds = raw;
            });
            let (events, end) = next.say("go on").await;
            assert_eq!(end.reason, TerminalReason::Done);
            let is_told = events.iter().any(|event| {
                matches!(&event.body, EventBody::CompactionCompleted { tier, before, after, .. }
                    if tier == "resume" && after < before)
            });
            let found = boundary(&next).await;
            assert_eq!(is_told, found.is_some());
            found
        })
    };
    let day = 86_400_000;
    let whole = "## Turn 1\nplanted tulips\n\n## Turn 2\nplanted roses".to_owned();
    assert_eq!(check(5, Some(3), day), Some((whole, 4)), "two turns have words, three are raw");
    assert_eq!(check(5, Some(4), day), Some(("## Turn 1\nplanted tulips".to_owned(), 2)));
    assert_eq!(check(5, Some(5), day), None, "there is nothing older");
    assert_eq!(check(5, None, day), None, "it is not wanted");
    assert_eq!(check(5, Some(3), 1_000), None, "the provider still has the conversation");
    assert_eq!(check(4, Some(3), day), None, "the last turn has no words");
    assert_eq!(check(0, Some(3), day), None);
}

/// The words of a turn that had none are written with those of the next.
#[test]
fn what_was_missed_is_told_with_the_next_turn() {
    block(async {
        let agent = agent(["one", "two"].map(Reply::text).to_vec(), |_| {});
        agent.say("a").await;
        let cheap: Arc<ScriptedModel> = Arc::new(ScriptedModel::new(vec![Reply::text("both")]));
        let next = again(&agent, vec![Reply::text("one"), Reply::text("two")], |config| {
            config.after_turn = vec![Arc::new(RoundSummaries::by(cheap.clone()))];
        });
        next.say("b").await;
        next.harness.drain(Duration::from_secs(60)).await;
        let [round] = &next.store.rounds(&id()).await.unwrap()[..] else { panic!("one") };
        assert_eq!((round.turn, round.from.position(), round.to.position()), (2, 0, 4));
        assert_eq!(talk(&next.history().await).lines().count(), 4, "the session itself is as it was");
    });
}

/// Says little of a turn, and still less of many.
#[derive(Debug)]
struct Gardener {
    of_one: ScriptedModel,
    of_many: ScriptedModel,
    folds: AtomicUsize,
}

impl Default for Gardener {
    fn default() -> Self {
        let always = |words: &str, times| ScriptedModel::new(vec![Reply::text(words.repeat(times)); 99]);
        Self {
            of_one: always("planted tulips ", 80),
            of_many: always("a garden ", 100),
            folds: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl LanguageModel for Gardener {
    fn profile(&self) -> &ModelProfile {
        self.of_one.profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.of_one.encoder()
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        if !String::from_utf8(request.body.to_vec()).unwrap().contains("You shorten") {
            return self.of_one.stream(request, cancel).await;
        }
        self.folds.fetch_add(1, Ordering::SeqCst);
        self.of_many.stream(request, cancel).await
    }
}

/// However long a session gets, what it is taken up from stays small: the words on older turns are told of together.
#[test]
fn the_words_on_many_turns_are_told_of_together() {
    const TURNS: usize = 30;
    block(async {
        let clock = Hands::default();
        let replies = (0..TURNS).map(|at| Reply::text(format!("{at} {}", "done ".repeat(400)))).collect();
        let agent = agent(replies, |config| config.clock = Arc::new(clock.clone()));
        let cheap = Arc::new(Gardener::default());
        let mut sizes = Vec::new();
        for at in 0..TURNS {
            let mut config = agent.harness.config().clone();
            config.after_turn = vec![Arc::new(RoundSummaries::by(cheap.clone()))];
            config.raw_rounds = Some(3);
            let harness = Harness::new(config);
            watch(harness.session(id()).send(format!("turn {at}")).await.unwrap()).await;
            harness.drain(Duration::from_secs(60)).await;
            let rounds = agent.store.rounds(&id()).await.unwrap();
            let standing = RoundSummary::standing(&rounds);
            assert_eq!(standing[0].from.position(), 0, "from the beginning");
            assert!(standing.windows(2).all(|pair| pair[0].to == pair[1].from), "{standing:?}");
            assert_eq!(standing.last().unwrap().turn, at as u64 + 1);
            sizes.push(standing.iter().map(|round| round.text.as_str().len()).sum::<usize>() / 4);
        }
        assert!(sizes.iter().all(|tokens| *tokens < 4_000), "{sizes:?}");
        let folds = cheap.folds.load(Ordering::SeqCst);
        assert!((2..TURNS / 3).contains(&folds), "{folds} times");

        clock.forward(86_400_000);
        let next = again(&agent, vec![Reply::text("ok")], |config| {
            config.clock = Arc::new(clock.clone());
            config.raw_rounds = Some(3);
        });
        next.say("go on").await;
        let (text, kept_from) = boundary(&next).await.unwrap();
        assert!(text.starts_with("## Turns 1 to "), "{text}");
        assert_eq!(kept_from, 2 * (TURNS - 3));
    });
}
