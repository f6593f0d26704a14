//! The tools of an agent, frozen in one order.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{CardError, ToolCard};

use crate::Tool;

/// The tools of an agent. The order never changes, because it is the start of every cached prompt (requirement A4).
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    tools: Arc<[Arc<dyn Tool>]>,
    cards: Arc<[ToolCard]>,
}

/// Collects tools; mistakes are reported by [`ToolSetBuilder::freeze`].
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until it is frozen"]
pub struct ToolSetBuilder {
    tools: Vec<Arc<dyn Tool>>,
    /// Their names: there may be thousands of tools.
    names: BTreeSet<String>,
    /// The first mistake; later ones may only follow from it.
    mistake: Option<ToolSetError>,
}

/// What can be put into a set: a finished tool, or a configuration that makes one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be put into a tool set",
    note = "give a `ToolConfig` or an `Arc<dyn Tool>`"
)]
pub trait IntoTool {
    /// The tool.
    fn into_tool(self) -> Result<Arc<dyn Tool>, CardError>;
}

/// A set that cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolSetError {
    /// A tool whose card no provider would take.
    #[error(transparent)]
    Card(#[from] CardError),
    /// Two tools of one name.
    #[error("two tools are called `{0}`; rename one, or use `replace` to put one in the other's place")]
    Duplicate(String),
    /// A wrapper that is called otherwise than what it wraps.
    #[error(
        "what wraps `{name}` is called `{given}`; a wrapper keeps the name, so give it that one, or add it with `with` as a tool of its own"
    )]
    Renamed {
        /// The name of what is wrapped.
        name: String,
        /// The name of the wrapper.
        given: String,
    },
    /// A wrapper that keeps its state elsewhere than what it wraps.
    #[error(
        "what wraps `{0}` has another state key; let its `state_key` return that of the inner tool, or use `replace` for a tool with a state of its own"
    )]
    StateKey(String),
    /// A name to remove or replace that no tool has.
    #[error("no tool is called `{name}`, so it cannot be {action}; there are: {known}")]
    Unknown {
        /// The name given.
        name: String,
        /// What was to be done.
        action: &'static str,
        /// The names there are.
        known: String,
    },
}

impl ToolSet {
    /// An empty builder.
    pub fn builder() -> ToolSetBuilder {
        ToolSetBuilder::default()
    }

    /// The cards, in order.
    pub fn cards(&self) -> &[ToolCard] {
        &self.cards
    }

    /// A tool by name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.card().name() == name)
    }

    /// All tools, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter()
    }

    /// The tools whose names are to stay, in the order they have here.
    #[must_use]
    pub fn only(&self, stays: impl Fn(&str) -> bool) -> Self {
        let stay: Vec<_> = self.tools.iter().filter(|tool| stays(tool.card().name())).cloned().collect();
        let cards = stay.iter().map(|tool| tool.card().clone()).collect();
        Self { tools: stay.into(), cards }
    }

    /// The names, in order, joined for a message.
    pub fn names(&self) -> String {
        names(&self.tools)
    }
}

impl ToolSetBuilder {
    /// Appends a tool.
    pub fn with(mut self, tool: impl IntoTool) -> Self {
        match tool.into_tool() {
            Ok(tool) if !self.names.insert(tool.card().name().to_owned()) => {
                self.mistake(ToolSetError::Duplicate(tool.card().name().to_owned()));
            }
            Ok(tool) => self.tools.push(tool),
            Err(error) => self.mistake(error.into()),
        }
        self
    }

    /// Appends tools.
    pub fn extend(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        tools.into_iter().fold(self, Self::with)
    }

    /// Appends tools that come in no order of their own, from a server, a directory or a map: sorted by name, so that the
    /// next process has them in the same places.
    pub fn extend_sorted(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let mut tools: Vec<_> = tools.into_iter().collect();
        tools.sort_by(|one, other| one.card().name().cmp(other.card().name()));
        self.extend(tools)
    }

    /// Puts a tool around the one of this name (requirement T11), for example a [`Wrapped`](crate::Wrapped). It keeps name,
    /// place and state.
    pub fn wrap<T: IntoTool>(mut self, name: &str, wrap: impl FnOnce(Arc<dyn Tool>) -> T) -> Self {
        let Some(at) = self.position(name) else {
            self.unknown(name, "wrapped");
            return self;
        };
        let inner = Arc::clone(&self.tools[at]);
        match wrap(Arc::clone(&inner)).into_tool() {
            Err(error) => self.mistake(error.into()),
            Ok(outer) if outer.card().name() != name => {
                let given = outer.card().name().to_owned();
                self.mistake(ToolSetError::Renamed { name: name.to_owned(), given });
            }
            Ok(outer) if outer.state_key() != inner.state_key() => {
                self.mistake(ToolSetError::StateKey(name.to_owned()));
            }
            Ok(outer) => self.tools[at] = outer,
        }
        self
    }

    /// Puts a tool in the place of the one that has its name (requirement T11). Its state is its own.
    pub fn replace(mut self, tool: impl IntoTool) -> Self {
        match tool.into_tool() {
            Ok(tool) => match self.position(tool.card().name()) {
                Some(at) => self.tools[at] = tool,
                None => self.unknown(tool.card().name(), "replaced"),
            },
            Err(error) => self.mistake(error.into()),
        }
        self
    }

    /// Takes a tool out; a misspelt name is an error, not a no-op.
    pub fn without(mut self, name: &str) -> Self {
        match self.position(name) {
            Some(at) => {
                self.names.remove(name);
                drop(self.tools.remove(at));
            }
            None => self.unknown(name, "taken out"),
        }
        self
    }

    /// The set, or the first mistake.
    pub fn freeze(self) -> Result<ToolSet, ToolSetError> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let cards = self.tools.iter().map(|tool| tool.card().clone()).collect();
        Ok(ToolSet { tools: self.tools.into(), cards })
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.tools.iter().position(|tool| tool.card().name() == name)
    }

    fn unknown(&mut self, name: &str, action: &'static str) {
        let known = names(&self.tools);
        self.mistake(ToolSetError::Unknown { name: name.to_owned(), action, known });
    }

    fn mistake(&mut self, mistake: ToolSetError) {
        self.mistake.get_or_insert(mistake);
    }
}

impl IntoTool for Arc<dyn Tool> {
    fn into_tool(self) -> Result<Arc<dyn Tool>, CardError> {
        Ok(self)
    }
}

fn names(tools: &[Arc<dyn Tool>]) -> String {
    tools.iter().map(|tool| tool.card().name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, ToolConfig};

    fn tool(name: &str) -> Arc<dyn Tool> {
        ToolConfig::new(name, "Test.", Access::Read, |_, _: serde_json::Value| async { Ok(String::new()) })
            .build()
            .unwrap()
    }

    #[test]
    fn a_configuration_is_built_on_the_way() {
        let config = |name: &str| {
            ToolConfig::new(name, "Test.", Access::Read, |_, _: serde_json::Value| async {
                Ok(String::new())
            })
        };
        assert_eq!(ToolSet::builder().with(config("a")).freeze().unwrap().names(), "a");
        let error = ToolSet::builder().with(config("")).without("b").freeze().unwrap_err();
        insta::assert_snapshot!(error, @"a tool has an empty name; name it as the model should call it");
    }

    #[test]
    fn order_is_insertion_order_and_mistakes_are_errors() {
        let set = |build: fn(ToolSetBuilder) -> ToolSetBuilder| {
            let base = ToolSet::builder().with(tool("b")).with(tool("a"));
            build(base).freeze().map(|set| set.names()).map_err(|error| error.to_string())
        };
        assert_eq!(set(|b| b).unwrap(), "b, a");
        let three = ToolSet::builder().with(tool("c")).with(tool("b")).with(tool("a")).freeze().unwrap();
        let two = three.only(|name| name != "b");
        assert_eq!((two.names().as_str(), two.cards().len()), ("c, a", 2));
        assert!(two.get("b").is_none() && three.only(|_| false).names().is_empty());
        assert_eq!(set(|b| b.without("b")).unwrap(), "a");
        assert_eq!(set(|b| b.replace(tool("b"))).unwrap(), "b, a");
        assert_eq!(set(|b| b.extend_sorted([tool("d"), tool("c")])).unwrap(), "b, a, c, d");
        assert_eq!(set(|b| b.extend_sorted([tool("c"), tool("d")])).unwrap(), "b, a, c, d");
        assert_eq!(set(|b| b.wrap("b", |inner| inner)).unwrap(), "b, a");
        insta::assert_snapshot!(set(|b| b.wrap("bb", |inner| inner)).unwrap_err(), @"no tool is called `bb`, so it cannot be wrapped; there are: b, a");
        insta::assert_snapshot!(set(|b| b.wrap("b", |_| tool("c"))).unwrap_err(), @"what wraps `b` is called `c`; a wrapper keeps the name, so give it that one, or add it with `with` as a tool of its own");
        fn other(_: Arc<dyn Tool>) -> Arc<dyn Tool> {
            ToolConfig::new("b", "B.", Access::Read, |_, _: serde_json::Value| async { Ok(String::new()) })
                .state_key("b")
                .build()
                .unwrap()
        }
        insta::assert_snapshot!(set(|b| b.wrap("b", other)).unwrap_err(), @"what wraps `b` has another state key; let its `state_key` return that of the inner tool, or use `replace` for a tool with a state of its own");
        insta::assert_snapshot!(set(|b| b.without("bb")).unwrap_err(), @"no tool is called `bb`, so it cannot be taken out; there are: b, a");
        insta::assert_snapshot!(set(|b| b.with(tool("a"))).unwrap_err(), @"two tools are called `a`; rename one, or use `replace` to put one in the other's place");
    }
}
