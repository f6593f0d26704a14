//! One memory as a Markdown file with YAML front matter.

use serde::{Deserialize, Serialize};

use crate::front::{front_matter, is_steering, one_line, tidy};
use crate::{MemoryName, MemoryType, NameError, NoFrontMatter, NoSuchType};

/// One thing that is worth knowing in a later session (requirement C1).
///
/// `Memory::parse(&memory.render())` is the same memory, and rendering that gives the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    name: MemoryName,
    /// Invariant: one line, 1 to [`DESCRIPTION_CHARS`] characters.
    description: String,
    kind: MemoryType,
    /// Invariant: not blank, `\n` line endings, no blank lines around it; with both headings where it is feedback.
    body: String,
}

/// What is wrong with a memory, in words for who writes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryFault {
    /// A text without front matter.
    #[error(
        "{0}. Begin with a line `---`, then `name: ...`, `description: ...` and `type: ...`, then a line `---`, then what is to be remembered"
    )]
    Front(#[from] NoFrontMatter),
    /// Front matter that is not YAML, or has other types.
    #[error(
        "its front matter cannot be read: {0} (lines are counted from behind the first `---`). Write `name: ...`, `description: ...` and `type: ...`, and put the text in quotes when it holds a colon or begins with a special character"
    )]
    Yaml(#[source] serde_yaml_ng::Error),
    /// A field that is not there, or blank.
    #[error("its front matter has no `{0}`; write `{0}: {1}`")]
    Missing(&'static str, &'static str),
    /// A name that cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another type.
    #[error(transparent)]
    Type(#[from] NoSuchType),
    /// A description that costs too much.
    #[error(
        "its description has {0} characters and may have {DESCRIPTION_CHARS}, because it is a line of every session's prompt; keep what tells when the memory matters, and move the rest below the front matter"
    )]
    LongDescription(usize),
    /// Nothing to remember.
    #[error("it says nothing below the front matter; write there what is to be remembered")]
    NoBody,
    /// Feedback without its reason or its use.
    #[error(
        "a memory of type feedback needs a paragraph that begins with `{0}`: write the rule, then `**Why:**` and the reason the user gave, then `**How to apply:**` and when and where it holds"
    )]
    Feedback(&'static str),
    /// A file that is longer than a memory may be.
    #[error(
        "it has {0} bytes and may have {MEMORY_BYTES}; keep what a later session needs, and split what is about several things into several memories"
    )]
    TooLarge(usize),
    /// Another encoding.
    #[error("byte {0} of it is not UTF-8; save it as UTF-8")]
    NotUtf8(usize),
    /// Another name in the front matter than that of the file.
    #[error("its front matter says `name: {said}`, and the file is `{file}`; write the same name in both")]
    OtherName {
        /// What the front matter says.
        said: MemoryName,
        /// The file.
        file: String,
    },
}

/// Most characters of a description.
pub const DESCRIPTION_CHARS: usize = 200;
/// Most bytes of the file of a memory.
pub const MEMORY_BYTES: usize = 32 * 1024;

/// The fields that are read. Others may stand beside them, and stay where a file is edited.
#[derive(Serialize, Deserialize)]
struct Front {
    name: Option<String>,
    description: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl Memory {
    /// A memory of these words. The description becomes one line; blank lines around the body are left out.
    ///
    /// # Errors
    /// When it could not be kept, or lacks what its type asks for.
    pub fn new(
        name: MemoryName,
        kind: MemoryType,
        description: &str,
        body: &str,
    ) -> Result<Self, MemoryFault> {
        let description = one_line(description);
        if description.is_empty() {
            return Err(MemoryFault::Missing("description", "in one line, when this matters"));
        }
        let chars = description.chars().count();
        if chars > DESCRIPTION_CHARS {
            return Err(MemoryFault::LongDescription(chars));
        }
        let body = tidy(body);
        let body = body.trim_matches('\n').trim_end();
        if body.trim().is_empty() {
            return Err(MemoryFault::NoBody);
        }
        if kind == MemoryType::Feedback {
            let lacking = [WHY, HOW].into_iter().find(|heading| !has(body, heading));
            lacking.map_or(Ok(()), |heading| Err(MemoryFault::Feedback(heading)))?;
        }
        let memory = Self { name, description, kind, body: body.to_owned() };
        match memory.render().len() {
            len if len > MEMORY_BYTES => Err(MemoryFault::TooLarge(len)),
            _ => Ok(memory),
        }
    }

    /// Reads a file. Front matter may hold other fields too.
    ///
    /// # Errors
    /// When it is no memory; the words say how to write it.
    pub fn parse(text: &str) -> Result<Self, MemoryFault> {
        if text.len() > MEMORY_BYTES {
            return Err(MemoryFault::TooLarge(text.len()));
        }
        let text = tidy(text);
        let split = front_matter(&text)?;
        // An empty document is the value null, and a mapping without fields is what it means.
        let front: Option<Front> = serde_yaml_ng::from_str(split.front).map_err(MemoryFault::Yaml)?;
        let front = front.unwrap_or(Front { name: None, description: None, kind: None });
        let given = |field: Option<String>, lacking| {
            let word = field.map(|word| word.trim().to_owned()).filter(|word| !word.is_empty());
            word.ok_or(lacking)
        };
        let name = given(front.name, MemoryFault::Missing("name", "the name of the file, without `.md`"))?;
        let kind = given(front.kind, MemoryFault::Missing("type", "user, feedback, project or reference"))?;
        let description = front.description.unwrap_or_default();
        Self::new(MemoryName::new(name)?, kind.parse()?, &description, split.body)
    }

    /// The file, with `name`, `description` and `type` in this order, a blank line and the body.
    pub fn render(&self) -> String {
        let Self { name, description, kind, body } = self;
        let (name, description) = (scalar(name.as_str()), scalar(description));
        format!("---\nname: {name}\ndescription: {description}\ntype: {kind}\n---\n\n{body}\n")
    }

    /// Its name.
    pub fn name(&self) -> &MemoryName {
        &self.name
    }

    /// When it matters, in one line.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// What it is about.
    pub fn kind(&self) -> MemoryType {
        self.kind
    }

    /// What is remembered, in Markdown.
    pub fn body(&self) -> &str {
        &self.body
    }
}

/// Whether a line begins with a heading, with the colon inside the bold type or behind it.
fn has(body: &str, heading: &str) -> bool {
    let word = heading.trim_matches('*').trim_end_matches(':');
    let bare = |line: &str| {
        let line = line.trim_start_matches(['*', '#', '-', ' ', '\t']).to_ascii_lowercase();
        let rest = line.strip_prefix(&word.to_ascii_lowercase()).map(str::to_owned);
        rest.is_some_and(|rest| rest.trim_start_matches('*').starts_with(':') || rest.trim().is_empty())
    };
    body.lines().any(bare)
}

/// One line as a value of YAML: plain where it can only be read as that text, else in quotes.
pub(crate) fn scalar(text: &str) -> String {
    let is_plain = text.chars().next().is_some_and(|first| first.is_alphabetic())
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with(':')
        && !text.chars().any(needs_escape)
        && serde_yaml_ng::from_str::<Option<String>>(text).is_ok_and(|read| read.as_deref() == Some(text));
    if is_plain {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for one in text.chars() {
        match one {
            '"' | '\\' => quoted.extend(['\\', one]),
            one if needs_escape(one) => quoted.push_str(&format!("\\U{:08X}", u32::from(one))),
            one => quoted.push(one),
        }
    }
    quoted.push('"');
    quoted
}

/// What YAML does not take as it is, or takes as the end of a line.
fn needs_escape(one: char) -> bool {
    is_steering(one) || matches!(one, '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

const WHY: &str = "**Why:**";
const HOW: &str = "**How to apply:**";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROLE: &str = "---\nname: user_role\ndescription: Writes compilers in Rust\ntype: user\n---\n\nThe user writes compilers.\n";

    #[test]
    fn a_file_is_read_and_written_alike() {
        let memory = Memory::parse(ROLE).unwrap();
        assert_eq!(memory.render(), ROLE);
        assert_eq!((memory.name().as_str(), memory.kind()), ("user_role", MemoryType::User));
        assert_eq!(memory.body(), "The user writes compilers.");
        let by_hand = "\u{feff}---\r\ntype:  user\r\ntags: [a, b]\r\nname: 'user_role'\r\ndescription: >-\r\n  Writes compilers\r\n  in Rust\r\n---\r\nThe user writes compilers.\r\n\r\n";
        assert_eq!(Memory::parse(by_hand).unwrap(), memory);
    }

    #[test]
    fn feedback_says_why_and_how() {
        let check = |body: &str, expect: Option<&str>| {
            let name = MemoryName::new("short").unwrap();
            let made = Memory::new(name, MemoryType::Feedback, "Short answers", body);
            match (made, expect) {
                (Ok(_), None) => {}
                (Err(MemoryFault::Feedback(found)), Some(lacking)) => assert_eq!(found, lacking),
                other => panic!("{body:?}: {other:?}"),
            }
        };
        check("Be short.\n\n**Why:** reads diffs\n\n**How to apply:** no summaries", None);
        check("Be short.\n**Why**: x\n**How to apply**: y", None);
        check("Be short.\n## Why\nx\n## How to apply\ny", None);
        check("Be short.\n**How to apply:** y", Some("**Why:**"));
        check("Be short. **Why:** inline\n**How to apply:** y", Some("**Why:**"));
        check("Be short.\n**Why:** x", Some("**How to apply:**"));
        check("Be short.\nWhy not?\nHow to apply: y", Some("**Why:**"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = |text: &str, expect: &str| {
            let error = Memory::parse(text).unwrap_err().to_string();
            assert!(error.contains(expect), "{text:?}: {error}");
        };
        refused("The user writes compilers.", "begin with front matter");
        refused("---\nname: a\n", "does not end");
        refused("---\n---\nx", "no `name`");
        refused("---\nname: a\ntype: user\n---\nx", "no `description`");
        refused("---\nname: a\ndescription: b\n---\nx", "no `type`");
        refused("---\nname: a\ndescription: b\ntype: fact\n---\nx", "`reference`");
        refused("---\nname: ../a\ndescription: b\ntype: user\n---\nx", "no name of a memory");
        refused("---\nname: a\ndescription: b: c\ntype: user\n---\nx", "in quotes");
        refused("---\nname: a\ndescription: b\ntype: user\n---\n \n", "says nothing");
        refused("---\nname: a\ndescription: &d [*d]\ntype: user\n---\nx", "cannot be read");
        let long = "x".repeat(201);
        refused(&format!("---\nname: a\ndescription: {long}\ntype: user\n---\nx"), "201 characters");
        refused(&"x".repeat(MEMORY_BYTES + 1), "split");
    }

    proptest! {
        #[test]
        fn any_memory_is_read_as_it_was_written(
            name in "[a-z0-9][a-z0-9_-]{0,20}",
            kind in proptest::sample::select(MemoryType::ALL.as_slice()),
            description in "\\PC{1,60}|[-:#'\"\\\\&*!?|>{}\\[\\],%@` a1~]{1,12}|null|true|1e3|0x1f|2026-01-01|\\PC{0,5}\u{2028}\\PC{0,5}",
            body in "(\\PC|\n|---\n|\r\n|\t){0,60}",
        ) {
            let (why, how) = ("\n**Why:** w", "\n**How to apply:** h");
            let Ok(name) = MemoryName::new(name) else { return Ok(()) };
            let Ok(memory) = Memory::new(name, kind, &description, &format!("{body}{why}{how}")) else { return Ok(()) };
            let text = memory.render();
            let again = Memory::parse(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
            prop_assert_eq!(&again, &memory);
            prop_assert_eq!(again.render(), text);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(---\r?\n)?(name: [a-z_/-]{0,4}\r?\n|description: \\PC{0,9}\r?\n|type: (user|feedback)\r?\n|\\PC{0,9}\r?\n|---\n){0,7}") {
            if let Ok(memory) = Memory::parse(&text) {
                prop_assert_eq!(Memory::parse(&memory.render()).ok(), Some(memory));
            }
        }
    }
}
