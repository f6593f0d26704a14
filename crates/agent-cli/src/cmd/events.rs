//! `agent events`: the durable events of a session from a number on, also while another process makes them.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

use agent::{Event, SessionId, Store};

use super::signals::Signals;
use crate::args::EventsArgs;
use crate::error::CliError;
use crate::show::short;
use crate::{assemble, env};

/// Between two looks at the store.
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn events(args: EventsArgs) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id.clone())?;
    let data = env::data_dir(args.data.data_dir.clone())?;
    let missing = || CliError::NoSession { session: id.clone(), data: data.clone() };
    let store = assemble::stored(&data)?.ok_or_else(missing)?;
    let mut signals = Signals::listen().map_err(CliError::Runtime)?;
    let mut seen = args.from.saturating_sub(1);
    loop {
        // Looked at first: what was written before a turn was over is among the events then.
        let state = store.state(&id).await?.ok_or_else(missing)?;
        let is_over = state.checkpoint.turn.is_none() && state.checkpoint.last_turn > 0;
        let events = store.events(&id, seen).await?;
        for event in &events {
            show(event, args.json)?;
            seen = event.seq.unwrap_or(seen);
        }
        if !args.follow || (is_over && events.is_empty()) {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = signals.next() => return Ok(super::run::stopped()),
        }
    }
}

fn show(event: &Event, as_json: bool) -> Result<(), CliError> {
    let mut out = stdout();
    if as_json {
        writeln!(out, "{}", serde_json::to_string(event)?)?;
    } else {
        let value = serde_json::to_value(event)?;
        let kind = value["type"].as_str().unwrap_or_default();
        let at = [event.turn.map(|turn| turn.to_string()), event.step.map(|step| step.to_string())];
        let at = at.into_iter().flatten().collect::<Vec<_>>().join("/");
        let data = value.get("data").filter(|data| **data != serde_json::json!({}));
        let data = data.map_or_else(String::new, |data| short(&data.to_string()));
        let line = format!("{:>5}  {at:<10}  {kind:<24}  {data}", event.seq.unwrap_or_default());
        writeln!(out, "{}", line.trim_end())?;
    }
    out.flush()?;
    Ok(())
}
