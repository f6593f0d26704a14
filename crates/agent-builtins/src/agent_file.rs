//! The definition of a kind of sub-agent as a person writes it: YAML front matter, then its instructions in Markdown.

use agent_memory::{FrontMatter, front_matter, one_line};
use serde::Deserialize;

use crate::skills::is_name;

/// A kind of sub-agent in a file (requirement L10).
///
/// ```
/// let text = "---\nname: reader\ndescription: Finds places in the code.\ntools: read_file, grep\n---\nYou only read.";
/// let file = agent_builtins::AgentFile::read(text)?;
/// assert_eq!((file.name.as_str(), file.prompt.as_str()), ("reader", "You only read."));
/// assert_eq!(file.tools.as_deref(), Some(&["read_file".to_owned(), "grep".to_owned()][..]));
/// # Ok::<(), agent_builtins::AgentFileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentFile {
    /// Lower-case letters and digits, in groups with hyphens between them.
    pub name: String,
    /// What it is good for, on one line, for the model that gives tasks.
    pub description: String,
    /// The only tools it has, by name; those of the agent that asks when `None`.
    pub tools: Option<Vec<String>>,
    /// Its model; that of the agent that asks when `None`.
    pub model: Option<String>,
    /// Its instructions, with `\n` line endings.
    pub prompt: String,
}

/// What is wrong with a definition, in words for who wrote it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentFileError {
    /// Text without front matter, or without its end.
    #[error(
        "it has no front matter; begin with a line `---`, then `name: ...` and `description: ...`, then a line `---`, then the instructions"
    )]
    NoFront,
    /// Front matter that is not YAML, or has other types.
    #[error(
        "its front matter cannot be read: {0} (lines are counted from behind the first `---`). Put a text in quotes when it holds a colon or begins with a special character"
    )]
    Yaml(#[source] serde_yaml_ng::Error),
    /// No name, or one with other characters.
    #[error(
        "`name: {0}` is no name; use lower-case letters and digits, with single hyphens between, for example `code-reader`"
    )]
    Name(String),
    /// Nothing that says when to use it.
    #[error("it has no `description`; say in a sentence which tasks it is for, or no model gives it one")]
    NoDescription,
    /// A description that would be dear in every request.
    #[error("its description has {0} characters, and {MOST} are the most; say only which tasks it is for")]
    LongDescription(usize),
    /// Nothing behind the front matter.
    #[error("it has no instructions; write them behind the front matter")]
    NoInstructions,
}

/// The fields that are read; others are for other programs.
#[derive(Default, Deserialize)]
struct Front {
    name: Option<String>,
    description: Option<String>,
    tools: Option<Names>,
    model: Option<String>,
}

/// Names in a list, or in a text with commas between them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Text(String),
}

impl AgentFile {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Says what to change in it.
    pub fn read(text: &str) -> Result<Self, AgentFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
        let FrontMatter { front, body } = front_matter(&text).map_err(|_| AgentFileError::NoFront)?;
        let front: Option<Front> = serde_yaml_ng::from_str(front).map_err(AgentFileError::Yaml)?;
        let Front { name, description, tools, model } = front.unwrap_or_default();
        let name = name.map(|name| name.trim().to_owned()).unwrap_or_default();
        if !is_name(&name) {
            return Err(AgentFileError::Name(name));
        }
        let description = one_line(&description.unwrap_or_default());
        if description.is_empty() {
            return Err(AgentFileError::NoDescription);
        }
        let chars = description.chars().count();
        if chars > MOST {
            return Err(AgentFileError::LongDescription(chars));
        }
        let prompt = body.trim().to_owned();
        if prompt.is_empty() {
            return Err(AgentFileError::NoInstructions);
        }
        let model = model.map(|model| model.trim().to_owned());
        let model = model.filter(|model| !model.is_empty() && model != INHERITED);
        Ok(Self { name, description, tools: tools.map(Names::all), model, prompt })
    }
}

impl Names {
    fn all(self) -> Vec<String> {
        let names = match self {
            Self::List(names) => names,
            Self::Text(text) => text.split(',').map(str::to_owned).collect(),
        };
        let trimmed = names.into_iter().map(|name| name.trim().to_owned());
        trimmed.filter(|name| !name.is_empty()).collect()
    }
}

/// Most characters of a description: it is part of every request.
const MOST: usize = 1_024;
/// The model of the agent that asks, as other programs write it.
const INHERITED: &str = "inherit";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let check = |front: &str, tools: Option<&[&str]>, model: Option<&str>| {
            let text = format!(
                "---\r\nname: a-1\r\ndescription: >-\r\n  Reads\r\n  much.\r\n{front}\r\n---\r\n\r\nBe\r\nbrief.\r\n"
            );
            let file = AgentFile::read(&text).unwrap();
            assert_eq!((file.name.as_str(), file.description.as_str()), ("a-1", "Reads much."), "{front}");
            assert_eq!(file.prompt, "Be\nbrief.");
            let expect = tools.map(|tools| tools.iter().map(ToString::to_string).collect());
            assert_eq!((file.tools, file.model.as_deref()), (expect, model), "{front}");
        };
        check("", None, None);
        check("color: blue", None, None);
        check("model: inherit", None, None);
        check("model: small\r\ntools: grep,  glob,", Some(&["grep", "glob"]), Some("small"));
        check("tools: [grep]", Some(&["grep"]), None);
        check("tools: []", Some(&[]), None);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = |text: &str, expect: &str| {
            let error = AgentFile::read(text).unwrap_err().to_string();
            assert!(error.contains(expect), "{text:?}: {error}");
        };
        refused("You only read.", "no front matter");
        refused("---\nname: a\n", "no front matter");
        refused("---\n---\nx", "`name: ` is no name");
        refused("---\nname: A b\ndescription: c\n---\nx", "`name: A b` is no name");
        refused("---\nname: a\n---\nx", "no `description`");
        refused("---\nname: a\ndescription: b: c\n---\nx", "in quotes");
        refused("---\nname: a\ndescription: b\n---\n\n", "no instructions");
        refused(&format!("---\nname: a\ndescription: {}\n---\nx", "b".repeat(1_025)), "1025");
    }
}
