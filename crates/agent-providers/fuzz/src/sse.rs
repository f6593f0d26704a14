//! The frame layer: any chunking gives the same frames, and an error is the last thing given.

use agent_providers::{DEFAULT_EVENT_LIMIT, Frame, SseError, SseFrames};

use crate::cuts::{cuts, seed};

/// Checks the frames of the bytes, with the usual limit and with a small one.
pub fn check(data: &[u8]) {
    for limit in [DEFAULT_EVENT_LIMIT, 8 + (seed(data) % 200) as usize] {
        let whole = frames(limit, &[data]);
        let errors = whole.iter().filter(|frame| frame.is_err()).count();
        assert!(errors == 0 || (errors == 1 && whole.last().is_some_and(Result::is_err)), "{whole:?}");
        for pieces in cuts(data) {
            assert_eq!(frames(limit, &pieces), whole, "another chunking gave other frames");
        }
    }
}

fn frames(limit: usize, chunks: &[&[u8]]) -> Vec<Result<Frame, SseError>> {
    let mut sse = SseFrames::with_limit(limit);
    let mut out: Vec<_> = chunks.iter().flat_map(|chunk| sse.push(chunk)).collect();
    out.extend(sse.finish());
    if out.last().is_some_and(Result::is_err) {
        assert!(sse.push(b"data: late\n\n").is_empty() && sse.finish().is_empty(), "frames after an error");
    }
    out
}
