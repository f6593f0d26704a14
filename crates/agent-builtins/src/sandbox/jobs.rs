//! The commands of a sandbox that run in the background: each with an id, bounded output and an owner.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_core::{Cancel, SessionId, floor_boundary};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::SandboxError;
use super::capture::Printed;
use super::job::{JobOutput, JobState};
use super::shell::{Ended, Running, Start, Streams};
use super::unique::unique_job;

/// The jobs of one sandbox. Dropped, it ends them all; when the agent dies, their guardians do.
#[derive(Debug, Default)]
pub(super) struct Jobs(Mutex<Vec<Job>>);

#[derive(Debug)]
struct Job {
    id: String,
    session: SessionId,
    command: String,
    printed: Printed,
    began: Instant,
    /// Its sender is held by the task, so that a task that died is noticed.
    state: watch::Receiver<JobState>,
    /// Stops the command, with a grace.
    cancel: Cancel,
    /// Where reading goes on.
    read: u64,
    /// Held for its drop, which kills what the task runs.
    _task: Task,
}

#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Jobs {
    /// Starts a command and returns its id.
    pub(super) fn start(
        &self,
        session: &SessionId,
        start: &Start<'_>,
        most: Option<Duration>,
    ) -> Result<String, SandboxError> {
        let mut jobs = self.lock();
        make_room(&mut jobs, session)?;
        let printed = Printed::default();
        let running = start.launch(Streams { out: printed.clone(), ..Streams::default() })?;
        let (tell, state) = watch::channel(JobState::Running);
        let cancel = Cancel::new();
        let task = tokio::spawn(see_to(running, most, cancel.clone(), tell));
        let id = unique_job();
        jobs.push(Job {
            id: id.clone(),
            session: session.clone(),
            command: start.command.to_owned(),
            printed,
            began: Instant::now(),
            state,
            cancel,
            read: 0,
            _task: Task(task),
        });
        Ok(id)
    }

    /// What a job printed from this byte on; without one, from where the last reading ended.
    pub(super) fn read(
        &self,
        session: &SessionId,
        id: &str,
        offset: Option<u64>,
    ) -> Result<JobOutput, SandboxError> {
        let mut jobs = self.lock();
        let at = find(&jobs, session, id)?;
        Ok(jobs[at].read(offset))
    }

    /// Ends a job with everything it started, and waits until that is done.
    pub(super) async fn end(&self, session: &SessionId, id: &str) -> Result<JobOutput, SandboxError> {
        let state = {
            let jobs = self.lock();
            jobs[find(&jobs, session, id)?].stop()
        };
        ended(state).await;
        self.read(session, id, None)
    }

    /// Ends all jobs of a session and forgets them.
    pub(super) async fn end_all(&self, session: &SessionId) {
        let states: Vec<_> =
            self.lock().iter().filter(|job| job.session == *session).map(Job::stop).collect();
        for state in states {
            ended(state).await;
        }
        self.lock().retain(|job| job.session != *session || job.runs());
    }

    /// Forgets all jobs of a session: with its task each loses what it runs as soon as the runtime comes to it.
    pub(super) fn drop_all(&self, session: &SessionId) {
        self.lock().retain(|job| job.session != *session);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn runs(&self) -> bool {
        self.now() == JobState::Running
    }

    fn now(&self) -> JobState {
        // First whether the task is gone: then what it said is its last word.
        let gone = self.state.has_changed().is_err();
        match (self.state.borrow().clone(), gone) {
            (JobState::Running, true) => JobState::Lost("the task that watched over it died".to_owned()),
            (state, _) => state,
        }
    }

    fn stop(&self) -> watch::Receiver<JobState> {
        self.cancel.cancel();
        self.state.clone()
    }

    fn read(&mut self, offset: Option<u64>) -> JobOutput {
        // First the state: behind the last of them nothing more is printed.
        let state = self.now();
        let from = offset.unwrap_or(self.read);
        let (total, (mut printed, dropped, mut rest)) =
            self.printed.look(|captured| (captured.total(), captured.since(from)));
        let last = if dropped == 0 { &mut printed } else { &mut rest };
        let held = if state == JobState::Running { unfinished(last) } else { 0 };
        last.truncate(last.len() - held);
        self.read = total - held as u64;
        let took = match &state {
            JobState::Ended { took, .. } => *took,
            JobState::Running | JobState::Lost(_) => self.began.elapsed(),
        };
        JobOutput { state, from: from.min(total), printed, dropped, rest, next: self.read, took }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn see_to(running: Running, most: Option<Duration>, cancel: Cancel, tell: watch::Sender<JobState>) {
    let state = match running.finish(most, &cancel).await {
        Ok(Ended { exit, took, stopped, unstopped }) => JobState::Ended { exit, took, stopped, unstopped },
        Err(error) => JobState::Lost(error.to_string()),
    };
    tell.send_replace(state);
}

async fn ended(mut state: watch::Receiver<JobState>) {
    // An error says that the task is gone, and so is what it ran.
    let _ = state.wait_for(|state| *state != JobState::Running).await;
}

fn make_room(jobs: &mut Vec<Job>, session: &SessionId) -> Result<(), SandboxError> {
    let of_session = |job: &&Job| job.session == *session;
    if jobs.iter().filter(of_session).filter(|job| job.runs()).count() >= MOST {
        return Err(SandboxError::ManyJobs { most: MOST, jobs: listed(jobs, session) });
    }
    let over = jobs.iter().filter(of_session).filter(|job| !job.runs()).count();
    for _ in MOST..=over {
        if let Some(oldest) = jobs.iter().position(|job| job.session == *session && !job.runs()) {
            jobs.remove(oldest);
        }
    }
    Ok(())
}

fn find(jobs: &[Job], session: &SessionId, id: &str) -> Result<usize, SandboxError> {
    let at = jobs.iter().position(|job| job.session == *session && job.id == id);
    at.ok_or_else(|| SandboxError::NoSuchJob { job: id.to_owned(), jobs: listed(jobs, session) })
}

/// The jobs of a session in words, for an error.
fn listed(jobs: &[Job], session: &SessionId) -> String {
    let mine = jobs.iter().filter(|job| job.session == *session);
    let named = mine.map(|job| {
        let state = if job.runs() { "running" } else { "ended" };
        let command: String = job.command.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let command = &command[..floor_boundary(&command, SHOWN)];
        format!("{} ({state}, `{command}`)", job.id)
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { "none".to_owned() } else { named.join(", ") }
}

/// How many bytes at the end may be the beginning of something that further bytes complete: a character, or the end of a
/// line.
fn unfinished(bytes: &[u8]) -> usize {
    let back = (1..=bytes.len().min(3)).find(|back| bytes[bytes.len() - back] & 0xC0 != 0x80);
    let Some(back) = back else { return 0 };
    let wanted = match bytes[bytes.len() - back] {
        b'\r' | 0xC2..=0xDF => 2,
        0xE0..=0xEF => 3,
        0xF0..=0xF4 => 4,
        _ => 1,
    };
    if wanted > back { back } else { 0 }
}

/// The most jobs of a session that run at once. As many that ended can still be read; the oldest are forgotten first.
const MOST: usize = 16;
/// Bytes of a command that an error shows.
const SHOWN: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_waits_for_its_end() {
        let check = |bytes: &[u8], held: usize| assert_eq!(unfinished(bytes), held, "{bytes:?}");
        check(b"", 0);
        check(b"abc", 0);
        check(b"abc\r", 1);
        check(b"abc\r\n", 0);
        check("ä".as_bytes(), 0);
        check(b"a\xc3", 1);
        check(&"€".as_bytes()[..1], 1);
        check(&"€".as_bytes()[..2], 2);
        check("€".as_bytes(), 0);
        check(&"🚀".as_bytes()[..3], 3);
        check("🚀".as_bytes(), 0);
        check(b"\xff", 0);
        check(b"\x80\x80\x80\x80", 0);
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_shown_broken_wherever_it_is_cut(text in "\\PC{0,20}", cut in 0_usize..80) {
            let cut = cut.min(text.len());
            let shown = cut - unfinished(&text.as_bytes()[..cut]);
            proptest::prop_assert_eq!(shown, floor_boundary(&text, cut));
        }
    }
}
