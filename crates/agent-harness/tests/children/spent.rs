//! What children use: beside their parent's own, each once, and out of its budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use agent_core::{ModelProfile, OfChildren, Prices, SessionId, TerminalReason, Usage};
use agent_harness::{ChildKind, Clock};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_turn::{StopCondition, StopConditionExt, cost_budget, step_count, token_budget, wall_clock};

use super::{family, tasks, with};
use crate::support::{Agent, Effects, Points, block, id};

/// A dollar for each thousand tokens of input.
fn priced(replies: Vec<Reply>) -> ScriptedModel {
    let prices = Prices {
        input: 1_000.0,
        output: 0.0,
        cache_read: 0.0,
        cache_write_5m: 0.0,
        cache_write_1h: 0.0,
        as_of: "2026-11-30".into(),
    };
    let profile = ModelProfile { prices: Some(prices), ..ModelProfile::conservative("scripted", "scripted") };
    ScriptedModel::new(replies).by_history().with_profile(profile)
}

fn costs(reply: Reply) -> Reply {
    reply.costing(Usage { input: 100, output: 10, cache_read: 7, cache_write_5m: 5, ..Usage::default() })
}

fn look(what: usize) -> Reply {
    costs(Reply::tool("look", format!(r#"{{"what":"{what}"}}"#)))
}

/// A child that makes this many steps, at 0.1 dollars each.
fn busy(steps: usize) -> ChildKind {
    let last = std::iter::once(costs(Reply::text("I am done.")));
    let replies = (1..steps).map(look).chain(last).collect();
    ChildKind { name: "busy".into(), model: Some(Arc::new(priced(replies))), ..ChildKind::default() }
}

/// A clock that goes on by a second each time it is read.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1_000, Ordering::SeqCst)
    }
}

fn agent(
    replies: Vec<Reply>,
    child: ChildKind,
    stop: Option<Arc<dyn StopCondition>>,
    store: &Points,
) -> Agent {
    let agent = family(vec![], vec![child], store, &Effects::default());
    with(agent, |config| {
        config.model = Arc::new(priced(replies));
        config.clock = Arc::new(Ticking::default());
        config.stop = stop.unwrap_or_else(|| Arc::new(step_count(40)));
    })
}

async fn kept(store: &Points, id: &SessionId) -> OfChildren {
    store.state(id).await.unwrap().unwrap().checkpoint.children
}

#[test]
fn usage_is_rolled_up_beside_the_parents_own() {
    block(async {
        let store = Points::default();
        let replies = vec![
            costs(tasks(&["busy"])),
            costs(Reply::text("One.")),
            costs(tasks(&["busy", "busy"])),
            costs(Reply::text("Two.")),
        ];
        let agent = agent(replies, busy(3), None, &store);
        let (_, end) = agent.say("go").await;
        assert_eq!((end.text.as_str(), end.usage.input, end.children.input), ("One.", 200, 300));
        let one = kept(&store, &id()).await;
        assert_eq!(one.session, one.turn);
        let Usage { input, output, cache_read, cache_write_5m, .. } = one.turn.usage;
        assert_eq!((input, output, cache_read, cache_write_5m), (300, 30, 21, 15));
        assert!((one.turn.cost_usd() - 0.3).abs() < 1e-9 && one.turn.elapsed_ms > 0, "{one:?}");
        let (_, end) = agent.say("again").await;
        assert_eq!((end.text.as_str(), end.usage.input, end.children.input), ("Two.", 200, 600));
        let two = kept(&store, &id()).await;
        assert_eq!((two.turn.usage.input, two.session.usage.input), (600, 900));
        let own = store.state(&id()).await.unwrap().unwrap().checkpoint;
        assert_eq!((own.usage.input, own.nano_usd), (400, 400_000_000), "its own is only its own");
        assert_eq!(store.looks_back(), 0, "no turn reads what was told before");
    });
}

/// How many steps the child makes below a parent that made one before, and how the parent's turn ends.
fn check(stop: impl StopCondition + 'static, steps: u64, ends: &str) {
    block(async {
        let store = Points::default();
        let replies = vec![look(0), costs(tasks(&["busy"])), look(1), costs(Reply::text("Well."))];
        let agent = agent(replies, busy(30), Some(Arc::new(step_count(40).or(stop))), &store);
        let (_, end) = agent.say("go").await;
        let taken = end.children.input / 100;
        assert_eq!(taken, steps, "{:?} {:?}", end.stopped_by, end.children);
        assert_eq!(end.reason, TerminalReason::BudgetExhausted);
        assert_eq!(end.stopped_by.as_deref(), Some(ends));
    });
}

#[test]
fn a_child_has_the_money_and_the_tokens_that_are_left() {
    // Two steps of the parent before, then the child until the sum is there, and its last words.
    check(cost_budget(0.65), 5 + 1, "cost_budget(0.65)");
    check(token_budget(122 * 6), 4 + 1, "token_budget(732)");
}

#[test]
fn a_child_has_the_time_that_is_left() {
    let taken = |seconds: u64| {
        block(async {
            let store = Points::default();
            let replies = vec![look(0), costs(tasks(&["busy"])), costs(Reply::text("Well."))];
            let stop = step_count(40).or(wall_clock(Duration::from_secs(seconds)));
            let agent = agent(replies, busy(30), Some(Arc::new(stop)), &store);
            let (_, end) = agent.say("go").await;
            assert_eq!(end.reason, TerminalReason::BudgetExhausted, "{seconds}");
            let elapsed = store.state(&id()).await.unwrap().unwrap().checkpoint.elapsed_ms;
            assert!(elapsed < seconds * 1_000 + 30_000, "it did not have all of it again: {elapsed}");
            end.children.input / 100
        })
    };
    let (short, long) = (taken(40), taken(80));
    assert!(0 < short && short < long && long < 30, "{short} {long}");
}
