//! `agent run`: give the agent a message and watch it work.

use std::io::stdout;
use std::process::ExitCode;

use agent::{Agent, Run, SessionId, TerminalReason, TurnEnd};

use crate::args::RunArgs;
use crate::assemble;
use crate::error::CliError;
use crate::show::{JsonScreen, Screen, TextScreen};

/// The status of a program that was interrupted.
const INTERRUPTED: u8 = 130;

pub(crate) async fn run(args: RunArgs) -> Result<ExitCode, CliError> {
    if args.prompt.trim().is_empty() {
        return Err(CliError::BlankPrompt);
    }
    let id = match &args.session {
        Some(id) => SessionId::new(id.clone())?,
        None => SessionId::new(uuid::Uuid::now_v7().to_string())?,
    };
    let agent = assemble::agent(&args)?;
    let end = if args.json {
        watch(&agent, &id, &args.prompt, &mut JsonScreen(stdout())).await?
    } else {
        watch(&agent, &id, &args.prompt, &mut TextScreen::new(stdout())).await?
    };
    Ok(code(&end.reason))
}

/// Sends a message and shows what happens.
pub(crate) async fn watch(
    agent: &Agent,
    id: &SessionId,
    prompt: &str,
    screen: &mut impl Screen,
) -> Result<TurnEnd, CliError> {
    let run = agent.session(id.clone()).send(prompt).await?;
    let end = show(run, screen).await?;
    screen.end(&end, id.as_str())?;
    Ok(end)
}

/// Shows every event. The first Ctrl-C stops the turn, a second one the program.
async fn show(mut run: Run, screen: &mut impl Screen) -> Result<TurnEnd, CliError> {
    let cancel = run.cancel();
    loop {
        tokio::select! {
            event = run.next() => match event {
                Some(event) => screen.event(&event)?,
                None => break,
            },
            pressed = tokio::signal::ctrl_c(), if !cancel.is_cancelled() => {
                pressed.map_err(CliError::Runtime)?;
                cancel.cancel();
                tokio::spawn(async {
                    if tokio::signal::ctrl_c().await.is_ok() {
                        std::process::exit(i32::from(INTERRUPTED));
                    }
                });
            }
        }
    }
    Ok(run.finish().await?)
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
