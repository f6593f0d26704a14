//! The blocks of one answer in the order the model began them; each is given once nothing can be added to it.

use agent_core::{AssistantPart, AssistantText, ModelEvent, ProviderData, ProviderPart, RawJson, Text};

use super::calls::{Call, WireCall};
use super::thought::{Piece, Thought};
use crate::names::ToolNames;
use crate::wire::json::{Joiner, quoted};

/// What an answer holds so far.
#[derive(Debug)]
pub(super) struct Blocks {
    names: ToolNames,
    provider: String,
    all: Vec<Slot>,
    /// Invariant: the slots before it are [`Slot::Given`].
    given: usize,
    calls: usize,
    chunk: u64,
    is_recorded: bool,
}

#[derive(Debug)]
enum Slot {
    Given,
    Text(Words),
    Thought(Thought),
    Call(Call),
    Part(ProviderPart),
}

#[derive(Debug, Default)]
struct Words {
    text: String,
    joiner: Joiner,
    is_refusal: bool,
    data: Option<RawJson>,
}

impl Blocks {
    pub(super) fn new(names: ToolNames, provider: &str) -> Self {
        Self {
            names,
            provider: provider.to_owned(),
            all: Vec::new(),
            given: 0,
            calls: 0,
            chunk: 0,
            is_recorded: false,
        }
    }

    /// For messages that were sent before: nothing in them is mended.
    pub(super) fn recorded(provider: &str) -> Self {
        Self { is_recorded: true, ..Self::new(ToolNames::default(), provider) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.calls > 0
    }

    /// More words, or more of a refusal.
    pub(super) fn text(&mut self, new: &str, lone: bool, is_refusal: bool, out: &mut Vec<ModelEvent>) {
        if new.is_empty() {
            return;
        }
        if !matches!(self.all.last(), Some(Slot::Text(words)) if words.is_refusal == is_refusal) {
            self.all.push(Slot::Text(Words { is_refusal, ..Words::default() }));
        }
        let index = self.latest();
        if let Some(Slot::Text(words)) = self.all.last_mut() {
            let text = words.joiner.join(new, lone);
            words.text.push_str(&text);
            if !text.is_empty() {
                out.push(ModelEvent::TextDelta { index, text });
            }
        }
    }

    /// More thinking.
    pub(super) fn thought(&mut self, new: &str, lone: bool, out: &mut Vec<ModelEvent>) {
        if new.is_empty() {
            return;
        }
        if !matches!(self.all.last(), Some(Slot::Thought(_))) {
            self.all.push(Slot::Thought(Thought::default()));
        }
        let index = self.latest();
        if let Some(Slot::Thought(thought)) = self.all.last_mut() {
            let text = thought.joiner.join(new, lone);
            thought.text.push_str(&text);
            if !text.is_empty() {
                out.push(ModelEvent::ReasoningDelta { index, text });
            }
        }
    }

    /// A piece of an item of thinking: it grows where it began, even behind the first words.
    pub(super) fn detail(&mut self, piece: Piece) {
        let mut thoughts = self.all.iter_mut().rev().filter_map(|slot| match slot {
            Slot::Thought(thought) => Some(thought),
            Slot::Given | Slot::Text(_) | Slot::Call(_) | Slot::Part(_) => None,
        });
        if thoughts.any(|thought| thought.grow(&piece)) {
            return;
        }
        if !matches!(self.all.last(), Some(Slot::Thought(_))) {
            self.all.push(Slot::Thought(Thought::default()));
        }
        if let Some(Slot::Thought(thought)) = self.all.last_mut() {
            thought.add(piece);
        }
    }

    /// Opens a list of pieces of calls: two named ones of it are two calls.
    pub(super) fn open_list(&mut self) {
        self.chunk += 1;
    }

    /// A piece of a call.
    pub(super) fn call(&mut self, piece: &WireCall<'_>, raw: &str, lone: bool, out: &mut Vec<ModelEvent>) {
        let calls = self.all.iter().enumerate().filter_map(|(at, slot)| match slot {
            Slot::Call(call) => Some((at, call)),
            Slot::Given | Slot::Text(_) | Slot::Thought(_) | Slot::Part(_) => None,
        });
        let at = Call::find(calls, piece, self.chunk).unwrap_or_else(|| {
            self.all.push(Slot::Call(Call::begin(piece, self.calls)));
            self.calls += 1;
            self.all.len() - 1
        });
        if let Some(Slot::Call(call)) = self.all.get_mut(at) {
            call.take(piece, raw, lone, self.chunk);
            call.tell(index(at), &self.names, out);
        }
    }

    /// A part that only the provider understands.
    pub(super) fn part(&mut self, kind: &str, raw: RawJson) {
        let provider = self.provider.clone();
        self.all.push(Slot::Part(ProviderPart { provider, kind: kind.to_owned(), raw }));
    }

    /// Fields that belong to the last words; given back when those were given already.
    pub(super) fn annotate(&mut self, data: RawJson) -> Option<RawJson> {
        let words = self.all.iter_mut().rev().find_map(|slot| match slot {
            Slot::Text(words) => Some(words),
            Slot::Given | Slot::Thought(_) | Slot::Call(_) | Slot::Part(_) => None,
        });
        match words {
            Some(words) => {
                words.data = Some(data);
                None
            }
            None => Some(data),
        }
    }

    /// Gives the first blocks, as far as nothing can be added to them.
    pub(super) fn release(&mut self, out: &mut Vec<ModelEvent>) {
        while let Some(slot) = self.all.get(self.given) {
            let is_last = self.given + 1 == self.all.len();
            let is_open = match slot {
                Slot::Text(_) => is_last,
                Slot::Thought(thought) => is_last || thought.is_itemised(),
                Slot::Call(_) => true,
                Slot::Given | Slot::Part(_) => false,
            };
            if is_open {
                break;
            }
            self.give(self.given, false, out);
            self.given += 1;
        }
    }

    /// Gives everything. Only the last call can have been cut by the output limit.
    pub(super) fn finish(&mut self, was_cut: bool, out: &mut Vec<ModelEvent>) {
        let last = self.all.iter().rposition(|slot| matches!(slot, Slot::Call(_)));
        for at in self.given..self.all.len() {
            self.give(at, was_cut && Some(at) == last, out);
        }
        self.given = self.all.len();
    }

    fn give(&mut self, at: usize, was_cut: bool, out: &mut Vec<ModelEvent>) {
        let Some(slot) = self.all.get_mut(at) else { return };
        let parts = match std::mem::replace(slot, Slot::Given) {
            Slot::Given => Vec::new(),
            Slot::Text(words) => words.close(&self.provider).into_iter().collect(),
            Slot::Thought(thought) => thought.close(&self.provider),
            Slot::Call(call) if call.is_phantom() => {
                tracing::warn!(at, "a call without name and input is left out");
                self.calls -= 1;
                Vec::new()
            }
            Slot::Call(mut call) => {
                if !self.is_recorded {
                    call.mend();
                }
                vec![call.close(&self.names, &self.provider, was_cut)]
            }
            Slot::Part(part) => vec![AssistantPart::Provider(part)],
        };
        out.extend(parts.into_iter().map(ModelEvent::Part));
    }

    fn latest(&self) -> u32 {
        index(self.all.len().saturating_sub(1))
    }
}

impl Words {
    /// `None` when they are blank.
    fn close(mut self, provider: &str) -> Option<AssistantPart> {
        self.text.push_str(self.joiner.end());
        let text = Text::new(self.text)?;
        let json = match (self.is_refusal, self.data) {
            (true, _) => RawJson::parse(format!("{{{}:true}}", quoted(REFUSAL))).ok(),
            (false, data) => data,
        };
        let data = json.map(|json| ProviderData { provider: provider.to_owned(), json });
        Some(AssistantPart::Text(AssistantText { text, data }))
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Marks words that decline, in their data.
pub(super) const REFUSAL: &str = "refusal";
