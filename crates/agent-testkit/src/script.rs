//! What a model will say, reply by reply, as Rust values or as a JSON file.

use agent_core::{RawJson, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::fault::Fault;

/// The replies of a model, in order (requirement V6).
///
/// As JSON: an array of replies, for example
/// `[{"text": "Let me look.", "calls": [{"name": "grep", "input": {"pattern": "fn main"}}]}, {"text": "Done."}]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Script {
    replies: Vec<Reply>,
}

/// One reply: thinking first, then words, then calls. An empty one is an answer without content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Reply {
    /// Thinking; it comes signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Words for the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Tool calls, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptCall>,
    /// Why the model stops, in the provider's word; by default `tool_use` with calls and `end_turn` without. On
    /// the wires of OpenAI the words of Anthropic become those of the wire, so that one script serves all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// Tokens reported; by default what the rules of the prompt cache make of the request, and the reply's size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Milliseconds waited before each event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// Whether the answer waits until [`crate::SimProvider::release`]. Only the simulated provider can hold.
    #[serde(skip_serializing_if = "is_false")]
    pub hold: bool,
    /// Served in place of the reply, one for each time it is asked for; after the last one the reply itself is
    /// given. Those that are the reply itself in another way (slow, with events twice) use it up. Only the simulated provider has these; see [`crate::ScriptedModel::failing`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// A tool call in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a record of a call")]
pub struct ScriptCall {
    /// The call's id; by default one made of the positions of reply and call, unique in its script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The tool, by its name on the wire.
    pub name: String,
    /// What the model writes as input.
    #[serde(default)]
    pub input: ScriptInput,
}

/// The input of a call, exactly as the model writes it, JSON or not.
///
/// In a script file any JSON value stands for its own bytes; a JSON string stands for the text in it, so that
/// `"{\"a"` is a model that stopped in the middle of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptInput(String);

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// Not a JSON array.
    #[error("a script is a JSON array of replies, like [{{\"text\": \"hello\"}}]: {0}")]
    NotAList(#[source] serde_json::Error),
    /// One reply is not understood.
    #[error(
        "reply {number} of the script is not understood: {cause}; a reply has the fields reasoning, text, calls, \
         stop_reason, usage, delay_ms, hold and faults"
    )]
    Reply {
        /// Which reply, from 1.
        number: usize,
        /// What the reader said.
        #[source]
        cause: serde_json::Error,
    },
    /// More was asked than the script holds.
    #[error(
        "the script has {given} replies, and reply {asked} was asked for: add a reply, or stop the run earlier"
    )]
    Exhausted {
        /// How many replies there are.
        given: usize,
        /// Which one was asked for, from 1.
        asked: usize,
    },
    /// Less was asked than the script holds.
    #[error(
        "the script has {given} replies, but only {served} were asked for: the run ended early, or the script is too long"
    )]
    Unused {
        /// How many replies there are.
        given: usize,
        /// How many were served.
        served: usize,
    },
}

impl Script {
    /// A script of these replies.
    pub fn new(replies: Vec<Reply>) -> Self {
        Self { replies }
    }

    /// Reads a script file's text; the error names the reply that is wrong.
    pub fn parse(json: &str) -> Result<Self, ScriptError> {
        let raw: Vec<&RawValue> = serde_json::from_str(json).map_err(ScriptError::NotAList)?;
        let replies = raw.iter().enumerate().map(|(position, reply)| {
            let number = position + 1;
            serde_json::from_str(reply.get()).map_err(|cause| ScriptError::Reply { number, cause })
        });
        replies.collect()
    }

    /// The reply at a position, counted from 0.
    pub fn reply(&self, position: usize) -> Result<&Reply, ScriptError> {
        let exhausted = ScriptError::Exhausted { given: self.replies.len(), asked: position + 1 };
        self.replies.get(position).ok_or(exhausted)
    }

    /// All replies.
    pub fn replies(&self) -> &[Reply] {
        &self.replies
    }

    /// How many replies there are.
    pub fn len(&self) -> usize {
        self.replies.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.replies.is_empty()
    }

    pub(crate) fn check_served(&self, served: usize) -> Result<(), ScriptError> {
        let given = self.replies.len();
        if served < given { Err(ScriptError::Unused { given, served }) } else { Ok(()) }
    }
}

impl FromIterator<Reply> for Script {
    fn from_iter<I: IntoIterator<Item = Reply>>(replies: I) -> Self {
        Self::new(replies.into_iter().collect())
    }
}

impl From<Vec<Reply>> for Script {
    fn from(replies: Vec<Reply>) -> Self {
        Self::new(replies)
    }
}

impl Reply {
    /// A reply of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// A reply that is one call; chain [`Reply::call`] for more.
    pub fn tool(name: impl Into<String>, input: impl Into<ScriptInput>) -> Self {
        Self::default().call(name, input)
    }

    /// Adds a call.
    #[must_use]
    pub fn call(self, name: impl Into<String>, input: impl Into<ScriptInput>) -> Self {
        self.with_call(ScriptCall { id: None, name: name.into(), input: input.into() })
    }

    /// Adds a call with everything said.
    #[must_use]
    pub fn with_call(mut self, call: ScriptCall) -> Self {
        self.calls.push(call);
        self
    }

    /// Puts thinking before the words.
    #[must_use]
    pub fn thinking(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = Some(reasoning.into());
        self
    }

    /// Says why the model stops, in the provider's word, for example `max_tokens`.
    #[must_use]
    pub fn stopping(mut self, reason: impl Into<String>) -> Self {
        self.stop_reason = Some(reason.into());
        self
    }

    /// Reports these tokens.
    #[must_use]
    pub fn costing(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Waits before each event.
    #[must_use]
    pub fn slowly(mut self, delay_ms: u64) -> Self {
        self.delay_ms = Some(delay_ms);
        self
    }

    /// Waits with the answer until [`crate::SimProvider::release`].
    #[must_use]
    pub fn held(mut self) -> Self {
        self.hold = true;
        self
    }

    /// Fails once in this way before the reply is given; call it again for a second failure.
    #[must_use]
    pub fn fault(self, fault: Fault) -> Self {
        self.fault_times(1, &fault)
    }

    /// Fails this many times in this way before the reply is given.
    #[must_use]
    pub fn fault_times(mut self, times: usize, fault: &Fault) -> Self {
        self.faults.extend(std::iter::repeat_n(fault, times).cloned());
        self
    }

    pub(crate) fn stop_word(&self) -> &str {
        let usual = if self.calls.is_empty() { "end_turn" } else { "tool_use" };
        self.stop_reason.as_deref().unwrap_or(usual)
    }

    /// What the model writes, in bytes.
    pub(crate) fn written(&self) -> usize {
        let words = [&self.reasoning, &self.text].into_iter().flatten().map(String::len);
        let calls = self.calls.iter().map(|call| call.name.len() + call.input.as_str().len());
        words.chain(calls).sum()
    }
}

impl ScriptCall {
    /// The given id, or one made of the positions, so that a server that was restarted gives the same one.
    pub(crate) fn id_at(&self, prefix: &str, reply: usize, position: usize) -> String {
        self.id.clone().unwrap_or_else(|| format!("{prefix}_sim_{reply:04}_{position}"))
    }
}

impl ScriptInput {
    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for ScriptInput {
    fn default() -> Self {
        Self("{}".into())
    }
}

impl From<&str> for ScriptInput {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for ScriptInput {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<RawJson> for ScriptInput {
    fn from(json: RawJson) -> Self {
        Self(json.get().into())
    }
}

impl From<serde_json::Value> for ScriptInput {
    fn from(json: serde_json::Value) -> Self {
        Self(json.to_string())
    }
}

impl Serialize for ScriptInput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match RawJson::parse(self.0.as_str()) {
            Ok(json) if json.get() == self.0 && !self.0.starts_with('"') => json.serialize(serializer),
            Ok(_) | Err(_) => self.0.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ScriptInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = RawJson::deserialize(deserializer)?;
        if json.get().starts_with('"') {
            return json.to().map(Self).map_err(serde::de::Error::custom);
        }
        Ok(Self(json.get().into()))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn refuses(text: &str, expect: &[&str]) {
        let error = Script::parse(text).unwrap_err().to_string();
        for part in expect {
            assert!(error.contains(part), "{error:?} does not say {part:?}");
        }
    }

    #[test]
    fn a_wrong_script_says_where_and_what() {
        refuses("", &["JSON array of replies"]);
        refuses(r#"{"text":"hi"}"#, &["JSON array of replies", "expected a sequence"]);
        refuses(r#"[{"text":"a"},{"txt":"b"}]"#, &["reply 2", "`txt`", "stop_reason"]);
        refuses(r#"[{"calls":[{"input":{}}]}]"#, &["reply 1", "missing field `name`"]);
        refuses(r#"[{"faults":[{"explode":{}}]}]"#, &["reply 1", "explode", "status"]);
        refuses(r#"[{"text":1}]"#, &["reply 1", "expected a string"]);
        refuses(r#"[{"text":"a"}"#, &["EOF"]);
    }

    #[test]
    fn asking_past_the_end_names_the_count() {
        let script = Script::new(vec![Reply::text("one")]);
        assert!(script.reply(0).is_ok());
        let error = script.reply(1).unwrap_err().to_string();
        insta::assert_snapshot!(error, @"the script has 1 replies, and reply 2 was asked for: add a reply, or stop the run earlier");
    }

    #[test]
    fn builders_and_files_say_the_same() {
        let built: Script = [
            Reply::text("Let me look.").thinking("Where?").call("grep", json!({ "pattern": "x" })),
            Reply::tool("read", r#"{"z":12345678901234567890,"a":1.0}"#).stopping("max_tokens"),
            Reply::tool("read", "{\"pa").fault_times(2, &Fault::Hangup).held().slowly(3),
        ]
        .into_iter()
        .collect();
        let text = serde_json::to_string(&built).unwrap();
        insta::assert_snapshot!(text, @r#"[{"reasoning":"Where?","text":"Let me look.","calls":[{"name":"grep","input":{"pattern":"x"}}]},{"calls":[{"name":"read","input":{"z":12345678901234567890,"a":1.0}}],"stop_reason":"max_tokens"},{"calls":[{"name":"read","input":"{\"pa"}],"delay_ms":3,"hold":true,"faults":["hangup","hangup"]}]"#);
        assert_eq!(Script::parse(&text).unwrap(), built);
    }

    #[test]
    fn input_keeps_what_the_model_wrote() {
        let check = |written: &str, file: &str| {
            let input = ScriptInput::from(written);
            assert_eq!(serde_json::to_string(&input).unwrap(), file);
            assert_eq!(serde_json::from_str::<ScriptInput>(file).unwrap(), input);
        };
        check(r#"{"b":1,"a":2.0}"#, r#"{"b":1,"a":2.0}"#);
        check(r#"{"b":"#, r#""{\"b\":""#);
        check("", r#""""#);
        check("null", "null");
        check(r#""quoted""#, r#""\"quoted\"""#);
        check(" {} ", r#"" {} ""#);
    }
}
