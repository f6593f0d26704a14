//! Recorded requests, imported and written again, mean the same.

use std::path::Path;

use agent_core::{ModelProfile, ModelRequest};
use agent_providers::{Catalog, Imported, ToolNames, WireFormat, encoder, import_request};
use serde_json::{Map, Value, json};

use super::corpus::json as parsed;
use crate::support::{corpus, files, read};

/// What was read, written for the model it was meant for.
pub(crate) fn again(imported: &Imported) -> (String, Vec<agent_core::Diagnostic>) {
    // Windows and limits are the recorder's business, not the model's.
    let profile =
        ModelProfile { max_output: u32::MAX, ..Catalog::builtin().profile("anthropic", &imported.model) };
    let encoded =
        encoder(&WireFormat::Anthropic.into(), profile, ToolNames::default()).encode(&ModelRequest {
            system: &imported.system,
            tools: &imported.tools,
            draft: &imported.history.draft(),
            settings: &imported.settings,
            tool_choice: &imported.tool_choice,
            marks: &[],
            stream: imported.stream,
        });
    (String::from_utf8(encoded.request.body.to_vec()).unwrap(), encoded.diagnostics)
}

/// One form for what means the same.
fn plain(mut body: Value) -> Value {
    let fields = body.as_object_mut().unwrap();
    // Where markers stand is decided anew for each request.
    fields.remove("cache_control");
    // Absent is the documented default.
    fields.entry("stream").or_insert(json!(false));
    if fields.get("tool_choice") == Some(&json!({"type": "auto"})) {
        fields.remove("tool_choice");
    }
    for key in ["stop_sequences", "tools", "system"] {
        if fields.get(key) == Some(&json!([])) {
            fields.remove(key);
        }
    }
    // Without tools there is nothing to choose.
    if !fields.contains_key("tools") && fields.get("tool_choice") == Some(&json!({"type": "none"})) {
        fields.remove("tool_choice");
    }
    if let Some(system) = fields.get_mut("system") {
        *system = content(system.take());
    }
    for tool in fields.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        tool.as_object_mut().unwrap().remove("cache_control");
    }
    let messages = fields["messages"].take();
    fields["messages"] = joined(messages);
    // A number may be written in more than one way.
    for key in ["temperature", "top_p"] {
        if let Some(number) = fields.get(key).and_then(Value::as_f64) {
            fields[key] = json!(number as f32);
        }
    }
    body
}

/// Messages of one role in a row are one message.
fn joined(messages: Value) -> Value {
    let mut all: Vec<(Value, Vec<Value>)> = Vec::new();
    for message in messages.as_array().unwrap() {
        let Value::Array(blocks) = content(message["content"].clone()) else { panic!("{message}") };
        match all.last_mut().filter(|(role, _)| *role == message["role"]) {
            Some((_, known)) => known.extend(blocks),
            None => all.push((message["role"].clone(), blocks)),
        }
    }
    all.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

/// A text is a list of one text block, an empty one of none; a marker is no content.
fn content(given: Value) -> Value {
    let blocks = match given.as_str() {
        Some(text) => vec![json!({"type": "text", "text": text})],
        None => given.as_array().unwrap().clone(),
    };
    let kept = blocks.into_iter().filter(|block| block["type"] != "text" || block["text"] != "");
    kept.map(|block| Value::Object(block_of(block.as_object().unwrap().clone()))).collect()
}

fn block_of(mut block: Map<String, Value>) -> Map<String, Value> {
    block.remove("cache_control");
    if block["type"] == "tool_result" {
        let inner = block.remove("content").unwrap_or(json!([]));
        block.insert("content".into(), content(inner));
    }
    // Absent is false.
    if block.get("is_error") == Some(&json!(false)) {
        block.remove("is_error");
    }
    block
}

/// The exact bytes of every input and every seal.
fn exact(body: &str) -> Vec<String> {
    use serde_json::value::RawValue;
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        messages: Vec<Message<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    #[derive(serde::Deserialize)]
    struct Block<'a> {
        #[serde(borrow, default)]
        input: Option<&'a RawValue>,
        #[serde(borrow, default)]
        signature: Option<&'a RawValue>,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    let body: Body<'_> = serde_json::from_str(body).unwrap();
    let blocks = body.messages.iter().flat_map(|message| {
        serde_json::from_str::<Vec<Block<'_>>>(message.content.get()).unwrap_or_default()
    });
    blocks
        .flat_map(|block| [block.input, block.signature, block.data])
        .flatten()
        .map(|raw| raw.get().to_owned())
        .collect()
}

/// The request in the file, written again, means the same and has these exact pieces; nothing is left out.
#[track_caller]
fn check(name: &str, pieces: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire/anthropic/requests");
    let body = String::from_utf8(read(&folder.join(name))).unwrap();
    let imported = import_request(&WireFormat::Anthropic.into(), body.as_bytes()).unwrap();
    assert_eq!((imported.diagnostics.as_slice(), imported.repairs.as_slice()), (&[][..], &[][..]));
    let (written, diagnostics) = again(&imported);
    assert_eq!(plain(parsed(written.as_bytes())), plain(parsed(body.as_bytes())));
    assert_eq!(exact(&written), exact(&body));
    assert_eq!(exact(&written), pieces);
    assert_eq!(diagnostics, []);
    let once_more = import_request(&WireFormat::Anthropic.into(), written.as_bytes()).unwrap();
    assert_eq!(again(&once_more).0, written, "the second time nothing moves");
}

#[test]
fn requests_with_everything_mean_the_same_when_written_again() {
    let inputs = [
        r#""c2ln""#,
        r#""aGlkZGVu""#,
        r#"{"query":"tea"}"#,
        r#"{"code":"brew()"}"#,
        r#"{ "z":12345678901234567890,"cups":2.0 }"#,
        "{}",
    ];
    check("everything.json", &inputs);
    check("pause.json", &[r#"{"query":"oolong"}"#]);
    check("compacted.json", &[r#""c2ln""#]);
}

#[test]
fn recorded_requests_mean_the_same_when_written_again() {
    let Some(corpus) = corpus("recorded_requests_mean_the_same_when_written_again") else { return };
    let mut checked = 0;
    for (name, bytes) in files(&corpus.join("recorded/exchanges/anthropic")) {
        for line in String::from_utf8(bytes).unwrap().lines() {
            let exchange = parsed(line.as_bytes());
            let body = exchange["request"]["body"].as_str().unwrap();
            let imported = import_request(&WireFormat::Anthropic.into(), body.as_bytes()).unwrap();
            let (written, diagnostics) = again(&imported);
            if exchange["response"]["status"] != 200 {
                // What the provider refused may be mended.
                continue;
            }
            assert_eq!(
                plain(parsed(written.as_bytes())),
                plain(parsed(body.as_bytes())),
                "{name} {diagnostics:?}"
            );
            assert_eq!(exact(&written), exact(body), "{name}");
            checked += 1;
        }
    }
    assert!(checked > 200, "only {checked} requests found");
}
