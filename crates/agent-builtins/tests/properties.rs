//! Families behind the cases: edits on any mix of line endings, and any spelling of a path, on real files.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Bench, write};

fn block<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

#[expect(clippy::disallowed_methods, reason = "a test looks at the disk behind the sandbox's back")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// A file of numbered lines, each with an ending of its own, perhaps with a byte order mark, perhaps without a last
/// ending.
fn file() -> impl Strategy<Value = (String, usize)> {
    let ending = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let lines = proptest::collection::vec(("[a-zé ]{0,6}", ending), 1..9);
    (lines, any::<bool>(), any::<bool>()).prop_map(|(lines, marked, ended)| {
        let count = lines.len();
        let mut text = String::from(if marked { "\u{feff}" } else { "" });
        for (number, (words, ending)) in lines.iter().enumerate() {
            let ending = if ended || number + 1 < count { ending } else { "" };
            text.push_str(&format!("<{number}>{words}{ending}"));
        }
        (text, count)
    })
}

/// The line ending that is in force at a place: that of its line, or else the last one before it.
fn ending_at(text: &str, at: usize) -> &'static str {
    let end = text[at..].find('\n').map(|offset| at + offset).or_else(|| text[..at].rfind('\n'));
    if end.is_some_and(|end| text[..end].ends_with('\r')) { "\r\n" } else { "\n" }
}

async fn edit(bench: &Bench, edits: Value) -> String {
    bench.run("read_file", json!({"path": "f"})).await;
    bench.run("edit_file", json!({"path": "f", "edits": edits})).await
}

/// A way to write a path, good or bad.
fn spelling() -> impl Strategy<Value = String> {
    let long = "l".repeat(300);
    let piece = proptest::sample::select(vec![
        "a".to_owned(),
        "b".into(),
        "f".into(),
        ".".into(),
        "..".into(),
        String::new(),
        "dir".into(),
        "file".into(),
        "out".into(),
        "abs".into(),
        "dangling".into(),
        "loop".into(),
        "up".into(),
        "secret".into(),
        "outside".into(),
        "ws".into(),
        "caf\u{e9}".into(),
        "cafe\u{301}".into(),
        "sp ace".into(),
        "new".into(),
        long,
    ]);
    let start = proptest::sample::select(vec!["", "", "./", "/", "ROOT/", "ROOT//", "ROOT/../"]);
    (start, proptest::collection::vec(piece, 1..6), any::<bool>()).prop_map(|(start, pieces, slash)| {
        format!("{start}{}{}", pieces.join("/"), if slash { "/" } else { "" })
    })
}

/// A workspace of files and links, and beside it what must stay as it is.
fn workspace() -> Bench {
    let bench = Bench::new();
    write(&bench.outside().join("secret"), b"SECRET");
    for path in ["f", "a/f", "a/b/f", "caf\u{e9}", "cafe\u{301}", "sp ace"] {
        bench.put(path, format!("inside {path}\n"));
    }
    bench.link("a", "dir").link("a/f", "file").link("../outside", "out").link(bench.outside(), "abs");
    bench
        .link("nowhere", "dangling")
        .link("loop", "loop")
        .link("..", "a/up")
        .link("../../outside/secret", "a/secret");
    bench
}

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), read(&entry.path()))).collect()
}

async fn none_leads_out(bench: &Bench, path: &str) {
    let root = bench.root();
    let outside = bench.outside();
    let before = files(&outside);
    let real = root.join(path).canonicalize().ok();
    let said = bench.run("read_file", json!({"path": path})).await;
    let is_inside = real.as_ref().is_some_and(|real| real.starts_with(&root));
    if said.starts_with("ERROR: ") {
        let plain = !path.contains("..") && !path.ends_with('/') && is_inside;
        assert!(!plain || !real.is_some_and(|real| real.is_file()), "{path}: {said}");
    } else {
        // What is no directory may end in a slash, which the system itself would not take.
        assert!(real.is_none() || is_inside, "{path}: {said}");
        assert!(said.contains("inside ") && !said.contains("SECRET"), "{path}: {said}");
    }
    let calls = [
        ("edit_file", json!({"path": path, "edits": [{"old": "inside", "new": "inside now"}]})),
        ("write_file", json!({"path": path, "content": "inside anew\n"})),
        ("glob", json!({"path": path, "pattern": "**"})),
        ("grep", json!({"path": path, "pattern": "SECRET|inside", "output": "content"})),
    ];
    for (tool, input) in calls {
        let said = bench.run(tool, input).await;
        assert!(!said.contains("SECRET"), "{tool} {path}: {said}");
    }
    assert_eq!(files(&outside), before, "{path} changed the outside");
    let beside = std::fs::read_dir(root.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 2, "{path} made something beside the workspace");
    for stamped in bench.cx.slots.snapshot().reads.keys() {
        let file = root.join(stamped);
        assert_eq!(file.canonicalize().unwrap(), file, "{path}: a stamp has the real path");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_edit_leaves_every_other_byte((text, count) in file(), at in 0usize..9, new in "[xyé]{1,3}(\n[xy]{1,3}){0,2}") {
        let number = at % count;
        let old = format!("<{number}>");
        let place = text.find(&old).unwrap();
        let fitted = new.replace('\n', ending_at(&text, place));
        let expect = format!("{}{fitted}{}", &text[..place], &text[place + old.len()..]);
        block(async {
            let bench = Bench::new();
            bench.put("f", &text);
            let said = edit(&bench, json!([{"old": old, "new": new}])).await;
            prop_assert_eq!(bench.text("f"), expect, "{}", said);
            Ok(())
        })?;
    }

    #[test]
    fn edits_are_all_made_or_none((text, count) in file(), at in 0usize..9) {
        let old = format!("<{}>", at % count);
        block(async {
            let bench = Bench::new();
            bench.put("f", &text);
            let said = edit(&bench, json!([{"old": old, "new": "x"}, {"old": "<absent>", "new": "y"}])).await;
            prop_assert!(said.starts_with("ERROR: Edit 2 of 2: "), "{}", said);
            prop_assert_eq!(bench.bytes("f"), text.as_bytes());
            Ok(())
        })?;
    }

    #[test]
    fn a_path_leads_inside_or_is_refused(paths in proptest::collection::vec(spelling(), 4)) {
        block(async {
            let bench = workspace();
            for path in paths {
                let root = bench.root().display().to_string();
                none_leads_out(&bench, &path.replace("ROOT", &root)).await;
            }
        });
    }
}
