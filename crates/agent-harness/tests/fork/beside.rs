//! A run beside a session: what it sends, what it leaves behind, and what it may do.

use std::sync::{Arc, Mutex, OnceLock};

use agent_core::{EntryId, SessionId, TerminalReason, UserMessage};
use agent_harness::{ForkedRun, Harness, HarnessConfig, HarnessError, Session};
use agent_providers::{ApiKey, HttpConfig, HttpModel};
use agent_store::{MemoryStore, Store};
use agent_testkit::{Pick, Reply, SimOptions, SimProvider, Source};
use agent_tools::{Access, PermissionMode, PermissionRule, ToolConfig, ToolSet};

use crate::support::{Agent, Effects, block, id, system_of, tools};

fn asks(text: &str) -> ForkedRun {
    ForkedRun::new(UserMessage::text(text).unwrap())
}

/// An agent with a long system prompt, on a simulated provider with the inventor's cache rules.
fn on_the_wire(sim: &SimProvider, effects: &Effects) -> (Arc<MemoryStore>, Session) {
    let model = HttpModel::new(HttpConfig {
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: "claude-opus-5-5".into(),
        ..HttpConfig::default()
    });
    let store = Arc::new(MemoryStore::new());
    let mut config = HarnessConfig::new(Arc::new(model.unwrap()), store.clone());
    config.tools = tools(effects);
    config.permissions.mode = PermissionMode::Bypass;
    let long: &'static str = Box::leak("Mind the tide tables of the harbour. ".repeat(900).into_boxed_str());
    config.prompt = system_of(&[long]);
    (store, Harness::new(config).session(id()))
}

fn without_marks(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

async fn picture(store: &impl Store) -> String {
    let record = store.load(&id()).await.unwrap();
    let (events, list) = (store.events(&id(), 0).await.unwrap(), store.sessions().await.unwrap());
    format!("{record:#?}\n{events:#?}\n{list:#?}\n{:?}", store.usage(&id()).await.unwrap())
}

#[test]
fn its_first_request_is_read_from_the_cache() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let look = |what: &str| Reply::tool("look", format!(r#"{{"what":"{what}"}}"#));
        let script = vec![
            look("the quay"),
            look("the crane"),
            Reply::text("All is well at the quay."),
            Reply::text("They looked at the quay."),
            Reply::text("Good night."),
        ];
        let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
        let sim = SimProvider::start_with(Source::Script(script.into()), options).unwrap();
        let (store, session) = on_the_wire(&sim, &Effects::default());
        session.send("Look around.").await.unwrap().finish().await.unwrap();
        let before = picture(&*store).await;

        let end = session.fork_run(asks("Say in one sentence what was done.")).await.unwrap();
        assert_eq!((end.text.as_str(), end.steps), ("They looked at the quay.", 1));
        assert_eq!(picture(&*store).await, before, "the session is as it was");

        let usages: Vec<_> = sim.all_served().iter().filter_map(|served| served.usage.clone()).collect();
        let parent = usages[2].total_input();
        let share = end.usage.cache_read as f64 / parent as f64;
        assert!(share >= 0.95, "{share}: {} of {parent} tokens, {:?}", end.usage.cache_read, end.usage);
        assert_eq!(end.usage.cache_read, usages[3].cache_read);

        session.send("Good night.").await.unwrap().finish().await.unwrap();
        let requests = sim.requests();
        let (forked, next) = (without_marks(&requests[3].body), without_marks(&requests[4].body));
        let point = next.find("Good night.").unwrap();
        assert_eq!(forked[..point], next[..point], "byte for byte up to what is said behind it");
        assert!(forked[point..].starts_with("Say in one sentence"), "{}", &forked[point..]);
        let tail = |body: &str| body[body.rfind("]").unwrap()..].to_owned();
        assert_eq!(tail(&forked), tail(&next), "and with the same settings");
        assert!(sim.refusals().is_empty(), "{:?}", sim.refusals());
    });
}

#[test]
fn only_what_a_rule_allows_runs() {
    let put = |what: &str| Reply::tool("put", format!(r#"{{"what":"{what}"}}"#));
    // How the agent is allowed what it does itself, what the run is allowed, and what it did.
    let check = |mode: PermissionMode, own: &[PermissionRule], allow: &[&str]| {
        block(async {
            let mut agent = Agent::new(vec![
                Reply::text("Hello."),
                put("x"),
                Reply::tool("look", r#"{"what":"y"}"#),
                Reply::text("Done."),
            ]);
            let mut config: HarnessConfig = agent.harness.config().clone();
            config.permissions.mode = mode;
            config.permissions.rules = own.to_vec();
            agent.harness = Harness::new(config);
            agent.say("hi").await;
            let allow = allow.iter().map(|pattern| pattern.parse().unwrap()).collect();
            let run = ForkedRun { allow, max_steps: 5, ..asks("put x") };
            let end = agent.session().fork_run(run).await.unwrap();
            assert_eq!((end.text.as_str(), end.steps), ("Done.", 3), "{end:?}");
            let last = agent.model.requests().pop().unwrap();
            let saw = String::from_utf8_lossy(&last).contains("saw y");
            format!("put: {:?}, saw: {saw}", agent.effects.all())
        })
    };
    let deny = || [PermissionRule::deny("put".parse().unwrap())];
    let allow = || [PermissionRule::allow("put".parse().unwrap())];
    insta::assert_snapshot!(check(PermissionMode::Bypass, &[], &[]), @"put: [], saw: false");
    insta::assert_snapshot!(check(PermissionMode::Bypass, &allow(), &["look"]), @"put: [], saw: true");
    insta::assert_snapshot!(check(PermissionMode::Default, &[], &["put", "look"]), @r#"put: ["x"], saw: true"#);
    insta::assert_snapshot!(check(PermissionMode::Plan, &[], &["put"]), @"put: [], saw: false");
    insta::assert_snapshot!(check(PermissionMode::Bypass, &deny(), &["put"]), @"put: [], saw: false");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Command {
    command: String,
}

/// An agent with a shell that runs nothing and says what it would have run.
fn with_shell(replies: Vec<Reply>) -> Agent {
    let mut agent = Agent::new(replies);
    let ran = agent.effects.clone();
    let bash = ToolConfig::new("bash", "Runs.", Access::Execute, move |_, input: Command| {
        ran.add(&input.command);
        async move { Ok("ran".to_owned()) }
    });
    let bash = bash.subject(|input: Command| agent_tools::Subject::Command(input.command)).build().unwrap();
    let mut config = agent.harness.config().clone();
    config.tools =
        ToolSet::builder().extend(tools(&agent.effects).iter().cloned()).with(bash).freeze().unwrap();
    agent.harness = Harness::new(config);
    agent
}

#[test]
fn calls_that_only_read_run_and_the_model_is_told_what_may() {
    let check = |run: ForkedRun| {
        block(async {
            let bash = |command: &str| Reply::tool("bash", format!(r#"{{"command":"{command}"}}"#));
            let look = Reply::tool("look", r#"{"what":"y"}"#);
            let put = Reply::tool("put", r#"{"what":"x"}"#);
            let replies = vec![
                Reply::text("Hello."),
                bash("ls src"),
                bash("rm x; ls"),
                look,
                put,
                Reply::text("Done."),
            ];
            let agent = with_shell(replies);
            agent.say("hi").await;
            let end = agent.session().fork_run(ForkedRun { max_steps: 6, ..run }).await.unwrap();
            assert_eq!((end.text.as_str(), end.steps), ("Done.", 5), "{end:?}");
            let last = String::from_utf8(agent.model.requests().pop().unwrap().to_vec()).unwrap();
            let told = last.split('`').skip(1).step_by(2).collect::<Vec<_>>();
            let refusals: Vec<&str> = last
                .match_indices("was not run: ")
                .map(|(at, _)| last[at..].split('"').next().unwrap())
                .collect();
            format!(
                "{:?}\nlooked: {}\n{}\n{}",
                agent.effects.all(),
                last.contains("saw y"),
                told.join(" "),
                refusals.join("\n")
            )
        })
    };
    insta::assert_snapshot!(check(ForkedRun { reads: true, ..asks("look") }), @r#"
    ["ls src"]
    looked: true
    bash put
    was not run: only these calls may run here: calls that only read. Do not repeat the call; use those, or answer with what you know.
    was not run: only these calls may run here: calls that only read. Do not repeat the call; use those, or answer with what you know.
    "#);
    let refusal = agent_core::Text::new("only `put` may be called here, to keep what was learnt.");
    let allow = || vec!["put".parse().unwrap()];
    insta::assert_snapshot!(check(ForkedRun { allow: allow(), refusal, ..asks("put") }), @r#"
    ["x"]
    looked: false
    bash put bash put look put
    was not run: only `put` may be called here, to keep what was learnt.
    was not run: only `put` may be called here, to keep what was learnt.
    was not run: only `put` may be called here, to keep what was learnt.
    "#);
    insta::assert_snapshot!(check(ForkedRun { allow: allow(), reads: true, ..asks("put") }), @r#"
    ["ls src", "x"]
    looked: true
    bash put
    was not run: only these calls may run here: `put`, calls that only read. Do not repeat the call; use those, or answer with what you know.
    "#);
    insta::assert_snapshot!(check(asks("answer")), @"
    []
    looked: false
    bash bash look put
    was not run: no tool may be used here. Answer in words, with what you know.
    was not run: no tool may be used here. Answer in words, with what you know.
    was not run: no tool may be used here. Answer in words, with what you know.
    was not run: no tool may be used here. Answer in words, with what you know.
    ");
}

#[test]
fn another_model_stays_whatever_the_agent_chooses() {
    block(async {
        let agent = Agent::new(vec![Reply::text("Hello."), Reply::text("Not me.")]);
        let own: Arc<dyn agent_core::LanguageModel> = Arc::new(agent.model.clone());
        let chosen = own.clone();
        let mut config = agent.harness.config().clone();
        config.pipeline = config.pipeline.then(agent_prepare::stage_fn("chooses", move |_| {
            agent_prepare::Verdict::Pass(agent_prepare::Overrides {
                model: Some(chosen.clone()),
                ..Default::default()
            })
        }));
        config.prepare_call = Some(Arc::new(Chooses(own)));
        let session = Harness::new(config).session(id());
        session.send("hi").await.unwrap().finish().await.unwrap();
        let cheap = agent_testkit::ScriptedModel::new(vec![Reply::text("In short: hello.")]);
        let model: Arc<dyn agent_core::LanguageModel> = Arc::new(cheap.clone());
        let end = session.fork_run(ForkedRun { model: Some(model), ..asks("sum up") }).await.unwrap();
        assert_eq!((end.text.as_str(), cheap.requests().len()), ("In short: hello.", 1));
        assert_eq!(agent.model.requests().len(), 1);
    });
}

/// Chooses a model for each turn.
#[derive(Debug)]
struct Chooses(Arc<dyn agent_core::LanguageModel>);

#[async_trait::async_trait]
impl agent_harness::PrepareCall for Chooses {
    async fn prepare_call(
        &self,
        _: &agent_harness::CallCx<'_>,
    ) -> Result<agent_harness::CallChanges, agent_harness::SourceError> {
        Ok(agent_harness::CallChanges { model: Some(self.0.clone()), ..Default::default() })
    }
}

#[test]
fn it_ends_after_its_steps_and_when_it_is_stopped() {
    block(async {
        let look = || Reply::tool("look", r#"{"what":"y"}"#);
        let agent = Agent::new(vec![Reply::text("Hello."), look(), look(), look()]);
        agent.say("hi").await;
        let run = ForkedRun { max_steps: 2, ..asks("look for ever") };
        let end = agent.session().fork_run(run).await.unwrap();
        assert_eq!((end.steps, end.reason), (2, TerminalReason::MaxSteps));
        let run = asks("look");
        run.cancel.cancel();
        let end = agent.session().fork_run(run).await.unwrap();
        assert_eq!((end.steps, end.reason), (0, TerminalReason::Aborted));
    });
}

/// What a tool was told when it asked the session for what a forked run may not.
type Refusals = Arc<Mutex<Vec<String>>>;

async fn tries(session: &Session) -> Vec<String> {
    let other = SessionId::new("other").unwrap();
    let errors: [Option<HarnessError>; 3] = [
        session.fork_run(asks("again")).await.err(),
        session.fork(EntryId::at(0), other).await.err(),
        session.compact().await.err(),
    ];
    errors
        .into_iter()
        .map(|error| error.map_or("it was done".to_owned(), |error| error.to_string()))
        .collect()
}

#[test]
fn a_forked_run_cannot_fork_or_compact() {
    block(async {
        let (session, refusals) = (Arc::new(OnceLock::<Session>::new()), Refusals::default());
        let (inner, told) = (session.clone(), refusals.clone());
        let recurse =
            ToolConfig::new("recurse", "Forks.", Access::Read, move |_, _: crate::fork::Nothing| {
                let (session, told) = (inner.clone(), told.clone());
                async move {
                    let errors = tries(session.get().unwrap()).await;
                    told.lock().unwrap().extend(errors);
                    Ok("tried".to_owned())
                }
            });
        let agent =
            Agent::new(vec![Reply::text("Hello."), Reply::tool("recurse", "{}"), Reply::text("It cannot.")]);
        let mut config = agent.harness.config().clone();
        config.tools = ToolSet::builder().with(recurse.build().unwrap()).freeze().unwrap();
        session.set(Harness::new(config).session(id())).unwrap();
        let session = session.get().unwrap();
        session.send("hi").await.unwrap().finish().await.unwrap();
        let allow = vec!["recurse".parse().unwrap()];
        let end = session.fork_run(ForkedRun { allow, max_steps: 3, ..asks("fork") }).await.unwrap();
        assert_eq!(end.text, "It cannot.");
        let told = refusals.lock().unwrap().clone();
        assert_eq!(told.len(), 3);
        assert!(told.iter().all(|error| error.contains("forked off")), "{told:?}");
        session.fork(EntryId::at(0), SessionId::new("other").unwrap()).await.unwrap();
    });
}
