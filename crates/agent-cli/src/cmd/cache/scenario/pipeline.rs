//! The part of a scenario that prepares its steps: stages, tiers of compaction, and the window they keep to.

use agent::prepare::ToolChoice;
use serde::{Deserialize, Serialize};

/// A stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum StageSpec {
    /// Words for the step, as its model takes them.
    Remind {
        words: Vec<String>,
        #[serde(default)]
        when: When,
    },
    /// Only these tools may be called.
    Narrow {
        tools: Vec<String>,
        /// Whether the others are left out of the request.
        #[serde(default)]
        on_wire: bool,
        #[serde(default)]
        when: When,
    },
    /// This choice of a tool.
    Choose {
        choice: ToolChoice,
        #[serde(default)]
        when: When,
    },
    /// A tool must be called while the todo list has open items.
    ForceWhileTodos {},
    /// The provider edits the context on its side.
    ServerEdits(EditsSpec),
    /// Another model, `PROVIDER/NAME`.
    SwitchModel {
        model: String,
        #[serde(default)]
        when: When,
    },
}

/// What a provider edits; at least one of these.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EditsSpec {
    /// Clears old tool uses, from so many percent of the tokens at which compaction begins.
    pub(crate) clear_tool_uses_at: Option<u8>,
    /// Keeps the thinking of so many answers.
    pub(crate) clear_thinking: Option<u32>,
    /// Summarises, from so many percent of the tokens at which compaction begins.
    pub(crate) compact_at: Option<u8>,
}

/// In which steps of a turn, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct When {
    pub(crate) from: u32,
    /// The first one in which not.
    pub(crate) to: u32,
    /// Every how many steps from the first one on.
    pub(crate) every: u32,
}

/// A tier of compaction, by the name that events give it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TierSpec {
    ClearResults,
    SessionNotes,
    Summary,
    ShrinkResults,
}

/// What the model can read and write at once, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WindowSpec {
    pub(crate) context: u32,
    pub(crate) output: u32,
}

/// What a model can do, and does not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ability {
    TurnScopedSystem,
    ForcedToolChoice,
}

impl StageSpec {
    /// The model it switches to.
    pub(crate) fn model(&self) -> Option<&str> {
        match self {
            Self::SwitchModel { model, .. } => Some(model),
            Self::Remind { .. }
            | Self::Narrow { .. }
            | Self::Choose { .. }
            | Self::ForceWhileTodos {}
            | Self::ServerEdits(_) => None,
        }
    }

    /// What is wrong with it, and what to write.
    pub(super) fn check(&self) -> Result<(), String> {
        let Self::ServerEdits(edits) = self else { return Ok(()) };
        if *edits == EditsSpec::default() {
            return Err(
                "server_edits: give `clear_tool_uses_at`, `clear_thinking` or `compact_at`, or nothing is edited"
                    .into(),
            );
        }
        let percents = edits.clear_tool_uses_at.into_iter().chain(edits.compact_at);
        match percents.into_iter().find(|percent| !(1..=100).contains(percent)) {
            Some(percent) => Err(format!("server_edits: {percent} percent; give a number from 1 to 100")),
            None => Ok(()),
        }
    }
}

impl When {
    pub(crate) fn holds(self, step: u32) -> bool {
        let past = step.checked_sub(self.from);
        step < self.to && past.is_some_and(|past| past % self.every.max(1) == 0)
    }
}

impl Default for When {
    fn default() -> Self {
        Self { from: 0, to: u32::MAX, every: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_chosen() {
        let check = |json: &str, expect: &[u32]| {
            let when: When = serde_json::from_str(json).unwrap();
            let held: Vec<u32> = (0..6).filter(|step| when.holds(*step)).collect();
            assert_eq!(held, expect, "{json}");
        };
        check("{}", &[0, 1, 2, 3, 4, 5]);
        check(r#"{"from":2}"#, &[2, 3, 4, 5]);
        check(r#"{"to":1}"#, &[0]);
        check(r#"{"from":1,"every":2}"#, &[1, 3, 5]);
        check(r#"{"from":1,"to":4,"every":0}"#, &[1, 2, 3]);
    }
}
