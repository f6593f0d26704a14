//! What a format decides about its requests: how each part is written, and what stands between two of them.

use std::fmt;

use agent_core::{
    Diagnostic, ModelProfile, ModelRequest, Note, Rendered, StepRecord, SystemBlock, ToolCard, Ttl,
};
use bytes::Bytes;

use super::schema::Rules;
use super::tail::Tail;
use crate::names::ToolNames;

/// One format's way to write requests. [`super::encoder::SessionEncoder`] puts the parts in order and remembers them.
///
/// A body is `start, system, tools, list of messages, tail, end`: what stays comes first, so that the body of one
/// step is the beginning of the next one's. Heads end with a comma, fields of the tail begin with one.
pub(crate) trait Form: fmt::Debug + Send + Sync + 'static {
    /// Who speaks in an item of the list.
    type Role: Copy + PartialEq + fmt::Debug + Send + Sync;

    /// Opens the list of messages, for example `"messages":[`.
    const LIST: &'static [u8];

    /// Whether the system prompt is the first item of the list, and no field of its own.
    const SYSTEM_IN_LIST: bool;

    /// What it takes of the schemas of tools.
    const RULES: Rules;

    /// The beginning of the body, for example `{"model":"m",`.
    fn start(&self, profile: &ModelProfile) -> Vec<u8>;

    /// The system prompt: a field with its comma, or the first items of the list without. Never asked for none.
    fn system(&self, blocks: &[SystemBlock], cx: &mut Cx<'_>) -> Head;

    /// The tools as a field with its comma. Never asked for none.
    fn tools(&self, tools: &[ToolCard], cx: &mut Cx<'_>) -> Head;

    /// One piece of the conversation. What is written depends on nothing else, since it is asked once and remembered;
    /// which headers the piece needs may be noted.
    fn runs(&self, piece: Rendered<'_>, cx: &mut Cx<'_>) -> Vec<Run<Self::Role>>;

    /// Words for one call only, which stand last. Never asked for none.
    fn reminders(&self, notes: &[Note], cx: &mut Cx<'_>) -> Vec<Run<Self::Role>>;

    /// What stands between two runs; before the first one, `last` is `None`; behind the last one, `next` is.
    fn glue(last: Option<Self::Role>, next: Option<Self::Role>) -> &'static [u8];

    /// Whether what stands in this role takes its final one only once it is known what follows.
    fn is_open(_role: Self::Role) -> bool {
        false
    }

    /// Gives open runs that follow each other the roles they are written in, between these two; at the end, `next` is
    /// `None`.
    fn settle(_group: &mut [Self::Role], _before: Option<Self::Role>, _next: Option<Self::Role>) {}

    /// Whether words that are meant until the user speaks again keep that scope in the role they are written in; `None`
    /// for all other words.
    fn keeps_scope(_asked: Self::Role, _settled: Self::Role) -> Option<bool> {
        None
    }

    /// Notes which tools the provider still runs after the step, by their ids. As long as there is one, it takes
    /// nothing but the results of our tools.
    fn pending(&self, _step: &StepRecord, _profile: &ModelProfile, _pending: &mut Vec<String>) {}

    /// Whether the step stands for all that came before it, which is then left out.
    fn replaces(&self, _step: &StepRecord, _profile: &ModelProfile) -> bool {
        false
    }

    /// Whether it is the model who speaks.
    fn is_model(role: Self::Role) -> bool;

    /// Whether requests that end with the model's words are refused by many models.
    const MODEL_MAY_NOT_END: bool;

    /// The last run of a request that ends with the model's words, where it may not stand there as it is (case M06).
    fn ending(_bytes: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// A cache marker, spliced in before the brace that ends a block; a form that has none gives no splice.
    fn marker(&self, ttl: Ttl) -> &'static [u8];

    /// Everything behind the messages but what depends on streaming.
    fn tail(&self, request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail;

    /// The end of the body, the only part that depends on streaming.
    fn end(&self, stream: bool) -> &'static [u8];

    /// Headers that what is in the body needs; whether a message in it is limited to its turn.
    fn headers(
        &self,
        _request: &ModelRequest<'_>,
        _profile: &ModelProfile,
        _scoped: bool,
    ) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// What a part is written with.
#[derive(Debug)]
pub(crate) struct Cx<'e> {
    pub(crate) names: &'e ToolNames,
    pub(crate) profile: &'e ModelProfile,
    pub(crate) diagnostics: &'e mut Vec<Diagnostic>,
    /// The tools that are sent.
    pub(crate) tools: &'e [ToolCard],
}

/// A part at the head of the body.
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) bytes: Vec<u8>,
    /// Where markers go, in the order of the bytes: behind each system block, or behind the last tool that may carry
    /// one. Empty where none can stand.
    pub(crate) splices: Vec<usize>,
}

/// Blocks or whole messages of one role.
#[derive(Debug, Clone)]
pub(crate) struct Run<R> {
    pub(crate) role: R,
    /// Invariant: never empty.
    pub(crate) bytes: Bytes,
    /// Where a marker goes: just before the end of the last block that may carry one.
    pub(crate) splice: Option<usize>,
}

impl Cx<'_> {
    /// Whether the provider shows the model a tool where a reference to it stands.
    pub(crate) fn is_expandable(&self, name: &str) -> bool {
        self.profile.deferred_tools && self.tools.iter().any(|card| card.name() == name && card.is_deferred())
    }

    /// Tells of something that is not sent as asked.
    pub(crate) fn note(&mut self, what: &str, why: impl Into<String>) {
        self.diagnostics.push(Diagnostic { what: what.to_owned(), why: why.into() });
    }

    /// Tells of words that are meant until the user speaks again, and stay in sight here.
    pub(crate) fn unscoped(&mut self) {
        self.note("note", UNSCOPED);
    }
}

/// What is told of a note whose scope cannot be kept.
pub(crate) const UNSCOPED: &str = "a note for the turn stays in sight after the next message of the user: this model, or this place, has no system message that is limited to the turn; use an ephemeral reminder where that matters";
