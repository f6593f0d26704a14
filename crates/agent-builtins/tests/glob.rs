//! Finding files by name.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::Bench;

async fn check(bench: &Bench, input: Value, expect: &str) {
    assert_eq!(bench.run("glob", input.clone()).await, expect, "{input}");
}

/// Puts a file whose last change lies this many seconds after the epoch.
fn put_at(bench: &Bench, path: &str, seconds: u64) {
    bench.put(path, "");
    let file = std::fs::File::options().write(true).open(bench.root().join(path)).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
}

#[tokio::test]
async fn newest_first_then_by_path() {
    let bench = Bench::new();
    for (path, seconds) in
        [("src/b.rs", 10), ("src/a.rs", 10), ("src/deep/new.rs", 20), ("old.rs", 1), ("x.txt", 30)]
    {
        put_at(&bench, path, seconds);
    }
    check(
        &bench,
        json!({"pattern": "*.rs"}),
        "src/deep/new.rs\nsrc/a.rs\nsrc/b.rs\nold.rs\n[4 files, newest first]",
    )
    .await;
    check(&bench, json!({"pattern": "src/*.rs"}), "src/a.rs\nsrc/b.rs\n[2 files, newest first]").await;
    check(
        &bench,
        json!({"pattern": "*.rs", "path": "src"}),
        "src/deep/new.rs\nsrc/a.rs\nsrc/b.rs\n[3 files, newest first]",
    )
    .await;
    check(&bench, json!({"pattern": "deep/*", "path": "./src"}), "src/deep/new.rs\n[1 files, newest first]")
        .await;
    check(&bench, json!({"pattern": "*.rs", "limit": 2}), "src/deep/new.rs\nsrc/a.rs\n[2 of 4 files, newest first; narrow the pattern or the path, or raise limit]").await;
}

#[tokio::test]
async fn hidden_and_ignored_files_are_skipped_and_said_so() {
    let bench = Bench::new();
    bench
        .put(".gitignore", "/target\n*.log\n!keep.log\n")
        .put("target/out.bin", "")
        .put("a/x.log", "")
        .put("a/keep.log", "");
    bench
        .put(".github/ci.yml", "")
        .put(".git/config", "")
        .put("src/.gitignore", "gen\n")
        .put("src/gen/g.rs", "")
        .put("src/m.rs", "");
    check(&bench, json!({"pattern": "*.log"}), "a/keep.log\n[1 files, newest first]").await;
    check(&bench, json!({"pattern": "*.yml"}), "No file fits `*.yml` outside hidden and ignored paths, which were skipped; 1 inside them would, for example `.github/ci.yml`. To list them, name their directory in `path`.").await;
    check(&bench, json!({"pattern": "*.yml", "path": ".github"}), ".github/ci.yml\n[1 files, newest first]")
        .await;
    check(&bench, json!({"pattern": ".github/*"}), ".github/ci.yml\n[1 files, newest first]").await;
    check(&bench, json!({"pattern": "*", "path": "target"}), "target/out.bin\n[1 files, newest first]").await;
    check(&bench, json!({"pattern": "*", "path": "src"}), "src/m.rs\n[1 files, newest first]").await;
    check(&bench, json!({"pattern": "x.log", "path": "a"}), "No file fits `x.log` outside hidden and ignored paths, which were skipped; 1 inside them would, for example `a/x.log`. To list them, name their directory in `path`.").await;
    check(
        &bench,
        json!({"pattern": "config"}),
        "No file fits `config`, hidden and ignored files included. Try a wider pattern such as `**/*name*`.",
    )
    .await;
}

#[tokio::test]
async fn bad_patterns_and_places_explain_themselves() {
    let bench = Bench::new();
    let said = async |input: Value| bench.run("glob", input).await;
    assert!(
        said(json!({"pattern": "a{b"}))
            .await
            .starts_with("ERROR: `a{b` is not a glob: unclosed alternate group")
    );
    assert!(
        said(json!({"pattern": "../*"})).await.starts_with("ERROR: `../*` is not a glob: it must lie inside")
    );
    assert_eq!(said(json!({"pattern": "*", "path": "nope"})).await, "ERROR: `nope` does not exist.");
}

#[tokio::test]
async fn a_cancelled_walk_stops() {
    let bench = Bench::new();
    bench.put("f", "").cx.cancel.cancel();
    check(
        &bench,
        json!({"pattern": "*"}),
        "ERROR: The call was cancelled before it finished; it may have had part of its effect.",
    )
    .await;
    let grep = bench.run("grep", json!({"pattern": "x"})).await;
    assert!(grep.starts_with("ERROR: The call was cancelled"), "{grep}");
}
