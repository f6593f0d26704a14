//! Runs the program with a bare environment.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use agent_testkit::RecordedRequest;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// A workspace and a data directory for one test.
pub(crate) struct Home {
    dir: TempDir,
}

pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Where the user's own rule files would be.
    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("config")
    }

    /// A text without the place of this test's data.
    pub(crate) fn placeless(&self, text: &str) -> String {
        text.replace(&self.data().display().to_string(), "DATA")
    }

    /// `agent` with these arguments, nothing of the user's environment but the search path, and no terminal.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agent"));
        command.args(args).env_clear().env("AGENT_DATA_DIR", self.data()).current_dir(self.work());
        command.env("AGENT_CONFIG_DIR", self.config());
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    pub(crate) async fn agent(&self, args: &[&str]) -> Output {
        self.agent_fed(args, b"").await
    }

    pub(crate) async fn agent_fed(&self, args: &[&str], input: &[u8]) -> Output {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input).await.unwrap();
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        Output {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// `agent run` against a server, with a key.
    pub(crate) async fn run(&self, base_url: &str, args: &[&str]) -> Output {
        let all = ["run", "--base-url", base_url];
        self.agent(&[&all, args].concat()).await
    }
}

/// The project's own fixtures.
pub(crate) fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

pub(crate) fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// The conversation of a request as bytes, without cache markers.
pub(crate) fn conversation(request: &RecordedRequest) -> String {
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let body = body.replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let start = body.find(r#""messages":["#).unwrap();
    let end = body.rfind(r#"],"max_tokens""#).unwrap();
    body[start..end].to_owned()
}
