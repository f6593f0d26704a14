//! Every condition, the warned last call, tasks and nudges: one line a turn.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{AssistantPart, CallId, Finish, History, Response, ToolInput, ToolResult};
use proptest::prelude::*;

use super::*;
use crate::{
    StopCondition, StopConditionExt, Todos, consecutive_failures, continue_when, cost_budget, no_progress,
    step_count, stop_when, todos_done, token_budget, tool_called, wall_clock,
};

/// What the model said: words when there is no call, else calls as `TOOL=RESULT`, a result `!x` an error and `-` a
/// refusal.
fn answered(turn: &mut Turn, rules: Rules<'_>, word: &str, number: usize) {
    let calls: Vec<(&str, &str)> = word.split(',').filter_map(|call| call.split_once('=')).collect();
    let mut parts = vec![AssistantPart::text(word).unwrap()];
    let id = |at: usize| CallId::new(format!("{number}-{at}")).unwrap();
    parts.extend(calls.iter().enumerate().map(|(at, (tool, _))| {
        AssistantPart::ToolCall(ToolCall {
            id: id(at),
            name: (*tool).into(),
            input: ToolInput::finished(""),
            data: None,
        })
    }));
    let kind = match word {
        "pause" => FinishKind::Pause,
        "length" => FinishKind::Length,
        _ => FinishKind::Stop,
    };
    let usage = Usage { input: 10, output: 5, ..Usage::default() };
    let finish = Finish { kind, raw: String::new() };
    let said = History::new().admit(Response { finish, usage, ..Response::of(parts) });
    turn.handle(rules, Report::Prepared).unwrap();
    turn.handle(rules, Report::Response(said)).unwrap();
    for (at, (_, result)) in calls.iter().enumerate() {
        let output = match result.strip_prefix('!') {
            Some(error) => ToolOutput::error(error),
            None if *result == "-" => ToolOutput::denied("no"),
            None => ToolOutput::text(*result),
        };
        turn.handle(rules, Report::Result(ToolResult { call: id(at), output })).unwrap();
    }
}

/// Plays answers; `$0.1` spends money, `~60` seconds, `t1/3` says that 1 of 3 todos is open. Tells what the model was told
/// before each step, and how the turn ended.
fn play(stop: &dyn StopCondition, mode: &Mode, script: &str) -> String {
    let rules = Rules { stop, mode };
    let (mut turn, mut log) = (Turn::new(TurnId::FIRST), Vec::new());
    let mut seen = Seen::default();
    for (number, word) in script.split_whitespace().enumerate() {
        if let Some(usd) = word.strip_prefix('$') {
            seen.cost_usd += usd.parse::<f64>().unwrap();
        } else if let Some(seconds) = word.strip_prefix('~') {
            seen.elapsed += Duration::from_secs(seconds.parse().unwrap());
        } else if let Some((open, all)) = word.strip_prefix('t').and_then(|list| list.split_once('/')) {
            seen.todos = Todos { open: open.parse().unwrap(), all: all.parse().unwrap() };
        } else {
            turn.see(&seen);
            (seen.cost_usd, seen.elapsed) = Default::default();
            log.extend(turn.guidance().map(told));
            answered(&mut turn, rules, word, number);
            // Another process decides alike.
            turn = Turn::restore(&turn.save().unwrap()).unwrap();
        }
    }
    match turn.poll() {
        Want::End(reason) => {
            log.push(reason.to_string());
            log.extend(turn.stopped_by().map(|by| format!("by {by}")));
        }
        Want::Prepare(_) | Want::Model | Want::Tools(_) | Want::Park(_) => {
            log.extend(turn.guidance().map(told));
            log.push("goes on".to_owned());
        }
    }
    log.join(" ")
}

fn told(guidance: &Guidance) -> String {
    match guidance {
        Guidance::LastCall { stop, reason } => format!("LAST[{stop}:{reason}]"),
        Guidance::Advice(_) => "ADVICE".to_owned(),
        Guidance::Nudge(words) => format!("NUDGE[{words}]"),
        Guidance::Deliver(tool) => format!("DELIVER[{tool}]"),
    }
}

fn check(stop: impl StopCondition, script: &str, expect: &str) {
    assert_eq!(play(&stop, &Mode::Conversation, script), expect, "{script}");
}

#[test]
fn a_step_limit_warns_before_the_last_step() {
    let last = "LAST[step_count(3):max_steps]";
    check(step_count(3), "x=1 x=2", &format!("{last} goes on"));
    check(step_count(3), "x=1 x=2 words", &format!("{last} max_steps by step_count(3)"));
    check(step_count(3), "x=1 x=2 x=3", &format!("{last} max_steps by step_count(3)"));
    check(step_count(3), "x=1 x=2 pause", &format!("{last} max_steps by step_count(3)"));
    check(step_count(3), "x=1 words", "done");
    check(step_count(1), "x=1", "max_steps by step_count(1)");
    check(
        step_count(3).or(tool_called("complete")),
        "x=1 x=2 complete=ok",
        &format!("{last} completed by tool_called(complete)"),
    );
}

#[test]
fn a_budget_gives_one_last_call_beyond_it() {
    let tokens = "LAST[token_budget(30):budget_exhausted]";
    check(token_budget(30), "x=1", "goes on");
    check(token_budget(30), "x=1 x=2", &format!("{tokens} goes on"));
    check(token_budget(30), "x=1 x=2 words", &format!("{tokens} budget_exhausted by token_budget(30)"));
    check(token_budget(30), "x=1 x=2 x=3", &format!("{tokens} budget_exhausted by token_budget(30)"));
    check(token_budget(30), "x=1 words", "done");
    check(cost_budget(0.5), "$0.3 x=1", "goes on");
    let cost = "LAST[cost_budget(0.5):budget_exhausted]";
    check(
        cost_budget(0.5),
        "$0.3 x=1 $0.2 x=2 words",
        &format!("{cost} budget_exhausted by cost_budget(0.5)"),
    );
    let time = "LAST[wall_clock(60s):budget_exhausted]";
    let minute = || wall_clock(Duration::from_secs(60));
    check(minute(), "~59 x=1", "goes on");
    check(minute(), "~59 x=1 ~1 x=2 words", &format!("{time} budget_exhausted by wall_clock(60s)"));
    check(
        token_budget(30).or(tool_called("complete")),
        "x=1 complete=ok",
        "completed by tool_called(complete)",
    );
    check(token_budget(30).and(cost_budget(1.0)), "$1 x=1", "goes on");
    let both = "token_budget(30) and cost_budget(1)";
    check(
        token_budget(30).and(cost_budget(1.0)),
        "$1 x=1 x=2 words",
        &format!("LAST[{both}:budget_exhausted] budget_exhausted by {both}"),
    );
}

#[test]
fn failures_and_circles() {
    let three = || consecutive_failures(3);
    check(three(), "x=!a x=!b x=-", "circuit_open by consecutive_failures(3)");
    check(three(), "x=!a x=!b x=ok x=!c", "goes on");
    check(three(), "x=!a pause x=!b pause x=!c", "circuit_open by consecutive_failures(3)");
    check(three(), "x=!a,y=ok x=!b x=!c", "goes on");
    check(no_progress(), "x=1 x=1", "goes on");
    check(no_progress(), "x=1 x=1 x=1", "ADVICE goes on");
    check(no_progress(), "x=1 x=1 x=1 x=1", "ADVICE goes on");
    check(no_progress(), "x=1 x=1 x=1 x=1 x=1", "ADVICE no_progress by no_progress");
    check(no_progress(), "x=1 x=1 x=1 y=1 x=1 x=1", "ADVICE ADVICE goes on");
    check(no_progress(), "x=1 x=2 x=3 x=4 x=5 x=6", "goes on");
    check(no_progress(), "x=1 y=1 x=1 y=1 x=1 y=1", "ADVICE no_progress by no_progress");
    check(no_progress().patience(1), "x=1 x=1 words", "ADVICE done");
}

#[test]
fn conditions_join() {
    check(todos_done(), "x=1", "goes on");
    check(todos_done(), "t1/2 x=1", "goes on");
    check(todos_done(), "t1/2 x=1 t0/2 x=2", "stopped(todos_done) by todos_done");
    check(stop_when("third", |cx| cx.steps == 3), "x=1 x=2 x=3", "stopped(third) by third");
    check(tool_called("a").not(), "a=1 b=1", "stopped(not(tool_called(a))) by not(tool_called(a))");
    let rest = || todos_done().and(tool_called("a").not());
    check(rest(), "t0/1 a=1", "goes on");
    let by = "todos_done and not(tool_called(a))";
    check(rest(), "t0/1 a=1 b=1", &format!("stopped({by}) by {by}"));
    check(
        tool_called("complete").and(todos_done()),
        "t0/1 complete=ok",
        "completed by tool_called(complete) and todos_done",
    );
    check(tool_called("complete"), "complete=!open", "goes on");
}

#[test]
fn a_task_nudges_and_wants_its_output() {
    let check = |task: Task, script: &str, expect: &str| {
        assert_eq!(play(&step_count(6), &Mode::Task(task), script), expect, "{script}");
    };
    let hook = || {
        let hook = continue_when(|step| (step.text() != "end").then(|| "more".to_owned()));
        Task { continue_hook: Some(Arc::new(hook)), most_nudges: 2, ..Task::default() }
    };
    check(hook(), "end", "done");
    check(hook(), "a end", "NUDGE[more] done");
    check(hook(), "a x=1 b c", "NUDGE[more] NUDGE[more] done");
    check(hook(), "length", "length");
    check(
        Task { most_nudges: 99, ..hook() },
        "a b c d e f",
        "NUDGE[more] NUDGE[more] NUDGE[more] NUDGE[more] LAST[step_count(6):max_steps] max_steps by step_count(6)",
    );
    check(Task::default(), "t1/2 a", "todos_incomplete");
    check(Task::default(), "t0/2 a", "done");
    let output = || Task { output_tool: Some("out".into()), ..Task::default() };
    check(output(), "out=ok", "completed");
    check(output(), "x=1,out=ok", "completed");
    check(output(), "out=!misfit out=ok", "completed");
    check(output(), "a out=ok", "DELIVER[out] completed");
    check(output(), "a b c", "DELIVER[out] DELIVER[out] stopped(no_final_output)");
    check(output(), "x=1 x=2 x=3 x=4 x=5 out=ok", "LAST[step_count(6):max_steps] completed");
}

/// A turn that was saved during its last call makes that call in the next process, and earlier formats are read.
#[test]
fn saved_forms() {
    let golden = r#"{"format":2,"id":"turn_3","steps":1,"step":1,"usage":{"input":10,"output":5},"denied":0,"ledger":{"beside":{"input":0,"output":0},"nano_usd":500000000,"elapsed_ms":1500,"todos":{"open":1,"all":2},"streak":{"failed":1,"repeated":0},"recent":[7],"nudges":1,"asked_for_output":0},"guidance":{"last_call":{"stop":"step_count(2)","reason":"max_steps"}},"state":"prepare"}"#;
    let mut turn = Turn::restore(&RawJson::parse(golden).unwrap()).unwrap();
    assert_eq!(Turn::restore(&turn.save().unwrap()).unwrap(), turn);
    let stop = step_count(9);
    answered(&mut turn, Rules { stop: &stop, mode: &Mode::Conversation }, "words", 0);
    assert_eq!(turn.poll(), Want::End(&TerminalReason::MaxSteps));
    assert_eq!(turn.stopped_by(), Some("step_count(2)"));
}

proptest! {
    /// Whatever comes of its steps, in whatever order: a turn of each mode ends within its limits, a warned step is the
    /// last one, and a turn that is saved and restored after every step decides as one that never was.
    #[test]
    fn any_order_of_outcomes(
        words in proptest::collection::vec(0usize..9, 1..30),
        is_task in any::<bool>(),
        limit in 1u32..12,
    ) {
        let stop = step_count(limit)
            .or(token_budget(120))
            .or(consecutive_failures(3))
            .or(no_progress())
            .or(todos_done())
            .or(tool_called("complete"));
        let hook = continue_when(|step| step.text().starts_with('a').then(|| "more".to_owned()));
        let task = Task { continue_hook: Some(Arc::new(hook)), output_tool: Some("out".into()), ..Task::default() };
        let mode = if is_task { Mode::Task(task) } else { Mode::Conversation };
        let rules = Rules { stop: &stop, mode: &mode };
        let (mut kept, mut restored) = (Turn::new(TurnId::FIRST), Turn::new(TurnId::FIRST));
        for (number, word) in words.iter().enumerate() {
            if matches!(kept.poll(), Want::End(_)) {
                break;
            }
            let word = ["a", "b", "pause", "x=1", "x=2,y=!e", "x=!e", "complete=ok", "out=ok", "x=-"][*word];
            let is_warned = matches!(kept.guidance(), Some(Guidance::LastCall { .. }));
            let seen = Seen { cost_usd: 0.1, todos: Todos { open: 1, all: 1 }, ..Seen::default() };
            for turn in [&mut kept, &mut restored] {
                turn.see(&seen);
                answered(turn, rules, word, number);
            }
            restored = Turn::restore(&restored.save().unwrap()).unwrap();
            prop_assert_eq!(&kept, &restored);
            if is_warned {
                prop_assert!(matches!(kept.poll(), Want::End(_)), "a warned step is the last one");
            }
        }
        prop_assert!(kept.steps() <= limit.min(9));
    }
}
