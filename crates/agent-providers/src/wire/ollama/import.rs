//! A recorded request, read back into the conversation it was made of.

use std::borrow::Cow;

use agent_core::{
    AssistantPart, CallId, Effort, FilePart, FileSource, ProviderData, RawJson, Reasoning, RequestSettings,
    SystemBlock, Text, Thinking, ToolCard, ToolChoice, ToolOutput, UserPart,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::decode::{WireMessage, call};
use crate::wire::Dialect;
use crate::wire::import::{Grouping, ImportError, Imported};
use crate::wire::json::{Fields, Loose, LooseInt, mended, object, quoted, received, text_or_raw};
use crate::wire::tail::extra;

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default)]
    model: Loose<'a>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    messages: Option<Vec<WireMessage<'a>>>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(borrow, default)]
    think: Option<&'a RawValue>,
    #[serde(borrow, default)]
    options: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct WireOptions {
    #[serde(default)]
    num_predict: LooseInt,
    #[serde(default)]
    temperature: Option<f32>,
    #[serde(default)]
    top_p: Option<f32>,
    #[serde(default)]
    top_k: LooseInt,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    presence_penalty: Option<f32>,
    #[serde(default)]
    frequency_penalty: Option<f32>,
    #[serde(default)]
    stop: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct WireTool<'a> {
    #[serde(borrow, default)]
    function: Option<&'a RawValue>,
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

/// Reads the body of a recorded request.
pub(crate) fn import(dialect: &Dialect, body: &[u8]) -> Result<Imported, ImportError> {
    let text = String::from_utf8_lossy(body);
    let (text, lone) = mended(&text);
    let failed = |cause| ImportError::Json { format: FORMAT, cause };
    let request: WireRequest<'_> = object(&text).map_err(failed)?;
    let fields: Fields<'_> = object(&text).map_err(failed)?;
    let settings = settings(&request, &fields, &dialect.provider);
    let mut importer = Importer {
        lone,
        provider: &dialect.provider,
        groups: Grouping::default(),
        system: Vec::new(),
        open: Vec::new(),
        calls: 0,
    };
    let tools = importer.tools(request.tools.unwrap_or_default());
    for (position, message) in request.messages.unwrap_or_default().iter().enumerate() {
        importer.message(position, message)?;
    }
    let (history, repairs, diagnostics) = importer.groups.finish();
    Ok(Imported {
        model: request.model.into_string(),
        system: importer.system,
        tools,
        settings,
        tool_choice: ToolChoice::Auto,
        // Unasked, the server streams.
        stream: request.stream.unwrap_or(true),
        history,
        repairs,
        diagnostics,
    })
}

/// Reads messages into groups.
#[derive(Debug)]
struct Importer<'i> {
    lone: bool,
    provider: &'i str,
    groups: Grouping,
    system: Vec<SystemBlock>,
    /// Calls of the last answer that have no result yet: id, and name.
    open: Vec<(CallId, String)>,
    /// Calls so far, for those without an id.
    calls: usize,
}

impl Importer<'_> {
    fn tools(&mut self, entries: Vec<&RawValue>) -> Vec<ToolCard> {
        let mut cards = Vec::new();
        for raw in entries {
            match self.tool(raw) {
                Ok(card) => cards.push(card),
                Err(why) => self.groups.leave_out("tools", &why),
            }
        }
        cards
    }

    fn tool(&self, raw: &RawValue) -> Result<ToolCard, String> {
        let cannot = |error: &dyn std::fmt::Display| format!("a tool cannot be read ({error})");
        let tool: WireTool<'_> = object(raw.get()).map_err(|error| cannot(&error))?;
        let function = tool.function.ok_or("a tool is no function; left out")?;
        let function: WireFunction<'_> = object(function.get()).map_err(|error| cannot(&error))?;
        let schema = function.parameters.map_or(Cow::Borrowed("{}"), |raw| self.sound(raw.get()));
        let schema = RawJson::parse(schema).map_err(|error| cannot(&error))?;
        let card = ToolCard::new(function.name.into_string(), function.description.into_string(), &schema);
        card.map_err(|error| error.to_string())
    }

    fn message(&mut self, position: usize, message: &WireMessage<'_>) -> Result<(), ImportError> {
        let content = message.content.map(text_or_raw).unwrap_or_default();
        let content = self.sound(&content).into_owned();
        match message.role.as_str() {
            "system" if self.groups.is_empty() => self.system.extend(SystemBlock::new(content)),
            "system" => self.groups.note(&content),
            "user" => self.user(content, message),
            "assistant" => self.assistant(content, message),
            "tool" => self.result(content, message),
            role => return Err(ImportError::Role { format: FORMAT, position, role: role.to_owned() }),
        }
        Ok(())
    }

    fn user(&mut self, content: String, message: &WireMessage<'_>) {
        let words = Text::new(content).map(UserPart::Text);
        let images = message.images.iter().flatten().map(|raw| {
            let source = FileSource::Base64(text_or_raw(raw).into_owned());
            UserPart::File(FilePart { media_type: "image/*".into(), source, name: None })
        });
        self.groups.user(words.into_iter().chain(images).collect());
    }

    fn assistant(&mut self, content: String, message: &WireMessage<'_>) {
        let thought = self.sound(message.thinking.as_str()).into_owned();
        let thought = (!thought.trim().is_empty())
            .then_some(AssistantPart::Reasoning(Reasoning { text: thought, seal: None }));
        let mut parts: Vec<AssistantPart> = thought.into_iter().chain(AssistantPart::text(content)).collect();
        self.open.clear();
        let calls = message.tool_calls.map_or("[]", RawValue::get);
        let calls: Vec<&RawValue> = serde_json::from_str(calls).unwrap_or_else(|_| {
            self.groups.leave_out("messages", "the calls of a message are no list");
            Vec::new()
        });
        for raw in calls {
            let Ok(call) = call(raw, self.lone, self.calls, self.provider) else {
                self.groups.leave_out("messages", "a call of a message cannot be read");
                continue;
            };
            self.calls += 1;
            self.open.push((call.id.clone(), call.name.clone()));
            parts.push(AssistantPart::ToolCall(call));
        }
        self.groups.said(parts);
    }

    /// A result names its call, or its tool, or neither: then it answers the first call that is open.
    fn result(&mut self, content: String, message: &WireMessage<'_>) {
        let (id, name) = (message.tool_call_id.as_str(), message.tool_name.as_str());
        let by_id = self.open.iter().position(|(call, _)| call.as_str() == id);
        let at = by_id.or_else(|| {
            self.open.iter().position(|(_, tool)| id.is_empty() && (name.is_empty() || tool == name))
        });
        let call = match at {
            Some(at) => self.open.remove(at).0.as_str().to_owned(),
            None if id.is_empty() => name.to_owned(),
            None => id.to_owned(),
        };
        self.groups.result(&call, ToolOutput::text(content));
    }

    fn sound<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.lone { Cow::Owned(received(text, true)) } else { Cow::Borrowed(text) }
    }
}

/// Reads the settings. Fields without a place go to `extra`, an object for this provider.
fn settings(request: &WireRequest<'_>, fields: &Fields<'_>, provider: &str) -> RequestSettings {
    let options = request.options.filter(|raw| raw.get() != "null");
    let wire = options.map(|raw| serde_json::from_str::<WireOptions>(raw.get()));
    // Options that cannot be read as a whole are kept as they are.
    let known = if wire.as_ref().is_none_or(Result::is_ok) { OPTIONS } else { &[] };
    let wire = wire.and_then(Result::ok).unwrap_or_default();
    let inner = options.and_then(|raw| Fields::read(raw.get())).unwrap_or_default();
    let mut top: Vec<String> =
        extra(fields, TOP).map(|json| inside(json.get()).to_owned()).into_iter().collect();
    // No number of tokens that is known: minus one stands for none at all.
    let limit = wire.num_predict.0.and_then(|n| u32::try_from(n).ok());
    let mut rest: Vec<String> =
        extra(&inner, known).map(|json| inside(json.get()).to_owned()).into_iter().collect();
    rest.extend(
        inner
            .get("num_predict")
            .filter(|_| limit.is_none() && !known.is_empty())
            .map(|raw| format!("\"num_predict\":{}", raw.get())),
    );
    top.extend((!rest.is_empty()).then(|| format!("\"options\":{{{}}}", rest.join(","))));
    let (thinking, effort, odd) = think(request.think);
    top.extend(odd.map(|raw| format!("\"think\":{raw}")));
    let own = (!top.is_empty()).then(|| RawJson::parse(format!("{{{}}}", top.join(","))).ok()).flatten();
    let own = own.map(|json| ProviderData { provider: provider.to_owned(), json });
    RequestSettings {
        max_output: limit,
        temperature: wire.temperature,
        top_p: wire.top_p,
        top_k: wire.top_k.0.and_then(|n| u32::try_from(n).ok()),
        seed: wire.seed,
        presence_penalty: wire.presence_penalty,
        frequency_penalty: wire.frequency_penalty,
        stop_sequences: wire.stop.unwrap_or_default(),
        thinking,
        effort,
        extra: own.into_iter().collect(),
        ..RequestSettings::default()
    }
}

/// A flag, a level, or another word, which is kept as it is.
fn think(raw: Option<&RawValue>) -> (Option<Thinking>, Option<Effort>, Option<String>) {
    match raw.map(RawValue::get) {
        None | Some("null") => (None, None, None),
        Some("true") => (Some(Thinking::Adaptive), None, None),
        Some("false") => (Some(Thinking::Disabled), None, None),
        Some(word) => match LEVELS.iter().find(|(level, _)| quoted(level) == word) {
            Some((_, effort)) => (None, Some(*effort), None),
            None => (None, None, Some(word.to_owned())),
        },
    }
}

fn inside(object: &str) -> &str {
    object.get(1..object.len().saturating_sub(1)).unwrap_or_default()
}

const FORMAT: &str = "ollama";
const LEVELS: &[(&str, Effort)] = &[("low", Effort::Low), ("medium", Effort::Medium), ("high", Effort::High)];
/// Options with a place of their own.
const OPTIONS: &[&str] = &[
    "num_predict",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "stop",
];
/// Fields of the request with a place of their own; those of its conversation are left out by `extra` itself.
const TOP: &[&str] = &["think", "options"];

#[cfg(test)]
mod tests {
    use agent_core::Entry;

    use super::*;
    use crate::WireFormat;

    fn import(body: &str) -> Imported {
        super::import(&WireFormat::Ollama.into(), body.as_bytes()).unwrap()
    }

    /// The entries of these messages, one letter each, with the results of a step; and how many were mended.
    #[track_caller]
    fn check(messages: &str, expect: &str, repairs: usize) {
        let imported = import(&format!("{{\"model\":\"m\",\"messages\":[{messages}]}}"));
        let sketch = imported.history.entries().iter().map(|entry| match entry {
            Entry::User(said) => format!("u{}", said.parts().len()),
            Entry::Step(step) => {
                let words: Vec<String> = step.results().iter().map(|result| result.output.plain()).collect();
                format!("s{}:{}", step.parts().len(), words.join(","))
            }
            Entry::Note(_) => "n".into(),
            Entry::Boundary(_) => "b".into(),
        });
        assert_eq!(
            (sketch.collect::<Vec<_>>().join(" ").as_str(), imported.repairs.len()),
            (expect, repairs)
        );
    }

    const USER: &str = r#"{"role":"user","content":"go","images":["AA=="]}"#;
    const CALLS: &str = r#"{"role":"assistant","content":"","thinking":"hm","tool_calls":[
        {"function":{"name":"f","arguments":{}}},{"id":"x","function":{"name":"g","arguments":{}}},
        {"function":{"name":"f","arguments":{}}}]}"#;

    fn result(fields: &str) -> String {
        format!(r#"{{"role":"tool",{fields}}}"#)
    }

    #[test]
    fn results_find_their_calls() {
        let named = |tool: &str, words: &str| result(&format!(r#""tool_name":"{tool}","content":"{words}""#));
        let by_name = [named("g", "2"), named("f", "1"), named("f", "3")].join(",");
        check(&format!("{USER},{CALLS},{by_name},{USER}"), "u2 s4:1,2,3 u2", 0);
        let by_id = result(r#""tool_call_id":"x","content":"2""#);
        let by_place = result(r#""content":"1""#);
        check(&format!("{USER},{CALLS},{by_id},{by_place},{}", named("f", "3")), "u2 s4:1,2,3", 0);
        check(&format!("{USER},{}", named("f", "1")), "u2", 1);
        check(
            r#"{"role":"system","content":"be kind"},{"role":"user","content":"a"},{"role":"system","content":"b"}"#,
            "u1 n",
            0,
        );
    }

    #[test]
    fn settings_and_what_has_no_place() {
        let imported = import(
            r#"{"model":"m","format":"json","think":"low","options":{"num_predict":-1,"num_ctx":9,"temperature":0.5},
            "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}},{"type":"web"}]}"#,
        );
        let settings = &imported.settings;
        assert_eq!(
            (settings.max_output, settings.temperature, settings.effort),
            (None, Some(0.5), Some(Effort::Low))
        );
        assert_eq!(
            settings.extra[0].json.get(),
            r#"{"format":"json","options":{"num_ctx":9,"num_predict":-1}}"#
        );
        assert_eq!((imported.tools.len(), imported.diagnostics.len(), imported.stream), (1, 1, true));
        let odd = import(r#"{"think":"so-so","options":{"temperature":"warm"}}"#).settings;
        assert_eq!(odd.extra[0].json.get(), r#"{"options":{"temperature":"warm"},"think":"so-so"}"#);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let refused = |body: &str| super::import(&WireFormat::Ollama.into(), body.as_bytes()).unwrap_err();
        assert!(matches!(refused("nope"), ImportError::Json { .. }));
        assert_eq!(
            refused(r#"{"messages":[{"role":"model"}]}"#).to_string(),
            "message 0 has the role \"model\", which ollama does not have; check the format"
        );
    }
}
