//! How Gemini's requests are written: the order of their parts and what stands between them.

use agent_core::{ModelProfile, ModelRequest, Note, Rendered, SystemBlock, ToolCard, Ttl};

use super::segment::{Parts, Renderer, Role};
use super::settings::tail;
use super::tools::tools;
use crate::wire::form::{Cx, Form, Head, Run};
use crate::wire::json::quoted;
use crate::wire::schema::Rules;
use crate::wire::tail::Tail;

/// `{"systemInstruction","tools","contents","toolConfig","generationConfig",…}`; parts of one role are joined into one
/// content. The model and the way of the answer are in the address.
#[derive(Debug)]
pub(crate) struct GenerateForm;

impl Form for GenerateForm {
    type Role = Role;
    const LIST: &'static [u8] = br#""contents":["#;
    const SYSTEM_IN_LIST: bool = false;
    const RULES: Rules = Rules::Gemini;
    const MODEL_MAY_NOT_END: bool = true;

    fn start(&self, _: &ModelProfile) -> Vec<u8> {
        b"{".to_vec()
    }

    fn system(&self, blocks: &[SystemBlock], _cx: &mut Cx<'_>) -> Head {
        let parts: Vec<String> =
            blocks.iter().map(|block| format!("{{\"text\":{}}}", quoted(block.text()))).collect();
        let bytes = format!("\"systemInstruction\":{{\"parts\":[{}]}},", parts.join(",")).into_bytes();
        Head { bytes, splices: Vec::new() }
    }

    fn tools(&self, cards: &[ToolCard], cx: &mut Cx<'_>) -> Head {
        tools(cards, cx)
    }

    fn runs(&self, piece: Rendered<'_>, cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        Renderer { cx }.runs(piece)
    }

    fn reminders(&self, notes: &[Note], _cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        let mut parts = Parts::default();
        notes.iter().for_each(|note| parts.text(note.text.as_str()));
        vec![parts.run(Role::User)]
    }

    /// A content opens where the role changes. A call must follow what the user said, so the user comes first.
    fn glue(last: Option<Role>, next: Option<Role>) -> &'static [u8] {
        match (last, next) {
            (None, Some(Role::User)) => br#"{"role":"user","parts":["#,
            (None, Some(Role::Model)) => {
                br#"{"role":"user","parts":[{"text":"(no content)"}]},{"role":"model","parts":["#
            }
            (Some(Role::User), Some(Role::Model)) => br#"]},{"role":"model","parts":["#,
            (Some(Role::Model), Some(Role::User)) => br#"]},{"role":"user","parts":["#,
            (Some(Role::User), Some(Role::User)) | (Some(Role::Model), Some(Role::Model)) => b",",
            (Some(_), None) => b"]}]",
            (None, None) => b"]",
        }
    }

    fn is_model(role: Role) -> bool {
        role == Role::Model
    }

    /// No block takes a marker: the provider caches by itself, or what was stored under a name (`cachedContent`).
    fn marker(&self, _: Ttl) -> &'static [u8] {
        b""
    }

    fn tail(&self, request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
        tail(request, cx)
    }

    fn end(&self, _stream: bool) -> &'static [u8] {
        b"}"
    }
}
