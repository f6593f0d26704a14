//! Pieces of the conversation as parts of contents, encoded once.

use agent_core::{
    AssistantPart, AssistantText, Clip, ContentPart, FilePart, FileSource, Message, ProviderData, Reasoning,
    Rendered, Seal, StepRecord, ToolCall, ToolOutput, Trim, UserPart, clipped_file,
};
use bytes::Bytes;
use serde_json::value::RawValue;

use super::checks_signatures;
use super::decode::METADATA;
use super::part::is_signature;
use crate::wire::form::{Cx, Run};
use crate::wire::json::{Fields, quoted, sound};
use crate::wire::words::{clipped, object_input};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Model,
}

/// Encodes pieces, noting what it must leave out.
#[derive(Debug)]
pub(super) struct Renderer<'r, 'e> {
    pub(super) cx: &'r mut Cx<'e>,
}

/// Parts while they are written.
#[derive(Debug, Default)]
pub(super) struct Parts(String);

impl Renderer<'_, '_> {
    pub(super) fn runs(&mut self, piece: Rendered<'_>) -> Vec<Run<Role>> {
        piece.messages().map(|message| self.run(message)).collect()
    }

    fn run(&mut self, message: Message<'_>) -> Run<Role> {
        let mut parts = Parts::default();
        let role = match message {
            Message::User(said) => {
                said.parts().iter().for_each(|part| self.user(&mut parts, part));
                Role::User
            }
            Message::Note(words) => {
                parts.text(words);
                Role::User
            }
            Message::TurnNote(words) => {
                self.cx.unscoped();
                parts.text(words);
                Role::User
            }
            Message::Summary(words) => {
                parts.text(words.as_str());
                Role::Model
            }
            Message::Assistant(said, trim) => {
                self.model(&mut parts, said, trim);
                Role::Model
            }
            Message::Tool(step, _, trim) => {
                self.results(&mut parts, step, trim);
                Role::User
            }
        };
        parts.run(role)
    }

    fn user(&mut self, parts: &mut Parts, part: &UserPart) {
        match part {
            UserPart::Text(words) => parts.text(words.as_str()),
            UserPart::File(file) => match self.file(file) {
                Ok(json) => parts.part(&json),
                Err(words) => parts.text(&words),
            },
            UserPart::Provider(part) => {
                if let Some(raw) = self.cx.own("message.part", part) {
                    parts.part(&raw);
                }
            }
            _ => self.cx.no_form("message.part"),
        }
    }

    fn model(&mut self, parts: &mut Parts, said: &[AssistantPart], trim: Trim) {
        // Gemini 3 refuses a step whose first call has no signature: one that another model made says so.
        let mut must_sign = checks_signatures(&self.cx.profile.model);
        for part in said {
            match part {
                AssistantPart::Text(words) => parts.part(&self.words(words)),
                AssistantPart::Reasoning(_) if trim.strip_reasoning => {}
                AssistantPart::Reasoning(thought) => parts.thought(thought, &self.cx.profile.provider),
                AssistantPart::ToolCall(call) => {
                    let json = self.call(call, std::mem::take(&mut must_sign));
                    parts.part(&json);
                }
                AssistantPart::Provider(part) => {
                    let own = self.cx.own("assistant.provider_part", part);
                    // What was said about an answer is no part of it.
                    if let Some(raw) = own.filter(|_| !METADATA.contains(&part.kind.as_str())) {
                        parts.part(&raw);
                    }
                }
                _ => self.cx.no_form("assistant.part"),
            }
        }
    }

    fn words(&self, words: &AssistantText) -> String {
        let own = self.own(words.data.as_ref());
        let beside: String = own.0.iter().map(|(key, raw)| field(key, raw)).collect();
        format!("{{\"text\":{}{beside}}}", quoted(words.text.as_str()))
    }

    fn call(&self, call: &ToolCall, must_sign: bool) -> String {
        let own = self.own(call.data.as_ref());
        let id = wire_id(call, &own);
        let mut beside: String =
            own.0.iter().filter(|(key, _)| key != "id").map(|(key, raw)| field(key, raw)).collect();
        if must_sign && !own.0.iter().any(|(key, _)| is_signature(key)) {
            beside.push_str(UNSIGNED);
        }
        let (name, args) = (quoted(&self.cx.names.wire(&call.name)), object_input(&call.input));
        format!("{{\"functionCall\":{{{id}\"name\":{name},\"args\":{args}}}{beside}}}")
    }

    /// Results in the order of their calls, and then the files in them, which a result has no place for.
    fn results(&mut self, parts: &mut Parts, step: &StepRecord, trim: Trim) {
        let mut files = Parts::default();
        for (call, result) in step.pairs() {
            let mut inner = Parts::default();
            let response = self.response(&result.output, trim.clip_results, &mut inner);
            let own = self.own(call.data.as_ref());
            let id = wire_id(call, &own);
            let name = quoted(&self.cx.names.wire(&call.name));
            parts.part(&format!("{{\"functionResponse\":{{{id}\"name\":{name},\"response\":{response}}}}}"));
            if !inner.0.is_empty() {
                files.text(&format!("Files that {} gave:", call.name));
                files.part(&inner.0);
            }
        }
        if !files.0.is_empty() {
            parts.part(&files.0);
        }
    }

    /// What a tool gave back, as the object that the wire wants.
    fn response(&mut self, output: &ToolOutput, clip: Option<Clip>, files: &mut Parts) -> String {
        let result = |words: &str| format!("{{\"result\":{}}}", quoted(&clipped(words, clip)));
        match output {
            ToolOutput::Text(words) => result(words.as_str()),
            ToolOutput::Error(words) | ToolOutput::Denied(words) => {
                format!("{{\"error\":{}}}", quoted(&clipped(words.as_str(), clip)))
            }
            ToolOutput::Json(json) if clip.is_some_and(|clip| json.get().len() > clip.bytes) => {
                result(json.get())
            }
            ToolOutput::Json(json) if json.is_object() => sound(json.get()).into_owned(),
            ToolOutput::Json(json) => format!("{{\"result\":{}}}", sound(json.get())),
            ToolOutput::Content(content) => {
                let words: Vec<String> =
                    content.iter().filter_map(|part| self.content(part, clip, files)).collect();
                let words = words.join("\n");
                let words = if words.trim().is_empty() { NO_OUTPUT } else { &words };
                format!("{{\"result\":{}}}", quoted(words))
            }
            _ => result(&output.plain()),
        }
    }

    /// The words of a part of a result; a file is put aside.
    fn content(&mut self, part: &ContentPart, clip: Option<Clip>, files: &mut Parts) -> Option<String> {
        let file = match part {
            ContentPart::Text(words) => return Some(clipped(words.as_str(), clip).into_owned()),
            ContentPart::Tool(found) => return Some(clipped(found.words.as_str(), clip).into_owned()),
            ContentPart::File(file) => file,
            ContentPart::Provider(_) | _ => {
                self.cx.no_form("tool_result.part");
                return None;
            }
        };
        Some(clipped_file(file, clip).unwrap_or_else(|| match self.file(file) {
            Ok(json) => {
                files.part(&json);
                format!("[{}: it follows the results]", file.label())
            }
            Err(words) => words,
        }))
    }

    /// A file as a part, or in words where it cannot be sent.
    fn file(&mut self, file: &FilePart) -> Result<String, String> {
        let is_image = file.media_type.starts_with("image/");
        let media = quoted(&file.media_type);
        let why = match &file.source {
            _ if is_image && !self.cx.profile.vision => "the model does not see images",
            FileSource::Base64(bytes) => {
                return Ok(format!("{{\"inlineData\":{{\"mimeType\":{media},\"data\":{}}}}}", quoted(bytes)));
            }
            FileSource::Url(uri) => return Ok(file_data(file, uri)),
            FileSource::Reference { provider, id } if *provider == self.cx.profile.provider => {
                return Ok(file_data(file, id));
            }
            FileSource::Reference { .. } => "it was uploaded to another provider",
            _ => "this kind of source has no form on this wire",
        };
        Err(self.cx.not_sent(file, why))
    }

    /// What this provider attached.
    fn own<'d>(&self, data: Option<&'d ProviderData>) -> Fields<'d> {
        let ours = data.filter(|data| data.provider == self.cx.profile.provider);
        ours.and_then(|data| Fields::read(data.json.get())).unwrap_or_default()
    }
}

/// The id of a call the provider gave one: as the history has it, since a gateway may give one id to two calls
/// (case M01).
fn wire_id(call: &ToolCall, own: &Fields<'_>) -> String {
    let is_given = own.get("id").is_some();
    if is_given { format!("\"id\":{},", quoted(call.id.as_str())) } else { String::new() }
}

impl Parts {
    /// Words; blank ones say nothing.
    pub(super) fn text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.part(&format!("{{\"text\":{}}}", quoted(text)));
        }
    }

    fn part(&mut self, json: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(json);
    }

    /// Thinking goes back to the provider that sealed it; what it does not seal, it does not read again.
    fn thought(&mut self, Reasoning { text, seal }: &Reasoning, ours: &str) {
        match seal {
            Some(Seal::Signature { provider, value }) if provider == ours => self.part(&format!(
                "{{\"text\":{},\"thought\":true,\"thoughtSignature\":{}}}",
                quoted(text),
                quoted(value)
            )),
            Some(Seal::Item { provider, raw }) if provider == ours => self.part(&sound(raw.get())),
            Some(_) | None => {}
        }
    }

    /// The parts as one run; a content without parts is given one.
    pub(super) fn run(mut self, role: Role) -> Run<Role> {
        if self.0.is_empty() {
            self.text(NO_CONTENT);
        }
        Run { role, bytes: Bytes::from(self.0), splice: None }
    }
}

/// A file at an address; a media type that says nothing is left to the provider.
fn file_data(file: &FilePart, uri: &str) -> String {
    let uri = quoted(uri);
    if file.media_type.is_empty() || file.media_type.ends_with("/*") {
        return format!("{{\"fileData\":{{\"fileUri\":{uri}}}}}");
    }
    format!("{{\"fileData\":{{\"mimeType\":{},\"fileUri\":{uri}}}}}", quoted(&file.media_type))
}

fn field(key: &str, raw: &RawValue) -> String {
    format!(",{}:{}", quoted(key), sound(raw.get()))
}

/// Says that a call was made by another model, which signs nothing.
const UNSIGNED: &str = r#","thoughtSignature":"skip_thought_signature_validator""#;
/// Stands in for a content without parts.
const NO_CONTENT: &str = "(no content)";
/// Stands in for a result without words.
const NO_OUTPUT: &str = "(no output)";
