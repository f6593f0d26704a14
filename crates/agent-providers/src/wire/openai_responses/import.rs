//! A recorded request, read back into the conversation it was made of.

use agent_core::{
    AssistantPart, FilePart, FileSource, ProviderData, RawJson, RequestSettings, SystemBlock, Text, Thinking,
    ToolCard, ToolChoice, ToolInput, ToolOutput, UserPart,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::item::{Done, Item, Watch};
use super::settings::{effort_of, tier_of};
use super::shape::{MESSAGE, WireItem, besides, object_of, raw_of};
use super::tools::{hosted_name, read_choice};
use crate::names::ToolNames;
use crate::wire::Dialect;
use crate::wire::import::{Grouping, ImportError, Imported, content_part};
use crate::wire::json::{Fields, Loose, mended, object, quoted, received, replaced, text_or_raw};
use crate::wire::tail::extra;

/// Reads the body of a recorded request. Cache markers are ignored; what cannot be represented is reported.
pub(crate) fn import(dialect: &Dialect, body: &[u8]) -> Result<Imported, ImportError> {
    let text = String::from_utf8_lossy(body);
    let (text, lone) = mended(&text);
    let fields: Fields<'_> =
        object(&text).map_err(|cause| ImportError::Json { format: dialect.format.as_str(), cause })?;
    let mut importer = Importer { dialect, lone, groups: Grouping::default(), system: Vec::new(), calls: 0 };
    let instructions = fields.get("instructions").map(|raw| importer.words(raw)).unwrap_or_default();
    importer.system.extend(SystemBlock::new(instructions));
    let tools = importer.tools(fields.get("tools"));
    importer.input(fields.get("input"))?;
    let (settings, tool_choice) = importer.settings(&fields, &tools);
    let Importer { groups, system, .. } = importer;
    let (history, repairs, diagnostics) = groups.finish();
    Ok(Imported {
        model: fields.get("model").map(text_or_raw).unwrap_or_default().into_owned(),
        system,
        tools,
        settings,
        tool_choice,
        stream: read(&fields, "stream").unwrap_or(false),
        history,
        repairs,
        diagnostics,
    })
}

/// Reads items into groups.
#[derive(Debug)]
struct Importer<'i> {
    dialect: &'i Dialect,
    lone: bool,
    groups: Grouping,
    system: Vec<SystemBlock>,
    calls: usize,
}

/// A part of a user's message or of a result.
#[derive(Deserialize, Default)]
struct WirePart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    image_url: Loose<'a>,
    #[serde(borrow, default)]
    file_id: Loose<'a>,
    #[serde(borrow, default)]
    file_url: Loose<'a>,
    #[serde(borrow, default)]
    file_data: Loose<'a>,
    #[serde(borrow, default)]
    filename: Loose<'a>,
    #[serde(borrow, default)]
    detail: Loose<'a>,
}

impl Importer<'_> {
    fn input(&mut self, raw: Option<&RawValue>) -> Result<(), ImportError> {
        let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(()) };
        if raw.get().starts_with('"') {
            let text = self.words(raw);
            self.groups.user(Text::new(text).map(UserPart::Text).into_iter().collect());
            return Ok(());
        }
        let items: Vec<&RawValue> = serde_json::from_str(raw.get())
            .map_err(|cause| ImportError::Json { format: self.dialect.format.as_str(), cause })?;
        items.into_iter().enumerate().try_for_each(|(position, raw)| self.item(position, raw))
    }

    fn item(&mut self, position: usize, raw: &RawValue) -> Result<(), ImportError> {
        let Ok(item) = object::<WireItem<'_>>(raw.get()) else {
            self.groups.leave_out("input", "an item is no object");
            return Ok(());
        };
        match (item.kind(), item.role.as_str()) {
            (MESSAGE, "user") => {
                let parts = self.parts(item.content);
                self.groups.user(parts);
            }
            (MESSAGE, "system" | "developer") => self.note(item.content),
            (MESSAGE, role) if role != "assistant" => {
                let format = self.dialect.format.as_str();
                return Err(ImportError::Role { format, position, role: role.to_owned() });
            }
            ("function_call_output", _) => {
                let output = self.output(item.output);
                self.groups.result(item.call_id.as_str(), output);
            }
            _ => self.said(raw.get()),
        }
        Ok(())
    }

    /// The system prompt, as long as nobody spoke; words inside the conversation after that.
    fn note(&mut self, content: Option<&RawValue>) {
        for part in self.parts(content) {
            match part {
                UserPart::Text(text) if self.groups.is_empty() => {
                    self.system.extend(SystemBlock::new(text.as_str()));
                }
                UserPart::Text(text) => self.groups.note(text.as_str()),
                UserPart::File(_) | _ => {
                    self.groups.leave_out("input", "a file in a system message has no place in our types")
                }
            }
        }
    }

    /// An item of the model.
    fn said(&mut self, raw: &str) {
        let (names, mut out, mut blocks) = (ToolNames::default(), Vec::new(), 0);
        let mut watch = Watch {
            out: &mut out,
            blocks: &mut blocks,
            calls: &mut self.calls,
            names: &names,
            provider: &self.dialect.provider,
            lone: self.lone,
        };
        let closed = Item::open(raw, &mut watch).and_then(|mut item| {
            item.finish(raw)?;
            Ok(item.close(&mut watch))
        });
        match closed {
            Ok(Done::Parts(parts)) => parts.into_iter().for_each(|part| self.say(part)),
            Ok(Done::Call(plain)) => self.say(plain.judged(ToolInput::finished)),
            Err(error) => self.groups.leave_out("input", &error.message),
        }
    }

    fn say(&mut self, part: AssistantPart) {
        self.groups.said_more(part);
    }

    fn output(&mut self, raw: Option<&RawValue>) -> ToolOutput {
        let Some(raw) = raw.filter(|raw| raw.get().starts_with('[')) else {
            return ToolOutput::text(raw.map(|raw| self.words(raw)).unwrap_or_default());
        };
        let parts = self.parts(Some(raw)).into_iter().filter_map(content_part);
        ToolOutput::Content(parts.collect())
    }

    /// The parts of a content: a string is one of words. Blank words are none, and no loss.
    fn parts(&mut self, content: Option<&RawValue>) -> Vec<UserPart> {
        let Some(content) = content.filter(|raw| raw.get() != "null") else { return Vec::new() };
        let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(content.get()) else {
            return Text::new(self.words(content)).map(UserPart::Text).into_iter().collect();
        };
        list.into_iter().filter_map(|raw| self.part(raw)).collect()
    }

    fn part(&mut self, raw: &RawValue) -> Option<UserPart> {
        let Ok(part) = object::<WirePart<'_>>(raw.get()) else {
            self.groups.leave_out("input", "a part of a content is no object");
            return None;
        };
        if !matches!(part.detail.as_str(), "" | "auto") {
            self.groups.leave_out("input", "the detail of an image has no place in our types");
        }
        let source = match part.kind.as_str() {
            "input_text" | "text" | "output_text" => {
                return Text::new(received(part.text.as_str(), self.lone)).map(UserPart::Text);
            }
            "input_image" => self.source(&part.image_url, &part.image_url, &part.file_id),
            "input_file" => self.source(&part.file_data, &part.file_url, &part.file_id),
            _ => None,
        };
        let Some((media, source)) = source else {
            let why = format!("a {:?} part has no place in our types, or is empty", part.kind.as_str());
            self.groups.leave_out("input", &why);
            return None;
        };
        let fallback = if part.kind.as_str() == "input_image" { "image/*" } else { "application/pdf" };
        let media_type = media.unwrap_or_else(|| fallback.to_owned());
        let name = Some(part.filename.as_str().to_owned()).filter(|name| !name.is_empty());
        Some(UserPart::File(FilePart { media_type, source, name }))
    }

    /// Where a file's bytes are, and its media type where that is said.
    fn source(
        &self,
        data: &Loose<'_>,
        url: &Loose<'_>,
        id: &Loose<'_>,
    ) -> Option<(Option<String>, FileSource)> {
        let inline = data.as_str().strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
        if let Some((media, bytes)) = inline {
            return Some((Some(media.to_owned()), FileSource::Base64(bytes.to_owned())));
        }
        if !id.as_str().is_empty() {
            let provider = self.dialect.provider.clone();
            return Some((None, FileSource::Reference { provider, id: id.as_str().to_owned() }));
        }
        (!url.as_str().is_empty()).then(|| (None, FileSource::Url(url.as_str().to_owned())))
    }

    fn tools(&mut self, raw: Option<&RawValue>) -> Vec<ToolCard> {
        let list = raw.map_or("null", RawValue::get);
        let Ok(list) = serde_json::from_str::<Option<Vec<&RawValue>>>(list) else {
            self.groups.leave_out("tools", "the tools are no list");
            return Vec::new();
        };
        list.unwrap_or_default().into_iter().filter_map(|raw| self.tool(raw)).collect()
    }

    fn tool(&mut self, raw: &RawValue) -> Option<ToolCard> {
        let Some(entry) = Fields::read(raw.get()) else {
            self.groups.leave_out("tools", "a tool is no object");
            return None;
        };
        let text = |key: &str| entry.get(key).map(text_or_raw).unwrap_or_default().into_owned();
        let provider = self.dialect.provider.clone();
        let card = if text("type") == "function" {
            let schema = entry.get("parameters").filter(|raw| raw.get() != "null");
            let schema = schema.map_or(RawJson::empty_object(), |raw| raw_of(raw.get(), self.lone));
            let mut data = besides(raw.get(), &["type", "name", "description", "parameters"], self.lone);
            // Not to say it is not the same as to say no.
            if data.iter().all(|(key, _)| key != "strict") {
                data.push(("strict".to_owned(), "null".to_owned()));
            }
            let data = ProviderData { provider, json: raw_of(&object_of(&data), false) };
            ToolCard::new(text("name"), text("description"), &schema).and_then(|card| card.with_data(data))
        } else {
            let data = ProviderData { provider, json: raw_of(raw.get(), self.lone) };
            ToolCard::hosted(hosted_name(&entry), data)
        };
        card.map_err(|error| self.groups.leave_out("tools", &error.to_string())).ok()
    }

    /// The typed settings, with everything else of the body as it stands.
    fn settings(&mut self, fields: &Fields<'_>, tools: &[ToolCard]) -> (RequestSettings, ToolChoice) {
        let mut settings = RequestSettings {
            max_output: read(fields, "max_output_tokens"),
            temperature: read(fields, "temperature"),
            top_p: read(fields, "top_p"),
            parallel_tool_calls: read(fields, "parallel_tool_calls"),
            service_tier: read::<String>(fields, "service_tier").map(|word| tier_of(&word)),
            ..RequestSettings::default()
        };
        let choice = fields.get("tool_choice").and_then(|raw| read_choice(raw.get(), tools));
        let reasoning = fields.get("reasoning").and_then(|raw| Fields::read(raw.get()));
        match reasoning.as_ref().and_then(|given| read::<String>(given, "effort")).as_deref() {
            Some("none") => settings.thinking = Some(Thinking::Disabled),
            Some(word) => settings.effort = effort_of(word),
            None => {}
        }
        let is_read = [
            ("max_output_tokens", settings.max_output.is_some()),
            ("temperature", settings.temperature.is_some()),
            ("top_p", settings.top_p.is_some()),
            ("parallel_tool_calls", settings.parallel_tool_calls.is_some()),
            ("service_tier", settings.service_tier.is_some()),
            ("tool_choice", choice.is_some()),
            ("reasoning", reasoning.is_some()),
        ];
        let known: Vec<&str> = is_read.iter().filter(|(_, is)| *is).map(|(key, _)| *key).collect();
        let has_effort = settings.effort.is_some() || settings.thinking.is_some();
        let rest = reasoning.map(|given| rest_of_reasoning(&given, has_effort)).unwrap_or_default();
        settings.extra = self.extra(fields, &known, &rest).into_iter().collect();
        (settings, choice.unwrap_or_default())
    }

    fn extra(&self, fields: &Fields<'_>, known: &[&str], reasoning: &str) -> Option<ProviderData> {
        let mut json = extra(fields, known);
        if !reasoning.is_empty() {
            let start = json.as_ref().map_or("{}", RawJson::get);
            json = Some(raw_of(&replaced(start, &[("reasoning".to_owned(), reasoning.to_owned())]), false));
        }
        let json = raw_of(json?.get(), self.lone);
        Some(ProviderData { provider: self.dialect.provider.clone(), json })
    }

    fn words(&self, raw: &RawValue) -> String {
        received(&text_or_raw(raw), self.lone)
    }
}

/// What our types do not say of how the model reasons; empty without any.
fn rest_of_reasoning(given: &Fields<'_>, has_effort: bool) -> String {
    let rest = given.0.iter().filter(|(key, raw)| raw.get() != "null" && !(has_effort && key == "effort"));
    let rest: Vec<String> = rest.map(|(key, raw)| format!("{}:{}", quoted(key), raw.get())).collect();
    if rest.is_empty() { String::new() } else { format!("{{{}}}", rest.join(",")) }
}

/// A field of the body; what is of another type stays where it is.
fn read<T: DeserializeOwned>(fields: &Fields<'_>, key: &str) -> Option<T> {
    fields.get(key).and_then(|raw| serde_json::from_str(raw.get()).ok())
}
