//! Saying that the task is finished (requirement L5).

use serde_json::json;

use crate::support::Bench;

async fn check(todos: &[(&str, &str)], outcome: &str, expect: &str) {
    let bench = Bench::new();
    let items =
        todos.iter().map(|(id, status)| json!({"id": id, "text": format!("task {id}"), "status": status}));
    bench.run("todo", json!({"items": items.collect::<Vec<_>>()})).await;
    assert_eq!(bench.run("complete", json!({"summary": "All good.", "outcome": outcome})).await, expect);
}

#[tokio::test]
async fn refused_while_todos_are_open() {
    check(&[], "done", "All good.").await;
    check(&[("1", "done")], "done", "All good.").await;
    check(&[("1", "done")], "partial", "All good.\n\n[outcome: partial]").await;
    check(&[], "blocked", "All good.\n\n[outcome: blocked]").await;
    let open = "ERROR: The task is not complete: these todos are open:\n- 2: task 2\n- 3: task 3\nFinish them and mark them done with todo; drop from the list what is no longer wanted and say so in the summary. Then call complete again.";
    check(&[("1", "done"), ("2", "in_progress"), ("3", "pending")], "done", open).await;
    check(&[("2", "in_progress"), ("3", "pending")], "blocked", open).await;
    let bench = Bench::new();
    let blank = bench.run("complete", json!({"summary": " ", "outcome": "done"})).await;
    assert!(blank.starts_with("ERROR: The summary is blank."), "{blank}");
}
