//! The pipeline: stages one after the other, each seeing what those before it changed.

use std::sync::Arc;

use agent_core::{Cancel, EntryId, HistoryView, ModelProfile, RequestSettings, Slots, StepNo, ToolCard};

use crate::prepared::{check, prepared};
use crate::{
    Answer, Ask, Cascade, Context, ContextState, Overrides, PrepareError, Prepared, Stage, StageCx,
    Synthesised, Verdict,
};

/// Compaction and the stages of an agent (requirement P2). Cloning shares them.
///
/// Stages run in the order they were added, and each sees what those before it changed. Put a stage that chooses the model
/// first, because others look at what the model can do.
#[derive(Debug, Clone)]
pub struct Pipeline {
    cascade: Cascade,
    stages: Vec<Arc<dyn Stage>>,
}

/// What all stages of one step look at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by drivers")]
pub struct StepCx<'a> {
    /// The step's number in its turn, from 0.
    pub step: StepNo,
    /// Position of the turn's first entry: what lies from there on was said in this turn.
    pub turn_from: EntryId,
    /// The model of the call; [`StageCx::model`] is what stages made of it.
    pub model: &'a ModelProfile,
    /// The conversation.
    pub history: HistoryView<'a>,
    /// The tools of the session, active or not, in their one order.
    pub tools: &'a [ToolCard],
    /// The todo list and other state that tools share.
    pub slots: &'a Slots,
    /// What the program shares with its stages; [`StageCx::context`] has what stages added.
    pub context: &'a Context,
    /// The settings of the session's calls, without what stages change of them.
    pub settings: &'a RequestSettings,
    /// How full the context is: the step's token budget.
    pub tokens: ContextState,
    /// Whether the run was stopped.
    pub cancel: &'a Cancel,
}

/// The stages of one step at work.
#[derive(Debug, Clone, Default)]
pub struct Preparing {
    /// The next stage.
    at: usize,
    /// How often that stage asked.
    asks: u32,
    so_far: Overrides,
    answer: Option<Answer>,
    /// The shared context, once a stage added to it.
    context: Option<Context>,
    /// The last stage that spoke of tools or of the model: the one to name when they do not fit.
    spoke: &'static str,
}

/// What the driver does next.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every need")]
#[expect(clippy::large_enum_variant, reason = "made a few times a step, and moved once")]
pub enum Need {
    /// Ask, and give the answer to [`Preparing::answer`].
    Ask {
        /// The stage.
        stage: &'static str,
        /// The question.
        ask: Ask,
    },
    /// End the turn with these words.
    Finish(Synthesised),
    /// The step is prepared.
    Ready(Prepared),
}

impl Need {
    /// The step, when it is prepared.
    pub fn ready(self) -> Option<Prepared> {
        match self {
            Self::Ready(prepared) => Some(prepared),
            Self::Ask { .. } | Self::Finish(_) => None,
        }
    }
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::standard()
    }
}

impl Pipeline {
    /// The standard cascade and no stage.
    pub fn standard() -> Self {
        Self::new(Cascade::standard())
    }

    /// This cascade and no stage.
    pub fn new(cascade: Cascade) -> Self {
        Self { cascade, stages: Vec::new() }
    }

    /// Appends a stage.
    #[must_use]
    pub fn then(mut self, stage: impl Stage + 'static) -> Self {
        self.stages.push(Arc::new(stage));
        self
    }

    /// The same with each stage put into another one, for a driver that rehearses.
    #[must_use]
    pub fn map_stages(mut self, put: impl FnMut(Arc<dyn Stage>) -> Arc<dyn Stage>) -> Self {
        self.stages = self.stages.into_iter().map(put).collect();
        self
    }

    /// The same stages without compaction, for runs that must not compact (requirement P12).
    #[must_use]
    pub fn without_compaction(self) -> Self {
        Self { cascade: Cascade::new().manual(), ..self }
    }

    /// Compaction.
    pub fn cascade(&self) -> &Cascade {
        &self.cascade
    }

    /// The stages' names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.stages.iter().map(|stage| stage.name())
    }

    /// The stages of one step.
    pub fn begin(&self) -> Preparing {
        Preparing::default()
    }
}

/// How often one stage may ask in one step.
const MOST_ASKS: u32 = 4;

impl Preparing {
    /// Gives the answer to the last [`Need::Ask`].
    pub fn answer(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    /// Goes on until a model must be asked, the turn is to end, or the step is prepared.
    pub fn advance(&mut self, pipeline: &Pipeline, cx: &StepCx<'_>) -> Result<Need, PrepareError> {
        while let Some(stage) = pipeline.stages.get(self.at) {
            let answer = self.answer.take();
            let verdict = stage.run(&self.stage_cx(cx, answer.as_ref()));
            match verdict {
                Verdict::Finish(synthesised) => return Ok(Need::Finish(synthesised)),
                Verdict::Ask(ask) => {
                    self.asks += 1;
                    if self.asks > MOST_ASKS {
                        return Err(PrepareError::AsksForEver { stage: stage.name(), asks: self.asks });
                    }
                    return Ok(Need::Ask { stage: stage.name(), ask });
                }
                Verdict::Pass(changes) => {
                    check(stage.name(), &changes, cx.tools)?;
                    self.take(changes, stage.name(), cx);
                }
            }
        }
        let context = self.context.as_ref().unwrap_or(cx.context).clone();
        Ok(Need::Ready(prepared(self.so_far.clone(), cx, context, self.spoke)?))
    }

    /// Lays the changes of a stage over those before, and goes to the next one.
    fn take(&mut self, changes: Overrides, stage: &'static str, cx: &StepCx<'_>) {
        if changes.model.is_some() || changes.tool_choice.is_some() || changes.active_tools.is_some() {
            self.spoke = stage;
        }
        let adds_context = !changes.context.is_empty();
        self.so_far.lay(changes);
        if adds_context {
            self.context = Some(cx.context.clone().merged(&self.so_far.context));
        }
        (self.at, self.asks) = (self.at + 1, 0);
    }

    fn stage_cx<'a>(&'a self, cx: &'a StepCx<'_>, answer: Option<&'a Answer>) -> StageCx<'a> {
        StageCx {
            of: cx,
            model: self.so_far.model.as_ref().map_or(cx.model, |model| model.profile()),
            context: self.context.as_ref().unwrap_or(cx.context),
            so_far: &self.so_far,
            answer,
        }
    }
}
