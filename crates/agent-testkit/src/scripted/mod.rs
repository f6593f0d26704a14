//! A model in process that says what a script says, and remembers what it was asked.

mod encoder;
mod play;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{
    Cancel, Encoder, LanguageModel, ModelError, ModelErrorKind, ModelProfile, ModelStream, Outgoing,
};
use async_trait::async_trait;
use bytes::Bytes;

use crate::pick::Pick;
use crate::script::{Reply, Script, ScriptError};
use encoder::ScriptEncoder;
use play::{Ending, Play};

/// A scripted model (requirement V6). It needs no network; only [`Reply::delay_ms`] needs a tokio runtime.
///
/// Clones share the record of requests, so a test keeps one and gives the other away.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    script: Arc<Script>,
    profile: ModelProfile,
    pick: Pick,
    delta_bytes: usize,
    failures: BTreeMap<usize, Failure>,
    log: Arc<Mutex<Log>>,
}

/// How a request to a scripted model fails. The reply it would have had goes to the next request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// At once, before any event.
    Before(ModelError),
    /// After some events of the reply.
    After {
        /// How many events still come.
        events: usize,
        /// The last item of the stream.
        error: ModelError,
    },
    /// The stream just ends, without the event that completes the answer.
    EndsEarly {
        /// How many events still come.
        events: usize,
    },
    /// Nothing more comes until the call is cancelled.
    Hangs {
        /// How many events still come.
        events: usize,
    },
}

#[derive(Debug, Default)]
struct Log {
    /// Every request body, failed ones included.
    requests: Vec<Bytes>,
    /// Requests that were not made to fail.
    served: usize,
    /// One past the highest reply given.
    reached: usize,
}

impl ScriptedModel {
    /// A model that gives these replies one after the other.
    pub fn new(script: impl Into<Script>) -> Self {
        Self {
            script: Arc::new(script.into()),
            profile: ModelProfile::conservative("scripted", "scripted-1"),
            pick: Pick::InOrder,
            delta_bytes: 16,
            failures: BTreeMap::new(),
            log: Arc::default(),
        }
    }

    /// Chooses the reply by the assistant messages in the request, so that a session resumed with another
    /// model of the same script goes on where it was.
    #[must_use]
    pub fn by_history(mut self) -> Self {
        self.pick = Pick::ByHistory;
        self
    }

    /// Claims to be this model; the encoder ignores what the profile says.
    #[must_use]
    pub fn with_profile(mut self, profile: ModelProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Cuts words, thinking and input into pieces of this many bytes, at least one character each; 16 by default.
    #[must_use]
    pub fn with_delta_bytes(mut self, bytes: usize) -> Self {
        self.delta_bytes = bytes;
        self
    }

    /// Lets a request fail; requests are counted from 0, failed ones included.
    #[must_use]
    pub fn failing(mut self, request: usize, failure: Failure) -> Self {
        self.failures.insert(request, failure);
        self
    }

    /// The bodies of all requests so far; see [`crate::render_requests`] for a form to read.
    pub fn requests(&self) -> Vec<Bytes> {
        self.log().requests.clone()
    }

    /// Whether every reply was given; the error says how many were not.
    pub fn check_complete(&self) -> Result<(), ScriptError> {
        self.script.check_served(self.log().reached)
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and decides which reply it gets and how that ends.
    fn take(&self, body: &[u8]) -> Result<(usize, &Reply, Ending), ModelError> {
        let mut log = self.log();
        let number = log.requests.len();
        log.requests.push(Bytes::copy_from_slice(body));
        let position = self.pick.position(log.served, body);
        let failure = self.failures.get(&number);
        if let Some(Failure::Before(error)) = failure {
            return Err(error.clone());
        }
        let misuse = |text: String| ModelError::new(ModelErrorKind::InvalidRequest, text);
        let reply = self.script.reply(position).map_err(|error| misuse(error.to_string()))?;
        if reply.hold || !reply.faults.is_empty() {
            return Err(misuse(format!("reply {} {WIRE_ONLY}", position + 1)));
        }
        let ending = match failure {
            Some(Failure::After { events, error }) => Ending::Error { after: *events, error: error.clone() },
            Some(Failure::EndsEarly { events }) => Ending::Silent { after: *events },
            Some(Failure::Hangs { events }) => Ending::Hang { after: *events },
            Some(Failure::Before(_)) | None => {
                log.served += 1;
                log.reached = log.reached.max(position + 1);
                Ending::Complete
            }
        };
        drop(log);
        Ok((position, reply, ending))
    }
}

#[async_trait]
impl LanguageModel for ScriptedModel {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(ScriptEncoder::default())
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        if cancel.is_cancelled() {
            return Err(ModelError::cancelled());
        }
        let body = request.body.to_vec();
        let (position, reply, ending) = self.take(&body)?;
        let events = play::events(&self.profile, (position, reply), body.len(), self.delta_bytes);
        Ok(Play::new(events, ending, reply.delay_ms).stream(cancel.clone()))
    }
}

const WIRE_ONLY: &str = "has a hold or faults, which only exist on the wire: use SimProvider for this script, or say \
                         ScriptedModel::failing in place of them";
