//! The tool that replaces exact text in a file: all edits or none.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{Cancel, ReadExtent};
use agent_tools::Call;
use agent_tools::{Access, Render, SlotsHandle, Tool, ToolConfig, ToolError};
use similar::TextDiff;

use crate::blocking::blocking;
use crate::replace::{Draft, Edit};
use crate::sandbox::{Expect, FileBytes, FileWrite, Fingerprint, Sandbox};
use crate::stamp::{self, Known};
use crate::text::TextFile;
use crate::{built, near, path_subject};

/// Changes text in place; only text that was seen and did not change (requirements T8, T10).
pub fn edit_file(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let place = Arc::clone(&sandbox);
    let edit = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { edit(&*sandbox, &call, input).await }
    };
    let config = ToolConfig::new("edit_file", DESCRIPTION.trim_end(), Access::Edit, edit);
    built(
        config
            .render(Render::Diff)
            .subject_later(move |input: Input| path_subject(Arc::clone(&place), input.path)),
    )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The file, relative to the workspace or absolute inside it.
    path: String,
    /// The replacements, made one after the other; each sees what the ones before it made.
    edits: Vec<Edit>,
}

async fn edit(sandbox: &dyn Sandbox, call: &Call, input: Input) -> Result<String, ToolError> {
    if input.edits.is_empty() {
        return Err(ToolError::failed(
            "There are no edits, so nothing was changed. Give at least one {old, new}.",
        ));
    }
    let file = match sandbox.read(&call.permit, &input.path, LARGEST).await {
        Ok(file) => file,
        Err(error) => return Err(near::explain(sandbox, &call.permit, &call.cx.cancel, error).await.into()),
    };
    let slots = call.cx.slots.clone();
    let work = move |cancel: &Cancel| change(&slots, &file, input, cancel);
    let Change { write, after, seen, diff } = blocking(&call.cx.cancel, work).await??;
    let path = sandbox.write(&call.permit, write).await?;
    stamp::set(&call.cx.slots, &path, &after, seen);
    Ok(diff)
}

/// A change that may be made.
struct Change {
    write: FileWrite,
    after: Fingerprint,
    seen: ReadExtent,
    diff: String,
}

/// Makes the edits on the text alone.
fn change(slots: &SlotsHandle, file: &FileBytes, input: Input, cancel: &Cancel) -> Result<Change, ToolError> {
    let Input { path, edits } = input;
    let print = Fingerprint::of(&file.bytes);
    let (text, mut draft) = start(slots, &path, file, &print)?;
    for (at, edit) in edits.iter().enumerate() {
        if cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        let which =
            if edits.len() == 1 { String::new() } else { format!("Edit {} of {}: ", at + 1, edits.len()) };
        draft
            .apply(edit)
            .map_err(|error| ToolError::failed(format!("{which}{error} Nothing was changed in `{path}`.")))?;
    }
    let (body, seen) = draft.finish();
    if body == text.body {
        return Err(ToolError::failed(format!(
            "The edits cancel each other out, so `{path}` was not changed. Look at what you want to reach and give only the edits for it."
        )));
    }
    let diff = diff(&file.path, &text.body, &body);
    let bytes = TextFile { body, bom: text.bom }.encode();
    let after = Fingerprint::of(&bytes);
    Ok(Change { write: FileWrite { path, bytes, expect: Expect::Same(print) }, after, seen, diff })
}

/// The text to change and what of it was seen.
fn start(
    slots: &SlotsHandle,
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
    let seen: ReadExtent = match stamp::known(slots, &file.path, print) {
        Known::Current(seen) => seen,
        Known::Unread => return Err(ToolError::failed(stamp::unread(path))),
        Known::Stale => return Err(ToolError::failed(stamp::stale(path))),
    };
    let draft = Draft::new(&text.body, &seen);
    Ok((text, draft))
}

/// A unified diff with three lines of context, without the carriage returns of the line endings.
fn diff(path: &str, before: &str, after: &str) -> String {
    // After its time the rest counts as replaced as a whole: longer to read than it might be, and as true.
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(before, after);
    let text =
        diff.unified_diff().context_radius(3).header(&format!("a/{path}"), &format!("b/{path}")).to_string();
    text.replace("\r\n", "\n")
}

const DESCRIPTION: &str = include_str!("../prompt/edit_file.md");
const LARGEST: u64 = 16 * 1024 * 1024;
/// For finding the shortest diff.
const DIFF_TIME: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_of_strange_texts_ends_in_time() {
        // Lines in no order, of which many are equal: there is no short way from one text to the other.
        let text = |seed: u32| {
            let mut state = seed;
            let line = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                format!("{}\n", state >> 28)
            };
            (0..2_000_000).map(line).collect::<String>()
        };
        let (ended, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || ended.send(diff("f", &text(1), &text(2))).unwrap());
        let diff =
            ends.recv_timeout(Duration::from_secs(40)).expect("it does not look for the best for ever");
        assert!(diff.starts_with("--- a/f\n+++ b/f\n@@ "), "{}", &diff[..80]);
    }
}
