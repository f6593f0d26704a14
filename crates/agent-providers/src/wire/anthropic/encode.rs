//! The encoder of one session: what was encoded stays the same buffers for ever (requirement M5, cases C01 and C03).

use std::collections::BTreeMap;

use agent_core::{
    Body, CacheProfile, Diagnostic, Encoded, Encoder, EntryId, Mark, MarkPoint, ModelProfile, ModelRequest,
    Rendered, SystemBlock, ToolCard, Trim, Ttl,
};
use bytes::Bytes;

use super::segment::{Blocks, Renderer, Role, Run, Segment};
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
    segments: BTreeMap<Key, Remembered>,
    round: u64,
}

/// What a segment is remembered under; the history only grows, so equal keys are equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Entry(EntryId, Trim),
    Summary(EntryId),
    Continue,
}

#[derive(Debug)]
struct Remembered {
    segment: Segment,
    /// The last round that used it.
    used: u64,
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
            segments: BTreeMap::new(),
            round: 0,
        }
    }

    fn head(&mut self, request: &ModelRequest<'_>, marks: &mut Marks, body: &mut Body) {
        body.push(self.start.clone());
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
        self.system.push(body, marks, MarkPoint::System);
        self.tools.push(body, marks, MarkPoint::Tools);
        body.push(Bytes::from_static(br#","messages":["#));
    }

    fn messages(
        &mut self,
        request: &ModelRequest<'_>,
        marks: &mut Marks,
        body: &mut Body,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        self.round += 1;
        let mut last = None;
        let mut pieces = 0;
        for piece in request.draft.view().rendered() {
            pieces += 1;
            let (key, mark) = match piece {
                Rendered::Entry { id, trim, .. } => (Key::Entry(id, trim), marks.take(MarkPoint::Entry(id))),
                Rendered::Summary { id, .. } => (Key::Summary(id), marks.take(MarkPoint::Entry(id))),
                Rendered::Continue => (Key::Continue, None),
            };
            let (names, vision) = (&self.names, self.profile.vision);
            let remembered = self.segments.entry(key).or_insert_with(|| {
                let segment = Renderer { names, vision, diagnostics: &mut *diagnostics }.segment(piece);
                Remembered { segment, used: 0 }
            });
            remembered.used = self.round;
            let runs = &remembered.segment.runs;
            let marked = runs.iter().rposition(|run| run.splice.is_some());
            if mark.is_some() && marked.is_none() {
                diagnostics.push(note(
                    "marks",
                    "no block of the entry can carry a cache marker; the marker was dropped",
                ));
            }
            for (at, run) in runs.iter().enumerate() {
                last = Some(push_run(body, last, run, mark.filter(|_| Some(at) == marked)));
            }
        }
        self.forget(pieces);
        let last = self.ephemeral(request, last, body);
        if last == Some(Role::Assistant) {
            diagnostics.push(note(
                "messages",
                "the conversation ends with the model's own words; many models refuse that, end it with a user message",
            ));
        }
        body.push(Bytes::from_static(if last.is_some() { b"]}]" } else { b"]" }));
    }

    /// Words for this call only, after everything that stays.
    fn ephemeral(&self, request: &ModelRequest<'_>, last: Option<Role>, body: &mut Body) -> Option<Role> {
        let mut blocks = Blocks::default();
        request.draft.ephemeral().iter().for_each(|note| blocks.text(note.text.as_str()));
        if request.draft.ephemeral().is_empty() {
            return last;
        }
        Some(push_run(body, last, &blocks.run(Role::User), None))
    }

    /// Lets go of what a rewrite took out of sight, once it outweighs what is shown.
    fn forget(&mut self, shown: usize) {
        if self.segments.len() > 2 * shown + 16 {
            let round = self.round;
            self.segments.retain(|_, remembered| remembered.used == round);
        }
    }
}

impl Encoder for MessagesEncoder {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded {
        let mut diagnostics = Vec::new();
        let mut marks = Marks::of(request.marks, &self.profile.cache, &mut diagnostics);
        let mut body = Body::default();
        self.head(request, &mut marks, &mut body);
        self.messages(request, &mut marks, &mut body, &mut diagnostics);
        marks.report_unused(&mut diagnostics);
        body.push(Bytes::from(tail(request, &self.profile, &self.names, &mut diagnostics)));
        body.push(Bytes::from_static(if request.stream { b"true}" } else { b"false}" }));
        Encoded { body, diagnostics }
    }
}

impl<T: Clone + PartialEq> Frozen<T> {
    fn empty() -> Self {
        Self { of: Vec::new(), bytes: Bytes::new(), splice: None }
    }

    fn push(&self, body: &mut Body, marks: &mut Marks, at: MarkPoint) {
        if self.splice.is_some() {
            push_marked(body, &self.bytes, self.splice, marks.take(at));
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

/// The one place that counts cache markers (case C03).
#[derive(Debug)]
struct Marks(Vec<Mark>);

impl Marks {
    /// The marks that are sent: one a place, as many as the provider takes, the first ones given; markers of an
    /// hour must not stand behind those of five minutes.
    fn of(given: &[Mark], cache: &CacheProfile, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let most = match cache {
            CacheProfile::Marked { max_marks, .. } => usize::from(*max_marks).min(MOST_MARKS),
            CacheProfile::None | CacheProfile::Automatic | _ => 0,
        };
        let mut marks: Vec<Mark> = Vec::new();
        for mark in given {
            match marks.iter_mut().find(|known| known.at == mark.at) {
                Some(known) => known.ttl = known.ttl.max(mark.ttl),
                None => marks.push(*mark),
            }
        }
        if marks.len() > most {
            let dropped = marks.len() - most;
            diagnostics.push(note(
                "marks",
                &format!("{most} cache markers are taken; the last {dropped} were dropped"),
            ));
            marks.truncate(most);
        }
        marks.sort_by_key(|mark| place(mark.at));
        let mut short = false;
        for mark in &mut marks {
            if short && mark.ttl == Ttl::OneHour {
                mark.ttl = Ttl::FiveMinutes;
                diagnostics.push(note("marks", "an hour cannot follow five minutes; five minutes were sent"));
            }
            short |= mark.ttl == Ttl::FiveMinutes;
        }
        Self(marks)
    }

    fn take(&mut self, at: MarkPoint) -> Option<Ttl> {
        let found = self.0.iter().position(|mark| mark.at == at)?;
        Some(self.0.remove(found).ttl)
    }

    fn report_unused(self, diagnostics: &mut Vec<Diagnostic>) {
        for mark in self.0 {
            diagnostics
                .push(note("marks", &format!("nothing to mark at {:?}; the marker was dropped", mark.at)));
        }
    }
}

/// The provider reads tools, then system, then messages.
fn place(at: MarkPoint) -> (u8, Option<EntryId>) {
    match at {
        MarkPoint::Tools => (0, None),
        MarkPoint::System => (1, None),
        MarkPoint::Entry(id) => (2, Some(id)),
        _ => (3, None),
    }
}

/// Appends a run, opening a message where the role changes. The first message must be the user's.
fn push_run(body: &mut Body, last: Option<Role>, run: &Run, mark: Option<Ttl>) -> Role {
    let glue = match (last, run.role) {
        (None, Role::User) => USER_FIRST,
        (None, Role::Assistant) => {
            body.push(Bytes::from_static(USER_FIRST));
            body.push(Blocks::default().run(Role::User).bytes);
            ASSISTANT_NEXT
        }
        (Some(Role::User), Role::Assistant) => ASSISTANT_NEXT,
        (Some(Role::Assistant), Role::User) => USER_NEXT,
        (Some(Role::User), Role::User) | (Some(Role::Assistant), Role::Assistant) => b",",
    };
    body.push(Bytes::from_static(glue));
    push_marked(body, &run.bytes, run.splice, mark);
    run.role
}

/// Appends bytes whole, or as two slices of the same buffer around a marker.
fn push_marked(body: &mut Body, bytes: &Bytes, splice: Option<usize>, mark: Option<Ttl>) {
    let (Some(at), Some(ttl)) = (splice, mark) else { return body.push(bytes.clone()) };
    body.push(bytes.slice(..at));
    body.push(Bytes::from_static(match ttl {
        Ttl::OneHour => MARK_1H,
        Ttl::FiveMinutes | _ => MARK_5M,
    }));
    body.push(bytes.slice(at..));
}

fn note(what: &str, why: &str) -> Diagnostic {
    Diagnostic { what: what.to_owned(), why: why.to_owned() }
}

const MOST_MARKS: usize = 4;
const MARK_5M: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;
const MARK_1H: &[u8] = br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;
const USER_FIRST: &[u8] = br#"{"role":"user","content":["#;
const USER_NEXT: &[u8] = br#"]},{"role":"user","content":["#;
const ASSISTANT_NEXT: &[u8] = br#"]},{"role":"assistant","content":["#;
