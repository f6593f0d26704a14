//! What of an answer only the provider or the model that gave it understands: it is told to no other one, and that is said.

use agent_core::{
    AssistantPart, Diagnostic, Entry, ModelProfile, ProviderData, Reasoning, Rendered, Seal, Trim,
};

use super::form::Cx;
use crate::catalog::is_one_model;

/// The piece as this model is told of it: without thinking that another model of the provider sealed, unless the model takes
/// that (requirement P3). Who was asked is stored with the step, so that the same is left out each time.
pub(crate) fn of_this_model<'h>(piece: Rendered<'h>, cx: &mut Cx<'_>) -> Rendered<'h> {
    let Rendered::Entry { id, entry: entry @ Entry::Step(step), trim } = piece else { return piece };
    let ModelProfile { provider, model, takes_thinking_of_siblings, .. } = cx.profile;
    let sibling = step.origin().asked.as_deref().filter(|asked| !is_one_model(asked, model));
    let Some(sibling) = sibling.filter(|_| !takes_thinking_of_siblings && !trim.strip_reasoning) else {
        return piece;
    };
    let is_sealed = |part: &AssistantPart| match part {
        AssistantPart::Reasoning(Reasoning { seal: Some(seal), .. }) => {
            sealed_by(seal).is_some_and(|by| by == provider)
        }
        AssistantPart::Reasoning(_)
        | AssistantPart::Text(_)
        | AssistantPart::ToolCall(_)
        | AssistantPart::Provider(_)
        | _ => false,
    };
    if !step.parts().iter().any(is_sealed) {
        return piece;
    }
    let why = format!("thinking that {sibling} sealed may mean nothing to {model}; left out");
    tell(cx, Diagnostic { what: "assistant.reasoning".to_owned(), why });
    Rendered::Entry { id, entry, trim: Trim { strip_reasoning: true, ..trim } }
}

/// Tells once a request whose seals and attachments a piece loses on its way to this provider.
///
/// Whole parts of another provider are told of where they are written.
pub(crate) fn note_left_out(piece: Rendered<'_>, cx: &mut Cx<'_>) {
    let Rendered::Entry { entry: Entry::Step(step), trim, .. } = piece else { return };
    for part in step.parts() {
        match part {
            // Thinking that is trimmed goes back to nobody.
            AssistantPart::Reasoning(Reasoning { seal: Some(seal), .. }) if !trim.strip_reasoning => {
                if let Some(provider) = sealed_by(seal) {
                    note(cx, provider, "assistant.reasoning", "thinking that", "sealed");
                }
            }
            AssistantPart::Text(said) => note_data(cx, said.data.as_ref(), "words"),
            AssistantPart::ToolCall(call) => note_data(cx, call.data.as_ref(), "calls"),
            AssistantPart::Reasoning(_) | AssistantPart::Provider(_) | _ => {}
        }
    }
}

fn note_data(cx: &mut Cx<'_>, data: Option<&ProviderData>, to: &str) {
    if let Some(ProviderData { provider, .. }) = data {
        note(cx, provider, &format!("assistant.{to}"), "what", &format!("attached to {to}"));
    }
}

fn note(cx: &mut Cx<'_>, provider: &str, what: &str, thing: &str, did: &str) {
    if provider == cx.profile.provider {
        return;
    }
    let why = format!("{thing} {provider} {did} means nothing to this provider; left out");
    tell(cx, Diagnostic { what: what.to_owned(), why });
}

/// Once a request.
fn tell(cx: &mut Cx<'_>, told: Diagnostic) {
    if !cx.diagnostics.contains(&told) {
        cx.diagnostics.push(told);
    }
}

/// `None` for a seal of a kind that is not known.
fn sealed_by(seal: &Seal) -> Option<&str> {
    match seal {
        Seal::Signature { provider, .. } | Seal::Redacted { provider, .. } | Seal::Item { provider, .. } => {
            Some(provider)
        }
        _ => None,
    }
}
