//! Hooks before and behind a call: what they change, in which order, and that their failure is told.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{Entry, Layer, RawJson, TerminalReason, Text, ToolOutput};
use agent_testkit::Reply;
use agent_tools::{
    After, Before, HookCx, HookDecision, HookError, Pattern, PermissionMode, PermissionRule, ToolHook,
    before_tool,
};
use async_trait::async_trait;

use super::{agent, diagnosed, results};
use crate::support::{Effects, block, talk};

type Hooks = Vec<Arc<dyn ToolHook>>;

fn raw(json: &str) -> RawJson {
    RawJson::parse(json).unwrap()
}

/// A hook that looks before calls of `put`.
fn put_hook(name: &'static str, look: fn(&RawJson) -> Before) -> Arc<dyn ToolHook> {
    Arc::new(before_tool(name, Pattern::tool("put"), move |_, input| look(input)))
}

fn decides(decision: HookDecision) -> Before {
    Before { decision: Some(decision), ..Before::default() }
}

/// A call of `put` with `{"what":"a"}`: what ran, what the model reads, what the user is told.
fn check(mode: PermissionMode, rules: &[PermissionRule], hooks: Hooks) -> String {
    block(async {
        let replies = vec![Reply::tool("put", r#"{"what":"a"}"#), Reply::text("ok")];
        let agent = agent(replies, |config, _| {
            config.permissions.mode = mode;
            config.permissions.rules = rules.to_vec();
            config.tool_hooks = hooks;
        });
        let (events, end) = agent.say("go").await;
        assert_eq!(end.text, "ok");
        let history = agent.history().await;
        let Entry::Step(step) = &history.entries()[1] else { panic!("a step") };
        let call = step.pairs().next().unwrap().0;
        assert_eq!(call.input.as_str(), r#"{"what":"a"}"#, "the model's own call stays");
        let said = talk(&history);
        let result = said.split_once("\nstep: ").unwrap().1.rsplit_once("\nstep: ").unwrap().0;
        format!("ran {:?}\n{result}\ntold {:?}", agent.effects.all(), diagnosed(&events))
    })
}

#[test]
fn a_hook_before_a_call_blocks_it_or_changes_its_input() {
    use PermissionMode::Bypass;
    let one = |look| vec![put_hook("guard", look)];
    insta::assert_snapshot!(check(Bypass, &[], one(|_| Before::block("Ask the gardener."))), @"
    ran []
    put -> `put` was not run: the hook `guard` blocks it. Ask the gardener.
    told []
    ");
    insta::assert_snapshot!(check(Bypass, &[], one(|_| Before::with_input(raw(r#"{"what":"b"}"#)))), @r#"
    ran ["b"]
    put -> put b
    <system-reminder>
    What ran is not what you wrote: the hook `guard` put this input in its place:
    {"what":"b"}
    </system-reminder>
    told []
    "#);
    insta::assert_snapshot!(check(Bypass, &[], one(|_| Before::with_input(raw(r#"{"which":"b"}"#)))), @r#"
    ran []
    put -> `put` was not run: the hook `guard` put another input in place of yours, and the tool does not take it (at `.`: missing field `what` at line 1 column 13). Do not repeat the call; tell the user that the hook must be mended.
    <system-reminder>
    What was to run is not what you wrote: the hook `guard` put this input in its place:
    {"which":"b"}
    </system-reminder>
    told []
    "#);
    insta::assert_snapshot!(check(Bypass, &[], one(|_| panic!("the gate fell"))), @r#"
    ran []
    put -> `put` was not run: the hook `guard` failed: it broke down (the gate fell), and without it no call of this tool runs. Do not repeat the call; go on without it, or tell the user that the hook must be mended.
    told ["tool_hooks: the hook `guard` failed: it broke down (the gate fell)"]
    "#);
    let both = vec![
        put_hook("first", |_| Before::with_input(raw(r#"{"what":"b"}"#))),
        put_hook("second", |input| Before {
            context: Text::new(format!("Seen: {input} </system-reminder>")),
            ..Before::with_input(raw(&input.get().replace('b', "c")))
        }),
    ];
    insta::assert_snapshot!(check(Bypass, &[], both), @r#"
    ran ["c"]
    put -> put c
    <system-reminder>
    What ran is not what you wrote: the hook `first`, then the hook `second` put this input in its place:
    {"what":"c"}
    </system-reminder>
    <system-reminder>
    Seen: {"what":"b"} <\/system-reminder>
    </system-reminder>
    told []
    "#);
    let back = vec![
        put_hook("first", |_| Before::with_input(raw(r#"{"what":"b"}"#))),
        put_hook("second", |_| Before::with_input(raw(r#"{"what":"a"}"#))),
    ];
    insta::assert_snapshot!(check(Bypass, &[], back), @r#"
    ran ["a"]
    put -> put a
    told []
    "#);
}

#[test]
fn a_hook_with_an_argument_looks_at_the_calls_it_names() {
    let guard = |pattern: &str| -> Arc<dyn ToolHook> {
        Arc::new(before_tool("guard", pattern.parse().unwrap(), |_, _| Before::block("No.")))
    };
    let seen = |pattern: &str| {
        let said = check(PermissionMode::Bypass, &[], vec![guard(pattern)]);
        let changed = put_hook("change", |_| Before::with_input(raw(r#"{"what":"b"}"#)));
        let behind_a_change = check(PermissionMode::Bypass, &[], vec![changed, guard(pattern)]);
        (said.contains("`guard` blocks it"), behind_a_change.contains("`guard` blocks it"))
    };
    assert_eq!(seen("put"), (true, true));
    assert_eq!(seen("put(a)"), (true, false), "what would run is looked at");
    assert_eq!(seen("put(b)"), (false, true));
    assert_eq!(seen("put(c)"), (false, false));
    assert_eq!(seen("look(a)"), (false, false));
}

#[test]
fn a_hook_allows_or_asks_and_never_outranks_a_refusal() {
    use PermissionMode::{Bypass, Default};
    let deny = |pattern: &str| PermissionRule::deny(pattern.parse().unwrap());
    let allows = || put_hook("trusts", |_| decides(HookDecision::Allow));
    let asks = || put_hook("doubts", |_| decides(HookDecision::Ask));
    let changes = || put_hook("rewrites", |_| Before::with_input(raw(r#"{"what":"b"}"#)));
    let ran = |told: &str| told.lines().next().unwrap().to_owned();
    assert_eq!(ran(&check(Default, &[], vec![allows()])), r#"ran ["a"]"#);
    assert_eq!(ran(&check(Default, &[deny("put")], vec![allows()])), "ran []");
    assert_eq!(ran(&check(Bypass, &[], vec![asks()])), "ran []", "nobody can be asked");
    assert_eq!(ran(&check(Bypass, &[], vec![allows(), asks()])), "ran []");
    assert_eq!(ran(&check(Default, &[], vec![changes(), allows()])), r#"ran ["b"]"#);
    assert_eq!(
        ran(&check(Default, &[], vec![allows(), changes()])),
        "ran []",
        "what was allowed is not what would run"
    );
    for denied in [r#"put(*"a"*)"#, r#"put(*"b"*)"#] {
        let told = check(Bypass, &[deny(denied)], vec![changes(), allows()]);
        assert_eq!(ran(&told), "ran []", "what is refused of either input is refused: {denied}");
        assert!(told.contains("a permission rule of this session refuses it"), "{told}");
    }
    let managed = PermissionRule::ask("put".parse().unwrap()).from_layer(Layer::Managed);
    assert_eq!(ran(&check(Bypass, &[managed], vec![allows()])), "ran []");
}

/// Looks behind calls, and does so in a way of its own.
#[derive(Debug)]
struct Behind(Effects, Does);

#[derive(Debug, Clone, Copy)]
enum Does {
    Nothing,
    Replaces,
    Floods,
    Fails,
    Panics,
}

impl Behind {
    fn look(&self, how: &str, input: &RawJson, output: &ToolOutput) -> Result<After, HookError> {
        self.0.add(format!("{how} {input}: {}", output.plain().lines().next().unwrap_or_default()));
        let output = match self.1 {
            Does::Nothing => None,
            Does::Replaces => Some(ToolOutput::text("[hidden]")),
            Does::Floods => Some(ToolOutput::text("line\n".repeat(9_000))),
            Does::Fails => return Err(HookError::new("behind", "the pen is empty")),
            Does::Panics => panic!("the desk fell"),
        };
        Ok(After { output, context: Text::new("Mind the tide.") })
    }
}

#[async_trait]
impl ToolHook for Behind {
    fn name(&self) -> &str {
        "behind"
    }

    async fn after(&self, _: &HookCx<'_>, input: &RawJson, output: &ToolOutput) -> Result<After, HookError> {
        self.look("after", input, output)
    }

    async fn failed(&self, _: &HookCx<'_>, input: &RawJson, output: &ToolOutput) -> Result<After, HookError> {
        self.look("failed", input, output)
    }
}

/// What hooks behind a call saw of it, what the model reads and what the user is told.
fn behind(tool: &str, input: &str, does: &[Does]) -> (Vec<String>, ToolOutput, Vec<String>) {
    block(async {
        let seen = Effects::default();
        let agent = agent(vec![Reply::tool(tool, input), Reply::text("ok")], |config, _| {
            let hook = |does: &Does| Arc::new(Behind(seen.clone(), *does)) as Arc<dyn ToolHook>;
            config.tool_hooks = does.iter().map(hook).collect();
            config.permissions.rules = vec![PermissionRule::deny("put".parse().unwrap())];
        });
        let (events, _) = agent.say("go").await;
        let previews = serde_json::to_string(&events).unwrap();
        let hides = does.iter().any(|does| matches!(does, Does::Replaces));
        assert!(!hides || !previews.contains("saw a"), "what a hook hides is not shown elsewhere");
        (seen.all(), results(&agent.history().await).remove(0), diagnosed(&events))
    })
}

#[test]
fn a_hook_behind_a_call_sees_every_result() {
    let check = |tool: &str, input: &str, expect: &str| {
        assert_eq!(behind(tool, input, &[Does::Nothing]).0, [expect], "{tool}");
    };
    check("look", r#"{"what":"a"}"#, r#"after {"what":"a"}: saw a"#);
    check(
        "put",
        r#"{"what":"a"}"#,
        r#"failed {"what":"a"}: `put` was not run: a permission rule of this session refuses it. Do not call it again; reach the goal with other tools, or tell the user what you need and why."#,
    );
    check(
        "look",
        r#"{"what"#,
        r#"failed "{\"what": The input of `look` is not JSON (EOF while parsing a string at line 1 column 6). Nothing was done. Call it again with one JSON object."#,
    );
    check(
        "lok",
        "{}",
        "failed {}: There is no tool called `lok`. Nothing was done. Call one of: look, put, boom, slow, stuck, quick, late, flood.",
    );
    check(
        "boom",
        r#"{"what":"a"}"#,
        r#"failed {"what":"a"}: `boom` broke down (the wheel came off). Do not repeat the call; find another way."#,
    );
}

#[test]
fn a_hook_behind_a_call_changes_what_the_model_reads() {
    let check = |does: &[Does]| {
        let (_, output, told) = behind("look", r#"{"what":"a"}"#, does);
        format!("{}\n{told:?}", output.plain())
    };
    insta::assert_snapshot!(check(&[Does::Nothing]), @"
    saw a
    <system-reminder>
    Mind the tide.
    </system-reminder>
    []
    ");
    insta::assert_snapshot!(check(&[Does::Replaces, Does::Nothing]), @"
    [hidden]
    <system-reminder>
    Mind the tide.
    </system-reminder>
    <system-reminder>
    Mind the tide.
    </system-reminder>
    []
    ");
    insta::assert_snapshot!(check(&[Does::Fails]), @r#"
    saw a
    ["tool_hooks: the hook `behind` failed: the pen is empty"]
    "#);
    insta::assert_snapshot!(check(&[Does::Panics]), @r#"
    saw a
    ["tool_hooks: the hook `behind` failed: it broke down (the desk fell)"]
    "#);
    let (seen, ..) = behind("look", r#"{"what":"a"}"#, &[Does::Replaces, Does::Fails]);
    assert_eq!(seen[1], r#"after {"what":"a"}: [hidden]"#, "each sees what those before it left");
    let (_, output, _) = behind("look", r#"{"what":"a"}"#, &[Does::Floods]);
    let words = output.plain();
    assert!(
        words.len() < 20_000 && words.contains("read on with read_file, path \"blob:"),
        "{}",
        words.len()
    );
}

/// Waits for ever before calls of `put` and behind calls of `look`.
#[derive(Debug)]
struct Busy(Effects);

#[async_trait]
impl ToolHook for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    async fn before(&self, cx: &HookCx<'_>, _: &RawJson) -> Result<Before, HookError> {
        if cx.tool == "put" {
            self.0.add("waits");
            return std::future::pending().await;
        }
        Ok(Before::default())
    }

    async fn after(&self, _: &HookCx<'_>, _: &RawJson, _: &ToolOutput) -> Result<After, HookError> {
        self.0.add("waits");
        std::future::pending().await
    }
}

#[test]
fn a_stop_ends_the_wait_for_a_hook() {
    let check = |tool: &str, expect: &str| {
        block(async {
            let agent = agent(vec![Reply::tool(tool, r#"{"what":"a"}"#)], |config, effects| {
                config.tool_hooks = vec![Arc::new(Busy(effects.clone()))];
            });
            let run = agent.session().send("go").await.unwrap();
            let (cancel, effects) = (run.cancel(), agent.effects.clone());
            let began = tokio::time::Instant::now();
            let (end, ()) = tokio::join!(run.finish(), async move {
                while effects.all().is_empty() {
                    tokio::task::yield_now().await;
                }
                cancel.cancel();
            });
            assert_eq!(end.unwrap().reason, TerminalReason::Aborted);
            assert!(began.elapsed() <= Duration::from_secs(5));
            assert_eq!(agent.effects.all(), ["waits"], "nothing ran behind a hook that had not looked");
            assert_eq!(talk(&agent.history().await).lines().nth(1).unwrap(), expect);
        });
    };
    check("put", "step: put -> Not run: the user stopped the turn before this call ran.");
    check("look", "step: look -> saw a");
}

#[test]
fn an_agent_that_is_examined_calls_no_hook() {
    block(async {
        let seen = Effects::default();
        let agent = agent(vec![Reply::text("ok")], |config, _| {
            config.tool_hooks = vec![Arc::new(Behind(seen.clone(), Does::Fails))];
        });
        agent_harness::examine(agent.harness.config()).await;
        assert_eq!(seen.all(), [""; 0]);
    });
}
