//! Why a skill is left out, in words for who wrote it.

use std::fmt;
use std::io;

use super::front::{DESCRIPTION_CHARS, NAME_CHARS};
use super::{LISTING_BYTES, SKILL_BYTES, SKILLS};

/// A folder that gives no skill.
#[derive(Debug)]
#[non_exhaustive]
pub struct SkippedSkill {
    /// The folder, relative to the workspace when it lies in it.
    pub path: String,
    /// What is wrong with it.
    pub why: SkillError,
}

/// What is wrong with a skill.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// A folder without the file.
    #[error("it has no SKILL.md; put the instructions into a file of exactly this name")]
    NoFile,
    /// A link that leads elsewhere.
    #[error("a link leads out of it; put the files themselves there")]
    Outside,
    /// A folder, a pipe or a device.
    #[error("its SKILL.md is not a regular file; put the text into a file of this name")]
    NotAFile,
    /// A file that is no instructions any more.
    #[error(
        "its SKILL.md has more than {SKILL_BYTES} bytes; keep what is always needed, and move the rest to files beside it that it names"
    )]
    TooLarge,
    /// Another encoding.
    #[error("byte {at} of its SKILL.md is not UTF-8; save it as UTF-8")]
    NotUtf8 {
        /// The first such byte, counted from 0.
        at: usize,
    },
    /// A folder or a file that cannot be read.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A name of a folder that cannot be shown to the model.
    #[error("its path is not UTF-8 or holds control characters; rename it")]
    Unnamed,
    /// Text without front matter.
    #[error(
        "its SKILL.md does not begin with front matter: a line `---`, then `name: ...` and `description: ...`, then a line `---`, then the instructions"
    )]
    NoFront,
    /// Front matter without an end.
    #[error("its front matter does not end; put a line `---` between it and the instructions")]
    OpenFront,
    /// Front matter that is not YAML, or has other types.
    #[error(
        "its front matter cannot be read: {0} (lines are counted from behind the first `---`). Write `name: ...` and `description: ...`, and put the text in quotes when it holds a colon or begins with a special character"
    )]
    Yaml(#[source] serde_yaml_ng::Error),
    /// No name.
    #[error("its front matter has no `name`; write `name: ...` with lower-case letters, digits and hyphens")]
    NoName,
    /// A name that the model could not be trusted to write.
    #[error(
        "{name:?} is no name of a skill; use at most {NAME_CHARS} lower-case letters and digits, in groups with one hyphen between them"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// No description.
    #[error(
        "its front matter has no `description`; say in a sentence what the skill does and when to use it"
    )]
    NoDescription,
    /// A description that costs too much.
    #[error(
        "its description has {chars} characters and may have {DESCRIPTION_CHARS}: it is part of every request; move details to the instructions"
    )]
    LongDescription {
        /// How many it has.
        chars: usize,
    },
    /// Nothing to load.
    #[error("it has no instructions; write them below the front matter")]
    NoInstructions,
    /// A name that another skill has.
    #[error("the skill of {by} is called `{name}` too and comes first; rename one of them, or remove it")]
    Taken {
        /// The name.
        name: String,
        /// The folder of the one that was taken.
        by: String,
    },
    /// Too many of them.
    #[error("there are {SKILLS} skills already; remove those that are not used")]
    TooMany,
    /// A list that costs too much.
    #[error(
        "names and descriptions have {LISTING_BYTES} bytes already, and they are part of every request; shorten descriptions, or remove skills that are not used"
    )]
    ListFull,
    /// A folder of skills with far too much in it.
    #[error("it has more than {most} entries; those whose names come first in it are looked at")]
    Crowded {
        /// How many are looked at.
        most: usize,
    },
}

impl fmt::Display for SkippedSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skill {} is left out: {}", self.path, self.why)
    }
}
