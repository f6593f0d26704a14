//! Answers: what stands beside each fixture, however its bytes are cut, and no finish that was not said.

use agent_core::{ModelError, ModelEvent};
use agent_providers::{
    Decoded, Dialect, ResponseHead, StreamDecoder, ToolNames, WireFormat, decode_response,
};
use proptest::prelude::*;

use super::{Fixture, fixtures};
use crate::support::printed;

type Items = Vec<Result<ModelEvent, ModelError>>;

#[test]
fn fixtures_decode_as_expected() {
    for Fixture { format, name, bytes, expect } in fixtures() {
        let decoded = decode_response(&(*format).into(), &[bytes], &ResponseHead::unknown());
        assert_eq!(&printed(&decoded), expect, "{name}");
    }
}

/// What only the provider understands is tagged as the dialect says, or it would not go back to a gateway under
/// another name.
#[test]
fn parts_carry_the_tag_of_their_dialect() {
    let mut tagged = std::collections::BTreeSet::new();
    for Fixture { format, name, bytes, .. } in fixtures() {
        let dialect = Dialect { provider: "our-house".into(), ..(*format).into() };
        let mut decoder = StreamDecoder::new(&dialect, ToolNames::default());
        let events = [decoder.push(bytes), decoder.finish()].concat();
        for event in events.into_iter().flatten() {
            let ModelEvent::Part(part) = event else { continue };
            let part = serde_json::to_string(&part).unwrap();
            assert!(!part.contains(&format!(r#""provider":"{}""#, format.as_str())), "{name}: {part}");
            if part.contains(r#""provider":"our-house""#) {
                tagged.insert(format.as_str());
            }
        }
    }
    assert_eq!(tagged.len(), WireFormat::ALL.len(), "only {tagged:?} have such parts");
}

/// The answer in these pieces: what the pieces gave, what the end gave, and whether it is a whole one.
fn played(format: WireFormat, pieces: &[&[u8]]) -> (Items, Items, bool) {
    let mut decoder = StreamDecoder::new(&format.into(), ToolNames::default());
    let arrived = pieces.iter().flat_map(|piece| decoder.push(piece)).collect();
    let end = decoder.finish();
    (arrived, end, decoder.is_complete())
}

fn all(format: WireFormat, pieces: &[&[u8]]) -> Items {
    let (mut arrived, end, _) = played(format, pieces);
    arrived.extend(end);
    arrived
}

fn finish(items: &Items) -> Option<&ModelEvent> {
    items.iter().flatten().find(|event| matches!(event, ModelEvent::Finish(_)))
}

fn said(items: &Items) -> (String, String, String) {
    let mut decoded = Decoded::default();
    items.iter().for_each(|item| decoded.take(item.clone()));
    (decoded.text, decoded.reasoning, format!("{:?}", decoded.calls))
}

/// Around each line's end, where frames meet.
fn borders(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let ends = (1..bytes.len()).filter(|at| matches!(bytes[at - 1], b'\n' | b'\r'));
    ends.flat_map(|at| at.saturating_sub(2)..=(at + 2).min(bytes.len()))
}

#[test]
fn answers_survive_a_cut_near_every_frame_border() {
    for Fixture { format, name, bytes, .. } in fixtures() {
        let whole = all(*format, &[bytes]);
        for at in borders(bytes) {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(all(*format, &[head, tail]), whole, "{name} cut at {at}");
        }
        assert_eq!(all(*format, &bytes.chunks(1).collect::<Vec<_>>()), whole, "{name} byte by byte");
    }
}

/// What says that an answer of the format is whole; without any of it, none may be taken for one (requirement M8).
fn terminal(format: &str) -> &'static [&'static str] {
    match format {
        "anthropic" => &["message_stop"],
        // A reason to finish and then the end is a whole answer too: gateways leave the last line out.
        "openai-chat" => &["[DONE]", "finish_reason\":\"", "finish_reason\": \""],
        "openai-responses" => &["response.completed", "response.incomplete"],
        "gemini" => &["finishReason", "blockReason"],
        "ollama" => &["\"done\":true", "\"done\": true"],
        other => panic!("say how an answer of {other} ends"),
    }
}

/// An answer that ends at `at` gives a beginning of what the whole one gives, and a finish only with its cause.
#[track_caller]
fn check_cut(fixture: &Fixture, whole: &Items, at: usize) {
    let Fixture { format, name, bytes, .. } = fixture;
    let head = &bytes[..at];
    let (arrived, end, is_complete) = played(*format, &[head]);
    assert_eq!(whole.get(..arrived.len()), Some(&arrived[..]), "{name} ended at {at}: no beginning");
    let mut items = arrived;
    items.extend(end);
    let finished = finish(&items);
    assert_eq!(finished.is_some(), is_complete, "{name} ended at {at}");
    let errors = items.iter().filter(|item| item.is_err()).count();
    assert_eq!(errors, usize::from(!is_complete), "{name} ended at {at}: one of finish and error");
    assert!(
        items.last().is_some_and(|last| last.is_err() || matches!(last, Ok(ModelEvent::Finish(_)))),
        "{name} ended at {at}: something follows the end"
    );
    if finished.is_some() {
        assert_eq!((said(&items), finished), (said(whole), finish(whole)), "{name} ended at {at}");
        let text = String::from_utf8_lossy(head);
        let is_said =
            fixture.is_streamed() && terminal(format.as_str()).iter().any(|word| text.contains(word));
        assert!(is_said || !fixture.is_streamed(), "{name} ended at {at}: a finish nobody said");
    }
}

#[test]
fn an_answer_that_ends_early_is_never_a_whole_one() {
    for fixture in fixtures() {
        let whole = all(fixture.format, &[&fixture.bytes]);
        if fixture.is_streamed() {
            borders(&fixture.bytes).for_each(|at| check_cut(fixture, &whole, at));
        } else {
            (0..=fixture.bytes.len()).for_each(|at| check_cut(fixture, &whole, at));
        }
        check_cut(fixture, &whole, fixture.bytes.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any way to cut an answer into pieces gives the same events.
    #[test]
    fn any_pieces_give_the_same_events(
        which in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let Fixture { format, bytes, .. } = which.get(fixtures());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for at in cuts.into_iter().chain([bytes.len()]) {
            pieces.push(&bytes[from..at]);
            from = at;
        }
        prop_assert_eq!(all(*format, &pieces), all(*format, &[bytes]));
    }

    /// No bytes make a decoder panic, the way they are cut changes nothing, and the end is said once.
    #[test]
    fn noise_is_answered_with_an_error(
        which in any::<prop::sample::Index>(),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        keep in any::<bool>(),
        size in 1usize..9,
    ) {
        let Fixture { format, bytes, .. } = which.get(fixtures());
        let at = at.index(bytes.len() + 1);
        let rest = if keep { &bytes[at..] } else { &bytes[(at + noise.len()).min(bytes.len())..] };
        let noisy = [&bytes[..at], &noise, rest].concat();
        let items = all(*format, &[&noisy]);
        let pieces: Vec<&[u8]> = noisy.chunks(size).collect();
        prop_assert_eq!(&all(*format, &pieces), &items);
        let ends = items.iter().filter(|item| item.is_err() || matches!(item, Ok(ModelEvent::Finish(_)))).count();
        prop_assert_eq!(ends, 1, "{:?}", items);
    }
}
