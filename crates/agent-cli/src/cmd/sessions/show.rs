//! `agent sessions show`: one session's conversation.

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

use agent::{EventBody, Salvaged, SessionId, SqliteStore, Store, TerminalReason, Usage};
use agent_core::{Entry, History, Spent};

use super::found;
use crate::args::ShowArgs;
use crate::error::CliError;
use crate::parked;
use crate::show::{plain, short, usage_line};

pub(crate) async fn show(args: ShowArgs) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id.clone())?;
    let store = found(args.data.data_dir.clone(), &id).await?;
    let found = store.salvage(&id).await?.unwrap_or_default();
    let mut out = stdout();
    let mut damage: Vec<String> = found.damage.iter().map(ToString::to_string).collect();
    if args.json {
        for event in &found.events {
            writeln!(out, "{}", serde_json::to_string(event)?)?;
        }
    } else {
        conversation(&found, args.numbers, &mut damage)?;
        state(&id, &found, &args.data.flags())?;
        if let Some(state) = store.state(&id).await.ok().flatten() {
            for request in state.open_requests() {
                for line in parked::lines(&id, &request, &args.data.flags()) {
                    writeln!(out, "{line}")?;
                }
            }
        }
        children(&store, &found).await?;
        if let Some(checkpoint) = &found.checkpoint {
            writeln!(out, "\n{}", usage_line(&checkpoint.usage))?;
            let Spent { usage, .. } = &checkpoint.children.session;
            if *usage != Usage::default() {
                writeln!(out, "sub-agents, not in it: {}", usage_line(usage))?;
            }
        }
    }
    for words in &damage {
        writeln!(stderr(), "agent: {}", plain(words))?;
    }
    Ok(if damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Every entry that can be read; what cannot is told where it stands.
fn conversation(found: &Salvaged, numbers: bool, damage: &mut Vec<String>) -> Result<(), CliError> {
    let mut out = stdout();
    let texts: Vec<&String> = found.entries.iter().map(|(_, text)| text).collect();
    let is_whole = found.entries.iter().zip(0..).all(|((n, _), at)| *n == at);
    if let (Ok((history, repairs)), true) = (History::load(&texts), is_whole) {
        for (entry, repair) in repairs {
            writeln!(out, "note: entry {entry} was mended: {repair:?}")?;
        }
        for (at, entry) in history.entries().iter().enumerate() {
            show_numbered(&mut out, at as u64, entry, numbers)?;
        }
        return Ok(());
    }
    let mut next = 0;
    for (n, text) in &found.entries {
        if *n != next {
            writeln!(out, "[entries {next} to {} cannot be read]", n.saturating_sub(1))?;
        }
        next = n + 1;
        match History::load(&[text]) {
            Ok((history, _)) => {
                for entry in history.entries() {
                    show_numbered(&mut out, *n, entry, numbers)?;
                }
            }
            Err(unreadable) => {
                writeln!(out, "[entry {n} cannot be read]")?;
                damage.push(format!("entry {n}: {}", unreadable.cause));
            }
        }
    }
    Ok(())
}

/// The sub-agents that the session gave tasks to, in order, with how far each came and what it used.
async fn children(store: &SqliteStore, found: &Salvaged) -> Result<(), CliError> {
    let mut out = stdout();
    for event in &found.events {
        let EventBody::SubagentStarted { child, kind, task, .. } = &event.body else { continue };
        let kind = kind.as_ref().map_or_else(String::new, |kind| format!(" ({})", plain(kind)));
        writeln!(out, "\nsub-agent {child}{kind}: {}", short(task.as_str()))?;
        let state = match store.state(child).await {
            Ok(Some(state)) => state,
            Ok(None) => {
                writeln!(out, "  there is no such session here")?;
                continue;
            }
            Err(error) => {
                writeln!(out, "  {}", plain(&error.to_string()))?;
                continue;
            }
        };
        let how = match (&state.terminal, state.open_requests().first()) {
            (_, Some(request)) => TerminalReason::Parked(request.wait.kind()).to_string(),
            (Some(reason), None) => reason.to_string(),
            (None, None) => "open".to_owned(),
        };
        writeln!(out, "  {how}; {}", usage_line(&state.checkpoint.spent_by_all().usage))?;
    }
    Ok(())
}

fn state(id: &SessionId, found: &Salvaged, flags: &str) -> Result<(), CliError> {
    let mut out = stdout();
    if let Some(reason) = &found.terminal {
        writeln!(out, "\n(the last turn ended as {reason})")?;
    }
    if found.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.turn.is_some()) {
        let id = parked::quoted(id.as_str());
        writeln!(out, "\n(a turn is open: `agent resume {id}{flags}` takes it up)")?;
    }
    Ok(())
}

fn show_numbered(out: &mut impl Write, n: u64, entry: &Entry, numbers: bool) -> Result<(), CliError> {
    if numbers {
        writeln!(out, "-- {n}")?;
    }
    show_entry(out, entry)
}

fn show_entry(out: &mut impl Write, entry: &Entry) -> Result<(), CliError> {
    match entry {
        Entry::User(message) => {
            for line in plain(&message.plain()).lines() {
                writeln!(out, "> {line}")?;
            }
        }
        Entry::Step(step) => {
            let text = step.text();
            if !text.is_empty() {
                writeln!(out, "{}", plain(&text))?;
            }
            for (call, result) in step.pairs() {
                let sign = if result.output.is_error() { "✗" } else { "✓" };
                writeln!(out, "• {}({})", plain(&call.name), short(call.input.as_str()))?;
                writeln!(out, "  {sign} {}", short(&result.output.plain()))?;
            }
        }
        Entry::Note(note) => writeln!(out, "[{}]", short(note.text.as_str()))?,
        Entry::Boundary(_) => writeln!(out, "[older entries are summarised from here on]")?,
    }
    Ok(())
}
