//! Tapes: real exchanges with a provider, recorded once and replayed from then on.

mod diff;
mod hex;
mod recorder;
mod replay;
mod secrets;

pub(crate) use hex::{from_hex, to_hex};
pub use recorder::Recorder;
pub use replay::Replay;

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::LanguageModel;
use agent_providers::Transport;
use bytes::Bytes;

use crate::corpus::CorpusError;
use crate::test_model::{TestModel, TestModelError};

/// A recording, being made or being replayed (requirement V6): the same test runs once against the real service, and
/// from then on without a network, from a file that is checked in.
///
/// A tape is a place for a [`Transport`]: give [`Self::transport`] to a model, and put that model into [`Self::model`].
///
/// ```no_run
/// use agent_providers::{ApiKey, HttpConfig, HttpModel};
/// use agent_testkit::{RecordMode, Tape, TapedModel};
///
/// fn model(mode: RecordMode, key: &str) -> Result<TapedModel, Box<dyn std::error::Error>> {
///     let config = HttpConfig { api_key: ApiKey::new(key), model: "claude-haiku-4-5".into(), ..HttpConfig::default() };
///     let tape = Tape::open("tests/tapes/umbrella.jsonl", mode, || config.network())?;
///     let model = HttpModel::new(HttpConfig { transport: Some(tape.transport()), ..config })?;
///     Ok(tape.model(model))
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Tape(Side);

#[derive(Debug, Clone)]
enum Side {
    Record(Arc<Recorder>),
    Replay(Arc<Replay>),
}

/// Whether a tape is made or played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordMode {
    /// Ask the real service, and write a new recording in place of the old one.
    Record,
    /// Play the recording; nothing leaves the process.
    #[default]
    Replay,
}

/// A model whose network is a tape.
#[derive(Debug, Clone)]
pub struct TapedModel {
    model: Arc<dyn LanguageModel>,
    tape: Tape,
}

/// Why a recording cannot be made, or no longer fits.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    /// There is no recording.
    #[error("there is no recording at {}: {AGAIN}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] CorpusError),
    /// The real transport cannot be set up.
    #[error("the network to record from cannot be set up")]
    Network(#[source] Box<dyn Error + Send + Sync>),
    /// The recording cannot be written.
    #[error("cannot write the recording {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A request got no answer that could be recorded.
    #[error("request {number} is not in the recording {}: {why}; record again", path.display())]
    Unanswered {
        /// The file.
        path: PathBuf,
        /// Which request, from 1.
        number: usize,
        /// What happened to it.
        why: String,
    },
    /// A test that recorded nothing.
    #[error("no request was made, so nothing was recorded in {}: give the tape's transport to the model", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
    },
    /// A request is not the one that was recorded.
    #[error("request {number} is not the recorded one ({}):\n{diff}\n{AGAIN}", path.display())]
    Mismatch {
        /// The file.
        path: PathBuf,
        /// Which request, from 1.
        number: usize,
        /// What differs first, recorded and sent, one a line.
        diff: String,
    },
    /// More was asked than was recorded.
    #[error("{} holds {given} exchanges, and request {number} was made: {AGAIN}", path.display())]
    Exhausted {
        /// The file.
        path: PathBuf,
        /// How many exchanges there are.
        given: usize,
        /// Which request, from 1.
        number: usize,
    },
    /// Less was asked than was recorded.
    #[error("{} holds {given} exchanges, but only {used} were asked for: the run ended early, or {AGAIN}", path.display())]
    Unused {
        /// The file.
        path: PathBuf,
        /// How many exchanges there are.
        given: usize,
        /// How many were used.
        used: usize,
    },
}

/// A test that ends with it prints this: the words, with their lines.
impl fmt::Debug for TapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Tape {
    /// Opens a recording: to play it, or to make it with what `real` gives, which is asked for only then.
    pub fn open<T, E>(
        path: impl AsRef<Path>,
        mode: RecordMode,
        real: impl FnOnce() -> Result<T, E>,
    ) -> Result<Self, TapeError>
    where
        T: Transport + 'static,
        E: Error + Send + Sync + 'static,
    {
        let path = path.as_ref();
        Ok(Self(match mode {
            RecordMode::Record => {
                let real = real().map_err(|error| TapeError::Network(Box::new(error)))?;
                Side::Record(Arc::new(Recorder::new(path, real)))
            }
            RecordMode::Replay => Side::Replay(Arc::new(Replay::open(path)?)),
        }))
    }

    /// What a model sends its requests through.
    pub fn transport(&self) -> Arc<dyn Transport> {
        match &self.0 {
            Side::Record(recorder) => Arc::clone(recorder) as Arc<dyn Transport>,
            Side::Replay(replay) => Arc::clone(replay) as Arc<dyn Transport>,
        }
    }

    /// Keeps a text out of the recording, in requests and answers: something personal, or something that is another one
    /// in each run, as the path of a temporary folder. In the file it is `[hidden 1]`, the next one `[hidden 2]`; played
    /// answers hold what was given in this run.
    ///
    /// Say it before the first request, in both modes and in the same order. Each answer is searched as a whole, so a
    /// text that a stream cut in two is not found.
    pub fn hide(&self, text: impl Into<String>) {
        match &self.0 {
            Side::Record(recorder) => recorder.hide(text),
            Side::Replay(replay) => replay.hide(text),
        }
    }

    /// The model that was given this tape's transport, as a [`TestModel`].
    pub fn model(&self, model: impl LanguageModel + 'static) -> TapedModel {
        TapedModel { model: Arc::new(model), tape: self.clone() }
    }

    /// The bodies of all requests so far, as they were sent.
    pub fn requests(&self) -> Vec<Bytes> {
        match &self.0 {
            Side::Record(recorder) => recorder.requests(),
            Side::Replay(replay) => replay.requests(),
        }
    }

    /// Whether the recording was made or used as a whole, and every request fitted.
    pub fn check_complete(&self) -> Result<(), TapeError> {
        match &self.0 {
            Side::Record(recorder) => recorder.check_complete(),
            Side::Replay(replay) => replay.check_complete(),
        }
    }
}

/// `record` records. Anything else replays, so that no test reaches a network by mistake.
///
/// ```
/// use agent_testkit::RecordMode;
///
/// assert_eq!(RecordMode::from("record"), RecordMode::Record);
/// assert_eq!(RecordMode::from(""), RecordMode::Replay);
/// ```
impl From<&str> for RecordMode {
    fn from(word: &str) -> Self {
        if word.eq_ignore_ascii_case("record") { Self::Record } else { Self::Replay }
    }
}

impl TestModel for TapedModel {
    fn model(&self) -> Arc<dyn LanguageModel> {
        Arc::clone(&self.model)
    }

    fn requests(&self) -> Vec<Bytes> {
        self.tape.requests()
    }

    fn check_complete(&self) -> Result<(), TestModelError> {
        Ok(self.tape.check_complete()?)
    }
}

const AGAIN: &str = "to record it again, run the test once with RecordMode::Record";
