//! What a model sees before the conversation: system blocks and tool cards.

use serde::{Deserialize, Serialize};

use crate::{RawJson, Text};

/// The tool whose call completes the work (requirement L5): the turn then ends as completed.
pub const COMPLETE_TOOL: &str = "complete";

/// One block of the system prompt. The system is an ordered list of blocks, not a message (requirement M1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SystemBlock(Text);

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCard {
    name: String,
    description: String,
    /// Invariant: canonical (keys sorted, no white space) and an object.
    input_schema: RawJson,
}

/// Whether and which tool the model must call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// Some tool.
    Required,
    /// No tool.
    None,
    /// This tool.
    Tool(String),
}

/// A card that no provider would take.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// A tool without a name.
    #[error("a tool has an empty name; name it as the model should call it")]
    Name,
    /// A schema that is not an object.
    #[error(
        "the input schema of {tool:?} is not a JSON object; describe the input as an object with properties"
    )]
    Schema {
        /// The tool.
        tool: String,
    },
    /// A schema that is not JSON.
    #[error("the input schema of {tool:?} cannot be read: {cause}")]
    Json {
        /// The tool.
        tool: String,
        /// What the reader said.
        #[source]
        cause: serde_json::Error,
    },
}

impl SystemBlock {
    /// `None` when the text is blank.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        Text::new(text).map(Self)
    }

    /// The words.
    pub fn text(&self) -> &str {
        self.0.as_str()
    }
}

impl ToolCard {
    /// A card whose schema is brought into canonical form.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: &RawJson,
    ) -> Result<Self, CardError> {
        let name = name.into();
        if name.is_empty() {
            return Err(CardError::Name);
        }
        let canonical = schema.canonical().map_err(|cause| CardError::Json { tool: name.clone(), cause })?;
        if !canonical.is_object() {
            return Err(CardError::Schema { tool: name });
        }
        Ok(Self { name, description: description.into(), input_schema: canonical })
    }

    /// The name the model calls.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Instructions for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON Schema of the input.
    pub fn input_schema(&self) -> &RawJson {
        &self.input_schema
    }
}
