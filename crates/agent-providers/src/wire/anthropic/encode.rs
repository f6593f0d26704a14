//! The encoder of one session: what was encoded stays the same buffers for ever (requirement M5, cases C01 and C03).

use agent_core::{
    Body, Diagnostic, Encoded, Encoder, MarkPoint, ModelProfile, ModelRequest, Rendered, SystemBlock,
    ToolCard, Ttl,
};
use bytes::Bytes;

use super::joined::{Joined, push_run};
use super::marks::{Marks, Spot, Unmarkable, marker};
use super::segment::{Blocks, Renderer, Role};
use super::settings::tail;
use crate::names::ToolNames;
use crate::wire::json::write;

/// Encodes the requests of one session.
///
/// A body is `{"model","system","tools","messages","max_tokens",…,"stream"}` in this order: what stays comes first,
/// so that the body of one step is the beginning of the next one's, and no byte but the last depends on streaming.
///
/// ```
/// use agent_core::{Encoder, Entry, History, ModelRequest, RequestSettings, ToolChoice, UserMessage};
/// use agent_providers::anthropic::{MessagesEncoder, profiles::profile};
///
/// let mut history = History::new();
/// history.push(Entry::User(UserMessage::text("hi")?))?;
/// let mut encoder = MessagesEncoder::new(profile("claude-haiku-4-5"));
/// let encoded = encoder.encode(&ModelRequest {
///     system: &[],
///     tools: &[],
///     draft: &history.draft(),
///     settings: &RequestSettings { max_output: Some(99), ..Default::default() },
///     tool_choice: &ToolChoice::Auto,
///     marks: &[],
///     stream: true,
/// });
/// assert_eq!(
///     String::from_utf8(encoded.body.to_vec())?,
///     concat!(
///         r#"{"model":"claude-haiku-4-5","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"#,
///         r#""max_tokens":99,"stream":true}"#
///     )
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MessagesEncoder {
    profile: ModelProfile,
    names: ToolNames,
    start: Bytes,
    system: Frozen<SystemBlock>,
    tools: Frozen<ToolCard>,
    messages: Joined,
}

/// A list at the head of the request, encoded again only when it changed.
#[derive(Debug)]
struct Frozen<T> {
    of: Vec<T>,
    bytes: Bytes,
    splice: Option<usize>,
}

impl MessagesEncoder {
    /// An encoder for a model, with names of its own.
    pub fn new(profile: ModelProfile) -> Self {
        Self::with_names(profile, ToolNames::default())
    }

    /// An encoder that shares the names it gives out with a decoder.
    pub fn with_names(profile: ModelProfile, names: ToolNames) -> Self {
        let mut start = br#"{"model":"#.to_vec();
        write(&mut start, &profile.model);
        Self {
            profile,
            names,
            start: Bytes::from(start),
            system: Frozen::empty(),
            tools: Frozen::empty(),
            messages: Joined::default(),
        }
    }

    /// Encodes what is new; everything else is remembered.
    fn refresh(&mut self, request: &ModelRequest<'_>, diagnostics: &mut Vec<Diagnostic>) {
        self.system.refresh(request.system, br#","system":["#, |out, block| {
            out.extend_from_slice(br#"{"type":"text","text":"#);
            write(out, block.text());
        });
        let names = &self.names;
        self.tools.refresh(request.tools, br#","tools":["#, |out, tool| {
            out.extend_from_slice(br#"{"name":"#);
            write(out, names.wire(tool.name()).as_ref());
            if !tool.description().is_empty() {
                out.extend_from_slice(br#","description":"#);
                write(out, tool.description());
            }
            out.extend_from_slice(br#","input_schema":"#);
            out.extend_from_slice(tool.input_schema().get().as_bytes());
        });
        let mut renderer = Renderer { names, vision: self.profile.vision, diagnostics };
        self.messages.follow(request.draft.view(), &mut renderer);
    }

    fn spot(&self, at: MarkPoint) -> Result<Spot, Unmarkable> {
        match at {
            MarkPoint::Tools if self.tools.splice.is_some() => Ok(Spot::Tools),
            MarkPoint::System if self.system.splice.is_some() => Ok(Spot::System),
            MarkPoint::Entry(entry) => self.messages.splice(entry).map(Spot::Messages),
            MarkPoint::Tools | MarkPoint::System | _ => Err(Unmarkable::Nothing),
        }
    }

    /// Words for this call only, after everything that stays; gives who speaks last.
    fn ephemeral(
        &self,
        request: &ModelRequest<'_>,
        body: &mut Body,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Role> {
        let mut last = self.messages.last();
        if self.messages.must_continue() {
            let mut renderer = Renderer { names: &self.names, vision: self.profile.vision, diagnostics };
            let segment = renderer.segment(Rendered::Continue);
            last = segment.runs.into_iter().fold(last, |last, run| push_run(body, last, run));
        }
        let notes = request.draft.ephemeral();
        if notes.is_empty() {
            return last;
        }
        let mut blocks = Blocks::default();
        notes.iter().for_each(|note| blocks.text(note.text.as_str()));
        push_run(body, last, blocks.run(Role::User))
    }
}

impl Encoder for MessagesEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded {
        let mut diagnostics = Vec::new();
        self.refresh(request, &mut diagnostics);
        let marks = Marks::of(request.marks, &self.profile.cache, |at| self.spot(at), &mut diagnostics);
        let mut body = Body::default();
        body.push(self.start.clone());
        self.system.push(&mut body, marks.at(Spot::System));
        self.tools.push(&mut body, marks.at(Spot::Tools));
        body.push(Bytes::from_static(br#","messages":["#));
        self.messages.push(&mut body, &marks.in_messages());
        let last = self.ephemeral(request, &mut body, &mut diagnostics);
        if last == Some(Role::Assistant) {
            diagnostics.push(Diagnostic { what: "messages".into(), why: ENDS_WITH_MODEL.into() });
        }
        body.push(Bytes::from_static(if last.is_some() { b"]}]" } else { b"]" }));
        body.push(Bytes::from(tail(request, &self.profile, &self.names, &mut diagnostics)));
        body.push(Bytes::from_static(if request.stream { b"true}" } else { b"false}" }));
        Encoded { body, diagnostics }
    }
}

impl<T: Clone + PartialEq> Frozen<T> {
    fn empty() -> Self {
        Self { of: Vec::new(), bytes: Bytes::new(), splice: None }
    }

    /// Appends the list whole, or as two slices of its buffer around a marker.
    fn push(&self, body: &mut Body, mark: Option<Ttl>) {
        match (self.splice, mark) {
            (Some(at), Some(ttl)) => {
                body.push(self.bytes.slice(..at));
                body.push(marker(ttl));
                body.push(self.bytes.slice(at..));
            }
            (Some(_), None) => body.push(self.bytes.clone()),
            (None, _) => {}
        }
    }

    /// `write` writes an object without its closing brace.
    fn refresh(&mut self, given: &[T], open: &[u8], write: impl Fn(&mut Vec<u8>, &T)) {
        if self.of == given {
            return;
        }
        let mut out = open.to_vec();
        for (at, item) in given.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write(&mut out, item);
            out.push(b'}');
        }
        out.push(b']');
        let splice = out.len() - 2;
        let shown = !given.is_empty();
        *self = Self {
            of: given.to_vec(),
            bytes: if shown { Bytes::from(out) } else { Bytes::new() },
            splice: shown.then_some(splice),
        };
    }
}

const ENDS_WITH_MODEL: &str =
    "the conversation ends with the model's own words; many models refuse that, end it with a user message";
