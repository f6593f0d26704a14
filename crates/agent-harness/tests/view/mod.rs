//! The state of a session as it is shown: what each group says when, and what watching it costs nobody (requirement K3).

use std::sync::Arc;

use agent_core::{ModelError, ModelErrorKind, ReadExtent, ReadStamp};
use agent_harness::{Connection, Harness, HarnessConfig, SessionView, Watch};
use agent_testkit::{Failure, Reply, ScriptedModel};
use agent_tools::{Access, PermissionRule, ToolConfig, ToolSet};

use crate::support::{Agent, Effects, Points, block, tools, watch};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Path {
    path: String,
}

/// An agent with a todo list and a tool that stamps files as read, which may not `put`.
fn agent(replies: Vec<Reply>, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    let agent = Agent::with(ScriptedModel::new(replies).by_history(), Points::default(), Effects::default());
    let stamps = ToolConfig::new("stamps", "Reads.", Access::Read, |call, input: Path| async move {
        let stamp = ReadStamp { hash: "h".into(), len: 1, seen: ReadExtent::Full };
        call.cx.slots.update(|slots| slots.reads.insert(input.path, stamp));
        Ok(String::new())
    });
    let mut config = agent.harness.config().clone();
    let own = tools(&agent.effects);
    config.tools = ToolSet::builder()
        .extend(own.iter().cloned())
        .with(agent_builtins::todo())
        .with(stamps.build().unwrap())
        .freeze()
        .unwrap();
    config.permissions.rules = vec![PermissionRule::deny("put".parse().unwrap())];
    change(&mut config);
    Agent { harness: Harness::new(config), ..agent }
}

/// One line a group.
fn shown(view: &SessionView) -> String {
    let SessionView { model, permissions, todos, reads, connections, context, memory_path, inbox, .. } = view;
    let todos: Vec<&str> = todos.iter().map(|todo| todo.text.as_str()).collect();
    format!(
        "model {} {:?} {:?} {:?} {}\npermissions {} {} {}\ntodos {todos:?}\nreads {} {:?}\nconnections {connections:?}\ncontext {}\nmemory {memory_path:?}\ninbox {} {} {:?}",
        model.default,
        model.chosen,
        model.thinking,
        model.effort,
        model.fast,
        permissions.mode.name(),
        permissions.remembered,
        permissions.denied,
        reads.count(),
        reads.paths(),
        context.is_some(),
        inbox.has_unread,
        inbox.taken,
        inbox.requests.len(),
    )
}

fn todo(text: &str) -> Reply {
    Reply::tool("todo", format!(r#"{{"items":[{{"id":"1","text":"{text}","status":"pending"}}]}}"#))
}

fn script() -> Vec<Reply> {
    vec![
        todo("paint"),
        Reply::tool("put", r#"{"what":"x"}"#),
        Reply::tool("stamps", r#"{"path":"a.txt"}"#),
        Reply::text("Done."),
        Reply::text("Bye."),
    ]
}

#[test]
fn every_group_is_shown() {
    block(async {
        let agent = agent(script(), |config| {
            config.settings.effort = Some(agent_core::Effort::High);
            config.settings.fast = true;
        });
        let session = agent.session();
        let state = session.state();
        assert_eq!(state.get(), SessionView::default(), "nothing is known before it is taken up");
        session.send("go").await.unwrap().finish().await.unwrap();
        insta::assert_snapshot!(shown(&state.get()), @r#"
        model scripted/scripted-1 None None Some(High) true
        permissions bypass 0 1
        todos ["paint"]
        reads 1 ["a.txt"]
        connections {"model scripted/scripted-1": Up}
        context true
        memory None
        inbox false 0 0
        "#);
        assert_eq!(state.get().context, Some(session.context().await.unwrap()));
        session.send("bye").await.unwrap().finish().await.unwrap();
        let later = state.get();
        assert_eq!((later.permissions.denied, later.todos.len(), later.reads.count()), (0, 1, 1));
        assert!(Arc::ptr_eq(&later.todos, &state.get().todos), "what did not change is not copied");
    });
}

/// What a watcher of one group is told, in order.
async fn told<T: PartialEq>(mut watch: Watch<SessionView>, of: impl Fn(&SessionView) -> T) -> Vec<T> {
    let mut seen = vec![of(&watch.get())];
    while let Some(view) = watch.changed().await {
        let now = of(&view);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    seen
}

#[test]
fn groups_change_while_the_turn_runs() {
    block(async {
        let agent = agent(script(), |_| {});
        let session = agent.session();
        let of = |view: &SessionView| (view.todos.len(), view.permissions.denied, view.reads.count());
        let told = tokio::spawn(told(session.state(), of));
        watch(session.send("go").await.unwrap()).await;
        // Nobody is left who could change it.
        drop(session);
        assert_eq!(told.await.unwrap(), [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)]);
    });
}

#[test]
fn who_failed_and_who_answered() {
    block(async {
        let busy = Failure::Before(ModelError::new(ModelErrorKind::Overloaded, "it is busy"));
        let model = ScriptedModel::new(vec![Reply::text("Hello.")]).failing(0, busy);
        let retry = agent_harness::RetryPolicy::default();
        let agent = Agent::retrying(model, Points::default(), Effects::default(), retry);
        let session = agent.session();
        let told = tokio::spawn(told(session.state(), |view| view.connections.values().next().cloned()));
        watch(session.send("hi").await.unwrap()).await;
        drop(session);
        let failed = Connection::Failed("overloaded".to_owned());
        assert_eq!(told.await.unwrap(), [None, Some(failed), Some(Connection::Up)]);
    });
}

#[test]
fn a_question_that_waits_is_shown_and_a_session_taken_up_shows_what_it_has() {
    block(async {
        let first = agent(vec![todo("paint"), Reply::tool("put", r#"{"what":"x"}"#)], |config| {
            config.permissions.rules = vec![PermissionRule::ask("put".parse().unwrap())];
            config.asker = Arc::new(agent_harness::AskLater);
        });
        let session = first.session();
        session.send("go").await.unwrap().finish().await.unwrap();
        let asked: Vec<_> = session.requests().await.unwrap().into_iter().map(|request| request.id).collect();
        assert_eq!(session.state().get().inbox.requests[..], asked[..]);
        assert_eq!(asked.len(), 1);
        drop(session);
        let again = first.session();
        again.resume().await.unwrap().finish().await.unwrap();
        let state = again.state().get();
        assert_eq!((state.todos.len(), &state.inbox.requests[..]), (1, &asked[..]));
    });
}

/// What a process spends is counted by model, whoever asks for it, and not again by who takes a step up.
#[test]
fn the_process_counts_what_was_spent() {
    block(async {
        let agent = agent(script(), |_| {});
        let end = agent.say("go").await.1;
        let summary: Arc<dyn agent_core::LanguageModel> =
            Arc::new(ScriptedModel::new(vec![Reply::text("So.")]));
        let words = ["You sum up.", "All of it."].map(|words| agent_core::Text::new(words).unwrap());
        let cancel = agent_core::Cancel::new();
        let asked = agent.harness.ask_apart(&*summary, [&words[0], &words[1]], 100, &cancel).await;
        let (_, beside) = asked.unwrap().unwrap();
        let run = agent_harness::ForkedRun::new(agent_core::UserMessage::text("bye").unwrap());
        let fork = agent.session().fork_run(run).await.unwrap();
        let mut expect = end.usage.clone();
        expect += &beside;
        expect += &fork.usage;
        let spent = agent.harness.config().process.spent();
        let [one] = &spent.values().collect::<Vec<_>>()[..] else { panic!("one model: {spent:?}") };
        assert_eq!((one.requests, one.usage.output, one.usage.input), (6, expect.output, expect.input));
    });
}
