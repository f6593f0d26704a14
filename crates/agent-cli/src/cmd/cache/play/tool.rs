//! Tools of scenarios: they answer with as many words as the call asks for.

use std::sync::Arc;

use agent::{Access, OutputCap, Permit, Tool, ToolCx, ToolError, ToolOutput, ToolTraits};
use agent_core::{CardError, RawJson, ToolCard};
use async_trait::async_trait;
use serde::Deserialize;

use crate::cmd::cache::filler::filler;
use crate::cmd::cache::scenario::{ToolSpec, with_filler};

/// What most tools of agents take: a few fields with words about them.
const SCHEMA: &str = r#"{"type":"object","properties":{"item":{"type":"string","description":"What to look at."},"tokens":{"type":"integer","description":"How much to show."}}}"#;

/// The tools of one line of a scenario.
pub(super) fn tools(spec: &ToolSpec) -> Result<Vec<Arc<dyn Tool>>, CardError> {
    let made = spec.names().into_iter().map(|name| {
        let description = if spec.description.is_empty() {
            format!("Shows what {name} knows. Use it when you need it.")
        } else {
            spec.description.clone()
        };
        let description = with_filler(&description, &name, spec.tokens);
        let default =
            RawJson::parse(SCHEMA).map_err(|cause| CardError::Json { tool: name.clone(), cause })?;
        let schema = spec.schema.as_ref().unwrap_or(&default);
        let card = ToolCard::new(name, description, schema)?;
        let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, ..OutputCap::default() };
        let traits = ToolTraits { cap, ..ToolTraits::of(Access::Read) };
        let tool: Arc<dyn Tool> = Arc::new(Shows { card, traits, tokens: spec.result_tokens });
        Ok(tool)
    });
    made.collect()
}

/// A tool that shows filler.
#[derive(Debug)]
struct Shows {
    card: ToolCard,
    traits: ToolTraits,
    tokens: u64,
}

/// What a call may say.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wanted {
    tokens: Option<u64>,
}

#[async_trait]
impl Tool for Shows {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    async fn run(&self, _cx: &ToolCx, _permit: Permit, input: &RawJson) -> Result<ToolOutput, ToolError> {
        let wanted: Wanted = input.to().map_err(|error| ToolError::failed(error.to_string()))?;
        Ok(ToolOutput::text(filler(input.get(), wanted.tokens.unwrap_or(self.tokens))))
    }
}
