//! Any schedule of two workers, crashes among it, against a model of what a store promises.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent_core::{BlobHash, Checkpoint, Commit, Entry, Revision, SessionId};
use agent_store::{Lease, Store, StoreError};

use super::parts::{event, id, meta, none, pending, usage, user};
use super::{Subject, of, wait_for};

/// Plays a schedule; what the store did that the model does not allow.
///
/// Each deed is three bytes, any of them: what is done, by which of two workers to which of two sessions, and whether the
/// process dies in it, its answer unheard. So a schedule can be drawn, kept and made smaller by whatever makes bytes.
pub fn play(subject: Subject, schedule: &[[u8; 3]]) -> Result<(), String> {
    let Subject { store, reopen } = subject;
    let mut world = World { store, reopen, model: Model::default(), held: BTreeMap::new(), epochs: [0; 2] };
    for (n, bytes) in schedule.iter().enumerate() {
        let deed = Deed::of(*bytes);
        world.step(deed).map_err(|said| format!("{said}\nat {n}, {deed:?}, in {schedule:?}"))?;
    }
    Ok(())
}

/// Schedules drawn from fixed seeds end as the model says (requirements D1 and D3).
pub async fn any_schedule_ends_as_the_model_says(subject: Subject) {
    // One store has one schedule; it is a long one, in which each deed meets each state.
    let mut state = 0x5eed_u64;
    let mut draw = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state.to_be_bytes()
    };
    let schedule: Vec<[u8; 3]> = (0..300).map(|_| draw()).map(|[a, b, c, ..]| [a, b, c]).collect();
    assert_eq!(play(subject, &schedule), Ok(()));
}

#[derive(Debug, Clone, Copy)]
struct Deed {
    act: Act,
    worker: u8,
    session: usize,
    /// The process dies before it hears the answer.
    dies: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Takes the session, and looks where it is.
    Take,
    /// Gives the session back.
    Give,
    /// Loses the session without knowing it: somebody removed the lock.
    Lose,
    /// Looks where the session is now.
    Look,
    Create,
    Commit,
    /// A commit whose event leaves a number out.
    Gap,
    /// A commit that builds on a revision which is not there yet.
    Stale,
    Journal,
    Blob(u8),
    Delete,
}

const ACTS: [Act; 24] = [
    Act::Take,
    Act::Give,
    Act::Lose,
    Act::Lose,
    Act::Look,
    Act::Create,
    Act::Create,
    Act::Create,
    Act::Create,
    Act::Commit,
    Act::Commit,
    Act::Commit,
    Act::Commit,
    Act::Commit,
    Act::Commit,
    Act::Gap,
    Act::Stale,
    Act::Journal,
    Act::Journal,
    Act::Journal,
    Act::Journal,
    Act::Blob(7),
    Act::Blob(7),
    Act::Delete,
];

impl Deed {
    fn of([act, who, how]: [u8; 3]) -> Self {
        let act = ACTS.get(usize::from(act) % ACTS.len()).copied().unwrap_or(Act::Look);
        Self { act, worker: who & 1, session: usize::from(who >> 1 & 1), dies: how % 16 == 15 }
    }
}

/// What a store must hold.
#[derive(Debug, Clone, Default)]
struct Model {
    sessions: [Option<Session>; 2],
    /// Who put the one blob.
    blobs: BTreeSet<usize>,
}

/// As much of that as can be seen.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    sessions: [Option<Session>; 2],
    has_blob: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Session {
    revision: u64,
    entries: Vec<String>,
    journal: usize,
    last_seq: u64,
    usage: Vec<u64>,
    turn: u64,
}

/// A worker's hold on a session, as far as the worker knows.
struct Held {
    lease: Lease,
    is_real: bool,
    revision: u64,
    last_seq: u64,
}

struct World {
    store: Arc<dyn Store>,
    reopen: Option<Box<dyn Fn() -> Arc<dyn Store>>>,
    model: Model,
    held: BTreeMap<(u8, usize), Held>,
    /// Of each session, the epoch of the newest lease that was given.
    epochs: [u64; 2],
}

impl World {
    fn step(&mut self, deed: Deed) -> Result<(), String> {
        match deed.act {
            Act::Take => self.take(deed)?,
            Act::Give => drop(self.held.remove(&(deed.worker, deed.session))),
            Act::Lose => self.lose(deed),
            Act::Look => self.look(deed),
            Act::Create | Act::Commit | Act::Gap | Act::Stale | Act::Journal | Act::Blob(_) | Act::Delete => {
                self.write(deed)?
            }
        }
        let (found, expect) = (self.found()?, self.model.seen());
        if found == expect { Ok(()) } else { Err(format!("found {found:#?}\nexpected {expect:#?}")) }
    }

    fn take(&mut self, deed: Deed) -> Result<(), String> {
        let is_held =
            (0..2).any(|worker| self.held.get(&(worker, deed.session)).is_some_and(|held| held.is_real));
        let newest = self.epochs[deed.session];
        match wait_for(self.store.lease(&name(deed.session))) {
            Ok(lease) if !is_held && lease.epoch() > newest => {
                self.epochs[deed.session] = lease.epoch();
                let held = Held { lease, is_real: true, revision: 0, last_seq: 0 };
                self.held.insert((deed.worker, deed.session), held);
                self.look(deed);
                Ok(())
            }
            Err(StoreError::Busy { .. }) if is_held => Ok(()),
            other => Err(format!("a lease, held: {is_held}, newest {newest}: {other:?}")),
        }
    }

    fn lose(&mut self, deed: Deed) {
        if let Some(held) = self.held.get_mut(&(deed.worker, deed.session)) {
            held.lease = Lease::new(name(deed.session), held.lease.epoch(), ());
            held.is_real = false;
        }
    }

    fn look(&mut self, deed: Deed) {
        let found = self.model.sessions.get(deed.session).cloned().flatten().unwrap_or_default();
        if let Some(held) = self.held.get_mut(&(deed.worker, deed.session)) {
            (held.revision, held.last_seq) = (found.revision, found.last_seq);
        }
    }

    /// Writes, and takes the answer or dies before it.
    fn write(&mut self, deed: Deed) -> Result<(), String> {
        let needs_lease = !matches!(deed.act, Act::Blob(_));
        if needs_lease && !self.held.contains_key(&(deed.worker, deed.session)) {
            return self.take(deed);
        }
        let expect = self.expected(deed);
        let answer = self.ask(deed);
        if deed.dies {
            self.die();
        }
        match answer {
            Some(answer) => self.settle(deed, answer, expect),
            None => self.settle_unheard(deed, expect),
        }
    }

    /// The answer of the store; `None` when the one who asked dies before it.
    fn ask(&self, deed: Deed) -> Option<Result<(), StoreError>> {
        let mut work = pin!(ask(&self.store, self.held.get(&(deed.worker, deed.session)), deed));
        if !deed.dies {
            return Some(wait_for(work));
        }
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    /// All of it happened, or nothing.
    fn settle_unheard(&mut self, deed: Deed, expect: Result<Model, &'static str>) -> Result<(), String> {
        let Ok(after) = expect else { return Ok(()) };
        if let Act::Blob(byte) = deed.act {
            // Whose it is cannot be seen, so it is put again.
            wait_for(self.store.put_blob(&name(deed.session), &[byte])).map_err(|error| error.to_string())?;
            self.model = after;
        } else if self.found()? == after.seen() {
            self.model = after;
        }
        Ok(())
    }

    fn settle(
        &mut self,
        deed: Deed,
        answer: Result<(), StoreError>,
        expect: Result<Model, &'static str>,
    ) -> Result<(), String> {
        let said = answer.as_ref().map_err(kind);
        match (said, expect) {
            (Ok(()), Ok(after)) => {
                self.model = after;
                self.look(deed);
                Ok(())
            }
            (Err(found), Err(expect)) if found == expect => Ok(()),
            (_, expect) => Err(format!("answered {answer:?}, expected {:?}", expect.map(|_| ()))),
        }
    }

    /// What the write leads to, or the kind of its refusal.
    fn expected(&self, deed: Deed) -> Result<Model, &'static str> {
        let mut after = self.model.clone();
        let place = after.sessions.get_mut(deed.session).ok_or("no such session")?;
        if let Act::Blob(_) = deed.act {
            place.as_ref().ok_or("missing")?;
            after.blobs.insert(deed.session);
            return Ok(after);
        }
        let held = self.held.get(&(deed.worker, deed.session)).ok_or("no lease")?;
        if held.lease.epoch() < self.epochs[deed.session] {
            return Err("lease lost");
        }
        if deed.act == Act::Create {
            return if place.is_some() {
                Err("exists")
            } else {
                *place = Some(Session::default());
                Ok(after)
            };
        }
        let session = place.as_mut().ok_or("missing")?;
        let commits = matches!(deed.act, Act::Commit | Act::Gap | Act::Stale);
        if commits && held.builds_on(deed.act) != session.revision {
            return Err("stale");
        }
        if deed.act == Act::Delete {
            *place = None;
            after.blobs.remove(&deed.session);
            return Ok(after);
        }
        if held.next(deed.act) != session.last_seq + 1 {
            return Err("gap");
        }
        session.last_seq += 1;
        if deed.act == Act::Journal {
            session.journal += 1;
        } else {
            session.commit();
        }
        Ok(after)
    }

    /// The process is gone with its leases; the next one opens the store.
    fn die(&mut self) {
        self.held.clear();
        if let Some(reopen) = &self.reopen {
            // The old store is closed before the new one is opened, as a process is gone before the next.
            self.store = Arc::new(agent_store::MemoryStore::new());
            self.store = reopen();
        }
    }

    /// What the store holds, in the words of the model.
    fn found(&self) -> Result<Seen, String> {
        let mut sessions = [None, None];
        for (n, place) in sessions.iter_mut().enumerate() {
            let session = wait_for(self.store.load(&name(n))).map_err(|error| error.to_string())?;
            let Some(record) = session else { continue };
            let events = wait_for(self.store.events(&name(n), 0)).map_err(|error| error.to_string())?;
            let expect: Vec<_> = (1..=record.last_seq).map(|seq| event(name(n).as_str(), seq)).collect();
            if events != expect {
                return Err(format!("events {events:?}"));
            }
            let spent = wait_for(self.store.usage(&name(n))).map_err(|error| error.to_string())?;
            *place = Some(Session {
                revision: record.revision.0,
                entries: record.entries.iter().map(ToString::to_string).collect(),
                journal: record.journal.len(),
                last_seq: record.last_seq,
                usage: spent.iter().map(|(Revision(at), _)| *at).collect(),
                turn: record.checkpoint.last_turn,
            });
        }
        let address = BlobHash::parse(SEVEN).unwrap();
        let blob = wait_for(self.store.get_blob(&address)).map_err(|error| error.to_string())?;
        Ok(Seen { sessions, has_blob: blob.is_some() })
    }
}

impl Model {
    fn seen(&self) -> Seen {
        Seen { sessions: self.sessions.clone(), has_blob: !self.blobs.is_empty() }
    }
}

impl Held {
    /// The revision that a commit of the worker names.
    fn builds_on(&self, act: Act) -> u64 {
        self.revision + u64::from(act == Act::Stale)
    }

    /// The number of the event that goes with the deed.
    fn next(&self, act: Act) -> u64 {
        self.last_seq + 1 + u64::from(act == Act::Gap)
    }
}

impl Session {
    fn commit(&mut self) {
        let entry = said(self.revision);
        self.entries.extend(serde_json::to_string(&entry));
        self.revision += 1;
        self.journal = 0;
        self.usage.push(self.revision);
        self.turn = self.revision;
    }
}

async fn ask(store: &Arc<dyn Store>, held: Option<&Held>, deed: Deed) -> Result<(), StoreError> {
    let session = name(deed.session);
    if let Act::Blob(byte) = deed.act {
        return store.put_blob(&session, &[byte]).await.map(|_| ());
    }
    let Some(held) = held else { return Ok(()) };
    let lease = &held.lease;
    let events = [event(session.as_str(), held.next(deed.act))];
    match deed.act {
        Act::Create => store.create(lease, &meta(session.as_str()), &none()).await.map(|_| ()),
        Act::Journal => store.journal(lease, &[pending("c1")], &events).await,
        // A lease cannot be shared, and the worker keeps its own.
        Act::Delete => store.delete(Lease::new(session, lease.epoch(), ())).await,
        Act::Commit | Act::Gap | Act::Stale => {
            let checkpoint = Checkpoint { last_turn: held.revision + 1, ..none() };
            let (entries, spent) = ([said(held.revision)], usage(held.revision));
            let expect = Revision(held.builds_on(deed.act));
            let commit =
                Commit { expect, entries: &entries, usage: Some(&spent), events: &events, ..of(&checkpoint) };
            store.commit(lease, commit).await.map(|_| ())
        }
        Act::Take | Act::Give | Act::Lose | Act::Look | Act::Blob(_) => Ok(()),
    }
}

fn said(revision: u64) -> Entry {
    user(&format!("said at revision {revision}"))
}

fn name(session: usize) -> SessionId {
    id(["one", "two"][session])
}

/// The refusal in the words of the model.
fn kind(error: &StoreError) -> &'static str {
    let kinds = [
        (matches!(error, StoreError::LeaseLost { .. }), "lease lost"),
        (matches!(error, StoreError::Missing(_)), "missing"),
        (matches!(error, StoreError::Exists(_)), "exists"),
        (matches!(error, StoreError::Stale { .. }), "stale"),
        (matches!(error, StoreError::EventGap { .. }), "gap"),
    ];
    kinds.into_iter().find_map(|(is, kind)| is.then_some(kind)).unwrap_or("another error")
}

/// The address of the one byte 7.
const SEVEN: &str = "ca358758f6d27e6cf45272937977a748fd88391db679ceda7dc7bf1f005ee879";
