//! Every call gets its result, whatever happens to it.

mod approval;
mod batch;
mod cases;
mod classify;
mod deferred;
mod hooks;
mod hosted;
mod paths;
mod refused;
mod shorten;
mod state;

use std::sync::Arc;

use agent_core::{
    ContentPart, Entry, Event, EventBody, FilePart, FileSource, History, JournalRecord, Text, ToolOutput,
};
use agent_harness::{Answer, Asker, AskerError, Harness, HarnessConfig};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, AskRequest, Concurrency, Permissions, ToolConfig, ToolSet};
use async_trait::async_trait;

use crate::support::{Agent, Effects, Points, block, id, log, talk, tools, watch};

#[test]
fn calls_that_go_wrong_are_answered() {
    let check = |tool: &str, input: &str| {
        block(async {
            let agent =
                Agent::new(vec![Reply::tool(tool, input).call("look", r#"{"what":"b"}"#), Reply::text("ok")]);
            let (events, _) = agent.say("go").await;
            let results =
                events.iter().filter(|event| log(std::slice::from_ref(event)).contains("action.result"));
            assert_eq!(results.count(), 2, "every call has its pair of events");
            talk(&agent.history().await).lines().nth(1).unwrap().to_owned()
        })
    };
    insta::assert_snapshot!(check("boom", r#"{"what":"a"}"#), @"step: boom -> `boom` broke down (the wheel came off). Do not repeat the call; find another way.; look -> saw b");
    insta::assert_snapshot!(check("quick", r#"{"what":"a"}"#), @"step: quick -> The tool was stopped after 2 s. Do less in one call, or ask for more time if the tool has a timeout field.; look -> saw b");
    insta::assert_snapshot!(check("late", r#"{"what":"a"}"#), @"step: late -> ended after all; look -> saw b");
    insta::assert_snapshot!(check("lok", r#"{"what":"a"}"#), @"step: lok -> There is no tool called `lok`. Nothing was done. Call one of: look, put, boom, slow, stuck, quick, late, flood.; look -> saw b");
    insta::assert_snapshot!(check("look", r#"{"wat":"a"}"#), @"step: look -> The input of `look` does not fit: at `.`: missing field `what` at line 1 column 11. Call it again with: what (required); look -> saw b");
    insta::assert_snapshot!(check("look", r#"{"what""#), @"step: look -> The input of `look` is not JSON (EOF while parsing an object at line 1 column 7). Nothing was done. Call it again with one JSON object.; look -> saw b");
}

#[test]
fn a_call_cut_by_the_output_limit_is_not_run() {
    block(async {
        let cut = Reply::tool("put", r#"{"what":"a"#).stopping("max_tokens");
        let agent = Agent::new(vec![cut, Reply::text("Shorter, then.")]);
        let (_, end) = agent.say("go").await;
        assert_eq!(end.text, "Shorter, then.", "the model is told and goes on");
        assert!(agent.effects.all().is_empty());
        insta::assert_snapshot!(talk(&agent.history().await).lines().nth(1).unwrap(), @"step: put -> The call of `put` was cut off by the output limit after 10 bytes of input. Nothing was done. Call it again with less input: split the work into several calls.");
    });
}

#[test]
fn too_much_output_is_kept_elsewhere() {
    block(async {
        let agent = Agent::new(vec![Reply::tool("flood", r#"{"what":"x"}"#), Reply::text("ok")]);
        agent.say("go").await;
        let history = agent.history().await;
        let Entry::Step(step) = &history.entries()[1] else { panic!("a step") };
        let shown = step.results()[0].output.plain();
        insta::assert_snapshot!(shown, @r#"
        x 0
        x 1
        x 2
        x 3
        [… 2862 bytes left out; read on with read_file, path "blob:25a95a621c18a7d498b3bfb45da055228abe87d1a10eee39b974e2e2e6ed715c" …]
        x 498
        x 499
        "#);
        let hash = shown.split("blob:").nth(1).unwrap().split('"').next().unwrap();
        let hash = agent_core::BlobHash::parse(hash).unwrap();
        let whole = agent.store.get_blob(&hash).await.unwrap().unwrap();
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 500, "nothing is lost");
    });
}

/// An agent with the tools of the tests and other parts; everything is allowed when nothing else is said.
fn agent(replies: Vec<Reply>, change: impl FnOnce(&mut HarnessConfig, &Effects)) -> Agent {
    taken_up(replies, Points::default(), change)
}

/// The same on a store that has sessions.
fn taken_up(replies: Vec<Reply>, store: Points, change: impl FnOnce(&mut HarnessConfig, &Effects)) -> Agent {
    let agent = Agent::with(ScriptedModel::new(replies).by_history(), store, Effects::default());
    let mut config = agent.harness.config().clone();
    change(&mut config, &agent.effects);
    Agent { harness: Harness::new(config), ..agent }
}

/// The results of all steps, in order.
fn results(history: &History) -> Vec<ToolOutput> {
    let steps = history.entries().iter().filter_map(|entry| match entry {
        Entry::Step(step) => Some(step),
        Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
    });
    steps.flat_map(|step| step.results().iter().map(|result| result.output.clone())).collect()
}

/// What the user of the program is told of calls.
fn diagnosed(events: &[Event]) -> Vec<String> {
    let lines = events.iter().filter_map(|event| {
        let EventBody::RequestDiagnostic(diagnostic) = &event.body else { return None };
        Some(format!("{}: {}", diagnostic.what, diagnostic.why))
    });
    lines.collect()
}

/// Results that are journaled and not committed yet.
async fn journaled(store: &Points) -> Vec<ToolOutput> {
    let record = store.load(&id()).await.unwrap();
    let records = record.map(|record| record.journal).unwrap_or_default();
    let finished = records.into_iter().filter_map(|record| match record {
        JournalRecord::Finished { result, .. } => Some(result.output),
        JournalRecord::Response(_)
        | JournalRecord::Active(_)
        | JournalRecord::Started(_)
        | JournalRecord::Sent(_)
        | JournalRecord::Returned(_)
        | JournalRecord::Waits(_) => None,
    });
    finished.collect()
}

/// Answers with what was put in, and notes what was asked.
#[derive(Debug)]
struct Person(Effects, Answer);

#[async_trait]
impl Asker for Person {
    async fn ask(&self, request: &AskRequest) -> Result<Answer, AskerError> {
        self.0.add(format!("asked {}({})", request.tool(), request.subject()));
        Ok(self.1.clone())
    }
}

#[test]
fn a_person_decides() {
    let check = |answer: Answer| {
        block(async {
            let effects = Effects::default();
            let model = ScriptedModel::new(vec![Reply::tool("put", r#"{"what":"a"}"#), Reply::text("ok")]);
            let store = Points::default();
            let mut config = HarnessConfig::new(Arc::new(model), Arc::new(store.clone()));
            config.tools = tools(&effects);
            config.permissions = Permissions::default();
            config.asker = Arc::new(Person(effects.clone(), answer));
            let harness = Harness::new(config);
            watch(harness.session(id()).send("go").await.unwrap()).await;
            let record = store.load(&id()).await.unwrap().unwrap();
            let (history, _) = History::load(&record.entries).unwrap();
            let result = talk(&history).lines().nth(1).unwrap().to_owned();
            format!("{:?}\n{result}", effects.all())
        })
    };
    insta::assert_snapshot!(check(Answer::Allow), @r#"
    ["asked put({\"what\":\"a\"})", "a"]
    step: put -> put a
    "#);
    insta::assert_snapshot!(check(Answer::Deny(Some("not now".into()))), @r#"
    ["asked put({\"what\":\"a\"})"]
    step: put -> User denied `put`; it was not run. They say: "not now". Do not repeat the call; find another way or ask what they want.
    "#);
    insta::assert_snapshot!(check(Answer::Nobody), @r#"
    ["asked put({\"what\":\"a\"})"]
    step: put -> `put` was not run: it needs a person's permission and nobody can be asked in this session. Do not repeat the call; use tools that need none, or finish by telling the user which command to allow.
    "#);
}

/// Asks for ever.
#[derive(Debug)]
struct Silent(Effects);

#[async_trait]
impl Asker for Silent {
    async fn ask(&self, _request: &AskRequest) -> Result<Answer, AskerError> {
        self.0.add("asked");
        std::future::pending().await
    }
}

#[test]
fn nothing_begins_after_the_turn_was_stopped() {
    block(async {
        let effects = Effects::default();
        let reply = Reply::tool("look_on", "{}").call("launch", "{}");
        let store = Points::default();
        let mut config =
            HarnessConfig::new(Arc::new(ScriptedModel::new(vec![reply])), Arc::new(store.clone()));
        config.tools = both_parallel(&effects);
        config.asker = Arc::new(Silent(effects.clone()));
        let run = Harness::new(config).session(id()).send("go").await.unwrap();
        let (cancel, asked) = (run.cancel(), effects.clone());
        let (end, ()) = tokio::join!(run.finish(), async move {
            while asked.all().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        });
        assert_eq!(end.unwrap().reason, agent_core::TerminalReason::Aborted);
        assert_eq!(effects.all(), ["asked"], "the call that needed nobody did not begin either");
        let record = store.load(&id()).await.unwrap().unwrap();
        let (history, _) = History::load(&record.entries).unwrap();
        insta::assert_snapshot!(talk(&history).lines().nth(1).unwrap(), @"step: look_on -> Not run: the user stopped the turn before this call ran.; launch -> Not run: the user stopped the turn before anyone answered whether this call may run.");
    });
}

/// A reader and a program, which may run beside each other.
fn both_parallel(effects: &Effects) -> ToolSet {
    let tool = |name: &'static str, access| {
        let effects = effects.clone();
        ToolConfig::new(name, "Test.", access, move |_, _: serde_json::Value| {
            effects.add(name);
            async { Ok(String::new()) }
        })
        .concurrency(Concurrency::Parallel)
    };
    ToolSet::builder()
        .with(tool("look_on", Access::Read))
        .with(tool("launch", Access::Execute))
        .freeze()
        .unwrap()
}

#[test]
fn words_beside_files_are_capped_too() {
    block(async {
        let output = || {
            let file = FilePart {
                media_type: "image/png".into(),
                source: FileSource::Base64("aGk=".into()),
                name: None,
            };
            let words = Text::or("line\n".repeat(9_000), "");
            ToolOutput::Content(vec![ContentPart::Text(words), ContentPart::File(file)])
        };
        let tool =
            ToolConfig::new("shoot", "Test.", Access::Read, move |_, _: serde_json::Value| async move {
                Ok(output())
            });
        let store = Points::default();
        let replies = vec![Reply::tool("shoot", "{}"), Reply::text("ok")];
        let mut config = HarnessConfig::new(Arc::new(ScriptedModel::new(replies)), Arc::new(store.clone()));
        config.tools = ToolSet::builder().with(tool).freeze().unwrap();
        Harness::new(config).session(id()).send("go").await.unwrap().finish().await.unwrap();
        let record = store.load(&id()).await.unwrap().unwrap();
        let (history, _) = History::load(&record.entries).unwrap();
        let Entry::Step(step) = &history.entries()[1] else { panic!("a step") };
        let ToolOutput::Content(parts) = &step.results()[0].output else { panic!("content") };
        assert!(
            matches!(parts.as_slice(), [ContentPart::Text(text), ContentPart::File(_)] if text.as_str().len() < 60_000)
        );
    });
}
