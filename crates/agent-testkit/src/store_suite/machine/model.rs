//! What a store must hold, and what each deed makes of it.

use std::collections::{BTreeMap, BTreeSet};

use super::deed::{Act, Deed, Held, TURNS_OF_A_FORK, said};

/// What a store must hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Model {
    pub(super) sessions: [Option<Session>; 2],
    /// Who keeps the one blob.
    blobs: BTreeSet<usize>,
}

/// As much of that as can be seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) sessions: [Option<Session>; 2],
    pub(super) has_blob: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) revision: u64,
    pub(super) entries: Vec<String>,
    pub(super) journal: usize,
    pub(super) last_seq: u64,
    pub(super) usage: Vec<u64>,
    pub(super) turn: u64,
    pub(super) is_open: bool,
    pub(super) last_input: u64,
    /// What waits in the inbox: its number, and its key if it has one.
    pub(super) inputs: Vec<(u64, Option<String>)>,
    /// The keys of what was used.
    pub(super) used: Vec<(u64, String)>,
    /// Turns of which something was said, and where each ended.
    pub(super) rounds: BTreeMap<u64, u64>,
}

/// What a deed leads to, with the number in its answer, or the kind of its refusal.
pub(super) type Outcome = Result<(Model, u64), &'static str>;

impl Model {
    pub(super) fn seen(&self) -> Seen {
        Seen { sessions: self.sessions.clone(), has_blob: !self.blobs.is_empty() }
    }

    /// The same after a deed by who holds `held`, where the newest lease has the epoch `newest`.
    pub(super) fn after(&self, deed: Deed, held: Option<&Held>, newest: u64) -> Outcome {
        let mut after = self.clone();
        if !deed.needs_lease() {
            let session = after.sessions[deed.session].as_mut().ok_or("missing")?;
            let answer = session.told(deed)?;
            if let Act::Blob(_) = deed.act {
                after.blobs.insert(deed.session);
            }
            return Ok((after, answer));
        }
        let held = held.ok_or("no lease")?;
        if held.lease.epoch() < newest {
            return Err("lease lost");
        }
        if matches!(deed.act, Act::Create | Act::Fork | Act::Import) {
            after.begin(deed)?;
            return Ok((after, 0));
        }
        let session = after.sessions[deed.session].as_mut().ok_or("missing")?;
        if deed.act == Act::Delete {
            after.sessions[deed.session] = None;
            after.blobs.remove(&deed.session);
            return Ok((after, 0));
        }
        let answer = session.written(deed, held)?;
        Ok((after, answer))
    }

    fn begin(&mut self, deed: Deed) -> Result<(), &'static str> {
        if self.sessions[deed.session].is_some() {
            return Err("exists");
        }
        if deed.act == Act::Create {
            self.sessions[deed.session] = Some(Session::default());
            return Ok(());
        }
        let source = self.sessions[deed.source()].as_ref().ok_or("missing")?;
        let copy = if deed.act == Act::Fork { source.forked(deed.entries())? } else { source.clone() };
        self.sessions[deed.session] = Some(copy);
        if self.blobs.contains(&deed.source()) {
            self.blobs.insert(deed.session);
        }
        Ok(())
    }
}

impl Session {
    /// What needs no lease; the number of an input.
    fn told(&mut self, deed: Deed) -> Result<u64, &'static str> {
        if deed.act == Act::Round {
            let (turn, to) = deed.round();
            self.rounds.insert(turn, to);
        }
        if !matches!(deed.act, Act::Say | Act::Reply) {
            return Ok(0);
        }
        if !self.is_open {
            return Err("no turn");
        }
        let key = deed.key();
        let is_waiting = self.inputs.iter().any(|(_, other)| key.is_some() && *other == key);
        if is_waiting || self.used.iter().any(|(_, other)| Some(other) == key.as_ref()) {
            return Err("repeated");
        }
        self.last_input += 1;
        self.inputs.push((self.last_input, key));
        Ok(self.last_input)
    }

    /// A commit or a journal record; whether something is left in the inbox.
    fn written(&mut self, deed: Deed, held: &Held) -> Result<u64, &'static str> {
        if deed.commits() && held.builds_on(deed.act) != self.revision {
            return Err("stale");
        }
        if held.next(deed.act) != self.last_seq + 1 {
            return Err("gap");
        }
        for id in held.uses(deed.act) {
            let at = self.inputs.iter().position(|(open, _)| *open == id.0).ok_or("no input")?;
            let (n, key) = self.inputs.remove(at);
            self.used.extend(key.map(|key| (n, key)));
        }
        self.used.sort();
        self.last_seq += 1;
        if deed.act == Act::Journal {
            self.journal += 1;
            return Ok(0);
        }
        self.entries.extend(serde_json::to_string(&said(self.revision)));
        self.revision += 1;
        self.journal = 0;
        self.usage.push(self.revision);
        self.turn = self.revision;
        self.is_open = deed.act != Act::End;
        Ok(u64::from(!self.inputs.is_empty()))
    }

    fn forked(&self, entries: u64) -> Result<Self, &'static str> {
        let beginning = usize::try_from(entries).ok().and_then(|count| self.entries.get(..count));
        let entries_kept = beginning.ok_or("no entry")?.to_vec();
        let mut rounds = self.rounds.clone();
        rounds.retain(|turn, to| *turn <= TURNS_OF_A_FORK && *to <= entries);
        Ok(Self { entries: entries_kept, turn: TURNS_OF_A_FORK, rounds, ..Self::default() })
    }
}
