//! What the turn has the model told before a step, as a last stage of the pipeline: a note behind the conversation, and a
//! choice of tools where that costs no cache.

use agent_core::{Note, NoteKind, Text, ToolChoice};
use agent_prepare::{Overrides, Pipeline, Stage, StageCx, Verdict};
use agent_turn::{Guidance, Mode, Task};

use super::Drive;

/// The stage behind all others.
#[derive(Debug)]
struct Guide {
    guidance: Guidance,
    /// The tool for the final output, in a task that has one.
    output_tool: Option<String>,
    /// Whether another choice has the provider read the conversation anew.
    choice_costs: bool,
}

impl Drive {
    /// The pipeline of the step at work.
    pub(super) fn guided(&self) -> Pipeline {
        let pipeline = self.config.pipeline.clone();
        let Some(guidance) = self.turn.guidance().cloned() else { return pipeline };
        let output_tool = match &self.config.mode {
            Mode::Task(Task { output_tool, .. }) => output_tool.clone(),
            Mode::Conversation => None,
        };
        pipeline.then(Guide { guidance, output_tool, choice_costs: self.live.cache.choice_counts() })
    }
}

impl Stage for Guide {
    fn name(&self) -> &'static str {
        "turn"
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        let output_tool = self.output_tool.as_deref().filter(|tool| cx.has_tool(tool));
        let words = self.words(output_tool);
        let mut changes = Overrides { tool_choice: self.choice(cx, output_tool), ..Overrides::default() };
        // A step that another process prepared has its note already.
        if let Some(text) = Text::new(words).filter(|text| !cx.stands(text.as_str())) {
            changes = changes.note(Note { kind: NoteKind::Nudge, text });
        }
        changes.into()
    }
}

impl Guide {
    fn words(&self, output_tool: Option<&str>) -> String {
        match (&self.guidance, output_tool) {
            (Guidance::LastCall { stop, .. }, Some(tool)) => format!(
                "This is your last step: the limit {stop} is reached. Call `{tool}` now with the best result you have; say in it what is missing."
            ),
            (Guidance::LastCall { stop, .. }, None) => format!(
                "This is your last step: the limit {stop} is reached. Call no more tools. Say what was done, what was found and what is left to do."
            ),
            (Guidance::Advice(words) | Guidance::Nudge(words), _) => words.clone(),
            (Guidance::Deliver(tool), _) => format!(
                "The task ends with a call of `{tool}`, and there was none. Call it now with the result; words alone are not passed on."
            ),
        }
    }

    fn choice(&self, cx: &StageCx<'_>, output_tool: Option<&str>) -> Option<ToolChoice> {
        let force = |tool: &str| cx.can_force().then(|| ToolChoice::Tool(tool.to_owned()));
        match (&self.guidance, output_tool) {
            // Without it the turn has no result, which is dearer than a prompt read anew.
            (Guidance::LastCall { .. } | Guidance::Deliver(_), Some(tool)) => force(tool),
            // A tool that is forced would leave no room for words.
            (Guidance::LastCall { .. }, None)
                if (!self.choice_costs || is_forced(cx)) && !cx.of.tools.is_empty() =>
            {
                Some(ToolChoice::None)
            }
            (Guidance::LastCall { .. } | Guidance::Deliver(_), None)
            | (Guidance::Advice(_) | Guidance::Nudge(_), _) => None,
        }
    }
}

/// Whether a stage before has the model call a tool.
fn is_forced(cx: &StageCx<'_>) -> bool {
    let choice = cx.so_far.tool_choice.as_ref();
    choice.is_some_and(|choice| {
        matches!(
            choice,
            ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::Allowed { required: true, .. }
        )
    })
}
