//! The pipeline of a scenario: the shipped stages and tiers, put together as any program would.

use agent::LanguageModel;
use agent::prepare::{
    Cascade, Choose, Clear, ClearToolUses, ForceWhileTodos, Narrow, Notes, Pipeline, Reminders,
    ServerCompaction, ServerEdits, Shrink, Summarise, SwitchModel,
};

use super::agent::Models;
use crate::cmd::cache::scenario::{EditsSpec, Scenario, StageSpec, TierSpec};
use crate::error::CliError;

pub(super) fn pipeline(scenario: &Scenario, models: &Models<'_>) -> Result<Pipeline, CliError> {
    let pipeline = Pipeline::new(cascade(scenario));
    scenario.pipeline.iter().try_fold(pipeline, |pipeline, stage| add(pipeline, stage.clone(), models))
}

fn cascade(scenario: &Scenario) -> Cascade {
    let Some(tiers) = &scenario.compaction else { return Cascade::standard() };
    tiers.iter().fold(Cascade::new(), |cascade, tier| match tier {
        TierSpec::ClearResults => cascade.then(Clear::default()),
        TierSpec::SessionNotes => cascade.then(Notes),
        TierSpec::Summary => cascade.then(Summarise::default()),
        TierSpec::ShrinkResults => cascade.then(Shrink),
    })
}

fn add(pipeline: Pipeline, stage: StageSpec, models: &Models<'_>) -> Result<Pipeline, CliError> {
    Ok(match stage {
        StageSpec::Remind { words, when } => pipeline.then(Reminders::by(move |cx| {
            if when.holds(cx.of.step.number()) { words.clone() } else { Vec::new() }
        })),
        StageSpec::Narrow { tools, on_wire, when } => {
            let narrow = Narrow::by(move |cx| when.holds(cx.of.step.number()).then(|| tools.clone()));
            pipeline.then(if on_wire { narrow.on_wire() } else { narrow })
        }
        StageSpec::Choose { choice, when } => {
            pipeline.then(Choose::by(move |cx| when.holds(cx.of.step.number()).then(|| choice.clone())))
        }
        StageSpec::ForceWhileTodos {} => pipeline.then(ForceWhileTodos::default()),
        StageSpec::ServerEdits(spec) => pipeline.then(edits(spec)),
        StageSpec::SwitchModel { model, when } => {
            let model: std::sync::Arc<dyn LanguageModel> = std::sync::Arc::new(models.named(&model)?);
            pipeline.then(SwitchModel::by(move |cx| when.holds(cx.of.step.number()).then(|| model.clone())))
        }
    })
}

fn edits(spec: EditsSpec) -> ServerEdits {
    let EditsSpec { clear_tool_uses_at, clear_thinking, compact_at } = spec;
    let mut edits = ServerEdits::default();
    if let Some(at_percent) = clear_tool_uses_at {
        edits = edits.clear_tool_uses(ClearToolUses { at_percent, ..ClearToolUses::default() });
    }
    if let Some(keep) = clear_thinking {
        edits = edits.clear_thinking(keep);
    }
    if let Some(at_percent) = compact_at {
        edits = edits.compact(ServerCompaction { at_percent, ..ServerCompaction::default() });
    }
    edits
}
