//! The agent dies by a signal that nobody can catch: its commands end all the same, and a guardian ends with them.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use agent_builtins::{JobCommand, LocalSandbox, Sandbox as _, ShellCommand};
use agent_core::{Cancel, SessionId};
use serde_json::json;

use crate::support::Bench;

/// Names the workspace and the command of a process that is there to be killed.
const VICTIM: [&str; 2] = ["AGENT_TEST_WORKSPACE", "AGENT_TEST_COMMAND"];

#[expect(clippy::disallowed_methods, reason = "how this program is told that it is the one to be killed")]
fn victim() -> Option<[String; 2]> {
    Some([std::env::var(VICTIM[0]).ok()?, std::env::var(VICTIM[1]).ok()?])
}

/// Only does something in the process that `check` starts.
#[tokio::test]
async fn runs_a_command_to_be_killed_over() {
    let Some([workspace, command]) = victim() else { return };
    let sandbox = LocalSandbox::open(Path::new(&workspace)).unwrap();
    let command = ShellCommand { command, cwd: String::new(), timeout: Duration::from_secs(60) };
    let permit = Bench::new().permit("bash").await;
    sandbox.run(&permit, command, &Cancel::new()).await.unwrap();
}

/// The same with a background job.
#[tokio::test]
async fn starts_a_job_to_be_killed_over() {
    let Some([workspace, command]) = victim() else { return };
    let sandbox = LocalSandbox::open(Path::new(&workspace)).unwrap();
    let session = SessionId::new("session").unwrap();
    let command = JobCommand { session, command, cwd: String::new(), timeout: None };
    sandbox.start_job(&Bench::new().permit("bash").await, command).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
}

/// How a process that is to be killed runs its command.
const WAYS: [&str; 2] =
    ["guardian::runs_a_command_to_be_killed_over", "guardian::starts_a_job_to_be_killed_over"];

fn start(bench: &Bench, way: &str, command: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", way])
        .env(VICTIM[0], bench.root())
        .env(VICTIM[1], command)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never came: {what}");
}

async fn check(way: &str, command: &str) {
    let bench = Bench::new();
    let mut agent = start(&bench, way, command);
    let size = || std::fs::metadata(bench.root().join("alive")).map_or(0, |meta| meta.len());
    // Long enough for a look at who left the session.
    until("the command runs", || size() >= 20).await;
    agent.kill().unwrap();
    agent.wait().unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let then = size();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(size(), then, "it writes on: {way} {command}");
}

#[tokio::test]
async fn commands_end_when_the_agent_is_killed() {
    let write = "for i in $(seq 600); do echo x >> alive; sleep 0.05; done";
    let commands = [
        format!("trap '' TERM HUP INT; {write}"),
        format!("setsid bash -c 'trap \"\" TERM; {write}' & sleep 60"),
        format!("set -m; env -i bash -c '{write}' & sleep 60"),
        format!("setsid env -i bash -c '{write}' & sleep 60"),
        format!("(setsid env -i bash -c '{write}' >/dev/null 2>&1 &); sleep 60"),
    ];
    for way in WAYS {
        let [one, two, three, four, five] = commands.each_ref().map(|command| check(way, command));
        tokio::join!(one, two, three, four, five);
    }
}

/// Command lines of this machine that name this word.
fn lines_with(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = all.map(|entry| String::from_utf8_lossy(&line_of(&entry.path())).into_owned());
    lines.filter(|line| line.contains(word)).collect()
}

#[expect(clippy::disallowed_methods, reason = "a test looks at the table of processes")]
fn line_of(process: &Path) -> Vec<u8> {
    std::fs::read(process.join("cmdline")).unwrap_or_default()
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_guardian_ends_with_its_command() {
    let bench = Bench::new();
    let tell = "env | grep -o 'AGENT_CALL_[0-9a-z_]*'; sleep 0.3";
    for (command, most) in [(tell.to_owned(), 10_000), (format!("{tell}; sleep 60"), 5_000)] {
        let words = bench.run("bash", json!({"command": command, "timeout_ms": most})).await;
        let mark = words.lines().next().unwrap();
        assert!(mark.starts_with("AGENT_CALL_"), "{words}");
        assert_eq!(lines_with(mark), Vec::<String>::new(), "{command}");
    }
    let call = bench.run("bash", json!({"command": "sleep 60"}));
    tokio::select! {
        words = call => panic!("it runs long: {words}"),
        () = until("a guardian", || !lines_with("agent-guardian").is_empty()) => {}
    }
}
