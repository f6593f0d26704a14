//! A parallel batch in which much goes wrong: every call has its result, in the order of the calls.

use std::time::Duration;

use agent_core::EventBody;
use agent_testkit::Reply;
use agent_tools::{Access, Concurrency, PermissionMode, PermissionRule, ToolConfig, ToolError, ToolSet};

use super::agent;
use crate::support::{block, talk};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Wait {
    /// Milliseconds.
    ms: u64,
}

/// `wait` takes as long as it is told, `breaks` panics, `hangs` misses its deadline, `secret` is refused.
fn tools() -> ToolSet {
    let wait = |call: agent_tools::Call, input: Wait| async move {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(input.ms)) => Ok(format!("waited {} ms", input.ms)),
            () = call.cx.cancel.cancelled() => Err(ToolError::Cancelled),
        }
    };
    let breaks = |_: agent_tools::Call, input: Wait| async move {
        if input.ms < u64::MAX {
            panic!("the string broke");
        }
        Ok(String::new())
    };
    ToolSet::builder()
        .with(ToolConfig::new("wait", "Waits.", Access::Read, wait))
        .with(ToolConfig::new("breaks", "Panics.", Access::Read, breaks))
        .with(ToolConfig::new("hangs", "Waits.", Access::Read, wait).deadline(Duration::from_secs(1)))
        .with(ToolConfig::new("secret", "Waits.", Access::Execute, wait).concurrency(Concurrency::Parallel))
        .freeze()
        .unwrap()
}

#[test]
fn eight_calls_with_four_that_go_wrong_are_eight_results_in_order() {
    block(async {
        let ms = |ms: u64| format!(r#"{{"ms":{ms}}}"#);
        let replies = vec![
            Reply::tool("wait", ms(400))
                .call("breaks", ms(1))
                .call("wait", ms(300))
                .call("hangs", ms(60_000))
                .call("wait", ms(200))
                .call("secret", ms(1))
                .call("wait", ms(100))
                .call("wait", r#"{"ms":"long"}"#),
            Reply::text("ok"),
        ];
        let agent = agent(replies, |config, _| {
            config.tools = tools();
            config.permissions.mode = PermissionMode::Bypass;
            config.permissions.rules = vec![PermissionRule::deny("secret".parse().unwrap())];
        });
        let began = tokio::time::Instant::now();
        let (events, end) = agent.say("go").await;
        assert_eq!(end.text, "ok");
        assert_eq!(began.elapsed(), Duration::from_secs(1), "beside each other, as long as the longest");
        let said = talk(&agent.history().await);
        insta::assert_snapshot!(said.lines().nth(1).unwrap().replace("; ", "\n"), @r#"
        step: wait -> waited 400 ms
        breaks -> `breaks` broke down (the string broke). Do not repeat the call
        find another way.
        wait -> waited 300 ms
        hangs -> The tool was stopped after 1 s. Do less in one call, or ask for more time if the tool has a timeout field.
        wait -> waited 200 ms
        secret -> `secret` was not run: a permission rule of this session refuses it. Do not call it again
        reach the goal with other tools, or tell the user what you need and why.
        wait -> waited 100 ms
        wait -> The input of `wait` does not fit: at `ms`: invalid type: string "long", expected u64 at line 1 column 12. Call it again with: ms (required)
        "#);
        let outcomes: Vec<String> = events
            .iter()
            .filter_map(|event| {
                let EventBody::ActionResult { tool, outcome, preview, bytes, .. } = &event.body else {
                    return None;
                };
                assert_eq!(preview.as_str().len() as u64, *bytes, "each is told with its words");
                Some(format!("{tool} {outcome:?}"))
            })
            .collect();
        insta::assert_snapshot!(outcomes.join("\n"), @"
        secret Denied
        breaks Failed
        wait Failed
        wait Completed
        wait Completed
        wait Completed
        wait Completed
        hangs Failed
        ");
    });
}
