//! A recorded request, read back into the conversation it was made of.

mod settings;

use std::borrow::Cow;

use agent_core::{
    AssistantPart, CallId, ContentPart, FilePart, FileSource, ProviderData, ProviderPart, RawJson, Reasoning,
    SystemBlock, Text, ToolCall, ToolCard, ToolInput, ToolOutput, UserPart,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::part::{Part, WireCall, WireResult, data, item_seal, owned, text_part, thought_part};
use crate::wire::Dialect;
use crate::wire::import::{Grouping, ImportError, Imported};
use crate::wire::json::{Fields, Loose, mended, object, quoted, received, text_or_raw};
use settings::{settings, tool_choice};

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default, rename = "systemInstruction", alias = "system_instruction")]
    system: Option<WireContent<'a>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    contents: Option<Vec<WireContent<'a>>>,
}

#[derive(Deserialize)]
struct WireContent<'a> {
    #[serde(borrow, default)]
    role: Loose<'a>,
    #[serde(borrow, default)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct WireFunction<'a> {
    #[serde(borrow, default)]
    name: Loose<'a>,
    #[serde(borrow, default)]
    description: Loose<'a>,
    #[serde(borrow, default)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "parametersJsonSchema")]
    schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireBlob<'a> {
    #[serde(borrow, default, rename = "mimeType", alias = "mime_type")]
    media: Loose<'a>,
    #[serde(borrow, default)]
    data: Loose<'a>,
    #[serde(borrow, default, rename = "fileUri", alias = "file_uri")]
    uri: Loose<'a>,
}

/// Reads the body of a recorded request. The model and the way of the answer are in its address, not in it.
pub(crate) fn import(dialect: &Dialect, body: &[u8]) -> Result<Imported, ImportError> {
    let text = String::from_utf8_lossy(body);
    let (text, lone) = mended(&text);
    let failed = |cause| ImportError::Json { format: FORMAT, cause };
    let request: WireRequest<'_> = object(&text).map_err(failed)?;
    let fields: Fields<'_> = object(&text).map_err(failed)?;
    let mut importer = Importer { lone, provider: &dialect.provider, groups: Grouping::default(), calls: 0 };
    let system = request.system.map(|content| importer.system(&content)).unwrap_or_default();
    let tools = importer.tools(request.tools.unwrap_or_default());
    let mut last = String::new();
    for (position, content) in request.contents.unwrap_or_default().iter().enumerate() {
        importer.content(position, content, &mut last)?;
    }
    let (history, repairs, diagnostics) = importer.groups.finish();
    let (tool_choice, rest_of_choice) = tool_choice(&fields);
    let settings = settings(&fields, rest_of_choice, &dialect.provider);
    let model = fields.get("model").map(|raw| text_or_raw(raw).into_owned()).unwrap_or_default();
    Ok(Imported { model, system, tools, settings, tool_choice, stream: false, history, repairs, diagnostics })
}

/// Reads contents into groups.
#[derive(Debug)]
struct Importer<'i> {
    lone: bool,
    provider: &'i str,
    groups: Grouping,
    /// Calls so far, for those without an id.
    calls: usize,
}

impl Importer<'_> {
    fn system(&mut self, content: &WireContent<'_>) -> Vec<SystemBlock> {
        let mut blocks = Vec::new();
        for raw in content.parts.iter().flatten() {
            match Part::read(raw) {
                Ok(Part::Text(said)) => blocks.extend(SystemBlock::new(said.text)),
                Ok(_) | Err(_) => self.leave_out("system", "a part of the system prompt holds no words"),
            }
        }
        blocks
    }

    fn tools(&mut self, entries: Vec<&RawValue>) -> Vec<ToolCard> {
        let mut cards = Vec::new();
        for entry in entries {
            let Some(fields) = Fields::read(entry.get()) else {
                self.leave_out("tools", "an entry of the tools is no object");
                continue;
            };
            for (key, raw) in fields.0.into_iter().filter(|(_, raw)| raw.get() != "null") {
                if matches!(key.as_ref(), "functionDeclarations" | "function_declarations") {
                    self.functions(raw, &mut cards);
                } else {
                    cards.extend(self.hosted(&key, raw));
                }
            }
        }
        cards
    }

    fn hosted(&mut self, key: &str, raw: &RawValue) -> Option<ToolCard> {
        let entry = RawJson::parse(format!("{{{}:{}}}", quoted(key), received(raw.get(), self.lone)));
        let data = entry.map(|json| ProviderData { provider: self.provider.to_owned(), json });
        let card = data.map(|data| ToolCard::hosted(key, data));
        card.ok().and_then(Result::ok).or_else(|| {
            self.leave_out("tools", &format!("the tool {key:?} cannot be kept"));
            None
        })
    }

    fn functions(&mut self, list: &RawValue, cards: &mut Vec<ToolCard>) {
        let Ok(all) = serde_json::from_str::<Vec<&RawValue>>(list.get()) else {
            return self.leave_out("tools", "the declarations of functions are no list");
        };
        for raw in all {
            match self.function(raw) {
                Ok(card) => cards.push(card),
                Err(why) => self.leave_out("tools", &why),
            }
        }
    }

    fn function(&self, raw: &RawValue) -> Result<ToolCard, String> {
        let tool: WireFunction<'_> =
            object(raw.get()).map_err(|error| format!("a function cannot be read ({error})"))?;
        let schema = match tool.schema.or(tool.parameters) {
            Some(schema) => received(schema.get(), self.lone),
            None => r#"{"type":"object"}"#.to_owned(),
        };
        let schema = RawJson::parse(schema).map_err(|error| error.to_string())?;
        let card = ToolCard::new(tool.name.into_string(), tool.description.into_string(), &schema);
        let card = card.map_err(|error| error.to_string())?;
        let mut beside = Fields::read(raw.get()).unwrap_or_default().0;
        beside.retain(|(key, raw)| !DECLARED.contains(&key.as_ref()) && raw.get() != "null");
        match data(self.provider, &owned(&beside, self.lone)).map_err(|error| error.to_string())? {
            Some(data) => card.with_data(data).map_err(|error| error.to_string()),
            None => Ok(card),
        }
    }

    fn content(
        &mut self,
        position: usize,
        content: &WireContent<'_>,
        last: &mut String,
    ) -> Result<(), ImportError> {
        let parts = content.parts.as_deref().unwrap_or_default();
        let role = content.role.as_str();
        match role {
            // A content without a role is the user's.
            "user" | "" | "function" | "tool" => self.user(parts),
            // Two contents of the model in a row are one answer (case M10).
            "model" => self.model(parts, last == "model"),
            role => return Err(ImportError::Role { format: FORMAT, position, role: role.to_owned() }),
        }
        role.clone_into(last);
        Ok(())
    }

    fn user(&mut self, raws: &[&RawValue]) {
        let mut parts = Vec::new();
        for raw in raws {
            match Part::read(raw) {
                Ok(Part::Result(result)) => self.result(&result),
                Ok(Part::Text(said)) => parts.extend(Text::new(said.text).map(UserPart::Text)),
                Ok(Part::Other { kind }) => match self.file(&kind, raw) {
                    Some(file) => parts.push(UserPart::File(file)),
                    None => match self.kept(&kind, raw) {
                        Ok(part) => parts.push(UserPart::Provider(part)),
                        Err(error) => self.leave_out("contents", &format!("a part cannot be kept ({error})")),
                    },
                },
                Ok(Part::Empty) => {}
                Ok(Part::Call { .. } | Part::Thought(_)) => {
                    self.leave_out("contents", "a part of the model stands in what a user says");
                }
                Err(error) => self.leave_out("contents", &format!("a part cannot be read ({error})")),
            }
        }
        self.groups.user(parts);
    }

    fn result(&mut self, result: &WireResult<'_>) {
        let name = result.name.as_str();
        let own = Some(result.id.as_str()).filter(|id| !id.is_empty());
        let call = match own {
            Some(id) => id.to_owned(),
            None => self.groups.unanswered(name).map_or_else(|| name.to_owned(), |id| id.as_str().to_owned()),
        };
        let files: Vec<FilePart> =
            result.parts.iter().flatten().filter_map(|raw| self.inner_file(raw)).collect();
        let response =
            result.response.map_or(Cow::Borrowed("{}"), |raw| received(raw.get(), self.lone).into());
        self.groups.result(&call, output(&response, files));
    }

    fn inner_file(&mut self, raw: &RawValue) -> Option<FilePart> {
        let kind = match Part::read(raw) {
            Ok(Part::Other { kind }) => kind,
            Ok(_) | Err(_) => Cow::Borrowed(""),
        };
        let file = self.file(&kind, raw);
        if file.is_none() {
            self.leave_out("contents", "a part of a result is no file");
        }
        file
    }

    fn file(&self, kind: &str, raw: &RawValue) -> Option<FilePart> {
        let fields = Fields::read(raw.get())?;
        let blob: WireBlob<'_> = object(fields.get(kind)?.get()).ok()?;
        let media_type = blob.media.into_string();
        let source = match kind {
            "inlineData" | "inline_data" => FileSource::Base64(blob.data.into_string()),
            "fileData" | "file_data" => FileSource::Url(blob.uri.into_string()),
            _ => return None,
        };
        Some(FilePart { media_type, source, name: None })
    }

    fn model(&mut self, raws: &[&RawValue], goes_on: bool) {
        let mut parts = Vec::new();
        for raw in raws {
            match self.part(raw) {
                Ok(part) => parts.extend(part),
                Err(error) => {
                    self.leave_out("contents", &format!("a part of the model cannot be read ({error})"))
                }
            }
        }
        if goes_on {
            parts.into_iter().for_each(|part| self.groups.said_more(part));
        } else if !parts.is_empty() {
            self.groups.said(parts);
        }
    }

    fn part(&mut self, raw: &RawValue) -> Result<Option<AssistantPart>, serde_json::Error> {
        let (lone, provider) = (self.lone, self.provider);
        match Part::read(raw)? {
            Part::Empty => Ok(None),
            Part::Text(said) => text_part(provider, received(&said.text, lone), &owned(&said.beside, lone)),
            Part::Thought(said) => {
                let (text, beside) = (received(&said.text, lone), owned(&said.beside, lone));
                if !beside.is_empty() || text.trim().is_empty() {
                    return thought_part(provider, text, &beside);
                }
                // Whoever wrote the request sent unsigned thinking back, so it stays.
                let seal = item_seal(provider, &text, &[])?;
                Ok(Some(AssistantPart::Reasoning(Reasoning { text, seal })))
            }
            Part::Call { call, beside } => self.call(&call, owned(&beside, lone)).map(Some),
            Part::Result(_) => self.other("functionResponse", raw).map(Some),
            Part::Other { kind } => self.other(&kind, raw).map(Some),
        }
    }

    fn call(
        &mut self,
        wire: &WireCall<'_>,
        mut beside: Vec<(String, String)>,
    ) -> Result<AssistantPart, serde_json::Error> {
        let own = CallId::new(wire.id.as_str()).ok();
        if let Some(id) = &own {
            beside.insert(0, ("id".to_owned(), quoted(id.as_str())));
        }
        let id = own.unwrap_or_else(|| CallId::positional(self.calls));
        self.calls += 1;
        let input = wire.args.map(|raw| received(&text_or_raw(raw), self.lone)).unwrap_or_default();
        let data = data(self.provider, &beside)?;
        let name = wire.name.as_str().to_owned();
        Ok(AssistantPart::ToolCall(ToolCall { id, name, input: ToolInput::finished(&input), data }))
    }

    fn other(&self, kind: &str, raw: &RawValue) -> Result<AssistantPart, serde_json::Error> {
        self.kept(kind, raw).map(AssistantPart::Provider)
    }

    fn kept(&self, kind: &str, raw: &RawValue) -> Result<ProviderPart, serde_json::Error> {
        let raw = RawJson::parse(received(raw.get(), self.lone))?;
        Ok(ProviderPart { provider: self.provider.to_owned(), kind: kind.to_owned(), raw })
    }

    fn leave_out(&mut self, what: &str, why: &str) {
        self.groups.leave_out(what, why);
    }
}

/// What a tool gave back, out of the object that the wire wants: the way back from what the encoder writes.
fn output(response: &str, files: Vec<FilePart>) -> ToolOutput {
    let whole = || RawJson::parse(response).map_or_else(|_| ToolOutput::text(response), ToolOutput::Json);
    let fields = Fields::read(response).unwrap_or_default();
    let only = match fields.0.as_slice() {
        [(key, raw)] => Some((key.as_ref(), *raw)),
        _ => None,
    };
    let words = only.and_then(|(_, raw)| serde_json::from_str::<String>(raw.get()).ok()).and_then(Text::new);
    if !files.is_empty() {
        let words = words.or_else(|| Text::new(response));
        let words = words.map(ContentPart::Text);
        return ToolOutput::Content(
            words.into_iter().chain(files.into_iter().map(ContentPart::File)).collect(),
        );
    }
    match (only, words) {
        (Some(("result", _)), Some(words)) => ToolOutput::Text(words),
        (Some(("error", _)), Some(words)) => ToolOutput::Error(words),
        (Some(("result", raw)), None) if !raw.get().starts_with(['{', '"']) => {
            RawJson::parse(raw.get()).map_or_else(|_| whole(), ToolOutput::Json)
        }
        _ => whole(),
    }
}

const FORMAT: &str = "gemini";
/// Fields of a declaration that a card has a place for.
const DECLARED: &[&str] = &["name", "description", "parameters", "parametersJsonSchema"];

#[cfg(test)]
mod tests {
    use agent_core::Entry;

    use super::*;
    use crate::WireFormat;

    fn import(body: &str) -> Imported {
        super::import(&WireFormat::Gemini.into(), body.as_bytes()).unwrap()
    }

    /// The entries of these contents, one letter each, with the number of results of a step; and how many were mended.
    #[track_caller]
    fn check(contents: &str, expect: &str, repairs: usize) -> Imported {
        let imported = import(&format!("{{\"contents\":[{contents}]}}"));
        let sketch = imported.history.entries().iter().map(|entry| match entry {
            Entry::User(said) => format!("u{}", said.parts().len()),
            Entry::Step(step) => format!("s{}:{}", step.parts().len(), step.results().len()),
            Entry::Note(_) => "n".into(),
            Entry::Boundary(_) => "b".into(),
        });
        assert_eq!(
            (sketch.collect::<Vec<_>>().join(" ").as_str(), imported.repairs.len()),
            (expect, repairs)
        );
        imported
    }

    const USER: &str = r#"{"parts":[{"text":"go"}]}"#;

    fn model(parts: &str) -> String {
        format!("{{\"role\":\"model\",\"parts\":[{parts}]}}")
    }

    fn results(names: &[&str]) -> String {
        let parts = names.iter().map(|name| {
            format!(r#"{{"functionResponse":{{"name":"{name}","response":{{"result":"{name}"}}}}}}"#)
        });
        format!("{{\"role\":\"user\",\"parts\":[{}]}}", parts.collect::<Vec<_>>().join(","))
    }

    fn call(name: &str) -> String {
        format!(r#"{{"functionCall":{{"name":"{name}","args":{{"n":1.0}}}},"thought":false}}"#)
    }

    #[test]
    fn results_find_their_calls_by_name() {
        let calls = model(&[call("f"), call("g"), call("f")].join(","));
        let imported = check(&format!("{USER},{calls},{}", results(&["g", "f", "f"])), "u1 s3:3", 0);
        let Entry::Step(step) = &imported.history.entries()[1] else { panic!("a step") };
        let words: Vec<String> = step.results().iter().map(|result| result.output.plain()).collect();
        assert_eq!(words, ["f", "g", "f"], "in the order of the calls");
        check(&format!("{USER},{calls},{}", results(&["f"])), "u1 s3:3", 2);
        check(&format!("{USER},{}", results(&["f"])), "u1", 1);
    }

    #[test]
    fn an_answer_in_two_contents_is_one_step() {
        let (first, second) = (model(&call("f")), model(&call("g")));
        check(&format!("{USER},{first},{second},{}", results(&["f", "g"])), "u1 s2:2", 0);
        let turns = format!("{USER},{first},{},{first},{}", results(&["f"]), results(&["f"]));
        check(&turns, "u1 s1:1 s1:1", 0);
    }

    #[test]
    fn the_ways_back_of_results() {
        let check = |response: &str, expect: &str| {
            let given = serde_json::to_string(&output(response, Vec::new())).unwrap();
            assert_eq!(given, expect);
        };
        check(r#"{"result":"seen"}"#, r#"{"text":"seen"}"#);
        check(r#"{"error":"no"}"#, r#"{"error":"no"}"#);
        check(r#"{"result":5.0}"#, r#"{"json":5.0}"#);
        check(r#"{"result":""}"#, r#"{"json":{"result":""}}"#);
        check(r#"{"result":{"a":1}}"#, r#"{"json":{"result":{"a":1}}}"#);
        check(r#"{"output":"x"}"#, r#"{"json":{"output":"x"}}"#);
        check("{}", r#"{"json":{}}"#);
    }

    #[test]
    fn settings_tools_and_what_has_no_place() {
        let imported = import(
            r#"{"system_instruction":{"parts":[{"text":"be kind"},{"text":" "}]},
            "generationConfig":{"maxOutputTokens":50,"temperature":0.5,"topK":40.0,"stopSequences":["x"],"seed":3,
                "responseMimeType":"text/plain","thinkingConfig":{"thinkingBudget":-1}},
            "toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]},"retrievalConfig":{"a":1}},
            "serviceTier":"flex","safetySettings":[],"labels":{"a":"b"},
            "tools":[{"googleSearch":{},"functionDeclarations":[{"name":"f","behavior":"BLOCKING"},7]}],
            "contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}},
                {"fileData":{"mimeType":"video/mp4","fileUri":"https://a/b"}},{"hologram":{}}]}]}"#,
        );
        let settings = &imported.settings;
        assert_eq!((settings.max_output, settings.top_k, settings.seed), (Some(50), Some(40), Some(3)));
        assert_eq!(
            settings.extra[0].json.get(),
            r#"{"safetySettings":[],"labels":{"a":"b"},"generationConfig":{"responseMimeType":"text/plain","thinkingConfig":{"includeThoughts":false}},"toolConfig":{"retrievalConfig":{"a":1}}}"#
        );
        assert_eq!((imported.system.len(), imported.tools.len()), (1, 2));
        assert_eq!(imported.tools[1].data().unwrap().json.get(), r#"{"behavior":"BLOCKING"}"#);
        assert_eq!(imported.tool_choice, agent_core::ToolChoice::Tool("f".into()));
        assert_eq!(imported.diagnostics.len(), 1, "a tool: {:?}", imported.diagnostics);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let refused = |body: &str| super::import(&WireFormat::Gemini.into(), body.as_bytes()).unwrap_err();
        assert!(matches!(refused("nope"), ImportError::Json { .. }));
        assert!(matches!(refused("[]"), ImportError::Json { .. }));
        assert_eq!(
            refused(r#"{"contents":[{"role":"assistant"}]}"#).to_string(),
            "message 0 has the role \"assistant\", which gemini does not have; check the format"
        );
    }
}
