//! Ignore files are files of the workspace like any other: bounded, regular and inside.

use std::time::Duration;

use serde_json::json;

use crate::support::{Bench, write};

/// Lists what fits `*`, within a time in which nothing endless is read.
async fn listed(bench: &Bench) -> String {
    let call = bench.run("glob", json!({"pattern": "*"}));
    tokio::time::timeout(Duration::from_secs(10), call).await.expect("no ignore file holds up a walk")
}

async fn check(bench: &Bench, expect: &[&str]) {
    let said = listed(bench).await;
    let mut names: Vec<&str> = said.lines().filter(|line| !line.starts_with('[')).collect();
    names.sort_unstable();
    assert_eq!(names, expect, "{said}");
}

/// Most memory this process ever held, in kB.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a test looks at its own memory")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

const NAMES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg(target_os = "linux")]
async fn one_without_end_is_not_read() {
    for name in NAMES {
        let bench = Bench::new();
        bench.put(".git/info/x", "").put("f", "").put("dir/g", "").link("/dev/zero", name);
        let before = peak();
        check(&bench, &["dir/g", "f"]).await;
        assert!(peak() < before + 300_000, "{name}: {} kB", peak() - before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_a_pipe_does_not_hang() {
    for name in NAMES {
        let bench = Bench::new();
        bench.put(".git/info/x", "").put("f", "").put("dir/g", "");
        let path = bench.root().join(name);
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        check(&bench, &["dir/g", "f"]).await;
        // Above where the walk begins it is not opened either.
        let call = bench.run("glob", json!({"pattern": "*", "path": "dir"}));
        let said = tokio::time::timeout(Duration::from_secs(10), call).await.unwrap();
        assert_eq!(said, "dir/g\n[1 files, newest first]", "{name}");
    }
}

#[tokio::test]
async fn one_outside_is_not_obeyed_and_one_inside_is() {
    for name in NAMES {
        let bench = Bench::new();
        write(&bench.outside().join("rules"), b"f\n");
        bench.put(".git/info/x", "").put("f", "").put("dir/g", "").put("rules", "g\nrules\n");
        bench.link("../outside/rules", name);
        check(&bench, &["dir/g", "f", "rules"]).await;
        crate::support::remove(&bench.root().join(name));
        bench.link(if name.starts_with(".git/") { "../../rules" } else { "rules" }, name);
        check(&bench, &["f"]).await;
    }
}

#[tokio::test]
async fn one_too_large_is_left_alone() {
    let bench = Bench::new();
    bench.put("f", "").put(".gitignore", format!("f\n{}", "#\n".repeat(600_000)));
    check(&bench, &["f"]).await;
    bench.put(".gitignore", format!("f\n{}", "#\n".repeat(500_000)));
    bench.put("g", "");
    check(&bench, &["g"]).await;
}

#[tokio::test]
async fn a_nearer_file_outweighs_a_farther_one_and_dot_ignore_all() {
    let bench = Bench::new();
    bench
        .put(".gitignore", "\u{feff}*.log\r\n/only\r\n!.shown\r\n")
        .put("a.log", "")
        .put("only", "")
        .put(".shown", "");
    bench.put("sub/.gitignore", "!b.log\n").put("sub/b.log", "").put("sub/c.log", "").put("sub/only", "");
    bench.put("top/.ignore", "!d.log\n").put("top/.gitignore", "d.log\n").put("top/d.log", "");
    bench.put("vcs/.git/info/exclude", "e\n").put("vcs/e", "").put("vcs/f", "").put("e", "");
    check(&bench, &[".shown", "e", "sub/b.log", "sub/only", "top/d.log", "vcs/f"]).await;
}
