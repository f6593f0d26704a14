//! A step on the table: everything a pipeline looks at, owned in one place, to try stages and tiers without a driver.

use agent_core::{
    Accountant, Cancel, CompactionState, EntryId, History, ModelProfile, RequestSettings, Slots, StepNo,
    ToolCard,
};

use crate::{
    Cascade, Cause, CompactCx, Context, ContextState, Move, Need, Pipeline, PrepareError, StepCx, Thresholds,
};

/// Owns what a [`StepCx`] lends: for tests of stages and tiers, and for tools that show what a pipeline would do.
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
    /// Tokens of the next request. Where it is 0, a compaction goes by an estimate of the conversation.
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

    /// The first move of a cascade on it, as in a session that was not compacted before.
    ///
    /// ```
    /// use agent_core::{Entry, ModelProfile, UserMessage};
    /// use agent_prepare::{Cascade, Cause, Move, Scene};
    ///
    /// let mut scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
    /// assert_eq!(scene.compact(&Cascade::standard(), Cause::First), Move::Settled);
    /// scene.history.push(Entry::User(UserMessage::text("Read the log. ".repeat(9_000))?))?;
    /// let Move::Ask { tier, .. } = scene.compact(&Cascade::standard(), Cause::First) else { panic!("it is too full") };
    /// assert_eq!(tier, "summary");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compact(&self, cascade: &Cascade, cause: Cause) -> Move {
        let mut accountant = Accountant::default();
        accountant.set_fixed(&[], &self.tools);
        accountant.follow(&self.history);
        accountant.report(self.used, self.history.len());
        let cx = CompactCx {
            history: &self.history,
            accountant: &accountant,
            model: &self.model,
            apart: None,
            cached: false,
            slots: &self.slots,
            state: CompactionState::default(),
            turn_from: self.turn_from,
        };
        cascade.begin(cause).advance(cascade, &cx)
    }
}
