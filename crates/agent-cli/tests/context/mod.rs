//! `agent context` and `agent compact`.

use agent_testkit::{Reply, SimProvider};
use serde_json::Value;

use crate::support::{Home, json_lines};

fn numbers(json: &Value) -> Vec<u64> {
    ["warning", "error", "autocompact", "blocking", "window"].map(|key| json[key].as_u64().unwrap()).to_vec()
}

#[tokio::test]
async fn how_full_a_context_is() {
    let home = Home::new();
    let missing = home.agent(&["context", "first"]).await;
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(2), ""));
    assert!(missing.stderr.contains("there is no session first in "), "{}", missing.stderr);
    assert!(!home.data().exists(), "looking creates nothing");

    let sim = SimProvider::start(vec![Reply::text("Nothing here.")]).unwrap();
    home.run(&sim.base_url(), &["look around", "--session", "first"]).await;
    let shown = json_lines(&home.agent(&["context", "first", "--json"]).await.stdout).remove(0);
    assert_eq!(shown["level"], "calm");
    let marks = numbers(&shown);
    assert!(marks.is_sorted() && marks[2] < marks[3] && marks[3] < marks[4], "{shown}");
    let (used, fixed) = (shown["used"].as_u64().unwrap(), shown["fixed"].as_u64().unwrap());
    assert!(0 < fixed && fixed < marks[0] && 0 < used, "{shown}");

    let text = home.agent(&["context", "first"]).await.stdout;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("context: {used} of {} tokens ({} %), calm", marks[4], shown["percent"]));
    assert_eq!(lines[1], format!("fixed {fixed} (system prompt and tools)"));
    assert_eq!(
        lines[2],
        format!(
            "warning {} · error {} · compaction {} · blocking {}",
            marks[0], marks[1], marks[2], marks[3]
        )
    );
}

#[tokio::test]
async fn a_context_is_compacted_by_hand() {
    let home = Home::new();
    let missing = home.agent(&["compact", "first"]).await;
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("there is no session first in "), "{}", missing.stderr);
    assert!(!home.data().exists(), "nothing is created");

    let sim = SimProvider::start(vec![Reply::text("Nothing here."), Reply::text("Looked around.")]).unwrap();
    home.run(&sim.base_url(), &["look around", "--session", "first"]).await;
    let keyless = home.agent(&["compact", "first"]).await;
    assert_eq!(keyless.code, Some(2), "a summary may be asked for: {}", keyless.stdout);
    assert!(keyless.stderr.contains("no API key"), "{}", keyless.stderr);

    let url = sim.base_url();
    let done = home.agent(&["compact", "first", "--base-url", &url, "--json"]).await;
    let json = json_lines(&done.stdout).remove(0);
    let (tiers, failed) = (json["tiers"].as_array().unwrap(), json["failed"].as_array().unwrap());
    assert_eq!(done.code, Some(i32::from(tiers.is_empty() && !failed.is_empty())), "{json}");
    for side in ["before", "after"] {
        assert!(numbers(&json[side]).is_sorted(), "{json}");
    }
    let text = home.agent(&["compact", "first", "--base-url", &url]).await.stdout;
    assert!(text.lines().last().unwrap().starts_with("context: "), "{text}");
    // The session goes on.
    let more = SimProvider::start(vec![Reply::text("Still here."); 6]).unwrap();
    let run = home.run(&more.base_url(), &["and now?", "--session", "first"]).await;
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
}
