//! The events and bodies of the Responses format, decoded into ours.

use std::collections::BTreeMap;

use agent_core::{AssistantPart, Finish, FinishKind, ModelError, ModelErrorKind, ModelEvent, Origin};
use serde_json::value::RawValue;

use super::event::{Repeats, WireEvent, WireReason, WireResponse, read, response, slot};
use super::held::Held;
use super::item::{Done, Item, Slot, Watch};
use super::shape::is_refusal;
use super::usage::usage;
use crate::classify::{ResponseHead, classify, protocol};
use crate::names::ToolNames;
use crate::wire::json::{LooseInt, text_or_raw};
use crate::wire::{Codec, Dialect, Json, Progress};

/// The state of one answer. Items are told apart by their place in the answer: some gateways give an item another
/// id in each event.
#[derive(Debug)]
pub(crate) struct ResponsesCodec {
    names: ToolNames,
    provider: String,
    started: Option<String>,
    repeats: Repeats,
    open: BTreeMap<u64, Item>,
    /// Items begun so far.
    begun: usize,
    held: Held,
    calls: usize,
    blocks: u32,
    called: bool,
    refused: bool,
}

impl ResponsesCodec {
    pub(crate) fn new(dialect: &Dialect, names: ToolNames) -> Self {
        Self {
            names,
            provider: dialect.provider.clone(),
            started: None,
            repeats: Repeats::default(),
            open: BTreeMap::new(),
            begun: 0,
            held: Held::default(),
            calls: 0,
            blocks: 0,
            called: false,
            refused: false,
        }
    }

    /// The answer began, or says again that it did.
    fn start(&mut self, response: &WireResponse<'_>, out: &mut Vec<ModelEvent>) {
        if self.started.is_none() {
            let id = response.id.as_str().to_owned();
            self.started = Some(id.clone());
            let message = (!id.is_empty()).then_some(id);
            out.push(ModelEvent::Start(Origin {
                model: response.model.as_str().to_owned(),
                message,
                asked: None,
            }));
        }
    }

    fn created(&mut self, response: &WireResponse<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        match &self.started {
            Some(started) if started != response.id.as_str() => {
                let both = format!("{started} and {}", response.id.as_str());
                Err(protocol("a second answer began before the first one ended", &both))
            }
            Some(_) | None => {
                self.start(response, out);
                Ok(())
            }
        }
    }

    /// Runs something on an item, with what is told to those who watch.
    fn with<T>(
        &mut self,
        lone: bool,
        out: &mut Vec<ModelEvent>,
        run: impl FnOnce(&mut BTreeMap<u64, Item>, &mut Watch<'_>) -> T,
    ) -> T {
        let Self { open, blocks, calls, names, provider, .. } = self;
        run(open, &mut Watch { out, blocks, calls, names, provider, lone })
    }

    fn begin(
        &mut self,
        index: Option<u64>,
        raw: &Json<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<u64, ModelError> {
        let index = index.unwrap_or_else(|| self.next_index());
        // Some gateways number every item alike, and do not say that one ended.
        if self.open.contains_key(&index) {
            while self.open.first_key_value().is_some_and(|(first, _)| *first <= index) {
                self.give_first(raw.lone, out);
            }
        }
        let item = self.with(raw.lone, out, |_, watch| Item::open(raw.text, watch))?;
        self.begun += 1;
        self.open.insert(index, item);
        Ok(index)
    }

    /// An item is complete: it is given as soon as those before it are.
    fn done(
        &mut self,
        index: LooseInt,
        raw: Option<&Json<'_>>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let index = index.0.or_else(|| self.open.keys().next_back().copied());
        let known = index.filter(|index| self.open.contains_key(index));
        let (index, raw) = match (known, raw) {
            (Some(index), Some(raw)) => (index, raw),
            (None, Some(raw)) => (self.begin(index, raw, out)?, raw),
            // Nothing is said of the item: what was streamed of it counts.
            (_, None) => return Ok(()),
        };
        if let Some(item) = self.open.get_mut(&index) {
            item.finish(raw.text)?;
        }
        self.give_finished(raw.lone, out);
        Ok(())
    }

    fn delta(
        &mut self,
        slot: Slot,
        event: &WireEvent<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let at = event.at(slot);
        let index = self.place(slot, event.output_index, lone, out)?;
        let text = event.delta.map(text_or_raw).unwrap_or_default();
        self.with(lone, out, |open, watch| {
            if let Some(item) = open.get_mut(&index) {
                item.take(slot, at, &text, watch);
            }
        });
        Ok(())
    }

    /// A whole text, at the end of its deltas or in their place.
    fn text_done(
        &mut self,
        slot: Slot,
        event: &WireEvent<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let whole = match slot {
            Slot::Input => event.arguments,
            Slot::Refusal => event.refusal,
            Slot::Text | Slot::Summary | Slot::Thought => event.text,
        };
        let Some(whole) = whole.map(text_or_raw).filter(|whole| !whole.is_empty()) else { return Ok(()) };
        let at = event.at(slot);
        let index = self.place(slot, event.output_index, lone, out)?;
        self.with(lone, out, |open, watch| {
            if let Some(item) = open.get_mut(&index) {
                item.settle(slot, at, &whole, watch);
            }
        });
        Ok(())
    }

    fn annotation(&mut self, event: &WireEvent<'_>, lone: bool, out: &mut Vec<ModelEvent>) {
        let index = event.output_index.0.or_else(|| self.open.keys().next_back().copied());
        let (Some(index), Some(raw)) = (index, event.annotation) else { return };
        self.with(lone, out, |open, watch| {
            if let Some(item) = open.get_mut(&index) {
                item.annotate(event.at(Slot::Text), raw.get(), watch);
            }
        });
    }

    /// The item a text belongs to; one that was not announced begins with it.
    fn place(
        &mut self,
        slot: Slot,
        index: LooseInt,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<u64, ModelError> {
        let index = index.0.or_else(|| self.open.keys().next_back().copied());
        if let Some(index) = index.filter(|index| self.open.contains_key(index)) {
            return Ok(index);
        }
        let index = index.unwrap_or_else(|| self.next_index());
        let item = self.with(lone, out, |_, watch| Item::implied(slot, watch))?;
        self.begun += 1;
        self.open.insert(index, item);
        Ok(index)
    }

    fn next_index(&self) -> u64 {
        self.open.keys().next_back().map_or(0, |last| last.saturating_add(1))
    }

    /// Gives the items that are complete, in their order.
    fn give_finished(&mut self, lone: bool, out: &mut Vec<ModelEvent>) {
        while self.open.first_key_value().is_some_and(|(_, item)| item.is_finished()) {
            self.give_first(lone, out);
        }
    }

    fn give_first(&mut self, lone: bool, out: &mut Vec<ModelEvent>) {
        let Some((_, item)) = self.open.pop_first() else { return };
        match self.with(lone, out, |_, watch| item.close(watch)) {
            Done::Parts(parts) => parts.into_iter().for_each(|part| self.give(part, out)),
            Done::Call(plain) => {
                self.called = true;
                self.held.call(plain, out);
            }
        }
    }

    fn give(&mut self, part: AssistantPart, out: &mut Vec<ModelEvent>) {
        if let AssistantPart::Text(said) = &part {
            self.refused |= said.data.as_ref().is_some_and(|data| is_refusal(data.json.get()));
        }
        self.held.part(part, out);
    }

    /// The answer ended: with all its items, or with an error.
    fn end(
        &mut self,
        response: &WireResponse<'_>,
        word: &str,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.start(response, out);
        let status = response.status.0.as_deref().unwrap_or(word);
        self.add_missing(response.output, lone, out)?;
        let spent = response.usage.and_then(usage);
        if let Some(error) = failure(status, response) {
            out.extend(spent.map(ModelEvent::Usage));
            return Err(error);
        }
        while !self.open.is_empty() {
            self.give_first(lone, out);
        }
        let reason: WireReason<'_> = response.incomplete_details.map(read).unwrap_or_default();
        let raw = reason.reason.0.as_deref().unwrap_or(status).to_owned();
        let kind = self.finish_kind(&raw);
        self.held.release(kind == FinishKind::Length, out);
        out.extend(spent.map(ModelEvent::Usage));
        out.push(ModelEvent::Finish(Finish { kind, raw }));
        Ok(())
    }

    /// Items that only the end of the answer says, and those whose own end is missing.
    fn add_missing(
        &mut self,
        output: Option<&RawValue>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(list) = output.map(RawValue::get).filter(|list| *list != "null") else { return Ok(()) };
        let items: Vec<&RawValue> =
            serde_json::from_str(list).map_err(|_| protocol("the output is no list of items", list))?;
        let begun = self.begun;
        for (index, raw) in (0..).zip(&items) {
            let json = Json { text: raw.get(), lone };
            let is_open = self.open.contains_key(&index) && items.len() == begun;
            let is_new = usize::try_from(index).is_ok_and(|index| index >= begun);
            if is_open || is_new {
                self.done(LooseInt(Some(index)), Some(&json), out)?;
            }
        }
        Ok(())
    }

    fn finish_kind(&self, raw: &str) -> FinishKind {
        match raw {
            "completed" if self.called => FinishKind::ToolCalls,
            "completed" if self.refused => FinishKind::Refusal,
            "completed" => FinishKind::Stop,
            "max_output_tokens" | "max_tokens" | "length" => FinishKind::Length,
            "content_filter" => FinishKind::ContentFilter,
            _ => FinishKind::Other,
        }
    }

    /// An event about one item.
    fn item_event(
        &mut self,
        kind: &str,
        event: &WireEvent<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        let item = event.item.filter(|raw| raw.get() != "null");
        let item = item.map(|raw| Json { text: raw.get(), lone });
        match kind {
            "response.output_item.added" => {
                if let Some(item) = item {
                    self.begin(event.output_index.0, &item, out)?;
                }
            }
            "response.output_item.done" => self.done(event.output_index, item.as_ref(), out)?,
            "response.output_text.annotation.added" => self.annotation(event, lone, out),
            _ => match (slot(kind), kind.rsplit('.').next()) {
                (Some(slot), Some("delta")) => self.delta(slot, event, lone, out)?,
                (Some(slot), _) => self.text_done(slot, event, lone, out)?,
                // The progress of tools that the provider runs: their items say all of it.
                (None, _) if kind.starts_with("response.") => {}
                (None, _) => {
                    tracing::debug!(kind, "an event of an unknown type is skipped");
                    return Ok(Progress::Unknown);
                }
            },
        }
        Ok(Progress::More)
    }
}

impl Codec for ResponsesCodec {
    fn event(
        &mut self,
        name: &str,
        json: &Json<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        let event: WireEvent<'_> = serde_json::from_str(json.text)
            .map_err(|_| protocol("an event is not a JSON object", json.text))?;
        if self.repeats.again(event.sequence_number, json.text) {
            return Ok(Progress::More);
        }
        let kind = if event.kind.0.is_some() { event.kind.as_str() } else { name };
        match kind {
            "response.created" => self.created(&event.response(json.text)?, out)?,
            "response.queued" | "response.in_progress" => self.start(&event.response(json.text)?, out),
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                let word = kind.strip_prefix("response.").unwrap_or(kind);
                let word = if word == "done" { "completed" } else { word };
                self.end(&event.response(json.text)?, word, json.lone, out)?;
                return Ok(Progress::Complete);
            }
            "error" => return Err(refused(json.text)),
            _ if event.error.is_some_and(|error| error.get() != "null") => return Err(refused(json.text)),
            kind => return self.item_event(kind, &event, json.lone, out),
        }
        Ok(Progress::More)
    }

    fn body(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let response = response(json.text)?;
        let is_error = response.error.is_some_and(|error| error.get() != "null");
        if is_error && response.status.0.is_none() {
            return Err(refused(json.text));
        }
        if response.output.is_none() && !is_error {
            return Err(protocol("the answer is no response", json.text));
        }
        self.end(&response, "completed", json.lone, out)
    }

    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        self.give_finished(false, out);
        self.held.release(false, out);
    }
}

/// Why an answer that ended is none.
fn failure(status: &str, response: &WireResponse<'_>) -> Option<ModelError> {
    let said = response.error.map_or("null", RawValue::get);
    match status {
        "failed" => Some(refused(&format!(r#"{{"error":{said}}}"#))),
        "cancelled" => {
            let message = "the provider cancelled the answer; send the request again";
            Some(ModelError::new(ModelErrorKind::Interrupted, message))
        }
        "queued" | "in_progress" => Some(ModelError::new(
            ModelErrorKind::Protocol,
            format!("the answer is still {status}; ask for it without `background`"),
        )),
        _ => None,
    }
}

fn refused(text: &str) -> ModelError {
    classify(&ResponseHead::unknown(), text.as_bytes())
}
