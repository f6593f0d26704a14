//! The todo list.

use serde_json::{Value, json};

use crate::support::Bench;

async fn check(items: Value, expect: &str) {
    let bench = Bench::new();
    assert_eq!(bench.run("todo", json!({"items": items})).await, expect);
    let kept = bench.cx.slots.snapshot().todos.len();
    assert_eq!(kept, if expect.starts_with("ERROR") { 0 } else { items.as_array().unwrap().len() });
}

#[tokio::test]
async fn the_whole_list_is_checked_and_kept() {
    let item = |id: &str, text: &str, status: &str| json!({"id": id, "text": text, "status": status});
    let again = "The list was not changed; send the whole list again.";
    check(
        json!([item("1", "a", "done"), item("2", "b", "in_progress"), item("3", "c", "pending")]),
        "[x] 1: a\n[>] 2: b\n[ ] 3: c\n1 of 3 done.",
    )
    .await;
    check(json!([item("1", "a", "completed")]), "[x] 1: a\n1 of 1 done.").await;
    check(json!([]), "The todo list is empty.").await;
    check(
        json!([item("1", "a", "pending"), item("1", "b", "pending")]),
        &format!("ERROR: Two items have the id `1`; give each its own. {again}"),
    )
    .await;
    check(
        json!([item("1", "a", "in_progress"), item("2", "b", "in_progress")]),
        &format!("ERROR: Items `1` and `2` are both in_progress; only one may be. {again}"),
    )
    .await;
    check(
        json!([item("1", " ", "pending")]),
        &format!("ERROR: Every item needs an id and a text that are not blank. {again}"),
    )
    .await;
    let bench = Bench::new();
    let misfit = bench.run("todo", json!({"items": [item("1", "a", "doing")]})).await;
    assert!(misfit.contains("at `items[0].status`: unknown variant `doing`, expected"), "{misfit}");
}

#[tokio::test]
async fn a_refused_list_leaves_the_old_one() {
    let bench = Bench::new();
    bench.run("todo", json!({"items": [{"id": "1", "text": "a", "status": "pending"}]})).await;
    let before = bench.cx.slots.snapshot();
    bench.run("todo", json!({"items": [{"id": "", "text": "a", "status": "pending"}]})).await;
    assert_eq!(bench.cx.slots.snapshot(), before);
}
