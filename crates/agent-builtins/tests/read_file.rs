//! Reading: pages, edges, and what is refused (case T06).

use std::process::Command;
use std::sync::Arc;

use agent_core::{BlobHash, ReadExtent};
use agent_tools::Blobs;
use serde_json::{Value, json};

use crate::support::Bench;

async fn check(bench: &Bench, input: Value, expect: &str) {
    assert_eq!(bench.run("read_file", input.clone()).await, expect, "{input}");
}

#[tokio::test]
async fn pages_and_edges() {
    let bench = Bench::new();
    bench.put("f", "one\ntwo\nthree\n").put("empty", "").put("crlf", "a\r\nb\r\n").put("bom", "\u{feff}a\nb");
    check(&bench, json!({"path": "f"}), "     1\tone\n     2\ttwo\n     3\tthree\n[all 3 lines, 14 bytes]")
        .await;
    check(
        &bench,
        json!({"path": "f", "limit": 1}),
        "     1\tone\n[lines 1-1 of 3, 14 bytes; go on with offset 2]",
    )
    .await;
    check(
        &bench,
        json!({"path": "f", "offset": 3}),
        "     3\tthree\n[lines 3-3 of 3, 14 bytes; this is the end]",
    )
    .await;
    check(
        &bench,
        json!({"path": "f", "offset": 4}),
        "ERROR: `f` has 3 lines, so there is no line 4. Read from a line up to 3, or leave offset out.",
    )
    .await;
    check(
        &bench,
        json!({"path": "f", "limit": 0}),
        "ERROR: A limit of 0 shows nothing; ask for at least 1 line, or leave limit out.",
    )
    .await;
    check(&bench, json!({"path": "empty"}), "[the file is empty: 0 lines, 0 bytes]").await;
    check(&bench, json!({"path": "empty", "offset": 2}), "[the file is empty: 0 lines, 0 bytes]").await;
    check(&bench, json!({"path": "crlf"}), "     1\ta\n     2\tb\n[all 2 lines, 6 bytes; CRLF line endings]")
        .await;
    check(
        &bench,
        json!({"path": "bom"}),
        "     1\ta\n     2\tb\n[all 2 lines, 6 bytes; byte order mark; no final newline]",
    )
    .await;
    let absolute = bench.root().join("f");
    check(
        &bench,
        json!({"path": absolute, "limit": 1}),
        "     1\tone\n[lines 1-1 of 3, 14 bytes; go on with offset 2]",
    )
    .await;
}

#[tokio::test]
async fn what_is_no_text_is_named() {
    let bench = Bench::new();
    bench.put("p.png", b"\x89PNG\r\n\x1a\n\0\0\0\0").put("late", [&[b'x'; 9000][..], b"\0"].concat());
    bench.put("wide", b"\xff\xfeh\0i\0").put("latin", b"caf\xe9\n").put("dir/x", "");
    check(&bench, json!({"path": "p.png"}), "ERROR: `p.png` is not text (a PNG image), 12 bytes, so it is not shown. Look at it with bash, for example `file`, `xxd | head` or a program for its kind.").await;
    check(&bench, json!({"path": "late"}), "ERROR: `late` is not text (binary data), 9001 bytes, so it is not shown. Look at it with bash, for example `file`, `xxd | head` or a program for its kind.").await;
    check(&bench, json!({"path": "wide"}), "ERROR: `wide` is text in UTF-16 (little-endian), 6 bytes, so it is not shown. Convert it with bash, for example `iconv -f UTF-16 -t UTF-8`, and read the result.").await;
    check(
        &bench,
        json!({"path": "dir"}),
        "ERROR: `dir` is a directory, not a regular file. Use glob to list its files, then name one of them.",
    )
    .await;
    let latin = bench.run("read_file", json!({"path": "latin"})).await;
    assert!(
        latin.starts_with("     1\tcaf\u{fffd}\n[all 1 lines, 5 bytes; not UTF-8, first at byte 3;"),
        "{latin}"
    );
    assert!(bench.cx.slots.snapshot().reads.is_empty(), "nothing here may be written back");
}

#[tokio::test]
async fn special_files_are_refused_without_blocking() {
    let bench = Bench::new();
    assert!(Command::new("mkfifo").arg(bench.root().join("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(bench.root().join("sock")).unwrap();
    let words = "It was not opened, because reading it could block for ever; use bash if you must.";
    check(
        &bench,
        json!({"path": "pipe"}),
        &format!("ERROR: `pipe` is a named pipe, not a regular file. {words}"),
    )
    .await;
    check(
        &bench,
        json!({"path": "sock"}),
        &format!("ERROR: `sock` is a socket, not a regular file. {words}"),
    )
    .await;
}

#[tokio::test]
async fn a_giant_line_and_a_long_file_stay_small() {
    let bench = Bench::new();
    bench.put("one.json", "é".repeat(170_000)).put("long", "0123456789\n".repeat(20_000));
    let line = bench.run("read_file", json!({"path": "one.json"})).await;
    assert!(
        line.len() < 5_000 && line.contains("[… 336000 bytes of this line left out;"),
        "{}",
        &line[4000..]
    );
    let stamp = |path: &str| bench.cx.slots.snapshot().reads[path].seen.clone();
    assert_eq!(stamp("one.json"), ReadExtent::Lines(vec![]), "a clipped line was not seen");
    let long = bench.run("read_file", json!({"path": "long"})).await;
    assert!(
        long.len() < 51_200
            && long.ends_with("[lines 1-2000 of 20000, 220000 bytes; go on with offset 2001]")
    );
    assert_eq!(stamp("long"), ReadExtent::Lines(vec![(1, 2000)]));
    bench.put("wide", format!("{}\n", "w".repeat(1_500)).repeat(100));
    let wide = bench.run("read_file", json!({"path": "wide"})).await;
    assert!(wide.len() < 51_200 && wide.ends_with("go on with offset 34]"), "{}", &wide[wide.len() - 80..]);
}

#[tokio::test]
async fn pages_add_up_to_a_full_stamp() {
    let bench = Bench::new();
    bench.put("f", "1\n2\n3\n4\n");
    let seen = || bench.cx.slots.snapshot().reads["f"].seen.clone();
    bench.run("read_file", json!({"path": "f", "offset": 3, "limit": 2})).await;
    assert_eq!(seen(), ReadExtent::Lines(vec![(3, 4)]));
    bench.run("read_file", json!({"path": "./x/../f", "limit": 2})).await;
    assert_eq!(seen(), ReadExtent::Lines(vec![(3, 4)]), "a path through a missing folder names nothing");
    bench.run("read_file", json!({"path": "./f", "limit": 2})).await;
    assert_eq!(seen(), ReadExtent::Full);
}

#[tokio::test]
async fn a_missing_file_names_near_ones() {
    let bench = Bench::new();
    bench.put("src/parser.rs", "").put("docs/notes.md", "");
    check(
        &bench,
        json!({"path": "parser.rs"}),
        "ERROR: `parser.rs` does not exist. Did you mean `src/parser.rs`?",
    )
    .await;
    check(
        &bench,
        json!({"path": "docs/note.md"}),
        "ERROR: `docs/note.md` does not exist. Did you mean `docs/notes.md`?",
    )
    .await;
    check(&bench, json!({"path": "zzz"}), "ERROR: `zzz` does not exist. Use glob to find the right path.")
        .await;
}

#[derive(Debug)]
struct OneBlob(BlobHash, &'static str);

#[async_trait::async_trait]
impl Blobs for OneBlob {
    async fn get(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, String> {
        Ok((*hash == self.0).then(|| self.1.as_bytes().to_vec()))
    }
}

#[tokio::test]
async fn an_offloaded_output_is_read_by_its_handle() {
    let mut bench = Bench::new();
    let hash = "ab".repeat(32);
    bench.cx.blobs = Arc::new(OneBlob(BlobHash::parse(&hash).unwrap(), "x\ny\nz\n"));
    check(
        &bench,
        json!({"path": format!("blob:{hash}"), "offset": 2, "limit": 1}),
        "     2\ty\n[lines 2-2 of 3, 6 bytes; go on with offset 3]",
    )
    .await;
    let missing = bench.run("read_file", json!({"path": "blob:12"})).await;
    assert_eq!(
        missing,
        "ERROR: There is no `blob:12` in this session. Copy the handle exactly from the shortened output, or run that tool again."
    );
    assert!(bench.cx.slots.snapshot().reads.is_empty());
}
