//! Each way the simulated provider can fail, and that the reply comes after it.

use std::time::Duration;

use agent_testkit::{Fault, RawReply, Reply, SimOptions, SimProvider, Source};
use tokio::time::timeout;

use crate::client::{Answer, Client, KEYS, ask};

/// Asks twice: the first answer has the fault, the second must be good.
async fn with_fault(fault: Fault, stream: bool) -> Result<Answer, hyper::Error> {
    let reply = Reply::text("four words of text").fault(fault);
    let sim = SimProvider::start(vec![reply]).unwrap();
    let first = Client::connect(&sim).await.send("POST", "/v1/messages", &KEYS, &ask(0, stream)).await;
    assert!(sim.check_complete().is_err(), "a fault uses up no reply");
    let second = Client::connect(&sim).await.post(&ask(0, stream)).await;
    assert_eq!((second.status, second.complete), (200, true));
    assert!(second.text().contains("four words of text"));
    assert!(sim.refusals().is_empty(), "a fault on purpose is no refusal");
    sim.check_complete().unwrap();
    first
}

#[tokio::test]
async fn a_status_has_the_body_of_the_service() {
    for (status, kind) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (413, "request_too_large"),
        (500, "api_error"),
        (502, "api_error"),
        (529, "overloaded_error"),
    ] {
        for stream in [true, false] {
            let answer = with_fault(Fault::status(status), stream).await.unwrap();
            assert_eq!(answer.status, status);
            assert_eq!(answer.json()["error"]["type"], kind);
            assert!(answer.headers.get("retry-after").is_none());
        }
    }
    let limited = with_fault(Fault::rate_limited(7), true).await.unwrap();
    assert_eq!((limited.status, &limited.headers["retry-after"]), (429, &"7".try_into().unwrap()));
    assert_eq!(limited.json()["error"]["type"], "rate_limit_error");
    let message = Some("prompt is too long: 9 tokens > 8 maximum".to_owned());
    let said = with_fault(Fault::Status { status: 400, retry_after: None, message }, true).await.unwrap();
    assert_eq!(said.json()["error"]["message"], "prompt is too long: 9 tokens > 8 maximum");
}

#[tokio::test]
async fn an_error_event_ends_a_stream_that_began_well() {
    let check = async |after: usize, expect: &[&str]| {
        let answer = with_fault(Fault::overloaded_event(after), true).await.unwrap();
        assert_eq!((answer.status, answer.complete), (200, true));
        assert_eq!(answer.events(), expect);
        assert!(answer.text().ends_with("data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"));
    };
    check(0, &["error"]).await;
    check(2, &["message_start", "content_block_start", "error"]).await;
    let all = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta:text_delta",
        "content_block_stop",
        "message_delta",
        "error",
    ];
    check(999, &all).await;
    let whole = with_fault(Fault::overloaded_event(1), false).await.unwrap();
    assert_eq!((whole.status, &whole.json()["error"]["type"]), (529, &"overloaded_error".into()));
}

#[tokio::test]
async fn a_cut_breaks_the_connection_after_its_events() {
    for (after, expect) in [(0, 0), (3, 3), (999, 6)] {
        let answer = with_fault(Fault::Cut { after }, true).await.unwrap();
        assert_eq!((answer.status, answer.complete, answer.events().len()), (200, false, expect));
    }
    let whole = with_fault(Fault::Cut { after: 0 }, false).await.unwrap();
    assert!(!whole.complete && serde_json::from_str::<serde_json::Value>(&whole.text()).is_err());
}

#[tokio::test]
async fn a_hangup_gives_no_answer() {
    assert!(with_fault(Fault::Hangup, true).await.is_err());
    assert!(with_fault(Fault::Hangup, false).await.is_err());
}

#[tokio::test]
async fn a_raw_answer_goes_out_as_it_is() {
    let page = RawReply {
        status: 502,
        headers: [("content-type".into(), "text/html".into()), ("content-length".into(), "3".into())].into(),
        body: "<html>bad gateway</html>".into(),
    };
    let answer = with_fault(Fault::Raw(page), true).await.unwrap();
    assert_eq!((answer.status, &answer.headers["content-type"]), (502, &"text/html".try_into().unwrap()));
    assert_eq!(answer.text(), "<html>bad gateway</html>");
}

#[tokio::test]
async fn a_stall_lasts_until_the_client_goes() {
    let sim = SimProvider::start(vec![Reply::text("words").fault(Fault::Stall { after: 2 })]).unwrap();
    let mut client = Client::connect(&sim).await;
    let stalled = timeout(Duration::from_millis(50), client.post(&ask(0, true))).await;
    assert!(stalled.is_err(), "nothing may end it");
    drop(client);
    assert_eq!(Client::connect(&sim).await.post(&ask(0, true)).await.status, 200);
}

#[tokio::test]
async fn faults_are_given_in_order_and_then_the_reply() {
    let reply = Reply::text("ok").fault_times(2, &Fault::status(529)).fault(Fault::rate_limited(1));
    let sim = SimProvider::start(vec![reply]).unwrap();
    let mut client = Client::connect(&sim).await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(client.post(&ask(0, true)).await.status);
    }
    assert_eq!(statuses, [529, 529, 429, 200, 200]);
}

#[tokio::test]
async fn a_slow_reply_waits_before_each_event() {
    let sim = SimProvider::start(vec![Reply::text("words").slowly(15)]).unwrap();
    let mut client = Client::connect(&sim).await;
    let hasty = timeout(Duration::from_millis(40), client.post(&ask(0, true))).await;
    assert!(hasty.is_err(), "seven events take at least 105 ms");
    let answer = Client::connect(&sim).await.post(&ask(0, true)).await;
    assert_eq!((answer.events().len(), answer.complete), (7, true));
}

#[tokio::test]
async fn chunks_fall_anywhere() {
    let options = SimOptions { chunk_bytes: Some(7), ..SimOptions::default() };
    let script = vec![Reply::text("naïve 🦀")];
    let sim = SimProvider::start_with(Source::Script(script.into()), options).unwrap();
    let answer = Client::connect(&sim).await.post(&ask(0, true)).await;
    assert!(answer.frames.iter().all(|frame| frame.len() <= 7));
    assert!(answer.text().contains("naïve 🦀"));
    assert_eq!(answer.events().len(), 7);
}

#[tokio::test]
async fn input_that_is_no_json_needs_a_stream() {
    let sim = SimProvider::start(vec![Reply::tool("read", r#"{"pa"#)]).unwrap();
    let mut client = Client::connect(&sim).await;
    assert!(client.post(&ask(0, true)).await.text().contains(r#""partial_json":"{\"pa""#));
    let whole = client.post(&ask(0, false)).await;
    assert_eq!(whole.status, 400);
    assert!(whole.text().contains("only a streamed answer can carry"));
}

#[tokio::test]
async fn a_wrong_script_is_told_to_the_client() {
    let sim = SimProvider::start(vec![Reply::text("a").fault(Fault::status(42))]).unwrap();
    let answer = Client::connect(&sim).await.post(&ask(0, true)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("status 42"));
}
