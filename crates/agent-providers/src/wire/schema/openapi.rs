//! The subset of JSON Schema that OpenAPI 3.0 has, and Gemini takes: every schema has one type or is a union.

use serde_json::{Map, Value, json};

use super::merge::both;
use super::{Notes, list};

/// Writes schemas without references in the subset.
#[derive(Debug)]
pub(super) struct Subset<'n> {
    pub(super) notes: &'n mut Notes,
}

impl Subset<'_> {
    /// The root, whose properties are named even if there are none; `None` when nothing satisfies it.
    pub(super) fn root(&mut self, node: &Value) -> Option<Value> {
        let mut root = self.schema(node)?;
        if let Value::Object(root) = &mut root {
            root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        }
        Some(root)
    }

    /// `None` for what nothing satisfies.
    fn schema(&mut self, node: &Value) -> Option<Value> {
        match node.as_object() {
            Some(object) => self.object(object.clone()),
            None => (node != false).then(anything),
        }
    }

    fn object(&mut self, mut object: Map<String, Value>) -> Option<Value> {
        for branch in list(object.remove("allOf")) {
            if branch == false {
                return None;
            }
            if let Value::Object(branch) = branch {
                object = both(object, branch, self.notes);
            }
        }
        let mut is_nullable = object.remove("nullable") == Some(Value::Bool(true));
        let union = ["anyOf", "oneOf"].into_iter().find(|word| object.contains_key(*word));
        let mut branches = union.map(|word| list(object.remove(word))).unwrap_or_default();
        let is_union = !branches.is_empty();
        is_nullable |= branches.iter().any(is_null);
        branches.retain(|branch| !is_null(branch) && branch != false);
        match branches.as_slice() {
            [] if is_union && !is_nullable => return None,
            // What was the only branch may be a union itself.
            [Value::Object(only)] => {
                let whole = both(only.clone(), object, self.notes);
                let mut schema = self.object(whole)?;
                mark(&mut schema, is_nullable);
                return Some(schema);
            }
            [Value::Bool(_)] => branches.clear(),
            [..] => {}
        }
        if branches.is_empty() {
            is_nullable |= self.split_types(&mut object, &mut branches);
        }
        let mut schema = match (branches.is_empty(), one_type(&object)) {
            (true, Some(kind)) => self.typed(&kind, &object),
            (true, None) => described(anything(), &object),
            (false, _) => {
                let mut all: Vec<Value> = branches.iter().filter_map(|branch| self.schema(branch)).collect();
                let only = (all.len() < 2).then(|| all.pop());
                described(only.unwrap_or_else(|| Some(json!({ "anyOf": all })))?, &object)
            }
        };
        mark(&mut schema, is_nullable);
        Some(schema)
    }

    /// Several types become a union of schemas with one each. Whether null was among them.
    fn split_types(&mut self, object: &mut Map<String, Value>, branches: &mut Vec<Value>) -> bool {
        let Some(Value::Array(types)) = object.get("type").cloned() else { return false };
        let kept: Vec<&Value> = types.iter().filter(|given| *given != "null").collect();
        match kept.as_slice() {
            [] => {
                object.insert("type".into(), "null".into());
            }
            [only] => {
                object.insert("type".into(), (*only).clone());
            }
            [..] => branches.extend(kept.iter().map(|given| {
                let mut branch = object.clone();
                ANNOTATIONS.iter().for_each(|word| drop(branch.remove(*word)));
                branch.insert("type".into(), (*given).clone());
                Value::Object(branch)
            })),
        }
        kept.len() < types.len()
    }

    /// A schema of one type with the words that mean something for it.
    fn typed(&mut self, kind: &str, object: &Map<String, Value>) -> Value {
        let mut out = Map::new();
        let (kind, is_null) = if kind == "null" { ("string", true) } else { (kind, false) };
        out.insert("type".into(), kind.into());
        let words = match kind {
            "object" => &["minProperties", "maxProperties"][..],
            "array" => &["minItems", "maxItems"],
            "string" => &["minLength", "maxLength", "pattern"],
            "integer" | "number" => &["minimum", "maximum"],
            _ => &[],
        };
        for (key, value) in object {
            match key.as_str() {
                "properties" if kind == "object" => {
                    out.insert(key.clone(), self.properties(value));
                }
                "items" | "prefixItems" if kind == "array" => {}
                "format" => out.extend(format_of(kind, value).map(|format| ("format".to_owned(), format))),
                "enum" | "const" | "type" | "required" => {}
                word if words.contains(&word) || ANNOTATIONS.contains(&word) => {
                    out.insert(key.clone(), value.clone());
                }
                word if SILENT.contains(&word) => {}
                "additionalProperties" if value == false => {}
                word => self.notes.left_out(word),
            }
        }
        if kind == "array" {
            let items = self.items(object);
            out.insert("items".into(), items);
        }
        require(&mut out, object);
        self.choices(kind, &mut out, object);
        let mut out = Value::Object(out);
        mark(&mut out, is_null);
        out
    }

    fn properties(&mut self, given: &Value) -> Value {
        let given = given.as_object().into_iter().flatten();
        let kept = given.filter_map(|(name, schema)| Some((name.clone(), self.schema(schema)?)));
        Value::Object(kept.collect())
    }

    /// What a list holds; places of their own are no more than a union.
    fn items(&mut self, object: &Map<String, Value>) -> Value {
        let places = match (object.get("prefixItems"), object.get("items")) {
            (Some(Value::Array(places)), _) | (None, Some(Value::Array(places))) => places.clone(),
            (_, Some(items)) => return self.schema(items).unwrap_or_else(anything),
            (_, None) => Vec::new(),
        };
        if places.is_empty() {
            return anything();
        }
        self.notes.left_out("prefixItems");
        self.object([("anyOf".to_owned(), Value::Array(places))].into_iter().collect())
            .unwrap_or_else(anything)
    }

    /// The values allowed: of texts as a list, of others in words, since no list of them is taken.
    fn choices(&mut self, kind: &str, out: &mut Map<String, Value>, object: &Map<String, Value>) {
        let choices = match (object.get("enum"), object.get("const")) {
            (_, Some(only)) => vec![only.clone()],
            (Some(Value::Array(choices)), None) => choices.clone(),
            (_, None) => return,
        };
        if choices.iter().any(Value::is_null) {
            out.insert("nullable".into(), true.into());
        }
        let choices: Vec<Value> = choices.into_iter().filter(|choice| !choice.is_null()).collect();
        // An empty text is refused inside of a list, and a list without it would forbid it.
        let listed = kind == "string"
            && choices.iter().all(|choice| choice.as_str().is_some_and(|text| !text.is_empty()));
        if listed && !choices.is_empty() {
            out.insert("enum".into(), Value::Array(choices));
        } else if !choices.is_empty() {
            let known = out.get("description").and_then(Value::as_str).unwrap_or_default();
            let choices: Vec<String> = choices.iter().map(Value::to_string).collect();
            let words = format!("{known} (one of: {})", choices.join(", "));
            out.insert("description".into(), words.trim_start().into());
        }
    }
}

fn is_null(branch: &Value) -> bool {
    let only_null =
        |value: &Value| value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_null));
    branch.get("type").is_some_and(|given| given == "null")
        || branch.get("const").is_some_and(Value::is_null)
        || branch.get("enum").is_some_and(only_null)
}

/// The type of a schema; one that names none is known by its words.
fn one_type(object: &Map<String, Value>) -> Option<String> {
    if let Some(Value::String(kind)) = object.get("type") {
        return Some(kind.clone());
    }
    let has = |key: &str| object.contains_key(key);
    if has("properties") || has("required") || has("additionalProperties") {
        return Some("object".into());
    }
    if has("items") || has("prefixItems") {
        return Some("array".into());
    }
    if has("pattern") || has("minLength") || has("maxLength") {
        return Some("string".into());
    }
    let value = object.get("const").or_else(|| object.get("enum")?.as_array()?.first())?;
    Some(match value {
        Value::Bool(_) => "boolean".into(),
        Value::Number(number) if number.is_f64() => "number".into(),
        Value::Number(_) => "integer".into(),
        Value::Object(_) => "object".into(),
        Value::Array(_) => "array".into(),
        Value::String(_) | Value::Null => "string".into(),
    })
}

/// Only properties that are described can be demanded.
fn require(out: &mut Map<String, Value>, object: &Map<String, Value>) {
    let (Some(Value::Array(names)), Some(Value::Object(known))) =
        (object.get("required"), out.get("properties"))
    else {
        return;
    };
    let is_known = |name: &&Value| name.as_str().is_some_and(|name| known.contains_key(name));
    let names: Vec<Value> = names.iter().filter(is_known).cloned().collect();
    if !names.is_empty() {
        out.insert("required".into(), Value::Array(names));
    }
}

fn format_of(kind: &str, format: &Value) -> Option<Value> {
    let taken = match kind {
        "string" => &["date-time"][..],
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => &[],
    };
    taken.iter().any(|taken| format == taken).then(|| format.clone())
}

fn described(mut schema: Value, object: &Map<String, Value>) -> Value {
    if let Value::Object(out) = &mut schema {
        let words =
            ANNOTATIONS.iter().filter_map(|word| Some(((*word).to_owned(), object.get(*word)?.clone())));
        out.extend(words);
    }
    schema
}

fn mark(schema: &mut Value, is_nullable: bool) {
    if let Value::Object(schema) = schema
        && is_nullable
    {
        schema.insert("nullable".into(), true.into());
    }
}

/// Any value: a schema without a type is refused.
fn anything() -> Value {
    json!({"anyOf": [
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"type": "string"}}
    ]})
}

const ANNOTATIONS: [&str; 3] = ["title", "description", "default"];
/// Words that tell a model nothing about the values.
const SILENT: [&str; 9] =
    ["$schema", "$id", "$comment", "$anchor", "example", "examples", "readOnly", "writeOnly", "deprecated"];
