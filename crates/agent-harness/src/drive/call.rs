//! What a turn and a step are asked with: the agent's parts, those that `prepare_call` put in their place, and what the
//! stages changed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    Diagnostic, Draft, Encoded, EventBody, LanguageModel, ModelProfile, ModelRequest, Note, NoteKind,
    Outgoing, RequestSettings, SessionMeta, SystemBlock, ToolCard,
};
use agent_prepare::Prepared;
use agent_tools::ToolSet;

use super::Drive;
use crate::SourceError;
use crate::changes::model_name;
use crate::config::HarnessConfig;
use crate::front::Front;
use crate::hooks::{CallChanges, CallCx};
use crate::listed::{self, Listed};

/// What of the request is another one in this turn than the session has.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) system: Option<Vec<SystemBlock>>,
    pub(super) tools: Option<Listed>,
}

/// A request on its way, and what it begins with.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) request: Outgoing,
    pub(super) front: Front,
}

impl Call {
    pub(super) fn system<'a>(&'a self, meta: &'a SessionMeta) -> &'a [SystemBlock] {
        self.system.as_deref().unwrap_or(&meta.system)
    }

    pub(super) fn tools<'a>(&'a self, of_session: &'a Listed) -> &'a Listed {
        self.tools.as_ref().unwrap_or(of_session)
    }
}

impl Drive {
    /// Lets `prepare_call` put the turn together (requirement P18).
    pub(super) async fn begin_call(&mut self) -> Result<(), SourceError> {
        let Some(hook) = self.agent.prepare_call.clone() else { return Ok(()) };
        let cx = CallCx {
            session: &self.live.meta.id,
            turn: self.turn.id(),
            step: self.turn.step(),
            model: self.agent.model.profile(),
            tools: &self.live.meta.tools,
            system: &self.live.meta.system,
            history: self.live.history.view(),
            cancel: &self.cancel,
        };
        let changes = tokio::select! {
            biased;
            // The turn ends as aborted before anything is asked.
            () = self.cancel.cancelled() => return Ok(()),
            changes = hook.prepare_call(&cx) => changes?,
        };
        self.take_changes(changes);
        Ok(())
    }

    fn take_changes(&mut self, changes: CallChanges) {
        let CallChanges { model, tools, stop, system, pipeline } = changes;
        let agent = &self.agent;
        let model = model.unwrap_or_else(|| agent.model.clone());
        let cards = tools.as_ref().map(|tools| tools.cards().to_vec());
        self.call = Call {
            system: system.filter(|system| *system != self.live.meta.system),
            tools: cards.filter(|cards| *cards != self.live.meta.tools).map(Listed::of),
        };
        let before = model_name(agent.model.profile());
        let now = model_name(model.profile());
        self.config = Arc::new(HarnessConfig {
            model,
            tools: tools.unwrap_or_else(|| agent.tools.clone()),
            stop: stop.unwrap_or_else(|| agent.stop.clone()),
            pipeline: pipeline.unwrap_or_else(|| agent.pipeline.clone()),
            ..(**agent).clone()
        });
        if before != now {
            self.declare(
                "model",
                format!("`prepare_call` gave {now} in place of {before}; the prompt cache begins anew"),
            );
        }
        if self.call.tools.is_some() {
            self.declare(
                "tools",
                "`prepare_call` gave other tools than the session began with; the prompt cache begins anew"
                    .to_owned(),
            );
        }
        if self.call.system.is_some() {
            self.declare("system", "`prepare_call` gave another system prompt than the session began with; the prompt cache begins anew".to_owned());
        }
        let tools = self.call.tools(&self.live.tools).sent_to(self.config.model.profile());
        self.live.accountant.set_fixed(self.call.system(&self.live.meta), tools);
    }

    /// Tells what is sent otherwise than asked or known, once a loaded session.
    pub(super) fn declare(&mut self, what: &str, why: String) {
        self.tell_diagnostic(Diagnostic { what: what.to_owned(), why });
    }

    pub(super) fn tell_diagnostic(&mut self, diagnostic: Diagnostic) {
        if !self.live.diagnosed.contains(&diagnostic) {
            self.live.diagnosed.push(diagnostic.clone());
            self.out.stage(EventBody::RequestDiagnostic(diagnostic));
        }
    }

    /// The model of the step at work.
    pub(super) fn model(&self) -> &Arc<dyn LanguageModel> {
        self.prepared.model.as_ref().unwrap_or(&self.config.model)
    }

    /// The request of the step at work, with what cannot be sent as asked told once a loaded session.
    pub(super) fn encode(&mut self, stream: bool) -> Asked {
        let model = self.model().clone();
        let prepared = &self.prepared;
        let system = prepared.system.as_deref().unwrap_or_else(|| self.call.system(&self.live.meta));
        let tools = on_wire(self.call.tools(&self.live.tools).sent_to(model.profile()), prepared);
        let tool_choice = listed::choice(&prepared.tool_choice, &tools);
        let front = self.front(&model, system, &tools);
        let marks = self.live.cache.marks(model.profile(), front.opening, &self.live.history);
        let mut draft = self.live.history.draft();
        remind(&mut draft, prepared);
        let settings = self.config.settings.clone().overlaid(&prepared.settings);
        let request = ModelRequest {
            system,
            tools: &tools,
            draft: &draft,
            settings: &settings,
            tool_choice: &tool_choice,
            marks: &marks,
            stream,
        };
        let Encoded { request, diagnostics } = self.live.encoders.of(&model).encode(&request);
        if let Some(begins) = self.live.cache.begins_otherwise(&front) {
            self.out.stage(begins);
        }
        for diagnostic in diagnostics {
            self.tell_diagnostic(diagnostic);
        }
        tracing::debug!(bytes = request.body.len(), "request");
        Asked { request, front }
    }
}

impl Drive {
    /// What a request begins with. Nothing is hashed where nothing is another one.
    fn front(&self, model: &Arc<dyn LanguageModel>, system: &[SystemBlock], tools: &[ToolCard]) -> Front {
        let meta = &self.live.meta;
        let own = self.live.tools.sent_to(model.profile());
        let is_own = std::ptr::eq(system, &*meta.system) && std::ptr::eq(tools, own);
        if is_own && Arc::ptr_eq(model, &self.agent.model) {
            return self.live.cache.base().clone();
        }
        let static_blocks = if std::ptr::eq(system, &*meta.system) { meta.static_blocks } else { 0 };
        Front::of(&**model, system, tools, static_blocks)
    }
}

/// The tools as they are sent.
fn on_wire<'a>(tools: &'a [ToolCard], prepared: &Prepared) -> Cow<'a, [ToolCard]> {
    match &prepared.active {
        Some(active) if prepared.narrow_on_wire => Cow::Owned(listed::narrowed(tools, active)),
        Some(_) | None => Cow::Borrowed(tools),
    }
}

fn remind(draft: &mut Draft<'_>, prepared: &Prepared) {
    for text in &prepared.ephemeral {
        draft.remind(Note { kind: NoteKind::Reminder, text: text.clone() });
    }
}

/// What a model is told that calls a tool which may not be called in this step; `None` where the call may go on.
pub(super) fn inactive(active: Option<&BTreeSet<String>>, tools: &ToolSet, name: &str) -> Option<String> {
    let active = active.filter(|active| !active.contains(name))?;
    // A name that no tool has is answered as ever.
    tools.get(name)?;
    let listed: Vec<String> = active.iter().map(|name| format!("`{name}`")).collect();
    Some(format!(
        "Not run: `{name}` is not active in this step. Active now: {}. Use one of these, or go on without a tool.",
        listed.join(", ")
    ))
}

/// Settings for an answer of at most so many tokens; thinking that was given a budget has it beside them.
pub(super) fn at_most(settings: RequestSettings, profile: &ModelProfile, max_output: u32) -> RequestSettings {
    let thinking = match settings.thinking {
        Some(agent_core::Thinking::Budget(tokens)) => tokens,
        Some(_) | None => 0,
    };
    let max_output = max_output.saturating_add(thinking).min(profile.max_output.max(1));
    RequestSettings { max_output: Some(max_output), ..settings }
}
