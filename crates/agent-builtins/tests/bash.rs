//! Running commands: how they end, what they print and that nothing of them runs on (cases T02 to T05).

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Bench, create_dir_all};

/// What the tool said, with the time it took made equal.
async fn said(bench: &Bench, input: Value) -> String {
    let text = bench.run("bash", input).await;
    let took = |part: &str| part.strip_suffix(" s").is_some_and(|number| number.parse::<f64>().is_ok());
    let parts = text.split_inclusive(&[';', ']'][..]).flat_map(|part| part.split_inclusive(", "));
    let fixed = parts.map(|part| {
        let body = part.trim_end_matches([';', ']']);
        if took(body) { format!("T s{}", &part[body.len()..]) } else { part.to_owned() }
    });
    fixed.collect()
}

async fn check(command: &str, expect: &str) {
    let bench = Bench::new();
    assert_eq!(said(&bench, json!({"command": command})).await, expect, "{command}");
}

#[tokio::test]
async fn how_a_command_ends() {
    check("echo hello", "hello\n[exit code 0, T s]").await;
    check("printf a; printf b >&2; printf c; exit 3", "abc\n[exit code 3, T s]").await;
    check("true", "[exit code 0, T s]").await;
    check("kill -9 $$", "[ended by signal 9, T s]").await;
    check("nosuchprogram 2>/dev/null", "[exit code 127, T s]").await;
    check("[[ a == a ]] && echo bash", "bash\n[exit code 0, T s]").await;
    check("  ", "ERROR: The command is blank, so nothing ran. Give the command to run.").await;
    check("a\0b", "ERROR: The command holds a NUL character, which no command can; nothing ran. Write it as an escape, for example `printf '\\0'`.").await;
}

#[tokio::test]
async fn where_a_command_runs_and_how_long() {
    let bench = Bench::new();
    bench.put("sub/f", "");
    let root = bench.root();
    assert_eq!(
        said(&bench, json!({"command": "pwd"})).await,
        format!("{}\n[exit code 0, T s]", root.display())
    );
    assert_eq!(said(&bench, json!({"command": "ls", "cwd": "sub"})).await, "f\n[exit code 0, T s]");
    assert_eq!(
        said(&bench, json!({"command": "ls", "cwd": "sub/f"})).await,
        "ERROR: `sub/f` is not a directory. Give a directory of the workspace, or leave the field out."
    );
    for asked in [0, 600_001] {
        assert_eq!(
            said(&bench, json!({"command": "true", "timeout_ms": asked})).await,
            format!("ERROR: A timeout of {asked} ms is not possible; ask for 1 to 600000 ms.")
        );
    }
}

#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let vars = [("ANTHROPIC_API_KEY", "sk-secret"), ("HOME", "/nowhere"), ("LC_ALL", "C"), ("CI", "true")];
    let bench = Bench::with_env(vars.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let command = "env | cut -d= -f1 | sed 's/AGENT_CALL_.*/AGENT_CALL/' | LC_ALL=C sort | tr '\\n' ' '";
    assert_eq!(
        said(&bench, json!({"command": command})).await,
        "AGENT_CALL DEBIAN_FRONTEND EDITOR GIT_EDITOR GIT_PAGER GIT_SEQUENCE_EDITOR GIT_TERMINAL_PROMPT HOME LC_ALL NO_COLOR PAGER PATH PWD SHLVL TERM VISUAL _ \n[exit code 0, T s]"
    );
}

/// Commands that go on writing to `S`, unless every process of theirs is ended. `WRITE` stands for what does so.
const STUBBORN: [&str; 10] = [
    "(WRITE) & sleep 60",
    "trap '' TERM; (trap '' TERM; WRITE); sleep 60",
    "setsid bash -c 'WRITE' & sleep 60",
    "setsid bash -c 'trap \"\" TERM; WRITE' >/dev/null 2>&1 & sleep 60",
    "env -i bash -c 'WRITE' & sleep 60",
    "set -m; env -i bash -c 'WRITE' & sleep 60",
    "setsid env -i bash -c 'WRITE' & sleep 60",
    "(setsid env -i bash -c 'trap \"\" TERM; (WRITE) & wait' & sleep 0.3) & sleep 60",
    "(setsid env -i bash -c 'WRITE' >/dev/null 2>&1 &); sleep 60",
    "(ulimit -S -x unlimited 2>/dev/null; setsid env -i bash -c 'trap \"\" TERM; WRITE' &); sleep 60",
];

pub(crate) fn stubborn() -> impl Iterator<Item = String> {
    let write = "for i in $(seq 150); do echo x >> S; sleep 0.2; done";
    STUBBORN.into_iter().map(move |command| command.replace("WRITE", write))
}

/// Waits until the one that writes runs, also behind its parent's end, on however busy a machine.
pub(crate) async fn written(file: &Path) {
    for _ in 0..400 {
        if size(file) >= 6 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never wrote");
}

/// Whether nothing writes any more.
pub(crate) async fn is_still(file: &Path) -> bool {
    let before = size(file);
    tokio::time::sleep(Duration::from_secs(2)).await;
    size(file) == before
}

fn size(file: &Path) -> u64 {
    std::fs::metadata(file).map_or(0, |meta| meta.len())
}

/// What stops a command.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    Timeout,
    Cancel,
    Drop,
}

async fn stop(command: &str, stop: Stop) {
    let bench = Bench::new();
    let sentinel = bench.root().join("S");
    let command = format!("echo begun; {command}");
    let most = if stop == Stop::Timeout { 3_000 } else { 60_000 };
    let call = said(&bench, json!({"command": command, "timeout_ms": most}));
    let bounded = tokio::time::timeout(Duration::from_secs(30), async {
        match stop {
            Stop::Timeout => Some(call.await),
            Stop::Drop => tokio::select! {
                words = call => Some(words),
                () = written(&sentinel) => None,
            },
            Stop::Cancel => {
                let cancel = async {
                    written(&sentinel).await;
                    bench.cx.cancel.cancel();
                };
                Some(tokio::join!(call, cancel).0)
            }
        }
    });
    let words = bounded.await.expect("it returns long before the command would end");
    match stop {
        Stop::Timeout => assert_eq!(
            words.unwrap(),
            "begun\n[timed_out: true; stopped after its timeout of 3000 ms, with every process known to be its own. What it printed until then is above, and it may have had part of its effect. Do less in one call, or raise timeout_ms]"
        ),
        Stop::Cancel => assert!(words.unwrap().starts_with("begun\n[cancelled after ")),
        Stop::Drop => assert!(words.is_none()),
    }
    assert!(is_still(&sentinel).await, "ran on: {command}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_runs_on_after_timeout_cancellation_or_drop() {
    let mut calls = tokio::task::JoinSet::new();
    for command in stubborn() {
        for how in [Stop::Timeout, Stop::Cancel, Stop::Drop] {
            let command = command.clone();
            calls.spawn(async move { stop(&command, how).await });
        }
    }
    while let Some(done) = calls.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn a_finished_shell_is_not_kept_waiting_and_leaves_nothing() {
    let started = "started\n[exit code 0, T s; 1 processes it left running were stopped: `sleep 61`; nothing runs on between calls]";
    check("sleep 61 & echo started", started).await;
    check("setsid sleep 61 >/dev/null & echo started", started).await;
    check("env -i sleep 61 & echo started", started).await;
    check("(sleep 0.05; echo late) & echo early; wait", "early\nlate\n[exit code 0, T s]").await;
}

/// Whether a call that prints and then goes on counts as failed, with its text kept.
async fn failed(stop: Stop) -> bool {
    let bench = Bench::new();
    let most = if stop == Stop::Timeout { 300 } else { 60_000 };
    let input = json!({"command": "echo begun; sleep 60", "timeout_ms": most});
    let cancel = async {
        if stop == Stop::Cancel {
            tokio::time::sleep(Duration::from_millis(300)).await;
            bench.cx.cancel.cancel();
        }
    };
    let (output, ()) = tokio::join!(bench.output("bash", &input), cancel);
    let output = output.unwrap();
    let text = output.plain();
    let last = if stop == Stop::Timeout { "[timed_out: true; " } else { "[cancelled after " };
    assert!(text.starts_with("begun\n") && text.lines().last().unwrap().starts_with(last), "{text}");
    output.is_error()
}

#[tokio::test]
async fn a_command_that_was_stopped_has_not_succeeded() {
    assert!(failed(Stop::Cancel).await);
    assert!(failed(Stop::Timeout).await);
}

#[tokio::test]
async fn a_command_too_long_to_start_says_what_to_do() {
    let bench = Bench::new();
    let words = bench.run("bash", json!({"command": format!("true {}", "x".repeat(140_000))})).await;
    assert_eq!(
        words,
        "ERROR: The command has 140005 bytes, more than can be given to bash at once; nothing ran. Write it to a file with write_file and run that file, for example `bash FILE`; put long data into files of its own."
    );
}

#[tokio::test]
async fn the_shell_is_reaped() {
    let bench = Bench::new();
    for command in ["echo $$", "echo $$; sleep 60"] {
        let words = bench.run("bash", json!({"command": command, "timeout_ms": 800})).await;
        let pid = words.lines().next().unwrap().to_owned();
        assert!(pid.parse::<u32>().is_ok(), "{words}");
        assert!(!Path::new("/proc").join(&pid).exists(), "{command}: {pid} is still there");
    }
}

#[tokio::test]
async fn a_command_inside_a_command_goes_with_it() {
    let bench = Bench::new();
    let inner = "AGENT_CALL_inner=1 setsid bash -c 'sleep 4; touch S' >/dev/null 2>&1 & sleep 60";
    bench.run("bash", json!({"command": inner, "timeout_ms": 800})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!bench.exists("S"));
}

async fn flood(command: &str, timeout_ms: u64, end: &str) {
    let bench = Bench::new();
    let words = bench.run("bash", json!({"command": command, "timeout_ms": timeout_ms})).await;
    assert!(words.len() < 1_100_000, "{command}: {} bytes are kept", words.len());
    assert!(words.contains(" bytes left out …]"), "{command}");
    assert!(words.contains(end), "{command}: {}", &words[words.len() - 300..]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_drained_in_bounded_memory() {
    flood("yes | head -c 200M; echo end", 60_000, "end\n[exit code 0,").await;
    flood("yes | head -c 200M", 60_000, "it printed 209715200 bytes, of which the middle was dropped").await;
    flood("head -c 200M /dev/zero | tr '\\0' x; exit 4", 60_000, "[exit code 4,").await;
    flood("yes >&2 & yes", 1_000, "[timed_out: true;").await;
}

#[tokio::test]
async fn commands_that_ask_get_no_answer() {
    check("cat", "[exit code 0, T s]").await;
    check("read -p 'password: ' x", "[exit code 1, T s]").await;
    check("exec </dev/tty", "bash: line 1: /dev/tty: No such device or address\n[exit code 1, T s]").await;
    check("$EDITOR file", "[exit code 1, T s]").await;
}

#[tokio::test]
async fn an_editor_never_carries_a_change_through() {
    let bench = Bench::new();
    let git = "git -c user.name=n -c user.email=e -c init.defaultBranch=main";
    if bench.run("bash", json!({"command": "git --version"})).await.contains("exit code 127") {
        println!("skipped: there is no git");
        return;
    }
    create_dir_all(&bench.root().join("home"));
    let setup = format!(
        "{git} init -q . && for i in 1 2 3; do echo $i >f && git add f && {git} commit -qm c$i; done; git log --format=%H | md5sum"
    );
    let before = said(&bench, json!({"command": setup})).await;
    assert!(before.ends_with("-\n[exit code 0, T s]"), "{before}");
    let rebase = said(&bench, json!({"command": format!("{git} rebase -i HEAD~2")})).await;
    assert!(rebase.contains("[exit code 1, T s]"), "{rebase}");
    let commit = said(&bench, json!({"command": format!("echo 4 >f; git add f; {git} commit")})).await;
    assert!(commit.contains("[exit code 1, T s]"), "{commit}");
    let after = said(&bench, json!({"command": "git log --format=%H | md5sum"})).await;
    assert_eq!(before, after, "history is as it was");
}

#[tokio::test]
async fn odd_bytes_are_shown_by_a_fixed_rule() {
    let not_utf8 = "stretches of bytes were not UTF-8 and are shown as \u{fffd}";
    check(
        r"printf 'ok\xff\xfe\xc3'",
        &format!("ok\u{fffd}\u{fffd}\u{fffd}\n[exit code 0, T s; 3 {not_utf8}]"),
    )
    .await;
    check(r"printf 'W\0s\0l\0'", "W␀s␀l␀\n[exit code 0, T s]").await;
    check(r"printf '\033[?1049h\033]0;x\007red\n'", "␛[?1049h␛]0;x␇red\n[exit code 0, T s]").await;
    check(r"printf 'a\xe2\x80\xaeb'", "a\\u{202e}b\n[exit code 0, T s]").await;
    check(r"printf 'a\r\nb\r'", "a\nb␍\n[exit code 0, T s]").await;
    check("echo 'مرحبا שלום'", "مرحبا שלום\n[exit code 0, T s]").await;
}
