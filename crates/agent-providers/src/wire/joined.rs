//! The messages of a session, joined once: what the next request adds is all the work it costs (requirement M5).

use std::collections::{BTreeMap, VecDeque};

use agent_core::{Body, Entry, EntryId, HistoryView, Rendered, SharedBuffers, StepRecord, Trim};
use bytes::Bytes;

use super::form::{Cx, Form, Run};
use super::marks::{Splice, Unmarkable};
use super::strangers::{note_left_out, of_this_model};

/// What was rendered so far, as a list of buffers that bodies share.
#[derive(Debug)]
pub(super) struct Joined<F: Form> {
    /// Glue and blocks of every piece shown, up to the end of the last block.
    buffers: SharedBuffers,
    /// Invariant: the summary first, then entries by rising id.
    places: Vec<Place>,
    has_summary: bool,
    last: Option<F::Role>,
    /// What became of words that are meant for a turn.
    scopes: Scopes,
    /// Runs at the end that are joined once it is known what follows them ([`Form::is_open`]).
    open: Vec<Run<F::Role>>,
    /// Tools that the provider still runs ([`Form::pending`]).
    pending: Vec<String>,
    /// Entries that are shown once it has gone on.
    waiting: Vec<(Key, EntryId)>,
    /// How many entries of the history are taken in.
    entries: usize,
    segments: BTreeMap<Key, Remembered<F::Role>>,
    /// Runs that were joined since the last block was sealed: where each is remembered, and its piece.
    loose: VecDeque<(Key, usize, usize)>,
    round: u64,
}

/// What a segment is remembered under; the history only grows, so equal keys are equal bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Entry(EntryId, Trim),
    Summary(EntryId),
    Continue,
}

/// What a body got of the messages.
#[derive(Debug)]
pub(super) struct Pushed<R> {
    /// Who speaks last.
    pub(super) last: Option<R>,
    pub(super) scopes: Scopes,
}

/// Whether there are words that are meant until the user speaks again, and that keep this scope or lose it
/// ([`Form::keeps_scope`]).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scopes {
    pub(super) kept: bool,
    pub(super) lost: bool,
}

impl Scopes {
    fn see<F: Form>(&mut self, asked: F::Role, settled: F::Role) {
        let keeps = F::keeps_scope(asked, settled);
        self.kept |= keeps == Some(true);
        self.lost |= keeps == Some(false);
    }
}

#[derive(Debug)]
struct Remembered<R> {
    /// Invariant: neighbours differ in role, where the format joins those of one role. No byte is held twice: a run that
    /// was joined is empty until its block is sealed, and then a part of the block.
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
            scopes: Scopes::default(),
            open: Vec::new(),
            pending: Vec::new(),
            waiting: Vec::new(),
            entries: 0,
            segments: BTreeMap::new(),
            loose: VecDeque::new(),
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
        match view.added(self.entries) {
            Some(added) => added.for_each(|piece| self.join(piece, form, cx)),
            None => self.join_anew(view, form, cx),
        }
        self.buffers.lend();
        self.entries = view.entries().len();
    }

    /// Appends the messages, cut only where a marker stands, and `after` them what may stay in no later body. `marks` are in the order of the body. What the model said last goes back as it is if it `is_paused`.
    pub(super) fn push(
        &self,
        body: &mut Body,
        marks: &[(Splice, &'static [u8])],
        after: Vec<Run<F::Role>>,
        is_paused: bool,
    ) -> Pushed<F::Role> {
        let (mut from, joined) = (0, self.buffers.count());
        let is_last = after.is_empty() && self.open.is_empty() && !is_paused;
        let ending = Some(()).filter(|()| is_last).and_then(|()| self.ending());
        let whole = joined - usize::from(ending.is_some());
        for (splice, marker) in marks.iter().filter(|(splice, _)| splice.buffer < whole) {
            body.push_shared(&self.buffers, from..splice.buffer);
            from = splice.buffer + 1;
            body.push_part(&self.buffers, splice.buffer, 0..splice.at);
            body.push(Bytes::from_static(marker));
            body.push_part(&self.buffers, splice.buffer, splice.at..usize::MAX);
        }
        body.push_shared(&self.buffers, from..whole);
        if let Some((bytes, cut)) = ending {
            match marks.iter().find(|(splice, _)| splice.buffer == whole) {
                Some((splice, marker)) => push_marked(body, &bytes, splice.at - cut, marker),
                None => body.push(bytes),
            }
        }
        let Self { mut last, mut scopes, .. } = *self;
        let open: Vec<_> = self.open.iter().chain(&after).collect();
        for (at, (run, role)) in open.iter().zip(settled::<F>(last, &open)).enumerate() {
            body.push(Bytes::from_static(F::glue(last, Some(role))));
            match marks.iter().find(|(splice, _)| splice.buffer == open_buffer(joined, at)) {
                Some((splice, marker)) => push_marked(body, &run.bytes, splice.at, marker),
                None => body.push(run.bytes.clone()),
            }
            scopes.see::<F>(run.role, role);
            last = Some(role);
        }
        Pushed { last, scopes }
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

    /// Whether nobody spoke.
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none() && self.open.is_empty()
    }

    /// Whether the provider takes nothing more before the model has gone on.
    pub(super) fn is_awaiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// How many entries wait for the model to go on.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The last buffer as it may end a request, and how many bytes before the brace at its end are left out; `None` if
    /// it may end one as it is.
    fn ending(&self) -> Option<(Bytes, usize)> {
        self.last.filter(|role| F::is_model(*role))?;
        let bytes = self.buffers.piece(self.buffers.count().checked_sub(1)?);
        let ending = F::ending(bytes)?;
        let cut = bytes.len().checked_sub(ending.len())?;
        Some((Bytes::from(ending), cut))
    }

    fn join_anew(&mut self, view: HistoryView<'_>, form: &F, cx: &mut Cx<'_>) {
        self.take_loose_out();
        let (segments, round) = (std::mem::take(&mut self.segments), self.round + 1);
        *self = Self { segments, round, ..Self::default() };
        view.settled().for_each(|piece| self.join(piece, form, cx));
        // What a rewrite took out of sight is let go once it outweighs what is shown.
        if self.segments.len() > 2 * self.places.len() + 16 {
            self.segments.retain(|_, remembered| remembered.used == round);
        }
    }

    fn join(&mut self, piece: Rendered<'_>, form: &F, cx: &mut Cx<'_>) {
        let (key, entry) = match piece {
            Rendered::Entry { id, trim, .. } => (Key::Entry(id, trim), Some(id)),
            Rendered::Summary { id, .. } => (Key::Summary(id), Some(id)),
            // The provider that is not done was asked without.
            Rendered::Continue if self.is_awaiting() => return,
            Rendered::Continue => (Key::Continue, None),
        };
        self.has_summary |= matches!(piece, Rendered::Summary { .. });
        let remembered = self.segments.entry(key).or_insert_with(|| {
            let piece = of_this_model(piece, cx);
            note_left_out(piece, cx);
            Remembered { runs: form.runs(piece, cx), used: self.round }
        });
        remembered.used = self.round;
        match step_of(piece) {
            None if self.is_awaiting() => self.waiting.extend(entry.map(|entry| (key, entry))),
            None => self.place(key, entry),
            Some(step) => {
                if form.replaces(step, cx.profile) {
                    self.begin_again();
                }
                self.place(key, entry);
                form.pending(step, cx.profile, &mut self.pending);
                if !self.is_awaiting() {
                    let waiting = std::mem::take(&mut self.waiting);
                    waiting.into_iter().for_each(|(key, entry)| self.place(key, Some(entry)));
                }
            }
        }
    }

    /// Puts the runs of a piece behind what is there. Words to go on are no entry.
    fn place(&mut self, key: Key, entry: Option<EntryId>) {
        let Self { segments, buffers, open, last, scopes, loose, .. } = self;
        let Some(remembered) = segments.get_mut(&key) else { return };
        let mut splice = None;
        for (at, run) in remembered.runs.iter_mut().enumerate() {
            let buffer = if F::is_open(run.role) {
                open_buffer(buffers.count(), open.len())
            } else {
                let before = std::mem::take(open);
                let runs: Vec<_> = before.iter().chain([&*run]).collect();
                for (run, role) in runs.iter().zip(settled::<F>(*last, &runs)) {
                    buffers.push(F::glue(*last, Some(role)));
                    buffers.push(&run.bytes);
                    scopes.see::<F>(run.role, role);
                    *last = Some(role);
                }
                // Words to go on may be joined again while these are here; all else is joined once.
                if key != Key::Continue && !run.bytes.is_empty() {
                    loose.push_back((key, at, buffers.count() - 1));
                    run.bytes = Bytes::new();
                }
                buffers.count() - 1
            };
            splice = run.splice.map(|at| Splice { buffer, at }).or(splice);
            if F::is_open(run.role) {
                open.push(run.clone());
            }
        }
        let Some(entry) = entry else { return };
        let summaries = usize::from(self.has_summary);
        let entries = self.places.get(summaries..).unwrap_or_default();
        let at = summaries + entries.partition_point(|place| place.entry < entry);
        self.places.insert(at.min(self.places.len()), Place { entry, splice });
        self.share_sealed();
    }

    /// What is remembered of a run whose block was sealed is from now on a part of the block.
    fn share_sealed(&mut self) {
        let Self { segments, buffers, loose, .. } = self;
        while let Some((key, at, piece)) =
            loose.front().copied().filter(|next| next.2 < buffers.sealed_count())
        {
            let run = segments.get_mut(&key).and_then(|remembered| remembered.runs.get_mut(at));
            if let Some((run, sealed)) = run.zip(buffers.sealed_piece(piece)) {
                run.bytes = sealed;
            }
            loose.pop_front();
        }
    }

    /// Gives the runs that are in no sealed block their bytes back, because what was joined goes.
    fn take_loose_out(&mut self) {
        let Self { segments, buffers, loose, .. } = self;
        for (key, at, piece) in loose.drain(..) {
            if let Some(run) = segments.get_mut(&key).and_then(|remembered| remembered.runs.get_mut(at)) {
                run.bytes = Bytes::copy_from_slice(buffers.piece(piece));
            }
        }
    }

    /// Leaves out everything so far.
    fn begin_again(&mut self) {
        self.take_loose_out();
        self.buffers = SharedBuffers::default();
        self.places.clear();
        self.open.clear();
        self.has_summary = false;
        self.last = None;
        self.scopes = Scopes::default();
    }
}

fn step_of(piece: Rendered<'_>) -> Option<&StepRecord> {
    match piece {
        Rendered::Entry { entry: Entry::Step(step), .. } => Some(step),
        Rendered::Entry { entry: Entry::User(_) | Entry::Note(_) | Entry::Boundary(_), .. }
        | Rendered::Summary { .. }
        | Rendered::Continue => None,
    }
}

/// The buffer that an open run will be once it is joined: glue stands before each, and is never empty there.
fn open_buffer(joined: usize, at: usize) -> usize {
    joined + 2 * at + 1
}

/// The roles that runs are written in: those of open ones depend on what is before them and behind them.
fn settled<F: Form>(last: Option<F::Role>, runs: &[&Run<F::Role>]) -> Vec<F::Role> {
    let mut roles: Vec<F::Role> = runs.iter().map(|run| run.role).collect();
    let mut at = 0;
    while at < roles.len() {
        let (known, rest) = roles.split_at_mut(at);
        let open = rest.iter().take_while(|role| F::is_open(**role)).count();
        let (group, rest) = rest.split_at_mut(open);
        F::settle(group, known.last().copied().or(last), rest.first().copied());
        at += open + 1;
    }
    roles
}

fn push_marked(body: &mut Body, buffer: &Bytes, at: usize, marker: &'static [u8]) {
    body.push(buffer.slice(..at));
    body.push(Bytes::from_static(marker));
    body.push(buffer.slice(at..));
}
