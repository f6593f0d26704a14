//! The model as a trait: a request goes out as frozen buffers, events come back.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::{
    AssistantPart, Body, CallId, Cancel, Draft, Mark, ModelError, Reasoning, SystemBlock, ToolCall, ToolCard,
    ToolChoice, Usage,
};

/// A language model behind some provider. Implement it to add a provider; depend on `agent-core` only.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a language model",
    note = "use `AnthropicModel` of agent-providers, `ScriptedModel` of agent-testkit, or implement `LanguageModel`"
)]
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// What the model can do and how its provider caches.
    fn profile(&self) -> &ModelProfile;

    /// A fresh encoder. A session owns one and keeps it, so that bytes once sent stay the same bytes.
    fn encoder(&self) -> Box<dyn Encoder>;

    /// Sends a request body and returns the answer as it arrives: [`ModelEvent::Start`], deltas with a
    /// [`ModelEvent::Part`] for each completed block, [`ModelEvent::Usage`], and [`ModelEvent::Finish`] last.
    ///
    /// Errors before the first event are returned here; later ones come as the last item of the stream. A
    /// stream that ends without [`ModelEvent::Finish`] was interrupted.
    async fn stream(&self, body: Body, cancel: &Cancel) -> Result<ModelStream, ModelError>;
}

#[async_trait]
impl<M: LanguageModel + ?Sized> LanguageModel for Arc<M> {
    fn profile(&self) -> &ModelProfile {
        (**self).profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        (**self).encoder()
    }

    async fn stream(&self, body: Body, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        (**self).stream(body, cancel).await
    }
}

/// Events of one answer.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// Turns requests of one session into bytes, remembering what it encoded before.
///
/// Contract: an entry is encoded once; later bodies hold the same buffers (not equal ones) for it. The work of a
/// call is proportional to what is new since the last one.
pub trait Encoder: fmt::Debug + Send + Sync {
    /// The request body, and what of the request the model cannot take.
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded;
}

/// A request body with what had to be left out of it.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "returned by every encoder")]
pub struct Encoded {
    /// The bytes to send.
    pub body: Body,
    /// What could not be sent as asked; shown to the user, never dropped in silence (requirement M12).
    pub diagnostics: Vec<Diagnostic>,
}

/// Something of a request that the provider cannot take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of two texts")]
pub struct Diagnostic {
    /// The field or part, for example `settings.temperature`.
    pub what: String,
    /// Why, and what was sent instead.
    pub why: String,
}

/// What one model call is asked. Everything is borrowed: building it copies nothing.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::exhaustive_structs,
    reason = "an argument record, written as a literal by drivers and tests"
)]
pub struct ModelRequest<'a> {
    /// The system prompt's blocks, in order.
    pub system: &'a [SystemBlock],
    /// The tools, in their one order.
    pub tools: &'a [ToolCard],
    /// The conversation and the words for this call only.
    pub draft: &'a Draft<'a>,
    /// Output limit, sampling, thinking.
    pub settings: &'a RequestSettings,
    /// Whether and which tool must be called.
    pub tool_choice: &'a ToolChoice,
    /// Where cache breakpoints go.
    pub marks: &'a [Mark],
    /// Whether the answer is streamed. No other byte of the body depends on it.
    pub stream: bool,
}

/// Typed settings of a call; an absent one is the provider's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct RequestSettings {
    /// Most output tokens; default the profile's maximum.
    pub max_output: Option<u32>,
    /// Sampling temperature, 0 to 2.
    pub temperature: Option<f32>,
    /// How much the model thinks before it answers.
    pub thinking: Option<Thinking>,
    /// Texts that end the answer.
    #[serde(default)]
    pub stop_sequences: Vec<String>,
}

/// How much a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Thinking {
    /// As the model sees fit.
    Adaptive,
    /// At most this many tokens.
    Budget(u32),
    /// Not at all.
    Disabled,
}

/// What a model can do. Data, so that users can correct it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data, written as a literal with ..ModelProfile::conservative"
)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a model, not states")]
pub struct ModelProfile {
    /// The provider's name, for example `anthropic`; tags parts that only it understands.
    pub provider: String,
    /// The model's name on the wire.
    pub model: String,
    /// Tokens the model can read and write together.
    pub context_window: u32,
    /// Tokens it can write.
    pub max_output: u32,
    /// How its provider caches prompts.
    pub cache: CacheProfile,
    /// Whether returned thinking is valid only after the exact bytes before it.
    pub binds_thinking_to_prefix: bool,
    /// Whether tools can be narrowed without touching the tool list.
    pub allowed_tools: bool,
    /// Whether a tool can be forced.
    pub forced_tool_choice: bool,
    /// Whether a system message may stand inside the conversation.
    pub mid_conversation_system: bool,
    /// Whether it sees images.
    pub vision: bool,
}

/// How a provider caches prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheProfile {
    /// Not at all, or unknown.
    None,
    /// By itself, without markers in the request.
    Automatic,
    /// At marked blocks.
    Marked {
        /// Most markers of one request.
        max_marks: u8,
        /// Shortest prefix it keeps, in tokens.
        min_tokens: u32,
        /// How many positions before a marker it looks for an earlier entry.
        lookback: u8,
    },
}

/// One thing that happened while a model answered.
///
/// `index` names the block a delta belongs to. A completed block arrives as [`ModelEvent::Part`]; deltas are
/// only for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// The answer began.
    Start(Origin),
    /// More words.
    TextDelta {
        /// The block.
        index: u32,
        /// The words.
        text: String,
    },
    /// More thinking.
    ReasoningDelta {
        /// The block.
        index: u32,
        /// The thinking.
        text: String,
    },
    /// More of a call's input.
    ToolInputDelta {
        /// The block.
        index: u32,
        /// The call.
        call: CallId,
        /// The tool.
        tool: String,
        /// The next piece of its input's JSON; empty when the call has just begun.
        json: String,
    },
    /// A block is complete.
    Part(AssistantPart),
    /// Tokens so far; a later one replaces it.
    Usage(Usage),
    /// The answer is complete; nothing follows.
    Finish(Finish),
}

/// Which model answered, under which message id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of two names")]
pub struct Origin {
    /// The model's name as the provider reports it.
    #[serde(default)]
    pub model: String,
    /// The provider's id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record: our word and the provider's")]
pub struct Finish {
    /// Our word for it.
    pub kind: FinishKind,
    /// The provider's word for it.
    pub raw: String,
}

/// Our words for why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the terminal reason is derived from it by an exhaustive match")]
pub enum FinishKind {
    /// It had nothing more to say.
    Stop,
    /// It wants tools run.
    ToolCalls,
    /// The output limit was reached.
    Length,
    /// The provider's filter cut it.
    ContentFilter,
    /// It declined.
    Refusal,
    /// The provider paused a long answer; send the conversation again to go on.
    Pause,
    /// Input and output filled the context window.
    ContextWindow,
    /// A word we do not know; it is kept in [`Finish::raw`].
    Other,
}

/// A complete answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record built by codecs and tests")]
pub struct Response {
    /// Who answered.
    #[serde(default)]
    pub origin: Origin,
    /// The parts, in the order the model said them.
    pub parts: Vec<AssistantPart>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it cost.
    #[serde(default)]
    pub usage: Usage,
}

/// Folds the events of one answer into a [`Response`]; collecting is a fold, not a second driver.
#[derive(Debug, Clone, Default)]
pub struct ResponseBuilder {
    origin: Origin,
    parts: Vec<AssistantPart>,
    usage: Usage,
    finish: Option<Finish>,
    open_text: Vec<(u32, String)>,
}

impl ModelProfile {
    /// A profile that assumes little: for models nothing is known about.
    pub fn conservative(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            context_window: 32_768,
            max_output: 4_096,
            cache: CacheProfile::None,
            binds_thinking_to_prefix: false,
            allowed_tools: false,
            forced_tool_choice: false,
            mid_conversation_system: false,
            vision: false,
        }
    }
}

impl Response {
    /// An answer made of these parts that ended by itself; for tests and scripted models.
    pub fn of(parts: Vec<AssistantPart>) -> Self {
        let calls = parts.iter().any(|part| part.as_call().is_some());
        let (kind, raw) =
            if calls { (FinishKind::ToolCalls, "tool_use") } else { (FinishKind::Stop, "end_turn") };
        Self {
            origin: Origin::default(),
            parts,
            finish: Finish { kind, raw: raw.into() },
            usage: Usage::default(),
        }
    }

    /// The client-executed calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(AssistantPart::as_call)
    }
}

impl ResponseBuilder {
    /// Takes the next event.
    pub fn take(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Start(origin) => self.origin = origin.clone(),
            ModelEvent::TextDelta { index, text } => {
                match self.open_text.iter_mut().find(|(i, _)| i == index) {
                    Some((_, open)) => open.push_str(text),
                    None => self.open_text.push((*index, text.clone())),
                }
            }
            ModelEvent::Part(part) => {
                // A block of blank words gives no part, so the block that is complete is known by its words.
                let complete = |(_, open): &(u32, String)| part.as_text() == Some(open.as_str());
                if let Some(at) = self.open_text.iter().position(complete) {
                    self.open_text.remove(at);
                }
                self.parts.push(part.clone());
            }
            ModelEvent::Usage(usage) => self.usage = usage.clone(),
            ModelEvent::Finish(finish) => self.finish = Some(finish.clone()),
            ModelEvent::ReasoningDelta { .. } | ModelEvent::ToolInputDelta { .. } => {}
        }
    }

    /// Usage reported so far; known even when the answer never ends.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The answer, or `None` when no finish arrived.
    ///
    /// Words that came as deltas only, without the part that completes their block, are kept at the end.
    pub fn finish(mut self) -> Option<Response> {
        let finish = self.finish.take()?;
        self.keep_open_text();
        Some(Response { origin: self.origin, parts: self.parts, finish, usage: self.usage })
    }

    fn keep_open_text(&mut self) {
        let open = std::mem::take(&mut self.open_text);
        self.parts.extend(open.into_iter().filter_map(|(_, text)| AssistantPart::text(text)));
    }

    /// What can be kept of an answer that was cut off: complete and partial text. Calls are not kept, because
    /// none of them ran; unsealed thinking is not kept, because no provider takes it back (requirement L8).
    pub fn partial(mut self, raw: &str) -> Response {
        self.parts.retain(|part| match part {
            AssistantPart::Text(_) | AssistantPart::Provider(_) => true,
            AssistantPart::Reasoning(Reasoning { seal, .. }) => seal.is_some(),
            AssistantPart::ToolCall(_) => false,
        });
        self.keep_open_text();
        let finish = Finish { kind: FinishKind::Other, raw: raw.to_owned() };
        Response { origin: self.origin, parts: self.parts, finish, usage: self.usage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(index: u32, text: &str) -> ModelEvent {
        ModelEvent::TextDelta { index, text: text.into() }
    }

    #[test]
    fn a_fold_of_events_is_the_answer() {
        let mut fold = ResponseBuilder::default();
        let finish = Finish { kind: FinishKind::Stop, raw: "end_turn".into() };
        for event in [
            ModelEvent::Start(Origin { model: "m".into(), message: Some("msg".into()) }),
            delta(0, "he"),
            ModelEvent::Usage(Usage { output: 1, ..Usage::default() }),
            delta(0, "llo"),
            ModelEvent::Part(AssistantPart::text("hello").unwrap()),
            ModelEvent::Usage(Usage { output: 7, ..Usage::default() }),
            ModelEvent::Finish(finish),
        ] {
            fold.take(&event);
        }
        let answer = fold.finish().unwrap();
        assert_eq!(answer.parts, [AssistantPart::text("hello").unwrap()]);
        assert_eq!((answer.usage.output, answer.origin.model.as_str()), (7, "m"));
    }

    #[test]
    fn an_answer_cut_off_keeps_its_text_and_no_call() {
        let mut fold = ResponseBuilder::default();
        let call = ToolCall {
            id: CallId::new("c").unwrap(),
            name: "f".into(),
            input: crate::ToolInput::finished(""),
        };
        for event in [
            delta(0, "done"),
            ModelEvent::Part(AssistantPart::text("done").unwrap()),
            ModelEvent::Part(AssistantPart::ToolCall(call)),
            delta(2, "half a sen"),
        ] {
            fold.take(&event);
        }
        assert!(fold.clone().finish().is_none());
        let kept: Vec<_> = fold.partial("aborted").parts;
        assert_eq!(kept, [AssistantPart::text("done").unwrap(), AssistantPart::text("half a sen").unwrap()]);
    }

    #[test]
    fn words_that_came_as_deltas_only_are_not_lost() {
        let mut fold = ResponseBuilder::default();
        let finish = Finish { kind: FinishKind::Stop, raw: "stop".into() };
        for event in [delta(0, "he"), delta(0, "llo"), ModelEvent::Finish(finish)] {
            fold.take(&event);
        }
        assert_eq!(fold.finish().unwrap().parts, [AssistantPart::text("hello").unwrap()]);
    }

    #[test]
    fn words_after_a_blank_block_are_kept_once() {
        let mut fold = ResponseBuilder::default();
        for event in
            [delta(0, "\n\n"), delta(1, "hello"), ModelEvent::Part(AssistantPart::text("hello").unwrap())]
        {
            fold.take(&event);
        }
        assert_eq!(fold.partial("aborted").parts, [AssistantPart::text("hello").unwrap()]);
    }
}
