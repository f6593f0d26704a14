//! Words that a stage or a tier needs of a model: one call beside the turn, which prepares and compacts nothing itself.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    AssistantPart, Cancel, Entry, FinishKind, History, LanguageModel, ModelError, ModelErrorKind,
    ModelRequest, Note, NoteKind, Outgoing, RequestSettings, Response, ResponseBuilder, Setting, SystemBlock,
    Text, ToolChoice, Usage, UserMessage,
};
use agent_prepare::{Answer, Ask, AskFailure, Way};
use futures_util::StreamExt;

use super::Drive;
use super::call::at_most;
use crate::HarnessError;
use crate::config::HarnessConfig;
use crate::front::opening;
use crate::listed;
use crate::unless::unless_cancelled;

/// What the requests of one question cost, also of one that was broken off.
#[derive(Default)]
struct Spent {
    requests: u64,
    ended: Usage,
    fold: ResponseBuilder,
}

impl Drive {
    /// Asks; `None` when the run was stopped.
    ///
    /// It goes neither through the pipeline nor through compaction, so that it cannot compact itself (requirement P12).
    /// Whoever calls it does so on the heap: few steps ask, and no turn should reserve what it takes.
    pub(super) async fn ask(&mut self, ask: Ask) -> Result<Option<Answer>, HarnessError> {
        // Who watches learns why it takes a while.
        self.live.journal(&self.config, &mut self.out, &[]).await?;
        let (model, request) = self.question(&ask)?;
        let (answer, usage) = asked(&self.config, &*model, &request, &self.cancel).await;
        tracing::debug!(input = usage.input, output = usage.output, "a model was asked beside the turn");
        self.pay_beside(model.profile(), &usage);
        // It is paid for: a commit keeps that should the process die.
        self.write().await?;
        Ok(answer)
    }

    fn question(&mut self, ask: &Ask) -> Result<(Arc<dyn LanguageModel>, Outgoing), HarnessError> {
        match &ask.way {
            Way::OnPrefix { words } => Ok(self.on_prefix(words, ask.max_output)),
            Way::Apart { system, words } => {
                let model = self.config.summary_model.as_ref().unwrap_or(&self.config.model).clone();
                let request = apart(&*model, system, words, ask.max_output)?;
                Ok((model, request))
            }
        }
    }

    /// The words behind the conversation as the session's model knows it: what it has cached is read.
    fn on_prefix(&mut self, words: &Text, max_output: u32) -> (Arc<dyn LanguageModel>, Outgoing) {
        let model = self.config.model.clone();
        let system = self.call.system(&self.live.meta);
        let tools = self.call.tools(&self.live.tools).sent_to(model.profile());
        let static_blocks = if self.call.system.is_some() { 0 } else { self.live.meta.static_blocks };
        let opening = opening(system, tools, static_blocks);
        let marks = self.live.cache.marks(model.profile(), opening, &self.live.history);
        let mut draft = self.live.history.draft();
        draft.remind(Note { kind: NoteKind::Reminder, text: words.clone() });
        let choice = unforced(&self.prepared.tool_choice);
        let request = ModelRequest {
            system,
            tools,
            draft: &draft,
            settings: &at_most(self.config.settings.clone(), model.profile(), max_output),
            tool_choice: &listed::choice(&choice, tools),
            marks: &marks,
            stream: true,
        };
        let request = self.live.encoders.of(&model).encode(&request).request;
        (model, request)
    }
}

/// The choice of the last request, for the provider may have cached what lies behind it; but no tool is forced.
fn unforced(choice: &ToolChoice) -> ToolChoice {
    match choice {
        ToolChoice::None => ToolChoice::None,
        ToolChoice::Allowed { tools, .. } => ToolChoice::Allowed { tools: tools.clone(), required: false },
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::Tool(_) | _ => ToolChoice::Auto,
    }
}

/// Nothing but the question, without tools, at temperature 0 where the model takes one.
pub(crate) fn apart(
    model: &dyn LanguageModel,
    system: &Text,
    words: &Text,
    max_output: u32,
) -> Result<Outgoing, HarnessError> {
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text(words.as_str())?))?;
    let profile = model.profile();
    let temperature = (!profile.refuses.contains(&Setting::Sampling)).then_some(0.0);
    let settings = RequestSettings { temperature, ..RequestSettings::default() };
    let system: Vec<SystemBlock> = SystemBlock::new(system.as_str()).into_iter().collect();
    let request = ModelRequest {
        system: &system,
        tools: &[],
        draft: &history.draft(),
        settings: &at_most(settings, profile, max_output),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream: true,
    };
    Ok(model.encoder().encode(&request).request)
}

/// What came of a question within its deadline, and what it cost; no answer when the run was stopped.
pub(crate) async fn asked(
    config: &HarnessConfig,
    model: &dyn LanguageModel,
    request: &Outgoing,
    cancel: &Cancel,
) -> (Option<Answer>, Usage) {
    let (mut spent, deadline) = (Spent::default(), config.ask.deadline);
    let asking = exchange(config, model, request, &mut spent, cancel.child());
    let answer = unless_cancelled(cancel, tokio::time::timeout(deadline, asking)).await;
    let millis = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    let (requests, usage) = (spent.requests, spent.total());
    config.process.pay(model.profile(), requests, &usage);
    (answer.map(|answer| answer.unwrap_or(Err(AskFailure::TimedOut { millis }))), usage)
}

/// Sends it until there is an answer, with the few attempts that such a question has.
async fn exchange(
    config: &HarnessConfig,
    model: &dyn LanguageModel,
    request: &Outgoing,
    spent: &mut Spent,
    cancel: Cancel,
) -> Answer {
    let mut failed = 0;
    loop {
        let error = match once(model, request.clone(), spent, &cancel).await {
            Ok(response) => return said(&response),
            Err(error) => error,
        };
        failed += 1;
        if !error.retryable || failed >= config.ask.attempts.max(1) {
            return Err(AskFailure::Model { kind: error.kind, message: error.message });
        }
        let asked = error.retry_after_ms.map(Duration::from_millis);
        if asked.is_some_and(|asked| asked > config.retry.max_retry_after.min(config.ask.deadline)) {
            // Waiting it out would only hide what happened behind the deadline.
            return Err(AskFailure::Model { kind: error.kind, message: error.message });
        }
        tokio::time::sleep(config.retry.wait(failed - 1, asked, config.jitter.fraction())).await;
    }
}

async fn once(
    model: &dyn LanguageModel,
    request: Outgoing,
    spent: &mut Spent,
    cancel: &Cancel,
) -> Result<Response, ModelError> {
    spent.requests += 1;
    let mut stream = model.stream(request, cancel).await?;
    let mut failure = None;
    while let Some(event) = stream.next().await {
        match event {
            // Nobody watches.
            Ok(event) => drop(spent.fold.take(event)),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    let fold = std::mem::take(&mut spent.fold);
    spent.ended += fold.usage();
    match failure {
        Some(error) => Err(error),
        None => fold.finish().ok_or_else(|| ModelError::interrupted("early")),
    }
}

/// The words of an answer, when it has any that are whole.
fn said(response: &Response) -> Answer {
    if let Some(call) = response.calls().next() {
        return Err(AskFailure::CalledTool { tool: call.name.clone() });
    }
    match response.finish.kind {
        FinishKind::Length | FinishKind::ContextWindow => return Err(AskFailure::TooLong),
        FinishKind::Refusal | FinishKind::ContentFilter => {
            let message = "the model or its provider declined to answer".to_owned();
            return Err(AskFailure::Model { kind: ModelErrorKind::InvalidRequest, message });
        }
        FinishKind::Stop | FinishKind::ToolCalls | FinishKind::Pause | FinishKind::Other => {}
    }
    let words: Vec<&str> = response.parts.iter().filter_map(AssistantPart::as_text).collect();
    Text::new(words.join("\n\n")).ok_or(AskFailure::Blank)
}

impl Spent {
    fn total(mut self) -> Usage {
        self.ended += self.fold.usage();
        self.ended
    }
}
