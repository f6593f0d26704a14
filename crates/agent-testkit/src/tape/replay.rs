//! Playing a tape: the recorded answers, as long as the requests are the recorded ones.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_core::{ModelError, ModelErrorKind};
use agent_providers::{Transport, TransportRequest, TransportResponse};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::TapeError;
use super::diff::difference;
use super::secrets::{REDACTED, Secrets, open_query};
use crate::corpus::{CorpusError, Exchange, ExchangeRequest, read_exchanges};
use crate::fault::RawReply;

/// A [`Transport`] that plays a recording of [`crate::Recorder`], or any file of [`crate::read_exchanges`], and needs no
/// network (requirement V6).
///
/// It is strict: requests must come in the recorded order, with the recorded method, path and body, byte for byte.
/// Headers are not compared, so no key is needed. A request that does not fit fails with an error of kind
/// `invalid_request` whose message shows what differs first; [`Self::check_complete`] tells it again, since an agent may
/// go on after an error.
#[derive(Debug)]
pub struct Replay {
    path: PathBuf,
    exchanges: Vec<Exchange>,
    secrets: Secrets,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<Bytes>,
    /// How many exchanges were played.
    used: usize,
    /// The first request that did not fit.
    misfit: Option<Misfit>,
}

/// A request that did not fit: which, counted from 0, and what of it differs; nothing when none was left.
#[derive(Debug, Clone)]
struct Misfit {
    number: usize,
    diff: Option<String>,
}

impl Replay {
    /// Reads a recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TapeError> {
        let path = path.as_ref().to_owned();
        let mut exchanges = read_exchanges(&path).map_err(|error| match error {
            CorpusError::Read { path, cause } if cause.kind() == std::io::ErrorKind::NotFound => {
                TapeError::Missing { path }
            }
            error @ (CorpusError::Read { .. } | CorpusError::Line { .. } | CorpusError::Empty { .. }) => {
                TapeError::Read(error)
            }
        })?;
        for Exchange { request, .. } in &mut exchanges {
            // Others who record may write something else in place of a key.
            request.path = open_query(&request.path);
        }
        Ok(Self { path, exchanges, secrets: Secrets::default(), state: Mutex::default() })
    }

    /// Takes a text for what was kept out of the recording; see [`crate::Tape::hide`].
    pub fn hide(&self, text: impl Into<String>) {
        self.secrets.hide(&text.into());
    }

    /// The bodies of all requests so far, refused ones included.
    pub fn requests(&self) -> Vec<Bytes> {
        self.state().requests.clone()
    }

    /// Whether every request fitted and every exchange was asked for.
    pub fn check_complete(&self) -> Result<(), TapeError> {
        let state = self.state();
        if let Some(misfit) = state.misfit.clone() {
            return Err(self.error(misfit));
        }
        let (path, given, used) = (self.path.clone(), self.exchanges.len(), state.used);
        if used < given { Err(TapeError::Unused { path, given, used }) } else { Ok(()) }
    }

    /// The answer to a request, when it is the next recorded one.
    fn take(&self, request: &TransportRequest) -> Result<RawReply, Misfit> {
        self.secrets.learn(request);
        let body = Bytes::from(request.body.to_vec());
        let sent = ExchangeRequest {
            method: request.method.to_string(),
            path: self.secrets.path(&request.url),
            headers: Default::default(),
            body: Some(self.secrets.hidden(&String::from_utf8_lossy(&body))),
        };
        let mut state = self.state();
        let number = state.requests.len();
        state.requests.push(body);
        let misfit = match self.exchanges.get(state.used) {
            None => Misfit { number, diff: None },
            Some(next) => match difference(&next.request, &sent) {
                Some(diff) => Misfit { number, diff: Some(diff) },
                None => {
                    state.used += 1;
                    return Ok(next.response.clone());
                }
            },
        };
        state.misfit.get_or_insert_with(|| misfit.clone());
        drop(state);
        Err(misfit)
    }

    fn error(&self, Misfit { number, diff }: Misfit) -> TapeError {
        let (path, number) = (self.path.clone(), number + 1);
        match diff {
            Some(diff) => TapeError::Mismatch { path, number, diff },
            None => TapeError::Exhausted { path, given: self.exchanges.len(), number },
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Transport for Replay {
    async fn send(&self, request: TransportRequest) -> Result<TransportResponse, ModelError> {
        let taken = self.take(&request).map_err(|misfit| self.error(misfit));
        let RawReply { status, headers, body } =
            taken.map_err(|error| ModelError::new(ModelErrorKind::InvalidRequest, error.to_string()))?;
        Ok(TransportResponse {
            status,
            headers: headers.into_iter().filter(|(_, value)| value != REDACTED).collect(),
            body: stream::iter([Ok(self.secrets.restored(body))]).boxed(),
        })
    }
}
