//! Recorded requests, read back.

use agent_core::{Effort, Entry, ServiceTier, Thinking};
use agent_providers::{ImportError, Imported, WireFormat, import_request};

fn import(body: &str) -> Imported {
    import_request(&WireFormat::OpenAiResponses.into(), body.as_bytes()).unwrap()
}

/// The entries of this input, one letter each, with parts and results of a step; so many things are mended and
/// told.
#[track_caller]
fn check(input: &str, expect: &str, repairs: usize, notes: usize) {
    let imported = import(&format!(r#"{{"model":"m","input":{input}}}"#));
    let sketch: Vec<String> = imported.history.entries().iter().map(sketch).collect();
    let given = (sketch.join(" "), imported.repairs.len(), imported.diagnostics.len());
    assert_eq!(given, (expect.to_owned(), repairs, notes), "{:?}", imported.diagnostics);
}

fn sketch(entry: &Entry) -> String {
    match entry {
        Entry::User(said) => format!("u{}", said.parts().len()),
        Entry::Step(step) => format!("s{}:{}", step.parts().len(), step.results().len()),
        Entry::Note(_) => "n".into(),
        Entry::Boundary(_) => "b".into(),
    }
}

const USER: &str = r#"{"role":"user","content":"go"}"#;
const SAID: &str = r#"{"role":"assistant","content":"ok"}"#;

fn call(id: &str) -> String {
    format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":""}}"#)
}

fn output(id: &str) -> String {
    format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"r"}}"#)
}

#[test]
fn items_become_entries() {
    let (a, b, ra, rb) = (call("a"), call("b"), output("a"), output("b"));
    check(r#""go""#, "u1", 0, 0);
    check("null", "", 0, 0);
    check(&format!("[{USER},{SAID},{USER}]"), "u1 s1:0 u1", 0, 0);
    check(&format!("[{USER},{SAID},{a},{b},{rb},{ra}]"), "u1 s3:2", 0, 0);
    check(&format!("[{USER},{a},{ra},{b},{rb},{SAID}]"), "u1 s1:1 s1:1 s1:0", 0, 0);
    check(&format!("[{USER},{a},{USER}]"), "u1 s1:1 u1", 1, 0);
    check(&format!("[{USER},{ra}]"), "u1", 1, 0);
    check(&format!(r#"[{{"type":"reasoning","id":"r"}},{{"type":"novel"}},{a},{ra}]"#), "s3:1", 0, 0);
    check(&format!(r#"[{USER},{{"role":"developer","content":"mind"}}]"#), "u1 n", 0, 0);
    check(r#"[{"role":"system","content":[{"type":"input_text","text":"mind"}]}]"#, "", 0, 0);
    check(
        r#"[7,{"role":"user","content":[7,{"type":"hologram"},{"type":"input_text","text":" "}]}]"#,
        "u1",
        0,
        2,
    );
}

#[test]
fn what_our_types_do_not_have_is_kept_for_its_provider() {
    let check = |raw: &str, is_kept: bool| {
        let marked = raw.replacen('{', r#"{"prompt_cache_breakpoint":{},"#, 1);
        let imported = import(&format!(r#"{{"input":[{{"role":"user","content":[{marked}]}}]}}"#));
        assert_eq!(imported.diagnostics, []);
        let entry = serde_json::to_string(&imported.history.entries()[0]).unwrap();
        assert_eq!(entry.contains("\"provider\":\"openai-responses\",\"kind\""), is_kept, "{entry}");
        assert!(!is_kept || entry.contains(&format!("\"raw\":{raw}}}")), "{entry}");
    };
    check(r#"{"type":"input_image","image_url":"https://a.example/b","detail":"high"}"#, true);
    check(r#"{"type":"input_image","image_url":"https://a.example/b","detail":"auto"}"#, false);
    check(r#"{"type":"input_image","image_url":"https://a.example/b","file_id":"f"}"#, true);
    check(r#"{"type":"input_image"}"#, true);
    check(r#"{"type":"input_file","file_data":"AA==","filename":"a.pdf"}"#, true);
    check(r#"{"type":"input_file","file_url":"https://a.example/b.pdf"}"#, false);
    check(r#"{"type":"hologram","n":1.0,"deep":12345678901234567890}"#, true);
}

#[test]
fn instructions_and_the_first_system_messages_are_the_system_prompt() {
    let imported = import(
        r#"{"model":"m","instructions":"one","input":[{"role":"system","content":"two"},
        {"role":"developer","content":[{"type":"input_text","text":"three"},{"type":"input_text","text":"four"}]}]}"#,
    );
    let blocks: Vec<&str> = imported.system.iter().map(agent_core::SystemBlock::text).collect();
    assert_eq!(blocks, ["one", "two", "three", "four"]);
}

#[test]
fn files_and_results() {
    let imported = import(
        r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="},
        {"type":"input_image","file_id":"f1"},{"type":"input_file","file_data":"data:text/csv;base64,QQ==","filename":"a.csv"},
        {"type":"input_file","file_url":"https://a/b.pdf"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"https://a/c"}]}]}"#,
    );
    assert_eq!(imported.diagnostics, []);
    let entries: Vec<String> =
        imported.history.entries().iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    insta::assert_snapshot!(entries.join("\n"), @r#"
    {"user":[{"file":{"media_type":"image/png","source":{"base64":"AA=="}}},{"file":{"media_type":"image/*","source":{"reference":{"provider":"openai-responses","id":"f1"}}}},{"file":{"media_type":"text/csv","source":{"base64":"QQ=="},"name":"a.csv"}},{"file":{"media_type":"application/pdf","source":{"url":"https://a/b.pdf"}}}]}
    {"step":{"response":{"origin":{"model":""},"parts":[{"tool_call":{"id":"a","name":"f","input":{"json":{}}}}],"finish":{"kind":"tool_calls","raw":"tool_use"},"usage":{"input":0,"output":0,"reasoning":0,"cache_read":0,"cache_write_5m":0,"cache_write_1h":0}},"results":[{"call":"a","output":{"content":[{"text":"see"},{"file":{"media_type":"image/*","source":{"url":"https://a/c"}}}]}}]}}
    "#);
}

#[test]
fn settings_and_what_has_no_name_here() {
    let imported = import(
        r#"{"model":"m","input":[],"max_output_tokens":50,"temperature":0.5,"top_p":"odd","stream":true,
        "reasoning":{"effort":"high","summary":"auto"},"service_tier":"flex","parallel_tool_calls":false,
        "text":{"verbosity":"low"},"seed":12345678901234567890,"user":null,"tool_choice":{"type":"image_generation"},
        "tools":[{"type":"function","name":"f","parameters":{"type":"object"}},{"type":"function","name":"g","strict":true,"parameters":null},
            {"type":"mcp","server_label":"tea"},{"type":"custom","name":"pour"},5]}"#,
    );
    let settings = &imported.settings;
    assert_eq!((settings.max_output, settings.temperature, settings.top_p), (Some(50), Some(0.5), None));
    assert_eq!((settings.effort, settings.parallel_tool_calls), (Some(Effort::High), Some(false)));
    assert_eq!((settings.service_tier.clone(), imported.stream), (Some(ServiceTier::Flex), true));
    let extra = settings.extra[0].json.get();
    assert_eq!(
        extra,
        r#"{"top_p":"odd","text":{"verbosity":"low"},"seed":12345678901234567890,"tool_choice":{"type":"image_generation"},"reasoning":{"summary":"auto"}}"#
    );
    let cards = imported
        .tools
        .iter()
        .map(|card| format!("{} {} {}", card.name(), card.is_hosted(), card.data().unwrap().json));
    insta::assert_snapshot!(cards.collect::<Vec<_>>().join("\n"), @r#"
    f false {"strict":null}
    g false {"strict":true}
    mcp:tea true {"type":"mcp","server_label":"tea"}
    custom:pour true {"type":"custom","name":"pour"}
    "#);
    assert_eq!(imported.diagnostics.len(), 1);
    let off = import(r#"{"input":"hi","reasoning":{"effort":"none"}}"#).settings;
    assert_eq!((off.thinking, off.effort, off.extra.len()), (Some(Thinking::Disabled), None, 0));
    let odd = import(r#"{"input":"hi","reasoning":{"effort":"heroic"}}"#).settings;
    assert_eq!(odd.extra[0].json.get(), r#"{"reasoning":{"effort":"heroic"}}"#);
}

#[test]
fn what_is_no_request_is_refused() {
    let fails = |body: &str| {
        import_request(&WireFormat::OpenAiResponses.into(), body.as_bytes()).unwrap_err().to_string()
    };
    assert!(fails("nope").starts_with("the bytes are no openai-responses request"));
    assert!(fails(r#"{"input":{}}"#).starts_with("the bytes are no openai-responses request"));
    assert_eq!(
        fails(r#"{"input":[{"role":"user","content":"a"},{"role":"tool","content":"x"}]}"#),
        "message 1 has the role \"tool\", which openai-responses does not have; check the format"
    );
    assert!(matches!(
        import_request(&WireFormat::OpenAiResponses.into(), b"[]"),
        Err(ImportError::Json { format: "openai-responses", .. })
    ));
}
