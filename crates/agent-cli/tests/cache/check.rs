//! `agent cache check`: scenarios through real processes.

use serde_json::{Value, json};

use crate::support::{Home, Output, json_lines};

/// A loop of a few steps, with fields changed or added.
fn scenario(more: &Value) -> Value {
    let mut scenario = json!({
        "about": "A loop of a few steps.",
        "model": "anthropic/claude-opus-5-5",
        "system": [{"key": "role", "text": "You repair programs.", "tokens": 2000}],
        "tools": [{"name": "look", "count": 3, "tokens": 100}],
        "turns": [{"user": "Why does the build fail?", "steps": [
            {"repeat": 3, "tokens": 60, "calls": [{"tool": "look_ab", "result_tokens": 300}]},
            {"say": "Found."}
        ]}],
        "budget": {"min_hit_rate": 0.6, "max_cost_ratio": 1.05}
    });
    for (key, value) in more.as_object().unwrap() {
        scenario[key] = value.clone();
    }
    scenario
}

/// The command on these scenarios, in files of these names.
async fn check(scenarios: &[(&str, Value)], args: &[&str]) -> (Output, Home) {
    let home = Home::new();
    let folder = home.work().join("scenarios");
    std::fs::create_dir(&folder).unwrap();
    for (name, scenario) in scenarios {
        std::fs::write(folder.join(format!("{name}.json")), scenario.to_string()).unwrap();
    }
    let output = home.agent(&[&["cache", "check", "scenarios"], args].concat()).await;
    (output, home)
}

#[tokio::test]
async fn a_loop_that_keeps_its_prefix_passes_in_every_life() {
    let good = scenario(&json!({"restart_before": [3]}));
    let (output, _home) = check(&[("good", good.clone())], &["--rows"]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""), "{}", output.stdout);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(
        lines[0].starts_with("ok   good: 4 requests, ") && lines[0].ends_with("(at most 1.050)"),
        "{lines:?}"
    );
    let hashes: Vec<&str> = lines[1..5].iter().map(|line| &line[6..54]).collect();
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    assert_eq!(lines[5], "1 scenario, 0 failed");
    let (again, _home) = check(&[("good", good)], &["--rows"]).await;
    assert_eq!(again.stdout, output.stdout, "the same on every run");
}

#[tokio::test]
async fn a_broken_loop_is_told_with_place_cause_advice_and_numbers() {
    let broken = scenario(&json!({
        "sabotage": [{"leave_out_tool": {"from": 3, "what": "look_ab"}}],
        "budget": {"min_hit_rate": 0.6, "max_cost_ratio": 1.05},
    }));
    let clock = scenario(&json!({"sabotage": ["clock_in_system"]}));
    let (output, _home) = check(&[("broken", broken), ("clock", clock)], &[]).await;
    assert_eq!(output.code, Some(1));
    insta::assert_snapshot!(output.stdout, @"
    FAIL broken: 4 requests, 46.9% read (at least 60.0%), 1.725 of the ideal cost (at most 1.050)
      request 3: tool_removed at tools[1], 3245 tokens lost
        before: look_ab
        Keep the tool in the list; narrow what may be called with tool_choice, allowed tools or a check when it is called.
      hit rate: 46.9% of the input was read from the cache, the budget is at least 60.0%
        Look at the rows that read less than the one before had left.
      cost: 1.725 times the ideal (each token written once, read ever after), the budget is at most 1.050
        Look at the rows that write or pay in full what was there before.
    FAIL clock: 4 requests, 70.5% read (at least 60.0%), 1.000 of the ideal cost (at most 1.050)
      request 1: another process sent other bytes, from byte 67 on: system_changed at system[0]
        before: 12:00:00.
        after:  15:07:05.
        Keep the system text as it was for the session; send what changes in a message at the end. It looks like a time of day.
    2 scenarios, 2 failed
    ");
}

#[tokio::test]
async fn what_is_broken_on_purpose_must_be_found() {
    let red = |red: Value| scenario(&json!({"sabotage": ["no_markers"], "red": red}));
    let scenarios = [
        ("found", red(json!({"kind": "lost", "cause": "no_marker"}))),
        ("other-cause", red(json!({"cause": "expired"}))),
        ("other-place", red(json!({"cause": "no_marker", "path": "system[0]"}))),
        ("whole", scenario(&json!({"red": {"kind": "cost"}}))),
    ];
    let (output, _home) = check(&scenarios, &[]).await;
    assert_eq!(output.code, Some(1));
    let told: Vec<&str> = output.stdout.lines().filter(|line| !line.starts_with("    ")).collect();
    let heads: Vec<&str> =
        told.iter().copied().filter(|line| !line.starts_with(' ')).map(|it| &it[..12]).collect();
    assert_eq!(heads, ["ok   found: ", "FAIL other-c", "FAIL other-p", "FAIL whole: ", "4 scenarios,"]);
    assert!(told[0].ends_with("sabotaged, and found: lost, no_marker at messages[2].content[0]"), "{told:?}");
    assert!(told.contains(&"  it is sabotaged, and what it must fail with was not found: cost"), "{told:?}");
}

#[tokio::test]
async fn json_and_a_page_say_the_same() {
    let broken = scenario(&json!({"sabotage": ["no_markers"], "about": "<b>bold</b>"}));
    let (output, home) = check(&[("broken", broken)], &["--json", "--report", "out.html"]).await;
    assert_eq!((output.code, output.stderr.as_str()), (Some(1), ""));
    let told = &json_lines(&output.stdout)[0];
    assert_eq!(
        (&told["scenario"], &told["holds"], &told["requests"]),
        (&"broken".into(), &false.into(), &4.into())
    );
    assert_eq!(told["rows"].as_array().unwrap().len(), 4);
    assert_eq!(
        (&told["findings"][0]["kind"], &told["findings"][0]["cause"]),
        (&"lost".into(), &"no_marker".into())
    );
    let page = std::fs::read_to_string(home.work().join("out.html")).unwrap();
    assert!(page.contains("&lt;b&gt;bold&lt;/b&gt;") && !page.contains("<b>"), "words are no markup");
    assert!(page.contains("no_marker at messages[2].content[0]"), "the finding is on the page");
}

#[tokio::test]
async fn an_event_that_does_not_come_is_missed() {
    let day = |request: usize| {
        scenario(&json!({
            "tell_date": true,
            // Ten seconds before midnight, UTC.
            "clock": {"start_ms": 1_796_083_190_000_i64, "step_seconds": 15},
            "expect": [{"request": request, "words": "Today's date is 2026-12-01."}]
        }))
    };
    let (output, _home) = check(&[("right", day(2)), ("wrong", day(1))], &[]).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.starts_with("ok   right: "), "{}", output.stdout);
    let told = r#"  request 1: "Today's date is 2026-12-01." was to come with it, and came with request 2"#;
    assert!(output.stdout.contains(told), "{}", output.stdout);
}

#[tokio::test]
async fn a_summary_is_asked_beside_the_turn_and_takes_the_place_of_what_was_said() {
    let full = |request: usize| {
        scenario(&json!({
            "model": "anthropic/claude-opus-5",
            "window": {"context": 8000, "output": 1000},
            "summary_model": "anthropic/claude-haiku-4-5",
            "restart_before": [7],
            "turns": [
                {"user": "Why does the build fail?", "steps": [
                    {"repeat": 4, "calls": [{"tool": "look_ab", "result_tokens": 800}]},
                    {"say": "Found."}
                ]},
                {"user": "Write it.", "tokens": 600, "steps": [
                    {"say": "## Open\nThe missing file is to be written.", "beside": true},
                    {"say": "Written."}
                ]}
            ],
            "expect": [{"request": request, "words": "The missing file is to be written."}],
            "budget": {}
        }))
    };
    let (output, _home) = check(&[("right", full(7)), ("wrong", full(6))], &[]).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.starts_with("ok   right: 7 requests"), "{}", output.stdout);
    assert!(output.stdout.contains("was to come with it, and came with request 7"), "{}", output.stdout);
}

#[tokio::test]
async fn a_turn_that_is_blocked_sends_nothing_and_says_so() {
    let full = |tokens: u64, words: &str| {
        scenario(&json!({
            "model": "anthropic/claude-opus-5",
            "window": {"context": 8000, "output": 1000},
            "compaction": [],
            "turns": [
                {"user": "Why does the build fail?", "steps": [{"say": "Found."}]},
                {"user": "Write it.", "tokens": tokens, "steps": [], "ends": {"blocking_limit": words}}
            ],
            "budget": {}
        }))
    };
    let scenarios = [
        ("other-words", full(8_000, "I can go on")),
        ("right", full(8_000, "I cannot go on")),
        ("too-short", full(10, "I cannot go on")),
    ];
    let (output, _home) = check(&scenarios, &[]).await;
    assert_eq!(output.code, Some(1));
    let told = &output.stdout;
    assert!(told.contains("\nok   right: 1 request"), "{told}");
    assert!(told.contains("and its text does not hold \"I can go on\": I cannot go on:"), "{told}");
    assert!(told.contains(", and was to end as blocking_limit"), "{told}");
}

#[tokio::test]
async fn stages_shape_the_requests_in_their_steps() {
    let staged = |pipeline: Value, words: &str| {
        scenario(&json!({
            "model": "anthropic/claude-opus-5",
            "pipeline": pipeline,
            "expect": [{"request": 2, "words": words}],
            "budget": {}
        }))
    };
    let from_second = json!({"from": 1, "to": 2});
    let remind = json!([{"remind": {"words": ["Be brief."], "when": from_second}}]);
    let narrow = json!([{"narrow": {"tools": ["look_ab"], "when": from_second}}]);
    let switch = json!([{"switch_model": {"model": "anthropic/claude-sonnet-5", "when": {"from": 1}}}]);
    let scenarios = [
        ("narrow", staged(narrow, "For now, call only these tools: look_ab.")),
        ("remind", staged(remind, "Be brief.")),
        ("switch", staged(switch, r#""model":"claude-sonnet-5""#)),
    ];
    let (output, _home) = check(&scenarios, &[]).await;
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines[0].starts_with("ok   narrow: ") && lines[1].starts_with("ok   remind: "), "{lines:?}");
    // Nobody declared what it costs.
    assert!(lines[2].starts_with("FAIL switch: "), "{lines:?}");
    assert!(lines[3].starts_with("  request 2: model_changed at model, "), "{lines:?}");
}

#[tokio::test]
async fn nothing_to_play_and_mistakes_in_files_are_told() {
    let (none, _home) = check(&[], &[]).await;
    assert_eq!(none.code, Some(2));
    insta::assert_snapshot!(none.stderr, @"agent: no scenario in scenarios; give files or folders of scenarios, as docs/guides/cache-scenarios.md shows them");
    let missing = Home::new().agent(&["cache", "check"]).await;
    assert_eq!(missing.code, Some(2));
    insta::assert_snapshot!(missing.stderr, @"agent: fixtures/cache: No such file or directory (os error 2); give files or folders of scenarios, as docs/guides/cache-scenarios.md shows them");
    let (misspelt, _home) = check(&[("misspelt", scenario(&json!({"budgets": {}})))], &[]).await;
    assert_eq!(misspelt.code, Some(2));
    assert!(misspelt.stderr.contains("misspelt.json: unknown field `budgets`"), "{}", misspelt.stderr);
    assert!(misspelt.stderr.contains("docs/guides/cache-scenarios.md"), "{}", misspelt.stderr);
}

#[tokio::test]
async fn a_page_that_cannot_be_written_is_told_before_anything_is_played() {
    let (output, home) = check(&[("good", scenario(&json!({})))], &["--report", "scenarios"]).await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{}", output.stderr);
    assert!(output.stderr.contains("scenarios: "), "{}", output.stderr);
    drop(home);
}

#[tokio::test]
async fn one_that_is_stopped_leaves_no_folder_behind() {
    let long = scenario(&json!({"turns": [{"user": "Go.", "steps": [
        {"repeat": 2_000, "calls": [{"tool": "look_ab"}]}, {"say": "Done."}]}]}));
    let home = Home::new();
    std::fs::write(home.work().join("long.json"), long.to_string()).unwrap();
    let folder = home.work().join("temporary");
    std::fs::create_dir(&folder).unwrap();
    let entries = || std::fs::read_dir(&folder).unwrap().count();
    let mut child = home.command(&["cache", "check", "long.json"]).env("TMPDIR", &folder).spawn().unwrap();
    while entries() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let pid = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(130));
    assert_eq!(entries(), 0);
}
