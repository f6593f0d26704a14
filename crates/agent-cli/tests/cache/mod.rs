//! `agent cache audit`.

mod check;

use crate::support::{Home, Output, json_lines};

const RULES: &str = "Answer in one sentence. Read before you write. ";

/// A request body of an agent whose system prompt begins with these words and whose tools stand in this order.
fn body(begin: &str, tools: [&str; 2]) -> String {
    let tools = tools.map(|name| format!(r#"{{"name":"{name}","input_schema":{{}}}}"#)).join(",");
    let system = format!("{begin}{}", RULES.repeat(150));
    format!(
        r#"{{"model":"claude-opus-5-5","max_tokens":9,"tools":[{tools}],"system":[{{"type":"text","text":"{system}","cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"Hi"}}]}}"#
    )
}

async fn audit(lines: &[String], args: &[&str]) -> Output {
    let home = Home::new();
    let file = home.work().join("requests.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    home.agent(&[&["cache", "audit", file.to_str().unwrap()], args].concat()).await
}

#[tokio::test]
async fn what_breaks_a_prefix_is_named_and_fails_the_command() {
    let sorted = ["edit", "read"];
    let lines = [
        body("It is 12:00:01. ", sorted),
        format!(r#"{{"request":{},"at":60}}"#, body("It is 12:00:02. ", sorted)),
        format!(r#"{{"request":{},"at":61}}"#, body("It is 12:00:02. ", ["read", "edit"])),
    ];
    let output = audit(&lines, &[]).await;
    assert_eq!(output.code, Some(1));
    let told: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("      ")).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    suspect: system[0] holds a clock: It is 12:00:01. Answer in one sentence.
    system_changed at system[0]: 2077 tokens lost, $0.0100
      before: 12:00:01.
      after:  12:00:02.
      Keep the system text as it was for the session; send what changes in a message at the end. It looks like a time of day.
    tools_reordered at tools[0]: 2077 tokens lost, $0.0100
      before: edit
      after:  read
      Sort the tools by name once; do not take their order from a map, a directory or who connects first.
    ");

    let rows = json_lines(&audit(&lines, &["--json"]).await.stdout);
    assert_eq!(rows.len(), 4, "three requests and their sums");
    assert_eq!(
        (&rows[1]["divergence"]["path"], &rows[2]["divergence"]["cause"]),
        (&"system[0]".into(), &"tools_reordered".into())
    );
    assert_eq!(rows[3]["causes"]["system_changed"], 1);
}

#[tokio::test]
async fn an_agent_that_keeps_its_prefix_passes() {
    let same = body("", ["edit", "read"]);
    let counted = r#"{"input":3,"cache_read":1700}"#;
    let lines = [same.clone(), same.clone(), format!(r#"{{"request":{same},"at":9,"usage":{counted}}}"#)];
    let output = audit(&lines, &[]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.stdout);
    assert!(output.stdout.contains("read 1700 written 0 new 3 (counted, $"), "{}", output.stdout);
    assert!(output.stdout.contains("; 0 tokens lost"), "{}", output.stdout);
}

#[tokio::test]
async fn a_run_outside_of_its_budget_fails_though_no_prefix_broke() {
    let same = body("", ["edit", "read"]);
    // Read once, and written once: half of the input, at (1.25 + 0.05) times the price of a token.
    let lines = [same.clone(), same];
    let check = async |args: &[&str], code: i32| {
        let output = audit(&lines, args).await;
        assert_eq!(output.code, Some(code), "{args:?}: {}{}", output.stdout, output.stderr);
        output
    };
    check(&["--min-hit-rate", "49", "--max-cost-ratio", "1.01"], 0).await;
    let low = check(&["--min-hit-rate", "90"], 1).await;
    insta::assert_snapshot!(low.stderr, @"hit rate 49.8% is below --min-hit-rate 90, at best it is 49.9%: nothing this short can reach that; play a longer session or ask for less");
    let dear = check(&["--min-hit-rate", "49", "--max-cost-ratio", "0.5", "--json"], 1).await;
    insta::assert_snapshot!(dear.stderr, @"the input cost 1.001 times the ideal, above --max-cost-ratio 0.5: the rows above say where tokens were lost");
    let sums = json_lines(&dear.stdout).pop().unwrap();
    assert!((sums["cost_ratio"].as_f64().unwrap() - 1.0).abs() < 0.01, "{sums}");
    assert_eq!(sums["causes"], serde_json::json!({}), "standard output is JSON to the end");

    let odd = check(&["--min-hit-rate", "900"], 2).await;
    assert!(odd.stderr.contains("from 0 to 100"), "{}", odd.stderr);
    let odd = check(&["--max-cost-ratio", "nan"], 2).await;
    assert!(odd.stderr.contains("above 0"), "{}", odd.stderr);
}

#[tokio::test]
async fn what_is_no_request_is_told_with_its_line() {
    let told = async |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let output = audit(&lines, &[]).await;
        let (_, told) = output.stderr.rsplit_once("requests.jsonl").unwrap();
        format!("{:?} {told}", output.code)
    };
    insta::assert_snapshot!(told(&["nope"]).await, @r#"Some(2) :1: the request body is not JSON: expected ident at line 1 column 2; give one body a line, as it was sent; a line is the body of a request, or {"request": BODY, "at": SECONDS, "usage": {…}}, or a recorded exchange"#);
    let late = told(&[r#"{"request":{"model":"m","messages":[]},"at":"noon"}"#]).await;
    assert!(late.contains("invalid type: string \"noon\""), "{late}");
    let theirs = told(&[r#"{"request":{"model":"m","messages":[]},"usage":{"input_tokens":9}}"#]).await;
    assert!(theirs.contains("unknown field `input_tokens`"), "counts are not taken for zero: {theirs}");
    insta::assert_snapshot!(told(&["", " "]).await, @"Some(2)  holds no request; give a file with the body of a request a line");
    let output = audit(&[body("a", ["x", "y"])], &["--provider", "deepsek"]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""));
    assert!(output.stderr.contains("bedrock, deepseek, "), "{}", output.stderr);
    let none = audit(&[body("a", ["x", "y"])], &["--provider", "none"]).await;
    assert_eq!(none.code, Some(0), "{}", none.stderr);
}

#[tokio::test]
async fn a_mark_of_the_editor_is_passed_over_and_a_name_nobody_has_is_refused() {
    let same = body("", ["edit", "read"]);
    let marked = [format!("\u{feff}{same}"), same.clone()];
    let output = audit(&marked, &["--provider", "anthropic"]).await;
    assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
    let typo = audit(&[same], &["--provider", "Anthropic"]).await;
    assert_eq!(typo.code, Some(2), "{}", typo.stderr);
    assert!(typo.stderr.contains("known: anthropic, "), "{}", typo.stderr);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_told_with_their_line() {
    let home = Home::new();
    let file = home.work().join("requests.jsonl");
    std::fs::write(&file, [body("", ["edit", "read"]).as_bytes(), b"\n\xff\n"].concat()).unwrap();
    let output = home.agent(&["cache", "audit", file.to_str().unwrap()]).await;
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("requests.jsonl:2: it is not UTF-8"), "{}", output.stderr);
}
