//! A client of the speed benchmark: `bench_client [--store DIR | --parts] BASE_URL STEPS [SESSIONS]`.
//!
//! It does an agent run of so many steps against a server that speaks Anthropic's Messages, and ends with one line
//! of JSON on what that cost. Alone it is the facade in memory; with `--store DIR` the sessions lie in SQLite in that
//! folder; `--parts` is a loop by hand over the turn machine and the codec. `BENCH_RUN`, `BENCH_VERIFY`,
//! `BENCH_STEPCPU`, `BENCH_STEPIO`, `BENCH_STEPWRITER`, `BENCH_KEEP`, `BENCH_RT` (`current` or `multi`) and `BENCH_NOTEXT` are read from the
//! environment.

mod bench;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use bench::{Fault, Form, Job};

fn main() -> Result<(), Fault> {
    #[expect(clippy::disallowed_methods, reason = "a program: its settings are in the environment")]
    let env = |name: &str| std::env::var(name).ok();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (form, rest) = match words.as_slice() {
        ["--store", folder, rest @ ..] => (Form::Sqlite(PathBuf::from(folder)), rest),
        ["--parts", rest @ ..] => (Form::Parts, rest),
        rest => (Form::Memory, rest),
    };
    let job = Arc::new(Job::parse(rest, &env)?);
    let measured = form.measure(&job)?;
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&measured)?)?;
    if measured.ok { Ok(()) } else { Err("a session ended before its last step; see the line above".into()) }
}
