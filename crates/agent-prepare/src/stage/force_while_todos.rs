//! No early end: a tool must be called while the todo list has open items.

use std::collections::BTreeSet;

use agent_core::{COMPLETE_TOOL, StepRecord, Todo, ToolChoice, ToolOutput};

use super::{Stage, StageCx, Verdict};
use crate::Overrides;

/// Makes the model call a tool while items of the todo list are open (requirements P3, P17).
///
/// The choice is held: from the first step of a turn at which items are open to the turn's end where the session has the
/// tool [`COMPLETE_TOOL`], which then ends it, and until all items are done where not. Each change of the choice makes some
/// providers read the conversation anew, so there are as few as can be.
///
/// It lets go when nothing moves: when several steps in a row only repeat calls that were made since the list changed, or
/// when the list did not change for eight times as many steps. It then leaves the model alone until the list changes.
///
/// A model that cannot be forced, or that thinks and cannot be forced then, gets words instead. A choice that a stage
/// before made stands.
///
/// ```
/// use agent_core::{ModelProfile, RawJson, Todo, TodoStatus, ToolCard, ToolChoice};
/// use agent_prepare::{ForceWhileTodos, Pipeline, Scene};
///
/// let model = ModelProfile { forced_tool_choice: true, ..ModelProfile::conservative("harbour", "pilot") };
/// let mut scene = Scene::new(model);
/// scene.tools = vec![ToolCard::new("todo", "", &RawJson::empty_object()).unwrap()];
/// let open = Todo { id: "1".into(), text: "moor the boat".into(), status: TodoStatus::Pending };
/// scene.slots.todos = vec![open];
///
/// let pipeline = Pipeline::standard().then(ForceWhileTodos::default());
/// assert_eq!(scene.prepare(&pipeline)?.ready().unwrap().tool_choice, ToolChoice::Required);
///
/// scene.model.forced_tool_choice = false;
/// let prepared = scene.prepare(&pipeline)?.ready().unwrap();
/// assert!(prepared.ephemeral[0].as_str().contains("1: moor the boat"));
/// # Ok::<(), agent_prepare::PrepareError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ForceWhileTodos {
    tool: String,
    patience: usize,
    in_words: bool,
}

impl Default for ForceWhileTodos {
    fn default() -> Self {
        Self { tool: "todo".to_owned(), patience: 4, in_words: false }
    }
}

impl ForceWhileTodos {
    /// The tool that writes the list; `todo` by default.
    #[must_use]
    pub fn tool(self, name: impl Into<String>) -> Self {
        Self { tool: name.into(), ..self }
    }

    /// How many steps in a row may bring nothing new, at least one; 4 by default.
    #[must_use]
    pub fn patience(self, steps: u32) -> Self {
        Self { patience: usize::try_from(steps.max(1)).unwrap_or(usize::MAX), ..self }
    }

    /// Asks in words and never forces: for models that do without it, whose cache a change of the choice would cost.
    #[must_use]
    pub fn in_words(self) -> Self {
        Self { in_words: true, ..self }
    }

    fn forces(&self, cx: &StageCx<'_>) -> bool {
        cx.can_force() && !self.in_words
    }

    fn look(&self, cx: &StageCx<'_>) -> Lately {
        let most = self.patience.saturating_mul(LONG);
        let mut steps: Vec<&StepRecord> = cx.steps().rev().take(most).collect();
        steps.reverse();
        let mut list = None;
        let mut changed_at = None;
        for (at, step) in steps.iter().enumerate() {
            let written =
                step.pairs().filter(|(call, result)| call.name == self.tool && is_good(&result.output));
            for (call, _) in written {
                // The same list sent again changes nothing.
                let is_same = list.replace(call.input.as_str()) == Some(call.input.as_str());
                changed_at = if is_same { changed_at } else { Some(at) };
            }
        }
        let longest = longest_repetition(steps.iter().skip(changed_at.unwrap_or(0)));
        let is_long = changed_at.is_none() && steps.len() >= most;
        Lately { list_changed: changed_at.is_some(), is_stuck: is_long || longest >= self.patience }
    }
}

/// What the last steps of the turn brought.
struct Lately {
    list_changed: bool,
    is_stuck: bool,
}

impl Stage for ForceWhileTodos {
    fn name(&self) -> &'static str {
        "force_while_todos"
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        let is_chosen = !matches!(cx.so_far.tool_choice, None | Some(ToolChoice::Auto));
        if is_chosen || cx.of.tools.is_empty() || cx.of.slots.todos.is_empty() {
            return Verdict::unchanged();
        }
        let lately = self.look(cx);
        let open: Vec<&Todo> = cx.of.slots.open_todos().collect();
        let forces = self.forces(cx);
        let is_held = forces && lately.list_changed && cx.has_tool(COMPLETE_TOOL);
        if lately.is_stuck || (open.is_empty() && !is_held) {
            return Verdict::unchanged();
        }
        if forces {
            return Overrides { tool_choice: Some(ToolChoice::Required), ..Overrides::default() }.into();
        }
        Overrides::default().remind(words(&open)).into()
    }
}

/// The most steps in a row that made no call which was not made before.
fn longest_repetition<'s>(steps: impl Iterator<Item = &'s &'s StepRecord>) -> usize {
    let mut made = BTreeSet::new();
    let (mut run, mut longest) = (0, 0);
    for step in steps {
        let before = made.len();
        made.extend(step.response().calls().map(|call| (call.name.as_str(), call.input.as_str())));
        run = if made.len() > before { 0 } else { run + 1 };
        longest = longest.max(run);
    }
    longest
}

fn is_good(output: &ToolOutput) -> bool {
    !matches!(output, ToolOutput::Error(_) | ToolOutput::Denied(_))
}

fn words(open: &[&Todo]) -> String {
    let items = open.iter().map(|todo| format!("\n- {}: {}", todo.id, todo.text)).collect::<String>();
    format!(
        "The todo list has open items. Go on with them by calling tools, and keep the list up to date; do not answer before all are done. If an item is no longer wanted, take it off the list.{items}"
    )
}

/// So many times the patience may pass without a change of the list.
const LONG: usize = 8;

#[cfg(test)]
mod tests;
