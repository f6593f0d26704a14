//! The rules of the messages service, in the order and the words of the real one.

mod messages;
mod pairing;
mod tools;

use agent_core::{ModelProfile, Setting};
use serde_json::Value;

use crate::sim::api_error::ApiError;
use crate::sim::wire::{Check, items};

/// Checks a request body as the service does.
pub(super) fn check(request: &Value) -> Check {
    if !request.is_object() {
        return refuse("Input should be a valid dictionary");
    }
    match request.get("model").map(Value::as_str) {
        Some(Some(name)) if !name.is_empty() => {}
        Some(_) => return refuse("model: Input should be a valid string"),
        None => return refuse("model: Field required"),
    }
    match (&request["max_tokens"], request["max_tokens"].as_u64()) {
        (Value::Null, _) => return refuse("max_tokens: Field required"),
        (_, None) => return refuse("max_tokens: Input should be greater than or equal to 1"),
        (_, Some(0)) => prewarm(request)?,
        (_, Some(_)) => {}
    }
    if !request["stream"].is_null() && !request["stream"].is_boolean() {
        return refuse("stream: Input should be a valid boolean");
    }
    tools::check(&request["tools"])?;
    system(&request["system"])?;
    messages::check(&request["messages"])?;
    pairing::check(&request["messages"])?;
    tools::references(request)?;
    markers(request)
}

/// A request that only fills the cache takes nothing that is about the answer.
fn prewarm(request: &Value) -> Check {
    let forced = ["any", "tool"].iter().any(|kind| request["tool_choice"]["type"] == *kind);
    let wrong = [
        ("stream", request["stream"] == true),
        ("thinking.type: enabled", request["thinking"]["type"] == "enabled"),
        ("output_config.format", !request["output_config"]["format"].is_null()),
        ("a forced tool_choice", forced),
    ];
    match wrong.into_iter().find(|(_, is)| *is) {
        Some((what, _)) => refuse(format!("max_tokens: 0 is not supported with {what}")),
        None => Ok(()),
    }
}

/// Refuses settings that a known model does not take.
pub(super) fn check_model(request: &Value, profile: &ModelProfile) -> Check {
    if !profile.known {
        return Ok(());
    }
    let is_default = |field: &str| request[field].is_null() || (field != "top_k" && request[field] == 1);
    let sampling = ["temperature", "top_p", "top_k"].into_iter().find(|field| !is_default(field));
    if let Some(field) = sampling.filter(|_| profile.refuses.contains(&Setting::Sampling)) {
        return refuse(format!("{field}: this parameter is not supported by this model"));
    }
    let kind = &request["tool_choice"]["type"];
    if !profile.forced_tool_choice && (kind == "any" || kind == "tool") {
        return refuse("tool_choice: this model does not support forcing a tool; use 'auto' or 'none'");
    }
    let system = items(&request["messages"]).position(|message| message["role"] == "system");
    if let Some(number) = system.filter(|_| !profile.mid_conversation_system) {
        return refuse(format!("messages.{number}.role: Input should be 'user' or 'assistant'"));
    }
    match cleared(request).filter(|_| !profile.turn_scoped_system) {
        Some(number) => refuse(format!("messages.{number}.clear_at: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// Refuses what belongs to a feature that the head of the request did not ask for.
pub(super) fn check_betas(request: &Value, betas: &str) -> Check {
    let is_asked = betas.split(',').any(|beta| beta.trim() == CLEAR_AT);
    match cleared(request).filter(|_| !is_asked) {
        Some(number) => refuse(format!("messages.{number}.clear_at: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// The first message that says when it is cleared.
fn cleared(request: &Value) -> Option<usize> {
    items(&request["messages"]).position(|message| !message["clear_at"].is_null())
}

fn refuse(message: impl Into<String>) -> Check {
    Err(ApiError::invalid(message))
}

fn system(system: &Value) -> Check {
    for (number, block) in items(system).enumerate() {
        if block["type"] != "text" {
            return refuse(format!("system.{number}.type: Input should be 'text'"));
        }
        text_block("system", block)?;
    }
    Ok(())
}

/// No text may be blank: a history that holds a blank one is refused for ever.
fn text_block(place: &str, block: &Value) -> Check {
    let Some(text) = block["text"].as_str() else {
        return refuse(format!("{place}.text: Field required"));
    };
    if text.is_empty() && !block["cache_control"].is_null() {
        return refuse(format!("{place}: cache_control cannot be set for empty text blocks"));
    }
    not_blank(place, text)
}

fn not_blank(place: &str, text: &str) -> Check {
    let place = place.split('.').next().unwrap_or(place);
    if text.is_empty() {
        return refuse(format!("{place}: text content blocks must be non-empty"));
    }
    if text.trim().is_empty() {
        return refuse(format!("{place}: text content blocks must contain non-whitespace text"));
    }
    Ok(())
}

/// Counts markers wherever the service takes them, automatic caching included.
fn markers(request: &Value) -> Check {
    let mut found = marker(&request["cache_control"])?;
    let mut open: Vec<&Value> = items(&request["tools"]).chain(items(&request["system"])).collect();
    open.extend(items(&request["messages"]).flat_map(|message| items(&message["content"])));
    while let Some(block) = open.pop() {
        found += marker(&block["cache_control"])?;
        open.extend(items(&block["content"]));
    }
    if found > MOST_MARKERS {
        return refuse(format!(
            "A maximum of {MOST_MARKERS} blocks with cache_control may be provided. Found {found}."
        ));
    }
    Ok(())
}

/// How many markers a `cache_control` is; what is none, and no `null`, would be thought to cache.
fn marker(control: &Value) -> Result<usize, ApiError> {
    if !control.is_null() && control["type"] != "ephemeral" {
        return Err(ApiError::invalid("cache_control.type: Input should be 'ephemeral'"));
    }
    Ok(usize::from(!control.is_null()))
}

const MOST_MARKERS: usize = 4;
const CLEAR_AT: &str = "mid-conversation-system-clear-at-2026-08-21";

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a request of these messages and further fields; an empty expectation means that it is taken.
    #[track_caller]
    fn check_with(fields: &str, messages: &str, expect: &str) {
        let text = format!(r#"{{"model":"m","max_tokens":8,{fields}"messages":{messages}}}"#);
        let request = serde_json::from_str(&text).unwrap();
        let said = check(&request).map_or_else(|error| error.message, |()| String::new());
        assert!(if expect.is_empty() { said.is_empty() } else { said.contains(expect) }, "{said:?}");
    }

    #[track_caller]
    fn check_messages(messages: &str, expect: &str) {
        check_with("", messages, expect);
    }

    fn marked(count: usize) -> String {
        let block = r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#;
        format!(r#""system":[{}],"#, vec![block; count].join(","))
    }

    const USER: &str = r#"[{"role":"user","content":"go"}]"#;

    #[test]
    fn fields_that_must_be_there() {
        let check_text = |text: &str, expect: &str| {
            let error = check(&serde_json::from_str(text).unwrap()).unwrap_err();
            assert_eq!((error.status, error.kind.as_str()), (400, "invalid_request_error"));
            assert!(error.message.contains(expect), "{error:?}");
        };
        check_text("[]", "valid dictionary");
        check_text("{}", "model: Field required");
        check_text(r#"{"model":7}"#, "model: Input should be a valid string");
        check_text(r#"{"model":"m"}"#, "max_tokens: Field required");
        check_text(r#"{"model":"m","max_tokens":-1}"#, "greater than or equal to 1");
        check_text(r#"{"model":"m","max_tokens":0,"stream":true}"#, "0 is not supported with stream");
        check_text(
            r#"{"model":"m","max_tokens":1,"stream":"yes"}"#,
            "stream: Input should be a valid boolean",
        );
        check_text(r#"{"model":"m","max_tokens":1}"#, "messages: Field required");
    }

    #[test]
    fn what_is_no_marker_is_refused() {
        let check_control = |control: &str, expect: &str| {
            let block = format!(r#"{{"type":"text","text":"x","cache_control":{control}}}"#);
            check_with(&format!(r#""system":[{block}],"#), USER, expect);
            check_with(&format!(r#""cache_control":{control},"#), USER, expect);
        };
        check_control(r#"{"type":"ephemeral"}"#, "");
        check_control("null", "");
        for odd in [r#""ephemeral""#, r#"{"type":"persistent"}"#, r#"{"ttl":"1h"}"#, "true"] {
            check_control(odd, "Input should be 'ephemeral'");
        }
    }

    #[test]
    fn tools_and_system() {
        let tool =
            |name: &str| format!(r#""tools":[{{"name":"{name}","input_schema":{{"type":"object"}}}}],"#);
        check_with(&tool("read_File-1"), USER, "");
        check_with(&tool("read file"), USER, "tools.0.custom.name: String should match");
        check_with(&tool(""), USER, "tools.0.custom.name: String should match");
        check_with(r#""tools":[{"input_schema":{"type":"object"}}],"#, USER, "name: Field required");
        check_with(r#""tools":[{"name":"a"}],"#, USER, "input_schema: Field required");
        check_with(r#""tools":[{"name":"a","input_schema":{}}],"#, USER, "input_schema.type: Field required");
        check_with(r#""tools":[{"name":"a","input_schema":{"type":"array"}}],"#, USER, "should be 'object'");
        check_with(r#""tools":[{"type":"web_search_20250305","name":"web_search"}],"#, USER, "");
        let twice = r#"{"name":"a","input_schema":{"type":"object"}}"#;
        check_with(&format!(r#""tools":[{twice},{twice}],"#), USER, "Tool names must be unique");
        let tools = |list: &str| format!(r#""tools":[{list}],"#);
        let (late, plain) = (
            r#"{"name":"b","input_schema":{"type":"object"},"defer_loading":true}"#,
            r#"{"name":"a","input_schema":{"type":"object"}}"#,
        );
        check_with(&tools(late), USER, "At least one tool must be non-deferred");
        check_with(&tools(&format!("{late},{plain}")), USER, "");
        let found = |name: &str| {
            format!(
                r#"[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"a","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"tool_reference","tool_name":"{name}"}}]}}]}}]"#
            )
        };
        check_with(&tools(&format!("{late},{plain}")), &found("b"), "");
        check_with(&tools(plain), &found("b"), "Tool reference 'b' has no corresponding tool definition");
        check_with(r#""system":"words","#, USER, "");
        check_with(
            r#""system":[{"type":"text","text":"  "}],"#,
            USER,
            "system: text content blocks must contain",
        );
        check_with(r#""system":[{"type":"image"}],"#, USER, "system.0.type");
    }

    #[test]
    fn at_most_four_markers_wherever_they_stand() {
        check_with(&marked(4), USER, "");
        check_with(&marked(5), USER, "maximum of 4 blocks with cache_control may be provided. Found 5");
        let automatic = format!(r#""cache_control":{{"type":"ephemeral"}},{}"#, marked(4));
        check_with(&automatic, USER, "Found 5");
        let inner = r#"[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}]}]"#;
        check_with(&marked(4), inner, "Found 5");
        let empty = r#"[{"role":"user","content":[{"type":"text","text":"","cache_control":{}}]}]"#;
        check_messages(empty, "cache_control cannot be set for empty text blocks");
    }

    #[test]
    fn roles_and_content() {
        check_messages("[]", "at least one message");
        check_messages(r#"[{"role":"assistant","content":"hi"}]"#, "first message must use");
        check_messages(r#"[{"role":"tool","content":"hi"}]"#, "messages.0.role");
        check_messages(
            r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#,
            r#"found multiple "user" roles in a row"#,
        );
        check_messages(r#"[{"role":"user","content":""}]"#, "messages.0: all messages must have non-empty");
        check_messages(r#"[{"role":"user","content":[]}]"#, "messages.0: all messages must have non-empty");
        check_messages(r#"[{"role":"user"}]"#, "messages.0.content: Field required");
        check_messages(r#"[{"role":"user","content":4}]"#, "messages.0.content: Input");
        check_messages(r#"[{"role":"user","content":[{"type":"text","text":""}]}]"#, "must be non-empty");
        check_messages(r#"[{"role":"user","content":[{"type":"text","text":" \n"}]}]"#, "non-whitespace");
        check_messages(r#"[{"role":"user","content":[{"text":"a"}]}]"#, "messages.0.content.0.type");
        check_messages(r#"[{"role":"user","content":"a"},{"role":"assistant","content":[]}]"#, "");
        check_messages(
            r#"[{"role":"user","content":"a"},{"role":"assistant","content":"b "}]"#,
            "cannot end with trailing whitespace",
        );
        let thinking = r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"b"}]}]"#;
        check_messages(thinking, "messages.1.content.0.thinking.signature: Field required");
    }

    #[test]
    fn a_system_message_can_be_limited_to_its_turn() {
        let list = |role: &str, clear_at: &str| {
            format!(
                r#"[{{"role":"user","content":"a"}},{{"role":"{role}","content":"x","clear_at":{clear_at}}}]"#
            )
        };
        let cleared = list("system", r#""next_user_message""#);
        check_messages(&cleared, "");
        check_messages(&list("system", r#""never""#), "");
        check_messages(&list("system", "null"), "");
        check_messages(&list("system", r#""later""#), "messages.1.clear_at: Input should be");
        check_messages(&list("system", "true"), "messages.1.clear_at: Extra inputs");
        check_messages(&list("assistant", r#""next_user_message""#), "messages.1.clear_at: Extra inputs");
        let request: Value = serde_json::from_str(&format!(r#"{{"messages":{cleared}}}"#)).unwrap();
        let told = |check: Check| check.map_or_else(|error| error.message, |()| String::new());
        let says = |beta: &str| told(check_betas(&request, beta));
        assert_eq!(says(&format!("files-api-2025-04-14, {CLEAR_AT}")), "");
        assert_eq!(says(""), "messages.1.clear_at: Extra inputs are not permitted");
        let profile = |can: bool| ModelProfile {
            known: true,
            mid_conversation_system: true,
            turn_scoped_system: can,
            ..ModelProfile::conservative("anthropic", "m")
        };
        assert_eq!(told(check_model(&request, &profile(true))), "");
        assert!(told(check_model(&request, &profile(false))).contains("messages.1.clear_at"));
    }

    #[test]
    fn system_messages_follow_the_user() {
        let check_roles = |roles: &str, expect: &str| {
            let message = |role: char| {
                let role = match role {
                    'u' => "user",
                    'a' => "assistant",
                    _ => "system",
                };
                format!(r#"{{"role":"{role}","content":"x"}}"#)
            };
            let list = roles.chars().map(message).collect::<Vec<_>>().join(",");
            check_messages(&format!("[{list}]"), expect);
        };
        check_roles("us", "");
        check_roles("usau", "");
        check_roles("su", "a system message must follow");
        check_roles("uas", "a system message must follow");
        check_roles("usu", "a system message must follow");
    }

    /// `t1` a call, `=t1` its result, `w` words, `k` thinking; a bar begins the next message.
    fn talk(sketch: &str) -> String {
        let block = |word: &str| match word {
            "w" => r#"{"type":"text","text":"x"}"#.to_owned(),
            "k" => r#"{"type":"thinking","thinking":"x","signature":"s"}"#.to_owned(),
            word => word.strip_prefix('=').map_or_else(
                || format!(r#"{{"type":"tool_use","id":"{word}","name":"f","input":{{}}}}"#),
                |id| format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}"#),
            ),
        };
        let message = |(number, words): (usize, &str)| {
            let role = if number % 2 == 0 { "user" } else { "assistant" };
            let blocks: Vec<String> = words.split_whitespace().map(block).collect();
            format!(r#"{{"role":"{role}","content":[{}]}}"#, blocks.join(","))
        };
        format!("[{}]", sketch.split('|').enumerate().map(message).collect::<Vec<_>>().join(","))
    }

    #[test]
    fn calls_and_results_pair() {
        let check_talk = |sketch: &str, expect: &str| check_messages(&talk(sketch), expect);
        check_talk("w | k w t1 t2 | =t2 =t1 w | w", "");
        check_talk("w | t1 | w", "found without `tool_result` blocks immediately after: t1.");
        check_talk("w | w t1 t2 | =t2", "messages.1: `tool_use` ids were found without");
        check_talk("w | t1", "immediately after: t1.");
        check_talk("w | t1 | w =t1", "immediately after: t1.");
        check_talk("w | t1 w | =t1", "immediately after: t1.");
        check_talk("w | t1 k w | =t1", "immediately after: t1.");
        check_talk(
            "w =t1",
            "messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks: t1",
        );
        check_talk("w | t1 | =t1 =t9", "unexpected `tool_use_id`");
        check_talk("w | t1 | =t1 | w | =t1", "unexpected `tool_use_id`");
        check_talk("w | t1 | =t1 =t1", "must have a single result");
        check_talk("w | t1 | =t1 | t1 | =t1", "messages.3.content.0: `tool_use` ids must be unique");
        check_talk("w | t1 t1 | =t1", "`tool_use` ids must be unique");
        check_talk("w | a:b | =a:b", "tool_use.id: String should match pattern");
    }

    #[test]
    fn the_input_of_a_call_is_an_object() {
        let check_input = |input: &str, expect: &str| {
            let call = format!(r#"{{"type":"tool_use","id":"t","name":"f"{input}}}"#);
            check_messages(
                &format!(
                    r#"[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{call}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t"}}]}}]"#
                ),
                expect,
            );
        };
        check_input(r#","input":{}"#, "");
        check_input("", "messages.1.content.0.tool_use.input: Field required");
        check_input(r#","input":null"#, "tool_use.input: Input should be a valid dictionary");
        check_input(r#","input":"""#, "tool_use.input: Input should be a valid dictionary");
    }

    #[test]
    fn blank_words_in_a_result_are_refused() {
        let list = r#"[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":""}]}]}]"#;
        check_messages(list, "text content blocks must be non-empty");
    }
}
