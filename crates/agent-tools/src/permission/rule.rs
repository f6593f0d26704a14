//! A rule: on whose authority, what happens, and to which calls.

use std::fmt;
use std::str::FromStr;

use agent_core::Layer;
use serde::{Deserialize, Serialize};

use super::subject::{Subject, wild};

/// What happens to some calls, and who says so (requirement T2).
///
/// ```
/// use agent_core::Layer;
/// use agent_tools::{PermissionDecision, PermissionRule};
///
/// let rule = PermissionRule::deny("bash(git push:*)".parse()?).from_layer(Layer::Managed);
/// assert_eq!(rule.decision, PermissionDecision::Deny);
/// assert_eq!(rule.to_string(), "deny bash(git push:*) (managed)");
/// # Ok::<(), agent_tools::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of three things")]
pub struct PermissionRule {
    /// On whose authority.
    pub layer: Layer,
    /// What happens.
    pub decision: PermissionDecision,
    /// To which calls.
    pub pattern: Pattern,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "ordered by strictness: the strictest wins")]
pub enum PermissionDecision {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It is refused.
    Deny,
}

/// Which calls a rule is for: `TOOL`, or `TOOL(ARGUMENT)`. In both `*` stands for any stretch.
///
/// What the argument is held against depends on the tool: each simple command of a shell text (`bash(cargo test:*)`,
/// where `:*` stands for any further words), the path of a file below the workspace (`edit_file(src/**)`), an address
/// (`web_fetch(domain:docs.rs)`), or the text of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    tool: String,
    argument: Option<String>,
}

/// A pattern that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no permission pattern: {why}. Write TOOL or TOOL(ARGUMENT), for example bash(cargo test:*), edit_file(src/**) or web_fetch(domain:docs.rs)"
)]
#[non_exhaustive]
pub struct PatternError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl PermissionRule {
    /// Such calls run without a question; of [`Layer::User`].
    pub fn allow(pattern: Pattern) -> Self {
        Self { layer: Layer::User, decision: PermissionDecision::Allow, pattern }
    }

    /// A person decides on such calls; of [`Layer::User`].
    pub fn ask(pattern: Pattern) -> Self {
        Self { layer: Layer::User, decision: PermissionDecision::Ask, pattern }
    }

    /// Such calls are refused; of [`Layer::User`].
    pub fn deny(pattern: Pattern) -> Self {
        Self { layer: Layer::User, decision: PermissionDecision::Deny, pattern }
    }

    /// The same on another authority.
    #[must_use]
    pub fn from_layer(self, layer: Layer) -> Self {
        Self { layer, ..self }
    }
}

impl PermissionDecision {
    /// The name: `allow`, `ask` or `deny`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl Pattern {
    /// Every call of a tool.
    pub fn tool(name: impl Into<String>) -> Self {
        Self { tool: name.into(), argument: None }
    }

    /// Calls of a tool of which the argument speaks. What is special in an argument stays special.
    pub fn with_argument(name: impl Into<String>, argument: impl Into<String>) -> Self {
        Self { tool: name.into(), argument: Some(argument.into()) }
    }

    /// Whether it is for this tool.
    pub fn names(&self, tool: &str) -> bool {
        wild(&self.tool, tool)
    }

    /// Whether it is for a call of this tool: its argument speaks of a part of the subject, or could speak of one that is only
    /// known when it runs. Without a subject the tool alone decides.
    pub fn speaks_of(&self, tool: &str, subject: Option<&Subject>) -> bool {
        let argument = self.argument.as_deref();
        let meant = || match (argument, subject) {
            (Some(argument), Some(subject)) => subject.may_be_meant_by(argument),
            (Some(_) | None, _) => true,
        };
        self.names(tool) && meant()
    }

    /// What it says of the input.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let fault = |why| PatternError { text: text.to_owned(), why };
        let (tool, argument) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((tool, rest)) => {
                let argument = rest.strip_suffix(')').ok_or(fault("the argument has no closing bracket"))?;
                (tool.trim(), Some(argument.trim()))
            }
        };
        if tool.is_empty() {
            return Err(fault("it names no tool"));
        }
        if tool.contains(char::is_whitespace) || tool.contains(')') {
            return Err(fault("the name of a tool has no spaces and no brackets"));
        }
        if argument.is_some_and(str::is_empty) {
            return Err(fault("the argument is blank, and would fit nothing"));
        }
        // `bash(*)` is `bash`: what covers everything looks at nothing.
        let argument = argument.filter(|argument| *argument != "*").map(str::to_owned);
        Ok(Self { tool: tool.to_owned(), argument })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.argument {
            Some(argument) => write!(f, "{}({argument})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.decision.name(), self.pattern, self.layer)
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |text: &str, expect: &str| {
            let read =
                text.parse::<Pattern>().map_or_else(|error| format!("! {}", error.why), |it| it.to_string());
            assert_eq!(read, expect, "{text}");
        };
        check("bash", "bash");
        check(" bash ( git status ) ", "bash(git status)");
        check("bash(echo (a))", "bash(echo (a))");
        check("bash(*)", "bash");
        check("mcp__sea__*", "mcp__sea__*");
        check("", "! it names no tool");
        check("(a)", "! it names no tool");
        check("bash(a", "! the argument has no closing bracket");
        check("bash()", "! the argument is blank, and would fit nothing");
        check("ba sh", "! the name of a tool has no spaces and no brackets");
        check("bash)", "! the name of a tool has no spaces and no brackets");
    }
}
