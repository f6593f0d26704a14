//! A session whose state cannot be read is closed where it stands: its history goes on, and nothing of the turn that was
//! open runs again (requirement D8).

use std::collections::BTreeSet;

use agent_core::{
    ActionCall, ActionOutcome, CallId, Closed, Diagnostic, Entry, Event, EventBody, Excerpt, Input,
    JournalRecord, ModelErrorKind, Note, NoteKind, PendingStep, RequestId, Slots, Spent, StandIn, StepNo,
    StoredInput, TerminalReason, Text, ToolOutput, ToolResult, TurnId, Usage,
};

use crate::HarnessError;
use crate::config::HarnessConfig;
use crate::live::{Live, Write};
use crate::outbox::{Outbox, Told};

/// What the events tell of the turn that is lost.
#[derive(Default)]
struct Traces {
    /// Its step at work, when it had begun.
    step: Option<StepNo>,
    /// The steps that are in the history, and their tokens.
    steps: u32,
    usage: Usage,
    /// Calls of the step at work.
    requested: Vec<ActionCall>,
    /// Calls of it whose result was told.
    told: BTreeSet<CallId>,
    /// What was asked and not closed.
    asked: Vec<(RequestId, CallId)>,
}

/// What the journal holds of the step at work.
#[derive(Default)]
struct Journaled {
    pending: Option<PendingStep>,
    results: Vec<ToolResult>,
    slots: Option<Slots>,
    /// What sub-agents used that ended.
    returned: Vec<Spent>,
}

impl Live {
    /// Closes the turn that was open, in one commit; what has to be told of it.
    ///
    /// An answer that is journaled becomes a step of the history, in which a call without a result is one whose outcome is not
    /// known. Where the answer is lost too, a note tells the model which calls it had asked for.
    pub(crate) async fn close_lost(
        &mut self,
        config: &HarnessConfig,
        stand_in: &StandIn,
        journal: Vec<JournalRecord>,
        inputs: &mut Vec<StoredInput>,
    ) -> Result<Diagnostic, HarnessError> {
        let mut why = format!("{}; the conversation is whole", stand_in.lost);
        tracing::warn!(session = %self.meta.id, why, "the state of the session could not be read");
        if stand_in.was_open {
            why.push_str(". The turn that was open is closed, and nothing of it runs again");
            let turn = TurnId::after(self.last_turn.saturating_sub(1));
            let left = config.store.salvage(&self.meta.id).await?.unwrap_or_default();
            let traces = Traces::of(&left.events, turn);
            let mut out = Outbox::new(self.meta.id.clone(), self.last_seq(), Told::unwatched());
            (out.turn, out.step) = (Some(turn), traces.step);
            self.refuse_replies(inputs, &mut out);
            let usage = self.close_step(Journaled::of(journal), &traces, &mut out)?;
            for (request, call) in traces.asked {
                out.stage(EventBody::InputClosed { request, call, how: Closed::Withdrawn });
            }
            out.step = None;
            let reason = TerminalReason::Interrupted;
            let mut spent = traces.usage;
            spent += &usage.clone().unwrap_or_default();
            let steps = traces.steps + u32::from(usage.is_some());
            out.stage(EventBody::TurnFailed { reason, message: why.clone(), steps, usage: spent });
            out.turn = None;
            out.stage(EventBody::SessionWaiting {});
            let write = Write {
                turn: None,
                turn_from: None,
                active: None,
                usage: usage.as_ref(),
                terminal: Some(&TerminalReason::Interrupted),
            };
            self.commit(config, &mut out, write).await?;
        }
        Ok(Diagnostic { what: "session".to_owned(), why })
    }

    /// Closes the step at work; the tokens of its answer, when that is kept.
    fn close_step(
        &mut self,
        journaled: Journaled,
        traces: &Traces,
        out: &mut Outbox,
    ) -> Result<Option<Usage>, HarnessError> {
        if let Some(slots) = journaled.slots {
            self.slots.update(|now| *now = slots);
        }
        journaled.returned.iter().for_each(|spent| self.children.add(spent));
        let untold = |call: &CallId| !traces.told.contains(call);
        let Some(mut pending) = journaled.pending else {
            if !traces.requested.is_empty() {
                self.push(Entry::Note(note(&traces.requested)))?;
            }
            for call in traces.requested.iter().filter(|call| untold(&call.call)) {
                out.stage(unknown(call.call.clone(), call.tool.clone()));
            }
            if traces.step.is_some() {
                let (kind, message) = (ModelErrorKind::Interrupted, LOST_STEP.to_owned());
                out.stage(EventBody::StepFailed { kind, message, usage: Usage::default() });
            }
            return Ok(None);
        };
        for result in journaled.results {
            // One that fits no call of the answer answers nothing.
            let _unfit = pending.answer(result);
        }
        for call in pending.unanswered().filter(|call| untold(&call.id)) {
            out.stage(unknown(call.id.clone(), call.name.clone()));
        }
        let step = pending.finish_with(|_| ToolOutput::error(OUTCOME_UNKNOWN));
        let (finish, usage) = (step.finish().clone(), step.usage().clone());
        self.usage += &usage;
        let entry = self.push(Entry::Step(step))?;
        let voided = Usage::default();
        // Which model answered is not in the journal.
        let model = None;
        out.stage(EventBody::StepCompleted { entry, finish, usage: usage.clone(), voided, model });
        Ok(Some(usage))
    }

    /// Replies came for requests that are no more; messages are heard by the next turn.
    fn refuse_replies(&mut self, inputs: &mut Vec<StoredInput>, out: &mut Outbox) {
        inputs.retain(|stored| match &stored.input {
            Input::Message { .. } => true,
            Input::Reply { request, .. } => {
                self.consumed.push(stored.id);
                let (what, why) = (
                    "requests".to_owned(),
                    format!("the reply to {request} came to nothing: the turn that asked is lost"),
                );
                out.stage(EventBody::RequestDiagnostic(Diagnostic { what, why }));
                false
            }
        });
    }
}

impl Traces {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other events tell nothing of a step at work")]
    fn of(events: &[Event], turn: TurnId) -> Self {
        let mut found = Self::default();
        for event in events.iter().filter(|event| event.turn == Some(turn)) {
            match &event.body {
                EventBody::StepStarted {} => found.step = event.step,
                EventBody::StepFailed { .. } => found.step = None,
                EventBody::StepCompleted { usage, .. } => {
                    found.steps += 1;
                    found.usage += usage;
                    found.step = None;
                    found.requested.clear();
                    found.told.clear();
                }
                EventBody::ActionsRequested { calls } => found.requested.extend_from_slice(calls),
                EventBody::ActionResult { call, .. } => {
                    found.told.insert(call.clone());
                }
                EventBody::InputRequested(asked) | EventBody::AuthorizationRequired(asked) => {
                    found.asked.push((asked.id.clone(), asked.call.clone()));
                }
                EventBody::InputClosed { request, .. } => found.asked.retain(|(id, _)| id != request),
                _ => {}
            }
        }
        found
    }
}

impl Journaled {
    fn of(journal: Vec<JournalRecord>) -> Self {
        let mut found = Self::default();
        for record in journal {
            match record {
                JournalRecord::Response(pending) => found.pending = Some(pending),
                JournalRecord::Finished { result, slots } => {
                    found.results.push(result);
                    found.slots = slots.or(found.slots);
                }
                JournalRecord::Returned(spent) => found.returned.push(spent),
                JournalRecord::Active(_)
                | JournalRecord::Started(_)
                | JournalRecord::Waits(_)
                | JournalRecord::Sent(_) => {}
            }
        }
        found
    }
}

fn unknown(call: CallId, tool: String) -> EventBody {
    let words = OUTCOME_UNKNOWN.into();
    let preview = Excerpt::of(&words, words.len());
    let bytes = words.len() as u64;
    EventBody::ActionResult { call, tool, outcome: ActionOutcome::Failed, preview, bytes }
}

fn note(calls: &[ActionCall]) -> Note {
    let line = |call: &ActionCall| {
        format!("- {}({})", call.tool, Excerpt::of(&call.input.as_str().into(), SHOWN_INPUT).as_str())
    };
    let calls: Vec<String> = calls.iter().map(line).collect();
    let text = format!("{LOST_CALLS}\n{}", calls.join("\n"));
    Note { kind: NoteKind::State, text: Text::or(text, LOST_STEP) }
}

const OUTCOME_UNKNOWN: &str = "Outcome unknown: what was stored of this call is damaged. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.";
const LOST_CALLS: &str = "Your last answer before this note is lost, because what was stored of it is damaged. It asked for the calls below. Each may have had all, part or none of its effect: look at the present state before you decide whether to call it again.";
const LOST_STEP: &str = "what was stored of the step at work is damaged";
/// Bytes of an input that a note shows.
const SHOWN_INPUT: usize = 500;
