//! Two schemas as one: what satisfies both of them, or any of several.

use serde_json::{Map, Value};

use super::Notes;

type Object = Map<String, Value>;

/// A schema for what satisfies both; where the two say different words about a thing, the second one's are kept.
pub(super) fn both(mut first: Object, mut second: Object, notes: &mut Notes) -> Object {
    if forbids(&first, &second) || forbids(&second, &first) {
        first.remove(ADDITIONAL);
        second.remove(ADDITIONAL);
    }
    for (key, new) in second {
        let merged = match first.remove(&key) {
            None => new,
            Some(old) if old == new => old,
            Some(old) => one(&key, old, new, notes),
        };
        first.insert(key, merged);
    }
    first
}

/// Whether one forbids as additional what only the other one may name.
fn forbids(one: &Object, other: &Object) -> bool {
    let is_closed = one.get(ADDITIONAL).is_some_and(Value::is_boolean);
    is_closed && other.contains_key("properties") && one.get(ADDITIONAL) != other.get(ADDITIONAL)
}

/// The value of a keyword that both have, differently.
fn one(key: &str, old: Value, new: Value, notes: &mut Notes) -> Value {
    match (key, old, new) {
        (
            "properties" | "patternProperties" | "$defs" | "definitions",
            Value::Object(old),
            Value::Object(new),
        ) => Value::Object(named(old, new, notes)),
        ("required", Value::Array(old), Value::Array(new)) => Value::Array(joined(old, new)),
        ("items", Value::Object(old), Value::Object(new)) => Value::Object(both(old, new, notes)),
        ("type", old, new) => common_type(old, new, notes),
        ("enum", Value::Array(old), Value::Array(new)) => {
            let common: Vec<Value> = old.iter().filter(|value| new.contains(value)).cloned().collect();
            Value::Array(if common.is_empty() { old } else { common })
        }
        ("allOf", Value::Array(old), Value::Array(new)) => Value::Array(joined(old, new)),
        (_, old, new) if key.starts_with("min") || key == "exclusiveMinimum" => bound(old, new, f64::gt),
        (_, old, new) if key.starts_with("max") || key == "exclusiveMaximum" => bound(old, new, f64::lt),
        (_, _, new) => {
            if !ANNOTATIONS.contains(&key) {
                notes.left_out(key);
            }
            new
        }
    }
}

fn named(mut old: Object, new: Object, notes: &mut Notes) -> Object {
    for (name, new) in new {
        let merged = match (old.remove(&name), new) {
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(both(old, new, notes)),
            (Some(Value::Bool(false)), _) => Value::Bool(false),
            (Some(Value::Object(old)), Value::Bool(true)) => Value::Object(old),
            (_, new) => new,
        };
        old.insert(name, merged);
    }
    old
}

fn joined(mut old: Vec<Value>, new: Vec<Value>) -> Vec<Value> {
    for value in new {
        if !old.contains(&value) {
            old.push(value);
        }
    }
    old
}

/// The types that both allow; whole numbers are numbers.
fn common_type(old: Value, new: Value, notes: &mut Notes) -> Value {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    let (first, second) = (list(&old), list(&new));
    let allows = |types: &[Value], given: &Value| {
        types.contains(given) || given == "integer" && types.iter().any(|allowed| allowed == "number")
    };
    let mut common: Vec<Value> = first.iter().filter(|given| allows(&second, given)).cloned().collect();
    common.extend(second.iter().filter(|given| allows(&first, given) && !first.contains(given)).cloned());
    match common.as_slice() {
        [] => {
            notes.left_out("type");
            new
        }
        [only] => only.clone(),
        [..] => Value::Array(common),
    }
}

fn bound(old: Value, new: Value, is_tighter: impl Fn(&f64, &f64) -> bool) -> Value {
    match (old.as_f64(), new.as_f64()) {
        (Some(first), Some(second)) if is_tighter(&first, &second) => old,
        (_, _) => new,
    }
}

/// A schema for what satisfies any of them: every property that one of them has, and of the rest what all say.
pub(super) fn either(branches: Vec<Object>) -> Object {
    let mut branches = branches.into_iter();
    let Some(first) = branches.next() else { return Object::new() };
    let mut names: Vec<(String, Vec<Value>)> = Vec::new();
    gather(&mut names, &first);
    let mut common = first;
    for branch in branches {
        gather(&mut names, &branch);
        let required = match (common.get("required"), branch.get("required")) {
            (Some(Value::Array(old)), Some(Value::Array(new))) => {
                old.iter().filter(|name| new.contains(name)).cloned().collect()
            }
            _ => Vec::new(),
        };
        common.retain(|key, value| branch.get(key) == Some(value));
        if !required.is_empty() {
            common.insert("required".into(), Value::Array(required));
        }
    }
    let properties: Object = names.into_iter().map(|(name, schemas)| (name, any_of(schemas))).collect();
    if !properties.is_empty() {
        common.insert("properties".into(), Value::Object(properties));
    }
    common
}

/// Adds what a branch says of its properties; the same said twice counts once.
fn gather(names: &mut Vec<(String, Vec<Value>)>, branch: &Object) {
    let Some(Value::Object(properties)) = branch.get("properties") else { return };
    for (name, schema) in properties {
        match names.iter_mut().find(|(known, _)| known == name) {
            Some((_, schemas)) if schemas.contains(schema) => {}
            Some((_, schemas)) => schemas.push(schema.clone()),
            None => names.push((name.clone(), vec![schema.clone()])),
        }
    }
}

fn any_of(mut schemas: Vec<Value>) -> Value {
    match schemas.pop() {
        Some(only) if schemas.is_empty() => only,
        last => {
            schemas.extend(last);
            Value::Object([("anyOf".to_owned(), Value::Array(schemas))].into_iter().collect())
        }
    }
}

const ADDITIONAL: &str = "additionalProperties";
/// Words for readers, which forbid nothing.
const ANNOTATIONS: [&str; 8] =
    ["title", "description", "default", "example", "examples", "$comment", "$schema", "$id"];
