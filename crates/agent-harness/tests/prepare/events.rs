//! What a compaction tells of itself: each tier that begins ends once, and no hook holds the turn.

use std::sync::Arc;

use agent_core::{
    Cancel, Encoder, EntryId, EventBody, LanguageModel, ModelError, ModelProfile, ModelStream, Outgoing,
    Rewrite, TerminalReason,
};
use agent_harness::{PostCompact, PostCompactCx, SourceError};
use agent_prepare::{Ask, Cascade, Tier, TierCx, TierVerdict, Way};
use agent_testkit::{Failure, Reply, ScriptedModel};
use async_trait::async_trait;

use super::{Sums, compacting, is_done, model, say, text, told, words};
use crate::support::{Hands, block, watch};

/// A tier that does what its script says, in order: `asks`, `writes`, `fails`, `passes` or `breaks`.
#[derive(Debug)]
struct Scripted(&'static str, Vec<&'static str>);

impl Tier for Scripted {
    fn name(&self) -> &'static str {
        self.0
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        let kept_from = |at| EntryId::at(at);
        let summary = |kept_from| {
            TierVerdict::Rewrite(Rewrite::Summary { text: text("Sum."), kept_from, strip_reasoning: false })
        };
        match self.1.get(cx.asked as usize).copied() {
            Some("asks") => {
                let way = Way::Apart { system: text("Sum up."), words: text("All of it.") };
                TierVerdict::Ask(Ask { way, max_output: 300 })
            }
            Some("writes") => summary(kept_from(cx.of.history.len())),
            Some("breaks") => summary(kept_from(cx.of.history.len() + 9)),
            Some("fails") => TierVerdict::Failed("no luck".into()),
            Some("passes") | None => TierVerdict::Pass,
            Some(other) => panic!("{other}"),
        }
    }
}

/// What is told of a look in which these tiers have their turns, the time that each was at work included; the clock goes
/// on by a second whenever a model is asked.
#[track_caller]
fn check_told(tiers: Vec<Scripted>, expect: &[&str]) {
    block(async {
        let hands = Hands::at(1_000_000);
        let summary = Slow(model(vec![Reply::text("Sum."); 9]), hands.clone());
        let cascade = tiers.into_iter().fold(Cascade::new(), Cascade::then);
        let agent = compacting(model(vec![Reply::text("ok")]), cascade, |config| {
            config.summary_model = Some(Arc::new(summary));
            config.clock = Arc::new(hands);
        });
        let (events, _) = say(&agent, &words(2_950)).await;
        let mut open = None;
        let mut lines = Vec::new();
        for event in &events {
            if let EventBody::CompactionRequested { tier, .. } = &event.body {
                assert_eq!(open.replace(tier.clone()), None, "one at a time: {:?}", told(&events));
            }
            if let EventBody::CompactionCompleted { tier, millis, .. } = &event.body {
                assert_eq!(open.take().as_ref(), Some(tier), "{:?}", told(&events));
                lines.push(format!("{tier} completed in {millis}"));
            }
            if let EventBody::CompactionFailed { tier, message } = &event.body {
                assert_eq!(open.take().as_ref(), Some(tier), "{:?}", told(&events));
                lines.push(format!("{tier} failed: {message}"));
            }
        }
        assert_eq!((lines.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), open), (expect, None));
    });
}

/// A model that takes a second to answer.
#[derive(Debug)]
struct Slow(ScriptedModel, Hands);

#[async_trait]
impl LanguageModel for Slow {
    fn profile(&self) -> &ModelProfile {
        self.0.profile()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.0.encoder()
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        self.1.forward(1_000);
        self.0.stream(request, cancel).await
    }
}

#[test]
fn what_is_told_to_begin_is_told_to_end_once() {
    let one = |does: &[&'static str]| Scripted("one", does.to_vec());
    let two = |does: &[&'static str]| Scripted("two", does.to_vec());
    check_told(vec![one(&["passes"]), two(&["passes"])], &[]);
    check_told(vec![one(&["writes"])], &["one completed in 0"]);
    check_told(vec![one(&["asks", "asks", "writes"])], &["one completed in 2000"]);
    check_told(vec![one(&["fails"]), two(&["writes"])], &["one failed: no luck", "two completed in 0"]);
    check_told(
        vec![one(&["asks", "fails"]), two(&["writes"])],
        &["one failed: no luck", "two completed in 0"],
    );
    let idle = "one failed: it asked a model, and had nothing to offer then";
    check_told(vec![one(&["asks", "passes"])], &[idle]);
    check_told(vec![one(&["asks", "passes"]), two(&["asks", "writes"])], &[idle, "two completed in 1000"]);
    // Two of one name are two.
    check_told(
        vec![one(&["asks", "fails"]), one(&["asks", "writes"])],
        &["one failed: no luck", "one completed in 1000"],
    );
    let most = "one failed: it asked 4 times and was still not content";
    check_told(vec![one(&["asks"; 9])], &[most]);
    let refused = "one failed: tier \"one\" gave a boundary that the history refuses: the boundary refers to entry 10, but must lie between 0 and 1";
    check_told(vec![one(&["breaks"])], &[refused]);
}

#[test]
fn a_run_that_is_stopped_ends_its_compaction() {
    block(async {
        let summary = model(vec![]).failing(0, Failure::Hangs { events: 0 });
        let agent =
            compacting(model(vec![Reply::text("ok")]), Cascade::new().then(Sums::apart()), |config| {
                config.summary_model = Some(Arc::new(summary));
            });
        let mut run = agent.session().send(words(2_950)).await.unwrap();
        let cancel = run.cancel();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            if matches!(event.body, EventBody::CompactionRequested { .. }) {
                cancel.cancel();
            }
            events.push(event);
        }
        assert_eq!(run.finish().await.unwrap().reason, TerminalReason::Aborted);
        let stopped = "failed sums: the run was stopped before its question was answered";
        assert_eq!(told(&events), ["level compact", "requested sums", stopped]);
    });
}

/// A hook that never ends, or that fails each time.
#[derive(Debug)]
struct Heavy(bool);

#[async_trait]
impl PostCompact for Heavy {
    async fn compacted(&self, _cx: &PostCompactCx<'_>) -> Result<(), SourceError> {
        if self.0 {
            std::future::pending().await
        } else {
            Err(SourceError::new("the hook", "its log is full"))
        }
    }
}

#[test]
fn each_failure_of_a_hook_is_told_and_none_holds_the_turn() {
    let check = |is_stuck: bool, expect: &str| {
        block(async {
            let one = Scripted("one", vec!["writes"]);
            let agent = compacting(model(vec![Reply::text("ok"); 9]), Cascade::new().then(one), |config| {
                config.after_compaction = vec![Arc::new(Heavy(is_stuck))];
            });
            let session = agent.session();
            for _ in 0..2 {
                let (events, end) = watch(session.send(words(2_950)).await.unwrap()).await;
                is_done(&end);
                let diagnosed = super::diagnosed(&events);
                assert_eq!(diagnosed.len(), 1, "{diagnosed:?}");
                assert!(diagnosed[0].starts_with(expect), "{diagnosed:?}");
            }
        });
    };
    check(false, "after_compaction: the hook cannot be read: its log is full");
    check(true, "after_compaction: Heavy(true) was still busy after 10000 ms and was dropped");
}
