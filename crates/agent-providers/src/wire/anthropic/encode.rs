//! How Anthropic's requests are written: the order of their parts and what stands between them.

use agent_core::{ModelProfile, ModelRequest, Note, Rendered, SystemBlock, ToolCard, Ttl};

use super::segment::{Blocks, Renderer, Role};
use super::settings::tail;
use crate::wire::form::{Cx, Form, Head, Run};
use crate::wire::json::write;
use crate::wire::tail::Tail;

/// `{"model","system","tools","messages","max_tokens",…,"stream"}`; blocks of one role are joined into one message.
#[derive(Debug)]
pub(crate) struct MessagesForm;

impl Form for MessagesForm {
    type Role = Role;
    const LIST: &'static [u8] = br#""messages":["#;
    const SYSTEM_IN_LIST: bool = false;
    const MODEL_MAY_NOT_END: bool = true;

    fn start(&self, profile: &ModelProfile) -> Vec<u8> {
        let mut start = br#"{"model":"#.to_vec();
        write(&mut start, &profile.model);
        start.push(b',');
        start
    }

    fn system(&self, blocks: &[SystemBlock], _cx: &mut Cx<'_>) -> Head {
        list(br#""system":["#, blocks, |out, block| {
            out.extend_from_slice(br#"{"type":"text","text":"#);
            write(out, block.text());
        })
    }

    fn tools(&self, tools: &[ToolCard], cx: &mut Cx<'_>) -> Head {
        super::tools::tools(tools, cx)
    }

    fn runs(&self, piece: Rendered<'_>, cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        Renderer { cx }.runs(piece)
    }

    fn reminders(&self, notes: &[Note], _cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        let mut blocks = Blocks::default();
        notes.iter().for_each(|note| blocks.text(note.text.as_str()));
        vec![blocks.run(Role::User)]
    }

    /// A message opens where the role changes. The first message must be the user's.
    fn glue(last: Option<Role>, next: Option<Role>) -> &'static [u8] {
        match (last, next) {
            (None, Some(Role::User)) => br#"{"role":"user","content":["#,
            (None, Some(Role::Assistant)) => {
                br#"{"role":"user","content":[{"type":"text","text":"(no content)"}]},{"role":"assistant","content":["#
            }
            (Some(Role::User), Some(Role::Assistant)) => br#"]},{"role":"assistant","content":["#,
            (Some(Role::Assistant), Some(Role::User)) => br#"]},{"role":"user","content":["#,
            (Some(Role::User), Some(Role::User)) | (Some(Role::Assistant), Some(Role::Assistant)) => b",",
            (Some(_), None) => b"]}]",
            (None, None) => b"]",
        }
    }

    fn is_model(role: Role) -> bool {
        role == Role::Assistant
    }

    fn marker(ttl: Ttl) -> &'static [u8] {
        match ttl {
            Ttl::OneHour => br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
            Ttl::FiveMinutes | _ => br#","cache_control":{"type":"ephemeral"}"#,
        }
    }

    fn tail(&self, request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
        tail(request, cx)
    }

    fn end(&self, stream: bool) -> &'static [u8] {
        if stream { br#","stream":true}"# } else { br#","stream":false}"# }
    }
}

/// A list of objects as a field; `write` writes one without its closing brace. The last one may carry a marker.
fn list<T>(open: &[u8], items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) -> Head {
    let mut bytes = open.to_vec();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            bytes.push(b',');
        }
        write(&mut bytes, item);
        bytes.push(b'}');
    }
    let splice = bytes.len() - 1;
    bytes.extend_from_slice(b"],");
    Head { bytes, splice: Some(splice) }
}
