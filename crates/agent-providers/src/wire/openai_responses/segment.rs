//! Pieces of the conversation as items: encoded once, spliced where a cache marker may stand.

use agent_core::{
    AssistantPart, CacheProfile, Clip, ContentPart, Message, ModelProfile, ProviderData, ProviderPart,
    RawJson, Reasoning, Rendered, Seal, StepRecord, ToolCall, ToolOutput, ToolResult, Trim, UserPart,
    clipped_file, clipped_part,
};
use bytes::Bytes;

use super::content::{Parts, USER, file as file_part, input_item};
use super::message::Message as Said;
use super::shape::WireItem;
use crate::names::wire_id_within;
use crate::wire::form::{Cx, Run};
use crate::wire::json::{Fields, object, quoted, sound, write};
use crate::wire::words::{clipped, object_input};

/// Who an item is of; only the end of the list asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Other,
    Model,
}

/// Encodes pieces, noting what it must leave out.
#[derive(Debug)]
pub(super) struct Renderer<'r, 'e> {
    pub(super) cx: &'r mut Cx<'e>,
}

/// Items of one step while they are written.
#[derive(Debug, Default)]
struct Items {
    list: Vec<Vec<u8>>,
    /// How many items at the end are thinking, which means nothing without what follows it.
    thinking: usize,
    /// The message that the next words may belong to.
    open: Option<Said>,
}

/// What came out of a tool, as it is written. Only parts can carry a marker.
enum Output {
    Parts(Parts),
    Words(String),
}

impl Run<Role> {
    /// An item that is not the model's, marked behind its last part.
    fn of((bytes, splices): (Vec<u8>, Vec<usize>)) -> Self {
        Self { role: Role::Other, bytes: Bytes::from(bytes), splice: splices.last().copied() }
    }
}

impl Renderer<'_, '_> {
    pub(super) fn runs(&mut self, piece: Rendered<'_>) -> Vec<Run<Role>> {
        piece.messages().flat_map(|message| self.message(message)).collect()
    }

    /// Words of the harness, as one item.
    pub(super) fn note<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Vec<Run<Role>> {
        let may = self.cx.profile.mid_conversation_system;
        let role = if may { system_role(self.cx.profile) } else { USER };
        vec![Run::of(input_item(role, texts))]
    }

    fn message(&mut self, message: Message<'_>) -> Vec<Run<Role>> {
        match message {
            Message::User(said) => {
                let mut parts = Parts::default();
                for part in said.parts() {
                    match part {
                        UserPart::Text(words) => parts.text(words.as_str()),
                        UserPart::File(file) => file_part(&mut parts, file, self.cx),
                        UserPart::Provider(part) => self.own("message.part", &mut parts, part),
                        _ => self.cx.no_form("message.part"),
                    }
                }
                vec![Run::of(parts.into_item(USER))]
            }
            Message::Note(words) => self.note([words].into_iter()),
            Message::TurnNote(words) => {
                self.cx.unscoped();
                self.note([words].into_iter())
            }
            Message::Summary(words) => {
                let mut said = Said::default();
                said.push(words.as_str(), "");
                vec![Run { role: Role::Model, bytes: Bytes::from(said.into_bytes()), splice: None }]
            }
            Message::Assistant(parts, trim) => self.assistant(parts, trim),
            Message::Tool(step, results, trim) => {
                results.iter().map(|result| self.result(step, result, trim)).collect()
            }
        }
    }

    /// The items of an answer, in their order. Ids are sent only with the thinking of the same answer: a provider
    /// that knows an item by its id asks for the thinking before it (case M10).
    fn assistant(&mut self, parts: &[AssistantPart], trim: Trim) -> Vec<Run<Role>> {
        let ours = self.cx.profile.provider.clone();
        let sent =
            |said: &Reasoning| (!trim.strip_reasoning).then(|| sealed(said, &ours)).flatten().is_some();
        let has_ids = parts.iter().all(|part| match part {
            AssistantPart::Reasoning(said) => sent(said),
            AssistantPart::Text(_) | AssistantPart::ToolCall(_) | AssistantPart::Provider(_) | _ => true,
        });
        let mut items = Items::default();
        for part in parts {
            match part {
                AssistantPart::Text(said) => {
                    let data = said.data.as_ref().filter(|data| data.provider == ours);
                    items.words(said.text.as_str(), data, has_ids);
                }
                AssistantPart::Reasoning(said) if sent(said) => {
                    items.thinking(sealed(said, &ours).map(RawJson::get).unwrap_or_default());
                }
                AssistantPart::Reasoning(_) => {}
                AssistantPart::ToolCall(call) => items.push(self.call(call, has_ids)),
                AssistantPart::Provider(part) => {
                    if let Some(raw) = self.cx.own("assistant.provider_part", part) {
                        items.push(own(&part.kind, &raw, has_ids));
                    }
                }
                _ => self.cx.no_form("assistant.part"),
            }
        }
        let joined = items.finish().join(&b',');
        if joined.is_empty() {
            return Vec::new();
        }
        vec![Run { role: Role::Model, bytes: Bytes::from(joined), splice: None }]
    }

    fn call(&mut self, call: &ToolCall, has_ids: bool) -> Vec<u8> {
        let mut out = br#"{"type":"function_call","call_id":"#.to_vec();
        write(&mut out, wire_id_within(call.id.as_str(), LONGEST_CALL_ID).as_ref());
        out.extend_from_slice(br#","name":"#);
        write(&mut out, self.cx.names.wire(&call.name).as_ref());
        out.extend_from_slice(br#","arguments":"#);
        write(&mut out, object_input(&call.input).as_ref());
        let data = call.data.as_ref().filter(|data| data.provider == self.cx.profile.provider);
        for (key, raw) in fields(data, |key| has_ids || key != ID) {
            out.extend_from_slice(format!(",{}:{raw}", quoted(&key)).as_bytes());
        }
        out.push(b'}');
        out
    }

    fn result(&mut self, step: &StepRecord, result: &ToolResult, trim: Trim) -> Run<Role> {
        let mut out = br#"{"type":"function_call_output","call_id":"#.to_vec();
        write(&mut out, wire_id_within(result.call.as_str(), LONGEST_CALL_ID).as_ref());
        out.extend_from_slice(br#","output":"#);
        let splice = match self.output(&result.output, trim.clip_results) {
            Output::Parts(parts) => parts.append_to(&mut out).last().copied(),
            Output::Words(words) => {
                write(&mut out, &words);
                None
            }
        };
        if let Some(caller) = self.caller(step, result) {
            out.extend_from_slice(format!(r#","caller":{caller}"#).as_bytes());
        }
        out.push(b'}');
        Run { role: Role::Other, bytes: Bytes::from(out), splice }
    }

    /// What came out of a tool.
    fn output(&mut self, output: &ToolOutput, clip: Option<Clip>) -> Output {
        if let ToolOutput::Content(content) = output {
            return Output::Parts(self.content(content, clip));
        }
        let words = clipped(&output.plain(), clip).into_owned();
        if !matches!(self.cx.profile.cache, CacheProfile::Marked { .. }) {
            return Output::Words(words);
        }
        let mut parts = Parts::default();
        parts.text(&words);
        Output::Parts(parts)
    }

    /// Who called, where it was not the model itself: its program waits for the result.
    fn caller(&self, step: &StepRecord, result: &ToolResult) -> Option<String> {
        let mut calls = step.parts().iter().filter_map(AssistantPart::as_call);
        let data = calls.find(|call| call.id == result.call)?.data.as_ref();
        let data = data.filter(|data| data.provider == self.cx.profile.provider);
        fields(data, |key| key == "caller").pop().map(|(_, raw)| raw)
    }

    /// The parts inside a result.
    fn content(&mut self, content: &[ContentPart], clip: Option<Clip>) -> Parts {
        let mut parts = Parts::default();
        for part in content {
            match part {
                ContentPart::Text(text) => parts.text(&clipped(text.as_str(), clip)),
                ContentPart::Tool(found) => parts.text(&clipped(found.words.as_str(), clip)),
                ContentPart::File(file) => match clipped_file(file, clip) {
                    Some(words) => parts.text(&words),
                    None => file_part(&mut parts, file, self.cx),
                },
                ContentPart::Provider(part) => match clipped_part(part, clip) {
                    Some(words) => parts.text(&words),
                    None => self.own("tool_result.part", &mut parts, part),
                },
                _ => self.cx.no_form("tool_result.part"),
            }
        }
        parts
    }

    /// A part of a content that only its provider understands.
    fn own(&mut self, what: &str, parts: &mut Parts, part: &ProviderPart) {
        if let Some(raw) = self.cx.own(what, part) {
            parts.push(&raw);
        }
    }
}

impl Items {
    fn words(&mut self, text: &str, data: Option<&ProviderData>, has_ids: bool) {
        let said = Said::of(data, has_ids);
        if self.open.as_ref().is_none_or(|open| !open.is_same(&said)) {
            self.close();
            self.open = Some(said);
        }
        if let Some(open) = &mut self.open {
            let part = if has_ids { Said::part_of(data) } else { String::new() };
            open.push(text, &part);
        }
        self.thinking = 0;
    }

    fn thinking(&mut self, raw: &str) {
        self.close();
        self.list.push(sound(raw).as_bytes().to_vec());
        self.thinking += 1;
    }

    fn push(&mut self, item: Vec<u8>) {
        self.close();
        self.list.push(item);
        self.thinking = 0;
    }

    fn close(&mut self) {
        self.list.extend(self.open.take().map(Said::into_bytes));
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        self.close();
        self.list.truncate(self.list.len() - self.thinking);
        self.list
    }
}

/// The role of the system prompt. OpenAI calls it the developer's; others know the older word only.
pub(super) fn system_role(profile: &ModelProfile) -> &'static str {
    let is_openai = ["openai", "azure"].iter().any(|name| profile.provider.starts_with(name));
    if is_openai { "developer" } else { "system" }
}

/// The fields of what our provider attached that are wanted, each with its JSON.
pub(super) fn fields(data: Option<&ProviderData>, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let Some(data) = data else { return Vec::new() };
    let text = sound(data.json.get());
    let fields = Fields::read(&text).unwrap_or_default().0.into_iter();
    fields
        .filter(|(key, _)| is_wanted(key))
        .map(|(key, raw)| (key.into_owned(), raw.get().to_owned()))
        .collect()
}

/// The item of thinking that this provider takes back. Without state it must hold all that was thought: sealed, or
/// in words; an id alone points at nothing.
fn sealed<'s>(said: &'s Reasoning, ours: &str) -> Option<&'s RawJson> {
    let Some(Seal::Item { provider, raw }) = &said.seal else { return None };
    let fields = Fields::read(raw.get()).filter(|_| provider == ours)?;
    let is_full = |key: &str| fields.get(key).is_some_and(|raw| !matches!(raw.get(), "null" | "\"\"" | "[]"));
    let is_whole = is_full("encrypted_content") || is_full("content");
    (is_whole || (TAKES_SUMMARIES.iter().any(|start| ours.starts_with(start)) && is_full("summary")))
        .then_some(raw)
}

/// An item of the provider, byte for byte, or without its id.
fn own(kind: &str, text: &str, has_ids: bool) -> Vec<u8> {
    let is_named = object::<WireItem<'_>>(text).is_ok_and(|item| item.id.0.is_some());
    if has_ids || !is_named || NAMED_BY_ID.contains(&kind) {
        return text.as_bytes().to_vec();
    }
    let rest = Fields::read(text).unwrap_or_default().0.into_iter().filter(|(key, _)| key != ID);
    let rest: Vec<String> = rest.map(|(key, raw)| format!("{}:{}", quoted(&key), raw.get())).collect();
    format!("{{{}}}", rest.join(",")).into_bytes()
}

pub(super) const ID: &str = "id";
/// How the names of providers begin that take thinking back by its summary.
const TAKES_SUMMARIES: &[&str] = &["xai"];
/// Items that another one points at by their id, or that are nothing but one.
const NAMED_BY_ID: &[&str] = &["mcp_approval_request", "item_reference"];
const LONGEST_CALL_ID: usize = 64;
