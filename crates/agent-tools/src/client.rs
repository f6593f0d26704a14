//! A tool that the client runs: the harness checks the call, and its turn parks until the output is there.

use std::sync::Arc;

use agent_core::{CardError, RawJson, ToolCard, Wait};
use async_trait::async_trait;

use crate::{Access, IntoTool, Permit, Tool, ToolCx, ToolEnd, ToolError, ToolTraits};

/// A tool without a function (requirement T12): a browser, an editor or another service runs it.
///
/// A call goes through hooks and permission like any other, and then waits as [`Wait::ClientTool`]; the output that
/// somebody replies with is capped and enters the history like one that was made here.
///
/// ```
/// use agent_core::RawJson;
/// use agent_tools::{Access, ClientTool, ToolSet};
///
/// let schema = RawJson::parse(r#"{"type":"object","properties":{"selector":{"type":"string"}}}"#)?;
/// let click = ClientTool::new("click", "Clicks what a CSS selector finds in the page.", &schema, Access::Session)?;
/// let tools = ToolSet::builder().with(click).freeze()?;
/// assert_eq!(tools.names(), "click");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ClientTool {
    card: ToolCard,
    traits: ToolTraits,
}

impl ClientTool {
    /// A tool of this kind of effect, with the JSON Schema of its input.
    ///
    /// # Errors
    /// When no provider would take its card.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: &RawJson,
        access: Access,
    ) -> Result<Self, CardError> {
        let card = ToolCard::new(name, description, schema)?;
        // Nothing runs here, so asking for it again after a crash does no harm.
        Ok(Self { card, traits: ToolTraits { idempotent: true, ..ToolTraits::of(access) } })
    }

    /// The same tool with these traits.
    #[must_use]
    pub fn with_traits(self, traits: ToolTraits) -> Self {
        Self { traits, ..self }
    }
}

#[async_trait]
impl Tool for ClientTool {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    fn validate(&self, input: &RawJson) -> Result<(), ToolError> {
        if input.is_object() {
            return Ok(());
        }
        Err(ToolError::failed(format!(
            "The input of `{}` must be a JSON object; nothing was done. Call it again with one.",
            self.card.name()
        )))
    }

    async fn run(&self, _cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        permit.covers(self.card.name(), input)?;
        self.validate(input)?;
        Ok(Wait::ClientTool { input: input.clone() }.into())
    }
}

impl IntoTool for ClientTool {
    fn into_tool(self) -> Result<Arc<dyn Tool>, CardError> {
        Ok(Arc::new(self))
    }
}
