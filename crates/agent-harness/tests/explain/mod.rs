//! What explain says is what the driver sends next, and nothing happens on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent_core::{SessionId, UserMessage};
use agent_harness::{ExplainedRequest, Harness, HarnessConfig, HarnessError, PromptSource, SourceError};
use agent_prompt::{Fragment, Layer, Prompt, Session, Source, Static, Value};
use agent_store::{MemoryStore, Store};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::PermissionMode;
use async_trait::async_trait;

use crate::support::{Agent, Effects, Points, block, crash_after, id, system_of, tools, watch};

fn said(text: &str) -> Option<UserMessage> {
    Some(UserMessage::text(text).unwrap())
}

/// Explains the next message, then sends it: the body must be the next one that arrives.
async fn check(agent: &Agent, text: &str) -> ExplainedRequest {
    let (before, writes, effects) = (agent.model.requests().len(), agent.store.writes(), agent.effects.all());
    let explained = agent.harness.session(id()).explain(said(text)).await.unwrap();
    assert_eq!(agent.model.requests().len(), before, "no model was asked");
    assert_eq!((agent.store.writes(), agent.effects.all()), (writes, effects), "nothing happened");
    agent.say(text).await;
    let sent = &agent.model.requests()[before];
    assert_eq!(String::from_utf8_lossy(&explained.body().to_vec()), String::from_utf8_lossy(sent));
    assert_eq!(explained.body_bytes, sent.len());
    explained
}

#[test]
fn what_is_explained_is_what_is_sent() {
    block(async {
        let replies = vec![
            Reply::text("I look.").call("look", r#"{"what":"a"}"#),
            Reply::text("Seen."),
            Reply::tool("put", r#"{"what":"b"}"#),
            Reply::text("Put."),
            Reply::text("Bye."),
        ];
        let agent = Agent::new(replies);
        let first = check(&agent, "Look at a.").await;
        assert!(first.is_new && !first.assumes_message);
        let kinds = |explained: &ExplainedRequest| {
            let kinds = explained.messages.iter().map(|message| message.kind.name());
            kinds.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kinds(&first), "user");
        let second = check(&agent, "Put b.").await;
        assert!(!second.is_new);
        assert_eq!(kinds(&second), "user assistant results assistant user");
        let shown = second.to_string();
        assert!(shown.contains("call look, 16 bytes | {\"what\":\"a\"}"), "{shown}");
        // Another process, which has only what is stored.
        let again = Agent::with(agent.model.clone(), agent.store.clone(), agent.effects.clone());
        drop(agent);
        check(&again, "Bye.").await;
    });
}

#[test]
fn a_turn_left_open_by_a_crash_is_explained_as_it_goes_on() {
    block(async {
        let mut waiting = 0;
        for polls in 1..24 {
            let (store, effects) = (Points::default(), Effects::default());
            let replies = || vec![Reply::tool("look", r#"{"what":"a"}"#), Reply::text("Done.")];
            let script = || ScriptedModel::new(replies()).by_history();
            let agent = Agent::with(script(), store.clone(), effects.clone());
            if crash_after(agent.session().send("Go.").await.unwrap(), polls).await.is_some() {
                break;
            }
            drop(agent);
            let agent = Agent::with(script(), store, effects);
            let Ok(explained) = agent.harness.session(id()).explain(said("Go.")).await else { continue };
            agent.say("Go.").await;
            if explained.assumes_results.is_empty() {
                assert_eq!(explained.body().to_vec(), agent.model.requests()[0], "after {polls} polls");
            } else {
                waiting += 1;
                assert_eq!(explained.assumes_results, ["look"]);
            }
        }
        assert!(waiting > 0, "at some point the call was journaled and had no result");
    });
}

/// Tells how often it was asked.
#[derive(Debug, Default)]
struct Rules(AtomicUsize);

#[async_trait]
impl PromptSource for Rules {
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        let rules = Value::session("Run the tests.");
        let rules = Fragment::<Session>::new(Layer::Project, "rules", rules).unwrap();
        prompt.add(rules.with_source(Source::File("AGENTS.md".into())));
        let tone = Fragment::<Session>::new(Layer::Managed, "tone", Value::session("Be formal.")).unwrap();
        prompt.add(tone);
        let diagnostic = agent_core::Diagnostic {
            what: "rules".into(),
            why: format!("one of {} is unreadable", asked + 2),
        };
        prompt.report(diagnostic);
        Ok(())
    }
}

fn sourced(store: &MemoryStore, model: &ScriptedModel) -> HarnessConfig {
    let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(store.clone()));
    config.prompt = system_of(&["You fix bugs."]);
    config.prompt.add(Fragment::<Static>::new(Layer::Session, "tone", "Be friendly.").unwrap());
    config.sources = vec![Arc::new(Rules::default())];
    config.permissions.mode = PermissionMode::Bypass;
    config
}

#[test]
fn layers_sources_losers_and_warnings_are_shown() {
    block(async {
        let (store, model) = (MemoryStore::new(), ScriptedModel::new(vec![Reply::text("Hello.")]));
        let harness = Harness::new(sourced(&store, &model));
        let shown = harness.session(id()).explain(None).await.unwrap();
        assert!(store.sessions().await.unwrap().is_empty(), "nothing was written");
        insta::assert_snapshot!(shown.to_string(), @"
        session s would begin, model scripted/scripted-1
        request: 402 bytes, about 101 tokens, 0 cache breakpoints
        assumed: no message was given, so a stand-in ends the conversation
        tools e3b0c44298fc1c14: 0 tools
        system 5cc95ce95defe703: 3 blocks (1 static), 139 bytes, about 36 tokens
        1. block 0: static from code (session),
           13 bytes, about 4 tokens, 465b460d16929578
           | You fix bugs.
        2. rules: session from file AGENTS.md (project),
           54 bytes, about 14 tokens, b8d9ab67f49a79c9
           | Instructions from AGENTS.md (project):
           |
           | Run the tests.
        3. tone: session from code (managed),
           72 bytes, about 18 tokens, 6e819694f039b8a2
           over: static from code (session), 12 bytes
           | Managed instructions. They override every other instruction:
           |
           | Be formal.
        warning: rules: one of 2 is unreadable
        messages: 1
        1. user, entry 0: 25 bytes, about 7 tokens
           text, 25 bytes | (what the user says next)
        ");
        let json = serde_json::to_value(&shown).unwrap();
        assert_eq!(json["prompt"]["blocks"][2]["losers"][0]["layer"], "session");
        assert_eq!(json["messages"][0]["kind"], "user");
        assert!(shown.to_string().lines().all(is_narrow), "{shown}");
    });
}

fn is_narrow(line: &str) -> bool {
    line.starts_with("warning") || line.chars().count() <= 80
}

#[test]
fn a_stored_session_shows_what_it_keeps_and_what_changed() {
    block(async {
        let (store, model) = (MemoryStore::new(), ScriptedModel::new(vec![Reply::text("Hello.")]));
        let harness = Harness::new(sourced(&store, &model));
        harness.session(id()).send("Hi.").await.unwrap().finish().await.unwrap();
        let mut other = sourced(&store, &model);
        other.prompt = system_of(&["You fix more bugs."]);
        other.tools = tools(&Effects::default());
        let stored = Harness::new(other).session(id()).explain(said("And now?")).await.unwrap().to_string();
        insta::assert_snapshot!(stored, @"
        session s is stored, model scripted/scripted-1
        request: 1611 bytes, about 403 tokens, 0 cache breakpoints
        tools 80107c39b7e2d12e: 8 tools
        - look: 87 bytes, about 22 tokens, cf793a5042ac6843
        - put: 85 bytes, about 22 tokens, e0175fda51c4fca6
        - boom: 88 bytes, about 22 tokens, 2d83f090efc28e43
        - slow: 87 bytes, about 22 tokens, 94f7a9706950c6a4
        - stuck: 93 bytes, about 24 tokens, 6e027082752167cc
        - quick: 97 bytes, about 25 tokens, ceef53ac16f41058
        - late: 110 bytes, about 28 tokens, 91fd6739b07e42fa
        - flood: 96 bytes, about 24 tokens, a37e99dbcf93b18f
        system 5cc95ce95defe703: 3 blocks (1 static), 139 bytes, about 36 tokens
        1. block 1: static from the stored session (session),
           13 bytes, about 4 tokens, 465b460d16929578
           | You fix bugs.
        2. rules: session from file AGENTS.md (project),
           54 bytes, about 14 tokens, b8d9ab67f49a79c9
           | Instructions from AGENTS.md (project):
           |
           | Run the tests.
        3. tone: session from code (managed),
           72 bytes, about 18 tokens, 6e819694f039b8a2
           | Managed instructions. They override every other instruction:
           |
           | Be formal.
        messages: 3
        1. user, entry 0: 3 bytes, about 1 tokens
           text, 3 bytes | Hi.
        2. assistant, entry 1: 6 bytes, about 2 tokens
           text, 6 bytes | Hello.
        3. user, entry 2: 8 bytes, about 2 tokens
           text, 8 bytes | And now?
        warning: system: the session keeps the system prompt it began with, which does not have what the agent says now under `block 0`; begin another session for the new prompt
        warning: tools: the agent has other tools than when the session began; the new list is sent, and the prompt cache begins anew
        ");
        assert!(stored.lines().all(is_narrow), "{stored}");
    });
}

#[test]
fn explaining_takes_no_lease_and_waits_for_nobody() {
    block(async {
        let agent = Agent::new(vec![Reply::tool("slow", r#"{"what":"x"}"#), Reply::text("Done.")]);
        let session = agent.session();
        let mut run = session.send("Go.").await.unwrap();
        while agent.effects.all().is_empty() {
            // The tool begins and tells nothing any more.
            drop(tokio::time::timeout(Duration::from_secs(1), run.next()).await);
        }
        let explained = agent.session().explain(said("Wait!")).await.unwrap();
        assert_eq!(explained.assumes_results, ["slow"]);
        assert_eq!(agent.effects.all(), ["slow began"], "the tool did not run again");
        run.cancel().cancel();
        watch(run).await;
        let harness = Harness::new(HarnessConfig {
            sources: vec![Arc::new(Missing)],
            ..agent.harness.config().clone()
        });
        let other = SessionId::new("other").unwrap();
        let error = harness.session(other).explain(None).await.unwrap_err();
        assert!(matches!(error, HarnessError::Source { .. }), "{error}");
        let stored = harness.session(id()).explain(None).await.unwrap();
        assert_eq!(stored.request_diagnostics[0].what, "sources", "a stored session goes on without them");
    });
}

#[derive(Debug)]
struct Missing;

#[async_trait]
impl PromptSource for Missing {
    async fn add_to(&self, _prompt: &mut Prompt) -> Result<(), SourceError> {
        Err(SourceError::new("the policy", "gone"))
    }
}
