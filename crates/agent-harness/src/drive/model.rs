//! The model call: the request as frozen buffers, the answer as events.

use agent_core::{
    Cancel, Encoded, EventBody, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ModelStream,
    ResponseBuilder, ToolChoice, Usage,
};
use agent_turn::Report;
use futures_util::StreamExt;

use crate::config::HarnessConfig;
use crate::live::Live;
use crate::marks::marks;
use crate::outbox::Outbox;

/// Which try of a model call this is; retries come with the retry policy.
const FIRST_ATTEMPT: u32 = 0;

/// What came of a model call, and what it cost.
pub(super) struct Called {
    pub(super) report: Report,
    pub(super) usage: Usage,
}

/// Calls the model once, telling deltas as they arrive.
pub(super) async fn call(
    config: &HarnessConfig,
    live: &mut Live,
    out: &mut Outbox,
    cancel: &Cancel,
) -> Called {
    let encoded = encode(config, live);
    for diagnostic in &encoded.diagnostics {
        if !live.diagnosed.contains(diagnostic) {
            live.diagnosed.push(diagnostic.clone());
            out.stage(EventBody::RequestDiagnostic(diagnostic.clone()));
        }
    }
    tracing::debug!(bytes = encoded.request.body.len(), "request");
    let mut fold = ResponseBuilder::default();
    let opened = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ModelError::cancelled()),
        stream = config.model.stream(encoded.request, cancel) => stream,
    };
    let read = match opened {
        Ok(stream) => read(stream, &mut fold, out, cancel).await,
        Err(error) => Err(error),
    };
    let usage = fold.usage().clone();
    record(&usage, &read);
    let report = match read {
        Ok(()) => match fold.finish() {
            Some(response) => {
                tracing::Span::current().record("finish", response.finish.raw.as_str());
                Report::Response(live.history.admit(response))
            }
            None => Report::Failed(ModelError::interrupted("early")),
        },
        Err(error) if error.kind == ModelErrorKind::Cancelled => {
            Report::Aborted(Some(live.history.admit(fold.partial("aborted"))))
        }
        Err(error) => Report::Failed(error),
    };
    Called { report, usage }
}

fn encode(config: &HarnessConfig, live: &mut Live) -> Encoded {
    let marks = marks(config.model.profile(), !live.meta.system.is_empty(), &live.history);
    let draft = live.history.draft();
    let request = ModelRequest {
        system: &live.meta.system,
        tools: &live.meta.tools,
        draft: &draft,
        settings: &config.settings,
        tool_choice: &ToolChoice::Auto,
        marks: &marks,
        stream: true,
    };
    live.encoder.encode(&request)
}

async fn read(
    mut stream: ModelStream,
    fold: &mut ResponseBuilder,
    out: &Outbox,
    cancel: &Cancel,
) -> Result<(), ModelError> {
    loop {
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(ModelError::cancelled()),
            next = stream.next() => next,
        };
        let Some(event) = next else { return Ok(()) };
        let event = event?;
        tell(&event, out);
        fold.take(&event);
    }
}

fn tell(event: &ModelEvent, out: &Outbox) {
    let attempt = FIRST_ATTEMPT;
    match event {
        ModelEvent::TextDelta { index, text } => {
            out.live(|| EventBody::TextDelta { attempt, index: *index, text: text.clone() });
        }
        ModelEvent::ReasoningDelta { index, text } => {
            out.live(|| EventBody::ReasoningDelta { attempt, index: *index, text: text.clone() });
        }
        ModelEvent::ToolInputDelta { index, call, tool, json } => out.live(|| EventBody::ToolInputDelta {
            attempt,
            index: *index,
            call: call.clone(),
            tool: tool.clone(),
            json: json.clone(),
        }),
        ModelEvent::Start(_) | ModelEvent::Part(_) | ModelEvent::Usage(_) | ModelEvent::Finish(_) | _ => {}
    }
}

fn record(usage: &Usage, read: &Result<(), ModelError>) {
    let span = tracing::Span::current();
    span.record("input", usage.input);
    span.record("output", usage.output);
    span.record("cache_read", usage.cache_read);
    span.record("cache_write", usage.cache_write());
    if let Err(error) = read {
        span.record("error", error.kind.as_str());
    }
}
