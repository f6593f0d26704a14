//! This program again: as the server, and as a client of it, plain or under valgrind.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde::Deserialize;

use crate::bench::Fault;
use crate::mock;
use crate::store::stored::Stored;

/// The server, for as long as this lives.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

/// What a client said when it was done.
#[derive(Deserialize)]
pub(crate) struct Said {
    ok: bool,
    pub(crate) wall_s: f64,
    user_s: f64,
    sys_s: f64,
    maxrss_kb: u64,
    pub(crate) allocations: u64,
    pub(crate) allocated_bytes: u64,
    pub(crate) live_peak: u64,
    pub(crate) kept_bytes: u64,
    pub(crate) done_s: [f64; 3],
    pub(crate) step_cpu_us: Vec<f64>,
    pub(crate) step_written: Vec<f64>,
    pub(crate) step_writer_us: Vec<f64>,
    pub(crate) stored: Option<Stored>,
    /// Connections the server saw.
    #[serde(skip)]
    pub(crate) connections: u64,
}

/// What a client is to do.
#[derive(Clone, Copy)]
pub(crate) struct Order<'o> {
    pub(crate) form: &'o str,
    pub(crate) steps: u32,
    pub(crate) sessions: u32,
    pub(crate) look: Look,
}

/// What is looked at besides the closing line; each costs time, so that never two are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    Nothing,
    /// The server looks into every body.
    Bodies,
    /// Processor time at each step.
    Cpu,
    /// Bytes to the disk at each step.
    Written,
    /// Processor time of the store's thread at each step.
    Writer,
    /// Sessions stay until all are done, and memory is watched.
    Memory,
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

    /// Connections so far.
    fn accepted(&self) -> Result<u64, Fault> {
        let address = self.url.strip_prefix("http://").ok_or("the server told no address")?;
        let mut stream = TcpStream::connect(address)?;
        write!(stream, "GET {} HTTP/1.0\r\n\r\n", mock::ACCEPTED)?;
        let mut told = String::new();
        stream.read_to_string(&mut told)?;
        let (_, number) = told.rsplit_once("\r\n\r\n").ok_or("the server told no number of connections")?;
        Ok(number.trim().parse()?)
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

    pub(crate) fn peak_mib(&self) -> f64 {
        self.maxrss_kb as f64 / 1_024.0
    }
}

/// Runs a client and returns what it said.
pub(crate) fn client(server: &Server, order: Order<'_>) -> Result<Said, Fault> {
    let before = server.accepted()?;
    let output = finish(Command::new(std::env::current_exe()?), server, order)?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut said: Said = serde_json::from_str(stdout.lines().last().unwrap_or_default())?;
    said.connections = server.accepted()? - before;
    if said.ok { Ok(said) } else { Err(format!("{} ended before its last step", order.form).into()) }
}

/// Instructions of a whole client process, start and end included.
pub(crate) fn instructions(server: &Server, order: Order<'_>) -> Result<u64, Fault> {
    counted(&finish(counter()?, server, order)?)
}

/// Instructions of this program with these words, which needs no server.
pub(crate) fn instructions_of(words: impl Iterator<Item = String>) -> Result<u64, Fault> {
    counted(&alone(counter()?, words)?)
}

/// What this program says with these words.
pub(crate) fn said(words: impl Iterator<Item = String>) -> Result<String, Fault> {
    let output = alone(Command::new(std::env::current_exe()?), words)?;
    Ok(String::from_utf8(output.stdout)?)
}

/// This program under valgrind.
fn counter() -> Result<Command, Fault> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe()?);
    Ok(command)
}

fn counted(output: &Output) -> Result<u64, Fault> {
    let told = String::from_utf8_lossy(&output.stderr);
    collected(&told).ok_or_else(|| format!("valgrind counted nothing; it said: {told}").into())
}

fn alone(mut command: Command, words: impl Iterator<Item = String>) -> Result<Output, Fault> {
    let output = command.args(words).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

/// Whether instructions can be counted here: valgrind is there and starts programs.
pub(crate) fn has_valgrind() -> bool {
    let mut trial = Command::new("valgrind");
    trial
        .args(["--tool=none", "-q", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    trial.status().is_ok_and(|status| status.success())
}

/// Runs the client that is an example of the crates, and forgets what it said.
pub(crate) fn example(program: &Path, server: &Server, order: Order<'_>) -> Result<(), Fault> {
    ran(Command::new(program), server, order).map(drop)
}

fn finish(mut command: Command, server: &Server, order: Order<'_>) -> Result<Output, Fault> {
    command.args(["client", order.form]);
    ran(command, server, order)
}

fn ran(mut command: Command, server: &Server, order: Order<'_>) -> Result<Output, Fault> {
    // The server counts steps by the name of the run, so that no two may share one.
    static RUN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    let run = RUN.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    command.arg(&server.url).args([order.steps.to_string(), order.sessions.to_string()]);
    command.env("BENCH_RUN", format!("r{run}"));
    for (name, look) in SETTINGS {
        command.env_remove(name);
        if look == Some(order.look) {
            command.env(name, "1");
        }
    }
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(format!("{} over {} steps failed: {}", order.form, order.steps, told.trim()).into())
}

/// What a client reads from its environment; none of it is inherited.
const SETTINGS: [(&str, Option<Look>); 7] = [
    ("BENCH_VERIFY", Some(Look::Bodies)),
    ("BENCH_STEPCPU", Some(Look::Cpu)),
    ("BENCH_STEPIO", Some(Look::Written)),
    ("BENCH_STEPWRITER", Some(Look::Writer)),
    ("BENCH_KEEP", Some(Look::Memory)),
    ("BENCH_RT", None),
    ("BENCH_NOTEXT", None),
];

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
