//! The open cases of tools, as rows of tables. Where a case is: T02 here, `bash` (`STUBBORN`), `jobs`, `guardian`; T03 here,
//! `bash`, `jobs`; T04 here and `bash`; T05 here and `bash`; T06 here, `read_file`, `grep`; T08 here and `edit_file`;
//! T09 here, `write_file`, `edit_file`, `sandbox`, and `tools::cases` of agent-harness, which has A02; the families behind
//! T08 and T09 in `properties`. A05 is of requests that stay open, and not of this crate.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use agent_builtins::{LocalSandbox, Sandbox as _, ShellCommand};
use agent_core::Cancel;
use agent_tools::ToolCx;
use serde_json::{Value, json};

use crate::jobs::{bearing, most_memory};
use crate::support::Bench;

/// What stops a command.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Timeout,
    Cancel,
    Drop,
}

async fn nothing_is_left(number: usize, command: &str, stop: Stop) {
    let mark = format!("AGENT_CALL_test_of_cases_{}_{number}_{stop:?}", std::process::id());
    let bench = Bench::with_env([(mark.clone(), "1".to_owned())]);
    let timeout_ms = if matches!(stop, Stop::Timeout) { 300 } else { 60_000 };
    let call = bench.run("bash", json!({"command": command, "timeout_ms": timeout_ms}));
    let soon = tokio::time::sleep(Duration::from_millis(300));
    let bounded = tokio::time::timeout(Duration::from_secs(30), async {
        match stop {
            Stop::Timeout => Some(call.await),
            Stop::Cancel => {
                let cancel = async {
                    soon.await;
                    bench.cx.cancel.cancel();
                };
                Some(tokio::join!(call, cancel).0)
            }
            Stop::Drop => tokio::time::timeout(Duration::from_millis(300), call).await.ok(),
        }
    });
    let words = bounded.await.expect("it returns long before the command would end");
    match (stop, words) {
        (Stop::Timeout, Some(words)) => assert!(words.contains("timed_out: true"), "{command}: {words}"),
        (Stop::Cancel, Some(words)) => assert!(words.contains("[cancelled after"), "{command}: {words}"),
        (Stop::Drop, words) => assert_eq!(words, None),
        (stop, None) => panic!("{stop:?} of {command} said nothing"),
    }
    assert_eq!(bearing(&mark), Vec::<String>::new(), "{stop:?}: {command}");
    assert!(!bench.exists("S"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg(target_os = "linux")]
async fn t02_nothing_bears_the_mark_of_a_stopped_command() {
    let commands = [
        "(sleep 3; touch S) & sleep 60",
        "trap \"\" TERM; (trap \"\" TERM; sleep 3; touch S)",
        "setsid bash -c 'sleep 3; touch S' & sleep 60",
        "yes | head -c 1000G | sort",
    ];
    for (number, command) in commands.into_iter().enumerate() {
        for stop in [Stop::Timeout, Stop::Cancel, Stop::Drop] {
            nothing_is_left(number, command, stop).await;
        }
    }
}

/// Names the process that is there to be measured.
const MEASURED: &str = "AGENT_TEST_MEASURED_FLOODS";

#[expect(clippy::disallowed_methods, reason = "how this program is told that it is the one to be measured")]
fn is_measured() -> bool {
    std::env::var(MEASURED).is_ok()
}

/// Only does something in the process that the test below starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods() {
    if !is_measured() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let sandbox = LocalSandbox::open(dir.path()).unwrap();
    let permit = Bench::new().permit("bash").await;
    let before = most_memory();
    let commands = [
        ("timeout 2 yes", 60_000),
        ("head -c 200M /dev/zero | tr '\\0' x", 60_000),
        ("yes >&2 & yes", 1_500),
        ("seq 1000000", 60_000),
    ];
    for (command, most) in commands {
        let timeout = Duration::from_millis(most);
        let command = ShellCommand { command: command.to_owned(), cwd: String::new(), timeout };
        let ran = sandbox.run(&permit, command, &Cancel::new()).await.unwrap();
        let (head, dropped, tail) = ran.printed.since(0);
        assert!(dropped > 0 && !head.is_empty() && !tail.is_empty(), "both ends are kept");
        assert_eq!(head.len() as u64 + dropped + tail.len() as u64, ran.printed.total(), "all is counted");
        assert!(ran.took < timeout + Duration::from_secs(10), "the deadline holds");
    }
    let grown = most_memory() - before;
    assert!(grown < 32 * 1024, "{grown} KiB");
}

#[test]
#[cfg(target_os = "linux")]
fn t03_a_flood_does_not_grow_memory() {
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cases::floods", "--nocapture"])
        .env(MEASURED, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(String::from_utf8_lossy(&ended.stdout).contains("1 passed"));
}

/// The last line of what `bash` says, without the time it took.
async fn end_of(command: &str, expect: &str) {
    let bench = Bench::new();
    let said = bench.run("bash", json!({"command": command, "timeout_ms": 20_000})).await;
    let last = said.lines().last().unwrap();
    assert!(last.starts_with(expect), "{command}: {said}");
    let took: f64 = last.split(", ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(took < 10.0, "{command} waited: {said}");
}

#[tokio::test]
async fn t04_whatever_asks_ends_at_once() {
    end_of("cat", "[exit code 0, ").await;
    end_of("read -p 'pw: ' x", "[exit code 1, ").await;
    end_of("bash -c 'exec </dev/tty'", "[exit code 1, ").await;
    end_of("command -v python3 >/dev/null || exit 1; python3 -c 'input()'", "[exit code 1, ").await;
}

/// What `bash` shows of printed bytes.
async fn shown(printf: &str, expect: &str) {
    let bench = Bench::new();
    let said = bench.run("bash", json!({"command": format!("printf '{printf}'")})).await;
    assert!(said.starts_with(&format!("{expect}\n[exit code 0, ")), "{printf}: {said}");
    assert!(!said.contains(['\u{1b}', '\0', '\u{202e}']), "{printf}: {said}");
    let line = serde_json::to_string(&said).unwrap();
    assert_eq!(line.lines().count(), 1, "a stored line stays one line");
    assert_eq!(serde_json::from_str::<String>(&line).unwrap(), said, "and is read as it was");
}

#[tokio::test]
async fn t05_odd_bytes() {
    shown(r"ok\xff\xfe\xc3", "ok\u{fffd}\u{fffd}\u{fffd}").await;
    shown(r"W\0s\0l\0", "W␀s␀l␀").await;
    shown(r"\033[?1049h\033[?1000h\033]0;x\007red", "␛[?1049h␛[?1000h␛]0;x␇red").await;
    shown(r"a\xe2\x80\xaeb", "a\\u{202e}b").await;
    shown(r"\xc4\xe3\xba\xc3", "\u{fffd}\u{fffd}\u{fffd}").await;
    shown("مرحبا بالعالم", "مرحبا بالعالم").await;
    shown("שלום עולם", "שלום עולם").await;
}

async fn read(bench: &Bench, input: Value, expect: &str) {
    let said = bench.run("read_file", input.clone()).await;
    assert!(said.contains(expect) && said.len() < 5_000, "{input}: {}", &said[..said.len().min(400)]);
}

#[tokio::test]
async fn t06_what_is_hard_to_read() {
    let bench = Bench::new();
    bench.put("one.json", format!("[{}]", "1234567,".repeat(43_393))).put("empty", "").put("f", "a\r\nb\r\n");
    bench.put("late", [&[b'x'; 9_000][..], b"\0"].concat()).put("wide", b"\xff\xfea\0\n\0");
    bench.put("p.png", b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR").link("/dev/zero", "zero");
    assert!(Command::new("mkfifo").arg(bench.root().join("pipe")).status().unwrap().success());
    read(&bench, json!({"path": "one.json"}), " bytes of this line left out;").await;
    read(&bench, json!({"path": "p.png"}), "ERROR: `p.png` is not text (a PNG image), 16 bytes").await;
    read(&bench, json!({"path": "late"}), "ERROR: `late` is not text (binary data), 9001 bytes").await;
    read(&bench, json!({"path": "wide"}), "ERROR: `wide` is text in UTF-16").await;
    read(&bench, json!({"path": "empty", "offset": 1}), "[the file is empty: 0 lines, 0 bytes]").await;
    read(&bench, json!({"path": "empty", "offset": 2}), "[the file is empty: 0 lines, 0 bytes]").await;
    read(&bench, json!({"path": "f", "offset": 3}), "ERROR: `f` has 2 lines, so there is no line 3.").await;
    read(&bench, json!({"path": "f"}), "CRLF line endings]").await;
    read(&bench, json!({"path": "pipe"}), "ERROR: `pipe` is a named pipe, not a regular file.").await;
    read(&bench, json!({"path": "zero"}), "ERROR: `zero` leads outside the workspace").await;
    read(&bench, json!({"path": "/dev/zero"}), "ERROR: `/dev/zero` leads outside the workspace").await;
}

#[tokio::test]
async fn t08_an_edit_replaces_the_file_as_a_whole() {
    let bench = Bench::new();
    let file = bench.root().join("f");
    bench.put("f", "log(\"done\");\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o750)).unwrap();
    bench.run("read_file", json!({"path": "f"})).await;
    let new = r#"log("$& $1 $$ ${x} \0 ok");"#;
    bench.run("edit_file", json!({"path": "f", "edits": [{"old": "log(\"done\");", "new": new}]})).await;
    assert_eq!(bench.text("f"), format!("{new}\n"));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(std::fs::read_dir(bench.root()).unwrap().count(), 1, "no passing file is left behind");
}

#[tokio::test]
async fn t09_two_agents_on_one_file() {
    let mut bench = Bench::new();
    bench.put("f", "old\n");
    bench.run("read_file", json!({"path": "f"})).await;
    let other = ToolCx::for_test("other", "call").unwrap();
    let mine = std::mem::replace(&mut bench.cx, other);
    bench.run("read_file", json!({"path": "./f"})).await;
    let theirs = bench.run("write_file", json!({"path": "f", "content": "theirs\n"})).await;
    assert!(theirs.starts_with("Replaced `f`"), "{theirs}");
    let again = bench.run("write_file", json!({"path": "f", "content": "theirs 2\n"})).await;
    assert!(again.starts_with("Replaced `f`"), "an own write is no stranger's: {again}");
    bench.cx = mine;
    let words = bench.run("write_file", json!({"path": "f", "content": "mine\n"})).await;
    assert!(words.starts_with("ERROR: `f` changed since you read it; nothing was changed."), "{words}");
    assert_eq!(bench.text("f"), "theirs 2\n");
    bench.run("read_file", json!({"path": "f"})).await;
    let words = bench.run("write_file", json!({"path": "f", "content": "mine\n"})).await;
    assert!(words.starts_with("Replaced `f`"), "{words}");
}
