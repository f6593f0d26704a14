//! What waits for the end of an answer: whether a call was cut is known only there.

use agent_core::{AssistantPart, ModelEvent, ToolInput};

use super::item::PlainCall;

/// Parts behind a call whose input is not complete JSON.
///
/// Invariant: empty, or the first one is such a call.
#[derive(Debug, Default)]
pub(super) struct Held(Vec<Waiting>);

#[derive(Debug)]
enum Waiting {
    Part(AssistantPart),
    Call(PlainCall),
}

impl Held {
    /// Gives a part, unless something before it waits.
    pub(super) fn part(&mut self, part: AssistantPart, out: &mut Vec<ModelEvent>) {
        if self.0.is_empty() {
            out.push(ModelEvent::Part(part));
        } else {
            self.0.push(Waiting::Part(part));
        }
    }

    /// Gives a call whose input is complete; another one waits.
    pub(super) fn call(&mut self, plain: PlainCall, out: &mut Vec<ModelEvent>) {
        if ToolInput::cut(&plain.input).json().is_some() {
            self.part(plain.judged(ToolInput::finished), out);
        } else {
            self.0.push(Waiting::Call(plain));
        }
    }

    /// Lets held parts go. Only the last call of an answer can have been cut by the output limit.
    pub(super) fn release(&mut self, was_cut: bool, out: &mut Vec<ModelEvent>) {
        let last = self.0.iter().rposition(|held| match held {
            Waiting::Call(_) => true,
            Waiting::Part(part) => part.as_call().is_some(),
        });
        for (at, held) in std::mem::take(&mut self.0).into_iter().enumerate() {
            out.push(ModelEvent::Part(match held {
                Waiting::Part(part) => part,
                Waiting::Call(plain) if was_cut && Some(at) == last => plain.judged(ToolInput::cut),
                Waiting::Call(plain) => plain.judged(ToolInput::finished),
            }));
        }
    }
}
