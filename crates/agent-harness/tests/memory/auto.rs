//! Memories that are extracted behind turns: one run at a time, nothing twice, nothing lost, nothing else touched.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{EntryId, EventBody, ModelProfile, Prices, TerminalReason};
use agent_harness::{
    AfterTurn, AfterTurnCx, ChoiceReason, Drained, ExtractionOutcome, ExtractionSkip, ExtractionStatus,
    Harness, HarnessConfig, MemoryExtractor, SourceError,
};
use agent_memory::{AutoFile, AutoRecord, Extraction, MemoryDir, MemoryFiles, extraction_denial};
use agent_providers::{ApiKey, HttpConfig, HttpModel};
use agent_store::MemoryStore;
use agent_testkit::{Failure, Pick, Reply, ScriptedModel, SimOptions, SimProvider, Source};
use agent_tools::{Access, PermissionMode, Subject, ToolConfig, ToolSet};
use async_trait::async_trait;

use crate::support::{Agent, Effects, Points, block, id, system_of, tools};

/// An agent, and a cheaper model that extracts its memories.
struct Desk {
    agent: Agent,
    cheap: ScriptedModel,
    extractor: Arc<MemoryExtractor>,
    memories: Arc<MemoryDir>,
}

fn priced(name: &str, input: f64) -> ModelProfile {
    let prices = Prices {
        input,
        output: input,
        cache_read: input,
        cache_write_5m: input,
        cache_write_1h: input,
        as_of: "2026-11-30".into(),
    };
    ModelProfile { prices: Some(prices), ..ModelProfile::conservative("scripted", name) }
}

impl Desk {
    fn new(data: &Path, store: Points, replies: Vec<Reply>, cheap: ScriptedModel) -> Self {
        let model = ScriptedModel::new(replies).with_profile(priced("dear", 9.0));
        let agent = Agent::with(model, store, Effects::default());
        let cheap = cheap.with_profile(priced("cheap", 1.0));
        let memories = Arc::new(MemoryDir::open(&data.join("memory")).unwrap());
        let extractor = Arc::new(MemoryExtractor::new(memories.clone(), data).or_by(Arc::new(cheap.clone())));
        let desk = Self { agent, cheap, extractor: extractor.clone(), memories };
        desk.with(|config| config.after_turn = vec![extractor])
    }

    fn with(mut self, change: impl FnOnce(&mut HarnessConfig)) -> Self {
        let mut config = self.agent.harness.config().clone();
        let memory = agent_builtins::memory(MemoryFiles::new(self.memories.clone()));
        let own =
            config.tools.iter().filter(|tool| tool.card().name() != "memory").cloned().collect::<Vec<_>>();
        let all = ToolSet::builder().extend(own).with(memory);
        let all =
            if config.tools.get("complete").is_none() { all.with(agent_builtins::complete()) } else { all };
        config.tools = all.freeze().unwrap();
        change(&mut config);
        self.agent.harness = Harness::new(config);
        self
    }

    /// A turn, and a second of the work behind it.
    async fn say(&self, text: &str) {
        self.agent.say(text).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    async fn drain(&self) -> Drained {
        self.agent.harness.drain(Duration::from_secs(600)).await
    }

    fn status(&self) -> ExtractionStatus {
        self.extractor.status().get()
    }

    fn why(&self) -> Option<ExtractionSkip> {
        self.status().skipped.map(|skipped| skipped.why)
    }

    fn asked(&self) -> Vec<String> {
        self.cheap.requests().iter().map(|body| String::from_utf8_lossy(body).into_owned()).collect()
    }
}

fn texts(words: &[&str]) -> Vec<Reply> {
    words.iter().map(|words| Reply::text(*words)).collect()
}

fn create(path: &str) -> Reply {
    let name = path.rsplit('/').next().unwrap().trim_end_matches(".md");
    let text = format!("---\\nname: {name}\\ndescription: Likes tea\\ntype: user\\n---\\nTea.\\n");
    Reply::tool("memory", format!(r#"{{"command":"create","path":"{path}","file_text":"{text}"}}"#))
}

fn kept(data: &Path) -> AutoRecord {
    AutoFile::new(data, &id()).read().unwrap()
}

fn range(from: usize, to: usize, is_trailing: bool) -> Extraction {
    Extraction { from: EntryId::at(from), to: EntryId::at(to), is_trailing }
}

#[test]
fn a_turn_is_looked_at_and_what_it_taught_is_kept() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let cheap = ScriptedModel::new(vec![create("/memories/user_tea.md"), Reply::text("Kept.")]);
        let desk = Desk::new(data.path(), Points::default(), texts(&["Hello."]), cheap);
        let mut watch = desk.extractor.status().watch();
        desk.agent.say("I like tea").await;
        let began = watch.changed().await.unwrap();
        assert_eq!(began.running[&id()].extraction, range(0, 2, false));
        assert_eq!(desk.drain().await, Drained { finished: 1, stopped: 0 });

        let last = desk.status().last.unwrap();
        assert_eq!(
            (last.outcome, last.steps, last.extraction),
            (ExtractionOutcome::Done, 2, range(0, 2, false))
        );
        assert_eq!(last.written, ["/memories/user_tea.md"]);
        assert_eq!(
            (last.choice.model.as_str(), last.choice.why),
            ("scripted/cheap", ChoiceReason::CheaperAnew)
        );
        assert!(desk.status().running.is_empty());
        assert_eq!(desk.memories.list().unwrap().memories.len(), 1);
        let record = kept(data.path());
        assert_eq!((record.runs, record.state.cursor), (1, EntryId::at(2)));
        assert_eq!(record.usage["scripted/cheap"].output, last.usage.output);
        assert_eq!(desk.agent.harness.config().process.spent()["scripted/cheap"].requests, 2);
        assert_eq!(desk.agent.history().await.len(), 2, "nothing of it enters the session");
        assert!(desk.asked()[0].contains("all of it is new"));
    });
}

#[test]
fn of_turns_that_end_meanwhile_the_last_one_is_looked_at_in_one_more_run() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let cheap =
            ScriptedModel::new(vec![Reply::text("Nothing.").slowly(100_000), Reply::text("Nothing.")]);
        let desk = Desk::new(data.path(), Points::default(), texts(&["1", "2", "3", "4"]), cheap);
        desk.say("a").await;
        for text in ["b", "c", "d"] {
            desk.say(text).await;
            assert_eq!(desk.why(), Some(ExtractionSkip::Pending));
            assert_eq!(desk.cheap.requests().len(), 1, "one run at a time");
        }
        assert_eq!(desk.status().running[&id()].extraction, range(0, 2, false));
        assert_eq!(desk.drain().await.stopped, 0);
        assert_eq!(desk.status().last.unwrap().extraction, range(2, 8, true));
        assert_eq!((desk.status().runs, desk.asked().len()), (2, 2));
        assert!(desk.asked()[1].contains("begins with the user's message \\\"b\\\""), "{}", desk.asked()[1]);
        assert_eq!(kept(data.path()).state.cursor, EntryId::at(8));
    });
}

#[test]
fn who_writes_memories_itself_is_not_followed() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let replies = vec![create("/memories/user_tea.md"), Reply::text("Kept."), Reply::text("Hello.")];
        let cheap = ScriptedModel::new(texts(&["Nothing."]));
        let desk = Desk::new(data.path(), Points::default(), replies, cheap);
        desk.say("remember that I like tea").await;
        assert_eq!((desk.why(), desk.asked().len()), (Some(ExtractionSkip::WroteItself), 0));
        assert_eq!(kept(data.path()).state.cursor, EntryId::at(3), "its entries are seen to");
        desk.say("hello").await;
        assert_eq!(desk.status().last.unwrap().extraction, range(3, 5, false));
    });
}

/// What was written while a run was at work is known when that ends.
#[test]
fn who_writes_memories_itself_meanwhile_is_not_followed() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let replies = vec![Reply::text("1"), create("/memories/user_tea.md"), Reply::text("2")];
        let cheap = ScriptedModel::new(vec![Reply::text("Nothing.").slowly(100_000)]);
        let desk = Desk::new(data.path(), Points::default(), replies, cheap);
        desk.say("a").await;
        desk.say("remember that I like tea").await;
        assert_eq!(desk.drain().await.stopped, 0);
        assert_eq!((desk.why(), desk.asked().len()), (Some(ExtractionSkip::WroteItself), 1));
    });
}

/// Is told of each turn twice.
#[derive(Debug)]
struct Twice(Arc<MemoryExtractor>);

#[async_trait]
impl AfterTurn for Twice {
    fn name(&self) -> &'static str {
        "twice"
    }

    async fn run(&self, cx: &AfterTurnCx) -> Result<(), SourceError> {
        self.0.run(cx).await?;
        self.0.run(cx).await
    }
}

#[test]
fn what_was_looked_at_is_not_looked_at_again() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let cheap = ScriptedModel::new(texts(&["Nothing."]));
        let desk = Desk::new(data.path(), Points::default(), texts(&["Hello."]), cheap);
        let twice = Arc::new(Twice(desk.extractor.clone()));
        let desk = desk.with(|config| config.after_turn = vec![twice]);
        desk.say("hello").await;
        assert_eq!((desk.why(), desk.asked().len()), (Some(ExtractionSkip::NothingNew), 1));
    });
}

/// Whoever else is at the session, in this process or another, looks at the same entries.
#[test]
fn one_of_all_processes_is_at_a_session() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let cheap = ScriptedModel::new(texts(&["Nothing."]));
        let desk = Desk::new(data.path(), Points::default(), texts(&["Hello.", "Hello."]), cheap);
        let elsewhere = AutoFile::new(data.path(), &id()).claim().unwrap();
        desk.say("hello").await;
        assert_eq!((desk.why(), desk.asked().len()), (Some(ExtractionSkip::Elsewhere), 0));
        drop(elsewhere);
        desk.say("hello").await;
        assert_eq!(desk.status().last.unwrap().extraction, range(0, 4, false));
        assert!(AutoFile::new(data.path(), &id()).claim().unwrap().is_some(), "it let the session go");
    });
}

#[test]
fn of_what_is_damaged_all_is_looked_at_again() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let cheap = ScriptedModel::new(texts(&["Nothing.", "Nothing."]));
        let desk = Desk::new(data.path(), Points::default(), texts(&["Hello.", "Hello."]), cheap);
        desk.say("hello").await;
        assert_eq!(kept(data.path()).state.cursor, EntryId::at(2));
        let folder = data.path().join("tmp").read_dir().unwrap().next().unwrap().unwrap().path();
        #[expect(clippy::disallowed_methods, reason = "the test breaks the file")]
        std::fs::write(folder.join("auto-memory.json"), "{").unwrap();
        desk.say("hello").await;
        assert_eq!(desk.status().last.unwrap().extraction, range(0, 4, false));
        assert_eq!(kept(data.path()).state.cursor, EntryId::at(4));
    });
}

#[test]
fn what_did_not_come_to_rest_is_looked_at_with_the_next_turn() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let done = Reply::tool("complete", r#"{"summary":"All done.","outcome":"done"}"#);
        let cheap = ScriptedModel::new(texts(&["Nothing."]));
        let desk = Desk::new(data.path(), Points::default(), vec![done, Reply::text("Hello.")], cheap);
        let (_, end) = desk.agent.say("do it").await;
        assert_eq!(end.reason, TerminalReason::Completed);
        desk.drain().await;
        assert_eq!((desk.why(), desk.asked().len()), (Some(ExtractionSkip::NotAtRest), 0));
        desk.say("hello").await;
        assert_eq!(desk.status().last.unwrap().extraction, range(0, 4, false));
    });
}

#[test]
fn it_ends_after_five_steps() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let cheap =
            ScriptedModel::new((0..9).map(|_| Reply::tool("look", r#"{"what":"y"}"#)).collect::<Vec<_>>());
        let desk = Desk::new(data.path(), Points::default(), texts(&["Hello."]), cheap);
        desk.say("hello").await;
        let last = desk.status().last.unwrap();
        assert_eq!((last.outcome, last.steps, desk.asked().len()), (ExtractionOutcome::StepLimit, 5, 5));
        assert_eq!(kept(data.path()).state.cursor, EntryId::at(2), "it had its steps");
    });
}

#[test]
fn it_can_write_memories_and_nothing_else() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let outside =
            ["/session/notes.md", "/memories/../outside.md", "/etc/outside.md", "memories/outside.md"];
        let calls = outside.iter().fold(Reply::tool("put", r#"{"what":"x"}"#), |reply, path| {
            let input = format!(r#"{{"command":"create","path":"{path}","file_text":"x"}}"#);
            reply.call("memory", input)
        });
        let cheap = ScriptedModel::new(vec![
            calls.call("look", r#"{"what":"y"}"#).call("memory", r#"{"command":"view","path":"/memories"}"#),
            Reply::text("I may not."),
        ]);
        let desk = Desk::new(data.path(), Points::default(), texts(&["Hello."]), cheap);
        desk.say("hello").await;
        assert_eq!(desk.status().last.unwrap().written, Vec::<String>::new());
        assert_eq!(desk.agent.effects.all(), Vec::<String>::new());
        let asked = desk.asked().pop().unwrap();
        // `/memories/../outside.md` is below `/memories` for the rule, and no path for the tool.
        let (refused, told) =
            (asked.matches(&extraction_denial()).count(), asked.contains("is no path of a memory"));
        assert_eq!((refused + usize::from(told), told), (5, true), "{asked}");
        assert!(asked.contains("saw y"), "what only reads runs");
        let left: Vec<_> = walk(data.path());
        assert_eq!(left, ["auto-memory.json"]);
    });
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Command {
    command: String,
}

#[test]
fn of_commands_those_run_that_only_read() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let bash = |command: &str| format!(r#"{{"command":"{command}"}}"#);
        let calls =
            Reply::tool("bash", bash("ls src")).call("bash", bash("ls > x")).call("bash", bash("rm x"));
        let cheap = ScriptedModel::new(vec![calls, Reply::text("Nothing.")]);
        let desk = Desk::new(data.path(), Points::default(), texts(&["Hello."]), cheap);
        let ran = desk.agent.effects.clone();
        let shell = ToolConfig::new("bash", "Runs.", Access::Execute, move |_, input: Command| {
            ran.add(&input.command);
            async move { Ok("ran".to_owned()) }
        });
        let shell = shell.subject(|input: Command| Subject::Command(input.command)).build().unwrap();
        let desk = desk.with(|config| {
            let all = ToolSet::builder().extend(config.tools.iter().cloned()).with(shell);
            config.tools = all.freeze().unwrap();
        });
        desk.say("hello").await;
        assert_eq!(desk.agent.effects.all(), ["ls src"]);
        assert_eq!(desk.asked().pop().unwrap().matches(&extraction_denial()).count(), 2);
    });
}

/// The files below a folder that somebody wrote, by their names.
fn walk(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            names.extend(walk(&entry.path()));
        } else if !name.starts_with('.') {
            names.push(name);
        }
    }
    names
}

#[test]
fn one_that_never_answers_delays_nobody_and_loses_nothing() {
    block(async {
        let (data, store) = (tempfile::tempdir().unwrap(), Points::default());
        let cheap = ScriptedModel::new(texts(&["Nothing."])).failing(0, Failure::Hangs { events: 0 });
        let desk = Desk::new(data.path(), store.clone(), texts(&["1", "2"]), cheap);
        let began = tokio::time::Instant::now();
        for text in ["I like tea", "and cake"] {
            let (events, _) = desk.agent.say(text).await;
            assert!(matches!(events.last().unwrap().body, EventBody::SessionWaiting {}));
            assert_eq!(began.elapsed(), Duration::ZERO, "of virtual time");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(desk.cheap.requests().len(), 1);
        let drained = desk.agent.harness.drain(Duration::from_secs(3)).await;
        assert_eq!(drained, Drained { finished: 1, stopped: 1 });
        assert_eq!(desk.status().last.unwrap().outcome, ExtractionOutcome::Stopped);
        assert_eq!(kept(data.path()).state.cursor, EntryId::at(0));

        // Another process looks at all of it.
        let cheap = ScriptedModel::new(texts(&["Nothing.", "Nothing."]));
        let next = Desk::new(data.path(), store, texts(&["3", "4"]), cheap);
        next.say("hello").await;
        assert_eq!(next.status().last.unwrap().extraction, range(0, 6, false));
        assert!(next.asked()[0].contains("I like tea"));
        next.say("bye").await;
        assert_eq!(next.status().last.unwrap().extraction, range(6, 8, false), "and at nothing twice");
    });
}

#[test]
fn three_failures_in_a_row_pause_it() {
    block(async {
        let (data, store) = (tempfile::tempdir().unwrap(), Points::default());
        let desk = Desk::new(
            data.path(),
            store.clone(),
            texts(&["1", "2", "3", "4"]),
            ScriptedModel::new(Vec::<Reply>::new()),
        );
        for (number, text) in (1..).zip(["a", "b", "c"]) {
            assert!(!desk.status().is_paused());
            desk.say(text).await;
            let status = desk.status();
            assert_eq!(status.failures, number);
            assert!(matches!(status.last.unwrap().outcome, ExtractionOutcome::Failed(_)));
        }
        assert!(desk.status().is_paused());
        let asked = desk.asked().len();
        desk.say("d").await;
        assert_eq!((desk.why(), desk.asked().len()), (Some(ExtractionSkip::Paused), asked));
        let next = Desk::new(data.path(), store, texts(&["5"]), ScriptedModel::new(texts(&["Nothing."])));
        next.say("e").await;
        assert_eq!(next.status().last.unwrap().extraction, range(0, 10, false), "nothing is lost");
    });
}

#[test]
fn without_the_tool_nothing_is_asked() {
    block(async {
        let data = tempfile::tempdir().unwrap();
        let desk = Desk::new(
            data.path(),
            Points::default(),
            texts(&["Hello."]),
            ScriptedModel::new(texts(&["No."])),
        );
        let desk = desk.with(|config| config.tools = tools(&Effects::default()));
        desk.say("hello").await;
        assert_eq!((desk.status(), desk.asked().len()), (ExtractionStatus::default(), 0));
    });
}

#[test]
fn it_reads_the_prefix_of_the_session_from_the_cache() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let data = tempfile::tempdir().unwrap();
        let script = vec![Reply::text("Hello."), create("/memories/user_tea.md"), Reply::text("Kept.")];
        let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
        let sim = SimProvider::start_with(Source::Script(script.into()), options).unwrap();
        let model = HttpModel::new(HttpConfig {
            base_url: Some(sim.base_url()),
            api_key: ApiKey::new("any"),
            model: "claude-opus-5-5".into(),
            ..HttpConfig::default()
        });
        let mut config = HarnessConfig::new(Arc::new(model.unwrap()), Arc::new(MemoryStore::new()));
        let memories = Arc::new(MemoryDir::open(&data.path().join("memory")).unwrap());
        let memory = agent_builtins::memory(MemoryFiles::new(memories.clone()));
        config.tools = ToolSet::builder().with(memory).freeze().unwrap();
        config.permissions.mode = PermissionMode::Default;
        let long: &'static str =
            Box::leak("Mind the tide tables of the harbour. ".repeat(900).into_boxed_str());
        config.prompt = system_of(&[long]);
        // A model at a lower price is no bargain for a prefix that is cached.
        let cheap = ScriptedModel::new(Vec::<Reply>::new()).with_profile(priced("cheap", 3.0));
        let extractor = Arc::new(MemoryExtractor::new(memories, data.path()).or_by(Arc::new(cheap.clone())));
        config.after_turn = vec![extractor.clone()];
        let harness = Harness::new(config);
        harness.session(id()).send("I like tea.").await.unwrap().finish().await.unwrap();
        assert_eq!(harness.drain(Duration::from_secs(60)).await.stopped, 0);

        let last = extractor.status().get().last.unwrap();
        assert_eq!((&last.outcome, last.written.len()), (&ExtractionOutcome::Done, 1), "{last:?}");
        assert_eq!((last.choice.why, cheap.requests().len()), (ChoiceReason::CachedPrefix, 0));
        let usages: Vec<_> = sim.all_served().iter().filter_map(|served| served.usage.clone()).collect();
        let share = usages[1].cache_read as f64 / usages[0].total_input() as f64;
        assert!(share >= 0.95, "{share}: {usages:?}");
        assert!(last.cache_read_share().unwrap() >= 0.9, "{last:?}");
        assert!(sim.refusals().is_empty(), "{:?}", sim.refusals());
        println!("cache read of the parent's prefix: {share}; of the run: {:?}", last.cache_read_share());
    });
}
