//! Breakers seen in the field that look other than the classic ones and come to the same.

use agent_cache::{Cause, Volatile};

use super::check;
use crate::support::{Parts, text};

/// The system text at a step, of the size it has in a good loop.
fn system(words: impl Fn(usize) -> String) -> impl Fn(usize, &mut Parts) {
    move |step, parts| parts.system[0] = text(&words(step), 9_900)
}

#[test]
fn system_text_that_follows_something() {
    let changed = |words: fn(usize) -> String| check(system(words), "system[0]", Cause::SystemChanged);
    // What memory finds for the words of the user.
    changed(|step| format!("Remembered: note {}", "abcde".chars().nth(step - 1).unwrap()));
    // Agents that a mode hides.
    changed(|step| if step == 5 { "Agents: plan".into() } else { "Agents: plan, build".into() });
    // A map's order.
    changed(|step| if step == 5 { "b: 2; a: 1".into() } else { "a: 1; b: 2".into() });
    // Tools that were found, listed where the prompt begins.
    changed(|step| if step == 5 { "Found: grep".into() } else { "Found: none".into() });
    let row = changed(|step| format!("Edited {step} min ago."));
    assert_eq!(row.divergence.unwrap().looks_like, Some(Volatile::RelativeTime));
    // A gateway's mark of the request ahead of everything.
    let row = changed(|step| format!("trace=4fd1c2a90b7e6d5{step}"));
    assert_eq!((row.usage.cache_read, row.divergence.unwrap().looks_like), (0, Some(Volatile::Token)));
}

#[test]
fn memory_ahead_of_static_text_loses_it_too() {
    let change = |step: usize, parts: &mut Parts| {
        parts.system.insert(0, text(&format!("Memory of step {step}"), 50));
    };
    let row = check(change, "system[0]", Cause::SystemChanged);
    assert_eq!((row.usage.cache_read, row.lost), (0, 28_050));
    // Behind the marked static text, the same memory costs the conversation only.
    let behind = |step: usize, parts: &mut Parts| {
        parts.system[0] = crate::support::marked(&parts.system[0], "5m");
        parts.system.push(text(&format!("Memory of step {step}"), 50));
    };
    let row = check(behind, "system[1]", Cause::SystemChanged);
    assert_eq!((row.usage.cache_read, row.lost), (19_900, 8_150));
}

#[test]
fn a_server_that_connects_again_is_appended() {
    let again = |step: usize, parts: &mut Parts| {
        if step == 5 {
            // The first three are its tools: removed, and pushed again.
            parts.tools.rotate_left(3);
        }
    };
    check(again, "tools[0]", Cause::ToolsReordered);
}

#[test]
fn a_reminder_that_moves_when_a_session_is_taken_up() {
    let moved = |step: usize, parts: &mut Parts| {
        let at = if step < 5 { 0 } else { parts.messages.len() - 1 };
        parts.messages[at].1.push(text("Skills: review, deploy.", 40));
    };
    let row = check(moved, "messages[0].content[1]", Cause::MessageRemoved);
    assert_eq!(row.usage.cache_read, 19_900, "the conversation is written again from its first message on");
}

#[test]
fn a_note_of_the_hour_ahead_of_the_user_s_words() {
    let hourly = |step: usize, parts: &mut Parts| {
        let hour = if step < 5 { 13 } else { 14 };
        parts.messages[0].1.insert(0, text(&format!("It is {hour}:00."), 20));
    };
    let row = check(hourly, "messages[0].content[0]", Cause::MessageEdited);
    assert_eq!(row.divergence.unwrap().looks_like, Some(Volatile::Clock));
}
