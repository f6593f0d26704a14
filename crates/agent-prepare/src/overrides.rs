//! What a stage changes of a step: everything it does not name stays as it is.

use std::sync::Arc;

use agent_core::{LanguageModel, Note, RequestSettings, SystemBlock, Text, ToolChoice};

use crate::Context;

/// A partial change of one step (requirement P1). An absent field is unchanged; `settings.extra` merges by key, notes
/// are appended to those of other stages, every other field replaces.
///
/// There are three ways to change messages, and three types: [`Self::ephemeral`] words are gone with the step,
/// [`Self::append`]ed notes stay in the history, and what was said before can only be rewritten by a
/// [`crate::Tier`] of compaction. A message that exists cannot be changed at all.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a partial record, written as a literal with ..Default")]
pub struct Overrides {
    /// Another model for this step.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Another system prompt for this step. The provider reads everything anew.
    pub system: Option<Vec<SystemBlock>>,
    /// Whether and which tool must be called.
    pub tool_choice: Option<ToolChoice>,
    /// The tools that may be called, by name. How the model learns of it is [`Self::narrow_on_wire`].
    pub active_tools: Option<Vec<String>>,
    /// Whether inactive tools are left out of the request; otherwise its list of tools stays the same bytes. Leaving
    /// them out makes the provider read everything anew.
    pub narrow_on_wire: Option<bool>,
    /// Settings that replace those of the call, each one that is given; `extra` merges by key.
    pub settings: RequestSettings,
    /// What later stages and tools of the step find as shared context, laid over what there is.
    pub context: Context,
    /// Words for this step only.
    pub ephemeral: Vec<Text>,
    /// Notes that stay in the history.
    pub append: Vec<Note>,
}

impl Overrides {
    /// These changes with words for this step only; blank ones are none.
    #[must_use]
    pub fn remind(mut self, words: impl Into<String>) -> Self {
        self.ephemeral.extend(Text::new(words));
        self
    }

    /// These changes with a note that stays in the history.
    #[must_use]
    pub fn note(mut self, note: Note) -> Self {
        self.append.push(note);
        self
    }

    /// Lays later changes over these.
    pub(crate) fn lay(&mut self, later: Self) {
        let Self {
            model,
            system,
            tool_choice,
            active_tools,
            narrow_on_wire,
            settings,
            context,
            ephemeral,
            append,
        } = later;
        replace(&mut self.model, model);
        replace(&mut self.system, system);
        replace(&mut self.tool_choice, tool_choice);
        replace(&mut self.active_tools, active_tools);
        replace(&mut self.narrow_on_wire, narrow_on_wire);
        self.settings = std::mem::take(&mut self.settings).overlaid(&settings);
        self.context = std::mem::take(&mut self.context).merged(&context);
        self.ephemeral.extend(ephemeral);
        self.append.extend(append);
    }
}

fn replace<T>(value: &mut Option<T>, later: Option<T>) {
    if later.is_some() {
        *value = later;
    }
}
