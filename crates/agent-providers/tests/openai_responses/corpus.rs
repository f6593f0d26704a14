//! Real traffic of this format, where the large corpus is at hand.

use agent_core::{FinishKind, ModelErrorKind, ModelProfile};
use agent_providers::{
    Decoded, Dialect, ResponseHead, ToolNames, WireFormat, decode_response, import_request,
};
use serde_json::{Value, json};

use super::ask::{Ask, text};
use crate::support::{corpus, files, read};

fn dialect(provider: &str) -> Dialect {
    Dialect { provider: provider.into(), ..WireFormat::OpenAiResponses.into() }
}

fn parse(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// A recorded file as the bodies of its responses.
fn bodies(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for line in String::from_utf8(bytes).unwrap().lines().filter(|line| !line.trim().is_empty()) {
        if bodies.is_empty() || parse(line.as_bytes())["type"] == "response.created" {
            bodies.push(Vec::new());
        }
        bodies.last_mut().unwrap().extend(format!("data: {line}\n\n").into_bytes());
    }
    bodies
}

/// What a golden file says of one response.
#[derive(Debug, Default, PartialEq)]
struct Golden {
    text: String,
    reasoning: String,
    calls: Vec<(String, String, String)>,
    /// Kind and input, cached, written, output and reasoning tokens. Of several responses that were decoded in one
    /// go, the file tells them of the last one only.
    end: Option<(FinishKind, [u64; 5])>,
}

fn golden(file: &Value) -> Vec<Golden> {
    let mut all: Vec<Golden> = Vec::new();
    for part in file["parts"].as_array().unwrap() {
        let field = |name: &str| part[name].as_str().unwrap().to_owned();
        match part["type"].as_str().unwrap() {
            "response-metadata" => all.push(Golden::default()),
            "text-delta" => all.last_mut().unwrap().text.push_str(&field("delta")),
            "reasoning-delta" => all.last_mut().unwrap().reasoning.push_str(&field("delta")),
            "tool-call" if part["providerExecuted"] != true => {
                let call = (field("toolCallId"), field("toolName"), field("input"));
                all.last_mut().unwrap().calls.push(call);
            }
            "finish" => all.last_mut().unwrap().end = Some((kind(part), counts(&part["usage"]))),
            _ => {}
        }
    }
    all
}

fn kind(finish: &Value) -> FinishKind {
    match finish["finishReason"]["unified"].as_str().unwrap() {
        "stop" => FinishKind::Stop,
        "tool-calls" => FinishKind::ToolCalls,
        other => panic!("{other}"),
    }
}

fn counts(usage: &Value) -> [u64; 5] {
    let (input, output) = (&usage["inputTokens"], &usage["outputTokens"]);
    let counts = [
        &input["noCache"],
        &input["cacheRead"],
        &input["cacheWrite"],
        &output["total"],
        &output["reasoning"],
    ];
    counts.map(|count| count.as_u64().unwrap_or(0))
}

fn ours(decoded: Decoded) -> Golden {
    assert!(decoded.error.is_none(), "{:?}", decoded.error);
    let calls = decoded.calls.iter().map(|call| {
        (call.id.as_str().to_owned(), call.name.clone(), call.input.json().unwrap().get().to_owned())
    });
    let usage = &decoded.usage;
    let counts = [usage.input, usage.cache_read, usage.cache_write(), usage.output, usage.reasoning];
    let end = Some((decoded.finish.unwrap().kind, counts));
    Golden { text: decoded.text, reasoning: decoded.reasoning, calls: calls.collect(), end }
}

#[test]
fn recorded_streams_decode_as_the_golden_files_say() {
    let Some(corpus) = corpus("responses: recorded_streams_decode_as_the_golden_files_say") else { return };
    let recorded = corpus.join("recorded");
    let index = String::from_utf8(read(&recorded.join("streams/INDEX.tsv"))).unwrap();
    let mut checked = 0;
    for row in index.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [file, "openai-responses", ..] = columns[..] else { continue };
        let bodies = bodies(read(&recorded.join("streams").join(file)));
        let file = parse(&read(&recorded.join(format!("golden/{file}.golden.json"))));
        let decode = |body: &[u8]| decode_response(&dialect("openai"), &[body], &ResponseHead::unknown());
        checked += bodies.len();
        if file["mode"] == "throw" {
            // Better than the golden file, which would try an empty account again.
            let error = decode(&bodies[0]).error.unwrap();
            assert_eq!((error.kind, error.retryable), (ModelErrorKind::QuotaExhausted, false));
            continue;
        }
        let golden = golden(&file);
        assert_eq!(bodies.len(), golden.len());
        for (body, golden) in bodies.iter().zip(golden) {
            let mut ours = ours(decode(body));
            match golden.end {
                // Better than the golden file, which was decoded in one go: it has calls, but ends in words.
                Some((FinishKind::ToolCalls, counts)) if ours.calls.is_empty() => {
                    assert_eq!(ours.end.take(), Some((FinishKind::Stop, counts)));
                }
                Some(_) => assert_eq!(ours.end.take(), golden.end),
                None => assert_eq!(ours.end.take().unwrap().0, FinishKind::ToolCalls),
            }
            assert_eq!(ours, Golden { end: None, ..golden });
        }
    }
    assert!(checked == 8, "{checked} responses found");
}

/// The recorded exchanges of this format: file, provider, exchange.
fn exchanges(corpus: &std::path::Path) -> Vec<(String, &'static str, Value)> {
    let mut all = Vec::new();
    for provider in ["openai", "xai", "openrouter"] {
        for (name, bytes) in files(&corpus.join("recorded/exchanges").join(provider)) {
            for line in String::from_utf8(bytes).unwrap().lines() {
                let exchange = parse(line.as_bytes());
                if exchange["request"]["path"].as_str().unwrap().ends_with("/responses") {
                    all.push((name.clone(), provider, exchange));
                }
            }
        }
    }
    assert!(all.len() > 140, "only {} exchanges", all.len());
    all
}

#[test]
fn recorded_answers_are_read() {
    let Some(corpus) = corpus("responses: recorded_answers_are_read") else { return };
    for (name, provider, exchange) in exchanges(&corpus) {
        let response = &exchange["response"];
        let status = response["status"].as_u64().unwrap() as u16;
        let head = ResponseHead { status: Some(status), ..ResponseHead::unknown() };
        let decoded = decode_response(&dialect(provider), &[response["body"].as_str().unwrap()], &head);
        let kind = decoded.error.as_ref().map(|error| error.kind);
        match status {
            200 => {
                let says = !decoded.text.is_empty() || !decoded.calls.is_empty();
                let is_cut = decoded.finish.as_ref().is_some_and(|finish| finish.kind == FinishKind::Length);
                assert!(
                    kind.is_none() && decoded.usage.output > 0 && (says || is_cut),
                    "{name}: {decoded:?}"
                );
            }
            _ => assert!(kind.is_some_and(|kind| kind != ModelErrorKind::Protocol), "{name}: {decoded:?}"),
        }
    }
}

/// A model that takes everything, so that nothing is left out.
fn willing(provider: &str, model: &str) -> ModelProfile {
    ModelProfile {
        max_output: u32::MAX,
        allowed_tools: true,
        forced_tool_choice: true,
        mid_conversation_system: true,
        vision: true,
        known: true,
        ..ModelProfile::conservative(provider, model)
    }
}

#[test]
fn recorded_requests_are_sent_again_with_equal_meaning() {
    let Some(corpus) = corpus("responses: recorded_requests_are_sent_again_with_equal_meaning") else {
        return;
    };
    let (mut checked, mut long) = (0, 0);
    for (name, provider, exchange) in exchanges(&corpus) {
        // A socket was opened without a body.
        let Some(body) = exchange["request"]["body"].as_str() else { continue };
        let imported = import_request(&dialect(provider), body.as_bytes()).unwrap();
        assert_eq!((&imported.repairs[..], &imported.diagnostics[..]), (&[][..], &[][..]), "{name}");
        let recorded = parse(body.as_bytes());
        let profile = willing(provider, &imported.model);
        let mut encoder = agent_providers::encoder(&dialect(provider), profile, ToolNames::default());
        let history = imported.history.clone();
        let encoded = Ask::of(imported).encode(&mut *encoder, &history);
        assert_eq!(encoded.diagnostics, [], "{name}");
        let sent = parse(text(&encoded.request.body).as_bytes());
        long += usize::from(recorded["input"].as_array().is_some_and(|input| input.len() > 3));
        assert_eq!(plain(sent, &recorded), plain(recorded.clone(), &recorded), "{name}");
        checked += 1;
    }
    assert!(checked > 140 && long > 20, "{checked} requests, {long} of several turns");
}

/// A request in which what means the same is written the same.
fn plain(mut request: Value, recorded: &Value) -> Value {
    let fields = request.as_object_mut().unwrap();
    // We ask for no state and for sealed thinking where the request does not say otherwise.
    for ours in ["store", "include"] {
        if recorded.get(ours).is_none() {
            fields.remove(ours);
        }
    }
    // The documented default.
    fields.entry("stream").or_insert(json!(false));
    let mut input = match fields.remove("input").unwrap() {
        Value::String(text) => vec![json!({"type": "message", "role": "user", "content": text})],
        Value::Array(items) => items,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => panic!("no input"),
    };
    // Instructions are a message of the system before all others.
    if let Some(text) = fields.remove("instructions") {
        input.insert(0, json!({"type": "message", "role": "system", "content": text}));
    }
    input.iter_mut().for_each(plain_item);
    // System messages at the head are one.
    while input.len() > 1 && input[..2].iter().all(|item| item["role"] == "system") {
        let second = input.remove(1)["content"].as_array().unwrap().clone();
        input[0]["content"].as_array_mut().unwrap().extend(second);
    }
    fields.insert("input".into(), input.into());
    without_nulls(&mut request);
    request
}

fn plain_item(item: &mut Value) {
    let fields = item.as_object_mut().unwrap();
    // The developer is the system by its newer name.
    if fields.get("role") == Some(&json!("developer")) {
        fields.insert("role".into(), json!("system"));
    }
    // A string is one part of words.
    if let Some(Value::String(text)) = fields.get("content").cloned() {
        let kind = if fields["role"] == "assistant" { "output_text" } else { "input_text" };
        fields.insert("content".into(), json!([{"type": kind, "text": text}]));
    }
    // A result that is sent is complete.
    if fields["type"] == "function_call_output" {
        assert_eq!(fields.remove("status").unwrap_or(json!("completed")), "completed");
    }
}

/// Null is what is not there.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
