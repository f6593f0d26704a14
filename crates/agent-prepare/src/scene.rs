//! A step on the table: everything a pipeline looks at, owned in one place, to try stages without a driver.

use agent_core::{Cancel, EntryId, History, ModelProfile, RequestSettings, Slots, StepNo, ToolCard};

use crate::{Context, ContextState, Need, Pipeline, PrepareError, StepCx, Thresholds};

/// Owns what a [`StepCx`] lends: for tests of stages, and for tools that show what a pipeline would do.
///
/// ```
/// use agent_core::ModelProfile;
/// use agent_prepare::{Pipeline, Reminders, Scene};
///
/// let scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
/// let pipeline = Pipeline::standard().then(Reminders::these(["Use no emoji."]));
/// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
/// assert!(prepared.ephemeral[0].as_str().contains("Use no emoji."));
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a record that tests fill in")]
pub struct Scene {
    /// The step's number in its turn.
    pub step: StepNo,
    /// Position of the turn's first entry.
    pub turn_from: EntryId,
    /// The model of the call.
    pub model: ModelProfile,
    /// The conversation.
    pub history: History,
    /// The tools of the session.
    pub tools: Vec<ToolCard>,
    /// The todo list and other shared state.
    pub slots: Slots,
    /// What the program shares with its stages.
    pub context: Context,
    /// The settings of the session's calls.
    pub settings: RequestSettings,
    /// Tokens of the next request.
    pub used: u64,
    /// Whether the run was stopped.
    pub cancel: Cancel,
}

impl Scene {
    /// The first step of a session in which nothing was said yet.
    pub fn new(model: ModelProfile) -> Self {
        Self {
            step: StepNo::FIRST,
            turn_from: EntryId::at(0),
            model,
            history: History::new(),
            tools: Vec::new(),
            slots: Slots::default(),
            context: Context::default(),
            settings: RequestSettings::default(),
            used: 0,
            cancel: Cancel::new(),
        }
    }

    /// What stages look at.
    pub fn cx(&self) -> StepCx<'_> {
        StepCx {
            step: self.step,
            turn_from: self.turn_from,
            model: &self.model,
            history: self.history.view(),
            tools: &self.tools,
            slots: &self.slots,
            context: &self.context,
            settings: &self.settings,
            tokens: ContextState { used: self.used, fixed: 0, thresholds: Thresholds::of(&self.model, 90) },
            cancel: &self.cancel,
        }
    }

    /// What a pipeline makes of it, up to the first thing it needs.
    pub fn prepare(&self, pipeline: &Pipeline) -> Result<Need, PrepareError> {
        pipeline.begin().advance(pipeline, &self.cx())
    }
}
