//! A person decides: what they edit, what is remembered of their answer, and for how long.

use std::sync::{Arc, Mutex};

use agent_core::{Entry, Layer, RawJson};
use agent_harness::{Answer, Asker, AskerError, RuleSink, RuleSinkError};
use agent_store::Store;
use agent_testkit::Reply;
use agent_tools::{AskRequest, PermissionMode, PermissionRule};
use async_trait::async_trait;

use super::{agent, both_parallel, diagnosed, taken_up};
use crate::support::{Agent, Effects, Points, block, id, talk};

/// Gives these answers, the last one for ever, and notes what was asked.
#[derive(Debug)]
struct Person(Effects, Mutex<Vec<Answer>>);

impl Person {
    fn answers(effects: &Effects, answers: &[Answer]) -> Arc<Self> {
        Arc::new(Self(effects.clone(), Mutex::new(answers.to_vec())))
    }
}

#[async_trait]
impl Asker for Person {
    async fn ask(&self, request: &AskRequest) -> Result<Answer, AskerError> {
        let again = request.asked_again().map_or_else(String::new, |why| format!(" ({why})"));
        self.0.add(format!("asked {}{}{again}", request.tool(), request.input()));
        let mut answers = self.1.lock().unwrap();
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }
}

/// Keeps rules, or cannot.
#[derive(Debug)]
struct Sink(Effects, bool);

#[async_trait]
impl RuleSink for Sink {
    async fn remember(&self, rules: &[PermissionRule]) -> Result<(), RuleSinkError> {
        for rule in rules {
            self.0.add(format!("keeps {rule}"));
        }
        if self.1 { Ok(()) } else { Err(std::io::Error::other("the disk is full").into()) }
    }
}

fn edit(json: &str) -> Answer {
    Answer::Edit(RawJson::parse(json).unwrap())
}

/// Two calls of `put` in two steps, and then a third in another process.
fn puts() -> Vec<Reply> {
    let put = |what: &str| Reply::tool("put", format!(r#"{{"what":"{what}"}}"#));
    vec![put("a"), put("b"), Reply::text("ok"), put("c"), Reply::text("ok")]
}

#[derive(Clone, Copy)]
struct Asking<'a> {
    answers: &'a [Answer],
    rules: &'a [PermissionRule],
    /// Whether there is somewhere to keep rules, and whether that works.
    sink: Option<bool>,
}

fn asking(store: Points, asking: Asking<'_>) -> Agent {
    taken_up(puts(), store, |config, effects| {
        config.permissions.mode = PermissionMode::Default;
        config.permissions.rules = asking.rules.to_vec();
        config.asker = Person::answers(effects, asking.answers);
        config.rule_sink = asking.sink.map(|works| Arc::new(Sink(effects.clone(), works)) as _);
    })
}

/// What was asked, ran and was told in the first turn; whether the second process asks.
fn check(how: Asking<'_>) -> String {
    block(async {
        let first = asking(Points::default(), how);
        let (events, _) = first.say("go").await;
        let slots = first.store.load(&id()).await.unwrap().unwrap().checkpoint.slots;
        let second = asking(first.store.clone(), how);
        second.say("more").await;
        let asks_again = second.effects.all().iter().any(|line| line.starts_with("asked"));
        let lines = [first.effects.all(), diagnosed(&events)].concat();
        format!("{}\nremembers {:?}, asks later: {asks_again}", lines.join("\n"), slots.allowed)
    })
}

#[test]
fn what_is_allowed_always_is_remembered() {
    let how = Asking { answers: &[Answer::Allow], rules: &[], sink: None };
    insta::assert_snapshot!(check(how), @r#"
    asked put{"what":"a"}
    a
    asked put{"what":"b"}
    b
    remembers [], asks later: true
    "#);
    let always = [Answer::Always(Layer::Session)];
    insta::assert_snapshot!(check(Asking { answers: &always, ..how }), @r#"
    asked put{"what":"a"}
    a
    b
    remembers ["put"], asks later: false
    "#);
    let user = [Answer::Always(Layer::User)];
    insta::assert_snapshot!(check(Asking { answers: &user, sink: Some(true), ..how }), @r#"
    asked put{"what":"a"}
    keeps allow put (user)
    a
    b
    remembers ["put"], asks later: false
    "#);
    insta::assert_snapshot!(check(Asking { answers: &user, sink: Some(false), ..how }), @r#"
    asked put{"what":"a"}
    keeps allow put (user)
    a
    b
    permissions: put is allowed for this session only: the rules could not be kept: the disk is full
    remembers ["put"], asks later: false
    "#);
    insta::assert_snapshot!(check(Asking { answers: &user, ..how }), @r#"
    asked put{"what":"a"}
    a
    b
    permissions: put is allowed for this session only: the program keeps no rules beyond it
    remembers ["put"], asks later: false
    "#);
    let managed = [Answer::Always(Layer::Managed)];
    insta::assert_snapshot!(check(Asking { answers: &managed, sink: Some(true), ..how }), @r#"
    asked put{"what":"a"}
    a
    b
    permissions: put is allowed for this session only: managed rules are not written by an answer
    remembers ["put"], asks later: false
    "#);
    let firm = [PermissionRule::ask("put".parse().unwrap()).from_layer(Layer::Managed)];
    insta::assert_snapshot!(check(Asking { answers: &always, rules: &firm, ..how }), @r#"
    asked put{"what":"a"}
    a
    asked put{"what":"b"}
    b
    permissions: this call of put runs once and nothing is remembered of it: no rule could say exactly what was allowed, or would hold against the one that asks
    permissions: this call of put runs once and nothing is remembered of it: no rule could say exactly what was allowed, or would hold against the one that asks
    remembers [], asks later: true
    "#);
}

#[test]
fn what_is_remembered_never_outranks_a_refusal() {
    block(async {
        let always = [Answer::Always(Layer::Session)];
        let first = asking(Points::default(), Asking { answers: &always, rules: &[], sink: None });
        first.say("go").await;
        let deny = [PermissionRule::deny("put".parse().unwrap())];
        let second = asking(first.store.clone(), Asking { answers: &always, rules: &deny, sink: None });
        second.say("more").await;
        assert_eq!(second.effects.all(), [""; 0]);
    });
}

#[test]
fn one_answer_covers_the_calls_beside_it() {
    block(async {
        let replies = vec![Reply::tool("launch", "{}").call("launch", r#"{"n":1}"#), Reply::text("ok")];
        let agent = agent(replies, |config, effects| {
            config.permissions.mode = PermissionMode::Default;
            config.tools = both_parallel(effects);
            config.asker = Person::answers(effects, &[Answer::Always(Layer::Session)]);
        });
        agent.say("go").await;
        assert_eq!(agent.effects.all(), ["asked launch{}", "launch", "launch"]);
    });
}

/// What a person's other inputs make of a call of `put` with `{"what":"a"}`.
fn edited(answers: &[Answer], rules: &[PermissionRule]) -> String {
    block(async {
        let replies = vec![Reply::tool("put", r#"{"what":"a"}"#), Reply::text("ok")];
        let agent = agent(replies, |config, effects| {
            config.permissions.mode = PermissionMode::Default;
            config.permissions.rules = rules.to_vec();
            config.asker = Person::answers(effects, answers);
        });
        agent.say("go").await;
        let history = agent.history().await;
        let Entry::Step(step) = &history.entries()[1] else { panic!("a step") };
        let call = step.pairs().next().unwrap().0;
        assert_eq!(call.input.as_str(), r#"{"what":"a"}"#, "the model's own call stays");
        let said = talk(&history);
        let result = said.split_once("step: ").unwrap().1.rsplit_once("\nstep: ").unwrap().0;
        format!("{}\n{result}", agent.effects.all().join("\n"))
    })
}

#[test]
fn another_input_is_held_against_tool_and_rules() {
    insta::assert_snapshot!(edited(&[edit(r#"{"what":"b"}"#)], &[]), @r#"
    asked put{"what":"a"}
    b
    put -> put b
    <system-reminder>
    What ran is not what you wrote: the user put this input in its place:
    {"what":"b"}
    </system-reminder>
    "#);
    insta::assert_snapshot!(edited(&[edit(r#"{"what":"a"}"#)], &[]), @r#"
    asked put{"what":"a"}
    a
    put -> put a
    "#);
    insta::assert_snapshot!(edited(&[edit(r#"{"what":null}"#), Answer::Allow], &[]), @r#"
    asked put{"what":"a"}
    asked put{"what":"a"} (The input of `put` does not fit: at `what`: invalid type: null, expected a string at line 1 column 12. Call it again with: what (required))
    a
    put -> put a
    "#);
    insta::assert_snapshot!(edited(&[edit(r#"{"what":7}"#), edit(r#"{"what":"b"}"#)], &[]), @r#"
    asked put{"what":"a"}
    asked put{"what":"a"} (The input of `put` does not fit: at `what`: invalid type: integer `7`, expected a string at line 1 column 9. Call it again with: what (required))
    b
    put -> put b
    <system-reminder>
    What ran is not what you wrote: the user put this input in its place:
    {"what":"b"}
    </system-reminder>
    "#);
    let deny = [PermissionRule::deny(r#"put(*"b"*)"#.parse().unwrap())];
    insta::assert_snapshot!(edited(&[edit(r#"{"what":"b"}"#)], &deny), @r#"
    asked put{"what":"a"}
    put -> `put` was not run: a permission rule of this session refuses it because of `{"what":"b"}`. Do not call it again; reach the goal with other tools, or tell the user what you need and why.
    <system-reminder>
    What was to run is not what you wrote: the user put this input in its place:
    {"what":"b"}
    </system-reminder>
    "#);
}

#[test]
fn answers_that_can_never_be_used_end_as_a_refusal() {
    let told = edited(&[edit("[]")], &[]);
    assert_eq!(told.lines().filter(|line| line.starts_with("asked")).count(), 10);
    assert!(told.contains("nobody can be asked"), "{told}");
}
