//! Work behind steps: told of each commit in order, of what came meanwhile the newest only, and awaited by nobody.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_core::EventBody;
use agent_harness::{AfterStep, AfterStepCx, Background, Drained, ForkedRun, SourceError};
use agent_testkit::Reply;
use async_trait::async_trait;

use super::{again, agent};
use crate::support::{block, id, watch};

/// Takes so long for each step, and writes down what it is told.
#[derive(Debug)]
struct Keeps {
    takes: Option<Duration>,
    told: Mutex<Vec<String>>,
    breaks: bool,
}

impl Keeps {
    fn new(takes: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { takes, told: Mutex::default(), breaks: false })
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

#[async_trait]
impl AfterStep for Keeps {
    fn name(&self) -> &'static str {
        "keeps"
    }

    async fn run(&self, cx: &AfterStepCx) -> Result<(), SourceError> {
        let AfterStepCx { session, turn, step, calls, session_calls, next, ends_turn, .. } = cx;
        assert_eq!(cx.is_natural_break(), *calls == 0);
        assert!(cx.tokens > 0);
        let end = if *ends_turn { " end" } else { "" };
        let told =
            format!("{session} {turn}/{step}: {calls} of {session_calls} calls, at {}{end}", next.position());
        self.told.lock().unwrap().push(told);
        match self.takes {
            Some(takes) => tokio::time::sleep(takes).await,
            None => cx.cancel.cancelled().await,
        }
        assert!(!self.breaks, "it breaks down");
        Ok(())
    }
}

fn script() -> Vec<Reply> {
    let look = |what: &str| Reply::tool("look", format!(r#"{{"what":"{what}"}}"#));
    vec![look("a").call("look", r#"{"what":"b"}"#), look("c"), Reply::text("Done."), Reply::text("Bye.")]
}

#[test]
fn each_step_is_told_in_order() {
    block(async {
        let keeps = Keeps::new(Some(Duration::ZERO));
        let work = keeps.clone();
        let agent = agent(script(), |config| config.after_step = vec![work]);
        let mut run = agent.session().send("look").await.unwrap();
        while let Some(event) = run.next().await {
            if matches!(event.body, EventBody::StepCompleted { .. }) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        run.finish().await.unwrap();
        agent.harness.drain(Duration::from_secs(1)).await;
        // Another process counts on.
        let work = keeps.clone();
        let next = again(&agent, vec![Reply::text("Bye.")], |config| config.after_step = vec![work]);
        next.say("bye").await;
        next.harness.drain(Duration::from_secs(1)).await;
        insta::assert_snapshot!(keeps.told().join("\n"), @"
        s turn_1/0: 2 of 2 calls, at 2
        s turn_1/1: 1 of 3 calls, at 3
        s turn_1/2: 0 of 3 calls, at 4 end
        s turn_2/0: 0 of 3 calls, at 6 end
        ");
    });
}

#[test]
fn of_what_came_meanwhile_the_newest_waits() {
    block(async {
        let keeps = Keeps::new(Some(Duration::from_secs(30)));
        let work = keeps.clone();
        let agent = agent(script(), |config| {
            config.after_step = vec![work];
            config.background = Background::new(1);
        });
        let began = tokio::time::Instant::now();
        agent.say("look").await;
        agent.say("bye").await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nobody waits");
        assert_eq!(agent.harness.config().background.pending(), 1);
        let drained = agent.harness.drain(Duration::from_secs(300)).await;
        assert_eq!((drained, began.elapsed().as_secs()), (Drained { finished: 1, stopped: 0 }, 60));
        insta::assert_snapshot!(keeps.told().join("\n"), @"
        s turn_1/0: 2 of 2 calls, at 2
        s turn_2/0: 0 of 3 calls, at 6 end
        ");
    });
}

#[test]
fn what_never_ends_is_stopped_and_what_breaks_down_lets_others_begin() {
    block(async {
        let never = Keeps::new(None);
        let work = never.clone();
        let endless = agent(script(), |config| config.after_step = vec![work]);
        endless.say("look").await;
        let drained = endless.harness.drain(Duration::from_secs(1)).await;
        assert_eq!(drained, Drained { finished: 0, stopped: 1 });
        assert_eq!(never.told().len(), 1, "what waited does not begin any more");

        let breaks = Keeps { takes: Some(Duration::ZERO), told: Mutex::default(), breaks: true };
        let breaks = Arc::new(breaks);
        let work = breaks.clone();
        let broken = agent(script(), |config| config.after_step = vec![work]);
        for text in ["look", "bye"] {
            broken.say(text).await;
            broken.harness.drain(Duration::from_secs(1)).await;
        }
        assert_eq!(breaks.told().last().unwrap(), "s turn_2/0: 0 of 3 calls, at 6 end");
    });
}

#[test]
fn runs_beside_a_session_and_sessions_apart_are_told_of_apart() {
    block(async {
        let keeps = Keeps::new(Some(Duration::from_secs(30)));
        let work = keeps.clone();
        let agent = agent(vec![Reply::text("Hello."), Reply::text("Hello.")], |config| {
            config.after_step = vec![work]
        });
        agent.say("hi").await;
        let run = ForkedRun::new(agent_core::UserMessage::text("sum up").unwrap());
        agent.session().fork_run(run).await.unwrap();
        let other = agent.harness.session(agent_core::SessionId::new("other").unwrap());
        watch(other.send("hi").await.unwrap()).await;
        agent.harness.drain(Duration::from_secs(300)).await;
        let told = keeps.told();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with(&format!("{} ", id())) && told[1].starts_with("other "), "{told:?}");
    });
}
