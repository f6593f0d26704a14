//! The tool that finds tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_core::{ContentPart, FoundTool, Text, ToolCard, ToolOutput};
use agent_tools::{Access, Call, OutputCap, Tool, ToolConfig, ToolError};

use super::rank::Index;
use crate::built;

/// Finds deferred tools by what they do (requirement T8).
pub(super) fn tool_search(cards: Vec<ToolCard>) -> Arc<dyn Tool> {
    let description = format!("{} {}", DESCRIPTION.trim_end(), there_are(&cards));
    let deferred = Arc::new(Searched { index: Index::of(&cards), cards });
    let find = move |_: Call, input: Input| {
        let found = deferred.found(&input);
        async move { found }
    };
    // What is found is bounded tool by tool, for half a schema is of no use: only a tool that has no room alone is cut.
    let cap = OutputCap { lines: usize::MAX, bytes: ROOM + ROOM / 4, line_chars: usize::MAX };
    built(ToolConfig::new("tool_search", description, Access::Read, find).cap(cap))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// What the tool is to do, in a few words, or its exact name.
    query: String,
    /// How many tools to give at most, from 1 to 20; 5 when left out.
    limit: Option<u32>,
}

struct Searched {
    cards: Vec<ToolCard>,
    index: Index,
}

impl Searched {
    fn found(&self, input: &Input) -> Result<ToolOutput, ToolError> {
        if input.query.trim().is_empty() {
            return Err(ToolError::failed(
                "`query` is blank. Say in a few words what the tool is to do, for example \"create an issue\".",
            ));
        }
        let most = input.limit.map_or(USUAL, |limit| limit.clamp(1, MOST) as usize);
        let found = self.index.find(&input.query, most);
        if found.is_empty() {
            return Ok(ToolOutput::text(format!(
                "None of the {} tools fits `{}`. Ask with other words for the same thing, with the name of the service, or with fewer words. {}",
                self.cards.len(),
                clipped(&input.query),
                there_are(&self.cards)
            )));
        }
        let mut room = ROOM;
        let mut parts = Vec::new();
        for card in found.into_iter().filter_map(|at| self.cards.get(at)) {
            let words = words(card);
            // The best one is given whatever its size.
            if !parts.is_empty() && words.len() > room {
                break;
            }
            room = room.saturating_sub(words.len());
            let name = card.name().to_owned();
            parts.push(ContentPart::Tool(FoundTool { name, words: Text::or(words, card.name()) }));
        }
        Ok(ToolOutput::Content(parts))
    }
}

/// Signature and description.
fn words(card: &ToolCard) -> String {
    format!("{}\n{}\nInput: {}", card.name(), card.description().trim(), card.input_schema())
}

/// How many tools there are, and of what kinds: the same for the same tools.
fn there_are(cards: &[ToolCard]) -> String {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for card in cards {
        if let Some(kind) = namespace(card.name()) {
            *kinds.entry(kind).or_default() += 1;
        }
    }
    let tools = if cards.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", cards.len()) };
    if kinds.is_empty() {
        return format!("There are {tools} to be found.");
    }
    let shown: Vec<String> =
        kinds.iter().take(MOST_KINDS).map(|(kind, tools)| format!("{kind} ({tools})")).collect();
    let more = match kinds.len().saturating_sub(MOST_KINDS) {
        0 => String::new(),
        more => format!(" and {more} more kinds"),
    };
    format!("There are {tools} to be found, among them those of {}{more}.", shown.join(", "))
}

/// What stands before `__` or a full stop.
fn namespace(name: &str) -> Option<&str> {
    let (kind, rest) = name.split_once("__").or_else(|| name.split_once('.'))?;
    (!kind.is_empty() && !rest.is_empty()).then_some(kind)
}

fn clipped(query: &str) -> &str {
    &query[..agent_core::floor_boundary(query, 200)]
}

const DESCRIPTION: &str = include_str!("../../prompt/tool_search.md");
/// Tools that are given when no limit is.
const USUAL: usize = 5;
const MOST: u32 = 20;
/// Bytes of what one search gives; the best tool is given even so.
const ROOM: usize = 40_000;
/// Kinds that the description names.
const MOST_KINDS: usize = 30;

#[cfg(test)]
mod tests {
    use agent_core::RawJson;

    use super::*;

    fn card(name: &str, about: &str) -> ToolCard {
        ToolCard::new(name, about, &RawJson::empty_object()).unwrap()
    }

    #[test]
    fn the_description_counts_and_sums_up() {
        let check = |names: &[&str]| there_are(&names.iter().map(|name| card(name, "")).collect::<Vec<_>>());
        assert_eq!(check(&["weather"]), "There are 1 tool to be found.");
        assert_eq!(
            check(&["git__log", "mail.send", "weather", "git__show", "__odd"]),
            "There are 5 tools to be found, among them those of git (2), mail (1)."
        );
        let many: Vec<String> = (0..40).map(|kind| format!("k{kind:02}__do")).collect();
        let said = check(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(said.ends_with("k29 (1) and 10 more kinds."), "{said}");
    }

    #[test]
    fn what_is_found_has_room() {
        let large = "x".repeat(30_000);
        let cards =
            vec![card("alpha_one", &large), card("alpha_two", &large), card("beta", "Does other things.")];
        let searched = Searched { index: Index::of(&cards), cards };
        let names = |query: &str, limit: Option<u32>| {
            let output = searched.found(&Input { query: query.into(), limit }).unwrap();
            let ToolOutput::Content(parts) = output else { return output.plain() };
            let name = |part: &ContentPart| {
                if let ContentPart::Tool(found) = part { found.name.clone() } else { String::new() }
            };
            parts.iter().map(name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("alpha", None), "alpha_one", "the second one would be too much");
        assert_eq!(names("beta alpha", Some(0)), "beta");
        assert!(
            names("nothing like it", None)
                .starts_with("None of the 3 tools fits `nothing like it`. Ask with")
        );
        assert!(searched.found(&Input { query: " ".into(), limit: None }).is_err());
    }
}
