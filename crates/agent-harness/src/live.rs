//! A session as loaded by the worker that holds its lease.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    Accountant, BlobHash, CallId, Checkpoint, Commit, Committed, CompactionState, Diagnostic, Entry, EntryId,
    HeldRequest, History, InputId, JournalRecord, OfChildren, RawJson, Repair, Reply, RequestId, Retried,
    Revision, RoundSummary, SessionId, SessionMeta, Slots, StoredInput, TerminalReason, ToolOutput, Usage,
    UserMessage,
};
use agent_prepare::Level;
use agent_prompt::Date;
use agent_store::Store;
use agent_tools::{Blobs, SlotsHandle};
use async_trait::async_trait;

use crate::HarnessError;
use crate::breaker::Breaker;
use crate::cache::PromptCache;
use crate::changes::{changes, model_name};
use crate::config::HarnessConfig;
use crate::encoders::Encoders;
use crate::gauge::counted;
use crate::held::Held;
use crate::listed::Listed;
use crate::outbox::Outbox;
use crate::{Observed, SessionView};

/// Everything of one session that a driver changes. Dropping it gives the lease back.
pub(crate) struct Live {
    pub(crate) meta: SessionMeta,
    /// Its tools as providers are sent them.
    pub(crate) tools: Listed,
    pub(crate) history: History,
    pub(crate) slots: SlotsHandle,
    /// What calls of the step at work wait for.
    pub(crate) requests: Vec<HeldRequest>,
    /// How often model calls of the open turn were tried again.
    pub(crate) retried: Retried,
    /// Where tools read outputs that were too large.
    pub(crate) blobs: Arc<dyn Blobs>,
    /// They remember the bytes of what was sent, and live as long as the session is open.
    pub(crate) encoders: Encoders,
    /// What was told already about requests that cannot be sent as asked.
    pub(crate) diagnosed: Vec<Diagnostic>,
    pub(crate) last_turn: u64,
    /// Tool calls of its steps.
    pub(crate) calls: u64,
    /// Tokens of the session up to the last commit, and of model calls since.
    pub(crate) usage: Usage,
    /// What its model calls cost, in billionths of a US dollar.
    pub(crate) nano_usd: u64,
    /// Milliseconds that its turns were at work.
    pub(crate) elapsed_ms: u64,
    /// What its sub-agents used.
    pub(crate) children: OfChildren,
    /// Sub-agents of the step at work of which it was told that they begin.
    pub(crate) sent: BTreeSet<SessionId>,
    pub(crate) cache: PromptCache,
    /// Tokens of the conversation; it has followed the history.
    pub(crate) accountant: Accountant,
    /// What compactions left.
    pub(crate) compaction: CompactionState,
    /// Tokens that the provider last took out of a request by itself.
    pub(crate) cleared: u64,
    /// How full the context was when it was last told.
    pub(crate) level: Level,
    /// Where its state is shown.
    pub(crate) view: Observed<SessionView>,
    /// The version of the slots that is shown there.
    pub(crate) slots_shown: Option<u64>,
    /// Whether a model is still asked to shorten outputs.
    pub(crate) shortening: Arc<Breaker>,
    /// The day that the model knows from the conversation as it sees it.
    pub(crate) told: Option<Date>,
    /// Inputs that the next commit uses.
    pub(crate) consumed: Vec<InputId>,
    /// Whether something was said to the session that was not looked at.
    pub(crate) has_inputs: bool,
    /// How many entries are stored.
    stored: usize,
    /// The version of the slots that is stored.
    slots_version: u64,
    lease: Held,
    revision: Revision,
    last_seq: u64,
}

/// What was left open by a crash or a park.
pub(crate) struct Open {
    pub(crate) turn: RawJson,
    /// Position of its first entry; not known of turns that older releases opened.
    pub(crate) turn_from: Option<EntryId>,
    /// The only tools that may be called in its step at work, when not all may.
    pub(crate) active: Option<BTreeSet<String>>,
    pub(crate) journal: Vec<JournalRecord>,
}

/// A session just loaded, with what has to be told and taken up.
pub(crate) struct Loaded {
    /// On the heap, because it is handed from task to task.
    pub(crate) live: Box<Live>,
    pub(crate) repairs: Vec<(EntryId, Repair)>,
    /// What is different from how the session began.
    pub(crate) changes: Vec<Diagnostic>,
    pub(crate) open: Option<Open>,
    pub(crate) created: bool,
    /// What was said to it and no commit has used.
    pub(crate) inputs: Vec<StoredInput>,
    /// What was said of its turns.
    pub(crate) rounds: Vec<RoundSummary>,
    /// Whether its state could not be read, which the last of `changes` tells.
    pub(crate) closed: bool,
}

impl Loaded {
    /// A session that was kept between two messages.
    pub(crate) fn kept(live: Box<Live>) -> Self {
        Self {
            live,
            repairs: Vec::new(),
            changes: Vec::new(),
            open: None,
            created: false,
            inputs: Vec::new(),
            rounds: Vec::new(),
            closed: false,
        }
    }

    /// Whether its open turn waits for a reply.
    pub(crate) fn waits(&self) -> bool {
        let journal = self.open.iter().flat_map(|open| &open.journal);
        let journaled = journal.filter(|record| matches!(record, JournalRecord::Waits(_))).count();
        journaled > 0 || self.live.requests.iter().any(|held| held.reply.is_none())
    }
}

impl Live {
    /// Takes the lease, which counts an attempt at an open turn, and then loads the session, or creates it.
    pub(crate) async fn open(config: &HarnessConfig, id: &SessionId) -> Result<Loaded, HarnessError> {
        let lease = Held::take(config, id).await?;
        match config.store.load(id).await? {
            Some(record) => {
                let (history, repairs) = History::load(&record.entries)
                    .map_err(|cause| HarnessError::Unreadable { session: id.clone(), cause })?;
                let mut meta = record.meta;
                let mut changes = changes(config, &mut meta);
                let Checkpoint {
                    turn,
                    last_turn,
                    slots,
                    usage,
                    asked_ms,
                    asked_otherwise,
                    compaction,
                    turn_from,
                    active,
                    requests,
                    retried,
                    nano_usd,
                    elapsed_ms,
                    children,
                } = record.checkpoint;
                let accountant = counted(config, &meta, &history);
                let state = config.pipeline.cascade().measure(&accountant, config.model.profile());
                let mut live = Box::new(Self {
                    stored: history.len(),
                    told: Date::told(history.view()),
                    slots: SlotsHandle::new(slots),
                    requests,
                    retried,
                    last_turn,
                    calls: history.entries().iter().map(calls_of).sum(),
                    usage,
                    nano_usd,
                    elapsed_ms,
                    children,
                    accountant,
                    compaction,
                    level: state.level(),
                    last_seq: record.last_seq,
                    has_inputs: !record.inputs.is_empty(),
                    ..Self::new(config, meta, lease, record.revision)
                });
                live.cache.resume(&history, asked_ms, &changes);
                live.cache.asked_otherwise = asked_otherwise;
                live.history = history;
                let (mut inputs, mut journal) = (record.inputs, record.journal);
                if let Some(lost) = &record.stand_in {
                    let journal = std::mem::take(&mut journal);
                    changes.push(Box::pin(live.close_lost(config, lost, journal, &mut inputs)).await?);
                }
                let open = turn.map(|turn| Open { turn, turn_from, active, journal });
                // A turn that is open goes on as it was.
                let rounds = match (&open, config.raw_rounds) {
                    (None, Some(_)) => config.store.rounds(id).await?,
                    (None, None) | (Some(_), _) => Vec::new(),
                };
                let closed = record.stand_in.is_some();
                Ok(Loaded { live, repairs, changes, open, created: false, inputs, rounds, closed })
            }
            None => Self::create(config, id, lease).await,
        }
    }

    async fn create(config: &HarnessConfig, id: &SessionId, lease: Held) -> Result<Loaded, HarnessError> {
        let profile = config.model.profile();
        let assembled = config.whole_prompt(id).await?.assemble();
        let meta = SessionMeta {
            id: id.clone(),
            created_ms: config.clock.now_ms(),
            model: model_name(profile),
            system: assembled.system(),
            static_blocks: assembled.static_blocks(),
            tools: config.tools.cards().to_vec(),
        };
        let revision = config.store.create(&lease, &meta, &Checkpoint::default()).await?;
        let live = Box::new(Self::new(config, meta, lease, revision));
        Ok(Loaded {
            live,
            repairs: Vec::new(),
            changes: assembled.diagnostics().to_vec(),
            open: None,
            created: true,
            inputs: Vec::new(),
            rounds: Vec::new(),
            closed: false,
        })
    }

    /// A session in which nothing was said yet.
    fn new(config: &HarnessConfig, meta: SessionMeta, lease: Held, revision: Revision) -> Self {
        Self {
            cache: PromptCache::new(config, &meta),
            accountant: counted(config, &meta, &History::new()),
            compaction: CompactionState::default(),
            cleared: 0,
            level: Level::Calm,
            view: Observed::default(),
            slots_shown: None,
            shortening: Arc::default(),
            tools: Listed::of(meta.tools.clone()),
            meta,
            history: History::new(),
            slots: SlotsHandle::default(),
            requests: Vec::new(),
            retried: Retried::default(),
            blobs: Arc::new(StoredBlobs(config.store.clone())),
            encoders: Encoders::default(),
            diagnosed: Vec::new(),
            last_turn: 0,
            calls: 0,
            usage: Usage::default(),
            nano_usd: 0,
            elapsed_ms: 0,
            children: OfChildren::default(),
            sent: BTreeSet::new(),
            told: None,
            consumed: Vec::new(),
            has_inputs: false,
            stored: 0,
            slots_version: 0,
            lease,
            revision,
            last_seq: 0,
        }
    }

    /// Whether the message is what the user last said.
    pub(crate) fn has_heard(&self, message: &UserMessage) -> bool {
        let said = self.history.entries().iter().rev().find_map(|entry| match entry {
            Entry::User(message) => Some(message),
            Entry::Step(_) | Entry::Note(_) | Entry::Boundary(_) => None,
        });
        said.is_some_and(|said| said == message || Date::opened(said) == message.parts())
    }

    /// Answers the open request of a call that a sub-agent did; the request, if the turn was parked on it.
    pub(crate) fn close_task(&mut self, call: &CallId, output: &ToolOutput) -> Option<RequestId> {
        let is_open = |held: &&mut HeldRequest| {
            held.request.call == *call && held.reply.is_none() && held.request.agent_task().is_some()
        };
        let held = self.requests.iter_mut().find(is_open)?;
        held.reply = Some(Reply::Output(output.clone()));
        Some(held.request.id.clone())
    }

    pub(crate) fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Gives the session back, and the attempt at its open turn with it.
    pub(crate) async fn give_back(self) -> Result<(), HarnessError> {
        self.lease.give_back().await
    }

    /// The shared state, when it changed since it was last journaled.
    pub(crate) fn changed_slots(&mut self) -> Option<Slots> {
        let version = self.slots.version();
        if version == self.slots_version {
            return None;
        }
        self.slots_version = version;
        self.show_slots();
        Some(self.slots.snapshot())
    }

    /// Appends to the history in memory; the next [`Live::commit`] writes it.
    pub(crate) fn push(&mut self, entry: Entry) -> Result<EntryId, HarnessError> {
        let is_rewrite = matches!(entry, Entry::Boundary(_));
        self.calls += calls_of(&entry);
        let id = self.history.push(entry)?;
        self.accountant.follow(&self.history);
        if is_rewrite {
            // It may hide where the day was told.
            self.told = Date::told(self.history.view());
        }
        Ok(id)
    }

    /// The one atomic write of a step: new entries, state, usage, events and reason.
    pub(crate) async fn commit(
        &mut self,
        config: &HarnessConfig,
        out: &mut Outbox,
        write: Write<'_>,
    ) -> Result<(), HarnessError> {
        let checkpoint = Checkpoint {
            retried: if write.turn.is_some() { self.retried } else { Retried::default() },
            turn: write.turn,
            last_turn: self.last_turn,
            slots: self.slots.snapshot(),
            usage: self.usage.clone(),
            asked_ms: self.cache.asked_ms,
            asked_otherwise: self.cache.asked_otherwise,
            compaction: self.compaction,
            turn_from: write.turn_from,
            active: write.active.cloned(),
            requests: self.requests.clone(),
            nano_usd: self.nano_usd,
            elapsed_ms: self.elapsed_ms,
            children: self.children.clone(),
        };
        let commit = Commit {
            expect: self.revision,
            entries: &self.history.entries()[self.stored..],
            checkpoint: &checkpoint,
            usage: write.usage,
            events: out.staged(),
            consumed: &self.consumed,
            terminal: write.terminal,
            now_ms: config.clock.now_ms(),
        };
        let Committed { revision, has_inputs } = config.store.commit(&self.lease, commit).await?;
        if checkpoint.turn.is_none() {
            self.lease.forget();
        }
        self.revision = revision;
        self.has_inputs = has_inputs;
        self.consumed.clear();
        self.sent.clear();
        self.stored = self.history.len();
        out.stored().await;
        self.last_seq = out.last_seq();
        Ok(())
    }

    /// A write between a model's answer and its commit.
    pub(crate) async fn journal(
        &mut self,
        config: &HarnessConfig,
        out: &mut Outbox,
        records: &[JournalRecord],
    ) -> Result<(), HarnessError> {
        if records.is_empty() && out.staged().is_empty() {
            return Ok(());
        }
        config.store.journal(&self.lease, records, out.staged()).await?;
        out.stored().await;
        self.last_seq = out.last_seq();
        Ok(())
    }
}

/// What a commit writes besides the session's own state.
pub(crate) struct Write<'a> {
    /// The open turn, saved.
    pub(crate) turn: Option<RawJson>,
    pub(crate) turn_from: Option<EntryId>,
    pub(crate) active: Option<&'a BTreeSet<String>>,
    pub(crate) usage: Option<&'a Usage>,
    pub(crate) terminal: Option<&'a TerminalReason>,
}

fn calls_of(entry: &Entry) -> u64 {
    entry.as_step().map_or(0, |step| step.pairs().count() as u64)
}

/// Offloaded outputs, read from the store.
#[derive(Debug)]
struct StoredBlobs(Arc<dyn Store>);

#[async_trait]
impl Blobs for StoredBlobs {
    async fn get(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, String> {
        self.0.get_blob(hash).await.map_err(|error| error.to_string())
    }
}
