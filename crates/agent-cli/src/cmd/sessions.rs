//! `agent sessions`: what is stored.

use std::io::{Write, stdout};
use std::process::ExitCode;

use agent::{SessionId, Store};
use agent_core::{Entry, History};

use crate::args::{ListArgs, ShowArgs};
use crate::error::CliError;
use crate::show::{plain, short, usage_line};
use crate::{assemble, env};

pub(crate) async fn list(args: ListArgs) -> Result<ExitCode, CliError> {
    let data = env::data_dir(args.data.data_dir)?;
    let sessions = match assemble::stored(&data)? {
        Some(store) => store.sessions().await?,
        None => Vec::new(),
    };
    let mut out = stdout();
    for line in &sessions {
        let session = match line {
            Ok(session) => session,
            Err(error) => {
                writeln!(std::io::stderr(), "agent: {}", plain(&error.to_string()))?;
                continue;
            }
        };
        if args.json {
            writeln!(out, "{}", serde_json::to_string(session)?)?;
            continue;
        }
        let state = session.terminal.as_ref().map_or_else(|| "open".to_owned(), ToString::to_string);
        writeln!(
            out,
            "{}  {}  {}, {}, {state}, {} tokens in, {} out",
            session.id,
            session.model,
            counted(session.turns, "turn", "turns"),
            counted(session.entries, "entry", "entries"),
            session.usage.total_input(),
            session.usage.output
        )?;
    }
    if sessions.is_empty() && !args.json {
        writeln!(out, "No sessions in {} yet. `agent run \"…\"` begins one.", data.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn show(args: ShowArgs) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id)?;
    let data = env::data_dir(args.data.data_dir)?;
    let missing = || CliError::NoSession { session: id.clone(), data: data.clone() };
    let store = assemble::stored(&data)?.ok_or_else(missing)?;
    let record = store.load(&id).await?.ok_or_else(missing)?;
    let mut out = stdout();
    if args.json {
        for event in store.events(&id, 0).await? {
            writeln!(out, "{}", serde_json::to_string(&event)?)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (history, repairs) = History::load(&record.entries)?;
    for (entry, repair) in repairs {
        writeln!(out, "note: entry {entry} was mended: {repair:?}")?;
    }
    for entry in history.entries() {
        show_entry(&mut out, entry)?;
    }
    let listed = store.sessions().await?.into_iter().flatten().find(|line| line.id == id);
    if let Some(reason) = listed.and_then(|line| line.terminal) {
        writeln!(out, "\n(the last turn ended as {reason})")?;
    }
    if record.checkpoint.turn.is_some() {
        writeln!(out, "\n(a turn is open: `agent run --session {id} \"…\"` takes it up)")?;
    }
    writeln!(out, "\n{}", usage_line(&record.checkpoint.usage))?;
    Ok(ExitCode::SUCCESS)
}

fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
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
