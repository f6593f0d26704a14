//! Why a request missed, in the words of the vendors' own diagnostics.

use serde::Serialize;

use crate::prefix::is_default;
use crate::{Aspect, Block, BlockKind, CacheRules, Format, Level, Request};

/// A miss as a provider reports it. Requests are compared, whether or not the entry was still alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Miss {
    /// The earliest difference.
    #[serde(rename = "type")]
    pub reason: MissReason,
    /// Tokens of the earlier request from there on, estimated from bytes; not every reason has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_missed_input_tokens: Option<u64>,
}

/// The earliest difference between two requests. Serialised as the provider spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MissReason {
    /// Another model.
    ModelChanged,
    /// The system text.
    SystemChanged,
    /// The tools.
    ToolsChanged,
    /// The conversation (Anthropic).
    MessagesChanged,
    /// A setting that Anthropic does not name.
    Unavailable,
    /// OpenAI: the key that separates caches.
    PromptCacheKeyChanged,
    /// OpenAI: the shape of the answer.
    TextFormatChanged,
    /// OpenAI: the effort.
    ReasoningEffortChanged,
    /// OpenAI: the verbosity.
    VerbosityChanged,
    /// OpenAI: the way it is served.
    ServiceTierChanged,
    /// OpenAI: instructions or input.
    InputChanged,
}

/// Compares a request with an earlier one of its conversation; `None` when it only goes on.
pub fn miss(previous: &Request, current: &Request, rules: &CacheRules) -> Option<Miss> {
    let changed = |aspect| changed(previous, current, aspect, rules);
    let level = |level| first_difference(previous, current, level);
    let settings: &[(Aspect, MissReason)] = match current.format {
        Format::Anthropic => &[
            (Aspect::ToolChoice, MissReason::Unavailable),
            (Aspect::Thinking, MissReason::Unavailable),
            (Aspect::Effort, MissReason::Unavailable),
            (Aspect::OutputFormat, MissReason::Unavailable),
            (Aspect::ContextManagement, MissReason::Unavailable),
            (Aspect::Betas, MissReason::Unavailable),
            (Aspect::Speed, MissReason::Unavailable),
        ],
        Format::OpenaiChat | Format::OpenaiResponses => &[
            (Aspect::OutputFormat, MissReason::TextFormatChanged),
            (Aspect::Effort, MissReason::ReasoningEffortChanged),
            (Aspect::Verbosity, MissReason::VerbosityChanged),
            (Aspect::ServiceTier, MissReason::ServiceTierChanged),
        ],
    };
    let (system, messages) = match current.format {
        Format::Anthropic => (MissReason::SystemChanged, MissReason::MessagesChanged),
        Format::OpenaiChat | Format::OpenaiResponses => (MissReason::InputChanged, MissReason::InputChanged),
    };
    let plain = |reason| Miss { reason, cache_missed_input_tokens: None };
    let counted =
        |reason, from: usize| Miss { reason, cache_missed_input_tokens: Some(rest(previous, from)) };
    if changed(Aspect::Model) {
        return Some(counted(MissReason::ModelChanged, 0));
    }
    if changed(Aspect::CacheKey) && current.format != Format::Anthropic {
        return Some(plain(MissReason::PromptCacheKeyChanged));
    }
    if let Some(from) = level(Level::Tools) {
        return Some(counted(MissReason::ToolsChanged, from));
    }
    if let Some(from) = level(Level::System) {
        return Some(counted(system, from));
    }
    let setting = settings.iter().find(|(aspect, _)| changed(*aspect));
    setting
        .map(|(_, reason)| plain(*reason))
        .or_else(|| level(Level::Messages).map(|from| counted(messages, from)))
}

/// Whether a setting differs; a default that is said and one that is not are equal.
pub(crate) fn changed(previous: &Request, current: &Request, aspect: Aspect, rules: &CacheRules) -> bool {
    let value = |request: &Request| {
        let value = request.aspects.get(&aspect).filter(|value| !is_default(aspect, value, rules));
        value.cloned()
    };
    value(previous) != value(current)
}

/// The earlier request's first block of a level that the later one does not repeat.
fn first_difference(previous: &Request, current: &Request, level: Level) -> Option<usize> {
    let seen = |block: &&Block| block.level == level && block.kind != BlockKind::DeferredTool;
    let mut before = previous.blocks.iter().enumerate().filter(|(_, block)| seen(block));
    let mut after = current.blocks.iter().filter(seen);
    let different = before.find_map(|(at, block)| match after.next() {
        Some(next) if next.bytes == block.bytes && next.role == block.role => None,
        _ => Some(at),
    });
    // A conversation grows; more tools or more instructions are a change.
    let end = || previous.blocks.iter().rposition(|block| block.level <= level).map_or(0, |at| at + 1);
    different.or_else(|| (level != Level::Messages && after.next().is_some()).then(end))
}

fn rest(previous: &Request, from: usize) -> u64 {
    let bytes: usize = previous.blocks.iter().skip(from).map(|block| block.bytes.len()).sum();
    bytes as u64 / 4
}
