//! `agent sessions`.

mod keep;

use agent_testkit::{Reply, SimProvider};

use crate::support::{Home, json_lines, types};

#[tokio::test]
async fn list_and_show() {
    let home = Home::new();
    let none = home.agent(&["sessions", "list"]).await;
    insta::assert_snapshot!(home.placeless(&none.stdout), @r#"No sessions in DATA yet. `agent run "…"` begins one."#);
    assert!(!home.data().exists(), "looking creates nothing");

    let sim =
        SimProvider::start(vec![Reply::tool("glob", r#"{"pattern":"*"}"#), Reply::text("Nothing here.")])
            .unwrap();
    home.run(&sim.base_url(), &["look around", "--session", "first"]).await;
    let list = home.agent(&["sessions", "list", "--json"]).await;
    let list = json_lines(&list.stdout);
    assert_eq!(
        (list.len(), &list[0]["id"], &list[0]["entries"], &list[0]["terminal"]),
        (1, &"first".into(), &3.into(), &"done".into())
    );
    let text = home.agent(&["sessions", "list"]).await.stdout;
    assert!(text.starts_with("first  anthropic/claude-opus-5-5  1 turn, 3 entries, done, "), "{text}");

    let shown = home.agent(&["sessions", "show", "first"]).await.stdout;
    let (date, shown) = shown.split_once('\n').unwrap();
    assert!(date.starts_with("> Today's date is 20"), "{date}");
    let shown: String =
        shown.lines().filter(|line| !line.starts_with("tokens")).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(shown, @r#"
    > look around
    • glob({"pattern":"*"})
      ✓ No file fits `*`, hidden and ignored files included. Try a wider pattern such as `**/*name*`.
    Nothing here.

    (the last turn ended as done)
    "#);
    let events = home.agent(&["sessions", "show", "first", "--json"]).await;
    assert_eq!(types(&json_lines(&events.stdout)).last(), Some(&"session.waiting"));
}
