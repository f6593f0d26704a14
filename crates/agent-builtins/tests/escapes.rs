//! No path leads out of the workspace, by whichever tool (requirement T9).

use serde_json::{Value, json};

use crate::support::{Bench, write};

const SECRET: &str = "the secret of the outside";

/// A workspace full of ways out, and a secret outside.
fn bench() -> Bench {
    let bench = Bench::new();
    write(&bench.outside().join("secret"), SECRET.as_bytes());
    bench.put("inside/f", "inside\n").put("f", "inside\n");
    bench.link("../outside", "dir");
    bench.link("../outside/secret", "last");
    bench.link("../outside/absent", "dangling");
    bench.link(bench.outside().join("secret"), "absolute");
    bench.link("/proc/self/root", "rootlink");
    bench.link("/proc/self/cwd", "cwdlink");
    bench.link("..", "inside/up");
    bench
}

fn ways_out(bench: &Bench) -> Vec<String> {
    let outside = bench.outside();
    let deep = "x/../".repeat(200);
    let mut ways: Vec<String> = [
        "../outside/secret",
        "inside/../../outside/secret",
        "./../outside/secret",
        "/etc/passwd",
        "/proc/self/root/etc/passwd",
        "dir/secret",
        "dir/absent",
        "last",
        "dangling",
        "absolute",
        "rootlink/etc/passwd",
        "cwdlink/Cargo.toml",
        "inside/up/../outside/secret",
        "inside/up/dir/secret",
        "..",
        "/",
    ]
    .map(str::to_owned)
    .into();
    ways.push(outside.join("secret").display().to_string());
    ways.push(bench.root().join("../outside/secret").display().to_string());
    ways.push(bench.root().join("dir/secret").display().to_string());
    ways.push(format!("{}-sibling/f", bench.root().display()));
    ways.push(format!("{deep}../outside/secret"));
    ways.push(format!("{}/{}", "l".repeat(300), "f"));
    ways
}

async fn check(tool: &str, input: impl Fn(&str) -> Value) {
    let bench = bench();
    for way in ways_out(&bench) {
        let said = bench.run(tool, input(&way)).await;
        let short = &way[..way.len().min(60)];
        assert!(said.starts_with("ERROR: "), "{tool} {short}: {said}");
        assert!(!said.contains(SECRET) && !said.contains("root:"), "{tool} {short}: {said}");
    }
    let names: Vec<_> =
        std::fs::read_dir(bench.outside()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["secret"], "{tool} made something outside");
    let link = bench.root().parent().unwrap().join("outside/secret");
    assert_eq!(std::fs::metadata(link).unwrap().len(), SECRET.len() as u64, "{tool} changed the outside");
}

#[tokio::test]
async fn no_tool_leads_out() {
    check("read_file", |path| json!({"path": path})).await;
    check("write_file", |path| json!({"path": path, "content": "broken"})).await;
    check("edit_file", |path| json!({"path": path, "edits": [{"old": "secret", "new": "broken"}]})).await;
    check("glob", |path| json!({"path": path, "pattern": "**"})).await;
    check("grep", |path| json!({"path": path, "pattern": "secret", "output": "content"})).await;
    check("bash", |path| json!({"cwd": path, "command": "cat secret; pwd"})).await;
}

#[tokio::test]
async fn walks_do_not_follow_links_out() {
    let bench = bench();
    assert_eq!(
        bench.run("glob", json!({"pattern": "**/secret"})).await,
        "No file fits `**/secret`, hidden and ignored files included. Try a wider pattern such as `**/*name*`."
    );
    let found = bench.run("grep", json!({"pattern": "secret|inside", "output": "files"})).await;
    assert_eq!(found, "f\ninside/f\n[2 files with 2 matching lines]");
    let all = bench.run("glob", json!({"pattern": "**"})).await;
    assert!(!all.contains("last") && !all.contains("absolute") && !all.contains("passwd"), "{all}");
}

#[tokio::test]
async fn the_refusal_teaches() {
    let bench = bench();
    let words = "leads outside the workspace, so it was not touched. Use a path inside the workspace, relative to its root; symbolic links that lead out, or that are absolute, are not followed.";
    for way in ["../outside/secret", "last", "dir/secret", "/etc/passwd"] {
        assert_eq!(bench.run("read_file", json!({"path": way})).await, format!("ERROR: `{way}` {words}"));
    }
    bench.link("nowhere", "loose");
    let loose = bench.run("write_file", json!({"path": "loose", "content": "x"})).await;
    assert_eq!(
        loose,
        "ERROR: `loose` is a symbolic link to something that does not exist, so it was not touched. Remove or mend the link first."
    );
    assert!(!bench.exists("nowhere"));
}

#[tokio::test]
async fn links_that_stay_inside_are_followed() {
    let bench = Bench::new();
    bench.put("real/f", "inside\n").link("real", "dir").link("real/f", "file");
    for path in ["dir/f", "file", "dir/../real/f"] {
        assert_eq!(
            bench.run("read_file", json!({"path": path})).await,
            "     1\tinside\n[all 1 lines, 7 bytes]"
        );
    }
    assert_eq!(bench.cx.slots.snapshot().reads.keys().collect::<Vec<_>>(), ["real/f"]);
}
