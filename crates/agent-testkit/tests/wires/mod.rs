//! One script on the wires of OpenAI: its shapes, its failures, and what our decoders make of them.

use agent_core::{FinishKind, ModelErrorKind, Usage};
use agent_providers::{Decoded, ResponseHead, WireFormat, decode_response};
use agent_testkit::{Fault, Reply, SimOptions, SimProvider, Source};
use serde_json::{Value, json};

use crate::client::{Answer, BEARER, Client};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

/// Format, path, a request of one user message, and a field that asks for tokens in a stream.
const WIRES: [(&str, &str, &str, &str); 2] = [
    (
        "openai-chat",
        CHAT,
        r#""messages":[{"role":"user","content":"go"}]"#,
        r#","stream_options":{"include_usage":true}"#,
    ),
    ("openai-responses", RESPONSES, r#""input":"go""#, ""),
];

fn full_reply() -> Reply {
    Reply::text("Let me see.").thinking("Where?").call("grep", r#"{"b":1,"a":1.0}"#)
}

fn start(reply: Reply) -> SimProvider {
    let options = SimOptions { delta_bytes: 12, ..SimOptions::default() };
    SimProvider::start_with(Source::Script(vec![reply].into()), options).unwrap()
}

async fn ask(reply: Reply, path: &str, body: &str) -> Answer {
    let sim = start(reply);
    let answer = Client::connect(&sim).await.post_to(path, body).await;
    assert_eq!(sim.refusals(), []);
    answer
}

#[tokio::test]
async fn a_completion_streams_as_the_real_wire_does() {
    let body = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"go"}]}"#;
    let answer = ask(full_reply(), CHAT, body).await;
    assert_eq!((answer.status, answer.complete), (200, true));
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
    assert_eq!(answer.headers["x-request-id"], "req_sim_0000");
    insta::assert_snapshot!(answer.text(), @r#"
    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"service_tier":"default","system_fingerprint":"fp_sim"}

    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"reasoning_content":"Where?"},"logprobs":null,"finish_reason":null}],"usage":null,"service_tier":"default","system_fingerprint":"fp_sim"}

    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"Let me see."},"logprobs":null,"finish_reason":null}],"usage":null,"service_tier":"default","system_fingerprint":"fp_sim"}

    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_sim_0000_0","type":"function","function":{"name":"grep","arguments":""}}]},"logprobs":null,"finish_reason":null}],"usage":null,"service_tier":"default","system_fingerprint":"fp_sim"}

    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"b\":1,\"a\":1"}}]},"logprobs":null,"finish_reason":null}],"usage":null,"service_tier":"default","system_fingerprint":"fp_sim"}

    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":".0}"}}]},"logprobs":null,"finish_reason":null}],"usage":null,"service_tier":"default","system_fingerprint":"fp_sim"}

    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"usage":null,"service_tier":"default","system_fingerprint":"fp_sim"}

    data: {"id":"chatcmpl-sim-0000","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":9,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_sim"}

    data: [DONE]
    "#);
}

#[tokio::test]
async fn a_completion_comes_whole_when_not_streamed() {
    let answer =
        ask(full_reply(), CHAT, r#"{"model":"m","messages":[{"role":"user","content":"go"}]}"#).await;
    insta::assert_snapshot!(answer.text(), @r#"{"id":"chatcmpl-sim-0000","object":"chat.completion","created":1700000000,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Let me see.","reasoning_content":"Where?","tool_calls":[{"id":"call_sim_0000_0","type":"function","function":{"name":"grep","arguments":"{\"b\":1,\"a\":1.0}"}}],"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":9,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":2,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default","system_fingerprint":"fp_sim"}"#);
}

#[tokio::test]
async fn a_stream_of_chunks_tells_no_tokens_unless_asked() {
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
    let answer = ask(Reply::text("hi"), CHAT, body).await.text();
    assert!(!answer.contains("usage") && answer.ends_with("data: [DONE]\n\n"), "{answer}");
}

#[tokio::test]
async fn a_response_streams_as_the_real_wire_does() {
    let body =
        r#"{"model":"m","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":"go"}"#;
    let answer = ask(full_reply(), RESPONSES, body).await;
    assert_eq!((answer.status, answer.complete), (200, true));
    let whole = r#""object":"response","created_at":1700000000,"#;
    assert_eq!(answer.text().matches(whole).count(), 3, "created, in progress, completed");
    for (number, event) in answer.text().split("\n\n").filter(|event| !event.is_empty()).enumerate() {
        let (name, data) = event.split_once("\ndata: ").unwrap();
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
        assert_eq!(data["sequence_number"], number);
    }
    let between: Vec<String> = answer
        .text()
        .lines()
        .filter(|line| line.starts_with("data: ") && !line.contains(whole))
        .map(str::to_owned)
        .collect();
    insta::assert_snapshot!(between.join("\n"), @r#"
    data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"rs_sim_0000","type":"reasoning","summary":[],"encrypted_content":"sim-sealed-0000"}}
    data: {"type":"response.reasoning_summary_part.added","sequence_number":3,"item_id":"rs_sim_0000","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}
    data: {"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"rs_sim_0000","output_index":0,"summary_index":0,"delta":"Where?"}
    data: {"type":"response.reasoning_summary_text.done","sequence_number":5,"item_id":"rs_sim_0000","output_index":0,"summary_index":0,"text":"Where?"}
    data: {"type":"response.reasoning_summary_part.done","sequence_number":6,"item_id":"rs_sim_0000","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"Where?"}}
    data: {"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":{"id":"rs_sim_0000","type":"reasoning","summary":[{"type":"summary_text","text":"Where?"}],"encrypted_content":"sim-sealed-0000"}}
    data: {"type":"response.output_item.added","sequence_number":8,"output_index":1,"item":{"id":"msg_sim_0000","type":"message","status":"in_progress","role":"assistant","content":[]}}
    data: {"type":"response.content_part.added","sequence_number":9,"item_id":"msg_sim_0000","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}}
    data: {"type":"response.output_text.delta","sequence_number":10,"item_id":"msg_sim_0000","output_index":1,"content_index":0,"delta":"Let me see.","logprobs":[]}
    data: {"type":"response.output_text.done","sequence_number":11,"item_id":"msg_sim_0000","output_index":1,"content_index":0,"text":"Let me see.","logprobs":[]}
    data: {"type":"response.content_part.done","sequence_number":12,"item_id":"msg_sim_0000","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Let me see.","annotations":[],"logprobs":[]}}
    data: {"type":"response.output_item.done","sequence_number":13,"output_index":1,"item":{"id":"msg_sim_0000","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me see.","annotations":[],"logprobs":[]}]}}
    data: {"type":"response.output_item.added","sequence_number":14,"output_index":2,"item":{"id":"fc_sim_0000_0","type":"function_call","status":"in_progress","call_id":"call_sim_0000_0","name":"grep","arguments":""}}
    data: {"type":"response.function_call_arguments.delta","sequence_number":15,"item_id":"fc_sim_0000_0","output_index":2,"delta":"{\"b\":1,\"a\":1"}
    data: {"type":"response.function_call_arguments.delta","sequence_number":16,"item_id":"fc_sim_0000_0","output_index":2,"delta":".0}"}
    data: {"type":"response.function_call_arguments.done","sequence_number":17,"item_id":"fc_sim_0000_0","output_index":2,"arguments":"{\"b\":1,\"a\":1.0}"}
    data: {"type":"response.output_item.done","sequence_number":18,"output_index":2,"item":{"id":"fc_sim_0000_0","type":"function_call","status":"completed","call_id":"call_sim_0000_0","name":"grep","arguments":"{\"b\":1,\"a\":1.0}"}}
    "#);
}

#[tokio::test]
async fn a_response_comes_whole_when_not_streamed() {
    let answer = ask(full_reply(), RESPONSES, r#"{"model":"m","input":"go"}"#).await;
    insta::assert_snapshot!(answer.text(), @r#"{"id":"resp_sim_0000","object":"response","created_at":1700000000,"status":"completed","error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"model":"m","output":[{"id":"rs_sim_0000","type":"reasoning","summary":[{"type":"summary_text","text":"Where?"}]},{"id":"msg_sim_0000","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Let me see.","annotations":[],"logprobs":[]}]},{"id":"fc_sim_0000_0","type":"function_call","status":"completed","call_id":"call_sim_0000_0","name":"grep","arguments":"{\"b\":1,\"a\":1.0}"}],"parallel_tool_calls":true,"previous_response_id":null,"store":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":10},"metadata":{}}"#);
}

#[tokio::test]
async fn stop_words_of_one_wire_are_told_on_the_others() {
    let check = async |stop: &str, chat: &str, status: &str, cause: Value| {
        for (format, path, input, _) in WIRES {
            let body = format!(r#"{{"model":"m",{input}}}"#);
            let answer = ask(Reply::text("x").stopping(stop), path, &body).await.json();
            if format == "openai-chat" {
                assert_eq!(answer["choices"][0]["finish_reason"], chat, "{stop}");
            } else {
                assert_eq!(
                    (&answer["status"], &answer["incomplete_details"]),
                    (&json!(status), &cause),
                    "{stop}"
                );
            }
        }
    };
    check("end_turn", "stop", "completed", Value::Null).await;
    check("max_tokens", "length", "incomplete", json!({ "reason": "max_output_tokens" })).await;
    check("length", "length", "incomplete", json!({ "reason": "max_output_tokens" })).await;
    check("refusal", "content_filter", "incomplete", json!({ "reason": "content_filter" })).await;
    check("odd", "odd", "completed", Value::Null).await;
}

#[tokio::test]
async fn tokens_from_the_cache_are_inside_the_input() {
    let usage =
        Usage { input: 5, output: 9, reasoning: 2, cache_read: 100, cache_write_5m: 7, ..Usage::default() };
    for (_, path, input, _) in WIRES {
        let body = format!(r#"{{"model":"m",{input}}}"#);
        let told = ask(Reply::text("x").costing(usage.clone()), path, &body).await.json()["usage"].clone();
        let of = |chat: &str, responses: &str| {
            if path == CHAT { told[chat].clone() } else { told[responses].clone() }
        };
        assert_eq!(
            (of("prompt_tokens", "input_tokens"), of("completion_tokens", "output_tokens")),
            (json!(112), json!(9))
        );
        assert_eq!(told["total_tokens"], 121);
        assert_eq!(of("prompt_tokens_details", "input_tokens_details")["cached_tokens"], 100);
        assert_eq!(of("completion_tokens_details", "output_tokens_details")["reasoning_tokens"], 2);
    }
}

#[tokio::test]
async fn errors_have_the_shape_of_the_service() {
    for (_, path, input, _) in WIRES {
        let body = format!(r#"{{"model":"m",{input}}}"#);
        let check = async |fault: Fault, status: u16, expect: Value| {
            let answer = ask(Reply::text("x").fault(fault), path, &body).await;
            assert_eq!((answer.status, &answer.json()["error"]), (status, &expect));
            answer
        };
        let limited = check(Fault::rate_limited(3), 429, json!({ "message": "Rate limit reached for requests. Please try again later.", "type": "requests", "param": null, "code": "rate_limit_exceeded" })).await;
        assert_eq!(limited.headers["retry-after"], "3");
        check(Fault::status(500), 500, json!({ "message": "The server had an error while processing your request. Sorry about that!", "type": "server_error", "param": null, "code": "server_error" })).await;
        check(
            Fault::ErrorEvent { after: 0, kind: "server_error".into(), message: "no".into() },
            500,
            json!({ "message": "no", "type": "server_error", "param": null, "code": "server_error" }),
        )
        .await;
    }
}

#[tokio::test]
async fn an_error_in_a_stream_comes_before_its_end() {
    let fault = |after| Fault::ErrorEvent { after, kind: "server_error".into(), message: "no".into() };
    for (_, path, input, _) in WIRES {
        let body = format!(r#"{{"model":"m","stream":true,{input}}}"#);
        for after in [0, 2, 999] {
            let answer = ask(Reply::text("four words of text").fault(fault(after)), path, &body).await;
            assert_eq!((answer.status, answer.complete), (200, true));
            let text = answer.text();
            let last = text.trim_end().rsplit("\n\n").next().unwrap().to_owned();
            assert!(
                !text.contains("[DONE]")
                    && !text.contains("\"stop\"")
                    && !text.contains("response.completed"),
                "{text}"
            );
            if path == CHAT {
                assert_eq!(
                    last,
                    r#"data: {"error":{"message":"no","type":"server_error","param":null,"code":"server_error"}}"#
                );
            } else {
                let number = text.matches("\n\n").count() - 1;
                assert_eq!(
                    last,
                    format!(
                        "event: error\ndata: {{\"type\":\"error\",\"sequence_number\":{number},\"code\":\"server_error\",\"message\":\"no\",\"param\":null}}"
                    )
                );
            }
            assert!(after < 999 || text.contains("f text"), "{text}");
        }
        let cut = ask(Reply::text("four words of text").fault(Fault::Cut { after: 999 }), path, &body).await;
        assert!(
            !cut.complete && !cut.text().contains("[DONE]") && !cut.text().contains("response.completed")
        );
    }
}

#[tokio::test]
async fn what_the_service_refuses_is_refused() {
    let sim = start(Reply::text("x"));
    let mut client = Client::connect(&sim).await;
    for (_, path, input, _) in WIRES {
        let body = format!(r#"{{"model":"m",{input}}}"#);
        for headers in [&[][..], &[("authorization", "Bearer ")], &[("x-api-key", "k")]] {
            let answer = client.send("POST", path, headers, &body).await.unwrap();
            assert_eq!(answer.status, 401);
            assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
        }
        assert_eq!(client.send("GET", path, &BEARER, "").await.unwrap().status, 405);
        assert_eq!(client.post_to(path, "{").await.status, 400);
        assert_eq!(client.post_to(path, "{}").await.json()["error"]["param"], "model");
        assert_eq!(client.post_to(&format!("/proxy{path}?beta"), &body).await.status, 200);
        assert_eq!(client.post_to(path.strip_prefix("/v1").unwrap(), &body).await.status, 200);
    }
    let unpaired = r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"b"}]}"#;
    let answer = client.post_to(CHAT, unpaired).await;
    insta::assert_snapshot!(answer.text(), @r#"{"error":{"message":"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: c1","type":"invalid_request_error","param":"messages[1].tool_calls","code":null}}"#);
    let unpaired = r#"{"model":"m","input":[{"role":"user","content":"a"},{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]}"#;
    let answer = client.post_to(RESPONSES, unpaired).await;
    insta::assert_snapshot!(answer.text(), @r#"{"error":{"message":"No tool output found for function call c1.","type":"invalid_request_error","param":"input","code":null}}"#);
    assert_eq!(sim.refusals().len(), 2 * 6 + 2);
}

#[tokio::test]
async fn the_history_chooses_the_reply_on_every_wire() {
    let script = vec![Reply::tool("look", "{}").thinking("Hm."), Reply::text("seen")];
    let sim = SimProvider::start(script).unwrap();
    let mut client = Client::connect(&sim).await;
    let first =
        client.post_to(RESPONSES, r#"{"model":"m","input":[{"role":"user","content":"go"}]}"#).await.json();
    let items = first["output"].as_array().unwrap();
    assert_eq!(
        items.iter().map(|item| item["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["reasoning", "function_call"]
    );
    let mut input = vec![json!({ "role": "user", "content": "go" })];
    input.extend(items.iter().cloned());
    input.push(json!({ "type": "function_call_output", "call_id": items[1]["call_id"], "output": "a" }));
    let second = client.post_to(RESPONSES, &json!({ "model": "m", "input": input }).to_string()).await.json();
    assert_eq!(second["output"][0]["content"][0]["text"], "seen");

    let first =
        client.post_to(CHAT, r#"{"model":"m","messages":[{"role":"user","content":"go"}]}"#).await.json();
    let said = &first["choices"][0]["message"];
    let result = json!({ "role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": "a" });
    let messages = json!([{ "role": "user", "content": "go" }, said, result]);
    let second =
        client.post_to(CHAT, &json!({ "model": "m", "messages": messages }).to_string()).await.json();
    assert_eq!(second["choices"][0]["message"]["content"], "seen");
    sim.check_complete().unwrap();
    assert_eq!(sim.refusals(), []);
}

/// What our decoder makes of an answer; `None` where this build does not have the format.
#[expect(clippy::print_stdout, reason = "a test that is passed over says so")]
fn decoded(format: &str, answer: &Answer) -> Option<Decoded> {
    let Some(format) = WireFormat::parse(format) else {
        println!("{format}: this build does not decode it, passed over");
        return None;
    };
    let head = ResponseHead { status: Some(answer.status), ..ResponseHead::unknown() };
    Some(decode_response(&format.into(), &answer.frames, &head))
}

#[tokio::test]
async fn our_decoders_read_what_the_script_says() {
    for (format, path, input, counted) in WIRES {
        for (stream, more) in [("true", counted), ("false", "")] {
            let body = format!(r#"{{"model":"m","stream":{stream}{more},{input}}}"#);
            let usage = Usage { input: 5, output: 9, reasoning: 2, cache_read: 100, ..Usage::default() };
            let answer = ask(full_reply().costing(usage.clone()), path, &body).await;
            let Some(decoded) = decoded(format, &answer) else { continue };
            assert!(decoded.error.is_none(), "{format}: {decoded:?}");
            assert_eq!(
                (decoded.text.as_str(), decoded.reasoning.as_str()),
                ("Let me see.", "Where?"),
                "{format}"
            );
            let call = &decoded.calls[0];
            assert_eq!(
                (call.id.as_str(), call.name.as_str(), call.input.as_str()),
                ("call_sim_0000_0", "grep", r#"{"b":1,"a":1.0}"#)
            );
            assert_eq!(decoded.finish.unwrap().kind, FinishKind::ToolCalls, "{format}");
            assert_eq!(Usage { raw: None, ..decoded.usage }, usage, "{format}");
        }
    }
}

#[tokio::test]
async fn our_decoders_read_failures_as_what_they_are() {
    for (format, path, input, _) in WIRES {
        let body = format!(r#"{{"model":"m","stream":true,{input}}}"#);
        let check = async |fault: Fault, expect: ModelErrorKind| {
            let answer = ask(Reply::text("four words of text").fault(fault), path, &body).await;
            let Some(decoded) = decoded(format, &answer) else { return };
            assert_eq!(decoded.error.map(|error| error.kind), Some(expect), "{format}");
        };
        check(Fault::Cut { after: 3 }, ModelErrorKind::Interrupted).await;
        check(Fault::rate_limited(1), ModelErrorKind::RateLimited).await;
        check(Fault::status(401), ModelErrorKind::Authentication).await;
        check(Fault::overloaded_event(2), ModelErrorKind::Overloaded).await;
    }
}
