//! Pieces of the conversation as messages, encoded once.

use agent_core::{
    AssistantPart, Clip, ContentPart, FilePart, FileSource, Message, Rendered, StepRecord, ToolCall,
    ToolOutput, Trim, UserMessage, UserPart, clipped_file,
};
use bytes::Bytes;

use crate::wire::form::{Cx, Run};
use crate::wire::json::{Fields, quoted};
use crate::wire::parts::document_words;
use crate::wire::words::{clipped, object_input};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    User,
    Assistant,
    Tool,
}

/// Encodes pieces, noting what it must leave out.
#[derive(Debug)]
pub(super) struct Renderer<'r, 'e> {
    pub(super) cx: &'r mut Cx<'e>,
}

/// Words and images of one message.
#[derive(Debug, Default)]
struct Content {
    words: Vec<String>,
    images: Vec<String>,
}

impl Renderer<'_, '_> {
    pub(super) fn runs(&mut self, piece: Rendered<'_>) -> Vec<Run<Role>> {
        piece.messages().flat_map(|message| self.message(message)).collect()
    }

    fn message(&mut self, message: Message<'_>) -> Vec<Run<Role>> {
        match message {
            Message::User(said) => vec![self.user(said)],
            Message::Note(words) => vec![plain(Role::User, words)],
            Message::TurnNote(words) => {
                self.cx.unscoped();
                vec![plain(Role::User, words)]
            }
            Message::Summary(words) => vec![plain(Role::Assistant, words.as_str())],
            Message::Assistant(parts, trim) => vec![self.assistant(parts, trim)],
            Message::Tool(step, _, trim) => self.results(step, trim),
        }
    }

    fn user(&mut self, said: &UserMessage) -> Run<Role> {
        let mut content = Content::default();
        for part in said.parts() {
            match part {
                UserPart::Text(words) => content.words.push(words.as_str().to_owned()),
                UserPart::File(file) => self.file(file, &mut content, None),
                UserPart::Provider(_) | _ => self.cx.no_form("message.part"),
            }
        }
        content.run()
    }

    /// One message holds all a model said: its thinking, its words, its calls.
    fn assistant(&mut self, parts: &[AssistantPart], trim: Trim) -> Run<Role> {
        let (mut words, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
        for part in parts {
            match part {
                AssistantPart::Text(said) => words.push_str(said.text.as_str()),
                // Templates want the model's own words back; what another provider sealed is not for this one.
                AssistantPart::Reasoning(thought) if thought.seal.is_none() && !trim.strip_reasoning => {
                    thinking.push_str(&thought.text);
                }
                AssistantPart::Reasoning(_) => {}
                AssistantPart::ToolCall(call) => calls.push(self.call(call)),
                // Images that a model made are for people; no answer of a model holds any in a request.
                AssistantPart::Provider(part) => drop(self.cx.own("assistant.provider_part", part)),
                _ => self.cx.no_form("assistant.part"),
            }
        }
        if words.is_empty() && calls.is_empty() {
            words.push_str(NO_CONTENT);
        }
        let mut json = format!("{{\"role\":\"assistant\",\"content\":{}", quoted(&words));
        if !thinking.trim().is_empty() {
            json.push_str(&format!(",\"thinking\":{}", quoted(&thinking)));
        }
        if !calls.is_empty() {
            json.push_str(&format!(",\"tool_calls\":[{}]", calls.join(",")));
        }
        run(Role::Assistant, json + "}")
    }

    fn call(&self, call: &ToolCall) -> String {
        let id = self.own_id(call).map(|id| format!("\"id\":{id},")).unwrap_or_default();
        let (name, input) = (quoted(&self.cx.names.wire(&call.name)), object_input(&call.input));
        format!("{{{id}\"type\":\"function\",\"function\":{{\"name\":{name},\"arguments\":{input}}}}}")
    }

    /// A message for each result in the order of the calls, and one with the images in them, which tools have no
    /// place for.
    fn results(&mut self, step: &StepRecord, trim: Trim) -> Vec<Run<Role>> {
        let (mut runs, mut images) = (Vec::new(), Content::default());
        for (call, result) in step.pairs() {
            let words = self.output(&result.output, &call.name, trim.clip_results, &mut images);
            let id = self.own_id(call).map(|id| format!(",\"tool_call_id\":{id}")).unwrap_or_default();
            let name = quoted(&self.cx.names.wire(&call.name));
            runs.push(run(
                Role::Tool,
                format!("{{\"role\":\"tool\",\"tool_name\":{name}{id},\"content\":{}}}", quoted(&words)),
            ));
        }
        if !images.images.is_empty() {
            runs.push(images.run());
        }
        runs
    }

    fn output(
        &mut self,
        output: &ToolOutput,
        tool: &str,
        clip: Option<Clip>,
        images: &mut Content,
    ) -> String {
        let ToolOutput::Content(parts) = output else {
            return clipped(&output.plain(), clip).into_owned();
        };
        let mut content = Content::default();
        for part in parts {
            match part {
                ContentPart::Text(words) => content.words.push(clipped(words.as_str(), clip).into_owned()),
                ContentPart::Tool(found) => {
                    content.words.push(clipped(found.words.as_str(), clip).into_owned());
                }
                ContentPart::File(file) => {
                    let before = content.images.len();
                    self.file(file, &mut content, clip);
                    if content.images.len() > before {
                        content.words.push(format!("[{}: it follows the results]", file.label()));
                    }
                }
                ContentPart::Provider(_) | _ => self.cx.no_form("tool_result.part"),
            }
        }
        if !content.images.is_empty() {
            images.words.push(format!("Images that {tool} gave:"));
            images.images.append(&mut content.images);
        }
        let words = content.words.join("\n");
        if words.trim().is_empty() { NO_OUTPUT.to_owned() } else { words }
    }

    /// An image of known bytes is sent, a text in its words; every other file is named in words.
    fn file(&mut self, file: &FilePart, content: &mut Content, clip: Option<Clip>) {
        if let Some(words) = clipped_file(file, clip).or_else(|| document_words(file)) {
            return content.words.push(words);
        }
        let why = match &file.source {
            _ if !file.media_type.starts_with("image/") => "only images are taken; send the words as text",
            _ if !self.cx.profile.vision => "the model does not see images",
            FileSource::Base64(bytes) => return content.images.push(bytes.clone()),
            FileSource::Url(_) => "this provider fetches no addresses; send the bytes",
            FileSource::Reference { .. } | _ => "nothing is uploaded to this provider; send the bytes",
        };
        content.words.push(self.cx.not_sent(file, why));
    }

    /// The id that the provider gave a call, as JSON; one that was made up here is not sent.
    fn own_id(&self, call: &ToolCall) -> Option<String> {
        let data = call.data.as_ref().filter(|data| data.provider == self.cx.profile.provider)?;
        Fields::read(data.json.get())?.get("id").map(|raw| raw.get().to_owned())
    }
}

impl Content {
    fn run(self) -> Run<Role> {
        let words = if self.words.is_empty() && self.images.is_empty() {
            NO_CONTENT.to_owned()
        } else {
            self.words.join("\n")
        };
        let mut json = format!("{{\"role\":\"user\",\"content\":{}", quoted(&words));
        if !self.images.is_empty() {
            let images: Vec<String> = self.images.iter().map(|bytes| quoted(bytes)).collect();
            json.push_str(&format!(",\"images\":[{}]", images.join(",")));
        }
        run(Role::User, json + "}")
    }
}

/// A message of words.
pub(super) fn plain(role: Role, words: &str) -> Run<Role> {
    let name = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    run(role, format!("{{\"role\":\"{name}\",\"content\":{}}}", quoted(words)))
}

fn run(role: Role, json: String) -> Run<Role> {
    Run { role, bytes: Bytes::from(json), splice: None }
}

/// Stands in for a message without content.
const NO_CONTENT: &str = "(no content)";
/// Stands in for a result without words.
const NO_OUTPUT: &str = "(no output)";
