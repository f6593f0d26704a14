//! What the model sees of memories and notes.

use agent_core::SessionId;
use agent_memory::{MEMORIES, MemoryDir, MemoryFiles, MemoryPath, NOTES_PATH};
use agent_tools::ToolError;

use super::{notes, told};

/// A list or a file, with the lines numbered as read_file does.
pub(super) fn view(
    files: &MemoryFiles,
    session: &SessionId,
    path: &MemoryPath,
    range: Option<&[i64]>,
) -> Result<String, ToolError> {
    let memories = files.memories();
    let text = match path {
        MemoryPath::Directory => return list(memories),
        MemoryPath::Index => memories.index_text().map_err(told)?,
        MemoryPath::Memory(name) => memories.read(name).map_err(told)?,
        MemoryPath::Notes => notes(files, session)?.read().map_err(told)?.ok_or_else(|| {
            ToolError::failed(format!("There are no notes yet. Write them with create on {NOTES_PATH}."))
        })?,
    };
    if text.is_empty() {
        return Ok(format!("{path} is empty."));
    }
    numbered(&text, range)
}

fn list(memories: &MemoryDir) -> Result<String, ToolError> {
    let listing = memories.list().map_err(told)?;
    let mut text = match listing.memories.len() {
        0 => format!("There are no memories yet. Keep one with create on {MEMORIES}/NAME.md.\n"),
        1 => format!("There is 1 memory in {MEMORIES}:\n"),
        count => format!("There are {count} memories in {MEMORIES}:\n"),
    };
    for stored in &listing.memories {
        let memory = &stored.memory;
        text.push_str(&format!("- {} ({}): {}\n", memory.name().file(), memory.kind(), memory.description()));
    }
    for strange in &listing.strange {
        text.push_str(&format!("- {} is no memory: {}\n", strange.file, strange.why));
    }
    Ok(text)
}

fn numbered(text: &str, range: Option<&[i64]>) -> Result<String, ToolError> {
    let lines: Vec<&str> = text.lines().collect();
    let (from, to) = bounds(lines.len(), range)?;
    let shown = lines.iter().zip(1usize..).filter(|(_, number)| (from..=to).contains(number));
    Ok(shown.map(|(line, number)| format!("{number:>6}\t{line}\n")).collect())
}

fn bounds(count: usize, range: Option<&[i64]>) -> Result<(usize, usize), ToolError> {
    let wrong = || {
        ToolError::failed(format!(
            "view_range is two lines from 1 to {count}, the first not behind the last, or -1 for the last line of the file; for example [1, {count}]."
        ))
    };
    let (from, to) = match range {
        None => return Ok((1, count)),
        Some([from, to]) => (*from, *to),
        Some(_) => return Err(wrong()),
    };
    let from = usize::try_from(from).ok().filter(|from| (1..=count).contains(from)).ok_or_else(wrong)?;
    let to = if to == -1 { count } else { usize::try_from(to).map_err(|_| wrong())?.min(count) };
    if from <= to { Ok((from, to)) } else { Err(wrong()) }
}
