//! Bodies of each format, read into blocks.

use std::fmt::Write as _;

use super::*;

fn sketch(body: &str) -> String {
    let request = Request::read(body.as_bytes(), None).unwrap();
    let mut text = format!("{:?} {}\n", request.format, request.model);
    for block in &request.blocks {
        let mark = block.mark.map(|ttl| format!(" *{ttl:?}")).unwrap_or_default();
        writeln!(text, "{} {:?} {:?}{mark} {}", block.path, block.role, block.kind, block.bytes).unwrap();
    }
    for (aspect, value) in &request.aspects {
        writeln!(text, "{aspect:?}={value}").unwrap();
    }
    text
}

#[test]
fn anthropic_bodies() {
    let body = r#"{"model":"claude-opus-5","max_tokens":5,"speed":"fast","cache_control":{"type":"ephemeral"},
        "output_config":{"effort":"high"},"tool_choice":{"type":"auto"},
        "tools":[{"name":"a","input_schema":{"z":1.0,"a":12345678901234567890},"cache_control":{"type":"ephemeral","ttl":"1h"}},
                 {"type":"web_search_20260318","name":"web_search"},{"name":"late","defer_loading":true}],
        "system":[{"cache_control":{"type":"ephemeral"},"text":"S","type":"text"}],
        "messages":[{"role":"user","content":"hi"},
          {"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"},{"type":"tool_use","id":"t","name":"a","input":{"b":1,"a":2}}]},
          {"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral"}},{"type":"image","source":{}}]},{"type":"text","text":""}]}]}"#;
    insta::assert_snapshot!(sketch(body), @r#"
    Anthropic claude-opus-5
    tools[0] Developer Tool *OneHour {"name":"a","input_schema":{"z":1.0,"a":12345678901234567890}}
    tools[1] Developer WebTool {"type":"web_search_20260318","name":"web_search"}
    tools[2] Developer DeferredTool {"name":"late","defer_loading":true}
    system[0] Developer Text *FiveMinutes {"type":"text","text":"S"}
    messages[0].content User Text {"type":"text","text":"hi"}
    messages[1].content[0] Assistant Thinking {"type":"thinking","thinking":"","signature":"x"}
    messages[1].content[1] Assistant ToolUse {"type":"tool_use","id":"t","name":"a","input":{"b":1,"a":2}}
    messages[2].content[0] User ToolResult *FiveMinutes {"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"},{"type":"image","source":{}}]}
    messages[2].content[1] User EmptyText {"type":"text","text":""}
    Model="claude-opus-5"
    Speed="fast"
    WebTools={"type":"web_search_20260318","name":"web_search"}
    ToolChoice={"type":"auto"}
    Images=true
    Effort="high"
    "#);
}

#[test]
fn a_breakpoint_in_a_result_is_read_and_changes_no_byte() {
    let body = |mark: &str| {
        let part = format!(r#"{{"type":"input_text","text":"r"{mark}}}"#);
        let result = format!(r#"{{"type":"function_call_output","call_id":"c","output":[{part}]}}"#);
        Request::read(format!(r#"{{"model":"gpt-5.6","input":[{result}]}}"#).as_bytes(), None).unwrap()
    };
    let (plain, marked) = (body(""), body(r#","prompt_cache_breakpoint":{"mode":"explicit"}"#));
    assert_eq!((plain.blocks[0].mark, marked.blocks[0].mark), (None, Some(Ttl::FiveMinutes)));
    assert_eq!(plain.blocks[0].bytes, marked.blocks[0].bytes);
}

#[test]
fn openai_bodies() {
    let chat = r#"{"model":"gpt-5.6","prompt_cache_key":"k","tools":[{"type":"function","function":{"name":"f"}}],
        "messages":[{"role":"developer","content":"S"},{"role":"user","content":[{"type":"text","text":"u","prompt_cache_breakpoint":{"mode":"explicit"}}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}]}"#;
    insta::assert_snapshot!(sketch(chat), @r#"
    OpenaiChat gpt-5.6
    tools[0] Developer Tool {"type":"function","function":{"name":"f"}}
    messages[0].content Developer Text "S"
    messages[1].content[0] User Text *FiveMinutes {"type":"text","text":"u"}
    messages[2].tool_calls[0] Assistant ToolUse {"id":"c","function":{"name":"f","arguments":"{}"}}
    messages[3] Tool ToolResult {"tool_call_id":"c"}
    messages[3].content Tool ToolResult "r"
    Model="gpt-5.6"
    CacheKey="k"
    "#);
    let responses = r#"{"model":"gpt-6-sol","instructions":"S","reasoning":{"effort":"low"},"text":{"verbosity":"low","format":{"type":"text"}},
        "input":[{"role":"user","content":[{"type":"input_text","text":"u","prompt_cache_breakpoint":{"mode":"explicit"}}]},
        {"type":"reasoning","id":"r"},{"type":"function_call","call_id":"c","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}]}"#;
    insta::assert_snapshot!(sketch(responses), @r#"
    OpenaiResponses gpt-6-sol
    instructions Developer Text "S"
    input[0] User Text *FiveMinutes {"role":"user","content":[{"type":"input_text","text":"u"}]}
    input[1] Assistant Thinking {"type":"reasoning","id":"r"}
    input[2] Assistant ToolUse {"type":"function_call","call_id":"c","arguments":"{}"}
    input[3] Tool ToolResult {"type":"function_call_output","call_id":"c","output":"r"}
    Model="gpt-6-sol"
    Effort="low"
    OutputFormat={"type":"text"}
    Verbosity="low"
    "#);
}

#[test]
fn parts_of_an_item_are_blocks_of_their_own_and_breakpoints_no_byte_of_them() {
    let mark = r#","prompt_cache_breakpoint":{"mode":"explicit"}"#;
    let body = format!(
        r#"{{"model":"gpt-6-sol","prompt_cache_options":{{"ttl":"12h"}},
        "input":[{{"type":"message","role":"developer","content":[{{"type":"input_text","text":"a"{mark}}},{{"type":"input_text","text":"b"}}]}},
        {{"type":"function_call_output","call_id":"c","output":[{{"type":"input_text","text":"r"{mark}}}]}},
        {{"type":"function_call_output","call_id":"d","output":[{{"type":"input_image","image_url":"u"}},7]}},
        {{"type":"function_call_output","call_id":"e","output":[]}}]}}"#
    );
    insta::assert_snapshot!(sketch(&body), @r#"
    OpenaiResponses gpt-6-sol
    input[0].content[0] Developer Text *OneHour {"type":"message","role":"developer","content":[{"type":"input_text","text":"a"}]}
    input[0].content[1] Developer Text {"type":"input_text","text":"b"}
    input[1] Tool ToolResult *OneHour {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"}]}
    input[2].output[0] Tool Image {"type":"function_call_output","call_id":"d","output":[{"type":"input_image","image_url":"u"}]}
    input[2].output[1] Tool ToolResult 7
    input[3] Tool ToolResult {"type":"function_call_output","call_id":"e","output":[]}
    Model="gpt-6-sol"
    Images=true
    "#);
    let plain: Vec<String> = sketch(&body.replace(mark, "")).lines().map(str::to_owned).collect();
    assert_eq!(plain, sketch(&body).replace(" *OneHour", "").lines().collect::<Vec<_>>());
}

#[test]
fn a_string_is_one_text_block_and_markers_change_no_byte() {
    let read = |content: &str| {
        let body =
            format!(r#"{{"model":"claude-opus-5","messages":[{{"role":"user","content":{content}}}]}}"#);
        Request::read(body.as_bytes(), None).unwrap().blocks.remove(0).bytes
    };
    let plain = read(r#""a \u00e9""#);
    assert_eq!(plain, read(r#"[{"text":"a \u00e9","type":"text"}]"#));
    assert_eq!(plain, read(r#"[{"text":"a \u00e9","cache_control":{"type":"ephemeral"},"type":"text"}]"#));
    assert_ne!(plain, read(r#"[{"text":"a \u00e9","type":"text","citations":[1]}]"#));
}

#[test]
fn what_cannot_be_read_is_said() {
    let check = |body: &str, expect: &str| {
        let error = Request::read(body.as_bytes(), None).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    };
    check("{", "not JSON");
    check("[]", "not an object");
    check(r#"{"model":"m"}"#, "neither `messages` nor `input`");
    check(r#"{"messages":{}}"#, "messages of the request body is not an array");
    check(r#"{"system":"s","messages":[{"role":"user"}]}"#, "messages[0]");
    check(r#"{"system":"s","messages":[{"role":"user","content":[7]}]}"#, "messages[0].content[0]");
    check(
        r#"{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"2h"}}],"messages":[]}"#,
        "\"5m\" or \"1h\"",
    );
}
