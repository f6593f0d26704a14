//! Exact replacement: literal, unambiguous, all or nothing (cases T08, T09).

use agent_core::ReadExtent;
use serde_json::{Value, json};

use crate::support::Bench;

/// Edits a file that was read in full; `Err` is what the tool said, and then the file is as before.
async fn edit(before: &str, edits: Value) -> Result<String, String> {
    let bench = Bench::new();
    bench.put("f", before);
    bench.run("read_file", json!({"path": "f"})).await;
    let said = bench.run("edit_file", json!({"path": "f", "edits": edits})).await;
    if let Some(error) = said.strip_prefix("ERROR: ") {
        assert_eq!(bench.text("f"), before, "a refused edit changes nothing");
        return Err(error.to_owned());
    }
    Ok(bench.text("f"))
}

async fn check(before: &str, old: &str, new: &str, expect: &str) {
    let after = edit(before, json!([{"old": old, "new": new}])).await;
    assert_eq!(after.as_deref(), Ok(expect), "{old:?} -> {new:?}");
}

async fn refuse(before: &str, old: &str, new: &str) -> String {
    edit(before, json!([{"old": old, "new": new}])).await.unwrap_err()
}

#[tokio::test]
async fn replacement_is_literal() {
    let odd = r#"log("$& $1 $$ ${x} \0 ok");"#;
    check("log(\"done\");\n", "log(\"done\");", odd, &format!("{odd}\n")).await;
    check("a.c abc\n", "a.c", "", " abc\n").await;
    check("äöü\n", "ö", "🌍", "ä🌍ü\n").await;
}

#[tokio::test]
async fn line_endings_byte_order_mark_and_last_line_stay() {
    check("a\r\nb\r\nc\r\n", "a\nb", "a\nx\ny", "a\r\nx\r\ny\r\nc\r\n").await;
    check("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n").await;
    check("a\r\nb\r\n", "a\r\nb\r\n", "x\r\n", "x\r\n").await;
    check("a\nb\n", "a\r\nb\r\n", "x\r\ny\r\n", "x\ny\n").await;
    check("a\nb\r\nc\nd\r\n", "a\nb\nc\nd", "a\nb\nC\nd", "a\nb\r\nC\nd\r\n").await;
    check("a\nb\r\nc\n", "b\n", "x\ny\n", "a\nx\r\ny\r\nc\n").await;
    check("\u{feff}a\nb", "b", "c", "\u{feff}a\nc").await;
    check("\u{feff}a\n", "a", "b", "\u{feff}b\n").await;
    check("a\nb", "b", "b\n", "a\nb\n").await;
    check("a\nb\n", "b\n", "b", "a\nb").await;
    check("bar\rbaz\n", "bar", "x", "x\rbaz\n").await;
}

#[tokio::test]
async fn what_names_no_one_place_is_refused() {
    let unchanged = "Nothing was changed in `f`.";
    assert_eq!(
        refuse("x\ny\nx\n", "x", "z").await,
        format!(
            "`old` occurs 2 times, on lines 1, 3. Take in more of the surrounding text so that it occurs once, or set replace_all to true. {unchanged}"
        )
    );
    assert_eq!(
        refuse("aaa\n", "aa", "b").await,
        format!(
            "`old` occurs in places that overlap, beginning on lines 1, so it is not clear what to replace. Take in more of the surrounding text. {unchanged}"
        )
    );
    assert_eq!(
        refuse("x\n", "", "z").await,
        format!(
            "`old` is empty, so it names no place. To insert, give the neighbouring text as `old` and the same with the addition as `new`; to write a whole file use write_file. {unchanged}"
        )
    );
    assert!(refuse("", "", "z").await.starts_with("`old` is empty"));
    assert_eq!(
        refuse("x\n", "x", "x").await,
        format!(
            "`old` and `new` are equal, so there is nothing to do; line endings stay as the file has them. {unchanged}"
        )
    );
    let cancelled =
        edit("x\n", json!([{"old": "x", "new": "y"}, {"old": "y", "new": "x"}])).await.unwrap_err();
    assert!(cancelled.starts_with("The edits cancel each other out"), "{cancelled}");
    assert!(edit("x\n", json!([])).await.unwrap_err().starts_with("There are no edits"));
}

#[tokio::test]
async fn a_miss_says_what_is_there() {
    let text = "fn main() {\n\tlet total = 1;\n}\n";
    insta::assert_snapshot!(refuse(text, "let totl = 1;", "x").await, @r"
    `old` was not found. Nearest lines:
         2		let total = 1;
    Copy the text exactly from the file and try again. Nothing was changed in `f`.
    ");
    insta::assert_snapshot!(refuse(text, "    let total = 1;\n}", "x").await, @"`old` was not found. Line 2 has the same words with other white space; copy it exactly, with its tabs and spaces. Nothing was changed in `f`.");
    insta::assert_snapshot!(refuse(text, "     2\t\tlet total = 1;\n     3\t}", "x").await, @"`old` was not found. It seems to hold the line numbers that read_file puts before each line; leave out each number and the tab after it. Without them it is on line 2. Nothing was changed in `f`.");
    insta::assert_snapshot!(refuse(text, "zzzzzz", "x").await, @"`old` was not found. Nothing in the file is like it; read the file again and copy the text from there. Nothing was changed in `f`.");
}

#[tokio::test]
async fn all_edits_or_none() {
    let both = edit("a\nb\n", json!([{"old": "a", "new": "x\nb2"}, {"old": "b2", "new": "y"}])).await;
    assert_eq!(both.as_deref(), Ok("x\ny\nb\n"), "an edit sees what the one before it made");
    let second =
        edit("a\nb\n", json!([{"old": "a", "new": "x"}, {"old": "a", "new": "y"}])).await.unwrap_err();
    assert!(second.starts_with("Edit 2 of 2: `old` was not found."), "{second}");
    let every = edit("x x\nx\n", json!([{"old": "x", "new": "xx", "replace_all": true}])).await;
    assert_eq!(every.as_deref(), Ok("xx xx\nxx\n"));
    assert!(edit("aaa", json!([{"old": "aa", "new": "b", "replace_all": true}])).await.is_err());
}

#[tokio::test]
async fn the_change_is_shown_as_a_diff() {
    let bench = Bench::new();
    bench.put("src/a.txt", "1\r\n2\r\n3\r\n4\r\n5\r\n6\r\n");
    bench.run("read_file", json!({"path": "src/a.txt"})).await;
    let diff =
        bench.run("edit_file", json!({"path": "src/a.txt", "edits": [{"old": "5", "new": "five"}]})).await;
    insta::assert_snapshot!(diff, @r"
    --- a/src/a.txt
    +++ b/src/a.txt
    @@ -2,5 +2,5 @@
     2
     3
     4
    -5
    +five
     6
    ");
}

#[tokio::test]
async fn only_lines_that_were_seen_may_change() {
    let bench = Bench::new();
    bench.put("f", "1\n2\n3\n4\n5\n");
    let edit = async |old: &str, new: &str| {
        bench.run("edit_file", json!({"path": "f", "edits": [{"old": old, "new": new}]})).await
    };
    assert!(edit("2", "two").await.starts_with("ERROR: `f` exists and you have not read it"));
    bench.run("read_file", json!({"path": "f", "offset": 2, "limit": 2})).await;
    assert_eq!(
        edit("3\n4", "x").await,
        "ERROR: The text is on lines 3-4, which you have not seen. Read them with read_file (offset 3), then repeat the edit. Nothing was changed in `f`."
    );
    assert!(edit("2\n", "two\nand a half\n").await.contains("+and a half"));
    let seen = bench.cx.slots.snapshot().reads["f"].seen.clone();
    assert_eq!(seen, ReadExtent::Lines(vec![(2, 4)]), "what was written is known, the rest is not");
    assert!(edit("3\n", "three\n").await.contains("+three"), "the own edit is no stranger's change");
    let whole = bench.run("write_file", json!({"path": "f", "content": ""})).await;
    assert!(whole.starts_with("ERROR: You have seen only parts"), "{whole}");
    bench.put("f", "other\n");
    assert!(edit("3", "x").await.starts_with("ERROR: `f` changed since you read it"));
    assert_eq!(bench.text("f"), "other\n");
}

#[tokio::test]
async fn files_that_cannot_be_edited_as_text() {
    let bench = Bench::new();
    bench.put("bin", "a\0b").put("latin", b"caf\xe9");
    let edit = async |path: &str| {
        bench.run("edit_file", json!({"path": path, "edits": [{"old": "a", "new": "b"}]})).await
    };
    assert_eq!(
        edit("bin").await,
        "ERROR: `bin` is not text (binary data), so it cannot be edited as text. Change it with bash, or convert it first."
    );
    assert_eq!(
        edit("latin").await,
        "ERROR: `latin` is not UTF-8 (first at byte 3), so it cannot be edited as text. Change it with bash, or convert it first."
    );
    assert_eq!(edit("lat").await, "ERROR: `lat` does not exist. Did you mean `latin`?");
}
