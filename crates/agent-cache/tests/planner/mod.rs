//! The planner against the simulator: no step of any size makes a request miss what the one before left.

use std::time::Duration;

use agent_cache::{Audit, Lifetimes, Piece, Shape, plan};
use agent_core::{CacheProfile, EntryId, Mark, MarkPoint, Ttl, Usage};
use proptest::prelude::*;

use crate::support::{Parts, agent_loop, call, marked, result, simulator, text, thinking};

const PROFILE: CacheProfile =
    CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };

/// What one entry adds to a conversation.
#[derive(Debug, Clone)]
enum Added {
    /// So many blocks of the user.
    User(usize),
    /// So many texts of the model, calls with their results, and whether it ends in thinking.
    Step { texts: usize, calls: usize, thinks: bool },
}

/// A conversation as JSON and as the planner sees it.
#[derive(Debug, Default)]
struct Conversation {
    messages: Vec<(&'static str, Vec<String>)>,
    pieces: Vec<Piece>,
    /// The message and block of each entry that a marker goes on.
    markable: Vec<Option<(usize, usize)>>,
}

impl Conversation {
    fn add(&mut self, added: &Added, collapse: bool) {
        let entry = EntryId::at(self.pieces.len());
        let run = |count: usize| if collapse { count.min(1) } else { count };
        let (positions, behind) = match added {
            Added::User(count) => {
                let texts = (0..*count).map(|at| text(&format!("u{entry}.{at}"), 50));
                self.messages.push(("user", texts.collect()));
                (*count, 0)
            }
            Added::Step { texts, calls, thinks } => {
                let mut said: Vec<String> =
                    (0..*texts).map(|at| text(&format!("a{entry}.{at}"), 50)).collect();
                let ids = || (0..*calls).map(|at| format!("c{entry}.{at}"));
                said.extend(ids().map(|id| call(&id, 20)));
                said.extend(thinks.then(|| thinking(30)));
                self.messages.push(("assistant", said));
                let before = texts + run(*calls);
                if *calls > 0 {
                    self.messages.push(("user", ids().map(|id| result(&id, 20)).collect()));
                    (before + usize::from(*thinks) + run(*calls), 0)
                } else {
                    (before, usize::from(*thinks))
                }
            }
        };
        let thought = usize::from(matches!(added, Added::Step { calls: 0, thinks: true, .. }));
        let last = self.messages.len() - 1;
        let block = (self.messages[last].1.len() - thought).checked_sub(1);
        self.markable.push(block.map(|block| (last, block)));
        let (positions, behind) = (u32::try_from(positions).unwrap(), u32::try_from(behind).unwrap());
        self.pieces.push(Piece { entry, positions, behind, compacted: false });
    }

    /// The request with these marks set.
    fn marked(&self, base: &Parts, marks: &[Mark]) -> Parts {
        let mut parts = Parts { messages: self.messages.clone(), ..base.clone() };
        for mark in marks {
            let ttl = if mark.ttl == Ttl::OneHour { "1h" } else { "5m" };
            let block = match mark.at {
                MarkPoint::Tools => parts.tools.last_mut().unwrap(),
                MarkPoint::System(0) => parts.system.last_mut().unwrap(),
                MarkPoint::Entry(id) => {
                    let (message, block) = self.markable[id.position()].unwrap();
                    &mut parts.messages[message].1[block]
                }
                _ => unreachable!("no other place"),
            };
            *block = marked(block, ttl);
        }
        parts
    }
}

fn added() -> impl Strategy<Value = Added> {
    let step = (0..4_usize, 0..70_usize, any::<bool>());
    let step = step.prop_map(|(texts, calls, thinks)| Added::Step {
        texts: if calls == 0 { texts.max(1) } else { texts },
        calls,
        thinks,
    });
    prop_oneof![1 => (1..60_usize).prop_map(Added::User), 3 => step]
}

/// Asks after every entry, with the marks planned; each request must read all that the one before left.
fn never_misses(provider: &str, steps: &[Added], stable: Ttl) -> Result<(), TestCaseError> {
    let mut base = agent_loop(0);
    base.model = "claude-opus-4-8";
    let (mut cache, mut talk) = (simulator(provider), Conversation::default());
    let (mut written, mut covered) = (Vec::new(), 0);
    for (at, step) in steps.iter().enumerate() {
        talk.add(step, provider == "anthropic");
        let lifetimes = Lifetimes { stable, tail: Ttl::FiveMinutes };
        let shape =
            Shape { tools: true, system: Some(0), pieces: &talk.pieces, written: &written, lifetimes };
        let marks = plan(&PROFILE, &shape);
        prop_assert!(marks.len() <= 4);
        let request = talk.marked(&base, &marks).request();
        let asked = cache.ask(&request, Duration::from_secs(at as u64));
        let outcome = asked.map_err(|refusal| TestCaseError::fail(refusal.to_string()))?;
        prop_assert_eq!(outcome.usage.cache_read, covered, "request {} reads what was left", at + 1);
        prop_assert_eq!(outcome.missed, None);
        covered = outcome.covered;
        let entry = |mark: &Mark| if let MarkPoint::Entry(id) = mark.at { Some(id) } else { None };
        let entries = marks.iter().filter_map(entry);
        // What a process that takes over knows: where the last request ended.
        written = entries.max().into_iter().collect();
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_loop_never_misses_on_the_claude_api(steps in prop::collection::vec(added(), 1..12), long: bool) {
        never_misses("anthropic", &steps, if long { Ttl::OneHour } else { Ttl::FiveMinutes })?;
    }

    #[test]
    fn a_loop_never_misses_where_runs_are_counted(steps in prop::collection::vec(added(), 1..12), long: bool) {
        never_misses("bedrock", &steps, if long { Ttl::OneHour } else { Ttl::FiveMinutes })?;
    }
}

#[test]
fn without_the_bridge_a_large_step_misses() {
    let steps = [Added::User(1), Added::Step { texts: 0, calls: 15, thinks: false }];
    never_misses("bedrock", &steps, Ttl::FiveMinutes).unwrap();
    let (mut cache, mut talk) = (simulator("bedrock"), Conversation::default());
    let mut reads = Vec::new();
    for step in &steps {
        talk.add(step, false);
        let end = MarkPoint::Entry(talk.pieces.last().unwrap().entry);
        let tail = Mark { at: end, ttl: Ttl::FiveMinutes };
        let request = talk.marked(&agent_loop(0), &[tail]).request();
        reads.push(cache.ask(&request, Duration::ZERO).unwrap().usage.cache_read);
    }
    assert_eq!(reads, [0, 0]);
}

#[test]
fn the_ideal_loop_reads_nearly_all_and_costs_the_optimum() {
    const STEPS: usize = 40;
    let cache = simulator("anthropic");
    let prices = cache.rules(&agent_loop(0).request()).prices(3.0, 15.0, "2026-11-30");
    let mut audit = Audit::new(cache, Some(prices.clone()));
    let mut talk = Conversation::default();
    let base = agent_loop(0);
    let (mut paid, mut optimum, mut sent) = (Usage::default(), Usage::default(), 0);
    for step in 0..STEPS {
        let all = agent_loop(step);
        talk.messages.clone_from(&all.messages);
        let entry = EntryId::at(step);
        let positions = if step == 0 { 1 } else { 3 };
        talk.pieces.push(Piece { entry, positions, behind: 0, compacted: false });
        talk.markable.push(Some((talk.messages.len() - 1, 0)));
        let written: Vec<EntryId> = step.checked_sub(1).map(EntryId::at).into_iter().collect();
        let lifetimes = Lifetimes { stable: Ttl::FiveMinutes, tail: Ttl::FiveMinutes };
        let shape =
            Shape { tools: true, system: Some(0), pieces: &talk.pieces, written: &written, lifetimes };
        let request = talk.marked(&base, &plan(&PROFILE, &shape)).request();
        let row = audit.step(&request, Some(Duration::from_secs(20 * step as u64)), None);
        assert_eq!(row.divergence, None, "step {step}");
        let total = row.usage.total_input();
        paid += &row.usage;
        // Each token is written once and read ever after.
        optimum += &Usage { cache_read: sent, cache_write_5m: total - sent, ..Usage::default() };
        sent = total;
    }
    let hit_rate = paid.hit_rate().unwrap();
    let over = prices.cost(&paid) / prices.cost(&optimum);
    println!("ideal loop: {:.2}% read, cost {over:.4} of the optimum", hit_rate * 100.0);
    assert!(hit_rate >= 0.95 && over <= 1.05, "{hit_rate} {over}");
    assert!(audit.summary().causes.is_empty() && audit.summary().lost == 0);
    let plain = Usage { input: paid.total_input(), ..Usage::default() };
    assert!(prices.cost(&plain) / prices.cost(&paid) > 6.0, "and a sixth of no cache at all");
}

#[test]
fn after_a_compaction_the_stable_start_is_read_and_the_summary_is_kept() {
    let mut cache = simulator("anthropic");
    let base = agent_loop(0);
    let lifetimes = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
    let mut ask = |talk: &Conversation, written: &[EntryId]| {
        let shape = Shape { tools: true, system: Some(0), pieces: &talk.pieces, written, lifetimes };
        let marks = plan(&PROFILE, &shape);
        let usage = cache.ask(&talk.marked(&base, &marks).request(), Duration::ZERO).unwrap().usage;
        (usage.cache_read, usage.cache_write_1h, usage.cache_write_5m)
    };
    let mut talk = Conversation::default();
    talk.add(&Added::User(30), true);
    assert_eq!(ask(&talk, &[]), (0, 19_900, 1_500));
    // A summary stands for what was said, and the user goes on.
    let mut compacted = Conversation::default();
    compacted.add(&Added::User(2), true);
    compacted.pieces[0].compacted = true;
    compacted.add(&Added::User(25), true);
    assert_eq!(ask(&compacted, &[EntryId::at(0)]), (19_900, 100, 1_250));
    compacted.add(&Added::Step { texts: 1, calls: 40, thinks: true }, true);
    assert_eq!(ask(&compacted, &[EntryId::at(1)]), (21_250, 0, 50 + 800 + 30 + 800));
}
