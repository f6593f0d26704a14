//! A session looks at its environment once in its life, whatever changes meanwhile and whoever invalidates what was seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_core::SessionId;
use agent_harness::{Harness, HarnessConfig, PromptSource, SourceError, Workspace};
use agent_prompt::Prompt;
use agent_store::MemoryStore;
use agent_testkit::{Reply, ScriptedModel};
use async_trait::async_trait;

use super::repository::Repository;
use super::{Place, block};

/// Counts how often sessions ask it.
#[derive(Debug, Clone)]
struct Counting(Workspace, Arc<AtomicUsize>);

#[async_trait]
impl PromptSource for Counting {
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError> {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.add_to(prompt).await
    }
}

/// Sends a message in a new process; the branch that the system prompt speaks of, and all before what was said.
async fn say(source: &Counting, store: &MemoryStore, session: &str) -> (String, String) {
    let model = ScriptedModel::new(vec![Reply::text("ok"); 9]).by_history();
    let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(store.clone()));
    config.sources = vec![Arc::new(source.clone())];
    let session = Harness::new(config).session(SessionId::new(session).unwrap());
    session.send("Hello.").await.unwrap().finish().await.unwrap();
    let body = String::from_utf8(model.requests().pop().unwrap().to_vec()).unwrap();
    let branch = body.split("Branch: ").nth(1).unwrap().split(['\\', '"']).next().unwrap();
    (branch.to_owned(), body[..body.find("Hello.").unwrap()].to_owned())
}

#[test]
fn a_session_keeps_what_it_began_with() {
    let check = |workspace: fn(Workspace) -> Workspace, next: &str| {
        let place = Place::new(&[]);
        let repository = Repository::init(place.path("work"));
        repository.commit("a.txt", "First");
        let source = Counting(workspace(place.workspace("work")), Arc::default());
        let asked = || source.1.load(Ordering::SeqCst);
        block(async {
            let store = MemoryStore::new();
            let first = say(&source, &store, "a").await;
            repository.git(&["checkout", "--quiet", "-b", "two"]);
            assert_eq!(say(&source, &store, "a").await, first);
            assert_eq!((first.0.as_str(), asked()), ("main", 1));
            assert_eq!((say(&source, &store, "b").await.0.as_str(), asked()), (next, 2));
            source.0.invalidate();
            assert_eq!(say(&source, &store, "a").await, first, "a running session does not hear of it");
            assert_eq!(asked(), 2, "and does not ask");
            assert_eq!((say(&source, &store, "c").await.0.as_str(), asked()), ("two", 3));
        });
    };
    check(|workspace| workspace, "two");
    check(Workspace::share_environment, "main");
}
