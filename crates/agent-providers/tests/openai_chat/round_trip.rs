//! Every recorded request, read into a conversation and written again, says the same.

use std::collections::BTreeMap;

use agent_core::{ModelProfile, ModelRequest};
use agent_providers::{Dialect, Imported, ToolNames, encoder, import_request};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::corpus::{VENDORS, dialect, exchanges, json};
use crate::support::corpus;

#[test]
fn recorded_chat_requests_come_out_as_they_went_in() {
    let Some(corpus) = corpus("recorded_chat_requests_come_out_as_they_went_in") else { return };
    let (mut checked, mut with_history, mut sealed) = (0, 0, 0);
    for (vendor, provider) in VENDORS {
        for (name, exchange) in exchanges(&corpus, vendor) {
            let given = exchange["request"]["body"].as_str().unwrap();
            let dialect = dialect(provider);
            let imported =
                import_request(&dialect, given.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(imported.repairs, [], "{name}");
            if says_what_we_do_not(&name) {
                continue;
            }
            assert_eq!(imported.diagnostics, [], "{name}");
            let again = encode(&dialect, &imported);
            let (before, after) = (plain(json(given.as_bytes())), plain(json(again.as_bytes())));
            assert_eq!(pretty(&before), pretty(&after), "{name}");
            for item in items(given) {
                assert!(again.contains(&item), "{name}: {item}");
                sealed += 1;
            }
            checked += 1;
            with_history += usize::from(given.contains("tool_call_id"));
        }
    }
    assert!(checked > 500 && with_history > 60, "{checked} requests, {with_history} with results");
    assert!(sealed > 3, "only {sealed} items of thinking");
}

/// The items of thinking in a request, as their bytes.
fn items(body: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Body {
        messages: Vec<Message>,
    }
    #[derive(Deserialize)]
    struct Message {
        #[serde(default)]
        reasoning_details: Vec<Box<RawValue>>,
    }
    let body: Body = serde_json::from_str(body).unwrap();
    body.messages.iter().flat_map(|said| &said.reasoning_details).map(|raw| raw.get().to_owned()).collect()
}

/// Requests that were recorded because the provider refuses them: we do not send such ones.
fn says_what_we_do_not(name: &str) -> bool {
    let refused = ["image_only", "image_url_part", "image_part", "video_part"];
    name.starts_with("deepseek/") && refused.iter().any(|part| name.contains(part))
}

fn encode(dialect: &Dialect, imported: &Imported) -> String {
    let profile = ModelProfile {
        forced_tool_choice: true,
        vision: true,
        known: true,
        max_output: u32::MAX,
        ..ModelProfile::conservative(dialect.provider.clone(), imported.model.clone())
    };
    let mut encoder = encoder(dialect, profile, ToolNames::default());
    let encoded = encoder.encode(&ModelRequest {
        system: &imported.system,
        tools: &imported.tools,
        draft: &imported.history.draft(),
        settings: &imported.settings,
        tool_choice: &imported.tool_choice,
        marks: &[],
        stream: imported.stream,
    });
    assert_eq!(encoded.diagnostics, []);
    String::from_utf8(encoded.request.body.to_vec()).unwrap()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// A request in one of its equal forms.
fn plain(mut body: Value) -> Value {
    let fields = body.as_object_mut().unwrap();
    // Absent, null and the documented default are the same.
    fields.retain(|key, value| {
        let is_default = matches!((key.as_str(), &*value), ("stream", Value::Bool(false)));
        !value.is_null() && !is_default && *value != "auto"
    });
    // Usage is asked for in every stream where that is taken.
    fields.remove("stream_options");
    // The old name of the limit and the new one mean the same to those who take both.
    if let Some(limit) = fields.remove("max_completion_tokens") {
        fields.insert("max_tokens".into(), limit);
    }
    // One stop text is a list of one.
    if let Some(Value::String(stop)) = fields.get("stop").cloned() {
        fields.insert("stop".into(), Value::Array(vec![stop.into()]));
    }
    for value in fields.values_mut() {
        floats(value);
    }
    let mut ids = BTreeMap::new();
    let messages = fields["messages"].as_array().unwrap().iter();
    let messages: Vec<Value> = messages.map(|message| plain_message(message.clone(), &mut ids)).collect();
    fields.insert("messages".into(), joined(messages).into());
    body
}

/// `1` and `1.0` are one number.
fn floats(value: &mut Value) {
    if let Some(number) = value.as_f64().filter(|_| value.is_number()) {
        *value = number.into();
    }
}

fn plain_message(mut message: Value, ids: &mut BTreeMap<String, usize>) -> Value {
    let fields = message.as_object_mut().unwrap();
    let has_calls = fields.contains_key("tool_calls");
    // A message that only calls tools has null, an empty text, or no content at all.
    let content = match fields.remove("content").unwrap_or_default() {
        Value::String(text) if text.is_empty() && has_calls => Value::Null,
        // A text is a list of one text part.
        Value::String(text) => serde_json::json!([{"type": "text", "text": text}]),
        Value::Array(parts) => Value::Array(parts.into_iter().map(plain_part).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other,
    };
    if !content.is_null() {
        fields.insert("content".into(), content);
    }
    // No message is marked as a beginning by default, and empty thinking is none.
    fields.retain(|key, value| {
        !(key == "prefix" && *value == false || key == "reasoning_content" && *value == "")
    });
    for call in fields.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
        let call = call.as_object_mut().unwrap();
        // The place in the list says it already.
        call.remove("index");
        call.insert("id".into(), number(call["id"].as_str().unwrap(), ids));
    }
    if let Some(id) = fields.get("tool_call_id").cloned() {
        fields.insert("tool_call_id".into(), number(id.as_str().unwrap(), ids));
    }
    message
}

/// Ids are names: the providers' grammars differ, what counts is which call a result answers.
fn number(id: &str, ids: &mut BTreeMap<String, usize>) -> Value {
    let next = ids.len();
    (*ids.entry(id.to_owned()).or_insert(next)).into()
}

fn plain_part(mut part: Value) -> Value {
    // The documented default of an image's detail.
    if let Some(image) = part.get_mut("image_url").and_then(Value::as_object_mut) {
        image.retain(|key, value| !(key == "detail" && *value == "auto"));
    }
    part
}

/// Users' messages in a row say the same as one with all their parts.
fn joined(messages: Vec<Value>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for message in messages {
        match all.last_mut() {
            Some(last) if last["role"] == "user" && message["role"] == "user" => {
                let parts = message["content"].as_array().unwrap().clone();
                last["content"].as_array_mut().unwrap().extend(parts);
            }
            _ => all.push(message),
        }
    }
    all
}

/// The rules above are few and hold no more than they say.
#[test]
fn different_requests_stay_different() {
    let check = |one: &str, other: &str, same: bool| {
        let body = |messages: &str| {
            let mut fields = Map::new();
            fields.insert("messages".into(), json(messages.as_bytes()));
            plain(Value::Object(fields))
        };
        assert_eq!(body(one) == body(other), same, "{one} {other}");
    };
    check(
        r#"[{"role":"user","content":"a"}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":"a"}]}]"#,
        true,
    );
    check(r#"[{"role":"user","content":"a"}]"#, r#"[{"role":"user","content":"b"}]"#, false);
    check(r#"[{"role":"assistant","content":""}]"#, r#"[{"role":"assistant","content":null}]"#, false);
    let call = |id: &str, arguments: &str| {
        format!(
            r#"[{{"role":"assistant","content":"","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"f","arguments":"{arguments}"}}}}]}},{{"role":"tool","tool_call_id":"a","content":"r"}}]"#
        )
    };
    check(&call("a", "{}"), &call("a", "{}"), true);
    check(&call("a", "{}"), &call("a", "{ }"), false);
    check(&call("a", "{}"), &call("b", "{}"), false);
}
