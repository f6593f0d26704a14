//! What is counted after which sequence of reports, entries and boundaries.

use proptest::prelude::*;

use super::*;
use crate::{
    CallId, Note, NoteKind, ProviderPart, RawJson, Response, StepRecord, Text, ToolCall, ToolInput,
    ToolResult, Usage, UserMessage,
};

/// A word of so many tokens.
fn words(tokens: usize) -> String {
    "word".repeat(tokens)
}

/// One thing that happens: `u9` the user says 9 tokens, `n9` a note, `a9` the model says 9 and nothing else, `c9` it
/// calls a tool whose result has 9, `@180` the request with all so far was reported to have 180, `S2` a summary that
/// keeps 2 entries, `X1` a clearing that keeps the results of one.
fn take(accountant: &mut Accountant, log: &mut History, word: &str) {
    let (kind, number) = word.split_at(1);
    let number: usize = number.parse().unwrap();
    let reach = EntryId::at(log.len().saturating_sub(number));
    let entry = match kind {
        "u" => Entry::User(UserMessage::text(words(number)).unwrap()),
        "n" => Entry::Note(Note { kind: NoteKind::Reminder, text: Text::new(words(number)).unwrap() }),
        "a" => step(log.len(), number, None, 0),
        "c" => step(log.len(), 1, Some(number), 0),
        "S" => {
            let text = Text::new(words(20)).unwrap();
            Entry::Boundary(Rewrite::Summary { text, kept_from: reach, strip_reasoning: true })
        }
        "X" => Entry::Boundary(Rewrite::Cleared {
            results_to: reach,
            keep_bytes: 40,
            strip_reasoning: false,
            offloaded: false,
        }),
        "@" => return accountant.report(number as u64, log.len()),
        other => panic!("no such thing happens: {other}"),
    };
    log.push(entry).unwrap();
    accountant.follow(log);
}

/// What the model said in so many tokens, with a call and its result, and what was reported.
fn step(at: usize, said: usize, result: Option<usize>, reported: u64) -> Entry {
    let id = CallId::new(format!("c{at}")).unwrap();
    let call = ToolCall { id: id.clone(), name: "look".into(), input: ToolInput::finished("{}"), data: None };
    let mut parts = vec![AssistantPart::text(words(said)).unwrap()];
    parts.extend(result.map(|_| AssistantPart::ToolCall(call)));
    let results = result.map(|tokens| ToolResult { call: id, output: ToolOutput::text(words(tokens)) });
    let usage = Usage { cache_read: reported / 2, input: reported - reported / 2, ..Usage::default() };
    let said = Response { usage, ..Response::of(parts) };
    Entry::Step(StepRecord::new(said, results.into_iter().collect()).unwrap())
}

#[track_caller]
fn check(events: &str, expect: u64) -> (Accountant, History) {
    let (mut accountant, mut log) = (Accountant::default(), History::new());
    accountant.set_fixed(&[SystemBlock::new(words(50)).unwrap()], &[]);
    for word in events.split_whitespace() {
        take(&mut accountant, &mut log, word);
    }
    assert_eq!(accountant.used(), expect, "{events}");
    (accountant, log)
}

/// The line that introduces a summary, the summary itself, and words to go on.
const SUMMARY: u64 = 19 + 20;
const GO_ON: u64 = 3;
/// The line between head and tail of a clipped result.
const CLIP_NOTICE: u64 = 6;

#[test]
fn the_last_report_counts_and_what_came_since() {
    assert_eq!(BytesPerToken(4).text(crate::SUMMARY_MARKER) + 20, SUMMARY);
    check("", 50);
    check("u9", 59);
    check("u9 @180", 180);
    check("u9 @180 a7", 187);
    check("u9 @180 a7 u2", 189);
    check("u9 @180 a7 u2 @200 a1", 201);
    // A call costs its name and input, and so does its result.
    check("u9 @180 c30", 180 + 1 + 2 + 30);
    // The size of the last request, and no sum: each of these read all of it again.
    check("u9 @180 c1 @185 c1 @190 c1 @195 a1", 196);
    // Who reports nothing is not believed.
    check("u9 @180 a7 @0", 187);
}

#[test]
fn what_is_older_than_a_boundary_is_not_heard() {
    check("u9 @180 a7 S0", 50 + SUMMARY + GO_ON);
    check("u9 @180 a7 S0 u5", 50 + SUMMARY + 5);
    check("u9 @180 a7 S0 c1", 50 + SUMMARY + GO_ON + 4);
    check("u9 @180 a7 S0 @120 a4", 124);
    check("u9 @180 c100 X0", 50 + 9 + 3 + 10 + CLIP_NOTICE);
    check("u9 @180 c100 X0 u6", 50 + 9 + 3 + 10 + CLIP_NOTICE + 6);
    check("u9 @180 c100 S1 u6", 50 + SUMMARY + 103 + 6);

    let (mut accountant, mut log) = check("u9 @180 a7 S0 u5", 50 + SUMMARY + 5);
    accountant.report(180, 1);
    accountant.report(187, 2);
    accountant.report(187, 0);
    assert_eq!(accountant.used(), 50 + SUMMARY + 5, "an old answer that comes late");
    accountant.report(70, 4);
    accountant.report(60, 3);
    take(&mut accountant, &mut log, "a1");
    assert_eq!(accountant.used(), 71, "the newest request is the one that counts");
}

/// Case P02: a window of 200k, filled to 185k by the last request; compacted, and nobody asked the model since.
#[test]
fn a_compaction_does_not_fire_again_on_what_was_said_before_it() {
    let (mut accountant, mut log) = (Accountant::default(), History::new());
    for word in ["u500", "c90000", "c90000"] {
        take(&mut accountant, &mut log, word);
    }
    log.push(step(log.len(), 10, None, 185_000)).unwrap();
    accountant.follow(&log);
    accountant.report(185_000, log.len() - 1);
    assert!(accountant.used() > 180_000, "over the threshold before");
    let text = Text::new(words(11_900)).unwrap();
    let kept_from = EntryId::at(log.len());
    let rewrite = Rewrite::Summary { text, kept_from, strip_reasoning: true };
    let promised = accountant.would_be(&log, &rewrite);
    log.push(Entry::Boundary(rewrite)).unwrap();
    accountant.follow(&log);
    assert_eq!(accountant.used(), promised);
    for word in ["n60", "u40"] {
        take(&mut accountant, &mut log, word);
    }
    assert_eq!(accountant.used(), promised - GO_ON + 100);
    assert!((11_000..13_000).contains(&accountant.used()), "{}", accountant.used());
    let mut resumed = Accountant::default();
    resumed.resume(&log, Usage::total_input);
    assert_eq!(resumed.used(), accountant.used(), "nor after a restart");
}

#[test]
fn growth_is_that_of_the_last_steps() {
    let check = |events: &str, steps: usize, expect: u64| {
        let (mut accountant, mut log) = (Accountant::default(), History::new());
        events.split_whitespace().for_each(|word| take(&mut accountant, &mut log, word));
        assert_eq!(accountant.growth(&log, steps), expect, "{events}");
    };
    check("", 3, 0);
    check("u9 n9", 3, 0);
    check("a9", 0, 0);
    check("u9 a10", 3, 10);
    check("u9 a10 u500 a20", 3, 15);
    check("a900 a10 u500 a20 n7", 2, 15);
    check("a10 a20 S1 a30", 3, 20);
}

#[test]
fn files_count_by_the_class_of_their_size() {
    let check = |media_type: &str, source: FileSource, expect: u64| {
        let file = FilePart { media_type: media_type.into(), source, name: None };
        assert_eq!(BytesPerToken(4).file(&file), expect, "{media_type}");
    };
    let bytes = |bytes: usize| FileSource::Base64("A".repeat(bytes.div_ceil(3) * 4));
    check("image/png", bytes(3), 800);
    check("image/png", bytes(65_535), 800);
    check("image/png", bytes(70_000), 1_600);
    check("application/pdf", bytes(1_048_575), 1_600);
    check("application/pdf", bytes(1_048_579), 3_200);
    check("text/csv", bytes(300), 75);
    check("text/csv", bytes(3_000_000), 750_000);
    check("text/csv", FileSource::Url("https://tea.example/a.csv".into()), 800);
    check("image/png", FileSource::Reference { provider: "p".into(), id: "f".into() }, 800);
}

#[derive(Debug)]
struct Words;

impl TokenCounter for Words {
    fn text(&self, text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }
}

#[test]
fn another_counter_counts_all_there_is() {
    let mut accountant = Accountant::new(Arc::new(Words));
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let tools = [ToolCard::new("look", "Looks at it.", &schema).unwrap()];
    accountant.set_fixed(&[SystemBlock::new("Be brief.").unwrap()], &tools);
    assert_eq!((accountant.fixed(), accountant.used()), (7, 7));
    let mut log = History::new();
    log.push(Entry::User(UserMessage::text("one two three").unwrap())).unwrap();
    accountant.follow(&log);
    assert_eq!((accountant.used(), accountant.text("a b")), (10, 2));
    assert_eq!(accountant.entry_tokens(EntryId::at(0)), 3);
    assert_eq!(accountant.entry_tokens(EntryId::at(1)), 0, "there is no such entry");
}

fn output(kind: u8, size: usize) -> ToolOutput {
    let text = || "é".repeat(size);
    let provider = || {
        let raw = RawJson::parse(format!(r#"{{"x":"{}"}}"#, "y".repeat(size))).unwrap();
        ContentPart::Provider(ProviderPart { provider: "p".into(), kind: "odd".into(), raw })
    };
    let file = || {
        let source = FileSource::Base64("A".repeat(size));
        ContentPart::File(FilePart { media_type: "text/plain".into(), source, name: None })
    };
    match kind {
        0 => ToolOutput::text(text()),
        // Capped before, so that its middle has the handle of the whole.
        4 => ToolOutput::text(format!("{}blob:{}{}", text(), "a1".repeat(32), text())),
        1 => ToolOutput::error(text()),
        2 => ToolOutput::Json(RawJson::parse(format!("\"{}\"", text())).unwrap()),
        _ => {
            let words = Text::new(text()).map(ContentPart::Text);
            ToolOutput::Content(words.into_iter().chain([provider(), file()]).collect())
        }
    }
}

/// What a codec shows of an output that is clipped.
fn rendered(output: &ToolOutput, clip: Clip) -> Vec<ContentPart> {
    let text = |words: String| ContentPart::Text(Text::new(words).unwrap());
    let clipped =
        |words: &str| text(clipped(words, Some(clip), |_| BlobHash::of_digest(&[9; 32])).into_owned());
    let ToolOutput::Content(parts) = output else {
        return vec![clipped(&output.plain())];
    };
    let part = |part: &ContentPart| match part {
        ContentPart::Text(words) => clipped(words.as_str()),
        ContentPart::Tool(found) => clipped(found.words.as_str()),
        ContentPart::File(file) => clipped_file(file, Some(clip)).map_or_else(|| part.clone(), text),
        ContentPart::Provider(other) => clipped_part(other, Some(clip)).map_or_else(|| part.clone(), text),
    };
    parts.iter().map(part).collect()
}

/// A step with one call and this result.
fn result(at: usize, output: ToolOutput) -> Entry {
    let id = CallId::new(format!("c{at}")).unwrap();
    let call = ToolCall { id: id.clone(), name: "look".into(), input: ToolInput::finished("{}"), data: None };
    let said = Response::of(vec![AssistantPart::ToolCall(call)]);
    Entry::Step(StepRecord::new(said, vec![ToolResult { call: id, output }]).unwrap())
}

/// What happens, a number for it, and what is reported of the request that it answers.
fn happening() -> impl Strategy<Value = (u8, usize, Option<u64>)> {
    (0_u8..8, 0_usize..60, proptest::option::of(1_u64..10_000))
}

fn entry(at: usize, (kind, number, reported): (u8, usize, Option<u64>)) -> Entry {
    let back = EntryId::at(at.saturating_sub(number % 4));
    match kind {
        0 => Entry::User(UserMessage::text(words(number + 1)).unwrap()),
        1 => Entry::Note(Note { kind: NoteKind::TurnScoped, text: Text::new(words(number + 1)).unwrap() }),
        2 => {
            let text = Text::new(words(number + 1)).unwrap();
            Entry::Boundary(Rewrite::Summary { text, kept_from: back, strip_reasoning: number % 2 == 0 })
        }
        3 => Entry::Boundary(Rewrite::Cleared {
            results_to: back,
            keep_bytes: number,
            strip_reasoning: number % 2 == 0,
            offloaded: number % 3 == 0,
        }),
        4 => step(at, number + 1, None, reported.unwrap_or(0)),
        _ => step(at, 1, Some(number), reported.unwrap_or(0)),
    }
}

proptest! {
    /// A clearing costs what the model is shown: as much as if each result had been the words in its place.
    #[test]
    fn what_is_clipped_costs_what_is_rendered(
        outputs in prop::collection::vec((0_u8..5, 0_usize..400), 1..6),
        keep_bytes in 0_usize..500,
        offloaded: bool,
    ) {
        let (mut whole, mut shown) = (History::new(), History::new());
        for (at, (kind, size)) in outputs.into_iter().enumerate() {
            let output = output(kind, size);
            let words = rendered(&output, Clip { bytes: keep_bytes, offloaded });
            whole.push(result(at, output)).unwrap();
            shown.push(result(at, ToolOutput::Content(words))).unwrap();
        }
        let results_to = EntryId::at(whole.len());
        let mut accountant = Accountant::default();
        accountant.follow(&shown);
        let cleared = Rewrite::Cleared { results_to, keep_bytes, strip_reasoning: false, offloaded };
        prop_assert_eq!(Accountant::default().would_be(&whole, &cleared), accountant.used());
    }

    /// Entry by entry, all at once, in a process that was started again: the count is one, and as long as nothing was
    /// reported since the last boundary it is the estimate of the whole.
    #[test]
    fn however_it_is_followed_the_count_is_the_same(all in prop::collection::vec(happening(), 1..50)) {
        let (mut running, mut log) = (Accountant::default(), History::new());
        let mut has_report = false;
        for given in all {
            let entry = entry(log.len(), given);
            let promised = match &entry {
                Entry::Boundary(rewrite) => Some(running.would_be(&log, rewrite)),
                Entry::User(_) | Entry::Note(_) | Entry::Step(_) => None,
            };
            let reported = match &entry {
                Entry::Step(step) => step.usage().total_input(),
                Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => 0,
            };
            if log.push(entry).is_err() {
                continue;
            }
            has_report = (has_report || reported > 0) && promised.is_none();
            let mut told_first = running.clone();
            running.follow(&log);
            running.report(reported, log.len() - 1);
            told_first.report(reported, log.len() - 1);
            told_first.follow(&log);
            let mut resumed = Accountant::default();
            resumed.resume(&log, Usage::total_input);
            prop_assert_eq!(running.used(), told_first.used(), "whatever comes first");
            prop_assert_eq!(running.used(), resumed.used());
            prop_assert_eq!(running.estimated(&log), resumed.estimated(&log));
            if !has_report {
                prop_assert_eq!(running.used(), running.estimated(&log));
            }
            prop_assert_eq!(running.used(), promised.unwrap_or(running.used()));
        }
    }
}
