//! Gemini: contents of parts, where the calls of a turn are answered by the next one, as many as they are.

use agent_providers::WireFormat;
use serde_json::Value;

use super::{Rules, Verdict, check_body, check_list, ensure, items, schema, text, words};

pub(super) const RULES: Rules = Rules {
    format: WireFormat::Gemini,
    fields: &[
        "contents",
        "systemInstruction",
        "system_instruction",
        "tools",
        "toolConfig",
        "tool_config",
        "generationConfig",
        "generation_config",
        "safetySettings",
        "cachedContent",
        "serviceTier",
        "labels",
    ],
    list: "contents",
    check,
};

fn check(request: &Value) -> Verdict {
    for field in ["systemInstruction", "system_instruction"] {
        if !request[field].is_null() {
            parts(&request[field])?;
        }
    }
    if !request["tools"].is_null() {
        items(&request["tools"])?.iter().try_for_each(tool)?;
    }
    let mut calls: Vec<(&str, &Value)> = Vec::new();
    let mut before = "";
    for content in items(&request["contents"])? {
        let role = text(content, "role")?;
        ensure(matches!(role, "user" | "model"), || format!("{role}: there is no such role"))?;
        parts(content)?;
        let answers = named(content, "functionResponse")?;
        ensure(answers.is_empty() || role == "user", || "functionResponse: only in a user turn".into())?;
        answered(&calls, &answers)?;
        calls = named(content, "functionCall")?;
        let follows = calls.is_empty() || (role == "model" && before == "user");
        ensure(follows, || "functionCall: only in a model turn right behind a user turn".into())?;
        before = role;
    }
    ensure(calls.is_empty(), || "functionCall: the last turn has calls without responses".into())
}

fn tool(tool: &Value) -> Verdict {
    let declared = ["functionDeclarations", "function_declarations"];
    for function in declared.iter().filter_map(|field| tool[*field].as_array()).flatten() {
        name(text(function, "name")?)?;
        for field in ["parameters", "parametersJsonSchema"] {
            if !function[field].is_null() {
                // A schema may write its types in capitals.
                let given = function[field].to_string().replace("\"OBJECT\"", "\"object\"");
                schema(&serde_json::from_str(&given).map_err(|error| error.to_string())?)?;
            }
        }
    }
    Ok(())
}

/// `^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`.
fn name(name: &str) -> Verdict {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-');
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let holds = first && name.len() <= 64 && name.chars().all(good);
    ensure(holds, || {
        format!("{name:?}: a function's name begins with a letter or an underscore, and has 64 at most")
    })
}

/// Name and id of what a content holds of a kind.
fn named<'v>(content: &'v Value, kind: &str) -> Result<Vec<(&'v str, &'v Value)>, String> {
    let of_kind = items(&content["parts"])?.iter().map(|part| &part[kind]).filter(|part| !part.is_null());
    of_kind.map(|part| Ok((text(part, "name")?, &part["id"]))).collect()
}

fn answered(calls: &[(&str, &Value)], answers: &[(&str, &Value)]) -> Verdict {
    ensure(calls.len() == answers.len(), || {
        format!("{} calls are answered by {} function responses", calls.len(), answers.len())
    })?;
    for ((call, id), (answer, of)) in calls.iter().zip(answers) {
        let same_id = id.is_null() || of.is_null() || id == of;
        ensure(call == answer && same_id, || format!("{answer} answers {call}"))?;
    }
    Ok(())
}

fn parts(content: &Value) -> Verdict {
    let parts = items(&content["parts"])?;
    ensure(!parts.is_empty(), || format!("parts: must not be empty in {content}"))?;
    parts.iter().try_for_each(part)
}

fn part(part: &Value) -> Verdict {
    let fields = part.as_object().ok_or_else(|| format!("{part}: a part is an object"))?;
    let data: Vec<&str> = fields.keys().map(String::as_str).filter(|key| DATA.contains(key)).collect();
    let [kind] = data[..] else { return Err(format!("{part}: a part has one kind of data")) };
    let data = &part[kind];
    match kind {
        // A signature may stand alone.
        "text" if part["thoughtSignature"].is_string() => text(part, "text").map(drop),
        "text" => words(part, "text").map(drop),
        "functionCall" => {
            name(text(data, "name")?)?;
            ensure(data["args"].is_object() || data["args"].is_null(), || {
                format!("{data}: args are an object")
            })
        }
        "functionResponse" => {
            name(text(data, "name")?)?;
            ensure(data["response"].is_object(), || format!("{data}: a response is an object"))
        }
        "inlineData" => words(data, "mimeType").and(words(data, "data")).map(drop),
        "fileData" => words(data, "fileUri").map(drop),
        _ => Ok(()),
    }
}

const DATA: &[&str] = &[
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

#[test]
fn what_is_refused() {
    let check = |list: &str, expect: &str| check_list(&RULES, &format!("[{list}]"), expect);
    let turn = |role: &str, parts: &str| format!(r#"{{"role":"{role}","parts":[{parts}]}}"#);
    let user = turn("user", r#"{"text":"go"}"#);
    let call = |name: &str| format!(r#"{{"functionCall":{{"name":"{name}","args":{{}}}}}}"#);
    let answer = |name: &str| format!(r#"{{"functionResponse":{{"name":"{name}","response":{{}}}}}}"#);
    let called = turn("model", &format!("{},{}", call("f"), call("g")));
    let both = turn("user", &format!("{},{}", answer("f"), answer("g")));
    check(&format!("{user},{called},{both}"), "");
    check(&format!("{user},{called},{user}"), "2 calls are answered by 0");
    check(&format!("{user},{called}"), "calls without responses");
    check(
        &format!("{user},{called},{}", turn("user", &format!("{},{}", answer("g"), answer("f")))),
        "g answers f",
    );
    check(&format!("{user},{both}"), "0 calls are answered by 2");
    check(
        &format!("{user},{},{called},{both}", turn("model", r#"{"text":"x"}"#)),
        "right behind a user turn",
    );
    check(&turn("user", ""), "must not be empty");
    check(&turn("user", r#"{"text":""}"#), "must not be blank");
    check(&turn("model", r#"{"text":"","thoughtSignature":"c2ln"}"#), "");
    check(&turn("user", r#"{"text":"x","inlineData":{}}"#), "one kind of data");
    check(&turn("system", r#"{"text":"x"}"#), "no such role");
    check(&format!("{user},{}", turn("model", &call("2fa"))), "begins with a letter");
    check(
        &format!("{user},{}", turn("model", r#"{"functionCall":{"name":"f","args":[]}}"#)),
        "args are an object",
    );
    let blank = r#"{"parts":[{"text":" "}]}"#;
    check_body(
        &RULES,
        &format!(r#"{{"systemInstruction":{blank},"contents":[{user}]}}"#),
        "must not be blank",
    );
    let tool = |kind: &str| {
        format!(r#"[{{"functionDeclarations":[{{"name":"f","parameters":{{"type":"{kind}"}}}}]}}]"#)
    };
    check_body(&RULES, &format!(r#"{{"tools":{},"contents":[{user}]}}"#, tool("OBJECT")), "");
    check_body(
        &RULES,
        &format!(r#"{{"tools":{},"contents":[{user}]}}"#, tool("array")),
        "must be of an object",
    );
}
