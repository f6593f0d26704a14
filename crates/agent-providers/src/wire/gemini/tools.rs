//! Tools as the wire wants them: declarations of functions, and what the provider runs itself.

use std::borrow::Cow;

use agent_core::ToolCard;

use crate::wire::form::{Cx, Head};
use crate::wire::json::{quoted, replaced};
use crate::wire::schema::{Rules, sendable};

/// `"tools":[{"functionDeclarations":[…]},{"googleSearch":{}}],`; nothing when no tool can be sent.
pub(super) fn tools(tools: &[ToolCard], cx: &mut Cx<'_>) -> Head {
    let mut functions = Vec::new();
    let mut hosted = Vec::new();
    for card in tools {
        match card.is_hosted() {
            true => hosted.extend(cx.hosted(card).map(Cow::into_owned)),
            false => functions.extend(function(card, cx)),
        }
    }
    if !functions.is_empty() {
        hosted.insert(0, format!("{{\"functionDeclarations\":[{}]}}", functions.join(",")));
    }
    if hosted.is_empty() {
        return Head::default();
    }
    Head { bytes: format!("\"tools\":[{}],", hosted.join(",")).into_bytes(), splices: Vec::new() }
}

fn function(card: &ToolCard, cx: &mut Cx<'_>) -> Option<String> {
    let schema = sendable(card, Rules::Gemini, cx)?;
    // The wire wants a description.
    let (name, description) = (quoted(&cx.names.wire(card.name())), quoted(card.description()));
    let mut entry = format!("{{\"name\":{name},\"description\":{description}");
    // An object without properties is refused by some versions of the interface, and none at all by no one.
    if schema != EMPTY {
        entry.push_str(&format!(",\"parameters\":{schema}"));
    }
    entry.push('}');
    let fields = cx.own_fields(card);
    Some(if fields.is_empty() { entry } else { replaced(&entry, &fields) })
}

/// The schema of a tool without input.
const EMPTY: &str = r#"{"properties":{},"type":"object"}"#;
