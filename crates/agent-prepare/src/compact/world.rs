//! A scripted world for tests of compaction: a history with steps of known size, an accountant and a fake model.

use agent_core::{
    Accountant, AssistantPart, CallId, CompactionState, Entry, EntryId, History, ModelProfile, Note,
    NoteKind, Reasoning, Response, Rewrite, Seal, Slots, StepRecord, SystemBlock, Text, ToolCall, ToolInput,
    ToolOutput, ToolResult, UserMessage,
};

use super::{Cascade, Cause, CompactCx, Compacted, Compacting, Move};
use crate::{Answer, Ask, Synthesised, Way};

/// What a fake model answers to its n-th question.
pub(super) type Script = fn(&Ask, usize) -> Answer;

pub(super) struct World {
    pub(super) history: History,
    pub(super) accountant: Accountant,
    pub(super) model: ModelProfile,
    pub(super) apart: Option<ModelProfile>,
    pub(super) cached: bool,
    pub(super) slots: Slots,
    pub(super) state: CompactionState,
    pub(super) cascade: Cascade,
    pub(super) script: Script,
    /// Every question that was asked.
    pub(super) asked: Vec<Ask>,
    calls: usize,
}

/// What came of one look.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The moves, in a word or two each.
    pub(super) moves: Vec<String>,
    pub(super) written: Vec<Compacted>,
    pub(super) blocked: Option<Synthesised>,
}

impl World {
    /// A window of so many tokens, an eighth of which is kept for answers; no system prompt, no tools.
    pub(super) fn new(context_window: u32) -> Self {
        let max_output = context_window / 8;
        let model =
            ModelProfile { context_window, max_output, ..ModelProfile::conservative("acme", "harbour-1") };
        Self {
            history: History::new(),
            accountant: Accountant::default(),
            model,
            apart: None,
            cached: true,
            slots: Slots::default(),
            state: CompactionState::default(),
            cascade: Cascade::standard(),
            script: |_, _| Ok(words(100)),
            asked: Vec::new(),
            calls: 0,
        }
    }

    /// With a system prompt of so many tokens.
    pub(super) fn fixed(mut self, tokens: u64) -> Self {
        if tokens == 0 {
            return self;
        }
        self.accountant.set_fixed(&[SystemBlock::new("f".repeat(tokens as usize * 4)).unwrap()], &[]);
        self
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.history.push(entry).unwrap();
        self.accountant.follow(&self.history);
    }

    pub(super) fn user(&mut self, words: &str) {
        self.push(Entry::User(UserMessage::text(words).unwrap()));
    }

    pub(super) fn note(&mut self, words: &str) {
        self.push(Entry::Note(Note { kind: NoteKind::Reminder, text: Text::new(words).unwrap() }));
    }

    /// A step with one call whose result is a little under so many tokens.
    pub(super) fn step(&mut self, tokens: u64) {
        let n = self.calls;
        let input = format!(r#"{{"path":"dock/{n}.txt"}}"#);
        self.result(
            "read_file",
            &input,
            ToolOutput::text("r".repeat((tokens as usize * 4).saturating_sub(64).max(1))),
        );
    }

    /// A step with this call, which the model thought about first.
    pub(super) fn result(&mut self, tool: &str, input: &str, output: ToolOutput) {
        let id = CallId::new(format!("c{}", self.calls)).unwrap();
        self.calls += 1;
        let input = ToolInput::finished(input);
        let call = ToolCall { id: id.clone(), name: tool.into(), input, data: None };
        let seal = Seal::Signature { provider: "acme".into(), value: "sig".into() };
        let thought = Reasoning { text: "hm".into(), seal: Some(seal) };
        let said = Response::of(vec![AssistantPart::Reasoning(thought), AssistantPart::ToolCall(call)]);
        self.push(Entry::Step(StepRecord::new(said, vec![ToolResult { call: id, output }]).unwrap()));
    }

    /// The model's last words of a turn.
    pub(super) fn said(&mut self, words: &str) {
        let said = Response::of(vec![AssistantPart::text(words).unwrap()]);
        self.push(Entry::Step(StepRecord::new(said, vec![]).unwrap()));
    }

    pub(super) fn cx(&self) -> CompactCx<'_> {
        CompactCx {
            history: &self.history,
            accountant: &self.accountant,
            model: &self.model,
            apart: self.apart.as_ref(),
            cached: self.cached,
            slots: &self.slots,
            state: self.state,
            turn_from: EntryId::at(0),
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.accountant.used()
    }

    /// One look, as a driver would take it.
    pub(super) fn look(&mut self, cause: Cause) -> Look {
        let mut look = Look::default();
        let mut machine: Compacting = self.cascade.begin(cause);
        for _ in 0..40 {
            let next = machine.advance(&self.cascade.clone(), &self.cx());
            self.state = machine.state();
            match next {
                Move::Settled => {
                    look.moves.push("settled".into());
                    return look;
                }
                Move::Blocked(words) => {
                    look.moves.push("blocked".into());
                    look.blocked = Some(words);
                    return look;
                }
                Move::Ask { tier, ask } => {
                    let way = if matches!(ask.way, Way::OnPrefix { .. }) { " on prefix" } else { "" };
                    look.moves.push(format!("{tier} asks{way}"));
                    machine.answer((self.script)(&ask, self.asked.len()));
                    self.asked.push(ask);
                }
                Move::Failed { tier, .. } => look.moves.push(format!("{tier} fails")),
                Move::Rewrite(compacted) => {
                    look.moves.push(format!("{} writes", compacted.tier));
                    self.push(Entry::Boundary(compacted.rewrite.clone()));
                    for note in compacted.notes.clone() {
                        self.push(Entry::Note(note));
                    }
                    look.written.push(compacted);
                }
            }
        }
        panic!("a look that does not end: {:?}", look.moves);
    }

    /// Looks, and gives the moves in one line.
    pub(super) fn moves(&mut self, cause: Cause) -> String {
        self.look(cause).moves.join(", ")
    }

    /// The words of the newest summary boundary.
    pub(super) fn summary(&self) -> &str {
        let texts = self.history.entries().iter().rev().filter_map(|entry| match entry {
            Entry::Boundary(Rewrite::Summary { text, .. }) => Some(text.as_str()),
            Entry::Boundary(_) | Entry::User(_) | Entry::Step(_) | Entry::Note(_) => None,
        });
        texts.into_iter().next().expect("a summary")
    }
}

/// A text of so many words.
pub(super) fn words(n: usize) -> Text {
    let words: Vec<_> = (0..n).map(|n| ["anchor", "buoy", "crane", "dock"][n % 4]).collect();
    Text::new(words.join(" ")).unwrap()
}
