//! What the clients of the speed benchmark share: the command line, the prompt, the run and what it cost.

mod facade;
mod meter;
mod parts;

use std::any::Any;
use std::error::Error;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

/// What can go wrong, in words.
pub(crate) type Fault = Box<dyn Error + Send + Sync>;

/// How the client is built.
pub(crate) enum Form {
    /// The facade, sessions in memory.
    Memory,
    /// The facade, sessions in a database in this folder, written through to the disk.
    Sqlite(PathBuf),
    /// The turn machine and the codec, driven by hand.
    Parts,
}

/// What is to be run.
pub(crate) struct Job {
    pub(crate) base_url: String,
    /// Model calls of a session.
    pub(crate) steps: usize,
    /// Sessions at once.
    pub(crate) sessions: usize,
    run: String,
    verify: bool,
    without_text: bool,
    many_threads: bool,
    ticks: Ticks,
    /// Whether sessions that are done stay until all are.
    keep: bool,
    /// Bytes that are allocated now, where someone counts them.
    pub(crate) live: fn() -> u64,
}

/// What is noted each time the tool is called, when there is one session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ticks {
    Nothing,
    /// Processor time.
    Cpu,
    /// Bytes on their way to the disk.
    Written,
    /// Processor time of the thread that writes for the store.
    Writer,
}

/// What came of one session.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) calls: usize,
    /// Bytes of text that arrived as deltas.
    pub(crate) heard: usize,
    /// Bytes of the last answer.
    pub(crate) last: usize,
    /// The session itself, which could go on.
    pub(crate) kept: Option<Box<dyn Any + Send>>,
    /// Seconds until it was done.
    done_s: f64,
}

/// The closing line.
#[derive(Serialize)]
pub(crate) struct Measured {
    client: &'static str,
    n: usize,
    sessions: usize,
    pub(crate) ok: bool,
    tool_calls: usize,
    final_len: usize,
    delta_len: usize,
    wall_s: f64,
    user_s: f64,
    sys_s: f64,
    maxrss_kb: u64,
    rss0_kb: u64,
    rt: &'static str,
    /// At each call of the tool: microseconds of processor time.
    step_cpu_us: Vec<f64>,
    /// At each call of the tool: bytes on their way to the disk.
    step_written: Vec<f64>,
    /// At each call of the tool: microseconds of processor time of the thread that writes for the store.
    step_writer_us: Vec<f64>,
    /// Seconds until the first, the middle and the last session was done.
    done_s: [f64; 3],
    /// Bytes more than before, once all sessions are done and those that are kept wait for more.
    kept_bytes: u64,
}

impl Job {
    /// `BASE_URL STEPS [SESSIONS]`, and `BENCH_…` from the environment.
    pub(crate) fn parse(words: &[&str], env: &dyn Fn(&str) -> Option<String>) -> Result<Self, Fault> {
        let (base_url, steps, sessions) = match words {
            [url, steps] => (url, steps.parse()?, 1),
            [url, steps, sessions] => (url, steps.parse()?, sessions.parse()?),
            _ => return Err("give BASE_URL STEPS [SESSIONS], such as http://127.0.0.1:8080 50".into()),
        };
        if steps == 0 || sessions == 0 {
            return Err("a run has at least one step and one session".into());
        }
        let is_set = |name| env(name).is_some_and(|value| value == "1");
        Ok(Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            steps,
            sessions,
            run: env("BENCH_RUN").unwrap_or_else(|| "alone".to_owned()),
            verify: is_set("BENCH_VERIFY"),
            without_text: env("BENCH_NOTEXT").is_some(),
            many_threads: env("BENCH_RT").is_some_and(|value| value == "multi"),
            ticks: match sessions {
                1 if is_set("BENCH_STEPCPU") => Ticks::Cpu,
                1 if is_set("BENCH_STEPIO") => Ticks::Written,
                1 if is_set("BENCH_STEPWRITER") => Ticks::Writer,
                _ => Ticks::Nothing,
            },
            keep: is_set("BENCH_KEEP"),
            live: || 0,
        })
    }

    /// The first message of a session, by which the server knows what to answer.
    pub(crate) fn prompt(&self, session: usize) -> String {
        let Self { run, steps, .. } = self;
        let verify = u8::from(self.verify);
        let text = if self.without_text { " t=0" } else { "" };
        format!("[[bench run={run} n={steps} s={session} v={verify}{text}]] Please begin.")
    }

    /// A name no other run has.
    pub(crate) fn session_name(&self, session: usize) -> String {
        format!("bench-{}-{session}", self.run)
    }
}

impl Form {
    /// Runs the job in this form.
    pub(crate) fn measure(&self, job: &Arc<Job>) -> Result<Measured, Fault> {
        match self {
            Self::Memory => facade::measure(job, None),
            Self::Sqlite(folder) => facade::measure(job, Some(folder)),
            Self::Parts => parts::measure(job),
        }
    }
}

/// Runs all sessions of a job at once, and says what they cost together.
pub(crate) fn measure<S, R>(client: &'static str, job: &Job, session: S) -> Result<Measured, Fault>
where
    S: Fn(usize) -> R,
    R: Future<Output = Result<Outcome, Fault>> + Send + 'static,
{
    let mut runtime = match job.many_threads {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    meter::note(job.ticks, job.steps);
    let (before, peak_before, live_before) = (meter::cpu(), meter::peak_kb(), (job.live)());
    #[expect(clippy::disallowed_methods, reason = "a benchmark owns a clock")]
    let start = Instant::now();
    let done = runtime.block_on(all(start, job, session))?;
    let (wall, after) = (start.elapsed(), meter::cpu());
    let kept_bytes = (job.live)().saturating_sub(live_before);
    let sum = |count: fn(&Outcome) -> usize| done.iter().map(count).sum::<usize>();
    let tool_calls = sum(|one| one.calls);
    Ok(Measured {
        client,
        n: job.steps,
        sessions: job.sessions,
        ok: tool_calls == (job.steps - 1) * job.sessions,
        tool_calls,
        final_len: sum(|one| one.last),
        delta_len: sum(|one| one.heard),
        wall_s: wall.as_secs_f64(),
        user_s: after.user - before.user,
        sys_s: after.system - before.system,
        maxrss_kb: meter::peak_kb(),
        rss0_kb: peak_before,
        rt: if job.many_threads { "multi" } else { "current" },
        step_cpu_us: meter::ticks(Ticks::Cpu),
        step_written: meter::ticks(Ticks::Written),
        step_writer_us: meter::ticks(Ticks::Writer),
        done_s: spread(&done),
        kept_bytes,
    })
}

/// Starts all sessions at once and waits for each.
async fn all<S, R>(start: Instant, job: &Job, session: S) -> Result<Vec<Outcome>, Fault>
where
    S: Fn(usize) -> R,
    R: Future<Output = Result<Outcome, Fault>> + Send + 'static,
{
    let keep = job.keep;
    let one = |number| {
        let running = session(number);
        tokio::spawn(async move {
            let mut outcome = running.await?;
            outcome.done_s = start.elapsed().as_secs_f64();
            outcome.kept = outcome.kept.filter(|_| keep);
            Ok::<_, Fault>(outcome)
        })
    };
    let running: Vec<_> = (0..job.sessions).map(one).collect();
    let mut done = Vec::with_capacity(running.len());
    for one in running {
        done.push(one.await??);
    }
    Ok(done)
}

/// When the first, the middle and the last was done.
fn spread(done: &[Outcome]) -> [f64; 3] {
    let mut times: Vec<f64> = done.iter().map(|one| one.done_s).collect();
    times.sort_by(f64::total_cmp);
    let at = |index: usize| times.get(index).copied().unwrap_or(0.0);
    [at(0), at(times.len() / 2), at(times.len().saturating_sub(1))]
}

/// The one tool: it says how often it was called only through the meter, and always answers the same.
pub(crate) fn echo() -> String {
    meter::tick();
    let mut report = String::with_capacity(RESULT_BYTES);
    while report.len() < RESULT_BYTES {
        report.push_str(RESULT_LINE);
    }
    report.truncate(RESULT_BYTES);
    report
}

pub(crate) const MODEL: &str = "bench-model";
pub(crate) const SYSTEM: &str =
    "You measure how fast a harness is. Call `echo` for as long as you are asked to.";
pub(crate) const ECHO_ABOUT: &str = "Gives a report on the text it is handed.";
const RESULT_BYTES: usize = 2_048;
/// Plain ASCII, so that it can be cut anywhere; with what JSON has to escape.
const RESULT_LINE: &str = "row 17: the gauge reads \"steady\"\tno change since the last visit\n";
