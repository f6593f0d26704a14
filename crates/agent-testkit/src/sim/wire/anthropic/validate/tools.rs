//! Rules about the tool list.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Check, items, refuse};

pub(super) fn check(tools: &Value) -> Check {
    let mut names = BTreeSet::new();
    for (number, tool) in items(tools).enumerate() {
        let Some(name) = tool["name"].as_str() else {
            return refuse(format!("tools.{number}.custom.name: Field required"));
        };
        if !well_formed(name) {
            return refuse(format!(
                "tools.{number}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if !names.insert(name) {
            return refuse("tools: Tool names must be unique.");
        }
        if is_custom(tool) {
            schema(number, &tool["input_schema"])?;
        }
    }
    if !names.is_empty() && items(tools).all(|tool| tool["defer_loading"] == true) {
        return refuse("All tools have defer_loading set. At least one tool must be non-deferred.");
    }
    Ok(())
}

/// What was found must be there to be shown.
pub(super) fn references(request: &Value) -> Check {
    let mut open: Vec<&Value> =
        items(&request["messages"]).flat_map(|message| items(&message["content"])).collect();
    while let Some(block) = open.pop() {
        let name = &block["tool_name"];
        let is_missing = || !items(&request["tools"]).any(|tool| tool["name"] == *name);
        if block["type"] == "tool_reference" && is_missing() {
            let name = name.as_str().unwrap_or_default();
            return refuse(format!("Tool reference '{name}' has no corresponding tool definition"));
        }
        open.extend(items(&block["content"]));
    }
    Ok(())
}

/// Tools of the provider have a dated type and no schema.
fn is_custom(tool: &Value) -> bool {
    tool["type"].is_null() || tool["type"] == "custom"
}

fn schema(number: usize, schema: &Value) -> Check {
    if schema.is_null() {
        return refuse(format!("tools.{number}.custom.input_schema: Field required"));
    }
    if ["oneOf", "allOf", "anyOf"].iter().any(|union| !schema[union].is_null()) {
        return refuse(format!(
            "tools.{number}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
        ));
    }
    if schema["type"].is_null() {
        return refuse(format!("tools.{number}.custom.input_schema.type: Field required"));
    }
    if schema["type"] != "object" {
        return refuse(format!("tools.{number}.custom.input_schema.type: Input should be 'object'"));
    }
    Ok(())
}

fn well_formed(name: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=128).contains(&name.len()) && name.chars().all(good)
}
