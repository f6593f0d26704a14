//! What lies before the conversation of a request, by which it is known whether the provider can read its cache.

use std::sync::Arc;

use agent_cache::Opening;
use agent_core::{Diagnostic, EventBody, LanguageModel, SystemBlock, ToolCard};
use agent_prompt::{system_hash, tools_hash};

use crate::changes::model_name;

/// Whom a request goes to and what it begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) model: Arc<str>,
    /// Hash of the system prompt.
    pub(crate) system: Arc<str>,
    /// Hash of the list of tools.
    pub(crate) tools: Arc<str>,
    pub(crate) opening: Opening,
}

impl Front {
    pub(crate) fn of(
        model: &dyn LanguageModel,
        system: &[SystemBlock],
        tools: &[ToolCard],
        static_blocks: usize,
    ) -> Self {
        Self {
            model: model_name(model.profile()).into(),
            system: system_hash(system).into(),
            tools: tools_hash(tools).into(),
            opening: opening(system, tools, static_blocks),
        }
    }

    /// The same for people and programs that watch (requirement A7).
    pub(crate) fn told(&self) -> EventBody {
        EventBody::CacheSystemHash { system: self.system.clone(), tools: self.tools.clone() }
    }

    /// What is another one than before: a change that was asked for, and no riddle.
    pub(crate) fn changes(&self, before: &Self) -> Vec<Diagnostic> {
        let told = |what: &str, why: String| Diagnostic { what: what.to_owned(), why };
        let mut changes = Vec::new();
        if self.model != before.model {
            let why = format!(
                "the step before asked {}; {} reads the conversation from its own cache, as far as it was asked before",
                before.model, self.model
            );
            changes.push(told("model", why));
        }
        if self.tools != before.tools {
            let why = "a stage or `prepare_call` gave another list of tools than in the step before; narrowing without `narrow_on_wire` keeps the list as it is";
            changes.push(told("tools", why.to_owned()));
        }
        if self.system != before.system {
            let why = "a stage or `prepare_call` gave another system prompt than in the step before; words for one step can be said as a reminder instead";
            changes.push(told("system", why.to_owned()));
        }
        changes
    }
}

/// Where the opening is marked; `static_blocks` are those that every session begins with.
pub(crate) fn opening(system: &[SystemBlock], tools: &[ToolCard], static_blocks: usize) -> Opening {
    // Without such a block, what this session keeps is still worth a mark.
    let blocks = system.len();
    let behind = if static_blocks == 0 { blocks } else { static_blocks.min(blocks) };
    Opening { tools: !tools.is_empty(), system: behind.checked_sub(1) }
}
