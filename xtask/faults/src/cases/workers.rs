//! Two processes on one session, one that was asked to end, and clocks that were set.

use std::time::{Duration, Instant};

use agent_core::{Checkpoint, Commit, Revision, SessionId, SessionMeta};
use agent_store::{SqliteStore, Store, StoreError};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use super::{Shown, must};
use crate::Fault;
use crate::place::Place;
use crate::plot::{Phase, Plot};
use crate::stepped::Whole;
use crate::trial::{End, How, Trial};

/// What "at once" allows, on a busy machine, with the start of a process in it.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Killed in its middle, each plot goes on under a clock that is off by so much.
pub(super) async fn clock_jump(work: &Whole, park: &Whole, shift_ms: i64) -> Result<Shown, Fault> {
    for whole in [work, park] {
        let mut trial = Trial::new(whole.plot, None)?;
        for phase in whole.plot.phases() {
            let how = How { kill: Some((Place::AfterWrite, 3)), ..How::default() };
            let end = trial.run(*phase, how).await?;
            must(end == End::Killed, || format!("it was to be killed, and ended: {end:?}"))?;
            let end = trial.run(*phase, How { shift_ms, ..How::default() }).await?;
            must(matches!(end, End::Done(_)), || format!("it does not go on: {end:?}"))?;
        }
        let faults = whole.judge(&trial).await?;
        must(faults.is_empty(), || faults.join("; "))?;
    }
    Ok(Shown::As("both plots end as without it".to_owned()))
}

pub(super) async fn two() -> Result<Shown, Fault> {
    let mut trial = Trial::new(Plot::Wait, None)?;
    let (mut first, _) = trial.start(Phase::Play, How::default())?;
    trial.sim.request(0).await;
    let pid = first.id().ok_or("it is gone")?;
    let start = Instant::now();
    let End::Failed(told) = trial.run(Phase::Play, How::default()).await? else {
        return Err("two processes work on one session".into());
    };
    let refused = start.elapsed();
    must(told.contains(&format!("in use by process {pid}")), || format!("it says {told:?}"))?;
    must(refused < AT_ONCE, || format!("it was told after {refused:?}"))?;
    first.kill().await?;
    // One reply for the process that is gone, one for the next.
    trial.sim.release();
    trial.sim.release();
    let start = Instant::now();
    let end = trial.run(Phase::Play, How::default()).await?;
    let taken = start.elapsed();
    must(matches!(end, End::Done(_)), || format!("the second cannot take over: {end:?}"))?;
    must(taken < AT_ONCE, || format!("it took over in {taken:?}"))?;
    must(
        trial.scene().await?.picture.is_some_and(|picture| picture.said.len() == 2 && !picture.is_open),
        || "the conversation did not come to its end".to_owned(),
    )?;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    Ok(Shown::As(format!(
        "refused in {:.0} ms; over, with its turn played, in {:.0} ms",
        ms(refused),
        ms(taken)
    )))
}

/// A worker whose lock was taken from it, as by a file system that lost it.
pub(super) async fn stale() -> Result<Shown, Fault> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path())?;
    let id = SessionId::new("s")?;
    let first = store.lease(&id).await?;
    let model = "any/model".to_owned();
    let meta =
        SessionMeta { id: id.clone(), created_ms: 0, model, system: vec![], static_blocks: 0, tools: vec![] };
    let checkpoint = Checkpoint::default();
    store.create(&first, &meta, &checkpoint).await?;
    std::fs::remove_file(dir.path().join("locks").join("s.lock"))?;
    let second = store.lease(&id).await?;
    let commit = Commit {
        expect: Revision(0),
        entries: &[],
        checkpoint: &checkpoint,
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 1,
    };
    match store.commit(&first, commit).await {
        Err(StoreError::LeaseLost { held, newest, .. }) => {
            store.commit(&second, commit).await?;
            Ok(Shown::As(format!("epoch {held} is refused, {newest} commits")))
        }
        other => Err(format!("the stale worker was told {other:?}").into()),
    }
}

pub(super) async fn asked_to_end() -> Result<Shown, Fault> {
    let mut trial = Trial::new(Plot::Wait, None)?;
    let (mut child, _) = trial.start(Phase::Play, How::default())?;
    trial.sim.request(0).await;
    let start = Instant::now();
    send(&child, Signal::TERM)?;
    let status = tokio::time::timeout(AT_ONCE, child.wait()).await??;
    let ended = start.elapsed();
    must(status.code().is_some(), || format!("it did not end by itself: {status}"))?;
    let free = SqliteStore::open(&trial.data())?;
    drop(free.lease(&SessionId::new(crate::child::SESSION)?).await?);
    let picture = trial.scene().await?.picture.ok_or("the session is gone")?;
    must(!picture.is_open && picture.faults.is_empty(), || format!("it left {picture:?}"))?;
    Ok(Shown::As(format!("ended in {:.0} ms, its turn closed as aborted", ended.as_secs_f64() * 1e3)))
}

fn send(child: &Child, signal: Signal) -> Result<(), Fault> {
    let pid =
        child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw).ok_or("it is gone")?;
    Ok(kill_process(pid, signal)?)
}
