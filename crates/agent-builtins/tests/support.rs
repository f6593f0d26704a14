//! A workspace on disk with the tools on it: one call is one line.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_builtins::{LocalSandbox, all};
use agent_core::{CallId, RawJson, ToolOutput};
use agent_tools::{PermissionMode, Permissions, Permit, Proposal, Tool, ToolCx, ToolEnd, ToolError, Verdict};
use serde_json::Value;

/// A workspace, the tools on it and the session they share.
pub(crate) struct Bench {
    /// Held for its drop, which removes the folder.
    dir: tempfile::TempDir,
    base: PathBuf,
    pub(crate) sandbox: LocalSandbox,
    tools: Vec<Arc<dyn Tool>>,
    pub(crate) cx: ToolCx,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with_env(std::iter::empty())
    }

    pub(crate) fn with_env(env: impl IntoIterator<Item = (String, String)>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("ws")).unwrap();
        let sandbox = LocalSandbox::open(&base.join("ws")).unwrap().env(env);
        let cx = ToolCx::for_test("session", "call").unwrap();
        Self { dir, base, tools: all(Arc::new(sandbox.clone())), sandbox, cx }
    }

    /// The workspace.
    pub(crate) fn root(&self) -> PathBuf {
        self.base.join("ws")
    }

    /// A folder beside the workspace, which no tool may reach.
    pub(crate) fn outside(&self) -> PathBuf {
        let outside = self.base.join("outside");
        let _ = std::fs::create_dir(&outside);
        outside
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.root().join(path);
        create_dir_all(path.parent().unwrap());
        write(&path, content.as_ref());
        self
    }

    pub(crate) fn bytes(&self, path: &str) -> Vec<u8> {
        read(&self.root().join(path))
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.bytes(path)).unwrap()
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.root().join(path).exists()
    }

    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) -> &Self {
        std::os::unix::fs::symlink(target, self.root().join(path)).unwrap();
        self
    }

    /// The words the model gets; those of an error begin with `ERROR: `.
    pub(crate) async fn run(&self, name: &str, input: Value) -> String {
        match self.call(name, &input).await {
            Ok(text) => text,
            Err(error) => format!("ERROR: {error}"),
        }
    }

    pub(crate) async fn call(&self, name: &str, input: &Value) -> Result<String, ToolError> {
        call(&self.tools, &self.cx, name, input).await
    }

    /// The output itself.
    pub(crate) async fn output(&self, name: &str, input: &Value) -> Result<ToolOutput, ToolError> {
        output(&self.tools, &self.cx, name, input).await
    }

    /// Drops the sandbox and the tools on it. What is returned keeps the workspace.
    pub(crate) fn without_sandbox(self) -> tempfile::TempDir {
        self.dir
    }

    /// Permission for an effect on the sandbox itself, as this tool would get it.
    pub(crate) async fn permit(&self, name: &str) -> Permit {
        permit(named(&self.tools, name), &RawJson::empty_object()).await
    }
}

/// Calls one of these tools.
pub(crate) async fn call(
    tools: &[Arc<dyn Tool>],
    cx: &ToolCx,
    name: &str,
    input: &Value,
) -> Result<String, ToolError> {
    output(tools, cx, name, input).await.map(|output| output.plain())
}

async fn output(
    tools: &[Arc<dyn Tool>],
    cx: &ToolCx,
    name: &str,
    input: &Value,
) -> Result<ToolOutput, ToolError> {
    let (tool, input) = (named(tools, name), RawJson::of(input).unwrap());
    match tool.run(cx, permit(tool, &input).await, &input).await? {
        ToolEnd::Output(output) => Ok(output),
        ToolEnd::Waits(wait) => panic!("{name} waits for {wait:?}"),
    }
}

fn named<'t>(tools: &'t [Arc<dyn Tool>], name: &str) -> &'t dyn Tool {
    &**tools.iter().find(|tool| tool.card().name() == name).unwrap()
}

pub(crate) async fn permit(tool: &dyn Tool, input: &RawJson) -> Permit {
    let call = CallId::new("call").unwrap();
    let bypass = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
    let checked = bypass.check(Proposal::new(tool, &call, input)).await;
    let Verdict::Allow(permit) = checked else { panic!("bypass allows") };
    permit
}

#[expect(clippy::disallowed_methods, reason = "a test looks at the disk behind the sandbox's back")]
fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test changes the disk behind the sandbox's back")]
pub(crate) fn write(path: &Path, content: &[u8]) {
    std::fs::write(path, content).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test changes the disk behind the sandbox's back")]
pub(crate) fn create_dir_all(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test changes the disk behind the sandbox's back")]
pub(crate) fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}
