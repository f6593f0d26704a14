//! Real traffic, where the large corpus is at hand.

use agent_core::{Entry, ModelErrorKind};
use agent_providers::{Decoded, ResponseHead, WireFormat, decode_response, import_request};
use serde_json::Value;

use crate::support::{corpus, decode, files, read};

pub(super) fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// A recorded file as the bodies of its responses.
fn bodies(bytes: Vec<u8>, framing: &str) -> Vec<Vec<u8>> {
    if !framing.starts_with("one JSON event a line") {
        return vec![bytes];
    }
    let text = String::from_utf8(bytes).unwrap();
    let mut bodies: Vec<Vec<u8>> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if bodies.is_empty() || json(line.as_bytes())["type"] == "message_start" {
            bodies.push(Vec::new());
        }
        bodies.last_mut().unwrap().extend(format!("data: {line}\n\n").into_bytes());
    }
    bodies
}

/// What a golden file says of each response: text, reasoning, calls, raw stop reason, and five counts of tokens.
type Golden = (String, String, Vec<(String, String, String)>, String, [u64; 5]);

fn golden(file: &Value) -> Vec<Golden> {
    if file["mode"] != "stream" {
        return vec![plain_golden(file)];
    }
    let mut all = Vec::new();
    let mut one = Golden::default();
    for part in file["parts"].as_array().unwrap() {
        let delta = part["delta"].as_str().unwrap_or_default();
        match part["type"].as_str().unwrap() {
            "text-delta" => one.0.push_str(delta),
            "reasoning-delta" => one.1.push_str(delta),
            "tool-call" if part["providerExecuted"] != true => one.2.push(call(part)),
            "finish" => {
                part["finishReason"]["raw"].as_str().unwrap().clone_into(&mut one.3);
                one.4 = counts(&part["usage"]);
                all.push(std::mem::take(&mut one));
            }
            _ => {}
        }
    }
    all
}

fn plain_golden(file: &Value) -> Golden {
    let text = |kind: &str| {
        let parts = file["content"].as_array().unwrap().iter().filter(|part| part["type"] == kind);
        parts.map(|part| part["text"].as_str().unwrap()).collect::<String>()
    };
    let raw = file["finishReason"]["raw"].as_str().unwrap().to_owned();
    (text("text"), text("reasoning"), Vec::new(), raw, counts(&file["usage"]))
}

fn call(part: &Value) -> (String, String, String) {
    let field = |name: &str| part[name].as_str().unwrap().to_owned();
    (field("toolCallId"), field("toolName"), field("input"))
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
    let calls = decoded
        .calls
        .into_iter()
        .map(|call| (call.id.as_str().to_owned(), call.name, call.input.json().unwrap().get().to_owned()));
    let usage = &decoded.usage;
    let counts = [usage.input, usage.cache_read, usage.cache_write(), usage.output, usage.reasoning];
    (decoded.text, decoded.reasoning, calls.collect(), decoded.finish.unwrap().raw, counts)
}

#[test]
fn recorded_streams_decode_as_the_golden_files_say() {
    let Some(corpus) = corpus("recorded_streams_decode_as_the_golden_files_say") else { return };
    let recorded = corpus.join("recorded");
    let index = String::from_utf8(read(&recorded.join("streams/INDEX.tsv"))).unwrap();
    let mut checked = 0;
    for row in index.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [file, "anthropic", framing, ..] = columns[..] else { continue };
        let golden = golden(&json(&read(&recorded.join(format!("golden/{file}.golden.json")))));
        let bodies = bodies(read(&recorded.join("streams").join(file)), framing);
        assert_eq!(bodies.len(), golden.len(), "{file}");
        for (body, mut golden) in bodies.iter().zip(golden) {
            let ours = ours(decode(body));
            // The file was decoded in one go: a response without an own report shows the tokens of the one before.
            if !String::from_utf8_lossy(body).contains("message_delta") && ours.4 == [0; 5] {
                golden.4 = ours.4;
            }
            assert_eq!(ours, golden, "{file}");
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} responses found");
}

#[test]
fn fault_cases_are_handled() {
    let Some(corpus) = corpus("fault_cases_are_handled") else { return };
    let mut checked = 0;
    for (name, bytes) in files(&corpus.join("cases/fixtures")) {
        let case = json(&bytes);
        if case["wire"] != "anthropic" {
            continue;
        }
        let chunks: Vec<Vec<u8>> =
            case["chunks_hex"].as_array().unwrap().iter().map(|hex| unhex(hex.as_str().unwrap())).collect();
        check_case(
            &name,
            decode_response(&WireFormat::Anthropic.into(), &chunks, &ResponseHead::unknown()),
            &case["expect"],
        );
        checked += 1;
    }
    assert!(checked > 20, "only {checked} cases found");
}

fn check_case(name: &str, decoded: Decoded, expect: &Value) {
    assert_eq!(decoded.error.is_none(), expect["ok"].as_bool().unwrap_or(true), "{name}: {decoded:?}");
    if let Some(text) = expect["text"].as_str() {
        assert_eq!(decoded.text, text, "{name}");
    }
    if let Some(stop) = expect["stop"].as_str() {
        assert_eq!(decoded.finish.unwrap().raw, stop, "{name}");
    }
    if let Some(kind) = expect["error"].as_str() {
        let error = decoded.error.unwrap();
        assert_eq!(
            (error.kind, Some(error.retryable)),
            (ModelErrorKind::Overloaded, expect["retryable"].as_bool())
        );
        assert_eq!(kind, "overloaded", "{name}");
    }
    for (key, count) in [
        ("input", decoded.usage.input),
        ("output", decoded.usage.output),
        ("cache_read", decoded.usage.cache_read),
    ] {
        assert_eq!(expect["usage"][key].as_u64().unwrap_or(count), count, "{name} {key}");
    }
    if let Some(tools) = expect["tools"].as_array() {
        let calls = decoded.calls.iter().map(|call| {
            serde_json::json!([call.id.as_str(), call.name, json(call.input.as_str().as_bytes())])
        });
        assert_eq!(&calls.collect::<Vec<_>>(), tools, "{name}");
    }
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn recorded_exchanges_are_read_and_grow() {
    let Some(corpus) = corpus("recorded_exchanges_are_read_and_grow") else { return };
    let (mut exchanges, mut grown) = (0, 0);
    for (name, bytes) in files(&corpus.join("recorded/exchanges/anthropic")) {
        let mut before: Option<(Value, Vec<Entry>)> = None;
        for line in String::from_utf8(bytes).unwrap().lines() {
            let exchange = json(line.as_bytes());
            check_response(&name, &exchange["response"]);
            let body = exchange["request"]["body"].as_str().unwrap();
            let imported = import_request(&WireFormat::Anthropic.into(), body.as_bytes())
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(imported.repairs, [], "{name}");
            let messages = json(body.as_bytes())["messages"].clone();
            let entries = imported.history.entries().to_vec();
            if let Some((old, kept)) = before.filter(|(old, _)| extends(&messages, old)) {
                assert!(entries.starts_with(&kept), "{name}: {old}");
                grown += usize::from(entries.len() > kept.len());
            }
            before = Some((messages, entries));
            exchanges += 1;
        }
    }
    assert!(exchanges > 200 && grown > 10, "{exchanges} exchanges, {grown} that grow");
}

/// Whether these messages begin with those, cache markers aside.
fn extends(new: &Value, old: &Value) -> bool {
    let plain = |message: &Value| {
        let mut message = message.clone();
        for block in message["content"].as_array_mut().into_iter().flatten() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
        message
    };
    let (new, old) = (new.as_array().unwrap(), old.as_array().unwrap());
    new.len() >= old.len() && new.iter().zip(old).all(|(new, old)| plain(new) == plain(old))
}

fn check_response(name: &str, response: &Value) {
    let status = response["status"].as_u64().unwrap() as u16;
    let headers: Vec<(String, String)> = response["headers"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let head = ResponseHead { status: Some(status), headers: &headers, ..ResponseHead::unknown() };
    let decoded =
        decode_response(&WireFormat::Anthropic.into(), &[response["body"].as_str().unwrap()], &head);
    let kind = decoded.error.as_ref().map(|error| error.kind);
    match status {
        200 => assert!(
            kind.is_none() && decoded.finish.is_some() && decoded.usage.output > 0,
            "{name}: {decoded:?}"
        ),
        401 => assert_eq!(kind, Some(ModelErrorKind::Authentication), "{name}"),
        _ => assert_eq!(kind, Some(ModelErrorKind::InvalidRequest), "{name}"),
    }
}
