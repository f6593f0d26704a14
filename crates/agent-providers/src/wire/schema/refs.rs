//! References inside a schema: found, checked and replaced by what they name.

use serde_json::{Map, Value};

use super::merge::both;
use super::{DEEPEST, Notes, Place, Unsendable};

/// What a reference names: the root, or a place in it. One to another document names nothing.
pub(super) fn resolve<'v>(root: &'v Value, reference: &str) -> Option<&'v Value> {
    let pointer = reference.strip_prefix('#')?;
    let decoded = percent_decoded(pointer)?;
    root.pointer(&decoded).filter(|target| target.is_object() || target.is_boolean())
}

/// Every reference must name something.
pub(super) fn check(node: &Value, root: &Value) -> Result<(), Unsendable> {
    let Value::Object(object) = node else { return Ok(()) };
    if let Some(Value::String(reference)) = object.get("$ref") {
        resolve(root, reference).ok_or_else(|| Unsendable::Dangling(reference.clone()))?;
    }
    for (key, value) in object {
        Place::of(key).try_map(value, |schema| check(schema, root).map(|()| Value::Null))?;
    }
    Ok(())
}

/// Replaces references by what they name. One inside of what it names is cut there.
#[derive(Debug)]
pub(super) struct Inliner<'v> {
    root: &'v Value,
    /// The references that are being followed. Invariant: the root first.
    path: Vec<String>,
    nodes: usize,
    notes: &'v mut Notes,
}

impl<'v> Inliner<'v> {
    pub(super) fn new(root: &'v Value, notes: &'v mut Notes) -> Self {
        Self { root, path: vec!["#".to_owned()], nodes: 0, notes }
    }

    pub(super) fn whole(mut self) -> Result<Value, Unsendable> {
        self.inline(self.root)
    }

    fn inline(&mut self, node: &Value) -> Result<Value, Unsendable> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Err(Unsendable::TooLarge);
        }
        let Value::Object(object) = node else { return Ok(node.clone()) };
        let mut out = Map::new();
        for (key, value) in object {
            if !(DEFINITIONS.contains(&key.as_str()) || key == "$ref" && value.is_string()) {
                out.insert(key.clone(), Place::of(key).try_map(value, |schema| self.inline(schema))?);
            }
        }
        match object.get("$ref") {
            Some(Value::String(reference)) => {
                let target = self.target(reference)?;
                Ok(joined(target, out, self.notes))
            }
            Some(_) | None => Ok(Value::Object(out)),
        }
    }

    fn target(&mut self, reference: &str) -> Result<Value, Unsendable> {
        let target = resolve(self.root, reference);
        let target = target.ok_or_else(|| Unsendable::Dangling(reference.to_owned()))?;
        if self.path.iter().any(|open| open == reference) || self.path.len() > DEEPEST {
            self.notes.say(CUT);
            return Ok(stub(target));
        }
        self.path.push(reference.to_owned());
        let target = self.inline(target);
        self.path.pop();
        target
    }
}

/// A schema with what stands beside the reference to it.
fn joined(target: Value, beside: Map<String, Value>, notes: &mut Notes) -> Value {
    if target == false {
        return target;
    }
    let target = target.as_object().cloned().unwrap_or_default();
    Value::Object(both(target, beside, notes))
}

/// What is said of something that would hold itself: its type and its description.
fn stub(target: &Value) -> Value {
    let kept = ["type", "title", "description"].into_iter();
    let kept = kept.filter_map(|key| Some((key.to_owned(), target.get(key)?.clone())));
    let mut kept: Map<String, Value> = kept.collect();
    kept.entry("type").or_insert_with(|| "object".into());
    Value::Object(kept)
}

/// `None` when an escape is no byte or the text is no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
const CUT: &str = "its schema holds itself: the model is told of one level of it";
/// Far more than any schema that is of use to a model.
const MOST_NODES: usize = 20_000;
