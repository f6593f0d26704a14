//! The rules of the machine and of the standard tiers, over a scripted world.

use agent_core::{CompactionState, EntryId, ModelErrorKind, Rewrite, SessionNotes, Text};
use proptest::prelude::*;

use super::target::{Scale, low_water};
use super::world::{World, words};
use super::*;
use crate::{Ask, AskFailure, Way};

/// A world of 100,000 tokens, of which 78,750 begin a compaction and 82,687 are more than 5 percent over that.
pub(super) fn harbour(steps: usize, tokens: u64) -> World {
    let mut world = World::new(100_000);
    world.user("Count the boats in every dock.");
    for _ in 0..steps {
        world.step(tokens);
    }
    world
}

#[test]
fn the_first_step_asks_and_later_steps_clear_first() {
    let check = |cause: Cause, steps: usize, tokens: u64, expect: &str| {
        assert_eq!(harbour(steps, tokens).moves(cause), expect, "{cause:?}, {steps} steps of {tokens}");
    };
    check(Cause::First, 10, 4_000, "settled");
    check(Cause::Continuation, 10, 4_000, "settled");
    check(Cause::First, 21, 4_000, "summary asks, summary writes, settled");
    check(Cause::Continuation, 21, 4_000, "clear_results writes, settled");
    // Three results that stay whole are more than the target, so that a clearing would not reach it.
    check(Cause::Continuation, 6, 14_000, "summary asks, summary writes, settled");
    check(Cause::Overflow, 21, 4_000, "clear_results writes, settled");
    check(Cause::Manual, 21, 4_000, "summary asks, summary writes, settled");
    check(Cause::Manual, 5, 4_000, "summary asks, summary writes, settled");
    check(Cause::Manual, 0, 0, "settled");
}

#[test]
fn five_percent_over_does_nothing_and_nothing_happens_before_growth() {
    let check = |used: u64, after: u64, expect: &str| {
        let mut world = harbour(21, 4_000);
        world.accountant.report(used, world.history.len());
        world.state.after = after;
        assert_eq!(world.moves(Cause::Continuation), expect, "{used} used, {after} after the last one");
    };
    check(78_751, 0, "settled");
    check(82_687, 0, "settled");
    check(82_688, 0, "clear_results writes, settled");
    // After a compaction that came down to 80,000, growth by a twentieth of the trigger, 3,937, is waited for.
    check(83_937, 80_000, "settled");
    check(83_938, 80_000, "clear_results writes, settled");
    // At the blocking limit nothing is waited for: no request could be sent.
    check(86_188, 86_000, "clear_results writes, settled");
}

#[test]
fn what_a_provider_counts_is_what_an_estimate_is_worth() {
    let check = |reported: u64, expect: &str| {
        let mut world = harbour(17, 4_800);
        world.accountant.report(reported, world.history.len());
        let look = world.look(Cause::Continuation);
        assert_eq!(look.moves.join(", "), expect, "{reported}");
        // A provider that counts so much more than is estimated will do so behind the boundary as well.
        let after = world.used() * reported.max(81_000) / 81_000;
        assert!(after <= 39_375, "{after}");
        assert!(world.state.after.abs_diff(after) < after / 20, "{after} for {:?}", world.state);
    };
    let estimated = harbour(17, 4_800).used();
    assert!((80_000..=82_600).contains(&estimated), "{estimated}");
    check(84_000, "clear_results writes, settled");
    // Three results are 14,400 tokens by estimate, and a clearing leaves 19,000; by this count it is 41,000.
    check(176_000, "summary asks, summary writes, settled");
}

#[test]
fn a_count_far_above_the_estimate_does_not_put_the_target_out_of_reach() {
    let mut world = harbour(10, 3_000).fixed(27_000);
    let reported = world.used() * 3 / 2;
    world.accountant.report(reported, world.history.len());
    assert!(reported > 82_688, "{reported} begins a compaction");
    let look = world.look(Cause::First);
    assert_eq!(look.moves.join(", "), "summary asks, summary writes, settled");
    assert_eq!(world.state.failures, 0, "what is fixed is counted higher as well: {:?}", world.state);
}

#[test]
fn what_became_smaller_otherwise_grows_from_there() {
    let mut world = harbour(21, 4_000);
    let len = world.history.len();
    world.state.after = 82_000;
    world.accountant.report(30_000, len);
    assert_eq!(world.moves(Cause::Continuation), "settled");
    assert_eq!(world.state.after, 30_000, "a provider or another model took it back");
    world.accountant.report(83_000, len);
    assert_eq!(world.moves(Cause::Continuation), "clear_results writes, settled");
}

#[test]
fn what_is_switched_off_begins_by_hand_only() {
    let check = |cause: Cause, expect: &str| {
        let mut world = harbour(22, 4_000);
        world.cascade = Cascade::standard().manual();
        let look = world.look(cause);
        assert_eq!(look.moves.join(", "), expect);
        let words = look.blocked.map_or_else(String::new, |blocked| blocked.text.as_str().to_owned());
        assert_eq!(words.contains("compact it by hand"), expect == "blocked", "{words}");
    };
    check(Cause::First, "blocked");
    check(Cause::Continuation, "blocked");
    check(Cause::Manual, "summary asks, summary writes, settled");
    check(Cause::Overflow, "clear_results writes, settled");
}

#[test]
fn targets_leave_room_for_ten_steps() {
    let check =
        |steps: usize, tokens: u64, fixed: u64, cause: Cause, expect: std::ops::RangeInclusive<u64>| {
            let world = harbour(steps, tokens).fixed(fixed);
            let state = world.cascade.measure(&world.accountant, &world.model);
            let target = low_water(&world.cx(), &state, cause, Scale::of(1, 1));
            assert!(expect.contains(&target), "{target} of {steps} steps of {tokens}, {fixed} fixed");
        };
    let half = 39_375;
    check(80, 1_000, 0, Cause::Continuation, half..=half);
    check(20, 4_000, 0, Cause::Continuation, 38_700..=39_000);
    check(12, 7_000, 0, Cause::Continuation, 8_700..=9_000);
    // No room for ten: as low as it goes, which is a summary and what is fixed.
    check(6, 14_000, 0, Cause::Continuation, 2_700..=2_900);
    check(6, 14_000, 1_000, Cause::Continuation, 3_700..=3_900);
    // What is fixed alone is more than half.
    check(20, 1_000, 60_000, Cause::Continuation, 62_700..=62_900);
    // Half of the conversation, when it is small already.
    check(10, 2_000, 1_000, Cause::Overflow, 10_900..=11_100);
    check(10, 2_000, 1_000, Cause::Manual, 10_900..=11_100);
}

#[test]
fn a_target_is_in_the_measure_of_the_provider() {
    let mut world = harbour(10, 2_000).fixed(1_000);
    let estimated = world.used();
    world.accountant.report(2 * estimated, world.history.len());
    let state = world.cascade.measure(&world.accountant, &world.model);
    let target = low_water(&world.cx(), &state, Cause::Manual, Scale::of(2, 1));
    // Half of the conversation, and twice what is fixed by estimate.
    assert_eq!(target, 2_000 + (2 * estimated - 2_000) / 2);
}

#[test]
fn three_failures_open_the_breaker_and_a_success_closes_it() {
    let mut world = harbour(6, 14_000);
    world.script = |_, _| Err(AskFailure::TimedOut { millis: 60_000 });
    let failing = "summary asks, summary fails, settled";
    for failures in 1..=3 {
        assert_eq!(world.moves(Cause::Continuation), failing);
        assert_eq!(world.state.failures, failures);
    }
    assert_eq!(world.moves(Cause::Continuation), "settled");
    assert_eq!(world.moves(Cause::First), "settled");
    assert_eq!(world.moves(Cause::Manual), failing, "by hand it is tried");
    assert_eq!(world.moves(Cause::Overflow), "summary asks, summary fails, shrink_results writes, settled");
    assert_eq!(world.moves(Cause::First), "settled", "and only then");
    world.script = |_, _| Ok(words(100));
    for _ in 0..6 {
        world.step(14_000);
    }
    assert_eq!(world.state.failures, 5);
    assert_eq!(world.moves(Cause::Manual), "summary asks, summary writes, settled");
    assert_eq!(world.state.failures, 0, "a success closes it");
}

#[test]
fn a_success_between_failures_starts_the_count_again() {
    let mut world = harbour(6, 14_000);
    world.state = CompactionState { failures: 2, after: 0 };
    assert_eq!(world.moves(Cause::Continuation), "summary asks, summary writes, settled");
    assert_eq!(world.state, CompactionState { failures: 0, after: world.used() });
}

#[test]
fn behind_an_open_breaker_only_what_is_free_is_tried_and_only_when_blocked() {
    let mut world = harbour(6, 14_000);
    world.state.failures = 3;
    assert_eq!(world.moves(Cause::Continuation), "settled");
    world.step(14_000);
    assert_eq!(world.moves(Cause::Continuation), "shrink_results writes, settled");
    assert_eq!(
        (world.state.failures, world.asked.len()),
        (3, 0),
        "no model is asked, and the breaker stays open"
    );
}

/// Offers what a test says.
#[derive(Debug)]
struct Fake(fn(&TierCx<'_>) -> TierVerdict);

impl Tier for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        (self.0)(cx)
    }
}

fn ask() -> TierVerdict {
    let words = Text::new("what now?").unwrap();
    TierVerdict::Ask(Ask { way: Way::OnPrefix { words }, max_output: 9 })
}

#[test]
fn every_tier_has_one_turn_and_what_is_no_progress_is_not_written() {
    let check = |tier: fn(&TierCx<'_>) -> TierVerdict, expect: &str, failures: u32| {
        let mut world = harbour(21, 4_000);
        world.cascade = Cascade::new().then(Fake(tier)).then(Fake(|_| TierVerdict::Pass));
        let entries = world.history.len();
        let look = world.look(Cause::Continuation);
        assert_eq!(look.moves.join(", "), expect);
        assert_eq!(world.history.len(), entries + look.written.len());
        assert_eq!(world.state.failures, failures);
    };
    check(|_| TierVerdict::Pass, "settled", 0);
    check(|_| TierVerdict::Failed("no".into()), "fake fails, settled", 1);
    check(
        |_| ask(),
        "fake asks on prefix, fake asks on prefix, fake asks on prefix, fake asks on prefix, fake fails, settled",
        1,
    );
    check(
        |cx| if cx.asked < 2 { ask() } else { TierVerdict::Pass },
        "fake asks on prefix, fake asks on prefix, settled",
        0,
    );
    check(|cx| clipped(cx, 15_600), "fake fails, settled", 1);
    // It is progress, and not enough of it: written, and counted.
    check(|cx| clipped(cx, 12_000), "fake writes, settled", 1);
    check(|cx| clipped(cx, 1_000), "fake writes, settled", 0);
}

fn clipped(cx: &TierCx<'_>, keep_bytes: usize) -> TierVerdict {
    let results_to = EntryId::at(cx.of.history.len());
    TierVerdict::Rewrite(Rewrite::Cleared { results_to, keep_bytes, strip_reasoning: false, offloaded: true })
}

#[test]
fn blocked_words_name_what_is_in_the_way() {
    let blocked = |world: &mut World, cause: Cause| {
        let look = world.look(cause);
        assert_eq!(look.moves.last().unwrap(), "blocked", "{:?}", look.moves);
        look.blocked.unwrap().text.as_str().to_owned()
    };
    // Case P03: the window is full before anything is said.
    let mut world = World::new(32_768).fixed(29_000);
    world.user("hi");
    insta::assert_snapshot!(blocked(&mut world, Cause::First), @"I cannot go on: the conversation has about 29001 tokens, and at most 28242 can be sent to this model. Of these, 29000 are the system prompt and the tools, which no compaction makes smaller. They leave no room for a conversation: give the agent fewer tools or a shorter system prompt, or a model with a larger window.");
    assert_eq!(world.asked.len(), 0, "nothing is paid for what cannot help");
    // One huge message, which no model would summarise.
    let mut world = World::new(32_768);
    world.script = |_, _| Err(AskFailure::Blank);
    world.user(&"long ".repeat(26_000));
    insta::assert_snapshot!(blocked(&mut world, Cause::First), @"I cannot go on: the conversation has about 32500 tokens, and at most 28242 can be sent to this model. Of these, 0 are the system prompt and the tools, which no compaction makes smaller. One message of the user has 32500 of them: begin a new session, and put what it holds into a file that can be read in parts.");
    // Many words of the model, which no tier without a model makes smaller.
    let mut world = World::new(32_768);
    for _ in 0..60 {
        world.user("and then?");
        world.said(&"well, ".repeat(400));
    }
    world.state.failures = 3;
    insta::assert_snapshot!(blocked(&mut world, Cause::First), @"I cannot go on: the conversation has about 36180 tokens, and at most 28242 can be sent to this model. Of these, 0 are the system prompt and the tools, which no compaction makes smaller. Compaction failed 3 times in a row and is not tried again by itself: compact the session by hand, or begin a new one.");
    // A refusal that nothing can be done about.
    let mut world = World::new(32_768);
    world.user("hi");
    insta::assert_snapshot!(blocked(&mut world, Cause::Overflow), @"I cannot go on: the provider refused the conversation as too long, and it could not be made smaller. By count it has about 1 tokens. Of these, 0 are the system prompt and the tools, which no compaction makes smaller. Compact the session by hand, or begin a new one.");
}

/// Steps of these sizes, with a look before each: how many steps lay between two compactions.
fn gaps(world: &mut World, sizes: impl Iterator<Item = u64>) -> Vec<usize> {
    let mut gaps = Vec::new();
    let mut since = 0;
    for (n, size) in sizes.enumerate() {
        let look = world.look(if n == 0 { Cause::First } else { Cause::Continuation });
        assert!(look.blocked.is_none() && look.moves.len() <= 4, "{:?}", look.moves);
        if !look.written.is_empty() {
            gaps.push(since);
            since = 0;
        }
        world.step(size);
        since += 1;
    }
    gaps
}

#[test]
fn sixty_steps_of_2k_in_a_window_of_12k() {
    for max_output in [512, 1_024, 1_500] {
        let mut world = World::new(12_000).fixed(300);
        world.model.max_output = max_output;
        world.user("Count the boats in every dock, and write down the sum.");
        let gaps = gaps(&mut world, std::iter::repeat_n(2_000, 60));
        assert!(gaps.len() <= 12 && gaps.iter().all(|gap| *gap >= 5), "{max_output}: {gaps:?}");
        assert_eq!((world.asked.len(), world.state.failures), (gaps.len(), 0));
        let calls = world.summary().matches("- read_file").count();
        assert!(calls > 5, "the newest finished calls are named: {}", world.summary());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Steps that vary by half, of any size up to a sixth of the effective window less what is fixed in any case.
    #[test]
    fn it_never_oscillates(
        window in 8_000u32..120_000,
        share in 1u64..=100,
        jitter in proptest::collection::vec(50u64..=100, 80),
    ) {
        let mut world = World::new(window);
        world.model.max_output = window / 12;
        world.user("Count the boats.");
        let most = u64::from(window) / 6 * share / 100;
        let gaps = gaps(&mut world, jitter.iter().map(|percent| (most * percent / 100).max(20)));
        prop_assert!(gaps.iter().all(|gap| *gap >= 5), "{:?}", gaps);
        prop_assert!(world.asked.len() <= gaps.len());
        prop_assert_eq!(world.state.failures, 0);
    }

    /// Whatever is said and whatever a model answers, each look ends, and every boundary is accepted by the history.
    #[test]
    fn every_look_ends(
        window in 2_000u32..60_000,
        fixed in 0u64..30_000,
        acts in proptest::collection::vec((0u8..7, 1u64..9_000), 1..40),
    ) {
        let mut world = World::new(window).fixed(fixed.max(1));
        world.model.binds_thinking_to_prefix = window % 2 == 0;
        world.script = |ask, n| match n % 6 {
            0 | 1 => Ok(words(50)),
            2 => Err(AskFailure::Model { kind: ModelErrorKind::ContextOverflow, message: "no".into() }),
            3 => Ok(words(20_000)),
            4 => Err(AskFailure::Blank),
            _ => Ok(Text::new(format!("{ask:?}")).unwrap()),
        };
        for (act, size) in acts {
            let cause = match act {
                0 => Cause::First,
                1 | 2 => Cause::Continuation,
                3 => Cause::Overflow,
                _ => Cause::Manual,
            };
            match act {
                0 => world.user(&"u".repeat(size as usize * 4)),
                5 => world.said(&"a".repeat(size as usize * 2)),
                6 => {
                    let covers_to = Some(EntryId::at(world.history.len().saturating_sub(size as usize % 5)));
                    world.slots.notes = Some(SessionNotes { text: "n".repeat(size as usize), covers_to });
                }
                _ => world.step(size),
            }
            let before = world.used();
            let look = world.look(cause);
            prop_assert!(look.moves.len() <= 11, "{:?}", look.moves);
            prop_assert!(look.written.is_empty() || world.used() < before);
            let limit = world.cascade.measure(&world.accountant, &world.model).thresholds.blocking;
            prop_assert!(look.blocked.is_some() || cause == Cause::Manual || world.used() < limit);
        }
    }
}
