//! Item 5: the descriptions of tools teach.

use agent_core::ToolCard;
use agent_tools::ToolSet;
use serde_json::Value;

use super::Finding;

/// Bytes of a description that can say what a tool does, when to use it and when not.
const SHORT: usize = 100;
/// Words that say when a tool is to be used.
const WHEN: &[&str] = &["use ", "when ", "call it", "whenever "];
/// Words that say where its use ends.
const WHEN_NOT: &[&str] =
    &["not ", "never", "instead", "only", "rather", "other tool", "; to ", "unless", "refused", "don't"];

pub(super) fn examine(tools: &ToolSet) -> Finding {
    let mut finding = Finding::new("descriptions", "tool descriptions teach");
    let own: Vec<&ToolCard> = tools.cards().iter().filter(|card| !card.is_hosted()).collect();
    if own.is_empty() {
        finding.saw("there are no tools whose words are the agent's");
        return finding;
    }
    let bytes = own.iter().map(|card| card.description().len());
    let (least, most) = (bytes.clone().min().unwrap_or(0), bytes.max().unwrap_or(0));
    finding.saw(format!(
        "{} descriptions of {least} to {most} bytes, read for when to use a tool and when not",
        own.len()
    ));
    for card in own {
        judge(&mut finding, card);
    }
    finding
}

fn judge(finding: &mut Finding, card: &ToolCard) {
    let (name, text) = (card.name(), card.description().to_lowercase());
    if text.trim().is_empty() {
        finding.fail(
            format!("{name} has no description"),
            "Say what each tool does, when to use it and when not.",
        );
        return;
    }
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let lacks: Vec<String> = [
        (text.len() < SHORT).then(|| format!("it has {} bytes", text.len())),
        (!says(WHEN)).then(|| "it does not say when to use the tool".to_owned()),
        (!says(WHEN_NOT)).then(|| "it does not say when not to, or what to use instead".to_owned()),
        undescribed(card).map(|fields| format!("these fields have no description: {fields}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !lacks.is_empty() {
        finding.warn(
            format!("the description of {name}: {}", lacks.join("; ")),
            "Write it for a new colleague: what it does, when to use it, when not and what then, what each field means, what to do next.",
        );
    }
}

/// The fields of the input that the schema only names.
fn undescribed(card: &ToolCard) -> Option<String> {
    let schema: Value = card.input_schema().to().ok()?;
    let fields = schema.get("properties")?.as_object()?;
    let bare = fields.iter().filter(|(_, field)| field.get("description").is_none_or(|words| words == ""));
    let bare: Vec<&str> = bare.map(|(name, _)| name.as_str()).collect();
    (!bare.is_empty()).then(|| bare.join(", "))
}
