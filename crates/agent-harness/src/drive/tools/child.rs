//! A task of a call is done by a sub-agent, in a session that is found again by its name (requirement L10).
//!
//! The child's session is the journal: a call that is run again after a crash finds what came of its task, and a child
//! that ended is read and not run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    AGENT_ACTION, ActionOutcome, AgentTask, Cancel, EventBody, Excerpt, HeldRequest, InputRequest,
    JournalRecord, SessionId, SessionState, Spent, TerminalReason, ToolCall, ToolOutput,
};
use agent_store::StoreError;
use agent_tools::Tool;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::{Instrument, Span};

use super::desk::{Desk, Ended};
use super::execute::words_of_panic;
use super::finish::finish;
use super::{Done, Said, Site, Waiting};
use crate::children::config_of;
use crate::config::HarnessConfig;
use crate::kin::{Told, told};
use crate::unless::unless_cancelled;
use crate::{HarnessError, Run, Session, kin};

/// A call whose task a sub-agent is to do.
pub(super) struct Errand {
    pub(super) waiting: Waiting,
    pub(super) said: Said,
    pub(super) tool: Arc<dyn Tool>,
    /// The span of the call: the child works inside it.
    pub(super) span: Span,
}

/// An errand that can be run, or why it cannot, for the model.
pub(super) struct Sent {
    errand: Errand,
    request: InputRequest,
    child: Result<Child, String>,
}

struct Child {
    id: SessionId,
    config: Arc<HarnessConfig>,
    task: AgentTask,
}

/// A sub-agent that is done, for the events of its parent.
pub(super) struct Returned {
    pub(super) child: SessionId,
    pub(super) reason: Option<TerminalReason>,
    pub(super) steps: u32,
    /// What it used, with its own children.
    pub(super) spent: Spent,
}

/// How the work on a child's turn ended.
enum Came {
    /// Its turn is over.
    Over,
    /// It waits for somebody.
    Parked,
    /// It broke down before that, in words.
    Broke(String),
}

/// Whether the driver does what this call waits for.
pub(super) fn is_errand(site: &Site<'_>, waiting: &Waiting) -> bool {
    site.config.children.is_some() && super::hold::is_task(&waiting.wait)
}

impl Desk<'_> {
    /// Makes ready what a child is run with, and tells that one begins, once.
    pub(super) async fn send(&mut self, errand: Errand) -> Result<Sent, HarnessError> {
        let Waiting { call, input, wait } = errand.waiting.clone();
        let is_task = |held: &&HeldRequest| {
            held.request.call == call.id && held.reply.is_none() && held.request.agent_task().is_some()
        };
        let held = self.live.requests.iter().find(is_task);
        // One that it was parked on was told of before.
        let is_known = held.is_some();
        let request = match held {
            Some(held) => held.request.clone(),
            None => self.request(&call, &input, wait),
        };
        let Some(id) = request.child_session(&self.site.session) else {
            return Ok(Sent { errand, request, child: Err(NO_TASK.to_owned()) });
        };
        let state = self.site.config.store.state(&id).await?;
        let child = self.child(&request, id, state.as_ref());
        if let Ok(Child { id, task, .. }) = &child
            && !is_known
            && state.is_none()
            && self.live.sent.insert(id.clone())
        {
            self.records.push(JournalRecord::Sent(id.clone()));
            self.out.stage(EventBody::SubagentStarted {
                call: request.call.clone(),
                child: id.clone(),
                kind: task.kind.clone(),
                task: Excerpt::of(&Arc::from(task.task.as_str()), TASK_BYTES),
            });
        }
        Ok(Sent { errand, request, child })
    }

    /// `state` is how far it came before.
    fn child(
        &self,
        request: &InputRequest,
        id: SessionId,
        state: Option<&SessionState>,
    ) -> Result<Child, String> {
        let site = self.site;
        let Some(Ok(task)) = request.agent_task().map(|input| input.to::<AgentTask>()) else {
            return Err(NO_TASK.to_owned());
        };
        if is_last_level(site.config) {
            return Err(TOO_DEEP.to_owned());
        }
        let before = state.map(|state| state.checkpoint.spent_by_all()).unwrap_or_default();
        let allowance = site.share.allow(&id, before, site.config.clock.now_ms());
        let config = config_of(site.config, task.kind.as_deref(), site.active, allowance);
        let config = config.ok_or_else(|| match &task.kind {
            Some(kind) => format!("Not done: this program has no agents of kind `{kind}`. Leave `kind` out."),
            None => NO_TASK.to_owned(),
        })?;
        Ok(Child { id, config: Arc::new(config), task })
    }
}

/// What a call of the tool `agent` is told where that tool was taken out, because there are no more levels.
pub(super) fn too_deep(site: &Site<'_>, call: &ToolCall) -> Option<ToolOutput> {
    let is_gone = call.name == AGENT_ACTION && site.config.tools.get(AGENT_ACTION).is_none();
    (is_gone && is_last_level(site.config)).then(|| ToolOutput::error(TOO_DEEP))
}

fn is_last_level(config: &HarnessConfig) -> bool {
    config.children.as_ref().is_some_and(|children| children.levels == 0)
}

/// Runs a child until its turn is over or waits.
pub(super) async fn run(site: &Site<'_>, sent: Sent) -> Result<Ended, HarnessError> {
    let Sent { errand, request, child } = sent;
    let child = match child {
        Ok(child) => child,
        Err(words) => {
            let done = errand.done(ActionOutcome::Failed, ToolOutput::error(words));
            return finish(site, done).await.map(Ended::Finished);
        }
    };
    let work = AssertUnwindSafe(child.work(site.cancel)).catch_unwind().instrument(errand.span.clone());
    let came = match work.await {
        Ok(Ok(came)) => came,
        Ok(Err(error)) => Came::Broke(error.to_string()),
        Err(panic) => Came::Broke(format!("it panicked: {}", words_of_panic(&*panic))),
    };
    let broke = match came {
        Came::Parked => return Ok(Ended::Parked(request)),
        Came::Over => None,
        Came::Broke(words) => Some(words),
    };
    if broke.is_some() {
        // Its call has a result, so nobody goes on with it.
        kin::close(site.config, &site.session, &request).await;
    }
    let told = told(&*child.config.store, &child.id).await?;
    let (outcome, output) = result(site, &child.id, broke.as_deref(), &told);
    let Told { reason, steps, spent, .. } = told;
    errand.span.record("outcome", tracing::field::debug(outcome));
    let returned = Returned { child: child.id, reason: reason.filter(|_| broke.is_none()), steps, spent };
    let finished = finish(site, errand.done(outcome, output)).await?;
    Ok(Ended::Returned(finished, returned))
}

impl Errand {
    fn done(self, outcome: ActionOutcome, output: ToolOutput) -> Done {
        let Self { waiting: Waiting { call, input, .. }, said, tool, .. } = self;
        Done { call, input: Some(input), said, outcome, output, ran: true, made_by: Some(tool) }
    }
}

impl Child {
    /// Begins the child, goes on with it, or finds that it is done.
    async fn work(&self, cancel: &Cancel) -> Result<Came, HarnessError> {
        // The last clone gives the lease back, and ends what its tools left running.
        let session = Session::new(self.config.clone(), self.id.clone());
        loop {
            let state = self.config.store.state(&self.id).await?;
            if state.as_ref().is_some_and(is_over) {
                return Ok(Came::Over);
            }
            let is_open = state.is_some_and(|state| state.checkpoint.turn.is_some());
            match begin(&session, &self.task.task, is_open).await {
                Ok(run) => return until_over(run, cancel).await,
                Err(HarnessError::AtWork(_) | HarnessError::Store(StoreError::Busy { .. })) => {
                    // Somebody else drives it, perhaps to answer it: what comes of that is the result.
                    if unless_cancelled(cancel, tokio::time::sleep(PAUSE)).await.is_none() {
                        return Ok(Came::Broke(ELSEWHERE.to_owned()));
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Boxed, because a child is driven by what drives its parent.
fn begin<'a>(session: &'a Session, task: &'a str, is_open: bool) -> BoxFuture<'a, Result<Run, HarnessError>> {
    async move { if is_open { session.resume().await } else { session.send(task).await } }.boxed()
}

fn is_over(state: &SessionState) -> bool {
    state.checkpoint.turn.is_none() && state.terminal.is_some()
}

/// Runs it to its end; stopping the parent stops it (requirement M3), and it winds up first.
async fn until_over(run: Run, cancel: &Cancel) -> Result<Came, HarnessError> {
    let stop = run.cancel();
    let mut work = std::pin::pin!(run.finish());
    let end = match unless_cancelled(cancel, &mut work).await {
        Some(end) => end,
        None => {
            stop.cancel();
            work.await
        }
    };
    Ok(if let TerminalReason::Parked(_) = end?.reason { Came::Parked } else { Came::Over })
}

/// What the model of the parent is told.
fn result(
    site: &Site<'_>,
    child: &SessionId,
    broke: Option<&str>,
    told: &Told,
) -> (ActionOutcome, ToolOutput) {
    let Told { text, reason, steps, spent: Spent { usage, .. }, failure } = told;
    let ended = match (&broke, reason) {
        (None, Some(reason)) => reason.to_string(),
        (Some(_), _) | (None, None) => "broke down".to_owned(),
    };
    let line = format!(
        "[sub-agent {child}: {ended} after {steps} {}; {} tokens in, {} out]",
        if *steps == 1 { "step" } else { "steps" },
        usage.total_input(),
        usage.output
    );
    let is_done = broke.is_none() && reason.as_ref().is_some_and(TerminalReason::is_success);
    if is_done {
        let words = if text.trim().is_empty() { SAID_NOTHING } else { text };
        return (ActionOutcome::Completed, ToolOutput::text(format!("{words}\n\n{line}")));
    }
    let why = broke.or(failure.as_deref()).map_or_else(String::new, |why| format!(" ({why})"));
    let last = if text.trim().is_empty() { String::new() } else { format!("\n\nIts last words: {text}") };
    let words = format!("The sub-agent did not finish its task: {ended}{why}. {LOOK}{last}\n\n{line}");
    let outcome = match site.cancel.is_cancelled() {
        true => ActionOutcome::Cancelled,
        false => ActionOutcome::Failed,
    };
    (outcome, ToolOutput::error(words))
}

/// How often a child that another worker has is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// How much of a task an event shows.
const TASK_BYTES: usize = 2_000;

const NO_TASK: &str = "Not done: this is no task that a sub-agent can be given. Do it yourself.";
const TOO_DEEP: &str =
    "Not done: a sub-agent at this depth cannot have sub-agents of its own. Do the task yourself.";
const ELSEWHERE: &str = "another worker drives its session";
const SAID_NOTHING: &str = "(The sub-agent finished without a word.)";
const LOOK: &str = "What it did until then stands: look at the present state before you go on. Do the rest yourself, or give a smaller task.";
