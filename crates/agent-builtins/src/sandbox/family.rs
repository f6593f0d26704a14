//! The processes of one command, found and ended even when they left its group.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::SandboxError;

/// How the variable begins that marks the processes of a command. A command inside a command adds its own mark and
/// keeps the outer one, so the outer one still finds it.
pub(super) const MARK: &str = "AGENT_CALL_";

/// A mark that no other command of this machine bears.
#[derive(Debug, Clone)]
pub(super) struct Mark(String);

/// The shell of a command and whatever it started.
///
/// On Linux a process belongs to it that carries the mark in its environment or is in its session; so a child that
/// made a session of its own is found. One that did both, clear its environment and leave the session, is not.
/// Elsewhere only the process group is known. Dropped while armed it kills them all (case T02).
#[derive(Debug)]
pub(super) struct Family {
    kin: Kin,
    /// Whether the shell was waited for, so that its number may come to mean another group.
    reaped: bool,
    armed: bool,
}

/// What makes a process one of a family.
#[derive(Debug, Clone)]
struct Kin {
    mark: Mark,
    leader: Option<Pid>,
}

/// One process of a family.
#[derive(Debug)]
struct Member {
    /// Its command line, for people.
    name: String,
    /// A handle that cannot come to mean another process.
    #[cfg(target_os = "linux")]
    handle: rustix::fd::OwnedFd,
}

impl Mark {
    pub(super) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(format!("{MARK}{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)))
    }

    /// The variable's name; its value is `1`.
    pub(super) fn variable(&self) -> &str {
        &self.0
    }
}

impl Family {
    pub(super) fn new(mark: Mark, leader: Option<u32>) -> Self {
        let leader = leader.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        Self { kin: Kin { mark, leader }, reaped: false, armed: true }
    }

    /// The shell was waited for.
    pub(super) fn shell_is_gone(&mut self) {
        self.reaped = true;
    }

    /// Asks all to end.
    pub(super) async fn terminate(&self) -> Result<(), SandboxError> {
        self.signal(Signal::TERM).await.map(drop)
    }

    /// Kills all, again and again until none is left or they breed faster than they die.
    pub(super) async fn kill(&self) -> Result<(), SandboxError> {
        for _ in 0..ROUNDS {
            if self.signal(Signal::KILL).await? == 0 {
                return Ok(());
            }
            tokio::time::sleep(BETWEEN).await;
        }
        Ok(())
    }

    /// Nothing is left to kill.
    pub(super) fn disarm(mut self) {
        self.armed = false;
    }

    /// Command lines of those that still run.
    pub(super) async fn names(&self) -> Result<Vec<String>, SandboxError> {
        let members = self.scan(|kin| kin.members()).await?;
        Ok(members.into_iter().map(|member| member.name).collect())
    }

    /// How many were found to signal.
    async fn signal(&self, signal: Signal) -> Result<usize, SandboxError> {
        self.signal_group(signal);
        self.scan(move |kin| kin.signal(signal)).await
    }

    /// Here and not on another thread: the number must still mean this group, which only holds until the shell is
    /// waited for.
    fn signal_group(&self, signal: Signal) {
        if let Some(leader) = self.kin.leader.filter(|_| !self.reaped) {
            // An empty group is what we want, so that error is none.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    /// Goes through the table of processes, which takes milliseconds, on a thread that may block.
    async fn scan<T, W>(&self, work: W) -> Result<T, SandboxError>
    where
        T: Send + 'static,
        W: FnOnce(&Kin) -> T + Send + 'static,
    {
        let kin = self.kin.clone();
        tokio::task::spawn_blocking(move || work(&kin)).await.map_err(SandboxError::Worker)
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // Nobody can wait here, so this gives way between rounds instead of sleeping; and no other thread is sure to
        // come to it before the runtime ends.
        for _ in 0..if self.armed { ROUNDS } else { 0 } {
            self.signal_group(Signal::KILL);
            if self.kin.signal(Signal::KILL) == 0 {
                return;
            }
            std::thread::yield_now();
        }
    }
}

impl Kin {
    /// How many were found to signal.
    fn signal(&self, signal: Signal) -> usize {
        let members = self.members();
        members.iter().for_each(|member| member.signal(signal));
        members.len()
    }

    #[cfg(not(target_os = "linux"))]
    fn members(&self) -> Vec<Member> {
        Vec::new()
    }

    #[cfg(target_os = "linux")]
    fn members(&self) -> Vec<Member> {
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        numbers.filter_map(|number| self.member(number)).collect()
    }

    #[cfg(target_os = "linux")]
    #[expect(
        clippy::disallowed_methods,
        reason = "the process table is a folder of files that no sandbox holds"
    )]
    fn member(&self, number: i32) -> Option<Member> {
        use rustix::process::{PidfdFlags, pidfd_open};

        // The handle first: what is read afterwards is about the process it holds, or about none.
        let handle = pidfd_open(Pid::from_raw(number)?, PidfdFlags::empty()).ok()?;
        let (state, session) =
            state_and_session(&std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?)?;
        let environ = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        let wanted = format!("{}=1", self.mark.0);
        let marked = environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes());
        let ours = self.leader.is_some_and(|leader| leader.as_raw_nonzero().get() == session);
        if matches!(state, 'Z' | 'X') || !(marked || ours) {
            return None;
        }
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        Some(Member { name: line.trim_end().to_owned(), handle })
    }
}

impl Member {
    #[cfg(target_os = "linux")]
    fn signal(&self, signal: Signal) {
        // It may have ended meanwhile, which is what we want.
        let _ = rustix::process::pidfd_send_signal(&self.handle, signal);
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(&self, _signal: Signal) {}
}

/// Fields 3 and 6 of a `stat` line; the name before them may hold spaces and brackets.
#[cfg(target_os = "linux")]
fn state_and_session(stat: &str) -> Option<(char, i32)> {
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(2)?.parse().ok()?))
}

const ROUNDS: usize = 50;
const BETWEEN: Duration = Duration::from_millis(4);

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_an_odd_name() {
        assert_eq!(state_and_session("42 (a) b (c)) S 1 40 41 0 -1 4194304"), Some(('S', 41)));
        assert_eq!(state_and_session("42 (x"), None);
    }

    #[test]
    fn marks_differ() {
        assert_ne!(Mark::new().variable(), Mark::new().variable());
    }
}
