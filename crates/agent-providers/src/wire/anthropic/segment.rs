//! Pieces of the conversation as content blocks: encoded once, spliced where a cache marker may stand.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use agent_core::{
    AssistantPart, AssistantText, Clip, ContentPart, Entry, FilePart, FileSource, FinishKind, FoundTool,
    Message, ModelProfile, ProviderPart, Reasoning, Rendered, Seal, StepRecord, ToolCall, ToolOutput,
    ToolResult, Trim, UserPart, clipped_file, clipped_part,
};
use bytes::Bytes;

use super::block::CALL_FIELDS;
use crate::names::wire_id;
use crate::wire::base64::decoded_text;
use crate::wire::form::{Cx, Run};
use crate::wire::json::{Fields, quoted, sound, write};
use crate::wire::words::{clipped, object_input};

/// Who speaks, or how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    /// The harness, where the system may speak inside the conversation; as the user where it may not.
    Note,
    /// The same, until the user speaks again.
    TurnNote,
    /// The same, in one request only.
    Reminder,
    /// The harness, in a message of its own.
    System,
    /// The same, in one that the model does not see any more when the user has spoken again.
    TurnSystem,
    Assistant,
    /// The model, in a message that stands for all before it.
    Compacted,
}

/// Encodes pieces, noting what it must leave out.
#[derive(Debug)]
pub(super) struct Renderer<'r, 'e> {
    pub(super) cx: &'r mut Cx<'e>,
    pub(super) needs: &'r Needs,
}

/// Beta features that parts of the conversation belong to. A part stays, so what was needed once is needed for ever.
#[derive(Debug, Default)]
pub(super) struct Needs {
    files: AtomicBool,
    compaction: AtomicBool,
    compaction_edit: AtomicBool,
}

impl Needs {
    pub(super) fn all(&self) -> Vec<&'static str> {
        let known = [
            (&self.files, "files-api-2025-04-14"),
            (&self.compaction, COMPACTION),
            (&self.compaction_edit, COMPACTION_EDIT),
        ];
        known.into_iter().filter(|(is_needed, _)| is_needed.load(Relaxed)).map(|(_, name)| name).collect()
    }

    /// A block that its provider only reads with a feature switched on.
    fn block(&self, part: &ProviderPart) {
        if part.kind == "compaction" {
            let needed = if is_signed(part) { &self.compaction } else { &self.compaction_edit };
            needed.store(true, Relaxed);
        } else if FILE_KINDS.contains(&part.kind.as_str()) && part.raw.get().contains(r#""file_id""#) {
            self.files.store(true, Relaxed);
        }
    }
}

impl Renderer<'_, '_> {
    pub(super) fn runs(&mut self, piece: Rendered<'_>) -> Vec<Run<Role>> {
        let step = match piece {
            Rendered::Entry { entry: Entry::Step(step), .. } => Some(step),
            Rendered::Entry { .. } | Rendered::Summary { .. } | Rendered::Continue => None,
        };
        piece.messages().map(|message| self.run(message, step)).collect()
    }

    fn run(&mut self, message: Message<'_>, step: Option<&StepRecord>) -> Run<Role> {
        let role = match message {
            Message::User(_) | Message::Tool(..) => Role::User,
            Message::Note(_) => note_role(self.cx.profile),
            Message::TurnNote(_) => self.turn_role(),
            Message::Assistant(..) | Message::Summary(_) => self.assistant_role(step),
        };
        let mut blocks = Blocks::default();
        match message {
            Message::User(said) => said.parts().iter().for_each(|part| match part {
                UserPart::Text(words) => blocks.text(words.as_str()),
                UserPart::File(file) => self.file(&mut blocks, file),
                UserPart::Provider(part) => self.provider("message.part", &mut blocks, part),
                _ => self.cx.no_form("message.part"),
            }),
            Message::Note(words) | Message::TurnNote(words) => blocks.text(words),
            Message::Summary(words) => blocks.text(words.as_str()),
            Message::Assistant(parts, trim) => {
                let lost = step.map(|step| self.lost_uses(step)).unwrap_or_default();
                self.assistant(&mut blocks, parts, trim, &lost);
            }
            Message::Tool(_, results, trim) => {
                results.iter().for_each(|result| self.result(&mut blocks, result, trim));
            }
        }
        blocks.run(role)
    }

    fn turn_role(&mut self) -> Role {
        let ModelProfile { mid_conversation_system, turn_scoped_system, .. } = *self.cx.profile;
        if mid_conversation_system && turn_scoped_system {
            return Role::TurnNote;
        }
        self.cx.unscoped();
        note_role(self.cx.profile)
    }

    fn assistant_role(&self, step: Option<&StepRecord>) -> Role {
        let is_compacted = step.is_some_and(|step| is_compaction(step, &self.cx.profile.provider));
        if is_compacted { Role::Compacted } else { Role::Assistant }
    }

    fn assistant(&mut self, blocks: &mut Blocks, parts: &[AssistantPart], trim: Trim, lost: &[String]) {
        // Thinking at the very end of a message is refused, and means nothing without what follows it.
        let tail = parts.iter().rev().take_while(|part| matches!(part, AssistantPart::Reasoning(_))).count();
        for part in calls_last(&parts[..parts.len() - tail]) {
            match part {
                AssistantPart::Text(said) => self.words(blocks, said),
                AssistantPart::Reasoning(said) if !trim.strip_reasoning => {
                    thinking(blocks, said, &self.cx.profile.provider)
                }
                AssistantPart::Reasoning(_) => {}
                AssistantPart::ToolCall(call) => self.call(blocks, call),
                AssistantPart::Provider(part) if server_use(part).is_some_and(|id| lost.contains(&id)) => {
                    self.cx.note(OF_MODEL, format!("the result of a {:?} block never came", part.kind))
                }
                AssistantPart::Provider(part) => self.provider(OF_MODEL, blocks, part),
                _ => self.cx.no_form("assistant.part"),
            }
        }
    }

    fn words(&self, blocks: &mut Blocks, said: &AssistantText) {
        let data = said.data.as_ref().filter(|data| data.provider == self.cx.profile.provider);
        blocks.block(true, |out| {
            out.extend_from_slice(br#"{"type":"text","text":"#);
            write(out, said.text.as_str());
            if let Some(data) = data {
                out.extend_from_slice(br#","citations":"#);
                out.extend_from_slice(sound(data.json.get()).as_bytes());
            }
            out.push(b'}');
        });
    }

    fn call(&self, blocks: &mut Blocks, call: &ToolCall) {
        let data = call.data.as_ref().filter(|data| data.provider == self.cx.profile.provider);
        blocks.block(true, |out| {
            out.extend_from_slice(br#"{"type":"tool_use","id":"#);
            write(out, wire_id(call.id.as_str()).as_ref());
            out.extend_from_slice(br#","name":"#);
            write(out, self.cx.names.wire(&call.name).as_ref());
            out.extend_from_slice(br#","input":"#);
            out.extend_from_slice(object_input(&call.input).as_bytes());
            let more = data.and_then(|data| Fields::read(data.json.get())).unwrap_or_default();
            for (key, raw) in more.0.iter().filter(|(key, _)| !CALL_FIELDS.contains(&key.as_ref())) {
                out.extend_from_slice(format!(",{}:{}", quoted(key), sound(raw.get())).as_bytes());
            }
            out.push(b'}');
        });
    }

    /// A block that only its provider understands, as it was received.
    fn provider(&mut self, what: &str, blocks: &mut Blocks, part: &ProviderPart) {
        if let Some(raw) = self.cx.own(what, part) {
            self.needs.block(part);
            blocks.block(is_markable(&part.kind), |out| out.extend_from_slice(raw.as_bytes()));
        }
    }

    /// Uses of server tools whose results cannot come any more: the provider refuses them without.
    fn lost_uses(&self, step: &StepRecord) -> Vec<String> {
        let mut lost = Vec::new();
        if !may_go_on(step) {
            follow_uses(step, &self.cx.profile.provider, &mut lost);
        }
        lost
    }

    fn result(&mut self, blocks: &mut Blocks, result: &ToolResult, trim: Trim) {
        let words = match &result.output {
            ToolOutput::Text(text) | ToolOutput::Error(text) | ToolOutput::Denied(text) => {
                Some(text.as_str())
            }
            ToolOutput::Json(json) => Some(json.get()),
            ToolOutput::Content(_) | _ => None,
        };
        let words = words.map(|words| clipped(words, trim.clip_results));
        if let Some(words) = &words {
            // What is escaped is a little longer.
            blocks.bytes.reserve(words.len() + words.len() / 8 + RESULT_FRAME);
        }
        blocks.block(true, |out| {
            out.extend_from_slice(br#"{"type":"tool_result","tool_use_id":"#);
            write(out, wire_id(result.call.as_str()).as_ref());
            out.extend_from_slice(br#","content":"#);
            match (&result.output, words) {
                (_, Some(words)) => write(out, words.as_ref()),
                (ToolOutput::Content(parts), None) => {
                    out.extend_from_slice(&self.content(parts, trim.clip_results));
                }
                (_, None) => write(out, result.output.plain().as_str()),
            }
            if result.output.is_error() {
                out.extend_from_slice(br#","is_error":true"#);
            }
            out.push(b'}');
        });
    }

    /// The blocks inside a result.
    fn content(&mut self, parts: &[ContentPart], clip: Option<Clip>) -> Vec<u8> {
        let mut blocks = Blocks::default();
        for part in parts {
            match part {
                ContentPart::Text(text) => blocks.text(&clipped(text.as_str(), clip)),
                ContentPart::File(file) => match clipped_file(file, clip) {
                    Some(words) => blocks.text(&words),
                    None => self.file(&mut blocks, file),
                },
                ContentPart::Provider(part) => match clipped_part(part, clip) {
                    Some(words) => blocks.text(&words),
                    None => self.provider("tool_result.part", &mut blocks, part),
                },
                ContentPart::Tool(found) => self.found(&mut blocks, found, clip),
                _ => self.cx.no_form("tool_result.part"),
            }
        }
        [b"[", &*blocks.run(Role::User).bytes, b"]"].concat()
    }

    /// A tool that a search found, as a reference; in words where it is clipped, or is none that this request brings along:
    /// a reference to such a tool is refused.
    fn found(&self, blocks: &mut Blocks, found: &FoundTool, clip: Option<Clip>) {
        let words = clipped(found.words.as_str(), clip);
        if matches!(words, Cow::Owned(_)) || !self.cx.is_expandable(&found.name) {
            return blocks.text(&words);
        }
        blocks.block(false, |out| {
            out.extend_from_slice(br#"{"type":"tool_reference","tool_name":"#);
            write(out, self.cx.names.wire(&found.name).as_ref());
            out.push(b'}');
        });
    }

    /// An image or document; one the provider or model cannot take is named in words instead.
    fn file(&mut self, blocks: &mut Blocks, file: &FilePart) {
        let is_image = file.media_type.starts_with("image/");
        let is_pdf = file.media_type == "application/pdf";
        let source = match &file.source {
            _ if is_image && !self.cx.profile.vision => Err("the model does not see images"),
            FileSource::Base64(data) if is_image || is_pdf => {
                let media = quoted(&file.media_type);
                Ok(format!(r#"{{"type":"base64","media_type":{media},"data":{}}}"#, quoted(data)))
            }
            FileSource::Base64(data) if file.media_type.starts_with("text/") => {
                let text = decoded_text(data).filter(|text| !text.is_empty());
                text.ok_or("it is no text in base64").map(|text| {
                    format!(r#"{{"type":"text","media_type":"text/plain","data":{}}}"#, quoted(&text))
                })
            }
            FileSource::Url(url) if is_image || is_pdf => {
                Ok(format!(r#"{{"type":"url","url":{}}}"#, quoted(url)))
            }
            FileSource::Reference { provider, id } if *provider == self.cx.profile.provider => {
                self.needs.files.store(true, Relaxed);
                Ok(format!(r#"{{"type":"file","file_id":{}}}"#, quoted(id)))
            }
            FileSource::Reference { .. } => Err("it was uploaded to another provider"),
            FileSource::Base64(_) | FileSource::Url(_) | _ => {
                Err("only images, PDF documents and plain text are taken; send the words as text")
            }
        };
        match source {
            Ok(source) => blocks.block(true, |out| {
                let kind = if is_image { "image" } else { "document" };
                out.extend_from_slice(format!(r#"{{"type":"{kind}","source":{source}"#).as_bytes());
                if let Some(name) = file.name.as_ref().filter(|name| !is_image && !name.is_empty()) {
                    out.extend_from_slice(br#","title":"#);
                    write(out, name);
                }
                out.push(b'}');
            }),
            Err(why) => blocks.text(&self.cx.not_sent(file, why)),
        }
    }
}

/// Content blocks while they are written.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    bytes: Vec<u8>,
    splice: Option<usize>,
}

impl Blocks {
    /// A text block; a blank one would be refused and is left out.
    pub(super) fn text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.block(true, |out| {
                out.extend_from_slice(br#"{"type":"text","text":"#);
                write(out, text);
                out.push(b'}');
            });
        }
    }

    /// One object, written by `content`.
    fn block(&mut self, markable: bool, content: impl FnOnce(&mut Vec<u8>)) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
        content(&mut self.bytes);
        if markable {
            self.splice = Some(self.bytes.len() - 1);
        }
    }

    /// The blocks as one run; a message without content is given some.
    pub(super) fn run(mut self, role: Role) -> Run<Role> {
        if self.bytes.is_empty() {
            self.text(NO_CONTENT);
        }
        Run { role, bytes: Bytes::from(self.bytes), splice: self.splice }
    }
}

/// Parts in the order that is taken: results are looked for right behind a call, so nothing may stand there (case M04).
fn calls_last(parts: &[AssistantPart]) -> impl Iterator<Item = &AssistantPart> {
    let is_call = |part: &&AssistantPart| part.as_call().is_some();
    parts.iter().filter(move |part| !is_call(part)).chain(parts.iter().filter(is_call))
}

/// Thinking goes back to the provider that sealed it; that of others, or of nobody, is not for this one.
fn thinking(blocks: &mut Blocks, Reasoning { text, seal }: &Reasoning, ours: &str) {
    match seal {
        Some(Seal::Signature { provider, value }) if provider == ours => blocks.block(false, |out| {
            out.extend_from_slice(br#"{"type":"thinking","thinking":"#);
            write(out, text);
            out.extend_from_slice(br#","signature":"#);
            write(out, value);
            out.push(b'}');
        }),
        Some(Seal::Redacted { provider, data }) if provider == ours => blocks.block(false, |out| {
            out.extend_from_slice(br#"{"type":"redacted_thinking","data":"#);
            write(out, data);
            out.push(b'}');
        }),
        Some(_) | None => {}
    }
}

fn is_markable(kind: &str) -> bool {
    kind.ends_with("_tool_result") || matches!(kind, "server_tool_use" | "mcp_tool_use" | "compaction")
}

/// Whether the provider may still go on with what the step left open.
pub(super) fn may_go_on(step: &StepRecord) -> bool {
    match step.finish().kind {
        FinishKind::Pause | FinishKind::ToolCalls | FinishKind::Stop => true,
        FinishKind::Length
        | FinishKind::ContentFilter
        | FinishKind::Refusal
        | FinishKind::ContextWindow
        | FinishKind::Other => false,
    }
}

/// Whether the step is what the provider made of all that came before it: such a block is signed, and stands first.
pub(super) fn is_compaction(step: &StepRecord, provider: &str) -> bool {
    step.parts().iter().any(|part| match part {
        AssistantPart::Provider(part) => {
            part.provider == provider && part.kind == "compaction" && is_signed(part)
        }
        AssistantPart::Text(_) | AssistantPart::Reasoning(_) | AssistantPart::ToolCall(_) | _ => false,
    })
}

fn is_signed(part: &ProviderPart) -> bool {
    text_field(part, "signature").is_some_and(|signature| !signature.is_empty())
}

/// Adds the ids of uses of server tools in the step, and takes away those whose result is in it.
pub(super) fn follow_uses(step: &StepRecord, provider: &str, open: &mut Vec<String>) {
    let parts = step.parts().iter().filter_map(|part| match part {
        AssistantPart::Provider(part) if part.provider == provider => Some(part),
        AssistantPart::Provider(_)
        | AssistantPart::Text(_)
        | AssistantPart::Reasoning(_)
        | AssistantPart::ToolCall(_)
        | _ => None,
    });
    for part in parts {
        match (server_use(part), text_field(part, "tool_use_id")) {
            (Some(id), _) => open.push(id),
            (None, Some(id)) => open.retain(|known| *known != id),
            (None, None) => {}
        }
    }
}

/// The id of a use of a tool that the provider runs.
fn server_use(part: &ProviderPart) -> Option<String> {
    matches!(part.kind.as_str(), "server_tool_use" | "mcp_tool_use").then(|| text_field(part, "id")).flatten()
}

fn text_field(part: &ProviderPart, key: &str) -> Option<String> {
    serde_json::from_str(Fields::read(part.raw.get())?.get(key)?.get()).ok()
}

/// How words of the harness are sent.
pub(super) fn note_role(profile: &ModelProfile) -> Role {
    if profile.mid_conversation_system { Role::Note } else { Role::User }
}

/// How words of the harness for one request are sent.
pub(super) fn reminder_role(profile: &ModelProfile) -> Role {
    if profile.mid_conversation_system { Role::Reminder } else { Role::User }
}

/// Blocks that may name an uploaded file.
const FILE_KINDS: [&str; 3] = ["container_upload", "document", "image"];
/// A conversation made smaller when asked to.
pub(super) const COMPACTION: &str = "compact-2026-09-04";
/// One made smaller by itself, as the request allows.
pub(super) const COMPACTION_EDIT: &str = "compact-2026-01-12";
const OF_MODEL: &str = "assistant.provider_part";
/// Somewhat more than the frame of a result takes, with an id of usual length.
const RESULT_FRAME: usize = 128;
/// Stands in for a message without content.
const NO_CONTENT: &str = "(no content)";
