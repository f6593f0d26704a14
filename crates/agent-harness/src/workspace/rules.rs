//! The rule files of a place, read from the user's folder, from the workspace and from the managed one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agent_core::Diagnostic;
use agent_prompt::{ImportRefusal, RuleConfig, RuleFiles, RulePath, RuleRoot};

use super::files::{FileText, Folder, Unread};
use super::place::Place;
use crate::SourceError;

/// What was read, and what could not be.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) files: RuleFiles,
    pub(super) problems: Vec<Diagnostic>,
}

/// Folders beside the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct Folders {
    pub(super) user: Option<PathBuf>,
    pub(super) managed: Option<PathBuf>,
}

/// Reads the rule files that `config` names, and what they import. It blocks.
pub(super) fn find(place: &Place, folders: &Folders, config: RuleConfig) -> Result<Found, SourceError> {
    let way = place.way();
    let candidates = config
        .candidates(&way.names)
        .map_err(|refusal| SourceError::new("one of the configured names of rule files", refusal))?;
    let mut reader = Reader::open(place, folders)?;
    if let Some(name) = way.unnamed {
        let why = format!("rule files in {name:?} and below are not read: {UNNAMED}");
        reader.problems.push(Diagnostic { what: "rules".into(), why });
    }
    let mut files = RuleFiles::new(config);
    let mut seen = BTreeSet::new();
    for candidate in candidates {
        let Some(FileText { real, text }) = reader.read(&candidate.path)? else { continue };
        // One file under two names, CLAUDE.md being a link to AGENTS.md, is one file.
        if seen.insert((candidate.path.root(), candidate.layer, real)) {
            files.add(candidate, text);
        }
    }
    loop {
        let wanted = files.wanted();
        if wanted.is_empty() {
            break;
        }
        for path in wanted {
            let text = reader.read(&path)?.map(|file| file.text);
            files.provide(path, text);
        }
    }
    whole_policy(&files)?;
    Ok(Found { files, problems: reader.problems })
}

const UNNAMED: &str = "the name is not UTF-8 or holds a character that their paths cannot; rename the folder";

/// Refuses a managed file that lost a text it imports.
fn whole_policy(files: &RuleFiles) -> Result<(), SourceError> {
    let refused = files.resolve().refused;
    // The text of a cycle is there; only its repetition is not.
    let lost = |import: &&agent_prompt::RefusedImport| {
        import.file.root() == RuleRoot::Managed && import.refusal != ImportRefusal::Cycle
    };
    let Some(import) = refused.iter().find(lost) else { return Ok(()) };
    let what = format!("{}, which line {} of {} imports,", import.target, import.line, import.file);
    Err(SourceError::new(what, import.refusal.clone()))
}

/// Reads below each root.
#[derive(Debug)]
struct Reader {
    roots: BTreeMap<RuleRoot, Folder>,
    problems: Vec<Diagnostic>,
}

impl Reader {
    fn open(place: &Place, folders: &Folders) -> Result<Self, SourceError> {
        let mut reader = Self { roots: BTreeMap::new(), problems: Vec::new() };
        let roots = [
            (RuleRoot::User, folders.user.as_deref()),
            (RuleRoot::Workspace, Some(place.root.as_path())),
            (RuleRoot::Managed, folders.managed.as_deref()),
        ];
        for (root, path) in roots {
            let opened = path.map_or(Ok(None), Folder::open);
            let what = || format!("folder {}", path.unwrap_or(Path::new("")).display());
            if let Some(folder) = reader.settle(root, what, opened)? {
                reader.roots.insert(root, folder);
            }
        }
        Ok(reader)
    }

    fn read(&mut self, path: &RulePath) -> Result<Option<FileText>, SourceError> {
        let Some(folder) = self.roots.get(&path.root()) else { return Ok(None) };
        let read = folder.read(&path.relative());
        self.settle(path.root(), || path.to_string(), read)
    }

    /// A policy must not be left out in silence; anything else is told and left out.
    fn settle<T>(
        &mut self,
        root: RuleRoot,
        what: impl Fn() -> String,
        read: Result<Option<T>, Unread>,
    ) -> Result<Option<T>, SourceError> {
        match read {
            Ok(found) => Ok(found),
            Err(unread) if root == RuleRoot::Managed => Err(SourceError::new(what(), unread)),
            Err(unread) => {
                let why = format!("it is not read: {unread}");
                self.problems.push(Diagnostic { what: format!("rules.{}", what()), why });
                Ok(None)
            }
        }
    }
}
