//! How Ollama's requests are written: the order of their parts and what stands between them.

use agent_core::{ModelProfile, ModelRequest, Note, Rendered, SystemBlock, ToolCard, Ttl};

use super::segment::{Renderer, Role, plain};
use super::settings::tail;
use crate::wire::form::{Cx, Form, Head, Run};
use crate::wire::json::{quoted, replaced};
use crate::wire::schema::{Rules, sendable};
use crate::wire::tail::Tail;

/// `{"model","tools","messages","think","options",…,"stream"}`; the system prompt is the first message.
#[derive(Debug)]
pub(crate) struct ChatForm;

impl Form for ChatForm {
    type Role = Role;
    const LIST: &'static [u8] = br#""messages":["#;
    const SYSTEM_IN_LIST: bool = true;
    const RULES: Rules = Rules::Ollama;
    const MODEL_MAY_NOT_END: bool = false;

    fn start(&self, profile: &ModelProfile) -> Vec<u8> {
        format!("{{\"model\":{},", quoted(&profile.model)).into_bytes()
    }

    /// One message: many templates show the first one only.
    fn system(&self, blocks: &[SystemBlock], _cx: &mut Cx<'_>) -> Head {
        let words: Vec<&str> = blocks.iter().map(SystemBlock::text).collect();
        let json = format!("{{\"role\":\"system\",\"content\":{}}}", quoted(&words.join("\n\n")));
        Head { bytes: json.into_bytes(), splices: Vec::new() }
    }

    fn tools(&self, cards: &[ToolCard], cx: &mut Cx<'_>) -> Head {
        let mut tools = Vec::new();
        for card in cards {
            if card.is_hosted() {
                let why =
                    format!("{:?} is run by a provider, and this one runs no tools; left out", card.name());
                cx.note("tools", why);
            } else {
                tools.extend(tool(card, cx));
            }
        }
        if tools.is_empty() {
            return Head::default();
        }
        Head { bytes: format!("\"tools\":[{}],", tools.join(",")).into_bytes(), splices: Vec::new() }
    }

    fn runs(&self, piece: Rendered<'_>, cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        Renderer { cx }.runs(piece)
    }

    fn reminders(&self, notes: &[Note], _cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        notes.iter().map(|note| plain(Role::User, note.text.as_str())).collect()
    }

    /// Every run is a message of its own: the server joins those of one role itself.
    fn glue(last: Option<Role>, next: Option<Role>) -> &'static [u8] {
        match (last, next) {
            (None, Some(_)) => b"",
            (Some(_), Some(_)) => b",",
            (Some(_) | None, None) => b"]",
        }
    }

    fn is_model(role: Role) -> bool {
        role == Role::Assistant
    }

    /// Nothing is marked: the server keeps the last prompt by itself.
    fn marker(&self, _: Ttl) -> &'static [u8] {
        b""
    }

    fn tail(&self, request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
        tail(request, cx)
    }

    /// Unasked, the server streams.
    fn end(&self, stream: bool) -> &'static [u8] {
        if stream { br#","stream":true}"# } else { br#","stream":false}"# }
    }
}

fn tool(card: &ToolCard, cx: &mut Cx<'_>) -> Option<String> {
    let schema = sendable(card, Rules::Ollama, cx)?;
    let function = format!(
        "{{\"name\":{},\"description\":{},\"parameters\":{schema}}}",
        quoted(&cx.names.wire(card.name())),
        quoted(card.description()),
    );
    let entry = format!("{{\"type\":\"function\",\"function\":{function}}}");
    let fields = cx.own_fields(card);
    Some(if fields.is_empty() { entry } else { replaced(&entry, &fields) })
}
