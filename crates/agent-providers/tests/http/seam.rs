//! A transport of one's own: what the model above it still does, and what it is handed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_core::{Cancel, LanguageModel, ModelError, ModelErrorKind, ModelEvent, Outgoing};
use agent_providers::{ApiKey, HttpConfig, HttpModel, Transport, TransportRequest, TransportResponse};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::{KEY, fixture};

/// Answers every request with the same head and pieces, and then falls silent, ends or fails.
#[derive(Debug)]
struct Canned {
    status: u16,
    pieces: Vec<Bytes>,
    end: End,
    seen: Mutex<Vec<TransportRequest>>,
}

#[derive(Debug, Clone)]
enum End {
    Closed,
    Silent,
    Fails(ModelErrorKind),
    /// No head comes at all.
    Never,
}

#[async_trait]
impl Transport for Canned {
    async fn send(&self, request: TransportRequest) -> Result<TransportResponse, ModelError> {
        self.seen.lock().unwrap().push(request);
        let pieces = stream::iter(self.pieces.clone().into_iter().map(Ok));
        let body = match self.end.clone() {
            End::Closed => pieces.boxed(),
            End::Silent => pieces.chain(stream::pending()).boxed(),
            End::Fails(kind) => {
                let error = ModelError::new(kind, format!("it broke near {KEY}"));
                pieces.chain(stream::iter([Err(error)])).boxed()
            }
            End::Never => std::future::pending().await,
        };
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Ok(TransportResponse { status: self.status, headers, body })
    }
}

fn canned(status: u16, body: &[u8], end: End) -> Arc<Canned> {
    let pieces = body.chunks(11).map(Bytes::copy_from_slice).collect();
    Arc::new(Canned { status, pieces, end, seen: Mutex::default() })
}

/// What a model over this transport gives, and after how many seconds.
async fn check(transport: &Arc<Canned>, request: Outgoing) -> (Result<ModelEvent, ModelError>, u64) {
    let model = HttpModel::new(HttpConfig {
        api_key: ApiKey::new(KEY),
        model: "claude-haiku-4-5".into(),
        headers: vec![("anthropic-beta".into(), "mine".into())],
        transport: Some(transport.clone()),
        ..HttpConfig::default()
    });
    let start = tokio::time::Instant::now();
    let last = match model.unwrap().stream(request, &Cancel::new()).await {
        Ok(events) => events.collect::<Vec<_>>().await.pop().unwrap(),
        Err(error) => Err(error),
    };
    (last, start.elapsed().as_secs())
}

async fn failure(status: u16, body: &[u8], end: End) -> (ModelError, u64) {
    let (last, seconds) = check(&canned(status, body, end), Outgoing::default()).await;
    (last.unwrap_err(), seconds)
}

#[tokio::test(start_paused = true)]
async fn limits_hold_for_every_transport() {
    let cut = fixture("cut_stream.sse");
    for (status, body, end, kind, words, seconds) in [
        (200, cut.clone(), End::Silent, ModelErrorKind::Interrupted, "waited 300 s for the next bytes", 300),
        (200, Vec::new(), End::Never, ModelErrorKind::Transport, "for the response to begin", 600),
        (500, b"{".to_vec(), End::Silent, ModelErrorKind::Transport, "for the rest of the body", 600),
        (200, cut.clone(), End::Closed, ModelErrorKind::Interrupted, "the answer ended after", 0),
        (302, Vec::new(), End::Silent, ModelErrorKind::InvalidRequest, "points to elsewhere", 0),
    ] {
        let (error, after) = failure(status, &body, end).await;
        assert_eq!((error.kind, after), (kind, seconds), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    let flood = canned(200, &vec![b'x'; 20 << 20], End::Closed);
    let (last, _) = check(&flood, Outgoing::default()).await;
    assert_eq!(last.unwrap_err().kind, ModelErrorKind::Protocol, "an event is bounded");
}

#[tokio::test]
async fn failures_below_the_seam_keep_their_class_and_lose_the_key() {
    for (kind, status, expect) in [
        (ModelErrorKind::Transport, 200, ModelErrorKind::Interrupted),
        (ModelErrorKind::Transport, 500, ModelErrorKind::Interrupted),
        (ModelErrorKind::InvalidRequest, 200, ModelErrorKind::InvalidRequest),
        (ModelErrorKind::InvalidRequest, 500, ModelErrorKind::InvalidRequest),
    ] {
        let (error, _) = failure(status, &fixture("cut_stream.sse"), End::Fails(kind)).await;
        assert_eq!(error.kind, expect, "{error}");
        assert!(error.message.contains("it broke near [redacted]"), "{error}");
    }
}

#[tokio::test]
async fn a_transport_is_handed_all_that_is_sent() {
    let transport = canned(200, &fixture("message.json"), End::Closed);
    let mut request =
        Outgoing { headers: vec![("anthropic-beta".into(), "ours,mine".into())], ..Outgoing::default() };
    for (buffer, stream) in [("{", true), ("}", false)] {
        request.body.push(Bytes::from_static(buffer.as_bytes()));
        request.stream = stream;
        let (last, _) = check(&transport, request.clone()).await;
        assert!(matches!(last, Ok(ModelEvent::Finish(_))), "a plain body is read: {last:?}");
    }
    let seen = transport.seen.lock().unwrap();
    let TransportRequest { method, url, headers, body } = &seen[1];
    assert_eq!((&**method, &**url), ("POST", "https://api.anthropic.com/v1/messages"));
    assert!(body.buffers().eq([&b"{"[..], b"}"]), "the buffers, not a copy of them");
    let lines: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    content-type: application/json
    anthropic-version: 2023-06-01
    x-api-key: loopback-key-123
    anthropic-beta: ours,mine
    ");
    assert!(!format!("{seen:?}").contains(KEY));
}

#[tokio::test(start_paused = true)]
async fn cancelling_drops_what_the_transport_does() {
    for end in [End::Never, End::Silent] {
        let transport = canned(200, &fixture("cut_stream.sse"), end);
        let config = HttpConfig { transport: Some(transport), ..HttpConfig::default() };
        let (model, cancel) = (HttpModel::new(config).unwrap(), Cancel::new());
        let call = async {
            match model.stream(Outgoing::default(), &cancel).await {
                Ok(events) => events.collect::<Vec<_>>().await.pop().unwrap(),
                Err(error) => Err(error),
            }
        };
        let stop = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            cancel.cancel();
        };
        let (last, ()) = tokio::join!(call, stop);
        assert_eq!(last.unwrap_err().kind, ModelErrorKind::Cancelled);
    }
}
