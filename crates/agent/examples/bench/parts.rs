//! The client à la carte: the turn machine says what is next, a codec and HTTP do it, nothing else is there.
//!
//! What the facade adds (a store, permissions, cache breakpoints, retries) is what the difference in cost buys.

use std::sync::Arc;

use agent_core::{
    Cancel, Encoder, Entry, History, LanguageModel, ModelEvent, ModelRequest, RawJson, RequestSettings,
    Response, ResponseBuilder, SystemBlock, ToolCard, ToolChoice, ToolInput, ToolOutput, ToolResult, TurnId,
    UserMessage,
};
use agent_providers::{ApiKey, HttpConfig, HttpModel};
use agent_turn::{Report, Turn, Want, step_count};
use futures_util::StreamExt;

use super::{ECHO_ABOUT, Fault, Job, MODEL, Measured, Outcome, SYSTEM};

#[derive(serde::Deserialize)]
struct Echo {
    text: String,
    seq: i64,
}

/// What all sessions use.
struct Parts {
    model: HttpModel,
    system: Vec<SystemBlock>,
    tools: Vec<ToolCard>,
    settings: RequestSettings,
}

pub(super) fn measure(job: &Arc<Job>) -> Result<Measured, Fault> {
    let parts = Arc::new(parts(job)?);
    super::measure("agent-parts", job, |number| session(Arc::clone(&parts), Arc::clone(job), number))
}

fn parts(job: &Job) -> Result<Parts, Fault> {
    let model = HttpModel::new(HttpConfig {
        model: MODEL.to_owned(),
        api_key: ApiKey::new("none"),
        base_url: Some(job.base_url.clone()),
        ..HttpConfig::default()
    })?;
    let schema = RawJson::parse(
        r#"{"type":"object","properties":{"text":{"type":"string"},"seq":{"type":"integer"}},"required":["text","seq"]}"#,
    )?;
    Ok(Parts {
        model,
        system: SystemBlock::new(SYSTEM).into_iter().collect(),
        tools: vec![ToolCard::new("echo", ECHO_ABOUT, &schema)?],
        settings: RequestSettings::default(),
    })
}

async fn session(parts: Arc<Parts>, job: Arc<Job>, number: usize) -> Result<Outcome, Fault> {
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text(job.prompt(number))?))?;
    let mut encoder = parts.model.encoder();
    // One more than there are, because the last of a limit is announced.
    let stop = step_count(u32::try_from(job.steps)?.saturating_add(1));
    let mut turn = Turn::new(TurnId::FIRST);
    let mut outcome = Outcome::default();
    loop {
        let report = match turn.poll() {
            Want::Prepare(_) => Report::Prepared,
            Want::Model => {
                let response = answer(&parts, encoder.as_mut(), &history, &mut outcome).await?;
                Report::Response(history.admit(response))
            }
            Want::Tools(pending) => {
                let call =
                    pending.unanswered().next().ok_or("tools are wanted, but all calls are answered")?;
                outcome.calls += 1;
                Report::Result(ToolResult { call: call.id.clone(), output: run(&call.input) })
            }
            Want::Park(kind) => return Err(format!("session {number} waits for someone: {kind:?}").into()),
            Want::End(reason) if reason.is_success() => {
                outcome.kept = Some(Box::new((history, encoder)));
                return Ok(outcome);
            }
            Want::End(reason) => return Err(format!("session {number} ended as {reason:?}").into()),
        };
        if let Some(step) = turn.handle(&stop, report)? {
            history.push(Entry::Step(step))?;
        }
    }
}

/// One model call, its text taken as it arrives.
async fn answer(
    parts: &Parts,
    encoder: &mut dyn Encoder,
    history: &History,
    outcome: &mut Outcome,
) -> Result<Response, Fault> {
    let request = encoder.encode(&ModelRequest {
        system: &parts.system,
        tools: &parts.tools,
        draft: &history.draft(),
        settings: &parts.settings,
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream: true,
    });
    let mut stream = parts.model.stream(request.request, &Cancel::new()).await?;
    let mut answer = ResponseBuilder::default();
    outcome.last = 0;
    while let Some(event) = stream.next().await {
        let event = event?;
        if let ModelEvent::TextDelta { text, .. } = &event {
            outcome.heard += text.len();
            outcome.last += text.len();
        }
        answer.take(event);
    }
    Ok(answer.finish().ok_or("the answer broke off before its end")?)
}

fn run(input: &ToolInput) -> ToolOutput {
    match serde_json::from_str::<Echo>(input.as_str()) {
        Ok(Echo { text, seq }) => {
            // What arrives is what the model wrote; the answer does not depend on it.
            let _ = (text, seq);
            ToolOutput::text(super::echo())
        }
        Err(error) => ToolOutput::error(format!("the input does not fit the schema: {error}")),
    }
}
