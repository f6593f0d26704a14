//! What the process has used so far: processor time and memory, as the system counts them.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::Ticks;

/// Seconds of processor time.
pub(super) struct Cpu {
    pub(super) user: f64,
    pub(super) system: f64,
}

/// Processor time so far. The sum is exact; how it divides is known to the system's tick only.
pub(super) fn cpu() -> Cpu {
    let total = cpu_seconds();
    let system = system_seconds().min(total);
    Cpu { user: total - system, system }
}

/// The most memory that was resident, in KiB; 0 where the system does not tell.
pub(super) fn peak_kb() -> u64 {
    let status = proc_file("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|value| value.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// From now on [`tick`] notes this.
pub(super) fn note(what: Ticks, steps: usize) {
    if what != Ticks::Nothing {
        NOTES.get_or_init(|| (what, Mutex::new(Vec::with_capacity(steps))));
    }
}

/// Notes what was asked for, if anything was.
pub(super) fn tick() {
    if let Some((what, noted)) = NOTES.get() {
        let now = match what {
            Ticks::Written => written_bytes(),
            Ticks::Writer => writer_us(),
            Ticks::Cpu | Ticks::Nothing => cpu_seconds() * 1e6,
        };
        noted.lock().unwrap_or_else(PoisonError::into_inner).push(now);
    }
}

/// What was noted at each tick, if it was this.
pub(super) fn ticks(what: Ticks) -> Vec<f64> {
    let notes = NOTES.get().filter(|(noted, _)| *noted == what);
    notes.map_or_else(Vec::new, |(_, noted)| noted.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

static NOTES: OnceLock<(Ticks, Mutex<Vec<f64>>)> = OnceLock::new();

fn cpu_seconds() -> f64 {
    cpu_time::ProcessTime::now().as_duration().as_secs_f64()
}

/// Bytes that this process sent on their way to the disk; 0 where the system does not tell, or files lie in memory.
fn written_bytes() -> f64 {
    let io = proc_file("io");
    let written = io.lines().find_map(|line| line.strip_prefix("write_bytes:"));
    written.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
}

/// Processor time of the thread that writes for the store; 0 where there is none, or the system does not tell.
fn writer_us() -> f64 {
    static WRITER: OnceLock<Option<String>> = OnceLock::new();
    let Some(clock) = WRITER.get_or_init(writer_clock) else { return 0.0 };
    let nanoseconds = proc_file(clock).split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.map_or(0.0, |nanoseconds| nanoseconds / 1e3)
}

/// The file that tells of this thread, found by its name, of which the system keeps 15 bytes.
fn writer_clock() -> Option<String> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let ids = threads.filter_map(|thread| thread.ok()?.file_name().into_string().ok());
    let mut folders = ids.map(|id| format!("task/{id}"));
    let folder = folders.find(|folder| proc_file(&format!("{folder}/comm")).trim() == "agent-store-wri")?;
    Some(format!("{folder}/schedstat"))
}

/// Field 15 of `stat`, in hundredths of a second; the name in field 2 may hold spaces.
fn system_seconds() -> f64 {
    let stat = proc_file("stat");
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: Option<f64> = behind_name.split_whitespace().nth(12).and_then(|field| field.parse().ok());
    ticks.map_or(0.0, |ticks| ticks / 100.0)
}

#[expect(clippy::disallowed_methods, reason = "the system tells what a process used in files")]
fn proc_file(name: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default()
}
