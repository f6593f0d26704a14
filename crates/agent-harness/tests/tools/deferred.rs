//! Deferred tools: found by a search, called through `call_tool` or by their own name, and judged as themselves.

use std::sync::Arc;

use agent_builtins::deferred;
use agent_core::{Entry, LanguageModel, ModelProfile, ToolOutput};
use agent_harness::{Harness, HarnessConfig};
use agent_prepare::{Narrow, Pipeline};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Before, HookCx, Pattern, PermissionMode, PermissionRule, ToolSet, before_tool};

use super::{results, taken_up};
use crate::support::{Agent, Effects, Keeping, Points, block, crash_after, talk, tools};

/// `look` stands in the list; everything else that the tests have is deferred.
fn deferring(config: &mut HarnessConfig) {
    let (listed, rest): (Vec<_>, Vec<_>) =
        config.tools.iter().cloned().partition(|tool| tool.card().name() == "look");
    config.tools = ToolSet::builder().extend(listed).extend(deferred(rest)).freeze().unwrap();
}

fn agent(replies: Vec<Reply>, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    on(replies, Points::default(), change)
}

fn on(replies: Vec<Reply>, store: Points, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    taken_up(replies, store, |config, _| {
        deferring(config);
        change(config);
    })
}

const PUT: &str = r#"{"name":"put","input":{"what":"a"}}"#;

fn put() -> Reply {
    Reply::tool("call_tool", PUT)
}

/// A turn of one step with this call: what had an effect, and what the model reads.
fn check(call: Reply, change: impl FnOnce(&mut HarnessConfig)) -> String {
    block(async {
        let agent = agent(vec![call, Reply::text("ok")], change);
        let (_, end) = agent.say("go").await;
        assert_eq!(end.text, "ok");
        let said = talk(&agent.history().await);
        format!("{:?} {}", agent.effects.all(), said.lines().nth(1).unwrap())
    })
}

#[test]
fn a_found_tool_is_called_and_the_history_keeps_what_was_written() {
    block(async {
        let replies = vec![Reply::tool("tool_search", r#"{"query":"puts"}"#), put(), Reply::text("ok")];
        let agent = agent(replies, |_| {});
        agent.say("go").await;
        assert_eq!(agent.effects.all(), ["a"]);
        let history = agent.history().await;
        let outputs = results(&history);
        assert!(outputs[0].plain().starts_with("put\nPuts.\nInput: {"), "{outputs:?}");
        assert_eq!(outputs[1], ToolOutput::text("put a"));
        let Entry::Step(step) = &history.entries()[2] else { panic!("a step") };
        let call = step.pairs().next().unwrap().0;
        assert_eq!((call.name.as_str(), call.input.as_str()), ("call_tool", PUT));
    });
    assert_eq!(check(Reply::tool("put", r#"{"what":"b"}"#), |_| {}), r#"["b"] step: put -> put b"#);
}

#[test]
fn what_names_no_call_is_taught() {
    let called = |input: &str| check(Reply::tool("call_tool", input), |_| {});
    insta::assert_snapshot!(called(r#"{"name":"putt","input":{}}"#), @"[] step: call_tool -> There is no tool called `putt`. Nothing was done. Did you mean `put`? Names are exact: search for the tool first, and call it by the name that the search gives. Always there: look, tool_search, call_tool.");
    insta::assert_snapshot!(called(r#"{"name":"call_tool","input":{"name":"put","input":{}}}"#), @"[] step: call_tool -> `call_tool` was told to call `call_tool`, through which tools are called and nothing else. Nothing was done. Give the name of the tool that does the work.");
    insta::assert_snapshot!(called(r#"{"input":{}}"#), @r#"[] step: call_tool -> The input of `call_tool` does not fit: missing field `name` at line 1 column 12. Nothing was done. Call it again with {"name": "NAME", "input": {…}}: the exact name that tool_search gave, and an object as the schema of that tool asks for it."#);
    insta::assert_snapshot!(called(r#"{"name":"put","input":{"wat":1}}"#), @"[] step: call_tool -> The input of `put` does not fit: at `.`: missing field `what` at line 1 column 9. Call it again with: what (required)");
    insta::assert_snapshot!(called(r#"{"name":"boom","input":{"what":"a"}}"#), @"[] step: call_tool -> `boom` broke down (the wheel came off). Do not repeat the call; find another way.");
}

#[test]
fn rules_and_hooks_are_those_of_the_tool_inside() {
    let denies = |pattern: &str| {
        let pattern = pattern.parse::<Pattern>().unwrap();
        check(put(), move |config| config.permissions.rules = vec![PermissionRule::deny(pattern)])
    };
    insta::assert_snapshot!(denies(r#"put(*"a"*)"#), @r#"[] step: call_tool -> `put` was not run: a permission rule of this session refuses it because of `{"what":"a"}`. Do not call it again; reach the goal with other tools, or tell the user what you need and why."#);
    assert_eq!(denies(r#"put(*"b"*)"#), r#"["a"] step: call_tool -> put a"#);
    assert_eq!(denies("look"), r#"["a"] step: call_tool -> put a"#);
    insta::assert_snapshot!(denies("call_tool"), @"[] step: call_tool -> `call_tool` was not run: a permission rule of this session refuses it. Do not call it again; reach the goal with other tools, or tell the user what you need and why.");
    assert!(denies("call_*").starts_with("[] step: call_tool -> `call_tool` was not run"));
    assert!(denies(r#"call_tool(*"put"*)"#).starts_with("[] step: call_tool -> `call_tool` was not run"));
    assert_eq!(denies(r#"call_tool(*"pay"*)"#), r#"["a"] step: call_tool -> put a"#);
    let asks = check(put(), |config| config.permissions.mode = PermissionMode::Default);
    assert!(asks.starts_with("[] step: call_tool -> `put` was not run"), "{asks}");
    let hooked = |pattern: &str| {
        let pattern = pattern.parse::<Pattern>().unwrap();
        check(put(), |config| {
            let blocks = |cx: &HookCx<'_>, input: &agent_core::RawJson| {
                Before::block(format!("{} {input} is not for you.", cx.tool))
            };
            config.tool_hooks = vec![Arc::new(before_tool("guard", pattern, blocks))];
        })
    };
    insta::assert_snapshot!(hooked("put"), @r#"[] step: call_tool -> `put` was not run: the hook `guard` blocks it. put {"what":"a"} is not for you."#);
    assert_eq!(hooked("call_tool"), r#"["a"] step: call_tool -> put a"#);
}

#[test]
fn the_third_refusal_counts_however_it_was_written() {
    block(async {
        let spaced = r#"{ "input":{"what":"a"},"name":"put" }"#;
        let calls = put().call("call_tool", spaced).call("put", r#"{"what":"a"}"#);
        let agent = agent(vec![calls, Reply::text("ok")], |config| {
            config.permissions.mode = PermissionMode::Default;
        });
        agent.say("go").await;
        let outputs = results(&agent.history().await);
        assert!(!outputs[1].plain().contains("stop asking"), "{outputs:?}");
        assert!(outputs[2].plain().contains("refused 3 times in this turn: stop asking"), "{outputs:?}");
    });
}

#[test]
fn narrowing_names_the_tool_inside() {
    let narrowed = |names: &[&str]| {
        let stage = Narrow::to(names.iter().copied());
        check(put(), |config| config.pipeline = Pipeline::standard().then(stage))
    };
    insta::assert_snapshot!(narrowed(&["look"]), @"[] step: call_tool -> Not run: `put` is not active in this step. Active now: `look`. Use one of these, or go on without a tool.");
    assert_eq!(narrowed(&["put"]), r#"["a"] step: call_tool -> put a"#);
}

#[test]
fn a_call_that_may_have_run_is_not_run_again() {
    block(async {
        let mut unknown = 0;
        for polls in 0..60 {
            let replies = || vec![put(), Reply::text("ok")];
            let first = on(replies(), Points::default(), |_| {});
            let (store, effects) = (first.store.clone(), first.effects.clone());
            let ended = crash_after(first.session().send("go").await.unwrap(), polls).await;
            drop(first);
            if ended.is_some() {
                continue;
            }
            let second = on(replies(), store, |_| {});
            second.say("go").await;
            let ran = effects.all().len() + second.effects.all().len();
            assert!(ran <= 1, "after {polls} polls it ran {ran} times");
            let said = results(&second.history().await)[0].plain();
            unknown += usize::from(said.starts_with("Outcome unknown"));
        }
        assert!(unknown > 0, "no crash fell into the call");
    });
}

/// The bodies of a turn in which a tool is searched for and called, as the model's profile allows.
fn bodies(deferred_tools: bool) -> Vec<String> {
    block(async {
        let call = if deferred_tools { Reply::tool("put", r#"{"what":"a"}"#) } else { put() };
        let replies = vec![Reply::tool("tool_search", r#"{"query":"puts"}"#), call, Reply::text("ok")];
        let scripted = ScriptedModel::new(replies).by_history();
        let profile = ModelProfile { deferred_tools, ..scripted.profile().clone() };
        let model = Keeping::new(scripted.with_profile(profile));
        let effects = Effects::default();
        let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(Points::default()));
        config.permissions.mode = PermissionMode::Bypass;
        config.tools = tools(&effects);
        deferring(&mut config);
        let session = Harness::new(config).session(crate::support::id());
        crate::support::watch(session.send("go").await.unwrap()).await;
        assert_eq!(effects.all(), ["a"]);
        let text = |body: &agent_core::Body| String::from_utf8(body.to_vec()).unwrap();
        model.bodies().iter().map(text).collect()
    })
}

#[test]
fn the_list_of_tools_never_moves() {
    for deferred_tools in [true, false] {
        let bodies = bodies(deferred_tools);
        assert_eq!(bodies.len(), 3);
        let list = |body: &str| body.split_once(r#""messages""#).unwrap().0.to_owned();
        assert!(bodies.iter().all(|body| list(body) == list(&bodies[0])), "{bodies:?}");
        let list = list(&bodies[0]);
        assert_eq!(list.contains(r#""name":"call_tool""#), !deferred_tools, "{list}");
        assert_eq!(list.contains(r#""name":"put""#), deferred_tools, "{list}");
        let is_found = bodies[1].contains(r#"{"type":"tool_reference","tool_name":"put"}"#);
        assert_eq!(is_found, deferred_tools, "{}", bodies[1]);
        assert_eq!(bodies[1].contains("Puts.\\nInput: "), !deferred_tools, "{}", bodies[1]);
    }
}
