//! A recorded request, read back into the conversation it was made of.

mod settings;
mod wire;

use std::borrow::Cow;

use agent_core::{AssistantPart, ModelEvent, SystemBlock, ToolCard, ToolChoice, ToolOutput, UserPart};
use serde_json::value::RawValue;

use super::block::{Block, Closed, Done, Reading};
use crate::names::ToolNames;
use crate::wire::import::{Grouping, ImportError, Imported, content_part};
use crate::wire::json::{mended, object, quoted, text_or_raw, without};
use crate::wire::{Dialect, Json};
use wire::{MARKER, WireBlock, WireChoice, WireMessage, WireRequest, WireTool, card, part};

/// Reads the body of a recorded request. Cache markers are ignored; what cannot be represented is reported.
pub(crate) fn import(dialect: &Dialect, body: &[u8]) -> Result<Imported, ImportError> {
    let text = String::from_utf8_lossy(body);
    let (text, lone) = mended(&text);
    let request: WireRequest<'_> =
        serde_json::from_str(&text).map_err(|cause| ImportError::Json { format: FORMAT, cause })?;
    let mut importer = Importer { provider: &dialect.provider, lone, groups: Grouping::default() };
    let system = importer.system(request.system);
    let tools = importer.tools(request.tools.as_deref().unwrap_or_default());
    let settings = settings::read(&request, &dialect.provider, &text);
    for (position, message) in request.messages.iter().flatten().enumerate() {
        importer.message(position, message)?;
    }
    let (history, repairs, diagnostics) = importer.groups.finish();
    Ok(Imported {
        model: request.model.into_string(),
        system,
        tools,
        settings,
        tool_choice: request.tool_choice.as_ref().map_or(ToolChoice::Auto, WireChoice::choice),
        stream: request.stream.unwrap_or(false),
        history,
        repairs,
        diagnostics,
    })
}

/// Reads messages into groups.
#[derive(Debug)]
struct Importer<'d> {
    provider: &'d str,
    lone: bool,
    groups: Grouping,
}

impl Importer<'_> {
    fn system(&mut self, raw: Option<&RawValue>) -> Vec<SystemBlock> {
        self.texts("system", raw).into_iter().filter_map(SystemBlock::new).collect()
    }

    fn tools(&mut self, all: &[&RawValue]) -> Vec<ToolCard> {
        let mut cards = Vec::new();
        for raw in all {
            match object::<WireTool<'_>>(raw.get()) {
                Ok(tool) => match card(&tool, self.provider, raw.get()) {
                    Ok(card) => cards.push(card),
                    Err(error) => self.leave_out("tools", &error.to_string()),
                },
                Err(error) => self.leave_out("tools", &format!("a tool cannot be read ({error})")),
            }
        }
        cards
    }

    fn message(&mut self, position: usize, message: &WireMessage<'_>) -> Result<(), ImportError> {
        match message.role.as_str() {
            "user" => self.user(&blocks(message.content)),
            "assistant" => {
                let parts = self.assistant(&blocks(message.content));
                self.groups.said(parts);
            }
            "system" => {
                let texts = self.texts("messages", message.content);
                texts.iter().for_each(|text| self.groups.note(text));
            }
            role => return Err(ImportError::Role { format: FORMAT, position, role: role.to_owned() }),
        }
        Ok(())
    }

    fn user(&mut self, blocks: &[Cow<'_, str>]) {
        let mut parts = Vec::new();
        for raw in blocks {
            let Some(block) = self.read("messages", raw) else { continue };
            match block.kind.as_str() {
                "tool_result" => self.result(&block),
                kind => match part(&block, self.provider, raw) {
                    Some(part) => parts.push(part),
                    None => {
                        self.leave_out("messages", &format!("a {kind:?} block is empty or cannot be read"))
                    }
                },
            }
        }
        self.groups.user(parts);
    }

    fn result(&mut self, block: &WireBlock<'_>) {
        let inner = self.result_parts(block.content);
        let words = inner.iter().map(|part| match part {
            UserPart::Text(text) => Some(text.as_str()),
            UserPart::File(_) | UserPart::Provider(_) | _ => None,
        });
        let words: Option<Vec<&str>> = words.collect();
        let is_error = block.is_error == Some(true);
        let output = match words {
            Some(words) if is_error => ToolOutput::error(words.join("\n")),
            Some(words) if words.len() < 2 => ToolOutput::text(words.concat()),
            _ => {
                let output = ToolOutput::Content(inner.into_iter().filter_map(content_part).collect());
                if is_error {
                    self.leave_out("messages", "what is no text in the result of a failed call");
                }
                if is_error { ToolOutput::error(output.plain()) } else { output }
            }
        };
        self.groups.result(block.tool_use_id.as_str(), output);
    }

    /// The parts of a result. Blank words are none, and no loss.
    fn result_parts(&mut self, raw: Option<&RawValue>) -> Vec<UserPart> {
        let mut parts = Vec::new();
        for raw in blocks(raw) {
            let Some(block) = self.read("messages", &raw) else { continue };
            let part = part(&block, self.provider, &raw);
            if part.is_none() && block.kind.as_str() != "text" {
                let why =
                    format!("a {:?} block of a tool result is empty or cannot be read", block.kind.as_str());
                self.leave_out("messages", &why);
            }
            parts.extend(part);
        }
        parts
    }

    fn assistant(&mut self, blocks: &[Cow<'_, str>]) -> Vec<AssistantPart> {
        let (mut parts, mut calls, names) = (Vec::new(), 0, ToolNames::default());
        for (index, raw) in (0..).zip(blocks) {
            let mut watched: Vec<ModelEvent> = Vec::new();
            let raw = without(raw, MARKER);
            let json = Json { text: &raw, lone: self.lone };
            let reading = Reading { provider: self.provider, names: &names, calls };
            let Ok(block) = Block::open(index, &json, reading, &mut watched) else {
                self.leave_out("messages", "a block of an assistant message is no object");
                continue;
            };
            calls += usize::from(block.is_call());
            let Closed { done, lost } = block.close(self.provider, &mut watched);
            if let Some(lost) = lost {
                self.leave_out("messages", &lost.to_string());
            }
            match done {
                Done::Nothing => {}
                Done::Part(part) => parts.push(part),
                Done::Call(call) => parts.push(call.finished()),
            }
        }
        parts
    }

    /// The words of blocks that hold nothing else.
    fn texts(&mut self, what: &str, raw: Option<&RawValue>) -> Vec<String> {
        let blocks = blocks(raw);
        let texts = blocks.iter().filter_map(|raw| Some(self.read(what, raw)?.text.into_string()));
        texts.collect()
    }

    /// The fields of a block; one that cannot be read is left out with a note.
    fn read<'a>(&mut self, what: &str, raw: &'a str) -> Option<WireBlock<'a>> {
        let block = object(raw);
        block.map_err(|error| self.leave_out(what, &format!("a block cannot be read ({error})"))).ok()
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.groups.leave_out(what, why);
    }
}

const FORMAT: &str = "anthropic";

/// The blocks of a content: a string is one text block.
fn blocks(raw: Option<&RawValue>) -> Vec<Cow<'_, str>> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Vec::new() };
    if let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        return blocks.into_iter().map(|raw| raw.get().into()).collect();
    }
    let text = quoted(&text_or_raw(raw));
    vec![format!(r#"{{"type":"text","text":{text}}}"#).into()]
}

#[cfg(test)]
mod tests {
    use agent_core::{Entry, Thinking};

    use super::*;
    use crate::wire::WireFormat;

    fn import(messages: &str) -> Imported {
        super::import(
            &WireFormat::Anthropic.into(),
            format!(r#"{{"model":"m","messages":[{messages}]}}"#).as_bytes(),
        )
        .unwrap()
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
        check(r#"{"role":"user","content":[{"type":"text","text":" "},{"type":"mystery"}]}"#, "u1", 0);
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
    fn what_is_left_out_is_said() {
        let check = |message: &str, expect: &str| {
            let imported = import(message);
            let notes: Vec<&str> = imported.diagnostics.iter().map(|note| note.why.as_str()).collect();
            assert_eq!(notes.len(), usize::from(!expect.is_empty()), "{message}: {notes:?}");
            assert!(notes.concat().contains(expect), "{message}: {notes:?}");
        };
        let said = |role: &str, block: &str| format!(r#"{{"role":"{role}","content":[{block}]}}"#);
        let result =
            |fields: &str| said("user", &format!(r#"{{"type":"tool_result","tool_use_id":"a",{fields}}}"#));
        check(&said("user", r#"{"type":"text","text":"hi"}"#), "");
        check(&said("user", "7"), "a block cannot be read (invalid type: integer `7`");
        check(&said("user", r#"["text","hi"]"#), "a block cannot be read (invalid type: sequence");
        check(
            &said("user", r#"{"type":"image","source":"file.png"}"#),
            "a \"image\" block is empty or cannot be read",
        );
        check(&said("system", "[]"), "a block cannot be read");
        check(&said("assistant", "7"), "a block of an assistant message is no object");
        check(
            &said("assistant", r#"{"type":"text","text":"hi","citations":"none"}"#),
            "citations of a text block",
        );
        check(&result(r#""content":"""#), "");
        check(&result(r#""is_error":"yes""#), "a block cannot be read");
        check(&result(r#""content":[5]"#), "a block cannot be read");
        check(&result(r#""content":[{"type":"hologram"}]"#), "");
        check(
            &result(r#""is_error":true,"content":[{"type":"hologram"}]"#),
            "what is no text in the result of a failed call",
        );
    }

    #[test]
    fn a_tool_that_cannot_be_read_is_not_taken_for_one_of_the_provider() {
        let check = |tool: &str, expect: &str| {
            let imported = super::import(
                &WireFormat::Anthropic.into(),
                format!(r#"{{"model":"m","tools":[{tool}]}}"#).as_bytes(),
            )
            .unwrap();
            assert_eq!(imported.tools.len(), usize::from(expect.is_empty()));
            let notes: String = imported.diagnostics.into_iter().map(|note| note.why).collect();
            assert!(notes.starts_with(expect), "{notes}");
        };
        check(r#"{"name":"f","input_schema":{"type":"object"}}"#, "");
        check(r#"{"type":"web_search_20250305","name":"search"}"#, "");
        check("{}", "a tool has an empty name");
        check("7", "a tool cannot be read");
        check(r#"["f","Does it.",{"type":"object"}]"#, "a tool cannot be read");
    }

    #[test]
    fn settings_tools_and_files() {
        let imported = super::import(
            &WireFormat::Anthropic.into(),
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
        assert_eq!((imported.system.len(), imported.tools.len(), imported.stream), (1, 2, true));
        assert!(!imported.tools[0].is_hosted() && imported.tools[1].is_hosted());
        assert_eq!(imported.tool_choice, ToolChoice::Tool("f".into()));
        assert_eq!(imported.diagnostics, []);
        insta::assert_snapshot!(serde_json::to_string(&imported.history.entries()[0]).unwrap(), @r#"{"user":[{"file":{"media_type":"image/png","source":{"base64":"AA=="}}},{"file":{"media_type":"application/pdf","source":{"url":"https://a/b.pdf"},"name":"t"}},{"file":{"media_type":"application/pdf","source":{"reference":{"provider":"anthropic","id":"file_1"}}}},{"file":{"media_type":"text/plain","source":{"base64":"d29yZHM="}}}]}"#);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert!(matches!(
            super::import(&WireFormat::Anthropic.into(), b"nope"),
            Err(ImportError::Json { .. })
        ));
        let error =
            super::import(&WireFormat::Anthropic.into(), br#"{"messages":[{"role":"tool","content":"x"}]}"#)
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "message 0 has the role \"tool\", which anthropic does not have; check the format"
        );
    }
}
