//! Frames of a stream are the same wherever its bytes are cut (requirement M8).

use agent_providers::{Frame, SseError, SseFrames};

use super::fixtures;

fn frames(chunks: &[&[u8]]) -> Vec<Result<Frame, SseError>> {
    let mut sse = SseFrames::default();
    let mut out: Vec<_> = chunks.iter().flat_map(|chunk| sse.push(chunk)).collect();
    out.extend(sse.finish());
    out
}

#[test]
fn frames_survive_a_cut_at_every_byte() {
    for fixture in fixtures().iter().filter(|fixture| fixture.name.ends_with(".sse")) {
        let (name, bytes) = (&fixture.name, &fixture.bytes);
        let whole = frames(&[bytes.as_slice()]);
        for at in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(at);
            assert_eq!(frames(&[head, tail]), whole, "{name} cut at {at}");
        }
        assert_eq!(frames(&bytes.chunks(1).collect::<Vec<_>>()), whole, "{name} byte by byte");
    }
}
