//! The tool that creates a file or replaces one that was read as a whole.

use std::sync::Arc;

use agent_core::{Cancel, ReadExtent};
use agent_tools::Call;
use agent_tools::{Access, SlotsHandle, Tool, ToolConfig, ToolError};

use crate::blocking::blocking;
use crate::sandbox::{Expect, FileBytes, FileWrite, Fingerprint, Sandbox, SandboxError};
use crate::stamp::{self, Known};
use crate::text::{TextFile, count_lines};
use crate::{built, path_subject};

/// Writes a whole file; an existing one only when it was seen whole and did not change (requirements T8, T10).
pub fn write_file(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let place = Arc::clone(&sandbox);
    let write = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { write(&*sandbox, &call, input).await }
    };
    let config = ToolConfig::new("write_file", DESCRIPTION.trim_end(), Access::Edit, write);
    built(config.subject_later(move |input: Input| path_subject(Arc::clone(&place), input.path)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The file, relative to the workspace or absolute inside it. Missing directories are made.
    path: String,
    /// The whole content, written exactly as given.
    content: String,
}

async fn write(sandbox: &dyn Sandbox, call: &Call, input: Input) -> Result<String, ToolError> {
    let existing = match sandbox.read(&call.permit, &input.path, LARGEST).await {
        Ok(file) => Some(file),
        Err(SandboxError::NotFound { .. }) => None,
        Err(other) => return Err(other.into()),
    };
    let done = if existing.is_some() { "Replaced" } else { "Created" };
    let (named, slots) = (input.path.clone(), call.cx.slots.clone());
    let work = move |_: &Cancel| ready(&slots, input, existing.as_ref());
    let Ready { write, print, lines } = blocking(&call.cx.cancel, work).await??;
    let path = sandbox.write(&call.permit, write).await?;
    let bytes = print.len;
    stamp::set(&call.cx.slots, &path, &print, ReadExtent::Full);
    Ok(format!("{done} `{named}`: {lines} lines, {bytes} bytes."))
}

/// A write that may be made.
struct Ready {
    write: FileWrite,
    print: Fingerprint,
    lines: u64,
}

fn ready(slots: &SlotsHandle, input: Input, existing: Option<&FileBytes>) -> Result<Ready, ToolError> {
    let expect = match existing {
        Some(file) => Expect::Same(may_replace(slots, &input.path, file)?),
        None => Expect::Absent,
    };
    let print = Fingerprint::of(input.content.as_bytes());
    let lines = count_lines(&input.content);
    let write = FileWrite { path: input.path, bytes: input.content.into_bytes(), expect };
    Ok(Ready { write, print, lines })
}

/// The content that may be replaced: known in full and unchanged.
fn may_replace(slots: &SlotsHandle, path: &str, file: &FileBytes) -> Result<Fingerprint, ToolError> {
    let now = Fingerprint::of(&file.bytes);
    let refused = match stamp::known(slots, &file.path, &now) {
        Known::Current(ReadExtent::Full) => return Ok(now),
        Known::Stale => stamp::stale(path),
        Known::Current(ReadExtent::Lines(_)) => format!(
            "You have seen only parts of `{path}`, and write_file would replace all of it; nothing was changed. Read the rest with read_file first, or change the part you know with edit_file."
        ),
        Known::Unread => match TextFile::decode(&file.bytes) {
            Ok(_) => stamp::unread(path),
            Err(not) => format!(
                "`{path}` exists and {}, so write_file does not replace it. If it must go, move or delete it with bash first.",
                not.what()
            ),
        },
    };
    Err(ToolError::failed(refused))
}

const DESCRIPTION: &str = include_str!("../prompt/write_file.md");
/// As much as read_file can show, since only that can have been read.
const LARGEST: u64 = 64 * 1024 * 1024;
