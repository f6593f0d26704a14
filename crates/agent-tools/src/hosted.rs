//! Tools that a provider runs itself: they have a card here, and nothing to run.

use std::sync::Arc;

use agent_core::{CardError, ProviderData, RawJson, ToolCard};
use async_trait::async_trait;

use crate::{Access, Permit, Tool, ToolCx, ToolEnd, ToolError, ToolTraits};

/// A tool that its provider runs, such as its web search (requirement T12). Other providers are not told of it.
///
/// ```
/// use agent_core::{ProviderData, RawJson};
/// use agent_tools::{HostedTool, Tool, ToolSet};
///
/// let json = RawJson::parse(r#"{"type":"code_interpreter","container":{"type":"auto"}}"#)?;
/// let code = HostedTool::new("code", ProviderData { provider: "openai-responses".into(), json })?;
/// let tools = ToolSet::builder().with(code).freeze()?;
/// assert!(tools.cards()[0].is_hosted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct HostedTool {
    card: ToolCard,
    traits: ToolTraits,
}

impl HostedTool {
    /// A tool by its name and its whole entry in the provider's list of tools.
    ///
    /// # Errors
    /// When the name is empty, or the entry is no JSON object.
    #[expect(clippy::new_ret_no_self, reason = "as everything that makes a tool, it gives one for a set")]
    pub fn new(name: impl Into<String>, entry: ProviderData) -> Result<Arc<dyn Tool>, CardError> {
        let card = ToolCard::hosted(name, entry)?;
        // Nobody is asked about what cannot run: a call of it is answered with what to do instead.
        Ok(Arc::new(Self { card, traits: ToolTraits::of(Access::Read) }))
    }
}

#[async_trait]
impl Tool for HostedTool {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    async fn run(&self, _: &ToolCx, _: Permit, _: &RawJson) -> Result<ToolEnd, ToolError> {
        Err(ToolError::failed(format!(
            "`{}` is run by the model's provider and not here, so this call did nothing. Use it as the provider offers it, or go on with another tool.",
            self.card.name()
        )))
    }
}
