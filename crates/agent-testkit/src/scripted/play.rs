//! The events of a scripted reply, and how their stream ends.

use std::collections::VecDeque;
use std::time::Duration;

use agent_core::{
    AssistantPart, CallId, Cancel, Finish, FinishKind, ModelError, ModelEvent, ModelProfile, ModelStream,
    Origin, Reasoning, Seal, ToolCall, ToolInput, Usage,
};
use futures_util::stream;

use crate::pieces::pieces;
use crate::script::{Reply, ScriptCall};

/// A reply on its way.
#[derive(Debug)]
pub(super) struct Play {
    events: VecDeque<ModelEvent>,
    /// What comes after the events.
    ending: Ending,
    delay: Option<Duration>,
}

/// How a stream of events ends. Counts are of events before the end.
#[derive(Debug)]
pub(super) enum Ending {
    /// With the last event.
    Complete,
    /// With an error in place of further events.
    Error { after: usize, error: ModelError },
    /// Without a word.
    Silent { after: usize },
    /// Not at all, until cancelled.
    Hang { after: usize },
}

/// All events of a reply that is not disturbed.
pub(super) fn events(
    profile: &ModelProfile,
    (position, reply): (usize, &Reply),
    input_bytes: usize,
    delta_bytes: usize,
) -> Vec<ModelEvent> {
    let message = Some(format!("msg_scripted_{position:04}"));
    let origin = Origin { model: profile.model.clone(), message, asked: None };
    let mut teller = Teller { profile, position, delta_bytes, index: 0, events: Vec::new() };
    let usage = reply.usage.clone().unwrap_or_else(|| estimate(reply, input_bytes));
    teller.events.push(ModelEvent::Start(origin));
    teller.events.push(ModelEvent::Usage(Usage { output: 0, reasoning: 0, raw: None, ..usage.clone() }));
    if let Some(text) = &reply.reasoning {
        teller.reasoning(text);
    }
    if let Some(text) = &reply.text {
        teller.text(text);
    }
    let raw = reply.stop_word();
    for (number, call) in reply.calls.iter().enumerate() {
        let last = number + 1 == reply.calls.len();
        teller.call(call, number, last && raw == "max_tokens");
    }
    teller.events.push(ModelEvent::Usage(usage));
    teller.events.push(ModelEvent::Finish(Finish { kind: finish_kind(raw), raw: raw.to_owned() }));
    teller.events
}

/// Writes blocks as deltas and parts.
struct Teller<'a> {
    profile: &'a ModelProfile,
    position: usize,
    delta_bytes: usize,
    index: u32,
    events: Vec<ModelEvent>,
}

impl Teller<'_> {
    fn reasoning(&mut self, text: &str) {
        let index = self.index;
        let deltas = pieces(text, self.delta_bytes);
        self.events.extend(deltas.map(|text| ModelEvent::ReasoningDelta { index, text: text.to_owned() }));
        let value = format!("scripted-signature-{:04}", self.position);
        let seal = Some(Seal::Signature { provider: self.profile.provider.clone(), value });
        self.end_block(AssistantPart::Reasoning(Reasoning { text: text.to_owned(), seal }));
    }

    /// Blank words are streamed as the model says them, but make no part: a history has no place for them.
    fn text(&mut self, text: &str) {
        let index = self.index;
        let deltas = pieces(text, self.delta_bytes);
        self.events.extend(deltas.map(|text| ModelEvent::TextDelta { index, text: text.to_owned() }));
        if let Some(part) = AssistantPart::text(text) {
            self.end_block(part);
        }
    }

    fn call(&mut self, call: &ScriptCall, number: usize, cut: bool) {
        let index = self.index;
        let id = CallId::new(call.id_at("toolu", self.position, number))
            .unwrap_or_else(|_| CallId::positional(number));
        let written = call.input.as_str();
        // The first delta names the call and is empty, as on a real wire.
        for json in std::iter::once("").chain(pieces(written, self.delta_bytes)) {
            let (call_id, tool, json) = (id.clone(), call.name.as_str().into(), json.to_owned());
            self.events.push(ModelEvent::ToolInputDelta { index, call: call_id, tool, json });
        }
        let input = if cut { ToolInput::cut(written) } else { ToolInput::finished(written) };
        self.end_block(AssistantPart::ToolCall(ToolCall { id, name: call.name.clone(), input, data: None }));
    }

    fn end_block(&mut self, part: AssistantPart) {
        self.events.push(ModelEvent::Part(part));
        self.index += 1;
    }
}

/// Four bytes a token: coarse, and the same on every machine.
fn estimate(reply: &Reply, input_bytes: usize) -> Usage {
    let tokens = |bytes: usize| (bytes as u64).div_ceil(4);
    Usage {
        input: tokens(input_bytes),
        output: tokens(reply.written()),
        reasoning: tokens(reply.reasoning.as_ref().map_or(0, String::len)),
        ..Usage::default()
    }
}

fn finish_kind(raw: &str) -> FinishKind {
    match raw {
        "end_turn" | "stop_sequence" | "stop" => FinishKind::Stop,
        "tool_use" | "tool_calls" => FinishKind::ToolCalls,
        "max_tokens" | "length" => FinishKind::Length,
        "content_filter" => FinishKind::ContentFilter,
        "refusal" => FinishKind::Refusal,
        "pause_turn" => FinishKind::Pause,
        "model_context_window_exceeded" => FinishKind::ContextWindow,
        _ => FinishKind::Other,
    }
}

impl Play {
    pub(super) fn new(mut events: Vec<ModelEvent>, ending: Ending, delay_ms: Option<u64>) -> Self {
        // A disturbed answer never holds its last event.
        let most = events.len().saturating_sub(1);
        match &ending {
            Ending::Complete => {}
            Ending::Error { after, .. } | Ending::Silent { after } | Ending::Hang { after } => {
                events.truncate(most.min(*after));
            }
        }
        Self { events: events.into(), ending, delay: delay_ms.map(Duration::from_millis) }
    }

    pub(super) fn stream(self, cancel: Cancel) -> ModelStream {
        Box::pin(stream::unfold(Some(self), move |play| {
            let cancel = cancel.clone();
            async move {
                let mut play = play?;
                let next = play.next(&cancel).await?;
                let rest = next.is_ok().then_some(play);
                Some((next, rest))
            }
        }))
    }

    async fn next(&mut self, cancel: &Cancel) -> Option<Result<ModelEvent, ModelError>> {
        if let (Some(delay), false) = (self.delay, self.events.is_empty()) {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = cancel.cancelled() => {}
            }
        }
        if cancel.is_cancelled() {
            return Some(Err(ModelError::cancelled()));
        }
        if let Some(event) = self.events.pop_front() {
            return Some(Ok(event));
        }
        match &self.ending {
            Ending::Complete | Ending::Silent { .. } => None,
            Ending::Error { error, .. } => Some(Err(error.clone())),
            Ending::Hang { .. } => {
                cancel.cancelled().await;
                Some(Err(ModelError::cancelled()))
            }
        }
    }
}
