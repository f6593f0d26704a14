//! What an agent would send in a session that begins now, and a resumed session does not, or sends anew (requirement D2).

use agent_core::{Diagnostic, ModelProfile, SessionMeta, SystemBlock, ToolCard};
use agent_prompt::{Block, Layer, Stability};

use crate::config::HarnessConfig;

/// Declares what makes the bytes of a resumed session other ones (requirement D2).
///
/// A session keeps its system prompt, and its tools as it knows them while the agent's still take the same input. Tools
/// that do not would be called wrongly, so then the agent's own list is sent.
pub(crate) fn changes(config: &HarnessConfig, meta: &mut SessionMeta) -> Vec<Diagnostic> {
    let mut changes = Vec::new();
    let model = model_name(config.model.profile());
    if model != meta.model {
        let why = format!("the session began with {}; with {model} the prompt cache begins anew", meta.model);
        changes.push(Diagnostic { what: "model".into(), why });
    }
    changes.extend(system_changes(config, meta));
    let now = config.tools.cards();
    // Names are unique in both, and calls are matched by name: another order is no change.
    let is_of =
        |old: &ToolCard, new: &ToolCard| old.name() == new.name() && old.input_schema() == new.input_schema();
    // Most stand where they stood, and there may be thousands.
    let same = |(at, old): (usize, &ToolCard)| {
        now.get(at).is_some_and(|new| is_of(old, new)) || now.iter().any(|new| is_of(old, new))
    };
    if meta.tools.len() != now.len() || !meta.tools.iter().enumerate().all(same) {
        meta.tools = now.to_vec();
        let why = "the agent has other tools than when the session began; the new list is sent, and the prompt cache begins anew";
        changes.push(Diagnostic { what: "tools".into(), why: why.into() });
    }
    changes
}

/// What the stored prompt lacks, or has too much.
///
/// Only what is the same in every session is compared, and policy: what a source says is fixed when a session begins.
fn system_changes(config: &HarnessConfig, meta: &SessionMeta) -> Vec<Diagnostic> {
    let prompt = config.prompt.assemble();
    let stored: Vec<&str> = meta.system.iter().map(SystemBlock::text).collect();
    let own = |block: &&Block| block.stability == Stability::Static && block.layer != Layer::Managed;
    let managed = |block: &&Block| block.layer == Layer::Managed;
    // Sources may have added blocks of their own between these, so that only their order is known.
    let missing = missing(&stored, prompt.blocks().iter().filter(own));
    let said = |text: &&&str| prompt.blocks().iter().any(|block| block.text.as_str() == **text);
    let statics = stored.iter().take(meta.static_blocks);
    let says_more = config.sources.is_empty() && statics.filter(|text| !said(text)).count() > 0;
    let mut changes = Vec::new();
    let mut tell = |why: String| changes.push(Diagnostic { what: "system".into(), why });
    if !missing.is_empty() {
        let keys = missing.join("`, `");
        tell(format!(
            "the session keeps the system prompt it began with, which does not have what the agent says now under `{keys}`; begin another session for the new prompt"
        ));
    } else if says_more {
        tell("the session keeps the system prompt it began with, which has a block that the agent has no more; begin another session for the new prompt".into());
    }
    let policy = self::missing(&stored, prompt.blocks().iter().filter(managed));
    if !policy.is_empty() {
        let keys = policy.join("`, `");
        tell(format!(
            "the managed instructions `{keys}` are not in force in this session, which keeps the system prompt it began with; begin another session to work under them"
        ));
    }
    changes
}

/// The keys of blocks that do not stand in the stored prompt, in their order.
fn missing<'a>(stored: &[&str], blocks: impl Iterator<Item = &'a Block>) -> Vec<&'a str> {
    let mut from = 0;
    let mut missing = Vec::new();
    for block in blocks {
        match stored[from..].iter().position(|text| *text == block.text.as_str()) {
            Some(at) => from += at + 1,
            None => missing.push(block.key.as_str()),
        }
    }
    missing
}

/// `provider/name`, as sessions store it and people read it.
pub(crate) fn model_name(profile: &ModelProfile) -> String {
    format!("{}/{}", profile.provider, profile.model)
}
