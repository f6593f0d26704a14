//! The tool that finds files by name.

use std::cmp::Reverse;
use std::sync::Arc;

use agent_core::RawJson;
use agent_tools::config::Call;
use agent_tools::{Access, Tool, ToolConfig, ToolError};

use crate::built;
use crate::sandbox::{Glob, Sandbox, Skip, Walk, WalkedFile};

/// Lists files that fit a pattern, newest first (requirement T8).
pub fn glob(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let find = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { find(&*sandbox, &call, &input).await }
    };
    let config = ToolConfig::new("glob", DESCRIPTION.trim_end(), Access::Read, find);
    built(config.subject(|input: &RawJson| input.to::<Input>().ok().map(|input| input.pattern)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The pattern, relative to `path`: `*` within a name, `**/` for any directories, `{a,b}` for alternatives. One
    /// without `/` fits file names in every directory.
    pattern: String,
    /// The directory to look in. Default: the whole workspace.
    path: Option<String>,
    /// How many paths to list, at most 1000. Default 100.
    limit: Option<usize>,
}

async fn find(sandbox: &dyn Sandbox, call: &Call, input: &Input) -> Result<String, ToolError> {
    let glob = Glob::new(&input.pattern)?;
    let skip = if glob.names_hidden() { Skip::Ignored } else { Skip::HiddenAndIgnored };
    let walk = Walk { start: input.path.clone().unwrap_or_default(), glob: Some(glob), skip };
    let mut files = sandbox.walk(&call.permit, walk.clone(), &call.cx.cancel).await?.files;
    if files.is_empty() {
        let all = Walk { skip: Skip::Nothing, ..walk };
        let skipped = sandbox.walk(&call.permit, all, &call.cx.cancel).await?.files;
        return Ok(nothing(&input.pattern, &skipped));
    }
    // By path where two files are of one moment, so that the order never depends on the disk.
    files.sort_by(|a, b| (Reverse(a.modified), &a.path).cmp(&(Reverse(b.modified), &b.path)));
    let limit = input.limit.unwrap_or(100).clamp(1, MOST);
    let shown = files.iter().take(limit).map(|file| file.path.as_str()).collect::<Vec<_>>().join("\n");
    Ok(match files.len() {
        all if all <= limit => format!("{shown}\n[{all} files, newest first]"),
        all => format!(
            "{shown}\n[{limit} of {all} files, newest first; narrow the pattern or the path, or raise limit]"
        ),
    })
}

/// An empty result tells apart "there is none" from "not where I looked" (case T06).
fn nothing(pattern: &str, skipped: &[WalkedFile]) -> String {
    let mut paths: Vec<&str> = skipped.iter().map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    match paths.as_slice() {
        [] => format!(
            "No file fits `{pattern}`, hidden and ignored files included. Try a wider pattern such as `**/*name*`."
        ),
        [first, ..] => format!(
            "No file fits `{pattern}` outside hidden and ignored paths, which were skipped; {} inside them would, for example `{first}`. To list them, name their directory in `path`.",
            paths.len()
        ),
    }
}

const DESCRIPTION: &str = include_str!("../prompt/glob.md");
const MOST: usize = 1_000;
