//! The want to prepare: what the user said since joins the history, the context is made to fit, and the stages have
//! their say.

use agent_core::{
    AssistantPart, Entry, EventBody, Finish, FinishKind, ModelError, ModelErrorKind, Response, StepNo,
};
use agent_prepare::{Cause, Context, Need, Pipeline, PrepareError, Prepared, Preparing, StepCx, Synthesised};
use agent_turn::Report;

use super::Drive;
use super::compact::Looked;
use crate::hooks::ContextCx;
use crate::{HarnessError, SourceError};

/// Why a step has no request.
enum Unprepared {
    /// The run was stopped.
    Stopped,
    /// These words end the turn.
    Ends(Synthesised),
    /// It cannot be put together.
    Failed(String),
    /// The session cannot be driven.
    Broken(HarnessError),
}

impl Drive {
    pub(super) async fn prepare(&mut self) -> Result<(), HarnessError> {
        self.step_span = tracing::info_span!("step", step = self.turn.step().number());
        match self.prepared_step().await {
            Ok(prepared) => {
                self.prepared = prepared;
                self.report(Report::Prepared).await
            }
            Err(Unprepared::Stopped) => self.report(Report::Aborted(None)).await,
            Err(Unprepared::Ends(words)) => self.synthesise(words).await,
            Err(Unprepared::Failed(message)) => self.cannot_prepare(message).await,
            Err(Unprepared::Broken(error)) => Err(error),
        }
    }

    async fn prepared_step(&mut self) -> Result<Prepared, Unprepared> {
        self.join().await?;
        if !self.rounds.is_empty() {
            self.begin_from_rounds().await?;
        }
        self.tell_level();
        let cause = if self.turn.step() == StepNo::FIRST { Cause::First } else { Cause::Continuation };
        match self.compact(cause).await? {
            Looked::Fits => {}
            Looked::Blocked(words) => return Err(Unprepared::Ends(words)),
            Looked::Stopped => return Err(Unprepared::Stopped),
            Looked::Refused(error) => return Err(error.into()),
        }
        let Some(context) = self.looked_up().await? else { return Err(Unprepared::Stopped) };
        let mut prepared = self.staged(&context).await?;
        for diagnostic in std::mem::take(&mut prepared.diagnostics) {
            self.tell_diagnostic(diagnostic);
        }
        let notes = std::mem::take(&mut prepared.append);
        if !notes.is_empty() {
            for note in notes {
                self.live.push(Entry::Note(note)).map_err(Unprepared::Broken)?;
            }
            self.tell_level();
            self.write().await?;
        }
        Ok(prepared)
    }

    /// Looks up for the calls of a step that another process prepared what they may read.
    pub(super) async fn share_anew(&mut self) -> Result<(), SourceError> {
        if self.recovered.has_response
            && let Some(context) = self.looked_up().await?
        {
            self.prepared.context = context;
        }
        Ok(())
    }

    /// What the sources of context found, one after the other; `None` when the run was stopped.
    async fn looked_up(&self) -> Result<Option<Context>, SourceError> {
        let mut context = Context::default();
        for source in &self.config.contexts {
            let cx = ContextCx {
                session: &self.live.meta.id,
                step: self.turn.step(),
                history: self.live.history.view(),
                cancel: &self.cancel,
            };
            let found = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Ok(None),
                found = source.look_up(&cx) => found?,
            };
            context = context.merged(&found);
        }
        Ok(Some(context))
    }

    /// What the stages made of the step.
    async fn staged(&mut self, context: &Context) -> Result<Prepared, Unprepared> {
        let pipeline = self.guided();
        let mut preparing = pipeline.begin();
        loop {
            if self.cancel.is_cancelled() {
                return Err(Unprepared::Stopped);
            }
            match self.next_need(&pipeline, &mut preparing, context)? {
                Need::Ready(prepared) => return Ok(prepared),
                Need::Finish(words) => return Err(Unprepared::Ends(words)),
                Need::Ask { ask, .. } => match Box::pin(self.ask(ask)).await? {
                    Some(answer) => preparing.answer(answer),
                    None => return Err(Unprepared::Stopped),
                },
            }
        }
    }

    fn next_need(
        &self,
        pipeline: &Pipeline,
        preparing: &mut Preparing,
        context: &Context,
    ) -> Result<Need, PrepareError> {
        let live = &self.live;
        live.slots.read(|slots| {
            let cx = StepCx {
                step: self.turn.step(),
                turn_from: self.turn_from,
                model: self.config.model.profile(),
                history: live.history.view(),
                tools: self.call.tools(&live.tools).all(),
                slots,
                context,
                settings: &self.config.settings,
                tokens: self.context(),
                cancel: &self.cancel,
            };
            preparing.advance(pipeline, &cx)
        })
    }

    /// Ends the turn with words in the model's place.
    async fn synthesise(&mut self, words: Synthesised) -> Result<(), HarnessError> {
        let Synthesised { text, reason } = words;
        // Who watches sees words where words are shown.
        self.out.live(|| EventBody::TextDelta { attempt: 0, index: 0, text: text.as_str().to_owned() });
        let finish = Finish { kind: FinishKind::Stop, raw: SYNTHESISED.to_owned() };
        let parts = AssistantPart::text(text.as_str()).into_iter().collect();
        let said = self.live.history.admit(Response { finish, ..Response::of(parts) });
        self.report(Report::Synthesised(said, reason)).await
    }

    /// Ends the turn, because there is no request to be made.
    pub(super) async fn cannot_prepare(&mut self, message: String) -> Result<(), HarnessError> {
        let error = ModelError::new(ModelErrorKind::InvalidRequest, message);
        self.error = Some(error.clone());
        let (kind, message) = (error.kind, error.message.clone());
        self.out.stage(EventBody::StepFailed { kind, message, usage: agent_core::Usage::default() });
        self.report(Report::Failed(error)).await
    }

    /// Lets what was said, and a day that has begun, join the turn before its next model call.
    async fn join(&mut self) -> Result<(), HarnessError> {
        self.hear().await?;
        let joins = if self.waiting.is_empty() {
            self.note_date()?
        } else {
            self.push_waiting()?;
            true
        };
        if joins || !self.live.consumed.is_empty() { self.write().await } else { Ok(()) }
    }

    /// What was said enters the history; the next commit takes it out of the inbox.
    pub(super) fn push_waiting(&mut self) -> Result<(), HarnessError> {
        for (input, message) in std::mem::take(&mut self.waiting) {
            let text = message.plain();
            let message = self.date_message(message)?;
            let entry = self.live.push(Entry::User(message))?;
            self.live.consumed.extend(input);
            self.out.stage(EventBody::MessageReceived { entry, text });
        }
        Ok(())
    }
}

impl From<HarnessError> for Unprepared {
    fn from(error: HarnessError) -> Self {
        Self::Broken(error)
    }
}

impl From<PrepareError> for Unprepared {
    fn from(error: PrepareError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<SourceError> for Unprepared {
    fn from(error: SourceError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// How an answer ended that no model gave.
const SYNTHESISED: &str = "synthesised";
