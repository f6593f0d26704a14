//! Bytes cut anywhere give the same answer (requirement M8).

use agent_providers::{Frame, ResponseHead, SseError, SseFrames, WireFormat, decode_response};

use crate::support::{decode, fixtures, printed};

fn frames(chunks: &[&[u8]]) -> Vec<Result<Frame, SseError>> {
    let mut sse = SseFrames::default();
    let mut out: Vec<_> = chunks.iter().flat_map(|chunk| sse.push(chunk)).collect();
    out.extend(sse.finish());
    out
}

#[test]
fn frames_survive_a_cut_at_every_byte() {
    for (name, bytes) in fixtures(".sse") {
        let whole = frames(&[&bytes]);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(frames(&[head, tail]), whole, "{name} cut at {at}");
        }
        assert_eq!(frames(&bytes.chunks(1).collect::<Vec<_>>()), whole, "{name} byte by byte");
    }
}

#[test]
fn answers_survive_a_cut_near_every_frame_border() {
    for (name, bytes) in fixtures(".sse") {
        let whole = printed(&decode(&bytes));
        let borders = (1..bytes.len()).filter(|at| matches!(bytes[at - 1], b'\n' | b'\r'));
        let cuts = borders.flat_map(|at| at.saturating_sub(2)..=(at + 2).min(bytes.len()));
        for at in cuts {
            let (head, tail) = bytes.split_at(at);
            let cut = decode_response(&WireFormat::Anthropic.into(), &[head, tail], &ResponseHead::unknown());
            assert_eq!(printed(&cut), whole, "{name} cut at {at}");
        }
    }
}

proptest::proptest! {
    /// No bytes make the decoder panic, and the way they are cut changes nothing.
    #[test]
    fn noise_is_answered_with_an_error(
        noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
        at in 0usize..200,
        size in 1usize..9,
    ) {
        let (_, fixture) = &fixtures(".sse")[3];
        let at = at.min(fixture.len());
        let mut bytes = fixture[..at].to_vec();
        bytes.extend(&noise);
        bytes.extend(&fixture[at..]);
        let head = ResponseHead { headers: &[("content-type".into(), "text/event-stream".into())], ..ResponseHead::unknown() };
        let whole = decode_response(&WireFormat::Anthropic.into(), &[&bytes], &head);
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        // The count of bytes read so far is part of an interruption's message.
        let strip = |decoded: &agent_providers::Decoded| {
            let kind = decoded.error.as_ref().map(|error| error.kind);
            (decoded.text.clone(), decoded.calls.clone(), decoded.finish.clone(), kind)
        };
        proptest::prop_assert_eq!(strip(&decode_response(&WireFormat::Anthropic.into(), &pieces, &head)), strip(&whole));
    }
}
