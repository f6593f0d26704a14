//! A run that compacts is dropped at any point and taken up again: one boundary, and nothing is done or said twice.

use std::sync::Arc;

use agent_core::{
    Cancel, Encoder, Entry, EventBody, History, JournalRecord, LanguageModel, ModelError, ModelErrorKind,
    ModelProfile, ModelStream, NoteKind, Outgoing, ReadExtent, ReadStamp, SessionRecord, TerminalReason,
    Todo, TodoStatus,
};
use agent_harness::Harness;
use agent_prepare::{Cascade, Pipeline, Reminders, Summarise};
use agent_store::Store;
use agent_testkit::{Failure, Reply, ScriptedModel};
use agent_tools::{Access, Call, ToolConfig, ToolSet};
use async_trait::async_trait;

use crate::support::{Agent, Effects, Points, block, crash_after, id};

/// What the summary says.
const SUMMED: &str = "The hold is stowed.";

/// Answers by what it is told: the first words of the list that a request holds choose the reply.
#[derive(Debug, Clone)]
struct ByWords {
    profile: ModelProfile,
    replies: Vec<(&'static str, ScriptedModel)>,
}

#[async_trait]
impl LanguageModel for ByWords {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.replies[0].1.encoder()
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let chosen = self.replies.iter().find(|(words, _)| body.contains(words)).unwrap();
        chosen.1.stream(request, cancel).await
    }
}

/// Always this.
fn always(reply: Reply) -> ScriptedModel {
    ScriptedModel::new(vec![reply; 99])
}

/// How a context comes to be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    /// Its model has a small window.
    Counted,
    /// The provider refuses the request.
    Refused,
}

fn model(due: Due) -> ByWords {
    let profile = ModelProfile {
        context_window: if due == Due::Counted { 4_096 } else { 100_000 },
        max_output: 4_096,
        // Reminders stay in the history.
        binds_thinking_to_prefix: true,
        ..ModelProfile::conservative("scripted", "small")
    };
    let put = || always(Reply::tool("put", r#"{"what":"x"}"#));
    let refuses = || {
        let error = ModelError::new(ModelErrorKind::ContextOverflow, "prompt is too long: 9000 tokens");
        (0..99).fold(put(), |model, at| model.failing(at, Failure::Before(error.clone())))
    };
    let replies = vec![
        (r#"{"what":"x"}"#, always(Reply::text("ok"))),
        (SUMMED, put()),
        ("bale", if due == Due::Refused { refuses() } else { put() }),
        ("go", always(Reply::tool("stow", r#"{"what":"all"}"#))),
    ];
    ByWords { profile, replies }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct What {
    what: String,
}

/// Reads a file, writes the list, and says much; it may run again when its answer was lost.
fn stow(effects: &Effects) -> ToolConfig<What, String> {
    let effects = effects.clone();
    ToolConfig::new("stow", "Stows.", Access::Read, move |call: Call, input: What| {
        let effects = effects.clone();
        async move {
            tokio::task::yield_now().await;
            effects.add(format!("stow {}", input.what));
            call.cx.slots.update(|slots| {
                let stamp = ReadStamp { hash: "00".into(), len: 1, seen: ReadExtent::Full };
                slots.reads.insert("a.txt".into(), stamp);
                let todo = Todo { id: "1".into(), text: "mend it".into(), status: TodoStatus::Pending };
                slots.todos = vec![todo];
            });
            Ok(format!("{}bale\n", "word".repeat(19)).repeat(145))
        }
    })
}

fn put(effects: &Effects) -> ToolConfig<What, String> {
    let effects = effects.clone();
    ToolConfig::new("put", "Puts.", Access::Edit, move |_, input: What| {
        let effects = effects.clone();
        async move {
            tokio::task::yield_now().await;
            effects.add(format!("put {}", input.what));
            tokio::task::yield_now().await;
            Ok(format!("put {}", input.what))
        }
    })
}

fn agent(due: Due, (store, effects): &(Points, Effects), summary: &ScriptedModel) -> Agent {
    let unused = ScriptedModel::new(vec![]);
    let agent = Agent::with(unused, store.clone(), effects.clone());
    let mut config = agent.harness.config().clone();
    config.model = Arc::new(model(due));
    config.tools = ToolSet::builder().with(stow(effects)).with(put(effects)).freeze().unwrap();
    config.summary_model = Some(Arc::new(summary.clone()));
    let cascade = Cascade::new().then(Summarise::default());
    config.pipeline = Pipeline::new(cascade).then(Reminders::these(["Use no emoji."]));
    Agent { harness: Harness::new(config), ..agent }
}

/// What is told once, and how often it was.
#[derive(Debug, PartialEq, Eq)]
struct Counted {
    boundaries: usize,
    lists: usize,
    reminders: usize,
    completed: usize,
    puts: usize,
}

async fn counted(store: &Points, effects: &Effects) -> Counted {
    let record = store.load(&id()).await.unwrap().unwrap();
    let (history, repairs) = History::load(&record.entries).unwrap();
    assert!(repairs.is_empty(), "{repairs:?}");
    assert!(record.checkpoint.slots.reads.is_empty(), "what was read counts as unread");
    assert_eq!(record.checkpoint.slots.todos.len(), 1);
    let notes = |words: &str| {
        let notes = history.entries().iter().filter_map(|entry| match entry {
            Entry::Note(note) => Some(note),
            Entry::User(_) | Entry::Step(_) | Entry::Boundary(_) => None,
        });
        notes.filter(|note| note.text.as_str().contains(words)).map(|note| note.kind).collect::<Vec<_>>()
    };
    let lists = notes("mend it");
    assert!(lists.iter().all(|kind| *kind == NoteKind::PutBack), "{lists:?}");
    let events = store.events(&id(), 0).await.unwrap();
    let is_completed =
        |event: &&agent_core::Event| matches!(event.body, EventBody::CompactionCompleted { .. });
    Counted {
        boundaries: boundaries(&history),
        lists: lists.len(),
        reminders: notes("Use no emoji.").len(),
        completed: events.iter().filter(is_completed).count(),
        puts: effects.all().iter().filter(|effect| *effect == "put x").count(),
    }
}

fn boundaries(history: &History) -> usize {
    history.entries().iter().filter(|entry| matches!(entry, Entry::Boundary(_))).count()
}

/// What a process left that died.
struct Left {
    is_over: bool,
    has_boundary: bool,
    /// Whether the big answer is safe.
    is_stowed: bool,
}

fn left(record: Option<&SessionRecord>) -> Left {
    let Some(record) = record else {
        return Left { is_over: false, has_boundary: false, is_stowed: false };
    };
    let (history, _) = History::load(&record.entries).unwrap();
    let is_stowed = history.entries().iter().any(|entry| matches!(entry, Entry::Step(_)))
        || record.journal.iter().any(|it| matches!(it, JournalRecord::Finished { .. }));
    let is_over = !record.entries.is_empty() && record.checkpoint.turn.is_none();
    Left { is_over, has_boundary: boundaries(&history) > 0, is_stowed }
}

fn summariser() -> ScriptedModel {
    always(Reply::text(SUMMED))
}

async fn whole(due: Due) -> Counted {
    let (parts, summary) = ((Points::default(), Effects::default()), summariser());
    let end = agent(due, &parts, &summary).say("go").await.1;
    assert_eq!((end.reason, end.text.as_str()), (TerminalReason::Done, "ok"));
    assert_eq!(summary.requests().len(), 1);
    let whole = counted(&parts.0, &parts.1).await;
    assert_eq!((whole.boundaries, whole.lists, whole.completed, whole.puts), (1, 1, 1, 1));
    assert!(whole.reminders > 0);
    whole
}

/// Drops a run after so many polls and takes it up; whether it came to its end before.
async fn check_once(due: Due, polls: usize, expect: &Counted) -> bool {
    let (parts, summary) = ((Points::default(), Effects::default()), summariser());
    let first = agent(due, &parts, &summary);
    let ended = crash_after(first.session().send("go").await.unwrap(), polls).await;
    drop(first);
    let record = parts.0.load(&id()).await.unwrap();
    let Left { is_over, has_boundary, is_stowed } = left(record.as_ref());
    let (asked, ran) = (summary.requests().len(), parts.1.all().len());
    if ended.is_none() && !is_over {
        let end = agent(due, &parts, &summary).say("go").await.1;
        assert_eq!((end.reason, end.text.as_str()), (TerminalReason::Done, "ok"), "after {polls} polls");
    }
    let unknown = crate::support::talk(&agent(due, &parts, &summary).history().await);
    let lost = unknown.matches("Outcome unknown").count();
    let mut counted = counted(&parts.0, &parts.1).await;
    assert!(counted.puts <= 1 && counted.puts + lost >= 1, "{due:?} after {polls} polls: {counted:?}");
    counted.puts = 1;
    assert_eq!(&counted, expect, "{due:?} after {polls} polls");
    let again = summary.requests().len() - asked;
    assert!(
        asked <= 1 && again <= usize::from(!has_boundary),
        "{due:?} after {polls} polls: {asked}+{again}"
    );
    let stowed = parts.1.all()[ran..].iter().filter(|effect| effect.starts_with("stow")).count();
    assert!(stowed <= usize::from(!is_stowed), "{due:?} after {polls} polls: it ran again");
    ended.is_some()
}

#[test]
fn dropped_once_anywhere_there_is_one_boundary() {
    for due in [Due::Counted, Due::Refused] {
        block(async {
            let expect = whole(due).await;
            let ended = async |polls| check_once(due, polls, &expect).await;
            let mut polls = 0;
            while !ended(polls).await {
                polls += 1;
                assert!(polls < 500, "the turn never ended");
            }
            assert!(polls > 25, "the points before the end were tried: {polls}");
        });
    }
}

/// Drops a run again and again until it is over, a little further each time.
async fn check_strides(due: Due, stride: usize, expect: &Counted) {
    let (parts, summary) = ((Points::default(), Effects::default()), summariser());
    for tries in 0.. {
        let agent = agent(due, &parts, &summary);
        let ended = crash_after(agent.session().send("go").await.unwrap(), stride + tries).await;
        drop(agent);
        if ended.is_some() || left(parts.0.load(&id()).await.unwrap().as_ref()).is_over {
            break;
        }
    }
    let mut counted = counted(&parts.0, &parts.1).await;
    assert!(counted.puts <= 1, "stride {stride}: {counted:?}");
    counted.puts = 1;
    assert_eq!(&counted, expect, "{due:?} stride {stride}");
}

#[test]
fn dropped_again_and_again_there_is_one_boundary() {
    for due in [Due::Counted, Due::Refused] {
        block(async {
            let expect = whole(due).await;
            for stride in 1..12 {
                check_strides(due, stride, &expect).await;
            }
        });
    }
}
