//! What is known of Claude models: windows, cache rules, and which settings they refuse.

use agent_core::{CacheProfile, ModelProfile, Setting};

use super::PROVIDER;

/// The profile of a model by its name on the wire; dates and vendor prefixes around the name are ignored.
///
/// A Claude model that is not in the table is taken for the least of those that are. Any other model, as behind a
/// local server that speaks this format, gets [`ModelProfile::conservative`] and the cache markers of the format.
///
/// ```
/// use agent_providers::anthropic::profiles::profile;
///
/// assert_eq!(profile("claude-haiku-4-5-20251001").context_window, 200_000);
/// assert!(profile("claude-opus-5-5").binds_thinking_to_prefix);
/// assert!(!profile("claude-opus-5").binds_thinking_to_prefix);
/// assert_eq!(profile("claude-next").context_window, 200_000);
/// assert_eq!(profile("llama3.1:8b").context_window, 32_768);
/// ```
pub fn profile(model: &str) -> ModelProfile {
    // The format itself has markers, at most four: a server that caches takes them, and one that does not skips
    // them. So they are known of every model, and cost nothing where they mean nothing.
    let marked = |min_tokens| CacheProfile::Marked { max_marks: 4, min_tokens, lookback: 20 };
    let little =
        ModelProfile { cache: marked(MOST_MIN_TOKENS), ..ModelProfile::conservative(PROVIDER, model) };
    let Some(name) = claude_name(model) else { return little };
    let Some(known) = find(name) else {
        let (context_window, max_output) = SMALL;
        return ModelProfile { context_window, max_output, vision: true, ..little };
    };
    let (context_window, max_output) = known.window;
    ModelProfile {
        context_window,
        max_output,
        cache: marked(known.min_tokens),
        binds_thinking_to_prefix: known.has(BINDS),
        forced_tool_choice: !known.has(NO_FORCE),
        mid_conversation_system: known.has(MID_SYSTEM),
        vision: true,
        refuses: REFUSED.iter().filter(|(fact, _)| known.has(*fact)).map(|(_, setting)| *setting).collect(),
        known: true,
        ..little
    }
}

struct Known {
    name: &'static str,
    window: (u32, u32),
    min_tokens: u32,
    facts: u16,
}

impl Known {
    fn has(&self, fact: u16) -> bool {
        self.facts & fact != 0
    }
}

/// What follows `claude-` in a model's name; `None` for models of others.
fn claude_name(model: &str) -> Option<&str> {
    model.split_once("claude-").map(|(_, name)| name)
}

/// The longest known name that the model's name begins with, up to a separator.
fn find(name: &str) -> Option<&'static Known> {
    let fits = |known: &&Known| {
        name.strip_prefix(known.name)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    MODELS.iter().filter(fits).max_by_key(|known| known.name.len())
}

const BINDS: u16 = 1;
const NO_FORCE: u16 = 2;
const MID_SYSTEM: u16 = 4;
const NO_TEMPERATURE: u16 = 8;
const NO_ADAPTIVE: u16 = 16;
const NO_BUDGET: u16 = 32;
const NO_DISABLED: u16 = 64;
const NO_EFFORT: u16 = 128;
const NO_MORE_THAN_HIGH: u16 = 256;
const NO_FAST: u16 = 512;
/// What a request is refused for.
const REFUSED: &[(u16, Setting)] = &[
    (NO_TEMPERATURE, Setting::Sampling),
    (NO_ADAPTIVE, Setting::ThinkingAdaptive),
    (NO_BUDGET, Setting::ThinkingBudget),
    (NO_DISABLED, Setting::ThinkingDisabled),
    (NO_EFFORT, Setting::Effort),
    (NO_MORE_THAN_HIGH, Setting::EffortAboveHigh),
    (NO_FAST, Setting::Fast),
];
/// Since the 4.7 generation.
const NEW: u16 = NO_TEMPERATURE | NO_BUDGET;
const LARGE: (u32, u32) = (1_000_000, 128_000);
/// The least of the known models.
const SMALL: (u32, u32) = (200_000, 64_000);
/// The longest of the shortest prefixes that a known model keeps.
const MOST_MIN_TOKENS: u32 = 4_096;

const fn known(name: &'static str, window: (u32, u32), min_tokens: u32, facts: u16) -> Known {
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
    known("opus-4-6", SMALL, 4_096, NO_MORE_THAN_HIGH),
    known("opus-4-5", SMALL, 4_096, NO_ADAPTIVE | NO_MORE_THAN_HIGH | NO_FAST),
    known("sonnet-5-5", LARGE, 512, NEW | BINDS | MID_SYSTEM | NO_FAST),
    known("sonnet-5", SMALL, 1_024, NEW | NO_FAST),
    known("sonnet-4-6", SMALL, 1_024, NO_MORE_THAN_HIGH | NO_FAST),
    known("sonnet-4-5", SMALL, 1_024, NO_ADAPTIVE | NO_EFFORT | NO_FAST),
    known("haiku-5-5", LARGE, 512, NO_BUDGET | BINDS | MID_SYSTEM | NO_FAST),
    known("haiku-4-5", SMALL, 4_096, NO_ADAPTIVE | NO_EFFORT | NO_FAST),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_by_their_longest_form() {
        let check = |model: &str, expect: Option<&str>| {
            assert_eq!(claude_name(model).and_then(find).map(|known| known.name), expect, "{model}");
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
        let check = |model: &str, window: (u32, u32), vision: bool| {
            let cache = CacheProfile::Marked { max_marks: 4, min_tokens: 4_096, lookback: 20 };
            let expect = ModelProfile {
                context_window: window.0,
                max_output: window.1,
                cache,
                vision,
                ..ModelProfile::conservative(PROVIDER, model)
            };
            assert_eq!(profile(model), expect);
        };
        check("claude-next", (200_000, 64_000), true);
        check("eu.anthropic.claude-next-1-v1:0", (200_000, 64_000), true);
        check("llama3.1:8b", (32_768, 4_096), false);
        check("my-claude", (32_768, 4_096), false);
        check("", (32_768, 4_096), false);
        let least = MODELS.iter().map(|known| known.window).min().unwrap();
        let most = MODELS.iter().map(|known| known.min_tokens).max().unwrap();
        assert_eq!((least, most), (SMALL, MOST_MIN_TOKENS), "the least of what is known");
        assert!(profile("claude-next").refuses.is_empty());
        let refuses = |model: &str, setting| profile(model).refuses.contains(&setting);
        assert!(refuses("claude-opus-5-5", Setting::ThinkingDisabled));
        assert!(refuses("claude-haiku-4-5", Setting::ThinkingAdaptive));
    }
}
