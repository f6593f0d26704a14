//! The list of tools: what the card says, what it tells this provider besides, and tools the provider runs itself.

use agent_core::ToolCard;
use serde_json::value::RawValue;

use crate::wire::form::{Cx, Head};
use crate::wire::json::{Fields, quoted};
use crate::wire::schema::{Rules, sendable};

/// `"tools":[…],`; nothing when no tool can be sent.
pub(super) fn tools(tools: &[ToolCard], cx: &mut Cx<'_>) -> Head {
    let mut bytes = br#""tools":["#.to_vec();
    let (start, mut splice) = (bytes.len(), None);
    for tool in tools {
        let Some(fields) = entry(tool, cx) else { continue };
        if bytes.len() > start {
            bytes.push(b',');
        }
        bytes.extend_from_slice(format!("{{{}}}", fields.join(",")).as_bytes());
        // A deferred tool is no part of the prefix, and a marker on it is refused.
        if !fields.iter().any(|field| field == DEFERRED) {
            splice = Some(bytes.len() - 1);
        }
    }
    if bytes.len() == start {
        return Head::default();
    }
    bytes.extend_from_slice(b"],");
    Head { bytes, splices: splice.into_iter().collect() }
}

/// The fields of an entry; `None` for a tool that this provider cannot be told of.
fn entry(tool: &ToolCard, cx: &mut Cx<'_>) -> Option<Vec<String>> {
    if tool.is_hosted() {
        let entry = cx.hosted(tool)?;
        let given = Fields::read(&entry).unwrap_or_default().0;
        return Some(
            given.iter().filter(|(key, _)| key != MARKER).map(|(key, raw)| field(key, raw)).collect(),
        );
    }
    let schema = sendable(tool, Rules::Anthropic, cx)?;
    let mut fields = vec![format!(r#""name":{}"#, quoted(&cx.names.wire(tool.name())))];
    if !tool.description().is_empty() {
        fields.push(format!(r#""description":{}"#, quoted(tool.description())));
    }
    fields.push(format!(r#""input_schema":{schema}"#));
    let mut more = cx.own_fields(tool);
    let is_deferred = tool.is_deferred() && cx.profile.deferred_tools;
    more.retain(|(key, _)| !(OWN.contains(&key.as_str()) || is_deferred && key == "defer_loading"));
    fields.extend(more.into_iter().map(|(key, raw)| format!("{}:{raw}", quoted(&key))));
    if is_deferred {
        fields.push(DEFERRED.to_owned());
    }
    Some(fields)
}

fn field(key: &str, raw: &RawValue) -> String {
    format!("{}:{}", quoted(key), raw.get())
}

/// The provider shows the tool to the model only where a reference to it stands.
const DEFERRED: &str = r#""defer_loading":true"#;
/// Where a marker stands is decided with the request.
const MARKER: &str = "cache_control";
/// Fields that the card itself has.
pub(super) const OWN: [&str; 4] = ["name", "description", "input_schema", MARKER];
