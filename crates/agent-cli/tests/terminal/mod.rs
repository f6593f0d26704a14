//! Questions on a terminal: a pseudo-terminal with somebody who answers.

use std::fs::File;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use agent_testkit::{Reply, SimProvider};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::io::AsyncReadExt;

use crate::support::Home;

/// What was asked and printed, and how it ended.
pub(crate) struct Talk {
    pub(crate) code: Option<i32>,
    pub(crate) asked: String,
    pub(crate) stdout: String,
}

/// Runs the program and gives one answer to each question, once it is asked.
pub(crate) async fn talk(home: &Home, args: &[&str], answers: &[&str]) -> Talk {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut child = home.command(args).stdin(Stdio::from(terminal)).spawn().unwrap();
    let mut person = File::from(master);
    let mut stderr = child.stderr.take().unwrap();
    let mut asked = String::new();
    let mut seen = 0;
    for answer in answers {
        while !QUESTION_ENDS.iter().any(|end| asked[seen..].ends_with(end)) {
            let mut bytes = vec![0; 4_096];
            let read = tokio::time::timeout(Duration::from_secs(30), stderr.read(&mut bytes)).await;
            let read = read.unwrap_or_else(|_| panic!("it does not ask: {asked}")).unwrap();
            assert!(read > 0, "it ended without a question: {asked}");
            asked.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
        seen = asked.len();
        // The program drops what was typed before it asks, and the question is written before it listens.
        tokio::time::sleep(Duration::from_millis(100)).await;
        person.write_all(format!("{answer}\n").as_bytes()).unwrap();
    }
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    Talk { code: output.status.code(), asked: asked + &rest, stdout }
}

/// How a question ends.
const QUESTION_ENDS: [&str; 3] = ["[Y/n] ", "as it is): ", "or other words: "];

const TOUCH: &str = r#"{"command":"touch ran"}"#;

#[tokio::test]
async fn yes_no_and_other_words() {
    let check = async |answer: &str, ran: bool, expect: &str| {
        let home = Home::new();
        let talk = talk(&home, &["tools", "call", "bash", TOUCH], &[answer]).await;
        assert!(talk.asked.contains("bash(touch ran) — it runs a program [Y/n] "), "{}", talk.asked);
        assert_eq!(talk.code, Some(i32::from(!ran)), "{answer}: {}", talk.stdout);
        assert_eq!(home.work().join("ran").exists(), ran, "{answer}: {}", talk.stdout);
        assert!(talk.stdout.contains(expect), "{answer}: {}", talk.stdout);
    };
    check("", true, "exit code 0").await;
    check("y", true, "exit code 0").await;
    check("n", false, "User denied `bash`").await;
    check("use a file tool", false, "They say: \"use a file tool\"").await;
}

#[tokio::test]
async fn what_is_remembered_for_good_goes_to_the_settings_of_a_layer() {
    let home = Home::new();
    let args = ["tools", "call", "bash", TOUCH];
    let first = talk(&home, &args, &["a project", "a user"]).await;
    assert_eq!(first.code, Some(0), "{}{}", first.asked, first.stdout);
    assert!(first.asked.contains("always allow bash(touch ran): `a user` for good"), "{}", first.asked);
    assert!(first.asked.contains("it cannot be remembered there, only in: user"), "{}", first.asked);
    let kept = std::fs::read_to_string(home.config().join("settings.json")).unwrap();
    assert!(kept.contains(r#""bash(touch ran)""#), "{kept}");
    let again = home.agent(&args).await;
    assert_eq!(again.code, Some(0), "nobody is asked again: {}", again.stdout);
}

#[tokio::test]
async fn what_is_remembered_for_the_session_is_not_asked_again() {
    let home = Home::new();
    let touch = || Reply::tool("bash", TOUCH);
    let sim = SimProvider::start(vec![touch(), touch(), Reply::text("Done.")]).unwrap();
    let url = sim.base_url();
    let talk = talk(&home, &["run", "go", "--base-url", &url], &["a"]).await;
    assert_eq!(talk.code, Some(0), "{}{}", talk.asked, talk.stdout);
    assert_eq!(talk.asked.matches("[Y/n]").count(), 1, "{}", talk.asked);
    assert!(talk.asked.contains("always allow bash(touch ran): `a` for this session"), "{}", talk.asked);
    assert!(!home.config().join("settings.json").exists());
}

#[tokio::test]
async fn another_input_runs_in_its_place() {
    let home = Home::new();
    let args = ["tools", "call", "bash", TOUCH];
    let talk =
        talk(&home, &args, &["e", "not json", r#"e {"cmd":"x"}"#, r#"e {"command":"touch other"}"#]).await;
    assert!(talk.asked.contains("That is not JSON"), "{}", talk.asked);
    let misfit = talk.asked.split("Asked again: ").nth(1);
    assert!(misfit.is_some_and(|why| why.contains("missing field `command`")), "{}", talk.asked);
    assert_eq!(talk.code, Some(0), "{}{}", talk.asked, talk.stdout);
    assert!(home.work().join("other").exists() && !home.work().join("ran").exists());
}
