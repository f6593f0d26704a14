//! Recorded answers played back.

use agent_testkit::{Pick, RawReply, SimOptions, SimProvider, Source};

use crate::client::{Client, ask};

fn recording() -> Vec<RawReply> {
    vec![
        RawReply::sse("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"),
        RawReply::json("{\"n\": 1.0}"),
        RawReply { status: 429, headers: [("retry-after".into(), "3".into())].into(), body: "slow".into() },
    ]
}

#[tokio::test]
async fn answers_come_in_order_and_byte_for_byte() {
    let sim = SimProvider::replaying(recording()).unwrap();
    let mut client = Client::connect(&sim).await;
    for expect in recording() {
        let answer = client.send("POST", "/v1/chat/completions", &[], "{}").await.unwrap();
        assert_eq!((answer.status, answer.text().as_bytes()), (expect.status, &expect.body[..]));
        for (name, value) in &expect.headers {
            assert_eq!(answer.headers[name], value.as_str());
        }
    }
    sim.check_complete().unwrap();
    let past = client.send("POST", "/", &[], "{}").await.unwrap();
    assert!(past.text().contains("reply 4 was asked for"));
}

#[tokio::test]
async fn answers_come_by_history() {
    let options = SimOptions { chunk_bytes: Some(1), validate: false, ..SimOptions::default() };
    assert_eq!(options.pick, Pick::ByHistory);
    let sim = SimProvider::start_with(Source::Recorded(recording()), options).unwrap();
    let mut client = Client::connect(&sim).await;
    for (exchanges, expect) in [(2, "slow"), (1, "{\"n\": 1.0}"), (1, "{\"n\": 1.0}")] {
        let answer = client.post(&ask(exchanges, true)).await;
        assert_eq!(answer.text(), expect);
        assert!(answer.frames.iter().all(|frame| frame.len() == 1));
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_pass() {
    let body: &[u8] = b"data: \xff\xfe\n\n";
    let sim = SimProvider::replaying(vec![RawReply::sse(body)]).unwrap();
    assert_eq!(Client::connect(&sim).await.post("{}").await.frames.concat(), body);
}
