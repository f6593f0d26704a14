//! Item 8: several conditions end a turn.

use std::time::Duration;

use agent_core::{AssistantPart, COMPLETE_TOOL, Response, StepRecord, ToolOutput, ToolResult, Usage};
use agent_turn::{Stop, StopCondition, StopCx};

use super::Finding;
use super::rehearsal::call;
use crate::config::HarnessConfig;

/// Steps after which a turn without a limit is taken to have none.
const MOST: u32 = 10_000;
/// Limits that are usual: fewer steps end real work, more let a lost agent run.
const USUAL: std::ops::RangeInclusive<u32> = 10..=200;
/// Tokens that no turn should spend unseen.
const TOKENS: u64 = 1_000_000_000;
/// Money and time that no turn should spend unseen.
const DOLLARS: f64 = 1_000.0;
const TIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const SECOND: &str = "Join a second condition: `step_count(40).or(tool_called(\"complete\"))`, with the tool `complete` in the set.";

pub(super) fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("stops", "stop conditions combined");
    let stop = &*config.stop;
    match limit(stop) {
        Some((steps, _)) if USUAL.contains(&steps) => finding.saw(format!("a turn ends after {steps} steps")),
        Some((steps, _)) if steps < *USUAL.start() => finding.warn(
            format!("a turn ends after {steps} steps, which is little for real work"),
            "Allow 30 to 50 steps; `step_count(40)` is the default.",
        ),
        Some((steps, _)) => finding.warn(
            format!("a turn ends after {steps} steps only: an agent that is lost runs long"),
            "Allow 30 to 50 steps; `step_count(40)` is the default.",
        ),
        None => finding.fail(
            format!("no step limit: a turn goes on after {MOST} steps"),
            "Set one: `step_count(40).or(…)`.",
        ),
    }
    judge_second(&mut finding, config);
    finding
}

fn judge_second(finding: &mut Finding, config: &HarnessConfig) {
    let stop = &*config.stop;
    let known = config.tools.cards().iter().map(|card| card.name());
    let ending: Vec<&str> = known.filter(|name| ends_at(stop, name)).collect();
    let by_budget = spends(stop);
    if !ending.is_empty() {
        finding.saw(format!("it ends when a call of one of these succeeds: {}", ending.join(", ")));
    }
    if let Some(name) = &by_budget {
        finding.saw(format!("it ends by the condition {name}, which looks at what is spent"));
    }
    if !ending.is_empty() || by_budget.is_some() {
        return;
    }
    if config.tools.cards().is_empty() {
        finding.saw("there are no tools, so a turn ends with the first answer");
    } else if ends_at(stop, COMPLETE_TOOL) {
        finding.warn(
            format!("it ends when `{COMPLETE_TOOL}` is called, and the agent has no such tool"),
            format!("Add the built-in `{COMPLETE_TOOL}`, or name a tool that the agent has."),
        );
    } else {
        finding.warn("nothing else ends it but that the model calls no tool", SECOND);
    }
}

/// The first step after which a turn ends that only goes on, and by which condition.
fn limit(stop: &dyn StopCondition) -> Option<(u32, Stop)> {
    let last =
        StepRecord::new(Response::of(AssistantPart::text("Going on.").into_iter().collect()), Vec::new());
    let last = last.ok()?;
    let usage = Usage::default();
    (1..=MOST).find_map(|steps| Some((steps, stop.check(&StopCx::new(steps, &last, &usage))?)))
}

/// Whether a call of this tool that succeeded ends a turn.
fn ends_at(stop: &dyn StopCondition, tool: &str) -> bool {
    let call = call(0, tool);
    let result = ToolResult { call: call.id.clone(), output: ToolOutput::text("Done.") };
    let step = StepRecord::new(Response::of(vec![AssistantPart::ToolCall(call)]), vec![result]);
    let fires = |last: &StepRecord| stop.check(&StopCx::new(1, last, &Usage::default()));
    step.ok()
        .and_then(|step| fires(&step))
        .is_some_and(|stop| matches!(stop, Stop::Tool(_) | Stop::Custom(_) | Stop::Both(..)))
}

/// The name of the condition that ends a turn which spent very many tokens, much money or much time.
fn spends(stop: &dyn StopCondition) -> Option<String> {
    let usage = Usage { input: TOKENS, output: TOKENS, ..Usage::default() };
    let last =
        StepRecord::new(Response::of(AssistantPart::text("Going on.").into_iter().collect()), Vec::new());
    match stop.check(&StopCx { cost_usd: DOLLARS, elapsed: TIME, ..StopCx::new(1, &last.ok()?, &usage) })? {
        Stop::Custom(name) | Stop::Budget(name) => Some(name),
        Stop::Steps(_)
        | Stop::Tool(_)
        | Stop::Todos
        | Stop::Failures(_)
        | Stop::NoProgress
        | Stop::Both(..) => None,
    }
}
