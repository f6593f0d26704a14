//! What was sent once stays the same buffers; markers change no byte but their own.

use agent_core::{
    AssistantPart, BLOCK_BYTES, Body, CacheProfile, Entry, EntryId, History, Mark, MarkPoint, ModelProfile,
    ProviderPart, RawJson, Reasoning, Rendered, Rewrite, Seal, SystemBlock, Text, ToolOutput, Ttl,
};
use proptest::prelude::*;

use super::ask::{Ask, call, encoder, encoder_of, history, note, profile, step, talk, text, user, words};

/// Buffers of a body by address and length; two bodies that hold the same buffer show the same pair.
fn buffers(body: &Body) -> Vec<(usize, usize)> {
    body.buffers().map(|bytes| (bytes.as_ptr() as usize, bytes.len())).collect()
}

#[test]
fn the_next_body_holds_the_same_buffers() {
    let (mut encoder, ask) = (encoder(), Ask::default());
    let mut log = talk();
    // Long enough to fill a block.
    let long = |id: &str| {
        step(
            vec![words("then this"), call(id, "look", "{}")],
            vec![ToolOutput::text("x".repeat(BLOCK_BYTES))],
        )
    };
    log.push(long("long")).unwrap();
    let first = ask.encode(&mut *encoder, &log).request.body;
    log.push(long("longer")).unwrap();
    let second = ask.encode(&mut *encoder, &log).request.body;
    let (old, new) = (buffers(&first), buffers(&second));
    // The tail of the first body is its end of messages, its settings and its last word.
    let shared = old.len() - 3;
    assert_eq!(old[..shared], new[..shared]);
    assert!(new.len() > old.len());

    let marked = Ask {
        marks: vec![Mark { at: MarkPoint::Entry(EntryId::at(1)), ttl: Ttl::FiveMinutes }],
        ..Ask::default()
    };
    let third = buffers(&marked.encode(&mut *encoder, &log).request.body);
    let starts = |list: &[(usize, usize)]| list.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    let (second, third) = (starts(&new), starts(&third));
    assert!(
        second[..second.len() - 2].iter().all(|at| third.contains(at)),
        "a marker splits a buffer and copies none"
    );
}

#[test]
fn system_and_tools_are_encoded_again_only_when_they_change() {
    let mut encoder = encoder();
    let log = talk();
    let body = Ask::default().encode(&mut *encoder, &log).request.body;
    let again = Ask::default().encode(&mut *encoder, &log).request.body;
    assert_eq!(buffers(&body)[..3], buffers(&again)[..3], "equal lists, made anew, are the same buffers");
    let other = Ask { system: vec![SystemBlock::new("Be rude.").unwrap()], ..Ask::default() };
    let changed = text(&other.encode(&mut *encoder, &log).request.body);
    assert_eq!(changed, other.text(&log));
}

#[test]
fn a_long_conversation_costs_no_more_pieces_than_a_short_one() {
    // The parts of a body are what an encoder puts together on every call.
    let check = |turns: usize| {
        let mut log = History::new();
        for n in 0..turns {
            log.push(entry(3, n)).unwrap();
        }
        let marks = [turns / 2, turns - 1]
            .map(|at| Mark { at: MarkPoint::Entry(EntryId::at(at)), ttl: Ttl::FiveMinutes });
        let body = Ask { marks: marks.to_vec(), ..Ask::default() }.fresh(&log).request.body;
        assert_eq!(text(&body).matches("cache_control").count(), 2);
        let shown = format!("{body:?}");
        let parts = shown.split_once("parts: ").unwrap().1;
        parts.split_once(',').unwrap().0.parse::<usize>().unwrap()
    };
    // A marker may cut a block in two.
    let (short, long, longer) = (check(10), check(1_000), check(4_000));
    assert!(long <= short + 4 && longer <= short + 4, "{short} {long} {longer}");
}

#[test]
fn a_shorter_history_is_encoded_too() {
    let (mut encoder, ask) = (encoder(), Ask::default());
    let (long, short) = (talk(), history(talk().entries()[..2].to_vec()));
    for log in [&long, &short, &long] {
        assert_eq!(text(&ask.encode(&mut *encoder, log).request.body), ask.text(log));
    }
}

#[test]
fn markers_are_ordered_as_they_stand_in_the_body() {
    // The summary stands before the entry it keeps, although its boundary was logged later.
    let mut log = talk();
    let summary = Rewrite::Summary {
        text: Text::new("We looked.").unwrap(),
        kept_from: EntryId::at(3),
        strip_reasoning: false,
    };
    let boundary = log.push(Entry::Boundary(summary)).unwrap();
    let check = |summary: Ttl, kept: Ttl, notes: usize| {
        let marks = vec![
            Mark { at: MarkPoint::Entry(EntryId::at(3)), ttl: kept },
            Mark { at: MarkPoint::Entry(boundary), ttl: summary },
        ];
        let encoded = Ask { marks, ..Ask::bare() }.fresh(&log);
        assert_eq!(
            (text(&encoded.request.body).matches("cache_control").count(), encoded.diagnostics.len()),
            (2, notes)
        );
    };
    check(Ttl::OneHour, Ttl::FiveMinutes, 0);
    check(Ttl::FiveMinutes, Ttl::OneHour, 1);
}

/// These marks are sent as this many markers with this many notes.
#[track_caller]
fn check_marks(marks: &[(MarkPoint, Ttl)], markers: usize, notes: usize) {
    let marks = marks.iter().map(|(at, ttl)| Mark { at: *at, ttl: *ttl }).collect();
    let encoded = Ask { marks, ..Ask::default() }.fresh(&talk());
    let sent = text(&encoded.request.body);
    assert_eq!(
        (sent.matches("cache_control").count(), encoded.diagnostics.len()),
        (markers, notes),
        "{:?}",
        encoded.diagnostics
    );
}

#[test]
fn markers_are_counted_in_one_place() {
    use Ttl::{FiveMinutes as Short, OneHour as Long};
    let entry = |n| MarkPoint::Entry(EntryId::at(n));
    check_marks(&[], 0, 0);
    check_marks(
        &[(MarkPoint::Tools, Long), (MarkPoint::System(0), Long), (entry(0), Short), (entry(3), Short)],
        4,
        0,
    );
    check_marks(
        &[
            (entry(0), Short),
            (entry(1), Short),
            (entry(2), Short),
            (entry(3), Short),
            (MarkPoint::Tools, Short),
        ],
        4,
        1,
    );
    check_marks(&[(entry(0), Short), (entry(0), Long)], 1, 0);
    check_marks(&[(MarkPoint::Tools, Short), (entry(1), Long)], 2, 1);
    check_marks(&[(entry(99), Short)], 0, 1);
    let none = ModelProfile { cache: CacheProfile::None, ..profile("claude-sonnet-4-6") };
    let ask = Ask { marks: vec![Mark { at: MarkPoint::System(0), ttl: Short }], ..Ask::default() };
    let encoded = ask.encode(&mut *encoder_of(none), &talk());
    assert!(!text(&encoded.request.body).contains("cache_control") && encoded.diagnostics.len() == 1);
}

#[test]
fn a_marker_stands_behind_the_system_block_it_names() {
    let system: Vec<SystemBlock> =
        ["Be brief.", "Be kind.", "Be bold."].into_iter().filter_map(SystemBlock::new).collect();
    let marked = |blocks: &[usize]| {
        let marks = blocks.iter().map(|at| Mark { at: MarkPoint::System(*at), ttl: Ttl::FiveMinutes });
        let encoded = Ask { system: system.clone(), marks: marks.collect(), ..Ask::bare() }.fresh(&talk());
        let sent = text(&encoded.request.body);
        let list = sent.split_once(r#""system":["#).unwrap().1.split_once("],").unwrap().0.to_owned();
        (
            list.replace(r#"{"type":"text","text":"#, "")
                .replace(r#","cache_control":{"type":"ephemeral"}}"#, "^"),
            encoded.diagnostics,
        )
    };
    let check = |blocks: &[usize], expect: &str| assert_eq!(marked(blocks), (expect.to_owned(), vec![]));
    check(&[0], r#""Be brief."^,"Be kind."},"Be bold."}"#);
    check(&[1], r#""Be brief."},"Be kind."^,"Be bold."}"#);
    check(&[2, 0], r#""Be brief."^,"Be kind."},"Be bold."^"#);
    let (sent, told) = marked(&[3]);
    assert_eq!(sent, r#""Be brief."},"Be kind."},"Be bold."}"#);
    assert_eq!(told[0].why, "nothing to mark at System(3); the marker was dropped");
}

#[test]
fn no_marker_stands_on_thinking() {
    let seal = Seal::Redacted { provider: "anthropic".into(), data: "d".into() };
    let thought = AssistantPart::Reasoning(Reasoning { text: String::new(), seal: Some(seal) });
    let odd = ProviderPart {
        provider: "anthropic".into(),
        kind: "odd".into(),
        raw: RawJson::parse(r#"{"type":"odd"}"#).unwrap(),
    };
    let log = history(vec![
        user("go"),
        step(vec![words("hi"), thought, AssistantPart::Provider(odd)], vec![]),
        user("on"),
    ]);
    let ask = Ask {
        marks: vec![Mark { at: MarkPoint::Entry(EntryId::at(1)), ttl: Ttl::FiveMinutes }],
        ..Ask::bare()
    };
    let sent = ask.text(&log);
    assert!(sent.contains(r#"{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}"#), "{sent}");
}

fn entry(kind: u8, n: usize) -> Entry {
    match kind {
        0 => user(&format!("u{n} \u{1F600}")),
        1 => note(&format!("n{n}")),
        2 => step(vec![words(&format!("s{n}"))], vec![]),
        _ => step(
            vec![words(&format!("s{n}")), call(&format!("c{n}"), "look", &format!(r#"{{"n":{n}.0}}"#))],
            vec![ToolOutput::text(format!("r{n}"))],
        ),
    }
}

proptest! {
    /// Moving marks changes no other byte, and encoding twice, or with a used encoder, gives the same bytes.
    #[test]
    fn marks_change_no_other_byte(
        kinds in proptest::collection::vec(0u8..4, 1..12),
        marked in proptest::collection::vec((0usize..12, any::<bool>()), 0..7),
        head in proptest::option::of(0usize..2),
    ) {
        let log = history(kinds.iter().enumerate().map(|(n, kind)| entry(*kind, n)).collect());
        let mut marks: Vec<Mark> = marked
            .into_iter()
            .map(|(n, long)| Mark {
                at: MarkPoint::Entry(EntryId::at(n)),
                ttl: if long { Ttl::OneHour } else { Ttl::FiveMinutes },
            })
            .collect();
        if let Some(block) = head {
            marks.insert(0, Mark { at: MarkPoint::System(block), ttl: Ttl::OneHour });
            marks.insert(0, Mark { at: MarkPoint::Tools, ttl: Ttl::OneHour });
        }
        let mut used = encoder();
        let plain = text(&Ask::default().encode(&mut *used, &log).request.body);
        let ask = Ask { marks, ..Ask::default() };
        let with = text(&ask.encode(&mut *used, &log).request.body);
        prop_assert!(with.matches("cache_control").count() <= 4);
        prop_assert_eq!(&with, &ask.text(&log));
        let without = with
            .replace(r#","cache_control":{"type":"ephemeral"}"#, "")
            .replace(r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#, "");
        prop_assert_eq!(without, plain);
    }

    /// With boundaries in it, a conversation that grew entry by entry has the bytes of one that is encoded at once, and
    /// words to go on where its view has them.
    #[test]
    fn growing_gives_the_bytes_of_starting_anew(kinds in proptest::collection::vec((0u8..6, 0usize..3), 1..40)) {
        let (mut used, mut log) = (encoder(), History::new());
        for (n, (kind, back)) in kinds.into_iter().enumerate() {
            let end = log.len();
            let reach = EntryId::at(end.saturating_sub(back));
            let text_of = || Text::new(format!("sum{n}")).unwrap();
            let _refused = log.push(match kind {
                4 => Entry::Boundary(Rewrite::Summary { text: text_of(), kept_from: reach, strip_reasoning: back > 0 }),
                5 => Entry::Boundary(Rewrite::Cleared { results_to: reach, keep_bytes: 1, strip_reasoning: false, offloaded: false }),
                kind => entry(kind, n),
            });
            let mark = Mark { at: MarkPoint::Entry(EntryId::at(end.saturating_sub(1))), ttl: Ttl::FiveMinutes };
            let marked = Ask { marks: vec![mark], ..Ask::bare() };
            prop_assert_eq!(text(&marked.encode(&mut *used, &log).request.body), marked.text(&log));
            let body = Ask::bare().encode(&mut *used, &log).request.body;
            let sent = text(&body);
            prop_assert_eq!(&sent, &Ask::bare().text(&log));
            let continues = log.view().rendered().any(|piece| matches!(piece, Rendered::Continue));
            prop_assert_eq!(sent.contains(r#""Continue.""#), continues);
        }
    }

    /// The body of a step is the beginning of the next one's, up to the end of its last entry.
    #[test]
    fn a_body_is_a_prefix_of_the_next(kinds in proptest::collection::vec(0u8..4, 2..14)) {
        let (mut encoder, ask) = (encoder(), Ask { reminders: vec![], ..Ask::default() });
        let mut log = History::new();
        let mut before: Option<String> = None;
        for (n, kind) in kinds.iter().enumerate() {
            log.push(entry(*kind, n)).unwrap();
            let body = text(&ask.encode(&mut *encoder, &log).request.body);
            let (prefix, _) = body.rsplit_once("]}],\"max_tokens\"").unwrap();
            if let Some(before) = before {
                prop_assert!(body.starts_with(&before), "{before}\n{body}");
            }
            before = Some(prefix.to_owned());
        }
    }
}
