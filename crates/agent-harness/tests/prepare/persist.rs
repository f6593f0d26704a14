//! What stays of a step and what does not (case P07): words go, a compaction stays, what is not named keeps its bytes.

use agent_core::{Entry, EntryId, Rewrite, TerminalReason};
use agent_prepare::{Cascade, Overrides, Pipeline, StageCx, Tier, TierCx, TierVerdict, Verdict};
use agent_testkit::{Reply, ScriptedModel};

use super::{Does, agent, bodies, is_done, say, text};
use crate::support::{Agent, block};

const STEPS: usize = 5;

/// A model that calls `look` in all steps but the last.
fn looks() -> ScriptedModel {
    let call = |n: usize| Reply::tool("look", format!(r#"{{"what":"{n}"}}"#));
    let replies = (1..STEPS).map(call).chain([Reply::text("ok")]);
    ScriptedModel::new(replies.collect::<Vec<_>>())
}

async fn requests(pipeline: Pipeline) -> (Agent, Vec<String>) {
    let agent = agent(looks(), |config| config.pipeline = pipeline);
    is_done(&say(&agent, "go").await.1);
    let bodies = bodies(&agent.model);
    assert_eq!(bodies.len(), STEPS);
    (agent, bodies)
}

/// A request without the words of its step and the settings behind the conversation.
fn said(body: &str) -> &str {
    let end = body.find(",\n{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"[system directive");
    &body[..end.or_else(|| body.find("\n],\n\"settings\"")).unwrap()]
}

#[test]
fn words_of_a_step_are_in_that_request_only() {
    block(async {
        let reminds = |cx: &StageCx<'_>| {
            Verdict::Pass(Overrides::default().remind(format!("This is step {}.", cx.of.step.number())))
        };
        let (agent, bodies) = requests(Pipeline::standard().then(Does("reminds", reminds))).await;
        for (step, body) in bodies.iter().enumerate() {
            assert_eq!(body.matches("[system directive").count(), 1);
            assert!(body.contains(&format!("This is step {step}.")));
        }
        for pair in bodies.windows(2) {
            assert!(pair[1].starts_with(said(&pair[0])), "what was said stays byte for byte");
        }
        let notes = agent.history().await.entries().iter().filter(|it| matches!(it, Entry::Note(_))).count();
        assert_eq!(notes, 0, "the history holds no reminder");
    });
}

/// Sums up in the third step, and never again.
#[derive(Debug)]
struct Once;

impl Tier for Once {
    fn name(&self) -> &'static str {
        "once"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        if cx.of.history.len() != 3 {
            return TierVerdict::Pass;
        }
        let kept_from = EntryId::at(2);
        TierVerdict::Rewrite(Rewrite::Summary {
            text: text("It was said."),
            kept_from,
            strip_reasoning: false,
        })
    }
}

#[test]
fn a_compaction_of_one_step_stays_for_those_behind_it() {
    block(async {
        let script = vec![
            Reply::tool("look", r#"{"what":"1"}"#),
            Reply::tool("look", r#"{"what":"2"}"#),
            Reply::tool("look", r#"{"what":"3"}"#),
            Reply::tool("look", r#"{"what":"4"}"#),
            Reply::text("ok"),
        ];
        let own = ScriptedModel::new(script).with_profile(super::small());
        let agent = agent(own, |config| config.pipeline = Pipeline::new(Cascade::new().then(Once)));
        is_done(&say(&agent, &super::words(2_700)).await.1);
        let held: Vec<(bool, bool)> = bodies(&agent.model)
            .iter()
            .map(|body| (body.contains("wordword"), body.contains("It was said.")))
            .collect();
        assert_eq!(held, [(true, false), (true, false), (false, true), (false, true), (false, true)]);
        let history = agent.history().await;
        assert_eq!(history.entries().iter().filter(|it| matches!(it, Entry::Boundary(_))).count(), 1);
    });
}

#[test]
fn what_is_not_named_keeps_its_bytes() {
    block(async {
        let (_, plain) = requests(Pipeline::standard()).await;
        let same = |_: &StageCx<'_>| Verdict::unchanged();
        let (_, unchanged) = requests(Pipeline::standard().then(Does("same", same))).await;
        assert_eq!(plain, unchanged);
        let fewer = |_: &StageCx<'_>| {
            Overrides { active_tools: Some(vec!["look".into()]), ..Overrides::default() }.into()
        };
        let (_, narrowed) = requests(Pipeline::standard().then(Does("fewer", fewer))).await;
        for (plain, narrowed) in plain.iter().zip(&narrowed) {
            assert!(plain.starts_with(said(narrowed)), "tools and conversation are the same bytes");
        }
    });
}

#[test]
fn a_list_without_a_tool_is_refused_and_nothing_is_sent() {
    block(async {
        let none =
            |_: &StageCx<'_>| Overrides { active_tools: Some(Vec::new()), ..Overrides::default() }.into();
        let pipeline = Pipeline::standard().then(Does("none", none));
        let agent = agent(looks(), |config| config.pipeline = pipeline);
        let (_, end) = say(&agent, "go").await;
        assert!(matches!(end.reason, TerminalReason::Error(_)), "{:?}", end.reason);
        let told = end.error.unwrap().message;
        assert!(told.contains(r#"stage "none" leaves no tool active"#), "{told}");
        assert!(agent.model.requests().is_empty());
    });
}
