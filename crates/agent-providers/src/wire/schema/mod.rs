//! Tool schemas in the words each provider takes (case M13): what only one of them refuses must not cost a tool.
//!
//! The schema of the card stays the one that calls are checked against; what is sent is never stricter than it.

mod merge;
mod openapi;
mod refs;

use std::borrow::Cow;
use std::collections::BTreeSet;

use agent_core::{ProviderData, ToolCard};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::form::Cx;
use super::json::Fields;
use merge::{both, either};
use openapi::Subset;
use refs::{Inliner, check, resolve};

/// What a provider takes of JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    /// All of it but for unions at the root; the root's properties have plain names.
    Anthropic,
    /// All of it but for unions, `enum` and `not` at the root; objects name properties and lists say of what.
    OpenAi,
    /// The subset that OpenAPI 3.0 has, without references.
    Gemini,
    /// All of it, but references are not followed and a schema is always an object.
    Ollama,
}

/// A schema as it is sent.
#[derive(Debug)]
pub(crate) struct Fitted<'t> {
    /// Canonical JSON of an object whose `type` is `object`; the card's own bytes when nothing had to change.
    pub(crate) schema: Cow<'t, str>,
    /// What the model is not told, in whole sentences.
    pub(crate) notes: Vec<String>,
}

/// Why no form of a schema can be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsendable {
    #[error("its schema refers to {0:?}, which is not in it; define it there")]
    Dangling(String),
    #[error("its schema is nothing but references to itself; describe an object with properties")]
    Endless,
    #[error("its schema takes no object; describe the input as an object with properties")]
    NoObject,
    #[error("its schema is too large once its references are followed; make it flatter")]
    TooLarge,
    #[error("its property {0:?} has a name that the provider refuses; use 1 to 64 of A-Z a-z 0-9 _ . -")]
    Property(String),
    #[error("its schema cannot be read; give JSON")]
    Unreadable,
}

impl Rules {
    fn follows_references(self) -> bool {
        matches!(self, Self::Anthropic | Self::OpenAi)
    }
}

/// The schema of a tool to send, or `None` when the tool must be left out; either way the user is told.
pub(crate) fn sendable<'t>(tool: &'t ToolCard, rules: Rules, cx: &mut Cx<'_>) -> Option<Cow<'t, str>> {
    if let Some(data) = tool.data().filter(|data| data.provider != cx.profile.provider)
        && let Some(fields) = said_besides(data)
    {
        cx.note("tools", format!("{:?}: {fields} is for {} only; left out", tool.name(), data.provider));
    }
    match fitted(tool, rules) {
        Ok(Fitted { schema, notes }) => {
            notes.iter().for_each(|note| cx.note("tools", format!("{:?}: {note}", tool.name())));
            Some(schema)
        }
        Err(why) => {
            cx.note("tools", format!("the tool {:?} was left out: {why}", tool.name()));
            None
        }
    }
}

/// Whether a request names the tool: what is not sent must not be chosen either.
pub(crate) fn is_sent(tool: &ToolCard, rules: Rules, provider: &str) -> bool {
    match tool.data().filter(|_| tool.is_hosted()) {
        Some(data) => data.provider == provider,
        None => fitted(tool, rules).is_ok(),
    }
}

/// The fields of a provider's own that ask for something, by name.
fn said_besides(data: &ProviderData) -> Option<String> {
    let fields = Fields::read(data.json.get())?;
    let asks = |raw: &RawValue| !matches!(raw.get(), "null" | "false" | "{}" | "[]" | "\"\"");
    let names: Vec<&str> =
        fields.0.iter().filter(|(_, raw)| asks(raw)).map(|(key, _)| key.as_ref()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The schema of a tool as a provider takes it. For a tool without input, the gemini form is
/// `{"properties":{},"type":"object"}`.
pub(crate) fn fitted(tool: &ToolCard, rules: Rules) -> Result<Fitted<'_>, Unsendable> {
    let given = tool.input_schema().get();
    let root: Value = serde_json::from_str(given).map_err(|_| Unsendable::Unreadable)?;
    check(&root, &root)?;
    let mut notes = Notes::default();
    let mut value = if rules.follows_references() {
        rooted(&root, &mut notes)?
    } else {
        rooted(&Inliner::new(&root, &mut notes).whole()?, &mut notes)?
    };
    // A reference into a union that was merged away leads nowhere: then all of them are replaced.
    if check(&value, &value).is_err() {
        value = rooted(&Inliner::new(&root, &mut notes).whole()?, &mut notes)?;
    }
    let value = match rules {
        Rules::Anthropic => plain_names(value)?,
        Rules::OpenAi | Rules::Ollama => completed(value),
        Rules::Gemini => Subset { notes: &mut notes }.root(&value).ok_or(Unsendable::NoObject)?,
    };
    let schema = value.to_string();
    let schema = if schema == given { Cow::Borrowed(given) } else { Cow::Owned(schema) };
    Ok(Fitted { schema, notes: notes.into_sentences() })
}

/// What is lost, each thing named once.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Keywords that were left out.
    words: BTreeSet<String>,
    sentences: BTreeSet<&'static str>,
}

impl Notes {
    fn say(&mut self, sentence: &'static str) {
        self.sentences.insert(sentence);
    }

    fn left_out(&mut self, word: &str) {
        self.words.insert(word.to_owned());
    }

    fn into_sentences(self) -> Vec<String> {
        let words: Vec<String> = self.words.into_iter().collect();
        let words = (!words.is_empty()).then(|| {
            format!("the model is not told {}, which this provider has no word for", words.join(", "))
        });
        self.sentences.into_iter().map(str::to_owned).chain(words).collect()
    }
}

/// The root as one object: unions are merged, since no provider takes one there.
fn rooted(root: &Value, notes: &mut Notes) -> Result<Value, Unsendable> {
    let mut object = flat(root, root, 0, notes)?;
    for word in ["enum", "const", "not"] {
        if object.remove(word).is_some() {
            notes.left_out(word);
        }
    }
    object.insert("type".into(), "object".into());
    Ok(Value::Object(object))
}

/// A schema of objects without references and unions at its top. What it is part of is `root`.
fn flat(
    node: &Value,
    root: &Value,
    depth: usize,
    notes: &mut Notes,
) -> Result<Map<String, Value>, Unsendable> {
    if depth > DEEPEST {
        return Err(Unsendable::Endless);
    }
    let mut object = match node {
        Value::Object(object) => object.clone(),
        Value::Bool(true) => Map::new(),
        Value::Bool(false) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(Unsendable::NoObject);
        }
    };
    if let Some(Value::String(target)) = object.remove("$ref") {
        let target = resolve(root, &target).ok_or(Unsendable::Dangling(target))?;
        object = both(flat(target, root, depth + 1, notes)?, object, notes);
    }
    for branch in list(object.remove("allOf")) {
        object = both(object, flat(&branch, root, depth + 1, notes)?, notes);
    }
    for union in ["anyOf", "oneOf"] {
        let branches = list(object.remove(union));
        if branches.is_empty() {
            continue;
        }
        let branches = objects(&branches, root, depth + 1, notes)?;
        if branches.len() > 1 {
            notes.say(MERGED);
        }
        object = both(object, either(branches), notes);
    }
    if takes_objects(object.get("type")) { Ok(object) } else { Err(Unsendable::NoObject) }
}

/// The branches of a union that take an object: the input of a call is nothing else.
fn objects(
    branches: &[Value],
    root: &Value,
    depth: usize,
    notes: &mut Notes,
) -> Result<Vec<Map<String, Value>>, Unsendable> {
    let mut kept = Vec::new();
    for branch in branches {
        match flat(branch, root, depth, notes) {
            Ok(branch) => kept.push(branch),
            Err(Unsendable::NoObject) => {}
            Err(error) => return Err(error),
        }
    }
    if kept.is_empty() { Err(Unsendable::NoObject) } else { Ok(kept) }
}

fn takes_objects(given: Option<&Value>) -> bool {
    match given {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|given| given == "object"),
        Some(given) => given == "object",
    }
}

fn list(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::Array(items)) => items,
        Some(_) | None => Vec::new(),
    }
}

fn plain_names(root: Value) -> Result<Value, Unsendable> {
    let is_plain = |name: &str| {
        (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
    };
    let names = root.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    match names.into_iter().find(|name| !is_plain(name)) {
        Some(name) => Err(Unsendable::Property(name.clone())),
        None => Ok(root),
    }
}

/// Says what may be left unsaid: the properties of the root, what lists hold, and `true` as an object.
fn completed(root: Value) -> Value {
    let mut root = complete(&root);
    if let Value::Object(object) = &mut root {
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    root
}

fn complete(node: &Value) -> Value {
    if node == false {
        return serde_json::json!({"not": {}});
    }
    let Value::Object(object) = node else { return Value::Object(Map::new()) };
    let mut out: Map<String, Value> = object
        .iter()
        .map(|(key, value)| match (Place::of(key), value) {
            // `additionalProperties: false` and its kind are taken as they are.
            (Place::Schema, Value::Bool(_)) if key != "items" => (key.clone(), value.clone()),
            (place, _) => (key.clone(), place.map(value, complete)),
        })
        .collect();
    if out.get("type").is_some_and(|given| given == "array") && !out.contains_key("prefixItems") {
        out.entry("items").or_insert_with(|| Value::Object(Map::new()));
    }
    Value::Object(out)
}

/// What stands under a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// One schema, or a list of them.
    Schema,
    /// Schemas by name.
    Named,
    /// No schema: whatever looks like one there is data.
    Data,
}

impl Place {
    fn of(key: &str) -> Self {
        match key {
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Self::Named,
            "items"
            | "prefixItems"
            | "additionalItems"
            | "contains"
            | "additionalProperties"
            | "propertyNames"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else" => Self::Schema,
            _ => Self::Data,
        }
    }

    /// The value with each schema in it replaced.
    fn map(self, value: &Value, mut with: impl FnMut(&Value) -> Value) -> Value {
        match self.try_map(value, |schema| Ok::<_, std::convert::Infallible>(with(schema))) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    fn try_map<E>(self, value: &Value, mut with: impl FnMut(&Value) -> Result<Value, E>) -> Result<Value, E> {
        match (self, value) {
            (Self::Data, _) => Ok(value.clone()),
            (Self::Schema, Value::Array(all)) => {
                all.iter().map(with).collect::<Result<_, E>>().map(Value::Array)
            }
            (Self::Schema, _) => with(value),
            (Self::Named, Value::Object(all)) => {
                let all = all.iter().map(|(name, schema)| Ok((name.clone(), with(schema)?)));
                all.collect::<Result<_, E>>().map(Value::Object)
            }
            (Self::Named, _) => Ok(value.clone()),
        }
    }
}

/// Deeper than any schema that a person wrote.
const DEEPEST: usize = 32;
const MERGED: &str = "the union at the root of its schema was merged into one object, so the model is not told which fields go together";

#[cfg(test)]
mod tests;
