//! What branches off a session: another session that goes its own way, and a run beside it that leaves no trace.

use std::sync::Arc;

use agent_core::{
    Cancel, Checkpoint, CompactionState, Entry, EntryId, Event, EventBody, History, LanguageModel,
    ModelError, SessionId, SessionRecord, Slots, StepRecord, TerminalReason, Text, UnreadableEntry, Usage,
    UserMessage,
};
use agent_prepare::{Pipeline, Stage, StageCx, Verdict};
use agent_store::{Fork, Row, Store, StoreError};
use agent_tools::{Confinement, Pattern, PermissionDecision, PermissionMode, PermissionRule, Permissions};
use agent_turn::{Mode, step_count};
use async_trait::async_trait;

use crate::config::HarnessConfig;
use crate::drive::{Drive, Incoming};
use crate::explain::Shadow;
use crate::hooks::{CallChanges, CallCx, PrepareCall};
use crate::live::Live;
use crate::outbox::{Outbox, Told};
use crate::run::TurnEnd;
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
    /// Whether calls that only read may run too, where no rule of the agent speaks of them: what a tool's own declaration or,
    /// for a command, its text proves ([`agent_tools::Matter::only_reads`]).
    pub reads: bool,
    /// What the model is told of a call that may not run: name what may. What is allowed is named when this is not given.
    pub refusal: Option<Text>,
    /// The model that is asked, in place of the session's own; whatever the agent's parts choose for a turn or a step, it
    /// stays. Nothing of the session's cache is read then.
    pub model: Option<Arc<dyn LanguageModel>>,
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
    /// What it did: the steps that were completed, with their calls and results.
    pub made: Vec<StepRecord>,
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
        Self {
            message,
            allow: Vec::new(),
            reads: false,
            refusal: None,
            model: None,
            max_steps: 1,
            cancel: Cancel::new(),
        }
    }

    /// What closes the permissions of the run.
    fn confinement(&self) -> Confinement {
        let words = match &self.refusal {
            Some(words) => words.as_str().to_owned(),
            None => self.usual_refusal(),
        };
        Confinement { reads: self.reads, words }
    }

    fn usual_refusal(&self) -> String {
        let named = self.allow.iter().map(|pattern| format!("`{pattern}`"));
        let reads = self.reads.then(|| "calls that only read".to_owned());
        let may: Vec<String> = named.chain(reads).collect();
        match &may[..] {
            [] => "no tool may be used here. Answer in words, with what you know.".to_owned(),
            may => format!(
                "only these calls may run here: {}. Do not repeat the call; use those, or answer with what you know.",
                may.join(", ")
            ),
        }
    }
}

impl Session {
    /// Begins another session as a copy of this one up to and including an entry, and answers it (requirement D7). This one
    /// stays as it is, whoever has it, and nothing of it is needed any more.
    ///
    /// The new session has the same system prompt, tools and history, byte for byte, and keeps the outputs that were too large.
    /// Its usage begins at nothing. What was said of turns that lie within it comes along. What is not in the history is known as of the newest entry only: forked there, todos, read
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
    /// It begins with what the session's state beside the history is as of its last commit, read stamps and todos included, and
    /// nothing that it changes of that comes back.
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
    // What was said of turns that lie within comes along; the turns of the new session are numbered behind those.
    let rounds = store.rounds(from).await?;
    let within = rounds.iter().filter(|round| round.to.position() as u64 <= entries);
    let last_turn = within.map(|round| round.turn).max().unwrap_or_default();
    let checkpoint = Checkpoint { last_turn, usage: Usage::default(), ..checkpoint };
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
    let behind = loaded.live.history.len();
    let mut drive = Drive::begin(config, loaded, Incoming::Message(run.message), out, run.cancel)?;
    let end = drive.run().await?;
    let entries = drive.history().entries().get(behind..).unwrap_or_default();
    let made = entries.iter().filter_map(Entry::as_step).cloned();
    let (made, TurnEnd { reason, text, steps, usage, error, .. }) = (made.collect(), end);
    Ok(ForkedEnd { reason, text, steps, made, usage, error })
}

/// The agent of a forked run: the same requests, and nobody who is asked, told or written to.
fn beside(config: &HarnessConfig, mut record: SessionRecord, run: &ForkedRun) -> HarnessConfig {
    let permissions = narrowed(&config.permissions, run);
    record.checkpoint = between_turns(record.checkpoint);
    record.journal.clear();
    record.inputs.clear();
    record.stand_in = None;
    let keeps_model = run.model.is_some();
    let prepare_call = config.prepare_call.clone().map(|hook| Arc::new(Plain { hook, keeps_model }) as _);
    HarnessConfig {
        model: run.model.clone().unwrap_or_else(|| config.model.clone()),
        store: Arc::new(Shadow::new(Some(record), config.store.clone())) as Arc<dyn Store>,
        sources: Vec::new(),
        tells_date: false,
        stop: Arc::new(step_count(run.max_steps.max(1))),
        pipeline: plain(config.pipeline.clone(), keeps_model),
        prepare_call,
        after_compaction: Vec::new(),
        after_turn: Vec::new(),
        after_step: Vec::new(),
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

/// Only what is allowed here runs; what the agent's own rules refuse or ask stays refused.
fn narrowed(own: &Permissions, run: &ForkedRun) -> Permissions {
    let strict = own.rules.iter().filter(|rule| rule.decision != PermissionDecision::Allow).cloned();
    let opened = run.allow.iter().cloned().map(PermissionRule::allow);
    let opened = opened.map(|rule| rule.from_layer(agent_core::Layer::Session));
    let mode = match own.mode {
        PermissionMode::Plan => PermissionMode::Plan,
        PermissionMode::Default | PermissionMode::AcceptEdits | PermissionMode::Bypass => {
            PermissionMode::Default
        }
    };
    Permissions {
        mode,
        rules: strict.chain(opened).collect(),
        classifier: None,
        ceiling: own.ceiling.clone(),
        confinement: Some(run.confinement()),
    }
}

/// The state without an open turn, and without what a person allowed for one session.
fn between_turns(checkpoint: Checkpoint) -> Checkpoint {
    let Checkpoint { last_turn, slots, usage, asked_ms, asked_otherwise, compaction, .. } = checkpoint;
    let compaction = CompactionState { failures: 0, ..compaction };
    let slots = Slots { allowed: Vec::new(), ..slots };
    Checkpoint { last_turn, slots, usage, asked_ms, asked_otherwise, compaction, ..Checkpoint::default() }
}

/// A pipeline that never compacts, and chooses no other model where the run has its own.
fn plain(pipeline: Pipeline, keeps_model: bool) -> Pipeline {
    let pipeline = pipeline.without_compaction();
    if keeps_model { pipeline.map_stages(|stage| Arc::new(KeepsModel(stage))) } else { pipeline }
}

/// Puts turns together as they are put together in a run beside a session.
#[derive(Debug)]
struct Plain {
    hook: Arc<dyn PrepareCall>,
    keeps_model: bool,
}

#[async_trait]
impl PrepareCall for Plain {
    async fn prepare_call(&self, cx: &CallCx<'_>) -> Result<CallChanges, SourceError> {
        let changes = self.hook.prepare_call(cx).await?;
        let pipeline = changes.pipeline.map(|pipeline| plain(pipeline, self.keeps_model));
        let model = changes.model.filter(|_| !self.keeps_model);
        Ok(CallChanges { pipeline, model, ..changes })
    }
}

/// A stage that has no say about the model.
#[derive(Debug)]
struct KeepsModel(Arc<dyn Stage>);

impl Stage for KeepsModel {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        match self.0.run(cx) {
            Verdict::Pass(changes) => Verdict::Pass(agent_prepare::Overrides { model: None, ..changes }),
            verdict @ (Verdict::Ask(_) | Verdict::Finish(_)) => verdict,
        }
    }
}
