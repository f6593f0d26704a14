//! Reading a stream of small events: its frames and its text, beside a parser of the grammar and a floor by hand.
//!
//! `cargo bench -p agent-providers --bench sse`; `cargo xtask bench sse` puts it on a page.

#![expect(clippy::expect_used, reason = "a bench has nobody to hand an error to")]

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write as _;

use agent_core::ModelEvent;
use agent_providers::{SseFrames, StreamDecoder, ToolNames, WireFormat};
use bytes::Bytes;
use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use eventsource_stream::Eventsource;
use futures_util::{FutureExt, StreamExt};

fn main() {
    divan::main();
}

/// How a network may cut the stream; 0 is at each event.
const CUTS: [(&str, usize); 4] =
    [("1 event", 0), ("1400 B", 1_400), ("16 KiB", 16 << 10), ("256 KiB", 256 << 10)];
const NAMES: [&str; 4] = ["1 event", "1400 B", "16 KiB", "256 KiB"];

/// Down to the data of each event.
#[divan::bench_group(sample_count = 20, sample_size = 1)]
mod split {
    use super::*;

    #[divan::bench(args = NAMES)]
    fn our_frames(bencher: Bencher<'_, '_>, cut: &str) {
        measure(bencher, cut, |chunks| {
            let mut frames = SseFrames::default();
            let whole = |chunk: &Bytes| {
                frames.push(chunk).into_iter().map(|frame| frame.expect("a frame").data.len())
            };
            chunks.iter().flat_map(whole).sum()
        });
    }

    #[divan::bench(args = NAMES)]
    fn eventsource_stream(bencher: Bencher<'_, '_>, cut: &str) {
        measure(bencher, cut, |chunks| {
            let chunks = chunks.iter().cloned().map(Ok::<_, Infallible>);
            let sizes = futures_util::stream::iter(chunks)
                .eventsource()
                .map(|event| event.expect("an event").data.len());
            sizes.fold(0, async |all, size| all + size).now_or_never().expect("all is there")
        });
    }

    #[divan::bench(args = NAMES)]
    fn floor(bencher: Bencher<'_, '_>, cut: &str) {
        measure(bencher, cut, |chunks| {
            let mut size = 0;
            by_hand(chunks, |data| size += data.len());
            size
        });
    }
}

/// Down to the words and the input of the call.
#[divan::bench_group(sample_count = 20, sample_size = 1)]
mod text {
    use super::*;

    #[divan::bench(args = NAMES)]
    fn our_decoder(bencher: Bencher<'_, '_>, cut: &str) {
        measure(bencher, cut, |chunks| {
            let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
            let (mut text, mut input) = (String::new(), String::new());
            for event in chunks.iter().flat_map(|chunk| decoder.push(chunk)) {
                let event = event.expect("an event");
                if let ModelEvent::TextDelta { text: piece, .. } = &event {
                    text.push_str(piece);
                } else if let ModelEvent::ToolInputDelta { json, .. } = &event {
                    input.push_str(json);
                }
            }
            text.len() + input.len()
        });
    }

    #[divan::bench(args = NAMES)]
    fn floor(bencher: Bencher<'_, '_>, cut: &str) {
        measure(bencher, cut, |chunks| {
            let (mut text, mut input) = (String::new(), String::new());
            by_hand(chunks, |data| {
                let event: Event<'_> = serde_json::from_slice(data).expect("JSON");
                let delta = event.delta.unwrap_or_default();
                text.push_str(&delta.text.unwrap_or_default());
                input.push_str(&delta.partial_json.unwrap_or_default());
            });
            text.len() + input.len()
        });
    }
}

/// Runs a reader over the stream, which must find something in it.
fn measure(bencher: Bencher<'_, '_>, cut: &str, read: impl Fn(&[Bytes]) -> usize) {
    let (events, size) = (events(), CUTS.iter().find(|(name, _)| *name == cut).map_or(0, |(_, size)| *size));
    let whole: Bytes = events.concat().into();
    let bytes = whole.len();
    let chunks: Vec<Bytes> = match size {
        0 => events.iter().cloned().map(Bytes::from).collect(),
        size => whole.chunks(size).map(Bytes::copy_from_slice).collect(),
    };
    let count = events.len();
    assert!(read(&chunks) > EVENTS, "the reader found nothing");
    bencher
        .counter(BytesCount::new(bytes))
        .counter(ItemsCount::new(count))
        .bench_local(|| read(divan::black_box(&chunks)));
}

/// One answer: words, then a call's input in pieces, with an escape and a ping here and there.
fn events() -> Vec<String> {
    let event = |name: &str, data: &str| format!("event: {name}\ndata: {data}\n\n");
    let delta = |index: u32, delta: &str| {
        event(
            "content_block_delta",
            &format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#),
        )
    };
    let start = |index: u32, block: &str| {
        event(
            "content_block_start",
            &format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#),
        )
    };
    let stop = |index: u32| {
        event("content_block_stop", &format!(r#"{{"type":"content_block_stop","index":{index}}}"#))
    };
    let mut events = vec![
        event(
            "message_start",
            r#"{"type":"message_start","message":{"id":"msg_1","model":"m","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#,
        ),
        start(0, r#"{"type":"text","text":""}"#),
    ];
    let mut words = String::new();
    for number in 0..EVENTS {
        words.clear();
        let escape = if number % 20 == 0 { r"\n\u00e9" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(words, r#"{{"type":"text_delta","text":" gauge {number} steady{escape}"}}"#);
        events.push(delta(0, &words));
        if number % 40 == 0 {
            events.push(event("ping", r#"{"type":"ping"}"#));
        }
    }
    events.push(stop(0));
    events.push(start(1, r#"{"type":"tool_use","id":"toolu_1","name":"look","input":{}}"#));
    events.push(delta(1, r#"{"type":"input_json_delta","partial_json":"{\"rows\":[0"}"#));
    for number in 0..EVENTS / 4 {
        events.push(delta(1, &format!(r#"{{"type":"input_json_delta","partial_json":", {number}"}}"#)));
    }
    events.push(delta(1, r#"{"type":"input_json_delta","partial_json":"]}"}"#));
    events.push(stop(1));
    events.push(event(
        "message_delta",
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}"#,
    ));
    events.push(event("message_stop", r#"{"type":"message_stop"}"#));
    events
}

/// Words of the answer; with the rest about a megabyte.
const EVENTS: usize = 6_000;

/// Only what is used, flat and borrowed.
#[derive(serde::Deserialize)]
struct Event<'e> {
    #[serde(borrow)]
    delta: Option<Delta<'e>>,
}

#[derive(Default, serde::Deserialize)]
struct Delta<'e> {
    #[serde(borrow)]
    text: Option<Cow<'e, str>>,
    #[serde(borrow)]
    partial_json: Option<Cow<'e, str>>,
}

/// The data lines, without a copy where they lie in one chunk.
fn by_hand(chunks: &[Bytes], mut on_data: impl FnMut(&[u8])) {
    let mut left = Vec::new();
    for chunk in chunks {
        let mut rest: &[u8] = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, others) = rest.split_at(end);
            rest = others.get(1..).unwrap_or_default();
            if left.is_empty() {
                line.strip_prefix(b"data: ").into_iter().for_each(&mut on_data);
            } else {
                left.extend_from_slice(line);
                left.strip_prefix(b"data: ".as_slice()).into_iter().for_each(&mut on_data);
                left.clear();
            }
        }
        left.extend_from_slice(rest);
    }
}
