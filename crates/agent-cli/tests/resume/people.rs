//! What waits is put to a person at a terminal.

use agent_testkit::Reply;

use super::{COLOUR, TOUCH, in_order, parked};
use crate::support::{Home, conversation};
use crate::terminal::talk;

#[tokio::test]
async fn a_question_is_answered_in_the_same_process() {
    let check = async |answers: &[&str], told: &str| {
        let home = Home::new();
        let sim = in_order(vec![Reply::tool("ask_question", COLOUR), Reply::text("So be it.")]);
        let url = sim.base_url();
        let talk = talk(&home, &["run", "go", "--base-url", &url], answers).await;
        assert_eq!(talk.code, Some(0), "{}{}", talk.asked, talk.stdout);
        assert!(talk.asked.contains("Which colour?\n  1. red\n  2. blue\n"), "{}", talk.asked);
        let body = conversation(&sim.request(1).await);
        assert!(body.contains(told), "{body}");
    };
    check(&["2"], r#""blue""#).await;
    check(&["", "a darker one"], "a darker one").await;
}

#[tokio::test]
async fn requests_are_put_one_after_the_other() {
    let home = Home::new();
    let sim =
        in_order(vec![Reply::tool("ask_question", COLOUR).call("bash", TOUCH), Reply::text("So be it.")]);
    parked(&home, &sim).await;
    let url = sim.base_url();
    let talk = talk(&home, &["resume", "s", "--base-url", &url], &["1", "y"]).await;
    assert_eq!(talk.code, Some(0), "{}{}", talk.asked, talk.stdout);
    assert!(talk.asked.contains("Which colour?") && talk.asked.contains("bash(touch ran)"), "{}", talk.asked);
    assert!(home.work().join("ran").exists());
    let body = conversation(&sim.request(1).await);
    assert!(body.contains("red") && body.contains("exit code 0"), "{body}");
}
