//! The machine played by hand: one line a turn.

use agent_core::{AssistantPart, CallId, Finish, History, ModelError, Response, ToolInput, ToolResult};
use proptest::prelude::*;

use super::*;
use crate::{StopConditionExt, step_count, tool_called};

fn call(id: &str, tool: &str) -> AssistantPart {
    AssistantPart::ToolCall(ToolCall {
        id: CallId::new(id).unwrap(),
        name: tool.into(),
        input: ToolInput::finished(""),
        data: None,
    })
}

fn response(calls: &[(&str, &str)], kind: FinishKind) -> PendingStep {
    let mut parts = vec![AssistantPart::text("hm").unwrap()];
    parts.extend(calls.iter().map(|(id, tool)| call(id, tool)));
    let finish = Finish { kind, raw: String::new() };
    History::new().admit(Response { finish, ..Response::of(parts) })
}

fn result(id: &str, output: ToolOutput) -> Report {
    Report::Result(ToolResult { call: CallId::new(id).unwrap(), output })
}

/// Plays a script of words and tells each want: `p` prepared, `t` an answer of text, `a:TOOL` an answer that calls
/// TOOL as call `a`, `a=ok`/`a=err` its result, `a!` an abort, other words as in the match below.
fn play(script: &str) -> String {
    let stop = step_count(3).or(tool_called("complete"));
    let mut turn = Turn::new(TurnId::FIRST);
    let mut log = Vec::new();
    for word in script.split_whitespace() {
        let report = match word {
            "p" => Report::Prepared,
            "t" => Report::Response(response(&[], FinishKind::Stop)),
            "length" => Report::Response(response(&[], FinishKind::Length)),
            "pause" => Report::Response(response(&[], FinishKind::Pause)),
            "refuse" => Report::Response(response(&[("r", "bash")], FinishKind::Refusal)),
            "empty" => Report::Response(response(&[], FinishKind::ToolCalls)),
            "two" => Report::Response(response(&[("a", "x"), ("b", "y")], FinishKind::ToolCalls)),
            "park" => Report::Park(ParkKind::Approval),
            "resume" => Report::Resume,
            "overload" => Report::Failed(ModelError::new(ModelErrorKind::Overloaded, "busy")),
            "cut" => Report::Failed(ModelError::interrupted("early")),
            "abort" => Report::Aborted(None),
            "full" => Report::Synthesised(response(&[], FinishKind::Stop), TerminalReason::BlockingLimit),
            "called" => {
                Report::Synthesised(response(&[("s", "x")], FinishKind::Stop), TerminalReason::NoProgress)
            }
            "waits" => {
                let parked = TerminalReason::Parked(ParkKind::Question);
                Report::Synthesised(response(&[], FinishKind::Stop), parked)
            }
            "half" => Report::Aborted(Some(
                History::new().admit(Response::of(vec![AssistantPart::text("ha").unwrap()])),
            )),
            _ if word.contains(':') => {
                let (id, tool) = word.split_once(':').unwrap();
                Report::Response(response(&[(id, tool)], FinishKind::ToolCalls))
            }
            _ => {
                let (id, how) = word.split_once('=').unwrap();
                result(id, if how == "ok" { ToolOutput::text("fine") } else { ToolOutput::error("bad") })
            }
        };
        match turn.handle(&stop, report) {
            Ok(Some(step)) => log.push(format!("STEP({})", step.results().len())),
            Ok(None) => {}
            Err(misuse) => return misuse.to_string(),
        }
        // Saved and restored between any two reports, the turn is the same.
        let restored = Turn::restore(&turn.save().unwrap()).unwrap();
        assert_eq!(restored, turn);
        turn = restored;
    }
    log.push(match turn.poll() {
        Want::Prepare(step) => format!("prepare {step}"),
        Want::Model => "model".into(),
        Want::Tools(pending) => format!("tools {}", pending.unanswered().count()),
        Want::Park(kind) => format!("park {}", kind.as_str()),
        Want::End(reason) => format!("end {reason}"),
    });
    log.join(" ")
}

#[test]
fn continue_park_or_end() {
    let check = |script: &str, expect: &str| assert_eq!(play(script), expect, "{script}");
    check("", "prepare 0");
    check("p", "model");
    check("p t", "STEP(0) end done");
    check("p length", "STEP(0) end length");
    check("p pause", "STEP(0) prepare 1");
    check("p refuse", "STEP(1) end refused");
    check("p empty", "STEP(0) end done");
    check("p a:grep", "tools 1");
    check("p a:grep a=ok", "STEP(1) prepare 1");
    check("p a:grep a=err", "STEP(1) prepare 1");
    check("p two b=ok", "tools 1");
    check("p two b=ok a=ok", "STEP(2) prepare 1");
    check("p a:complete a=ok", "STEP(1) end completed");
    check("p a:complete a=err", "STEP(1) prepare 1");
    check("p a:x a=ok p b:x b=ok p c:x c=ok", "STEP(1) STEP(1) STEP(1) end max_steps");
    check("p a:x a=ok p b:x b=ok p t", "STEP(1) STEP(1) STEP(0) end max_steps");
    check("p pause p pause p pause", "STEP(0) STEP(0) STEP(0) end max_steps");
    check("full", "STEP(0) end blocking_limit");
    check("called", "STEP(1) end no_progress");
    check("p a:x a=ok full", "STEP(1) STEP(0) end blocking_limit");
    check("overload", "end error(overloaded)");
    check("p overload", "end error(overloaded)");
    check("p cut", "end interrupted");
    check("p a:x park", "park approval");
    check("p a:x park resume", "tools 1");
    check("p a:x park a=ok", "STEP(1) prepare 1");
}

#[test]
fn abort_at_every_state_keeps_what_was_said() {
    let check = |script: &str, expect: &str| assert_eq!(play(script), expect, "{script}");
    check("abort", "end aborted");
    check("p abort", "end aborted");
    check("p half", "STEP(0) end aborted");
    check("p two b=ok abort", "STEP(2) end aborted");
    check("p a:x park abort", "STEP(1) end aborted");
}

#[test]
fn reports_that_do_not_fit_are_refused() {
    insta::assert_snapshot!(play("t"), @"the turn wants Prepare, but was told Response; report what came of the want that `poll` returns");
    insta::assert_snapshot!(play("p a:x z=ok"), @"the turn wants Tools, but was told Result (the result for z answers no call of this step; use the id of a call the model made); report what came of the want that `poll` returns");
    insta::assert_snapshot!(play("p two a=ok a=ok"), @"the turn wants Tools, but was told Result (call a has two results; the first one stands); report what came of the want that `poll` returns");
    insta::assert_snapshot!(play("waits"), @"the turn wants Prepare, but was told Synthesised (a parked turn has not ended); report what came of the want that `poll` returns");
    for told in ["p full", "p a:x full", "p a:x park full", "full full"] {
        assert!(play(told).contains("was told Synthesised;"), "{told}");
    }
    insta::assert_snapshot!(play("p t p"), @"the turn wants nothing more, but was told Prepared; report what came of the want that `poll` returns");
}

#[test]
fn a_newer_turn_is_refused_and_release_1_is_read() {
    let golden =
        r#"{"format":1,"id":"turn_3","steps":1,"step":1,"usage":{"input":5,"output":2},"state":"prepare"}"#;
    let turn = Turn::restore(&RawJson::parse(golden).unwrap()).unwrap();
    assert!(matches!(turn.poll(), Want::Prepare(step) if step.number() == 1));
    let newer = golden.replace(r#""format":1"#, r#""format":3"#);
    assert!(matches!(Turn::restore(&RawJson::parse(newer).unwrap()), Err(RestoreError::Newer { found: 3 })));
}

#[test]
fn too_many_refused_calls_end_a_turn() {
    let check = |refused: u32, each: u32, expect: &str| {
        let mut turn = Turn::new(TurnId::FIRST);
        for _ in 0..refused / each {
            turn.handle(&step_count(99), Report::Prepared).unwrap();
            let names: Vec<String> = (0..each).map(|n| n.to_string()).collect();
            let calls: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "x")).collect();
            turn.handle(&step_count(99), Report::Response(response(&calls, FinishKind::ToolCalls))).unwrap();
            for name in &names {
                turn.handle(&step_count(99), result(name, ToolOutput::denied("no"))).unwrap();
            }
        }
        let end = match turn.poll() {
            Want::End(reason) => reason.to_string(),
            Want::Prepare(_) | Want::Model | Want::Tools(_) | Want::Park(_) => "goes on".to_owned(),
        };
        assert_eq!(end, expect, "{refused} refused, {each} a step");
    };
    check(9, 1, "goes on");
    check(10, 1, "permission_denied");
    check(8, 4, "goes on");
    check(12, 4, "permission_denied");
}

proptest! {
    /// Whatever a driver reports in whatever order: a turn takes at most its limit of steps, every step is paired,
    /// a misuse changes nothing, and an ended turn stays ended.
    #[test]
    fn any_sequence_of_reports(words in proptest::collection::vec(0usize..14, 0..60)) {
        let stop = step_count(4);
        let mut turn = Turn::new(TurnId::FIRST);
        let mut steps = 0;
        for word in words {
            let before = turn.clone();
            let report = match word {
                0..=2 => Report::Prepared,
                3 => Report::Response(response(&[], FinishKind::Stop)),
                4 => Report::Response(response(&[("a", "x"), ("b", "y")], FinishKind::ToolCalls)),
                5 => Report::Response(response(&[("a", "x")], FinishKind::Length)),
                6 | 7 => result("a", ToolOutput::text("ok")),
                8 => result("b", ToolOutput::error("no")),
                9 => Report::Park(ParkKind::Question),
                10 => Report::Resume,
                11 => Report::Synthesised(response(&[], FinishKind::Stop), TerminalReason::NoProgress),
                12 => Report::Failed(ModelError::new(ModelErrorKind::InvalidRequest, "no")),
                _ => Report::Response(response(&[], FinishKind::Pause)),
            };
            match turn.handle(&stop, report) {
                Ok(step) => steps += u32::from(step.is_some()),
                Err(_) => prop_assert_eq!(&turn, &before),
            }
            if matches!(before.poll(), Want::End(_)) {
                prop_assert_eq!(&turn, &before);
            }
        }
        prop_assert!(steps <= 4);
        prop_assert_eq!(turn.steps(), steps);
    }
}
