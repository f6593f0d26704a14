//! Compactions that cannot succeed, or that would come again at once, through the whole cascade (cases P02, P03, P04).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_core::{
    AssistantPart, Cancel, Encoder, Entry, Finish, FinishKind, LanguageModel, ModelError, ModelErrorKind,
    ModelEvent, ModelProfile, ModelStream, Outgoing, Rewrite, TerminalReason, Usage,
};
use agent_harness::HarnessConfig;
use agent_prepare::{Cascade, Level, Pipeline};
use agent_testkit::{Failure, Reply, ScriptedModel};
use agent_tools::{Access, OutputCap, ToolConfig, ToolSet};
use async_trait::async_trait;

use super::{agent, bodies, compacting, is_done, lines, say, told, words};
use crate::support::{Agent, block};

/// Compaction begins above 170,100 tokens by more than a twentieth of 162,000, and above 177,300 nothing is sent.
fn large() -> ModelProfile {
    ModelProfile {
        context_window: 200_000,
        max_output: 20_000,
        ..ModelProfile::conservative("scripted", "large")
    }
}

fn own(replies: Vec<Reply>) -> ScriptedModel {
    ScriptedModel::new(replies).by_history().with_profile(large())
}

/// An agent with the standard cascade, whose tool gives one result of so many tokens.
fn with_one_result(tokens: usize, summary: &ScriptedModel, replies: Vec<Reply>) -> Agent {
    let fat = ToolConfig::new("fat", "Says much.", Access::Read, move |_, _: super::Nothing| async move {
        Ok(lines(tokens))
    });
    let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, ..OutputCap::default() };
    agent(own(replies), |config| {
        config.tools = ToolSet::builder().with(fat.cap(cap)).freeze().unwrap();
        config.summary_model = Some(Arc::new(summary.clone()));
        config.pipeline = Pipeline::standard();
    })
}

/// What became of a history: its boundaries, a word each.
async fn boundaries(agent: &Agent) -> Vec<&'static str> {
    let history = agent.history().await;
    let found = history.entries().iter().filter_map(|entry| match entry {
        Entry::Boundary(Rewrite::Summary { .. }) => Some("summary"),
        Entry::Boundary(Rewrite::Cleared { .. }) => Some("cleared"),
        Entry::User(_) | Entry::Note(_) | Entry::Step(_) => None,
    });
    found.collect()
}

/// A summariser that fails in some way: how often it is asked, and what is told.
#[track_caller]
fn check_failing(summary: impl Fn() -> ScriptedModel, asked: usize, failure: &str) {
    let failed = format!("failed summary: {failure}");
    let replies = || vec![Reply::tool("fat", "{}"), Reply::text("read it")];
    // One result larger than the window: it is clipped without a model, and the next step runs.
    let (events, requests, last, left) = block(async {
        let summary = summary().with_profile(large());
        let agent = with_one_result(210_000, &summary, replies());
        let (events, end) = say(&agent, "go").await;
        is_done(&end);
        let last = bodies(&agent.model).pop().unwrap();
        (told(&events), summary.requests().len(), last, boundaries(&agent).await)
    });
    let expect = [
        "level blocked",
        "requested summary",
        &failed,
        "requested shrink_results",
        "completed shrink_results",
        "level calm",
    ];
    assert_eq!((events, requests), (expect.map(str::to_owned).to_vec(), asked));
    assert_eq!(left, ["cleared"], "no summary was written");
    assert!(last.len() < 20_000 && last.contains("[clipped]"), "{}", last.len());

    // A context that is too full, and still fits: it is left as it is, and the step goes on.
    let (events, requests, last, left) = block(async {
        let summary = summary().with_profile(large());
        let agent = with_one_result(173_000, &summary, replies());
        let (events, end) = say(&agent, "go").await;
        is_done(&end);
        let last = bodies(&agent.model).pop().unwrap();
        (told(&events), summary.requests().len(), last, boundaries(&agent).await)
    });
    let expect = ["level compact", "requested summary", &failed];
    assert_eq!((events, requests), (expect.map(str::to_owned).to_vec(), asked));
    assert!(left.is_empty() && last.len() > 4 * 170_000);
}

#[test]
fn a_summary_that_cannot_be_had_leaves_the_history_and_the_next_step_runs() {
    let script = |reply: Reply| ScriptedModel::new(vec![reply]);
    let too_long = || ModelError::new(ModelErrorKind::ContextOverflow, "prompt is too long");
    check_failing(|| script(Reply::text(" \n ")), 1, "the model answered without a word");
    check_failing(|| script(Reply::tool("fat", "{}")), 1, "the model called fat instead of answering");
    check_failing(
        || script(Reply::text("## Goals\n\n## Done\n")),
        1,
        "the summary has headings and nothing under them",
    );
    check_failing(
        || script(Reply::text("half of").stopping("max_tokens")),
        1,
        "the answer was longer than its limit",
    );
    check_failing(
        || script(Reply::text("Sum.")).failing(0, Failure::Hangs { events: 0 }),
        1,
        "no answer came within 60000 ms",
    );
    // Asked again at half the length, and again.
    check_failing(
        || (0..4).fold(script(Reply::text("Sum.")), |it, n| it.failing(n, Failure::Before(too_long()))),
        3,
        "context_overflow: prompt is too long",
    );
}

#[test]
fn the_question_fits_and_a_long_answer_is_cut() {
    block(async {
        let answer = Reply::text(format!("## Done\n{}", lines(30_000)));
        let summary = ScriptedModel::new(vec![answer]).with_profile(large());
        let agent =
            with_one_result(210_000, &summary, vec![Reply::tool("fat", "{}"), Reply::text("read it")]);
        let (events, end) = say(&agent, "go").await;
        is_done(&end);
        let told = told(&events);
        assert_eq!(told, ["level blocked", "requested summary", "completed summary", "level calm"]);
        let asked = bodies(&summary).remove(0);
        assert!(asked.len() / 4 < 180_000, "{}", asked.len() / 4);
        assert!(asked.contains(r#""tools":[]"#) && asked.contains(r#""temperature":0.0"#));
        let last = bodies(&agent.model).pop().unwrap();
        assert!(last.len() / 4 < 6_000, "{}", last.len() / 4);
    });
}

#[test]
fn a_threshold_that_cannot_be_reached_costs_nothing() {
    block(async {
        let window = ModelProfile {
            context_window: 32_768,
            max_output: 4_096,
            ..ModelProfile::conservative("scripted", "small")
        };
        let summary = ScriptedModel::new(vec![]).with_profile(window.clone());
        let apart = summary.clone();
        // Its description alone fills the window.
        let wordy = ToolConfig::new("wordy", lines(29_000), Access::Read, |_, _: super::Nothing| async {
            Ok(String::new())
        });
        let change = |config: &mut HarnessConfig| {
            config.tools = ToolSet::builder().with(wordy).freeze().unwrap();
            config.summary_model = Some(Arc::new(apart));
            config.pipeline = Pipeline::new(Cascade::standard().threshold_percent(85));
        };
        let agent = agent(ScriptedModel::new(vec![]).with_profile(window), change);
        for n in 0..5 {
            let (events, end) = say(&agent, "hi").await;
            assert_eq!(end.reason, TerminalReason::BlockingLimit, "{n}");
            assert!(end.text.contains("are the system prompt and the tools"), "{}", end.text);
            assert!(!told(&events).iter().any(|line| line.starts_with("completed")), "{:?}", told(&events));
        }
        assert_eq!((agent.model.requests().len(), summary.requests().len()), (0, 0));
        // By hand it may be tried.
        let done = agent.session().compact().await.unwrap();
        assert_eq!((done.tiers.len(), done.after.level()), (0, Level::Blocked));
    });
}

/// Answers with what it was asked, and a tenth more.
#[derive(Debug, Clone)]
struct Repeats {
    profile: ModelProfile,
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl LanguageModel for Repeats {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        ScriptedModel::new(vec![]).encoder()
    }

    async fn stream(&self, request: Outgoing, _cancel: &Cancel) -> Result<ModelStream, ModelError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let body: serde_json::Value = serde_json::from_slice(&request.body.to_vec()).unwrap();
        let asked = body["messages"][0]["content"][0]["text"].as_str().unwrap();
        let more = format!("{asked}{}", "x".repeat(asked.len() / 10));
        let events = vec![
            ModelEvent::Part(AssistantPart::text(more).unwrap()),
            ModelEvent::Finish(Finish { kind: FinishKind::Stop, raw: "end_turn".into() }),
        ];
        Ok(Box::pin(futures_util::stream::iter(events.into_iter().map(Ok))))
    }
}

#[test]
fn a_summariser_that_says_a_tenth_more_than_it_was_told_ends_in_no_loop() {
    block(async {
        let window = ModelProfile {
            context_window: 32_768,
            max_output: 4_096,
            ..ModelProfile::conservative("scripted", "small")
        };
        let summary = Repeats { profile: window.clone(), asked: Arc::default() };
        let apart = summary.clone();
        let replies = vec![Reply::text("ok"); 20];
        let agent = agent(ScriptedModel::new(replies).with_profile(window), |config| {
            config.tools = ToolSet::default();
            config.summary_model = Some(Arc::new(apart));
            config.pipeline = Pipeline::new(Cascade::standard().threshold_percent(85));
        });
        let mut compactions = Vec::new();
        for _ in 0..20 {
            let (events, end) = say(&agent, &lines(4_000)).await;
            is_done(&end);
            compactions.push(told(&events).iter().filter(|line| line.starts_with("completed")).count());
        }
        // 27,000 tokens hold six messages, and what a compaction leaves has room for some of them.
        assert!(compactions.iter().all(|count| *count <= 1), "{compactions:?}");
        let sum: usize = compactions.iter().sum();
        assert!((2..=5).contains(&sum), "{compactions:?}");
        assert_eq!((agent.model.requests().len(), summary.asked.load(Ordering::SeqCst)), (20, sum));
        // What it repeated did not grow from one summary to the next.
        let history = agent.history().await;
        let sizes = history.entries().iter().filter_map(|entry| match entry {
            Entry::Boundary(Rewrite::Summary { text, .. }) => Some(text.as_str().len() / 4),
            Entry::Boundary(_) | Entry::User(_) | Entry::Note(_) | Entry::Step(_) => None,
        });
        let sizes: Vec<usize> = sizes.collect();
        assert!(sizes.len() == sum && sizes.iter().all(|size| *size < 5_000), "{sizes:?}");
    });
}

#[test]
fn what_was_counted_before_a_compaction_does_not_begin_another_one() {
    block(async {
        let counted = Usage { input: 185_000, output: 5, ..Usage::default() };
        let replies = vec![Reply::text("ok").costing(counted), Reply::text("ok")];
        let summary = ScriptedModel::new(vec![Reply::text("They spoke."); 3]).with_profile(large());
        let apart = summary.clone();
        let model = ScriptedModel::new(replies).with_profile(large());
        let cascade = Cascade::standard();
        let agent = compacting(model, cascade, |config| config.summary_model = Some(Arc::new(apart)));
        is_done(&say(&agent, &words(150_000)).await.1);
        assert_eq!(agent.session().context().await.unwrap().level(), Level::Blocked);
        let done = agent.session().compact().await.unwrap();
        assert_eq!((done.tiers.len(), done.after.level(), summary.requests().len()), (1, Level::Calm, 1));
        assert!(done.after.used < 12_000, "{:?}", done.after);
        let (events, end) = say(&agent, "go on").await;
        is_done(&end);
        assert!(told(&events).is_empty(), "{:?}", told(&events));
        assert_eq!((agent.model.requests().len(), summary.requests().len()), (2, 1));
    });
}
