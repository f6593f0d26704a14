//! What branches off a session: another session that goes its own way, and a run beside it that leaves no trace.

use std::sync::Arc;

use agent_core::{
    Cancel, Checkpoint, CompactionState, EntryId, Event, EventBody, History, ModelError, SessionId,
    SessionRecord, Slots, TerminalReason, UnreadableEntry, Usage, UserMessage,
};
use agent_store::{Fork, Row, Store, StoreError};
use agent_tools::{Pattern, PermissionMode, PermissionRule, Permissions};
use agent_turn::{Mode, step_count};
use async_trait::async_trait;

use crate::config::HarnessConfig;
use crate::drive::{Drive, Incoming};
use crate::explain::Shadow;
use crate::hooks::{CallChanges, CallCx, PrepareCall};
use crate::live::Live;
use crate::outbox::{Outbox, Told};
use crate::{Background, HarnessError, NobodyToAsk, Session, SourceError};

/// What is asked beside a session.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..ForkedRun::new")]
pub struct ForkedRun {
    /// What is said behind the session's history.
    pub message: UserMessage,
    /// Which calls may run, none unless a rule of this list allows it. What the agent's own rules refuse stays refused, and
    /// nobody is asked. The tools that the model sees are those of the session, whatever is allowed: another list would be
    /// another prefix.
    pub allow: Vec<Pattern>,
    /// After how many steps it ends, at least 1.
    pub max_steps: u32,
    /// Stops it.
    pub cancel: Cancel,
}

/// What came of a forked run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ForkedEnd {
    /// Why it ended.
    pub reason: TerminalReason,
    /// The model's last words; empty when it had none.
    pub text: String,
    /// How many steps it took.
    pub steps: u32,
    /// Its tokens, which are in no session's sum.
    pub usage: Usage,
    /// The failure of the model call that ended it.
    pub error: Option<ModelError>,
}

tokio::task_local! {
    /// Set while a forked run is polled, so that what it calls knows.
    static FORKED: ();
}

impl ForkedRun {
    /// A question to the model that is answered with words: one step, and no call runs.
    pub fn new(message: UserMessage) -> Self {
        Self { message, allow: Vec::new(), max_steps: 1, cancel: Cancel::new() }
    }
}

impl Session {
    /// Begins another session as a copy of this one up to and including an entry, and answers it (requirement D7). This one
    /// stays as it is, whoever has it, and nothing of it is needed any more.
    ///
    /// The new session has the same system prompt, tools and history, byte for byte, and keeps the outputs that were too large.
    /// Its usage begins at nothing. What is not in the history is known as of the newest entry only: forked there, todos, read
    /// stamps, notes, active skills and what tools keep come along; forked earlier, the new session begins without, so that
    /// files are read again before they are edited. What a person allowed for this session is asked about again.
    ///
    /// # Errors
    /// For an entry that the session does not have, which the step at work is until it is complete; when there is a session of
    /// the new name; and in a forked run.
    pub async fn fork(&self, at: EntryId, new: SessionId) -> Result<Self, HarnessError> {
        not_forked(&self.id)?;
        fork_stored(&*self.config.store, (&self.id, at), &new, self.config.clock.now_ms()).await?;
        Ok(Self::new(self.config.clone(), new))
    }

    /// Asks something beside the session: its first request begins with the session's own next request, byte for byte, so
    /// that the provider reads it from its cache. Nothing of it enters the session, which may be at work meanwhile; an open
    /// step is not part of it (requirement P12).
    ///
    /// A forked run cannot compact, fork, or begin another forked run: what it calls is refused that.
    ///
    /// # Errors
    /// For a session that does not exist or cannot be read, and in a forked run.
    pub async fn fork_run(&self, run: ForkedRun) -> Result<ForkedEnd, HarnessError> {
        not_forked(&self.id)?;
        let missing = || HarnessError::Store(StoreError::Missing(self.id.clone()));
        let record = self.config.store.load(&self.id).await?.ok_or_else(missing)?;
        let config = Arc::new(beside(&self.config, record, &run));
        FORKED.scope((), Box::pin(drive(config, &self.id, run))).await
    }
}

/// [`Session::fork`] for a program that has a store and no agent.
///
/// # Errors
/// As there.
pub async fn fork_stored(
    store: &dyn Store,
    (from, at): (&SessionId, EntryId),
    new: &SessionId,
    now_ms: i64,
) -> Result<(), StoreError> {
    let entries = at.position() as u64 + 1;
    let (model, checkpoint) = source(store, from, entries).await?;
    let checkpoint = Checkpoint { last_turn: 0, usage: Usage::default(), ..checkpoint };
    let told = [EventBody::SessionStarted { model }, EventBody::SessionForked { from: from.clone(), at }];
    let event = |(seq, body)| Event { seq: Some(seq), session: new.clone(), turn: None, step: None, body };
    let events: Vec<Event> = (1..).zip(told).map(event).collect();
    let lease = store.lease(new).await?;
    let fork = Fork { from, entries, checkpoint: &checkpoint, events: &events, now_ms };
    store.fork(&lease, fork).await?;
    Ok(())
}

/// The model of a session, and the state in which a copy of its first entries begins. Only those need to be readable.
async fn source(
    store: &dyn Store,
    from: &SessionId,
    entries: u64,
) -> Result<(String, Checkpoint), StoreError> {
    let missing = || StoreError::Missing(from.clone());
    let damage = match store.load(from).await {
        Ok(record) => {
            let record = record.ok_or_else(missing)?;
            let first = record.entries.iter().take(usize::try_from(entries).unwrap_or(usize::MAX));
            readable(from, &first.collect::<Vec<_>>())?;
            let is_newest = entries == record.entries.len() as u64;
            let checkpoint = if is_newest { between_turns(record.checkpoint) } else { Checkpoint::default() };
            return Ok((record.meta.model, checkpoint));
        }
        Err(damage @ StoreError::Corrupt { row: Row::Entry(_), .. }) => damage,
        Err(error) => return Err(error),
    };
    let left = store.salvage(from).await?.ok_or_else(missing)?;
    let whole = left.entries.iter().zip(0..entries).take_while(|((found, _), at)| found == at);
    let whole: Vec<&String> = whole.map(|((_, text), _)| text).collect();
    match left.meta {
        Some(meta) if whole.len() as u64 == entries => {
            readable(from, &whole)?;
            Ok((meta.model, Checkpoint::default()))
        }
        Some(_) | None => Err(damage),
    }
}

/// A copy that nobody can read is not made.
fn readable(session: &SessionId, entries: &[&String]) -> Result<(), StoreError> {
    let named = |unreadable: UnreadableEntry| StoreError::Corrupt {
        session: session.clone(),
        row: Row::Entry(unreadable.id.position() as u64),
        cause: unreadable.cause.into(),
    };
    History::load(entries).map(|_| ()).map_err(named)
}

/// Refuses what would lead from one forked run to another.
pub(crate) fn not_forked(session: &SessionId) -> Result<(), HarnessError> {
    if FORKED.try_with(|()| ()).is_ok() { Err(HarnessError::Forked(session.clone())) } else { Ok(()) }
}

/// The same driver on the session as it is stored, which is not told of what comes of it.
async fn drive(
    config: Arc<HarnessConfig>,
    id: &SessionId,
    run: ForkedRun,
) -> Result<ForkedEnd, HarnessError> {
    let loaded = Live::open(&config, id).await?;
    let out = Outbox::new(id.clone(), loaded.live.last_seq(), Told::unwatched());
    let mut drive = Drive::begin(config, loaded, Incoming::Message(run.message), out, run.cancel)?;
    let end = drive.run().await?;
    Ok(ForkedEnd { reason: end.reason, text: end.text, steps: end.steps, usage: end.usage, error: end.error })
}

/// The agent of a forked run: the same requests, and nobody who is asked, told or written to.
fn beside(config: &HarnessConfig, mut record: SessionRecord, run: &ForkedRun) -> HarnessConfig {
    let permissions = narrowed(config, &record, &run.allow);
    record.checkpoint = between_turns(record.checkpoint);
    record.journal.clear();
    record.inputs.clear();
    record.stand_in = None;
    let prepare_call = config.prepare_call.clone().map(|hook| Arc::new(Uncompacted(hook)) as _);
    HarnessConfig {
        store: Arc::new(Shadow::new(Some(record), config.store.clone())) as Arc<dyn Store>,
        sources: Vec::new(),
        tells_date: false,
        stop: Arc::new(step_count(run.max_steps.max(1))),
        pipeline: config.pipeline.clone().without_compaction(),
        prepare_call,
        after_compaction: Vec::new(),
        after_turn: Vec::new(),
        background: Background::default(),
        // All that the cache holds is shown, and no task is pursued.
        raw_rounds: None,
        mode: Mode::Conversation,
        permissions,
        asker: Arc::new(NobodyToAsk),
        rule_sink: None,
        ..config.clone()
    }
}

/// Only what is allowed here runs: other tools are refused, and other calls of these are asked about, with nobody to ask.
fn narrowed(config: &HarnessConfig, record: &SessionRecord, allow: &[Pattern]) -> Permissions {
    let own = config.permissions.rules.iter();
    let strict = own.filter(|rule| rule.decision != agent_tools::PermissionDecision::Allow).cloned();
    let known = config.tools.cards().iter().chain(&record.meta.tools).map(|card| card.name().to_owned());
    let closed = known.map(|tool| {
        let is_named = allow.iter().any(|pattern| pattern.names(&tool));
        let pattern = Pattern::tool(tool);
        if is_named { PermissionRule::ask(pattern) } else { PermissionRule::deny(pattern) }
    });
    let opened = allow.iter().cloned().map(PermissionRule::allow);
    let opened = opened.map(|rule| rule.from_layer(agent_core::Layer::Session));
    let mode = match config.permissions.mode {
        PermissionMode::Plan => PermissionMode::Plan,
        PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::Bypass => {
            PermissionMode::Default
        }
    };
    let ceiling = config.permissions.ceiling.clone();
    Permissions { mode, rules: strict.chain(closed).chain(opened).collect(), classifier: None, ceiling }
}

/// The state without an open turn, and without what a person allowed for one session.
fn between_turns(checkpoint: Checkpoint) -> Checkpoint {
    let Checkpoint { last_turn, slots, usage, asked_ms, asked_otherwise, compaction, .. } = checkpoint;
    let compaction = CompactionState { failures: 0, ..compaction };
    let slots = Slots { allowed: Vec::new(), ..slots };
    Checkpoint { last_turn, slots, usage, asked_ms, asked_otherwise, compaction, ..Checkpoint::default() }
}

/// Puts turns together without compaction.
#[derive(Debug)]
struct Uncompacted(Arc<dyn PrepareCall>);

#[async_trait]
impl PrepareCall for Uncompacted {
    async fn prepare_call(&self, cx: &CallCx<'_>) -> Result<CallChanges, SourceError> {
        let changes = self.0.prepare_call(cx).await?;
        let pipeline = changes.pipeline.map(agent_prepare::Pipeline::without_compaction);
        Ok(CallChanges { pipeline, ..changes })
    }
}
