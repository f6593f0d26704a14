//! What a tool keeps lasts as long as its session, and a tool in its place has a state of its own (requirement T11).

use std::path::Path;
use std::sync::Arc;

use agent_harness::{Harness, HarnessConfig};
use agent_store::{SqliteStore, Store};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, Call, Tool, ToolConfig, ToolError, ToolSet, ToolSetBuilder, Wrapped};

use super::results;
use crate::support::{block, id, watch};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// As one that is shipped: with a key of its own.
fn shipped() -> Arc<dyn Tool> {
    ToolConfig::new("count", "Counts.", Access::Session, count).state_key("builtin:count").build().unwrap()
}

async fn count(call: Call, _: Nothing) -> Result<String, ToolError> {
    let calls = call.cx.state.update(|calls: Option<u32>| calls.unwrap_or(0) + 1)?;
    Ok(format!("call {calls}"))
}

/// One turn of a process that opens the store anew; what its call was answered.
async fn process(dir: &Path, change: impl FnOnce(ToolSetBuilder) -> ToolSetBuilder) -> String {
    let store = Arc::new(SqliteStore::open(dir).unwrap());
    let model = ScriptedModel::new(vec![Reply::tool("count", "{}"), Reply::text("ok")]);
    let mut config = HarnessConfig::new(Arc::new(model), store.clone());
    config.tools = change(ToolSet::builder().with(shipped())).freeze().unwrap();
    watch(Harness::new(config).session(id()).send("go").await.unwrap()).await;
    let record = store.load(&id()).await.unwrap().unwrap();
    let (history, _) = agent_core::History::load(&record.entries).unwrap();
    results(&history).last().unwrap().plain()
}

#[test]
fn a_wrapper_keeps_the_state_and_a_fresh_definition_has_its_own() {
    block(async {
        let dir = tempfile::tempdir().unwrap();
        let around = |inner| Wrapped::new(inner).description("Counts well.");
        let fresh = || ToolConfig::new("count", "Counts afresh.", Access::Session, count);
        assert_eq!(process(dir.path(), |set| set).await, "call 1");
        assert_eq!(process(dir.path(), |set| set).await, "call 2");
        assert_eq!(process(dir.path(), move |set| set.wrap("count", around)).await, "call 3");
        assert_eq!(process(dir.path(), move |set| set.replace(fresh())).await, "call 1");
        assert_eq!(process(dir.path(), move |set| set.replace(fresh())).await, "call 2");
        assert_eq!(process(dir.path(), |set| set).await, "call 4", "what the first one kept is still there");
    });
}
