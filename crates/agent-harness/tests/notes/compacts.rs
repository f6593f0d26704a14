//! A long session in a small window goes on from its notes, and no model is asked for a summary.

use std::sync::Arc;

use agent_core::{Entry, EventBody, History, LanguageModel, ModelProfile, Rewrite};
use agent_memory::NotesPolicy;
use agent_prepare::{Cascade, Notes, Pipeline, Summarise};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_turn::step_count;

use super::{Disk, Two, paced, written};
use crate::support::{block, id};

fn small() -> ModelProfile {
    ModelProfile {
        context_window: 16_384,
        max_output: 2_048,
        ..ModelProfile::conservative("scripted", "small")
    }
}

#[test]
fn hundreds_of_steps_compact_from_notes_alone() {
    block(async {
        let disk = Disk::new();
        let look = |at: usize| {
            let what = format!("place {at} {}", "of the long way round ".repeat(10));
            Reply::tool("look", format!(r#"{{"what":"{what}"}}"#))
        };
        let mut main: Vec<Reply> = (0..300).map(look).collect();
        main.push(Reply::text("Every place was seen."));
        let beside: Vec<Reply> = (1..99).flat_map(|run| written(&format!("Notes of run {run}."))).collect();
        let model = Two {
            main: paced(main).with_profile(small()),
            beside: ScriptedModel::new(beside).with_profile(small()),
        };
        let sums = ScriptedModel::new(Vec::<Reply>::new()).with_profile(small());
        let summary: Arc<dyn LanguageModel> = Arc::new(sums.clone());
        let policy = NotesPolicy { first: 2_000, then: 2_000, calls: 10 };
        let process = disk.with(policy, model, |config| {
            config.pipeline = Pipeline::new(Cascade::new().then(Notes).then(Summarise::default()));
            config.summary_model = Some(summary);
            config.stop = Arc::new(step_count(1_000));
        });
        let lines = process.step_by_step("See every place.").await;
        assert_eq!(lines.len(), 301);

        let events = disk.store.events(&id(), 0).await.unwrap();
        let tiers: Vec<&str> = events
            .iter()
            .filter_map(|event| {
                let EventBody::CompactionCompleted { tier, .. } = &event.body else { return None };
                Some(tier.as_str())
            })
            .collect();
        assert!(tiers.len() >= 2 && tiers.iter().all(|tier| *tier == "session_notes"), "{tiers:?}");
        let failed = events.iter().any(|event| matches!(event.body, EventBody::CompactionFailed { .. }));
        assert!(!failed && sums.requests().is_empty(), "no model is asked for a summary");
        assert_eq!(process.model.main.requests().len(), 301);

        // The boundary's words are the notes of the run that covered what lies before it.
        let record = disk.store.load(&id()).await.unwrap().unwrap();
        let (history, _) = History::load(&record.entries).unwrap();
        let words = history.entries().iter().filter_map(|entry| {
            let Entry::Boundary(Rewrite::Summary { text, .. }) = entry else { return None };
            Some(text.as_str())
        });
        let words: Vec<&str> = words.collect();
        assert_eq!(words.len(), tiers.len());
        assert!(words.iter().all(|words| words.contains("Notes of run ")), "{words:?}");
        let last = bodies_hold(&process.model.main, "Notes of run ");
        assert!(last, "the model goes on from them");

        // Its runs are at the session's own context, and none of them was compacted or made notes on itself.
        let runs = process.writer.file(&id()).state().unwrap().runs;
        assert_eq!(process.beside().len() as u64, runs * 2);
        insta::assert_snapshot!(format!("{} compactions, {runs} runs; {}", tiers.len(), lines.last().unwrap()), @"4 compactions, 23 runs; lacks 1946 of growth; calls: 293 to 305: written in 2 steps");
    });
}

fn bodies_hold(model: &ScriptedModel, words: &str) -> bool {
    super::bodies(model).last().is_some_and(|body| body.contains(words))
}
