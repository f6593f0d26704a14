//! A person decides: they allow, refuse, remember, or put another input in place of the one they are shown.

use agent_core::{ActionOutcome, Diagnostic, Layer, RawJson, ToolOutput};
use agent_tools::{AskRequest, Pattern, PermissionRule, Verdict};

use super::admit::decide;
use super::{Admitted, Cleared, Done, Site, Waiting, hold};
use crate::Answer;
use crate::unless::unless_cancelled;

/// What came of asking.
pub(super) enum Asked {
    Cleared(Cleared),
    Answered(Done),
    /// The answer comes later.
    Waits(Waiting),
    /// The run was stopped while a person was asked.
    Stopped(Done),
}

/// What came of another input.
enum Edited {
    Asked(Asked),
    /// The tool does not take it: the question stays open.
    Misfit(Admitted, AskRequest),
}

/// Puts the question until there is an answer that can be used.
pub(super) async fn ask(site: &Site<'_>, mut admitted: Admitted) -> Asked {
    // What was remembered since the call was checked holds for it too.
    let mut request = match decide(site, &admitted).await {
        Verdict::Allow(permit) => return Asked::Cleared(Cleared { admitted, permit }),
        Verdict::Deny(words) => return denied(admitted, words),
        Verdict::Ask(request) => request,
    };
    let mut given = hold::approval(site, &admitted);
    for _ in 0..MOST_QUESTIONS {
        let asked = async {
            match given.take() {
                Some(answer) => Ok(answer),
                None => site.config.asker.ask(&request).await,
            }
        };
        let Some(answer) = unless_cancelled(site.cancel, asked).await else {
            let output = ToolOutput::error(WITHDRAWN);
            return Asked::Stopped(admitted.answered(ActionOutcome::Cancelled, output));
        };
        match answer {
            Ok(Answer::Allow) => return cleared(admitted, request),
            Ok(Answer::Always(layer)) => {
                admitted.said.told.extend(remember(site, &request, layer).await);
                return cleared(admitted, request);
            }
            Ok(Answer::Edit(input)) => match edit(site, admitted, request, input).await {
                Edited::Asked(asked) => return asked,
                Edited::Misfit(same, again) => (admitted, request) = (same, again),
            },
            Ok(Answer::Deny(words)) => return denied(admitted, request.deny(words.as_deref())),
            Ok(Answer::Later) => return Asked::Waits(Waiting::for_approval(admitted, &request)),
            Ok(Answer::Nobody) => return denied(admitted, request.nobody_to_ask()),
            Err(error) => {
                tracing::warn!(%error, tool = request.tool(), "nobody could be asked for permission");
                return denied(admitted, request.nobody_to_ask());
            }
        }
    }
    denied(admitted, request.nobody_to_ask())
}

fn cleared(admitted: Admitted, request: AskRequest) -> Asked {
    Asked::Cleared(Cleared { admitted, permit: request.allow() })
}

fn denied(admitted: Admitted, words: String) -> Asked {
    Asked::Answered(admitted.answered(ActionOutcome::Denied, ToolOutput::denied(words)))
}

/// The person's input is held against the tool and the rules as the model's own would be. What still asks runs: the
/// person saw exactly it.
async fn edit(site: &Site<'_>, admitted: Admitted, request: AskRequest, input: RawJson) -> Edited {
    if input == admitted.input {
        return Edited::Asked(cleared(admitted, request));
    }
    if let Err(misfit) = admitted.tool.validate(&input) {
        return Edited::Misfit(admitted, request.again(misfit.to_string()));
    }
    let mut edited = Admitted { input, ..admitted };
    edited.said.changed_by.push("the user".to_owned());
    // What hooks said was said of another input.
    (edited.said.allowed_by, edited.said.asked_by) = (None, None);
    Edited::Asked(match decide(site, &edited).await {
        Verdict::Allow(permit) => Asked::Cleared(Cleared { admitted: edited, permit }),
        Verdict::Ask(request) => cleared(edited, request),
        Verdict::Deny(words) => denied(edited, words),
    })
}

/// Remembers what the person allows from now on; what they must know of it, when it is not as they wished.
async fn remember(site: &Site<'_>, request: &AskRequest, layer: Layer) -> Option<Diagnostic> {
    let tool = request.tool();
    let patterns: Vec<Pattern> = request.remembers().into_iter().filter(is_read_as_written).collect();
    if patterns.is_empty() {
        return Some(told(format!(
            "this call of {tool} runs once and nothing is remembered of it: no rule could say exactly what was allowed, or would hold against the one that asks"
        )));
    }
    site.slots.update(|slots| {
        for text in patterns.iter().map(ToString::to_string) {
            if !slots.allowed.contains(&text) {
                slots.allowed.push(text);
            }
        }
    });
    match layer {
        Layer::Auto | Layer::Session => return None,
        Layer::Managed => {
            return Some(told(format!(
                "{tool} is allowed for this session only: managed rules are not written by an answer"
            )));
        }
        Layer::User | Layer::Local | Layer::Project => {}
    }
    let Some(sink) = &site.config.rule_sink else {
        return Some(told(format!(
            "{tool} is allowed for this session only: the program keeps no rules beyond it"
        )));
    };
    let rule = |pattern| PermissionRule::allow(pattern).from_layer(layer);
    let rules: Vec<PermissionRule> = patterns.into_iter().map(rule).collect();
    match unless_cancelled(site.cancel, sink.remember(&rules)).await {
        Some(Ok(())) => None,
        Some(Err(error)) => Some(told(format!("{tool} is allowed for this session only: {error}"))),
        None => {
            Some(told(format!("the run was stopped while rules for {tool} were kept; look whether they are")))
        }
    }
}

/// A pattern that is stored as text must be the same one when it is read.
fn is_read_as_written(pattern: &Pattern) -> bool {
    pattern.to_string().parse::<Pattern>().is_ok_and(|read| read == *pattern)
}

fn told(why: String) -> Diagnostic {
    Diagnostic { what: "permissions".to_owned(), why }
}

/// How often a question is put whose answers cannot be used.
const MOST_QUESTIONS: usize = 10;
const WITHDRAWN: &str =
    "Not run: the user stopped the turn before anyone answered whether this call may run.";
