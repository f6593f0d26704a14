//! Limits, tasks and pauses end to end: what the model is sent, what is stored, and how the turn ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use agent_core::{ModelProfile, Prices, TerminalReason, ToolChoice, Usage};
use agent_harness::{Clock, Harness, HarnessConfig, TurnEnd};
use agent_prepare::{Choose, Pipeline};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{FINAL_OUTPUT_TOOL, ToolSet, final_output};
use agent_turn::{
    Mode, StopConditionExt, Task, consecutive_failures, continue_when, cost_budget, no_progress, step_count,
    token_budget, wall_clock,
};

use crate::support::{Agent, Effects, Points, block, crash_after, id, talk, tools};

/// A clock that goes on by one second each time it is read.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1_000, Ordering::SeqCst)
    }
}

fn look(what: &str) -> Reply {
    Reply::tool("look", format!(r#"{{"what":"{what}"}}"#)).costing(Usage {
        input: 100,
        output: 10,
        ..Usage::default()
    })
}

/// An agent with all conditions but what `change` makes of it.
fn agent(replies: Vec<Reply>, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    agent_of("scripted", replies, change)
}

/// The same with a model of this provider.
fn agent_of(provider: &str, replies: Vec<Reply>, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    let profile = ModelProfile {
        prices: Some(Prices {
            input: 1_000.0,
            output: 0.0,
            cache_read: 0.0,
            cache_write_5m: 0.0,
            cache_write_1h: 0.0,
            as_of: "2026-11-30".into(),
        }),
        forced_tool_choice: true,
        ..ModelProfile::conservative(provider, "scripted")
    };
    let model = ScriptedModel::new(replies).by_history().with_profile(profile);
    let mut agent = Agent::with(model, Points::default(), Effects::default());
    let mut config = agent.harness.config().clone();
    change(&mut config);
    agent.harness = Harness::new(config);
    agent
}

/// The choice of tools in each request.
fn choices(agent: &Agent) -> Vec<String> {
    let of = |body: &[u8]| {
        let body: serde_json::Value = serde_json::from_slice(body).unwrap();
        body["tool_choice"].to_string()
    };
    agent.model.requests().iter().map(|body| of(body)).collect()
}

/// Whether each request begins with the bytes of the one before it, as far as its messages go.
fn assert_prefix_stays(agent: &Agent) {
    let messages = |body: &[u8]| {
        let text = String::from_utf8(body.to_vec()).unwrap();
        text.split("\n],\n\"settings\"").next().unwrap().to_owned()
    };
    let sent: Vec<String> = agent.model.requests().iter().map(|body| messages(body)).collect();
    for pair in sent.windows(2) {
        let common = pair[0].trim_end().trim_end_matches(|end| "]}".contains(end));
        assert!(pair[1].starts_with(common), "{}\n---\n{}", pair[0], pair[1]);
    }
}

/// Says it; what the turn ended by is told in its event too.
fn say(agent: &Agent) -> TurnEnd {
    block(async {
        let (events, end) = agent.say("go").await;
        let told = events.iter().find_map(|event| {
            let agent_core::EventBody::TurnCompleted { stopped_by, .. } = &event.body else { return None };
            Some(stopped_by.clone())
        });
        assert_eq!(told.unwrap(), end.stopped_by);
        end
    })
}

#[test]
fn the_last_step_is_announced_and_has_no_tools() {
    let agent = agent(vec![look("a"), look("b"), Reply::text("Half is done.")], |config| {
        config.stop = Arc::new(step_count(3));
    });
    let end = say(&agent);
    assert_eq!((end.reason, end.text.as_str(), end.steps), (TerminalReason::MaxSteps, "Half is done.", 3));
    assert_eq!(end.stopped_by.as_deref(), Some("step_count(3)"));
    insta::assert_snapshot!(talk(&block(agent.history())), @"
    user: 1
    step: look -> saw a
    step: look -> saw b
    note: This is your last step: the limit step_count(3) is reached. Call no more tools. Say what was done, what was found and what is left to do.
    step:
    ");
    assert_eq!(choices(&agent), [r#""auto""#, r#""auto""#, r#""none""#]);
}

/// Another choice of tools has this provider read the conversation anew, so the note alone asks for words; unless a tool is
/// forced, which would leave no room for them.
#[test]
fn the_choice_stays_where_a_change_costs_the_cache() {
    let check = |pipeline: Pipeline, expect: [&str; 2]| {
        let agent = agent_of("anthropic", vec![look("a"), Reply::text("Half.")], |config| {
            config.stop = Arc::new(step_count(2));
            config.pipeline = pipeline;
        });
        assert_eq!(say(&agent).reason, TerminalReason::MaxSteps);
        assert_eq!(choices(&agent), expect);
        assert!(talk(&block(agent.history())).contains("note: This is your last step"));
    };
    check(Pipeline::standard(), [r#""auto""#, r#""auto""#]);
    let forced = Pipeline::standard().then(Choose::from_step(0, ToolChoice::Required));
    check(forced, [r#""required""#, r#""none""#]);
}

#[test]
fn budgets_end_a_turn_with_words() {
    let check = |name: &str, stop: Arc<dyn agent_turn::StopCondition>| {
        let replies = vec![look("a"), look("b"), look("c"), Reply::text("So far.")];
        let agent = agent(replies, |config| {
            config.stop = stop;
            config.clock = Arc::new(Ticking::default());
        });
        let end = say(&agent);
        assert_eq!((end.reason, end.text.as_str()), (TerminalReason::BudgetExhausted, "So far."), "{name}");
        assert_eq!(end.stopped_by.as_deref(), Some(name));
    };
    check("token_budget(300)", Arc::new(step_count(40).or(token_budget(300))));
    check("cost_budget(0.3)", Arc::new(step_count(40).or(cost_budget(0.3))));
    // A clock that is read a few times a step, and so passes this before the third step is over.
    let replies = vec![look("a"), Reply::text("So far.")];
    let agent = agent(replies, |config| {
        config.stop = Arc::new(step_count(40).or(wall_clock(Duration::from_secs(1))));
        config.clock = Arc::new(Ticking::default());
    });
    let end = say(&agent);
    assert_eq!(end.stopped_by.as_deref(), Some("wall_clock(1s)"));
}

#[test]
fn circles_are_told_first_and_failures_open_the_circuit() {
    let replies = (0..5).map(|_| look("a")).collect();
    let agent_in_circles = agent(replies, |config| config.stop = Arc::new(step_count(9).or(no_progress())));
    let end = say(&agent_in_circles);
    assert_eq!((end.reason, end.steps), (TerminalReason::NoProgress, 5));
    let notes = talk(&block(agent_in_circles.history()));
    assert_eq!(notes.matches("note: Your last calls repeat").count(), 1, "{notes}");
    let replies = (0..3).map(|n| Reply::tool("look", format!(r#"{{"wrong":{n}}}"#))).collect();
    let agent = agent(replies, |config| config.stop = Arc::new(step_count(9).or(consecutive_failures(3))));
    let end = say(&agent);
    assert_eq!(
        (end.reason, end.stopped_by.as_deref()),
        (TerminalReason::CircuitOpen, Some("consecutive_failures(3)"))
    );
}

/// A provider tool that never resolves pauses for ever; the limit holds.
#[test]
fn a_pause_goes_on_until_the_limit() {
    let paused = |text: &str| Reply::text(text).stopping("pause_turn");
    let ends = agent(vec![paused("one"), paused("two"), Reply::text("three")], |_| {});
    assert_eq!((say(&ends).reason, ends.model.requests().len()), (TerminalReason::Done, 3));
    let replies = (0..9).map(|n| paused(&n.to_string())).collect();
    let never = agent(replies, |config| config.stop = Arc::new(step_count(4)));
    let end = say(&never);
    assert_eq!((end.reason, end.steps), (TerminalReason::MaxSteps, 4));
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Report {
    #[expect(dead_code, reason = "only checked")]
    failing: u32,
}

fn with_output(config: &mut HarnessConfig) {
    let tools = tools(&Effects::default());
    config.tools =
        ToolSet::builder().extend(tools.iter().cloned()).with(final_output::<Report>()).freeze().unwrap();
    config.mode = Mode::Task(Task { output_tool: Some(FINAL_OUTPUT_TOOL.into()), ..Task::default() });
}

#[test]
fn the_final_output_is_asked_for_checked_and_handed_over() {
    let deliver = |json: &str| Reply::tool(FINAL_OUTPUT_TOOL, json.to_owned());
    let replies = vec![
        look("a"),
        Reply::text("Two fail."),
        deliver(r#"{"failing":"two"}"#),
        deliver(r#"{ "failing": 2 }"#).call("look", r#"{"what":"b"}"#),
    ];
    let delivered = agent(replies, with_output);
    let end = say(&delivered);
    assert_eq!((end.reason, end.steps), (TerminalReason::Completed, 4));
    assert_eq!(end.output.unwrap().get(), r#"{ "failing": 2 }"#, "as the model wrote it");
    let choices = choices(&delivered);
    assert!(choices[2].contains("final_output"), "{choices:?}");
    assert_eq!((&*choices[1], &*choices[3]), (r#""auto""#, r#""auto""#));

    let replies = (0..3).map(|_| Reply::text("Two fail.")).collect();
    let never = agent(replies, with_output);
    let end = say(&never);
    assert_eq!((end.reason, end.output), (TerminalReason::Stopped("no_final_output".into()), None));
}

#[test]
fn a_nudge_is_a_note_and_survives_a_crash() {
    let nudging = || {
        let hook = continue_when(|step| (step.text() != "End.").then(|| "Go on.".to_owned()));
        let replies = vec![look("a"), Reply::text("Soon."), Reply::text("End.")];
        agent(replies, |config| {
            config.mode = Mode::Task(Task { continue_hook: Some(Arc::new(hook)), ..Task::default() });
        })
    };
    let whole = nudging();
    assert_eq!(say(&whole).text, "End.");
    assert_prefix_stays(&whole);
    let expect = talk(&block(whole.history()));
    assert_eq!(expect.matches("note: Go on.").count(), 1, "{expect}");
    for polls in 0..60 {
        let agent = nudging();
        let talked = block(async {
            let session = agent.session();
            let ended = crash_after(session.send("go").await.unwrap(), polls).await;
            drop(session);
            let stored = agent.store.load(&id()).await.unwrap();
            let is_over = stored.is_some_and(|it| it.checkpoint.turn.is_none() && !it.entries.is_empty());
            if ended.is_none() && !is_over {
                agent.harness.session(id()).send("go").await.unwrap().finish().await.unwrap();
            }
            talk(&agent.history().await)
        });
        assert_eq!(talked, expect, "stopped after {polls} polls");
    }
}
