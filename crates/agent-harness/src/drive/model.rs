//! One attempt of a model call: the request as frozen buffers, the answer as events.

use agent_core::{
    Cancel, EventBody, ModelError, ModelErrorKind, ModelEvent, ModelStream, Outgoing, PendingStep, Response,
    ResponseBuilder, Usage,
};
use agent_turn::Report;
use futures_util::StreamExt;

use super::Drive;
use crate::cache::Answered;
use crate::outbox::Outbox;
use crate::unless::unless_cancelled;

/// What came of one request, and what it cost.
pub(super) struct Tried {
    pub(super) answer: Result<Report, Failure>,
    pub(super) usage: Usage,
    /// Tokens that the provider took out of the request.
    pub(super) cleared: u64,
}

/// How one request failed.
pub(super) struct Failure {
    pub(super) error: ModelError,
    /// Whether the answer had begun.
    pub(super) began: bool,
    /// Whether deltas were told.
    pub(super) told: bool,
    /// The id of the message that broke off, where known.
    pub(super) message: Option<String>,
}

/// How far an answer came.
#[derive(Default)]
struct Progress {
    fold: ResponseBuilder,
    cleared: u64,
    began: bool,
    told: bool,
}

impl Drive {
    /// Notes what the call left in the provider's cache, and tells a break of it with the step's events.
    pub(super) fn note_answer(&mut self, report: &Report, call: &Answered<'_>) {
        let is_whole = matches!(report, Report::Response(_));
        // A call that was stopped left something as soon as its answer began, which is when its tokens are told.
        if is_whole || call.usage.total_input() > 0 {
            self.take_size(report, call.usage);
            let found = self.live.cache.answered(&self.config, &self.live.history, call);
            if let Some(found) = found.filter(|_| is_whole) {
                tracing::warn!("less was read from the prompt cache than the last call left in it");
                self.out.stage(found);
            }
        }
    }

    /// Sends the request once, telling deltas as they arrive under the attempt's number.
    pub(super) async fn attempt(&mut self, number: u32, request: Outgoing) -> Tried {
        let mut progress = Progress::default();
        let asked = async {
            let stream = self.model().stream(request, &self.cancel).await?;
            read(stream, &mut progress, &self.out, number, &self.cancel).await
        };
        let read =
            unless_cancelled(&self.cancel, asked).await.unwrap_or_else(|| Err(ModelError::cancelled()));
        let Progress { fold, cleared, began, told } = progress;
        let usage = fold.usage().clone();
        record(&usage, &read, number);
        let message = fold.origin().message.clone();
        let answer = match read {
            Ok(()) => match fold.finish() {
                Some(response) => {
                    tracing::Span::current().record("finish", response.finish.raw.as_str());
                    Ok(Report::Response(self.admit(response)))
                }
                None => Err(ModelError::interrupted("early")),
            },
            Err(error) if error.kind == ModelErrorKind::Cancelled => {
                Ok(Report::Aborted(Some(self.admit(fold.partial("aborted")))))
            }
            Err(error) => Err(error),
        };
        Tried { answer: answer.map_err(|error| Failure { error, began, told, message }), usage, cleared }
    }

    /// An answer of the step's model as a step of this history, with the name that the model was asked under.
    fn admit(&self, mut response: Response) -> PendingStep {
        response.origin.asked = Some(self.model().profile().model.clone());
        self.live.history.admit(response)
    }
}

async fn read(
    mut stream: ModelStream,
    progress: &mut Progress,
    out: &Outbox,
    attempt: u32,
    cancel: &Cancel,
) -> Result<(), ModelError> {
    loop {
        let next = stream.next().await;
        progress.began = true;
        let Some(event) = next else { return Ok(()) };
        match progress.fold.take(event?) {
            Some(ModelEvent::Cleared { tokens }) => progress.cleared = tokens,
            Some(event) => progress.told |= tell(event, out, attempt),
            None => {}
        }
        if cancel.is_cancelled() {
            // Many events may be there at once, so that nothing waits between them.
            return Err(ModelError::cancelled());
        }
    }
}

/// Tells a delta; whether it was one.
fn tell(event: ModelEvent, out: &Outbox, attempt: u32) -> bool {
    match event {
        ModelEvent::TextDelta { index, text } => {
            out.live(|| EventBody::TextDelta { attempt, index, text });
        }
        ModelEvent::ReasoningDelta { index, text } => {
            out.live(|| EventBody::ReasoningDelta { attempt, index, text });
        }
        ModelEvent::ToolInputDelta { index, call, tool, json } => {
            out.live(|| EventBody::ToolInputDelta { attempt, index, call, tool, json });
        }
        ModelEvent::Start(_)
        | ModelEvent::Part(_)
        | ModelEvent::Usage(_)
        | ModelEvent::Cleared { .. }
        | ModelEvent::Finish(_)
        | _ => {
            return false;
        }
    }
    true
}

fn record(usage: &Usage, read: &Result<(), ModelError>, number: u32) {
    let span = tracing::Span::current();
    span.record("input", usage.input);
    span.record("output", usage.output);
    span.record("cache_read", usage.cache_read);
    span.record("cache_write", usage.cache_write());
    span.record("attempt", number);
    if let Err(error) = read {
        span.record("error", error.kind.as_str());
    }
}
