//! A call that is refused again and again: the third time the model is told to stop asking (requirement T2).

use agent_core::{ActionOutcome, Entry, ToolCall, ToolOutput, ToolResult};

use agent_tools::{ToolSet, resolve};

use super::Done;
use super::desk::Desk;

impl Desk<'_> {
    /// Adds to the words of a refusal when the same call was refused twice before in this turn. What was refused is
    /// counted from the results themselves, so that a restart changes nothing.
    pub(super) fn count_refusal(&self, done: &mut Done) {
        if done.outcome != ActionOutcome::Denied {
            return;
        }
        let number = self.refusals_of(&done.call) + 1;
        if number < STOP_ASKING_AT {
            return;
        }
        if let ToolOutput::Denied(words) = &done.output {
            done.output = ToolOutput::denied(format!(
                "{} This very call was refused {number} times in this turn: stop asking for it. Go on without it, or end your turn and tell the user what you need and why.",
                words.as_str()
            ));
        }
    }

    /// How often the same tool was refused with the same input, in the turn up to now.
    fn refusals_of(&self, call: &ToolCall) -> usize {
        let earlier = self.live.history.entries().get(self.turn_from.position()..).unwrap_or_default();
        let steps = earlier.iter().filter_map(Entry::as_step);
        let here = self
            .worked
            .results
            .iter()
            .filter_map(|result| Some((self.calls.iter().find(|call| call.id == result.call)?, result)));
        let pairs = steps.flat_map(|step| step.pairs()).chain(self.pending.answered()).chain(here);
        let tools = &self.site.config.tools;
        pairs.filter(|pair| is_refusal_of(tools, call, *pair)).count()
    }
}

/// Whether what was refused is this call, however it was written.
fn is_refusal_of(tools: &ToolSet, call: &ToolCall, (other, result): (&ToolCall, &ToolResult)) -> bool {
    let is_refused = matches!(result.output, ToolOutput::Denied(_));
    let is_same = |other: &ToolCall| other.name == call.name && other.input.as_str() == call.input.as_str();
    is_refused && resolve(tools, other).is_ok_and(|other| is_same(&other))
}

/// The refusal with which the model is told to stop asking.
const STOP_ASKING_AT: usize = 3;
