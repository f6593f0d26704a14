//! What a stage must not return.

use agent_core::HistoryError;

/// A stage or a tier that asked for what cannot be. It is a fault of the program, so the turn fails with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// A tool that the session does not have.
    #[error("stage {stage:?} names the tool {tool:?}, which the session does not have; it has {known}")]
    UnknownTool {
        /// The stage.
        stage: &'static str,
        /// The name it gave.
        tool: String,
        /// The tools there are, joined with commas.
        known: String,
    },
    /// A list of tools that leaves none.
    #[error(
        "stage {stage:?} leaves no tool active; leave `active_tools` out, or set `tool_choice` to none for a step without tools"
    )]
    NoTools {
        /// The stage.
        stage: &'static str,
    },
    /// A tool is forced that is not active.
    #[error(
        "after stage {stage:?} the tool {tool:?} is chosen for this step and not active in it; activate it as well"
    )]
    ForcedInactive {
        /// The last stage that said something of tools.
        stage: &'static str,
        /// The tool.
        tool: String,
    },
    /// A tool is needed that the step's model does not have, because another provider runs it.
    #[error(
        "after stage {stage:?} the step needs the tool {tool:?}, which only {provider} runs, but its model is {model}; choose another tool as well, or keep the model"
    )]
    ForeignTool {
        /// The last stage that said something of tools or of the model.
        stage: &'static str,
        /// The tool.
        tool: String,
        /// Who runs it.
        provider: String,
        /// The model of the step.
        model: String,
    },
    /// A stage that asks again and again.
    #[error("stage {stage:?} asked {asks} times in one step; go on with what was answered, or pass")]
    AsksForEver {
        /// The stage.
        stage: &'static str,
        /// How often.
        asks: u32,
    },
    /// A rewrite that the history refuses.
    #[error("tier {tier:?} gave a boundary that the history refuses: {cause}")]
    Rewrite {
        /// The tier.
        tier: &'static str,
        /// What the history said.
        #[source]
        cause: HistoryError,
    },
}
