//! What each provider answers, on its own wire: thinking that must go back, words, parallel calls.

use std::collections::BTreeMap;

use agent_providers::ToolNames;
use agent_testkit::RawReply;
use serde_json::Value;

/// What a model says in one answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    /// Makes ids and seals unlike those of other answers; one digit.
    pub(super) number: usize,
    pub(super) text: &'static str,
    /// Tools by their real names, and inputs as the model writes them.
    pub(super) calls: &'static [(&'static str, &'static str)],
}

/// How a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    Anthropic,
    Responses,
    Chat(Thinks),
    Gemini,
    Ollama,
}

/// Where a compatible provider puts its thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinks {
    Hidden,
    /// In this field of the message.
    Field(&'static str),
    /// In `reasoning`, and as items of `reasoning_details`.
    Details,
    /// In parts of the content.
    Parts,
}

impl Voice {
    pub(super) fn of(vendor: &str) -> Self {
        match vendor {
            "anthropic" => Self::Anthropic,
            "openai" | "xai" => Self::Responses,
            "gemini" => Self::Gemini,
            "ollama" => Self::Ollama,
            "deepseek" => Self::Chat(Thinks::Field("reasoning_content")),
            "groq" => Self::Chat(Thinks::Field("reasoning")),
            "openrouter" => Self::Chat(Thinks::Details),
            "mistral" => Self::Chat(Thinks::Parts),
            _ => Self::Chat(Thinks::Hidden),
        }
    }

    /// Whether the model writes the input of a call as a text, which need not be JSON.
    pub(super) fn writes_text(self) -> bool {
        !matches!(self, Self::Gemini | Self::Ollama)
    }

    /// The answer as a stream.
    pub(super) fn streamed(self, said: &Said) -> RawReply {
        match self {
            Self::Anthropic => sse(anthropic_events(said)),
            Self::Responses => sse(responses_events(said)),
            Self::Chat(thinks) => sse(chat_events(thinks, said)),
            Self::Gemini => sse(gemini_parts(said).iter().map(|part| gemini(part, said))),
            Self::Ollama => {
                let lines = ollama_messages(said).into_iter().map(|(message, done)| {
                    let end = if done { OLLAMA_END } else { "" };
                    format!("{{\"model\":\"m\",\"created_at\":\"{TIME}\",\"message\":{message},\"done\":{done}{end}}}\n")
                });
                let headers = BTreeMap::from([("content-type".into(), "application/x-ndjson".into())]);
                RawReply { status: 200, headers, body: lines.collect::<String>().into() }
            }
        }
    }

    /// The same answer, not streamed.
    pub(super) fn whole(self, said: &Said) -> RawReply {
        RawReply::json(match self {
            Self::Anthropic => format!(
                r#"{{"id":"msg_{}","type":"message","role":"assistant","model":"m","content":[{}],"stop_reason":"{}","stop_sequence":null,"usage":{{"input_tokens":9,"output_tokens":4}}}}"#,
                said.number,
                anthropic_blocks(said).join(","),
                said.stop("tool_use", "end_turn"),
            ),
            Self::Responses => response(said, "completed", &responses_items(said)),
            Self::Chat(thinks) => format!(
                r#"{{"id":"chat_{}","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{},"finish_reason":"{}"}}],"usage":{USAGE}}}"#,
                said.number,
                chat_message(thinks, said),
                said.stop("tool_calls", "stop"),
            ),
            Self::Gemini => gemini(&gemini_parts(said).join(","), said),
            Self::Ollama => format!(
                r#"{{"model":"m","created_at":"{TIME}","message":{{"role":"assistant","content":{},"thinking":{}{}}},"done":true{OLLAMA_END}}}"#,
                quoted(said.text),
                quoted(&said.thinking()),
                list("tool_calls", &ollama_calls(said)),
            ),
        })
    }

    /// The stream, broken off after half of it.
    pub(super) fn broken(self, said: &Said) -> RawReply {
        let whole = self.streamed(said);
        RawReply { body: whole.body.slice(..whole.body.len() / 2), ..whole }
    }

    /// Bytes of the answer that only its provider understands: no other one is told them.
    pub(super) fn sealed(self, said: &Said) -> Vec<String> {
        match self {
            Self::Anthropic | Self::Responses | Self::Gemini | Self::Chat(Thinks::Details) => {
                vec![self.seal(said)]
            }
            Self::Chat(_) | Self::Ollama => Vec::new(),
        }
    }

    /// Bytes of the answer that every later request to its provider holds.
    pub(super) fn kept(self, said: &Said) -> Vec<String> {
        let (thinking, seal) = (quoted(&said.thinking()), quoted(&self.seal(said)));
        let mut kept = match self {
            Self::Anthropic => {
                vec![format!(r#"{{"type":"thinking","thinking":{thinking},"signature":{seal}}}"#)]
            }
            Self::Responses => vec![responses_items(said).swap_remove(0)],
            Self::Chat(Thinks::Hidden) => Vec::new(),
            Self::Chat(Thinks::Field(field)) => vec![format!(r#""{field}":{thinking}"#)],
            Self::Chat(Thinks::Details) => vec![detail(said)],
            Self::Chat(Thinks::Parts) => {
                vec![format!(r#""thinking":[{{"type":"text","text":{thinking}}}]"#)]
            }
            Self::Gemini => vec![format!(r#""thoughtSignature":{seal}"#)],
            Self::Ollama => vec![format!(r#""thinking":{thinking}"#)],
        };
        kept.extend(said.calls().map(|call| quoted(&self.id(said, call.0))).filter(|_| self.has_ids()));
        let inputs = said.calls().map(|(_, _, input)| input).filter(|input| is_json(input));
        kept.extend(inputs.map(|input| if self.is_quoting() { quoted(input) } else { input.to_owned() }));
        kept
    }

    fn has_ids(self) -> bool {
        self.writes_text()
    }

    fn is_quoting(self) -> bool {
        matches!(self, Self::Responses | Self::Chat(_))
    }

    /// Base64 that says who sealed what.
    fn seal(self, said: &Said) -> String {
        let who = match self {
            Self::Anthropic => "YW50aHJvcGlj",
            Self::Responses => "cmVzcG9uc2Vz",
            Self::Chat(_) => "Y29tcGF0aWJs",
            Self::Gemini => "Z2VtaW5pMTIz",
            Self::Ollama => "b2xsYW1hMTIz",
        };
        format!("{who}AAA{}/+AA", said.number)
    }

    fn id(self, said: &Said, place: usize) -> String {
        match self {
            Self::Anthropic => format!("toolu_{}{place}", said.number),
            Self::Responses => format!("call_{}{place}", said.number),
            // Nine characters, as Mistral has them.
            Self::Chat(_) | Self::Gemini | Self::Ollama => format!("callAbc{}{place}", said.number),
        }
    }
}

impl Said {
    /// Thinking with signs that must be escaped.
    pub(super) fn thinking(&self) -> String {
        format!("Thought {}: \"tea\"\n日本", self.number)
    }

    fn stop(&self, calls: &'static str, end: &'static str) -> &'static str {
        if self.calls.is_empty() { end } else { calls }
    }

    /// Place, name on the wire and input of each call.
    fn calls(&self) -> impl Iterator<Item = (usize, String, &'static str)> {
        let wire = |name: &str| ToolNames::default().wire(name).into_owned();
        self.calls.iter().enumerate().map(move |(place, (name, input))| (place, wire(name), *input))
    }
}

pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok()
}

/// `,"NAME":[…]`, or nothing when there are no items.
fn list(name: &str, items: &[String]) -> String {
    if items.is_empty() { String::new() } else { format!(r#","{name}":[{}]"#, items.join(",")) }
}

fn sse(events: impl IntoIterator<Item = String>) -> RawReply {
    RawReply::sse(events.into_iter().map(|data| format!("data: {data}\n\n")).collect::<String>())
}

/// A text in two halves.
fn halves(text: &str) -> [&str; 2] {
    let middle = (text.len() / 2..).find(|at| text.is_char_boundary(*at)).unwrap();
    text.split_at(middle).into()
}

fn anthropic_blocks(said: &Said) -> Vec<String> {
    let voice = Voice::Anthropic;
    let mut blocks = voice.kept(&Said { calls: &[], ..*said });
    if !said.text.is_empty() {
        blocks.push(format!(r#"{{"type":"text","text":{}}}"#, quoted(said.text)));
    }
    blocks.extend(said.calls().map(|(place, name, input)| {
        let (id, name) = (quoted(&voice.id(said, place)), quoted(&name));
        format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
    }));
    blocks
}

fn anthropic_events(said: &Said) -> Vec<String> {
    let mut events = vec![format!(
        r#"{{"type":"message_start","message":{{"id":"msg_{}","type":"message","role":"assistant","content":[],"model":"m","usage":{{"input_tokens":9,"output_tokens":1}}}}}}"#,
        said.number
    )];
    let mut index = 0;
    let mut block = |start: String, deltas: Vec<String>| {
        events
            .push(format!(r#"{{"type":"content_block_start","index":{index},"content_block":{{{start}}}}}"#));
        let deltas = deltas.into_iter();
        events.extend(
            deltas.map(|delta| {
                format!(r#"{{"type":"content_block_delta","index":{index},"delta":{{{delta}}}}}"#)
            }),
        );
        events.push(format!(r#"{{"type":"content_block_stop","index":{index}}}"#));
        index += 1;
    };
    let delta = |kind: &str, field: &str, text: &str| {
        let [one, two] = halves(text);
        let delta = |half: &str| format!(r#""type":"{kind}","{field}":{}"#, quoted(half));
        vec![delta(one), delta(two)]
    };
    let mut thinking = delta("thinking_delta", "thinking", &said.thinking());
    thinking
        .push(format!(r#""type":"signature_delta","signature":{}"#, quoted(&Voice::Anthropic.seal(said))));
    block(r#""type":"thinking","thinking":"","signature":"""#.into(), thinking);
    if !said.text.is_empty() {
        block(r#""type":"text","text":"""#.into(), delta("text_delta", "text", said.text));
    }
    for (place, name, input) in said.calls() {
        let (id, name) = (quoted(&Voice::Anthropic.id(said, place)), quoted(&name));
        let start = format!(r#""type":"tool_use","id":{id},"name":{name},"input":{{}}"#);
        block(start, delta("input_json_delta", "partial_json", input));
    }
    events.push(format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{}","stop_sequence":null}},"usage":{{"output_tokens":4}}}}"#,
        said.stop("tool_use", "end_turn")
    ));
    events.push(r#"{"type":"message_stop"}"#.into());
    events
}

fn response(said: &Said, status: &str, output: &[String]) -> String {
    let usage = r#"{"input_tokens":9,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":13}"#;
    format!(
        r#"{{"id":"resp_{}","object":"response","status":"{status}","model":"m","error":null,"incomplete_details":null,"output":[{}],"usage":{usage}}}"#,
        said.number,
        output.join(",")
    )
}

fn responses_items(said: &Said) -> Vec<String> {
    let (number, voice) = (said.number, Voice::Responses);
    let (thinking, seal) = (quoted(&said.thinking()), quoted(&voice.seal(said)));
    let mut items = vec![format!(
        r#"{{"id":"rs_{number}","type":"reasoning","summary":[{{"type":"summary_text","text":{thinking}}}],"encrypted_content":{seal}}}"#
    )];
    if !said.text.is_empty() {
        items.push(format!(
            r#"{{"id":"msg_{number}","type":"message","status":"completed","role":"assistant","content":[{{"type":"output_text","annotations":[],"logprobs":[],"text":{}}}]}}"#,
            quoted(said.text)
        ));
    }
    items.extend(said.calls().map(|(place, name, input)| {
        let (id, name, input) = (quoted(&voice.id(said, place)), quoted(&name), quoted(input));
        format!(
            r#"{{"id":"fc_{number}{place}","type":"function_call","status":"completed","arguments":{input},"call_id":{id},"name":{name}}}"#
        )
    }));
    items
}

fn responses_events(said: &Said) -> Vec<String> {
    let begun = response(said, "in_progress", &[]);
    let items = responses_items(said);
    let mut events = vec![format!(r#"{{"type":"response.created","response":{begun}}}"#)];
    for (at, item) in items.iter().enumerate() {
        let value: Value = serde_json::from_str(item).unwrap();
        let mut start = value.clone();
        for (field, empty) in [("summary", "[]"), ("content", "[]"), ("arguments", "\"\"")] {
            if let Some(whole) = start.get_mut(field) {
                *whole = serde_json::from_str(empty).unwrap();
            }
        }
        events.push(format!(r#"{{"type":"response.output_item.added","output_index":{at},"item":{start}}}"#));
        let (kind, place, text) = match value["type"].as_str() {
            Some("reasoning") => {
                ("reasoning_summary_text", r#""summary_index":0"#, &value["summary"][0]["text"])
            }
            Some("message") => ("output_text", r#""content_index":0"#, &value["content"][0]["text"]),
            _ => ("function_call_arguments", r#""n":0"#, &value["arguments"]),
        };
        for half in halves(text.as_str().unwrap()) {
            let (id, half) = (&value["id"], quoted(half));
            events.push(format!(
                r#"{{"type":"response.{kind}.delta","output_index":{at},{place},"item_id":{id},"delta":{half}}}"#
            ));
        }
        events.push(format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{item}}}"#));
    }
    let done = response(said, "completed", &items);
    events.push(format!(r#"{{"type":"response.completed","response":{done}}}"#));
    events
}

fn detail(said: &Said) -> String {
    let seal = quoted(&Voice::Chat(Thinks::Details).seal(said));
    let thinking = quoted(&said.thinking());
    format!(
        r#"{{"type":"reasoning.text","text":{thinking},"signature":{seal},"format":"anthropic-claude-v1","index":0}}"#
    )
}

/// The fields of thinking in a message or a delta, and what its content begins with.
fn chat_thinking(thinks: Thinks, said: &Said) -> (String, String) {
    let thinking = quoted(&said.thinking());
    match thinks {
        Thinks::Hidden => Default::default(),
        Thinks::Field(field) => (format!(r#","{field}":{thinking}"#), String::new()),
        Thinks::Details => {
            (format!(r#","reasoning":{thinking},"reasoning_details":[{}]"#, detail(said)), String::new())
        }
        Thinks::Parts => {
            let part = format!(r#"{{"type":"thinking","thinking":[{{"type":"text","text":{thinking}}}]}}"#);
            (String::new(), part)
        }
    }
}

fn chat_calls(said: &Said, indexed: bool) -> Vec<String> {
    let calls = said.calls().map(|(place, name, input)| {
        let index = if indexed { format!(r#""index":{place},"#) } else { String::new() };
        let (id, name, input) =
            (quoted(&Voice::Chat(Thinks::Hidden).id(said, place)), quoted(&name), quoted(input));
        format!(r#"{{{index}"id":{id},"type":"function","function":{{"name":{name},"arguments":{input}}}}}"#)
    });
    calls.collect()
}

fn chat_message(thinks: Thinks, said: &Said) -> String {
    let (fields, part) = chat_thinking(thinks, said);
    let text = quoted(said.text);
    let content = match (part.is_empty(), said.text.is_empty()) {
        (true, true) => "null".to_owned(),
        (true, false) => text,
        (false, true) => format!("[{part}]"),
        (false, false) => format!(r#"[{part},{{"type":"text","text":{text}}}]"#),
    };
    let calls = list("tool_calls", &chat_calls(said, false));
    format!(r#"{{"role":"assistant","content":{content}{fields}{calls}}}"#)
}

fn chat_events(thinks: Thinks, said: &Said) -> Vec<String> {
    let chunk = |delta: String, end: &str| {
        format!(
            r#"{{"id":"chat_{}","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":{end}}}]}}"#,
            said.number
        )
    };
    let (fields, part) = chat_thinking(thinks, said);
    let content = if part.is_empty() { "\"\"".to_owned() } else { format!("[{part}]") };
    let mut events = vec![chunk(format!(r#""role":"assistant","content":{content}{fields}"#), "null")];
    for half in halves(said.text).into_iter().filter(|half| !half.is_empty()) {
        events.push(chunk(format!(r#""content":{}"#, quoted(half)), "null"));
    }
    for call in chat_calls(said, true) {
        events.push(chunk(format!(r#""tool_calls":[{call}]"#), "null"));
    }
    events.push(chunk(String::new(), &quoted(said.stop("tool_calls", "stop"))));
    events.push(format!(
        r#"{{"id":"chat_{}","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{USAGE}}}"#,
        said.number
    ));
    events.push("[DONE]".into());
    events
}

/// The parts of an answer; the first call is signed, or else the words are.
fn gemini_parts(said: &Said) -> Vec<String> {
    let seal = format!(r#","thoughtSignature":{}"#, quoted(&Voice::Gemini.seal(said)));
    let mut parts = vec![format!(r#"{{"text":{},"thought":true}}"#, quoted(&said.thinking()))];
    if !said.text.is_empty() {
        let seal = if said.calls.is_empty() { seal.as_str() } else { "" };
        parts.push(format!(r#"{{"text":{}{seal}}}"#, quoted(said.text)));
    }
    parts.extend(said.calls().map(|(place, name, input)| {
        let seal = if place == 0 { seal.as_str() } else { "" };
        format!(r#"{{"functionCall":{{"name":{},"args":{input}}}{seal}}}"#, quoted(&name))
    }));
    parts
}

/// An answer, or a chunk of one; the chunk with the last part ends it.
fn gemini(parts: &str, said: &Said) -> String {
    let ends = gemini_parts(said).last().is_some_and(|last| parts.ends_with(last.as_str()));
    let end = if ends { r#","finishReason":"STOP""# } else { "" };
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}}{end},"index":0}}],"usageMetadata":{{"promptTokenCount":9,"candidatesTokenCount":3,"thoughtsTokenCount":1,"totalTokenCount":13}},"modelVersion":"m","responseId":"resp_{}"}}"#,
        said.number
    )
}

fn ollama_calls(said: &Said) -> Vec<String> {
    let calls = said.calls().map(|(place, name, input)| {
        format!(r#"{{"function":{{"index":{place},"name":{},"arguments":{input}}}}}"#, quoted(&name))
    });
    calls.collect()
}

/// The messages of a stream, and whether each is the last one.
fn ollama_messages(said: &Said) -> Vec<(String, bool)> {
    let message =
        |text: &str, more: &str| format!(r#"{{"role":"assistant","content":{}{more}}}"#, quoted(text));
    let thinking = said.thinking();
    let mut messages: Vec<String> = halves(&thinking)
        .into_iter()
        .map(|half| message("", &format!(r#","thinking":{}"#, quoted(half))))
        .collect();
    messages
        .extend(halves(said.text).into_iter().filter(|half| !half.is_empty()).map(|half| message(half, "")));
    messages.extend(ollama_calls(said).into_iter().map(|call| message("", &list("tool_calls", &[call]))));
    let mut messages: Vec<(String, bool)> = messages.into_iter().map(|message| (message, false)).collect();
    messages.push((message("", ""), true));
    messages
}

const TIME: &str = "2026-01-02T03:04:05Z";
const OLLAMA_END: &str = r#","done_reason":"stop","prompt_eval_count":9,"eval_count":4"#;
const USAGE: &str = r#"{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13}"#;
