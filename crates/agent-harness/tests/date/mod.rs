//! The day is told once, a new one is appended, and the bytes before stay (requirement A3, case C01).

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_cache::Request;
use agent_core::{CacheProfile, Entry, Event, EventBody, ModelProfile, NoteKind};
use agent_harness::{Harness, HarnessConfig};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, Tool, ToolConfig, ToolSet};

use crate::support::{Hands, Keeping, Points, block, crash_after, id, system_of, watch};

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;
/// 2026-12-01, 00:00 UTC.
const MIDNIGHT: i64 = 1_796_083_200_000;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// A tool that takes 61 seconds.
fn waits(hands: &Hands) -> Arc<dyn Tool> {
    let hands = hands.clone();
    let waits = ToolConfig::new("wait", "Waits.", Access::Read, move |_, _: Nothing| {
        let hands = hands.clone();
        async move {
            hands.forward(61_000);
            Ok("waited".to_owned())
        }
    });
    waits.build().unwrap()
}

/// An agent that waits a number of steps, then answers; turn after turn.
fn config(hands: &Hands, store: &Points, model: &Keeping) -> HarnessConfig {
    let mut config = HarnessConfig::new(Arc::new(model.clone()), Arc::new(store.clone()));
    config.prompt = system_of(&["Be brief."]);
    config.tools = ToolSet::builder().extend(vec![waits(hands)]).freeze().unwrap();
    config.tells_date = true;
    config.clock = Arc::new(hands.clone());
    config
}

fn model(turns: &[usize]) -> Keeping {
    let wait = || Reply::tool("wait", "{}");
    let replies: Vec<_> =
        turns.iter().flat_map(|steps| (1..*steps).map(|_| wait()).chain([Reply::text("Done.")])).collect();
    let cache = CacheProfile::Marked { max_marks: 4, min_tokens: 512, lookback: 20, collapse_runs: true };
    let profile = ModelProfile { cache, ..ModelProfile::conservative("anthropic", "claude-opus-5-5") };
    Keeping::new(ScriptedModel::new(replies).by_history().with_profile(profile))
}

/// The conversation in one line: what the user and the harness said, and how many steps lie between.
async fn told(store: &Points) -> String {
    let record = store.load(&id()).await.unwrap().unwrap();
    let (history, _) = agent_core::History::load(&record.entries).unwrap();
    let mut lines: Vec<String> = Vec::new();
    let mut steps = 0;
    for entry in history.entries() {
        let line = match entry {
            Entry::User(message) => format!("user: {}", message.plain().replace('\n', " | ")),
            Entry::Note(note) => {
                assert_eq!(note.kind, NoteKind::Date);
                format!("note: {}", note.text)
            }
            Entry::Step(_) => {
                steps += 1;
                continue;
            }
            Entry::Boundary(_) => "boundary".into(),
        };
        if steps > 0 {
            lines.push(format!("{steps} steps"));
        }
        steps = 0;
        lines.push(line);
    }
    lines.push(format!("{steps} steps"));
    lines.join("\n")
}

fn hashes(events: &[Event]) -> BTreeSet<(String, String)> {
    let hashes = events.iter().filter_map(|event| {
        let EventBody::CacheSystemHash { system, tools } = &event.body else { return None };
        Some((system.to_string(), tools.to_string()))
    });
    hashes.collect()
}

/// Holds that each request goes on where the one before ended.
#[track_caller]
fn check_prefixes(model: &Keeping) {
    let bodies = model.bodies();
    let requests: Vec<_> = bodies.iter().map(|body| Request::read(&body.to_vec(), None).unwrap()).collect();
    let bytes = |request: &Request| request.blocks.iter().map(|it| it.bytes.clone()).collect::<Vec<_>>();
    for pair in requests.windows(2) {
        let (earlier, later) = (bytes(&pair[0]), bytes(&pair[1]));
        assert!(later.starts_with(&earlier), "{earlier:?}\n{later:?}");
    }
}

#[test]
fn a_day_that_begins_is_appended_and_moves_nothing() {
    block(async {
        let hands = Hands::at(MIDNIGHT - 3 * 60 * MINUTE - 5 * MINUTE);
        hands.travel(3 * 60);
        let (store, model) = (Points::default(), model(&[10, 2, 2, 2]));
        let session = Harness::new(config(&hands, &store, &model)).session(id());
        let (mut events, _) = watch(session.send("go").await.unwrap()).await;
        let received = events.iter().find_map(|event| {
            let EventBody::MessageReceived { text, .. } = &event.body else { return None };
            Some(text.clone())
        });
        assert_eq!(received.as_deref(), Some("go"), "the event has the user's own words");
        // From +03:00 to UTC, where it is the day before.
        hands.travel(0);
        events.extend(watch(session.send("and here?").await.unwrap()).await.0);
        events.extend(watch(session.send("the same day").await.unwrap()).await.0);
        drop(session);
        hands.forward(DAY);
        let session = Harness::new(config(&hands, &store, &model)).session(id());
        events.extend(watch(session.send("next day").await.unwrap()).await.0);
        insta::assert_snapshot!(told(&store).await, @"
        user: Today's date is 2026-11-30. | go
        5 steps
        note: Today's date is 2026-12-01.
        5 steps
        note: Today's date is 2026-11-30.
        user: and here?
        2 steps
        user: the same day
        2 steps
        note: Today's date is 2026-12-01.
        user: next day
        2 steps
        ");
        assert_eq!(hashes(&events).len(), 1, "tools and system prompt are the same all the time");
        assert_eq!(model.bodies().len(), 16);
        check_prefixes(&model);
        let breaks = events.iter().filter(|event| matches!(event.body, EventBody::CacheBreak { .. }));
        assert_eq!(breaks.count(), 0);
    });
}

#[test]
fn a_date_is_not_told_unasked() {
    block(async {
        let (hands, store, model) = (Hands::at(MIDNIGHT), Points::default(), model(&[1]));
        let config = HarnessConfig { tells_date: false, ..config(&hands, &store, &model) };
        Harness::new(config).session(id()).send("go").await.unwrap().finish().await.unwrap();
        assert_eq!(told(&store).await, "user: go\n1 steps");
    });
}

#[test]
fn the_same_command_after_a_crash_is_not_said_twice_and_a_new_day_once() {
    block(async {
        let (mut crashed, mut noted) = (0, 0);
        for polls in 0..200 {
            let (hands, store, model) = (Hands::at(MIDNIGHT - MINUTE), Points::default(), model(&[3]));
            let agent = || Harness::new(config(&hands, &store, &model)).session(id());
            let day = if polls % 2 == 0 { 0 } else { DAY };
            if crash_after(agent().send("go").await.unwrap(), polls).await.is_some() {
                break;
            }
            crashed += 1;
            hands.forward(day);
            agent().send("go").await.unwrap().finish().await.unwrap();
            let told = told(&store).await;
            assert_eq!(told.matches("| go").count(), 1, "{polls}: {told}");
            let notes = told.matches("note:").count();
            // The first step crosses midnight, so that a run on one day has a note, and one a day later at most two.
            assert!(notes <= 1 + usize::from(day > 0), "{polls}: {told}");
            let mut lines: Vec<_> = told.lines().filter(|line| line.contains("Today's date")).collect();
            lines.dedup_by_key(|line| line.split("is ").nth(1).unwrap()[..10].to_owned());
            assert_eq!(lines.len(), notes + 1, "no day is told twice: {told}");
            noted += notes;
            check_prefixes(&model);
        }
        assert!(crashed > 10 && noted > 5, "{crashed} crashes, {noted} notes");
    });
}
