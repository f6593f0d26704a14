//! What a model sees before the conversation: system blocks and tool cards.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{ProviderData, RawJson, Text};

/// The tool whose call completes the work (requirement L5): the turn then ends as completed.
pub const COMPLETE_TOOL: &str = "complete";

/// One block of the system prompt. The system is an ordered list of blocks, not a message (requirement M1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SystemBlock(Text);

/// A tool as the model sees it. Clones share its texts: every session has the list, and so has its encoder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Fields")]
pub struct ToolCard {
    name: Arc<str>,
    description: Arc<str>,
    /// Invariant: canonical (keys sorted, no white space) and an object.
    input_schema: RawJson,
    /// What one provider is told besides. Invariant: an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<ProviderData>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hosted: bool,
    #[serde(default, skip_serializing_if = "Loading::is_listed")]
    loading: Loading,
}

/// How a tool comes before the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Loading {
    #[default]
    Listed,
    Deferred,
    Dispatcher,
}

/// The written form of a card; reading it checks the invariants.
#[derive(Deserialize)]
struct Fields {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default = "RawJson::empty_object")]
    input_schema: RawJson,
    #[serde(default)]
    data: Option<ProviderData>,
    #[serde(default)]
    hosted: bool,
    #[serde(default)]
    loading: Loading,
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
    /// These tools only, by name; the list of tools stays as it is, and with it what a provider cached.
    ///
    /// Where a provider cannot be told so, a diagnostic says what was sent instead.
    Allowed {
        /// The tools that may be called.
        tools: Vec<String>,
        /// Whether one of them must be called.
        required: bool,
    },
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
    /// What a provider is told of the tool is not an object.
    #[error("what {tool:?} tells its provider is not a JSON object; give the fields of the tool's entry")]
    Data {
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

impl TryFrom<Fields> for ToolCard {
    type Error = CardError;
    fn try_from(fields: Fields) -> Result<Self, CardError> {
        let card = Self::new(fields.name, fields.description, &fields.input_schema)?;
        let card = Self { loading: fields.loading, ..card };
        match fields.data {
            Some(data) => Ok(Self { hosted: fields.hosted, ..card.with_data(data)? }),
            None => Ok(card),
        }
    }
}

impl ToolCard {
    /// A card whose schema is brought into canonical form.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: &RawJson,
    ) -> Result<Self, CardError> {
        let name: String = name.into();
        if name.is_empty() {
            return Err(CardError::Name);
        }
        let canonical = schema.canonical().map_err(|cause| CardError::Json { tool: name.clone(), cause })?;
        if !canonical.is_object() {
            return Err(CardError::Schema { tool: name });
        }
        let description: String = description.into();
        let (name, description) = (name.into(), description.into());
        Ok(Self {
            name,
            description,
            input_schema: canonical,
            data: None,
            hosted: false,
            loading: Loading::Listed,
        })
    }

    /// A tool that a provider runs itself, such as its web search: `data` is its whole entry in the list of tools.
    ///
    /// It means nothing to other providers, and nothing of it is ever executed here.
    pub fn hosted(name: impl Into<String>, data: ProviderData) -> Result<Self, CardError> {
        let card = Self::new(name, "", &RawJson::empty_object())?;
        Ok(Self { hosted: true, ..card.with_data(data)? })
    }

    /// The card with another description.
    #[must_use]
    pub fn with_description(self, description: impl Into<String>) -> Self {
        Self { description: description.into().into(), ..self }
    }

    /// The card with further fields of its entry in the list of tools (`strict`, `defer_loading`), for one provider.
    pub fn with_data(self, data: ProviderData) -> Result<Self, CardError> {
        if !data.json.is_object() {
            return Err(CardError::Data { tool: self.name.as_ref().to_owned() });
        }
        Ok(Self { data: Some(data), ..self })
    }

    /// A card of which the model is told when a search finds it ([`crate::FoundTool`]), and not before: it is no part of the
    /// prompt's prefix (requirement A4).
    ///
    /// A provider that loads tools later is sent it with that mark ([`crate::ModelProfile::deferred_tools`]); others are
    /// not sent it, and it is called through the [dispatcher](Self::dispatcher). It stays in the session's list.
    #[must_use]
    pub fn deferred(self) -> Self {
        Self { loading: Loading::Deferred, ..self }
    }

    /// The card of the tool through which deferred tools are called where the provider cannot load them later; it is left
    /// out where it can.
    #[must_use]
    pub fn dispatcher(self) -> Self {
        Self { loading: Loading::Dispatcher, ..self }
    }

    /// The name the model calls.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Instructions for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// JSON Schema of the input; says nothing of a hosted tool.
    pub fn input_schema(&self) -> &RawJson {
        &self.input_schema
    }

    /// What one provider is told: further fields, or the whole entry of a hosted tool. An object.
    pub fn data(&self) -> Option<&ProviderData> {
        self.data.as_ref()
    }

    /// Whether the provider named in [`Self::data`] runs it.
    pub fn is_hosted(&self) -> bool {
        self.hosted
    }

    /// Whether the model is told of it only when a search finds it.
    pub fn is_deferred(&self) -> bool {
        self.loading == Loading::Deferred
    }

    /// Whether deferred tools are called through it.
    pub fn is_dispatcher(&self) -> bool {
        self.loading == Loading::Dispatcher
    }
}

impl Loading {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it a reference")]
    fn is_listed(&self) -> bool {
        *self == Self::Listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_written_as_ever_unless_it_is_deferred() {
        let look = || ToolCard::new("look", "Looks.", &RawJson::empty_object()).unwrap();
        let check = |card: ToolCard, expect: &str| {
            let text = serde_json::to_string(&card).unwrap();
            assert_eq!(text, expect);
            assert_eq!(serde_json::from_str::<ToolCard>(&text).unwrap(), card);
        };
        check(look(), r#"{"name":"look","description":"Looks.","input_schema":{}}"#);
        let deferred = r#"{"name":"look","description":"Looks.","input_schema":{},"loading":"deferred"}"#;
        check(look().deferred(), deferred);
        let data = ProviderData { provider: "p".into(), json: RawJson::empty_object() };
        let with_data = r#"{"name":"look","description":"Looks.","input_schema":{},"data":{"provider":"p","json":{}},"loading":"dispatcher"}"#;
        check(look().dispatcher().with_data(data).unwrap(), with_data);
        assert!(look().deferred().is_deferred() && !look().deferred().is_dispatcher());
        assert!(look().dispatcher().is_dispatcher() && !look().is_deferred());
    }
}
