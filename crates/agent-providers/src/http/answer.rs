//! One answer over HTTP: head, body, and the limits on waiting for either.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use agent_core::{Cancel, ModelError, ModelErrorKind, ModelEvent, ModelStream};
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream;
use reqwest::{RequestBuilder, Response, StatusCode};
use tokio::time::timeout;

use super::transport;
use crate::classify::{ResponseHead, classify};
use crate::decoded::is_stream;
use crate::names::ToolNames;
use crate::wire::{StreamDecoder, WireFormat, decode_body};

/// How the bytes are read.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) format: WireFormat,
    pub(super) names: ToolNames,
    pub(super) limits: Limits,
}

/// How long to wait, and for how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) response: Duration,
    pub(super) idle: Duration,
    /// Most bytes of one event.
    pub(super) event: usize,
}

/// A streamed answer while it is read.
struct Answer {
    response: Response,
    decoder: StreamDecoder,
    ready: VecDeque<Result<ModelEvent, ModelError>>,
    cancel: Cancel,
    idle: Duration,
    over: bool,
}

/// Sends the request and waits for the first event, so that what fails before it is returned here.
pub(super) async fn open(
    request: RequestBuilder,
    wire: Wire,
    cancel: &Cancel,
) -> Result<ModelStream, ModelError> {
    let limit = wire.limits.response;
    let late = || waited("for the response to begin", limit);
    let response = until(cancel, timeout(limit, request.send())).await?.map_err(|_| late())?;
    let response = response.map_err(|error| transport("the request could not be sent", error))?;
    if response.status().is_redirection() {
        return Err(redirected(&response));
    }
    let headers = headers_of(&response);
    let head = ResponseHead { status: Some(response.status().as_u16()), headers: &headers, now: arrival() };
    if response.status() != StatusCode::OK || !is_stream::<&[u8]>(&[], &head) {
        let body = whole(response, limit, cancel).await?;
        // A gateway may stream without saying so.
        if response_is_plain(&body, &head) {
            return plain(&wire, &head, &body);
        }
        return streamed_whole(&wire, &body);
    }
    let decoder = wire.decoder();
    let (cancel, idle) = (cancel.clone(), wire.limits.idle);
    let mut answer = Answer { response, decoder, ready: VecDeque::new(), cancel, idle, over: false };
    while answer.ready.is_empty() && !answer.over {
        answer.read().await;
    }
    match answer.ready.pop_front() {
        Some(Err(error)) => return Err(error),
        Some(first) => answer.ready.push_front(first),
        None => {}
    }
    Ok(Box::pin(stream::unfold(answer, Answer::next)))
}

impl Wire {
    fn decoder(&self) -> StreamDecoder {
        StreamDecoder::with_event_limit(self.format, self.names.clone(), self.limits.event)
    }
}

impl Answer {
    async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        while self.ready.is_empty() && !self.over {
            self.read().await;
        }
        let item = self.ready.pop_front()?;
        Some((item, self))
    }

    /// Reads once. After the terminal event only the end of the body is waited for, and not for long, so that the
    /// connection can be used again.
    async fn read(&mut self) {
        let complete = self.decoder.is_complete();
        let limit = if complete { LAST_READ } else { self.idle };
        let cancel = self.cancel.clone();
        let read = until(&cancel, timeout(limit, self.response.chunk())).await;
        let events = match read {
            _ if complete => {
                self.over = true;
                return;
            }
            Err(cancelled) => {
                self.over = true;
                vec![Err(cancelled)]
            }
            Ok(Ok(Ok(Some(bytes)))) => self.decoder.push(&bytes),
            Ok(Ok(Ok(None))) => {
                self.over = true;
                self.decoder.finish()
            }
            Ok(Ok(Err(error))) => {
                self.over = true;
                self.decoder.interrupt(&transport("the connection failed", error).message)
            }
            Ok(Err(_)) => {
                self.over = true;
                self.decoder.interrupt(&waited("for the next bytes", limit).message)
            }
        };
        self.over |= events.last().is_some_and(Result::is_err);
        self.ready.extend(events);
    }
}

/// Waits for something, or for the call to be stopped.
async fn until<F: Future>(cancel: &Cancel, work: F) -> Result<F::Output, ModelError> {
    if cancel.is_cancelled() {
        return Err(ModelError::cancelled());
    }
    match select(pin!(cancel.cancelled()), pin!(work)).await {
        Either::Left(((), _)) => Err(ModelError::cancelled()),
        Either::Right((output, _)) => Ok(output),
    }
}

/// A body that is no stream, up to a limit that no honest one reaches.
async fn whole(mut response: Response, limit: Duration, cancel: &Cancel) -> Result<Vec<u8>, ModelError> {
    let mut body = Vec::new();
    loop {
        let chunk: Option<Bytes> = until(cancel, timeout(limit, response.chunk()))
            .await?
            .map_err(|_| waited("for the rest of the body", limit))?
            .map_err(|error| interrupted(body.len(), error))?;
        match chunk {
            None => return Ok(body),
            Some(chunk) if body.len() + chunk.len() <= LARGEST_BODY => body.extend_from_slice(&chunk),
            Some(_) => {
                let message =
                    format!("the answer is larger than {LARGEST_BODY} bytes; ask for a streamed one");
                return Err(ModelError::new(ModelErrorKind::Protocol, message));
            }
        }
    }
}

fn response_is_plain(body: &[u8], head: &ResponseHead<'_>) -> bool {
    head.status != Some(200) || !is_stream(&[body], head)
}

fn plain(wire: &Wire, head: &ResponseHead<'_>, body: &[u8]) -> Result<ModelStream, ModelError> {
    if head.status != Some(200) {
        return Err(classify(head, body));
    }
    replay(decode_body(wire.format, &wire.names, head, body))
}

fn streamed_whole(wire: &Wire, body: &[u8]) -> Result<ModelStream, ModelError> {
    let mut decoder = wire.decoder();
    let mut events = decoder.push(body);
    events.extend(decoder.finish());
    replay(events)
}

fn replay(events: Vec<Result<ModelEvent, ModelError>>) -> Result<ModelStream, ModelError> {
    match events.first() {
        Some(Err(error)) => Err(error.clone()),
        _ => Ok(Box::pin(stream::iter(events))),
    }
}

fn headers_of(response: &Response) -> Vec<(String, String)> {
    let pairs = response.headers().iter();
    pairs
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

fn redirected(response: &Response) -> ModelError {
    let status = response.status().as_u16();
    let to = headers_of(response).into_iter().find(|(name, _)| name == "location");
    let to = to.map_or_else(|| "elsewhere".to_owned(), |(_, to)| crate::classify::excerpt(&to, 200));
    let message = format!(
        "the server answered {status} and points to {to}; the key is not carried along, so set the base address to where the server is"
    );
    ModelError::new(ModelErrorKind::InvalidRequest, message)
}

fn waited(what: &str, limit: Duration) -> ModelError {
    let message = format!("waited {} s {what} and gave up", limit.as_secs_f32());
    ModelError::new(ModelErrorKind::Transport, message)
}

fn interrupted(bytes: usize, error: reqwest::Error) -> ModelError {
    let cause = transport("the connection failed", error).message;
    ModelError::interrupted(&format!("after {bytes} bytes ({cause})"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the transport owns the clock that dates in retry-after are read by"
)]
fn arrival() -> SystemTime {
    SystemTime::now()
}

const LAST_READ: Duration = Duration::from_millis(100);
const LARGEST_BODY: usize = 64 << 20;
