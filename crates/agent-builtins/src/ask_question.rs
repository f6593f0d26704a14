//! The tool that asks the person at the other end.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{Choice, Question, Wait};
use agent_tools::{Access, Concurrency, Tool, ToolConfig, ToolError};

use crate::built;

/// Asks a question: the turn waits until somebody answers it (requirements T8, L7). Only for sessions in which somebody can;
/// it is not among [`crate::all`].
pub fn ask_question() -> Arc<dyn Tool> {
    let ask = |_, input: Input| async move { input.checked().map(Wait::Question) };
    // Asking again after a crash does no harm.
    let config = ToolConfig::new("ask_question", DESCRIPTION.trim_end(), Access::Session, ask).idempotent();
    built(config.concurrency(Concurrency::Parallel))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The question, complete in itself: what you need to know, and why.
    question: String,
    /// Answers to choose from, the one you recommend first. The user may say something else.
    #[serde(default)]
    options: Option<Vec<Offer>>,
    /// Whether several of them may be chosen. Default false.
    #[serde(default)]
    multiple: Option<bool>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Offer {
    /// The answer, in a few words.
    label: String,
    /// What it means, or what follows from it.
    #[serde(default)]
    description: Option<String>,
}

impl Input {
    fn checked(self) -> Result<Question, ToolError> {
        let refuse = |why: &str| Err(ToolError::failed(format!("{why} Nothing was asked; call it again.")));
        if self.question.trim().is_empty() {
            return refuse("The question is blank.");
        }
        let options = self.options.unwrap_or_default();
        if options.len() > MOST_OPTIONS {
            return refuse("There are more options than a person can choose from; give at most 12.");
        }
        let mut labels = BTreeSet::new();
        for option in &options {
            if option.label.trim().is_empty() {
                return refuse("An option has a blank label.");
            }
            if !labels.insert(option.label.trim()) {
                return refuse("Two options have the same label.");
            }
        }
        let multiple = self.multiple.unwrap_or_default();
        if multiple && options.is_empty() {
            return refuse("Several answers can only be chosen from options.");
        }
        let options = options.into_iter().map(|option| Choice {
            label: option.label.trim().to_owned(),
            description: option.description.filter(|words| !words.trim().is_empty()),
        });
        Ok(Question { question: self.question, options: options.collect(), multiple })
    }
}

const DESCRIPTION: &str = include_str!("../prompt/ask_question.md");
const MOST_OPTIONS: usize = 12;
