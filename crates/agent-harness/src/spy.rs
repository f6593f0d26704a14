//! A model that writes down what it would be sent and answers from a list: for looking at an agent without asking anyone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{
    AssistantPart, Cancel, Diagnostic, Encoded, Encoder, Finish, FinishKind, LanguageModel, Mark, ModelError,
    ModelErrorKind, ModelEvent, ModelProfile, ModelRequest, ModelStream, Outgoing, SystemBlock, ToolCard,
    Usage,
};
use async_trait::async_trait;
use futures_util::StreamExt;

use crate::explain::{ExplainedMessage, messages};

/// Stands for an agent's model: its profile and its encoder, and nobody behind them.
#[derive(Debug)]
pub(crate) struct Spy {
    model: Arc<dyn LanguageModel>,
    seen: Seen,
    /// Those of all spies that stand beside each other.
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

/// What it answers once.
#[derive(Debug)]
pub(crate) enum Answer {
    /// These parts.
    Say(Vec<AssistantPart>),
    /// Nothing, until the call is given up; `began` is cancelled when the call begins.
    Wait { began: Cancel, given_up: Arc<AtomicBool> },
}

/// The requests so far, in order. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<CapturedRequest>>>);

/// One request as it was put together and encoded.
#[derive(Debug, Clone)]
pub(crate) struct CapturedRequest {
    pub(crate) system: Vec<SystemBlock>,
    pub(crate) tools: Vec<ToolCard>,
    pub(crate) messages: Vec<ExplainedMessage>,
    pub(crate) marks: Vec<Mark>,
    pub(crate) outgoing: Outgoing,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// The agent's own encoder, watched.
#[derive(Debug)]
struct Watched {
    encoder: Box<dyn Encoder>,
    seen: Seen,
}

/// Notes that the call it belongs to was given up.
struct GivenUp(Arc<AtomicBool>);

impl Spy {
    /// In place of `model`; when the answers are used up, a call fails for good.
    pub(crate) fn new(model: Arc<dyn LanguageModel>, answers: Vec<Answer>) -> (Arc<Self>, Seen) {
        let seen = Seen::default();
        (Arc::new(Self { model, seen: seen.clone(), answers: Arc::new(Mutex::new(answers.into())) }), seen)
    }

    /// One in place of another model of the same agent.
    pub(crate) fn of(&self, model: Arc<dyn LanguageModel>) -> Arc<dyn LanguageModel> {
        Arc::new(Self { model, seen: self.seen.clone(), answers: self.answers.clone() })
    }
}

impl Seen {
    pub(crate) fn all(&self) -> Vec<CapturedRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl LanguageModel for Spy {
    fn profile(&self) -> &ModelProfile {
        self.model.profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        Box::new(Watched { encoder: self.model.encoder(), seen: self.seen.clone() })
    }

    async fn stream(&self, _request: Outgoing, _cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let answer = self.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        match answer {
            Some(Answer::Say(parts)) => Ok(said(parts)),
            Some(Answer::Wait { began, given_up }) => {
                let _noted = GivenUp(given_up);
                began.cancel();
                std::future::pending().await
            }
            None => Err(ModelError::new(ModelErrorKind::InvalidRequest, "no model is asked here")),
        }
    }
}

fn said(parts: Vec<AssistantPart>) -> ModelStream {
    let calls = parts.iter().any(|part| part.as_call().is_some());
    let kind = if calls { FinishKind::ToolCalls } else { FinishKind::Stop };
    let end = [
        ModelEvent::Usage(Usage { input: 1, output: 1, ..Usage::default() }),
        ModelEvent::Finish(Finish { kind, raw: "stop".into() }),
    ];
    let events = parts.into_iter().map(ModelEvent::Part).chain(end).map(Ok);
    futures_util::stream::iter(events.collect::<Vec<_>>()).boxed()
}

impl Encoder for Watched {
    fn encode(&mut self, request: &ModelRequest<'_>) -> Encoded {
        let encoded = self.encoder.encode(request);
        let seen = CapturedRequest {
            system: request.system.to_vec(),
            tools: request.tools.to_vec(),
            messages: messages(request.draft, request.marks),
            marks: request.marks.to_vec(),
            outgoing: encoded.request.clone(),
            diagnostics: encoded.diagnostics.clone(),
        };
        self.seen.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        encoded
    }
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
