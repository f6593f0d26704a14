//! Tools as the wire wants them: declarations of functions, and what the provider runs itself.

use agent_core::ToolCard;
use serde_json::value::RawValue;

use crate::wire::form::{Cx, Head};
use crate::wire::json::{Fields, quoted, replaced, sound};

/// `"tools":[{"functionDeclarations":[…]},{"googleSearch":{}}],`; nothing when no tool can be sent.
pub(super) fn tools(tools: &[ToolCard], cx: &mut Cx<'_>) -> Head {
    let mut functions = Vec::new();
    let mut hosted = Vec::new();
    for card in tools {
        match card.data().filter(|_| card.is_hosted()) {
            Some(data) if data.provider == cx.profile.provider => {
                hosted.push(sound(data.json.get()).into_owned())
            }
            Some(data) => {
                let why = format!(
                    "{:?} is run by {}, which this provider is not; left out",
                    card.name(),
                    data.provider
                );
                cx.note("tools", why);
            }
            None => functions.push(function(card, cx)),
        }
    }
    if !functions.is_empty() {
        hosted.insert(0, format!("{{\"functionDeclarations\":[{}]}}", functions.join(",")));
    }
    if hosted.is_empty() {
        return Head::default();
    }
    Head { bytes: format!("\"tools\":[{}],", hosted.join(",")).into_bytes(), splice: None }
}

fn function(card: &ToolCard, cx: &Cx<'_>) -> String {
    let mut entry = format!("{{\"name\":{}", quoted(&cx.names.wire(card.name())));
    // The wire wants a description.
    entry.push_str(&format!(",\"description\":{}", quoted(card.description())));
    let schema = card.input_schema().get();
    if takes_input(schema) {
        let key = if is_plain(schema) { "parameters" } else { "parametersJsonSchema" };
        entry.push_str(&format!(",\"{key}\":{schema}"));
    }
    entry.push('}');
    let data = card.data().filter(|data| data.provider == cx.profile.provider);
    let fields = data.and_then(|data| Fields::read(data.json.get())).unwrap_or_default().0;
    let fields: Vec<_> =
        fields.into_iter().map(|(key, raw)| (key.into_owned(), sound(raw.get()).into_owned())).collect();
    if fields.is_empty() { entry } else { replaced(&entry, &fields) }
}

/// Whether there is anything to describe: an object without properties is refused by some versions of the interface,
/// and none at all by no one.
fn takes_input(schema: &str) -> bool {
    let fields = Fields::read(schema).unwrap_or_default();
    let has_properties = fields.get("properties").is_some_and(|raw| raw.get() != "{}");
    has_properties
        || fields
            .0
            .iter()
            .any(|(key, _)| !matches!(key.as_ref(), "type" | "properties" | "required" | "title"))
}

/// Whether a schema says only what the provider's own schemas can say. Any other goes as JSON Schema, which it reads
/// as well, so that nothing of it is lost.
fn is_plain(schema: &str) -> bool {
    let Some(fields) = Fields::read(schema) else { return false };
    fields.0.iter().all(|(key, raw)| match key.as_ref() {
        "type" => serde_json::from_str::<&str>(raw.get()).is_ok_and(|kind| kind != "null"),
        "properties" => Fields::read(raw.get())
            .is_some_and(|all| !all.0.is_empty() && all.0.iter().all(|(_, inner)| is_plain(inner.get()))),
        "items" => is_plain(raw.get()),
        "anyOf" => serde_json::from_str::<Vec<&RawValue>>(raw.get())
            .is_ok_and(|all| all.iter().all(|inner| is_plain(inner.get()))),
        "enum" => serde_json::from_str::<Vec<String>>(raw.get()).is_ok(),
        key => PLAIN.contains(&key),
    })
}

/// Fields of the provider's own schemas that hold no schema.
const PLAIN: &[&str] = &[
    "title",
    "description",
    "nullable",
    "format",
    "required",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "example",
    "default",
    "propertyOrdering",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_sent_in_the_form_that_says_all_of_them() {
        for plain in [
            r#"{"properties":{"a":{"type":"string","enum":["x"]},"b":{"items":{"type":"number"},"type":"array"}},"required":["a"],"type":"object"}"#,
            r#"{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"type":"object"}"#,
        ] {
            assert!(is_plain(plain) && takes_input(plain), "{plain}");
        }
        for rich in [
            r#"{"additionalProperties":false,"properties":{"a":{"type":"string"}},"type":"object"}"#,
            r#"{"properties":{"a":{"type":["string","null"]}},"type":"object"}"#,
            r#"{"properties":{"a":{"const":1}},"type":"object"}"#,
            r#"{"properties":{"a":true},"type":"object"}"#,
            r#"{"properties":{"a":{"enum":[1]}},"type":"object"}"#,
            r##"{"properties":{"a":{"$ref":"#/$defs/x"}},"type":"object"}"##,
        ] {
            assert!(!is_plain(rich) && takes_input(rich), "{rich}");
        }
        for none in ["{}", r#"{"type":"object"}"#, r#"{"properties":{},"required":[],"type":"object"}"#] {
            assert!(!takes_input(none), "{none}");
        }
    }
}
