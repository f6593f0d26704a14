//! The run that writes notes reads what the session left in the provider's cache.

use std::sync::Arc;
use std::time::Duration;

use agent_builtins::memory;
use agent_harness::{Harness, HarnessConfig, NotesOutcome, NotesWriter};
use agent_providers::{ApiKey, HttpConfig, HttpModel};
use agent_testkit::{Pick, Reply, SimOptions, SimProvider, Source};
use agent_tools::{PermissionMode, ToolSet};

use super::{Disk, eager, written};
use crate::support::{Effects, id, system_of, tools};

fn agent(sim: &SimProvider, disk: &Disk) -> (NotesWriter, Harness) {
    let model = HttpModel::new(HttpConfig {
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: "claude-opus-5-5".into(),
        ..HttpConfig::default()
    });
    let writer = NotesWriter::new(disk.data.path(), eager());
    let mut config = HarnessConfig::new(Arc::new(model.unwrap()), Arc::new(disk.store.clone()));
    let own = tools(&Effects::default());
    config.tools =
        ToolSet::builder().extend(own.iter().cloned()).with(memory(disk.files())).freeze().unwrap();
    config.permissions.mode = PermissionMode::Bypass;
    let long: &'static str = Box::leak("Mind the tide tables of the harbour. ".repeat(900).into_boxed_str());
    config.prompt = system_of(&[long]);
    config.after_step = vec![Arc::new(writer.clone())];
    (writer, Harness::new(config))
}

fn without_marks(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn at_least_95_percent_of_the_parents_prefix_is_read() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let disk = Disk::new();
        let look = |what: &str| Reply::tool("look", format!(r#"{{"what":"{what}"}}"#));
        let turn = vec![look("the quay"), look("the crane"), Reply::text("All is well at the quay.")];
        let script = [turn, written("The quay is well.").to_vec(), vec![Reply::text("Good night.")]].concat();
        let options = SimOptions { pick: Pick::InOrder, ..SimOptions::default() };
        let sim = SimProvider::start_with(Source::Script(script.into()), options).unwrap();
        let (writer, harness) = agent(&sim, &disk);
        let session = harness.session(id());
        session.send("Look around.").await.unwrap().finish().await.unwrap();
        let background = &harness.config().background;
        while background.pending() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let last = writer.watch(&id()).get().last.unwrap();
        assert_eq!((&last.outcome, last.steps), (&NotesOutcome::Written, 2));

        let usages: Vec<_> = sim.all_served().iter().filter_map(|served| served.usage.clone()).collect();
        let parent = usages[2].total_input();
        let share = usages[3].cache_read as f64 / parent as f64;
        assert!(share >= 0.95, "{share}: {} of {parent} tokens", usages[3].cache_read);
        assert!(last.cache_share().unwrap() >= 0.9, "{:?}: {:?}", last.cache_share(), last.usage);

        let night = session.send("Good night.").await.unwrap().finish().await.unwrap();
        let requests = sim.requests();
        let (forked, next) = (without_marks(&requests[3].body), without_marks(&requests[5].body));
        let point = next.find("Good night.").unwrap();
        assert_eq!(forked[..point], next[..point], "byte for byte up to what is said behind it");
        assert!(forked[point..].starts_with(super::ASKS), "{}", &forked[point..]);
        let after = night.usage.cache_read as f64 / parent as f64;
        assert!(after >= 0.95, "the session still reads its own prefix: {after}");
        println!(
            "of the parent's prefix {share:.4}, of all input {:?}, afterwards {after:.4}",
            last.cache_share()
        );
        assert!(usages.len() >= 5 && sim.refusals().is_empty(), "{:?}", sim.refusals());
    });
}
