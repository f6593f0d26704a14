//! `agent sessions fork | export | import | delete`, damaged sessions, and `agent events`.

use agent_testkit::{Reply, SimProvider};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::support::{Home, conversation, json_lines, types};

/// A session of two turns.
async fn two_turns(home: &Home) -> SimProvider {
    let script = vec![
        Reply::tool("glob", r#"{"pattern":"*"}"#),
        Reply::text("Nothing here."),
        Reply::text("Goodbye."),
        Reply::text("Another way."),
    ];
    let sim = SimProvider::start(script).unwrap();
    for words in ["look around", "bye"] {
        let output = home.run(&sim.base_url(), &[words, "--session", "s"]).await;
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
    sim
}

#[tokio::test]
async fn a_fork_goes_another_way() {
    let home = Home::new();
    let sim = two_turns(&home).await;
    let numbered = home.agent(&["sessions", "show", "s", "--numbers"]).await.stdout;
    assert!(numbered.contains("-- 2\nNothing here.\n-- 3\n"), "{numbered}");
    let fork = home.agent(&["sessions", "fork", "s", "--at", "2", "--as", "f"]).await;
    assert_eq!((fork.code, fork.stdout.as_str()), (Some(0), "f\n"), "{}", fork.stderr);
    let list = home.agent(&["sessions", "list"]).await.stdout;
    assert!(
        list.contains("f  anthropic/claude-opus-5-5  0 turns, 3 entries, new, 0 tokens in, 0 out"),
        "{list}"
    );
    home.run(&sim.base_url(), &["stay", "--session", "f"]).await;
    let (old, new) = (conversation(&sim.request(2).await), conversation(&sim.request(3).await));
    let common = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    assert!(old[..common].contains("Nothing here.") && !old[..common].contains("bye"), "{}", &old[..common]);
    let events = json_lines(&home.agent(&["events", "f", "--json"]).await.stdout);
    assert_eq!(types(&events)[..3], ["session.started", "session.forked", "turn.started"]);

    let again = home.agent(&["sessions", "fork", "s", "--as", "f"]).await;
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("session f exists already"), "{}", again.stderr);
    let beyond = home.agent(&["sessions", "fork", "s", "--at", "9"]).await;
    assert!(beyond.stderr.contains("has 5 entries"), "{}", beyond.stderr);
}

#[tokio::test]
async fn out_deleted_and_in_again() {
    let home = Home::new();
    two_turns(&home).await;
    let file = home.work().join("s.jsonl");
    let path = file.to_str().unwrap();
    let out = home.agent(&["sessions", "export", "s", "--out", path]).await;
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let over = home.agent(&["sessions", "export", "s", "--out", path]).await;
    assert_eq!(over.code, Some(1), "nothing is overwritten");
    let before = home.agent(&["sessions", "show", "s"]).await.stdout;
    let notes =
        |session: &str| agent_memory::NotesFile::new(&home.data(), &agent::SessionId::new(session).unwrap());
    notes("s").write("# Task\n").unwrap();
    notes("other").write("# Task\n").unwrap();
    let deleted = home.agent(&["sessions", "delete", "s"]).await;
    assert_eq!((deleted.code, deleted.stdout.as_str()), (Some(0), "deleted s\n"));
    assert_eq!(home.agent(&["sessions", "show", "s"]).await.code, Some(2));
    let left = ["s", "other"].map(|session| notes(session).path().parent().unwrap().exists());
    assert_eq!(left, [false, true], "the notes go with their session");
    let back = home.agent(&["sessions", "import", path]).await;
    assert_eq!((back.code, back.stdout.as_str()), (Some(0), "s\n"), "{}", back.stderr);
    assert_eq!(home.agent(&["sessions", "show", "s"]).await.stdout, before);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(home.agent(&["sessions", "export", "s"]).await.stdout, text);
    assert_eq!(home.agent(&["sessions", "import", path]).await.code, Some(1), "there is one already");

    let cut = &text[..text.find(r#"{"kind":"checkpoint""#).unwrap() + 40];
    let damaged = home.agent_fed(&["sessions", "import", "--as", "half"], cut.as_bytes()).await;
    assert_eq!((damaged.code, damaged.stdout.as_str()), (Some(1), "half\n"));
    assert!(damaged.stderr.contains("the file was cut off here"), "{}", damaged.stderr);
}

#[tokio::test]
async fn a_session_at_work_is_not_deleted() {
    let home = Home::new();
    let sim = SimProvider::start(vec![Reply::text("done").held()]).unwrap();
    let url = sim.base_url();
    let args = ["run", "go", "--session", "s", "--base-url", &url];
    let first = home.command(&args).spawn().unwrap();
    sim.request(0).await;
    let refused = home.agent(&["sessions", "delete", "s"]).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("in use by process"), "{}", refused.stderr);
    sim.release();
    assert!(first.wait_with_output().await.unwrap().status.success());
}

#[tokio::test]
async fn events_of_another_process_are_followed_to_the_end() {
    let home = Home::new();
    let sim = SimProvider::start(vec![
        Reply::tool("glob", r#"{"pattern":"*"}"#),
        Reply::text("Nothing here.").held(),
    ])
    .unwrap();
    let url = sim.base_url();
    let run = home.command(&["run", "go", "--session", "s", "--base-url", &url]).spawn().unwrap();
    sim.request(1).await;
    let mut follow = home.command(&["events", "s", "--from", "2", "--follow", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        seen.push(serde_json::from_str(&line).unwrap());
        if seen.len() == 3 {
            sim.release();
        }
    }
    assert!(follow.wait().await.unwrap().success());
    assert!(run.wait_with_output().await.unwrap().status.success());
    let all = json_lines(&home.agent(&["events", "s", "--json"]).await.stdout);
    assert_eq!(seen, all[1..], "from number 2 to the last, each once");
    assert_eq!(types(&seen).last(), Some(&"session.waiting"));
    let text = home.agent(&["events", "s", "--from", &all.len().to_string()]).await.stdout;
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("session.waiting"), "{text}");
}
