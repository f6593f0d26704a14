//! Where the driver writes what is shown of a session.

use std::sync::Arc;

use agent_core::StepRecord;
use agent_turn::Report;

use super::Drive;
use super::model::Failure;
use crate::changes::model_name;
use crate::live::Live;
use crate::view::{Connection, InboxView, ModelView, PermissionView, ReadsView};

impl Drive {
    /// Shows all groups but how full the context is, which is shown where it is measured.
    pub(super) fn show(&mut self) {
        self.live.show_slots();
        let (model, inbox) = (self.model_view(), self.inbox_view());
        let (mode, denied) = (self.config.permissions.mode, self.denied);
        let path = self.config.notes.as_ref().and_then(|notes| notes.path(&self.live.meta.id));
        self.live.view.update(move |view| {
            view.model = model;
            view.permissions = PermissionView { mode, denied, ..view.permissions };
            view.memory_path = path;
            view.inbox = inbox;
        });
    }

    fn model_view(&self) -> ModelView {
        let default = model_name(self.agent.model.profile());
        let chosen = Some(model_name(self.model().profile())).filter(|chosen| *chosen != default);
        let (own, step) = (&self.config.settings, &self.prepared.settings);
        ModelView {
            default,
            chosen,
            thinking: step.thinking.or(own.thinking),
            effort: step.effort.or(own.effort),
            fast: own.fast || step.fast,
        }
    }

    fn inbox_view(&self) -> InboxView {
        let open = self.live.requests.iter().filter(|held| held.reply.is_none());
        let requests = open.map(|held| held.request.id.clone()).collect();
        InboxView { has_unread: self.live.has_inputs, taken: self.waiting.len(), requests }
    }

    /// Shows how full the context is.
    pub(super) fn show_context(&self) {
        let state = self.context();
        self.live.view.update(move |view| view.context = Some(state));
    }

    /// Shows that the step's model answered, or how it failed.
    pub(super) fn show_answered(&self, answer: &Result<Report, Failure>) {
        let state = match answer {
            Ok(Report::Response(_)) => Connection::Up,
            // The run was stopped, which says nothing of the model.
            Ok(_) => return,
            Err(failure) => Connection::Failed(failure.error.kind.as_str().to_owned()),
        };
        self.live.show_connection(format!("model {}", model_name(self.model().profile())), state);
    }

    /// Counts the calls of a step that were refused.
    pub(super) fn count_denied(&mut self, step: &StepRecord) {
        self.denied = self.denied.saturating_add(denied_in(step));
    }
}

/// Calls of a step that were refused.
pub(super) fn denied_in(step: &StepRecord) -> u32 {
    let denied =
        step.pairs().filter(|(_, result)| matches!(result.output, agent_core::ToolOutput::Denied(_)));
    u32::try_from(denied.count()).unwrap_or(u32::MAX)
}

impl Live {
    /// Shows what tools share, when it is not what was shown.
    pub(crate) fn show_slots(&mut self) {
        let version = Some(self.slots.version());
        if std::mem::replace(&mut self.slots_shown, version) == version {
            return;
        }
        let reads = ReadsView::of(&self.slots);
        let shown = self.view.get().todos;
        let (todos, remembered) = self.slots.read(|slots| {
            let is_shown = slots.todos[..] == shown[..];
            (if is_shown { shown } else { slots.todos.clone().into() }, slots.allowed.len())
        });
        self.view.update(move |view| {
            view.todos = todos;
            view.reads = reads;
            view.permissions.remembered = remembered;
        });
    }

    /// Shows whether somebody outside the process answered.
    pub(crate) fn show_connection(&self, name: String, state: Connection) {
        self.view.update(move |view| {
            if view.connections.get(&name) != Some(&state) {
                Arc::make_mut(&mut view.connections).insert(name, state);
            }
        });
    }
}
