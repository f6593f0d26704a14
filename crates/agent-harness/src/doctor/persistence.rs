//! Item 9: messages are persisted atomically.

use std::sync::Arc;

use agent_core::{Checkpoint, Commit, Entry, History, Revision, SessionId};
use agent_store::{MemoryStore, Store, StoreError};
use agent_tools::{PermissionMode, Permissions};

use super::Finding;
use super::flaky::Flaky;
use super::rehearsal::{MESSAGE, calls, id, rehearsing, say, words};
use crate::config::{Harness, HarnessConfig};
use crate::spy::Answer;
use crate::stand_ins::StandIns;
use crate::{AllowAll, HarnessError};

/// More writes than the rehearsed conversation has.
const WRITES: usize = 200;
const REPORT: &str = "This is a fault of the driver; please report it.";

pub(super) async fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("persistence", "messages persisted atomically");
    match breaks(config).await {
        Ok(Broken { writes, faults }) if faults.is_empty() => finding.saw(format!(
            "a turn of 3 steps was broken at each of its {writes} writes: what was stored was whole every time, and the \
             same message took the turn to its end"
        )),
        Ok(Broken { faults, .. }) => finding.fail(faults.join("; "), REPORT),
        Err(error) => finding.fail(format!("no turn could be rehearsed: {error}"), "Mend what the error names."),
    }
    match own_store(config).await {
        Ok(seen) => finding.saw(seen),
        Err(OwnStore::Lies(what)) => finding.fail(
            format!("the agent's own store: {what}"),
            "Run the store suite of agent-testkit over the store: a commit is all or nothing, and stored bytes stay.",
        ),
        Err(OwnStore::Failed(error)) => finding.fail(
            format!("the agent's own store cannot be written to: {error}"),
            "Mend what the error names.",
        ),
    }
    if !config.store.is_durable() {
        finding.warn(
            "sessions live in the memory of this process and are lost when it ends",
            "Give the agent a store on disk: `SqliteStore`.",
        );
    }
    finding
}

/// What came of breaking a turn everywhere.
struct Broken {
    writes: usize,
    faults: Vec<String>,
}

async fn breaks(config: &HarnessConfig) -> Result<Broken, HarnessError> {
    let mut faults = Vec::new();
    for writes in 0..WRITES {
        let flaky = Arc::new(Flaky::after(writes));
        let store = flaky.store.clone();
        if say(turn(config, flaky)?).await.is_ok() {
            return Ok(Broken { writes, faults });
        }
        if let Err(fault) = taken_up(config, store).await {
            faults.push(format!("broken after {writes} writes: {fault}"));
        }
    }
    faults.push(format!("the turn did not end within {WRITES} writes"));
    Ok(Broken { writes: WRITES, faults })
}

/// Whether what is left is whole, and the same message ends the turn.
async fn taken_up(config: &HarnessConfig, store: Arc<MemoryStore>) -> Result<(), String> {
    let left = entries(&*store).await.map_err(|error| error.to_string())?;
    let (_, repairs) = History::load(&left).map_err(|error| error.to_string())?;
    if !repairs.is_empty() {
        return Err(format!("{} entries had to be mended", repairs.len()));
    }
    let again = turn(config, store.clone()).map_err(|error| error.to_string())?;
    let end = say(again).await.map_err(|error| format!("the turn cannot be taken up: {error}"))?;
    if !end.reason.is_success() {
        return Err(format!("the turn that was taken up ended as {:?}", end.reason));
    }
    let whole = entries(&*store).await.map_err(|error| error.to_string())?;
    if !whole.starts_with(&left) {
        return Err("entries that were stored are other ones now".to_owned());
    }
    let (history, _) = History::load(&whole).map_err(|error| error.to_string())?;
    let said = history.entries().iter().filter(|entry| matches!(entry, Entry::User(_))).count();
    if said == 1 { Ok(()) } else { Err(format!("the message stands there {said} times")) }
}

/// The agent at a turn of three steps with calls, on this store.
fn turn(config: &HarnessConfig, store: Arc<dyn Store>) -> Result<HarnessConfig, HarnessError> {
    let first = config.tools.cards().first().map_or("rehearse", |card| card.name());
    // One answer more, for the step that a crash made the model begin again.
    let answers: Vec<Answer> = vec![calls([first]), calls([first]), words("Done."), words("Done.")];
    let (rehearsing, _) = rehearsing(config, answers, &StandIns::new(|_| "ok".to_owned()))?;
    let permissions = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
    Ok(HarnessConfig { store, permissions, asker: Arc::new(AllowAll), ..rehearsing })
}

async fn entries(store: &dyn Store) -> Result<Vec<String>, HarnessError> {
    Ok(store.load(&id()?).await?.map(|record| record.entries).unwrap_or_default())
}

/// What is wrong with the agent's own store.
enum OwnStore {
    /// It does not keep what it promised.
    Lies(String),
    /// It refuses.
    Failed(HarnessError),
}

impl<E: Into<HarnessError>> From<E> for OwnStore {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Plays the turn on the agent's own store under a name of its own, looks at what is stored, and deletes it.
async fn own_store(config: &HarnessConfig) -> Result<String, OwnStore> {
    let memory = Arc::new(MemoryStore::new());
    say(turn(config, memory.clone())?).await?;
    let expected = entries(&*memory).await?;
    let name =
        SessionId::new(format!("agent-doctor-{}", config.clock.now_ms())).map_err(HarnessError::from)?;
    let store = &config.store;
    if store.load(&name).await?.is_some() {
        return Err(OwnStore::Lies(format!("session {name} exists before it began")));
    }
    let seen = play(config, &name, &expected).await;
    if store.load(&name).await?.is_some() {
        let lease = store.lease(&name).await?;
        store.delete(lease).await?;
    }
    seen?;
    let left = store.load(&name).await?.is_some();
    let steps = expected.len();
    match left {
        true => Err(OwnStore::Lies(format!("session {name} was deleted and is still there"))),
        false => Ok(format!(
            "the agent's own store gave back the same bytes of {steps} entries, refused a commit on a stale revision and \
             deleted the session"
        )),
    }
}

async fn play(config: &HarnessConfig, name: &SessionId, expected: &[String]) -> Result<(), OwnStore> {
    let store = &config.store;
    let session = Harness::new(turn(config, store.clone())?).session(name.clone());
    session.send(MESSAGE).await?.finish().await?;
    drop(session);
    let record = store.load(name).await?;
    let record =
        record.ok_or_else(|| OwnStore::Lies("a session that was written is not there".to_owned()))?;
    let (found, wanted) = (record.entries.len(), expected.len());
    if record.entries != expected {
        return Err(OwnStore::Lies(format!("of {wanted} entries it gave back {found}, or other bytes")));
    }
    let lease = store.lease(name).await?;
    let stale = Commit {
        expect: Revision(0),
        entries: &[],
        checkpoint: &Checkpoint::default(),
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 0,
    };
    match store.commit(&lease, stale).await {
        Err(StoreError::Stale { .. }) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Err(OwnStore::Lies("it took a commit that builds on a stale revision".to_owned())),
    }
}
