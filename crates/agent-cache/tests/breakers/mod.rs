//! The classic ways to break a cache, each named with its cause, its place and its cost.

mod others;

use std::time::Duration;

use agent_cache::{Audit, Cause, MissReason, Request, Row, Volatile, suspects};
use agent_core::Usage;

use crate::support::{Parts, agent_loop, good_loop, marked, result, simulator, text, thinking, tool};

fn audit(requests: &[Parts]) -> Vec<Row> {
    let cache = simulator("anthropic");
    let prices = cache.rules(&requests[0].request()).prices(3.0, 15.0, "2026-11-30");
    let mut audit = Audit::new(cache, Some(prices));
    requests
        .iter()
        .enumerate()
        .map(|(at, parts)| audit.step(&parts.request(), Some(Duration::from_secs(10 * at as u64)), None))
        .collect()
}

/// Five steps of a good loop, changed by `change(step, parts)` before its marks are set. The last must diverge here.
fn check(change: impl Fn(usize, &mut Parts), path: &str, cause: Cause) -> Row {
    check_marked(
        |step, parts| {
            change(step, parts);
            let last = parts.system.len() - 1;
            parts.system[last] = marked(&parts.system[last], "5m");
            parts.mark_tail();
        },
        path,
        cause,
    )
}

/// The same with marks as `change` sets them.
fn check_marked(change: impl Fn(usize, &mut Parts), path: &str, cause: Cause) -> Row {
    let steps = (1..=5).map(|step| {
        let mut parts = agent_loop(step);
        change(step, &mut parts);
        parts
    });
    let row = audit(&steps.collect::<Vec<_>>()).pop().unwrap();
    let found = row.divergence.clone().unwrap_or_else(|| panic!("{cause:?} is missed: {row:?}"));
    assert_eq!((found.path.as_str(), found.cause), (path, cause), "{found:?}");
    assert!(!found.advice.is_empty());
    row
}

#[test]
fn the_good_loop_has_no_fault() {
    let rows = audit(&(1..=8).map(good_loop).collect::<Vec<_>>());
    for row in &rows {
        assert_eq!((&row.divergence, row.lost, row.miss), (&None, 0, None), "{row:?}");
        assert_eq!((&row.tools_hash, &row.system_hash), (&rows[0].tools_hash, &rows[0].system_hash));
    }
    assert_eq!(rows[7].shared_bytes, rows[6].bytes);
    assert_eq!((rows[7].usage.cache_read, rows[7].usage.cache_write()), (34_000, 2_000));
    assert_eq!((rows[0].shared_tokens, rows[7].shared_tokens), (0, 34_000));
    let marks = |row: &Row| row.marks.iter().map(|mark| mark.path.clone()).collect::<Vec<_>>();
    let moved = rows.windows(2).filter(|rows| marks(&rows[0]).last() != marks(&rows[1]).last());
    assert_eq!(moved.count(), 7, "the rolling marker is told where it stands in each request");
    assert!(rows.iter().all(|row| marks(row)[0].starts_with("system[")), "{:?}", marks(&rows[0]));
}

#[test]
fn what_is_paid_is_held_against_the_ideal() {
    let ratio = |requests: &[Parts], prices: Option<f64>| {
        let cache = simulator("anthropic");
        let rules = cache.rules(&requests[0].request());
        let prices = prices.map(|input| rules.prices(input, 15.0, "2026-11-30"));
        let mut audit = Audit::new(cache, prices);
        assert_eq!(audit.summary().cost_ratio, None, "nothing was sent");
        requests.iter().for_each(|parts| {
            audit.step(&parts.request(), None, None);
        });
        audit.summary().cost_ratio.unwrap()
    };
    let good: Vec<_> = (1..=8).map(good_loop).collect();
    assert!((ratio(&good, None) - 1.0).abs() < 0.01, "{}", ratio(&good, None));
    assert!((ratio(&good, None) - ratio(&good, Some(3.0))).abs() < 1e-9, "a ratio has no currency");
    // Everything is paid in full, and seven of eight times again: the unmarked loop.
    let unmarked: Vec<_> = (1..=8).map(agent_loop).collect();
    assert!(ratio(&unmarked, None) > 3.0, "{}", ratio(&unmarked, None));
    // The ideal is that of a loop without the fault: a clock is held against what it cost.
    let clock = (1..=8).map(|step| {
        let mut parts = good_loop(step);
        parts.system[0] = marked(&text(&format!("It is 12:04:{step:02}."), 9_900), "5m");
        parts
    });
    let clock = ratio(&clock.collect::<Vec<_>>(), None);
    assert!(clock > 3.0, "{clock}");

    // What is answered is no part of it.
    let mut audit = Audit::new(simulator("anthropic"), None);
    let said = Usage { input: 1_000, output: 1_000_000, ..Usage::default() };
    audit.step(&good[0].request(), None, Some(&said));
    assert_eq!(audit.summary().cost_ratio, Some(0.8), "1,000 tokens at 1 instead of written at 1.25");
}

#[test]
fn a_clock_in_the_system_text_loses_all_behind_the_tools() {
    let clock = |step: usize, parts: &mut Parts| {
        parts.system[0] = text(&format!("It is 12:04:{:02}.", step), 9_900);
    };
    let row = check(clock, "system[0]", Cause::SystemChanged);
    let found = row.divergence.unwrap();
    assert_eq!(
        (found.looks_like, found.before.as_str(), found.after.as_str()),
        (Some(Volatile::Clock), "12:04:04.", "12:04:05.")
    );
    assert!(found.advice.contains("time of day"));
    // 28,000 tokens were left in the cache, and none of them is read.
    assert_eq!((row.lost, row.usage.cache_read), (28_000, 0));
    let a_token = (1.25 - 0.1) * 3.0 / 1e6;
    assert!((row.lost_cost.unwrap() - 28_000.0 * a_token).abs() < 1e-9);
    assert_eq!(row.miss.map(|miss| miss.reason), Some(MissReason::SystemChanged));
}

#[test]
fn midnight_in_the_system_text() {
    let date = |step: usize, parts: &mut Parts| {
        let day = if step < 5 { "2026-11-30" } else { "2026-12-01" };
        parts.system[0] = text(&format!("Today is {day}."), 9_900);
    };
    let found = check(date, "system[0]", Cause::SystemChanged).divergence.unwrap();
    assert_eq!(found.looks_like, Some(Volatile::Date));
}

#[test]
fn the_volatile_is_suspected_before_anything_is_lost() {
    let mut parts = good_loop(1);
    parts.system.insert(0, text("Session 0198f2aa-7b11-7c22-8d33-1234567890ab.", 5));
    let found = suspects(&parts.request());
    assert_eq!((found[0].path.as_str(), found[0].looks_like), ("system[0]", Volatile::Uuid));
    assert_eq!(audit(&[parts, good_loop(2)])[0].suspects, found);
    assert!(suspects(&good_loop(1).request()).is_empty());
}

#[test]
fn tools_that_move_come_and_go() {
    let shuffled = |step: usize, parts: &mut Parts| parts.tools.rotate_left(step);
    let row = check(shuffled, "tools[0]", Cause::ToolsReordered);
    assert_eq!((row.lost, row.miss.map(|miss| miss.reason)), (28_000, Some(MissReason::ToolsChanged)));
    let filtered = |step: usize, parts: &mut Parts| {
        if step % 2 == 1 {
            parts.tools.remove(3);
        }
    };
    check(filtered, "tools[3]", Cause::ToolRemoved);
    let revealed = |step: usize, parts: &mut Parts| {
        if step == 5 {
            parts.tools.push(tool("found", 50));
        }
    };
    check(revealed, "tools[10]", Cause::ToolAdded);
    let inserted = |step: usize, parts: &mut Parts| {
        if step == 5 {
            parts.tools.insert(2, tool("found", 50));
        }
    };
    check(inserted, "tools[2]", Cause::ToolAdded);
    let schema = |step: usize, parts: &mut Parts| {
        if step == 5 {
            parts.tools[3] = parts.tools[3].replace("integer", "number");
        }
    };
    check(schema, "tools[3].input_schema", Cause::ToolChanged);
    let keys = |step: usize, parts: &mut Parts| {
        if step == 5 {
            let (path, depth) = (r#""path":{"type":"string"}"#, r#""depth":{"type":"integer"}"#);
            parts.tools[3] = parts.tools[3].replace(&format!("{path},{depth}"), &format!("{depth},{path}"));
        }
    };
    check(keys, "tools[3].input_schema", Cause::Reserialised);
}

#[test]
fn history_that_changes() {
    let reminder = |_: usize, parts: &mut Parts| {
        let before_last = parts.messages.len() - 2;
        parts.messages.insert(before_last, ("user", vec![text("Remember the todos.", 30)]));
    };
    check(reminder, "messages[7].content[0]", Cause::MessageRemoved);
    let inserted = |step: usize, parts: &mut Parts| {
        if step == 5 {
            parts.messages.insert(3, ("user", vec![text("A late note.", 30)]));
        }
    };
    check(inserted, "messages[3].content[0]", Cause::MessageInserted);
    let first_rendered_again = |step: usize, parts: &mut Parts| {
        parts.messages[0].1[0] = text(&format!("Now 2026-11-{:02}. Repair the build.", 10 + step), 100);
    };
    let row = check(first_rendered_again, "messages[0].content[0]", Cause::MessageEdited);
    assert_eq!(row.divergence.unwrap().looks_like, Some(Volatile::Date));
    assert_eq!((row.usage.cache_read, row.lost), (19_900, 8_100));
    let cleared = |step: usize, parts: &mut Parts| {
        for old in 0..step - 1 {
            let at = 2 + 2 * old;
            parts.messages[at].1[0] = result(&format!("call_{old}"), 10);
        }
    };
    check(cleared, "messages[8].content[0].content", Cause::ResultShortened);
    let written_again = |step: usize, parts: &mut Parts| {
        if step == 5 {
            let input = &mut parts.messages[1].1[1];
            *input = input.replace(r#""depth":1.0"#, r#""depth":1"#);
        }
    };
    check(written_again, "messages[1].content[1].input", Cause::Reserialised);
    let stripped = |step: usize, parts: &mut Parts| {
        if step < 5 {
            parts.messages[1].1.insert(0, thinking(100));
        }
    };
    check(stripped, "messages[1].content[0]", Cause::ThinkingStripped);
}

#[test]
fn settings_and_models() {
    let effort = |step: usize, parts: &mut Parts| {
        let effort = if step == 5 { "low" } else { "high" };
        parts.extra = format!(r#""output_config":{{"effort":"{effort}"}},"#);
    };
    let row = check(effort, "effort", Cause::SettingChanged);
    assert_eq!((row.usage.cache_read, row.lost), (19_900, 8_100));
    assert_eq!(row.miss.map(|miss| miss.reason), Some(MissReason::Unavailable));
    let choice = |step: usize, parts: &mut Parts| {
        parts.extra = if step == 5 { r#""tool_choice":{"type":"any"},"#.into() } else { String::new() };
    };
    check(choice, "tool_choice", Cause::SettingChanged);
    let model = |step: usize, parts: &mut Parts| {
        parts.model = if step == 5 { "claude-opus-5" } else { "claude-sonnet-4-6" };
    };
    let row = check(model, "model", Cause::ModelChanged);
    assert_eq!((row.lost, row.miss.map(|miss| miss.reason)), (28_000, Some(MissReason::ModelChanged)));
}

#[test]
fn markers_in_the_wrong_place() {
    let mark_system = |parts: &mut Parts| parts.system[0] = marked(&parts.system[0], "5m");
    let on_reminder = |_: usize, parts: &mut Parts| {
        mark_system(parts);
        parts.messages.last_mut().unwrap().1.push(text("Remember the todos.", 30));
        parts.mark_tail();
    };
    check_marked(on_reminder, "messages[8].content[1]", Cause::MarkOnPassingBlock);
    let only_system = |_: usize, parts: &mut Parts| mark_system(parts);
    check_marked(only_system, "messages[8].content[0]", Cause::TailUnmarked);
    // A last marker on text only, which a turn of tool results has none of.
    let on_text = |_: usize, parts: &mut Parts| {
        mark_system(parts);
        parts.messages[0].1[0] = marked(&parts.messages[0].1[0], "5m");
    };
    check_marked(on_text, "messages[8].content[0]", Cause::TailUnmarked);
    check_marked(|_, _| {}, "messages[10].content[0]", Cause::NoMarker);
    let five = |step: usize, parts: &mut Parts| {
        mark_system(parts);
        if step == 5 {
            for at in [0, 2, 4] {
                parts.messages[at].1[0] = marked(&parts.messages[at].1[0], "5m");
            }
        }
        parts.mark_tail();
    };
    check_marked(five, "messages[10].content[0]", Cause::TooManyMarks);
    // What is asked again with fewer markers goes on from the request before.
    let mut again = [good_loop(1), good_loop(2), good_loop(2)];
    for at in [0, 2, 3] {
        let block = &mut again[1].messages[at].1[0];
        *block = marked(block, "5m");
    }
    let rows = audit(&again);
    let cause = rows[1].divergence.as_ref().map(|found| found.cause);
    assert_eq!((cause, rows[1].usage.total_input()), (Some(Cause::TooManyMarks), 0));
    assert_eq!((rows[2].compared_with, &rows[2].divergence, rows[2].lost), (Some(1), &None, 0));
    let late_hour = |_: usize, parts: &mut Parts| {
        mark_system(parts);
        parts.messages[0].1[0] = marked(&parts.messages[0].1[0], "1h");
    };
    check_marked(late_hour, "messages[0].content[0]", Cause::MarkRefused);
    // The reminder behind the marker costs nothing.
    let behind = (1..=5).map(|step| {
        let mut parts = good_loop(step);
        parts.messages.last_mut().unwrap().1.push(text("Remember the todos.", 30));
        parts
    });
    let rows = audit(&behind.collect::<Vec<_>>());
    assert_eq!((rows[4].usage.cache_read, rows[4].lost), (28_000, 0));
    let cause = rows[4].divergence.as_ref().map(|found| found.cause);
    assert_eq!((cause, cause.is_some_and(Cause::is_fault)), (Some(Cause::PassingTail), false));
}

#[test]
fn more_positions_than_a_lookback() {
    let wide = |step: usize, parts: &mut Parts| {
        parts.system[0] = marked(&parts.system[0], "5m");
        if step == 5 {
            let texts = (0..25).map(|at| text(&format!("part {at}"), 20));
            parts.messages.last_mut().unwrap().1.extend(texts);
        }
        parts.mark_tail();
    };
    let row = check_marked(wide, "messages[8].content[0]", Cause::BeyondLookback);
    assert_eq!((row.usage.cache_read, row.lost), (19_900, 8_100));
}

#[test]
fn time_and_size() {
    let cache = simulator("anthropic");
    let mut audit = Audit::new(cache, None);
    audit.step(&good_loop(1).request(), None, None);
    let row = audit.step(&good_loop(2).request(), Some(Duration::from_secs(301)), None);
    assert_eq!(row.divergence.map(|found| found.cause), Some(Cause::Expired));
    assert_eq!((row.lost, row.cost), (22_000, None));
    let mut slow = Audit::new(simulator("anthropic").with_begin(Duration::from_secs(9)), None);
    slow.step(&good_loop(1).request(), None, None);
    let row = slow.step(&good_loop(2).request(), Some(Duration::from_secs(1)), None);
    assert_eq!(row.divergence.map(|found| found.cause), Some(Cause::NotYetReadable));
    let small = |step| {
        let mut parts = good_loop(step);
        parts.model = "claude-haiku-4-5";
        parts.tools.clear();
        parts.system = vec![marked(&text("S", 10), "5m")];
        parts
    };
    let rows = self::audit(&[small(0), small(1)]);
    assert_eq!(rows[1].divergence.as_ref().map(|found| found.cause), Some(Cause::BelowMinimum));
}

#[test]
fn what_the_provider_says_counts() {
    let mut audit = Audit::new(simulator("anthropic"), None);
    let said = |read, write| Usage { input: 3, cache_read: read, cache_write_5m: write, ..Usage::default() };
    audit.step(&good_loop(1).request(), None, Some(&said(0, 44_000)));
    let row = audit.step(&good_loop(2).request(), None, Some(&said(0, 48_000)));
    assert!(row.reported);
    assert_eq!(row.divergence.map(|found| found.cause), Some(Cause::ServiceMiss));
    // Counted in the provider's tokens, of which there are twice as many.
    assert!((43_900..=44_100).contains(&row.lost), "{}", row.lost);
    let row = audit.step(&good_loop(3).request(), None, Some(&said(48_000, 4_000)));
    assert_eq!((row.divergence, row.lost), (None, 0));
    assert_eq!(audit.summary().causes.values().sum::<usize>(), 1);
}

#[test]
fn other_conversations_are_no_fault() {
    let other = |words: &str| {
        let mut parts = good_loop(0);
        parts.messages[0].1[0] = marked(&text(words, 100), "5m");
        parts
    };
    let mut title = Parts::of("claude-sonnet-4-6");
    title.system = vec![text("Write a title.", 50)];
    title.messages = vec![("user", vec![text("Name this.", 100)])];
    let rows = audit(&[good_loop(1), other("Write the docs."), title, good_loop(2)]);
    let causes = rows.iter().map(|row| row.divergence.as_ref().map(|found| found.cause));
    let expect = [None, Some(Cause::NewConversation), Some(Cause::Unrelated), None];
    assert_eq!(causes.collect::<Vec<_>>(), expect);
    assert_eq!((rows[1].usage.cache_read, rows[1].lost), (19_900, 0));
    assert_eq!((rows[3].compared_with, rows[3].usage.cache_read), (Some(1), 22_000));
}

#[test]
fn openai_bodies_are_audited_too() {
    let chat = |clock: &str, steps: usize| {
        let system = format!("It is {clock}. {}", "~".repeat(2_000));
        let turns = (0..steps).map(|at| {
            format!(
                r#",{{"role":"assistant","content":"a{at}"}},{{"role":"user","content":"u{at} {}"}}"#,
                "~".repeat(300)
            )
        });
        let turns = turns.collect::<String>();
        let body = format!(
            r#"{{"model":"gpt-6-sol","tools":[{{"type":"function","function":{{"name":"f","parameters":{{"a":1}}}}}}],
            "messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"q"}}{turns}]}}"#
        );
        Request::read(body.as_bytes(), None).unwrap()
    };
    let mut audit = Audit::new(simulator("openai"), None);
    audit.step(&chat("12:00", 0), None, None);
    let good = audit.step(&chat("12:00", 1), None, None);
    assert_eq!((good.divergence, good.usage.cache_read), (None, 2_000));
    let bad = audit.step(&chat("12:01", 2), None, None);
    let found = bad.divergence.unwrap();
    assert_eq!((found.path.as_str(), found.looks_like), ("messages[0].content", Some(Volatile::Clock)));
    assert_eq!((bad.lost, bad.miss.map(|miss| miss.reason)), (2_300, Some(MissReason::InputChanged)));
}

#[test]
fn a_time_at_the_end_of_all_time_is_one() {
    let mut audit = Audit::new(simulator("anthropic"), None);
    let row = audit.step(&good_loop(0).request(), Some(Duration::MAX), None);
    assert!(row.usage.cache_write() > 0, "{row:?}");
}
