//! One output item while it arrives: its deltas are collected until it is complete.

use agent_core::{
    AssistantPart, CallId, ModelError, ModelEvent, ProviderPart, Reasoning, Seal, ToolCall, ToolInput,
};

use super::message::{Streamed, message};
use super::shape::{BETWEEN, CALL, MESSAGE, REASONING, WireItem, besides, data_of, raw_of};
use crate::classify::protocol;
use crate::names::ToolNames;
use crate::wire::json::{Joiner, object, quoted, received, replaced};

/// An item that has begun.
#[derive(Debug)]
pub(super) struct Item {
    kind: Kind,
    /// The item as it was announced.
    begun: String,
    /// The item as it was said to be complete; it wins over what was announced.
    finished: Option<String>,
    pieces: Vec<Piece>,
}

/// What a complete item is.
#[derive(Debug)]
pub(super) enum Done {
    Parts(Vec<AssistantPart>),
    /// A call of ours, whose input may have been cut.
    Call(PlainCall),
}

/// A call whose input text is not judged yet.
#[derive(Debug)]
pub(super) struct PlainCall {
    pub(super) call: ToolCall,
    pub(super) input: String,
}

/// Where a piece of text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// Words of a message.
    Text,
    /// Words that decline.
    Refusal,
    /// The summary of thinking.
    Summary,
    /// Thinking itself.
    Thought,
    /// The arguments of a call.
    Input,
}

/// What an item is read with: who is told of it, and what counts across items.
#[derive(Debug)]
pub(super) struct Watch<'w> {
    pub(super) out: &'w mut Vec<ModelEvent>,
    /// Blocks given out so far.
    pub(super) blocks: &'w mut u32,
    /// Calls begun so far.
    pub(super) calls: &'w mut usize,
    pub(super) names: &'w ToolNames,
    pub(super) provider: &'w str,
    /// Whether stand-ins for halves of surrogate pairs are in what is read.
    pub(super) lone: bool,
}

#[derive(Debug)]
enum Kind {
    Message,
    Reasoning { block: u32 },
    Call { block: u32, id: CallId, is_id_given: bool, name: String },
    Other,
}

/// The text of one slot, as far as it arrived.
#[derive(Debug)]
struct Piece {
    slot: Slot,
    /// Which part of the item.
    at: u64,
    block: u32,
    text: String,
    joiner: Joiner,
    annotations: Vec<String>,
}

impl Watch<'_> {
    pub(super) fn next_block(&mut self) -> u32 {
        let block = *self.blocks;
        *self.blocks = block.saturating_add(1);
        block
    }

    pub(super) fn text(&mut self, index: u32, text: &str) {
        if !text.is_empty() {
            self.out.push(ModelEvent::TextDelta { index, text: text.to_owned() });
        }
    }
}

impl Item {
    /// Opens an item as it is announced, or whole.
    pub(super) fn open(raw: &str, watch: &mut Watch<'_>) -> Result<Self, ModelError> {
        let item: WireItem<'_> =
            object(raw).map_err(|_| protocol("an item of the answer is no object", raw))?;
        let kind = match item.kind() {
            MESSAGE => Kind::Message,
            REASONING => Kind::Reasoning { block: watch.next_block() },
            CALL => {
                let (block, given) = (watch.next_block(), item.given_id());
                let (id, is_id_given) = (given.clone(), given.is_some());
                let id = id.unwrap_or_else(|| CallId::positional(*watch.calls));
                *watch.calls += 1;
                let call = Kind::Call { block, id, is_id_given, name: watch.names.real(item.name.as_str()) };
                // A call is announced with no input.
                watch.out.extend(call.delta(block, String::new()));
                call
            }
            _ => Kind::Other,
        };
        Ok(Self { kind, begun: raw.to_owned(), finished: None, pieces: Vec::new() })
    }

    /// An item of which only a delta is known.
    pub(super) fn implied(slot: Slot, watch: &mut Watch<'_>) -> Result<Self, ModelError> {
        let kind = match slot {
            Slot::Text | Slot::Refusal => MESSAGE,
            Slot::Summary | Slot::Thought => REASONING,
            Slot::Input => CALL,
        };
        Self::open(&format!(r#"{{"type":"{kind}"}}"#), watch)
    }

    /// Takes more of a text and tells it to those who watch.
    pub(super) fn take(&mut self, slot: Slot, at: u64, text: &str, watch: &mut Watch<'_>) {
        let Some(position) = self.piece(slot, at, watch) else { return };
        let piece = &mut self.pieces[position];
        let new = piece.joiner.join(text, watch.lone);
        piece.text.push_str(&new);
        let block = piece.block;
        self.tell(block, new, watch);
    }

    /// Takes a whole text: what of it was not streamed is told.
    pub(super) fn settle(&mut self, slot: Slot, at: u64, whole: &str, watch: &mut Watch<'_>) {
        let whole = received(whole, watch.lone);
        let Some(position) = self.piece(slot, at, watch) else { return };
        let piece = &mut self.pieces[position];
        let rest = rest_of(&piece.text, &whole).to_owned();
        match slot {
            // What will be executed is what was said to be complete, whatever was streamed.
            Slot::Input if !whole.trim().is_empty() => piece.text = whole,
            Slot::Text | Slot::Refusal | Slot::Summary | Slot::Thought | Slot::Input => {
                piece.text.push_str(&rest);
            }
        }
        piece.joiner = Joiner::default();
        let block = piece.block;
        self.tell(block, rest, watch);
    }

    /// Takes a source of a text.
    pub(super) fn annotate(&mut self, at: u64, raw: &str, watch: &mut Watch<'_>) {
        if let Some(position) = self.piece(Slot::Text, at, watch) {
            self.pieces[position].annotations.push(received(raw, watch.lone));
        }
    }

    /// Takes the complete item.
    pub(super) fn finish(&mut self, raw: &str) -> Result<(), ModelError> {
        object::<WireItem<'_>>(raw).map_err(|_| protocol("an item of the answer is no object", raw))?;
        self.finished = Some(raw.to_owned());
        Ok(())
    }

    /// Whether the provider said that it is complete.
    pub(super) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// The item as parts of ours.
    pub(super) fn close(mut self, watch: &mut Watch<'_>) -> Done {
        for piece in &mut self.pieces {
            let rest = piece.joiner.end();
            piece.text.push_str(rest);
            if !rest.is_empty() {
                watch.out.extend(self.kind.delta(piece.block, rest.to_owned()));
            }
        }
        let raw = self.finished.as_deref().unwrap_or(&self.begun).to_owned();
        let item: WireItem<'_> = object(&raw).unwrap_or_default();
        match &self.kind {
            Kind::Message => self.message(&item, &raw, watch),
            Kind::Reasoning { block } => self.reasoning(*block, &item, &raw, watch),
            Kind::Call { block, id, is_id_given, name } => {
                let late = item.given_id().filter(|_| !is_id_given);
                let (id, name) = (late.unwrap_or_else(|| id.clone()), name.clone());
                let input = self.input(*block, &item, watch);
                Done::Call(call(PlainCall::new(id, name, input), &item, &raw, watch))
            }
            Kind::Other => Done::Parts(vec![other(&item, &raw, watch)]),
        }
    }

    fn message(&self, item: &WireItem<'_>, raw: &str, watch: &mut Watch<'_>) -> Done {
        let streamed = self.pieces.iter().map(|piece| Streamed {
            at: piece.at,
            block: piece.block,
            text: &piece.text,
            is_refusal: piece.slot == Slot::Refusal,
            annotations: &piece.annotations,
        });
        let mut fields = besides(raw, &["type", "role", "content"], watch.lone);
        if !self.is_finished() {
            fields.retain(|(key, _)| key != "status");
        }
        match message(item.content, streamed.collect(), &fields, watch) {
            Some(parts) => Done::Parts(parts),
            None => Done::Parts(vec![other(item, raw, watch)]),
        }
    }

    fn reasoning(&self, block: u32, item: &WireItem<'_>, raw: &str, watch: &mut Watch<'_>) -> Done {
        let mut text: String = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        let whole = item.thinking(watch.lone);
        let rest = rest_of(&text, &whole);
        text.push_str(rest);
        self.tell(block, rest.to_owned(), watch);
        let raw = if self.is_finished() { raw.to_owned() } else { replaced(raw, &self.thought()) };
        let seal = Seal::Item { provider: watch.provider.to_owned(), raw: raw_of(&raw, watch.lone) };
        Done::Parts(vec![AssistantPart::Reasoning(Reasoning { text, seal: Some(seal) })])
    }

    /// What was streamed of thinking, as fields of its item.
    fn thought(&self) -> Vec<(String, String)> {
        let list = |slot: Slot, key: &str, kind: &str| {
            let texts = self.pieces.iter().filter(|piece| piece.slot == slot);
            let texts = texts.map(|piece| piece.text.strip_prefix(BETWEEN).unwrap_or(&piece.text));
            let parts: Vec<String> =
                texts.map(|text| format!(r#"{{"type":"{kind}","text":{}}}"#, quoted(text))).collect();
            (!parts.is_empty()).then(|| (key.to_owned(), format!("[{}]", parts.join(","))))
        };
        let summary = list(Slot::Summary, "summary", "summary_text");
        summary.into_iter().chain(list(Slot::Thought, "content", "reasoning_text")).collect()
    }

    /// The input of a call; what was said to be complete wins over what was streamed.
    fn input(&self, block: u32, item: &WireItem<'_>, watch: &mut Watch<'_>) -> String {
        let streamed: String = self.pieces.iter().map(|piece| piece.text.as_str()).collect();
        let whole = item.input(watch.lone);
        let input = if whole.trim().is_empty() { streamed.clone() } else { whole };
        self.tell(block, rest_of(&streamed, &input).to_owned(), watch);
        input
    }

    /// The piece of a slot; `None` when the item has no such slot.
    fn piece(&mut self, slot: Slot, at: u64, watch: &mut Watch<'_>) -> Option<usize> {
        let known = self.pieces.iter().position(|piece| (piece.slot, piece.at) == (slot, at));
        if known.is_some() {
            return known;
        }
        let (block, is_new_thought) = match (&self.kind, slot) {
            (Kind::Message, Slot::Text | Slot::Refusal) => (watch.next_block(), false),
            (Kind::Reasoning { block }, Slot::Summary | Slot::Thought) => (*block, !self.pieces.is_empty()),
            (Kind::Call { block, .. }, Slot::Input) => (*block, false),
            (Kind::Message | Kind::Reasoning { .. } | Kind::Call { .. } | Kind::Other, _) => {
                tracing::debug!(?slot, "a delta that this item does not take is skipped");
                return None;
            }
        };
        let text = if is_new_thought { BETWEEN.to_owned() } else { String::new() };
        self.tell(block, text.clone(), watch);
        let annotations = Vec::new();
        self.pieces.push(Piece { slot, at, block, text, joiner: Joiner::default(), annotations });
        Some(self.pieces.len() - 1)
    }

    /// Tells news to those who watch.
    fn tell(&self, block: u32, new: String, watch: &mut Watch<'_>) {
        if !new.is_empty() {
            watch.out.extend(self.kind.delta(block, new));
        }
    }
}

impl Kind {
    fn delta(&self, index: u32, text: String) -> Option<ModelEvent> {
        match self {
            Self::Message => Some(ModelEvent::TextDelta { index, text }),
            Self::Reasoning { .. } => Some(ModelEvent::ReasoningDelta { index, text }),
            Self::Call { id, name, .. } => {
                let (call, tool) = (id.clone(), name.as_str().into());
                Some(ModelEvent::ToolInputDelta { index, call, tool, json: text })
            }
            Self::Other => None,
        }
    }
}

impl PlainCall {
    fn new(id: CallId, name: String, input: String) -> Self {
        Self { call: ToolCall { id, name, input: ToolInput::finished(""), data: None }, input }
    }

    /// The call with its input judged.
    pub(super) fn judged(self, judge: fn(&str) -> ToolInput) -> AssistantPart {
        AssistantPart::ToolCall(ToolCall { input: judge(&self.input), ..self.call })
    }
}

/// A call with what the complete item says of it besides its input.
fn call(mut plain: PlainCall, item: &WireItem<'_>, raw: &str, watch: &Watch<'_>) -> PlainCall {
    if !item.name.as_str().is_empty() {
        plain.call.name = watch.names.real(item.name.as_str());
    }
    let fields = besides(raw, &["type", "call_id", "name", "arguments"], watch.lone);
    plain.call.data = data_of(watch.provider, &fields);
    plain
}

/// What a whole text adds to what was streamed of it; nothing when it is another one, since what was seen stands.
pub(super) fn rest_of<'w>(streamed: &str, whole: &'w str) -> &'w str {
    whole.strip_prefix(streamed).unwrap_or_default()
}

/// An item that only its provider understands.
fn other(item: &WireItem<'_>, raw: &str, watch: &Watch<'_>) -> AssistantPart {
    AssistantPart::Provider(ProviderPart {
        provider: watch.provider.to_owned(),
        kind: item.kind().to_owned(),
        raw: raw_of(raw, watch.lone),
    })
}
