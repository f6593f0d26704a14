//! The tool that reads and writes memories and the notes of the session.

mod edit;
mod show;

use std::sync::Arc;

use agent_core::{Cancel, SessionId};
use agent_memory::{
    INDEX_FILE, MEMORIES, MEMORY_TOOL, MemoryDir, MemoryError, MemoryFiles, MemoryName, MemoryPath,
    NOTES_PATH, NotesFile, Written,
};
use agent_tools::{Access, Call, Subject, Tool, ToolConfig, ToolError};

use crate::blocking::blocking;
use crate::built;
use edit::{insert, replace};

/// Reads and writes memories, and the notes of the session where notes are kept (requirements T8 and C4).
///
/// It can reach nothing else, so like the todo list it asks nobody by itself. Rules look at the path, such as
/// `memory(/memories/*)`; for a rename at both, so that a rule that refuses one of them refuses it, and a rule that allows
/// names neither alone.
pub fn memory(files: MemoryFiles) -> Arc<dyn Tool> {
    let run = move |call: Call, input: Input| {
        let files = files.clone();
        async move {
            let session = call.cx.session.clone();
            let work = move |_: &Cancel| run(&files, &session, input);
            blocking(&call.cx.cancel, work).await?
        }
    };
    let config = ToolConfig::new(MEMORY_TOOL, DESCRIPTION.trim_end(), Access::Session, run);
    built(config.subject(|input: Input| input.subject()))
}

/// The shape that models know: a flat object, where each command has fields of its own.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// What to do.
    command: Command,
    /// The file: /memories/NAME.md, or /session/notes.md. For view also /memories and /memories/MEMORY.md. For all commands
    /// but rename.
    path: Option<String>,
    /// For view: the first and the last line to show, counted from 1; -1 is the last line of the file.
    view_range: Option<Vec<i64>>,
    /// For create: the whole file.
    file_text: Option<String>,
    /// For str_replace: the text to replace, exactly as it stands in the file. It must occur once.
    old_str: Option<String>,
    /// For str_replace: the text to put there; without it the old text is taken out.
    new_str: Option<String>,
    /// For insert: the line behind which to insert; 0 is the beginning.
    insert_line: Option<u64>,
    /// For insert: the text to put there.
    insert_text: Option<String>,
    /// For rename: the file as it is called now.
    old_path: Option<String>,
    /// For rename: the file as it shall be called.
    new_path: Option<String>,
}

#[derive(Debug, Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Command {
    View,
    Create,
    StrReplace,
    Insert,
    Delete,
    Rename,
}

/// What an input asks for, with the fields that its command needs.
enum Task {
    View(MemoryPath, Option<Vec<i64>>),
    Create(MemoryPath, String),
    Replace(MemoryPath, String, String),
    Insert(MemoryPath, u64, String),
    Delete(MemoryPath),
    Rename(MemoryPath, MemoryPath),
}

/// What can be written.
enum Place<'f> {
    Memory(&'f MemoryDir, MemoryName),
    Notes(NotesFile),
}

impl Input {
    fn subject(&self) -> Subject {
        if let (Command::Rename, Some(from), Some(to)) = (self.command, &self.old_path, &self.new_path) {
            return Subject::Text(format!("{{\"from\":{},\"to\":{}}}", quoted(from), quoted(to)));
        }
        Subject::Text(self.path.clone().unwrap_or_default())
    }

    fn task(self) -> Result<Task, ToolError> {
        let path = |name| parsed(&given(name, "path", self.path)?);
        match self.command {
            Command::View => Ok(Task::View(path("view")?, self.view_range)),
            Command::Create => {
                Ok(Task::Create(path("create")?, given("create", "file_text", self.file_text)?))
            }
            Command::StrReplace => {
                let old = given("str_replace", "old_str", self.old_str)?;
                Ok(Task::Replace(path("str_replace")?, old, self.new_str.unwrap_or_default()))
            }
            Command::Insert => {
                let line = given("insert", "insert_line", self.insert_line)?;
                Ok(Task::Insert(path("insert")?, line, given("insert", "insert_text", self.insert_text)?))
            }
            Command::Delete => Ok(Task::Delete(path("delete")?)),
            Command::Rename => {
                let from = parsed(&given("rename", "old_path", self.old_path)?)?;
                Ok(Task::Rename(from, parsed(&given("rename", "new_path", self.new_path)?)?))
            }
        }
    }
}

fn run(files: &MemoryFiles, session: &SessionId, input: Input) -> Result<String, ToolError> {
    let (done, path, written) = match input.task()? {
        Task::View(path, range) => return show::view(files, session, &path, range.as_deref()),
        Task::Rename(from, to) => return rename(files.memories(), &from, &to),
        Task::Create(path, text) => {
            let written = create(&place(files, session, &path)?, &text)?;
            ("Created", path, written)
        }
        Task::Replace(path, old, new) => {
            let written = change(&place(files, session, &path)?, &|text| replace(text, &old, &new))?;
            ("Changed", path, written)
        }
        Task::Insert(path, line, new) => {
            let written = change(&place(files, session, &path)?, &|text| insert(text, line, &new))?;
            ("Changed", path, written)
        }
        Task::Delete(path) => {
            let written = delete(&place(files, session, &path)?)?;
            ("Deleted", path, Some(written))
        }
    };
    Ok(format!("{done} {path}.{}", written.as_ref().map(beside).unwrap_or_default()))
}

fn create(place: &Place<'_>, text: &str) -> Result<Option<Written>, ToolError> {
    match place {
        Place::Memory(memories, name) => match memories.create(name, text) {
            Ok(written) => Ok(Some(written)),
            Err(MemoryError::Exists(_)) => Err(ToolError::failed(format!(
                "There is a file {MEMORIES}/{} already, so nothing was written. View it, then change it with str_replace or insert; or choose another name.",
                name.file()
            ))),
            Err(other) => Err(told(other)),
        },
        Place::Notes(notes) => notes.write(text).map(|()| None).map_err(told),
    }
}

fn change(
    place: &Place<'_>,
    edit: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Option<Written>, ToolError> {
    let edit = |text: &str| edit(text).map_err(MemoryError::Refused);
    let done = match place {
        Place::Memory(memories, name) => memories.edit(name, edit).map(Some),
        Place::Notes(notes) => {
            let missing = || {
                MemoryError::Refused(format!(
                    "There are no notes yet. Write them with create on {NOTES_PATH}."
                ))
            };
            notes.change(|text| edit(text.ok_or_else(missing)?)).map(|()| None)
        }
    };
    done.map_err(told)
}

fn delete(place: &Place<'_>) -> Result<Written, ToolError> {
    match place {
        Place::Memory(memories, name) => memories.remove(name).map_err(told),
        Place::Notes(_) => Err(ToolError::failed(format!(
            "The notes of the session go when the session goes, and are not deleted before. To begin them anew, create {NOTES_PATH} with other text."
        ))),
    }
}

fn rename(memories: &MemoryDir, from: &MemoryPath, to: &MemoryPath) -> Result<String, ToolError> {
    let (MemoryPath::Memory(old), MemoryPath::Memory(new)) = (from, to) else {
        return Err(ToolError::failed(format!(
            "Only memories are renamed, to other memories: give old_path and new_path as {MEMORIES}/NAME.md."
        )));
    };
    let written = memories.rename(old, new).map_err(told)?;
    Ok(format!("Renamed {from} to {to}.{}", beside(&written)))
}

fn place<'f>(files: &'f MemoryFiles, session: &SessionId, path: &MemoryPath) -> Result<Place<'f>, ToolError> {
    match path {
        MemoryPath::Memory(name) => Ok(Place::Memory(files.memories(), name.clone())),
        MemoryPath::Notes => notes(files, session).map(Place::Notes),
        MemoryPath::Index => Err(ToolError::failed(format!(
            "{MEMORIES}/{INDEX_FILE} is kept for you: each memory has its line there, made of its name and description. Change the memory itself at {MEMORIES}/NAME.md."
        ))),
        MemoryPath::Directory => Err(ToolError::failed(format!(
            "{MEMORIES} is the directory. Name a file in it: {MEMORIES}/NAME.md."
        ))),
    }
}

fn notes(files: &MemoryFiles, session: &SessionId) -> Result<NotesFile, ToolError> {
    files.notes(session).ok_or_else(|| {
        ToolError::failed(format!(
            "No notes of sessions are kept here, so there is no {NOTES_PATH}. What a later session should know goes to {MEMORIES}/NAME.md."
        ))
    })
}

fn parsed(path: &str) -> Result<MemoryPath, ToolError> {
    path.parse().map_err(|error: agent_memory::PathError| ToolError::failed(format!("{error}.")))
}

fn given<T>(command: &str, field: &str, value: Option<T>) -> Result<T, ToolError> {
    value.ok_or_else(|| {
        ToolError::failed(format!(
            "The command {command} needs `{field}`, so nothing was done. Call it again with it."
        ))
    })
}

/// An error as a sentence; what the tool itself refused has its words already.
fn told(error: MemoryError) -> ToolError {
    if let MemoryError::Refused(words) = error {
        return ToolError::failed(words);
    }
    let words = error.to_string();
    let end = if words.ends_with(['.', '?', '!', '\n']) { "" } else { "." };
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    ToolError::failed(format!("{}{}{end}", first.map(String::from).unwrap_or_default(), letters.as_str()))
}

/// What else a write did, and what to do soon.
fn beside(written: &Written) -> String {
    let names = |names: &[MemoryName]| names.iter().map(MemoryName::as_str).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    if !written.listed.is_empty() {
        text.push_str(&format!(" The index had no line for {}, and has one now.", names(&written.listed)));
    }
    if !written.dropped.is_empty() {
        text.push_str(&format!(
            " The index had a line for {}, whose file is gone; the line is gone too.",
            names(&written.dropped)
        ));
    }
    if let Some(advice) = written.advice() {
        text.push(' ');
        text.push_str(&advice);
    }
    text
}

/// A text as JSON writes it.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for one in text.chars() {
        match one {
            '"' | '\\' => quoted.extend(['\\', one]),
            one if one.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(one))),
            one => quoted.push(one),
        }
    }
    quoted.push('"');
    quoted
}

const DESCRIPTION: &str = include_str!("../../prompt/memory.md");
