//! The provider finds a request too long: compacted once, asked once more (requirement P10).

use std::sync::{Arc, Mutex};

use agent_core::{EventBody, ModelError, ModelErrorKind, ModelProfile, TerminalReason};
use agent_harness::RetryPolicy;
use agent_prepare::{Cascade, Cause, Overrides, Pipeline, StageCx, Tier, TierCx, TierVerdict};
use agent_testkit::{Failure, Reply, ScriptedModel};

use super::{Does, Sums, bodies, compacting, model, say, told};
use crate::support::block;

fn too_long() -> Failure {
    Failure::Before(ModelError::new(ModelErrorKind::ContextOverflow, "prompt is too long: 9000 tokens"))
}

/// What a call costs whose first requests fail so, in requests of the model and of summaries.
#[track_caller]
fn check(
    failures: Vec<(usize, Failure)>,
    cascade: impl Fn(Sums) -> Cascade,
    requests: (usize, usize),
    expect: (TerminalReason, &[&str]),
) {
    let own = ScriptedModel::new(vec![Reply::text("ok")]).with_profile(super::small());
    let own = failures.into_iter().fold(own, |own, (n, failure)| own.failing(n, failure));
    let (summary, sums) = (model(vec![Reply::text("Sum.")]), Sums::apart());
    let (apart, tier) = (summary.clone(), sums.clone());
    let (events, end, bodies) = block(async {
        let agent = compacting(own, cascade(tier), |config| {
            config.summary_model = Some(Arc::new(apart));
            config.retry = RetryPolicy { max_attempts: 5, ..RetryPolicy::default() };
        });
        let (events, end) = say(&agent, &super::words(500)).await;
        (events, end, bodies(&agent.model))
    });
    assert_eq!(
        (end.reason.clone(), &told(&events)[..]),
        (expect.0, &expect.1.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()[..])
    );
    assert_eq!((bodies.len(), summary.requests().len()), requests);
    if requests.1 > 0 {
        assert_eq!(*sums.causes.lock().unwrap(), [Cause::Overflow]);
        assert!(bodies[0].contains("wordword") && !bodies[1].contains("wordword"));
    }
}

#[test]
fn one_overflow_is_mended_and_a_second_one_ends_the_turn() {
    let overflow = || TerminalReason::Error(ModelErrorKind::ContextOverflow);
    let with = |sums| Cascade::new().then(sums);
    let mended = ["requested sums", "completed sums", "retrying context_overflow"];
    check(vec![(0, too_long())], with, (2, 1), (TerminalReason::Done, &mended));
    check(vec![(0, too_long()), (1, too_long())], with, (2, 1), (overflow(), &mended));
    // By hand only is about beginning by itself; here the provider asks for it.
    check(vec![(0, too_long())], |sums| with(sums).manual(), (2, 1), (TerminalReason::Done, &mended));
    check(vec![(0, too_long())], |_| Cascade::new(), (1, 0), (overflow(), &[]));
}

#[test]
fn what_was_streamed_before_is_void() {
    let error = ModelError::new(ModelErrorKind::ContextOverflow, "too long after all");
    let cut = Failure::After { events: 3, error };
    let expect = ["tombstone", "requested sums", "completed sums", "retrying context_overflow"];
    check(vec![(0, cut)], |sums| Cascade::new().then(sums), (2, 1), (TerminalReason::Done, &expect));
}

#[test]
fn the_provider_is_quoted_where_nothing_can_be_made_smaller() {
    let own = ScriptedModel::new(vec![]).with_profile(super::small()).failing(0, too_long());
    let (events, end) = block(async {
        let agent = compacting(own, Cascade::new(), |_| {});
        say(&agent, &super::words(500)).await
    });
    let message = end.error.unwrap().message;
    assert!(message.starts_with("I cannot go on: the provider refused"), "{message}");
    assert!(message.ends_with("The provider had said: prompt is too long: 9000 tokens"), "{message}");
    let told = events
        .iter()
        .any(|event| matches!(&event.body, EventBody::TurnFailed { message: told, .. } if *told == message));
    assert!(told, "who reads the events is told the same");
}

/// Says for which model it is asked to make room.
#[derive(Debug, Clone, Default)]
struct Asks(Arc<Mutex<Vec<String>>>);

impl Tier for Asks {
    fn name(&self) -> &'static str {
        "asks"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        self.0.lock().unwrap().push(format!("{:?} {}", cx.cause, cx.of.model.model));
        TierVerdict::Pass
    }
}

#[test]
fn room_is_made_for_the_model_that_refused() {
    let large = ModelProfile { context_window: 200_000, ..ModelProfile::conservative("scripted", "large") };
    let own = ScriptedModel::new(vec![]).with_profile(large);
    let switched = ScriptedModel::new(vec![]).with_profile(super::small()).failing(0, too_long());
    let asks = Asks::default();
    let (tier, model) = (asks.clone(), switched.clone());
    block(async {
        let agent = compacting(own, Cascade::new(), |config| {
            let switch = Does("switch", move |_: &StageCx<'_>| {
                Overrides { model: Some(Arc::new(model.clone())), ..Overrides::default() }.into()
            });
            config.pipeline = Pipeline::new(Cascade::new().then(tier)).then(switch);
        });
        let (_, end) = say(&agent, &super::words(500)).await;
        assert_eq!(end.reason, TerminalReason::Error(ModelErrorKind::ContextOverflow));
        // What ends the turn is measured for that model as well.
        let message = end.error.unwrap().message;
        assert!(message.contains("By count it has about"), "{message}");
    });
    assert_eq!((*asks.0.lock().unwrap()).as_slice(), ["Overflow small"]);
    assert_eq!(switched.requests().len(), 1);
}
