//! Which tools fit words best: by name, parameters and description.

use std::collections::BTreeMap;

use agent_core::ToolCard;
use agent_memory::Ranking;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// An index over tools, built once; see [`Ranking`] for how they are scored.
#[derive(Debug)]
pub(super) struct Index(Ranking);

impl Index {
    pub(super) fn of(cards: &[ToolCard]) -> Self {
        let mut ranking = Ranking::ignoring(&["tool"]);
        for card in cards {
            let fields = parameters(card);
            let fields = fields.iter().map(|field| (field.as_str(), PARAMETER));
            let beside: Vec<(&str, f64)> = fields.chain([(card.description(), 1.0)]).collect();
            ranking.add(card.name(), &beside);
        }
        Self(ranking)
    }

    /// The positions of the tools that fit, best first.
    pub(super) fn find(&self, query: &str, most: usize) -> Vec<usize> {
        self.0.find(query, most)
    }
}

/// The names of the fields that a tool takes; a schema without any has none.
fn parameters(card: &ToolCard) -> Vec<String> {
    #[derive(Deserialize)]
    struct Schema {
        #[serde(default)]
        properties: BTreeMap<String, IgnoredAny>,
    }
    card.input_schema()
        .to::<Schema>()
        .map_or_else(|_| Vec::new(), |schema| schema.properties.into_keys().collect())
}

/// What a word in the name of a parameter counts, next to one in the description.
const PARAMETER: f64 = 1.5;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agent_core::RawJson;
    use proptest::prelude::*;

    use super::*;

    fn card(name: &str, about: &str, fields: &str) -> ToolCard {
        let properties: Vec<String> =
            fields.split_whitespace().map(|field| format!(r#""{field}":{{"type":"string"}}"#)).collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        ToolCard::new(name, about, &RawJson::parse(schema).unwrap()).unwrap()
    }

    fn cards() -> Vec<ToolCard> {
        vec![
            card("calendar__create_event", "Puts an appointment into the calendar.", "title start"),
            card("github.createIssue", "Opens an issue in a repository.", "repo title body"),
            card("github.listIssues", "Lists the issues of a repository.", "repo state"),
            card("mail-send", "Sends a message to a person.", "recipient subject body"),
            card("weather", "Tells whether it will rain.", "city"),
        ]
    }

    #[test]
    fn words_lead_to_the_tool_that_does_it() {
        let (cards, index) = (cards(), Index::of(&cards()));
        let check = |query: &str, expect: &[&str]| {
            let found: Vec<_> = index.find(query, 5).into_iter().map(|at| cards[at].name()).collect();
            assert_eq!(found, expect, "{query}");
        };
        check("create an issue", &["github.createIssue", "github.listIssues", "calendar__create_event"]);
        check("list issue", &["github.listIssues", "github.createIssue"]);
        check("rain", &["weather"]);
        check("who is the recipient", &["mail-send"]);
        check("appoint", &["calendar__create_event"]);
        check("GitHub_CreateIssue", &["github.createIssue", "github.listIssues", "calendar__create_event"]);
        check("weather, mail send", &["weather", "mail-send"]);
        check("the of a", &[]);
        check("", &[]);
        check("quaternion", &[]);
    }

    proptest! {
        #[test]
        fn any_query_finds_tools_that_are_there_once(query in "\\PC{0,40}", most in 0usize..8) {
            let index = Index::of(&cards());
            let found = index.find(&query, most);
            prop_assert!(found.len() <= most);
            prop_assert!(found.iter().all(|at| *at < cards().len()));
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
            prop_assert_eq!(index.find(&query, most), found);
        }
    }
}
