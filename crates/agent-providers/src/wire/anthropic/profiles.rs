//! What is known of Claude models: windows, cache rules, and which settings they refuse.

use agent_core::{CacheProfile, ModelProfile};

use super::PROVIDER;

/// The profile of a model by its name on the wire; dates and vendor prefixes around the name are ignored. A model
/// that is not in the table gets a profile that assumes little.
///
/// ```
/// use agent_providers::anthropic::profiles::profile;
///
/// assert_eq!(profile("claude-haiku-4-5-20251001").context_window, 200_000);
/// assert!(profile("claude-opus-5-5").binds_thinking_to_prefix);
/// assert!(!profile("claude-opus-5").binds_thinking_to_prefix);
/// ```
pub fn profile(model: &str) -> ModelProfile {
    let known = find(model);
    let (context_window, max_output) = known.map_or((200_000, 8_192), |known| known.window);
    let min_tokens = known.map_or(4_096, |known| known.min_tokens);
    ModelProfile {
        provider: PROVIDER.into(),
        model: model.into(),
        context_window,
        max_output,
        cache: CacheProfile::Marked { max_marks: 4, min_tokens, lookback: 20 },
        binds_thinking_to_prefix: known.is_some_and(|known| known.has(BINDS)),
        allowed_tools: false,
        forced_tool_choice: known.is_some_and(|known| !known.has(NO_FORCE)),
        mid_conversation_system: known.is_some_and(|known| known.has(MID_SYSTEM)),
        vision: true,
    }
}

/// Settings that some models refuse with a 400 and that a profile has no word for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusals {
    pub(crate) temperature: bool,
    pub(crate) adaptive: bool,
    pub(crate) budget: bool,
    pub(crate) disabled: bool,
}

/// What a model refuses; an unknown one is asked as the user wishes.
pub(crate) fn refusals(model: &str) -> Refusals {
    let refuses = |fact| find(model).is_some_and(|known| known.has(fact));
    Refusals {
        temperature: refuses(NO_TEMPERATURE),
        adaptive: refuses(NO_ADAPTIVE),
        budget: refuses(NO_BUDGET),
        disabled: refuses(NO_DISABLED),
    }
}

struct Known {
    name: &'static str,
    window: (u32, u32),
    min_tokens: u32,
    facts: u8,
}

impl Known {
    fn has(&self, fact: u8) -> bool {
        self.facts & fact != 0
    }
}

/// The longest known name that the model's name begins with, up to a separator.
fn find(model: &str) -> Option<&'static Known> {
    let name = model.find("claude-").and_then(|at| model.get(at + "claude-".len()..))?;
    let fits = |known: &&Known| {
        name.strip_prefix(known.name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    MODELS.iter().filter(fits).max_by_key(|known| known.name.len())
}

const BINDS: u8 = 1;
const NO_FORCE: u8 = 2;
const MID_SYSTEM: u8 = 4;
const NO_TEMPERATURE: u8 = 8;
const NO_ADAPTIVE: u8 = 16;
const NO_BUDGET: u8 = 32;
const NO_DISABLED: u8 = 64;
/// Since the 4.7 generation.
const NEW: u8 = NO_TEMPERATURE | NO_BUDGET;
const LARGE: (u32, u32) = (1_000_000, 128_000);
const SMALL: (u32, u32) = (200_000, 64_000);

const fn known(name: &'static str, window: (u32, u32), min_tokens: u32, facts: u8) -> Known {
    Known { name, window, min_tokens, facts }
}

const MODELS: &[Known] = &[
    known("fable-5-1", LARGE, 512, NEW | BINDS | NO_FORCE | MID_SYSTEM | NO_DISABLED),
    known("fable-5", LARGE, 512, NEW | MID_SYSTEM | NO_DISABLED),
    known("mythos-5-1", LARGE, 512, NEW | NO_FORCE | MID_SYSTEM | NO_DISABLED),
    known("mythos-5", LARGE, 512, NEW | MID_SYSTEM | NO_DISABLED),
    known("opus-5-5", LARGE, 512, NEW | BINDS | NO_FORCE | MID_SYSTEM | NO_DISABLED),
    known("opus-5", LARGE, 512, NEW | MID_SYSTEM),
    known("opus-4-8", SMALL, 1_024, NEW | MID_SYSTEM),
    known("opus-4-7", SMALL, 2_048, NEW),
    known("opus-4-6", SMALL, 4_096, 0),
    known("opus-4-5", SMALL, 4_096, NO_ADAPTIVE),
    known("sonnet-5-5", LARGE, 512, NEW | BINDS | MID_SYSTEM),
    known("sonnet-5", SMALL, 1_024, NEW),
    known("sonnet-4-6", SMALL, 1_024, 0),
    known("sonnet-4-5", SMALL, 1_024, NO_ADAPTIVE),
    known("haiku-5-5", LARGE, 512, NO_BUDGET | BINDS | MID_SYSTEM),
    known("haiku-4-5", SMALL, 4_096, NO_ADAPTIVE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_longest_form() {
        let check = |model: &str, expect: Option<&str>| {
            assert_eq!(find(model).map(|known| known.name), expect, "{model}");
        };
        check("claude-opus-5-5", Some("opus-5-5"));
        check("claude-opus-5-20260401", Some("opus-5"));
        check("anthropic/claude-sonnet-4-5@20250929", Some("sonnet-4-5"));
        check("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some("haiku-4-5"));
        check("claude-opus-50", None);
        check("gpt-5", None);
    }

    #[test]
    fn an_unknown_model_is_assumed_to_do_little() {
        let unknown = profile("claude-next");
        assert!(!unknown.forced_tool_choice && !unknown.mid_conversation_system);
        assert_eq!(unknown.cache, CacheProfile::Marked { max_marks: 4, min_tokens: 4_096, lookback: 20 });
        assert_eq!(
            refusals("claude-next"),
            Refusals { temperature: false, adaptive: false, budget: false, disabled: false }
        );
        assert!(refusals("claude-opus-5-5").disabled && refusals("claude-haiku-4-5").adaptive);
    }
}
