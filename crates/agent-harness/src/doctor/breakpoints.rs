//! Item 2: cache breakpoints are placed, and the cache reads what it can.

use std::time::Duration;

use agent_cache::{Audit, Cause, Divergence, Request, RuleBook, Scheme, Simulator, Summary};
use agent_core::{CacheProfile, ModelProfile};

use super::rehearsal::{calls, words};
use super::{Finding, Rehearsal, rules_of};
use crate::changes::model_name;
use crate::config::HarnessConfig;
use crate::explain::breakpoints;
use crate::spy::{Answer, CapturedRequest};
use crate::stand_ins::StandIns;

/// Steps of the sample conversation.
const STEPS: usize = 8;
/// Bytes of each result in it: some two thousand tokens.
const RESULT: usize = 8_000;
const LINE: &str = "A line of a result as a tool might give it.\n";
/// Time between two of its requests.
const BETWEEN: Duration = Duration::from_secs(20);
/// Share of what could be read that must be.
const ENOUGH: f64 = 0.95;

pub(super) async fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("breakpoints", "cache breakpoints placed");
    let asked = match conversation(config).await {
        Ok(asked) if !asked.is_empty() => asked,
        Ok(_) => return unusable(finding, "the turn ended before a request"),
        Err(error) => return unusable(finding, &error),
    };
    let profile = config.model.profile();
    judge_marks(&mut finding, profile, &asked);
    if profile.cache != CacheProfile::None {
        simulate(&mut finding, profile, &asked);
    }
    finding
}

fn unusable(mut finding: Finding, error: &str) -> Finding {
    finding.fail(format!("no conversation could be rehearsed: {error}"), "Mend what the error names.");
    finding
}

/// A conversation of some steps; the agent's first tool is called, or one that does not exist.
async fn conversation(config: &HarnessConfig) -> Result<Vec<CapturedRequest>, String> {
    let first = config.tools.cards().first().map_or("rehearse", |card| card.name());
    let mut answers: Vec<Answer> = (1..STEPS).map(|_| calls([first])).collect();
    answers.push(words("Done."));
    let stand_ins = StandIns::new(|traits| LINE.repeat(RESULT.min(traits.cap.bytes / 2) / LINE.len()));
    let rehearsal = Rehearsal::of(config, answers, stand_ins).await;
    Ok(rehearsal.map_err(|error| error.to_string())?.seen.all())
}

fn judge_marks(finding: &mut Finding, profile: &ModelProfile, asked: &[CapturedRequest]) {
    let name = model_name(profile);
    let counts: Vec<usize> = asked.iter().map(|asked| breakpoints(asked).len()).collect();
    let (least, most) =
        (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
    match &profile.cache {
        CacheProfile::Marked { max_marks, .. } if least == 0 => finding.fail(
            format!("{name} caches at marked blocks only (at most {max_marks}), and a request had no mark"),
            "Plan breakpoints for every request.",
        ),
        CacheProfile::Marked { max_marks, .. } => {
            let places = places(asked);
            let each = if least == most { most.to_string() } else { format!("{least} to {most}") };
            finding.saw(format!(
                "each of {} requests of a conversation had {each} breakpoints, of at most {max_marks}; the last one at {places}",
                asked.len()
            ));
        }
        CacheProfile::Automatic => finding.saw(format!("{name} caches by itself: no breakpoints are needed")),
        CacheProfile::None | _ => finding.warn(
            format!("{name} is not known to cache prompts: every step pays for the whole conversation"),
            "If the provider caches, say so in a table of models (`cache`), or use one that does.",
        ),
    }
}

/// Where the breakpoints of the last request stand.
fn places(asked: &[CapturedRequest]) -> String {
    let last = asked.last().map(breakpoints).unwrap_or_default();
    last.iter().map(|breakpoint| breakpoint.at.as_str()).collect::<Vec<_>>().join(", ")
}

/// Accounts for the conversation by the provider's published rules.
fn simulate(finding: &mut Finding, profile: &ModelProfile, asked: &[CapturedRequest]) {
    let provider = rules_of(&profile.provider);
    let rules = RuleBook::builtin().rules(provider, &profile.model);
    let requests: Result<Vec<Request>, _> =
        asked.iter().map(|asked| Request::read(&asked.outgoing.body.to_vec(), None)).collect();
    let (Ok(requests), false) = (requests, rules.scheme == Scheme::None) else {
        finding.saw(format!(
            "no simulation: the cache rules or the format of {} are not known",
            profile.provider
        ));
        return;
    };
    let simulator = Simulator::new(RuleBook::builtin(), provider);
    let mut audit = Audit::new(simulator, None);
    let mut faults = Vec::new();
    let mut at = Duration::ZERO;
    for request in &requests {
        let row = audit.step(request, Some(at), None);
        at += BETWEEN;
        let fault = row.divergence.filter(|found| audit.summary().causes.contains_key(&found.cause));
        let told = |found: Divergence| {
            (found.cause, format!("{} at {}: {}", found.cause.name(), found.path, found.advice))
        };
        faults.extend(fault.map(told));
    }
    judge_rate(finding, audit.summary(), &faults);
}

fn judge_rate(finding: &mut Finding, summary: &Summary, faults: &[(Cause, String)]) {
    let rate = |rate: Option<f64>| rate.unwrap_or(0.0);
    let (hit, best) = (rate(summary.usage.hit_rate()), rate(summary.ideal.hit_rate()));
    let seen = format!(
        "simulated by the published rules: {:.1}% of the input read from the cache, at best {:.1}%",
        hit * 100.0,
        best * 100.0
    );
    // Once the conversation is long enough it is kept, so only the beginning is paid for again.
    let only_small = faults.iter().all(|(cause, _)| *cause == Cause::BelowMinimum);
    match faults.iter().find(|(cause, _)| only_small || *cause != Cause::BelowMinimum) {
        Some((_, fault)) if only_small => {
            finding.warn(format!("{seen}; {fault}"), "It passes as the conversation grows.");
        }
        Some((_, fault)) => {
            finding.fail(format!("{seen}; {fault}"), "See `agent cache audit` for every request.");
        }
        None if hit < best * ENOUGH => finding.warn(seen, "See `agent cache audit` for every request."),
        None => finding.saw(seen),
    }
}
