//! One answer over HTTP: head, body, and the limits on waiting for either.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use agent_core::{Cancel, Cancelled, ModelError, ModelErrorKind, ModelEvent, ModelStream};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::ApiKey;
use crate::classify::{ResponseHead, classify, excerpt, with_head};
use crate::names::ToolNames;
use crate::transport::{ByteStream, TransportResponse};
use crate::wire::{Dialect, Events, LARGEST_BODY, StreamDecoder, too_large};

/// How the bytes are read.
#[derive(Debug)]
pub(super) struct Wire<'w> {
    pub(super) dialect: &'w Dialect,
    pub(super) names: ToolNames,
    pub(super) limits: Limits,
    /// What no error may quote.
    pub(super) key: ApiKey,
}

/// How long to wait, and for how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) response: Duration,
    pub(super) idle: Duration,
    pub(super) progress: Duration,
    /// Most bytes of one event.
    pub(super) event: usize,
}

/// A successful answer while it is read.
struct Answer {
    body: ByteStream,
    headers: Vec<(String, String)>,
    arrived: SystemTime,
    decoder: StreamDecoder,
    /// What was read and is not given yet, the next one last.
    ready: Events,
    /// Whether the server calls what it sends a stream.
    says_events: bool,
    cancel: Cancel,
    key: ApiKey,
    /// Ends when the call is stopped.
    stop: Cancelled,
    /// Goes off when nothing came in time, or earlier.
    timer: Pin<Box<Sleep>>,
    limits: Limits,
    /// How long the answer has been waited for since it last grew. What the caller does in between does not count.
    stalled: Duration,
    /// The read that is waited for.
    reading: Option<Reading>,
    /// Once the end of the body was read: how often the connection is still given time to be kept.
    turns: Option<u8>,
    over: bool,
}

/// A read that has begun.
#[derive(Debug, Clone, Copy)]
struct Reading {
    wait: Wait,
    start: Instant,
    /// How far the decoder was.
    before: u64,
}

/// Nothing came in time.
struct TimeOver;

/// What a wait for a piece of the body ends with.
type Piece = Result<Result<Option<Result<Bytes, ModelError>>, TimeOver>, ModelError>;

/// What ends the next wait.
#[derive(Debug, Clone, Copy)]
struct Wait {
    /// What is left of the limit.
    left: Duration,
    limit: Duration,
    /// The limit's name in the configuration.
    name: &'static str,
    awaited: &'static str,
}

/// Waits for the answer to begin and for its first event, so that what fails before it is returned here.
pub(super) async fn open(
    sent: impl Future<Output = Result<TransportResponse, ModelError>>,
    wire: Wire<'_>,
    cancel: &Cancel,
) -> Result<ModelStream, ModelError> {
    let limit = wire.limits.response;
    let late = || waited("for the response to begin", limit);
    let response = until(cancel, timeout(limit, sent)).await?.map_err(|_| late())??;
    let TransportResponse { status, headers, body } = response;
    let head = ResponseHead { status: Some(status), headers: &headers, now: arrival() };
    if (300..400).contains(&status) {
        return Err(redirected(&head));
    }
    if !(200..300).contains(&status) {
        let body = whole(body, limit, cancel).await?;
        return Err(classify(&head, &body));
    }
    let arrived = head.now;
    let mut answer = Box::pin(Answer::new(body, (headers, arrived), wire, cancel.clone()));
    while answer.ready.is_empty() && !answer.over {
        poll_fn(|cx| answer.poll_read(cx)).await;
    }
    match answer.ready.pop_if(|first| first.is_err()) {
        Some(Err(error)) => Err(error),
        Some(Ok(_)) | None => Ok(answer),
    }
}

impl Stream for Answer {
    type Item = Result<ModelEvent, ModelError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = self.get_mut();
        while answer.ready.is_empty() && !answer.over {
            ready!(answer.poll_read(cx));
        }
        Poll::Ready(answer.ready.pop())
    }
}

impl Answer {
    fn new(
        body: ByteStream,
        (headers, arrived): (Vec<(String, String)>, SystemTime),
        wire: Wire<'_>,
        cancel: Cancel,
    ) -> Self {
        let Wire { dialect, names, limits, key } = wire;
        let head = ResponseHead { headers: &headers, ..ResponseHead::unknown() };
        let content_type = head.header("content-type").unwrap_or_default().to_ascii_lowercase();
        let says_events = ["event-stream", "ndjson"].iter().any(|name| content_type.contains(name));
        Self {
            body,
            headers,
            arrived,
            decoder: StreamDecoder::with_event_limit(dialect, names, limits.event),
            ready: Events::new(),
            says_events,
            stop: cancel.cancelled(),
            cancel,
            key,
            timer: Box::pin(sleep(limits.idle)),
            limits,
            stalled: Duration::ZERO,
            reading: None,
            turns: None,
            over: false,
        }
    }

    /// Reads once, or ends the answer.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.decoder.is_complete() {
            return self.poll_leave(cx);
        }
        let Reading { wait, start, before } = match self.reading {
            Some(reading) => reading,
            None => {
                let wait = self.wait();
                Reading { wait, start: Instant::now(), before: self.decoder.progress() }
            }
        };
        if wait.left.is_zero() {
            // Bytes may be there all the time, as comments that flood in: a read would not run out of time.
            let events = self.end(|decoder| decoder.interrupt(&wait.to_string()));
            self.give(events);
            return Poll::Ready(());
        }
        let Poll::Ready(read) = self.poll_piece(start + wait.left, cx) else {
            self.reading = Some(Reading { wait, start, before });
            return Poll::Pending;
        };
        self.reading = None;
        self.stalled += start.elapsed();
        let mut events = std::mem::take(&mut self.ready);
        let events = match read {
            Ok(Ok(Some(Ok(bytes)))) => {
                self.decoder.read(&bytes, &mut events);
                events
            }
            Ok(Ok(None)) => self.end(StreamDecoder::finish),
            Ok(Ok(Some(Err(error)))) if error.kind == ModelErrorKind::Transport => {
                self.end(|decoder| decoder.interrupt(&error.message))
            }
            Ok(Ok(Some(Err(error)))) => self.end(|_| vec![Err(error)]),
            Ok(Err(_)) => self.end(|decoder| decoder.interrupt(&wait.to_string())),
            Err(cancelled) => self.end(|_| vec![Err(cancelled)]),
        };
        if self.decoder.progress() > before {
            self.stalled = Duration::ZERO;
        }
        self.give(events);
        Poll::Ready(())
    }

    /// The next piece of the body, or its end; an error inside when the time is over, one outside when the call was
    /// stopped.
    ///
    /// Thousands of pieces are waited for, so that each sets up nothing: the timer is moved only when it goes off early.
    fn poll_piece(&mut self, deadline: Instant, cx: &mut Context<'_>) -> Poll<Piece> {
        if self.cancel.is_cancelled() {
            return Poll::Ready(Err(ModelError::cancelled()));
        }
        if let Poll::Ready(next) = self.body.poll_next_unpin(cx) {
            return Poll::Ready(Ok(Ok(next)));
        }
        if self.stop.poll_unpin(cx).is_ready() {
            return Poll::Ready(Err(ModelError::cancelled()));
        }
        if deadline < self.timer.deadline() {
            self.timer.as_mut().reset(deadline);
        }
        while self.timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(Ok(Err(TimeOver)));
            }
            self.timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }

    fn end(&mut self, last: impl FnOnce(&mut StreamDecoder) -> Events) -> Events {
        self.over = true;
        last(&mut self.decoder)
    }

    /// Lets events go out, of which only the last can be a failure.
    fn give(&mut self, mut events: Events) {
        if let Some(Err(error)) = events.pop_if(|last| last.is_err()) {
            self.over = true;
            let head = ResponseHead { status: None, headers: &self.headers, now: self.arrived };
            events.push(Err(self.key.hidden_from(with_head(error, &head))));
        }
        events.reverse();
        self.ready = events;
    }

    /// After the terminal event only the end of the body is waited for, and not for long, so that the connection can
    /// be used again. What comes, or fails to, changes nothing.
    ///
    /// It is tasks of the client that find the connection free and put it back. Without a turn for them the next
    /// request, which follows at once, would open another one, and every session would hold two.
    fn poll_leave(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.turns.is_none() {
            let (wait, before) = (self.wait(), self.decoder.progress());
            let reading =
                *self.reading.get_or_insert_with(|| Reading { wait, start: Instant::now(), before });
            ready!(self.poll_piece(reading.start + LAST_READ, cx).map(drop));
        }
        match self.turns.unwrap_or(TURNS).checked_sub(1) {
            Some(left) => {
                self.turns = Some(left);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            None => {
                self.over = true;
                Poll::Ready(())
            }
        }
    }

    /// Any byte ends one wait of a stream, an event the other. What is no stream may begin as late as a response.
    fn wait(&self) -> Wait {
        let Limits { response, idle, progress, .. } = self.limits;
        let left = |limit: Duration| limit.saturating_sub(self.stalled);
        if !self.says_events && !self.decoder.is_streamed() {
            return Wait {
                left: left(response),
                limit: response,
                name: "response_timeout",
                awaited: "bytes",
            };
        }
        if idle <= left(progress) {
            return Wait { left: idle, limit: idle, name: "idle_timeout", awaited: "bytes" };
        }
        Wait { left: left(progress), limit: progress, name: "progress_timeout", awaited: "event" }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (awaited, limit, name) = (self.awaited, self.limit.as_secs_f32(), self.name);
        write!(
            f,
            "waited {limit} s for the next {awaited} and gave up; raise `{name}` of the model's configuration if the server is known to be that slow"
        )
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
async fn whole(mut body: ByteStream, limit: Duration, cancel: &Cancel) -> Result<Vec<u8>, ModelError> {
    let mut all = Vec::new();
    loop {
        let chunk: Option<Result<Bytes, ModelError>> = until(cancel, timeout(limit, body.next()))
            .await?
            .map_err(|_| waited("for the rest of the body", limit))?;
        match chunk.transpose().map_err(|error| interrupted(all.len(), error))? {
            None => return Ok(all),
            Some(chunk) if all.len() + chunk.len() <= LARGEST_BODY => all.extend_from_slice(&chunk),
            Some(_) => return Err(too_large()),
        }
    }
}

fn redirected(head: &ResponseHead<'_>) -> ModelError {
    let status = head.status.unwrap_or_default();
    let to = head.header("location").map_or_else(|| "elsewhere".to_owned(), |to| excerpt(to, 200));
    let message = format!(
        "the server answered {status} and points to {to}; the key is not carried along, so set the base address to where the server is"
    );
    ModelError::new(ModelErrorKind::InvalidRequest, message)
}

fn waited(what: &str, limit: Duration) -> ModelError {
    let message = format!("waited {} s {what} and gave up", limit.as_secs_f32());
    ModelError::new(ModelErrorKind::Transport, message)
}

fn interrupted(bytes: usize, error: ModelError) -> ModelError {
    if error.kind != ModelErrorKind::Transport {
        return error;
    }
    ModelError::interrupted(&format!("after {bytes} bytes ({})", error.message))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the transport owns the clock that dates in retry-after are read by"
)]
fn arrival() -> SystemTime {
    SystemTime::now()
}

const LAST_READ: Duration = Duration::from_millis(100);
/// One for the task that reads the connection, one for the task that keeps it.
const TURNS: u8 = 2;
