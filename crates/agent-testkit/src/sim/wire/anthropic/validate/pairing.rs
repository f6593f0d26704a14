//! Rules about calls and their results (case M04).

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ApiError, Check, items, refuse};

/// Each call is answered by the user message right after it, and nothing else is answered.
pub(super) fn check(messages: &Value) -> Check {
    let mut seen = BTreeSet::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for (number, message) in items(messages).enumerate() {
        match message["role"].as_str() {
            Some("assistant") => {
                unanswered(open.take(), &[])?;
                let calls = calls(number, message, &mut seen)?;
                open = Some((number, calls));
            }
            Some("user") => {
                let asked = open.as_ref().map_or(&[][..], |(_, calls)| calls);
                let answered = results(number, message, asked)?;
                unanswered(open.take(), &answered)?;
            }
            // A system message stands behind the user message that holds the results.
            Some(_) | None => {}
        }
    }
    unanswered(open, &[])
}

/// The ids of the calls of a message, which no call before has.
fn calls<'m>(
    number: usize,
    message: &'m Value,
    seen: &mut BTreeSet<&'m str>,
) -> Result<Vec<&'m str>, ApiError> {
    let mut calls = Vec::new();
    for (position, block) in items(&message["content"]).enumerate() {
        let kind = block["type"].as_str().unwrap_or_default();
        if kind == "tool_use" {
            let id = block["id"].as_str().unwrap_or_default();
            if !seen.insert(id) {
                refuse(format!("messages.{number}.content.{position}: `tool_use` ids must be unique"))?;
            }
            calls.push(id);
        } else if matches!(kind, "text" | "thinking" | "redacted_thinking") {
            // The service looks for the results right behind a call, and finds words instead.
            unanswered((!calls.is_empty()).then(|| (number, calls.clone())), &[])?;
        }
    }
    Ok(calls)
}

/// The ids that a user message answers; its results stand before everything else in it.
fn results<'m>(number: usize, message: &'m Value, asked: &[&str]) -> Result<Vec<&'m str>, ApiError> {
    let mut answered = Vec::new();
    let mut other_first = false;
    for (position, block) in items(&message["content"]).enumerate() {
        if block["type"] != "tool_result" {
            other_first = true;
            continue;
        }
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if !asked.contains(&id) {
            refuse(format!(
                "messages.{number}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            ))?;
        }
        if answered.contains(&id) {
            refuse(format!(
                "messages.{number}.content.{position}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            ))?;
        }
        if !other_first {
            answered.push(id);
        }
    }
    Ok(answered)
}

fn unanswered(open: Option<(usize, Vec<&str>)>, answered: &[&str]) -> Check {
    let Some((number, calls)) = open else { return Ok(()) };
    let missing: Vec<&str> = calls.into_iter().filter(|id| !answered.contains(id)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    refuse(format!(
        "messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        missing.join(", ")
    ))
}
