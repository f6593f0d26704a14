//! Calls on one file in one step, with the built-in tools on a real folder: nothing is lost.

use std::sync::Arc;

use agent_builtins::{LocalSandbox, all};
use agent_core::ToolOutput;
use agent_testkit::Reply;
use agent_tools::ToolSet;

use super::{agent, results};

fn edit(old: &str, new: &str) -> String {
    format!(r#"{{"path":"beds.txt","edits":[{{"old":"{old}","new":"{new}"}}]}}"#)
}

/// The file after these calls of one step, and whether each call failed. It is read first.
#[expect(clippy::disallowed_methods, reason = "a real folder")]
fn check(calls: &[(&str, String)], expect: &str, failed: &[bool]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("beds.txt");
    std::fs::write(&file, "tulip\nrose\n").unwrap();
    // Programs need a runtime that waits for real.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outputs = runtime.block_on(async {
        let calls =
            calls.iter().fold(Reply::text("Both."), |reply, (tool, input)| reply.call(*tool, input.clone()));
        let replies = vec![Reply::tool("read_file", r#"{"path":"beds.txt"}"#), calls, Reply::text("ok")];
        let agent = agent(replies, |config, _| {
            let sandbox = Arc::new(LocalSandbox::open(folder.path()).unwrap());
            config.tools = ToolSet::builder().extend(all(sandbox)).freeze().unwrap();
        });
        agent.say("go").await;
        results(&agent.history().await)
    });
    assert_eq!(std::fs::read_to_string(&file).unwrap(), expect);
    let seen: Vec<bool> = outputs.iter().skip(1).map(ToolOutput::is_error).collect();
    assert_eq!(seen, failed, "{outputs:?}");
}

#[test]
fn of_two_writes_to_one_path_none_is_lost() {
    check(
        &[("edit_file", edit("tulip", "lily")), ("edit_file", edit("rose", "aster"))],
        "lily\naster\n",
        &[false, false],
    );
    check(
        &[("edit_file", edit("tulip", "lily")), ("edit_file", edit("tulip", "aster"))],
        "lily\nrose\n",
        &[false, true],
    );
    check(
        &[("edit_file", edit("tulip", "lily")), ("edit_file", edit("lily", "aster"))],
        "aster\nrose\n",
        &[false, false],
    );
    let touched = ("bash", r#"{"command":"echo weed >> beds.txt"}"#.to_owned());
    check(&[touched, ("edit_file", edit("tulip", "lily"))], "tulip\nrose\nweed\n", &[false, true]);
    let read = ("read_file", r#"{"path":"beds.txt"}"#.to_owned());
    check(
        &[read.clone(), ("edit_file", edit("tulip", "lily")), read, ("edit_file", edit("rose", "aster"))],
        "lily\naster\n",
        &[false, false, false, false],
    );
}
