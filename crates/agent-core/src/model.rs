//! The model as a trait: a request goes out as frozen buffers, events come back.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_core::Stream;
use serde::{Deserialize, Serialize};

use crate::{
    AssistantPart, Body, CallId, Cancel, Draft, Finish, Mark, ModelError, ModelProfile, RequestSettings,
    SystemBlock, ToolCard, ToolChoice, Usage,
};

/// A language model behind some provider. Implement it to add a provider; depend on `agent-core` only.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a language model",
    note = "use `HttpModel` of agent-providers, `ScriptedModel` of agent-testkit, or implement `LanguageModel`"
)]
pub trait LanguageModel: fmt::Debug + Send + Sync {
    /// What the model can do and how its provider caches.
    fn profile(&self) -> &ModelProfile;

    /// A fresh encoder. A session owns one and keeps it, so that bytes once sent stay the same bytes.
    fn encoder(&self) -> Box<dyn Encoder>;

    /// Sends a request once and returns the answer as it arrives: [`ModelEvent::Start`], deltas with a
    /// [`ModelEvent::Part`] for each completed block, [`ModelEvent::Usage`], and [`ModelEvent::Finish`] last.
    ///
    /// Errors before the first event are returned here; later ones come as the last item of the stream. A
    /// stream that ends without [`ModelEvent::Finish`] was interrupted.
    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError>;
}

#[async_trait]
impl<M: LanguageModel + ?Sized> LanguageModel for Arc<M> {
    fn profile(&self) -> &ModelProfile {
        (**self).profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        (**self).encoder()
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        (**self).stream(request, cancel).await
    }
}

/// Events of one answer.
pub type ModelStream = Pin<Box<dyn Stream<Item = Result<ModelEvent, ModelError>> + Send>>;

/// Turns requests of one session into bytes, remembering what it encoded before.
///
/// Contract: an entry is encoded once, and later bodies hold the bytes of that one time ([`crate::SharedBuffers`]). The
/// work of a call is proportional to what is new since the last one.
pub trait Encoder: fmt::Debug + Send + Sync {
    /// The request body, and what of the request the model cannot take.
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded;
}

/// A request with what had to be left out of it.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "returned by every encoder")]
pub struct Encoded {
    /// What to send.
    pub request: Outgoing,
    /// What could not be sent as asked; shown to the user, never dropped in silence (requirement M12).
    pub diagnostics: Vec<Diagnostic>,
}

/// A request ready to be sent. Cloning shares its buffers, so that a retry costs nothing.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "built by every encoder, read by every transport")]
pub struct Outgoing {
    /// The body.
    pub body: Body,
    /// Whether the answer is streamed: some providers are asked by the address, not in the body.
    pub stream: bool,
    /// Headers that what is in the body needs, for example `anthropic-beta`.
    pub headers: Vec<(String, String)>,
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
    /// Whether the answer is streamed. What is before the end of the body does not depend on it.
    pub stream: bool,
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
        /// The tool; all deltas of a call share it.
        tool: Arc<str>,
        /// The next piece of its input's JSON; empty when the call has just begun.
        json: String,
    },
    /// A block is complete.
    Part(AssistantPart),
    /// Tokens so far; a later one replaces it.
    Usage(Usage),
    /// The provider took so many tokens out of the request before the model read it, by rules that it was given. What the
    /// answer's usage counts is what was left.
    Cleared {
        /// Input tokens that were taken out.
        tokens: u64,
    },
    /// The answer is complete; nothing follows.
    Finish(Finish),
}

/// Which model answered, under which message id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of names")]
pub struct Origin {
    /// The model's name as the provider reports it.
    #[serde(default)]
    pub model: String,
    /// The provider's id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The model's name on the wire, as it was asked; drivers say it, for what a provider reports may be a longer name, or
    /// the name of a deployment. `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
}
