//! A classifier before a person: it allows and refuses, and what goes wrong with it is told and asks.

use std::sync::Arc;

use agent_core::RawJson;
use agent_harness::Answer;
use agent_testkit::Reply;
use agent_tools::{Classified, Classifier, ClassifierError, Matter, Permissions};
use async_trait::async_trait;

use super::{Person, agent, diagnosed, results};
use crate::support::{Effects, block};

#[derive(Debug)]
struct Judge(&'static str, Effects);

#[async_trait]
impl Classifier for Judge {
    fn name(&self) -> &str {
        "judge"
    }

    async fn classify(&self, matter: &Matter<'_>, _input: &RawJson) -> Result<Classified, ClassifierError> {
        self.1.add(format!("looked at {}", matter.tool));
        match self.0 {
            "allow" => Ok(Classified::Allow),
            "deny" => Ok(Classified::Deny("Not at night.".to_owned())),
            "fail" => Err(ClassifierError::new("judge", "no model")),
            "break" => panic!("the gavel broke"),
            "wait" => std::future::pending().await,
            _ => Ok(Classified::Ask),
        }
    }
}

/// What was done, what the model read, and what was told.
fn check(does: &'static str, answer: Answer) -> String {
    block(async {
        let agent =
            agent(vec![Reply::tool("put", r#"{"what":"a"}"#), Reply::text("ok")], |config, effects| {
                let judge = Arc::new(Judge(does, effects.clone()));
                config.permissions = Permissions { classifier: Some(judge), ..Permissions::default() };
                config.asker = Arc::new(Person(effects.clone(), answer));
            });
        let (events, _) = agent.say("go").await;
        let words = results(&agent.history().await).remove(0).plain();
        format!("{:?}\n{words}\n{}", agent.effects.all(), diagnosed(&events).join("\n"))
    })
}

#[test]
fn a_classifier_stands_before_a_person() {
    insta::assert_snapshot!(check("allow", Answer::Deny(None)), @r#"
    ["looked at put", "a"]
    put a
    "#);
    insta::assert_snapshot!(check("deny", Answer::Allow), @r#"
    ["looked at put"]
    `put` was not run: the classifier `judge` refuses it. Not at night. Do not repeat the call; reach the goal with other tools, or tell the user what you need and why.
    "#);
    insta::assert_snapshot!(check("ask", Answer::Allow), @r#"
    ["looked at put", "asked put({\"what\":\"a\"})", "a"]
    put a
    "#);
    insta::assert_snapshot!(check("fail", Answer::Allow), @r#"
    ["looked at put", "asked put({\"what\":\"a\"})", "a"]
    put a
    permissions: the classifier `judge` failed: no model; a person is asked
    "#);
    insta::assert_snapshot!(check("break", Answer::Deny(None)), @r#"
    ["looked at put", "asked put({\"what\":\"a\"})"]
    User denied `put`; it was not run. Do not repeat the call; find another way or ask what they want.
    permissions: the classifier `judge` failed: it broke down (the gavel broke); a person is asked
    "#);
    insta::assert_snapshot!(check("wait", Answer::Allow), @r#"
    ["looked at put", "asked put({\"what\":\"a\"})", "a"]
    put a
    permissions: the classifier `judge` failed: it took longer than 30 s; a person is asked
    "#);
}

#[test]
fn an_agent_that_is_examined_asks_no_classifier() {
    block(async {
        let agent = agent(vec![Reply::text("ok")], |config, effects| {
            let judge = Arc::new(Judge("allow", effects.clone()));
            config.permissions = Permissions { classifier: Some(judge), ..Permissions::default() };
        });
        agent_harness::examine(agent.harness.config()).await;
        assert_eq!(agent.effects.all(), [""; 0]);
    });
}

#[test]
fn a_stop_ends_the_wait_for_a_classifier() {
    block(async {
        let agent = agent(vec![Reply::tool("put", r#"{"what":"a"}"#)], |config, effects| {
            let judge = Arc::new(Judge("wait", effects.clone()));
            config.permissions = Permissions { classifier: Some(judge), ..Permissions::default() };
        });
        let run = agent.session().send("go").await.unwrap();
        let (cancel, effects) = (run.cancel(), agent.effects.clone());
        let (end, ()) = tokio::join!(run.finish(), async move {
            while effects.all().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        assert_eq!(end.unwrap().reason, agent_core::TerminalReason::Aborted);
        assert_eq!(agent.effects.all(), ["looked at put"], "nothing ran");
    });
}
