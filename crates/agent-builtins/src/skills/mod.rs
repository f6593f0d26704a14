//! Skills: folders with instructions for one kind of task, listed in short and loaded when they are needed.

mod error;
mod find;
mod front;
mod tool;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use error::{SkillError, SkippedSkill};
pub(crate) use front::is_name;
pub use tool::load_skill;

/// The skills that an agent has (requirement T8), read once.
///
/// A skill is a folder with a file `SKILL.md`: YAML front matter with `name` and `description`, then instructions in
/// Markdown. The model is told names and descriptions ([`Skills::listing`]) and asks for the rest with [`load_skill`].
///
/// All is read when the agent is put together, and not again: what a session was told of stays what it can load, a step
/// that is played again loads the same text, and no file is read behind the back of permissions. A file that changes
/// later is seen by the next process.
///
/// Skills are in the order of their names, whatever the order of their folders on disk, so that the list has the same
/// bytes in every session (requirement A1). What cannot be taken is left out and told ([`Skills::skipped`]); it never
/// keeps the others away.
///
/// ```
/// use agent_builtins::{SkillSource, Skills, load_skill};
///
/// let workspace = tempfile::tempdir()?;
/// let folder = workspace.path().join(".agent/skills/release");
/// std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("SKILL.md"), "---\nname: release\ndescription: Use it to publish.\n---\nTag first.")?;
///
/// let skills = Skills::find(workspace.path(), &[SkillSource::Workspace(".agent/skills".into())]);
/// assert!(skills.listing().unwrap().ends_with("\n- release: Use it to publish."));
/// assert!(load_skill(&skills).is_some());
/// assert!(load_skill(&Skills::default()).is_none(), "no tool where there is nothing to load");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Skills {
    /// Invariant: sorted by name, no name twice.
    found: Arc<[Skill]>,
    skipped: Arc<[SkippedSkill]>,
}

/// A folder whose folders are skills.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a folder is reached through the workspace, or it is not")]
pub enum SkillSource {
    /// A folder below the workspace. No link leads out of the workspace, so that who wrote a project cannot have other
    /// files of its user read.
    Workspace(PathBuf),
    /// A folder that the user or the program chose.
    Folder(PathBuf),
}

/// One skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// What the model calls it: lower-case letters and digits, in groups with a hyphen between them.
    pub name: String,
    /// What it is for and when to use it, on one line.
    pub description: String,
    /// The instructions, in Markdown.
    pub body: String,
    /// Its folder: relative to the workspace when it lies in it, else absolute.
    pub folder: String,
    /// Its other files, relative to its folder, sorted; hidden ones and links are left out.
    pub files: Vec<String>,
    /// Whether there are more files than are listed.
    pub more_files: bool,
    /// Whether it lies in the workspace, where tools that read files reach it.
    pub in_workspace: bool,
}

/// Most bytes of a `SKILL.md`.
pub const SKILL_BYTES: u64 = 64 * 1024;
/// Most skills of an agent.
pub const SKILLS: usize = 64;
/// Most bytes of names and descriptions together: they are part of every request.
pub const LISTING_BYTES: usize = 16 * 1024;

impl Skills {
    /// Reads the skills of these sources. Of two with one name the one of the earlier source is taken, within a source the
    /// one whose folder comes first. A source that is not there has none. It blocks.
    pub fn find(workspace: &Path, sources: &[SkillSource]) -> Self {
        let mut found: Vec<Skill> = Vec::new();
        let mut skipped = Vec::new();
        let mut listed = 0;
        for (skill, path) in find::look(workspace, sources, &mut skipped) {
            let line = skill.line().len();
            let why = match found.iter().find(|other| other.name == skill.name) {
                Some(other) => SkillError::Taken { name: skill.name, by: other.folder.clone() },
                None if found.len() == SKILLS => SkillError::TooMany,
                None if listed + line > LISTING_BYTES => SkillError::ListFull,
                None => {
                    listed += line;
                    found.push(skill);
                    continue;
                }
            };
            skipped.push(SkippedSkill { path, why });
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Self { found: found.into(), skipped: skipped.into() }
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.found.iter()
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.found.binary_search_by(|skill| skill.name.as_str().cmp(name)).ok().map(|at| &self.found[at])
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// What was left out and why, for the person who wrote it.
    pub fn skipped(&self) -> &[SkippedSkill] {
        &self.skipped
    }

    /// Names and descriptions in the words of a prompt; `None` when there are no skills.
    ///
    /// It belongs into the system prompt of a session, as a fragment that is fixed for the session, and not into the
    /// description of the tool: some providers refuse a description of more than 1,024 characters.
    pub fn listing(&self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let lines: String = self.iter().map(Skill::line).collect();
        Some(format!("{}{lines}", LISTING.trim_end()))
    }
}

impl Skill {
    fn line(&self) -> String {
        format!("\n- {}: {}", self.name, self.description)
    }
}

const LISTING: &str = include_str!("../../prompt/skills.md");
