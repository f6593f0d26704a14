//! The tool that replaces exact text in a file: all edits or none.

use std::sync::Arc;

use agent_core::ReadExtent;
use agent_tools::config::Call;
use agent_tools::{Access, Tool, ToolConfig, ToolError};
use similar::TextDiff;

use crate::replace::{Draft, Edit};
use crate::sandbox::{Expect, FileBytes, FileWrite, Fingerprint, Sandbox};
use crate::stamp::{self, Known};
use crate::text::TextFile;
use crate::{built, near, path_of};

/// Changes text in place; only text that was seen and did not change (requirements T8, T10).
pub fn edit_file(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let edit = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { edit(&*sandbox, &call, &input).await }
    };
    let config = ToolConfig::new("edit_file", DESCRIPTION.trim_end(), Access::Edit, edit);
    built(config.subject(path_of))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The file, relative to the workspace or absolute inside it.
    path: String,
    /// The replacements, made one after the other; each sees what the ones before it made.
    edits: Vec<Edit>,
}

async fn edit(sandbox: &dyn Sandbox, call: &Call, input: &Input) -> Result<String, ToolError> {
    if input.edits.is_empty() {
        return Err(ToolError::failed(
            "There are no edits, so nothing was changed. Give at least one {old, new}.",
        ));
    }
    let file = match sandbox.read(&call.permit, &input.path, LARGEST).await {
        Ok(file) => file,
        Err(error) => return Err(near::explain(sandbox, &call.permit, &call.cx.cancel, error).await.into()),
    };
    let print = Fingerprint::of(&file.bytes);
    let (text, mut draft) = start(call, &input.path, &file, &print)?;
    for (at, edit) in input.edits.iter().enumerate() {
        let which = if input.edits.len() == 1 {
            String::new()
        } else {
            format!("Edit {} of {}: ", at + 1, input.edits.len())
        };
        draft.apply(edit).map_err(|error| {
            ToolError::failed(format!("{which}{error} Nothing was changed in `{}`.", input.path))
        })?;
    }
    let (body, seen) = draft.finish();
    if body == text.body {
        return Err(ToolError::failed(format!(
            "The edits cancel each other out, so `{}` was not changed. Look at what you want to reach and give only the edits for it.",
            input.path
        )));
    }
    let diff = diff(&file.path, &text.body, &body);
    let bytes = TextFile { body, bom: text.bom }.encode();
    let after = Fingerprint::of(&bytes);
    let write = FileWrite { path: input.path.clone(), bytes, expect: Expect::Same(print) };
    let path = sandbox.write(&call.permit, write).await?;
    stamp::set(&call.cx.slots, &path, &after, seen);
    Ok(diff)
}

/// The text to change and what of it was seen.
fn start(
    call: &Call,
    path: &str,
    file: &FileBytes,
    print: &Fingerprint,
) -> Result<(TextFile, Draft), ToolError> {
    let text = TextFile::decode(&file.bytes).map_err(|not| {
        ToolError::failed(format!(
            "`{path}` {}, so it cannot be edited as text. Change it with bash, or convert it first.",
            not.what()
        ))
    })?;
    let seen: ReadExtent = match stamp::known(&call.cx.slots, &file.path, print) {
        Known::Current(seen) => seen,
        Known::Unread => return Err(ToolError::failed(stamp::unread(path))),
        Known::Stale => return Err(ToolError::failed(stamp::stale(path))),
    };
    let draft = Draft::new(&text.body, &seen);
    Ok((text, draft))
}

/// A unified diff with three lines of context, without the carriage returns of the line endings.
fn diff(path: &str, before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let text =
        diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string();
    text.replace("\r\n", "\n")
}

const DESCRIPTION: &str = include_str!("../prompt/edit_file.md");
const LARGEST: u64 = 16 * 1024 * 1024;
