//! The scripted model: what it says, what it remembers, how it fails.

use agent_core::{
    AssistantPart, CallId, Cancel, Encoder, Entry, FinishKind, History, LanguageModel, ModelError,
    ModelErrorKind, ModelEvent, ModelRequest, Note, NoteKind, Outgoing, RawJson, RequestSettings, Response,
    ResponseBuilder, StepRecord, SystemBlock, Text, ToolCard, ToolChoice, ToolOutput, ToolResult,
    UserMessage,
};
use agent_testkit::{Failure, Fault, Reply, ScriptCall, ScriptedModel, render_requests};
use bytes::Bytes;
use futures_util::StreamExt;

fn history(text: &str) -> History {
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text(text).unwrap())).unwrap();
    history
}

fn encode(encoder: &mut dyn Encoder, history: &History, stream: bool) -> Outgoing {
    let system = [SystemBlock::new("Be brief.").unwrap()];
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let tools = [ToolCard::new("grep", "Searches.", &schema).unwrap()];
    let request = ModelRequest {
        system: &system,
        tools: &tools,
        draft: &history.draft(),
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream,
    };
    encoder.encode(&request).request
}

/// The items of one answer, as far as it goes.
async fn items(
    model: &ScriptedModel,
    history: &History,
) -> Result<Vec<Result<ModelEvent, ModelError>>, ModelError> {
    let body = encode(&mut *model.encoder(), history, true);
    Ok(model.stream(body, &Cancel::new()).await?.collect().await)
}

async fn answer(model: &ScriptedModel, history: &History) -> Option<Response> {
    let mut fold = ResponseBuilder::default();
    for item in items(model, history).await.unwrap() {
        fold.take(item.unwrap());
    }
    fold.finish()
}

/// Answers every call of a response with the same words.
fn step(response: Response, words: &str) -> Entry {
    let results =
        response.calls().map(|call| ToolResult { call: call.id.clone(), output: ToolOutput::text(words) });
    let results = results.collect();
    Entry::Step(StepRecord::new(response, results).unwrap())
}

#[tokio::test]
async fn a_reply_folds_to_the_response_it_means() {
    let reply = Reply::text("Let me look.")
        .thinking("Where?")
        .call("grep", r#"{"b":1,"a":1.0}"#)
        .with_call(ScriptCall { id: Some("mine".into()), name: "read".into(), input: "".into() });
    let model = ScriptedModel::new(vec![reply]).with_delta_bytes(5);
    let response = answer(&model, &history("go")).await.unwrap();
    assert_eq!((response.finish.kind, response.finish.raw.as_str()), (FinishKind::ToolCalls, "tool_use"));
    insta::assert_snapshot!(serde_json::to_string_pretty(&response.parts).unwrap(), @r#"
    [
      {
        "reasoning": {
          "text": "Where?",
          "seal": {
            "signature": {
              "provider": "scripted",
              "value": "scripted-signature-0000"
            }
          }
        }
      },
      {
        "text": {
          "text": "Let me look."
        }
      },
      {
        "tool_call": {
          "id": "toolu_sim_0000_0",
          "name": "grep",
          "input": {
            "json": {"b":1,"a":1.0}
          }
        }
      },
      {
        "tool_call": {
          "id": "mine",
          "name": "read",
          "input": {
            "json": {}
          }
        }
      }
    ]
    "#);
    assert!(response.usage.input > 0 && response.usage.output > 0 && response.usage.reasoning > 0);
    model.check_complete().unwrap();
}

#[tokio::test]
async fn deltas_join_to_the_parts() {
    let model =
        ScriptedModel::new(vec![Reply::text("naïve 🦀 text").call("f", r#"{"k":"v"}"#)]).with_delta_bytes(1);
    let (mut words, mut json, mut pieces) = (String::new(), String::new(), Vec::new());
    for item in items(&model, &history("go")).await.unwrap() {
        let item = item.unwrap();
        if let ModelEvent::TextDelta { text, .. } = &item {
            words.push_str(text);
        }
        if let ModelEvent::ToolInputDelta { json: piece, .. } = item {
            json.push_str(&piece);
            pieces.push(piece);
        }
    }
    assert_eq!((words.as_str(), json.as_str()), ("naïve 🦀 text", r#"{"k":"v"}"#));
    assert_eq!(pieces[0], "", "the first delta names the call");
}

#[tokio::test]
async fn input_that_cannot_run_is_told_apart() {
    let check = async |reply: Reply, expect: &str| {
        let response = answer(&ScriptedModel::new(vec![reply]), &history("go")).await.unwrap();
        let call = response.calls().next().unwrap();
        assert_eq!(serde_json::to_string(&call.input).unwrap(), expect);
    };
    check(Reply::tool("f", r#"{"a"#), r#"{"invalid":"{\"a"}"#).await;
    check(Reply::tool("f", r#"{"a"#).stopping("max_tokens"), r#"{"truncated":"{\"a"}"#).await;
    check(Reply::tool("f", " "), r#"{"json":{}}"#).await;
}

#[tokio::test]
async fn stop_words_become_our_words() {
    let check = async |word: &str, expect: FinishKind| {
        let model = ScriptedModel::new(vec![Reply::text("x").stopping(word)]);
        let finish = answer(&model, &history("go")).await.unwrap().finish;
        assert_eq!((finish.kind, finish.raw.as_str()), (expect, word));
    };
    check("end_turn", FinishKind::Stop).await;
    check("max_tokens", FinishKind::Length).await;
    check("refusal", FinishKind::Refusal).await;
    check("pause_turn", FinishKind::Pause).await;
    check("model_context_window_exceeded", FinishKind::ContextWindow).await;
    check("something_new", FinishKind::Other).await;
}

#[tokio::test]
async fn the_end_of_the_script_is_an_error_not_an_answer() {
    let model = ScriptedModel::new(vec![Reply::text("only")]);
    let log = history("go");
    assert_eq!(model.check_complete().unwrap_err().to_string().matches("only 0 were asked for").count(), 1);
    answer(&model, &log).await.unwrap();
    let error = items(&model, &log).await.unwrap_err();
    assert!(!error.retryable && error.message.contains("the script has 1 replies, and reply 2"), "{error}");
}

#[tokio::test]
async fn by_history_another_model_goes_on_where_the_first_was() {
    let script = vec![Reply::tool("f", "{}"), Reply::text("done")];
    let first = ScriptedModel::new(script.clone()).by_history();
    let mut log = history("go");
    let response = answer(&first, &log).await.unwrap();
    assert_eq!(answer(&first, &log).await.unwrap(), response, "asked again it says the same");
    log.push(step(response, "ok")).unwrap();
    let second = ScriptedModel::new(script).by_history();
    assert_eq!(answer(&second, &log).await.unwrap().parts, [AssistantPart::text("done").unwrap()]);
}

#[tokio::test]
async fn failures_come_where_they_are_put_and_keep_the_reply() {
    let broken = ModelError::new(ModelErrorKind::Overloaded, "busy");
    let model = ScriptedModel::new(vec![Reply::text("good")])
        .failing(0, Failure::Before(broken.clone()))
        .failing(1, Failure::After { events: 3, error: broken.clone() })
        .failing(2, Failure::EndsEarly { events: 99 });
    let log = history("go");
    assert_eq!(items(&model, &log).await.unwrap_err(), broken);
    let after = items(&model, &log).await.unwrap();
    assert_eq!((after.len(), after.last().unwrap()), (4, &Err(broken)));
    assert_eq!(answer(&model, &log).await, None, "it ended without a finish");
    assert!(model.check_complete().is_err());
    assert_eq!(answer(&model, &log).await.unwrap().parts, [AssistantPart::text("good").unwrap()]);
    model.check_complete().unwrap();
    assert_eq!(model.requests().len(), 4, "failed requests are remembered too");
}

#[tokio::test]
async fn cancelling_reaches_every_wait() {
    let check = async |model: ScriptedModel, cancel_after: usize| {
        let cancel = Cancel::new();
        let body = encode(&mut *model.encoder(), &history("go"), true);
        let mut stream = model.stream(body, &cancel).await.unwrap();
        for _ in 0..cancel_after {
            stream.next().await.unwrap().unwrap();
        }
        let canceller = async {
            tokio::task::yield_now().await;
            cancel.cancel();
        };
        let (item, ()) = tokio::join!(stream.next(), canceller);
        assert_eq!(item, Some(Err(ModelError::cancelled())));
        assert_eq!(stream.next().await, None);
    };
    let reply = || vec![Reply::text("words")];
    check(ScriptedModel::new(reply()).failing(0, Failure::Hangs { events: 2 }), 2).await;
    check(ScriptedModel::new(vec![Reply::text("words").slowly(600_000)]), 0).await;

    let model = ScriptedModel::new(reply());
    let cancel = Cancel::new();
    cancel.cancel();
    let refused = model.stream(Outgoing::default(), &cancel).await.err();
    assert_eq!(refused, Some(ModelError::cancelled()));
    assert!(model.requests().is_empty(), "what was cancelled before was not asked");
}

#[tokio::test]
async fn faults_of_the_wire_are_not_passed_over() {
    let model = ScriptedModel::new(vec![Reply::text("x").fault(Fault::Hangup)]);
    let error = items(&model, &history("go")).await.unwrap_err();
    assert!(error.message.contains("reply 1") && error.message.contains("SimProvider"), "{error}");
}

#[tokio::test]
async fn bytes_once_sent_stay_the_same_buffers() {
    let model = ScriptedModel::new(vec![Reply::text("x").thinking("y").call("f", "{}")]);
    let mut encoder = model.encoder();
    let mut log = history("go");
    let first = encode(&mut *encoder, &log, true).body;
    let response = answer(&model, &log).await.unwrap();
    log.push(step(response, "ok")).unwrap();
    let second = encode(&mut *encoder, &log, true).body;
    let same = |a: &Bytes, b: &Bytes| a.as_ptr() == b.as_ptr() && a.len() == b.len();
    let shared = first.buffers().zip(second.buffers()).take_while(|(a, b)| same(a, b)).count();
    assert_eq!(shared, first.buffers().count() - 1, "all but the tail");
    let whole = encode(&mut *encoder, &log, false).body.to_vec();
    let streamed = String::from_utf8(second.to_vec()).unwrap();
    assert_eq!(String::from_utf8(whole).unwrap(), streamed.replace("\"stream\":true", "\"stream\":false"));
    assert_eq!(
        encode(&mut *model.encoder(), &log, true).body.to_vec(),
        second.to_vec(),
        "another encoder, the same bytes"
    );
}

#[tokio::test]
async fn what_it_was_asked_can_be_read() {
    let model =
        ScriptedModel::new(vec![Reply::text("Looking.").call("grep", r#"{"p":1.0}"#), Reply::text("ok")]);
    let mut log = history("Find it,\nplease.");
    let response = answer(&model, &log).await.unwrap();
    assert_eq!(response.calls().next().unwrap().id, CallId::new("toolu_sim_0000_0").unwrap());
    log.push(step(response, "found at 2025-03-01T10:00:00Z")).unwrap();
    let note = Note { kind: NoteKind::Reminder, text: Text::new("mind the step").unwrap() };
    log.push(Entry::Note(note)).unwrap();
    answer(&model, &log).await.unwrap();
    let requests = model.requests();
    insta::assert_snapshot!(String::from_utf8_lossy(&requests[1]), @r#"
    {"system":[{"type":"text","text":"Be brief."}],
    "tools":[{"name":"grep","description":"Searches.","input_schema":{"type":"object"}}],
    "messages":[
    {"role":"user","content":[{"type":"text","text":"Find it,\nplease."}]},
    {"role":"assistant","content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"toolu_sim_0000_0","name":"grep","input":{"p":1.0}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_sim_0000_0","content":"found at 2025-03-01T10:00:00Z"}]},
    {"role":"user","content":[{"type":"text","text":"mind the step"}]}
    ],
    "settings":{},"tool_choice":"auto","marks":[],"stream":true}
    "#);
    insta::assert_snapshot!(render_requests(&requests), @r#"
    request 1
      tools grep
      system
        Be brief.
      user
        Find it,
        please.
    request 2
      tools grep
      system
        Be brief.
      user
        Find it,
        please.
      assistant
        Looking.
        [call 1] grep {"p":1.0}
      user
        [call 1] gave found at [time]
      user
        mind the step
    "#);
}
