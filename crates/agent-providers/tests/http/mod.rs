//! The transport against a small server on the loopback interface.

mod seam;

use std::time::Duration;

use agent_core::{
    Cancel, Entry, FinishKind, History, LanguageModel, ModelError, ModelErrorKind, ModelEvent, ModelRequest,
    RequestSettings, ResponseBuilder, ToolChoice, UserMessage,
};
use agent_providers::{ApiKey, HttpConfig, HttpModel};
use futures_util::StreamExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::support::fixtures;

const KEY: &str = "loopback-key-123";

/// One piece of what the server does after it read a request.
#[derive(Clone)]
enum Do {
    Send(Vec<u8>),
    /// Sends the same this many times, each time after a pause.
    Repeat(usize, Duration, &'static [u8]),
    /// Waits until the client hangs up.
    Hang,
}

struct Server {
    base_url: String,
    /// The raw requests, one for each script.
    seen: JoinHandle<Vec<String>>,
}

/// Serves one connection for each script and then closes it.
async fn serve(scripts: Vec<Vec<Do>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/proxy/", listener.local_addr().unwrap());
    let seen = tokio::spawn(async move {
        let mut seen = Vec::new();
        for script in scripts {
            let (mut socket, _) = listener.accept().await.unwrap();
            seen.push(request(&mut socket).await);
            for step in script {
                perform(step, &mut socket).await;
            }
        }
        seen
    });
    Server { base_url, seen }
}

async fn perform(step: Do, socket: &mut TcpStream) {
    match step {
        Do::Send(bytes) => socket.write_all(&bytes).await.unwrap(),
        Do::Repeat(times, pause, bytes) => {
            for _ in 0..times {
                tokio::time::sleep(pause).await;
                // A client that gave up has hung up.
                if socket.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
        Do::Hang => while socket.read(&mut [0; 64]).await.is_ok_and(|n| n > 0) {},
    }
}

/// Reads a request to the length it announces.
async fn request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.expect("an exact length").parse::<usize>().unwrap() {
                return text;
            }
        }
        assert!(socket.read_buf(&mut bytes).await.unwrap() > 0, "the client hung up in its request");
    }
}

fn head(status: u16, headers: &[&str]) -> Vec<u8> {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    format!("HTTP/1.1 {status} X\r\n{lines}connection: close\r\n\r\n").into_bytes()
}

const STREAM: &str = "content-type: text/event-stream; charset=utf-8";
const JSON: &str = "content-type: application/json";

fn fixture(name: &str) -> Vec<u8> {
    let all = fixtures(".sse").into_iter().chain(fixtures(".json"));
    all.into_iter().find(|(file, _)| file == name).unwrap().1
}

fn model(server: &Server) -> HttpModel {
    HttpModel::new(config(server)).unwrap()
}

fn config(server: &Server) -> HttpConfig {
    HttpConfig {
        base_url: Some(server.base_url.clone()),
        api_key: ApiKey::new(KEY),
        model: "claude-haiku-4-5".into(),
        headers: vec![("anthropic-beta".into(), "a,b".into())],
        idle_timeout: Duration::from_secs(20),
        ..HttpConfig::default()
    }
}

/// Calls the model once and collects what it says.
async fn ask(model: &HttpModel, cancel: &Cancel) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError> {
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text("hello \u{1F600}").unwrap())).unwrap();
    let draft = history.draft();
    let encoded = model.encoder().encode(&ModelRequest {
        system: &[],
        tools: &[],
        draft: &draft,
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream: true,
    });
    Ok(model.stream(encoded.request, cancel).await?.collect().await)
}

/// Serves one response; what the call gives.
async fn check(script: Vec<Do>) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError> {
    let server = serve(vec![script]).await;
    let given = ask(&model(&server), &Cancel::new()).await;
    server.seen.await.unwrap();
    given
}

#[tokio::test]
async fn a_streamed_answer_arrives_and_the_request_is_exact() {
    let body = fixture("text.sse");
    let (first, rest) = body.split_at(300);
    let script = vec![Do::Send(head(200, &[STREAM])), Do::Send(first.to_vec()), Do::Send(rest.to_vec())];
    let server = serve(vec![script]).await;
    let events = ask(&model(&server), &Cancel::new()).await.unwrap();
    let mut builder = ResponseBuilder::default();
    for event in &events {
        builder.take(event.clone().unwrap());
    }
    let answer = builder.finish().unwrap();
    assert_eq!((answer.finish.kind, answer.usage.cache_read), (FinishKind::Stop, 300));

    let seen = server.seen.await.unwrap().remove(0);
    let (head, body) = seen.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /proxy/v1/messages HTTP/1.1\r\n"), "{head}");
    for header in
        ["x-api-key: loopback-key-123", "anthropic-version: 2023-06-01", "anthropic-beta: a,b", JSON]
    {
        assert!(head.to_lowercase().contains(header), "{header} is missing in {head}");
    }
    assert!(!head.to_lowercase().contains("transfer-encoding"), "{head}");
    assert!(body.contains("hello \u{1F600}") && body.ends_with("\"stream\":true}"), "{body}");
}

#[tokio::test]
async fn a_plain_answer_gives_the_same_events() {
    let events = check(vec![Do::Send(head(200, &[JSON])), Do::Send(fixture("message.json"))]).await.unwrap();
    let calls =
        events.iter().filter(|event| matches!(event, Ok(ModelEvent::Part(part)) if part.as_call().is_some()));
    assert_eq!(calls.count(), 1);
    assert!(matches!(events.last(), Some(Ok(ModelEvent::Finish(_)))));
}

#[tokio::test]
async fn a_stream_without_its_content_type_is_still_read() {
    let events = check(vec![Do::Send(head(200, &[])), Do::Send(fixture("text.sse"))]).await.unwrap();
    assert!(matches!(events.last(), Some(Ok(ModelEvent::Finish(_)))));
}

#[tokio::test]
async fn the_first_byte_and_not_the_content_type_tells_what_an_answer_is() {
    let finished = |events: Vec<Result<ModelEvent, ModelError>>| {
        assert!(matches!(events.last(), Some(Ok(ModelEvent::Finish(_)))), "{events:?}");
    };
    let streamed = vec![Do::Send(head(200, &[JSON])), Do::Send(fixture("text.sse"))];
    finished(check(streamed).await.unwrap());
    for status in [200, 201, 202] {
        for content_type in [STREAM, JSON] {
            let blank = Do::Send(b" \n".to_vec());
            let script =
                vec![Do::Send(head(status, &[content_type])), blank, Do::Send(fixture("message.json"))];
            finished(check(script).await.unwrap());
        }
    }
    let refused = |body: &[u8], header: &'static str| {
        check(vec![Do::Send(head(200, &[STREAM, header])), Do::Send(body.to_vec())])
    };
    let plain = "content-encoding: identity";
    let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"no room left"}}"#;
    let error = refused(body, plain).await.unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Overloaded, true), "{error}");
    assert!(error.message.contains("no room left"), "{error}");
    let page = format!("<html>{}</html>", "x".repeat(5000));
    let error = refused(page.as_bytes(), plain).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
    assert!(error.message.contains("<html>") && error.message.len() < 400, "{error}");
    let error = refused(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xab", "content-encoding: gzip").await.unwrap_err();
    assert!(error.message.contains("content-encoding gzip"), "{error}");
}

#[tokio::test]
async fn an_error_under_status_200_says_how_long_to_wait() {
    let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"full"}}"#;
    let event = [b"event: error\ndata: ".as_slice(), body, b"\n\n"].concat();
    for (content_type, body) in [(JSON, body.to_vec()), (STREAM, event)] {
        let script = vec![Do::Send(head(200, &[content_type, "retry-after: 7"])), Do::Send(body)];
        let error = check(script).await.unwrap_err();
        assert_eq!((error.kind, error.retry_after_ms), (ModelErrorKind::Overloaded, Some(7_000)), "{error}");
    }
    let refused = br#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#;
    let script = vec![Do::Send(head(200, &[JSON, "retry-after: 7"])), Do::Send(refused.to_vec())];
    assert_eq!(check(script).await.unwrap_err().retry_after_ms, None, "waiting does not help");
    let cut = vec![Do::Send(head(200, &[STREAM, "retry-after: 7"])), Do::Send(fixture("cut_stream.sse"))];
    let error = check(cut).await.unwrap().pop().unwrap().unwrap_err();
    assert_eq!((error.kind, error.retry_after_ms), (ModelErrorKind::Interrupted, None), "{error}");
}

#[tokio::test]
async fn refusals_are_classified_and_hold_no_key() {
    let body =
        format!(r#"{{"error":{{"type":"authentication_error","message":"invalid x-api-key: {KEY}"}}}}"#);
    let error = check(vec![Do::Send(head(401, &[JSON])), Do::Send(body.into_bytes())]).await.unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Authentication, false));
    assert!(error.message.contains("invalid x-api-key: [redacted]"), "{error}");

    let overloaded = vec![
        Do::Send(head(529, &["retry-after: 7", "content-type: text/html"])),
        Do::Send(b"<html>".to_vec()),
    ];
    let error = check(overloaded).await.unwrap_err();
    assert_eq!(
        (error.kind, error.retryable, error.retry_after_ms),
        (ModelErrorKind::Overloaded, true, Some(7000))
    );
}

#[tokio::test]
async fn an_error_in_the_stream_is_returned_before_and_given_after_the_first_event() {
    let event = b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"full\"}}\n\n";
    let error = check(vec![Do::Send(head(200, &[STREAM])), Do::Send(event.to_vec())]).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    let events =
        check(vec![Do::Send(head(200, &[STREAM])), Do::Send(fixture("error_midway.sse"))]).await.unwrap();
    assert_eq!(events.last().unwrap().as_ref().unwrap_err().kind, ModelErrorKind::Overloaded);
    assert!(events.len() > 3);
}

#[tokio::test]
async fn a_cut_stream_is_interrupted() {
    let events =
        check(vec![Do::Send(head(200, &[STREAM])), Do::Send(fixture("cut_stream.sse"))]).await.unwrap();
    assert_eq!(events.last().unwrap().as_ref().unwrap_err().kind, ModelErrorKind::Interrupted);
    let short = head(200, &[STREAM, "content-length: 99999"]);
    let events = check(vec![Do::Send(short), Do::Send(fixture("cut_stream.sse"))]).await.unwrap();
    let error = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Interrupted, true), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let error = check(vec![Do::Send(head(307, &["location: http://elsewhere.example/"]))]).await.unwrap_err();
    assert!(error.message.contains("elsewhere.example") && !error.retryable, "{error}");
}

#[tokio::test]
async fn cancelling_ends_a_call_in_every_phase() {
    for script in
        [vec![Do::Hang], vec![Do::Send(head(200, &[STREAM])), Do::Send(fixture("cut_stream.sse")), Do::Hang]]
    {
        let waits_for_head = script.len() == 1;
        let server = serve(vec![script]).await;
        let model = model(&server);
        let cancel = Cancel::new();
        let call = ask(&model, &cancel);
        let stop = async {
            // The server has read the request once its connection stands; cancelling any later is as good.
            tokio::task::yield_now().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        };
        let (given, ()) = tokio::join!(call, stop);
        let error = match given {
            Err(error) => error,
            Ok(mut events) => events.pop().unwrap().unwrap_err(),
        };
        assert_eq!(error.kind, ModelErrorKind::Cancelled, "{waits_for_head}");
        server.seen.await.expect("the connection is closed, so the server ends");
    }
}

#[tokio::test]
async fn silence_ends_at_the_limit() {
    let script = vec![Do::Send(head(200, &[STREAM])), Do::Send(fixture("cut_stream.sse")), Do::Hang];
    let server = serve(vec![script]).await;
    let config = HttpConfig { idle_timeout: Duration::from_millis(80), ..config(&server) };
    let events = ask(&HttpModel::new(config).unwrap(), &Cancel::new()).await.unwrap();
    let error = events.last().unwrap().as_ref().unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Interrupted, true));
    assert!(error.message.contains("waited 0.08 s"), "{error}");
}

/// Sends the start of an answer, then these bytes this many times after a pause each, then the rest; what the call
/// gives, and after how many seconds.
async fn paced(times: usize, pause: u64, bytes: &'static [u8]) -> (Result<FinishKind, ModelError>, u64) {
    let body = fixture("text.sse");
    let (first, rest) = body.split_at(300);
    let script = vec![
        Do::Send(head(200, &[STREAM])),
        Do::Send(b": hi\n\nevent: ping\ndata: {}\n\n".to_vec()),
        Do::Repeat(times, Duration::from_secs(pause), bytes),
        Do::Send(first.to_vec()),
        Do::Send(rest.to_vec()),
    ];
    let server = serve(vec![script]).await;
    let config = HttpConfig { idle_timeout: HttpConfig::default().idle_timeout, ..config(&server) };
    let model = HttpModel::new(config).unwrap();
    let start = tokio::time::Instant::now();
    let last = match ask(&model, &Cancel::new()).await {
        Ok(mut events) => events.pop().unwrap(),
        Err(error) => Err(error),
    };
    let finish = last.map(|event| {
        let ModelEvent::Finish(finish) = event else { panic!("{event:?}") };
        finish.kind
    });
    (finish, start.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn comments_keep_no_dead_stream_alive_and_pings_do() {
    for comment in [b": keepalive\n\n".as_slice(), b"data: : keepalive\n\n", b"\n"] {
        let (given, seconds) = paced(180, 10, comment).await;
        let error = given.unwrap_err();
        assert_eq!((error.kind, error.retryable), (ModelErrorKind::Interrupted, true), "{error}");
        for part in ["waited 600 s for the next event", "`progress_timeout`", "send the request again"] {
            assert!(error.message.contains(part), "{error}");
        }
        assert_eq!(seconds, 600);
    }
    let ping = b"event: ping\ndata: {\"type\":\"ping\"}\n\n";
    assert_eq!(paced(12, 20, ping).await, (Ok(FinishKind::Stop), 240));
    assert_eq!(paced(90, 20, ping).await, (Ok(FinishKind::Stop), 1800), "a ping is an event");
    assert_eq!(paced(59, 10, b": x\n").await, (Ok(FinishKind::Stop), 590), "within the limit");
    let (given, seconds) = paced(1, 400, ping).await;
    assert!(given.unwrap_err().message.contains("waited 300 s for the next bytes"));
    assert_eq!(seconds, 300);
}

#[tokio::test]
async fn a_limit_that_is_used_up_ends_a_stream_whose_bytes_are_there() {
    let server = serve(vec![vec![Do::Send(head(200, &[STREAM])), Do::Send(fixture("text.sse"))]]).await;
    let config = HttpConfig { progress_timeout: Duration::ZERO, ..config(&server) };
    let error = ask(&HttpModel::new(config).unwrap(), &Cancel::new()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
    assert!(error.message.contains("`progress_timeout`"), "{error}");
}

#[tokio::test]
async fn an_event_is_bounded_by_the_configuration() {
    let server = serve(vec![vec![Do::Send(head(200, &[STREAM])), Do::Send(fixture("text.sse"))]]).await;
    let config = HttpConfig { event_limit: 40, ..config(&server) };
    let error = ask(&HttpModel::new(config).unwrap(), &Cancel::new()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(
        error.message.contains("larger than 40 bytes") && error.message.contains("event_limit"),
        "{error}"
    );
}

#[tokio::test]
async fn nobody_at_the_address_is_a_transport_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let model = HttpModel::new(HttpConfig { base_url: Some(base_url), ..HttpConfig::default() }).unwrap();
    let error = ask(&model, &Cancel::new()).await.unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Transport, true), "{error}");
}
