//! The table of processes, as Linux shows it; elsewhere it is empty.

use rustix::process::{Pid, Signal};

/// A process that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) number: i32,
    pub(super) parent: i32,
    pub(super) session: i32,
    /// The tick it began at: a number that comes again belongs to one that began later.
    pub(super) start: u64,
}

/// All that run now; those that ended and were not waited for are left out.
#[cfg(target_os = "linux")]
pub(super) fn table() -> Vec<Process> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter_map(look_up).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn table() -> Vec<Process> {
    Vec::new()
}

/// The tick a process began at.
#[cfg(target_os = "linux")]
pub(super) fn started(process: Pid) -> Option<u64> {
    look_up(process.as_raw_nonzero().get()).map(|process| process.start)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn started(_process: Pid) -> Option<u64> {
    None
}

impl Process {
    /// Whether this setting stands in the environment it was started with.
    pub(super) fn bears(&self, setting: &[u8]) -> bool {
        self.part("environ").split(|byte| *byte == 0).any(|variable| variable == setting)
    }

    /// Whether its soft or its hard limit on file locks is this.
    pub(super) fn has_lock_limit(&self, limit: u64) -> bool {
        lock_limits(&String::from_utf8_lossy(&self.part("limits"))).contains(&Some(limit))
    }

    /// Its command line, for people.
    pub(super) fn name(&self) -> String {
        String::from_utf8_lossy(&self.part("cmdline")).replace('\0', " ").trim_end().to_owned()
    }

    /// Signals it, and no other that came to have its number.
    #[cfg(target_os = "linux")]
    pub(super) fn signal(&self, signal: Signal) {
        use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

        // It may have ended meanwhile, which is what we want.
        let Some(number) = Pid::from_raw(self.number) else { return };
        let Ok(handle) = pidfd_open(number, PidfdFlags::empty()) else { return };
        // The handle first: what is looked up afterwards is the process it holds, or another began later.
        if look_up(self.number).is_some_and(|now| now.start == self.start) {
            // It may have ended since, which is what the signal is for.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn signal(&self, _signal: Signal) {}

    #[expect(
        clippy::disallowed_methods,
        reason = "the process table is a folder of files that no sandbox holds"
    )]
    fn part(&self, name: &str) -> Vec<u8> {
        // A process that has ended, or is not ours to look at, has nothing to show.
        std::fs::read(format!("/proc/{}/{name}", self.number)).unwrap_or_default()
    }
}

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "the process table is a folder of files that no sandbox holds")]
fn look_up(number: i32) -> Option<Process> {
    // The name may hold any bytes.
    let stat = std::fs::read(format!("/proc/{number}/stat")).ok()?;
    parse(number, &String::from_utf8_lossy(&stat))
}

/// Fields 3, 4, 6 and 22 of a `stat` line; the name before them may hold spaces and brackets.
#[cfg(target_os = "linux")]
fn parse(number: i32, stat: &str) -> Option<Process> {
    let fields: Vec<&str> = stat.get(stat.rfind(')')? + 1..)?.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let (parent, session) = (fields.get(1)?.parse().ok()?, fields.get(3)?.parse().ok()?);
    Some(Process { number, parent, session, start: fields.get(19)?.parse().ok()? })
}

/// The soft and the hard limit on file locks, of a table of limits; none is one that is not a number.
fn lock_limits(table: &str) -> [Option<u64>; 2] {
    let line = table.lines().find_map(|line| line.strip_prefix("Max file locks"));
    let mut fields = line.unwrap_or_default().split_whitespace().map(|field| field.parse().ok());
    [fields.next().flatten(), fields.next().flatten()]
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn limits_on_file_locks() {
        let check = |table: &str, limits: [Option<u64>; 2]| assert_eq!(lock_limits(table), limits, "{table}");
        check(
            "Limit  Soft Limit  Hard Limit  Units\nMax file locks   7   unlimited   locks \n",
            [Some(7), None],
        );
        check("Max file locks            unlimited            9                    locks", [None, Some(9)]);
        check("Max locked memory         7                    7                    bytes", [None, None]);
        check("", [None, None]);
    }

    #[test]
    fn a_stat_line_with_an_odd_name() {
        let rest = "1 40 41 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 7788 0";
        let found = Process { number: 42, parent: 1, session: 41, start: 7788 };
        assert_eq!(parse(42, &format!("42 (a) b (c)) S {rest}")), Some(found));
        assert_eq!(parse(42, &format!("42 (a) Z {rest}")), None);
        assert_eq!(parse(42, "42 (x"), None);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = i32::try_from(std::process::id()).unwrap();
        let all = table();
        let this = all.iter().find(|process| process.number == own).unwrap();
        assert!(this.start > 0 && this.name().contains("agent_builtins"), "{this:?} {}", this.name());
    }
}
