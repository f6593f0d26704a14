//! Runs a target without a fuzzer: seeds, then changed seeds, for a bounded time, on any compiler.
//!
//! `mutate list` prints the name of each target. `mutate run TARGET SECONDS CORPUS ARTIFACTS` runs one.
//! The input under way lies in `ARTIFACTS/TARGET/running` before it is tried, so that not even an abort loses it.

#![expect(clippy::disallowed_methods, reason = "a developer's program: it owns its clock and its files")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use agent_providers_fuzz::mutator::Mutator;
use agent_providers_fuzz::{TARGETS, Target};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["list"] => list(),
        ["run", target, seconds, corpus, artifacts] => {
            Job::new(target, seconds, corpus, artifacts).and_then(Job::run)
        }
        _ => Err("usage: mutate list | mutate run TARGET SECONDS CORPUS ARTIFACTS".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mutate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn list() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout();
    for target in TARGETS {
        writeln!(out, "{}", target.name)?;
    }
    Ok(())
}

/// One target to be run.
struct Job {
    target: Target,
    time: Duration,
    seeds: Vec<Vec<u8>>,
    running: PathBuf,
}

impl Job {
    fn new(target: &str, seconds: &str, corpus: &str, artifacts: &str) -> Result<Self, Box<dyn Error>> {
        let target =
            Target::named(target).ok_or_else(|| format!("there is no target {target}; see `mutate list`"))?;
        let folder = Path::new(artifacts).join(target.name);
        fs::create_dir_all(&folder)?;
        let time = Duration::from_secs_f64(seconds.parse()?);
        Ok(Self { target, time, seeds: seeds(Path::new(corpus))?, running: folder.join("running") })
    }

    fn run(self) -> Result<(), Box<dyn Error>> {
        let (count, name) = (self.seeds.len(), self.target.name);
        if count == 0 {
            return Err(format!("{name} has no seeds: the folder of its corpus is empty").into());
        }
        let tried = Arc::new(AtomicU64::new(0));
        let watch = watch(Arc::clone(&tried), self.running.clone());
        let mut file = File::create(&self.running)?;
        let mut mutator = Mutator::new(self.seeds);
        let start = Instant::now();
        // Every seed is tried, however short the time.
        while tried.load(Ordering::Relaxed) < count as u64 || start.elapsed() < self.time {
            let input = mutator.input();
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(&input)?;
            if catch_unwind(|| (self.target.check)(&input)).is_err() {
                let kept = self.running.with_file_name(format!("crash-{}", tried.load(Ordering::Relaxed)));
                fs::write(&kept, &input)?;
                fs::remove_file(&self.running)?;
                return Err(format!("{name} failed, as told above; the input is {}", kept.display()).into());
            }
            tried.fetch_add(1, Ordering::Relaxed);
        }
        drop(watch);
        fs::remove_file(&self.running)?;
        let (seconds, tried) = (start.elapsed().as_secs_f64(), tried.load(Ordering::Relaxed));
        writeln!(std::io::stdout(), "{name}: {seconds:.1}s, {tried} executions, {count} seeds")?;
        Ok(())
    }
}

/// The files of a folder in the order of their names, so that each machine runs the same inputs.
fn seeds(folder: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()).into()))
        .collect()
}

/// Ends the program when one input takes too long; lasts until the sender is dropped.
fn watch(tried: Arc<AtomicU64>, running: PathBuf) -> mpsc::Sender<()> {
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut before = u64::MAX;
        while ended.recv_timeout(LONGEST_INPUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            let now = tried.load(Ordering::Relaxed);
            if now == before {
                eprintln!(
                    "mutate: an input takes longer than {LONGEST_INPUT:?}; it is {}",
                    running.display()
                );
                std::process::exit(1);
            }
            before = now;
        }
    });
    sender
}

const LONGEST_INPUT: Duration = Duration::from_secs(20);
