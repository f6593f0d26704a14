//! A recorded request, read back into the conversation it was made of.

use std::borrow::Cow;

use agent_core::history::UnreadableEntry;
use agent_core::step::Repair;
use agent_core::{
    AssistantPart, CallId, Diagnostic, Entry, EntryId, FilePart, FileSource, History, ModelEvent, Note,
    NoteKind, RawJson, RequestSettings, Response, StepRecord, SystemBlock, Text, Thinking, ToolCard,
    ToolChoice, ToolOutput, ToolResult, UserMessage, UserPart,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::PROVIDER;
use super::block::{Block, Done};
use crate::wire::Json;
use crate::wire::json::{Loose, LooseInt, mended, text_or_raw};

/// A recorded request as the harness would hold it.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a report of plain data, taken apart by its readers")]
pub struct Imported {
    /// The model's name.
    pub model: String,
    /// The system prompt.
    pub system: Vec<SystemBlock>,
    /// The tools this side executes.
    pub tools: Vec<ToolCard>,
    /// Limits, sampling, thinking.
    pub settings: RequestSettings,
    /// Whether and which tool had to be called.
    pub tool_choice: ToolChoice,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// The conversation, every call paired with its result.
    pub history: History,
    /// What was mended to pair them, and where.
    pub repairs: Vec<(EntryId, Repair)>,
    /// What has no place in our types and was left out.
    pub diagnostics: Vec<Diagnostic>,
}

/// Bytes that are no request of this format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Not JSON, or not an object with the fields of a request.
    #[error("the bytes are no Messages request ({0}); pass the body of a POST to /v1/messages")]
    Json(#[from] serde_json::Error),
    /// A message that is no object, or whose role is unknown.
    #[error("message {position} has the role {role:?}; only user, assistant and system are known")]
    Role {
        /// Which message, from 0.
        position: usize,
        /// Its role.
        role: String,
    },
    /// An entry we built that cannot be read back: a fault of this crate.
    #[error(transparent)]
    Entry(#[from] UnreadableEntry),
}

/// Reads the body of a recorded request. Cache markers are ignored; what cannot be represented is reported.
///
/// ```
/// use agent_providers::anthropic::import_request;
///
/// let body = br#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
/// let imported = import_request(body)?;
/// assert_eq!((imported.history.len(), imported.settings.max_output), (1, Some(9)));
/// # Ok::<(), agent_providers::anthropic::ImportError>(())
/// ```
pub fn import_request(body: &[u8]) -> Result<Imported, ImportError> {
    let text = String::from_utf8_lossy(body);
    let (text, lone) = mended(&text);
    let request: WireRequest<'_> = serde_json::from_str(&text)?;
    let mut importer = Importer { lone, ..Importer::default() };
    let system = importer.system(request.system);
    let tools = importer.tools(request.tools);
    for (position, message) in request.messages.unwrap_or_default().into_iter().enumerate() {
        importer.message(position, &message)?;
    }
    importer.end_step();
    let stored: Result<Vec<RawJson>, _> = importer.entries.iter().map(RawJson::of).collect();
    let (history, renamed) = History::load(&stored?)?;
    importer.repairs.extend(renamed);
    Ok(Imported {
        model: request.model.into_string(),
        system,
        tools,
        settings: RequestSettings {
            max_output: request.max_tokens.0.and_then(|n| u32::try_from(n).ok()),
            temperature: request.temperature,
            thinking: request.thinking.as_ref().and_then(WireThinking::mode),
            stop_sequences: request.stop_sequences.unwrap_or_default(),
        },
        tool_choice: request.tool_choice.as_ref().map_or(ToolChoice::Auto, WireChoice::choice),
        stream: request.stream.unwrap_or(false),
        history,
        repairs: importer.repairs,
        diagnostics: importer.diagnostics,
    })
}

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default)]
    model: Loose<'a>,
    #[serde(borrow, default)]
    system: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    messages: Option<Vec<WireMessage<'a>>>,
    #[serde(default)]
    max_tokens: LooseInt,
    #[serde(default)]
    temperature: Option<f32>,
    #[serde(borrow, default)]
    thinking: Option<WireThinking<'a>>,
    #[serde(default)]
    stop_sequences: Option<Vec<String>>,
    #[serde(borrow, default)]
    tool_choice: Option<WireChoice<'a>>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    role: Loose<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireThinking<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(default)]
    budget_tokens: LooseInt,
}

#[derive(Deserialize)]
struct WireChoice<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    name: Loose<'a>,
}

#[derive(Deserialize)]
struct WireTool<'a> {
    #[serde(borrow, default)]
    name: Loose<'a>,
    #[serde(borrow, default)]
    description: Loose<'a>,
    #[serde(borrow, default)]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct WireBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    tool_use_id: Loose<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    source: Option<WireSource<'a>>,
    #[serde(borrow, default)]
    title: Loose<'a>,
}

#[derive(Deserialize, Default)]
struct WireSource<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    media_type: Loose<'a>,
    #[serde(borrow, default)]
    data: Loose<'a>,
    #[serde(borrow, default)]
    url: Loose<'a>,
    #[serde(borrow, default)]
    file_id: Loose<'a>,
}

impl WireThinking<'_> {
    fn mode(&self) -> Option<Thinking> {
        match self.kind.as_str() {
            "adaptive" => Some(Thinking::Adaptive),
            "disabled" => Some(Thinking::Disabled),
            "enabled" => self.budget_tokens.0.and_then(|n| u32::try_from(n).ok()).map(Thinking::Budget),
            _ => None,
        }
    }
}

impl WireChoice<'_> {
    fn choice(&self) -> ToolChoice {
        match self.kind.as_str() {
            "any" => ToolChoice::Required,
            "none" => ToolChoice::None,
            "tool" => ToolChoice::Tool(self.name.as_str().to_owned()),
            _ => ToolChoice::Auto,
        }
    }
}

/// Groups messages into entries.
#[derive(Debug, Default)]
struct Importer {
    lone: bool,
    entries: Vec<Entry>,
    /// What the model said last; its results may still come.
    said: Option<Vec<AssistantPart>>,
    results: Vec<ToolResult>,
    /// What the user said after `said`: it stands behind the step.
    after: Vec<Entry>,
    repairs: Vec<(EntryId, Repair)>,
    diagnostics: Vec<Diagnostic>,
}

impl Importer {
    fn system(&mut self, raw: Option<&RawValue>) -> Vec<SystemBlock> {
        let blocks = self.blocks(raw);
        blocks.iter().filter_map(|raw| SystemBlock::new(self.read(raw).text.into_string())).collect()
    }

    fn tools(&mut self, raw: Option<Vec<&RawValue>>) -> Vec<ToolCard> {
        let mut cards = Vec::new();
        for raw in raw.unwrap_or_default() {
            let Ok(WireTool { name, description, input_schema: Some(schema) }) =
                serde_json::from_str(raw.get())
            else {
                self.leave_out("tools", "a tool without an input schema is run by the provider");
                continue;
            };
            let schema = RawJson::from(schema.to_owned());
            match ToolCard::new(name.into_string(), description.into_string(), &schema) {
                Ok(card) => cards.push(card),
                Err(error) => self.leave_out("tools", &error.to_string()),
            }
        }
        cards
    }

    fn message(&mut self, position: usize, message: &WireMessage<'_>) -> Result<(), ImportError> {
        let blocks = self.blocks(message.content);
        match message.role.as_str() {
            "user" => self.user(&blocks),
            "assistant" => {
                self.end_step();
                self.said = Some(self.assistant(&blocks));
            }
            "system" => {
                let texts = blocks.iter().filter_map(|raw| Text::new(self.read(raw).text.into_string()));
                let notes = texts.map(|text| Entry::Note(Note { kind: NoteKind::State, text }));
                let notes: Vec<Entry> = notes.collect();
                self.after.extend(notes);
            }
            role => return Err(ImportError::Role { position, role: role.to_owned() }),
        }
        Ok(())
    }

    fn user(&mut self, blocks: &[Cow<'_, str>]) {
        let mut parts = Vec::new();
        for raw in blocks {
            let block = self.read(raw);
            match block.kind.as_str() {
                "tool_result" => self.result(&block),
                kind => match part(&block) {
                    Some(part) => parts.push(part),
                    None => {
                        let why = format!("a {kind:?} block has no place in a user message, or is empty");
                        self.leave_out("messages", &why);
                    }
                },
            }
        }
        self.after.extend(UserMessage::new(parts).ok().map(Entry::User));
    }

    fn result(&mut self, block: &WireBlock<'_>) {
        let Ok(call) = CallId::new(block.tool_use_id.as_str()) else {
            return self.leave_out("messages", "a tool result names no call");
        };
        let inner: Vec<UserPart> =
            self.blocks(block.content).iter().filter_map(|raw| part(&self.read(raw))).collect();
        let words = inner.iter().map(|part| match part {
            UserPart::Text(text) => Some(text.as_str()),
            UserPart::File(_) | _ => None,
        });
        let words: Option<Vec<&str>> = words.collect();
        let output = match words {
            Some(words) if block.is_error == Some(true) => ToolOutput::error(words.join("\n")),
            Some(words) if words.len() < 2 => ToolOutput::text(words.concat()),
            _ => ToolOutput::Content(inner.into_iter().filter_map(content).collect()),
        };
        self.results.push(ToolResult { call, output });
    }

    fn assistant(&mut self, blocks: &[Cow<'_, str>]) -> Vec<AssistantPart> {
        let mut parts = Vec::new();
        let mut calls = 0;
        for (index, raw) in (0..).zip(blocks) {
            let mut watched: Vec<ModelEvent> = Vec::new();
            let json = Json { text: raw, lone: self.lone };
            let Ok(block) = Block::open(index, &json, calls, str::to_owned, &mut watched) else {
                self.leave_out("messages", "a block of an assistant message is no object");
                continue;
            };
            calls += usize::from(block.is_call());
            match block.close(&mut watched) {
                Done::Nothing => {}
                Done::Part(part) => parts.push(part),
                Done::Call(call) => parts.push(call.finished()),
            }
        }
        parts
    }

    /// Turns what the model said and the results that came for it into an entry, before what the user said next.
    fn end_step(&mut self) {
        let results = std::mem::take(&mut self.results);
        match self.said.take() {
            Some(parts) => {
                let (step, mended) = StepRecord::repaired(Response::of(parts), results);
                let id = EntryId::at(self.entries.len());
                self.repairs.extend(mended.into_iter().map(|repair| (id, repair)));
                self.entries.push(Entry::Step(step));
            }
            None => {
                let id = EntryId::at(self.entries.len());
                self.repairs.extend(results.into_iter().map(|result| (id, Repair::Dropped(result.call))));
            }
        }
        self.entries.append(&mut self.after);
    }

    /// The blocks of a content: a string is one text block.
    fn blocks<'a>(&mut self, raw: Option<&'a RawValue>) -> Vec<Cow<'a, str>> {
        let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Vec::new() };
        if let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            return blocks.into_iter().map(|raw| raw.get().into()).collect();
        }
        let text = crate::wire::json::quoted(&text_or_raw(raw));
        vec![format!(r#"{{"type":"text","text":{text}}}"#).into()]
    }

    fn read<'a>(&self, raw: &'a str) -> WireBlock<'a> {
        serde_json::from_str(raw).unwrap_or_default()
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.diagnostics.push(Diagnostic { what: what.to_owned(), why: why.to_owned() });
    }
}

/// A block of a user message or of a result; a document of plain text becomes words.
fn part(block: &WireBlock<'_>) -> Option<UserPart> {
    let text = |text: &str| Text::new(text).map(UserPart::Text);
    let kind = block.kind.as_str();
    if kind == "text" {
        return text(block.text.as_str());
    }
    let source = block.source.as_ref().filter(|_| matches!(kind, "image" | "document"))?;
    let (media, bytes) = match source.kind.as_str() {
        "base64" => (source.media_type.as_str(), FileSource::Base64(source.data.as_str().to_owned())),
        "url" => ("", FileSource::Url(source.url.as_str().to_owned())),
        "file" => {
            ("", FileSource::Reference { provider: PROVIDER.into(), id: source.file_id.as_str().to_owned() })
        }
        "text" => return text(source.data.as_str()),
        _ => return None,
    };
    let fallback = if kind == "image" { "image/*" } else { "application/pdf" };
    let media_type = if media.is_empty() { fallback } else { media }.to_owned();
    let name = Some(block.title.as_str().to_owned()).filter(|title| !title.is_empty());
    Some(UserPart::File(FilePart { media_type, source: bytes, name }))
}

fn content(part: UserPart) -> Option<agent_core::ContentPart> {
    match part {
        UserPart::Text(text) => Some(agent_core::ContentPart::Text(text)),
        UserPart::File(file) => Some(agent_core::ContentPart::File(file)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(messages: &str) -> Imported {
        import_request(format!(r#"{{"model":"m","messages":[{messages}]}}"#).as_bytes()).unwrap()
    }

    /// The entries of these messages, one letter each, with the number of results of a step.
    #[track_caller]
    fn check(messages: &str, expect: &str, repairs: usize) {
        let imported = import(messages);
        let sketch: Vec<String> = imported.history.entries().iter().map(sketch).collect();
        assert_eq!((sketch.join(" ").as_str(), imported.repairs.len()), (expect, repairs));
    }

    fn sketch(entry: &Entry) -> String {
        match entry {
            Entry::User(said) => format!("u{}", said.parts().len()),
            Entry::Step(step) => format!("s{}:{}", step.parts().len(), step.results().len()),
            Entry::Note(_) => "n".into(),
            Entry::Boundary(_) => "b".into(),
        }
    }

    const USER: &str = r#"{"role":"user","content":"go"}"#;
    const CALLS: &str = r#"{"role":"assistant","content":[{"type":"text","text":"ok"},
        {"type":"tool_use","id":"a","name":"f","input":{"n":1.0}},{"type":"tool_use","id":"b","name":"f","input":""}]}"#;

    fn results(ids: &[&str]) -> String {
        let blocks =
            ids.iter().map(|id| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"r"}}"#));
        format!(r#"{{"role":"user","content":[{}]}}"#, blocks.collect::<Vec<_>>().join(","))
    }

    #[test]
    fn messages_become_entries() {
        check(USER, "u1", 0);
        check(&format!("{USER},{CALLS},{}", results(&["b", "a"])), "u1 s3:2", 0);
        check(&format!("{USER},{CALLS},{},{},{USER}", results(&["a"]), results(&["b"])), "u1 s3:2 u1", 0);
        check(r#"{"role":"system","content":[{"type":"text","text":"mind"}]}"#, "n", 0);
        check(r#"{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}"#, "s1:0 s1:0", 0);
        check(r#"{"role":"user","content":[{"type":"text","text":" "},{"type":"mystery"}]}"#, "", 0);
    }

    #[test]
    fn what_is_not_paired_is_mended() {
        check(&format!("{USER},{CALLS},{USER}"), "u1 s3:2 u1", 2);
        check(&format!("{USER},{CALLS},{}", results(&["a", "x"])), "u1 s3:2", 2);
        check(&results(&["a"]), "", 1);
        let twice = format!("{USER},{CALLS},{r},{CALLS},{r}", r = results(&["a", "b"]));
        check(&twice, "u1 s3:2 s3:2", 2);
    }

    #[test]
    fn settings_tools_and_files() {
        let imported = import_request(
            br#"{"model":"m","system":"be kind","max_tokens":50,"temperature":0.5,"stream":true,
            "thinking":{"type":"enabled","budget_tokens":1024},"stop_sequences":["x"],"tool_choice":{"type":"tool","name":"f"},
            "tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}},
                     {"type":"web_search_20250305","name":"web_search"}],
            "messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},
              {"type":"document","title":"t","source":{"type":"url","url":"https://a/b.pdf"}},
              {"type":"document","source":{"type":"file","file_id":"file_1"}},
              {"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}]}]}"#,
        )
        .unwrap();
        let settings = &imported.settings;
        assert_eq!(
            (settings.max_output, settings.temperature, settings.thinking),
            (Some(50), Some(0.5), Some(Thinking::Budget(1024)))
        );
        assert_eq!((imported.system.len(), imported.tools.len(), imported.stream), (1, 1, true));
        assert_eq!(imported.tool_choice, ToolChoice::Tool("f".into()));
        assert_eq!(imported.diagnostics.len(), 1, "the server tool: {:?}", imported.diagnostics);
        insta::assert_snapshot!(serde_json::to_string(&imported.history.entries()[0]).unwrap(), @r#"{"user":[{"file":{"media_type":"image/png","source":{"base64":"AA=="}}},{"file":{"media_type":"application/pdf","source":{"url":"https://a/b.pdf"},"name":"t"}},{"file":{"media_type":"application/pdf","source":{"reference":{"provider":"anthropic","id":"file_1"}}}},{"text":"words"}]}"#);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert!(matches!(import_request(b"nope"), Err(ImportError::Json(_))));
        let error = import_request(br#"{"messages":[{"role":"tool","content":"x"}]}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "message 0 has the role \"tool\"; only user, assistant and system are known"
        );
    }
}
