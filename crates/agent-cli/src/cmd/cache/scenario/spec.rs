//! The parts of a scenario: its prompt and tools, and what happens step by step.

use std::collections::BTreeMap;

use agent::RequestSettings;
use agent::prompt::Layer;
use agent_core::{RawJson, TerminalReason};
use agent_testkit::Reply;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::cmd::cache::filler::filler;

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
    /// More than one are called `NAME_aa`, `NAME_ab` and so on.
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
    /// Whether the model is told of them only when it searches: the scenario then has `tool_search` and `call_tool` too.
    #[serde(default)]
    pub(crate) deferred: bool,
    /// What it does; most show filler.
    #[serde(default)]
    pub(crate) does: Does,
}

/// What a tool does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Does {
    /// Shows filler.
    #[default]
    Show,
    /// Is the built-in tool of its name: `todo` or `complete`.
    Builtin,
    /// Keeps its input as the session's notes: their `text`, and `covers_to`, the first entry they do not cover.
    Notes,
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
    /// How it ends, where the model has not the last word.
    #[serde(default)]
    pub(crate) ends: Option<Ends>,
}

/// An end in the model's place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ends {
    /// No request could be sent; the turn's text holds these words.
    BlockingLimit(String),
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
    /// Whether it answers what a tier of compaction asks, and is no step of the turn.
    #[serde(default)]
    pub(crate) beside: bool,
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

impl StepSpec {
    /// The answer at a position of the script.
    pub(super) fn reply(&self, at: usize) -> Reply {
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

impl Ends {
    /// The reason and the words that the turn must end with.
    pub(crate) fn expected(&self) -> (TerminalReason, &str) {
        match self {
            Self::BlockingLimit(words) => (TerminalReason::BlockingLimit, words),
        }
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

/// Settings, without a field that is passed over: what is stored is read leniently, what a person writes is not.
pub(super) fn known_settings<'de, D: Deserializer<'de>>(reader: D) -> Result<RequestSettings, D::Error> {
    let raw = RawJson::deserialize(reader)?;
    let settings: RequestSettings = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
    let given: BTreeMap<String, Value> = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
    let kept = serde_json::to_value(&settings).map_err(D::Error::custom)?;
    // A value that says nothing is left out again.
    let is_said =
        |value: &Value| !matches!(value, Value::Null | Value::Bool(false)) && *value != Value::Array(vec![]);
    match given.iter().find(|(name, value)| is_said(value) && kept.get(name).is_none()) {
        Some((name, _)) => Err(D::Error::custom(format_args!(
            "settings: unknown field `{name}`; the fields are those of agent::RequestSettings, as max_output, thinking or effort"
        ))),
        None => Ok(settings),
    }
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
