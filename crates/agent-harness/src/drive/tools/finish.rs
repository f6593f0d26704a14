//! From an answer to what enters the history: shortened, shown to the hooks behind the call, with their words beside it.

use std::sync::Arc;

use agent_core::{ActionOutcome, Diagnostic, ToolCall, ToolOutput, Usage};

use super::beside::beside;
use super::shorten::{Short, keep, shorten};
use super::{Done, Site, hooks};
use crate::HarnessError;

/// An answer as it is told and journaled.
pub(super) struct Finished {
    pub(super) call: ToolCall,
    pub(super) outcome: ActionOutcome,
    pub(super) output: ToolOutput,
    /// The whole of it, for people.
    pub(super) shown: Arc<str>,
    pub(super) told: Vec<Diagnostic>,
    pub(super) spent: Usage,
}

/// Finishes one answer. A replay never comes here: it reads what was journaled (requirement T6).
pub(super) async fn finish(site: &Site<'_>, mut done: Done) -> Result<Finished, HarnessError> {
    let mut shown = done.output.shared();
    let Short { output, spent } = shorten(site, &mut done, &shown).await?;
    let mut output = output.unwrap_or_else(|| done.output.clone());
    if !site.config.tool_hooks.is_empty() {
        let replaced = Box::pin(hooks::behind(site, &mut done, &output)).await;
        if let Some(replaced) = replaced {
            // What a hook hides is not shown elsewhere.
            shown = replaced.shared();
            output = Box::pin(keep(site, &done, replaced)).await?;
        }
    }
    let output = beside(site, &done, output).await?;
    let Done { call, said, outcome, .. } = done;
    Ok(Finished { call, outcome, output, shown, told: said.told, spent })
}
