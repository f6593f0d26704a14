//! The events of an answer as they are written, read leniently.

use agent_core::ModelError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::item::Slot;
use crate::classify::protocol;
use crate::wire::json::{Loose, LooseInt, object};

#[derive(Deserialize)]
pub(super) struct WireEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(default)]
    pub(super) sequence_number: LooseInt,
    #[serde(default)]
    pub(super) output_index: LooseInt,
    #[serde(default)]
    pub(super) content_index: LooseInt,
    #[serde(default)]
    pub(super) summary_index: LooseInt,
    #[serde(borrow, default)]
    pub(super) response: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) annotation: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireResponse<'a> {
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) model: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) status: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) incomplete_details: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
pub(super) struct WireReason<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Loose<'a>,
}

/// Tells an event that came twice by its number.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<(u64, String)>,
    /// Whether numbers were seen to grow: some gateways give every event the same one.
    counted: bool,
}

impl Repeats {
    /// Whether an event is the one before once more.
    pub(super) fn again(&mut self, number: LooseInt, text: &str) -> bool {
        let Some(number) = number.0 else { return false };
        let (last, before) =
            self.last.as_ref().map_or((number, ""), |(last, before)| (*last, before.as_str()));
        if self.counted && last == number && before == text {
            return true;
        }
        self.counted |= number > last;
        self.last = Some((number, text.to_owned()));
        false
    }
}

impl<'a> WireEvent<'a> {
    /// The response that the event tells of.
    pub(super) fn response(&self, whole: &str) -> Result<WireResponse<'a>, ModelError> {
        match self.response {
            Some(raw) => response(raw.get()),
            None => Err(protocol("an event of the answer says nothing of it", whole)),
        }
    }

    /// Which part of its item the event is about.
    pub(super) fn at(&self, slot: Slot) -> u64 {
        match slot {
            Slot::Text | Slot::Refusal | Slot::Thought => self.content_index.0.unwrap_or(0),
            Slot::Summary => self.summary_index.0.unwrap_or(0),
            Slot::Input => 0,
        }
    }
}

/// Where the text of an event belongs; `None` for events without one.
pub(super) fn slot(kind: &str) -> Option<Slot> {
    let (what, phase) = kind.rsplit_once('.')?;
    if !matches!(phase, "delta" | "done") {
        return None;
    }
    match what {
        "response.output_text" => Some(Slot::Text),
        "response.refusal" => Some(Slot::Refusal),
        "response.reasoning_summary_text" | "response.reasoning_summary" => Some(Slot::Summary),
        "response.reasoning_text" | "response.reasoning" => Some(Slot::Thought),
        "response.function_call_arguments" => Some(Slot::Input),
        _ => None,
    }
}

pub(super) fn response(text: &str) -> Result<WireResponse<'_>, ModelError> {
    object(text).map_err(|_| protocol("the response is no object", text))
}

pub(super) fn read<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> T {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_told_again_by_a_number_that_counts() {
        let check = |events: &[(Option<u64>, &str)], expect: &[bool]| {
            let mut repeats = Repeats::default();
            let seen = events.iter().map(|(number, text)| repeats.again(LooseInt(*number), text));
            assert_eq!(seen.collect::<Vec<_>>(), expect, "{events:?}");
        };
        let (one, two) = (Some(1), Some(2));
        check(
            &[(one, "a"), (two, "b"), (two, "b"), (two, "b"), (Some(3), "b")],
            &[false, false, true, true, false],
        );
        check(&[(one, "a"), (two, "b"), (two, "c")], &[false; 3]);
        // A gateway that numbers all events alike, or none, may well say "ha" twice.
        check(&[(Some(0), "ha"), (Some(0), "ha"), (Some(0), "ha")], &[false; 3]);
        check(&[(None, "ha"), (None, "ha")], &[false; 2]);
    }
}
