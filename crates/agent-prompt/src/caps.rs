//! How much of a prompt one fragment and one layer may fill, and what is said of what was cut.

use std::collections::BTreeMap;

use agent_core::{Layer, floor_boundary};
use serde::{Deserialize, Serialize};

use crate::source::Source;

/// Bytes of one fragment when nothing else is set: 32 KiB.
pub const FRAGMENT_BYTES: usize = 32 * 1024;
/// Bytes of all fragments of one layer when nothing else is set: 64 KiB.
pub const LAYER_BYTES: usize = 64 * 1024;

/// How many bytes of words may be sent. Headings and the note of a cut come in addition.
///
/// [`Layer::Managed`] is never cut, because a rule cut in half is a weakened rule; when it is over a limit a diagnostic
/// says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Caps::default()")]
pub struct Caps {
    /// Of one fragment.
    pub fragment_bytes: usize,
    /// Of all fragments of a layer together; the ones of higher rank are served first.
    pub layer_bytes: usize,
    /// Of all fragments of a layer together, for layers that differ.
    pub of_layer: BTreeMap<Layer, usize>,
}

/// What was cut off a fragment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Cut {
    /// Bytes of the words that were kept.
    pub kept_bytes: usize,
    /// Bytes that were left out.
    pub left_out_bytes: usize,
    /// The limit that was met, in bytes.
    pub limit_bytes: usize,
    /// Whose limit it is.
    pub limit_of: LimitOf,
}

/// Whose limit was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LimitOf {
    /// [`Caps::fragment_bytes`].
    Fragment,
    /// The layer's.
    Layer,
}

impl Default for Caps {
    fn default() -> Self {
        Self { fragment_bytes: FRAGMENT_BYTES, layer_bytes: LAYER_BYTES, of_layer: BTreeMap::new() }
    }
}

impl Caps {
    /// Bytes of all fragments of `layer` together.
    pub fn layer(&self, layer: Layer) -> usize {
        self.of_layer.get(&layer).copied().unwrap_or(self.layer_bytes)
    }
}

/// What is left for the fragments of one layer.
#[derive(Debug)]
pub(crate) struct Budget<'c> {
    caps: &'c Caps,
    layer: Layer,
    left: usize,
}

impl<'c> Budget<'c> {
    pub(crate) fn new(caps: &'c Caps, layer: Layer) -> Self {
        Self { caps, layer, left: caps.layer(layer) }
    }

    /// Takes the bytes of `text` out of the budget; what does not fit is cut off between two characters.
    pub(crate) fn take(&mut self, text: &str) -> Option<Cut> {
        let limit = self.caps.fragment_bytes.min(self.left);
        let kept = floor_boundary(text, limit);
        self.left -= kept;
        let by_fragment = limit == self.caps.fragment_bytes;
        (kept < text.len()).then(|| Cut {
            kept_bytes: kept,
            left_out_bytes: text.len() - kept,
            limit_bytes: if by_fragment { limit } else { self.caps.layer(self.layer) },
            limit_of: if by_fragment { LimitOf::Fragment } else { LimitOf::Layer },
        })
    }
}

impl Cut {
    /// The words that were kept, and a line that says what is missing.
    pub(crate) fn apply(&self, text: &str, note: &str) -> String {
        let kept = text.get(..self.kept_bytes).unwrap_or_default();
        if kept.trim().is_empty() { note.to_owned() } else { format!("{kept}\n{note}") }
    }

    /// The line that tells the model and the user.
    pub(crate) fn note(&self, key: &str, layer: Layer, source: &Source) -> String {
        let name = match source {
            Source::Code | Source::Stored => key,
            Source::Config(name) | Source::File(name) | Source::Database(name) => name,
        };
        let total = self.kept_bytes + self.left_out_bytes;
        let limit = match self.limit_of {
            LimitOf::Fragment => format!("one text may have {} bytes", self.limit_bytes),
            LimitOf::Layer => format!("the {layer} layer may have {} bytes in all", self.limit_bytes),
        };
        format!("[{name}: {} of {total} bytes left out here; {limit}]", self.left_out_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fragment_bytes: usize, layer_bytes: usize, texts: &[&str], expect: &[&str]) {
        let caps = Caps { fragment_bytes, layer_bytes, of_layer: BTreeMap::new() };
        let mut budget = Budget::new(&caps, Layer::Project);
        let file = Source::File("A.md".into());
        let cut = |text: &&str| match budget.take(text) {
            Some(cut) => cut.apply(text, &cut.note("k", Layer::Project, &file)),
            None => (*text).to_owned(),
        };
        let got: Vec<_> = texts.iter().map(cut).collect();
        assert_eq!(got, expect);
    }

    #[test]
    fn limits() {
        check(5, 100, &["12345"], &["12345"]);
        check(4, 100, &["12345"], &["1234\n[A.md: 1 of 5 bytes left out here; one text may have 4 bytes]"]);
        // A character of two bytes is kept whole or not at all.
        check(2, 100, &["aéb"], &["a\n[A.md: 3 of 4 bytes left out here; one text may have 2 bytes]"]);
        check(
            5,
            7,
            &["12345", "123", "1"],
            &[
                "12345",
                "12\n[A.md: 1 of 3 bytes left out here; the project layer may have 7 bytes in all]",
                "[A.md: 1 of 1 bytes left out here; the project layer may have 7 bytes in all]",
            ],
        );
        check(0, 7, &["x"], &["[A.md: 1 of 1 bytes left out here; one text may have 0 bytes]"]);
    }
}
