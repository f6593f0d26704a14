//! Tools as the wire wants them: declarations of functions, and what the provider runs itself.

use agent_core::ToolCard;

use crate::wire::form::{Cx, Head};
use crate::wire::json::{Fields, quoted, replaced, sound};
use crate::wire::schema::{Rules, sendable};

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
            None => functions.extend(function(card, cx)),
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
    let data = card.data().filter(|data| data.provider == cx.profile.provider);
    let fields = data.and_then(|data| Fields::read(data.json.get())).unwrap_or_default().0;
    let fields: Vec<_> =
        fields.into_iter().map(|(key, raw)| (key.into_owned(), sound(raw.get()).into_owned())).collect();
    Some(if fields.is_empty() { entry } else { replaced(&entry, &fields) })
}

/// The schema of a tool without input.
const EMPTY: &str = r#"{"properties":{},"type":"object"}"#;
