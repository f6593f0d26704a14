//! What lies on the disk: the session as any later process finds it, and what its rows must agree on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use agent_core::{Entry, Event, EventBody, History, JournalRecord, SessionId, SessionRecord, Usage};
use agent_store::{SqliteStore, Store};

use crate::Fault;
use crate::child::{NOTES, SESSION};

/// A session, as far as the checks compare it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picture {
    pub(crate) revision: u64,
    pub(crate) last_seq: u64,
    /// Records in the journal.
    pub(crate) pending: usize,
    pub(crate) is_open: bool,
    /// What user and model said, as JSON.
    pub(crate) said: Vec<String>,
    /// Name and result of each call that has one, also those that are only journaled.
    pub(crate) results: BTreeMap<String, (String, String)>,
    /// Calls that are journaled as started, without a result; and their tools.
    pub(crate) started: BTreeMap<String, String>,
    /// Requests that nobody has replied to.
    pub(crate) requests: BTreeSet<String>,
    /// Every request that was ever told, with how often.
    pub(crate) asked: BTreeMap<String, usize>,
    pub(crate) output_tokens: u64,
    /// What does not agree with itself.
    pub(crate) faults: Vec<String>,
}

/// A line of the notes: what happened, and to which call.
pub(crate) type Note = (String, String);

/// Looks at the session of a folder; `None` before it was created.
pub(crate) async fn look(data: &Path) -> Result<Option<Picture>, Fault> {
    let store = SqliteStore::open(data)?;
    let id = SessionId::new(SESSION)?;
    let Some(record) = store.load(&id).await? else { return Ok(None) };
    let mut faults = Vec::new();
    let events = store.events(&id, 0).await?;
    judge_events(&events, &record, &mut faults);
    judge_usage(
        &store.usage(&id).await?.into_iter().map(|(_, usage)| usage).collect::<Vec<_>>(),
        &record,
        &mut faults,
    );
    if let Some(Err(error)) = store.sessions().await?.first() {
        faults.push(format!("the list of sessions cannot be shown: {error}"));
    }
    let mut picture = picture(&record, faults)?;
    for event in &events {
        if let EventBody::InputRequested(request) = &event.body {
            *picture.asked.entry(request.id.to_string()).or_default() += 1;
        }
    }
    Ok(Some(picture))
}

fn picture(record: &SessionRecord, mut faults: Vec<String>) -> Result<Picture, Fault> {
    let (history, repairs) = History::load(&record.entries)?;
    faults.extend(repairs.iter().map(|repair| format!("the history needed a repair: {repair:?}")));
    let open = record.checkpoint.requests.iter().filter(|held| held.reply.is_none());
    let mut picture = Picture {
        revision: record.revision.0,
        last_seq: record.last_seq,
        pending: record.journal.len(),
        is_open: record.checkpoint.turn.is_some(),
        requests: open.map(|held| held.request.id.to_string()).collect(),
        output_tokens: record.checkpoint.usage.output,
        faults,
        ..Picture::default()
    };
    for entry in history.entries() {
        match entry {
            Entry::User(message) => picture.said.push(serde_json::to_string(message)?),
            Entry::Step(step) => {
                picture.said.push(serde_json::to_string(step.parts())?);
                picture.results.extend(step.pairs().map(|(call, result)| {
                    (call.id.as_str().to_owned(), (call.name.clone(), timeless(&result.output.plain())))
                }));
            }
            Entry::Note(_) | Entry::Boundary(_) => {}
        }
    }
    read_journal(&record.journal, &mut picture);
    Ok(picture)
}

fn read_journal(journal: &[JournalRecord], picture: &mut Picture) {
    let mut names = BTreeMap::new();
    for record in journal {
        match record {
            JournalRecord::Response(step) => {
                names.extend(
                    step.response().calls().map(|call| (call.id.as_str().to_owned(), call.name.clone())),
                );
                let answered = step.answered().map(|(call, result)| {
                    (call.id.as_str().to_owned(), (call.name.clone(), timeless(&result.output.plain())))
                });
                picture.results.extend(answered);
            }
            JournalRecord::Started(call) => {
                let name = names.get(call.as_str()).cloned().unwrap_or_default();
                picture.started.insert(call.as_str().to_owned(), name);
            }
            JournalRecord::Waits(request) => {
                picture.started.remove(request.call.as_str());
            }
            JournalRecord::Finished { result, .. } => {
                let call = result.call.as_str().to_owned();
                picture.started.remove(&call);
                let name = names.get(&call).cloned().unwrap_or_default();
                picture.results.insert(call, (name, timeless(&result.output.plain())));
            }
            JournalRecord::Active(_) | JournalRecord::Sent(_) | JournalRecord::Returned(_) => {}
        }
    }
}

/// Numbers have no gap, and a call has at most one result event.
fn judge_events(events: &[Event], record: &SessionRecord, faults: &mut Vec<String>) {
    let numbers = events.iter().map(|event| event.seq.unwrap_or_default());
    if !numbers.eq(1..=record.last_seq) {
        let found: Vec<_> = events.iter().map(|event| event.seq.unwrap_or_default()).collect();
        faults.push(format!("events are numbered {found:?}, and the last one should be {}", record.last_seq));
    }
    let mut told = BTreeMap::new();
    for event in events {
        if let EventBody::ActionResult { call, .. } = &event.body {
            *told.entry(call.as_str()).or_insert(0) += 1;
        }
    }
    faults.extend(
        told.iter()
            .filter(|(_, times)| **times > 1)
            .map(|(call, times)| format!("the result of {call} was told {times} times")),
    );
}

fn judge_usage(rows: &[Usage], record: &SessionRecord, faults: &mut Vec<String>) {
    let mut sum = Usage::default();
    rows.iter().for_each(|usage| sum += usage);
    let kept = &record.checkpoint.usage;
    let pair = |usage: &Usage| (usage.input, usage.output, usage.cache_read, usage.cache_write());
    if pair(&sum) != pair(kept) {
        faults.push(format!(
            "the usage of all commits is {:?}, the session says {:?}",
            pair(&sum),
            pair(kept)
        ));
    }
}

/// An output without how long a command took, of which the address of a whole output is made too.
fn timeless(output: &str) -> String {
    let line = |line: &str| match line.strip_prefix("[exit code ").and_then(|end| end.split_once(',')) {
        Some((code, _)) => format!("[exit code {code}]"),
        None => line.split_once("blob:").map_or(line, |(before, _)| before).to_owned(),
    };
    output.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What the processes noted so far.
pub(crate) fn notes(home: &Path) -> Result<Vec<Note>, Fault> {
    let text = match std::fs::read_to_string(home.join(NOTES)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let note = |line: &str| line.split_once(' ').map(|(what, call)| (what.to_owned(), call.to_owned()));
    Ok(text.lines().filter_map(note).collect())
}

/// A copy of the database and its log as a killed process left them, to look at without changing what is left.
pub(crate) fn copy(data: &Path, to: &Path) -> Result<(), Fault> {
    std::fs::create_dir_all(to)?;
    for name in [DATABASE, LOG] {
        match std::fs::copy(data.join(name), to.join(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied?),
        }
    }
    Ok(())
}

pub(crate) const DATABASE: &str = "sessions.db";
pub(crate) const LOG: &str = "sessions.db-wal";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_took_is_no_part_of_a_result() {
        assert_eq!(timeless("one\n[exit code 0, 0.1 s]"), "one\n[exit code 0]");
        assert_eq!(timeless("Outcome unknown: look, then go on."), "Outcome unknown: look, then go on.");
    }
}
