//! What a strict provider of each format accepts: one small module for each.

mod anthropic;
mod gemini;
mod ollama;
mod openai_chat;
mod openai_responses;

use agent_providers::WireFormat;
use serde_json::Value;

pub(super) type Verdict = Result<(), String>;

/// A provider that refuses what a strict one refuses.
pub(super) struct Rules {
    pub(super) format: WireFormat,
    /// The fields a request may have.
    fields: &'static [&'static str],
    /// The field that holds the conversation.
    pub(super) list: &'static str,
    check: fn(&Value) -> Verdict,
}

/// The rules of every format.
const ALL: &[Rules] =
    &[anthropic::RULES, openai_chat::RULES, openai_responses::RULES, gemini::RULES, ollama::RULES];

pub(super) fn rules(format: WireFormat) -> &'static Rules {
    let rules = ALL.iter().find(|rules| rules.format == format);
    rules.unwrap_or_else(|| panic!("{format:?} has no rules in tests/conformance/validate"))
}

impl Rules {
    /// Says why the request would be refused.
    pub(super) fn check(&self, body: &str) -> Verdict {
        let request: Value = serde_json::from_str(body).map_err(|error| format!("no JSON: {error}"))?;
        let fields = request.as_object().ok_or("no object")?;
        if let Some(unknown) = fields.keys().find(|field| !self.fields.contains(&field.as_str())) {
            return Err(format!("{unknown}: there is no such field"));
        }
        let list = items(&request[self.list])?;
        ensure(!list.is_empty(), || format!("{}: must not be empty", self.list))?;
        (self.check)(&request)
    }
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(why()) }
}

/// The items of a list that must be one.
fn items(value: &Value) -> Result<&[Value], String> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| format!("{value}: must be a list"))
}

/// The text of a field that must have one.
fn text<'v>(object: &'v Value, field: &str) -> Result<&'v str, String> {
    object[field].as_str().ok_or_else(|| format!("{field}: must be a text in {object}"))
}

/// A text that must say something.
fn words<'v>(object: &'v Value, field: &str) -> Result<&'v str, String> {
    let words = text(object, field)?;
    ensure(!words.trim().is_empty(), || format!("{field}: must not be blank in {object}"))?;
    Ok(words)
}

/// `^[a-zA-Z0-9_-]{1,longest}$`.
fn plain_name(name: &str, longest: usize) -> Verdict {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let holds = (1..=longest).contains(&name.len()) && name.chars().all(good);
    ensure(holds, || format!("{name:?}: must match ^[a-zA-Z0-9_-]{{1,{longest}}}$"))
}

/// The input of a call that is written as a text: many servers read it, and fail when it is no JSON.
fn arguments(object: &Value) -> Verdict {
    let text = text(object, "arguments")?;
    let is_json = serde_json::from_str::<Value>(text).is_ok();
    ensure(is_json, || format!("arguments: must be JSON, not {text:?}"))
}

/// A schema of a tool's input.
fn schema(schema: &Value) -> Verdict {
    ensure(schema["type"] == "object", || format!("{schema}: a schema must be of an object"))
}

/// Holds that a body of this conversation is taken (an empty expectation), or is refused in such words.
#[track_caller]
fn check_list(rules: &Rules, list: &str, expect: &str) {
    check_body(rules, &format!(r#"{{"{}":{list}}}"#, rules.list), expect);
}

#[track_caller]
fn check_body(rules: &Rules, body: &str, expect: &str) {
    let said = rules.check(body).err().unwrap_or_default();
    assert!(if expect.is_empty() { said.is_empty() } else { said.contains(expect) }, "{said:?} for {body}");
}
