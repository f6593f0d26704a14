//! Recording a provider over real HTTP, and replaying it without one.

use std::path::Path;
use std::sync::Arc;

use agent_core::{
    AssistantPart, Cancel, Entry, History, LanguageModel, ModelError, ModelErrorKind, ModelRequest,
    RequestSettings, Response, ResponseBuilder, ToolChoice, UserMessage,
};
use agent_providers::{ApiKey, HttpConfig, HttpModel, Transport, TransportRequest, TransportResponse};
use agent_testkit::{
    Exchange, Fault, Pick, RawReply, RecordMode, Replay, Reply, ScriptedModel, SimOptions, SimProvider,
    Source, Tape, TapeError, TapedModel, TestModel, TestModelError, corpus_dir, corpus_files, read_exchanges,
};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

const KEY: &str = "sk-recorded-0123456789";

fn config(base_url: &str, key: &str) -> HttpConfig {
    HttpConfig {
        base_url: Some(base_url.to_owned()),
        api_key: ApiKey::new(key),
        model: "claude-haiku-4-5".into(),
        headers: vec![("openai-organization".into(), "org-of-mine".into())],
        ..HttpConfig::default()
    }
}

fn taped(path: &Path, mode: RecordMode, config: HttpConfig) -> TapedModel {
    let tape = Tape::open(path, mode, || config.network()).unwrap();
    tape.model(HttpModel::new(HttpConfig { transport: Some(tape.transport()), ..config }).unwrap())
}

/// Asks once, in a conversation of its own.
async fn ask(model: &dyn LanguageModel, words: &str, stream: bool) -> Result<Response, ModelError> {
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text(words).unwrap())).unwrap();
    let encoded = model.encoder().encode(&ModelRequest {
        system: &[],
        tools: &[],
        draft: &history.draft(),
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream,
    });
    let mut events = model.stream(encoded.request, &Cancel::new()).await?;
    let mut answer = ResponseBuilder::default();
    while let Some(event) = events.next().await {
        answer.take(event?);
    }
    Ok(answer.finish().unwrap())
}

fn said(answer: &Response) -> String {
    let texts = answer.parts.iter().filter_map(|part| match part {
        AssistantPart::Text(text) => Some(text.text.as_str()),
        AssistantPart::Reasoning(_) | AssistantPart::ToolCall(_) | AssistantPart::Provider(_) | _ => None,
    });
    texts.collect()
}

/// What every model must do here, scripted or recorded: two answers, and nothing left over.
async fn check(model: &dyn TestModel) -> Vec<String> {
    let mut all = Vec::new();
    for (words, stream) in [("Rain in Oslo?", true), ("And in Bergen?", false)] {
        let answer = ask(&model.model(), words, stream).await.unwrap();
        all.push(format!(
            "{} {:?}",
            said(&answer),
            answer.calls().map(|call| call.input.as_str()).collect::<Vec<_>>()
        ));
    }
    assert_eq!(model.requests().len(), 2);
    assert!(String::from_utf8_lossy(&model.requests()[1]).contains("Bergen"));
    model.check_complete().unwrap();
    all
}

fn script() -> Vec<Reply> {
    vec![
        Reply::text("Let me look, \u{1F600}.").call("weather", r#"{"b":1.0,"a":12345678901234567890}"#),
        Reply::text("Always."),
    ]
}

#[expect(clippy::disallowed_methods, reason = "the test looks at the file it had written")]
fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn a_test_records_once_and_then_needs_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tapes/weather.jsonl");
    let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
    let sim = SimProvider::start_with(Source::Script(script().into()), options).unwrap();
    let recorded = check(&taped(&path, RecordMode::Record, config(&sim.base_url(), KEY))).await;
    assert!(sim.refusals().is_empty());
    sim.shutdown().await;

    let replayed = check(&taped(&path, RecordMode::Replay, config("http://127.0.0.1:1", ""))).await;
    assert_eq!(recorded, replayed);
    assert_eq!(recorded, check(&ScriptedModel::new(script())).await, "one interface, one answer");

    let file = text(&path);
    for secret in [KEY, "org-of-mine"] {
        assert!(!file.contains(secret), "{file}");
    }
    let exchanges = read_exchanges(&path).unwrap();
    let lines = exchanges.iter().map(|exchange| {
        let headers = |headers: &std::collections::BTreeMap<String, String>| {
            headers.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let (request, response) = (&exchange.request, &exchange.response);
        format!(
            "{} {} {}\n{} {}",
            request.method,
            request.path,
            headers(&request.headers),
            response.status,
            headers(&response.headers)
        )
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @"
    POST /v1/messages anthropic-version=2023-06-01 content-type=application/json openai-organization=[redacted] x-api-key=[redacted]
    200 content-type=text/event-stream; charset=utf-8 date=[redacted] request-id=req_sim_0000
    POST /v1/messages anthropic-version=2023-06-01 content-type=application/json openai-organization=[redacted] x-api-key=[redacted]
    200 content-type=application/json date=[redacted] request-id=req_sim_0001
    ");
}

#[tokio::test]
async fn a_changed_request_fails_and_shows_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weather.jsonl");
    let sim = SimProvider::start(script()).unwrap();
    check(&taped(&path, RecordMode::Record, config(&sim.base_url(), KEY))).await;

    let model = taped(&path, RecordMode::Replay, config("http://127.0.0.1:1", ""));
    let left = model.check_complete().unwrap_err().to_string();
    assert!(left.contains("holds 2 exchanges, but only 0 were asked for"), "{left}");
    let error = ask(&model.model(), "Rain in Rome?", true).await.unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::InvalidRequest, false));
    let shown = error.message.replace(&path.display().to_string(), "weather.jsonl");
    insta::assert_snapshot!(shown, @r#"
    request 1 is not the recorded one (weather.jsonl):
      differs:  `messages[0].content[0].text` of the body
      recorded: "Rain in Oslo?"
      sent:     "Rain in Rome?"
    to record it again, run the test once with RecordMode::Record
    "#);
    ask(&model.model(), "Rain in Oslo?", true).await.unwrap();
    ask(&model.model(), "And in Bergen?", false).await.unwrap();
    assert_eq!(
        model.check_complete().unwrap_err().to_string(),
        error.message,
        "the first misfit is told at the end"
    );
    assert_eq!(model.requests().len(), 3);

    let model = taped(&path, RecordMode::Replay, config("http://127.0.0.1:1", ""));
    check(&model).await;
    let error = ask(&model.model(), "Once more?", true).await.unwrap_err();
    assert!(error.message.contains("holds 2 exchanges, and request 3 was made"), "{error}");
    assert!(matches!(
        model.check_complete(),
        Err(TestModelError::Tape(TapeError::Exhausted { number: 3, .. }))
    ));

    let error = Tape::open(folder.path().join("none.jsonl"), RecordMode::Replay, || config("", "").network());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("there is no recording") && error.contains("RecordMode::Record"), "{error}");
}

#[tokio::test]
async fn failures_are_recorded_like_answers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad-day.jsonl");
    let quoting = RawReply {
        status: 401,
        headers: [("content-type".into(), "application/json".into())].into(),
        body: format!(r#"{{"error":{{"type":"authentication_error","message":"no: {KEY}"}}}}"#).into(),
    };
    let faults =
        [Fault::rate_limited(3), Fault::overloaded_event(2), Fault::Raw(quoting), Fault::Cut { after: 3 }];
    let reply = faults.into_iter().fold(Reply::text("A long answer, in pieces."), Reply::fault);
    let sim = SimProvider::start(vec![reply]).unwrap();
    let (mut recorded, mut replayed) = (Vec::new(), Vec::new());
    for (mode, seen) in [(RecordMode::Record, &mut recorded), (RecordMode::Replay, &mut replayed)] {
        let model = taped(&path, mode, config(&sim.base_url(), KEY));
        for _ in 0..5 {
            let answer = ask(&model.model(), "Are you there?", true).await;
            seen.push(answer.map_err(|error| (error.kind, error.retry_after_ms)));
        }
        model.check_complete().unwrap();
    }
    assert_eq!(recorded, replayed);
    let kinds: Vec<_> = recorded.iter().map(|answer| answer.as_ref().err().copied()).collect();
    insta::assert_debug_snapshot!(kinds, @"
    [
        Some(
            (
                RateLimited,
                Some(
                    3000,
                ),
            ),
        ),
        Some(
            (
                Overloaded,
                None,
            ),
        ),
        Some(
            (
                Authentication,
                None,
            ),
        ),
        Some(
            (
                Interrupted,
                None,
            ),
        ),
        None,
    ]
    ");
    assert!(!text(&path).contains(KEY));
}

#[tokio::test]
async fn a_hidden_text_is_in_no_recording_and_may_be_another_one_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hidden.jsonl");
    let sim = SimProvider::start(vec![Reply::text("You are in /srv/ada.")]).unwrap();
    for (mode, home, expect) in [
        (RecordMode::Record, "/srv/ada", "You are in /srv/ada."),
        (RecordMode::Replay, "/srv/bob", "You are in /srv/bob."),
    ] {
        let config = config(&sim.base_url(), KEY);
        let tape = Tape::open(&path, mode, || config.network()).unwrap();
        tape.hide(home);
        let model = HttpModel::new(HttpConfig { transport: Some(tape.transport()), ..config }).unwrap();
        let answer = ask(&model, &format!("I am in {home}. Where am I?"), true).await.unwrap();
        assert_eq!(said(&answer), expect);
        tape.check_complete().unwrap();
    }
    assert!(!text(&path).contains("ada"));
}

#[tokio::test]
async fn answers_that_are_no_text_come_back_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bytes.jsonl");
    let bodies: [&[u8]; 2] = [b"data: \xff\xfe\n\n", b"{\"n\": 1.0}\r\n\t"];
    let replies = bodies.map(RawReply::json).to_vec();
    let options =
        SimOptions { chunk_bytes: Some(1), validate: false, pick: Pick::InOrder, ..SimOptions::default() };
    let sim = SimProvider::start_with(Source::Recorded(replies), options).unwrap();
    for mode in [RecordMode::Record, RecordMode::Replay] {
        let config = config(&sim.base_url(), KEY);
        let tape = Tape::open(&path, mode, || config.network()).unwrap();
        for expect in bodies {
            let answer = tape.transport().send(request(&sim.base_url(), "{}")).await.unwrap();
            let body: Vec<Bytes> = answer.body.map(Result::unwrap).collect().await;
            assert_eq!((answer.status, body.concat().as_slice()), (200, expect));
        }
        tape.check_complete().unwrap();
    }
    assert!(text(&path).contains(r#""body_hex":"646174613a20fffe0a0a""#));
}

fn request(base_url: &str, body: &str) -> TransportRequest {
    let mut request = TransportRequest {
        method: "POST".into(),
        url: format!("{base_url}/v1/x?key={KEY}").into(),
        headers: [("authorization".into(), format!("Bearer {KEY}"))].into(),
        body: agent_core::Body::default(),
    };
    request.body.push(Bytes::copy_from_slice(body.as_bytes()));
    request
}

/// Recordings of others, of every vendor, are played too.
#[tokio::test]
async fn every_file_of_exchanges_is_a_tape() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/exchanges/anthropic");
    let mut folders = vec![fixtures];
    if let Some(corpus) = corpus_dir() {
        let vendors = std::fs::read_dir(corpus.join("recorded/exchanges")).unwrap();
        folders.extend(vendors.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()));
    }
    for path in folders.iter().flat_map(|folder| corpus_files(folder, "jsonl").unwrap()) {
        let replay = Replay::open(&path).unwrap();
        let exchanges = read_exchanges(&path).unwrap();
        for Exchange { request: recorded, response, .. } in exchanges {
            let mut request = request("https://a.example", recorded.body.as_deref().unwrap_or_default());
            request.method = recorded.method.into();
            request.url = format!("https://a.example{}", recorded.path).into();
            let answer = replay.send(request).await.unwrap();
            let body: Vec<Bytes> = answer.body.map(Result::unwrap).collect().await;
            assert_eq!((answer.status, body.concat()), (response.status, response.body.to_vec()));
        }
        replay.check_complete().unwrap();
    }
}

/// Answers with the body it was sent; the end of it never comes for `hang`, and nothing at all for `fail`.
#[derive(Debug)]
struct Echo;

#[async_trait]
impl Transport for Echo {
    async fn send(&self, request: TransportRequest) -> Result<TransportResponse, ModelError> {
        let body = Bytes::from(request.body.to_vec());
        if body.starts_with(b"fail") {
            return Err(ModelError::new(ModelErrorKind::Transport, format!("no way for {KEY}")));
        }
        let hangs = body.starts_with(b"hang");
        let first = stream::iter([Ok(body)]);
        let body = if hangs { first.chain(stream::pending()).boxed() } else { first.boxed() };
        Ok(TransportResponse { status: 200, headers: Vec::new(), body })
    }
}

/// What is in the file: the request bodies, in order.
fn written(path: &Path) -> Vec<String> {
    if !path.exists() {
        return Vec::new();
    }
    read_exchanges(path).unwrap().into_iter().filter_map(|exchange| exchange.request.body).collect()
}

#[tokio::test]
async fn the_file_is_whole_after_each_exchange_and_in_the_order_of_requests() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("order.jsonl");
    let tape = Tape::open(&path, RecordMode::Record, || Ok::<_, std::io::Error>(Echo)).unwrap();
    let transport: Arc<dyn Transport> = tape.transport();
    let send = |body: &'static str| transport.send(request("http://a.example", body));
    assert!(matches!(tape.check_complete(), Err(TapeError::Nothing { .. })));
    let mut hanging = send("hang first").await.unwrap().body;
    hanging.next().await.unwrap().unwrap();
    let second = send("second").await.unwrap().body;
    assert_eq!(second.count().await, 1);
    assert!(written(&path).is_empty(), "an earlier exchange is still under way");
    assert!(tape.check_complete().unwrap_err().to_string().contains("request 1 is not in the recording"));
    drop(hanging);
    assert_eq!(written(&path), ["hang first", "second"]);

    send("fail").await.unwrap_err();
    drop(send("dropped before it was sent"));
    assert_eq!(send("third").await.unwrap().body.count().await, 1);
    assert_eq!(written(&path), ["hang first", "second", "third"]);
    let error = tape.check_complete().unwrap_err().to_string();
    assert!(error.contains("request 3 is not in the recording") && !error.contains(KEY), "{error}");
    assert_eq!(tape.check_complete().unwrap_err().to_string(), error, "as often as it is asked");
    assert!(!text(&path).contains(KEY));

    let again = Tape::open(&path, RecordMode::Record, || Ok::<_, std::io::Error>(Echo)).unwrap();
    assert_eq!(written(&path).len(), 3, "an old recording stays until there is a new one");
    assert_eq!(
        again.transport().send(request("http://a.example", "new")).await.unwrap().body.count().await,
        1
    );
    assert_eq!(written(&path), ["new"]);
}

#[tokio::test]
async fn a_recording_that_cannot_be_written_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::open(folder.path(), RecordMode::Record, || Ok::<_, std::io::Error>(Echo)).unwrap();
    assert_eq!(tape.transport().send(request("http://a.example", "x")).await.unwrap().body.count().await, 1);
    assert!(matches!(tape.check_complete(), Err(TapeError::Write { .. })));
    let unset = Tape::open(folder.path(), RecordMode::Record, || config("ftp://a", "").network());
    assert!(matches!(unset, Err(TapeError::Network(_))));
}
