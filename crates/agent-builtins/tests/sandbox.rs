//! The sandbox itself: what a permit covers, and the last look before a file is put in place (cases A02, T09).

use std::time::Duration;

use agent_builtins::{ExitReason, Expect, FileWrite, Fingerprint, Sandbox as _, SandboxError, ShellCommand};
use agent_builtins::{Search, Walk};
use agent_core::Cancel;
use agent_tools::{Access, ToolError};

use crate::support::{Bench, remove};

async fn write(bench: &Bench, expect: Expect) -> Result<String, SandboxError> {
    let write = FileWrite { path: "f".to_owned(), bytes: b"new".to_vec(), expect };
    bench.sandbox.write(&bench.permit("write_file").await, write).await
}

fn files(bench: &Bench) -> usize {
    std::fs::read_dir(bench.root()).unwrap().count()
}

#[tokio::test]
async fn what_a_writer_believes_is_checked_at_the_last_moment() {
    let bench = Bench::new();
    bench.put("f", "old");
    let same = |text: &str| Expect::Same(Fingerprint::of(text.as_bytes()));
    assert!(matches!(write(&bench, same("OLD")).await, Err(SandboxError::Changed { .. })));
    assert!(matches!(write(&bench, Expect::Absent).await, Err(SandboxError::Appeared { .. })));
    assert_eq!((bench.text("f").as_str(), files(&bench)), ("old", 1), "nothing changed, nothing left behind");
    assert_eq!(write(&bench, same("old")).await.unwrap(), "f");
    remove(&bench.root().join("f"));
    assert!(matches!(write(&bench, same("new")).await, Err(SandboxError::Changed { .. })));
    assert_eq!(files(&bench), 0);
    assert_eq!(write(&bench, Expect::Absent).await.unwrap(), "f");
    assert_eq!((bench.text("f").as_str(), files(&bench)), ("new", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_writers_at_once_one_is_told() {
    let bench = Bench::new();
    for round in 0..20 {
        let old = format!("round {round}");
        bench.put("f", &old);
        let expect = || Expect::Same(Fingerprint::of(old.as_bytes()));
        let (one, other) = tokio::join!(write(&bench, expect()), write(&bench, expect()));
        assert_eq!(one.is_ok() as u8 + other.is_ok() as u8, 1, "{one:?} {other:?}");
        remove(&bench.root().join("f"));
        let (one, other) = tokio::join!(write(&bench, Expect::Absent), write(&bench, Expect::Absent));
        assert_eq!(one.is_ok() as u8 + other.is_ok() as u8, 1, "{one:?} {other:?}");
    }
}

#[tokio::test]
async fn a_file_above_the_limit_is_not_loaded() {
    let bench = Bench::new();
    bench.put("f", "12345");
    let read = async |limit| {
        bench.sandbox.read(&bench.permit("read_file").await, "f", limit).await.map(|file| file.bytes)
    };
    assert_eq!(read(5).await.unwrap(), b"12345");
    assert!(matches!(read(4).await, Err(SandboxError::TooLarge { len: 5, limit: 4, .. })));
}

/// Tries every effect with the permit of this tool: whether it wrote, and whether it ran.
async fn effects(tool: &str) -> (bool, bool) {
    let bench = Bench::new();
    bench.put("f", "old");
    let (permit, cancel, sandbox) = (bench.permit(tool).await, Cancel::new(), &bench.sandbox);
    assert!(sandbox.read(&permit, "f", 10).await.is_ok(), "{tool} reads");
    assert!(sandbox.walk(&permit, Walk::default(), &cancel).await.is_ok(), "{tool} lists");
    assert!(sandbox.search(&permit, Search::default(), &cancel).await.is_ok(), "{tool} searches");
    let write = FileWrite { path: "new".to_owned(), bytes: Vec::new(), expect: Expect::Absent };
    let wrote = sandbox.write(&permit, write).await;
    let timeout = Duration::from_secs(10);
    let command = ShellCommand { command: "touch ran".to_owned(), cwd: String::new(), timeout };
    let ran = sandbox.run(&permit, command, &cancel).await;
    for (refused, what) in [(wrote.as_ref().err(), "new"), (ran.as_ref().err(), "ran")] {
        let refused = refused.map(|error| matches!(error, SandboxError::Permit(_)));
        assert_eq!(
            (refused, bench.exists(what)),
            if bench.exists(what) { (None, true) } else { (Some(true), false) }
        );
    }
    let exit = ran.ok().map(|output| output.exit);
    assert!(matches!(exit, None | Some(ExitReason::Code(0))), "{exit:?}");
    (wrote.is_ok(), exit.is_some())
}

#[tokio::test]
async fn a_permit_covers_the_effects_its_tool_declared_and_no_other() {
    assert_eq!(effects("read_file").await, (false, false));
    assert_eq!(effects("grep").await, (false, false));
    assert_eq!(effects("todo").await, (false, false));
    assert_eq!(effects("edit_file").await, (true, false));
    assert_eq!(effects("bash").await, (true, true));
}

#[tokio::test]
async fn a_refused_permit_stays_a_typed_error() {
    let bench = Bench::new();
    let write = FileWrite { path: "f".to_owned(), bytes: Vec::new(), expect: Expect::Absent };
    let refused = ToolError::from(bench.sandbox.write(&bench.permit("glob").await, write).await.unwrap_err());
    assert!(matches!(refused, ToolError::BeyondAccess { declared: Access::Read, effect: Access::Edit }));
}
