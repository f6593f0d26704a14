//! The tool that searches the text of files.

use std::fmt::Write as _;
use std::sync::Arc;

use agent_core::floor_boundary;
use agent_tools::Call;
use agent_tools::{Access, Tool, ToolConfig, ToolError};

use crate::gaps::Gaps;
use crate::near::HINT_ENTRIES;
use crate::sandbox::{Found, FoundLine, Glob, Role, Sandbox, Search, Skip, Walk, Walked};
use crate::{built, path_subject};

/// Searches with ripgrep's libraries, in the order of paths (requirement T8).
pub fn grep(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let place = Arc::clone(&sandbox);
    let search = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { search(&*sandbox, &call, &input).await }
    };
    let config = ToolConfig::new("grep", DESCRIPTION.trim_end(), Access::Read, search);
    built(
        config.subject_later(move |input: Input| {
            path_subject(Arc::clone(&place), input.path.unwrap_or_default())
        }),
    )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// A regular expression in Rust's syntax, matched line by line.
    pattern: String,
    /// The directory or file to search. Default: the whole workspace.
    path: Option<String>,
    /// Only files that fit this pattern, for example `*.rs` or `src/**/*.ts`.
    glob: Option<String>,
    /// Whether upper and lower case are the same. Default false.
    #[serde(default)]
    ignore_case: bool,
    /// Whether the pattern is plain text, not a regular expression. Default false.
    #[serde(default)]
    literal: bool,
    /// Lines to show before and after each match, at most 20. Default 0. Only for output `content`.
    #[serde(default)]
    context: usize,
    /// What to show: the paths of files with a match (`files`, the default), the matching lines (`content`) or the
    /// number of matching lines in each file (`count`).
    #[serde(default)]
    output: Output,
    /// How many matching lines or files to show in all, at most 1000. Default 100.
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Output {
    #[default]
    Files,
    Content,
    Count,
}

async fn search(sandbox: &dyn Sandbox, call: &Call, input: &Input) -> Result<String, ToolError> {
    if input.pattern.is_empty() {
        return Err(ToolError::failed(
            "The pattern is empty and would match every line. Give the text to look for; to list files use glob.",
        ));
    }
    let glob = input.glob.as_deref().map(Glob::new).transpose()?;
    let hidden = glob.as_ref().is_some_and(Glob::names_hidden);
    let skip = if hidden { Skip::Ignored } else { Skip::HiddenAndIgnored };
    let limit = input.limit.unwrap_or(100).clamp(1, MOST);
    let search = Search {
        walk: Walk { start: input.path.clone().unwrap_or_default(), glob, skip, ..Walk::default() },
        pattern: input.pattern.clone(),
        literal: input.literal,
        ignore_case: input.ignore_case,
        context: input.context.min(20),
        keep: if input.output == Output::Content { limit } else { 0 },
    };
    let walk = search.walk.clone();
    let found = sandbox.search(&call.permit, search, &call.cx.cancel).await?;
    let gaps = Gaps::of_search(&found, &walk).words();
    if found.files.is_empty() {
        let skipped = if found.more {
            None
        } else {
            let most = found.listed.saturating_mul(2).saturating_add(HINT_ENTRIES);
            let all = Walk { skip: Skip::Nothing, most, ..walk };
            Some(sandbox.walk(&call.permit, all, &call.cx.cancel).await?)
        };
        let skipped = skipped.map_or_else(String::new, |all| skipped_words(&all, found.listed));
        return Ok(nothing(&input.pattern, found.searched, &gaps, &skipped));
    }
    Ok(match input.output {
        Output::Content => content(&found, limit, &gaps),
        Output::Files => listing(&found, limit, &gaps, |(path, _)| path.clone()),
        Output::Count => listing(&found, limit, &gaps, |(path, count)| format!("{path}: {count}")),
    })
}

fn content(found: &Found, limit: usize, gaps: &str) -> String {
    let mut text = String::new();
    let mut last: Option<&FoundLine> = None;
    let spread = found.lines.iter().any(|line| line.role != Role::Match);
    for line in &found.lines {
        let joined = last.is_some_and(|last| last.path == line.path && last.number + 1 == line.number);
        if spread && last.is_some() && !joined {
            text.push_str("--\n");
        }
        let mark = if line.role == Role::Match { ':' } else { '-' };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}{mark}{}{mark}{}", line.path, line.number, clip(line));
        last = Some(line);
    }
    let shown = found.lines.iter().filter(|line| line.role == Role::Match).count();
    let total: u64 = found.files.iter().map(|(_, count)| count).sum();
    let files = found.files.len();
    let cut = if (shown as u64) < total { format!("the first {limit} of ") } else { String::new() };
    let more = if cut.is_empty() { "" } else { "; narrow the pattern, the path or the glob, or raise limit" };
    format!("{text}[{cut}{total} matching lines in {files} files{gaps}{more}]")
}

fn listing(found: &Found, limit: usize, gaps: &str, show: impl Fn(&(String, u64)) -> String) -> String {
    let shown = found.files.iter().take(limit).map(show).collect::<Vec<_>>().join("\n");
    let total: u64 = found.files.iter().map(|(_, count)| count).sum();
    let files = found.files.len();
    let (cut, more) = match files > limit {
        true => {
            (format!("the first {limit} of "), "; narrow the pattern, the path or the glob, or raise limit")
        }
        false => (String::new(), ""),
    };
    format!("{shown}\n[{cut}{files} files with {total} matching lines{gaps}{more}]")
}

/// An empty result says where nobody looked (case T06).
fn nothing(pattern: &str, searched: u64, gaps: &str, skipped: &str) -> String {
    format!(
        "No line matches `{pattern}` in the {searched} files searched{gaps}.{skipped} If you expected one, try ignore_case, a shorter pattern, or literal for text with special characters."
    )
}

/// Files that only a walk over everything lists; as many at least, when that walk stopped at its bound.
fn skipped_words(all: &Walked, listed: u64) -> String {
    let name = "to search them, name their directory in `path`.";
    match (all.files.len() as u64).saturating_sub(listed) {
        0 if all.more => format!(" Hidden or ignored paths were not searched; {name}"),
        0 => String::new(),
        count => {
            let at_least = if all.more { "At least " } else { "" };
            format!(" {at_least}{count} files in hidden or ignored paths were not searched; {name}")
        }
    }
}

/// A line cut to what helps to recognise it.
fn clip(line: &FoundLine) -> String {
    let end = floor_boundary(&line.text, LINE_BYTES);
    match (line.text.len() - end) as u64 + line.left_out {
        0 => line.text.clone(),
        cut => format!("{} [… {cut} bytes of this line left out]", &line.text[..end]),
    }
}

const DESCRIPTION: &str = include_str!("../prompt/grep.md");
const MOST: usize = 1_000;
const LINE_BYTES: usize = 500;
