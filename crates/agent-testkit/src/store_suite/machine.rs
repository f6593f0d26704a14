//! Any schedule of two workers, crashes among it, against a model of what a store promises.

mod deed;
mod model;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent_core::{BlobHash, InputId, Revision, StoredInput};
use agent_store::{Lease, Store, StoreError, WholeSession};

use super::parts::event;
use super::{Subject, wait_for};
use deed::{Act, Deed, Held, ask, carried, name};
use model::{Model, Outcome, Seen, Session};

/// Plays a schedule; what the store did that the model does not allow.
///
/// Each deed is three bytes, any of them: what is done, by which of two workers to which of two sessions, and whether the
/// process dies in it, its answer unheard. So a schedule can be drawn, kept and made smaller by whatever makes bytes.
pub fn play(subject: Subject, schedule: &[[u8; 3]]) -> Result<(), String> {
    run(subject, schedule).map(|_| ())
}

/// Schedules drawn from fixed seeds end as the model says (requirements D1, D3, D7 and L7).
pub async fn any_schedule_ends_as_the_model_says(subject: Subject) {
    // One store has one schedule; it is a long one, in which each deed meets each state.
    let mut state = 0x5eed_u64;
    let mut draw = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state.to_be_bytes()
    };
    let schedule: Vec<[u8; 3]> = (0..1_500).map(|_| draw()).map(|[a, b, c, ..]| [a, b, c]).collect();
    let met = run(subject, &schedule).unwrap();
    let unmet: Vec<&str> = ENDS.split_whitespace().filter(|end| !met.contains_key(*end)).collect();
    assert!(unmet.is_empty(), "nothing ended as {unmet:?}, but {met:?}");
}

/// Plays a schedule; which deeds were done in it, and why others were refused.
fn run(subject: Subject, schedule: &[[u8; 3]]) -> Result<BTreeMap<String, u32>, String> {
    let Subject { store, reopen } = subject;
    let (model, held, met) = (Model::default(), BTreeMap::new(), BTreeMap::new());
    let mut world = World { store, reopen, model, held, epochs: [0; 2], met };
    for (n, bytes) in schedule.iter().enumerate() {
        let deed = Deed::of(*bytes);
        world.step(deed).map_err(|said| format!("{said}\nat {n}, {deed:?}, in {schedule:?}"))?;
    }
    Ok(world.met)
}

struct World {
    store: Arc<dyn Store>,
    reopen: Option<Box<dyn Fn() -> Arc<dyn Store>>>,
    model: Model,
    held: BTreeMap<(u8, usize), Held>,
    /// Of each session, the epoch of the newest lease that was given.
    epochs: [u64; 2],
    /// How deeds ended.
    met: BTreeMap<String, u32>,
}

impl World {
    fn step(&mut self, deed: Deed) -> Result<(), String> {
        match deed.act {
            Act::Take => self.take(deed)?,
            Act::Give => drop(self.held.remove(&(deed.worker, deed.session))),
            Act::Lose => self.lose(deed),
            Act::Look => self.look(deed),
            Act::Create
            | Act::Commit
            | Act::End
            | Act::Gap
            | Act::Stale
            | Act::Hear
            | Act::Mishear
            | Act::Journal
            | Act::Say
            | Act::Reply
            | Act::Round
            | Act::Blob(_)
            | Act::Fork
            | Act::Import
            | Act::Delete => self.write(deed)?,
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
                let held = Held { lease, is_real: true, revision: 0, last_seq: 0, inputs: Vec::new() };
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
            held.inputs = found.inputs.iter().map(|(id, _)| InputId(*id)).collect();
        }
    }

    /// Writes, and takes the answer or dies before it.
    fn write(&mut self, mut deed: Deed) -> Result<(), String> {
        let copies = matches!(deed.act, Act::Fork | Act::Import);
        if copies && self.model.sessions[deed.source()].is_none() {
            // The other way round there may be something to copy.
            deed.session = deed.source();
        }
        if deed.needs_lease() && !self.held.contains_key(&(deed.worker, deed.session)) {
            return self.take(deed);
        }
        let is_import = deed.act == Act::Import;
        if is_import && self.model.sessions[deed.source()].is_none() {
            return Ok(());
        }
        let whole = is_import.then(|| wait_for(carried(&*self.store, deed.source(), deed.session)));
        let held = self.held.get(&(deed.worker, deed.session));
        let expect = self.model.after(deed, held, self.epochs[deed.session]);
        let answer = self.ask(deed, whole.transpose()?);
        if deed.dies {
            self.die();
        }
        match answer {
            Some(answer) => self.settle(deed, answer, expect),
            None => self.settle_unheard(deed, expect),
        }
    }

    /// The answer of the store; `None` when the one who asked dies before it.
    fn ask(&self, deed: Deed, whole: Option<WholeSession>) -> Option<Result<u64, StoreError>> {
        let mut work = pin!(ask(&self.store, self.held.get(&(deed.worker, deed.session)), deed, whole));
        if !deed.dies {
            return Some(wait_for(work));
        }
        match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        }
    }

    /// All of it happened, or nothing.
    fn settle_unheard(&mut self, deed: Deed, expect: Outcome) -> Result<(), String> {
        let Ok((after, _)) = expect else { return Ok(()) };
        if let Act::Blob(byte) = deed.act {
            // Whose it is cannot be seen, so it is put again.
            wait_for(self.store.put_blob(&name(deed.session), &[byte])).map_err(|error| error.to_string())?;
            self.model = after;
        } else if self.found()? == after.seen() {
            self.model = after;
        }
        Ok(())
    }

    fn settle(&mut self, deed: Deed, answer: Result<u64, StoreError>, expect: Outcome) -> Result<(), String> {
        match (answer.as_ref().map_err(kind), expect) {
            (Ok(answer), Ok((after, expect))) if *answer == expect => {
                self.model = after;
                self.look(deed);
                *self.met.entry(format!("{:?}", deed.act)).or_default() += 1;
                Ok(())
            }
            (Err(found), Err(expect)) if found == expect => {
                *self.met.entry(found.replace(' ', "-")).or_default() += 1;
                Ok(())
            }
            (_, expect) => {
                Err(format!("answered {answer:?}, expected {:?}", expect.map(|(_, answer)| answer)))
            }
        }
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
            let found = wait_for(self.store.salvage(&name(n))).map_err(|error| error.to_string())?;
            let found = found.filter(|found| found.damage.is_empty()).ok_or("salvage finds damage")?;
            let key = |open: &StoredInput| (open.id.0, open.input.key().map(str::to_owned));
            if found.entries.iter().map(|(_, text)| text).ne(&record.entries) || found.inputs != record.inputs
            {
                return Err(format!("salvage finds {found:?}"));
            }
            *place = Some(Session {
                revision: record.revision.0,
                entries: record.entries,
                journal: record.journal.len(),
                last_seq: record.last_seq,
                usage: found.usage.iter().map(|(Revision(at), _)| *at).collect(),
                turn: record.checkpoint.last_turn,
                is_open: record.checkpoint.turn.is_some(),
                last_input: found.last_input,
                inputs: record.inputs.iter().map(key).collect(),
                used: found.used.iter().map(|(InputId(n), key)| (*n, key.clone())).collect(),
                rounds: found.rounds.iter().map(|round| (round.turn, round.to.position() as u64)).collect(),
            });
        }
        let address = BlobHash::parse(SEVEN).unwrap();
        let blob = wait_for(self.store.get_blob(&address)).map_err(|error| error.to_string())?;
        Ok(Seen { sessions, has_blob: blob.is_some() })
    }
}

/// The refusal in the words of the model.
fn kind(error: &StoreError) -> &'static str {
    let kinds = [
        (matches!(error, StoreError::LeaseLost { .. }), "lease lost"),
        (matches!(error, StoreError::Missing(_)), "missing"),
        (matches!(error, StoreError::Exists(_)), "exists"),
        (matches!(error, StoreError::Stale { .. }), "stale"),
        (matches!(error, StoreError::EventGap { .. }), "gap"),
        (matches!(error, StoreError::NoTurn(_)), "no turn"),
        (matches!(error, StoreError::Repeated { .. }), "repeated"),
        (matches!(error, StoreError::NoInput { .. }), "no input"),
        (matches!(error, StoreError::NoEntry { .. }), "no entry"),
    ];
    kinds.into_iter().find_map(|(is, kind)| is.then_some(kind)).unwrap_or("another error")
}

/// The address of the one byte 7.
const SEVEN: &str = "ca358758f6d27e6cf45272937977a748fd88391db679ceda7dc7bf1f005ee879";
/// What a long schedule meets.
const ENDS: &str = "Create Commit End Hear Journal Say Reply Round Blob(7) Fork Import Delete \
    lease-lost missing exists stale gap no-turn repeated no-input";
