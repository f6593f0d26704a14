//! A small window and a long turn: compaction happens seldom, and no finished work is done again (requirements P5, P8).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use agent_core::{
    AssistantPart, Cancel, Encoder, EventBody, Finish, FinishKind, LanguageModel, ModelError, ModelErrorKind,
    ModelEvent, ModelProfile, ModelStream, Outgoing, ToolCall, ToolInput, Usage,
};
use agent_prepare::Pipeline;
use agent_testkit::ScriptedModel;
use agent_tools::{Access, Call, OutputCap, ToolConfig, ToolSet};
use agent_turn::step_count;
use async_trait::async_trait;

use super::{agent, is_done, lines, model, say, told};
use crate::support::{Effects, block};

const JOBS: usize = 60;

/// A model without a script: it goes on behind the last job that it sees done, and begins with the first one when it sees
/// none. Its provider counts four bytes a token, and refuses what does not fit.
#[derive(Debug, Clone)]
struct Sees {
    profile: ModelProfile,
    summaries: Arc<AtomicUsize>,
    /// Tokens of each request that was no question beside the turn.
    sizes: Arc<Mutex<Vec<usize>>>,
}

impl Sees {
    fn new(max_output: u32) -> Self {
        let profile = ModelProfile {
            context_window: 12_000,
            max_output,
            ..ModelProfile::conservative("scripted", "small")
        };
        Self { profile, summaries: Arc::default(), sizes: Arc::default() }
    }

    fn answer(&self, body: &str) -> AssistantPart {
        if body.contains("You write the working notes of an agent") {
            self.summaries.fetch_add(1, Ordering::SeqCst);
            // It says nothing of what was done: only the framework's own evidence does.
            return AssistantPart::text("## Goals\nAll jobs shall be done.").unwrap();
        }
        self.sizes.lock().unwrap().push(body.len() / 4);
        match last_job(body) + 1 {
            job if job > JOBS => AssistantPart::text("All jobs are done.").unwrap(),
            job => {
                let id = agent_core::CallId::new(format!("c{}", self.sizes.lock().unwrap().len())).unwrap();
                let input = ToolInput::finished(&format!(r#"{{"job":{job}}}"#));
                AssistantPart::ToolCall(ToolCall { id, name: "work".into(), input, data: None })
            }
        }
    }
}

/// The highest job whose call is shown, as a call or as evidence of one.
fn last_job(body: &str) -> usize {
    let plain = body.replace('\\', "");
    let numbers = plain.split(r#""job":"#).skip(1);
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    numbers.filter_map(|rest| digits(rest).parse().ok()).max().unwrap_or(0)
}

#[async_trait]
impl LanguageModel for Sees {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        ScriptedModel::new(vec![]).encoder()
    }

    async fn stream(&self, request: Outgoing, _cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        let input = body.len() as u64 / 4;
        if input > self.profile.context_window.into() {
            return Err(ModelError::new(ModelErrorKind::ContextOverflow, "too long"));
        }
        let part = self.answer(&body);
        let (kind, raw) = match part.as_text() {
            Some(_) => (FinishKind::Stop, "end_turn"),
            None => (FinishKind::ToolCalls, "tool_use"),
        };
        let events = vec![
            ModelEvent::Part(part),
            ModelEvent::Usage(Usage { input, output: 20, ..Usage::default() }),
            ModelEvent::Finish(Finish { kind, raw: raw.into() }),
        ];
        Ok(Box::pin(futures_util::stream::iter(events.into_iter().map(Ok))))
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Job {
    job: usize,
}

/// A tool whose steps have about 2,000 tokens.
fn work(effects: &Effects) -> ToolSet {
    let effects = effects.clone();
    let work = ToolConfig::new("work", "Does a job.", Access::Edit, move |_: Call, input: Job| {
        effects.add(input.job.to_string());
        async move { Ok(lines(1_940)) }
    });
    let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, ..OutputCap::default() };
    ToolSet::builder().with(work.cap(cap)).freeze().unwrap()
}

#[test]
fn sixty_steps_of_2k_in_a_window_of_12k() {
    let check = |max_output: u32| {
        block(async {
            let (sees, effects) = (Sees::new(max_output), Effects::default());
            let own = sees.clone();
            let agent = agent(model(vec![]), |config| {
                config.model = Arc::new(own);
                config.tools = work(&effects);
                config.pipeline = Pipeline::standard();
                config.stop = Arc::new(step_count(200));
            });
            let (events, end) = say(&agent, "Do all the jobs, one after the other.").await;
            is_done(&end);
            let done: Vec<String> = (1..=JOBS).map(|job| job.to_string()).collect();
            assert_eq!(effects.all(), done, "each job once, in order");
            assert_eq!(sees.sizes.lock().unwrap().len(), JOBS + 1, "one request for each step");

            assert!(!told(&events).iter().any(|line| line.starts_with("failed")), "{:?}", told(&events));
            let at = events.iter().filter_map(|event| {
                let is_one = matches!(event.body, EventBody::CompactionCompleted { .. });
                event.step.filter(|_| is_one)
            });
            let at: Vec<u32> = at.map(|step| step.number()).collect();
            let gaps: Vec<u32> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
            assert!(at.len() >= 5 && at.len() <= JOBS / 5, "{at:?}");
            assert!(gaps.iter().all(|gap| *gap >= 5), "{max_output}: {at:?}");
            let summaries = sees.summaries.load(Ordering::SeqCst);
            assert!(summaries <= at.len(), "{summaries} questions for {} compactions", at.len());
            let blocking = agent.session().context().await.unwrap().thresholds.blocking;
            let largest = sees.sizes.lock().unwrap().iter().copied().max().unwrap();
            assert!((largest as u64) < blocking, "{largest} of {blocking}");
        });
    };
    check(512);
    check(1_024);
    check(1_500);
}
