//! No room, no right to write, and a database that another connection holds.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::process::Command;

use super::{Shown, must};
use crate::Fault;
use crate::look::{DATABASE, look};
use crate::place::Place;
use crate::plot::{Phase, Plot};
use crate::stepped::Whole;
use crate::trial::{End, How, Trial};

/// Room for a few of the plot's outputs.
const SMALL: u64 = 256 * 1_024;

pub(super) async fn full() -> Result<Shown, Fault> {
    let whole = Whole::play(Plot::Bulk).await?;
    let mut trial = Trial::new(Plot::Bulk, None)?;
    let told = refused(trial.run(Phase::Play, How { max_bytes: Some(SMALL), ..How::default() }).await?)?;
    must(told.contains("is full; make room and try again"), || format!("it says {told:?}"))?;
    let left = look(&trial.data()).await?.ok_or("nothing was stored before it was full")?;
    must(left.faults.is_empty(), || left.faults.join("; "))?;
    must(!left.results.is_empty(), || "it was full before the first result".to_owned())?;
    goes_on(&whole, &mut trial).await?;
    Ok(Shown::As(format!("{} results stored when it was full, and none ran again", left.results.len())))
}

pub(super) async fn read_only(work: &Whole) -> Result<Shown, Fault> {
    let mut trial = begun(work).await?;
    let data = trial.data();
    if let Err(why) = mount(&data, true).await {
        return Ok(Shown::Skipped(format!("no read-only mount can be made here ({why})")));
    }
    let before = std::fs::read(data.join(DATABASE));
    let end = trial.run(Phase::Play, How::default()).await;
    let after = std::fs::read(data.join(DATABASE));
    mount(&data, false).await?;
    let told = refused(end?)?;
    must(told.contains("Read-only") || told.contains("readonly"), || format!("it says {told:?}"))?;
    must(before? == after?, || "the file changed".to_owned())?;
    goes_on(work, &mut trial).await?;
    Ok(Shown::As("refused, and then played to its end".to_owned()))
}

pub(super) async fn locked(work: &Whole) -> Result<Shown, Fault> {
    let mut trial = begun(work).await?;
    let db = Connection::open(trial.data().join(DATABASE))?;
    db.execute_batch("BEGIN IMMEDIATE")?;
    let start = Instant::now();
    let told = refused(trial.run(Phase::Play, How::default()).await?)?;
    let waited = start.elapsed();
    must(told.contains("another process holds the database"), || format!("it says {told:?}"))?;
    must(waited < Duration::from_secs(20), || format!("it waited {waited:?}"))?;
    db.execute_batch("ROLLBACK")?;
    drop(db);
    goes_on(work, &mut trial).await?;
    Ok(Shown::As(format!("refused after {:.1} s, and then played to its end", waited.as_secs_f64())))
}

/// A session that was killed in its middle.
pub(super) async fn begun(whole: &Whole) -> Result<Trial, Fault> {
    let mut trial = Trial::new(whole.plot, None)?;
    let how = How { kill: Some((Place::AfterWrite, 7)), ..How::default() };
    let end = trial.run(Phase::Play, how).await?;
    must(end == End::Killed, || format!("it was to be killed, and ended: {end:?}"))?;
    Ok(trial)
}

/// Plays the rest, and holds all of it against a run in which nothing went wrong.
pub(super) async fn goes_on(whole: &Whole, trial: &mut Trial) -> Result<(), Fault> {
    for phase in whole.plot.phases() {
        let end = trial.run(*phase, How::default()).await?;
        must(matches!(end, End::Done(_)), || format!("it does not go on: {end:?}"))?;
    }
    let faults = whole.judge(trial).await?;
    must(faults.is_empty(), || faults.join("; "))
}

/// What it said of its failure.
fn refused(end: End) -> Result<String, Fault> {
    match end {
        End::Failed(told) => Ok(told),
        End::Done(_) | End::Killed => Err(format!("it was to fail, and ended: {end:?}").into()),
    }
}

/// Mounts a folder over itself so that nothing in it can be written, or takes that mount away. Mode bits would not keep
/// root from writing.
async fn mount(folder: &Path, is_on: bool) -> Result<(), Fault> {
    let words: &[&[&str]] =
        if is_on { &[&["mount", "--bind"], &["mount", "-o", "remount,bind,ro"]] } else { &[&["umount"]] };
    for (number, words) in words.iter().enumerate() {
        let Some((program, rest)) = words.split_first() else { continue };
        let mut command = Command::new(program);
        command.args(rest).arg(folder);
        if is_on && number == 0 {
            command.arg(folder);
        }
        let output = command.output().await?;
        must(output.status.success(), || String::from_utf8_lossy(&output.stderr).trim().to_owned())?;
    }
    Ok(())
}
