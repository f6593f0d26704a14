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

#[tokio::test]
async fn what_is_learnt_in_one_session_is_used_in_another() {
    let home = Home::new();
    let kept = home.work().join("kept").display().to_string();
    let output = home.agent(&["demo", "memory", "--keep", &kept]).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    assert!(output.stdout.contains("    **Why:** They read on a small screen at the quay.\n"));
    assert!(output.stdout.contains("(feedback_one_sentence.md): Wants answers in one sentence\n"));
    let report = output.stdout.split("\nReport\n").nth(1).unwrap();
    let claims: Vec<&str> = report.lines().filter(|line| !line.starts_with("Kept: ")).collect();
    // Tokens go with the length of the path of the workspace.
    let figures = |text: &str| {
        let words = text
            .split(' ')
            .map(|word| if word.starts_with(|c: char| c.is_ascii_digit()) { "N" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(figures(&claims.join("\n")), @"
    ✓ runs behind the turns wrote [1, N N memories; the agent itself wrote none
    ✓ the first request of the third session holds the line of the index, that of the first does not
    ✓ the third session looked at what was learnt in the first
    ✓ N of N later requests begin with the very bytes of the one before
    ✓ the run that wrote it read N of its input from the session's cache
    ✓ no file of the project was changed
    ✓ it cost N tokens beside the N of the session
    ");

    let output = home.agent(&["demo", "memory", "--json"]).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let lines = json_lines(&output.stdout);
    let claims = lines.last().unwrap()["data"]["claims"].as_array().unwrap().clone();
    assert!(claims.len() == 7 && claims.iter().all(|claim| claim["holds"] == true));
    assert!(!home.data().exists(), "the demo leaves the user's data alone");
}
