//! The simulated provider: what it says, what it refuses, what it remembers.

use std::time::Duration;

use agent_core::Usage;
use agent_testkit::{Pick, Reply, Script, SimOptions, SimProvider, Source, render_requests};
use serde_json::json;
use tokio::time::timeout;

use crate::client::{Client, KEYS, ask};

/// Method, path, headers and body; status and kind of the error.
type Case =
    (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str, u16, &'static str);

fn full_reply() -> Reply {
    Reply::text("Let me see.").thinking("Where?").call("grep", r#"{"b":1,"a":1.0}"#)
}

#[tokio::test]
async fn a_reply_streams_as_the_real_wire_does() {
    let options = SimOptions { delta_bytes: 12, ..SimOptions::default() };
    let sim = SimProvider::start_with(Source::Script(vec![full_reply()].into()), options).unwrap();
    let answer = Client::connect(&sim).await.post(&ask(0, true)).await;
    assert_eq!((answer.status, answer.complete), (200, true));
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(answer.headers["request-id"], "req_sim_0000");
    insta::assert_snapshot!(answer.text(), @r#"
    event: message_start
    data: {"type":"message_start","message":{"id":"msg_sim_0000","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}}

    event: content_block_start
    data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

    event: ping
    data: {"type":"ping"}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Where?"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sim.c126a14f8ae3f4ad.a66d5b6dd6144c58.0000000000000000.a4a575ece685b60d"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":0}

    event: content_block_start
    data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Let me see."}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":1}

    event: content_block_start
    data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_sim_0000_0","name":"grep","input":{}}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"b\":1,\"a\":1"}}

    event: content_block_delta
    data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":".0}"}}

    event: content_block_stop
    data: {"type":"content_block_stop","index":2}

    event: message_delta
    data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9}}

    event: message_stop
    data: {"type":"message_stop"}
    "#);
    sim.check_complete().unwrap();
}

#[tokio::test]
async fn a_reply_comes_whole_when_not_streamed() {
    let sim = SimProvider::start(vec![full_reply()]).unwrap();
    let answer = Client::connect(&sim).await.post(&ask(0, false)).await;
    assert_eq!(answer.headers["content-type"], "application/json");
    insta::assert_snapshot!(answer.text(), @r#"{"id":"msg_sim_0000","type":"message","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"Where?","signature":"sim.c126a14f8ae3f4ad.a66d5b6dd6144c58.0000000000000000.a4a575ece685b60d"},{"type":"text","text":"Let me see."},{"type":"tool_use","id":"toolu_sim_0000_0","name":"grep","input":{"b":1,"a":1.0}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":11,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":9,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"service_tier":"standard"}}"#);
}

#[tokio::test]
async fn an_empty_reply_has_no_block() {
    let sim = SimProvider::start(vec![Reply::default()]).unwrap();
    let answer = Client::connect(&sim).await.post(&ask(0, true)).await;
    assert_eq!(answer.events(), ["message_start", "ping", "message_delta", "message_stop"]);
}

#[tokio::test]
async fn usage_is_what_the_script_says() {
    let usage = Usage { input: 5, output: 9, cache_read: 100, cache_write_1h: 7, ..Usage::default() };
    let sim = SimProvider::start(vec![Reply::text("x").costing(usage)]).unwrap();
    let mut client = Client::connect(&sim).await;
    let reported = client.post(&ask(0, false)).await.json()["usage"].clone();
    let expect = json!({ "input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 7, "service_tier": "standard",
        "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 7 } });
    assert_eq!(reported, expect);
}

#[tokio::test]
async fn the_history_chooses_the_reply_also_after_a_restart() {
    let script: Script = (0..3).map(|n| Reply::tool(format!("tool{n}"), "{}")).collect();
    let call = |answer: crate::client::Answer| {
        let block = answer.json()["content"][0].clone();
        (block["name"].as_str().unwrap().to_owned(), block["id"].as_str().unwrap().to_owned())
    };
    let first = SimProvider::start(script.clone()).unwrap();
    let mut client = Client::connect(&first).await;
    let zero = call(client.post(&ask(0, false)).await);
    assert_eq!(zero.0, "tool0");
    assert_eq!(call(client.post(&ask(0, false)).await), zero, "the same question has the same answer");
    assert_eq!(first.check_complete().unwrap_err().to_string().matches("only 1").count(), 1);
    drop(first);

    let second = SimProvider::start(script).unwrap();
    let mut client = Client::connect(&second).await;
    assert_eq!(call(client.post(&ask(2, false)).await).0, "tool2");
    let past = client.post(&ask(3, false)).await;
    assert_eq!(past.status, 400);
    assert!(past.text().contains("the script has 3 replies, and reply 4 was asked for"), "{}", past.text());
    assert_eq!(second.refusals().len(), 1);
}

#[tokio::test]
async fn in_order_gives_one_reply_after_the_other() {
    let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
    let script = vec![Reply::text("one"), Reply::text("two")];
    let sim = SimProvider::start_with(Source::Script(script.into()), options).unwrap();
    let mut client = Client::connect(&sim).await;
    for expect in ["one", "two"] {
        assert_eq!(client.post(&ask(5, false)).await.json()["content"][0]["text"], expect);
    }
}

#[tokio::test]
async fn requests_are_remembered_without_keys_and_the_connection_is_kept() {
    let sim = SimProvider::start(vec![Reply::text("a"), Reply::text("b")]).unwrap();
    let mut client = Client::connect(&sim).await;
    client.post(&ask(0, true)).await;
    let headers = [("authorization", "Bearer secret-key"), ("anthropic-version", "2023-06-01")];
    let body = ask(1, false);
    let answer = client.send("POST", "/proxy/v1/messages?beta=true", &headers, &body).await.unwrap();
    assert_eq!(answer.status, 200);
    Client::connect(&sim).await.post(&ask(0, true)).await;

    let requests = sim.requests();
    let connections: Vec<u64> = requests.iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 1]);
    assert_eq!(requests[1].path, "/proxy/v1/messages?beta=true");
    assert_eq!(requests[1].body, body.as_bytes());
    assert_eq!(requests[0].header("x-api-key"), Some("[redacted]"));
    assert_eq!(requests[1].header("authorization"), Some("[redacted]"));
    assert!(!format!("{requests:?}").contains("secret-key"));
    assert_eq!(sim.request(2).await, requests[2]);
    insta::assert_snapshot!(render_requests(&requests[..2]), @r#"
    request 1
      model claude-x
      user
        hello
    request 2
      model claude-x
      user
        hello
      assistant
        so far
      user
        go on
    "#);
}

#[tokio::test]
async fn the_head_of_a_request_is_checked() {
    let sim = SimProvider::start(vec![Reply::text("a")]).unwrap();
    let mut client = Client::connect(&sim).await;
    const VERSION: (&str, &str) = KEYS[1];
    let cases: [Case; 7] = [
        ("POST", "/v1/complete", &KEYS, "{}", 404, "not_found_error"),
        ("GET", "/v1/messages", &KEYS, "", 405, "invalid_request_error"),
        ("POST", "/v1/messages", &[VERSION], "{}", 401, "authentication_error"),
        ("POST", "/v1/messages", &[("x-api-key", " "), VERSION], "{}", 401, "authentication_error"),
        ("POST", "/v1/messages", &[("authorization", "Bearer "), VERSION], "{}", 401, "authentication_error"),
        ("POST", "/v1/messages", &[KEYS[0]], "{}", 400, "invalid_request_error"),
        ("POST", "/v1/messages", &KEYS, "{", 400, "invalid_request_error"),
    ];
    for (method, path, headers, body, status, kind) in cases {
        let answer = client.send(method, path, headers, body).await.unwrap();
        assert_eq!(answer.status, status, "{path} {body}");
        let error = answer.json();
        assert_eq!((&error["type"], &error["error"]["type"]), (&json!("error"), &json!(kind)));
        assert_eq!(error["request_id"], answer.headers["request-id"].to_str().unwrap());
    }
    let unpaired = r#"{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},{"role":"user","content":"b"}]}"#;
    let answer = client.post(unpaired).await;
    insta::assert_snapshot!(answer.text(), @r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each `tool_use` block must have a corresponding `tool_result` block in the next message."},"request_id":"req_sim_0007"}"#);
    assert_eq!(sim.refusals().len(), cases.len() + 1);
}

#[tokio::test]
async fn checks_can_be_left_out() {
    let options = SimOptions { validate: false, ..SimOptions::default() };
    let sim = SimProvider::start_with(Source::Script(vec![Reply::text("a")].into()), options).unwrap();
    let answer = Client::connect(&sim).await.send("PUT", "/anything", &[], "no json").await.unwrap();
    assert_eq!((answer.status, &answer.json()["content"][0]["text"]), (200, &json!("a")));
}

#[tokio::test]
async fn a_held_reply_waits_for_its_release() {
    let sim = SimProvider::start(vec![Reply::text("at last").held()]).unwrap();
    let mut client = Client::connect(&sim).await;
    let body = ask(0, false);
    let mut answer = std::pin::pin!(client.post(&body));
    tokio::select! {
        _ = &mut answer => panic!("the reply was not held"),
        request = sim.request(0) => assert_eq!(request.body, body.as_bytes()),
    }
    assert!(timeout(Duration::from_millis(20), &mut answer).await.is_err());
    sim.release();
    assert_eq!(answer.await.json()["content"][0]["text"], "at last");
}

#[tokio::test]
async fn shutdown_ends_idle_connections_and_held_replies() {
    let sim = SimProvider::start(vec![Reply::text("never").held(), Reply::text("done")]).unwrap();
    let (mut idle, mut held) = (Client::connect(&sim).await, Client::connect(&sim).await);
    idle.post(&ask(1, false)).await;
    let waiting = tokio::spawn(async move { held.send("POST", "/v1/messages", &KEYS, &ask(0, false)).await });
    sim.request(1).await;
    let address = sim.address();
    timeout(Duration::from_secs(5), sim.shutdown()).await.expect("shutdown must not wait for a held reply");
    assert!(waiting.await.unwrap().is_err());
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn dropping_stops_the_server() {
    let sim = SimProvider::start(vec![Reply::text("never").held()]).unwrap();
    let mut client = Client::connect(&sim).await;
    let address = sim.address();
    let waiting =
        tokio::spawn(async move { client.send("POST", "/v1/messages", &KEYS, &ask(0, true)).await });
    sim.request(0).await;
    drop(sim);
    let ended = timeout(Duration::from_secs(5), waiting).await.expect("the connection must end");
    assert!(ended.unwrap().is_err());
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[test]
fn without_a_runtime_it_says_so() {
    let error = SimProvider::start(vec![Reply::text("a")]).unwrap_err().to_string();
    assert!(error.contains("start it inside #[tokio::test]"), "{error}");
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let sim = SimProvider::start(Script::default()).unwrap();
    let port = sim.address().port();
    let options = SimOptions { port, ..SimOptions::default() };
    let error = SimProvider::start_with(Source::Script(Script::default()), options).unwrap_err().to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
}
