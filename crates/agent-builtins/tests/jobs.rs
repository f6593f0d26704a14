//! Background jobs: what they print, how they end, and that nothing of them runs on (cases T02, T03).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use agent_builtins::{JobCommand, JobOutput, JobState, LocalSandbox, Sandbox as _};
use agent_core::SessionId;
use serde_json::json;

use crate::bash::{is_still, stubborn, written};
use crate::support::Bench;

/// Starts a job and returns its id.
async fn start(bench: &Bench, command: &str) -> String {
    let said = bench.run("bash", json!({"command": command, "background": true})).await;
    let id = said.strip_prefix("Started as background job `").and_then(|rest| rest.split_once('`'));
    let id = id.unwrap_or_else(|| panic!("{said}")).0.to_owned();
    let (tag, number) = id.strip_prefix("job-").and_then(|rest| rest.split_once('-')).unwrap();
    assert!(u16::from_str_radix(tag, 16).is_ok() && number.parse::<u32>().is_ok(), "{id}");
    id
}

/// What a tool says of a job, with its id and its times made equal.
async fn said(bench: &Bench, tool: &str, job: &str) -> String {
    fixed(&bench.run(tool, json!({"job": job})).await, job)
}

fn fixed(text: &str, job: &str) -> String {
    let text = text.replace(job, "JOB");
    let words = text.split_inclusive([' ', ';', ']', '\n']);
    let is_time = |word: &str| {
        word.strip_suffix(' ').is_some_and(|time| time.contains('.') && time.parse::<f64>().is_ok())
    };
    words.map(|word| if is_time(word) { "T " } else { word }).collect()
}

/// Asks again until the job has ended, and joins what it said without its last lines.
async fn to_end(bench: &Bench, job: &str) -> String {
    for _ in 0..200 {
        let said = said(bench, "bash_output", job).await;
        if !said.contains("`JOB` has been running") {
            return said;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never ended");
}

async fn check(command: &str, expect: &str) {
    let bench = Bench::new();
    let job = start(&bench, command).await;
    // Nothing is read before the end, so that it comes in one piece.
    let session = &bench.cx.session;
    let permit = bench.permit("bash_output").await;
    for _ in 0..200 {
        let seen = bench.sandbox.read_job(&permit, session, &job, Some(0)).await.unwrap();
        if seen.state != JobState::Running {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(
        fixed(&bench.run("bash_output", json!({"job": job, "offset": 0})).await, &job),
        expect,
        "{command}"
    );
}

#[tokio::test]
async fn how_a_job_ends() {
    check(
        "echo hello; echo oops >&2; exit 3",
        "hello\noops\n[`JOB` ended with exit code 3 after T s; bytes 0 to 11 of its output]",
    )
    .await;
    check("kill -9 $$", "[`JOB` was ended by signal 9 after T s; nothing new]").await;
    check("cat; pwd | tail -c 3", "ws\n[`JOB` ended with exit code 0 after T s; bytes 0 to 3 of its output]")
        .await;
    check(
        "sleep 61 & echo started",
        "started\n[`JOB` ended with exit code 0 after T s; bytes 0 to 8 of its output; 1 processes it left running were stopped: `sleep 61`; nothing runs on between calls]",
    )
    .await;
}

#[tokio::test]
async fn a_job_is_read_as_it_goes() {
    let bench = Bench::new();
    // It goes on when the test says so. The character that is cut in the middle is shown when it is whole.
    let wait = "until [ -e go ]; do sleep 0.02; done; rm go";
    let job =
        start(&bench, &format!(r"printf 'one\ntw\303'; {wait}; printf '\266!\n'; {wait}; exit 4")).await;
    let shown = async |expect: &str| {
        for _ in 0..200 {
            let said = said(&bench, "bash_output", &job).await;
            if !said.contains("; nothing new;") {
                assert_eq!(said, expect);
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never came: {expect}");
    };
    shown("one\ntw\n[`JOB` has been running for T s; bytes 0 to 6 of its output]").await;
    let nothing = said(&bench, "bash_output", &job).await;
    assert_eq!(
        nothing,
        "[`JOB` has been running for T s; nothing new; to wait for more, run `sleep 5` with bash before you ask again]"
    );
    bench.put("go", "");
    shown("ö!\n[`JOB` has been running for T s; bytes 6 to 10 of its output]").await;
    let again = bench.run("bash_output", json!({"job": job, "offset": 4})).await;
    assert_eq!(fixed(&again, &job), "twö!\n[`JOB` has been running for T s; bytes 4 to 10 of its output]");
    bench.put("go", "");
    assert_eq!(to_end(&bench, &job).await, "[`JOB` ended with exit code 4 after T s; nothing new]");
    let killed = said(&bench, "bash_kill", &job).await;
    assert_eq!(killed, "[`JOB` ended with exit code 4 after T s; nothing new]", "it stays as it ended");
}

#[tokio::test]
async fn jobs_are_those_of_their_session() {
    let mut bench = Bench::new();
    assert_eq!(
        said(&bench, "bash_output", "job-0").await,
        "ERROR: This session has no background job `JOB`. Its jobs: none. Start one with bash and background; one that began before the program was started again has ended."
    );
    let job = start(&bench, "echo 'a\nb' `date` | cat - /dev/null; sleep 60").await;
    for tool in ["bash_output", "bash_kill"] {
        let words = bench.run(tool, json!({"job": "nine"})).await;
        let jobs = format!("Its jobs: {job} (running, `echo 'a b' `date` | cat - /dev/null; sleep 60`).");
        assert!(words.contains(&jobs), "{words}");
    }
    let mine = std::mem::replace(&mut bench.cx.session, SessionId::new("other").unwrap());
    for tool in ["bash_output", "bash_kill"] {
        let words = bench.run(tool, json!({"job": job})).await;
        assert!(words.contains(&format!("no background job `{job}`. Its jobs: none.")), "{words}");
    }
    bench.sandbox.end_jobs(&bench.cx.session).await;
    bench.cx.session = mine;
    assert!(said(&bench, "bash_output", &job).await.contains("`JOB` has been running"));
    bench.sandbox.end_jobs(&bench.cx.session).await;
    assert!(said(&bench, "bash_output", &job).await.contains("Its jobs: none."));
}

#[tokio::test]
async fn so_many_run_at_once_and_so_many_are_kept() {
    let bench = Bench::new();
    let mut jobs = Vec::new();
    for _ in 0..16 {
        jobs.push(start(&bench, "sleep 60").await);
    }
    let refused = bench.run("bash", json!({"command": "touch S", "background": true})).await;
    assert!(
        refused.starts_with("ERROR: 16 background jobs are running, which is the most; nothing ran. End one with bash_kill first: job-"),
        "{refused}"
    );
    assert!(!bench.exists("S"));
    for job in &jobs {
        let killed = said(&bench, "bash_kill", job).await;
        let expect = "[`JOB` was stopped after T s, with every process known to be its own; nothing new]";
        assert_eq!(killed, expect);
    }
    let next = start(&bench, "sleep 60").await;
    assert!(
        said(&bench, "bash_output", &jobs[0]).await.contains("no background job `JOB`"),
        "the oldest is forgotten"
    );
    assert!(said(&bench, "bash_output", &jobs[1]).await.contains("`JOB` was stopped"));
    assert!(said(&bench, "bash_output", &next).await.contains("`JOB` has been running"));
}

#[tokio::test]
async fn a_job_that_cannot_start_is_none() {
    let bench = Bench::new();
    let check = async |input: serde_json::Value, expect: &str| {
        let said = bench.run("bash", input).await;
        assert!(said.starts_with(expect), "{said}");
    };
    check(json!({"command": " ", "background": true}), "ERROR: The command is blank").await;
    check(
        json!({"command": "ls", "cwd": "..", "background": true}),
        "ERROR: `..` leads outside the workspace",
    )
    .await;
    check(json!({"command": "ls", "timeout_ms": 0, "background": true}), "ERROR: A timeout of 0 ms").await;
    let long = format!("true {}", "x".repeat(140_000));
    check(json!({"command": long, "background": true}), "ERROR: The command has 140005 bytes").await;
    assert!(said(&bench, "bash_output", "job-0").await.contains("Its jobs: none."));
    check(json!({"command": "true", "background": false}), "[exit code 0").await;
}

/// What ends a job.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Kill,
    Timeout,
    Session,
    Sandbox,
}

/// What stays while nothing may run on.
enum Kept {
    Bench(#[expect(dead_code, reason = "held for its drop")] Bench),
    Folder(#[expect(dead_code, reason = "held for its drop")] tempfile::TempDir),
}

/// The processes of this machine that bear this word in their environment.
pub(crate) fn bearing(word: &str) -> Vec<String> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let bears =
        |folder: &Path| read(&folder.join("environ")).windows(word.len()).any(|part| part == word.as_bytes());
    all.map(|entry| entry.path())
        .filter(|folder| bears(folder))
        .map(|folder| folder.display().to_string())
        .collect()
}

#[expect(clippy::disallowed_methods, reason = "a test looks at the table of processes")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_default()
}

async fn nothing_is_left(number: usize, command: String, end: End) {
    let mark = format!("AGENT_CALL_test_of_jobs_{}_{number}_{end:?}", std::process::id());
    let bench = Bench::with_env([(mark.clone(), "1".to_owned())]);
    let most = (end == End::Timeout).then_some(3_000);
    let input = json!({"command": command, "background": true, "timeout_ms": most});
    let begun = bench.run("bash", input).await;
    let job = begun.split('`').nth(1).unwrap().to_owned();
    let sentinel = bench.root().join("S");
    if end != End::Timeout {
        written(&sentinel).await;
    }
    let kept = match end {
        End::Kill => {
            let words = said(&bench, "bash_kill", &job).await;
            assert!(words.contains("`JOB` was stopped after T s"), "{words}");
            assert_eq!(bearing(&mark), Vec::<String>::new(), "{command}");
            Kept::Bench(bench)
        }
        End::Timeout => {
            let words = to_end(&bench, &job).await;
            assert!(words.contains("`JOB` timed out after T s and was stopped"), "{words}");
            assert_eq!(bearing(&mark), Vec::<String>::new(), "{command}");
            Kept::Bench(bench)
        }
        End::Session => {
            bench.sandbox.end_jobs(&bench.cx.session).await;
            assert_eq!(bearing(&mark), Vec::<String>::new(), "{command}");
            Kept::Bench(bench)
        }
        End::Sandbox => Kept::Folder(bench.without_sandbox()),
    };
    // The task of a dropped sandbox is only told to end.
    let looks = if end == End::Sandbox { 5 } else { 1 };
    let mut still = false;
    for _ in 0..looks {
        still = still || is_still(&sentinel).await;
    }
    assert!(still, "{end:?}: ran on: {command}");
    // Until here, so that nothing but what ended the job did.
    drop(kept);
    assert_eq!(bearing(&mark), Vec::<String>::new(), "{end:?}: {command}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_runs_on_behind_a_job() {
    let mut failures = Vec::new();
    let mut jobs = tokio::task::JoinSet::new();
    for (number, command) in stubborn().enumerate() {
        for end in [End::Kill, End::Timeout, End::Session, End::Sandbox] {
            jobs.spawn(nothing_is_left(number, command.clone(), end));
        }
    }
    while let Some(done) = jobs.join_next().await {
        failures.extend(done.err());
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Names the process that is there to be measured.
const MEASURED: &str = "AGENT_TEST_MEASURED";

#[expect(clippy::disallowed_methods, reason = "how this program is told that it is the one to be measured")]
fn is_measured() -> bool {
    std::env::var(MEASURED).is_ok()
}

/// Only does something in the process that the test below starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_in_the_background() {
    if !is_measured() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let sandbox = LocalSandbox::open(dir.path()).unwrap();
    let bench = Bench::new();
    let (start, look, end) =
        (bench.permit("bash").await, bench.permit("bash_output").await, bench.permit("bash_kill").await);
    let session = SessionId::new("session").unwrap();
    let before = most_memory();
    let mut jobs = Vec::new();
    for command in ["yes", "yes >&2 & yes", "head -c 1G /dev/zero | tr '\\0' x"] {
        let command = JobCommand {
            session: session.clone(),
            command: command.into(),
            cwd: String::new(),
            timeout: None,
        };
        jobs.push(sandbox.start_job(&start, command).await.unwrap());
    }
    for job in &jobs {
        flooded(async |offset| sandbox.read_job(&look, &session, job, offset).await.unwrap()).await;
    }
    for job in &jobs {
        sandbox.end_job(&end, &session, job).await.unwrap();
    }
    let grown = most_memory() - before;
    assert!(grown < 32 * 1024, "{grown} KiB");
}

async fn flooded(read: impl AsyncFn(Option<u64>) -> JobOutput) {
    for _ in 0..400 {
        let seen = read(Some(0)).await;
        assert!(seen.printed.len() + seen.rest.len() <= 1024 * 1024);
        assert_eq!(seen.printed.len() as u64 + seen.dropped + seen.rest.len() as u64, seen.next);
        if seen.next > 100_000_000 {
            let next = read(None).await;
            assert_eq!(next.from, seen.next, "it is read on from there");
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it is held up");
}

/// The most memory this process ever had, in KiB.
pub(crate) fn most_memory() -> u64 {
    let status = String::from_utf8(read(Path::new("/proc/self/status"))).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_flood_in_the_background_does_not_grow_memory() {
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "jobs::floods_in_the_background", "--nocapture"])
        .env(MEASURED, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"));
}
