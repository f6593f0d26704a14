//! What a hook that is an external command is told on its standard input, and how its answer is read.

use std::time::Duration;

use agent_core::{RawJson, Text, ToolOutput};
use serde::{Deserialize, Serialize};

use super::{After, Before, HookDecision};
use crate::Pattern;

/// An external command that is run at one kind of event.
///
/// It reads one [`HookMessage`] on its standard input. It answers with its exit code: 0 and, if it likes, a JSON object on
/// standard output (`decision`, `reason`, `updated_input`, `output`, `context`); 2 to block the call, or to put words
/// beside a result, with what it wrote to standard error; anything else is a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a record of settings")]
pub struct HookSpec {
    /// When it runs.
    pub on: HookEvent,
    /// For which tools; every one without it.
    #[serde(default = "any_tool")]
    pub tools: Pattern,
    /// What a shell runs.
    pub command: String,
    /// How long it may take, in milliseconds; 60,000 without it.
    #[serde(default = "usual_timeout")]
    pub timeout_ms: u64,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the three moments of a call")]
pub enum HookEvent {
    /// Before the input is checked.
    PreTool,
    /// Behind a call that succeeded.
    PostTool,
    /// Behind a call that failed or was refused.
    ToolError,
}

/// What an external command is told.
#[derive(Debug, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "built by whoever runs the command")]
pub struct HookMessage<'a> {
    /// When.
    pub event: HookEvent,
    /// The session.
    pub session: &'a str,
    /// The call.
    pub call: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The input, byte for byte.
    pub input: &'a RawJson,
    /// The output as the model would see it; only behind a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// An answer that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerFault {
    /// Neither 0 nor 2.
    #[error(
        "it ended with exit code {code}; 0 means that it looked, 2 that the call is blocked{}",
        told(said)
    )]
    Code {
        /// The code.
        code: i32,
        /// What it wrote to standard error.
        said: String,
    },
    /// Not the object that is wanted.
    #[error(
        "its answer cannot be read ({0}); it must be one JSON object of decision, reason, updated_input, output and context, or nothing"
    )]
    Json(#[from] serde_json::Error),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Answer {
    decision: Option<Decision>,
    reason: Option<String>,
    updated_input: Option<RawJson>,
    output: Option<String>,
    context: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Allow,
    Ask,
    #[serde(alias = "deny")]
    Block,
}

impl HookSpec {
    /// How long it may take.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// What an external command wants, by its exit code and what it printed. Before a call the output, and behind a call the
/// decision and the input, mean nothing and are not looked at.
///
/// # Errors
/// When it failed, or said what cannot be read.
pub fn read_answer(code: i32, out: &str, err: &str) -> Result<(Before, After), AnswerFault> {
    match code {
        0 => Ok(understood(read(out)?)),
        2 => {
            let reason =
                if err.trim().is_empty() { "A hook of the user blocks this call." } else { err.trim() };
            let context = Text::new(reason);
            Ok((Before::block(reason), After { output: None, context }))
        }
        code => Err(AnswerFault::Code { code, said: err.trim().to_owned() }),
    }
}

fn read(out: &str) -> Result<Answer, serde_json::Error> {
    if out.trim().is_empty() { Ok(Answer::default()) } else { serde_json::from_str(out) }
}

fn understood(answer: Answer) -> (Before, After) {
    let Answer { decision, reason, updated_input, output, context } = answer;
    let decision = decision.map(|decision| match decision {
        Decision::Allow => HookDecision::Allow,
        Decision::Ask => HookDecision::Ask,
        Decision::Block => HookDecision::Block(
            reason
                .filter(|reason| !reason.trim().is_empty())
                .unwrap_or_else(|| "A hook of the user blocks this call.".to_owned()),
        ),
    });
    let context = context.and_then(Text::new);
    let before = Before { decision, updated_input, context: context.clone() };
    (before, After { output: output.map(ToolOutput::text), context })
}

fn any_tool() -> Pattern {
    Pattern::tool("*")
}

fn usual_timeout() -> u64 {
    60_000
}

/// What a command said, behind what became of it; nothing of one that said nothing.
fn told(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(". It said: {said}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let check = |code: i32, out: &str, err: &str, expect: &str| {
            let read = match read_answer(code, out, err) {
                Ok((before, after)) => {
                    format!("{:?} {:?} {:?}", before.decision, before.updated_input, after.output)
                }
                Err(error) => format!("! {error}"),
            };
            assert!(read.contains(expect), "{read}");
        };
        check(0, "", "", "None None None");
        check(0, " \n", "chatter", "None None None");
        check(0, r#"{"decision":"allow"}"#, "", "Some(Allow)");
        check(0, r#"{"decision":"block","reason":"No."}"#, "", r#"Some(Block("No."))"#);
        check(0, r#"{"decision":"deny"}"#, "", "A hook of the user blocks");
        check(0, r#"{"updated_input":{"n":12345678901234567890}}"#, "", "12345678901234567890");
        check(0, r#"{"output":"Short."}"#, "", "Short.");
        check(2, "", "Not on Fridays.\n", r#"Some(Block("Not on Fridays."))"#);
        check(2, "", "", "A hook of the user blocks");
        check(1, "", "no such file\n", "! it ended with exit code 1");
        check(0, "ok", "", "! its answer cannot be read");
        check(0, r#"{"decison":"allow"}"#, "", "! its answer cannot be read");
    }
}
