//! The messages of a session, joined once: what the next request adds is all the work it costs (requirement M5).

use std::collections::BTreeMap;

use agent_core::{Body, Entry, EntryId, HistoryView, Rendered, SharedBuffers, Trim, Ttl};
use bytes::Bytes;

use super::form::{Cx, Form, Run};
use super::marks::{Splice, Unmarkable};

/// What was rendered so far, as a list of buffers that bodies share.
#[derive(Debug)]
pub(super) struct Joined<F: Form> {
    /// Glue and blocks of every piece shown, up to the end of the last block.
    buffers: SharedBuffers,
    /// Invariant: the summary first, then entries by rising id.
    places: Vec<Place>,
    has_summary: bool,
    last: Option<F::Role>,
    /// How many entries of the history are taken in.
    entries: usize,
    segments: BTreeMap<Key, Remembered<F::Role>>,
    round: u64,
}

/// What a segment is remembered under; the history only grows, so equal keys are equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Entry(EntryId, Trim),
    Summary(EntryId),
}

#[derive(Debug)]
struct Remembered<R> {
    /// Invariant: neighbours differ in role, where the format joins those of one role.
    runs: Vec<Run<R>>,
    /// The last round that used it.
    used: u64,
}

#[derive(Debug)]
struct Place {
    entry: EntryId,
    splice: Option<Splice>,
}

impl<F: Form> Default for Joined<F> {
    fn default() -> Self {
        Self {
            buffers: SharedBuffers::default(),
            places: Vec::new(),
            has_summary: false,
            last: None,
            entries: 0,
            segments: BTreeMap::new(),
            round: 0,
        }
    }
}

impl<F: Form> Joined<F> {
    /// Takes in what the view shows that it did not show before.
    ///
    /// As long as no boundary was added, the view is the one before and the new entries, none of which is trimmed:
    /// a boundary reaches back only. After a boundary the list is joined anew out of what is remembered.
    pub(super) fn follow(&mut self, view: HistoryView<'_>, form: &F, cx: &mut Cx<'_>) {
        let all = view.entries();
        let is_boundary = |entry: &Entry| matches!(entry, Entry::Boundary(_));
        match all.get(self.entries..).filter(|new| !new.iter().any(is_boundary)) {
            Some(new) => {
                for (position, entry) in (self.entries..).zip(new) {
                    let id = EntryId::at(position);
                    self.join(Rendered::Entry { id, entry, trim: Trim::default() }, form, cx);
                }
            }
            None => self.join_anew(view, form, cx),
        }
        self.entries = all.len();
    }

    /// Appends the messages, cut only where a marker stands. `marks` are in the order of the body.
    pub(super) fn push(&self, body: &mut Body, marks: &[(Splice, Ttl)]) {
        let mut from = 0;
        for (splice, ttl) in marks {
            body.push_shared(&self.buffers, from..splice.buffer);
            from = splice.buffer + 1;
            if let Some(buffer) = self.buffers.get(splice.buffer) {
                body.push(buffer.slice(..splice.at));
                body.push(Bytes::from_static(F::marker(*ttl)));
                body.push(buffer.slice(splice.at..));
            }
        }
        body.push_shared(&self.buffers, from..self.buffers.count());
    }

    /// Where an entry, or the summary at its boundary, takes a marker.
    pub(super) fn splice(&self, entry: EntryId) -> Result<Splice, Unmarkable> {
        let summaries = usize::from(self.has_summary);
        let (summary, entries) = self.places.split_at(summaries.min(self.places.len()));
        let place = match summary.first().filter(|summary| summary.entry == entry) {
            Some(summary) => summary,
            None => {
                let at = entries.binary_search_by_key(&entry, |place| place.entry);
                at.ok().and_then(|at| entries.get(at)).ok_or(Unmarkable::Nothing)?
            }
        };
        place.splice.ok_or(Unmarkable::NoBlock)
    }

    /// Who spoke last.
    pub(super) fn last(&self) -> Option<F::Role> {
        self.last
    }

    /// Whether words to go on must follow, as the view puts them ([`Rendered::Continue`]): what was summarised may
    /// not end with the model.
    pub(super) fn must_continue(&self) -> bool {
        self.has_summary && self.last.is_some_and(F::is_model)
    }

    fn join_anew(&mut self, view: HistoryView<'_>, form: &F, cx: &mut Cx<'_>) {
        let (segments, round) = (std::mem::take(&mut self.segments), self.round + 1);
        *self = Self { segments, round, ..Self::default() };
        for piece in view.rendered() {
            // It stands at the end of one request only.
            if !matches!(piece, Rendered::Continue) {
                self.join(piece, form, cx);
            }
        }
        // What a rewrite took out of sight is let go once it outweighs what is shown.
        if self.segments.len() > 2 * self.places.len() + 16 {
            self.segments.retain(|_, remembered| remembered.used == round);
        }
    }

    fn join(&mut self, piece: Rendered<'_>, form: &F, cx: &mut Cx<'_>) {
        let (key, entry) = match piece {
            Rendered::Entry { id, trim, .. } => (Key::Entry(id, trim), id),
            Rendered::Summary { id, .. } => (Key::Summary(id), id),
            Rendered::Continue => return,
        };
        self.has_summary |= matches!(piece, Rendered::Summary { .. });
        let remembered = self
            .segments
            .entry(key)
            .or_insert_with(|| Remembered { runs: form.runs(piece, cx), used: self.round });
        remembered.used = self.round;
        let mut splice = None;
        for Run { role, bytes, splice: at } in &remembered.runs {
            self.buffers.push(Bytes::from_static(F::glue(self.last, Some(*role))));
            splice = at.map(|at| Splice { buffer: self.buffers.count(), at }).or(splice);
            self.buffers.push(bytes.clone());
            self.last = Some(*role);
        }
        self.places.push(Place { entry, splice });
    }
}

/// Appends a run that stays in no later body.
pub(super) fn push_run<F: Form>(
    body: &mut Body,
    last: Option<F::Role>,
    run: Run<F::Role>,
) -> Option<F::Role> {
    body.push(Bytes::from_static(F::glue(last, Some(run.role))));
    body.push(run.bytes);
    Some(run.role)
}
