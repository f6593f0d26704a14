//! `agent doctor` on the program's own agent: this repository's check of requirement V5.

use agent_testkit::{Reply, SimProvider};
use serde_json::Value;

use crate::support::Home;

async fn doctor(home: &Home, args: &[&str]) -> (Option<i32>, String, Value) {
    let output = home.agent(&[&["doctor", "--json"], args].concat()).await;
    assert_eq!(output.stderr, "");
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let all = json["items"].as_array().unwrap().iter().chain(json["also"].as_array().unwrap());
    let word = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let lines: Vec<String> =
        all.map(|finding| format!("{} {}", word(finding, "status"), word(finding, "name"))).collect();
    (output.code, lines.join("\n"), json)
}

#[tokio::test]
async fn our_own_agent_fails_in_nothing() {
    let home = Home::new();
    let (code, statuses, json) = doctor(&home, &[]).await;
    insta::assert_snapshot!(statuses, @"
    pass static-system
    pass breakpoints
    pass first-step
    pass permissions
    pass descriptions
    pass cancellation
    pass outputs
    pass stops
    pass persistence
    absent background
    pass minimum
    pass sources
    pass profile
    pass retries
    ");
    assert_eq!(code, Some(0), "{json:#}");
    for finding in json["items"].as_array().unwrap() {
        assert!(!finding["evidence"].as_array().unwrap().is_empty(), "{finding}");
    }
    assert!(!home.data().join("sessions.db").exists(), "nothing was created");
    let text = home.agent(&["doctor"]).await.stdout;
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.iter().all(|line| !line.trim().contains(' ')), "{wide:?}");
}

#[tokio::test]
async fn every_format_of_request_passes() {
    let home = Home::new();
    for model in
        ["openai/gpt-5.6-sol", "gemini/gemini-3.8-flash", "ollama/llama3.1:8b", "deepseek/deepseek-v4-flash"]
    {
        let (code, statuses, json) = doctor(&home, &["--model", model]).await;
        assert_eq!(code, Some(0), "{model}: {statuses} {json:#}");
    }
}

#[tokio::test]
async fn options_of_a_run_are_looked_at() {
    let home = Home::new();
    let args = ["--permission-mode", "bypass", "--max-steps", "5", "--max-attempts", "1"];
    let (code, statuses, _) = doctor(&home, &args).await;
    assert_eq!(code, Some(0), "warnings are no failure");
    for warned in ["warn permissions", "warn stops", "warn retries"] {
        assert!(statuses.contains(warned), "{statuses}");
    }
}

#[tokio::test]
async fn the_users_sessions_stay_as_they_are() {
    let home = Home::new();
    let sim = SimProvider::start(vec![Reply::text("Hello.")]).unwrap();
    home.run(&sim.base_url(), &["Hi", "--session", "mine"]).await;
    let before = home.agent(&["sessions", "list", "--json"]).await.stdout;
    let (code, statuses, json) = doctor(&home, &[]).await;
    assert_eq!(code, Some(0), "{statuses}");
    let seen = json["items"][8]["evidence"].to_string();
    assert!(seen.contains("the agent's own store gave back the same bytes"), "{seen}");
    let after = home.agent(&["sessions", "list", "--json"]).await.stdout;
    assert_eq!((before.lines().count(), before), (1, after));
}

#[tokio::test]
async fn a_store_that_cannot_be_used_fails() {
    let home = Home::new();
    std::fs::create_dir_all(home.data()).unwrap();
    std::fs::write(home.data().join("sessions.db"), "no database").unwrap();
    let output = home.agent(&["doctor"]).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("damaged"), "{}", output.stderr);
}
