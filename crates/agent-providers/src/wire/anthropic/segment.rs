//! Pieces of the conversation as content blocks: encoded once, spliced where a cache marker may stand.

use std::borrow::Cow;

use agent_core::{
    AssistantPart, ContentPart, FilePart, FileSource, Message, Reasoning, Rendered, Seal, ToolInput,
    ToolOutput, ToolResult, Trim, UserPart,
};
use bytes::Bytes;

use crate::names::wire_id;
use crate::wire::form::{Cx, Run};
use crate::wire::json::{quoted, sound, write};
use crate::wire::words::{clipped, label};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
}

/// Encodes pieces, noting what it must leave out.
#[derive(Debug)]
pub(super) struct Renderer<'r, 'e> {
    pub(super) cx: &'r mut Cx<'e>,
}

impl Renderer<'_, '_> {
    pub(super) fn runs(&mut self, piece: Rendered<'_>) -> Vec<Run<Role>> {
        piece.messages().map(|message| self.run(message)).collect()
    }

    fn run(&mut self, message: Message<'_>) -> Run<Role> {
        let role = match message {
            Message::User(_) | Message::Note(_) | Message::Tool(..) => Role::User,
            Message::Assistant(..) | Message::Summary(_) => Role::Assistant,
        };
        let mut blocks = Blocks::default();
        match message {
            Message::User(said) => said.parts().iter().for_each(|part| match part {
                UserPart::Text(words) => blocks.text(words.as_str()),
                UserPart::File(file) => self.file(&mut blocks, file),
                _ => self.leave_out("message.part", "this kind of part has no form on this wire"),
            }),
            Message::Note(words) => blocks.text(words),
            Message::Summary(words) => blocks.text(words.as_str()),
            Message::Assistant(parts, trim) => self.assistant(&mut blocks, parts, trim),
            Message::Tool(_, results, trim) => {
                results.iter().for_each(|result| self.result(&mut blocks, result, trim));
            }
        }
        blocks.run(role)
    }

    fn assistant(&mut self, blocks: &mut Blocks, parts: &[AssistantPart], trim: Trim) {
        // Thinking at the very end of a message is refused, and means nothing without what follows it.
        let tail = parts.iter().rev().take_while(|part| matches!(part, AssistantPart::Reasoning(_))).count();
        for part in calls_last(&parts[..parts.len() - tail]) {
            match part {
                AssistantPart::Text(said) => blocks.block(true, |out| {
                    out.extend_from_slice(br#"{"type":"text","text":"#);
                    write(out, said.text.as_str());
                    if let Some(data) =
                        said.data.as_ref().filter(|data| data.provider == self.cx.profile.provider)
                    {
                        out.extend_from_slice(br#","citations":"#);
                        out.extend_from_slice(sound(data.json.get()).as_bytes());
                    }
                    out.push(b'}');
                }),
                AssistantPart::Reasoning(said) if !trim.strip_reasoning => {
                    thinking(blocks, said, &self.cx.profile.provider)
                }
                AssistantPart::Reasoning(_) => {}
                AssistantPart::ToolCall(call) => blocks.block(true, |out| {
                    out.extend_from_slice(br#"{"type":"tool_use","id":"#);
                    write(out, wire_id(call.id.as_str()).as_ref());
                    out.extend_from_slice(br#","name":"#);
                    write(out, self.cx.names.wire(&call.name).as_ref());
                    out.extend_from_slice(br#","input":"#);
                    out.extend_from_slice(input(&call.input).as_bytes());
                    out.push(b'}');
                }),
                AssistantPart::Provider(part)
                    if part.provider == self.cx.profile.provider && part.raw.is_object() =>
                {
                    blocks.block(is_markable(&part.kind), |out| {
                        out.extend_from_slice(sound(part.raw.get()).as_bytes());
                    });
                }
                AssistantPart::Provider(part) => self.leave_out(
                    "assistant.provider_part",
                    &format!("a {:?} block of {} means nothing to this provider", part.kind, part.provider),
                ),
                _ => self.leave_out("assistant.part", "this kind of part has no form on this wire"),
            }
        }
    }

    fn result(&mut self, blocks: &mut Blocks, result: &ToolResult, trim: Trim) {
        let words = match &result.output {
            ToolOutput::Text(text) | ToolOutput::Error(text) | ToolOutput::Denied(text) => {
                Some(text.as_str())
            }
            ToolOutput::Json(json) => Some(json.get()),
            ToolOutput::Content(_) | _ => None,
        };
        let content = match (&result.output, words) {
            (_, Some(words)) => quoted(&clipped(words, trim.clip_results)).into_bytes(),
            (ToolOutput::Content(parts), None) => self.content(parts, trim.clip_results),
            (_, None) => quoted(&result.output.plain()).into_bytes(),
        };
        blocks.block(true, |out| {
            out.extend_from_slice(br#"{"type":"tool_result","tool_use_id":"#);
            write(out, wire_id(result.call.as_str()).as_ref());
            out.extend_from_slice(br#","content":"#);
            out.extend_from_slice(&content);
            if result.output.is_error() {
                out.extend_from_slice(br#","is_error":true"#);
            }
            out.push(b'}');
        });
    }

    /// The blocks inside a result. A clipped file is gone whole: half of one is of no use.
    fn content(&mut self, parts: &[ContentPart], clip: Option<usize>) -> Vec<u8> {
        let mut blocks = Blocks::default();
        for part in parts {
            match part {
                ContentPart::Text(text) => blocks.text(&clipped(text.as_str(), clip)),
                ContentPart::File(file) => match (&file.source, clip) {
                    (FileSource::Base64(data), Some(limit)) if data.len() > limit => {
                        blocks.text(&format!("[{}, {} bytes removed]", label(file), data.len()));
                    }
                    _ => self.file(&mut blocks, file),
                },
                _ => self.leave_out("tool_result.part", "this kind of part has no form on this wire"),
            }
        }
        [b"[", &*blocks.run(Role::User).bytes, b"]"].concat()
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
            FileSource::Url(url) if is_image || is_pdf => {
                Ok(format!(r#"{{"type":"url","url":{}}}"#, quoted(url)))
            }
            FileSource::Reference { provider, id } if *provider == self.cx.profile.provider => {
                Ok(format!(r#"{{"type":"file","file_id":{}}}"#, quoted(id)))
            }
            FileSource::Reference { .. } => Err("it was uploaded to another provider"),
            FileSource::Base64(_) | FileSource::Url(_) | _ => {
                Err("only images and PDF documents are taken; send the words as text")
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
            Err(why) => {
                blocks.text(&format!("[{}: not sent, {why}]", label(file)));
                self.leave_out("file", &format!("{} was named in words: {why}", label(file)));
            }
        }
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.cx.note(what, why);
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

/// The input of a call, byte for byte; what is no JSON object is wrapped into one, since the wire takes no other.
fn input(input: &ToolInput) -> Cow<'_, str> {
    match input {
        ToolInput::Json(json) if json.is_object() => sound(json.get()),
        ToolInput::Json(_) | ToolInput::Invalid(_) | ToolInput::Truncated(_) => {
            Cow::Owned(format!(r#"{{"invalid_json":{}}}"#, quoted(input.as_str())))
        }
    }
}

fn is_markable(kind: &str) -> bool {
    kind.ends_with("_tool_result") || matches!(kind, "server_tool_use" | "mcp_tool_use" | "compaction")
}

/// Stands in for a message without content.
const NO_CONTENT: &str = "(no content)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_objects() {
        let check = |given: ToolInput, expect: &str| assert_eq!(input(&given), expect);
        check(
            ToolInput::finished(r#"{ "b":1.0,"a":12345678901234567890 }"#),
            r#"{ "b":1.0,"a":12345678901234567890 }"#,
        );
        check(ToolInput::finished("[1]"), r#"{"invalid_json":"[1]"}"#);
        check(ToolInput::finished("{\"a"), r#"{"invalid_json":"{\"a"}"#);
        check(ToolInput::cut(""), r#"{"invalid_json":""}"#);
        check(ToolInput::finished(r#"{"a":"\ud83d"}"#), "{\"a\":\"\u{fffd}\"}");
    }
}
