//! Item 1: the system prompt is static.

use agent_cache::{Request, Suspect, suspects};
use agent_prompt::{Assembled, Stability, system_hash, tools_hash};

use super::rehearsal::words;
use super::{Finding, Rehearsal, assembled};
use crate::config::HarnessConfig;
use crate::spy::CapturedRequest;
use crate::stand_ins::StandIns;

const SAME: &str = "Say only what is the same each time; what changes belongs into a message (Turn and Step fragments), \
     or is read once when the session begins.";

pub(super) async fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("static-system", "static system prompt, no clock or user data");
    match assembled(config).await {
        Ok(assembled) => judge_words(&mut finding, config, &assembled),
        Err(error) => finding.fail(
            format!("the prompt cannot be assembled: {error}"),
            "Mend the source, or let it report what is missing instead of failing.",
        ),
    }
    match (first(config).await, first(config).await) {
        (Ok(one), Ok(two)) => judge_bytes(&mut finding, &one, &two),
        (Err(error), _) | (_, Err(error)) => {
            finding.fail(format!("no request could be put together: {error}"), "Mend what the error names.");
        }
    }
    finding
}

/// The first request of a session, put together from nothing.
async fn first(config: &HarnessConfig) -> Result<CapturedRequest, String> {
    let rehearsal = Rehearsal::of(config, vec![words("Yes.")], StandIns::new(|_| String::new())).await;
    let seen = rehearsal.map_err(|error| error.to_string())?.seen.all();
    seen.into_iter().next().ok_or_else(|| "the turn ended before a request".to_owned())
}

fn judge_bytes(finding: &mut Finding, one: &CapturedRequest, two: &CapturedRequest) {
    let hashes = (system_hash(&one.system), tools_hash(&one.tools));
    let (first, second) = (one.outgoing.body.to_vec(), two.outgoing.body.to_vec());
    if first == second {
        let (blocks, bytes) = (one.system.len(), first.len());
        finding.saw(format!(
            "assembled and encoded twice: {blocks} blocks (system {}), the same {bytes} bytes",
            hashes.0
        ));
        return;
    }
    let shared = first.iter().zip(&second).take_while(|(one, two)| one == two).count();
    let names = [(one.system != two.system, "system prompt"), (one.tools != two.tools, "list of tools")];
    let differs: Vec<_> = names.iter().filter(|(differs, _)| *differs).map(|(_, name)| *name).collect();
    let what = if differs.is_empty() { "encoding".to_owned() } else { differs.join(" and the ") };
    finding.fail(
        format!("put together twice, the {what} differs; the two bodies share their first {shared} bytes"),
        SAME,
    );
}

fn judge_words(finding: &mut Finding, config: &HarnessConfig, assembled: &Assembled) {
    let blocks = assembled.blocks();
    for block in blocks {
        if let Some(why) = block.declared {
            finding.saw(format!("{} is declared static: {why}", block.key));
        }
    }
    for Suspect { path, looks_like, excerpt, .. } in suspicious(config, assembled) {
        let kind = looks_like.name().replace('_', " ");
        let at = |level: &str| path.strip_prefix(level)?.split(']').next()?.parse::<usize>().ok();
        let Some(block) = at("system[").and_then(|at| blocks.get(at)) else {
            let tool = at("tools[").and_then(|at| config.tools.cards().get(at));
            let tool = tool.map_or(path.as_str(), |tool| tool.name());
            finding.warn(
                format!("the card of {tool} holds what looks like a {kind}: {excerpt}"),
                "See that the card says the same in every process.",
            );
            continue;
        };
        let (key, source) = (&block.key, &block.source);
        let seen = format!("{key} (from {source}) holds what looks like a {kind}: {excerpt}");
        match (block.stability, block.declared) {
            (Stability::Static, Some(_)) => finding.fail(format!("{seen}, though declared static"), SAME),
            (Stability::Static, None) => finding.saw(format!("{seen}; it is a literal, which cannot change")),
            _ => finding.saw(format!("{seen}; it is read once, when the session begins")),
        }
    }
}

/// What of the prompt looks as if it changes by itself; the blocks keep their positions.
fn suspicious(config: &HarnessConfig, assembled: &Assembled) -> Vec<Suspect> {
    let system = assembled.system();
    let texts = system.iter().map(|block| serde_json::json!({ "type": "text", "text": block.text() }));
    let tools = config.tools.cards().iter().map(|card| {
        serde_json::json!({ "name": card.name(), "description": card.description(), "input_schema": card.input_schema() })
    });
    let body = serde_json::json!({
        "model": "any", "max_tokens": 1, "messages": [],
        "tools": tools.collect::<Vec<_>>(), "system": texts.collect::<Vec<_>>(),
    });
    // The body is made here, in a format that is always read.
    Request::read(body.to_string().as_bytes(), None).map(|request| suspects(&request)).unwrap_or_default()
}
