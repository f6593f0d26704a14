//! What a session would send next, without asking a model, without its lease and without writing anything.

mod message;
mod shadow;
mod show;

use std::sync::Arc;

use agent_core::{
    Body, Diagnostic, EventBody, JournalRecord, Mark, MarkPoint, SessionId, SessionRecord, TerminalReason,
    Ttl, UserMessage,
};
use agent_prompt::{Assembled, Beside, Explanation, Prompt, estimate_tokens};
use serde::Serialize;

use crate::changes::model_name;
use crate::config::HarnessConfig;
use crate::quiet::quiet;
use crate::session::Session;
use crate::spy::{CapturedRequest, Seen, Spy};
use crate::stand_ins::StandIns;
use crate::{AllowAll, HarnessError, RetryPolicy, TurnEnd};
pub(crate) use shadow::Shadow;

pub(crate) use message::messages;
pub use message::{ExplainedMessage, ExplainedPart, MessageKind};

/// Stands in for the user's words where none were given.
const PLACEHOLDER: &str = "(what the user says next)";
/// Stands in for what a call of the open step will answer.
const NOT_RUN: &str = "(the result of this call, which was not run to explain the request)";

/// What a session would send next (requirement A6): as text by `Display`, as JSON by serde.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ExplainedRequest {
    /// The session.
    pub session: SessionId,
    /// Whether it would begin with this request.
    pub is_new: bool,
    /// The model that would be asked, `provider/name`.
    pub model: String,
    /// Whether the last words of the user are a stand-in, because none were given.
    pub assumes_message: bool,
    /// Calls of the open step whose results are stand-ins, by tool: they would run before this request is sent.
    pub assumes_results: Vec<String>,
    /// The tools and the system prompt.
    pub prompt: Explanation,
    /// The conversation in the order it is sent.
    pub messages: Vec<ExplainedMessage>,
    /// The cache breakpoints of the whole request, in order.
    pub breakpoints: Vec<ExplainedBreakpoint>,
    /// What cannot be sent as asked, and what is different from how the session began.
    pub request_diagnostics: Vec<Diagnostic>,
    /// The headers that what is in the body needs, beside those of every request.
    pub headers: Vec<(String, String)>,
    /// The exact length of the body in bytes, everything included.
    pub body_bytes: usize,
    /// Tokens of the whole body, estimated from its bytes.
    pub body_estimated_tokens: usize,
    #[serde(skip)]
    body: Body,
}

/// A cache breakpoint of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedBreakpoint {
    /// What it ends: the block of the body (`tools[7]`, `system[1]`, `messages[2].content[0]`), or in formats that are not
    /// read back what was marked (`tools`, `system 1`, `entry 2`).
    pub at: String,
    /// How long what lies before it is kept.
    pub ttl: Ttl,
}

impl ExplainedRequest {
    /// The body, byte for byte as it would be sent.
    pub fn body(&self) -> &Body {
        &self.body
    }
}

/// Explains the next request of a session.
///
/// It is the real driver that puts the request together, on a store that keeps nothing, with a model that only looks
/// and with tools that do nothing: there is no second assembly that could say something else.
pub(crate) async fn explain(
    config: &HarnessConfig,
    id: &SessionId,
    message: Option<UserMessage>,
) -> Result<ExplainedRequest, HarnessError> {
    let record = config.store.load(id).await?;
    let (prompt, unknown) = match config.whole_prompt(id).await {
        Ok(prompt) => (prompt, None),
        Err(error) if record.is_none() => return Err(error),
        // A stored session goes on without its sources; only who said what is not known then.
        Err(error) => {
            (config.prompt.clone(), Some(Diagnostic { what: "sources".into(), why: error.to_string() }))
        }
    };
    let assembled = prompt.assemble();
    let open = record.as_ref().is_some_and(|record| record.checkpoint.turn.is_some());
    let (is_new, assumes_message) = (record.is_none(), message.is_none() && !open);
    let assumes_results = record.as_ref().map(unanswered).unwrap_or_default();
    let static_blocks = record.as_ref().map(|record| record.meta.static_blocks);
    let (shadow, seen) = shadowed(config, record, prompt)?;
    let (told, end) = rehearse(shadow, id, message, open).await?;
    // Words that a stage or a tier needs are asked for before it.
    let is_asked = matches!(end.reason, TerminalReason::Error(_));
    let Some(request) = seen.all().pop().filter(|_| is_asked) else { return Err(unasked(id, end, open)) };
    let breakpoints = breakpoints(&request);
    let explanation = opening(&assembled, static_blocks, &request, &breakpoints);
    let CapturedRequest { messages, outgoing, diagnostics, .. } = request;
    let said = |diagnostic: &Diagnostic| explanation.diagnostics.contains(diagnostic);
    let told = told.into_iter().filter(|diagnostic| !said(diagnostic));
    let mut request_diagnostics: Vec<Diagnostic> = told.chain(diagnostics).chain(unknown).collect();
    request_diagnostics.dedup();
    let body_bytes = outgoing.body.len();
    Ok(ExplainedRequest {
        session: id.clone(),
        is_new,
        model: model_name(config.model.profile()),
        assumes_message,
        assumes_results,
        prompt: explanation,
        messages,
        breakpoints,
        request_diagnostics,
        headers: outgoing.headers,
        body_bytes,
        body_estimated_tokens: estimate_tokens(body_bytes),
        body: outgoing.body,
    })
}

/// The agent on stand-ins: nobody is asked, nothing runs, nothing is written.
fn shadowed(
    config: &HarnessConfig,
    record: Option<SessionRecord>,
    prompt: Prompt,
) -> Result<(HarnessConfig, Seen), HarnessError> {
    let (spy, seen) = Spy::new(config.model.clone(), Vec::new());
    let stand_ins = StandIns::new(|_| NOT_RUN.to_owned());
    // The sources were asked for the prompt; of a stored session they are not asked.
    let (prompt, sources) = match &record {
        None => (prompt, Vec::new()),
        Some(_) => (config.prompt.clone(), config.sources.clone()),
    };
    let shadow = HarnessConfig {
        store: Arc::new(Shadow::new(record, config.store.clone())),
        prompt,
        sources,
        asker: Arc::new(AllowAll),
        retry: RetryPolicy::never(),
        ..quiet(config.clone(), &spy, &stand_ins)?
    };
    Ok((shadow, seen))
}

/// What lies ahead of the conversation; `static_blocks` are those of a stored session.
fn opening(
    assembled: &Assembled,
    static_blocks: Option<usize>,
    request: &CapturedRequest,
    breakpoints: &[ExplainedBreakpoint],
) -> Explanation {
    // Some formats mark no tools; what is not in the body is not shown.
    let tools_marked = breakpoints.iter().any(|breakpoint| breakpoint.at.starts_with("tools"));
    let sent = |mark: &&Mark| tools_marked || mark.at != MarkPoint::Tools;
    let marks: Vec<Mark> = request.marks.iter().filter(sent).copied().collect();
    let beside = Beside { tools: &request.tools, marks: &marks, ..Beside::default() };
    match static_blocks {
        None => assembled.explain(beside),
        Some(count) => assembled.explain_stored(&request.system, count, beside),
    }
}

/// The breakpoints as they stand in the body; as they were planned, where its format is not read.
pub(crate) fn breakpoints(request: &CapturedRequest) -> Vec<ExplainedBreakpoint> {
    if let Ok(body) = agent_cache::Request::read(&request.outgoing.body.to_vec(), None) {
        let marked = body.blocks.into_iter().filter_map(|block| Some((block.path, block.mark?)));
        return marked.map(|(at, ttl)| ExplainedBreakpoint { at, ttl }).collect();
    }
    let planned = request.marks.iter().map(|mark| {
        let at = match mark.at {
            MarkPoint::Tools => "tools".to_owned(),
            MarkPoint::System(block) => format!("system {block}"),
            MarkPoint::Entry(entry) => format!("entry {entry}"),
            other => format!("{other:?}"),
        };
        ExplainedBreakpoint { at, ttl: mark.ttl }
    });
    planned.collect()
}

/// Drives the shadow up to the model call, which fails; what the driver told of the request before it.
async fn rehearse(
    shadow: HarnessConfig,
    id: &SessionId,
    message: Option<UserMessage>,
    open: bool,
) -> Result<(Vec<Diagnostic>, TurnEnd), HarnessError> {
    let session = Session::new(Arc::new(shadow), id.clone());
    let mut run = match message {
        Some(message) => session.send_message(message).await?,
        None if open => session.resume().await?,
        None => session.send(PLACEHOLDER).await?,
    };
    let mut diagnostics = Vec::new();
    while let Some(event) = run.next().await {
        if let EventBody::RequestDiagnostic(diagnostic) = event.body {
            diagnostics.push(diagnostic);
        } else if let EventBody::CompactionRequested { before, tier } = event.body {
            let why = format!(
                "the context has about {before} tokens and is compacted first, by {tier}; where that needs words of a model, it is shown without"
            );
            diagnostics.push(Diagnostic { what: "compaction".into(), why });
        }
    }
    Ok((diagnostics, run.finish().await?))
}

/// There is no request, because the turn ends without one.
fn unasked(id: &SessionId, end: TurnEnd, open: bool) -> HarnessError {
    let session = id.clone();
    match end.error {
        Some(error) => HarnessError::Unasked { session, words: error.message },
        None if open || end.text.is_empty() => HarnessError::NothingToSend(session),
        None => HarnessError::Unasked { session, words: end.text },
    }
}

/// The tools of the calls that were journaled without a result.
fn unanswered(record: &SessionRecord) -> Vec<String> {
    let answered = |call| {
        let mut records = record.journal.iter();
        records.any(|record| matches!(record, JournalRecord::Finished { result, .. } if result.call == call))
    };
    let responses = record.journal.iter().filter_map(|record| match record {
        JournalRecord::Response(pending) => Some(pending),
        JournalRecord::Active(_)
        | JournalRecord::Started(_)
        | JournalRecord::Sent(_)
        | JournalRecord::Returned(_)
        | JournalRecord::Waits(_)
        | JournalRecord::Finished { .. } => None,
    });
    let calls = responses.flat_map(|pending| pending.unanswered());
    calls.filter(|call| !answered(call.id.clone())).map(|call| call.name.clone()).collect()
}
