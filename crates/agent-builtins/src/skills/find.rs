//! Reading folders of skills, each through a handle that nothing leads out of.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

use super::front::Written;
use super::{SKILL_BYTES, Skill, SkillError, SkillSource, SkippedSkill};

/// A folder of skills that is open.
struct Shelf {
    dir: Dir,
    /// Where it is: relative to the workspace when it lies in it.
    path: PathBuf,
    in_workspace: bool,
}

/// Other files of a skill, as far as they are listed.
#[derive(Default)]
struct Beside {
    files: Vec<String>,
    more: bool,
}

const FILE: &str = "SKILL.md";
/// Most entries of a folder of skills.
const ENTRIES: usize = 256;
/// Most other files of a skill that the model is told of.
const FILES: usize = 50;
/// Most entries of a skill's folders that are looked at for them.
const LOOKED_AT: usize = 1_000;
/// Folders below a skill's own that are looked into.
const DEPTH: usize = 3;

/// The skills of the sources in their order, each with its folder; within a source by the names of the folders.
pub(super) fn look(
    workspace: &Path,
    sources: &[SkillSource],
    skipped: &mut Vec<SkippedSkill>,
) -> Vec<(Skill, String)> {
    let mut found = Vec::new();
    for source in sources {
        let given = match source {
            SkillSource::Workspace(path) | SkillSource::Folder(path) => path,
        };
        match Shelf::open(workspace, source) {
            Ok(Some(shelf)) => shelf.read(&mut found, skipped),
            Ok(None) => {}
            Err(why) => skipped.push(SkippedSkill { path: given.display().to_string(), why }),
        }
    }
    found
}

impl Shelf {
    /// `None` when there is no such folder.
    fn open(workspace: &Path, source: &SkillSource) -> Result<Option<Self>, SkillError> {
        let opened = match source {
            SkillSource::Workspace(below) => Self::within(workspace, below),
            SkillSource::Folder(path) => Self::at(workspace, path),
        };
        match opened {
            Ok(shelf) => Ok(Some(shelf)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    fn within(workspace: &Path, below: &Path) -> io::Result<Self> {
        let root = Dir::open_ambient_dir(workspace, ambient_authority())?;
        Ok(Self { dir: root.open_dir(below)?, path: below.to_owned(), in_workspace: true })
    }

    fn at(workspace: &Path, path: &Path) -> io::Result<Self> {
        let real = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
        let inside =
            workspace.canonicalize().ok().and_then(|root| real.strip_prefix(root).ok().map(Path::to_owned));
        let in_workspace = inside.is_some();
        Ok(Self { dir, path: inside.unwrap_or(real), in_workspace })
    }

    fn read(&self, found: &mut Vec<(Skill, String)>, skipped: &mut Vec<SkippedSkill>) {
        let mut skip =
            |path: &Path, why| skipped.push(SkippedSkill { path: path.display().to_string(), why });
        let (names, more) = match names(&self.dir, ENTRIES) {
            Ok(names) => names,
            Err(error) => return skip(&self.path, failed(error)),
        };
        if more {
            skip(&self.path, SkillError::Crowded { most: ENTRIES });
        }
        for name in names {
            let path = self.path.join(&name);
            match self.skill(Path::new(&name), &path) {
                Ok(Some(skill)) => found.push((skill, path.display().to_string())),
                Ok(None) => {}
                Err(why) => skip(&path, why),
            }
        }
    }

    /// `None` when the entry is no folder.
    fn skill(&self, name: &Path, path: &Path) -> Result<Option<Skill>, SkillError> {
        // A link to a folder is one; where it leads out, opening it says so.
        let meta = self.dir.symlink_metadata(name)?;
        if !meta.is_dir() && !meta.is_symlink() {
            return Ok(None);
        }
        let dir = match self.dir.open_dir(name) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let Written { name, description, body } = Written::read(&text(&dir)?)?;
        let folder = plain(path).ok_or(SkillError::Unnamed)?;
        let mut beside = Beside::default();
        beside.look(&dir)?;
        let Beside { files, more } = beside;
        let in_workspace = self.in_workspace;
        Ok(Some(Skill { name, description, body, folder, files, more_files: more, in_workspace }))
    }
}

impl Beside {
    /// Looks folder by folder, each in the order of names, so that what is listed of too many is always the same.
    fn look(&mut self, skill: &Dir) -> io::Result<()> {
        let mut waiting = vec![(skill.try_clone()?, PathBuf::new(), 0)];
        let mut left = LOOKED_AT;
        while let Some((dir, below, depth)) = waiting.pop() {
            let (names, more) = names(&dir, left)?;
            self.more |= more;
            left -= names.len();
            for name in names {
                let path = below.join(&name);
                let kind = dir.symlink_metadata(&name)?;
                if kind.is_file() {
                    self.take(&path);
                } else if kind.is_dir() && depth < DEPTH {
                    // A link put there meanwhile is not followed.
                    waiting.push((dir.open_dir_nofollow(&name)?, path, depth + 1));
                } else {
                    self.more |= kind.is_dir();
                }
            }
        }
        self.files.sort();
        self.more |= self.files.len() > FILES;
        self.files.truncate(FILES);
        Ok(())
    }

    /// A name that cannot be written is not told.
    fn take(&mut self, path: &Path) {
        self.files.extend(plain(path).filter(|path| path != FILE));
    }
}

/// Names that are not hidden, sorted, at most so many; and whether there are more.
fn names(dir: &Dir, most: usize) -> io::Result<(Vec<PathBuf>, bool)> {
    let mut names = Vec::new();
    for entry in dir.entries()? {
        let name = entry?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            names.push(PathBuf::from(name));
        }
    }
    names.sort();
    let more = names.len() > most;
    names.truncate(most);
    Ok((names, more))
}

/// The text of a skill's file. Links are followed inside its folder.
fn text(skill: &Dir) -> Result<String, SkillError> {
    let real = match skill.canonicalize(FILE) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(SkillError::NoFile),
        Err(error) => return Err(failed(error)),
    };
    let mut options = OpenOptions::new();
    // A link put there meanwhile is not followed, and a pipe does not block.
    let file = skill
        .open_with(&real, options.read(true).nonblock(true).follow(FollowSymlinks::No))
        .map_err(failed)?;
    if !file.metadata()?.is_file() {
        return Err(SkillError::NotAFile);
    }
    let mut bytes = Vec::new();
    file.take(SKILL_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SKILL_BYTES {
        return Err(SkillError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| SkillError::NotUtf8 { at: error.utf8_error().valid_up_to() })
}

/// The system's own refusal has a number; one without was made by the confinement.
fn failed(error: io::Error) -> SkillError {
    let is_confined = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
    if is_confined { SkillError::Outside } else { error.into() }
}

/// A path that may stand in a prompt.
fn plain(path: &Path) -> Option<String> {
    path.to_str().filter(|path| !path.contains(char::is_control)).map(str::to_owned)
}
