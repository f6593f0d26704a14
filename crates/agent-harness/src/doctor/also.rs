//! What is worth a warning beside the ten items.

use agent_cache::RuleBook;
use agent_core::CacheProfile;
use agent_prompt::{Beside, estimate_tokens};

use super::{CheckStatus, Finding, assembled, rules_of, told};
use crate::changes::model_name;
use crate::config::HarnessConfig;
use crate::listed::sent_of;

pub(super) async fn examine(config: &HarnessConfig) -> Vec<Finding> {
    vec![minimum(config).await, sources(config).await, profile(config), retries(config)]
}

/// A prompt that is too short is never kept.
async fn minimum(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("minimum", "the prompt is complete and long enough to be cached");
    let Ok(assembled) = assembled(config).await else {
        finding.warn("the prompt cannot be assembled", "See the first item.");
        return finding;
    };
    let sent = sent_of(config.tools.cards(), config.model.profile());
    // What is found later is no part of what is kept.
    let kept: Vec<_> = sent.iter().filter(|card| !card.is_deferred()).cloned().collect();
    let explained = assembled.explain(Beside { tools: &kept, ..Beside::default() });
    let tools: usize = explained.tools.iter().map(|tool| tool.bytes).sum();
    let tokens = estimate_tokens(tools + explained.system_bytes);
    let profile = config.model.profile();
    let least = match &profile.cache {
        CacheProfile::Marked { min_tokens, .. } => u64::from(*min_tokens),
        CacheProfile::None | CacheProfile::Automatic | _ => {
            RuleBook::builtin().rules(rules_of(&profile.provider), &profile.model).min_tokens
        }
    };
    if (tokens as u64) < least {
        finding.warn(
            format!("tools and system prompt have about {tokens} tokens, and {} keeps no less than {least}", profile.model),
            "Nothing of it is read from the cache in another session; put what is always needed into the prompt.",
        );
    } else {
        finding.saw(format!("tools and system prompt have about {tokens} tokens, and {least} are needed"));
    }
    finding
}

/// What a source could not read, what was cut, and what was not heard.
async fn sources(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("sources", "what was written for the prompt is in it");
    let Ok(assembled) = assembled(config).await else {
        finding.warn("the prompt cannot be assembled", "See the first item.");
        return finding;
    };
    for diagnostic in assembled.diagnostics() {
        finding.warn(told(diagnostic), "Mend what it names.");
    }
    if finding.status == CheckStatus::Pass {
        finding.saw("nothing was cut, left out or not heard");
    }
    finding
}

fn profile(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("profile", "the model is known");
    let profile = config.model.profile();
    let (name, window) = (model_name(profile), profile.context_window);
    if profile.known {
        finding.saw(format!("{name}: {window} tokens of context, {} of output", profile.max_output));
    } else {
        finding.warn(
            format!("nothing is known of {name}: {window} tokens of context and no cache are assumed"),
            "Describe it in a table of models, for example models.json in the data directory.",
        );
    }
    finding
}

fn retries(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("retries", "failed model calls are tried again");
    let retry = &config.retry;
    if retry.max_attempts <= 1 || retry.run_retries == 0 {
        finding.warn(
            "retries are off: one overloaded server ends the turn",
            "Use `RetryPolicy::default()`: 5 attempts a call, 20 retries a run.",
        );
    } else {
        finding.saw(format!("{} attempts a call, {} retries a run", retry.max_attempts, retry.run_retries));
    }
    finding
}
