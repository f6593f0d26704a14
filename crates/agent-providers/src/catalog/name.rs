//! Names of models: what surrounds one is taken off, and a name in a table is held against what is left.

use std::borrow::Cow;

/// A model's name without the vendor in front of it, in small letters.
///
/// `anthropic/claude-haiku-4.5`, `us.anthropic.claude-haiku-4-5-20251001-v1:0` and `models/gemini-2.5-flash` all
/// hold the name of a model that others write plainly.
pub(super) fn plain(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).trim().to_ascii_lowercase();
    let name = without_vendor(&name);
    // Routers write the version of a Claude with a dot, its maker with a dash.
    if name.starts_with("claude") { name.replace('.', "-") } else { name.to_owned() }
}

/// A name of the table: one model with all its dates, or every model whose name begins so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    Model(String),
    Family(String),
}

impl Pattern {
    pub(super) fn of(name: &str) -> Self {
        match name.strip_suffix('*') {
            Some(begin) => Self::Family(plain(begin)),
            None => Self::Model(plain(name)),
        }
    }

    /// Whether it names the model; `model` is [`plain`].
    pub(super) fn fits(&self, model: &str) -> bool {
        match self {
            Self::Family(begin) => model.starts_with(begin.as_str()),
            Self::Model(name) => model.strip_prefix(name.as_str()).is_some_and(is_edition),
        }
    }

    /// How much of a name it says.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Model(name) | Self::Family(name) => name.len(),
        }
    }
}

/// Takes off regions and vendors in front of a name: words without digits, each before a dot.
fn without_vendor(mut name: &str) -> &str {
    while let Some((word, rest)) = name.split_once('.') {
        let is_vendor =
            word == "us-gov" || (!word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic()));
        if !is_vendor || rest.is_empty() {
            break;
        }
        name = rest;
    }
    name
}

/// Whether what follows a name is a date or an edition of the same model, and not the name of another one: `-5`
/// behind `opus-5` is, `-mini` behind `gpt-5` too.
fn is_edition(rest: &str) -> bool {
    let Some(words) = rest.strip_prefix(SEPARATORS) else { return rest.is_empty() };
    let mut dated = false;
    words.split(SEPARATORS).all(|word| {
        let is_number = !word.is_empty() && word.chars().all(|c| c.is_ascii_digit());
        let is_version = word.strip_prefix('v').is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
        let fits = is_version || EDITIONS.contains(&word) || (is_number && (dated || word.len() >= 4));
        dated |= is_version || is_number;
        fits
    })
}

const SEPARATORS: &[char] = &['-', '.', '@', ':', '_'];
const EDITIONS: &[&str] = &["latest", "preview", "exp", "beta", "free"];

/// A name as it is shown in errors.
pub(super) fn shown(name: Option<&str>) -> Cow<'_, str> {
    name.map_or(Cow::Borrowed("without a name"), |name| Cow::Owned(format!("{name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_and_regions_are_taken_off() {
        let check = |model: &str, expect: &str| assert_eq!(plain(model), expect);
        check("claude-opus-5-5", "claude-opus-5-5");
        check("anthropic/claude-haiku-4.5", "claude-haiku-4-5");
        check("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5-20251001-v1:0");
        check("us-gov.anthropic.claude-opus-5", "claude-opus-5");
        check("models/gemini-2.5-flash", "gemini-2.5-flash");
        check("Qwen/Qwen3-0.6B", "qwen3-0.6b");
        check("llama3.1:8b", "llama3.1:8b");
        check("gpt-5.6", "gpt-5.6");
        check("anthropic.", "anthropic.");
        check("", "");
    }

    #[test]
    fn dates_are_the_same_model_and_versions_are_not() {
        let check = |name: &str, model: &str, expect: bool| {
            assert_eq!(Pattern::of(name).fits(&plain(model)), expect, "{name} {model}");
        };
        check("claude-opus-5", "claude-opus-5", true);
        check("claude-opus-5", "claude-opus-5-20260401", true);
        check("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5@20250929", true);
        check("claude-haiku-4-5", "us.anthropic.claude-haiku-4-5-20251001-v1:0", true);
        check("gpt-4o", "gpt-4o-2024-07-18", true);
        check("grok-4", "grok-4-0709", true);
        check("gemini-3-flash", "models/gemini-3-flash-preview", true);
        check("mistral-small", "mistral-small-latest", true);
        check("claude-opus-5", "claude-opus-50", false);
        check("claude-opus-5", "claude-opus-5-5", false);
        check("gpt-5", "gpt-5.4", false);
        check("gpt-5", "gpt-5-nano", false);
        check("gpt-4o", "gpt-4o-mini", false);
        check("grok-4", "grok-4.3", false);
        check("claude-*", "claude-next", true);
        check("claude-*", "my-claude", false);
        check("*", "", true);
    }
}
