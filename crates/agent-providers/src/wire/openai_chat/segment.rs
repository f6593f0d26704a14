//! Pieces of the conversation as messages: encoded once, spliced where a cache marker may stand.

use std::borrow::Cow;

use agent_core::{
    AssistantPart, AssistantText, Clip, ContentPart, FilePart, Message, ProviderPart, Reasoning, Rendered,
    Seal, ToolCall, ToolInput, ToolOutput, ToolResult, Trim, UserPart, clipped_file, clipped_part,
};
use bytes::Bytes;

use super::block::REFUSAL;
use super::files;
use super::ids::Ids;
use super::quirks::{NoContent, Quirks, ReasoningBack};
use crate::wire::form::{Cx, Run};
use crate::wire::json::{Fields, quoted, replaced, sound};
use crate::wire::parts::document_words;
use crate::wire::words::clipped;

/// Who speaks in an item of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A whole message of the user's.
    User,
    /// Parts of a message of the user's that others may join.
    UserParts,
    Assistant,
    /// A message of the model's that may not stand behind another one.
    AssistantAlone,
    Tool,
}

/// Encodes pieces, noting what it must leave out.
#[derive(Debug)]
pub(super) struct Renderer<'r, 'e> {
    pub(super) quirks: &'r Quirks,
    pub(super) ids: &'r Ids,
    pub(super) cx: &'r mut Cx<'e>,
}

impl Renderer<'_, '_> {
    pub(super) fn runs(&mut self, piece: Rendered<'_>) -> Vec<Run<Role>> {
        piece.messages().flat_map(|message| self.message(message)).collect()
    }

    /// Words in the user's role.
    pub(super) fn words<'w>(&mut self, words: impl Iterator<Item = &'w str>) -> Run<Role> {
        let mut content = Content::default();
        words.for_each(|words| content.text(words));
        self.user(content)
    }

    fn message(&mut self, message: Message<'_>) -> Vec<Run<Role>> {
        match message {
            Message::User(said) => {
                let mut content = Content::default();
                said.parts().iter().for_each(|part| match part {
                    UserPart::Text(words) => content.text(words.as_str()),
                    UserPart::File(file) => self.file(&mut content, file),
                    UserPart::Provider(part) => {
                        self.cx
                            .own("message.part", part)
                            .into_iter()
                            .for_each(|raw| content.part(raw.into()));
                    }
                    _ => self.cx.no_form("message.part"),
                });
                vec![self.user(content)]
            }
            Message::Note(words) => vec![self.words(std::iter::once(words))],
            Message::TurnNote(words) => {
                self.cx.unscoped();
                vec![self.words(std::iter::once(words))]
            }
            Message::Summary(words) => {
                let mut said = Said::default();
                said.content.text(words.as_str());
                vec![said.run(self.quirks)]
            }
            Message::Assistant(parts, trim) => vec![self.assistant(parts, trim)],
            Message::Tool(_, results, trim) => self.results(results, trim),
        }
    }

    fn user(&mut self, content: Content) -> Run<Role> {
        let content = content.or_placeholder();
        if self.quirks.join_user {
            let (bytes, splices) = content.items();
            let splice = splices.last().copied().filter(|_| self.quirks.takes_markers());
            return Run { role: Role::UserParts, bytes: Bytes::from(bytes), splice };
        }
        let mut out = br#"{"role":"user","content":"#.to_vec();
        let splice = content.write(&mut out, self.quirks).last().copied();
        out.push(b'}');
        Run { role: Role::User, bytes: Bytes::from(out), splice }
    }

    fn assistant(&mut self, parts: &[AssistantPart], trim: Trim) -> Run<Role> {
        let mut said = Said::default();
        for part in parts {
            match part {
                AssistantPart::Text(text) => self.said(&mut said, text),
                AssistantPart::Reasoning(thought) if !trim.strip_reasoning => {
                    self.thought(&mut said, thought)
                }
                AssistantPart::Reasoning(_) => {}
                AssistantPart::ToolCall(call) => {
                    let call = self.call(call);
                    said.calls.push(call);
                }
                AssistantPart::Provider(part) => self.own(&mut said, part),
                _ => self.cx.no_form("assistant.part"),
            }
        }
        said.run(self.quirks)
    }

    /// A part that only its provider understands, where it takes it back.
    fn own(&mut self, said: &mut Said, part: &ProviderPart) {
        const WHAT: &str = "assistant.provider_part";
        let Some(raw) = self.cx.own(WHAT, part) else { return };
        match part.kind.as_str() {
            "audio" => said.fields.extend(audio_reference(&raw)),
            kind if self.takes_part(kind, &raw) => said.content.part(raw.into_owned()),
            kind => self.cx.note(WHAT, format!("{kind:?} is not taken back by this provider")),
        }
    }

    /// Whether a part stood in a list of content that the provider takes back.
    fn takes_part(&self, kind: &str, raw: &str) -> bool {
        let given = Fields::read(raw).and_then(|fields| fields.get("type"));
        self.quirks.reasoning_back == ReasoningBack::ThinkingParts
            && given.is_some_and(|given| given.get() == quoted(kind))
    }

    /// Words, with the fields of the message that came with them.
    fn said(&mut self, said: &mut Said, AssistantText { text, data }: &AssistantText) {
        let ours = data.as_ref().filter(|data| data.provider == self.cx.profile.provider);
        let fields = ours.and_then(|data| Fields::read(data.json.get())).unwrap_or_default();
        if self.quirks.refusal && fields.get(REFUSAL).is_some() {
            said.refusal.get_or_insert_default().push_str(text.as_str());
            return;
        }
        said.content.text(text.as_str());
        for (key, raw) in &fields.0 {
            let goes_back = match key.as_ref() {
                "prefix" => self.quirks.prefix,
                // Citations are for readers: requests have no field for them.
                REFUSAL | "annotations" | "citations" => false,
                _ => true,
            };
            if goes_back {
                said.fields.push((key.clone().into_owned(), sound(raw.get()).into_owned()));
            }
        }
    }

    /// Items go back to the provider that made them, plain words to one that takes them; what others sealed is not
    /// for this one.
    fn thought(&mut self, said: &mut Said, Reasoning { text, seal }: &Reasoning) {
        match (seal, self.quirks.reasoning_back) {
            (Some(Seal::Item { provider, raw }), ReasoningBack::ReasoningDetails)
                if *provider == self.cx.profile.provider =>
            {
                said.details.push(sound(raw.get()).into_owned());
            }
            (Some(_), _) | (None, ReasoningBack::None) => {}
            (None, ReasoningBack::ThinkingParts) => said.content.thinking(text),
            (None, ReasoningBack::ReasoningContent | ReasoningBack::Reasoning) => {
                said.thinking.push_str(text)
            }
            (None, ReasoningBack::ReasoningDetails) => said.thinking.push_str(text),
        }
    }

    fn call(&mut self, call: &ToolCall) -> String {
        let (id, name) = (self.ids.wire(call.id.as_str()), self.cx.names.wire(&call.name));
        let (id, name) = (quoted(&id), quoted(&name));
        let ours = call.data.as_ref().filter(|data| data.provider == self.cx.profile.provider);
        let mut fields = ours.and_then(|data| Fields::read(data.json.get())).unwrap_or_default().0;
        let is_custom = fields.iter().any(|(key, raw)| key == "type" && raw.get() == r#""custom""#);
        let body = if is_custom {
            let input: Option<String> = serde_json::from_str(call.input.as_str()).ok();
            let input = quoted(input.as_deref().unwrap_or(call.input.as_str()));
            format!(r#""type":"custom","custom":{{"name":{name},"input":{input}}}"#)
        } else {
            let function = format!(r#"{{"name":{name},"arguments":{}}}"#, quoted(&arguments(&call.input)));
            let more = fields.iter().find(|(key, _)| key == "function");
            let more = more.and_then(|(_, raw)| Fields::read(raw.get())).map(owned).unwrap_or_default();
            format!(r#""type":"function","function":{}"#, replaced(&function, &more))
        };
        fields.retain(|(key, _)| !matches!(key.as_ref(), "id" | "type" | "function" | "custom"));
        replaced(&format!(r#"{{"id":{id},{body}}}"#), &owned(Fields(fields)))
    }

    /// One message for each result, and the images that may not stand in them behind the last one (case M11).
    fn results(&mut self, results: &[ToolResult], trim: Trim) -> Vec<Run<Role>> {
        let (mut out, mut splice, mut shown) = (Vec::new(), None, Content::default());
        for result in results {
            let mut content = Content::default();
            self.result(result, trim.clip_results, &mut content, &mut shown);
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(br#"{"role":"tool","tool_call_id":"#);
            out.extend_from_slice(quoted(&self.ids.wire(result.call.as_str())).as_bytes());
            out.extend_from_slice(br#","content":"#);
            splice = content.or_placeholder().write(&mut out, self.quirks).last().copied().or(splice);
            out.push(b'}');
        }
        let mut runs = vec![Run { role: Role::Tool, bytes: Bytes::from(out), splice }];
        if !shown.parts.is_empty() {
            runs.push(self.user(shown));
        }
        runs
    }

    fn result(
        &mut self,
        result: &ToolResult,
        clip: Option<Clip>,
        content: &mut Content,
        shown: &mut Content,
    ) {
        let ToolOutput::Content(parts) = &result.output else {
            return content.text(&clipped(&result.output.plain(), clip));
        };
        for part in parts {
            match part {
                ContentPart::Text(text) => content.text(&clipped(text.as_str(), clip)),
                ContentPart::Tool(found) => content.text(&clipped(found.words.as_str(), clip)),
                ContentPart::File(file) => match clipped_file(file, clip) {
                    Some(words) => content.text(&words),
                    None if self.quirks.tool_images => self.file(content, file),
                    None => self.move_out(result, file, content, shown),
                },
                // Whoever made it stand in a result has a provider that takes it there.
                ContentPart::Provider(part) => match clipped_part(part, clip) {
                    Some(words) => content.text(&words),
                    None => {
                        let own = self.cx.own("tool_result.part", part);
                        own.into_iter().for_each(|raw| content.part(raw.into()));
                    }
                },
                _ => self.cx.no_form("tool_result.part"),
            }
        }
    }

    /// Puts a file of a result behind the results; words say where it is.
    fn move_out(&mut self, result: &ToolResult, file: &FilePart, content: &mut Content, shown: &mut Content) {
        let mut moved = Content::default();
        self.file(&mut moved, file);
        if moved.parts.iter().all(|part| part.text.is_some()) {
            return moved.parts.into_iter().for_each(|part| content.parts.push(part));
        }
        content.text(&format!("[{}: shown in the next message]", file.label()));
        shown.text(&format!("[{} of {}]", file.label(), self.ids.wire(result.call.as_str())));
        shown.parts.append(&mut moved.parts);
    }

    /// A file; a text is sent in its words, one the provider or model cannot take is named in words instead.
    fn file(&mut self, content: &mut Content, file: &FilePart) {
        if let Some(words) = document_words(file) {
            return content.text(&words);
        }
        let profile = self.cx.profile;
        match files::part(file, self.quirks, profile.vision, &profile.provider) {
            Ok(part) => content.part(part),
            Err(why) => content.text(&self.cx.not_sent(file, why)),
        }
    }
}

/// The content of a message while it is written.
#[derive(Debug, Default)]
pub(super) struct Content {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    json: String,
    /// The words, when it holds nothing else.
    text: Option<String>,
}

impl Content {
    /// Words; blank ones would be refused and are left out.
    pub(super) fn text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            let json = format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
            self.parts.push(Part { json, text: Some(text.to_owned()) });
        }
    }

    fn part(&mut self, json: String) {
        self.parts.push(Part { json, text: None });
    }

    fn thinking(&mut self, text: &str) {
        let text = quoted(text);
        self.part(format!(r#"{{"type":"thinking","thinking":[{{"type":"text","text":{text}}}]}}"#));
    }

    fn or_placeholder(mut self) -> Self {
        if self.parts.is_empty() {
            self.text(NO_CONTENT);
        }
        self
    }

    /// The parts without the list around them, and where a marker behind each goes.
    fn items(&self) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut splices) = (Vec::new(), Vec::new());
        for part in &self.parts {
            bytes.extend_from_slice(if bytes.is_empty() { b"" } else { b"," });
            bytes.extend_from_slice(part.json.as_bytes());
            splices.push(bytes.len() - 1);
        }
        (bytes, splices)
    }

    /// A text where that will do, else a list of parts; gives where a marker behind each goes, if one can.
    pub(super) fn write(&self, out: &mut Vec<u8>, quirks: &Quirks) -> Vec<usize> {
        let words: Option<Vec<&str>> = self.parts.iter().map(|part| part.text.as_deref()).collect();
        match words.filter(|words| !quirks.takes_markers() && (!quirks.text_lists || words.len() == 1)) {
            Some(words) => {
                out.extend_from_slice(quoted(&words.join("\n\n")).as_bytes());
                Vec::new()
            }
            None => {
                out.push(b'[');
                let (items, splices) = self.items();
                let at = out.len();
                out.extend_from_slice(&items);
                out.push(b']');
                let sent = splices.into_iter().filter(|_| quirks.takes_markers());
                sent.map(|splice| at + splice).collect()
            }
        }
    }
}

/// A message of the model's while it is written.
#[derive(Debug, Default)]
struct Said {
    content: Content,
    refusal: Option<String>,
    thinking: String,
    details: Vec<String>,
    calls: Vec<String>,
    fields: Vec<(String, String)>,
}

impl Said {
    fn run(mut self, quirks: &Quirks) -> Run<Role> {
        let says_nothing = self.calls.is_empty() && self.refusal.is_none() && self.fields.is_empty();
        if says_nothing && !self.content.parts.iter().any(|part| part.text.is_some()) {
            self.content.text(NO_CONTENT);
        }
        let mut out = br#"{"role":"assistant""#.to_vec();
        let mut splice = None;
        match quirks.no_content {
            _ if !self.content.parts.is_empty() => {
                out.extend_from_slice(br#","content":"#);
                splice = self.content.write(&mut out, quirks).last().copied();
            }
            NoContent::Null => out.extend_from_slice(br#","content":null"#),
            NoContent::Empty => out.extend_from_slice(br#","content":"""#),
            NoContent::Absent => {}
        }
        let is_missed = quirks.reasoning_required && !self.calls.is_empty();
        let mut field =
            |key: &str, json: &str| out.extend_from_slice(format!(r#","{key}":{json}"#).as_bytes());
        if let Some(refusal) = &self.refusal {
            field(REFUSAL, &quoted(refusal));
        }
        if !self.details.is_empty() {
            field("reasoning_details", &format!("[{}]", self.details.join(",")));
        } else if !self.thinking.trim().is_empty() || is_missed {
            let key = match quirks.reasoning_back {
                ReasoningBack::ReasoningContent => "reasoning_content",
                ReasoningBack::Reasoning
                | ReasoningBack::ReasoningDetails
                | ReasoningBack::ThinkingParts
                | ReasoningBack::None => "reasoning",
            };
            field(key, &quoted(&self.thinking));
        }
        if !self.calls.is_empty() {
            field("tool_calls", &format!("[{}]", self.calls.join(",")));
        }
        for (key, json) in &self.fields {
            out.extend_from_slice(format!(",{}:{json}", quoted(key)).as_bytes());
        }
        out.push(b'}');
        let role = if quirks.join_user { Role::AssistantAlone } else { Role::Assistant };
        Run { role, bytes: Bytes::from(out), splice }
    }
}

/// The input of a call, byte for byte; what is no JSON is wrapped into an object, since servers parse it.
fn arguments(input: &ToolInput) -> Cow<'_, str> {
    match input {
        ToolInput::Json(json) => sound(json.get()),
        ToolInput::Invalid(text) | ToolInput::Truncated(text) => {
            Cow::Owned(format!(r#"{{"invalid_json":{}}}"#, quoted(text)))
        }
    }
}

/// A spoken answer goes back by its id.
fn audio_reference(raw: &str) -> Option<(String, String)> {
    let id = Fields::read(raw)?.get("id")?.get().to_owned();
    Some(("audio".to_owned(), format!(r#"{{"id":{id}}}"#)))
}

fn owned(fields: Fields<'_>) -> Vec<(String, String)> {
    fields.0.into_iter().map(|(key, raw)| (key.into_owned(), sound(raw.get()).into_owned())).collect()
}

/// Stands in for a message without content.
const NO_CONTENT: &str = "(no content)";
