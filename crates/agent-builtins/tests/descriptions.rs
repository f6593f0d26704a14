//! What the model is told of each tool.

use std::sync::Arc;

use agent_builtins::{LocalSandbox, agent, all, ask_question, deferred};
use agent_core::RawJson;
use agent_tools::{Access, Concurrency, Tool};
use serde_json::Value;

fn tools() -> Vec<Arc<dyn Tool>> {
    let dir = tempfile::tempdir().unwrap();
    all(Arc::new(LocalSandbox::open(dir.path()).unwrap()))
}

/// Those too that only some sessions have.
fn every_tool() -> Vec<Arc<dyn Tool>> {
    let mut tools = tools();
    tools.extend([ask_question(), agent(&[])]);
    #[cfg(feature = "web")]
    tools.push(agent_builtins::web_fetch(agent_builtins::WebFetchConfig::default()));
    let memories = agent_memory::MemoryDir::open(&tempfile::tempdir().unwrap().path().join("m")).unwrap();
    tools.push(agent_builtins::memory(agent_memory::MemoryFiles::new(memories)));
    let late = deferred([agent_builtins::todo()]);
    tools.extend(late.into_iter().filter(|tool| !tool.card().is_deferred()));
    tools
}

#[test]
fn each_says_what_when_and_what_next() {
    for tool in every_tool() {
        let (name, text) = (tool.card().name(), tool.card().description());
        assert!(text.matches(". ").count() + 1 >= 3, "{name}: at least three sentences");
        assert!(text.ends_with('.') && text.trim() == text, "{name}: whole sentences, no space around");
        assert!(text.contains("Use it "), "{name}: when to use it");
        assert!(text.contains("Next, ") || text.contains("go on with"), "{name}: what to do next");
        assert!(text.lines().all(|line| line.trim_end() == line), "{name}: no trailing space");
        assert!(text.len() < 1_200, "{name}: it costs tokens at every step");
    }
}

#[test]
fn each_field_is_explained() {
    for tool in every_tool() {
        let schema: Value = tool.card().input_schema().to().unwrap();
        let fields = schema["properties"].as_object().unwrap();
        for (field, about) in fields {
            let words = about["description"].as_str().unwrap_or_default();
            assert!(words.ends_with('.'), "{}: `{field}` says what it is: {about}", tool.card().name());
        }
    }
}

#[tokio::test]
async fn order_access_and_subject() {
    let subject = |input: &str| RawJson::parse(input).unwrap();
    let input = subject(r#"{"path":"p","command":"c","pattern":"g","job":"j","content":"","edits":[]}"#);
    let mut rows = Vec::new();
    for tool in tools() {
        let traits = tool.traits();
        assert_eq!(traits.concurrency == Concurrency::Parallel, traits.access == Access::Read);
        let subject = tool.subject(&input).await;
        rows.push(format!("{} {:?} {subject:?}", tool.card().name(), traits.access));
    }
    insta::assert_snapshot!(rows.join("\n"), @r#"
    read_file Read Some(Path { given: "p", real: Some("p") })
    write_file Edit Some(Path { given: "p", real: Some("p") })
    edit_file Edit Some(Path { given: "p", real: Some("p") })
    glob Read Some(Path { given: "p", real: Some("p") })
    grep Read Some(Path { given: "p", real: Some("p") })
    bash Execute Some(Command("c"))
    bash_output Read Some(Text("j"))
    bash_kill Session Some(Text("j"))
    todo Session None
    complete Session None
    "#);
}
