//! The real codec against the simulated provider: what one writes, the other takes.

use agent_core::{
    AssistantPart, Encoder, Entry, History, ModelError, ModelErrorKind, ModelRequest, RawJson,
    RequestSettings, Response, ResponseBuilder, StepRecord, SystemBlock, ToolCard, ToolChoice, ToolOutput,
    ToolResult, UserMessage,
};
use agent_providers::{Catalog, StreamDecoder, ToolNames, WireFormat};
use agent_testkit::{Fault, Reply, SimProvider};

use crate::client::Client;

fn encode(encoder: &mut dyn Encoder, history: &History) -> String {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let request = ModelRequest {
        system: &[SystemBlock::new("Be brief.").unwrap()],
        tools: &[ToolCard::new("grep", "Searches.", &schema).unwrap()],
        draft: &history.draft(),
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream: true,
    };
    String::from_utf8(encoder.encode(&request).request.body.to_vec()).unwrap()
}

/// Asks and decodes what comes, frame by frame.
async fn ask(client: &mut Client, body: &str) -> Result<Response, ModelError> {
    let answer = client.post(body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
    let mut events: Vec<_> = answer.frames.iter().flat_map(|frame| decoder.push(frame)).collect();
    events.extend(decoder.finish());
    let mut fold = ResponseBuilder::default();
    for event in events {
        fold.take(event?);
    }
    Ok(fold.finish().unwrap())
}

fn history() -> History {
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text("go").unwrap())).unwrap();
    history
}

#[tokio::test]
async fn a_conversation_of_several_steps_is_taken() {
    let script = vec![
        Reply::text("Looking.").thinking("Where?").call("grep", r#"{"b":1,"a":1.0}"#).call("grep", "{}"),
        Reply::tool("grep", r#"{"q":"naïve 🦀"}"#),
        Reply::text("Done."),
    ];
    let sim = SimProvider::start(script).unwrap();
    let mut client = Client::connect(&sim).await;
    let mut encoder = agent_providers::encoder(
        &WireFormat::Anthropic.into(),
        Catalog::builtin().profile("anthropic", "claude-sonnet-4-6"),
        ToolNames::default(),
    );
    let mut history = history();
    loop {
        let response = ask(&mut client, &encode(&mut *encoder, &history)).await.unwrap();
        let results =
            response.calls().map(|call| ToolResult { call: call.id.clone(), output: ToolOutput::text("") });
        let results: Vec<_> = results.collect();
        let done = results.is_empty();
        history.push(Entry::Step(StepRecord::new(response, results).unwrap())).unwrap();
        if done {
            break;
        }
    }
    sim.check_complete().unwrap();
    assert_eq!(sim.refusals(), []);
    let inputs = history.entries().iter().filter_map(|entry| match entry {
        Entry::Step(step) => Some(step.parts().iter().filter_map(AssistantPart::as_call)),
        Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
    });
    let inputs: Vec<&str> = inputs.flatten().map(|call| call.input.as_str()).collect();
    assert_eq!(inputs, [r#"{"b":1,"a":1.0}"#, "{}", r#"{"q":"naïve 🦀"}"#]);
}

#[tokio::test]
async fn faults_are_read_as_what_they_are() {
    let reply = Reply::text("words")
        .fault(Fault::overloaded_event(3))
        .fault(Fault::Cut { after: 4 })
        .fault(Fault::overloaded_event(0));
    let sim = SimProvider::start(vec![reply]).unwrap();
    let body = encode(
        &mut *agent_providers::encoder(
            &WireFormat::Anthropic.into(),
            Catalog::builtin().profile("anthropic", "claude-sonnet-4-6"),
            ToolNames::default(),
        ),
        &history(),
    );
    let expected = [ModelErrorKind::Overloaded, ModelErrorKind::Interrupted, ModelErrorKind::Overloaded];
    for expect in expected {
        let mut client = Client::connect(&sim).await;
        assert_eq!(ask(&mut client, &body).await.unwrap_err().kind, expect);
    }
    let mut client = Client::connect(&sim).await;
    let response = ask(&mut client, &body).await.unwrap();
    assert_eq!(response.parts, [AssistantPart::text("words").unwrap()]);
}
