//! `agent demo`, the first thing a newcomer runs.

use crate::support::{Home, json_lines};

#[tokio::test]
async fn every_claim_holds() {
    let home = Home::new();
    let output = home.agent(&["demo"]).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let report = output.stdout.split("\nReport\n").nth(1).unwrap();
    insta::assert_snapshot!(report, @"
    ✓ the project's tests failed before the edit and pass after it: [false, true]
    ✓ the turn ended as completed, after 7 steps
    ✓ the todo list is done: 3 of 3
    ✓ 7 model calls went over HTTP, 0 were refused
    ✓ 6 of 6 later requests begin with the very bytes of the one before
    ✓ the session loads from disk: 8 entries, 45 events, waiting for a message
    ");
    assert!(!home.data().exists(), "the demo leaves the user's data alone");
}

#[tokio::test]
async fn as_json_and_kept() {
    let home = Home::new();
    let kept = home.work().join("kept");
    let keep = kept.display().to_string();
    let output = home.agent(&["demo", "--json", "--keep", &keep]).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let lines = json_lines(&output.stdout);
    let report = lines.last().unwrap();
    assert_eq!(report["type"], "demo.report");
    assert!(report["data"]["claims"].as_array().unwrap().iter().all(|claim| claim["holds"] == true));
    let fixed = std::fs::read_to_string(kept.join("workspace/price.sh")).unwrap();
    assert!(fixed.contains("-ge 10"), "{fixed}");
    let data = kept.join("data").display().to_string();
    let shown = home.agent(&["sessions", "show", "demo", "--data-dir", &data]).await;
    assert!(shown.stdout.contains("• edit_file("), "{}", shown.stdout);

    let again = home.agent(&["demo", "--keep", &keep]).await;
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}
