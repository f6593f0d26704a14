//! Every two kinds of wait in one step, answered in either order, over one process or several, with and without a message
//! in between (requirement L7).

use std::sync::atomic::Ordering;

use agent_core::{Heard, ParkKind, Reply as Answer, TerminalReason, ToolOutput, UserMessage};
use agent_testkit::Reply;

use super::said::conversation;
use super::{Scene, taken};
use crate::support::{block, crash_after, watch};

/// A call that waits, and the reply that lets it go on.
struct Waits {
    kind: ParkKind,
    tool: &'static str,
    input: &'static str,
    reply: fn() -> Answer,
    result: &'static str,
    effect: Option<&'static str>,
}

const ALL: [Waits; 5] = [
    Waits {
        kind: ParkKind::Question,
        tool: "ask_question",
        input: r#"{"question":"Which bed?"}"#,
        reply: || Answer::Answer(vec!["roses".to_owned()]),
        result: "ask_question -> roses",
        effect: None,
    },
    Waits {
        kind: ParkKind::Approval,
        tool: "put",
        input: r#"{"what":"a"}"#,
        reply: || Answer::Allow,
        result: "put -> put a",
        effect: Some("a"),
    },
    Waits {
        kind: ParkKind::Authorization,
        tool: "issues",
        input: r#"{"what":"x"}"#,
        reply: || Answer::SignedIn,
        result: "issues -> filed x",
        effect: Some("filed x"),
    },
    Waits {
        kind: ParkKind::Action,
        tool: "agent",
        input: r#"{"task":"Count."}"#,
        reply: || Answer::Output(ToolOutput::text("seven")),
        result: "agent -> seven",
        effect: None,
    },
    Waits {
        kind: ParkKind::ClientTool,
        tool: "click",
        input: r#"{"selector":"a"}"#,
        reply: || Answer::Output(ToolOutput::text("clicked")),
        result: "click -> clicked",
        effect: None,
    },
];

/// How the turn is taken up again.
#[derive(Debug, Clone, Copy)]
struct Way {
    is_last_first: bool,
    restarts: bool,
    said: Option<Heard>,
}

fn ways() -> impl Iterator<Item = Way> {
    let said = [None, Some(Heard::After), Some(Heard::NextStep)];
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    flags.into_iter().flat_map(move |(is_last_first, restarts)| {
        said.into_iter().map(move |said| Way { is_last_first, restarts, said })
    })
}

/// Replies to one of the open requests.
async fn reply(scene: &Scene, is_last_first: bool) -> TerminalReason {
    let requests = scene.agent.session().requests().await.unwrap();
    let request = if is_last_first { requests.last() } else { requests.first() }.unwrap();
    let waits = ALL.iter().find(|waits| waits.tool == request.tool).unwrap();
    assert_eq!(request.wait.kind(), waits.kind);
    if waits.kind == ParkKind::Authorization {
        scene.signed_in.store(true, Ordering::SeqCst);
    }
    scene.respond(&request.id, (waits.reply)()).await
}

/// Says something to the turn that waits.
async fn interrupt(scene: &Scene, heard: Heard) {
    let message = UserMessage::text("and hurry").unwrap();
    let run = scene.agent.session().say(message, heard).await.unwrap().run().unwrap();
    assert!(matches!(watch(run).await.1.reason, TerminalReason::Parked(_)), "it still waits");
}

async fn played(one: &Waits, two: &Waits, way: Way) -> (String, Vec<String>) {
    let calls = Reply::tool(one.tool, one.input).call(two.tool, two.input);
    let mut scene = Scene::new(vec![calls, Reply::text("first"), Reply::text("second")]);
    let mut reason = scene.agent.say("go").await.1.reason;
    let mut said = way.said;
    for _ in 0..4 {
        if !matches!(reason, TerminalReason::Parked(_)) {
            break;
        }
        if way.restarts {
            scene = scene.again();
        }
        if let Some(heard) = said.take() {
            interrupt(&scene, heard).await;
        }
        reason = reply(&scene, way.is_last_first).await;
    }
    assert_eq!(reason, TerminalReason::Done, "{} {} {way:?}", one.tool, two.tool);
    (conversation(&scene).await, scene.agent.effects.all())
}

#[test]
fn any_two_waits_in_any_order() {
    for (at, one) in ALL.iter().enumerate() {
        for (_, two) in ALL.iter().enumerate().filter(|(other, _)| *other != at) {
            for way in ways() {
                let (conversation, effects) = block(played(one, two, way));
                let step = format!("step: {}; {}", one.result, two.result);
                let expect = match way.said {
                    None => format!("user: go\n{step}\nmodel: first"),
                    Some(Heard::After) => {
                        format!("user: go\n{step}\nmodel: first\nuser: and hurry\nmodel: second")
                    }
                    Some(Heard::NextStep | Heard::Instead) => {
                        format!("user: go\n{step}\nuser: and hurry\nmodel: first")
                    }
                };
                assert_eq!(conversation, expect, "{way:?}");
                let done =
                    effects.iter().map(String::as_str).filter(|effect| *effect != "asked for a sign-in");
                let done: Vec<&str> = done.collect();
                let wanted: Vec<&str> = one.effect.into_iter().chain(two.effect).collect();
                assert_eq!(done, wanted, "once each, in the order of the calls: {way:?}");
            }
        }
    }
}

/// Replies until the turn is over, by another worker each time.
async fn brought_to_its_end(mut scene: Scene) -> Scene {
    for _ in 0..8 {
        scene = scene.again();
        if scene.agent.session().requests().await.unwrap().is_empty() {
            match scene.agent.session().resume().await {
                Ok(run) => drop(watch(run).await),
                Err(_) => return scene,
            }
        } else {
            reply(&scene, false).await;
        }
    }
    panic!("it does not come to its end: {:?}", scene.agent.session().requests().await)
}

/// A worker that dies while one call of a step has its reply and another waits loses nothing, and runs nothing twice.
#[test]
fn a_crash_between_two_replies() {
    let [ask, put, issues, ..] = &ALL;
    for (one, two) in [(put, ask), (ask, put), (put, issues), (issues, put)] {
        for polls in 0..60 {
            block(async {
                let calls = Reply::tool(one.tool, one.input).call(two.tool, two.input);
                let scene = Scene::new(vec![calls, Reply::text("first")]);
                scene.signed_in.store(true, Ordering::SeqCst);
                scene.agent.say("go").await;
                let requests = scene.agent.session().requests().await.unwrap();
                let waits = ALL.iter().find(|waits| waits.tool == requests[0].tool).unwrap();
                let run = taken(&scene.agent.session(), &requests[0].id, (waits.reply)()).await.unwrap();
                crash_after(run, polls).await;
                let scene = brought_to_its_end(scene).await;
                let said = conversation(&scene).await;
                let (first, second) = (one.result, two.result);
                let whole = said.contains(&format!("step: {first}; {second}"));
                assert!(whole || said.contains("Outcome unknown"), "after {polls} polls:\n{said}");
                let effects = scene.agent.effects.all();
                assert!(effects.iter().filter(|effect| *effect == "a").count() <= 1, "{effects:?}");
            });
        }
    }
}
