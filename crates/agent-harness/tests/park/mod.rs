//! Turns that wait for somebody outside, and go on when the replies are there.

mod matrix;
mod said;
mod steps;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_builtins::{agent as agent_tool, ask_question};
use agent_core::{
    Authorization, Event, EventBody, InputRequest, Layer, ParkKind, RawJson, Reply as Answer, RequestId,
    TerminalReason, ToolOutput, Wait,
};
use agent_harness::{AskLater, Harness, HarnessConfig, HarnessError, RequestError, Run, Session};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, ClientTool, Permissions, Tool, ToolConfig, ToolEnd, ToolError, ToolSet};

use crate::support::{Agent, Effects, Hands, Points, block, crash_after, log, talk, tools, watch};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct What {
    what: String,
}

/// A tool that needs a sign-in first, and tells each time it is run.
fn issues(effects: &Effects, signed_in: &Arc<AtomicBool>) -> Arc<dyn Tool> {
    let (effects, signed_in) = (effects.clone(), signed_in.clone());
    let run = move |_, input: What| {
        let (effects, signed_in) = (effects.clone(), signed_in.clone());
        async move {
            if !signed_in.load(Ordering::SeqCst) {
                effects.add("asked for a sign-in");
                let url = "https://issues.test/sign-in".to_owned();
                let wait = Authorization { service: "the issue tracker".into(), url };
                return Ok::<ToolEnd, ToolError>(Wait::Authorization(wait).into());
            }
            effects.add(format!("filed {}", input.what));
            Ok(ToolOutput::text(format!("filed {}", input.what)).into())
        }
    };
    ToolConfig::new("issues", "Files an issue.", Access::Session, run).build().unwrap()
}

/// The tools of the other tests, and those whose calls wait.
fn waiting_tools(effects: &Effects, signed_in: &Arc<AtomicBool>) -> ToolSet {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    ToolSet::builder()
        .extend(tools(effects).iter().cloned())
        .with(ask_question())
        .with(agent_tool(&[]))
        .with(issues(effects, signed_in))
        .with(ClientTool::new("click", "Clicks.", &schema, Access::Session).unwrap())
        .freeze()
        .unwrap()
}

/// Everything that a test of parked turns looks at; another process shares its store, effects and sign-in.
struct Scene {
    agent: Agent,
    signed_in: Arc<AtomicBool>,
    clock: Hands,
    replies: Vec<Reply>,
}

impl Scene {
    fn new(replies: Vec<Reply>) -> Self {
        let (store, effects) = (Points::default(), Effects::default());
        Self::over(replies, store, effects, Arc::default(), Hands::default())
    }

    fn over(
        replies: Vec<Reply>,
        store: Points,
        effects: Effects,
        signed_in: Arc<AtomicBool>,
        clock: Hands,
    ) -> Self {
        let model = ScriptedModel::new(replies.clone()).by_history();
        let agent = Agent::with(model, store, effects);
        let config = HarnessConfig {
            tools: waiting_tools(&agent.effects, &signed_in),
            permissions: Permissions::default(),
            asker: Arc::new(AskLater),
            request_lifetime: Some(Duration::from_secs(60)),
            clock: Arc::new(clock.clone()),
            ..agent.harness.config().clone()
        };
        Self { agent: Agent { harness: Harness::new(config), ..agent }, signed_in, clock, replies }
    }

    /// Another process on the same store.
    fn again(self) -> Self {
        let (store, effects) = (self.agent.store.clone(), self.agent.effects.clone());
        Self::over(self.replies, store, effects, self.signed_in, self.clock)
    }

    /// Says it; what the turn waits for then.
    async fn park(&self, kind: ParkKind) -> (Vec<Event>, Vec<InputRequest>) {
        let (events, end) = self.agent.say("go").await;
        assert_eq!(end.reason, TerminalReason::Parked(kind));
        assert_eq!(self.agent.session().requests().await.unwrap(), end.requests, "another process sees them");
        (events, end.requests)
    }

    async fn respond(&self, request: &RequestId, reply: Answer) -> TerminalReason {
        watch(taken(&self.agent.session(), request, reply).await.unwrap()).await.1.reason
    }

    async fn results(&self) -> String {
        talk(&self.agent.history().await).lines().nth(1).unwrap_or_default().to_owned()
    }
}

/// Replies; the run that takes the turn up.
async fn taken(session: &Session, request: &RequestId, reply: Answer) -> Result<Run, HarnessError> {
    Ok(session.respond(request, reply).await?.run().unwrap())
}

/// One call that waits, a reply to it, and what the model is told of it.
struct Row {
    kind: ParkKind,
    call: Reply,
    reply: Answer,
    result: &'static str,
    effects: &'static [&'static str],
}

fn rows() -> Vec<Row> {
    let ask = || Reply::tool("ask_question", r#"{"question":"Which bed?","options":[{"label":"tulips"}]}"#);
    let put = || Reply::tool("put", r#"{"what":"a"}"#);
    let row = |kind, call, reply, result, effects| Row { kind, call, reply, result, effects };
    let input = RawJson::parse(r#"{"what":"b"}"#).unwrap();
    let denied = r#"put -> User denied `put`; it was not run. They say: "Not today.". Do not repeat the call; find another way or ask what they want."#;
    let edited = "put -> put b\n<system-reminder>\nWhat ran is not what you wrote: the user put this input in its place:\n{\"what\":\"b\"}\n</system-reminder>";
    let no_sign_in = "issues -> Not run: the sign-in it needs was declined. Do not ask for it again; go on without it, or finish and say what is missing.";
    let no_answer = "ask_question -> There is no answer: it was declined. They say: \"Later.\". Do not ask for it again; go on without it, or finish and say what is missing.";
    let words = |words: &str| Some(words.to_owned());
    vec![
        row(ParkKind::Question, ask(), Answer::Answer(vec!["roses".into()]), "ask_question -> roses", &[]),
        row(ParkKind::Question, ask(), Answer::Decline(words("Later.")), no_answer, &[]),
        row(ParkKind::Approval, put(), Answer::Allow, "put -> put a", &["a"]),
        row(ParkKind::Approval, put(), Answer::Always(Layer::Session), "put -> put a", &["a"]),
        row(ParkKind::Approval, put(), Answer::Edit(input), edited, &["b"]),
        row(ParkKind::Approval, put(), Answer::Decline(words("Not today.")), denied, &[]),
        row(
            ParkKind::Authorization,
            Reply::tool("issues", r#"{"what":"x"}"#),
            Answer::SignedIn,
            "issues -> filed x",
            &["asked for a sign-in", "filed x"],
        ),
        row(
            ParkKind::Authorization,
            Reply::tool("issues", r#"{"what":"x"}"#),
            Answer::Decline(None),
            no_sign_in,
            &["asked for a sign-in"],
        ),
        row(
            ParkKind::Action,
            Reply::tool("agent", r#"{"task":"Count."}"#),
            Answer::Output(ToolOutput::text("seven")),
            "agent -> seven",
            &[],
        ),
        row(
            ParkKind::ClientTool,
            Reply::tool("click", r#"{"selector":"a"}"#),
            Answer::Output(ToolOutput::error("nothing there")),
            "click -> nothing there",
            &[],
        ),
    ]
}

#[test]
fn each_kind_of_wait_parks_and_goes_on() {
    for restart in [false, true] {
        for row in rows() {
            block(async {
                let mut scene = Scene::new(vec![row.call, Reply::text("ok")]);
                let (_, requests) = scene.park(row.kind).await;
                assert_eq!(requests.len(), 1);
                if restart {
                    scene = scene.again();
                }
                scene.signed_in.store(true, Ordering::SeqCst);
                assert_eq!(scene.respond(&requests[0].id, row.reply).await, TerminalReason::Done);
                let said = talk(&scene.agent.history().await);
                assert_eq!(said, format!("user: 1\nstep: {}\nstep: ", row.result));
                assert_eq!(scene.agent.effects.all(), row.effects);
                assert!(scene.agent.session().requests().await.unwrap().is_empty());
            });
        }
    }
}

#[test]
fn the_request_is_stored_before_it_is_told() {
    block(async {
        let scene = Scene::new(vec![Reply::tool("ask_question", r#"{"question":"Q"}"#), Reply::text("ok")]);
        let (events, requests) = scene.park(ParkKind::Question).await;
        let told = events.iter().find_map(|event| {
            let EventBody::InputRequested(request) = &event.body else { return None };
            Some((event.seq, request.clone()))
        });
        let (seq, request) = told.unwrap();
        assert_eq!((seq.is_some(), &request), (true, &requests[0]), "a durable event");
        insta::assert_snapshot!(request.id, @"req_e0c99c54e711086d1bdaf58d");
        insta::assert_snapshot!(log(&events), @r#"
        1 [] session.started
        2 [turn_1] turn.started
        3 [turn_1] message.received go
        4 [turn_1/0] step.started
        5 [turn_1/0] cache.system_hash
        - [turn_1/0] tool_input.delta
        - [turn_1/0] tool_input.delta {"question":"Q"}
        6 [turn_1/0] actions.requested
        7 [turn_1/0] input.requested
        8 [turn_1/0] turn.waiting
        "#);
        let (events, _) = watch(
            taken(&scene.agent.session(), &request.id, Answer::Answer(vec!["A".into()])).await.unwrap(),
        )
        .await;
        insta::assert_snapshot!(log(&events), @"
        9 [turn_1/0] input.closed
        10 [turn_1/0] action.result completed
        11 [turn_1/0] step.completed
        12 [turn_1/1] step.started
        13 [turn_1/1] cache.system_hash
        - [turn_1/1] text.delta ok
        14 [turn_1/1] step.completed
        15 [turn_1] turn.completed done
        16 [] session.waiting
        ");
    });
}

/// Says it, dies after so many polls, and goes on in another process until the turn waits; `None` where a call was lost
/// whose effect nobody knows.
async fn parked_after(row: &Row, polls: usize) -> Option<(Scene, InputRequest)> {
    let scene = Scene::new(vec![row.call.clone(), Reply::text("ok")]);
    let end = crash_after(scene.agent.session().send("go").await.unwrap(), polls).await;
    let scene = scene.again();
    if end.is_none() {
        // The same command again, as a person would.
        let end = scene.agent.say("go").await.1;
        if scene.results().await.contains("Outcome unknown") {
            assert_eq!(row.kind, ParkKind::Authorization, "it began before it asked");
            return None;
        }
        assert_eq!(end.reason, TerminalReason::Parked(row.kind), "after {polls} polls");
    }
    let requests = scene.agent.session().requests().await.unwrap();
    assert_eq!(requests.len(), 1, "after {polls} polls");
    Some((scene, requests[0].clone()))
}

/// Replies, dies after so many polls, and goes on in another process until the turn is done.
async fn done_after(row: &Row, scene: Scene, request: &RequestId, polls: usize) -> Scene {
    scene.signed_in.store(true, Ordering::SeqCst);
    let run = taken(&scene.agent.session(), request, row.reply.clone()).await.unwrap();
    let end = crash_after(run, polls).await;
    let scene = scene.again();
    if end.is_some() {
        return scene;
    }
    let session = scene.agent.session();
    let run = match taken(&session, request, row.reply.clone()).await {
        // It was stored before the crash.
        Err(HarnessError::Request { .. }) => session.resume().await,
        other => other,
    };
    match run {
        Ok(run) => assert_eq!(watch(run).await.1.reason, TerminalReason::Done, "after {polls} polls"),
        Err(HarnessError::NothingToResume(_)) => {}
        Err(error) => panic!("{error}"),
    }
    scene
}

/// Dropped at any point, the same question is the same request, and no call that had an effect runs again.
#[test]
fn a_crash_anywhere_asks_the_same_again() {
    for row in rows() {
        let mut ids = std::collections::BTreeSet::new();
        for polls in 0..60 {
            block(async {
                let Some((scene, request)) = parked_after(&row, polls).await else { return };
                ids.insert(request.id.clone());
                let scene = done_after(&row, scene, &request.id, polls).await;
                let effects = scene.agent.effects.all();
                let once = effects.iter().filter(|effect| *effect != "asked for a sign-in").count();
                assert!(once <= 1, "after {polls} polls: {effects:?}");
                let said = talk(&scene.agent.history().await);
                let unknown = said.contains("Outcome unknown");
                assert!(said.contains(row.result) || unknown, "after {polls} polls: {said}");
            });
        }
        assert_eq!(ids.len(), 1, "{ids:?}");
    }
}

#[test]
fn replies_in_any_order() {
    let ask = |question: &str| format!(r#"{{"question":"{question}"}}"#);
    for order in [[0, 1], [1, 0]] {
        for restart in [false, true] {
            block(async {
                let calls = Reply::tool("ask_question", &*ask("one"))
                    .call("look", r#"{"what":"x"}"#)
                    .call("ask_question", &*ask("two"));
                let mut scene = Scene::new(vec![calls, Reply::text("ok")]);
                let (_, requests) = scene.park(ParkKind::Question).await;
                assert_eq!(requests.len(), 2, "both are asked at once");
                let said = |at: usize| Answer::Answer(vec![format!("answer {at}")]);
                let first = scene.respond(&requests[order[0]].id, said(order[0])).await;
                assert_eq!(first, TerminalReason::Parked(ParkKind::Question), "one is missing");
                if restart {
                    scene = scene.again();
                }
                assert_eq!(scene.respond(&requests[order[1]].id, said(order[1])).await, TerminalReason::Done);
                assert_eq!(
                    scene.results().await,
                    "step: ask_question -> answer 0; look -> saw x; ask_question -> answer 1"
                );
            });
        }
    }
}

#[test]
fn what_cannot_be_taken_changes_nothing() {
    block(async {
        let scene = Scene::new(vec![Reply::tool("put", r#"{"what":"a"}"#), Reply::text("ok")]);
        let session = scene.agent.session();
        let (_, requests) = scene.park(ParkKind::Approval).await;
        let (request, before) = (&requests[0].id, scene.agent.store.writes());
        let check =
            async |id: &RequestId, reply: Answer| session.respond(id, reply).await.unwrap_err().to_string();
        let input = |json: &str| RawJson::parse(json).unwrap();
        insta::assert_snapshot!(check(&RequestId::given("req_x"), Answer::Allow).await, @"session s: there is no request req_x that is open; list the requests of the session");
        insta::assert_snapshot!(check(request, Answer::SignedIn).await, @"session s: request req_736328dd23bf8ec1b43eb84c waits for allow, always, edit or decline, and was told of a sign-in; it is still open");
        insta::assert_snapshot!(check(request, Answer::Edit(input(r#"{"wat":1}"#))).await, @"session s: request req_736328dd23bf8ec1b43eb84c is still open, because the tool does not take the other input: The input of `put` does not fit: at `.`: missing field `what` at line 1 column 9. Call it again with: what (required)");
        assert_eq!(scene.agent.store.writes(), before);
        assert_eq!(scene.respond(request, Answer::Allow).await, TerminalReason::Done);
        insta::assert_snapshot!(check(request, Answer::Allow).await, @"session s: there is no request req_736328dd23bf8ec1b43eb84c that is open; list the requests of the session");
        assert_eq!(scene.agent.effects.all(), ["a"]);
    });
}

#[test]
fn a_second_reply_finds_the_first() {
    block(async {
        let calls = Reply::tool("ask_question", r#"{"question":"one"}"#)
            .call("ask_question", r#"{"question":"two"}"#);
        let scene = Scene::new(vec![calls, Reply::text("ok")]);
        let (_, requests) = scene.park(ParkKind::Question).await;
        let said = |words: &str| Answer::Answer(vec![words.to_owned()]);
        scene.respond(&requests[0].id, said("first")).await;
        let late = taken(&scene.agent.session(), &requests[0].id, said("second")).await.unwrap_err();
        assert!(matches!(late, HarnessError::Request { cause: RequestError::Answered(_), .. }), "{late}");
        scene.respond(&requests[1].id, said("other")).await;
        assert_eq!(scene.results().await, "step: ask_question -> first; ask_question -> other");
    });
}

#[test]
fn a_request_that_lapses_is_answered_so() {
    block(async {
        let calls = Reply::tool("ask_question", r#"{"question":"one"}"#);
        let scene = Scene::new(vec![calls, Reply::text("ok")]);
        let (_, requests) = scene.park(ParkKind::Question).await;
        let session = scene.agent.session();
        let end = watch(session.resume().await.unwrap()).await.1;
        assert_eq!(end.reason, TerminalReason::Parked(ParkKind::Question), "it still waits");
        scene.clock.forward(60_000);
        let late = taken(&session, &requests[0].id, Answer::Answer(vec!["x".into()])).await.unwrap_err();
        assert!(matches!(late, HarnessError::Request { cause: RequestError::Expired(_), .. }), "{late}");
        let (events, end) = watch(session.resume().await.unwrap()).await;
        assert_eq!(end.reason, TerminalReason::Done);
        let closed = events.iter().any(|event| {
            matches!(event.body, EventBody::InputClosed { how: agent_core::Closed::Expired, .. })
        });
        assert!(closed, "{}", log(&events));
        insta::assert_snapshot!(scene.results().await, @"step: ask_question -> Nobody replied in time, so there is no answer. Do not ask for the same again; go on as well as you can without it, or finish and say what is missing.");
    });
}

/// What may have an effect keeps its place in the order; what only asks does not hold up the others.
#[test]
fn calls_behind_one_that_waits_for_leave_run_after_it() {
    let check = |calls: Reply, parked: &[&str], replies: Vec<Answer>, done: &[&str]| {
        block(async {
            let scene = Scene::new(vec![calls, Reply::text("ok")]);
            scene.signed_in.store(true, Ordering::SeqCst);
            scene.agent.say("go").await;
            assert_eq!(scene.agent.effects.all(), parked);
            for reply in replies {
                let requests = scene.agent.session().requests().await.unwrap();
                scene.respond(&requests[0].id, reply).await;
            }
            assert_eq!(scene.agent.effects.all(), done);
        });
    };
    let (put, issue) = (r#"{"what":"a"}"#, r#"{"what":"x"}"#);
    check(Reply::tool("put", put).call("issues", issue), &[], vec![Answer::Allow], &["a", "filed x"]);
    check(
        Reply::tool("issues", issue).call("put", put),
        &["filed x"],
        vec![Answer::Allow],
        &["filed x", "a"],
    );
    let ask = r#"{"question":"Q"}"#;
    let said = || Answer::Answer(vec!["A".into()]);
    check(Reply::tool("ask_question", ask).call("issues", issue), &["filed x"], vec![said()], &["filed x"]);
    let two = Reply::tool("put", put).call("put", r#"{"what":"b"}"#);
    check(two, &[], vec![Answer::Allow, Answer::Allow], &["a", "b"]);
}

/// A reply to what stands behind a call that waits for leave is kept until that one ran.
#[test]
fn a_reply_to_the_second_waits_for_the_first() {
    for restart in [false, true] {
        block(async {
            let two = Reply::tool("put", r#"{"what":"a"}"#).call("put", r#"{"what":"b"}"#);
            let mut scene = Scene::new(vec![two, Reply::text("ok")]);
            let (_, requests) = scene.park(ParkKind::Approval).await;
            assert_eq!(requests.len(), 2, "both are shown");
            let parked = TerminalReason::Parked(ParkKind::Approval);
            assert_eq!(scene.respond(&requests[1].id, Answer::Allow).await, parked);
            assert!(scene.agent.effects.all().is_empty(), "it does not run before the first");
            if restart {
                scene = scene.again();
            }
            assert_eq!(scene.respond(&requests[0].id, Answer::Allow).await, TerminalReason::Done);
            assert_eq!(scene.agent.effects.all(), ["a", "b"]);
        });
    }
}

#[test]
fn a_stopped_turn_withdraws_its_requests() {
    block(async {
        let scene = Scene::new(vec![Reply::tool("put", r#"{"what":"a"}"#), Reply::text("ok")]);
        let (_, requests) = scene.park(ParkKind::Approval).await;
        let run = scene.agent.session().resume().await.unwrap();
        run.cancel().cancel();
        let (events, end) = watch(run).await;
        assert_eq!(end.reason, TerminalReason::Aborted);
        let closed = events.iter().find_map(|event| {
            let EventBody::InputClosed { request, how, .. } = &event.body else { return None };
            Some((request.clone(), *how))
        });
        assert_eq!(closed, Some((requests[0].id.clone(), agent_core::Closed::Withdrawn)));
        insta::assert_snapshot!(scene.results().await, @"step: put -> Not run: the user stopped the turn before this call ran.");
        assert!(scene.agent.session().requests().await.unwrap().is_empty());
        let next = scene.agent.say("again").await.1;
        assert_eq!(next.reason, TerminalReason::Done, "the session goes on");
    });
}
