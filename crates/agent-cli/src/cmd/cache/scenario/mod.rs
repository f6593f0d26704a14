//! Scenario files: an agent, what the model says to it, what happens meanwhile, and what that may cost.
//!
//! A scenario is one JSON object. Every field but `about`, `model` and `turns` may be left out, and later ones are added
//! in the same way: a file that does not know them stays as it is.

mod limits;
mod pipeline;
mod red;
mod spec;

use std::path::Path;

use agent::{COMPLETE_TOOL, RequestSettings};
use agent_cache::Budget;
use agent_core::RawJson;
use agent_providers::WireFormat;
use agent_testkit::Script;
use serde::{Deserialize, Serialize};

pub(crate) use pipeline::{Ability, EditsSpec, StageSpec, TierSpec, WindowSpec};
pub(crate) use red::{Expect, Kind, Red};
pub(crate) use spec::{
    ClockSpec, Does, Ends, FragmentSpec, Holds, StepSpec, ToolSpec, TurnSpec, with_filler,
};

use super::sabotage::Sabotage;
use super::world;

/// One scenario.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// What it shows, in a sentence.
    pub(crate) about: String,
    /// `PROVIDER/MODEL`.
    pub(crate) model: String,
    /// The system prompt.
    #[serde(default)]
    pub(crate) system: Vec<FragmentSpec>,
    #[serde(default)]
    pub(crate) tools: Vec<ToolSpec>,
    /// Whether the model is told the day.
    #[serde(default)]
    pub(crate) tell_date: bool,
    /// As the agent's builder takes them.
    #[serde(default, deserialize_with = "spec::known_settings")]
    pub(crate) settings: RequestSettings,
    /// Stages that prepare each step, in order.
    #[serde(default)]
    pub(crate) pipeline: Vec<StageSpec>,
    /// The tiers of compaction, in order; those of every agent when it is not given.
    #[serde(default)]
    pub(crate) compaction: Option<Vec<TierSpec>>,
    /// Where the model's window is another one here.
    #[serde(default)]
    pub(crate) window: Option<WindowSpec>,
    /// What its models can do elsewhere, and not here.
    #[serde(default)]
    pub(crate) lacks: Vec<Ability>,
    /// `PROVIDER/MODEL` that is asked for summaries; the scenario's own model when it is not given.
    #[serde(default)]
    pub(crate) summary_model: Option<String>,
    #[serde(default)]
    pub(crate) clock: ClockSpec,
    pub(crate) turns: Vec<TurnSpec>,
    /// Requests, from 1, that a new process sends, after the one before was killed.
    #[serde(default)]
    pub(crate) restart_before: Vec<usize>,
    /// Fields of the cache rules that are other ones here, as `RuleBook::with_overrides` takes them.
    #[serde(default)]
    pub(crate) rules: Option<RawJson>,
    /// What is broken on purpose.
    #[serde(default)]
    pub(crate) sabotage: Vec<Sabotage>,
    /// What must be found: such a scenario passes when it fails in this way.
    #[serde(default)]
    pub(crate) red: Option<Red>,
    /// Words that requests must hold: a scenario whose event never came would show nothing.
    #[serde(default)]
    pub(crate) expect: Vec<Expect>,
    pub(crate) budget: Budget,
}

impl Scenario {
    /// Reads a file's text; what is wrong is said with what to write.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let scenario: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        scenario.check()?;
        Ok(scenario)
    }

    /// The vendor's name and the model's.
    pub(crate) fn provider_model(&self) -> (&str, &str) {
        self.model.split_once('/').unwrap_or(("", &self.model))
    }

    /// All answers, in order.
    pub(crate) fn script(&self) -> Script {
        let mut replies = Vec::new();
        for step in self.turns.iter().flat_map(|turn| &turn.steps) {
            let first = replies.len();
            replies.extend((first..first + step.repeat).map(|at| step.reply(at)));
        }
        Script::new(replies)
    }

    /// Seconds between each request and the next one.
    pub(crate) fn pauses(&self) -> Vec<u64> {
        let steps = self.turns.iter().flat_map(|turn| &turn.steps);
        let pause = |step: &StepSpec| step.seconds.unwrap_or(self.clock.step_seconds);
        steps.flat_map(|step| std::iter::repeat_n(pause(step), step.repeat)).collect()
    }

    /// The turn that a request, from 0, belongs to, and whether it is the turn's first one.
    pub(crate) fn turn_of(&self, request: usize) -> (usize, bool) {
        let mut begin = 0;
        for (number, turn) in self.turns.iter().enumerate() {
            let steps: usize = turn.steps.iter().map(|step| step.repeat).sum();
            if request < begin + steps {
                return (number, request == begin);
            }
            begin += steps;
        }
        (self.turns.len(), false)
    }

    fn check(&self) -> Result<(), String> {
        let (provider, model) = self.provider_model();
        if agent::Vendor::named(provider).is_none() || model.is_empty() {
            return Err(format!("model {:?}: write PROVIDER/NAME, as anthropic/claude-opus-5-5", self.model));
        }
        self.check_format(&self.model, provider)?;
        for other in self.pipeline.iter().filter_map(StageSpec::model).chain(self.summary_model.as_deref()) {
            self.check_other(other)?;
        }
        self.pipeline.iter().try_for_each(StageSpec::check)?;
        limits::check(self)?;
        world::book(self).map_err(|error| format!("rules: {error}"))?;
        if self.red.as_ref().is_some_and(|red| red.kind.is_none() && red.cause.is_none()) {
            return Err("red: give `kind`, `cause` or both, or anything would do".into());
        }
        let requests = self.pauses().len();
        if self.turns.is_empty() || requests == 0 {
            return Err("turns: give at least one message and one step, or nothing is asked".into());
        }
        for (number, turn) in self.turns.iter().enumerate() {
            self.check_turn(number + 1, turn)?;
        }
        if let Some(pair) = self.restart_before.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!("restart_before: {} does not come before {}; sort it", pair[0], pair[1]));
        }
        match self.restart_before.iter().find(|at| !(2..=requests).contains(*at)) {
            Some(at) => Err(format!("restart_before: {at} is none of the requests 2 to {requests}")),
            None => Ok(()),
        }
    }

    /// Whether the simulated provider and the audit know the format of the model.
    fn check_format(&self, model: &str, provider: &str) -> Result<(), String> {
        let format = agent::Vendor::named(provider).map(|vendor| vendor.dialect.format);
        let played = [WireFormat::Anthropic, WireFormat::OpenAiChat, WireFormat::OpenAiResponses];
        if format.is_some_and(|format| played.contains(&format)) {
            return Ok(());
        }
        Err(format!(
            "model {model:?}: scenarios are played on Messages, Chat Completions and Responses; give a model of anthropic, openai, openai-chat or of another provider that speaks one of them"
        ))
    }

    /// A model that is asked beside the scenario's own: one provider keeps one cache here.
    fn check_other(&self, model: &str) -> Result<(), String> {
        let (provider, _) = self.provider_model();
        match model.split_once('/') {
            Some((vendor, name)) if vendor == provider && !name.is_empty() => Ok(()),
            Some(_) | None => {
                Err(format!("model {model:?}: write {provider}/NAME, a model of the scenario's own provider"))
            }
        }
    }

    fn check_turn(&self, number: usize, turn: &TurnSpec) -> Result<(), String> {
        if turn.user.trim().is_empty() {
            return Err(format!("turn {number}: `user` is blank; say what the user asks"));
        }
        if turn.steps.iter().any(|step| step.beside && (!step.calls.is_empty() || step.say.is_empty())) {
            return Err(format!(
                "turn {number}: an answer `beside` the turn is words; give `say`, and no calls"
            ));
        }
        match &turn.ends {
            Some(ends) => check_end(number, turn, ends)?,
            None => check_last(number, turn)?,
        }
        let called = turn.steps.iter().flat_map(|step| &step.calls);
        let searches = self.tools.iter().any(|tool| tool.deferred);
        let search = ["tool_search", "call_tool"].into_iter().filter(|_| searches).map(str::to_owned);
        let names: Vec<String> = self.tools.iter().flat_map(ToolSpec::names).chain(search).collect();
        match called.into_iter().find(|call| !names.contains(&call.tool)) {
            Some(call) => Err(format!(
                "turn {number}: no tool is called {:?}; there are: {}",
                call.tool,
                names.join(", ")
            )),
            None => Ok(()),
        }
    }
}

/// A turn that the model ends: with words, or with the tool that ends turns.
fn check_last(number: usize, turn: &TurnSpec) -> Result<(), String> {
    let Some((last, before)) = turn.steps.split_last() else {
        return Err(format!("turn {number}: `steps` is empty; give the answers of the model"));
    };
    if before.iter().any(|step| step.calls.is_empty() && step.repeat > 0 && !step.beside) {
        return Err(format!("turn {number}: a step without calls ends the turn; move it to the end"));
    }
    let completes = last.calls.iter().any(|call| call.tool == COMPLETE_TOOL);
    let says = last.calls.is_empty() && !(last.say.is_empty() && last.tokens == 0);
    if last.beside || last.repeat != 1 || !(says || completes) {
        return Err(format!(
            "turn {number}: the last step ends it: give it words, no calls (or that of `complete`), no repeat"
        ));
    }
    Ok(())
}

/// A turn that ends in the model's place: whatever the model says in it is no end.
fn check_end(number: usize, turn: &TurnSpec, Ends::BlockingLimit(words): &Ends) -> Result<(), String> {
    if words.trim().is_empty() {
        return Err(format!("turn {number}: `ends` is blank; give words that the turn's text holds"));
    }
    if turn.steps.iter().any(|step| step.calls.is_empty() && !step.beside) {
        return Err(format!(
            "turn {number}: it `ends` without the model; give it steps with calls, answers `beside` it, or no steps"
        ));
    }
    Ok(())
}

/// The name of a scenario: its file's, without the ending.
pub(crate) fn name(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl Fn(&mut serde_json::Value), expect: &str) {
        let mut good = serde_json::json!({
            "about": "a", "model": "anthropic/claude-opus-5-5", "tools": [{"name": "read", "count": 2}],
            "turns": [{"user": "Go.", "steps": [{"repeat": 3, "calls": [{"tool": "read_ab"}]}, {"say": "Done."}]}],
            "budget": {}
        });
        change(&mut good);
        let told = Scenario::read(&good.to_string()).map_or_else(|error| error, |_| "good".into());
        assert!(told.contains(expect), "{told:?} does not say {expect:?}");
    }

    #[test]
    fn what_is_wrong_in_a_file_is_said_with_what_to_write() {
        check(|_| {}, "good");
        check(|it| it["budgets"] = 1.into(), "unknown field `budgets`");
        check(|it| it["model"] = "gpt".into(), "write PROVIDER/NAME");
        check(|it| it["model"] = "ollama/llama3".into(), "give a model of anthropic");
        check(|it| it["model"] = "deepseek/deepseek-v4".into(), "good");
        check(
            |it| it["settings"] = serde_json::json!({"max_tokens": 5}),
            "settings: unknown field `max_tokens`",
        );
        check(|it| it["settings"] = serde_json::json!({"max_output": 5, "fast": false}), "good");
        check(|it| it["turns"] = serde_json::json!([]), "at least one message");
        check(|it| it["turns"][0]["user"] = " ".into(), "turn 1: `user` is blank");
        check(|it| it["turns"][0]["steps"][1]["say"] = "".into(), "the last step ends it");
        check(|it| it["turns"][0]["steps"][0]["calls"] = serde_json::json!([]), "move it to the end");
        check(
            |it| it["turns"][0]["steps"][0]["calls"][0]["tool"] = "x".into(),
            "there are: read_aa, read_ab",
        );
        check(|it| it["red"] = serde_json::json!({"path": "system[0]"}), "anything would do");
        check(|it| it["red"] = serde_json::json!({"kind": "hitrate"}), "hit_rate");
        check(|it| it["rules"] = serde_json::json!({"lookbak": 1}), "lookbak");
        check(|it| it["tools"][0]["count"] = 677.into(), "676 are the most");
        check(
            |it| it["tools"] = serde_json::json!([{"name": "a_aa"}, {"name": "a", "count": 2}]),
            "two are called \"a_aa\"",
        );
        let most = u64::MAX;
        check(|it| it["turns"][0]["steps"][0]["repeat"] = most.into(), "repeat: requests");
        check(|it| it["turns"][0]["steps"][0]["calls"][0]["count"] = most.into(), "count: calls");
        check(|it| it["turns"][0]["steps"][1]["tokens"] = most.into(), "tokens of filler");
        check(|it| it["turns"][0]["steps"][1]["seconds"] = most.into(), "longer than a hundred years");
        check(|it| it["clock"] = serde_json::json!({"start_ms": i64::MAX}), "milliseconds since 1970");
        check(|it| it["clock"] = serde_json::json!({"utc_offset_minutes": 1441}), "more than a day");
        check(|it| it["budget"] = serde_json::json!({"min_hit_rate": 90}), "0.9 for 90 percent");
        check(|it| it["budget"] = serde_json::json!({"max_cost_ratio": 0}), "as 1.05");
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        check(|it| it["pipeline"] = json(r#"[{"narow":{}}]"#), "unknown variant `narow`");
        check(|it| it["pipeline"] = json(r#"[{"remind":{"words":["a"],"if":1}}]"#), "unknown field `if`");
        check(
            |it| it["pipeline"] = json(r#"[{"switch_model":{"model":"openai/gpt-6-sol"}}]"#),
            "write anthropic/NAME",
        );
        check(|it| it["pipeline"] = json(r#"[{"force_while_todos":{}}]"#), "good");
        check(|it| it["pipeline"] = json(r#"[{"server_edits":{}}]"#), "or nothing is edited");
        check(|it| it["pipeline"] = json(r#"[{"server_edits":{"compact_at":0}}]"#), "from 1 to 100");
        check(|it| it["pipeline"] = json(r#"[{"server_edits":{"compact":90}}]"#), "unknown field `compact`");
        check(|it| it["pipeline"] = json(r#"[{"server_edits":{"clear_tool_uses_at":60}}]"#), "good");
        check(|it| it["summary_model"] = "haiku".into(), "write anthropic/NAME");
        check(|it| it["compaction"] = json(r#"["summaries"]"#), "unknown variant `summaries`");
        check(|it| it["window"] = json(r#"{"context":9}"#), "missing field `output`");
        check(
            |it| it["turns"][0]["steps"][0]["beside"] = true.into(),
            "an answer `beside` the turn is words",
        );
        check(|it| it["turns"][0]["steps"][1]["beside"] = true.into(), "the last step ends it");
        let ends = |words: &str| serde_json::json!({"blocking_limit": words});
        check(|it| it["turns"][0]["ends"] = ends("I cannot go on"), "steps with calls, answers `beside` it");
        let blocked = |it: &mut serde_json::Value, words: &str| {
            it["turns"][0]["steps"].as_array_mut().unwrap().pop();
            it["turns"][0]["ends"] = ends(words);
        };
        check(|it| blocked(it, "I cannot go on"), "good");
        check(|it| blocked(it, " "), "`ends` is blank");
        check(|it| it["turns"][0]["ends"] = serde_json::json!({"done": "x"}), "unknown variant `done`");
        check(|it| it["restart_before"] = serde_json::json!([1]), "none of the requests 2 to 4");
        check(|it| it["restart_before"] = serde_json::json!([3, 2]), "sort it");
        check(|it| it["restart_before"] = serde_json::json!([2, 4]), "good");
    }

    #[test]
    fn steps_become_replies_and_pauses() {
        let scenario = Scenario::read(
            r#"{"about":"a","model":"openai/gpt-6-sol","clock":{"step_seconds":7},"tools":[{"name":"read"}],"budget":{},
                "turns":[{"user":"Go.","steps":[{"repeat":2,"calls":[{"tool":"read","count":2,"result_tokens":9}]},{"say":"Done.","seconds":0}]},
                         {"user":"On.","steps":[{"calls":[{"tool":"read","input":{"b":1.0,"a":2}}]},{"say":"Yes."}]}]}"#,
        );
        let scenario = scenario.unwrap();
        insta::assert_snapshot!(serde_json::to_string(&scenario.script()).unwrap(), @r#"[{"calls":[{"name":"read","input":{"item":"0.0","tokens":9}},{"name":"read","input":{"item":"0.1","tokens":9}}]},{"calls":[{"name":"read","input":{"item":"1.0","tokens":9}},{"name":"read","input":{"item":"1.1","tokens":9}}]},{"text":"Done."},{"calls":[{"name":"read","input":{"b":1.0,"a":2}}]},{"text":"Yes."}]"#);
        assert_eq!(scenario.pauses(), [7, 7, 0, 7, 7]);
        let turns: Vec<_> = (0..6).map(|at| scenario.turn_of(at)).collect();
        assert_eq!(turns, [(0, true), (0, false), (0, false), (1, true), (1, false), (2, false)]);
    }
}
