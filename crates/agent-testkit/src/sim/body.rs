//! The body of an answer on its way out: in pieces, with pauses, and not always to its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use agent_core::Cancel;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;

use super::Shared;
use super::account::Entries;

pub(super) type SimBody = UnsyncBoxBody<Bytes, Broken>;

/// Tells hyper to drop the connection.
#[derive(Debug, thiserror::Error)]
#[error("the script breaks the connection here")]
pub(super) struct Broken;

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Complete,
    Cut,
    /// It stays open until the server stops.
    Stall,
}

/// A body as frames.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) frames: VecDeque<Bytes>,
    pub(super) ending: Ending,
    pub(super) delay: Option<Duration>,
    /// What can be read from the cache once the first frame goes out.
    pub(super) begin: Option<Begin>,
    pub(super) stop: Cancel,
}

/// The beginning of an answer.
#[derive(Debug)]
pub(super) struct Begin {
    pub(super) shared: Arc<Shared>,
    pub(super) entries: Entries,
}

impl Begin {
    pub(super) fn now(&self) {
        self.shared.accounts.begin(&self.entries);
    }
}

impl Play {
    /// Cuts the body into frames of this many bytes, wherever that falls.
    pub(super) fn chunked(mut self, bytes: Option<usize>) -> Self {
        if let Some(bytes) = bytes {
            let whole = Bytes::from(self.frames.make_contiguous().concat());
            let starts = (0..whole.len()).step_by(bytes.max(1));
            self.frames = starts.map(|at| whole.slice(at..whole.len().min(at + bytes.max(1)))).collect();
        }
        self
    }

    pub(super) fn body(self) -> SimBody {
        StreamBody::new(stream::unfold(Some(self), |play| async move {
            let mut play = play?;
            let next = play.next().await?;
            let rest = next.is_ok().then_some(play);
            Some((next.map(Frame::data), rest))
        }))
        .boxed_unsync()
    }

    async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        if let (Some(delay), false) = (self.delay, self.frames.is_empty()) {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.stop.cancelled() => {}
            }
        }
        // Hyper writes out what it holds when the body pauses: each frame travels alone, and a cut loses none.
        tokio::task::yield_now().await;
        if let Some(frame) = self.frames.pop_front() {
            if let Some(begin) = self.begin.take() {
                begin.now();
            }
            return Some(Ok(frame));
        }
        match self.ending {
            Ending::Complete => None,
            Ending::Cut => Some(Err(Broken)),
            Ending::Stall => {
                self.stop.cancelled().await;
                Some(Err(Broken))
            }
        }
    }
}
