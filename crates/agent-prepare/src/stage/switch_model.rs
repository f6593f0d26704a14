//! Another model for some steps.

use std::sync::Arc;

use agent_core::LanguageModel;

use super::{Rule, Stage, StageCx, Verdict};
use crate::Overrides;

/// Gives some steps to another model (requirement P3). Let it be the first stage, so that the others see what that model
/// can do.
///
/// The tools and the conversation stay as they are, in the words of the other provider; thinking that it did not write is
/// left out. A tool that only another provider runs cannot be needed in such a step
/// ([`crate::PrepareError::ForeignTool`]). Nothing is read from what another model cached, so switch seldom.
///
/// ```
/// use agent_core::ModelProfile;
/// use agent_prepare::{Pipeline, Scene, SwitchModel};
/// use agent_testkit::ScriptedModel;
///
/// let planner = ScriptedModel::new(vec![]).with_profile(ModelProfile::conservative("harbour", "planner"));
/// let pipeline = Pipeline::standard().then(SwitchModel::before_step(1, planner));
///
/// let mut scene = Scene::new(ModelProfile::conservative("harbour", "pilot"));
/// let model = scene.prepare(&pipeline)?.ready().unwrap().model.unwrap();
/// assert_eq!(model.profile().model, "planner");
/// scene.step = scene.step.next();
/// assert!(scene.prepare(&pipeline)?.ready().unwrap().model.is_none());
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug)]
pub struct SwitchModel(Rule<Option<Arc<dyn LanguageModel>>>);

impl SwitchModel {
    /// This model for the steps before the one with this number: a cheap one to plan, for example.
    pub fn before_step(step: u32, model: impl LanguageModel + 'static) -> Self {
        let model: Arc<dyn LanguageModel> = Arc::new(model);
        Self::by(move |cx| (cx.of.step.number() < step).then(|| Arc::clone(&model)))
    }

    /// This model from the step with this number on; steps of a turn are counted from 0.
    pub fn from_step(step: u32, model: impl LanguageModel + 'static) -> Self {
        let model: Arc<dyn LanguageModel> = Arc::new(model);
        Self::by(move |cx| (cx.of.step.number() >= step).then(|| Arc::clone(&model)))
    }

    /// What this function says; `None` keeps the model.
    pub fn by(rule: impl Fn(&StageCx<'_>) -> Option<Arc<dyn LanguageModel>> + Send + Sync + 'static) -> Self {
        Self(Rule::new(rule))
    }
}

impl Stage for SwitchModel {
    fn name(&self) -> &'static str {
        "switch_model"
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        Overrides { model: self.0.of(cx), ..Overrides::default() }.into()
    }
}
