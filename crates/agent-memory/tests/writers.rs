//! Several writers at once: threads, processes, and processes that are killed (case E02).

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use agent_memory::{MemoryDir, MemoryError};

use crate::support::{Place, memory, name};

const THREADS: usize = 4;
const EACH: usize = 12;

#[test]
fn threads_take_turns_and_lose_nothing() {
    let place = Place::new();
    place.memories.add(&memory("shared", "0")).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let place = &place;
            scope.spawn(move || {
                let memories = MemoryDir::open(place.memories.path()).unwrap();
                for number in 0..EACH {
                    memories.add(&memory(&format!("t{thread}_{number}"), "x")).unwrap();
                    memories.edit(&name("shared"), |text| Ok(format!("{text}x"))).unwrap();
                }
            });
        }
    });
    let index = place.memories.index().unwrap();
    assert!(index.is_whole(), "{index:?}");
    assert_eq!(index.text.lines().count(), THREADS * EACH + 1);
    let shared = place.text("shared.md");
    assert_eq!(shared.matches('x').count(), THREADS * EACH);
}

#[test]
fn who_replaces_what_another_changed_is_told() {
    let place = Place::new();
    place.memories.add(&memory("shared", "0")).unwrap();
    let seen = place.memories.read(&name("shared")).unwrap();
    let put = |word: &str| place.memories.replace(&name("shared"), &seen, &seen.replace("The body.", word));
    put("Mine.").unwrap();
    assert!(matches!(put("Theirs."), Err(MemoryError::Changed(_))));
    assert!(place.text("shared.md").contains("Mine."));
}

#[test]
fn processes_that_are_killed_leave_what_they_were_answered() {
    let place = Place::new();
    let mut answered: Vec<String> = Vec::new();
    for round in 0..8 {
        let mut writers: Vec<Writer> =
            (0..2).map(|at| Writer::start(&place, &format!("r{round}_{at}"))).collect();
        for writer in &mut writers {
            for _ in 0..=round % 3 {
                answered.push(writer.answer().expect("it goes on until it is killed"));
            }
        }
        for writer in writers {
            answered.extend(writer.kill());
        }
        // The lock of a dead process is free, and what it left half done is whole.
        let last = format!("after_{round}");
        place.memories.add(&memory(&last, "x")).unwrap();
        answered.push(last);
        let index = place.memories.index().unwrap();
        assert!(index.is_whole(), "round {round}: {index:?}");
        assert!(place.names().iter().all(|name| !name.starts_with('.')), "{:?}", place.names());
        for title in &answered {
            assert!(place.memories.memory(&name(title)).is_ok(), "{title} was answered");
            assert!(index.text.contains(&format!("[{title}]")), "{title} is listed");
        }
    }
    assert!(answered.len() >= 8 * 3, "{answered:?}");
}

/// Not a test of its own: the process that the test above starts.
#[test]
#[ignore = "is started by the test above as a process of its own"]
fn child() {
    let Some((dir, title)) = task() else { return };
    let memories = MemoryDir::open(&dir).unwrap();
    for number in 0.. {
        let title = format!("{title}_{number}");
        memories.add(&memory(&title, "x")).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{ANSWER}{title}").unwrap();
        out.flush().unwrap();
        drop(out);
        memories.edit(&name(&title), |text| Ok(text.replace("The body.", "Another."))).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

struct Writer {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Writer {
    fn start(place: &Place, title: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writers::child", "--ignored", "--nocapture"])
            .env(DIR, place.memories.path())
            .env(TITLE, title)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next memory that it was answered.
    fn answer(&mut self) -> Option<String> {
        self.lines.by_ref().map(Result::unwrap).find_map(|line| line.strip_prefix(ANSWER).map(str::to_owned))
    }

    /// Kills it as the system would, and gives what it still told.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        let mut last = Vec::new();
        while let Some(title) = self.answer() {
            last.push(title);
        }
        let end = self.child.wait().unwrap();
        assert!(!end.success(), "it was killed and did not end: {end}");
        last
    }
}

#[expect(clippy::disallowed_methods, reason = "this process is told by its parent what to do")]
fn task() -> Option<(PathBuf, String)> {
    Some((std::env::var_os(DIR)?.into(), std::env::var(TITLE).ok()?))
}

const DIR: &str = "AGENT_MEMORY_TEST_DIR";
const TITLE: &str = "AGENT_MEMORY_TEST_TITLE";
const ANSWER: &str = "answered ";
