//! The tool that finds files by name.

use std::cmp::Reverse;
use std::sync::Arc;

use agent_tools::Call;
use agent_tools::{Access, Tool, ToolConfig, ToolError};

use crate::gaps::Gaps;
use crate::near::HINT_ENTRIES;
use crate::sandbox::{Glob, Sandbox, Skip, Walk, Walked};
use crate::{built, path_subject};

/// Lists files that fit a pattern, newest first (requirement T8).
pub fn glob(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let place = Arc::clone(&sandbox);
    let find = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { find(&*sandbox, &call, &input).await }
    };
    let config = ToolConfig::new("glob", DESCRIPTION.trim_end(), Access::Read, find);
    built(
        config.subject_later(move |input: Input| {
            path_subject(Arc::clone(&place), input.path.unwrap_or_default())
        }),
    )
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
    let walk =
        Walk { start: input.path.clone().unwrap_or_default(), glob: Some(glob), skip, ..Walk::default() };
    let walked = sandbox.walk(&call.permit, walk.clone(), &call.cx.cancel).await?;
    let gaps = Gaps::of_walk(&walked, &walk).words();
    let mut files = walked.files;
    if files.is_empty() {
        let pattern = &input.pattern;
        if walked.more {
            return Ok(format!("No file fits `{pattern}` among those that were looked at{gaps}."));
        }
        let all = Walk { skip: Skip::Nothing, most: walked.entries.saturating_add(HINT_ENTRIES), ..walk };
        let all = sandbox.walk(&call.permit, all, &call.cx.cancel).await?;
        return Ok(nothing(pattern, &all, &gaps));
    }
    // By path where two files are of one moment, so that the order never depends on the disk.
    files.sort_by(|a, b| (Reverse(a.modified), &a.path).cmp(&(Reverse(b.modified), &b.path)));
    let limit = input.limit.unwrap_or(100).clamp(1, MOST);
    let shown = files.iter().take(limit).map(|file| file.path.as_str()).collect::<Vec<_>>().join("\n");
    Ok(match files.len() {
        all if all <= limit => format!("{shown}\n[{all} files, newest first{gaps}]"),
        all => format!(
            "{shown}\n[{limit} of {all} files, newest first; narrow the pattern or the path, or raise limit{gaps}]"
        ),
    })
}

/// An empty result tells apart "there is none" from "not where I looked" (case T06).
fn nothing(pattern: &str, all: &Walked, gaps: &str) -> String {
    let count = all.files.len();
    let at_least = if all.more { "at least " } else { "" };
    match all.files.iter().map(|file| file.path.as_str()).min() {
        Some(first) => format!(
            "No file fits `{pattern}` outside hidden and ignored paths, which were skipped; {at_least}{count} inside them would, for example `{first}`. To list them, name their directory in `path`{gaps}."
        ),
        None if all.more => format!(
            "No file fits `{pattern}` outside hidden and ignored paths. Those hold too many files to look at all of them here; to look in one, name its directory in `path`{gaps}."
        ),
        None => format!(
            "No file fits `{pattern}`, hidden and ignored files included{gaps}. Try a wider pattern such as `**/*name*`."
        ),
    }
}

const DESCRIPTION: &str = include_str!("../prompt/glob.md");
const MOST: usize = 1_000;
