//! Real traffic of Gemini, where the large corpus is at hand.

use agent_core::{ModelErrorKind, ModelProfile, ModelRequest};
use agent_providers::{
    Decoded, Imported, ResponseHead, ToolNames, WireFormat, decode_response, encoder, import_request,
};
use serde_json::{Map, Value, json};

use crate::support::{corpus, files, read};

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

fn decode(bytes: &[u8], head: &ResponseHead<'_>) -> Decoded {
    decode_response(&WireFormat::Gemini.into(), &[bytes], head)
}

/// What a golden file says, and what we say: text, calls, raw finish reason, and four counts of tokens.
type Golden = (String, Vec<(String, String)>, String, [u64; 4]);

fn golden(file: &Value) -> Golden {
    let mut one = Golden::default();
    for part in file["parts"].as_array().unwrap() {
        match part["type"].as_str().unwrap() {
            "text-delta" => one.0.push_str(part["delta"].as_str().unwrap()),
            "tool-call" => {
                let field = |name: &str| part[name].as_str().unwrap().to_owned();
                one.1.push((field("toolName"), field("input")));
            }
            "finish" => {
                part["finishReason"]["raw"].as_str().unwrap().clone_into(&mut one.2);
                let (input, output) = (&part["usage"]["inputTokens"], &part["usage"]["outputTokens"]);
                let counts = [&input["noCache"], &input["cacheRead"], &output["total"], &output["reasoning"]];
                one.3 = counts.map(|count| count.as_u64().unwrap_or(0));
            }
            _ => {}
        }
    }
    one
}

fn ours(decoded: Decoded) -> Golden {
    assert!(decoded.error.is_none(), "{:?}", decoded.error);
    let calls =
        decoded.calls.iter().map(|call| (call.name.clone(), call.input.json().unwrap().get().to_owned()));
    let usage = &decoded.usage;
    let counts = [usage.input, usage.cache_read, usage.output, usage.reasoning];
    (decoded.text, calls.collect(), decoded.finish.unwrap().raw, counts)
}

#[test]
fn recorded_streams_decode_as_the_golden_files_say() {
    let Some(corpus) = corpus("gemini: recorded_streams_decode_as_the_golden_files_say") else { return };
    let recorded = corpus.join("recorded");
    let index = String::from_utf8(read(&recorded.join("streams/INDEX.tsv"))).unwrap();
    let mut checked = 0;
    for row in index.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [file, "gemini", framing, ..] = columns[..] else { continue };
        let golden_file = parsed(&read(&recorded.join(format!("golden/{file}.golden.json"))));
        let bytes = read(&recorded.join("streams").join(file));
        checked += 1;
        if !framing.starts_with("one JSON event a line") {
            let head = ResponseHead { status: Some(429), ..ResponseHead::unknown() };
            let error = decode(&bytes, &head).error.unwrap();
            // The provider's own delay is in the body; where it is read, waiting helps.
            if error.retry_after_ms.is_some() {
                assert_eq!((error.retry_after_ms, error.retryable), (Some(34_400), true));
            }
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        let stream: String = text.lines().map(|line| format!("data: {line}\r\n\r\n")).collect();
        assert_eq!(ours(decode(stream.as_bytes(), &ResponseHead::unknown())), golden(&golden_file), "{file}");
        let list = format!("[{}]", text.lines().collect::<Vec<_>>().join(",\r\n"));
        assert_eq!(
            ours(decode(list.as_bytes(), &ResponseHead::unknown())),
            golden(&golden_file),
            "{file} as a list"
        );
    }
    assert_eq!(checked, 3, "recordings of this format");
}

/// Each exchange: where it was recorded, its request's body, its status and its response's body.
fn exchanges() -> Option<Vec<(String, Value)>> {
    let corpus = corpus("gemini: exchanges")?;
    let mut all = Vec::new();
    for (name, bytes) in files(&corpus.join("recorded/exchanges/gemini")) {
        for (at, line) in String::from_utf8(bytes).unwrap().lines().enumerate() {
            all.push((format!("{name}:{at}"), serde_json::from_str(line).unwrap()));
        }
    }
    assert!(all.len() > 100, "only {} exchanges found", all.len());
    Some(all)
}

#[test]
fn every_recorded_answer_decodes() {
    let Some(all) = exchanges() else { return };
    for (name, exchange) in all {
        let status = u16::try_from(exchange["response"]["status"].as_u64().unwrap()).unwrap();
        let body = exchange["response"]["body"].as_str().unwrap().as_bytes();
        let head = ResponseHead { status: Some(status), ..ResponseHead::unknown() };
        let whole = decode(body, &head);
        let bytes: Vec<&[u8]> = body.chunks(7).collect();
        let cut = decode_response(&WireFormat::Gemini.into(), &bytes, &head);
        assert_eq!(serde_json::to_string(&whole).unwrap(), serde_json::to_string(&cut).unwrap(), "{name}");
        match whole.error {
            Some(error) => {
                assert!(status >= 400 && error.kind != ModelErrorKind::Protocol, "{name}: {error}");
            }
            None => {
                assert!(
                    status < 400 && whole.finish.is_some() && whole.usage.output > 0,
                    "{name}: {whole:?}"
                );
                let total = &parsed_usage(exchange["response"]["body"].as_str().unwrap())["totalTokenCount"];
                assert_eq!(Some(whole.usage.total_input() + whole.usage.output), total.as_u64(), "{name}");
            }
        }
    }
}

/// The last usage object of a body.
fn parsed_usage(body: &str) -> Value {
    let mut chunks = body
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ").unwrap_or(line)).ok());
    chunks.next_back().unwrap_or_else(|| serde_json::from_str(body).unwrap())["usageMetadata"].clone()
}

fn reencoded(imported: &Imported, model: &str) -> (String, Vec<String>) {
    let profile = ModelProfile {
        forced_tool_choice: true,
        vision: true,
        max_output: u32::MAX,
        known: true,
        ..ModelProfile::conservative("gemini", model)
    };
    let encoded = encoder(&WireFormat::Gemini.into(), profile, ToolNames::default()).encode(&ModelRequest {
        system: &imported.system,
        tools: &imported.tools,
        draft: &imported.history.draft(),
        settings: &imported.settings,
        tool_choice: &imported.tool_choice,
        marks: &[],
        stream: false,
    });
    let notes = encoded.diagnostics.into_iter().map(|note| format!("{}: {}", note.what, note.why));
    (String::from_utf8(encoded.request.body.to_vec()).unwrap(), notes.collect())
}

/// Removes what says nothing.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (key, value) in fields {
                let value = normal(value);
                // Parameters without properties are none.
                if key == "parameters" && value["properties"] == json!({}) {
                    continue;
                }
                // Null is absent; so are `"thought":false` and `"includeThoughts":false`, the defaults.
                let is_default = value == json!(false) && (key == "thought" || key == "includeThoughts");
                if !value.is_null() && !is_default {
                    kept.insert(key, value);
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        // 0 and 0.0 are one number.
        Value::Number(number) => json!(number.as_f64()),
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

/// A request in the form that equal ones share.
fn normal_request(body: &str) -> Value {
    let mut request = normal(serde_json::from_str(body).unwrap());
    let fields = request.as_object_mut().unwrap();
    // The role of the system prompt is not read.
    if let Some(system) = fields.get_mut("systemInstruction") {
        system.as_object_mut().unwrap().remove("role");
    }
    // A configuration without fields is none.
    fields.retain(|_, value| value != &json!({}));
    // Contents of one role in a row are one content.
    let mut contents: Vec<Value> = Vec::new();
    for content in fields["contents"].as_array().unwrap() {
        match contents.last_mut().filter(|last| last["role"] == content["role"]) {
            Some(last) => {
                last["parts"].as_array_mut().unwrap().extend(content["parts"].as_array().unwrap().clone())
            }
            None => contents.push(content.clone()),
        }
    }
    fields.insert("contents".into(), Value::Array(contents));
    request
}

#[test]
fn recorded_requests_survive_the_round_trip() {
    let Some(all) = exchanges() else { return };
    let mut turns = 0;
    for (name, exchange) in all {
        let body = exchange["request"]["body"].as_str().unwrap();
        let path = exchange["request"]["path"].as_str().unwrap();
        let (_, model) = path.rsplit_once('/').unwrap();
        let (model, _) = model.split_once(':').unwrap();
        let imported = import_request(&WireFormat::Gemini.into(), body.as_bytes()).unwrap();
        assert!(imported.diagnostics.is_empty() && imported.repairs.is_empty(), "{name}: {imported:?}");
        let (again, notes) = reencoded(&imported, model);
        assert!(notes.is_empty(), "{name}: {notes:?}");
        assert_eq!(normal_request(&again), normal_request(body), "{name}\n{again}\n{body}");
        turns += usize::from(imported.history.len() > 1);
        // What a model wrote keeps its bytes.
        assert_eq!(
            strings(&again, "\"thoughtSignature\":"),
            strings(body, "\"thoughtSignature\":"),
            "{name}"
        );
        assert_eq!(strings(&again, "\"args\":"), strings(body, "\"args\":"), "{name}");
    }
    assert!(turns > 30, "only {turns} requests with several turns");
}

/// The bytes of every value of a key, in order.
fn strings(body: &str, key: &str) -> Vec<String> {
    let values = body.match_indices(key).map(|(at, _)| {
        let rest = &body[at + key.len()..];
        let mut values =
            serde_json::Deserializer::from_str(rest).into_iter::<Box<serde_json::value::RawValue>>();
        values.next().unwrap().unwrap().get().to_owned()
    });
    values.filter(|value| value != "null").collect()
}
