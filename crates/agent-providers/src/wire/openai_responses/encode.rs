//! How requests of the Responses format are written: the order of their parts and what stands between them.

use agent_core::{ModelProfile, ModelRequest, Note, Rendered, SystemBlock, ToolCard, Ttl};

use super::content::input_item;
use super::segment::{Renderer, Role, system_role};
use super::settings::tail;
use super::tools;
use crate::wire::form::{Cx, Form, Head, Run};
use crate::wire::json::write;
use crate::wire::marks::BREAKPOINT;
use crate::wire::schema::Rules;
use crate::wire::tail::Tail;

/// `{"model","tools","input":[system, …],…,"stream"}`; the system prompt is the first item of the input.
#[derive(Debug)]
pub(crate) struct ResponsesForm;

impl Form for ResponsesForm {
    type Role = Role;
    const LIST: &'static [u8] = br#""input":["#;
    const SYSTEM_IN_LIST: bool = true;
    const RULES: Rules = Rules::OpenAi;
    const MODEL_MAY_NOT_END: bool = false;

    fn start(&self, profile: &ModelProfile) -> Vec<u8> {
        let mut start = br#"{"model":"#.to_vec();
        write(&mut start, &profile.model);
        start.push(b',');
        start
    }

    fn system(&self, blocks: &[SystemBlock], cx: &mut Cx<'_>) -> Head {
        let texts = blocks.iter().map(SystemBlock::text);
        let (bytes, splices) = input_item(system_role(cx.profile), texts);
        Head { bytes, splices }
    }

    fn tools(&self, cards: &[ToolCard], cx: &mut Cx<'_>) -> Head {
        Head { bytes: tools::list(cards, cx), splices: Vec::new() }
    }

    fn runs(&self, piece: Rendered<'_>, cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        Renderer { cx }.runs(piece)
    }

    fn reminders(&self, notes: &[Note], cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        Renderer { cx }.note(notes.iter().map(|note| note.text.as_str()))
    }

    fn glue(last: Option<Role>, next: Option<Role>) -> &'static [u8] {
        match (last, next) {
            (None, Some(_)) => b"",
            (Some(_), Some(_)) => b",",
            (_, None) => b"]",
        }
    }

    fn is_model(role: Role) -> bool {
        role == Role::Model
    }

    fn marker(&self, _ttl: Ttl) -> &'static [u8] {
        BREAKPOINT
    }

    fn tail(&self, request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
        tail(request, cx)
    }

    fn end(&self, stream: bool) -> &'static [u8] {
        if stream { br#","stream":true}"# } else { br#","stream":false}"# }
    }
}
