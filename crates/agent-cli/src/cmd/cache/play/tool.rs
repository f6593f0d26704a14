//! Tools of scenarios: they answer with as many words as the call asks for.

use std::sync::Arc;

use agent::{Access, OutputCap, Permit, Tool, ToolCx, ToolEnd, ToolError, ToolOutput, ToolTraits, builtins};
use agent_core::{CardError, RawJson, SessionNotes, ToolCard};
use async_trait::async_trait;
use serde::Deserialize;

use crate::cmd::cache::filler::filler;
use crate::cmd::cache::scenario::{Does, ToolSpec, with_filler};

/// What most tools of agents take: a few fields with words about them.
const SCHEMA: &str = r#"{"type":"object","properties":{"item":{"type":"string","description":"What to look at."},"tokens":{"type":"integer","description":"How much to show."}}}"#;

/// The tools of one line of a scenario.
pub(super) fn tools(spec: &ToolSpec) -> Result<Vec<Arc<dyn Tool>>, CardError> {
    if spec.does == Does::Builtin {
        return Ok(builtin(&spec.name).into_iter().collect());
    }
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
        let tool: Arc<dyn Tool> = match spec.does {
            Does::Notes => Arc::new(Keeps { card, traits }),
            Does::Show | Does::Builtin => Arc::new(Shows { card, traits, tokens: spec.result_tokens }),
        };
        Ok(tool)
    });
    made.collect()
}

/// The built-in tool of a name.
fn builtin(name: &str) -> Option<Arc<dyn Tool>> {
    [builtins::todo(), builtins::complete()].into_iter().find(|tool| tool.card().name() == name)
}

/// A tool that shows filler.
#[derive(Debug)]
struct Shows {
    card: ToolCard,
    traits: ToolTraits,
    tokens: u64,
}

/// A tool that keeps what it is told as the session's notes.
#[derive(Debug)]
struct Keeps {
    card: ToolCard,
    traits: ToolTraits,
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

    async fn run(&self, _cx: &ToolCx, _permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        let wanted: Wanted = input.to().map_err(|error| ToolError::failed(error.to_string()))?;
        Ok(ToolOutput::text(filler(input.get(), wanted.tokens.unwrap_or(self.tokens))).into())
    }
}

#[async_trait]
impl Tool for Keeps {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    async fn run(&self, cx: &ToolCx, _permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        let notes: SessionNotes = input.to().map_err(|error| ToolError::failed(error.to_string()))?;
        cx.slots.update(|slots| slots.notes = Some(notes));
        Ok(ToolOutput::text("Kept.").into())
    }
}
