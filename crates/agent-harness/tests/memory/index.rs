//! The index of memories in the prompt: as it was when the session began, whatever is written later.

use std::sync::Arc;

use agent_core::Body;
use agent_harness::{Harness, HarnessConfig, MemoryIndex};
use agent_memory::{Memory, MemoryDir, MemoryFiles, MemoryName, MemoryType};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::ToolSet;

use crate::support::{Keeping, Points, block, id, watch};

/// Another process: nothing is shared but what is on disk.
fn process(store: &Points, model: &Keeping, folder: &std::path::Path) -> Harness {
    let memories = Arc::new(MemoryDir::open(folder).unwrap());
    let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(store.clone()));
    config.sources = vec![Arc::new(MemoryIndex::new(memories.clone()))];
    config.tools =
        ToolSet::builder().with(agent_builtins::memory(MemoryFiles::new(memories))).freeze().unwrap();
    Harness::new(config)
}

fn system(body: &Body) -> String {
    let text =
        String::from_utf8(body.to_vec()).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["system"].to_string()
}

fn plain(body: &Body) -> String {
    String::from_utf8(body.to_vec()).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn a_memory_that_is_written_moves_no_byte_of_a_running_session() {
    block(async {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("memory");
        let add = |name: &str, words: &str| {
            let memory =
                Memory::new(MemoryName::new(name).unwrap(), MemoryType::User, words, "So it is.").unwrap();
            MemoryDir::open(&at).unwrap().add(&memory).unwrap();
        };
        add("user_tea", "Likes tea");
        let text = r"---\nname: user_cake\ndescription: Likes cake\ntype: user\n---\nCake.\n";
        let call = format!(r#"{{"command":"create","path":"/memories/user_cake.md","file_text":"{text}"}}"#);
        let replies = vec![
            Reply::text("Hello."),
            Reply::tool("memory", call),
            Reply::text("Kept."),
            Reply::text("Again."),
            Reply::text("New."),
        ];
        let (store, model) = (Points::default(), Keeping::new(ScriptedModel::new(replies)));
        let first = process(&store, &model, &at);
        watch(first.session(id()).send("hello").await.unwrap()).await;
        // Somebody else writes one, and the agent itself another.
        add("user_pie", "Likes pie");
        watch(first.session(id()).send("remember that I like cake").await.unwrap()).await;
        let second = process(&store, &model, &at);
        watch(second.session(id()).send("again").await.unwrap()).await;
        let other = agent_core::SessionId::new("other").unwrap();
        watch(second.session(other.clone()).send("hello").await.unwrap()).await;

        let bodies = model.bodies();
        let [begin, call, result, again, new] = &bodies[..] else { panic!("{}", bodies.len()) };
        assert!(system(begin).contains("Likes tea") && !system(begin).contains("Likes pie"));
        for later in [call, result, again] {
            assert_eq!(system(later), system(begin));
        }
        // As a prompt cache sees it: each request begins with the one before, up to what closes its list.
        for pair in [[begin, call], [call, result], [result, again]] {
            let [before, after] = pair.map(plain);
            let end = before.rfind("]}]").unwrap();
            assert!(after.starts_with(&before[..end]), "{before}\n{after}");
        }
        assert!(plain(result).contains("user_cake"), "it learns of its own write from the result");
        for words in ["Likes tea", "Likes cake", "Likes pie"] {
            assert!(system(new).contains(words), "{words}: {}", system(new));
        }
        let stored = store.load(&other).await.unwrap().unwrap().meta.system;
        assert!(
            stored.iter().any(|block| block.text().contains("Likes pie")),
            "a session keeps what it was told"
        );
    });
}

#[test]
fn what_is_off_about_the_index_is_told_and_a_session_begins_all_the_same() {
    block(async {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("memory");
        MemoryDir::open(&at).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a person edits the file")]
        std::fs::write(at.join("MEMORY.md"), "- [gone](gone.md): Nobody knows\n").unwrap();
        let (store, model) =
            (Points::default(), Keeping::new(ScriptedModel::new(vec![Reply::text("Hello.")])));
        let (events, _) =
            watch(process(&store, &model, &at).session(id()).send("hello").await.unwrap()).await;
        let told = events.iter().find_map(|event| {
            let agent_core::EventBody::RequestDiagnostic(told) = &event.body else { return None };
            Some(format!("{}: {}", told.what, told.why))
        });
        assert_eq!(told.as_deref(), Some("memory: `gone` has an entry and no file"));
        let system = system(&model.bodies()[0]);
        assert!(!system.contains("Nobody knows") && system.contains("## Index of memories"), "{system}");
    });
}
