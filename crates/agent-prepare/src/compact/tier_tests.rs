//! What the standard tiers offer, over a scripted world.

use agent_core::{
    CompactionState, Entry, EntryId, ModelErrorKind, ModelProfile, Note, NoteKind, Rewrite, SessionNotes,
    Text, Todo, TodoStatus, ToolOutput,
};

use super::tests::harbour;
use super::world::{World, words};
use super::*;
use crate::{Ask, AskFailure, Way};

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
        for _ in 0..11 {
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
    // The notes cover no more than before, and what shrinks reaches the end.
    for _ in 0..2 {
        world.step(45_000);
    }
    world.script = |_, _| Err(AskFailure::Blank);
    assert_eq!(
        world.moves(Cause::Continuation),
        "summary asks, summary fails, shrink_results writes, settled"
    );
    world.state = CompactionState::default();
    for _ in 0..2 {
        world.step(45_000);
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
fn the_first_and_the_last_request_are_kept_word_for_word() {
    let check = |requests: &[&str], expect: &[(&str, &str)]| {
        let mut world = World::new(100_000);
        for (said, steps) in requests.iter().zip([1, 1, 14].iter().skip(3 - requests.len())) {
            world.user(said);
            (0..*steps).for_each(|_| world.step(4_000));
        }
        for compaction in 1..3 {
            assert_eq!(world.look(Cause::Manual).written.len(), 1);
            let parts = world.summary().split("\n</user_request>\n\n");
            let held =
                parts.filter_map(|part| part.split_once(":\n<user_request>\n")).map(|(label, words)| {
                    let words = if words.contains(" bytes left out]\n") { "(cut)" } else { words };
                    (label, words)
                });
            assert_eq!(held.collect::<Vec<_>>(), expect, "compaction {compaction}");
            (0..2).for_each(|_| world.step(30_000));
        }
    };
    let one = "The user's request, word for word";
    let (first, last) = (
        "The user's first request, word for word",
        "The user's last request before what follows, word for word",
    );
    let huge = "and ".repeat(9_000);
    check(&["Count the boats."], &[(one, "Count the boats.")]);
    check(&[&huge], &[(one, "(cut)")]);
    check(&["Count the boats.", "And ships?"], &[(first, "Count the boats."), (last, "And ships?")]);
    check(&["Count the boats.", "And ships?", "Go on."], &[(first, "Count the boats."), (last, "Go on.")]);
    check(&["Count the boats.", "And ships?", &huge], &[(first, "Count the boats."), (last, "(cut)")]);
    check(&[&huge, "And ships?", "Go on."], &[(first, "(cut)"), (last, "Go on.")]);
    check(&[&huge, "And ships?", &huge], &[(first, "(cut)"), (last, "(cut)")]);
}

#[test]
fn a_composed_summary() {
    let mut world = World::new(32_768);
    world.user("Read the harbour log and mend the berth list.");
    world.result(
        "bash",
        r#"{"command":"sort berths"}"#,
        ToolOutput::text("a\n[99 bytes left out; read blob:0123456789abcdef …]\nz"),
    );
    world.result("bash", r#"{"command":"false"}"#, ToolOutput::error("exit 1"));
    world.result("edit_file", r#"{"path":"berths.txt"}"#, ToolOutput::denied("Not allowed."));
    world.result(
        "read_file",
        r#"{"path":"log.txt"}"#,
        ToolOutput::text("07:10 arrived: the Heron\n".repeat(900)),
    );
    world.slots.todos =
        vec![Todo { id: "1".into(), text: "mend the list".into(), status: TodoStatus::InProgress }];
    world.script = |_, _| Ok(Text::new("<summary>\n## Goals\nA right berth list.\n</summary>").unwrap());
    assert_eq!(world.moves(Cause::Manual), "summary asks, summary writes, settled");
    insta::assert_snapshot!(world.summary(), @r#"
    The user's request, word for word:
    <user_request>
    Read the harbour log and mend the berth list.
    </user_request>

    What was done and found out so far:
    <summary>
    ## Goals
    A right berth list.
    </summary>

    Calls that are finished, with what came of them. What succeeded stands; do not do it again:
    - bash {"command":"sort berths"}: ok, a [99 bytes left out; read blob:0123456789abcdef …] z [blob:0123456789abcdef]
    - bash {"command":"false"}: failed, exit 1
    - edit_file {"path":"berths.txt"}: refused, Not allowed.
    - read_file {"path":"log.txt"}: ok, 07:10 arrived: the Heron 07:10 arrived: the Heron 07:10 arri…

    What they showed can be seen again: read a file by its path, and an output by the handle (blob:…) named beside its call.
    "#);
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
fn only_what_is_put_back_is_left_out_of_a_question() {
    let check = |kind: NoteKind, is_asked_about: bool| {
        let mut world = World::new(32_768);
        world.user("Count the boats.");
        let text = Text::new("The tide is low.").unwrap();
        world.push(Entry::Note(Note { kind, text }));
        world.step(4_000);
        world.look(Cause::Manual);
        let Way::Apart { words, .. } = &world.asked[0].way else { panic!("nothing is cached") };
        assert_eq!(words.as_str().contains("### Harness\nThe tide is low."), is_asked_about, "{kind:?}");
    };
    check(NoteKind::Reminder, true);
    check(NoteKind::State, true);
    check(NoteKind::PutBack, false);
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
    insta::assert_snapshot!(shown, @r#"
    ### User
    Read the log.

    ### Agent
    [called read_file {"path":"old.txt"}]

    ### Result of read_file
    old-head(o)
    [56016 bytes left out]
    (o)old-tail

    ### Harness
    Mind the tide.

    ### Agent
    [called read_file {"path":"new.txt"}]

    ### Result of read_file
    new-head(n)new-tail
    "#);
}

/// Words of the model, which are not cut in a transcript, so that it is nearly as long as the conversation; and a
/// provider that caches them.
fn cached() -> World {
    let mut world = World::new(100_000);
    for n in 0..42 {
        world.user(&format!("and then, {n}?"));
        world.said(&"well, ".repeat(1_333));
    }
    world.model.cache = agent_core::CacheProfile::Automatic;
    world
}

#[test]
fn an_answer_that_was_cut_behind_the_conversation_is_asked_for_apart_once() {
    let check = |script: fn(&Ask, usize) -> Answer, expect: &str| {
        let mut world = cached();
        world.script = script;
        assert_eq!(world.moves(Cause::First), expect);
        world.asked
    };
    let way = "summary asks on prefix, summary asks, ";
    let once: fn(&Ask, usize) -> Answer =
        |_, n| if n == 0 { Err(AskFailure::TooLong) } else { Ok(words(100)) };
    let asked = check(once, &format!("{way}summary writes, settled"));
    let Way::Apart { words, .. } = &asked[1].way else { panic!("the other way") };
    // Half of the room would be 36,300 tokens.
    assert!(words.as_str().len() > 4 * 37_000, "nothing is halved: {}", words.as_str().len());
    check(|_, _| Err(AskFailure::TooLong), &format!("{way}summary fails, settled"));
}

#[test]
fn who_can_think_has_room_for_it() {
    use agent_core::Setting::{self, ThinkingAdaptive, ThinkingBudget, ThinkingDisabled};
    let check = |context_window: u32, max_output: u32, refuses: &[Setting], expect: u32| {
        let mut world = cached();
        world.model = ModelProfile {
            max_output,
            context_window,
            refuses: refuses.iter().copied().collect(),
            ..world.model
        };
        world.look(Cause::Manual);
        assert_eq!(world.asked[0].max_output, expect, "{refuses:?}");
    };
    let never = [ThinkingAdaptive, ThinkingBudget, ThinkingDisabled];
    check(1_000_000, 128_000, &never, 4_096);
    check(1_000_000, 128_000, &[ThinkingBudget, ThinkingDisabled], 20_000);
    check(1_000_000, 128_000, &[], 20_000);
    check(100_000, 8_000, &[], 8_000);
    check(100_000, 2_000, &never, 2_000);
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
        let mut world = cached();
        world.model.prices = Some(priced(5.0));
        world.apart = apart.map(|price| ModelProfile { prices: Some(priced(price)), ..world.model.clone() });
        assert_eq!(world.moves(cause), expect);
    };
    check(Cause::First, None, "summary asks on prefix, summary writes, settled");
    check(Cause::Continuation, Some(4.9), "summary asks on prefix, summary writes, settled");
    check(Cause::Continuation, Some(0.1), "summary asks, summary writes, settled");
    check(Cause::Overflow, None, "summary asks, summary writes, settled");
}
