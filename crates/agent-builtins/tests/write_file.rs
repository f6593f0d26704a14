//! Writing whole files, and when that is refused (case T09).

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::{Bench, remove};

const STALE: &str = "ERROR: `f` changed since you read it; nothing was changed. Read it again with read_file, then repeat the call on what is there now.";

/// Writes `new` to `f` and tells what the tool said; what is refused must leave the file as it is.
async fn check(bench: &Bench, path: &str, expect: &str) {
    let before = bench.text("f");
    let said = bench.run("write_file", json!({"path": path, "content": "new\n"})).await;
    assert_eq!(said, expect);
    assert_eq!(bench.text("f"), if said.starts_with("ERROR") { before } else { "new\n".to_owned() });
}

#[tokio::test]
async fn new_files_pass_with_their_directories() {
    let bench = Bench::new();
    let said = bench.run("write_file", json!({"path": "a/b/c.txt", "content": "1\n2"})).await;
    assert_eq!(
        (said.as_str(), bench.text("a/b/c.txt").as_str()),
        ("Created `a/b/c.txt`: 2 lines, 3 bytes.", "1\n2")
    );
    let again = bench.run("write_file", json!({"path": "a/b/c.txt", "content": ""})).await;
    assert_eq!(again, "Replaced `a/b/c.txt`: 0 lines, 0 bytes.", "the own write counts as seen");
    let folder = bench.run("write_file", json!({"path": "new/", "content": ""})).await;
    assert!(folder.starts_with("ERROR: `new/` is a directory name"), "{folder}");
    let names: Vec<_> = std::fs::read_dir(bench.root().join("a/b")).unwrap().collect();
    assert_eq!(names.len(), 1, "no passing file is left behind");
}

#[tokio::test]
async fn an_existing_file_must_have_been_read_in_full() {
    let bench = Bench::new();
    bench.put("f", "1\n2\n3\n");
    check(&bench, "f", "ERROR: `f` exists and you have not read it; nothing was changed. Read it with read_file, then repeat the call.").await;
    bench.run("read_file", json!({"path": "f", "limit": 2})).await;
    check(&bench, "f", "ERROR: You have seen only parts of `f`, and write_file would replace all of it; nothing was changed. Read the rest with read_file first, or change the part you know with edit_file.").await;
    bench.run("read_file", json!({"path": "f", "offset": 3})).await;
    check(&bench, "f", "Replaced `f`: 1 lines, 4 bytes.").await;
    check(&bench, "f", "Replaced `f`: 1 lines, 4 bytes.").await;
}

#[tokio::test]
async fn content_decides_not_time() {
    let bench = Bench::new();
    bench.put("f", "old\n");
    bench.run("read_file", json!({"path": "f"})).await;
    let times = std::fs::metadata(bench.root().join("f")).unwrap().modified().unwrap();
    bench.put("f", "OLD\n");
    let file = std::fs::File::options().write(true).open(bench.root().join("f")).unwrap();
    file.set_modified(times).unwrap();
    check(&bench, "f", STALE).await;
    bench.put("f", "old\n");
    check(&bench, "f", "Replaced `f`: 1 lines, 4 bytes.").await;
}

#[tokio::test]
async fn one_file_has_one_stamp_whatever_its_path() {
    let bench = Bench::new();
    bench.put("f", "old\n").put("dir/x", "").link("f", "alias").link("dir", "also");
    bench.run("read_file", json!({"path": "alias"})).await;
    check(&bench, "./dir/../f", "Replaced `./dir/../f`: 1 lines, 4 bytes.").await;
    check(&bench, "also/../alias", "Replaced `also/../alias`: 1 lines, 4 bytes.").await;
    assert!(bench.root().join("alias").is_symlink(), "the link stays, the file behind it changed");
    assert_eq!(bench.cx.slots.snapshot().reads.len(), 1);
}

#[tokio::test]
async fn a_deleted_file_may_be_made_anew() {
    let bench = Bench::new();
    bench.put("f", "old\n");
    bench.run("read_file", json!({"path": "f"})).await;
    remove(&bench.root().join("f"));
    let said = bench.run("write_file", json!({"path": "f", "content": "new\n"})).await;
    assert_eq!(said, "Created `f`: 1 lines, 4 bytes.");
}

#[tokio::test]
async fn mode_bits_stay_and_read_only_is_respected() {
    let bench = Bench::new();
    bench.put("f", "old\n");
    let mode = |mode| {
        std::fs::set_permissions(bench.root().join("f"), std::fs::Permissions::from_mode(mode)).unwrap()
    };
    mode(0o750);
    bench.run("read_file", json!({"path": "f"})).await;
    check(&bench, "f", "Replaced `f`: 1 lines, 4 bytes.").await;
    assert_eq!(std::fs::metadata(bench.root().join("f")).unwrap().permissions().mode() & 0o7777, 0o750);
    mode(0o444);
    check(&bench, "f", "ERROR: `f` is read-only, so it was not changed. If the user wants it changed, make it writable first with bash: `chmod u+w`.").await;
}

#[tokio::test]
async fn binary_files_are_not_replaced() {
    let bench = Bench::new();
    bench.put("f", "a\0b");
    check(&bench, "f", "ERROR: `f` exists and is not text (binary data), so write_file does not replace it. If it must go, move or delete it with bash first.").await;
}
