//! `agent run` with sub-agents: definitions in files, two processes and SIGKILL, and what is shown of them afterwards.

use agent_testkit::{Pick, Reply, SimOptions, SimProvider, Source};
use serde_json::Value;

use crate::support::{Home, json_lines, types};

/// A server that gives these replies in order, whoever asks.
fn in_order(replies: Vec<Reply>) -> SimProvider {
    let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
    SimProvider::start_with(Source::Script(replies.into()), options).unwrap()
}

fn task(kind: Option<&str>) -> Reply {
    let kind = kind.map_or_else(String::new, |kind| format!(r#","kind":"{kind}""#));
    Reply::tool("agent", format!(r#"{{"task":"Write one line."{kind}}}"#))
}

fn append(line: &str) -> Reply {
    Reply::tool("bash", format!(r#"{{"command":"echo {line} >> log.txt"}}"#))
}

async fn body(sim: &SimProvider, n: usize) -> Value {
    serde_json::from_slice(&sim.request(n).await.body).unwrap()
}

/// The one session below `s`.
async fn child(home: &Home) -> String {
    let lines = json_lines(&home.agent(&["sessions", "list", "--json"]).await.stdout);
    let mut below = lines.iter().filter(|line| line["parent"] == "s");
    let id = below.next().unwrap()["id"].as_str().unwrap().to_owned();
    assert!(below.next().is_none(), "{lines:?}");
    id
}

#[tokio::test]
async fn a_definition_says_what_a_kind_is() {
    let home = Home::new();
    let text = "---\nname: reader\ndescription: Finds places.\ntools: read_file, grep\nmodel: claude-haiku-5-5\n---\nYou only read.\n";
    let folder = home.config().join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("reader.md"), text).unwrap();
    std::fs::write(folder.join("half.md"), "---\nname: half\n---\nHm.\n").unwrap();
    let sim = in_order(vec![task(Some("reader")), Reply::text("Line 7."), Reply::text("It is line 7.")]);
    let output = home.run(&sim.base_url(), &["find it", "--session", "s"]).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("half.md is left out: it has no `description`"), "{}", output.stderr);
    assert!(output.stdout.contains("begins: Write one line.") && output.stdout.contains("It is line 7."));

    let (parent, of_child) = (body(&sim, 0).await, body(&sim, 1).await);
    assert!(parent["tools"].to_string().contains("`reader`: Finds places."), "{parent}");
    assert_eq!(of_child["model"], "claude-haiku-5-5");
    let names: Vec<_> = of_child["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read_file", "grep"]);
    assert!(of_child["system"].to_string().contains("You only read."), "{}", of_child["system"]);
    assert!(!of_child["messages"].to_string().contains("find it"), "its history is its own");
    let result = body(&sim, 2).await["messages"].to_string();
    assert!(result.contains("Line 7.") && result.contains("done after 1 step"), "{result}");
    assert!(sim.refusals().is_empty(), "{:?}", sim.refusals());

    let check = async |wrong: String, is_there: bool, note: &str| {
        std::fs::write(folder.join("reader.md"), wrong).unwrap();
        let sim = in_order(vec![Reply::text("Hi.")]);
        let output = home.run(&sim.base_url(), &["hi"]).await;
        assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains(note), "{note}: {}", output.stderr);
        let tools = body(&sim, 0).await["tools"].to_string();
        assert_eq!(tools.contains("`reader`: Finds places."), is_there, "{tools}");
    };
    check(text.replace("grep", "gripe"), true, "goes without gripe, which this run has not; it has: ").await;
    check(text.replace("model: ", "model: openai/"), false, "a key for anthropic alone").await;
}

#[tokio::test]
async fn a_workspace_defines_kinds_where_it_is_trusted() {
    let home = Home::new();
    let folder = home.work().join(".agent/agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("r.md"), "---\nname: reader\ndescription: Finds places.\n---\nRead.\n")
        .unwrap();
    let check = async |args: &[&str], is_there: bool, note: bool| {
        let sim = in_order(vec![Reply::text("Hi.")]);
        let output = home.run(&sim.base_url(), &[&["hi"], args].concat()).await;
        assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
        let tools = body(&sim, 0).await["tools"].to_string();
        assert_eq!(tools.contains("`reader`: Finds places."), is_there, "{args:?}: {tools}");
        assert_eq!(
            output.stderr.contains("sub-agents of this workspace (1 in .agent/agents)"),
            note,
            "{args:?}: {}",
            output.stderr
        );
    };
    check(&[], false, true).await;
    check(&["--subagents"], false, true).await;
    std::fs::create_dir_all(home.config()).unwrap();
    let trust = serde_json::json!({ "trust": [home.work().canonicalize().unwrap()] });
    std::fs::write(home.config().join("settings.json"), trust.to_string()).unwrap();
    check(&[], true, false).await;
    check(&["--bare"], false, false).await;
}

/// Killed with SIGKILL while the child waits for its second answer: another process goes on with both.
#[tokio::test]
async fn a_child_at_work_survives_the_process() {
    let home = Home::new();
    let sim = in_order(vec![
        task(None),
        append("one"),
        Reply::text("lost").held(),
        Reply::text("One line is there."),
        Reply::text("It wrote one line."),
    ]);
    let url = sim.base_url();
    let args =
        ["run", "go", "--session", "s", "--subagents", "--base-url", &url, "--permission-mode", "bypass"];
    let mut first = home.command(&args).spawn().unwrap();
    sim.request(2).await;
    first.kill().await.unwrap();
    sim.release();

    let output = home.agent(&args).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("It wrote one line."), "{}", output.stdout);
    assert_eq!(std::fs::read_to_string(home.work().join("log.txt")).unwrap(), "one\n", "once");
    assert_eq!(body(&sim, 2).await, body(&sim, 3).await, "the child asks again what it had asked");
    assert_eq!(sim.requests().len(), 5, "and the parent's first answer is not asked for again");

    let child = child(&home).await;
    let events = json_lines(&home.agent(&["events", "s", "--json"]).await.stdout);
    for kind in ["subagent.started", "subagent.completed"] {
        assert_eq!(types(&events).iter().filter(|it| **it == kind).count(), 1, "{kind}");
    }
    let list = home.agent(&["sessions", "list"]).await.stdout;
    assert!(list.contains(&format!("{child}  anthropic/")) && list.contains(", sub-agent of s\n"), "{list}");
    let shown = home.agent(&["sessions", "show", "s"]).await.stdout;
    assert!(
        shown.contains(&format!("sub-agent {child}: Write one line.\n  done; tokens: input ")),
        "{shown}"
    );
    assert!(shown.contains("sub-agents, not in it: tokens: input "), "{shown}");
    let stats = json_lines(&home.agent(&["stats", "--json"]).await.stdout);
    let sessions = stats[0]["sessions"].as_array().unwrap();
    let of = |id: &str| sessions.iter().find(|line| line["id"] == id).unwrap();
    assert_eq!(of("s")["children"]["usage"]["output"], of(&child)["usage"]["output"], "{stats:?}");
    assert!(of("s")["children"]["nano_usd"].as_u64().unwrap() > 0, "{stats:?}");
    assert!(of(&child)["children"].is_null());

    let deleted = home.agent(&["sessions", "delete", "s"]).await;
    assert_eq!(deleted.stdout, format!("deleted s\ndeleted {child}\n"), "{}", deleted.stderr);
    assert!(home.agent(&["sessions", "list"]).await.stdout.starts_with("No sessions"));
}

/// Killed while a command of the child runs: it is not run again, and the child knows.
#[tokio::test]
async fn a_command_of_a_child_does_not_run_twice() {
    let home = Home::new();
    let slow = Reply::tool("bash", r#"{"command":"echo began >> log.txt; sleep 30; echo ended >> log.txt"}"#);
    let sim = in_order(vec![task(None), slow, Reply::text("It was cut off."), Reply::text("Well.")]);
    let url = sim.base_url();
    let args =
        ["run", "go", "--session", "s", "--subagents", "--base-url", &url, "--permission-mode", "bypass"];
    let mut first = home.command(&args).spawn().unwrap();
    let log = home.work().join("log.txt");
    crate::run::wait_until(|| async { log.exists() }).await;
    first.kill().await.unwrap();
    let output = home.agent(&args).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "began\n", "it was not run a second time");
    assert!(body(&sim, 2).await["messages"].to_string().contains("Outcome unknown"));
    assert!(body(&sim, 3).await["messages"].to_string().contains("It was cut off."));
}

/// A child that asks is answered at its parent, which the list says.
#[tokio::test]
async fn a_question_of_a_child_is_put_at_the_session_that_people_know() {
    let home = Home::new();
    let sim =
        in_order(vec![task(None), append("one"), Reply::text("Written."), Reply::text("It is written.")]);
    let args = ["go", "--session", "s", "--subagents", "--ask", "later"];
    let output = home.run(&sim.base_url(), &args).await;
    assert_eq!(output.code, Some(3), "{}{}", output.stdout, output.stderr);
    let below = child(&home).await;
    let list = home.agent(&["sessions", "list", "--json"]).await.stdout;
    let lines = json_lines(&list);
    let request =
        lines.iter().find(|line| line["id"] == below.as_str()).unwrap()["requests"][0]["id"].clone();
    let request = request.as_str().unwrap();
    let list = home.agent(&["sessions", "list"]).await.stdout;
    assert!(list.contains(&format!("agent resume s --approve {request}")), "{list}");
    let url = sim.base_url();
    let resume = ["resume", "s", "--base-url", &url, "--subagents", "--approve", request];
    let output = home.agent(&resume).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("It is written."), "{}", output.stdout);
    assert_eq!(std::fs::read_to_string(home.work().join("log.txt")).unwrap(), "one\n");
}
