//! Spans name session, turn, step and tool, and hold no message content. A binary of its own, because the interest in a
//! span is cached for a whole process.

#![expect(clippy::unwrap_used, reason = "helpers fail as the tests they serve do")]

use std::io::Write;
use std::sync::{Arc, Mutex};

use agent_builtins::{AgentKind, agent as agent_tool};
use agent_core::SessionId;
use agent_harness::{ChildKind, Children, Harness, HarnessConfig};
use agent_store::MemoryStore;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, PermissionMode, ToolConfig, ToolSet};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// An agent that gives a task to one like itself.
fn parent() -> Harness {
    let replies = vec![Reply::tool("agent", r#"{"task":"SECRET","kind":"one"}"#), Reply::text("SECRET")];
    let model = ScriptedModel::new(replies);
    let mut config = HarnessConfig::new(Arc::new(model), Arc::new(MemoryStore::new()));
    let kind = ChildKind {
        name: "one".into(),
        model: Some(Arc::new(ScriptedModel::new(vec![Reply::text("SECRET")]))),
        ..ChildKind::default()
    };
    config.children = Some(Children { kinds: vec![kind], ..Children::default() });
    let kinds = [AgentKind { name: "one".into(), description: "Works.".into() }];
    config.tools = ToolSet::builder().with(agent_tool(&kinds)).freeze().unwrap();
    config.permissions.mode = PermissionMode::Bypass;
    Harness::new(config)
}

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;
    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn agent() -> Harness {
    let look = ToolConfig::new("look", "Looks.", Access::Read, |_, _: serde_json::Value| async {
        Ok("SECRET".to_owned())
    });
    let replies = vec![Reply::text("SECRET").call("look", r#"{"what":"SECRET"}"#), Reply::text("SECRET")];
    let mut config = HarnessConfig::new(Arc::new(ScriptedModel::new(replies)), Arc::new(MemoryStore::new()));
    config.tools = ToolSet::builder().with(look.build().unwrap()).freeze().unwrap();
    Harness::new(config)
}

/// What is traced while a message is worked on.
fn traced(agent: Harness) -> String {
    let captured = Captured::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(captured.clone())
        .with_span_events(FmtSpan::CLOSE)
        .without_time()
        .with_ansi(false)
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let end = runtime.block_on(async {
            agent.session(SessionId::new("s").unwrap()).send("SECRET").await.unwrap().finish().await
        });
        assert!(end.unwrap().reason.is_success());
    });
    let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert!(!text.contains("SECRET"), "no content by default:\n{text}");
    text
}

/// One test, because the interest in a span is that of the whole process.
#[test]
fn turns_are_traced() {
    let text = traced(agent());
    for wanted in [
        "turn{session=s",
        "reason=done",
        "step{step=1}:model_call{input=",
        "step{step=0}:tool{name=look",
        "outcome=Completed",
        "finish=",
    ] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
    let text = traced(parent());
    let of_child = text.lines().find(|line| line.contains(":turn{session=s.sub-")).unwrap();
    let inside = of_child.find("step{step=0}:tool{name=agent").unwrap_or(usize::MAX);
    assert!(
        inside < of_child.find(":turn{session=s.sub-").unwrap(),
        "the child's turn is in the call:\n{text}"
    );
    assert!(of_child.contains("turn{session=s turn="), "which is in the parent's:\n{text}");
}
