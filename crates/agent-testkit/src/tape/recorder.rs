//! Making a tape: every exchange passes through and is written down when its answer ends.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use agent_core::ModelError;
use agent_providers::{ByteStream, Transport, TransportRequest, TransportResponse};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::Stream;

use super::TapeError;
use super::secrets::Secrets;
use crate::corpus::{Exchange, ExchangeRequest};
use crate::fault::RawReply;

/// A [`Transport`] that writes down what passes through it, for [`crate::Replay`] (requirement V6).
///
/// The file has one exchange a line, in the order the requests were made and in the shape of [`crate::read_exchanges`].
/// An exchange is added, in one write, when its answer ends or is dropped, so that the file is whole whatever becomes of
/// the process; an exchange that began earlier is waited for. The first one replaces an older recording, and until then
/// nothing is touched.
///
/// What is never in it: the values of headers that are not known to be harmless, and the key, in an address or a body.
/// All other bytes of an answer are exact.
#[derive(Debug)]
pub struct Recorder {
    real: Box<dyn Transport>,
    reel: Arc<Reel>,
}

#[derive(Debug)]
struct Reel {
    path: PathBuf,
    secrets: Secrets,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<Bytes>,
    /// Ended exchanges that wait for an earlier one; `None` for one that was not answered.
    ended: BTreeMap<usize, Option<String>>,
    /// The exchange that is written next.
    next: usize,
    is_begun: bool,
    /// The first one.
    problem: Option<Problem>,
}

/// Why the recording is not whole.
#[derive(Debug, Clone)]
enum Problem {
    Unanswered { number: usize, why: String },
    Write { kind: io::ErrorKind, words: String },
}

/// An exchange under way. Dropping it ends it.
#[derive(Debug)]
struct Take {
    reel: Arc<Reel>,
    number: usize,
    request: ExchangeRequest,
    head: Option<(u16, BTreeMap<String, String>)>,
    body: Vec<u8>,
    why: String,
}

/// An answer that is written down while it is read.
struct Taken {
    body: ByteStream,
    take: Option<Take>,
}

impl Recorder {
    /// A recorder in front of a real transport. The folder of the file is made when it is needed.
    pub fn new(path: impl Into<PathBuf>, real: impl Transport + 'static) -> Self {
        let reel = Reel { path: path.into(), secrets: Secrets::default(), state: Mutex::default() };
        Self { real: Box::new(real), reel: Arc::new(reel) }
    }

    /// Keeps a text out of the recording; see [`crate::Tape::hide`].
    pub fn hide(&self, text: impl Into<String>) {
        self.reel.secrets.hide(&text.into());
    }

    /// The bodies of all requests so far, as they were sent.
    pub fn requests(&self) -> Vec<Bytes> {
        self.reel.state().requests.clone()
    }

    /// Whether every exchange was written.
    pub fn check_complete(&self) -> Result<(), TapeError> {
        let (state, path) = (self.reel.state(), self.reel.path.clone());
        match state.problem.clone() {
            Some(Problem::Unanswered { number, why }) => Err(TapeError::Unanswered { path, number, why }),
            Some(Problem::Write { kind, words }) => {
                Err(TapeError::Write { path, cause: io::Error::new(kind, words) })
            }
            None if state.requests.is_empty() => Err(TapeError::Nothing { path }),
            None if state.next < state.requests.len() => {
                let why = "its answer is still being read".into();
                Err(TapeError::Unanswered { path, number: state.next + 1, why })
            }
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Transport for Recorder {
    async fn send(&self, request: TransportRequest) -> Result<TransportResponse, ModelError> {
        let mut take = Take::begin(&self.reel, &request);
        let sent = self.real.send(request).await;
        let TransportResponse { status, headers, body } = sent.inspect_err(|error| {
            take.why = self.reel.secrets.hidden(&error.to_string());
        })?;
        take.head = Some((status, self.reel.secrets.headers(&headers)));
        let body: ByteStream = Box::pin(Taken { body, take: Some(take) });
        Ok(TransportResponse { status, headers, body })
    }
}

impl Take {
    fn begin(reel: &Arc<Reel>, request: &TransportRequest) -> Self {
        let secrets = &reel.secrets;
        secrets.learn(request);
        let body = Bytes::from(request.body.to_vec());
        let said = ExchangeRequest {
            method: request.method.to_string(),
            path: secrets.path(&request.url),
            headers: secrets.headers(&request.headers),
            body: Some(secrets.hidden(&String::from_utf8_lossy(&body))),
        };
        let mut state = reel.state();
        let number = state.requests.len();
        state.requests.push(body);
        drop(state);
        let why = "it was dropped before its answer began".to_owned();
        Self { reel: Arc::clone(reel), number, request: said, head: None, body: Vec::new(), why }
    }

    fn line(&mut self) -> Result<String, String> {
        let (status, headers) = self.head.take().ok_or_else(|| std::mem::take(&mut self.why))?;
        let body = Bytes::from(self.reel.secrets.hidden_bytes(&self.body));
        let response = RawReply { status, headers, body };
        let exchange = Exchange { request: self.request.clone(), response };
        serde_json::to_string(&exchange).map_err(|error| error.to_string())
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        let line = self.line();
        self.reel.end(self.number, line);
    }
}

impl Reel {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the end of an exchange, and writes what is no longer waited for.
    fn end(&self, number: usize, line: Result<String, String>) {
        let mut state = self.state();
        let line = match line {
            Ok(line) => Some(line),
            Err(why) => {
                state.problem.get_or_insert(Problem::Unanswered { number: number + 1, why });
                None
            }
        };
        state.ended.insert(number, line);
        let mut next = state.next;
        while let Some(line) = state.ended.remove(&next) {
            next += 1;
            let Some(line) = line else { continue };
            if let Err(cause) = write(&self.path, state.is_begun, line + "\n") {
                let (kind, words) = (cause.kind(), cause.to_string());
                state.problem.get_or_insert(Problem::Write { kind, words });
            }
            state.is_begun = true;
        }
        state.next = next;
    }
}

/// Adds a line to the file, which begins anew with the first one.
#[expect(
    clippy::disallowed_methods,
    reason = "recordings lie where the tests that use them do, outside any sandbox"
)]
fn write(path: &Path, is_begun: bool, line: String) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|_| !is_begun) {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let options =
        if is_begun { options.append(true) } else { options.write(true).create(true).truncate(true) };
    options.open(path)?.write_all(line.as_bytes())
}

impl Stream for Taken {
    type Item = Result<Bytes, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.body.as_mut().poll_next(cx);
        match &polled {
            Poll::Ready(Some(Ok(bytes))) => {
                if let Some(take) = &mut self.take {
                    take.body.extend_from_slice(bytes);
                }
            }
            // What arrived is the answer; that it broke off is seen again when it is played.
            Poll::Ready(Some(Err(_)) | None) => drop(self.take.take()),
            Poll::Pending => {}
        }
        polled
    }
}
