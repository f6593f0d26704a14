//! The rules of the machine and of the standard tiers, over a scripted world.

use agent_core::{
    CompactionState, Entry, EntryId, ModelErrorKind, ModelProfile, Rewrite, SessionNotes, Text, Todo,
    TodoStatus, ToolOutput,
};
use proptest::prelude::*;

use super::target::low_water;
use super::world::{World, words};
use super::*;
use crate::{Ask, AskFailure, Way};

/// A world of 100,000 tokens, of which 78,750 begin a compaction and 82,687 are more than 5 percent over that.
fn harbour(steps: usize, tokens: u64) -> World {
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
            let target = low_water(&world.cx(), &state, cause);
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
    check(10, 2_000, 1_000, Cause::Overflow, 11_000..=11_100);
    check(10, 2_000, 1_000, Cause::Manual, 11_000..=11_100);
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
    TierVerdict::Rewrite(Rewrite::Cleared { results_to, keep_bytes, strip_reasoning: false })
}

#[test]
fn blocked_words_name_what_is_in_the_way() {
    let blocked = |world: &mut World, cause: Cause| {
        let look = world.look(cause);
        assert_eq!(look.moves.last().unwrap(), "blocked");
        look.blocked.unwrap().text.as_str().to_owned()
    };
    // Case P03: the window is full before anything is said.
    let mut world = World::new(32_768).fixed(29_000);
    world.user("hi");
    insta::assert_snapshot!(blocked(&mut world, Cause::First), @"");
    assert_eq!(world.asked.len(), 0, "nothing is paid for what cannot help");
    // One huge message, which no model would summarise.
    let mut world = World::new(32_768);
    world.script = |_, _| Err(AskFailure::Blank);
    world.user(&"long ".repeat(26_000));
    insta::assert_snapshot!(blocked(&mut world, Cause::First), @"");
    // Many words of the model, which no tier without a model makes smaller.
    let mut world = World::new(32_768);
    for _ in 0..60 {
        world.user("and then?");
        world.said(&"well, ".repeat(400));
    }
    world.state.failures = 3;
    insta::assert_snapshot!(blocked(&mut world, Cause::First), @"");
    // A refusal that nothing can be done about.
    let mut world = World::new(32_768);
    world.user("hi");
    insta::assert_snapshot!(blocked(&mut world, Cause::Overflow), @"");
}

#[test]
fn case_p02_usage_before_a_compaction_is_not_heard() {
    let mut world = World::new(200_000);
    world.model.max_output = 20_000;
    world.user("Count the boats.");
    for _ in 0..40 {
        world.step(4_000);
    }
    world.accountant.report(185_000, world.history.len());
    assert_eq!(world.moves(Cause::First), "summary asks, summary writes, settled");
    assert!(world.used() < 90_000, "{}", world.used());
    world.note("The tide turned.");
    world.user("And the ships?");
    world.accountant.report(185_000, 41);
    assert_eq!(world.moves(Cause::First), "settled");
    assert_eq!(world.asked.len(), 1);
}

#[test]
fn case_p03_a_summary_never_holds_itself() {
    let mut world = World::new(32_768);
    // It repeats what it was shown, and a tenth more.
    world.script = |ask, _| {
        let Way::Apart { words, .. } = &ask.way else { panic!("nothing is cached") };
        let said = words.as_str();
        Ok(Text::new(format!("{said}{}", "x".repeat(said.len() / 10))).unwrap())
    };
    world.user("Count the boats.");
    let mut sizes = Vec::new();
    for _ in 0..6 {
        for _ in 0..10 {
            world.step(2_600);
        }
        assert_eq!(world.look(Cause::First).written.len(), 1);
        sizes.push(world.accountant.text(world.summary()));
        assert_eq!(world.summary().matches("\n</summary>\n").count(), 1, "{}", world.summary());
    }
    // 2,048 tokens of words, 512 of evidence, and the frame.
    assert!(sizes.iter().all(|size| *size < 2_900), "{sizes:?}");
    assert_eq!(world.state.failures, 0);
}

#[test]
fn case_p04_a_summary_that_cannot_be_had() {
    let check = |script: fn(&Ask, usize) -> Answer, expect: &str, failures: u32| {
        let mut world = World::new(200_000);
        world.model.max_output = 20_000;
        world.user("What does the log say?");
        world.result("bash", "{}", ToolOutput::text("log line of the harbour\n".repeat(35_000)));
        world.script = script;
        let entries = world.history.entries().to_vec();
        let look = world.look(Cause::Continuation);
        assert_eq!(look.moves.join(", "), expect);
        assert_eq!(&world.history.entries()[..entries.len()], entries, "what was said stays");
        assert_eq!(world.state.failures, failures);
        assert!(world.used() < 90_000, "the next step can run");
        for ask in &world.asked {
            let Way::Apart { system, words } = &ask.way else { panic!("it does not fit on the prefix") };
            let tokens = world.accountant.text(system.as_str()) + world.accountant.text(words.as_str());
            assert!(tokens + u64::from(ask.max_output) < 180_000, "{tokens}");
        }
    };
    let overflow: fn(&Ask, usize) -> Answer =
        |_, _| Err(AskFailure::Model { kind: ModelErrorKind::ContextOverflow, message: "too long".into() });
    let shrunk = "summary asks, summary fails, shrink_results writes, settled";
    check(
        overflow,
        "summary asks, summary asks, summary asks, summary fails, shrink_results writes, settled",
        1,
    );
    check(|_, _| Err(AskFailure::CalledTool { tool: "bash".into() }), shrunk, 1);
    check(|_, _| Err(AskFailure::Blank), shrunk, 1);
    check(|_, _| Ok(Text::new("## Goals\n\n## Open\n").unwrap()), shrunk, 1);
    check(|_, _| Err(AskFailure::TooLong), shrunk, 1);
    check(|_, _| Err(AskFailure::TimedOut { millis: 60_000 }), shrunk, 1);
    check(|_, _| Ok(words(90_000)), "summary asks, summary writes, settled", 0);
    check(|_, _| Ok(words(100)), "summary asks, summary writes, settled", 0);
}

#[test]
fn a_question_that_was_too_long_is_halved() {
    let mut world = harbour(60, 4_000);
    world.script =
        |_, _| Err(AskFailure::Model { kind: ModelErrorKind::ContextOverflow, message: "too long".into() });
    world.look(Cause::Manual);
    let sizes = world.asked.iter().map(|ask| match &ask.way {
        Way::Apart { words, .. } => world.accountant.text(words.as_str()),
        Way::OnPrefix { .. } => panic!("nothing is cached"),
    });
    let sizes: Vec<_> = sizes.collect();
    assert!(sizes.len() == 3 && sizes[1] * 3 < sizes[0] * 2 && sizes[2] * 3 < sizes[1] * 2, "{sizes:?}");
}

#[test]
fn where_thinking_is_bound_it_goes_with_the_bytes_before_it() {
    let check = |binds: bool, cause: Cause| {
        let mut world = harbour(21, 4_000);
        world.model.binds_thinking_to_prefix = binds;
        let look = world.look(cause);
        let strips = match &look.written[0].rewrite {
            Rewrite::Summary { strip_reasoning, .. } | Rewrite::Cleared { strip_reasoning, .. } => {
                *strip_reasoning
            }
        };
        assert_eq!(strips, binds);
    };
    for cause in [Cause::First, Cause::Continuation, Cause::Manual, Cause::Overflow] {
        check(true, cause);
        check(false, cause);
    }
}

#[test]
fn notes_stand_for_what_they_cover() {
    let check = |notes: Option<SessionNotes>, expect: &str| {
        let mut world = harbour(21, 4_000);
        world.slots.notes = notes;
        assert_eq!(world.moves(Cause::First), expect);
    };
    let notes = |text: &str, covers_to: Option<usize>| {
        Some(SessionNotes { text: text.into(), covers_to: covers_to.map(EntryId::at) })
    };
    let written = "session_notes writes, settled";
    let asked = "summary asks, summary writes, settled";
    check(None, asked);
    check(notes("Dock 1 has two boats.", Some(18)), written);
    check(notes("Dock 1 has two boats.", Some(99)), written);
    check(notes("Dock 1 has two boats.", Some(4)), asked);
    check(notes("Dock 1 has two boats.", None), asked);
    check(notes(" \n", Some(18)), asked);
    check(notes("", Some(18)), asked);
    check(notes(&"Boats. ".repeat(40_000), Some(18)), asked);
}

#[test]
fn boundaries_never_reach_less_far_than_the_one_before() {
    let mut world = harbour(21, 4_000);
    world.slots.notes =
        Some(SessionNotes { text: "Dock 1 has two boats.".into(), covers_to: Some(EntryId::at(18)) });
    assert_eq!(world.moves(Cause::First), "session_notes writes, settled");
    // Shrinking reached the end, and the notes cover no more than before.
    for _ in 0..2 {
        world.step(40_000);
    }
    world.script = |_, _| Err(AskFailure::Blank);
    assert_eq!(
        world.moves(Cause::Continuation),
        "summary asks, summary fails, shrink_results writes, settled"
    );
    world.state = CompactionState::default();
    for _ in 0..2 {
        world.step(40_000);
    }
    assert_eq!(
        world.moves(Cause::Continuation),
        "summary asks, summary fails, shrink_results writes, settled"
    );
}

#[test]
fn what_the_model_has_not_seen_is_kept_where_it_fits() {
    let check = |message: usize, keeps: bool| {
        let mut world = harbour(21, 4_000);
        world.said("All counted.");
        world.user(&"more ".repeat(message));
        let at = EntryId::at(world.history.len() - 1);
        let look = world.look(Cause::First);
        let kept_from = look.written[0].rewrite.reach();
        assert_eq!(kept_from <= at, keeps, "kept from {kept_from} of {at}");
        assert_eq!(world.summary().contains("bytes left out]\n"), !keeps);
        assert_eq!(world.state.failures, 0);
    };
    check(4, true);
    check(4_000, true);
    // 50,000 tokens are more than the target and less than the window.
    check(40_000, true);
    check(70_000, false);
}

#[test]
fn a_composed_summary() {
    let mut world = World::new(32_768);
    world.user("Read the harbour log and mend the berth list.");
    world.result(
        "read_file",
        r#"{"path":"log.txt"}"#,
        ToolOutput::text("07:10 arrived: the Heron\n".repeat(900)),
    );
    world.result(
        "bash",
        r#"{"command":"sort berths"}"#,
        ToolOutput::text("a\n[99 bytes left out; read blob:0123456789abcdef …]\nz"),
    );
    world.result("bash", r#"{"command":"false"}"#, ToolOutput::error("exit 1"));
    world.result("edit_file", r#"{"path":"berths.txt"}"#, ToolOutput::denied("Not allowed."));
    world.slots.todos =
        vec![Todo { id: "1".into(), text: "mend the list".into(), status: TodoStatus::InProgress }];
    world.script = |_, _| Ok(Text::new("<summary>\n## Goals\nA right berth list.\n</summary>").unwrap());
    assert_eq!(world.moves(Cause::Manual), "summary asks, summary writes, settled");
    insta::assert_snapshot!(world.summary(), @"");
    let Some(Entry::Note(note)) = world.history.entries().last() else { panic!("state is put back") };
    assert!(note.text.as_str().contains("- [in_progress] 1: mend the list"));
    // The next question has the words of this summary, and nothing else of it.
    for _ in 0..10 {
        world.step(2_000);
    }
    world.look(Cause::Manual);
    let Way::Apart { words, .. } = &world.asked[1].way else { panic!("nothing is cached") };
    let start = "### Summary of what came before\n## Goals\nA right berth list.\n\n### ";
    assert!(words.as_str().starts_with(start), "{}", &words.as_str()[..200]);
}

#[test]
fn a_question_apart_holds_no_reasoning_and_cuts_old_results_first() {
    let mut world = World::new(32_768);
    world.user("Read the log.");
    world.result(
        "read_file",
        r#"{"path":"old.txt"}"#,
        ToolOutput::text(format!("old-head{}old-tail", "o".repeat(60_000))),
    );
    world.note("Mind the tide.");
    world.result(
        "read_file",
        r#"{"path":"new.txt"}"#,
        ToolOutput::text(format!("new-head{}new-tail", "n".repeat(3_000))),
    );
    world.look(Cause::Manual);
    let Way::Apart { words, .. } = &world.asked[0].way else { panic!("nothing is cached") };
    let shown = words.as_str().replace(&"o".repeat(1_992), "(o)").replace(&"n".repeat(3_000), "(n)");
    insta::assert_snapshot!(shown, @"");
}

#[test]
fn the_cheaper_way_is_asked() {
    let priced = |input: f64| agent_core::Prices {
        input,
        output: input * 5.0,
        cache_read: input / 10.0,
        cache_write_5m: input,
        cache_write_1h: input,
        as_of: "2026-11-30".into(),
    };
    let check = |cause: Cause, apart: Option<f64>, expect: &str| {
        // Words of the model are not cut in a transcript, so that it is nearly as long as the conversation.
        let mut world = World::new(100_000);
        for n in 0..42 {
            world.user(&format!("and then, {n}?"));
            world.said(&"well, ".repeat(1_333));
        }
        world.model.cache = agent_core::CacheProfile::Automatic;
        world.model.prices = Some(priced(5.0));
        world.apart = apart.map(|price| ModelProfile { prices: Some(priced(price)), ..world.model.clone() });
        assert_eq!(world.moves(cause), expect);
    };
    check(Cause::First, None, "summary asks on prefix, summary writes, settled");
    check(Cause::Continuation, Some(4.9), "summary asks on prefix, summary writes, settled");
    check(Cause::Continuation, Some(0.1), "summary asks, summary writes, settled");
    check(Cause::Overflow, None, "summary asks, summary writes, settled");
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
