//! The planner with the real encoders: what it counts is what is sent, no request misses, and no mark is wasted.

use std::time::Duration;

use agent_cache::{Audit, Outcome, Request, Role};
use agent_core::{
    Entry, EntryId, Mark, MarkPoint, Note, NoteKind, Rendered, Rewrite, SystemBlock, Text, Ttl, Usage,
};
use agent_providers::{Catalog, Dialect};
use proptest::prelude::*;

use crate::support::session::{
    BEDROCK, CHAT, CLAUDE, RESPONSES, SERVICES, Service, Session, ask, kept_to, tokens_to,
};

/// What happens next in a session.
#[derive(Debug, Clone)]
enum Next {
    /// The user says so many texts.
    User(usize),
    /// The model thinks, speaks and calls so many tools at once.
    Step { thinks: bool, speaks: bool, calls: usize },
    /// All so far is summarised, except so many entries; a single one is left as it was.
    Summary(usize),
    /// The results so far are clipped, except those of so many entries.
    Cleared(usize),
}

fn next() -> impl Strategy<Value = Next> {
    let step = (any::<bool>(), any::<bool>(), 0..45_usize);
    let step =
        step.prop_map(|(thinks, speaks, calls)| Next::Step { thinks, speaks: speaks || calls == 0, calls });
    prop_oneof![
        2 => (1..40_usize).prop_map(Next::User),
        6 => step,
        1 => (0..3_usize).prop_map(Next::Summary),
        1 => (0..3_usize).prop_map(Next::Cleared),
    ]
}

/// Whether the model spoke last, and nothing asks it to go on.
fn is_answered(session: &Session) -> bool {
    let last = session.history.view().rendered().last();
    matches!(last, Some(Rendered::Entry { entry: Entry::Step(step), .. }) if step.results().is_empty())
}

/// Appends what happens; whether it rewrote what was sent.
fn take(session: &mut Session, next: &Next) -> bool {
    let at = session.history.len();
    let reach = |kept: usize| EntryId::at(at.saturating_sub(kept));
    let rewrite = match next {
        Next::User(texts) => {
            session.user(*texts, 5);
            return false;
        }
        Next::Step { thinks, speaks, calls } => {
            session.step(*thinks, *speaks, *calls, 5);
            return false;
        }
        Next::Summary(kept) => {
            let text = Text::new(format!("What was said before {at}.")).unwrap();
            Rewrite::Summary { text, kept_from: reach(*kept), strip_reasoning: *kept != 1 }
        }
        Next::Cleared(kept) => Rewrite::Cleared {
            results_to: reach(*kept),
            keep_bytes: 4,
            strip_reasoning: false,
            offloaded: false,
        },
    };
    session.history.push(Entry::Boundary(rewrite)).is_ok()
}

/// Plays a session; every request reads all that the one before left, or the stable start after a rewrite.
fn play(service: Service, steps: &[Next]) -> Result<(), TestCaseError> {
    let mut cache = service.simulator();
    let mut session = Session::new(service, 1_200, &[600]);
    let mut asked: Vec<Request> = Vec::new();
    let (mut covered, mut stable, mut rewritten) = (0, 0, false);
    for next in std::iter::once(&Next::User(1)).chain(steps) {
        // A step is the answer to a request, which does not end with the model's own words.
        if matches!(next, Next::Step { .. }) && is_answered(&session) {
            take(&mut session, &Next::User(1));
        }
        if !matches!(next, Next::Step { .. }) {
            rewritten |= take(&mut session, next);
            continue;
        }
        let marks = session.plan();
        let request = session.request(&marks);
        let outcome = ask(&mut cache, &request, asked.len() as u64);
        let least = if rewritten { stable } else { covered };
        prop_assert!(outcome.usage.cache_read >= least, "{:?} of {least} after {next:?}", outcome.usage);
        bridge_is_needed(service, &mut session, &marks, &asked, least)?;
        if asked.is_empty() {
            stable = kept_to(&mut session, MarkPoint::System(0));
            prop_assert!(stable > 1024);
        }
        covered = outcome.covered;
        asked.push(request);
        rewritten = false;
        take(&mut session, next);
    }
    Ok(())
}

/// Holds that a request without its bridge reads less, where the service looks back by positions.
fn bridge_is_needed(
    service: Service,
    session: &mut Session,
    marks: &[Mark],
    asked: &[Request],
    covered: u64,
) -> Result<(), TestCaseError> {
    let entries: Vec<&Mark> = marks.iter().filter(|mark| matches!(mark.at, MarkPoint::Entry(_))).collect();
    // Stable ones end what a compaction made.
    let [.., bridge, _] = entries[..] else { return Ok(()) };
    if bridge.ttl == Ttl::OneHour || service.rules == "openai" {
        return Ok(());
    }
    let without: Vec<Mark> = marks.iter().filter(|mark| *mark != bridge).copied().collect();
    let mut cache = service.simulator();
    asked.iter().enumerate().for_each(|(at, request)| drop(ask(&mut cache, request, at as u64)));
    let usage = ask(&mut cache, &session.request(&without), asked.len() as u64).usage;
    prop_assert!(usage.cache_read < covered, "{bridge:?} of {marks:?} is wasted: {usage:?}");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]

    #[test]
    fn sessions_never_miss(steps in prop::collection::vec(next(), 1..14), service in 0..SERVICES.len()) {
        play(SERVICES[service], &steps)?;
    }
}

#[test]
fn a_clearing_behind_an_answer_asks_nothing() {
    let answer = Next::Step { thinks: false, speaks: true, calls: 0 };
    for service in SERVICES {
        for boundary in (0..3).flat_map(|kept| [Next::Cleared(kept), Next::Summary(kept)]) {
            play(service, &[answer.clone(), boundary, answer.clone(), answer.clone()]).unwrap();
        }
    }
}

#[test]
fn a_summary_stands_ahead_of_the_older_entries_it_keeps() {
    let step = |calls| Next::Step { thinks: false, speaks: true, calls };
    for service in SERVICES {
        play(service, &[step(10), Next::Summary(2), step(0), step(30), step(0)]).unwrap();
    }
}

#[test]
fn words_to_go_on_count_where_the_bridge_is_planned() {
    let step = |calls| Next::Step { thinks: false, speaks: true, calls };
    for service in SERVICES {
        for calls in 0..14 {
            play(service, &[step(2), Next::Summary(0), step(calls), step(0)]).unwrap();
            play(service, &[step(0), Next::Summary(1), step(calls), step(0)]).unwrap();
        }
    }
}

#[test]
fn a_note_for_the_turn_that_is_left_in_place_is_no_edit() {
    let service = Service { model: "claude-opus-5-5", ..CLAUDE };
    let mut session = Session::new(service, 1_200, &[600]);
    let mut audit = Audit::new(service.simulator(), None);
    let mut covered = 0;
    for turn in 0..4_u64 {
        session.user(1, 5);
        let text = Text::new(format!("Mind turn {turn}.")).unwrap();
        session.push(Entry::Note(Note { kind: NoteKind::TurnScoped, text }));
        for step in 0..2 {
            let request = session.planned();
            let system =
                request.blocks.iter().filter(|it| it.role == Role::Developer && it.message.is_some());
            assert_eq!(system.count() as u64, turn + 1);
            let row = audit.step(&request, Some(Duration::from_secs(2 * turn + step)), None);
            assert_eq!(row.divergence, None, "turn {turn}, step {step}");
            assert!(row.usage.cache_read >= covered, "turn {turn}, step {step}: {:?}", row.usage);
            covered = row.usage.total_input() - row.usage.input;
            session.step(true, true, usize::from(step == 0), 5);
        }
    }
}

/// A prefix of 20,000 tokens with ten tools and 40 steps of 2,000 tokens: nearly all is read, and each token is
/// written once and read ever after, as nearly as can be.
fn ideal_loop(service: Service, thinks: bool, calls: usize, tokens: usize) {
    const STEPS: usize = 40;
    let mut session = Session::new(service, 9_700, &[1_000; 10]);
    session.user(1, 100);
    let prices = service.cache_rules().prices(3.0, 15.0, "2026-11-30");
    let mut audit = Audit::new(service.simulator(), Some(prices.clone()));
    let (mut paid, mut optimum, mut sent) = (Usage::default(), Usage::default(), 0);
    for step in 0..STEPS {
        let request = session.planned();
        let row = audit.step(&request, Some(Duration::from_secs(20 * step as u64)), None);
        assert_eq!(row.divergence, None, "step {step}");
        let total = row.usage.total_input();
        let added = total - sent;
        assert!(if step == 0 { added > 19_000 } else { (1_500..2_700).contains(&added) }, "{added}");
        paid += &row.usage;
        optimum += &Usage { cache_read: sent, cache_write_5m: added, ..Usage::default() };
        sent = total;
        session.step(thinks, true, calls, tokens);
    }
    let hit_rate = paid.hit_rate().unwrap();
    let over = prices.cost(&paid) / prices.cost(&optimum);
    println!("{service:?}, {calls} calls: {:.2}% read, cost {over:.4} of the optimum", hit_rate * 100.0);
    assert!(hit_rate >= 0.95 && over <= 1.05, "{hit_rate} {over}");
    assert!(audit.summary().causes.is_empty() && audit.summary().lost == 0);
    let plain = Usage { input: paid.total_input(), ..Usage::default() };
    assert!(prices.cost(&plain) / prices.cost(&paid) > 5.5, "and a sixth of no cache at all");
}

#[test]
fn the_ideal_loop_reads_nearly_all_and_costs_the_optimum() {
    for service in SERVICES {
        ideal_loop(service, true, 1, 1_900);
    }
}

#[test]
fn steps_of_thirty_parallel_tools_read_as_much() {
    for service in [CLAUDE, BEDROCK] {
        ideal_loop(service, false, 30, 20);
        ideal_loop(service, true, 30, 20);
    }
    ideal_loop(RESPONSES, true, 30, 20);
}

#[test]
fn another_session_reads_the_static_blocks_they_share() {
    for service in SERVICES {
        let mut cache = service.simulator();
        let mut open = |whose: &str| {
            let mut session = Session::new(service, 1_200, &[600]);
            let more = ["Write little.", whose].map(|text| SystemBlock::new(text).unwrap());
            session.system.extend(more);
            session.opening.system = Some(1);
            session.user(1, 5);
            let shared = kept_to(&mut session, MarkPoint::System(1));
            let first = ask(&mut cache, &session.planned(), 0);
            session.step(true, true, 30, 20);
            let second = ask(&mut cache, &session.planned(), 1);
            assert_eq!(second.usage.cache_read, first.covered, "{service:?}");
            (shared, first.usage.cache_read)
        };
        let (shared, read) = open("You work for Ada.");
        assert!(shared > 1_700 && read == 0, "{service:?}: {shared} {read}");
        assert_eq!(open("You work for Grace."), (shared, shared), "{service:?}");
    }
}

/// After a rewrite the compacted prefix is marked, read by the next step, and by a session that goes on otherwise.
fn check_boundary(service: Service, rewrite: fn(usize) -> Rewrite, last_compacted: fn(usize) -> usize) {
    let mut cache = service.simulator();
    let mut session = Session::new(service, 1_200, &[600]);
    session.user(1, 5);
    for at in 0..6 {
        ask(&mut cache, &session.planned(), at);
        session.step(true, true, 3, 100);
    }
    let end = session.history.len();
    session.push(Entry::Boundary(rewrite(end)));
    let compacted = MarkPoint::Entry(EntryId::at(last_compacted(end)));
    let mut other = Session::new(service, 1_200, &[600]);
    other.history = session.history.clone();
    let go_on = |session: &mut Session, cache: &mut _, tokens: usize| -> (Vec<Mark>, Outcome, Request) {
        session.user(1, tokens);
        let marks = session.plan();
        let request = session.request(&marks);
        let outcome = ask(cache, &request, 10);
        (marks, outcome, request)
    };
    let (marks, first, request) = go_on(&mut session, &mut cache, 1);
    assert!(
        marks.iter().any(|mark| mark.at == compacted && mark.ttl == Ttl::OneHour),
        "{service:?}: {marks:?}"
    );
    assert!(first.usage.cache_read >= kept_to(&mut session, MarkPoint::System(0)));
    let block = request.blocks.iter().rposition(|block| block.mark.is_some()).unwrap();
    let marked = request.blocks[..block].iter().rposition(|block| block.mark.is_some()).unwrap();
    session.step(true, true, 30, 20);
    let second = ask(&mut cache, &session.planned(), 11);
    assert_eq!(second.usage.cache_read, first.covered, "{service:?}");
    let (_, forked, _) = go_on(&mut other, &mut cache, 9);
    assert_eq!(
        forked.usage.cache_read,
        first.covered - (tokens_to(&request, block) - tokens_to(&request, marked))
    );
}

#[test]
fn the_compacted_prefix_is_marked_and_read_after_a_boundary() {
    let summary = |end| Rewrite::Summary {
        text: Text::new("We looked around. ".repeat(40)).unwrap(),
        kept_from: EntryId::at(end),
        strip_reasoning: true,
    };
    let cleared = |end| Rewrite::Cleared {
        results_to: EntryId::at(end),
        keep_bytes: 40,
        strip_reasoning: false,
        offloaded: false,
    };
    for service in SERVICES {
        check_boundary(service, summary, |end| end);
        check_boundary(service, cleared, |end| end - 1);
    }
}

#[test]
fn the_rules_and_the_table_of_models_agree_on_marks() {
    for service in [CLAUDE, RESPONSES, CHAT] {
        for model in [service.model, "gpt-5.6", "gpt-5.9-new", "gpt-6.1-sol", "gpt-5.5", "claude-opus-5-5"] {
            if model.starts_with("gpt") != (service.rules == "openai") {
                continue;
            }
            let provider = Dialect::from(service.format).provider;
            let known = Catalog::builtin().profile(&provider, model).cache;
            let rules =
                Service { model: Box::leak(model.to_owned().into_boxed_str()), ..service }.cache_rules();
            assert_eq!(rules.profile(), known, "{provider} {model}");
        }
    }
}
