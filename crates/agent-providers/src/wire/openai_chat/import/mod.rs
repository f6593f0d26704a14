//! A recorded request of Chat Completions, read back into the conversation it was made of.

mod settings;

use agent_core::{
    AssistantPart, FilePart, FileSource, ProviderData, ProviderPart, RawJson, SystemBlock, Text, ToolCard,
    ToolOutput, UserPart,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::{Said, said};
use super::{FORMAT, files};
use crate::wire::import::{Grouping, ImportError, Imported, content_part};
use crate::wire::json::{Fields, Loose, mended, object, quoted, received, text_or_raw, without};
use crate::wire::{Dialect, Json};

/// Reads the body of a recorded request. Cache markers are ignored; what cannot be represented is reported.
pub(crate) fn import(dialect: &Dialect, body: &[u8]) -> Result<Imported, ImportError> {
    let text = String::from_utf8_lossy(body);
    let (text, lone) = mended(&text);
    let no_request = |cause| ImportError::Json { format: FORMAT, cause };
    let fields: Fields<'_> = object(&text).map_err(no_request)?;
    let request: WireRequest<'_> = object(&text).map_err(no_request)?;
    let mut importer = Importer { dialect, lone, groups: Grouping::default(), system: Vec::new() };
    let tools = importer.tools(request.tools.unwrap_or_default());
    for (position, message) in request.messages.unwrap_or_default().into_iter().enumerate() {
        importer.message(position, message)?;
    }
    let (settings, tool_choice) = settings::read(dialect, &fields);
    let Importer { groups, system, .. } = importer;
    let (history, repairs, diagnostics) = groups.finish();
    Ok(Imported {
        model: request.model.into_string(),
        system,
        tools,
        settings,
        tool_choice,
        stream: request.stream.unwrap_or(false),
        history,
        repairs,
        diagnostics,
    })
}

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default)]
    model: Loose<'a>,
    #[serde(borrow, default)]
    messages: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default)]
    role: Loose<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_call_id: Loose<'a>,
    #[serde(borrow, default)]
    name: Loose<'a>,
}

#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Loose<'a>,
}

#[derive(Deserialize)]
struct WireFunction<'a> {
    #[serde(borrow, default)]
    name: Loose<'a>,
    #[serde(borrow, default)]
    description: Loose<'a>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
}

/// Reads messages into groups.
#[derive(Debug)]
struct Importer<'d> {
    dialect: &'d Dialect,
    lone: bool,
    groups: Grouping,
    system: Vec<SystemBlock>,
}

impl Importer<'_> {
    fn message(&mut self, position: usize, raw: &RawValue) -> Result<(), ImportError> {
        let message: WireMessage<'_> =
            object(raw.get()).map_err(|cause| ImportError::Json { format: FORMAT, cause })?;
        match message.role.as_str() {
            "system" | "developer" => self.system(&message),
            "user" => {
                if message.name.0.is_some() {
                    self.leave_out("the name of a user has no place; its message is kept");
                }
                let parts = self.parts(message.content);
                self.groups.user(parts);
            }
            "assistant" => self.assistant(raw),
            "tool" => {
                let output = self.output(message.content);
                self.groups.result(message.tool_call_id.as_str(), output);
            }
            "function" => {
                let call = self.groups.unanswered(message.name.as_str()).cloned();
                let output = self.output(message.content);
                self.groups.result(call.as_ref().map_or("", |call| call.as_str()), output);
            }
            role => return Err(ImportError::Role { format: FORMAT, position, role: role.to_owned() }),
        }
        Ok(())
    }

    /// What stands before the conversation is its system prompt; what stands inside of it a note.
    fn system(&mut self, message: &WireMessage<'_>) {
        for part in self.parts(message.content) {
            match part {
                UserPart::Text(text) if self.groups.is_empty() => {
                    self.system.extend(SystemBlock::new(text.as_str()));
                }
                UserPart::Text(text) => self.groups.note(text.as_str()),
                UserPart::File(_) | _ => self.leave_out("a part of the system prompt is no text"),
            }
        }
    }

    fn assistant(&mut self, raw: &RawValue) {
        match said(self.dialect, &Json { text: raw.get(), lone: self.lone }) {
            Ok(Said { parts }) => self.groups.said(parts),
            Err(error) => {
                self.leave_out(&format!("an assistant message cannot be read ({})", error.message));
                self.groups.said(Vec::<AssistantPart>::new());
            }
        }
    }

    fn output(&mut self, content: Option<&RawValue>) -> ToolOutput {
        let parts = self.parts(content);
        let words: Option<Vec<&str>> = parts.iter().map(words).collect();
        match words {
            Some(words) if words.len() < 2 => ToolOutput::text(words.concat()),
            Some(_) | None => ToolOutput::Content(parts.into_iter().filter_map(content_part).collect()),
        }
    }

    /// The parts of a content: a string is one text. Blank words are none, and no loss.
    fn parts(&mut self, content: Option<&RawValue>) -> Vec<UserPart> {
        let Some(raw) = content.filter(|raw| raw.get() != "null") else { return Vec::new() };
        let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
            return Text::new(self.sound(&text_or_raw(raw))).map(UserPart::Text).into_iter().collect();
        };
        list.into_iter().filter_map(|raw| self.part(raw)).collect()
    }

    fn part(&mut self, raw: &RawValue) -> Option<UserPart> {
        let part: WirePart<'_> = match object(raw.get()) {
            Ok(part) => part,
            Err(error) => {
                self.leave_out(&format!("a part cannot be read ({error})"));
                return None;
            }
        };
        if let "text" | "output_text" | "input_text" = part.kind.as_str() {
            return Text::new(self.sound(part.text.as_str())).map(UserPart::Text);
        }
        match files::read(raw.get()) {
            Some(file) => Some(UserPart::File(self.owned(file))),
            None => self.kept(part.kind.into_string(), raw),
        }
    }

    /// A part that our types do not say wholly, as it is; a cache marker is none of it.
    fn kept(&mut self, kind: String, raw: &RawValue) -> Option<UserPart> {
        let raw = MARKERS.iter().fold(raw.get().to_owned(), |raw, marker| without(&raw, marker).into_owned());
        let raw = self.sound(&raw);
        let raw =
            RawJson::parse(raw).map_err(|error| self.leave_out(&format!("a part cannot be kept ({error})")));
        Some(UserPart::Provider(ProviderPart {
            provider: self.dialect.provider.clone(),
            kind,
            raw: raw.ok()?,
        }))
    }

    fn owned(&self, file: FilePart) -> FilePart {
        let FilePart { media_type, source, name } = file;
        let source = match source {
            FileSource::Reference { id, .. } => {
                FileSource::Reference { provider: self.dialect.provider.clone(), id }
            }
            FileSource::Base64(_) | FileSource::Url(_) | _ => source,
        };
        FilePart { media_type, source, name }
    }

    fn sound(&self, text: &str) -> String {
        received(text, self.lone)
    }

    fn tools(&mut self, tools: Vec<&RawValue>) -> Vec<ToolCard> {
        let cards = tools.into_iter().map(|raw| self.tool(raw)).collect::<Vec<_>>();
        cards.into_iter().flatten().collect()
    }

    fn tool(&mut self, raw: &RawValue) -> Option<ToolCard> {
        let card = self.card(raw);
        card.map_err(|why| self.groups.leave_out("tools", &format!("a tool cannot be read ({why})"))).ok()
    }

    /// A function of ours, or an entry that the provider runs.
    fn card(&self, raw: &RawValue) -> Result<ToolCard, String> {
        let entry: Fields<'_> = object(raw.get()).map_err(|error| error.to_string())?;
        let Some(function) = entry.get("function") else {
            let text = |key: &str| entry.get(key).map(text_or_raw).unwrap_or_default().into_owned();
            let custom = entry.get("custom").and_then(|raw| Fields::read(raw.get()));
            let custom = custom.and_then(|inner| inner.get("name").map(text_or_raw)).unwrap_or_default();
            let names = [text("name"), custom.into_owned(), text("type")];
            let name = names.into_iter().find(|name| !name.is_empty());
            let data = self.data(raw.get().to_owned())?;
            return ToolCard::hosted(name.unwrap_or_default(), data).map_err(|error| error.to_string());
        };
        let wire: WireFunction<'_> = object(function.get()).map_err(|error| error.to_string())?;
        let schema = wire.parameters.filter(|raw| raw.get() != "null");
        let schema = schema.map_or_else(RawJson::empty_object, |raw| RawJson::from(raw.to_owned()));
        let card = ToolCard::new(wire.name.into_string(), wire.description.into_string(), &schema)
            .map_err(|error| error.to_string())?;
        let inner = others(function.get(), &["name", "description", "parameters"]);
        let mut fields = others(raw.get(), &["type", "function", "cache_control"]);
        if !inner.is_empty() {
            fields.push(format!(r#""function":{{{}}}"#, inner.join(",")));
        }
        if fields.is_empty() {
            return Ok(card);
        }
        let data = self.data(format!("{{{}}}", fields.join(",")))?;
        card.with_data(data).map_err(|error| error.to_string())
    }

    fn data(&self, json: String) -> Result<ProviderData, String> {
        let json = RawJson::parse(json).map_err(|error| error.to_string())?;
        Ok(ProviderData { provider: self.dialect.provider.clone(), json })
    }

    fn leave_out(&mut self, why: &str) {
        self.groups.leave_out("messages", why);
    }
}

/// The fields of an object but these.
fn others(raw: &str, known: &[&str]) -> Vec<String> {
    let fields = Fields::read(raw).unwrap_or_default().0.into_iter();
    let others = fields.filter(|(key, raw)| !known.contains(&key.as_ref()) && raw.get() != "null");
    others.map(|(key, raw)| format!("{}:{raw}", quoted(&key))).collect()
}

fn words(part: &UserPart) -> Option<&str> {
    match part {
        UserPart::Text(text) => Some(text.as_str()),
        UserPart::File(_) | UserPart::Provider(_) | _ => None,
    }
}

/// Where a request is marked is decided when it is made.
const MARKERS: [&str; 2] = ["cache_control", "prompt_cache_breakpoint"];

#[cfg(test)]
mod tests {
    use agent_core::{Effort, Entry, ServiceTier, Thinking, ToolChoice};

    use super::super::quirks::Quirks;
    use super::*;
    use crate::wire::WireFormat;

    fn dialect(provider: &str) -> Dialect {
        Dialect {
            format: WireFormat::OpenAiChat,
            provider: provider.to_owned(),
            quirks: Quirks::of(provider),
        }
    }

    fn import(provider: &str, fields: &str) -> Imported {
        super::import(&dialect(provider), format!("{{\"model\":\"m\",{fields}}}").as_bytes()).unwrap()
    }

    fn talk(messages: &str) -> Imported {
        import("openai-chat", &format!("\"messages\":[{messages}]"))
    }

    /// The entries of these messages, one letter each, with the parts and results of a step; and what was mended.
    #[track_caller]
    fn check(messages: &str, expect: &str, repairs: usize) {
        let imported = talk(messages);
        let sketch = imported.history.entries().iter().map(|entry| match entry {
            Entry::User(said) => format!("u{}", said.parts().len()),
            Entry::Step(step) => format!("s{}:{}", step.parts().len(), step.results().len()),
            Entry::Note(_) => "n".into(),
            Entry::Boundary(_) => "b".into(),
        });
        let sketch: Vec<String> = sketch.collect();
        assert_eq!((sketch.join(" ").as_str(), imported.repairs.len()), (expect, repairs));
    }

    const USER: &str = r#"{"role":"user","content":"go"}"#;
    const CALLS: &str = r#"{"role":"assistant","content":"ok","tool_calls":[
        {"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1.0}"}},
        {"id":"b","type":"function","function":{"name":"f","arguments":""}}]}"#;

    fn result(id: &str) -> String {
        format!(r#"{{"role":"tool","tool_call_id":"{id}","content":"r"}}"#)
    }

    #[test]
    fn messages_become_entries() {
        check(USER, "u1", 0);
        check(&format!("{USER},{CALLS},{},{},{USER}", result("b"), result("a")), "u1 s3:2 u1", 0);
        check(&format!("{USER},{CALLS},{},{USER}", result("a")), "u1 s3:2 u1", 1);
        check(&format!("{USER},{CALLS},{},{}", result("a"), result("x")), "u1 s3:2", 2);
        check(
            &format!(r#"{{"role":"developer","content":"mind"}},{USER},{{"role":"system","content":"now"}}"#),
            "u1 n",
            0,
        );
        check(
            r#"{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"r"}"#,
            "s1:1",
            0,
        );
        check(r#"{"role":"assistant","content":null},{"role":"user","content":" "}"#, "s0:0", 0);
        let system = talk(&format!(
            r#"{{"role":"system","content":[{{"type":"text","text":"a","cache_control":{{}}}},{{"type":"text","text":"b"}}]}},{USER}"#
        ));
        assert_eq!(system.system.iter().map(SystemBlock::text).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let check = |message: &str, expect: &str| {
            let imported = talk(message);
            let notes: Vec<&str> = imported.diagnostics.iter().map(|note| note.why.as_str()).collect();
            assert_eq!(notes.len(), usize::from(!expect.is_empty()), "{message}: {notes:?}");
            assert!(notes.concat().contains(expect), "{message}: {notes:?}");
        };
        let said = |part: &str| format!(r#"{{"role":"user","content":[{part}]}}"#);
        let image = |detail: &str| {
            said(&format!(r#"{{"type":"image_url","image_url":{{"url":"https://a","detail":"{detail}"}}}}"#))
        };
        check(&said(r#"{"type":"text","text":"hi"}"#), "");
        check(&image("auto"), "");
        check(&image("high"), "");
        check(&said("7"), "a part cannot be read");
        check(&said(r#"{"type":"hologram"}"#), "");
        check(r#"{"role":"user","name":"ann","content":"hi"}"#, "the name of a user");
        check(r#"{"role":"assistant","tool_calls":7}"#, "an assistant message cannot be read");
        check(r#"{"role":"system","content":[{"type":"image_url","image_url":"https://a"}]}"#, "is no text");
        let tools = import(
            "groq",
            r#""messages":[],"tools":[7,{"type":"web"},{"type":"function","function":{"name":""}}]"#,
        );
        assert_eq!((tools.tools.len(), tools.diagnostics.len()), (1, 2), "{:?}", tools.diagnostics);
        assert!(tools.tools[0].is_hosted());
    }

    #[test]
    fn settings_are_read_as_the_provider_means_them() {
        let settings = |provider: &str, fields: &str| {
            let imported = import(provider, fields);
            let extra: Vec<String> =
                imported.settings.extra.iter().map(|data| data.json.get().to_owned()).collect();
            (imported.settings, extra.join(" "), imported.tool_choice)
        };
        let (all, extra, choice) = settings(
            "openai-chat",
            r#""max_completion_tokens":9,"temperature":0.7,"top_p":0.123456789,"seed":-7,"stop":"x",
            "reasoning_effort":"low","service_tier":"default","parallel_tool_calls":false,
            "tool_choice":{"type":"function","function":{"name":"f"}},"logit_bias":{"1":1.0},"stream":true"#,
        );
        assert_eq!((all.max_output, all.temperature, all.seed), (Some(9), Some(0.7), Some(-7)));
        assert_eq!((all.effort, all.service_tier), (Some(Effort::Low), Some(ServiceTier::Standard)));
        assert_eq!((all.stop_sequences, all.parallel_tool_calls), (vec!["x".to_owned()], Some(false)));
        assert_eq!(choice, ToolChoice::Tool("f".into()));
        assert_eq!(
            extra, r#"{"top_p":0.123456789,"logit_bias":{"1":1.0}}"#,
            "what cannot be said exactly stays"
        );
        let thinking = |provider: &str, fields: &str| {
            let (settings, extra, _) = settings(provider, fields);
            (settings.thinking, settings.effort, extra)
        };
        let none = String::new;
        let enabled = r#""thinking":{"type":"enabled"}"#;
        assert_eq!(thinking("deepseek", enabled), (Some(Thinking::Adaptive), None, none()));
        assert_eq!(thinking("groq", enabled), (None, None, format!("{{{enabled}}}")));
        assert_eq!(
            thinking("openai-chat", r#""reasoning_effort":"none""#),
            (Some(Thinking::Disabled), None, none())
        );
        assert_eq!(
            thinking("openrouter", r#""reasoning":{"effort":"high","exclude":true}"#),
            (None, Some(Effort::High), r#"{"reasoning":{"exclude":true}}"#.to_owned())
        );
        assert_eq!(
            thinking("openrouter", r#""reasoning":{"max_tokens":2048}"#),
            (Some(Thinking::Budget(2048)), None, none())
        );
        let odd = r#""reasoning":{"max_tokens":2048,"effort":"low"}"#;
        assert_eq!(thinking("openrouter", odd), (None, None, format!("{{{odd}}}")));
        assert_eq!(
            thinking("vllm", r#""chat_template_kwargs":{"enable_thinking":false,"reasoning_effort":"low"}"#),
            (
                Some(Thinking::Disabled),
                None,
                r#"{"chat_template_kwargs":{"reasoning_effort":"low"}}"#.to_owned()
            )
        );
        assert_eq!(
            thinking("llamacpp", r#""chat_template_kwargs":{"reasoning_effort":"low","n":1.0}"#),
            (None, Some(Effort::Low), r#"{"chat_template_kwargs":{"n":1.0}}"#.to_owned())
        );
        let odd = r#""tool_choice":{"type":"allowed_tools","allowed_tools":{}}"#;
        assert_eq!(settings("openai-chat", odd).1, format!("{{{odd}}}"));
    }

    #[test]
    fn choices_name_tools() {
        let check = |choice: &str, expect: ToolChoice| {
            let imported = import("openai-chat", &format!(r#""tool_choice":{choice}"#));
            assert_eq!((imported.tool_choice, imported.settings.extra), (expect, vec![]), "{choice}");
        };
        let allowed = |required| ToolChoice::Allowed { tools: vec!["f".into(), "g".into()], required };
        let several = |mode: &str| {
            let f = r#"{"type":"function","function":{"name":"f"}}"#;
            let g = r#"{"type":"custom","custom":{"name":"g"}}"#;
            format!(r#"{{"type":"allowed_tools","allowed_tools":{{"mode":"{mode}","tools":[{f},{g}]}}}}"#)
        };
        check(r#"{"type":"function","function":{"name":"f"}}"#, ToolChoice::Tool("f".into()));
        check(r#"{"type":"custom","custom":{"name":"g"}}"#, ToolChoice::Tool("g".into()));
        check(&several("auto"), allowed(false));
        check(&several("required"), allowed(true));
        check(r#""any""#, ToolChoice::Required);
        let tools = r#""tools":[{"type":"custom","custom":{"name":"g"}}]"#;
        assert_eq!(import("openai-chat", tools).tools[0].name(), "g");
    }

    #[test]
    fn what_our_types_do_not_have_is_kept_for_its_provider() {
        for marker in MARKERS {
            let said = format!(
                r#"{{"role":"user","content":[{{"type":"hologram","n":1.0,"{marker}":{{"mode":"explicit"}}}}]}}"#
            );
            let imported = talk(&said);
            let entry = serde_json::to_string(&imported.history.entries()[0]).unwrap();
            assert_eq!(
                entry,
                r#"{"user":[{"provider":{"provider":"openai-chat","kind":"hologram","raw":{"type":"hologram","n":1.0}}}]}"#
            );
            assert_eq!(imported.diagnostics, []);
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let plain = dialect("openai-chat");
        assert!(matches!(super::import(&plain, b"nope"), Err(ImportError::Json { .. })));
        assert!(matches!(super::import(&plain, b"[]"), Err(ImportError::Json { .. })));
        let error = super::import(&plain, br#"{"messages":[{"role":"oracle","content":"x"}]}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "message 0 has the role \"oracle\", which openai-chat does not have; check the format"
        );
    }
}
