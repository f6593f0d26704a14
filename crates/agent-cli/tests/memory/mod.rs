//! `agent memory`.

use crate::support::{Home, json_lines};

const ADD: [&str; 10] = [
    "memory",
    "add",
    "--name",
    "short",
    "--type",
    "feedback",
    "--description",
    "Wants: short answers",
    "--body",
    "Be short.\n\n**Why:** reads diffs\n\n**How to apply:** no summary",
];

#[tokio::test]
async fn memories_are_kept_listed_shown_and_removed() {
    let home = Home::new();
    let place = home.agent(&["memory", "path"]).await.stdout;
    let place = std::path::Path::new(place.trim());
    assert!(place.starts_with(home.data().join("projects")) && place.ends_with("memory"), "{place:?}");
    let none = home.agent(&["memory", "list"]).await;
    assert!(none.stdout.starts_with("No memories in ") && !home.data().exists(), "{}", none.stdout);

    assert_eq!(home.agent(&ADD).await.stdout, format!("Kept short in {}.\n", place.display()));
    assert_eq!(home.agent(&["memory", "list"]).await.stdout, "short  feedback  Wants: short answers\n");
    let shown = home.agent(&["memory", "show", "short"]).await.stdout;
    assert!(shown.starts_with("---\nname: short\ndescription: \"Wants: short answers\"\n"), "{shown}");
    let row = json_lines(&home.agent(&["memory", "list", "--json"]).await.stdout);
    assert_eq!(
        row,
        [serde_json::json!({"name": "short", "type": "feedback", "description": "Wants: short answers"})]
    );
    let one = json_lines(&home.agent(&["memory", "show", "short", "--json"]).await.stdout);
    assert!(one[0]["body"].as_str().unwrap().starts_with("Be short."), "{one:?}");

    // A folder in the project is the same project; another data directory holds others.
    std::fs::create_dir_all(home.work().join(".git")).unwrap();
    std::fs::create_dir(home.work().join("deep")).unwrap();
    let deep = home.agent(&["memory", "list", "--cwd", "deep"]).await.stdout;
    assert_eq!(deep, "short  feedback  Wants: short answers\n");
    let other = home.agent(&["memory", "list", "--data-dir", "elsewhere"]).await.stdout;
    assert!(other.starts_with("No memories in "), "{other}");

    assert!(home.agent(&["memory", "rm", "short"]).await.stdout.starts_with("Removed short in "));
    assert_eq!(home.agent(&["memory", "list"]).await.stdout, "");
}

#[tokio::test]
async fn what_cannot_be_done_says_why() {
    let home = Home::new();
    let check = async |args: &[&str], expect: &str| {
        let output = home.agent(&[&["memory"], args].concat()).await;
        assert_eq!(output.code, Some(2), "{}", output.stderr);
        assert!(output.stderr.contains(expect), "{args:?}: {}", output.stderr);
    };
    check(&["show", "short"], "there is no memory `short`. There are none yet.").await;
    check(&["rm", "../short"], "is no name of a memory").await;
    check(&["list", "--memory-dir", "/"], "name a folder of its own").await;
    let lacking = [&ADD[1..9], &["Be short."]].concat();
    check(&lacking, "`short.md` is no memory: a memory of type feedback needs").await;
    let fact = [&ADD[1..5], &["fact"], &ADD[6..]].concat();
    check(&fact, "it is `user`, `feedback`, `project` or `reference`").await;
    assert!(!home.data().exists(), "nothing was made");
    assert_eq!(home.agent(&ADD).await.code, Some(0));
    check(&ADD[1..], "there is a memory `short` already").await;
    let place = home.agent(&["memory", "path"]).await.stdout;
    std::fs::write(std::path::Path::new(place.trim()).join("Odd.md"), "x").unwrap();
    let listed = home.agent(&["memory", "list"]).await;
    assert!(listed.stderr.starts_with("agent: no memory: Odd.md: "), "{}", listed.stderr);
}
