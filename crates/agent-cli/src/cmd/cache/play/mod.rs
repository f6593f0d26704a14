//! `agent cache play`: the agent of a scenario, in a process of its own.
//!
//! Its job comes as one line of JSON on standard input. It tells each step on standard output and waits for a line in
//! return, so that the world's clock and its own stand still together.

mod agent;
mod clock;
mod paced;
mod prepare;
mod tool;

use std::io::{BufRead, Write, stdin, stdout};
use std::process::ExitCode;

use ::agent::{SessionId, TurnEnd};
use serde::{Deserialize, Serialize};

use super::scenario::{Ends, Scenario, TurnSpec};
use crate::error::CliError;

/// What a process is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) scenario: Scenario,
    /// The provider's address.
    pub(crate) base_url: String,
    /// Where the session is kept.
    pub(crate) data: String,
    /// What time it is.
    pub(crate) now_ms: i64,
    /// Requests that were answered before.
    pub(crate) answered: usize,
    /// The request, counted from 0, before which it stops and waits to be killed.
    pub(crate) stop_before: Option<usize>,
    /// Turns the order of dynamic tools.
    pub(crate) turned: usize,
}

/// What a process tells.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Told {
    /// A request was answered, and so many milliseconds pass now.
    Answered(u64),
    /// So many milliseconds pass now.
    Passed(u64),
    /// It stands before the request it was to stop at.
    Stopped,
    /// All turns are over.
    Finished,
    /// A turn did not end as it should.
    Failed(String),
}

/// The way to the world: one line out, one line in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct World;

impl World {
    /// Tells it something and waits until it has heard.
    pub(crate) fn tell(self, told: &Told) -> std::io::Result<()> {
        let mut line = serde_json::to_string(told)?;
        line.push('\n');
        let mut out = stdout();
        out.write_all(line.as_bytes())?;
        out.flush()?;
        match stdin().lock().read_line(&mut String::new())? {
            0 => Err(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "nobody plays the world any longer",
            )),
            _ => Ok(()),
        }
    }
}

pub(crate) async fn play() -> Result<ExitCode, CliError> {
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(CliError::Input)?;
    let job: Job = serde_json::from_str(&line)?;
    let told = match turns(&job).await? {
        None => Told::Finished,
        Some(problem) => Told::Failed(problem),
    };
    World.tell(&told)?;
    Ok(ExitCode::SUCCESS)
}

/// Plays all turns that are left; says what went wrong with one.
async fn turns(job: &Job) -> Result<Option<String>, CliError> {
    let clock = clock::StepClock::new(job.now_ms, job.scenario.clock.utc_offset_minutes);
    let agent = agent::assemble(job, &clock)?;
    let session = agent.session(SessionId::new("scenario")?);
    let (first, begins) = job.scenario.turn_of(job.answered);
    for (number, turn) in job.scenario.turns.iter().enumerate().skip(first) {
        // A process that takes over finds the turn open, also where its first request is the one not sent.
        let takes_up = job.answered > 0 && number == first;
        let run = if takes_up {
            session.resume().await?
        } else {
            if turn.after_seconds > 0 {
                clock.pass(Told::Passed(turn.after_seconds.saturating_mul(1_000)))?;
            }
            session.send(turn.words()).await?
        };
        let end = run.finish().await?;
        if let Some(problem) = problem(turn, &end) {
            let at = if begins { "" } else { " that was taken up" };
            return Ok(Some(format!("turn {}{at} ended as {}{problem}", number + 1, end.reason)));
        }
    }
    Ok(None)
}

/// What is wrong with a turn's end, if anything is.
fn problem(turn: &TurnSpec, end: &TurnEnd) -> Option<String> {
    match turn.ends.as_ref().map(Ends::expected) {
        None => (!end.reason.is_success()).then(String::new),
        Some((reason, _)) if end.reason != reason => Some(format!(", and was to end as {reason}")),
        Some((_, words)) => (!end.text.contains(words))
            .then(|| format!(", and its text does not hold {words:?}: {}", end.text)),
    }
}
