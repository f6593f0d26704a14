//! The skills of a run: of folders named on the command line, of the workspace and of its user.

use std::path::Path;

use agent::{SkillSource, Skills};

use crate::args::SkillArgs;
use crate::env;
use crate::error::CliError;

/// Where skills are: below a workspace.
const PROJECT: &str = ".agent/skills";
/// Where they are in the folder of the user's settings.
const USER: &str = "skills";

/// Reads the skills. Those of a workspace need no trust, as its rule files need none: they are words to the model and
/// allow nothing. `bare` leaves out what is not named.
pub(crate) fn find(workspace: &Path, args: &SkillArgs, bare: bool) -> Result<Skills, CliError> {
    let mut sources = Vec::new();
    for folder in &args.skills {
        // A folder that somebody names is there, or its name is wrong.
        folder.read_dir().map_err(|cause| CliError::Given { path: folder.clone(), cause, give: GIVE })?;
        sources.push(SkillSource::Folder(folder.clone()));
    }
    if !bare {
        sources.push(SkillSource::Workspace(PROJECT.into()));
        sources.extend(env::config_dir().map(|folder| SkillSource::Folder(folder.join(USER))));
    }
    Ok(Skills::find(workspace, &sources))
}

const GIVE: &str = "a folder that holds a folder with a SKILL.md for each skill";
