//! Why a request missed, as each vendor tells those who ask.

use agent_testkit::{SimOptions, SimProvider, Source};
use serde_json::{Value, json};

use crate::client::{BEARER, Client, KEYS};

async fn post(sim: &SimProvider, path: &str, body: &Value) -> Value {
    let keys = [&KEYS[..], &BEARER].concat();
    let answer = Client::connect(sim).await.send("POST", path, &keys, &body.to_string()).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn start() -> SimProvider {
    SimProvider::start_with(Source::Echo, SimOptions::default()).unwrap()
}

fn message(system: &str, previous: Value) -> Value {
    json!({"model": "claude-opus-5-5", "max_tokens": 9, "system": system,
        "messages": [{"role": "user", "content": "go"}], "diagnostics": {"previous_message_id": previous}})
}

#[tokio::test]
async fn messages_are_compared_with_the_one_that_is_named() {
    let sim = start();
    let first = post(&sim, "/v1/messages", &message("one", Value::Null)).await;
    assert_eq!(first.get("diagnostics"), Some(&Value::Null));
    let id = first["id"].clone();
    let check = async |change: &dyn Fn(&mut Value), expect: Value| {
        let mut body = message("one", id.clone());
        change(&mut body);
        assert_eq!(post(&sim, "/v1/messages", &body).await["diagnostics"], expect);
    };
    check(&|_| {}, Value::Null).await;
    let more = json!({"role": "assistant", "content": "so"});
    let grows = |body: &mut Value| {
        body["messages"]
            .as_array_mut()
            .unwrap()
            .extend([more.clone(), json!({"role": "user", "content": "on"})]);
    };
    check(&grows, Value::Null).await;
    let reason = |kind: &str, tokens: u64| json!({"cache_miss_reason": {"type": kind, "cache_missed_input_tokens": tokens}});
    check(&|body| body["system"] = "two".into(), reason("system_changed", 13)).await;
    check(&|body| body["model"] = "claude-opus-5".into(), reason("model_changed", 13)).await;
    check(&|body| body["messages"][0]["content"] = "stay".into(), reason("messages_changed", 6)).await;
    check(
        &|body| body["tools"] = json!([{"name": "a", "input_schema": {"type": "object"}}]),
        reason("tools_changed", 13),
    )
    .await;
    check(
        &|body| body["output_config"] = json!({"effort": "low"}),
        json!({"cache_miss_reason": {"type": "unavailable"}}),
    )
    .await;
    let lost = |body: &mut Value| body["diagnostics"]["previous_message_id"] = "msg_sim_0099".into();
    check(&lost, json!({"cache_miss_reason": {"type": "previous_message_not_found"}})).await;
    let mut silent = message("one", Value::Null);
    silent.as_object_mut().unwrap().remove("diagnostics");
    assert_eq!(post(&sim, "/v1/messages", &silent).await.get("diagnostics"), None);
}

#[tokio::test]
async fn a_stream_tells_it_at_its_start_and_conversations_have_ids_of_their_own() {
    let sim = start();
    let (one, two) = (message("one", Value::Null), message("two", Value::Null));
    let ids = [post(&sim, "/v1/messages", &one).await, post(&sim, "/v1/messages", &two).await];
    let ids = ids.map(|answer| answer["id"].as_str().unwrap().to_owned());
    assert_eq!(ids, ["msg_sim_0000", "msg_sim_0000_2"], "the same place in two conversations");
    assert_eq!(post(&sim, "/v1/messages", &one).await["id"], "msg_sim_0000", "the same request again");
    let mut body = message("two", ids[0].clone().into());
    body["stream"] = true.into();
    let answer = Client::connect(&sim).await.post(&body.to_string()).await.text();
    let start =
        answer.lines().find(|line| line.contains("message_start") && line.starts_with("data")).unwrap();
    let data: Value = serde_json::from_str(start.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(data["message"]["diagnostics"]["cache_miss_reason"]["type"], "system_changed");
}

#[tokio::test]
async fn responses_are_compared_with_the_one_that_is_named() {
    let sim = start();
    let body = |instructions: &str, previous: Option<&str>| {
        let mut body = json!({"model": "gpt-5.6-sol", "instructions": instructions, "input": "go"});
        if let Some(id) = previous {
            body["prompt_cache_options"] = json!({ "comparison_response_id": id });
        }
        body
    };
    let first = post(&sim, "/v1/responses", &body("one", None)).await;
    assert_eq!(first.get("prompt_cache_diagnostics"), None);
    let id = first["id"].as_str().unwrap();
    let told =
        async |body: Value| post(&sim, "/v1/responses", &body).await["prompt_cache_diagnostics"].clone();
    assert_eq!(told(body("one", Some(id))).await, json!({"type": "cache_hit"}));
    assert_eq!(told(body("two", Some(id))).await, json!({"type": "cache_miss", "reason": "input_changed"}));
    assert_eq!(told(body("one", Some("resp_9"))).await, json!({"type": "comparison_response_not_found"}));
    let mut effort = body("one", Some(id));
    effort["reasoning"] = json!({"effort": "low"});
    assert_eq!(told(effort).await, json!({"type": "cache_miss", "reason": "reasoning_effort_changed"}));
}

#[tokio::test]
async fn other_betas_are_another_prompt_and_their_order_is_none() {
    let sim = start();
    let read = async |betas: &'static str| {
        let body = json!({"model": "claude-opus-5-5", "max_tokens": 9, "cache_control": {"type": "ephemeral"},
            "messages": [{"role": "user", "content": "Rules. ".repeat(900)}]});
        let keys = [&KEYS[..], &[("anthropic-beta", betas)]].concat();
        let answer = Client::connect(&sim).await.send("POST", "/v1/messages", &keys, &body.to_string()).await;
        answer.unwrap().json()["usage"]["cache_read_input_tokens"].as_u64().unwrap() > 0
    };
    assert_eq!([read("one,two").await, read("two, one").await, read("one").await], [false, true, false]);
}
