//! Thinking that comes back: it must be what was signed, and on models that bind it, behind what it was signed for.

use agent_testkit::{Reply, SimProvider};
use serde_json::{Value, json};

use crate::client::Client;

/// A conversation with a model that thinks in each of three answers.
struct Talk {
    sim: SimProvider,
    body: Value,
}

impl Talk {
    async fn begin(model: &str) -> Self {
        let script: Vec<Reply> =
            (0..4).map(|at| Reply::text(format!("answer {at}")).thinking(format!("thought {at}"))).collect();
        let body = json!({"model": model, "max_tokens": 99, "system": "Be brief.",
            "tools": [{"name": "grep", "input_schema": {"type": "object"}}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "ask 0"}]}]});
        let mut talk = Self { sim: SimProvider::start(script).unwrap(), body };
        for at in 1..3 {
            let answer = talk.ask(&talk.body).await.unwrap();
            let more = [
                json!({"role": "assistant", "content": answer["content"]}),
                json!({"role": "user", "content": [{"type": "text", "text": format!("ask {at}")}]}),
            ];
            talk.body["messages"].as_array_mut().unwrap().extend(more);
        }
        talk
    }

    async fn ask(&self, body: &Value) -> Result<Value, String> {
        let answer = Client::connect(&self.sim).await.post(&body.to_string()).await;
        let json = answer.json();
        if answer.status == 200 {
            Ok(json)
        } else {
            Err(json["error"]["message"].as_str().unwrap().to_owned())
        }
    }

    /// The refusal of the conversation after a change; empty when it is taken.
    async fn after(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut body = self.body.clone();
        change(&mut body);
        self.ask(&body).await.err().unwrap_or_default()
    }
}

const BOUND: &str = "The block is bound to a different conversation.";

#[tokio::test]
async fn a_changed_prefix_is_refused_on_models_that_bind() {
    for model in ["claude-fable-5-1", "claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5"] {
        let talk = Talk::begin(model).await;
        let told = talk.after(|body| body["system"] = "Be long.".into()).await;
        assert!(
            told.starts_with("messages.1.content.0: Invalid `signature` in `thinking` block. ")
                && told.contains(BOUND),
            "{told}"
        );
    }
    let talk = Talk::begin("claude-opus-5-5").await;
    let refuses = async |place: &str, change: &dyn Fn(&mut Value)| {
        let told = talk.after(change).await;
        assert!(told.starts_with(place) && told.contains(BOUND), "{told:?}");
    };
    let (first, second) = ("messages.1.content.0: ", "messages.3.content.0: ");
    refuses(first, &|body| body["tools"][0]["description"] = "x".into()).await;
    refuses(first, &|body| {
        body["tools"].as_array_mut().unwrap().push(json!({"name": "b", "input_schema": {"type": "object"}}))
    })
    .await;
    refuses(first, &|body| body["messages"][0]["content"][0]["text"] = "ask again".into()).await;
    refuses(second, &|body| body["messages"][1]["content"][1]["text"] = "edited".into()).await;
    refuses(second, &|body| {
        body["messages"][2]["content"]
            .as_array_mut()
            .unwrap()
            .push(json!({"type": "text", "text": "a note"}));
    })
    .await;
    // Words ahead of the thinking that answered the same prompt.
    refuses("messages.1.content.1: ", &|body| {
        body["messages"][1]["content"].as_array_mut().unwrap().swap(0, 1)
    })
    .await;
}

#[tokio::test]
async fn what_leaves_the_prefix_alone_is_taken() {
    let talk = Talk::begin("claude-opus-5-5").await;
    let takes = async |change: &dyn Fn(&mut Value)| assert_eq!(talk.after(change).await, "");
    takes(&|_| {}).await;
    takes(&|body| body["messages"][2]["content"][0]["cache_control"] = json!({"type": "ephemeral"})).await;
    takes(&|body| body["tool_choice"] = json!({"type": "none"})).await;
    takes(&|body| body["output_config"] = json!({"effort": "low"})).await;
    takes(&|body| body["max_tokens"] = 7.into()).await;
    takes(&|body| {
        let found = json!({"name": "b", "input_schema": {"type": "object"}, "defer_loading": true});
        body["tools"].as_array_mut().unwrap().push(found);
    })
    .await;
    // Thinking may go from its beginning on, and all of it.
    let without = |body: &mut Value, message: usize| {
        body["messages"][message]["content"].as_array_mut().unwrap().remove(0)
    };
    takes(&|body| drop(without(body, 1))).await;
    takes(&|body| drop(without(body, 3))).await;
    takes(&|body| drop((without(body, 1), without(body, 3)))).await;
}

#[tokio::test]
async fn a_gap_in_the_thinking_is_refused() {
    let mut talk = Talk::begin("claude-opus-5-5").await;
    let answer = talk.ask(&talk.body).await.unwrap();
    let more = [
        json!({"role": "assistant", "content": answer["content"]}),
        json!({"role": "user", "content": "ask 3"}),
    ];
    talk.body["messages"].as_array_mut().unwrap().extend(more);
    assert_eq!(talk.after(|_| {}).await, "");
    let told =
        talk.after(|body| drop(body["messages"][3]["content"].as_array_mut().unwrap().remove(0))).await;
    assert!(told.starts_with("messages.5.content.0: ") && told.contains(BOUND), "{told:?}");
}

#[tokio::test]
async fn an_altered_block_is_refused_on_every_model() {
    for model in ["claude-opus-5-5", "claude-sonnet-4-6"] {
        let talk = Talk::begin(model).await;
        let latest = talk.after(|body| body["messages"][3]["content"][0]["thinking"] = "else".into()).await;
        assert!(latest.starts_with("messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."), "{latest}");
        let earlier = talk.after(|body| body["messages"][1]["content"][0]["thinking"] = "else".into()).await;
        assert_eq!(earlier, "messages.1.content.0: Invalid `signature` in `thinking` block");
        let cut = |body: &mut Value| {
            let whole = body["messages"][1]["content"][0]["signature"].as_str().unwrap().to_owned();
            body["messages"][1]["content"][0]["signature"] = whole[..whole.len() - 1].into();
        };
        assert_eq!(talk.after(cut).await, "messages.1.content.0: Invalid `signature` in `thinking` block");
        let none = |body: &mut Value| body["messages"][1]["content"][0]["signature"] = "".into();
        assert_eq!(talk.after(none).await, "messages.1.content.0: Invalid `signature` in `thinking` block");
        let foreign = |body: &mut Value| body["messages"][1]["content"][0]["signature"] = "ErUBCkYI".into();
        assert_eq!(talk.after(foreign).await, "", "another server may have signed it");
    }
}

#[tokio::test]
async fn other_models_do_not_bind_and_thinking_of_another_model_is_not_billed() {
    let talk = Talk::begin("claude-sonnet-4-6").await;
    assert_eq!(talk.after(|body| body["system"] = "Be long.".into()).await, "");
    let talk = Talk::begin("claude-opus-5-5").await;
    let tokens = |answer: &Value| answer["usage"]["input_tokens"].as_u64().unwrap();
    let mut other = talk.body.clone();
    other["model"] = "claude-sonnet-5-5".into();
    other["system"] = "Be long.".into();
    let mut bare = other.clone();
    for message in [1, 3] {
        bare["messages"][message]["content"].as_array_mut().unwrap().remove(0);
    }
    assert_eq!(tokens(&talk.ask(&other).await.unwrap()), tokens(&talk.ask(&bare).await.unwrap()));
}

#[tokio::test]
async fn what_is_out_of_place_can_be_dropped_instead() {
    let talk = Talk::begin("claude-opus-5-5").await;
    let drops = |body: &mut Value| {
        body["thinking"] =
            json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
        body["system"] = "Be long.".into();
    };
    assert_eq!(talk.after(drops).await, "");
    let mut kept = talk.body.clone();
    drops(&mut kept);
    let mut bare = kept.clone();
    for message in [1, 3] {
        bare["messages"][message]["content"].as_array_mut().unwrap().remove(0);
    }
    let tokens = async |body: &Value| talk.ask(body).await.unwrap()["usage"]["input_tokens"].clone();
    assert_eq!(tokens(&kept).await, tokens(&bare).await);
}

#[tokio::test]
async fn a_restarted_server_knows_its_signatures() {
    let (before, after) = (Talk::begin("claude-fable-5-1").await, Talk::begin("claude-fable-5-1").await);
    assert_eq!(before.body, after.body);
    assert!(after.ask(&before.body).await.is_ok());
}
