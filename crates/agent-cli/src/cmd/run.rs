//! `agent run`: give the agent a message and watch it work.

use std::io::stdout;
use std::process::ExitCode;

use agent::{Agent, Run, SessionId, TerminalReason, TurnEnd};

use super::signals::Signals;
use crate::args::RunArgs;
use crate::assemble;
use crate::error::CliError;
use crate::show::{JsonScreen, Screen, TextScreen};

/// The status of a program that was interrupted.
const INTERRUPTED: u8 = 130;

pub(crate) async fn run(args: RunArgs, key: Option<String>) -> Result<ExitCode, CliError> {
    if args.prompt.trim().is_empty() {
        return Err(CliError::BlankPrompt);
    }
    let id = match &args.session {
        Some(id) => SessionId::new(id.clone())?,
        None => SessionId::new(uuid::Uuid::now_v7().to_string())?,
    };
    assemble::check_workspace(&args.agent, &id).await?;
    let agent = assemble::agent(&args.agent, key)?;
    let end = if args.json {
        watch(&agent, &id, &args.prompt, &mut JsonScreen(stdout())).await?
    } else {
        watch(&agent, &id, &args.prompt, &mut TextScreen::new(stdout())).await?
    };
    Ok(end.map_or(stopped(), |end| code(&end.reason)))
}

/// Sends a message and shows what happens; `None` when it was stopped at once.
pub(crate) async fn watch(
    agent: &Agent,
    id: &SessionId,
    prompt: &str,
    screen: &mut impl Screen,
) -> Result<Option<TurnEnd>, CliError> {
    let run = agent.session(id.clone()).send(prompt).await?;
    let end = show(run, screen).await?;
    if let Some(end) = &end {
        screen.end(end, id.as_str())?;
    }
    Ok(end)
}

/// Shows every event. The first signal stops the turn; a second one drops the run where it stands, which kills what it
/// started and leaves the session at its last write.
async fn show(mut run: Run, screen: &mut impl Screen) -> Result<Option<TurnEnd>, CliError> {
    let mut signals = Signals::listen().map_err(CliError::Runtime)?;
    let cancel = run.cancel();
    loop {
        tokio::select! {
            event = run.next() => match event {
                Some(event) => screen.event(&event)?,
                None => return Ok(Some(run.finish().await?)),
            },
            () = signals.next() => {
                if cancel.is_cancelled() {
                    return Ok(None);
                }
                cancel.cancel();
            }
        }
    }
}

/// The status of a run that was stopped at once.
pub(crate) fn stopped() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// 0 when the work was brought to its end, 130 when the user stopped it, else 1.
pub(crate) fn code(reason: &TerminalReason) -> ExitCode {
    if reason.is_success() {
        ExitCode::SUCCESS
    } else if *reason == TerminalReason::Aborted {
        ExitCode::from(INTERRUPTED)
    } else {
        ExitCode::FAILURE
    }
}
