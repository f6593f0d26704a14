//! What is being said: words, thinking or a call, until its part is complete.

use agent_core::{AssistantPart, CallId, ModelError, ModelEvent, ToolCall, ToolInput};

use super::args::Args;
use super::part::{WireCall, data, is_signature, text_part, thought_part};
use crate::classify::protocol;
use crate::wire::json::{Joiner, quoted, received, text_or_raw};

/// A part that has begun.
#[derive(Debug)]
pub(super) struct Block {
    index: u32,
    kind: Kind,
    /// Fields that go back with the part.
    beside: Vec<(String, String)>,
    joiner: Joiner,
}

#[derive(Debug)]
pub(super) enum Kind {
    Text(String),
    Thought(String),
    Call(OpenCall),
}

/// A call whose input may still grow.
#[derive(Debug)]
pub(super) struct OpenCall {
    id: CallId,
    /// Whether the provider gave the id, and knows it when it comes back.
    is_own: bool,
    name: String,
    /// The name on the wire.
    wire: String,
    /// Input given as a whole.
    whole: String,
    /// Input given value by value.
    args: Args,
    told: bool,
    continues: bool,
}

impl Kind {
    pub(super) fn text() -> Self {
        Self::Text(String::new())
    }

    pub(super) fn thought() -> Self {
        Self::Thought(String::new())
    }
}

impl OpenCall {
    pub(super) fn new(id: CallId, is_own: bool, name: String, wire: &str) -> Self {
        let (wire, whole, args) = (wire.to_owned(), String::new(), Args::default());
        Self { id, is_own, name, wire, whole, args, told: false, continues: false }
    }

    fn delta(&self, index: u32, json: String) -> ModelEvent {
        let (call, tool) = (self.id.clone(), self.name.as_str().into());
        ModelEvent::ToolInputDelta { index, call, tool, json }
    }
}

impl Block {
    pub(super) fn new(index: u32, kind: Kind) -> Self {
        Self { index, kind, beside: Vec::new(), joiner: Joiner::default() }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Call(_))
    }

    /// Whether both are words, or both thinking.
    pub(super) fn is_like(&self, kind: &Kind) -> bool {
        matches!((&self.kind, kind), (Kind::Text(_), Kind::Text(_)) | (Kind::Thought(_), Kind::Thought(_)))
    }

    /// Whether a piece of a call belongs to this one: it names no other, and brings no input of its own.
    pub(super) fn goes_on_in(&self, wire: &WireCall<'_>) -> bool {
        let Kind::Call(call) = &self.kind else { return false };
        let (id, name) = (wire.id.as_str(), wire.name.as_str());
        let is_same = (id.is_empty() || id == call.id.as_str()) && (name.is_empty() || name == call.wire);
        is_same && (name.is_empty() || wire.args.is_none())
    }

    /// Keeps what stands beside a piece of the part; a later signature replaces an earlier one.
    pub(super) fn keep(&mut self, fields: Vec<(String, String)>) {
        for (key, raw) in fields {
            let known = |name: &str| name == key || (is_signature(name) && is_signature(&key));
            match self.beside.iter_mut().find(|(name, _)| known(name)) {
                Some((_, old)) => *old = raw,
                None => self.beside.push((key, raw)),
            }
        }
    }

    /// More words.
    pub(super) fn say(&mut self, words: &str, lone: bool, out: &mut Vec<ModelEvent>) {
        let index = self.index;
        let new = self.joiner.join(words, lone);
        if new.is_empty() {
            return;
        }
        match &mut self.kind {
            Kind::Text(text) => {
                text.push_str(&new);
                out.push(ModelEvent::TextDelta { index, text: new });
            }
            Kind::Thought(text) => {
                text.push_str(&new);
                out.push(ModelEvent::ReasoningDelta { index, text: new });
            }
            Kind::Call(_) => {}
        }
    }

    /// More of a call's input. The first piece announces the call.
    pub(super) fn fill(&mut self, wire: &WireCall<'_>, lone: bool, out: &mut Vec<ModelEvent>) {
        let Kind::Call(call) = &mut self.kind else { return };
        if !std::mem::replace(&mut call.told, true) {
            out.push(call.delta(self.index, String::new()));
        }
        call.continues = wire.continues();
        let mut new = wire.partial_args.map(|list| call.args.take(list, lone)).unwrap_or_default();
        let given = wire.args.map(text_or_raw).filter(|_| call.args.is_empty() && call.whole.is_empty());
        if let Some(given) = given.filter(|given| !given.trim().is_empty()) {
            call.whole = received(&given, lone);
            new.push_str(&call.whole);
        }
        if !new.is_empty() {
            out.push(call.delta(self.index, new));
        }
    }

    /// The part, and the last deltas of it. `was_cut` says that the answer ended at the output limit.
    pub(super) fn close(
        mut self,
        provider: &str,
        was_cut: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let rest = self.joiner.end();
        let (index, mut beside) = (self.index, self.beside);
        let part = match self.kind {
            Kind::Text(text) => {
                if !rest.is_empty() {
                    out.push(ModelEvent::TextDelta { index, text: rest.to_owned() });
                }
                text_part(provider, text + rest, &beside)
            }
            Kind::Thought(text) => thought_part(provider, text + rest, &beside),
            Kind::Call(mut call) => {
                let is_cut = was_cut && call.continues;
                let end = if is_cut { String::new() } else { call.args.end() };
                if !end.is_empty() {
                    out.push(call.delta(index, end));
                }
                if call.is_own {
                    beside.insert(0, ("id".to_owned(), quoted(call.id.as_str())));
                }
                call_part(provider, call, &beside, is_cut).map(Some)
            }
        };
        let part =
            part.map_err(|_| protocol("what stands beside a part cannot be kept", &format!("{beside:?}")))?;
        out.extend(part.map(ModelEvent::Part));
        Ok(())
    }
}

fn call_part(
    provider: &str,
    call: OpenCall,
    beside: &[(String, String)],
    is_cut: bool,
) -> Result<AssistantPart, serde_json::Error> {
    let text = if call.args.is_empty() { call.whole } else { call.args.into_text() };
    let input = if is_cut { ToolInput::cut(&text) } else { ToolInput::finished(&text) };
    let data = data(provider, beside)?;
    Ok(AssistantPart::ToolCall(ToolCall { id: call.id, name: call.name, input, data }))
}
