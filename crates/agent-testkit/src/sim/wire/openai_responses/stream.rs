//! A response as its events, numbered in order.

use bytes::Bytes;

use super::items::{Item, Kind, summary_part, text_part};
use super::{Answer, usage};
use crate::pieces::pieces;
use crate::quote::quote;
use crate::sim::wire::named;

pub(super) fn events(answer: &Answer<'_>, delta_bytes: usize) -> Vec<Bytes> {
    let mut out = Told { events: Vec::new(), delta_bytes };
    let begun = format!(r#""response":{}"#, answer.envelope("in_progress", "", "null"));
    out.tell("response.created", &begun);
    out.tell("response.in_progress", &begun);
    for (index, item) in answer.items.iter().enumerate() {
        out.item(index, item);
    }
    let status = answer.status();
    let whole = answer.envelope(status, &answer.output(), &usage(answer.message));
    out.tell(&format!("response.{status}"), &format!(r#""response":{whole}"#));
    out.events
}

struct Told {
    events: Vec<Bytes>,
    delta_bytes: usize,
}

impl Told {
    /// Adds an event; its number is its position.
    fn tell(&mut self, kind: &str, fields: &str) {
        let number = self.events.len();
        self.events.push(named(kind, &format!(r#"{{"type":"{kind}","sequence_number":{number},{fields}}}"#)));
    }

    fn item(&mut self, index: usize, item: &Item<'_>) {
        self.tell(
            "response.output_item.added",
            &format!(r#""output_index":{index},"item":{}"#, item.begun()),
        );
        let place = format!(r#""item_id":{},"output_index":{index}"#, quote(&item.id));
        match &item.kind {
            Kind::Reasoning { text, .. } => {
                let place = format!(r#"{place},"summary_index":0"#);
                self.part(
                    "response.reasoning_summary_part",
                    "response.reasoning_summary_text",
                    "",
                    (&place, text),
                );
            }
            Kind::Words(text) => {
                let place = format!(r#"{place},"content_index":0"#);
                let more = r#","logprobs":[]"#;
                self.part("response.content_part", "response.output_text", more, (&place, text));
            }
            Kind::Call { input, .. } => {
                let kind = "response.function_call_arguments";
                self.deltas(kind, &place, "", input);
                self.tell(&format!("{kind}.done"), &format!(r#"{place},"arguments":{}"#, quote(input)));
            }
        }
        self.tell("response.output_item.done", &format!(r#""output_index":{index},"item":{}"#, item.whole()));
    }

    /// The one part of an item, with its words in deltas.
    fn part(&mut self, part: &str, kind: &str, more: &str, (place, text): (&str, &str)) {
        let json = if part.ends_with("summary_part") { summary_part } else { text_part };
        self.tell(&format!("{part}.added"), &format!(r#"{place},"part":{}"#, json("")));
        self.deltas(kind, place, more, text);
        self.tell(&format!("{kind}.done"), &format!(r#"{place},"text":{}{more}"#, quote(text)));
        self.tell(&format!("{part}.done"), &format!(r#"{place},"part":{}"#, json(text)));
    }

    fn deltas(&mut self, kind: &str, place: &str, more: &str, text: &str) {
        for piece in pieces(text, self.delta_bytes) {
            self.tell(&format!("{kind}.delta"), &format!(r#"{place},"delta":{}{more}"#, quote(piece)));
        }
    }
}
