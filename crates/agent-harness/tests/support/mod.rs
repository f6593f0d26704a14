//! An agent for tests: scripted model, memory store with points to stop at, and a few small tools.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent_core::{
    BlobHash, Body, Cancel, Checkpoint, Commit, Committed, Encoder, Entry, Event, History, Input, InputId,
    JournalRecord, LanguageModel, ModelError, ModelProfile, ModelStream, Outgoing, Revision, RoundSummary,
    SessionId, SessionMeta, SessionRecord, SessionState, StoredInput, Usage,
};
use agent_harness::{Clock, Harness, HarnessConfig, Jitter, RetryPolicy, Run, Session, TurnEnd};
use agent_prompt::{Fragment, Layer, Prompt, Static};
use agent_providers::{ToolNames, WireFormat};
use agent_store::{Fork, Lease, MemoryStore, Store, StoreError, WholeSession};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, Concurrency, OutputCap, Tool, ToolConfig, ToolError, ToolSet};
use async_trait::async_trait;
use tokio::task::yield_now;

/// Runs a future on a runtime of its own with time paused.
pub(crate) fn block<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}

pub(crate) fn id() -> SessionId {
    SessionId::new("s").unwrap()
}

/// What the test's tools did, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects(Arc<Mutex<Vec<String>>>);

impl Effects {
    pub(crate) fn add(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct What {
    what: String,
}

/// `look` reads; `put` has an effect that must not happen twice; `boom` panics; `slow` never ends by itself;
/// `stuck` ignores being cancelled; `flood` says too much; `quick` and `late` have a deadline they do not meet.
pub(crate) fn tools(effects: &Effects) -> ToolSet {
    let put = effects.clone();
    let slow = effects.clone();
    let tools: Vec<Arc<dyn Tool>> = vec![
        ToolConfig::new("look", "Looks.", Access::Read, |_, input: What| async move {
            yield_now().await;
            Ok(format!("saw {}", input.what))
        })
        .build()
        .unwrap(),
        ToolConfig::new("put", "Puts.", Access::Edit, move |_, input: What| {
            let effects = put.clone();
            async move {
                yield_now().await;
                effects.add(&input.what);
                yield_now().await;
                Ok(format!("put {}", input.what))
            }
        })
        .build()
        .unwrap(),
        ToolConfig::new("boom", "Panics.", Access::Read, |_, _: What| async { broken() }).build().unwrap(),
        ToolConfig::new("slow", "Waits.", Access::Execute, move |call, _: What| {
            let effects = slow.clone();
            async move {
                effects.add("slow began");
                call.cx.cancel.cancelled().await;
                effects.add("slow stopped");
                Err::<String, _>(ToolError::Cancelled)
            }
        })
        .concurrency(Concurrency::Parallel)
        .build()
        .unwrap(),
        ToolConfig::new("stuck", "Never ends.", Access::Execute, |_, _: What| async {
            std::future::pending::<Result<String, ToolError>>().await
        })
        .concurrency(Concurrency::Parallel)
        .build()
        .unwrap(),
        ToolConfig::new("quick", "Has a deadline.", Access::Read, |call, _: What| async move {
            call.cx.cancel.cancelled().await;
            Err::<String, _>(ToolError::Cancelled)
        })
        .deadline(std::time::Duration::from_secs(2))
        .build()
        .unwrap(),
        ToolConfig::new("late", "Ends just after its deadline.", Access::Edit, |call, _: What| async move {
            call.cx.cancel.cancelled().await;
            Ok("ended after all".to_owned())
        })
        .deadline(std::time::Duration::from_secs(2))
        .build()
        .unwrap(),
        ToolConfig::new("flood", "Says too much.", Access::Read, |_, input: What| async move {
            Ok((0..500).map(|n| format!("{} {n}\n", input.what)).collect::<String>())
        })
        .cap(OutputCap { lines: 6, ..OutputCap::default() })
        .build()
        .unwrap(),
    ];
    ToolSet::builder().extend(tools).freeze().unwrap()
}

fn broken() -> Result<String, ToolError> {
    panic!("the wheel came off")
}

/// A store that yields before and after every write, so that a test can stop a run at each of these points.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points {
    inner: MemoryStore,
    writes: Arc<AtomicUsize>,
    looks_back: Arc<AtomicUsize>,
}

impl Points {
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// How often all events of a session were read, which takes the longer the more was said.
    pub(crate) fn looks_back(&self) -> usize {
        self.looks_back.load(Ordering::SeqCst)
    }

    async fn around<T>(&self, write: impl Future<Output = T>) -> T {
        yield_now().await;
        let result = write.await;
        self.writes.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        result
    }
}

#[async_trait]
impl Store for Points {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.inner.lease(session).await
    }
    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        state: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        self.around(self.inner.create(lease, meta, state)).await
    }
    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        self.inner.load(session).await
    }
    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        self.around(self.inner.commit(lease, commit)).await
    }
    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        self.around(self.inner.journal(lease, records, events)).await
    }
    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError> {
        self.inner.withdraw_attempt(lease).await
    }

    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError> {
        self.inner.reset_attempts(session).await
    }

    async fn meta(&self, session: &SessionId) -> Result<Option<SessionMeta>, StoreError> {
        self.inner.meta(session).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<SessionState>, StoreError> {
        self.inner.state(session).await
    }

    async fn put_input(&self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
        self.inner.put_input(session, input).await
    }

    async fn inputs(&self, session: &SessionId) -> Result<Vec<StoredInput>, StoreError> {
        self.inner.inputs(session).await
    }

    async fn put_round(&self, session: &SessionId, round: &RoundSummary) -> Result<(), StoreError> {
        self.inner.put_round(session, round).await
    }

    async fn rounds(&self, session: &SessionId) -> Result<Vec<RoundSummary>, StoreError> {
        self.inner.rounds(session).await
    }

    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        self.looks_back.fetch_add(1, Ordering::SeqCst);
        self.inner.events(session, after_seq).await
    }
    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError> {
        self.inner.usage(session).await
    }
    async fn sessions(&self) -> Result<Vec<agent_store::SummaryLine>, StoreError> {
        self.inner.sessions().await
    }
    async fn delete(&self, lease: Lease) -> Result<(), StoreError> {
        self.inner.delete(lease).await
    }
    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        self.around(self.inner.fork(lease, fork)).await
    }
    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        self.around(self.inner.import(lease, whole)).await
    }
    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        self.inner.blobs(session).await
    }
    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        self.inner.put_blob(session, bytes).await
    }
    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get_blob(hash).await
    }
}

/// No chance at all.
#[derive(Debug)]
pub(crate) struct Half;

impl Jitter for Half {
    fn fraction(&self) -> f64 {
        0.5
    }
}

/// An agent that allows everything.
pub(crate) struct Agent {
    pub(crate) model: ScriptedModel,
    pub(crate) store: Points,
    pub(crate) effects: Effects,
    pub(crate) harness: Harness,
}

impl Agent {
    pub(crate) fn new(replies: Vec<Reply>) -> Self {
        Self::with(ScriptedModel::new(replies).by_history(), Points::default(), Effects::default())
    }

    pub(crate) fn with(model: ScriptedModel, store: Points, effects: Effects) -> Self {
        Self::retrying(model, store, effects, RetryPolicy::never())
    }

    /// An agent that tries again; half of every longest wait is waited.
    pub(crate) fn retrying(
        model: ScriptedModel,
        store: Points,
        effects: Effects,
        retry: RetryPolicy,
    ) -> Self {
        let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(store.clone()));
        config.retry = retry;
        config.jitter = Arc::new(Half);
        config.tools = tools(&effects);
        config.permissions.mode = agent_tools::PermissionMode::Bypass;
        Self { model, store, effects, harness: Harness::new(config) }
    }

    pub(crate) fn session(&self) -> Session {
        self.harness.session(id())
    }

    /// Sends a message and reads every event.
    pub(crate) async fn say(&self, text: &str) -> (Vec<Event>, TurnEnd) {
        watch(self.session().send(text).await.unwrap()).await
    }

    pub(crate) async fn history(&self) -> History {
        let record = self.store.load(&id()).await.unwrap().unwrap();
        let (history, repairs) = History::load(&record.entries).unwrap();
        assert!(repairs.is_empty(), "a committed history never needs repair: {repairs:?}");
        history
    }
}

pub(crate) async fn watch(mut run: Run) -> (Vec<Event>, TurnEnd) {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    (events, run.finish().await.unwrap())
}

/// Polls a run a number of times and drops it, as a crash would; the end, if it came that far.
pub(crate) async fn crash_after(run: Run, polls: usize) -> Option<TurnEnd> {
    let mut work = Box::pin(run.finish());
    for _ in 0..polls {
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(work.as_mut().poll(cx))).await;
        if let std::task::Poll::Ready(end) = polled {
            return Some(end.unwrap());
        }
        // The runtime wakes what yielded.
        yield_now().await;
    }
    None
}

/// One line an event: number, coordinates, type, and the word that matters most.
pub(crate) fn log(events: &[Event]) -> String {
    let lines = events.iter().map(|event| {
        let json = serde_json::to_value(event).unwrap();
        let seq = event.seq.map_or("-".to_owned(), |seq| seq.to_string());
        let at = [event.turn.map(|turn| turn.to_string()), event.step.map(|step| step.to_string())];
        let at = at.into_iter().flatten().collect::<Vec<_>>().join("/");
        let data = &json["data"];
        let word = ["reason", "text", "outcome", "json", "kind"].iter().find_map(|key| data[key].as_str());
        format!("{seq} [{at}] {} {}", json["type"].as_str().unwrap(), word.unwrap_or_default())
            .trim_end()
            .to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// One line a message, results included.
pub(crate) fn talk(history: &History) -> String {
    let mut lines = Vec::new();
    for entry in history.entries() {
        match entry {
            Entry::User(message) => lines.push(format!("user: {:?}", message.parts().len())),
            Entry::Step(step) => {
                let calls: Vec<_> = step
                    .pairs()
                    .map(|(call, result)| format!("{} -> {}", call.name, result.output.plain()))
                    .collect();
                lines.push(format!("step: {}", calls.join("; ")));
            }
            Entry::Note(note) => lines.push(format!("note: {}", note.text)),
            Entry::Boundary(_) => lines.push("boundary".into()),
        }
    }
    lines.join("\n")
}

/// A system prompt of these blocks, all static.
pub(crate) fn system_of(blocks: &[&'static str]) -> Prompt {
    let mut prompt = Prompt::default();
    for (at, text) in blocks.iter().enumerate() {
        prompt.add(Fragment::<Static>::new(Layer::Session, &format!("block {at}"), *text).unwrap());
    }
    prompt
}

/// A scripted model behind the real encoder, which keeps the bodies it was sent. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Keeping(ScriptedModel, Arc<Mutex<Vec<Body>>>);

impl Keeping {
    pub(crate) fn new(model: ScriptedModel) -> Self {
        Self(model, Arc::default())
    }

    pub(crate) fn bodies(&self) -> Vec<Body> {
        self.1.lock().unwrap().clone()
    }
}

#[async_trait]
impl LanguageModel for Keeping {
    fn profile(&self) -> &ModelProfile {
        self.0.profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        agent_providers::encoder(
            &WireFormat::Anthropic.into(),
            self.0.profile().clone(),
            ToolNames::default(),
        )
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        self.1.lock().unwrap().push(request.body.clone());
        self.0.stream(request, cancel).await
    }
}

/// A clock whose hands are moved; clones show the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hands {
    ms: Arc<AtomicI64>,
    offset_minutes: Arc<AtomicI32>,
}

impl Hands {
    /// At this time of UTC.
    pub(crate) fn at(ms: i64) -> Self {
        let hands = Self::default();
        hands.forward(ms);
        hands
    }

    pub(crate) fn forward(&self, ms: i64) {
        self.ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Travels to where clocks are so far ahead of UTC.
    pub(crate) fn travel(&self, offset_minutes: i32) {
        self.offset_minutes.store(offset_minutes, Ordering::SeqCst);
    }
}

impl Clock for Hands {
    fn now_ms(&self) -> i64 {
        self.ms.load(Ordering::SeqCst)
    }

    fn utc_offset_minutes(&self) -> i32 {
        self.offset_minutes.load(Ordering::SeqCst)
    }
}
