//! Notes on a session are fetched when its context is about to be compacted, and stand for what they cover (requirement C2).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent_core::{EntryId, SessionId, SessionNotes};
use agent_harness::{NotesSource, SourceError};
use agent_prepare::{Cascade, Notes};
use agent_store::Store;
use agent_testkit::Reply;
use async_trait::async_trait;

use super::{Sums, compacting, diagnosed, is_done, model, say, told, words};
use crate::support::{block, id};

/// What the source has to say.
#[derive(Debug, Clone, Copy)]
enum Has {
    Notes,
    Nothing,
    Fault,
    Silence,
}

#[derive(Debug, Clone)]
struct Keeper {
    has: Has,
    asked: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl NotesSource for Keeper {
    async fn notes(&self, session: &SessionId) -> Result<Option<SessionNotes>, SourceError> {
        self.asked.lock().unwrap().push(session.to_string());
        match self.has {
            Has::Notes => {
                let text = "They spoke of words, twice.".to_owned();
                Ok(Some(SessionNotes { text, covers_to: Some(EntryId::at(4)) }))
            }
            Has::Nothing => Ok(None),
            Has::Fault => Err(SourceError::new("the notes", "the disk is gone")),
            Has::Silence => std::future::pending().await,
        }
    }

    fn deadline(&self) -> Duration {
        Duration::from_secs(3)
    }
}

/// What is told of a third long message, after two that fit; what was diagnosed, requests of the model, and the time it took.
fn third(has: Has) -> (Vec<String>, Vec<String>, usize, Duration) {
    block(async {
        let keeper = Keeper { has, asked: Arc::default() };
        let source = keeper.clone();
        let replies = ["one", "two", "three"].map(Reply::text).to_vec();
        let agent = compacting(model(replies), Cascade::new().then(Notes).then(Sums::apart()), |config| {
            config.notes = Some(Arc::new(source));
            config.summary_model = Some(Arc::new(model(vec![Reply::text("A summary.")])));
        });
        for _ in 0..2 {
            is_done(&say(&agent, &words(970)).await.1);
        }
        assert!(keeper.asked.lock().unwrap().is_empty(), "nobody asks before it is needed");
        let began = tokio::time::Instant::now();
        let (events, end) = say(&agent, &words(970)).await;
        is_done(&end);
        assert_eq!(*keeper.asked.lock().unwrap(), ["s"], "once in a look");
        let notes = agent.store.load(&id()).await.unwrap().unwrap().checkpoint.slots.notes;
        assert_eq!(notes.is_some(), matches!(has, Has::Notes), "{notes:?}");
        (told(&events), diagnosed(&events), agent.model.requests().len(), began.elapsed())
    })
}

#[test]
fn with_notes_no_model_is_asked() {
    let (told, diagnosed, requests, _) = third(Has::Notes);
    let expect = ["level compact", "requested session_notes", "completed session_notes", "level calm"];
    assert_eq!(told, expect);
    assert!(diagnosed.is_empty(), "{diagnosed:?}");
    assert_eq!(requests, 3, "one for each message");
}

#[test]
fn a_compaction_goes_on_without_notes_that_cannot_be_had() {
    let check = |has: Has, expect: &[&str], takes: u64| {
        let (told, diagnosed, _, took) = third(has);
        assert_eq!(told, ["level compact", "requested sums", "completed sums", "level calm"], "{has:?}");
        assert_eq!(diagnosed, expect);
        assert_eq!(took, Duration::from_secs(takes));
    };
    check(Has::Nothing, &[], 0);
    check(Has::Fault, &["notes: the notes cannot be read: the disk is gone"], 0);
    let late = "notes: the source of notes was still busy after 3000 ms, and the compaction goes on without; let it answer with what it has, or give it a longer `deadline`";
    check(Has::Silence, &[late], 3);
}
