//! How requests of Chat Completions are written: the order of their parts and what stands between them.

use std::borrow::Cow;

use agent_core::{
    CacheProfile, Encoder, ModelProfile, ModelRequest, Note, Rendered, SystemBlock, ToolCard, Ttl,
};

use super::ids::Ids;
use super::quirks::{CacheMarker, Quirks, SystemRole};
use super::segment::{Content, Renderer, Role};
use super::settings;
use crate::names::ToolNames;
use crate::wire::encoder::SessionEncoder;
use crate::wire::form::{Cx, Form, Head, Run};
use crate::wire::json::{Fields, quoted, replaced, write};
use crate::wire::marks::{BREAKPOINT, cache_control};
use crate::wire::schema::{Rules, sendable};
use crate::wire::tail::Tail;

/// `{"model","tools","messages","max_tokens",…,"stream"}`.
#[derive(Debug)]
pub(crate) struct ChatForm {
    quirks: Quirks,
    ids: Ids,
}

/// An encoder for one session with a provider.
pub(crate) fn encoder(quirks: &Quirks, profile: ModelProfile, names: ToolNames) -> Box<dyn Encoder> {
    let mut quirks = quirks.clone();
    let is_marked = matches!(profile.cache, CacheProfile::Marked { .. });
    if !is_marked && quirks.cache_marker == CacheMarker::PromptCacheBreakpoint {
        // Models that know no breakpoints refuse a request with one, and get their words as plain strings.
        quirks.cache_marker = CacheMarker::None;
    }
    let ids = Ids::new(quirks.call_ids);
    Box::new(SessionEncoder::new(ChatForm { quirks, ids }, profile, names))
}

impl ChatForm {
    fn renderer<'r, 'e>(&'r self, cx: &'r mut Cx<'e>) -> Renderer<'r, 'e> {
        Renderer { quirks: &self.quirks, ids: &self.ids, cx }
    }
}

impl Form for ChatForm {
    type Role = Role;
    const LIST: &'static [u8] = br#""messages":["#;
    const SYSTEM_IN_LIST: bool = true;
    const RULES: Rules = Rules::OpenAi;
    const MODEL_MAY_NOT_END: bool = true;

    fn start(&self, profile: &ModelProfile) -> Vec<u8> {
        let mut start = br#"{"model":"#.to_vec();
        write(&mut start, &profile.model);
        start.push(b',');
        start
    }

    fn system(&self, blocks: &[SystemBlock], _cx: &mut Cx<'_>) -> Head {
        let role = match self.quirks.system {
            SystemRole::System => "system",
            SystemRole::Developer => "developer",
        };
        let mut content = Content::default();
        blocks.iter().for_each(|block| content.text(block.text()));
        let mut bytes = format!(r#"{{"role":"{role}","content":"#).into_bytes();
        let splices = content.write(&mut bytes, &self.quirks);
        bytes.push(b'}');
        Head { bytes, splices }
    }

    fn tools(&self, tools: &[ToolCard], cx: &mut Cx<'_>) -> Head {
        let entries: Vec<String> = tools.iter().filter_map(|tool| entry(tool, &self.quirks, cx)).collect();
        if entries.is_empty() {
            return Head::default();
        }
        Head { bytes: format!(r#""tools":[{}],"#, entries.join(",")).into_bytes(), splices: Vec::new() }
    }

    fn runs(&self, piece: Rendered<'_>, cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        self.renderer(cx).runs(piece)
    }

    fn reminders(&self, notes: &[Note], cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        vec![self.renderer(cx).words(notes.iter().map(|note| note.text.as_str()))]
    }

    fn glue(last: Option<Role>, next: Option<Role>) -> &'static [u8] {
        use Role::{AssistantAlone, UserParts};
        match (last, next) {
            (Some(AssistantAlone), Some(AssistantAlone)) => br#",{"role":"user","content":"(no content)"},"#,
            (Some(UserParts), Some(UserParts)) => b",",
            (Some(UserParts), Some(_)) => b"]},",
            (Some(UserParts), None) => b"]}]",
            (None, Some(UserParts)) => br#"{"role":"user","content":["#,
            (Some(_), Some(UserParts)) => br#",{"role":"user","content":["#,
            (None, Some(_)) => b"",
            (Some(_), Some(_)) => b",",
            (Some(_) | None, None) => b"]",
        }
    }

    fn is_model(role: Role) -> bool {
        matches!(role, Role::Assistant | Role::AssistantAlone)
    }

    fn marker(&self, ttl: Ttl) -> &'static [u8] {
        match (self.quirks.cache_marker, ttl) {
            (CacheMarker::None, _) => b"",
            (CacheMarker::PromptCacheBreakpoint, _) => BREAKPOINT,
            (CacheMarker::CacheControl, ttl) => cache_control(ttl),
        }
    }

    fn tail(&self, request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
        settings::tail(request, &self.quirks, cx)
    }

    fn end(&self, stream: bool) -> &'static [u8] {
        match (stream, self.quirks.stream_usage) {
            (true, true) => br#","stream":true,"stream_options":{"include_usage":true}}"#,
            (true, false) => br#","stream":true}"#,
            (false, _) => br#","stream":false}"#,
        }
    }
}

/// A tool's entry in the list; `None` for one that this provider cannot be told of.
fn entry(tool: &ToolCard, quirks: &Quirks, cx: &mut Cx<'_>) -> Option<String> {
    if tool.is_hosted() {
        return cx.hosted(tool).map(Cow::into_owned);
    }
    let schema = sendable(tool, Rules::OpenAi, cx)?;
    let mut function = format!(r#"{{"name":{}"#, quoted(&cx.names.wire(tool.name())));
    if !tool.description().is_empty() {
        function.push_str(&format!(r#","description":{}"#, quoted(tool.description())));
    }
    function.push_str(&format!(r#","parameters":{schema}}}"#));
    let (inner, outer) = fields(tool, quirks, cx);
    let function = replaced(&function, &inner);
    Some(replaced(&format!(r#"{{"type":"function","function":{function}}}"#), &outer))
}

/// What the provider is told besides, inside the function and beside it.
fn fields(tool: &ToolCard, quirks: &Quirks, cx: &mut Cx<'_>) -> (Named, Named) {
    let (functions, outer): (Named, Named) =
        cx.own_fields(tool).into_iter().partition(|(key, _)| key == "function");
    let mut inner: Named = functions.iter().flat_map(|(_, raw)| named(raw)).collect();
    if !quirks.strict_tools && inner.iter().any(|(key, _)| key == "strict") {
        inner.retain(|(key, _)| key != "strict");
        let why = format!("strict is not taken by this provider; left out of {:?}", tool.name());
        cx.note("tools", why);
    }
    (inner, outer)
}

fn named(object: &str) -> Named {
    let fields = Fields::read(object).unwrap_or_default().0.into_iter();
    fields.map(|(key, raw)| (key.into_owned(), raw.get().to_owned())).collect()
}

type Named = Vec<(String, String)>;
