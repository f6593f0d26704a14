//! A sandbox written outside the crate: the tools work on it, and it shows what they ask of one.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::time::Duration;

use agent_builtins::{
    Captured, CommandOutput, ExitReason, Expect, FileBytes, FileWrite, Fingerprint, Found, FoundLine, Role,
    Sandbox, SandboxError, Search, ShellCommand, Skip, Walk, Walked, WalkedFile, all,
};
use agent_core::Cancel;
use agent_tools::{Access, Permit, Tool, ToolCx};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::support::call;

/// Files in memory. What begins with a dot is hidden, and `target` is ignored.
#[derive(Debug, Default)]
struct MemorySandbox {
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    unreadable: u64,
    /// The bounds of the walks it was asked for.
    bounds: Mutex<Vec<u64>>,
}

fn require(permit: &Permit, effect: Access) -> Result<(), SandboxError> {
    permit.allows(effect).map_err(SandboxError::Permit)
}

#[async_trait]
impl Sandbox for MemorySandbox {
    async fn real_path(&self, path: &str) -> Result<String, SandboxError> {
        Ok(path.to_owned())
    }

    async fn read(&self, permit: &Permit, path: &str, limit: u64) -> Result<FileBytes, SandboxError> {
        require(permit, Access::Read)?;
        let path = path.to_owned();
        let bytes = self.files.lock().unwrap().get(&path).cloned();
        let Some(bytes) = bytes else { return Err(SandboxError::NotFound { path }) };
        match bytes.len() as u64 {
            len if len > limit => Err(SandboxError::TooLarge { path, len, limit }),
            _ => Ok(FileBytes { path, bytes }),
        }
    }

    async fn write(&self, permit: &Permit, write: FileWrite) -> Result<String, SandboxError> {
        require(permit, Access::Edit)?;
        let FileWrite { path, bytes, expect } = write;
        let mut files = self.files.lock().unwrap();
        let now = files.get(&path).map_or(Expect::Absent, |bytes| Expect::Same(Fingerprint::of(bytes)));
        if now != expect {
            return Err(SandboxError::Changed { path });
        }
        files.insert(path.clone(), bytes);
        Ok(path)
    }

    async fn walk(&self, permit: &Permit, walk: Walk, _: &Cancel) -> Result<Walked, SandboxError> {
        require(permit, Access::Read)?;
        self.bounds.lock().unwrap().push(walk.most);
        let mut walked = Walked { unreadable: self.unreadable, ..Walked::default() };
        for path in self.files.lock().unwrap().keys().filter(|path| !skipped(walk.skip, path)) {
            if walked.entries == walk.most {
                walked.more = true;
                break;
            }
            walked.entries += 1;
            if walk.glob.as_ref().is_none_or(|glob| glob.fits(path)) {
                walked.files.push(WalkedFile { path: path.clone(), modified: None });
            }
        }
        Ok(walked)
    }

    async fn search(&self, permit: &Permit, search: Search, cancel: &Cancel) -> Result<Found, SandboxError> {
        let walked = self.walk(permit, search.walk, cancel).await?;
        let (listed, more) = (walked.files.len() as u64, walked.more);
        let mut found =
            Found { searched: listed, unreadable: self.unreadable, listed, more, ..Found::default() };
        for WalkedFile { path, .. } in walked.files {
            let text = String::from_utf8(self.files.lock().unwrap()[&path].clone()).unwrap();
            let hits = text.lines().zip(1..).filter(|(line, _)| line.contains(&search.pattern));
            let lines: Vec<FoundLine> = hits
                .map(|(line, number)| FoundLine {
                    path: path.clone(),
                    number,
                    text: line.to_owned(),
                    left_out: 0,
                    role: Role::Match,
                })
                .collect();
            if !lines.is_empty() {
                found.files.push((path, lines.len() as u64));
                found.lines.extend(lines.into_iter().take(search.keep));
            }
        }
        Ok(found)
    }

    async fn run(
        &self,
        permit: &Permit,
        command: ShellCommand,
        _: &Cancel,
    ) -> Result<CommandOutput, SandboxError> {
        require(permit, Access::Execute)?;
        let mut printed = Captured::default();
        printed.push(command.command.as_bytes());
        let took = Duration::from_millis(100);
        Ok(CommandOutput {
            exit: ExitReason::Code(0),
            printed,
            took,
            stopped: Vec::new(),
            unstopped: Vec::new(),
        })
    }
}

fn skipped(skip: Skip, path: &str) -> bool {
    let (hidden, ignored) = (path.starts_with('.'), path.starts_with("target/"));
    match skip {
        Skip::HiddenAndIgnored => hidden || ignored,
        Skip::Ignored => ignored,
        Skip::Nothing => false,
    }
}

/// The tools on files in memory.
struct Memory {
    sandbox: Arc<MemorySandbox>,
    tools: Vec<Arc<dyn Tool>>,
    cx: ToolCx,
}

impl Memory {
    fn new(files: impl IntoIterator<Item = (String, Vec<u8>)>, unreadable: u64) -> Self {
        let files = Mutex::new(files.into_iter().collect());
        let sandbox = Arc::new(MemorySandbox { files, unreadable, bounds: Mutex::default() });
        let tools = all(Arc::clone(&sandbox) as Arc<dyn Sandbox>);
        Self { sandbox, tools, cx: ToolCx::for_test("session", "call").unwrap() }
    }

    async fn run(&self, name: &str, input: Value) -> String {
        let said = call(&self.tools, &self.cx, name, &input).await;
        said.unwrap_or_else(|error| format!("ERROR: {error}"))
    }
}

fn file(path: &str, text: &str) -> (String, Vec<u8>) {
    (path.to_owned(), text.as_bytes().to_vec())
}

#[tokio::test]
async fn the_tools_work_on_a_sandbox_of_another_crate() {
    let memory = Memory::new([file("notes.md", "one\ntwo\n")], 0);
    let check =
        async |tool: &str, input: Value, expect: &str| assert_eq!(memory.run(tool, input).await, expect);
    check("read_file", json!({"path": "notes.md"}), "     1\tone\n     2\ttwo\n[all 2 lines, 8 bytes]").await;
    let edit = json!({"path": "notes.md", "edits": [{"old": "two", "new": "2"}]});
    check("edit_file", edit, "--- a/notes.md\n+++ b/notes.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n").await;
    check("write_file", json!({"path": "a", "content": "x"}), "Created `a`: 1 lines, 1 bytes.").await;
    check("glob", json!({"pattern": "*"}), "a\nnotes.md\n[2 files, newest first]").await;
    check("grep", json!({"pattern": "one"}), "notes.md\n[1 files with 1 matching lines]").await;
    check("bash", json!({"command": "hello"}), "hello\n[exit code 0, 0.1 s]").await;
    check(
        "read_file",
        json!({"path": "note.md"}),
        "ERROR: `note.md` does not exist. Did you mean `notes.md`?",
    )
    .await;
}

#[tokio::test]
async fn what_could_not_be_read_is_named() {
    let memory = Memory::new([file("f", "hay\n")], 3);
    let gap = "; 3 files or directories could not be read, see their permissions with bash: `ls -la`";
    let check =
        async |tool: &str, input: Value, expect: &str| assert_eq!(memory.run(tool, input).await, expect);
    check("glob", json!({"pattern": "*"}), &format!("f\n[1 files, newest first{gap}]")).await;
    check("glob", json!({"pattern": "x"}), &format!("No file fits `x`, hidden and ignored files included{gap}. Try a wider pattern such as `**/*name*`.")).await;
    check("grep", json!({"pattern": "hay"}), &format!("f\n[1 files with 1 matching lines{gap}]")).await;
    check(
        "grep",
        json!({"pattern": "hay", "output": "content"}),
        &format!("f:1:hay\n[1 matching lines in 1 files{gap}]"),
    )
    .await;
    check("grep", json!({"pattern": "x"}), &format!("No line matches `x` in the 1 files searched{gap}. If you expected one, try ignore_case, a shorter pattern, or literal for text with special characters.")).await;
}

/// Hints are not worth a walk through everything, and what they say stays true.
#[tokio::test]
async fn hints_come_from_bounded_walks_and_say_at_least() {
    let many = (0..60_000).map(|number| file(&format!("target/{number:05}.o"), ""));
    let memory = Memory::new(many.chain([file("zz.rs", "hay\n"), file(".env", "hay\n")]), 0);
    let said = memory.run("glob", json!({"pattern": "*.o"})).await;
    assert_eq!(
        said,
        "No file fits `*.o` outside hidden and ignored paths, which were skipped; at least 20000 inside them would, for example `target/00000.o`. To list them, name their directory in `path`."
    );
    let said = memory.run("glob", json!({"pattern": "*.txt"})).await;
    assert_eq!(
        said,
        "No file fits `*.txt` outside hidden and ignored paths. Those hold too many files to look at all of them here; to look in one, name its directory in `path`."
    );
    let said = memory.run("grep", json!({"pattern": "needle"})).await;
    assert!(
        said.starts_with("No line matches `needle` in the 1 files searched. At least 20001 files in hidden or ignored paths were not searched; to search them, name their directory in `path`."),
        "{said}"
    );
    let said = memory.run("grep", json!({"pattern": "needle", "glob": "*.rs"})).await;
    assert!(said.contains(" Hidden or ignored paths were not searched; to search them,"), "{said}");
    let said = memory.run("read_file", json!({"path": "z.rs"})).await;
    assert_eq!(said, "ERROR: `z.rs` does not exist. Did you mean `zz.rs`?");
    let bounds = memory.sandbox.bounds.lock().unwrap().clone();
    let hints: Vec<u64> = bounds.into_iter().filter(|most| *most != Walk::default().most).collect();
    assert_eq!(hints, [20_001, 20_001, 20_002, 20_002, 20_000]);
}

#[tokio::test]
async fn a_walk_that_stopped_says_so() {
    let many = (0..=1_000_000).map(|number| (format!("{number}.o"), Vec::new()));
    let memory = Memory::new(many, 0);
    let stopped =
        "it stopped after 1000000 files and directories, so there may be more: name a directory in `path`";
    let said = memory.run("glob", json!({"pattern": "*", "limit": 1})).await;
    assert_eq!(
        said,
        format!(
            "0.o\n[1 of 1000000 files, newest first; narrow the pattern or the path, or raise limit; {stopped}]"
        )
    );
    let said = memory.run("glob", json!({"pattern": "*.rs"})).await;
    assert_eq!(said, format!("No file fits `*.rs` among those that were looked at; {stopped}."));
    let said = memory.run("grep", json!({"pattern": "x", "glob": "1.o"})).await;
    assert!(
        said.starts_with(&format!("No line matches `x` in the 1 files searched; {stopped}. If")),
        "{said}"
    );
    assert_eq!(memory.sandbox.bounds.lock().unwrap().len(), 3, "no further walk after one that stopped");
}

/// The sandbox answers at once, so whatever a call still waits for is done on another thread.
async fn computes_elsewhere(memory: &Memory, tool: &str, input: Value, begins: &str) {
    let mut running = pin!(memory.run(tool, input));
    let first = running.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(first.is_pending(), "{tool} computed on the async thread");
    let said = running.await;
    assert!(said.starts_with(begins), "{said}");
}

#[tokio::test]
async fn large_files_are_not_worked_on_by_async_threads() {
    let text: String = (0..400_000).map(|number| format!("{number}\n")).collect();
    let memory = Memory::new([file("f", &text)], 0);
    let lines = json!({"path": "f", "offset": 6, "limit": 2});
    computes_elsewhere(&memory, "read_file", lines, "     6\t5\n     7\t6\n[lines 6-7 of 400000").await;
    let edit = json!({"path": "f", "edits": [{"old": "\n6\n", "new": "\nsix\n"}]});
    computes_elsewhere(&memory, "edit_file", edit, "--- a/f\n+++ b/f\n@@ -4,7 +4,7 @@").await;
    let whole = json!({"path": "f", "content": ""});
    computes_elsewhere(&memory, "write_file", whole, "ERROR: You have seen only parts of `f`").await;
}

#[tokio::test]
async fn a_sandbox_without_background_jobs_says_so() {
    let memory = Memory::new([], 0);
    let check = async |tool: &str, input: Value| {
        let said = memory.run(tool, input).await;
        assert!(
            said.starts_with("ERROR: Commands cannot run in the background here; nothing ran."),
            "{said}"
        );
    };
    check("bash", json!({"command": "make", "background": true})).await;
    check("bash_output", json!({"job": "job-1"})).await;
    check("bash_kill", json!({"job": "job-1"})).await;
}
