//! What of an answer only the provider that gave it understands: it is told to no other one, and that is said.

use agent_core::{AssistantPart, Diagnostic, Entry, ProviderData, Reasoning, Rendered, Seal};

use super::form::Cx;

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
    let told = Diagnostic { what: what.to_owned(), why };
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
