//! This program again: as the server, and as a client of it, plain or under valgrind.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use crate::bench::Fault;

/// The server, for as long as this lives.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

/// What a client said when it was done.
#[derive(Deserialize)]
pub(crate) struct Said {
    ok: bool,
    wall_s: f64,
    user_s: f64,
    sys_s: f64,
    maxrss_kb: u64,
    pub(crate) allocations: u64,
    pub(crate) allocated_bytes: u64,
}

/// What a client is to do.
#[derive(Clone, Copy)]
pub(crate) struct Order<'o> {
    pub(crate) form: &'o str,
    pub(crate) steps: u32,
    pub(crate) sessions: u32,
    /// Whether the server looks into every body; never when time is taken.
    pub(crate) verify: bool,
}

impl Server {
    pub(crate) fn start() -> Result<Self, Fault> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("mock")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut url = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut url)?;
        }
        let server = Self { child, url: url.trim().to_owned() };
        if server.url.is_empty() {
            Err("the server of the benchmark did not start".into())
        } else {
            Ok(server)
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends when its input does; waiting only keeps it from lingering.
        drop(self.child.stdin.take());
        let _status = self.child.wait();
    }
}

impl Said {
    pub(crate) fn cpu_s(&self) -> f64 {
        self.user_s + self.sys_s
    }

    pub(crate) fn wall_s(&self) -> f64 {
        self.wall_s
    }

    pub(crate) fn peak_kb(&self) -> u64 {
        self.maxrss_kb
    }
}

/// Runs a client and returns what it said.
pub(crate) fn client(server: &Server, order: Order<'_>) -> Result<Said, Fault> {
    let output = finish(Command::new(std::env::current_exe()?), server, order)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let said: Said = serde_json::from_str(stdout.lines().last().unwrap_or_default())?;
    if said.ok { Ok(said) } else { Err(format!("{} ended before its last step", order.form).into()) }
}

/// Instructions of a whole client process, start and end included.
pub(crate) fn instructions(server: &Server, order: Order<'_>) -> Result<u64, Fault> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe()?);
    let output = finish(command, server, order)?;
    let told = String::from_utf8_lossy(&output.stderr);
    collected(&told).ok_or_else(|| format!("valgrind counted nothing; it said: {told}").into())
}

/// Whether instructions can be counted here.
pub(crate) fn has_valgrind() -> bool {
    let version =
        Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn finish(mut command: Command, server: &Server, order: Order<'_>) -> Result<std::process::Output, Fault> {
    // The server counts steps by the name of the run, so that no two may share one.
    static RUN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    let run = RUN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    command.args(["client", order.form, &server.url]);
    command.args([order.steps.to_string(), order.sessions.to_string()]);
    command.env("BENCH_RUN", format!("r{run}")).env("BENCH_VERIFY", if order.verify { "1" } else { "0" });
    for name in ["BENCH_STEPCPU", "BENCH_RT", "BENCH_NOTEXT"] {
        command.env_remove(name);
    }
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} over {} steps failed: {}", order.form, order.steps, told.trim()).into())
}

/// The number behind `Collected :`, the closing line of callgrind.
fn collected(told: &str) -> Option<u64> {
    let line = told.lines().find_map(|line| line.split_once("Collected :"))?.1;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_callgrind_is_read() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 415123\n==7== \n"), Some(415_123));
        assert_eq!(collected("==7== Collected : none"), None);
        assert_eq!(collected(""), None);
    }
}
