//! Session notes on real files: when they are written, what their run may do, and what a compaction begins from (requirement C2).

mod compacts;
mod lives;
mod prefix;
mod writes;

use std::sync::Arc;

use agent_builtins::memory;
use agent_core::{
    Cancel, Encoder, EventBody, LanguageModel, ModelError, ModelProfile, ModelStream, Outgoing, Usage,
};
use agent_harness::{
    Harness, HarnessConfig, NotesOutcome, NotesStatus, NotesView, NotesWriter, RetryPolicy, Run,
};
use agent_memory::{MemoryDir, MemoryFiles, NotesPolicy, NotesTrigger, NotesWait};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{PermissionMode, ToolSet};
use async_trait::async_trait;
use std::time::Duration;
use tempfile::TempDir;

use crate::support::{Effects, Points, id, tools};

/// A model that answers the runs that write notes from a script of their own.
#[derive(Debug, Clone)]
struct Two {
    main: ScriptedModel,
    beside: ScriptedModel,
}

#[async_trait]
impl LanguageModel for Two {
    fn profile(&self) -> &ModelProfile {
        self.main.profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.main.encoder()
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let is_beside = String::from_utf8_lossy(&request.body.to_vec()).contains(ASKS);
        if is_beside {
            self.beside.stream(request, cancel).await
        } else {
            self.main.stream(request, cancel).await
        }
    }
}

/// One process: an agent with the tool `memory`, which keeps notes.
struct Process {
    model: Two,
    writer: NotesWriter,
    effects: Effects,
    harness: Harness,
}

/// What processes share.
struct Disk {
    data: TempDir,
    store: Points,
}

impl Disk {
    fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap(), store: Points::default() }
    }

    fn files(&self) -> MemoryFiles {
        let memories = MemoryDir::open(&self.data.path().join("memory")).unwrap();
        MemoryFiles::new(memories).with_notes(self.data.path())
    }

    fn process(&self, policy: NotesPolicy, main: ScriptedModel, beside: ScriptedModel) -> Process {
        self.with(policy, Two { main, beside }, |_| {})
    }

    fn with(&self, policy: NotesPolicy, model: Two, change: impl FnOnce(&mut HarnessConfig)) -> Process {
        let effects = Effects::default();
        let writer = NotesWriter::new(self.data.path(), policy);
        let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(self.store.clone()));
        config.tools = ToolSet::builder()
            .extend(tools(&effects).iter().cloned())
            .with(memory(self.files()))
            .freeze()
            .unwrap();
        config.permissions.mode = PermissionMode::Bypass;
        config.retry = RetryPolicy::never();
        config.after_step = vec![Arc::new(writer.clone())];
        config.notes = Some(Arc::new(writer.clone()));
        change(&mut config);
        Process { model, writer, effects, harness: Harness::new(config) }
    }
}

impl Process {
    fn view(&self) -> NotesView {
        self.writer.watch(&id()).get()
    }

    async fn begin(&self, words: &str) -> Run {
        self.harness.session(id()).send(words).await.unwrap()
    }

    /// Sends a message and lets the work behind each step come to its end, which needs a model that takes its time; what is
    /// seen then, a line a step.
    async fn step_by_step(&self, words: &str) -> Vec<String> {
        let mut run = self.begin(words).await;
        let (mut lines, mut steps) = (Vec::new(), 0);
        while let Some(event) = run.next().await {
            if matches!(event.body, EventBody::StepCompleted { .. }) {
                steps += 1;
                // What is behind this one has not begun yet.
                lines.extend((steps > 1).then(|| line(&self.view())));
            }
        }
        run.finish().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        lines.push(line(&self.view()));
        lines
    }

    async fn drain(&self) {
        let drained = self.harness.drain(Duration::from_secs(600)).await;
        assert_eq!(drained.stopped, 0, "{drained:?}");
    }

    /// The requests of runs that write notes.
    fn beside(&self) -> Vec<String> {
        bodies(&self.model.beside)
    }
}

fn bodies(model: &ScriptedModel) -> Vec<String> {
    model.requests().iter().map(|body| String::from_utf8(body.to_vec()).unwrap()).collect()
}

/// What is seen, in a line.
fn line(view: &NotesView) -> String {
    let status = match view.status {
        NotesStatus::Waiting(NotesWait::First { tokens }) => format!("lacks {tokens} to the first"),
        NotesStatus::Waiting(NotesWait::Growth { tokens }) => format!("lacks {tokens} of growth"),
        NotesStatus::Waiting(NotesWait::Trigger { calls }) => format!("lacks {calls} calls"),
        NotesStatus::Elsewhere => "elsewhere".to_owned(),
        NotesStatus::Writing { run, .. } => format!("writes to {}", run.to.position()),
        NotesStatus::Unseen => "unseen".to_owned(),
    };
    let last = view.last.as_ref().map(|last| {
        let because = match last.run.because {
            NotesTrigger::Calls => "calls",
            NotesTrigger::Break => "break",
        };
        let outcome = match &last.outcome {
            NotesOutcome::Written => "written",
            NotesOutcome::Unchanged => "unchanged",
            NotesOutcome::Failed(why) => why,
        };
        let from = last.run.from.map_or("start".to_owned(), |from| from.position().to_string());
        format!("; {because}: {from} to {}: {outcome} in {} steps", last.run.to.position(), last.steps)
    });
    format!("{status}{}", last.unwrap_or_default())
}

/// Writes the notes, whatever they said.
fn write(text: &str) -> Reply {
    let text = format!("# Task\\n\\n{text}\\n");
    Reply::tool(
        "memory",
        format!(r#"{{"command":"create","path":"/session/notes.md","file_text":"{text}"}}"#),
    )
}

/// A run that writes, and ends.
fn written(text: &str) -> [Reply; 2] {
    [write(text), Reply::text("They are up to date.")]
}

/// So many looks, or words; without looks the context has so many tokens by then, two of them in the answer.
fn step(tokens: u64, calls: usize) -> Reply {
    let look = |reply: Reply, _| reply.call("look", r#"{"what":"y"}"#);
    let usage = Usage { input: tokens - 2, ..Usage::default() };
    (0..calls).fold(Reply::text("Well."), look).costing(usage)
}

/// A model that takes its time, so that the work behind a step is done before the next one.
fn paced(replies: impl IntoIterator<Item = Reply>) -> ScriptedModel {
    ScriptedModel::new(replies.into_iter().map(|reply| reply.slowly(1)).collect::<Vec<_>>())
}

/// Notes at each break.
fn eager() -> NotesPolicy {
    NotesPolicy { first: 1, then: 0, calls: 100 }
}

/// How the message begins that asks for notes.
const ASKS: &str = "Bring the notes on this session up to date.";
