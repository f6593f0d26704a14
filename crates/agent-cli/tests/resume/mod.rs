//! `agent resume`: turns that wait go on in another process, by reply, after a kill, and with one process at a time.

mod lost;
mod people;

use agent_testkit::{Pick, Reply, SimOptions, SimProvider, Source};
use serde_json::Value;

use crate::support::{Home, Output, conversation, json_lines};

const TOUCH: &str = r#"{"command":"touch ran"}"#;
const COLOUR: &str = r#"{"question":"Which colour?","options":[{"label":"red"},{"label":"blue"}]}"#;

fn in_order(replies: Vec<Reply>) -> SimProvider {
    let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
    SimProvider::start_with(Source::Script(replies.into()), options).unwrap()
}

/// Runs until the turn waits, and gives the request's name.
async fn parked(home: &Home, sim: &SimProvider) -> (String, Output) {
    let output = home.run(&sim.base_url(), &["go", "--session", "s", "--ask", "later"]).await;
    assert_eq!(output.code, Some(3), "{}{}", output.stdout, output.stderr);
    (open_request(home).await, output)
}

async fn open_request(home: &Home) -> String {
    let list = json_lines(&home.agent(&["sessions", "list", "--json"]).await.stdout);
    list[0]["requests"][0]["id"].as_str().unwrap().to_owned()
}

async fn resume(home: &Home, sim: &SimProvider, args: &[&str]) -> Output {
    let url = sim.base_url();
    home.agent(&[&["resume", "s", "--base-url", &url], args].concat()).await
}

/// One call that asks for permission, answered by another process.
async fn check_approval(args: &[&str], ran: &str, told: &str) {
    let home = Home::new();
    let sim = in_order(vec![Reply::tool("bash", TOUCH), Reply::text("So be it.")]);
    let (request, first) = parked(&home, &sim).await;
    assert!(first.stderr.contains(&format!("--approve {request}")), "{}", first.stderr);
    for shown in [&["sessions", "list"][..], &["sessions", "show", "s"]] {
        let shown = home.agent(shown).await.stdout;
        assert!(shown.contains(&format!("agent resume s --approve {request}")), "{shown}");
    }
    assert!(home.agent(&["sessions", "list"]).await.stdout.contains("parked(approval)"));
    assert!(!home.work().join("ran").exists());
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "REQ" { request.as_str() } else { arg }).collect();
    let output = resume(&home, &sim, &args).await;
    assert_eq!(output.code, Some(0), "{args:?}: {}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("So be it."), "{}", output.stdout);
    let found: Vec<_> = ["ran", "other"].into_iter().filter(|it| home.work().join(it).exists()).collect();
    assert_eq!(found.join(" "), ran, "{args:?}");
    let body = conversation(&sim.request(1).await);
    assert!(body.contains(told), "{args:?}: {body}");
    let again = resume(&home, &sim, &args).await;
    assert_eq!(again.code, Some(1), "a second reply is refused: {}{}", again.stdout, again.stderr);
    assert_eq!(sim.requests().len(), 2, "and asks no model");
}

#[tokio::test]
async fn a_call_waits_for_a_reply_of_another_process() {
    check_approval(&["--approve", "REQ"], "ran", "exit code 0").await;
    check_approval(&["--always", "REQ"], "ran", "exit code 0").await;
    check_approval(&["--deny", "REQ"], "", "denied").await;
    check_approval(&["--deny", "REQ", "use a file tool"], "", "use a file tool").await;
    check_approval(&["--edit", "REQ", r#"{"command":"touch other"}"#], "other", "exit code 0").await;
}

async fn check_question(args: &[&str], told: &str) {
    let home = Home::new();
    let sim = in_order(vec![Reply::tool("ask_question", COLOUR), Reply::text("So be it.")]);
    let (request, first) = parked(&home, &sim).await;
    assert!(first.stderr.contains("Which colour? [red | blue]"), "{}", first.stderr);
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "REQ" { request.as_str() } else { arg }).collect();
    let output = resume(&home, &sim, &args).await;
    assert_eq!(output.code, Some(0), "{args:?}: {}{}", output.stdout, output.stderr);
    let body = conversation(&sim.request(1).await);
    assert!(body.contains(told), "{args:?}: {body}");
}

#[tokio::test]
async fn a_question_waits_for_an_answer_of_another_process() {
    check_question(&["--answer", "REQ", "blue"], "blue").await;
    check_question(&["--deny", "REQ", "decide yourself"], "decide yourself").await;
}

#[tokio::test]
async fn a_wrong_reply_changes_nothing() {
    let home = Home::new();
    let sim = in_order(vec![Reply::tool("ask_question", COLOUR), Reply::text("So be it.")]);
    let (request, _) = parked(&home, &sim).await;
    let check = async |args: &[&str], code: i32, expect: &str| {
        let output = resume(&home, &sim, args).await;
        assert_eq!(output.code, Some(code), "{args:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains(expect), "{args:?}: {}", output.stderr);
    };
    check(&["--approve", &request], 1, "it is still open").await;
    check(&["--approve", "req_none"], 1, "req_none").await;
    check(&["--edit", &request, "{"], 2, "not JSON").await;
    check(&["--approve", &request, "--deny", &request], 2, "cannot be used with").await;
    check(&[], 3, &format!("--answer {request} red")).await;
    assert_eq!(sim.requests().len(), 1);
    check(&["--answer", &request, "red"], 0, "").await;
}

#[tokio::test]
async fn the_command_that_is_printed_answers() {
    let home = Home::new();
    let sim = in_order(vec![Reply::tool("bash", TOUCH), Reply::text("So be it.")]);
    let (_, first) = parked(&home, &sim).await;
    let line = first.stderr.lines().find(|line| line.contains("--approve")).unwrap();
    let command = line.split_once("agent ").unwrap().1;
    let args: Vec<&str> = command.split(' ').collect();
    let output = home.agent(&args).await;
    assert_eq!(output.code, Some(0), "{command}: {}{}", output.stdout, output.stderr);
    assert!(home.work().join("ran").exists());
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_answers() {
    let home = Home::new();
    let sim = in_order(vec![Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    for (at, (ask, has)) in
        [(None, false), (Some("deny"), false), (Some("later"), true)].into_iter().enumerate()
    {
        let mode: Vec<&str> = ask.map(|ask| vec!["--ask", ask]).unwrap_or_default();
        home.run(&sim.base_url(), &[&["go"], &mode[..]].concat()).await;
        let body: Value = serde_json::from_slice(&sim.request(at).await.body).unwrap();
        let mut names = body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap());
        assert_eq!(names.any(|name| name == "ask_question"), has, "{ask:?}");
    }
}

#[tokio::test]
async fn a_killed_run_is_taken_up() {
    let home = Home::new();
    let append = |line: &str| format!(r#"{{"command":"echo {line} >> log.txt"}}"#);
    let sim = in_order(vec![
        Reply::tool("bash", append("one")),
        Reply::text("Held.").held(),
        Reply::tool("bash", append("two")),
        Reply::text("Both are there."),
    ]);
    let url = sim.base_url();
    let flags = ["--base-url", &url, "--permission-mode", "bypass"];
    let run = [&["run", "append two lines", "--session", "s"], &flags[..]].concat();
    let mut child = home.command(&run).spawn().unwrap();
    let before = sim.request(1).await;
    child.kill().await.unwrap();

    let output = home.agent(&[&["resume", "s"], &flags[..]].concat()).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("Both are there."), "{}", output.stdout);
    let log = std::fs::read_to_string(home.work().join("log.txt")).unwrap();
    assert_eq!(log, "one\ntwo\n", "no finished command ran again");
    assert_eq!(conversation(&before), conversation(&sim.request(2).await));
    let nothing = home.agent(&[&["resume", "s"], &flags[..]].concat()).await;
    assert_eq!(nothing.code, Some(1));
    assert!(nothing.stderr.contains("has no open turn"), "{}", nothing.stderr);
    let nobody = home.agent(&[&["resume", "other"], &flags[..]].concat()).await;
    assert_eq!(nobody.code, Some(2), "{}", nobody.stderr);
    assert!(nobody.stderr.contains("there is no session other"), "{}", nobody.stderr);
}

#[tokio::test]
async fn of_two_that_resume_one_is_told_who_has_it() {
    let home = Home::new();
    let sim = in_order(vec![Reply::tool("bash", TOUCH), Reply::text("Done.").held()]);
    let (request, _) = parked(&home, &sim).await;
    let url = sim.base_url();
    let args = ["resume", "s", "--base-url", &url, "--approve", &request];
    let first = home.command(&args).spawn().unwrap();
    sim.request(1).await;
    let pid = first.id().unwrap().to_string();
    let second = resume(&home, &sim, &[]).await;
    assert_eq!(second.code, Some(1), "{}{}", second.stdout, second.stderr);
    assert!(second.stderr.contains(&format!("in use by process {pid}")), "{}", second.stderr);
    sim.release();
    assert!(first.wait_with_output().await.unwrap().status.success());
    assert_eq!(sim.requests().len(), 2);
}
