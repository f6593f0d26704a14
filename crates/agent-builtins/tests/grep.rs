//! Searching text (case T06).

use serde_json::{Value, json};

use crate::support::Bench;

async fn check(bench: &Bench, input: Value, expect: &str) {
    assert_eq!(bench.run("grep", input.clone()).await, expect, "{input}");
}

fn bench() -> Bench {
    let bench = Bench::new();
    bench
        .put("b.rs", "fn one() {}\nfn two() {}\n// three\n")
        .put("a.rs", "fn ONE() {}\r\n--pre=sh -e [x]\r\n");
    bench.put("dir/c.txt", "one\n");
    bench
}

#[tokio::test]
async fn each_output_in_the_order_of_paths() {
    let bench = bench();
    check(&bench, json!({"pattern": "one"}), "b.rs\ndir/c.txt\n[2 files with 2 matching lines]").await;
    check(
        &bench,
        json!({"pattern": "fn", "output": "count"}),
        "a.rs: 1\nb.rs: 2\n[2 files with 3 matching lines]",
    )
    .await;
    check(
        &bench,
        json!({"pattern": "ONE|two", "output": "content"}),
        "a.rs:1:fn ONE() {}\nb.rs:2:fn two() {}\n[2 matching lines in 2 files]",
    )
    .await;
    check(
        &bench,
        json!({"pattern": "one", "ignore_case": true, "glob": "*.rs"}),
        "a.rs\nb.rs\n[2 files with 2 matching lines]",
    )
    .await;
    check(&bench, json!({"pattern": "one", "path": "dir"}), "dir/c.txt\n[1 files with 1 matching lines]")
        .await;
    check(
        &bench,
        json!({"pattern": "two", "path": "b.rs", "output": "content", "context": 1}),
        "b.rs-1-fn one() {}\nb.rs:2:fn two() {}\nb.rs-3-// three\n[1 matching lines in 1 files]",
    )
    .await;
    check(
        &bench,
        json!({"pattern": r"\}$", "output": "count"}),
        "a.rs: 1\nb.rs: 2\n[2 files with 3 matching lines]",
    )
    .await;
}

#[tokio::test]
async fn a_pattern_is_always_data() {
    let bench = bench();
    check(
        &bench,
        json!({"pattern": "--pre=sh", "output": "content"}),
        "a.rs:2:--pre=sh -e [x]\n[1 matching lines in 1 files]",
    )
    .await;
    check(&bench, json!({"pattern": "-e"}), "a.rs\n[1 files with 1 matching lines]").await;
    check(&bench, json!({"pattern": "[x]", "literal": true}), "a.rs\n[1 files with 1 matching lines]").await;
    let bad = bench.run("grep", json!({"pattern": "["})).await;
    assert!(
        bad.starts_with("ERROR: `[` is not a regular expression:")
            && bad.contains("unclosed character class"),
        "{bad}"
    );
    assert!(bad.ends_with("set literal to true to search for the text as it stands."), "{bad}");
    assert!(bench.run("grep", json!({"pattern": ""})).await.starts_with("ERROR: The pattern is empty"));
    let newline = bench.run("grep", json!({"pattern": "a\nb"})).await;
    assert!(newline.starts_with("ERROR: `a\nb` is not a regular expression"), "{newline}");
}

#[tokio::test]
async fn the_limit_is_over_all_files_and_all_are_counted() {
    let bench = Bench::new();
    bench.put("a", "x\n".repeat(3)).put("b", "y\nx\nx\n".repeat(33_000)).put("c", "x\n");
    check(&bench, json!({"pattern": "x", "output": "content", "limit": 4}), "a:1:x\na:2:x\na:3:x\nb:2:x\n[the first 4 of 66004 matching lines in 3 files; narrow the pattern, the path or the glob, or raise limit]").await;
    check(&bench, json!({"pattern": "x", "limit": 2}), "a\nb\n[the first 2 of 3 files with 66004 matching lines; narrow the pattern, the path or the glob, or raise limit]").await;
    bench.put("b", "x\n1\n2\n3\n4\nx\n");
    let cut = json!({"pattern": "x", "path": "b", "output": "content", "limit": 1, "context": 1});
    check(&bench, cut, "b:1:x\nb-2-1\n[the first 1 of 2 matching lines in 1 files; narrow the pattern, the path or the glob, or raise limit]").await;
    let all = json!({"pattern": "x", "path": "b", "output": "content", "context": 1});
    check(&bench, all, "b:1:x\nb-2-1\n--\nb-5-4\nb:6:x\n[2 matching lines in 1 files]").await;
}

#[tokio::test]
async fn binary_files_are_passed_over_and_long_lines_cut() {
    let bench = Bench::new();
    bench
        .put("bin", "needle\0")
        .put("late", format!("{}needle\0", "x\n".repeat(50_000)))
        .put("wide", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    bench.put("long", format!("needle{}", "é".repeat(500)));
    let said = bench.run("grep", json!({"pattern": "needle", "output": "content"})).await;
    assert_eq!(
        said,
        format!(
            "long:1:needle{} [… 506 bytes of this line left out]\nwide:1:needle\n[2 matching lines in 2 files; 2 binary files were passed over]",
            "é".repeat(247)
        )
    );
}

#[tokio::test]
async fn an_empty_result_says_where_nobody_looked() {
    let bench = Bench::new();
    bench
        .put(".gitignore", "out\n")
        .put("out/f", "needle\n")
        .put(".github/ci.yml", "needle\n")
        .put("f", "hay\n");
    check(&bench, json!({"pattern": "needle"}), "No line matches `needle` in the 1 files searched. 3 files in hidden or ignored paths were not searched; to search them, name their directory in `path`. If you expected one, try ignore_case, a shorter pattern, or literal for text with special characters.").await;
    check(
        &bench,
        json!({"pattern": "needle", "path": ".github/"}),
        ".github/ci.yml\n[1 files with 1 matching lines]",
    )
    .await;
    check(&bench, json!({"pattern": "needle", "path": "out"}), "out/f\n[1 files with 1 matching lines]")
        .await;
    check(&bench, json!({"pattern": "x", "path": "gone"}), "ERROR: `gone` does not exist.").await;
}

#[tokio::test]
async fn what_is_no_file_is_named_and_not_called_searched() {
    let bench = Bench::new();
    let pipe = bench.root().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let words = "ERROR: `pipe` is a named pipe, not a regular file. It was not opened, because reading it could block for ever; use bash if you must.";
    check(&bench, json!({"pattern": "x", "path": "pipe"}), words).await;
    assert_eq!(bench.run("glob", json!({"pattern": "*", "path": "pipe"})).await, words);
}
