//! `agent explain`: what it says is what `agent run` sends.

use agent_testkit::{Reply, SimProvider};
use serde_json::Value;

use crate::support::Home;

/// The body that `agent explain --json --wire` shows, and all that it says.
async fn explained(home: &Home, base_url: &str, args: &[&str]) -> (String, Value) {
    let all = ["explain", "--base-url", base_url, "--wire"];
    let text = home.agent(&[&all, args].concat()).await;
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""));
    let body = text.stdout.lines().last().unwrap().to_owned();
    let json = home.agent(&[&all, args, &["--json"]].concat()).await;
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["body"], serde_json::from_str::<Value>(&body).unwrap());
    assert_eq!(json["body_bytes"], body.len());
    (body, json)
}

#[tokio::test]
async fn the_body_explained_is_the_body_sent() {
    let home = Home::new();
    std::fs::write(home.work().join("AGENTS.md"), "Run the tests before you say that it works.\n").unwrap();
    let sim = SimProvider::start(vec![
        Reply::text("I look.").call("read_file", r#"{"path":"AGENTS.md"}"#),
        Reply::text("Seen."),
        Reply::text("Bye."),
    ])
    .unwrap();
    let url = sim.base_url();
    let (body, json) = explained(&home, &url, &["Look."]).await;
    assert!(!home.data().join("sessions.db").exists(), "nothing was created");
    assert_eq!(json["is_new"], true);
    let keys: Vec<&str> = json["prompt"]["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["key"].as_str().unwrap())
        .collect();
    assert!(keys.contains(&"system") && keys.contains(&"workspace"), "{keys:?}");
    home.run(&url, &["Look.", "--session", "s"]).await;
    assert_eq!(String::from_utf8_lossy(&sim.requests()[0].body), body);

    let (body, json) = explained(&home, &url, &["And now?", "--session", "s"]).await;
    assert_eq!((&json["is_new"], json["messages"].as_array().unwrap().len()), (&Value::Bool(false), 5));
    home.run(&url, &["And now?", "--session", "s"]).await;
    assert_eq!(String::from_utf8_lossy(&sim.requests()[2].body), body);
}

#[tokio::test]
async fn readable_text_without_a_key() {
    let home = Home::new();
    let output = home.agent(&["explain", "--bare", "Fix it."]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    let parts = ["session new would begin", "- read_file: ", "system ", "breakpoint, ", "1. user, entry 0: "];
    for part in parts {
        assert!(output.stdout.contains(part), "{part:?} in {}", output.stdout);
    }
    let wide = |line: &&str| line.chars().count() > 80 && line.contains(' ');
    let place = home.work().display().to_string();
    let wide: Vec<&str> = output.stdout.lines().filter(wide).filter(|line| !line.contains(&place)).collect();
    assert!(wide.is_empty(), "{wide:?}");
    let other = home.agent(&["explain", "--model", "nobody/x"]).await;
    assert_eq!(other.code, Some(2));
}
