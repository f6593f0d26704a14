//! Whether and which tool is called, decided by the step's number or a function.

use agent_core::ToolChoice;

use super::{Rule, Stage, StageCx, Verdict};
use crate::Overrides;

/// Chooses whether and which tool must be called (requirement P17): no tool, so that the last step sums up in words, or
/// the tool that ends a sub-agent's work.
///
/// Keep a choice for a whole turn where you can: with some providers every change of it makes the conversation be read
/// anew. So choose at the end of a turn, not here and there in it.
///
/// ```
/// use agent_core::{COMPLETE_TOOL, ModelProfile, RawJson, StepNo, ToolCard, ToolChoice};
/// use agent_prepare::{Choose, Pipeline, Scene};
///
/// let model = ModelProfile { forced_tool_choice: true, ..ModelProfile::conservative("harbour", "pilot") };
/// let mut scene = Scene::new(model);
/// scene.tools = vec![ToolCard::new(COMPLETE_TOOL, "", &RawJson::empty_object()).unwrap()];
/// let sums_up = Pipeline::standard().then(Choose::from_step(1, ToolChoice::None));
/// let delivers = Pipeline::standard().then(Choose::from_step(1, ToolChoice::Tool(COMPLETE_TOOL.into())));
///
/// assert_eq!(scene.prepare(&sums_up)?.ready().unwrap().tool_choice, ToolChoice::Auto);
/// scene.step = StepNo::FIRST.next();
/// assert_eq!(scene.prepare(&sums_up)?.ready().unwrap().tool_choice, ToolChoice::None);
/// let complete = ToolChoice::Tool("complete".into());
/// assert_eq!(scene.prepare(&delivers)?.ready().unwrap().tool_choice, complete);
///
/// // A model that cannot be forced is asked in words, and a diagnostic says so.
/// scene.model.forced_tool_choice = false;
/// let prepared = scene.prepare(&delivers)?.ready().unwrap();
/// assert!(prepared.ephemeral[0].as_str().contains("Call the tool complete now."));
/// assert_eq!((prepared.tool_choice, prepared.diagnostics.len()), (ToolChoice::Auto, 1));
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug)]
pub struct Choose(Rule<Option<ToolChoice>>);

impl Choose {
    /// This choice, from the step with this number on; steps of a turn are counted from 0.
    pub fn from_step(step: u32, choice: ToolChoice) -> Self {
        Self::by(move |cx| (cx.of.step.number() >= step).then(|| choice.clone()))
    }

    /// What this function says; `None` chooses nothing.
    pub fn by(rule: impl Fn(&StageCx<'_>) -> Option<ToolChoice> + Send + Sync + 'static) -> Self {
        Self(Rule::new(rule))
    }
}

impl Stage for Choose {
    fn name(&self) -> &'static str {
        "choose"
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        Overrides { tool_choice: self.0.of(cx), ..Overrides::default() }.into()
    }
}
