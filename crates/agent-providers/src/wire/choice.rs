//! Whether and which tool must be called: one rule for all formats, so that none names a tool that is not sent.

use agent_core::{ModelRequest, ToolCard, ToolChoice};

use super::form::Cx;

/// A choice that can be sent: what it names is among the tools of the body, and the model can be told so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice<'r> {
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Tool(&'r ToolCard),
    /// One of these tools. Invariant: never empty.
    Allowed {
        tools: Vec<&'r ToolCard>,
        /// Whether the model may not answer without.
        required: bool,
    },
}

/// The choice of a request, whose tools are those that are sent; `None` lets the model decide.
pub(crate) fn choice<'r>(request: &ModelRequest<'r>, cx: &mut Cx<'_>) -> Option<Choice<'r>> {
    choice_among(request, |_| true, cx)
}

/// The same on a wire that has no words for a choice of some of the tools it is sent.
pub(crate) fn choice_among<'r>(
    request: &ModelRequest<'r>,
    can_name: impl Fn(&ToolCard) -> bool,
    cx: &mut Cx<'_>,
) -> Option<Choice<'r>> {
    let tools = request.tools;
    let named = |name: &str| tools.iter().find(|tool| tool.name() == name && can_name(tool));
    let has_tools = || tools.iter().any(&can_name);
    let (forced, why) = match request.tool_choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => return has_tools().then_some(Choice::None),
        ToolChoice::Allowed { tools: names, required } => {
            let given: Vec<&ToolCard> = names.iter().filter_map(|name| named(name)).collect();
            let lost = names.len() - given.len();
            return match given.is_empty() {
                true => {
                    told_of_none(lost > 0 || *required, cx);
                    has_tools().then_some(Choice::None)
                }
                false => allowed(given, lost, *required, cx),
            };
        }
        ToolChoice::Required => (has_tools().then_some(Choice::Required), "there are no tools"),
        ToolChoice::Tool(name) => {
            (named(name).map(Choice::Tool), "the tool is not among the tools that are sent")
        }
        _ => (None, "this provider has no such choice"),
    };
    match forced {
        Some(forced) if cx.profile.forced_tool_choice => Some(forced),
        Some(_) => undecided("this model cannot be forced to call a tool", cx),
        None => undecided(why, cx),
    }
}

/// A choice that this wire has no words for.
pub(crate) fn undecided<T>(why: &str, cx: &mut Cx<'_>) -> Option<T> {
    cx.note(WHAT, format!("{why}; the model decides"));
    None
}

/// A choice among some of the tools: the list of tools stays as it is, and with it what is cached.
fn allowed<'r>(tools: Vec<&'r ToolCard>, lost: usize, required: bool, cx: &mut Cx<'_>) -> Option<Choice<'r>> {
    if lost > 0 {
        cx.note(WHAT, "some of the allowed tools are not among the tools that are sent; left out");
    }
    let is_forced = required && cx.profile.forced_tool_choice;
    if required && !is_forced {
        cx.note(WHAT, "this model cannot be forced to call a tool; it may answer without");
    }
    if cx.profile.allowed_tools {
        return Some(Choice::Allowed { tools, required: is_forced });
    }
    cx.note(WHAT, "this model cannot be held to some of its tools; all of them are allowed");
    is_forced.then_some(Choice::Required)
}

fn told_of_none(is_lost: bool, cx: &mut Cx<'_>) {
    if is_lost {
        cx.note(WHAT, "none of the allowed tools is among the tools that are sent; no tool may be called");
    }
}

const WHAT: &str = "tool_choice";
