//! SIGKILL in the middle of a turn: the next process goes on with the very bytes.

use agent_testkit::{Reply, SimProvider};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{Home, conversation};

#[tokio::test]
async fn killed_after_the_second_step() {
    let home = Home::new();
    std::fs::write(home.work().join("log.txt"), "").unwrap();
    let append = |line: &str| format!(r#"{{"command":"echo {line} >> log.txt; cat log.txt"}}"#);
    let sim = SimProvider::start(vec![
        Reply::text("One.").call("bash", append("one")).call("glob", r#"{"pattern":"*"}"#),
        Reply::text("Two.").thinking("Hm.").call("bash", append("two")),
        Reply::text("Three.").held().call("bash", append("three")),
        Reply::text("All three are there."),
    ])
    .unwrap();
    let url = sim.base_url();
    let args = [
        "run",
        "append three lines",
        "--session",
        "s",
        "--base-url",
        &url,
        "--json",
        "--permission-mode",
        "bypass",
    ];

    let mut child = home.command(&args).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut completed = 0;
    while completed < 2 {
        let line = lines.next_line().await.unwrap().unwrap();
        completed += usize::from(line.contains(r#""type":"step.completed""#));
    }
    let before = sim.request(2).await;
    child.kill().await.unwrap();

    sim.release();
    sim.release();
    let output = home.agent(&args).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let after = sim.request(3).await;
    let (killed, resumed) = (conversation(&before), conversation(&after));
    assert_eq!(killed, resumed, "the request that was under way is sent again, byte for byte");
    assert!(resumed.contains("Two."), "with both steps in it");
    assert_eq!(before.body, after.body, "settings, system and tools too");

    let log = std::fs::read_to_string(home.work().join("log.txt")).unwrap();
    assert_eq!(log, "one\ntwo\nthree\n", "no finished command ran again");
    assert!(sim.refusals().is_empty(), "{:?}", sim.refusals());
}

#[tokio::test]
async fn killed_while_a_command_runs() {
    let home = Home::new();
    let sim = SimProvider::start(vec![
        Reply::tool("bash", r#"{"command":"echo began >> log.txt; sleep 30; echo ended >> log.txt"}"#),
        Reply::text("It was cut off."),
    ])
    .unwrap();
    let url = sim.base_url();
    let args = ["run", "go", "--session", "s", "--base-url", &url, "--permission-mode", "bypass"];
    let mut child = home.command(&args).spawn().unwrap();
    let log = home.work().join("log.txt");
    crate::run::wait_until(|| async { log.exists() }).await;
    child.kill().await.unwrap();

    let output = home.agent(&args).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "began\n", "it was not run a second time");
    let told = conversation(&sim.request(1).await);
    assert!(told.contains("Outcome unknown"), "and the model knows: {told}");
}

#[tokio::test]
async fn two_processes_on_one_session() {
    let home = Home::new();
    let sim = SimProvider::start(vec![Reply::text("done").held()]).unwrap();
    let url = sim.base_url();
    let args = ["run", "go", "--session", "s", "--base-url", &url];
    let first = home.command(&args).spawn().unwrap();
    sim.request(0).await;
    let pid = first.id().unwrap().to_string();
    let second = home.agent(&args).await;
    assert_eq!(second.code, Some(1));
    assert!(second.stderr.contains(&pid), "it names the process that holds the session: {}", second.stderr);
    sim.release();
    assert!(first.wait_with_output().await.unwrap().status.success());
}
