//! Scenario files: an agent, what the model says to it, what happens meanwhile, and what that may cost.
//!
//! A scenario is one JSON object. Every field but `about`, `model` and `turns` may be left out, and later ones are added
//! in the same way: a file that does not know them stays as it is.

use std::path::Path;

use agent::RequestSettings;
use agent::prompt::Layer;
use agent_cache::{Budget, Cause};
use agent_core::RawJson;
use agent_testkit::{Reply, Script};
use serde::{Deserialize, Serialize};

use super::filler::filler;
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
    #[serde(default)]
    pub(crate) settings: RequestSettings,
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

/// A fragment of the system prompt: text, filler, or both.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FragmentSpec {
    pub(crate) key: String,
    #[serde(default = "session_layer")]
    pub(crate) layer: Layer,
    #[serde(default)]
    pub(crate) stability: Holds,
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) tokens: u64,
}

/// How long a fragment holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Holds {
    /// The same in every session.
    #[default]
    Static,
    /// Fixed when a session begins.
    Session,
}

/// One tool, or several alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolSpec {
    /// More than one are called `NAME_a`, `NAME_b` and so on.
    pub(crate) name: String,
    #[serde(default = "one")]
    pub(crate) count: usize,
    #[serde(default)]
    pub(crate) description: String,
    /// Filler behind the description.
    #[serde(default)]
    pub(crate) tokens: u64,
    #[serde(default)]
    pub(crate) schema: Option<RawJson>,
    /// Tokens of a result where the call does not say.
    #[serde(default = "short_result")]
    pub(crate) result_tokens: u64,
    /// Whether they come from elsewhere, in another order in each process.
    #[serde(default)]
    pub(crate) dynamic: bool,
}

/// When it begins and how time goes by.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ClockSpec {
    /// Milliseconds since 1970 UTC.
    pub(crate) start_ms: i64,
    /// How far the user's clocks are ahead of UTC.
    pub(crate) utc_offset_minutes: i32,
    /// Seconds between a request and the next one.
    pub(crate) step_seconds: u64,
}

/// One message of the user and what follows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnSpec {
    pub(crate) user: String,
    /// Filler behind the message.
    #[serde(default)]
    pub(crate) tokens: u64,
    /// Seconds that pass before it is sent.
    #[serde(default)]
    pub(crate) after_seconds: u64,
    pub(crate) steps: Vec<StepSpec>,
}

/// One answer of the model, or several alike.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepSpec {
    #[serde(default = "one")]
    pub(crate) repeat: usize,
    #[serde(default)]
    pub(crate) say: String,
    /// Filler behind what it says.
    #[serde(default)]
    pub(crate) tokens: u64,
    /// Tokens it thinks.
    #[serde(default)]
    pub(crate) think_tokens: u64,
    #[serde(default)]
    pub(crate) calls: Vec<CallSpec>,
    /// Seconds until the next request, where it is not the clock's `step_seconds`.
    #[serde(default)]
    pub(crate) seconds: Option<u64>,
}

/// Calls of one tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallSpec {
    pub(crate) tool: String,
    #[serde(default = "one")]
    pub(crate) count: usize,
    /// Tokens of each result; it becomes the call's input.
    #[serde(default)]
    pub(crate) result_tokens: Option<u64>,
    /// The input as the model writes it, byte for byte.
    #[serde(default)]
    pub(crate) input: Option<RawJson>,
}

/// Words that are in the body of a request, and in that of no earlier one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// From 1.
    pub(crate) request: usize,
    /// As they stand in the JSON.
    pub(crate) words: String,
}

/// What a sabotaged scenario must be found to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Red {
    pub(crate) cause: Cause,
    /// Where, for example `system[0]`; anywhere when not given.
    #[serde(default)]
    pub(crate) path: Option<String>,
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
        world::book(self).map_err(|error| format!("rules: {error}"))?;
        let requests = self.pauses().len();
        if self.turns.is_empty() || requests == 0 {
            return Err("turns: give at least one message and one step, or nothing is asked".into());
        }
        for (number, turn) in self.turns.iter().enumerate() {
            self.check_turn(number + 1, turn)?;
        }
        for pair in self.restart_before.windows(2).filter(|pair| pair[0] >= pair[1]) {
            return Err(format!("restart_before: {} does not come before {}; sort it", pair[0], pair[1]));
        }
        match self.restart_before.iter().find(|at| !(2..=requests).contains(*at)) {
            Some(at) => Err(format!("restart_before: {at} is none of the requests 2 to {requests}")),
            None => Ok(()),
        }
    }

    fn check_turn(&self, number: usize, turn: &TurnSpec) -> Result<(), String> {
        if turn.user.trim().is_empty() {
            return Err(format!("turn {number}: `user` is blank; say what the user asks"));
        }
        let Some((last, before)) = turn.steps.split_last() else {
            return Err(format!("turn {number}: `steps` is empty; give the answers of the model"));
        };
        if before.iter().any(|step| step.calls.is_empty() && step.repeat > 0) {
            return Err(format!("turn {number}: a step without calls ends the turn; move it to the end"));
        }
        if !last.calls.is_empty() || last.repeat != 1 || (last.say.is_empty() && last.tokens == 0) {
            return Err(format!("turn {number}: the last step ends it: give it words, no calls, no repeat"));
        }
        let called = turn.steps.iter().flat_map(|step| &step.calls);
        let names: Vec<String> = self.tools.iter().flat_map(ToolSpec::names).collect();
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

impl StepSpec {
    /// The answer at a position of the script.
    fn reply(&self, at: usize) -> Reply {
        let words = with_filler(&self.say, &format!("said {at}"), self.tokens);
        let mut reply = if words.is_empty() { Reply::default() } else { Reply::text(words) };
        if self.think_tokens > 0 {
            reply = reply.thinking(filler(&format!("thought {at}"), self.think_tokens));
        }
        for call in &self.calls {
            for number in 0..call.count {
                reply = reply.call(call.tool.clone(), call.written(at, number));
            }
        }
        reply
    }
}

impl CallSpec {
    fn written(&self, at: usize, number: usize) -> String {
        match (&self.input, self.result_tokens) {
            (Some(input), _) => input.get().to_owned(),
            (None, Some(tokens)) => format!(r#"{{"item":"{at}.{number}","tokens":{tokens}}}"#),
            (None, None) => format!(r#"{{"item":"{at}.{number}"}}"#),
        }
    }
}

impl ToolSpec {
    pub(crate) fn names(&self) -> Vec<String> {
        if self.count == 1 {
            return vec![self.name.clone()];
        }
        let letter = |at: usize| char::from(b'a' + u8::try_from(at % 26).unwrap_or(0));
        (0..self.count).map(|at| format!("{}_{}{}", self.name, letter(at / 26), letter(at))).collect()
    }
}

impl FragmentSpec {
    pub(crate) fn words(&self) -> String {
        with_filler(&self.text, &self.key, self.tokens)
    }
}

impl TurnSpec {
    pub(crate) fn words(&self) -> String {
        with_filler(&self.user, &self.user, self.tokens)
    }
}

impl Default for ClockSpec {
    fn default() -> Self {
        Self { start_ms: NOON, utc_offset_minutes: 0, step_seconds: 10 }
    }
}

/// The name of a scenario: its file's, without the ending.
pub(crate) fn name(path: &Path) -> String {
    path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Text, then filler behind it.
pub(crate) fn with_filler(text: &str, name: &str, tokens: u64) -> String {
    if tokens == 0 {
        return text.to_owned();
    }
    let more = filler(name, tokens);
    if text.is_empty() { more } else { format!("{text}\n{more}") }
}

fn session_layer() -> Layer {
    Layer::Session
}

fn one() -> usize {
    1
}

fn short_result() -> u64 {
    50
}

/// 2026-11-30, 12:00 UTC.
const NOON: i64 = 1_796_040_000_000;

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
        check(|it| it["turns"] = serde_json::json!([]), "at least one message");
        check(|it| it["turns"][0]["user"] = " ".into(), "turn 1: `user` is blank");
        check(|it| it["turns"][0]["steps"][1]["say"] = "".into(), "the last step ends it");
        check(|it| it["turns"][0]["steps"][0]["calls"] = serde_json::json!([]), "move it to the end");
        check(
            |it| it["turns"][0]["steps"][0]["calls"][0]["tool"] = "x".into(),
            "there are: read_aa, read_ab",
        );
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
