//! What a boundary clips can be read again: it is stored whole before, and its handle stands in what is left (requirement
//! P10).

use std::sync::Arc;

use agent_core::{BlobHash, Entry, EntryId, History, ReadExtent, ReadStamp, Rewrite};
use agent_prepare::{Cascade, Pipeline, Tier, TierCx, TierVerdict};
use agent_store::Store;
use agent_testkit::Reply;
use agent_tools::{Access, Call, ToolConfig, ToolSet};

use super::{agent, bodies, is_done, lines, model, say};
use crate::support::{Agent, Keeping, block, crash_after, id};

/// Clips every result to so many bytes, and says nothing of where the rest is.
#[derive(Debug)]
struct Clips(usize);

impl Tier for Clips {
    fn name(&self) -> &'static str {
        "clips"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        let results_to = EntryId::at(cx.of.history.len());
        let keep_bytes = self.0;
        TierVerdict::Rewrite(Rewrite::Cleared {
            results_to,
            keep_bytes,
            strip_reasoning: false,
            offloaded: false,
        })
    }
}

/// An agent whose tool says more than the window holds and less than its cap, and the model behind it.
fn clipping() -> (Agent, Keeping) {
    let fat =
        ToolConfig::new("fat", "Says much.", Access::Read, |_, _: super::Nothing| async { Ok(lines(2_900)) });
    let keeping = Keeping::new(model(vec![Reply::tool("fat", "{}"), Reply::text("ok")]));
    let own = keeping.clone();
    let agent = agent(model(vec![]), |config| {
        config.model = Arc::new(own);
        config.tools = ToolSet::builder().with(fat).freeze().unwrap();
        config.pipeline = Pipeline::new(Cascade::new().then(Clips(400)));
    });
    (agent, keeping)
}

/// The name of what the tool says, out of the store of a session that is put away.
async fn named() -> BlobHash {
    let (agent, _) = clipping();
    is_done(&say(&agent, "go").await.1);
    agent.store.put_blob(&id(), lines(2_900).as_bytes()).await.unwrap()
}

fn is_clipped(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| matches!(entry, Entry::Boundary(Rewrite::Cleared { offloaded: true, .. })))
}

#[test]
fn what_is_clipped_is_named_and_can_be_read() {
    block(async {
        let (agent, keeping) = clipping();
        is_done(&say(&agent, "go").await.1);
        assert!(is_clipped(agent.history().await.entries()));
        let hash = named().await;
        let sent = String::from_utf8(keeping.bodies()[1].to_vec()).unwrap();
        assert!(sent.contains(&format!("bytes removed; whole: {hash}]")), "{sent}");
        assert!(sent.len() < 4_000, "{}", sent.len());
        let kept = agent.store.get_blob(&hash).await.unwrap();
        assert_eq!(kept.as_deref(), Some(lines(2_900).as_bytes()));
    });
}

#[test]
fn who_is_shown_less_of_what_it_read_is_told_that_it_counts_as_unread() {
    block(async {
        let reads =
            ToolConfig::new("reads", "Reads.", Access::Read, |call: Call, _: super::Nothing| async move {
                let stamp = ReadStamp { hash: "00".into(), len: 1, seen: ReadExtent::Full };
                call.cx.slots.update(|slots| slots.reads.insert("a.txt".into(), stamp));
                Ok(lines(2_900))
            });
        let agent = agent(model(vec![Reply::tool("reads", "{}"), Reply::text("ok")]), |config| {
            config.tools = ToolSet::builder().with(reads).freeze().unwrap();
            config.pipeline = Pipeline::new(Cascade::new().then(Clips(400)));
        });
        is_done(&say(&agent, "go").await.1);
        let sent = bodies(&agent.model);
        assert!(
            !sent[0].contains("count as unread") && sent[1].contains("Files count as unread"),
            "{}",
            sent[1]
        );
        let record = agent.store.load(&id()).await.unwrap().unwrap();
        assert!(record.checkpoint.slots.reads.is_empty());
    });
}

#[test]
fn no_crash_leaves_a_name_without_its_blob() {
    let mut clipped = 0;
    block(async {
        let hash = named().await;
        for polls in 0.. {
            let (agent, _) = clipping();
            let end = crash_after(agent.session().send("go").await.unwrap(), polls).await;
            if let Some(record) = agent.store.load(&id()).await.unwrap() {
                let (history, _) = History::load(&record.entries).unwrap();
                if is_clipped(history.entries()) {
                    clipped += usize::from(end.is_none());
                    assert!(agent.store.get_blob(&hash).await.unwrap().is_some(), "after {polls} polls");
                }
            }
            if end.is_some() {
                break;
            }
        }
    });
    assert!(clipped > 0, "a run was broken off behind its boundary");
}
