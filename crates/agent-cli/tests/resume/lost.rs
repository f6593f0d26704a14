//! A turn over which the program is lost again and again is not taken up for ever (requirement D5).

use agent_testkit::{Reply, SimProvider};

use super::{in_order, resume};
use crate::support::{Home, Output, conversation};

/// A call that takes down the program that runs it: the lock of a session names the process that has it.
fn poison(home: &Home) -> Reply {
    let lock = home.data().join("locks/s.lock");
    Reply::tool("bash", format!(r#"{{"command":"kill -9 $(cat {})"}}"#, lock.display()))
}

fn died(output: &Output) -> bool {
    output.code.is_none()
}

/// Takes the turn up, which is refused; the command that the refusal prints for `flag`.
async fn refused(home: &Home, sim: &SimProvider, flag: &str) -> Vec<String> {
    let asked = sim.requests().len();
    let url = sim.base_url();
    let again = home.run(&url, &["go on", "--session", "s"]).await;
    let resumed = resume(home, sim, &[]).await;
    for output in [&again, &resumed] {
        assert_eq!(output.code, Some(1), "{}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains("was taken up 5 times"), "{}", output.stderr);
    }
    assert_eq!(sim.requests().len(), asked, "no model is asked");
    let line = resumed.stderr.lines().find(|line| line.ends_with(flag)).unwrap_or_default();
    let command = line.split_once(": agent ").map(|(_, command)| command).unwrap_or_default();
    assert!(command.contains(&url), "it is the same agent: {}", resumed.stderr);
    command.split(' ').map(str::to_owned).collect()
}

async fn pasted(home: &Home, command: &[String]) -> Output {
    home.agent(&command.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// Each program gets a step further before it is taken down, and that does not count.
#[tokio::test]
async fn a_tool_that_takes_the_program_down() {
    let home = Home::new();
    let mut replies: Vec<Reply> = (0..6).map(|_| poison(&home)).collect();
    replies.push(Reply::text("Through."));
    let sim = in_order(replies);
    let flags = ["--permission-mode", "bypass"];
    let first = home.run(&sim.base_url(), &[&["go", "--session", "s"], &flags[..]].concat()).await;
    assert!(died(&first), "{}{}", first.stdout, first.stderr);
    for attempt in 1..=5 {
        let output = resume(&home, &sim, &flags).await;
        assert!(died(&output), "attempt {attempt}: {:?} {}{}", output.code, output.stdout, output.stderr);
    }
    let again = refused(&home, &sim, "--again").await;
    let output = pasted(&home, &again).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("Through."), "{}", output.stdout);
    let body = conversation(&sim.request(6).await);
    assert_eq!(body.matches("Outcome unknown").count(), 6, "nothing of the steps before is lost: {body}");
}

/// Killed from outside, each time as soon as it asks its model: it never gets anywhere.
#[tokio::test]
async fn a_turn_that_never_gets_anywhere_is_ended() {
    let home = Home::new();
    let mut replies: Vec<Reply> = (0..6).map(|_| Reply::text("Held.").held()).collect();
    replies.push(Reply::text("Hello."));
    let sim = in_order(replies);
    let url = sim.base_url();
    let run = ["run", "go", "--session", "s", "--base-url", &url];
    let up = ["resume", "s", "--base-url", &url];
    for attempt in 0..6 {
        let mut child = home.command(if attempt == 0 { &run } else { &up }).spawn().unwrap();
        sim.request(attempt).await;
        child.kill().await.unwrap();
    }
    let abandon = refused(&home, &sim, "--abandon").await;
    let output = pasted(&home, &abandon).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("aborted"), "{}", output.stdout);
    let nothing = resume(&home, &sim, &[]).await;
    assert!(nothing.stderr.contains("has no open turn"), "{}", nothing.stderr);
    let next = home.run(&url, &["hello", "--session", "s"]).await;
    assert_eq!(next.code, Some(0), "{}{}", next.stdout, next.stderr);
    assert!(next.stdout.contains("Hello."), "{}", next.stdout);
}
