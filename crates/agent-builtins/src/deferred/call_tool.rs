//! The tool through which found tools are called where a provider cannot load them later.

use std::sync::Arc;

use agent_core::{RawJson, ToolCard};
use agent_tools::{Access, Permit, StandsFor, Tool, ToolCx, ToolEnd, ToolError, ToolTraits};
use async_trait::async_trait;

/// Its input is a call; what runs is that call (requirement T8).
pub(super) fn call_tool() -> Arc<dyn Tool> {
    let schema = RawJson::parse(SCHEMA)
        .unwrap_or_else(|error| unreachable!("the schema of call_tool is written here: {error}"));
    let card = ToolCard::new(NAME, DESCRIPTION.trim_end(), &schema)
        .unwrap_or_else(|error| unreachable!("a built-in tool has a card: {error}"));
    Arc::new(CallTool { card: card.dispatcher(), traits: ToolTraits::of(Access::Read) })
}

#[derive(Debug)]
struct CallTool {
    card: ToolCard,
    /// Of nothing: the call inside has its own.
    traits: ToolTraits,
}

#[derive(serde::Deserialize)]
struct Input {
    name: String,
    input: Option<RawJson>,
}

#[async_trait]
impl Tool for CallTool {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    fn validate(&self, input: &RawJson) -> Result<(), ToolError> {
        self.stands_for(input).map(drop)
    }

    fn stands_for(&self, input: &RawJson) -> Result<Option<StandsFor>, ToolError> {
        let misfit = |why: String| {
            ToolError::failed(format!(
                "The input of `{NAME}` does not fit: {why}. Nothing was done. Call it again with {{\"name\": \"NAME\", \"input\": {{…}}}}: the exact name that tool_search gave, and an object as the schema of that tool asks for it."
            ))
        };
        let Input { name, input } = input.to().map_err(|error| misfit(error.to_string()))?;
        let input = input.unwrap_or_else(RawJson::empty_object);
        if !input.is_object() {
            return Err(misfit("`input` must be a JSON object, and no text or list".to_owned()));
        }
        Ok(Some(StandsFor { tool: name, input }))
    }

    async fn run(&self, _: &ToolCx, _: Permit, _: &RawJson) -> Result<ToolEnd, ToolError> {
        Err(ToolError::failed(format!(
            "`{NAME}` itself does nothing; it is the call inside it that runs. This is a fault of the program that runs the tools."
        )))
    }
}

const NAME: &str = "call_tool";
const DESCRIPTION: &str = include_str!("../../prompt/call_tool.md");
const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"The exact name of the tool, as tool_search gave it."},"input":{"type":"object","description":"The input of that tool, as its schema asks for it."}},"required":["name","input"]}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_inside_is_taken_byte_for_byte() {
        let tool = call_tool();
        assert!(tool.card().is_dispatcher());
        let check = |input: &str| match tool.stands_for(&RawJson::parse(input).unwrap()) {
            Ok(inner) => inner.map(|inner| format!("{} {}", inner.tool, inner.input)).unwrap(),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            check(r#"{"input": { "n":1.0, "id":12345678901234567890 }, "name":"pay"}"#),
            r#"pay { "n":1.0, "id":12345678901234567890 }"#
        );
        assert_eq!(check(r#"{"name":"pay"}"#), "pay {}");
        assert_eq!(check(r#"{"name":"pay","input":null}"#), "pay {}");
        for (input, says) in [
            (r#"{"name":"pay","input":"{}"}"#, "must be a JSON object"),
            (r#"{"input":{}}"#, "missing field `name`"),
            (r#"[1]"#, "does not fit"),
        ] {
            let said = check(input);
            assert!(said.contains(says) && said.contains("Nothing was done"), "{input}: {said}");
        }
    }
}
