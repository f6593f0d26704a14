//! A write-ahead log that ends anywhere: what is loaded is the last commit that is whole.

use std::path::Path;

use super::disk::{begun, goes_on};
use super::{Shown, must};
use crate::Fault;
use crate::figures::Chance;
use crate::look::{LOG, Picture, copy, look};
use crate::stepped::Whole;

/// Ends inside the log that are tried, besides the end of each commit.
const CUTS: u64 = 60;
const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

pub(super) async fn torn(work: &Whole) -> Result<Shown, Fault> {
    let mut trial = begun(work).await?;
    let log = std::fs::read(trial.data().join(LOG))?;
    let ends = commits(&log)?;
    must(ends.len() > 3, || format!("the log has {} commits", ends.len()))?;
    let mut wholes: Vec<(usize, Option<Picture>)> = Vec::new();
    for end in ends {
        let picture = cut(&trial.data(), trial.path(), &log, end).await?;
        let before = wholes.last().and_then(|(_, picture)| stand(picture));
        must(before <= stand(&picture), || format!("a later commit holds less: {picture:?}"))?;
        wholes.push((end, picture));
    }
    let mut chance = Chance::new(1);
    for _ in 0..CUTS {
        let at = usize::try_from(chance.below(u64::try_from(log.len())?))?;
        let found = cut(&trial.data(), trial.path(), &log, at).await?;
        let expect = wholes.iter().rfind(|(end, _)| *end <= at).and_then(|(_, picture)| picture.clone());
        must(found == expect, || format!("cut at byte {at}: {found:?}, not {expect:?}"))?;
    }
    // The last commit is torn away from the session itself, which goes on from the one before.
    let last = wholes.iter().rev().nth(1).map_or(HEADER, |(end, _)| *end);
    std::fs::write(trial.data().join(LOG), log.get(..last + 100).unwrap_or(&log))?;
    trial.kills.clear();
    goes_on(work, &mut trial).await?;
    Ok(Shown::As(format!(
        "{} commits and {CUTS} other ends of the log, {} bytes long",
        wholes.len(),
        log.len()
    )))
}

/// How far a session has come.
fn stand(picture: &Option<Picture>) -> Option<(u64, u64, usize)> {
    picture
        .as_ref()
        .map(|picture| (picture.revision, picture.last_seq, picture.pending))
        .map(|(revision, seq, _)| (revision, seq, 0))
}

/// What is found when the log ends there.
async fn cut(data: &Path, home: &Path, log: &[u8], end: usize) -> Result<Option<Picture>, Fault> {
    let to = home.join(format!("cut{end}"));
    copy(data, &to)?;
    std::fs::write(to.join(LOG), log.get(..end).ok_or("the log is shorter")?)?;
    let picture = look(&to).await?;
    let faults = picture.as_ref().map(|picture| picture.faults.join("; ")).unwrap_or_default();
    must(faults.is_empty(), || format!("cut at byte {end}: {faults}"))?;
    std::fs::remove_dir_all(&to)?;
    Ok(picture)
}

/// Where each commit ends: behind a frame that says how large the database is then (<https://sqlite.org/fileformat.html>).
fn commits(log: &[u8]) -> Result<Vec<usize>, Fault> {
    let number = |at: usize| -> Result<usize, Fault> {
        let bytes = log.get(at..at + 4).ok_or("the log is shorter than its header")?;
        Ok(usize::try_from(u32::from_be_bytes(bytes.try_into()?))?)
    };
    let frame = FRAME_HEADER + number(8)?;
    let mut ends = Vec::new();
    let mut at = HEADER;
    while at + frame <= log.len() {
        if number(at + 4)? > 0 {
            ends.push(at + frame);
        }
        at += frame;
    }
    Ok(ends)
}
