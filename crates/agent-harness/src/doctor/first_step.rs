//! Item 3: the first step of a turn is prepared otherwise than the next ones, and the context has room.

use agent_core::Accountant;
use agent_prepare::{ContextState, Level};

use super::{Finding, assembled};
use crate::config::HarnessConfig;
use crate::listed::sent_of;

pub(super) async fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("first-step", "first step and continuation differ");
    let cascade = config.pipeline.cascade();
    let mut accountant = Accountant::new(config.counter.clone());
    match assembled(config).await {
        Ok(prompt) => {
            let tools = sent_of(config.tools.cards(), config.model.profile());
            accountant.set_fixed(&prompt.system(), &tools);
        }
        Err(_) => {
            finding.warn("the prompt cannot be assembled", "See the first item.");
            return finding;
        }
    }
    let state = cascade.measure(&accountant, config.model.profile());
    order(&mut finding, &state);
    tiers(&mut finding, config);
    fixed(&mut finding, &state);
    let stages: Vec<&str> = config.pipeline.names().collect();
    if !stages.is_empty() {
        finding.saw(format!("stages of every step: {}", stages.join(", ")));
    }
    finding
}

/// Requirement P6: 0 < warning ≤ error ≤ autocompact < blocking < W.
fn order(finding: &mut Finding, state: &ContextState) {
    let marks = state.thresholds;
    let numbers = format!(
        "warning at {}, error at {}, compaction at {}, blocking at {} of {} tokens",
        marks.warning, marks.error, marks.autocompact, marks.blocking, marks.window
    );
    let in_order = 0 < marks.warning
        && marks.warning <= marks.error
        && marks.error <= marks.autocompact
        && marks.autocompact < marks.blocking
        && marks.blocking < marks.window;
    if in_order {
        finding.saw(numbers);
    } else {
        finding.fail(numbers, "Correct the context window of the model in a table of models.");
    }
}

fn tiers(finding: &mut Finding, config: &HarnessConfig) {
    let cascade = config.pipeline.cascade();
    let tiers: Vec<&str> = cascade.names().collect();
    if tiers.is_empty() {
        finding.warn(
            "compaction has no tiers: a long session ends at the blocking limit",
            "Use `Cascade::standard()`, or give the cascade tiers of your own.",
        );
    } else if cascade.is_auto() {
        finding.saw(format!("compaction begins by itself: {}", tiers.join(", ")));
    } else {
        finding.warn(
            "compaction does not begin by itself: a long session stops at the blocking limit until it is compacted by hand",
            "Leave `Cascade::manual` out, unless people watch the level of the context.",
        );
    }
}

/// What no compaction makes smaller must leave room for a conversation.
fn fixed(finding: &mut Finding, state: &ContextState) {
    let ContextState { fixed, thresholds, .. } = *state;
    let share = fixed.saturating_mul(100) / thresholds.window.max(1);
    let seen = format!("system prompt and tools take about {fixed} tokens, {share} % of the window");
    let advice = "Give the agent fewer tools or a shorter system prompt, or a model with a larger window.";
    if fixed >= thresholds.autocompact || state.level() >= Level::Compact {
        finding.fail(seen, advice);
    } else if fixed > thresholds.autocompact / 2 {
        finding.warn(seen, advice);
    } else {
        finding.saw(seen);
    }
}
