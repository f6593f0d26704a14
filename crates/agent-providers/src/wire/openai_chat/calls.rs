//! Calls while they arrive: which piece belongs to which call, told by id, else by index, else by order.

use agent_core::{AssistantPart, CallId, ModelEvent, ProviderData, RawJson, ToolCall, ToolInput};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::names::ToolNames;
use crate::wire::json::{Fields, Joiner, Loose, LooseInt, quoted, received, text_or_raw};

/// A call that has begun.
#[derive(Debug)]
pub(super) struct Call {
    id: CallId,
    /// The id as received, if any was.
    wire_id: String,
    index: Option<u64>,
    /// As the model wrote it; may come late.
    name: String,
    input: String,
    joiner: Joiner,
    /// A tool that takes plain text: its input is no JSON until it is quoted.
    is_custom: bool,
    /// Further fields of the call and of its function, for the provider.
    fields: Vec<(String, String)>,
    function_fields: Vec<(String, String)>,
    /// How much of the input was told to those who watch; `None` before the call was announced.
    told: Option<usize>,
    /// The last chunk that added to it.
    chunk: u64,
}

/// A piece of a call.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(borrow, default)]
    id: Loose<'a>,
    #[serde(default)]
    index: LooseInt,
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    function: Option<WireFunction<'a>>,
    #[serde(borrow, default)]
    custom: Option<WireFunction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireFunction<'a> {
    #[serde(borrow, default)]
    name: Loose<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

impl<'a> WireCall<'a> {
    /// The only call of a message in the old form.
    pub(super) fn legacy(function: WireFunction<'a>) -> Self {
        Self { index: LooseInt(Some(0)), function: Some(function), ..Self::default() }
    }

    fn function(&self) -> (&str, Option<&'a RawValue>) {
        match (&self.function, &self.custom) {
            (Some(function), _) => (function.name.as_str(), function.arguments),
            (None, Some(custom)) => (custom.name.as_str(), custom.input),
            (None, None) => ("", None),
        }
    }

    /// Whether `call` is what this piece adds to; the newest call that may be is asked first.
    fn belongs_to(&self, call: &Call, chunk: u64, is_latest: bool) -> bool {
        let (name, arguments) = self.function();
        let (id, index) = (self.id.as_str(), self.index.0);
        let has_input = arguments.is_some_and(|raw| !text_or_raw(raw).trim().is_empty());
        let same_index = index.is_some() && index == call.index;
        // A named piece is a new call when the one it could belong to has another name, or needs nothing more.
        let may_add =
            name.is_empty() || call.name.is_empty() || (name == call.name && !(has_input && call.is_whole()));
        if !id.is_empty() && id == call.wire_id {
            let other_index = index.is_some() && call.index.is_some() && !same_index;
            return may_add && !other_index && (call.chunk != chunk || same_index);
        }
        // A name with an id that was not seen before is a new call; without a name the id only changed on the way.
        let may_rename = id.is_empty() || call.wire_id.is_empty() || name.is_empty();
        match index {
            Some(_) => same_index && may_add && may_rename,
            None => {
                let fits = id.is_empty() || call.wire_id.is_empty() && name.is_empty();
                is_latest && fits && may_add && (call.chunk != chunk || name.is_empty())
            }
        }
    }
}

impl Call {
    /// The call a piece adds to: its place. One that has the id of the piece is the only one asked.
    pub(super) fn find<'c>(
        calls: impl DoubleEndedIterator<Item = (usize, &'c Self)> + Clone,
        piece: &WireCall<'_>,
        chunk: u64,
    ) -> Option<usize> {
        let id = piece.id.as_str();
        let is_known = !id.is_empty() && calls.clone().any(|(_, call)| call.wire_id == id);
        let newest = calls.rev().enumerate().filter(|(_, (_, call))| !is_known || call.wire_id == id);
        let mut fitting = newest.filter(|(age, (_, call))| piece.belongs_to(call, chunk, *age == 0));
        fitting.next().map(|(_, (at, _))| at)
    }

    /// Begins a call; `before` counts the calls before it, for one that has no id.
    pub(super) fn begin(piece: &WireCall<'_>, before: usize) -> Self {
        let wire_id = piece.id.as_str().to_owned();
        Self {
            id: CallId::new(wire_id.clone()).unwrap_or_else(|_| CallId::positional(before)),
            wire_id,
            index: piece.index.0,
            name: String::new(),
            input: String::new(),
            joiner: Joiner::default(),
            is_custom: piece.kind.as_str() == "custom" || piece.custom.is_some(),
            fields: Vec::new(),
            function_fields: Vec::new(),
            told: None,
            chunk: 0,
        }
    }

    /// Takes a piece; `raw` is the piece as received, for fields that are the provider's own.
    pub(super) fn take(&mut self, piece: &WireCall<'_>, raw: &str, lone: bool, chunk: u64) {
        self.chunk = chunk;
        let late = CallId::new(piece.id.as_str());
        if let Some(id) = late.ok().filter(|_| self.wire_id.is_empty() && self.told.is_none()) {
            (self.wire_id, self.id) = (id.as_str().to_owned(), id);
        }
        let (name, arguments) = piece.function();
        if self.name.is_empty() {
            name.clone_into(&mut self.name);
        }
        let new = arguments.map(text_or_raw).unwrap_or_default();
        self.input.push_str(&self.joiner.join(new, lone));
        let fields = Fields::read(raw).unwrap_or_default();
        if let Some(function) = fields.get("function").and_then(|raw| Fields::read(raw.get())) {
            keep(&mut self.function_fields, &function, &["name", "arguments"], lone);
        }
        keep(&mut self.fields, &fields, &["id", "index", "type", "function", "custom"], lone);
    }

    /// Tells those who watch what is new, once the tool is known.
    pub(super) fn tell(&mut self, index: u32, names: &ToolNames, out: &mut Vec<ModelEvent>) {
        let told = self.told.unwrap_or(0);
        if self.name.is_empty() || self.told == Some(self.input.len()) {
            return;
        }
        let json = self.input.get(told..).unwrap_or_default().to_owned();
        self.told = Some(self.input.len());
        let tool = names.real(&self.name).into();
        out.push(ModelEvent::ToolInputDelta { index, call: self.id.clone(), tool, json });
    }

    /// Whether nothing was said of it but that it is there.
    pub(super) fn is_phantom(&self) -> bool {
        self.name.is_empty() && self.input.trim().is_empty()
    }

    /// Some models write null for no input at all.
    pub(super) fn mend(&mut self) {
        if self.input.trim() == "null" && !self.is_custom {
            self.input.clear();
        }
    }

    /// The call as a part. `was_cut` says that the output limit stopped the model in it.
    pub(super) fn close(mut self, names: &ToolNames, provider: &str, was_cut: bool) -> AssistantPart {
        self.input.push_str(self.joiner.end());
        let input = match (self.is_custom, was_cut) {
            (true, _) => ToolInput::finished(&quoted(&self.input)),
            (false, true) => ToolInput::cut(&self.input),
            // A null in a request was sent, and stays.
            (false, false) => RawJson::parse(self.input.as_str())
                .map_or_else(|_| ToolInput::finished(&self.input), ToolInput::Json),
        };
        let data = self.data(provider);
        AssistantPart::ToolCall(ToolCall { id: self.id, name: names.real(&self.name), input, data })
    }

    fn is_whole(&self) -> bool {
        self.input.trim_end().ends_with(['}', ']']) && ToolInput::cut(&self.input).json().is_some()
    }

    fn data(&self, provider: &str) -> Option<ProviderData> {
        let field = |(key, raw): &(String, String)| format!("{}:{raw}", quoted(key));
        let mut all: Vec<String> = self.fields.iter().map(field).collect();
        if self.is_custom {
            all.push(r#""type":"custom""#.to_owned());
        }
        if !self.function_fields.is_empty() {
            let inner: Vec<String> = self.function_fields.iter().map(field).collect();
            all.push(format!(r#""function":{{{}}}"#, inner.join(",")));
        }
        if all.is_empty() {
            return None;
        }
        let json = RawJson::parse(format!("{{{}}}", all.join(","))).ok()?;
        Some(ProviderData { provider: provider.to_owned(), json })
    }
}

/// Keeps fields that are not `known`, the first of each name; null and nothing say nothing.
fn keep(kept: &mut Vec<(String, String)>, given: &Fields<'_>, known: &[&str], lone: bool) {
    for (key, raw) in &given.0 {
        let is_new = !known.contains(&key.as_ref()) && !kept.iter().any(|(name, _)| name == key);
        if is_new && !matches!(raw.get(), "null" | "\"\"" | "[]" | "{}") {
            kept.push((key.clone().into_owned(), received(raw.get(), lone)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These lists of pieces, one after the other, are these calls: id, name, input.
    #[track_caller]
    fn check(lists: &[&str], expect: &[(&str, &str, &str)]) {
        let mut calls: Vec<Call> = Vec::new();
        for (chunk, list) in (1..).zip(lists) {
            for raw in serde_json::from_str::<Vec<&RawValue>>(list).unwrap() {
                let piece: WireCall<'_> = serde_json::from_str(raw.get()).unwrap();
                let at = Call::find(calls.iter().enumerate(), &piece, chunk).unwrap_or_else(|| {
                    calls.push(Call::begin(&piece, calls.len()));
                    calls.len() - 1
                });
                calls[at].take(&piece, raw.get(), false, chunk);
            }
        }
        let calls: Vec<_> =
            calls.iter().map(|call| (call.id.as_str(), call.name.as_str(), call.input.as_str())).collect();
        assert_eq!(calls, expect);
    }

    #[test]
    fn pieces_find_their_call() {
        let both = &[("a", "f", "12"), ("b", "g", "34")];
        let begin = r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"1"}},{"index":1,"id":"b","function":{"name":"g","arguments":"3"}}]"#;
        check(
            &[
                begin,
                r#"[{"index":1,"function":{"arguments":"4"}},{"index":0,"function":{"arguments":"2"}}]"#,
            ],
            both,
        );
        check(
            &[begin, r#"[{"id":"a","function":{"arguments":"2"}},{"id":"b","function":{"arguments":"4"}}]"#],
            both,
        );
        check(
            &[
                begin,
                r#"[{"index":0,"id":"x","function":{"arguments":"2"}},{"index":1,"id":"","function":{"name":"","arguments":"4"}}]"#,
            ],
            both,
        );
        check(
            &[begin, r#"[{"function":{"arguments":"4"}}]"#, r#"[{"index":0,"function":{"arguments":"2"}}]"#],
            both,
        );
        // One index for all of them: the id tells.
        let same = r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"1"}},{"index":0,"id":"b","function":{"name":"g","arguments":"3"}}]"#;
        check(
            &[
                same,
                r#"[{"index":0,"id":"a","function":{"arguments":"2"}}]"#,
                r#"[{"index":0,"function":{"arguments":"4"}}]"#,
            ],
            both,
        );
    }

    #[test]
    fn a_named_piece_may_be_a_call_of_its_own() {
        let one = |name: &str, arguments: &str| {
            format!(r#"{{"function":{{"name":"{name}","arguments":"{arguments}"}}}}"#)
        };
        let list = |calls: &[String]| format!("[{}]", calls.join(","));
        check(&[&list(&[one("f", "{}"), one("f", "{}")])], &[("call_0", "f", "{}"), ("call_1", "f", "{}")]);
        check(
            &[&list(&[one("f", "{}")]), &list(&[one("f", "{}")])],
            &[("call_0", "f", "{}"), ("call_1", "f", "{}")],
        );
        check(&[&list(&[one("f", "{")]), &list(&[one("f", "}")])], &[("call_0", "f", "{}")]);
        check(&[&list(&[one("f", "")]), &list(&[one("g", "")])], &[("call_0", "f", ""), ("call_1", "g", "")]);
        let twice = r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]"#;
        check(&[twice, twice], &[("a", "f", "{}"), ("a", "f", "{}")]);
    }

    #[test]
    fn names_and_ids_may_come_late() {
        let late = r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"2"}}]"#;
        check(&[r#"[{"index":0,"function":{"arguments":"1"}}]"#, late], &[("a", "f", "12")]);
        check(
            &[r#"[{"index":2,"function":null}]"#, r#"[{"index":2,"id":"a","function":{"name":"f"}}]"#],
            &[("a", "f", "")],
        );
    }
}
