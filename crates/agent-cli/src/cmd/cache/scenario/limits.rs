//! How large a scenario may be: what lies beyond is a slip of the pen, and would fill the memory before it failed.

use super::{Does, Scenario, StepSpec, ToolSpec};

/// Tools of one name, told apart by two letters.
const TOOLS: usize = 26 * 26;
/// Those that change nothing outside the session.
const BUILTINS: [&str; 2] = ["todo", "complete"];
const REQUESTS: usize = 10_000;
const CALLS: usize = 100_000;
/// Tokens of filler in all.
const TOKENS: u64 = 20_000_000;
/// Of a pause: a hundred years.
const SECONDS: u64 = 100 * 366 * 86_400;
/// Milliseconds of ten thousand years.
const START_MS: i64 = 10_000 * 366 * 86_400_000;
/// Further than that no clock is from UTC.
const OFFSET_MINUTES: i32 = 24 * 60;

pub(super) fn check(scenario: &Scenario) -> Result<(), String> {
    tools(scenario)?;
    time(scenario)?;
    budget(scenario)?;
    let most = |what: &str, got: u64, most: u64| match got <= most {
        true => Ok(()),
        false => {
            Err(format!("{what}: {got} are more than a scenario may have, which is {most}; make it smaller"))
        }
    };
    let (calls, result) = calls(scenario);
    most("repeat: requests", count(requests(scenario)), count(REQUESTS))?;
    most("count: calls", calls, count(CALLS))?;
    most("tokens of filler", filler(scenario).saturating_add(result), TOKENS)
}

fn tools(scenario: &Scenario) -> Result<(), String> {
    if let Some(tool) = scenario.tools.iter().find(|tool| tool.count > TOOLS) {
        let ToolSpec { name, count, .. } = tool;
        return Err(format!("tool {name:?}: `count` is {count}, and {TOOLS} are the most"));
    }
    let builtins = scenario.tools.iter().filter(|tool| tool.does == Does::Builtin);
    if let Some(tool) =
        builtins.into_iter().find(|tool| !BUILTINS.contains(&tool.name.as_str()) || tool.count != 1)
    {
        return Err(format!(
            "tool {:?}: of the built-in tools, scenarios have one `todo` and one `complete`",
            tool.name
        ));
    }
    let mut names: Vec<String> = scenario.tools.iter().flat_map(ToolSpec::names).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("tools: two are called {:?}; rename one", pair[0])),
        None => Ok(()),
    }
}

fn time(scenario: &Scenario) -> Result<(), String> {
    let clock = &scenario.clock;
    if clock.start_ms.unsigned_abs() > START_MS.unsigned_abs() {
        return Err(format!(
            "clock: `start_ms` {} is no time; give milliseconds since 1970 UTC",
            clock.start_ms
        ));
    }
    if clock.utc_offset_minutes.unsigned_abs() > OFFSET_MINUTES.unsigned_abs() {
        return Err(format!("clock: `utc_offset_minutes` {} is more than a day", clock.utc_offset_minutes));
    }
    let pauses = scenario.turns.iter().map(|turn| turn.after_seconds);
    let pauses = pauses.chain(steps(scenario).filter_map(|step| step.seconds)).chain([clock.step_seconds]);
    match pauses.max().filter(|seconds| *seconds > SECONDS) {
        Some(seconds) => {
            Err(format!("a pause of {seconds} seconds is longer than a hundred years; make it shorter"))
        }
        None => Ok(()),
    }
}

fn budget(scenario: &Scenario) -> Result<(), String> {
    let budget = &scenario.budget;
    if let Some(rate) = budget.min_hit_rate.filter(|rate| !(0.0..=1.0).contains(rate)) {
        return Err(format!(
            "budget: `min_hit_rate` is {rate}; give a share from 0 to 1, as 0.9 for 90 percent"
        ));
    }
    match budget.max_cost_ratio.filter(|ratio| !(ratio.is_finite() && *ratio > 0.0)) {
        Some(ratio) => {
            Err(format!("budget: `max_cost_ratio` is {ratio}; give a multiple of the ideal, as 1.05"))
        }
        None => Ok(()),
    }
}

fn steps(scenario: &Scenario) -> impl Iterator<Item = &StepSpec> {
    scenario.turns.iter().flat_map(|turn| &turn.steps)
}

fn requests(scenario: &Scenario) -> usize {
    steps(scenario).fold(0, |sum, step| sum.saturating_add(step.repeat))
}

/// All calls, and the tokens of their results.
fn calls(scenario: &Scenario) -> (u64, u64) {
    let each = steps(scenario).flat_map(|step| step.calls.iter().map(move |call| (step, call)));
    each.fold((0, 0), |(calls, tokens), (step, call)| {
        let number = count(step.repeat).saturating_mul(count(call.count));
        let result = number.saturating_mul(call.result_tokens.unwrap_or(0));
        (u64::saturating_add(calls, number), u64::saturating_add(tokens, result))
    })
}

/// Tokens of everything but results.
fn filler(scenario: &Scenario) -> u64 {
    let system = scenario.system.iter().map(|fragment| fragment.tokens);
    let tools = scenario
        .tools
        .iter()
        .map(|tool| count(tool.count).saturating_mul(tool.tokens).saturating_add(tool.result_tokens));
    let turns = scenario.turns.iter().map(|turn| turn.tokens);
    let said = steps(scenario)
        .map(|step| count(step.repeat).saturating_mul(step.tokens.saturating_add(step.think_tokens)));
    system.chain(tools).chain(turns).chain(said).fold(0, u64::saturating_add)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
