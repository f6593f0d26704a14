//! The sandbox itself: the last look before a file is put in place (case T09).

use agent_builtins::sandbox::{Expect, FileWrite, Fingerprint};
use agent_builtins::{Sandbox as _, SandboxError};

use crate::support::{Bench, remove};

async fn write(bench: &Bench, expect: Expect) -> Result<String, SandboxError> {
    let write = FileWrite { path: "f".to_owned(), bytes: b"new".to_vec(), expect };
    bench.sandbox.write(&bench.permit(), write).await
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
    let read = async |limit| bench.sandbox.read(&bench.permit(), "f", limit).await.map(|file| file.bytes);
    assert_eq!(read(5).await.unwrap(), b"12345");
    assert!(matches!(read(4).await, Err(SandboxError::TooLarge { len: 5, limit: 4, .. })));
}
