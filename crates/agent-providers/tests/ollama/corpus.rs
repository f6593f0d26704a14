//! Real traffic of Ollama, where the large corpus is at hand.

use agent_core::{ModelErrorKind, ModelProfile, ModelRequest};
use agent_providers::{
    Decoded, Imported, ResponseHead, ToolNames, WireFormat, decode_response, encoder, import_request,
};
use serde_json::{Map, Value, json};

use crate::support::{corpus, files, printed};

fn decode(bytes: &[u8], head: &ResponseHead<'_>) -> Decoded {
    decode_response(&WireFormat::Ollama.into(), &[bytes], head)
}

/// Each exchange: where it was recorded, and what was.
fn exchanges() -> Option<Vec<(String, Value)>> {
    let corpus = corpus("ollama: exchanges")?;
    let mut all = Vec::new();
    for (name, bytes) in files(&corpus.join("recorded/exchanges/ollama")) {
        for (at, line) in String::from_utf8(bytes).unwrap().lines().enumerate() {
            all.push((format!("{name}:{at}"), serde_json::from_str(line).unwrap()));
        }
    }
    assert!(all.len() > 20, "only {} exchanges found", all.len());
    Some(all)
}

/// The words, thinking and names of tools in a recorded body, read in the plainest way.
fn plain(body: &str) -> (String, String, Vec<String>) {
    let mut read = (String::new(), String::new(), Vec::new());
    for object in serde_json::Deserializer::from_str(body).into_iter::<Value>() {
        let message = &object.unwrap()["message"];
        read.0.push_str(message["content"].as_str().unwrap_or_default());
        read.1.push_str(message["thinking"].as_str().unwrap_or_default());
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        read.2.extend(calls.map(|call| call["function"]["name"].as_str().unwrap().to_owned()));
    }
    read
}

#[test]
fn every_recorded_answer_decodes() {
    let Some(all) = exchanges() else { return };
    for (name, exchange) in all {
        let status = u16::try_from(exchange["response"]["status"].as_u64().unwrap()).unwrap();
        let body = exchange["response"]["body"].as_str().unwrap();
        let head = ResponseHead { status: Some(status), ..ResponseHead::unknown() };
        let whole = decode(body.as_bytes(), &head);
        let bytes: Vec<&[u8]> = body.as_bytes().chunks(7).collect();
        let cut = decode_response(&WireFormat::Ollama.into(), &bytes, &head);
        assert_eq!(printed(&whole), printed(&cut), "{name}");
        if let Some(error) = whole.error {
            assert!(status >= 400 && error.kind != ModelErrorKind::Protocol, "{name}: {error}");
            continue;
        }
        assert!(whole.finish.is_some() && whole.usage.output > 0, "{name}: {whole:?}");
        let names = whole.calls.iter().map(|call| call.name.clone()).collect();
        assert_eq!((whole.text, whole.reasoning, names), plain(body), "{name}");
    }
}

fn reencoded(imported: &Imported) -> (String, Vec<String>) {
    let profile = ModelProfile {
        vision: true,
        max_output: u32::MAX,
        known: true,
        ..ModelProfile::conservative("ollama", &imported.model)
    };
    let encoded = encoder(&WireFormat::Ollama.into(), profile, ToolNames::default()).encode(&ModelRequest {
        system: &imported.system,
        tools: &imported.tools,
        draft: &imported.history.draft(),
        settings: &imported.settings,
        tool_choice: &imported.tool_choice,
        marks: &[],
        stream: imported.stream,
    });
    let notes = encoded.diagnostics.into_iter().map(|note| format!("{}: {}", note.what, note.why));
    (String::from_utf8(encoded.request.body.to_vec()).unwrap(), notes.collect())
}

/// Removes what says nothing.
fn normal(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| (key, normal(value)));
            // Null is absent, and so are options without one.
            let kept: Map<String, Value> = fields
                .filter(|(key, value)| !(value.is_null() || (key == "options" && *value == json!({}))))
                .collect();
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(normal).collect()),
        // 0 and 0.0 are one number.
        Value::Number(number) => json!(number.as_f64()),
        other @ (Value::Null | Value::Bool(_) | Value::String(_)) => other,
    }
}

#[test]
fn recorded_requests_survive_the_round_trip() {
    let Some(all) = exchanges() else { return };
    let mut turns = 0;
    for (name, exchange) in all {
        let body = exchange["request"]["body"].as_str().unwrap();
        let imported = import_request(&WireFormat::Ollama.into(), body.as_bytes()).unwrap();
        assert!(imported.diagnostics.is_empty() && imported.repairs.is_empty(), "{name}: {imported:?}");
        let (again, notes) = reencoded(&imported);
        assert!(notes.is_empty(), "{name}: {notes:?}");
        let request = |text: &str| normal(serde_json::from_str(text).unwrap());
        assert_eq!(request(&again), request(body), "{name}\n{again}\n{body}");
        turns += usize::from(imported.history.len() > 1);
        // What a model wrote keeps its bytes.
        assert_eq!(strings(&again, "\"arguments\":"), strings(body, "\"arguments\":"), "{name}");
    }
    assert!(turns > 5, "only {turns} requests with several turns");
}

/// The bytes of every value of a key, in order.
fn strings(body: &str, key: &str) -> Vec<String> {
    let values = body.match_indices(key).map(|(at, _)| {
        let rest = &body[at + key.len()..];
        let mut values =
            serde_json::Deserializer::from_str(rest).into_iter::<Box<serde_json::value::RawValue>>();
        values.next().unwrap().unwrap().get().to_owned()
    });
    values.collect()
}
