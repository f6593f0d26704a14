//! `agent run`: give the agent a message and watch it work.

use std::io::stdout;
use std::process::ExitCode;
use std::sync::Arc;

use agent::memory::MemoryExtractor;
use agent::{Agent, Handed, ParkKind, Run, Session, SessionId, TerminalReason, TurnEnd};

use super::signals::Signals;
use crate::args::{AgentArgs, AskMode, RunArgs};
use crate::error::CliError;
use crate::show::{JsonScreen, Screen, TextScreen};
use crate::{assemble, memory, parked, tell};

/// The status of a program that was interrupted.
const INTERRUPTED: u8 = 130;
/// The status of a turn that waits for somebody.
const PARKED: u8 = 3;

pub(crate) async fn run(args: RunArgs, key: Option<String>) -> Result<ExitCode, CliError> {
    if args.prompt.trim().is_empty() {
        return Err(CliError::BlankPrompt);
    }
    let id = match &args.session {
        Some(id) => SessionId::new(id.clone())?,
        None => SessionId::new(uuid::Uuid::now_v7().to_string())?,
    };
    assemble::check_workspace(&args.agent, &id).await?;
    let (agent, extractor) = assemble::agent(&args.agent, key)?;
    let session = agent.session(id);
    let run =
        session.send(args.prompt.as_str()).await.map_err(|error| CliError::of_run(error, &args.agent))?;
    if args.json {
        let screen = &mut JsonScreen(stdout());
        let code = to_the_end(&session, run, &args.agent, screen).await;
        leave(&agent, extractor.as_ref(), code, screen).await
    } else {
        let screen = &mut TextScreen::new(stdout());
        let code = to_the_end(&session, run, &args.agent, screen).await;
        leave(&agent, extractor.as_ref(), code, screen).await
    }
}

/// Waits for what is behind the turn, and shows what all of it cost; a failure of the turn itself comes first.
pub(crate) async fn leave(
    agent: &Agent,
    extractor: Option<&Arc<MemoryExtractor>>,
    code: Result<ExitCode, CliError>,
    screen: &mut impl Screen,
) -> Result<ExitCode, CliError> {
    let left = memory::leave(agent, extractor).await;
    let code = code?;
    left?;
    screen.spent(&agent.harness().config().process.spent())?;
    Ok(code)
}

/// Shows a run; what it waits for is put to the person on the terminal, and it goes on with the answers. Where nobody is
/// there, it is said how to answer.
pub(crate) async fn to_the_end(
    session: &Session,
    mut run: Run,
    args: &AgentArgs,
    screen: &mut impl Screen,
) -> Result<ExitCode, CliError> {
    let asks = assemble::ask_mode(args.ask)? == AskMode::Prompt;
    let mut signals = Signals::listen().map_err(CliError::Runtime)?;
    loop {
        let Some(end) = show(run, screen).await? else { return Ok(stopped()) };
        let answer = match end.requests.first().filter(|_| asks && is_parked(&end)) {
            Some(request) => tokio::select! {
                reply = parked::ask(request) => reply?.map(|reply| (request.id.clone(), reply)),
                // The question stays open.
                () = signals.next() => return Ok(stopped()),
            },
            None => None,
        };
        let Some((request, reply)) = answer else {
            screen.end(&end, session.id().as_str())?;
            if is_parked(&end) {
                parked::tell_how(session.id(), &end.requests, args)?;
            }
            return Ok(code(&end.reason));
        };
        let handed = session.respond(&request, reply).await;
        run = match handed.map_err(|error| CliError::of_run(error, args))? {
            Handed::Run(run) => run,
            Handed::Elsewhere => {
                tell::note("the reply is stored; another process has the session and goes on with it")?;
                return Ok(ExitCode::SUCCESS);
            }
        };
    }
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
pub(crate) async fn show(mut run: Run, screen: &mut impl Screen) -> Result<Option<TurnEnd>, CliError> {
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

fn is_parked(end: &TurnEnd) -> bool {
    parked_on(&end.reason).is_some()
}

/// What a turn waits for, when it does.
pub(crate) fn parked_on(reason: &TerminalReason) -> Option<ParkKind> {
    if let TerminalReason::Parked(kind) = reason { Some(*kind) } else { None }
}

/// The status of a run that was stopped at once.
pub(crate) fn stopped() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// 0 when the work was brought to its end, 3 when it waits for somebody, 130 when the user stopped it, else 1.
pub(crate) fn code(reason: &TerminalReason) -> ExitCode {
    if reason.is_success() {
        ExitCode::SUCCESS
    } else if *reason == TerminalReason::Aborted {
        ExitCode::from(INTERRUPTED)
    } else if parked_on(reason).is_some() {
        ExitCode::from(PARKED)
    } else {
        ExitCode::FAILURE
    }
}
