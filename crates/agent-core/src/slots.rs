//! State of a session that tools read and write: the todo list, what was read of which file, notes and active skills.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EntryId, RawJson, Reads};

/// Session state beside the history. It survives compaction because it is not part of the conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of groups, extended only with serde defaults")]
pub struct Slots {
    /// The todo list, in the model's order.
    #[serde(default)]
    pub todos: Vec<Todo>,
    /// What was read, by real path relative to the workspace (requirement T10).
    #[serde(default)]
    pub reads: Reads,
    /// Permission patterns that a person allowed for this session (requirement T2), such as `bash(cargo test)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Rolling notes on the session, the first source of a compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<SessionNotes>,
    /// Names of the skills that are active, in the order in which they became so (requirement P14).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// What each tool keeps for itself, by its state key (requirement T11).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, RawJson>,
}

/// Rolling notes on a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of words and a place")]
pub struct SessionNotes {
    /// The notes, in Markdown; they may be empty.
    pub text: String,
    /// The first entry that they do not cover; `None` while that is not known.
    #[serde(default)]
    pub covers_to: Option<EntryId>,
}

/// One item of the todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that tools build")]
pub struct Todo {
    /// The model's name for it.
    pub id: String,
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a todo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the three states of the tool's contract")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// At work on it; at most one at a time.
    InProgress,
    /// Finished.
    Done,
}

/// Proof that a file was read: its fingerprint then, and how much of it was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record that tools build")]
pub struct ReadStamp {
    /// SHA-256 of the whole file, lower-case hex.
    pub hash: String,
    /// Length of the whole file in bytes.
    pub len: u64,
    /// How much of it was shown.
    pub seen: ReadExtent,
}

/// How much of a file was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "either all or parts")]
pub enum ReadExtent {
    /// All of it.
    Full,
    /// Lines, as 1-based inclusive ranges, sorted and apart.
    Lines(Vec<(u64, u64)>),
}

impl Slots {
    /// Changes, and says whether something is different afterwards. What that costs does not grow with the files that were
    /// read.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let (reads, rest) = (self.reads.mark(), self.without_reads());
        let result = change(self);
        let is_changed = self.reads.mark() != reads || !self.is_same_beside_reads(&rest);
        (result, is_changed)
    }

    /// A copy of all but what was read.
    pub fn without_reads(&self) -> Self {
        let Self { todos, reads: _, allowed, notes, skills, tools } = self;
        Self {
            todos: todos.clone(),
            reads: Reads::new(),
            allowed: allowed.clone(),
            notes: notes.clone(),
            skills: skills.clone(),
            tools: tools.clone(),
        }
    }

    fn is_same_beside_reads(&self, other: &Self) -> bool {
        let Self { todos, reads: _, allowed, notes, skills, tools } = self;
        (todos, allowed, notes, skills, tools)
            == (&other.todos, &other.allowed, &other.notes, &other.skills, &other.tools)
    }

    /// Items of the todo list that are not done.
    pub fn open_todos(&self) -> impl Iterator<Item = &Todo> {
        self.todos.iter().filter(|todo| todo.status != TodoStatus::Done)
    }
}

impl ReadExtent {
    /// Whether lines `from..=to` were all shown.
    pub fn covers(&self, from: u64, to: u64) -> bool {
        match self {
            Self::Full => true,
            Self::Lines(ranges) => ranges.iter().any(|(a, b)| *a <= from && to <= *b),
        }
    }

    /// This extent and lines `from..=to` together.
    #[must_use]
    pub fn with(self, from: u64, to: u64) -> Self {
        let Self::Lines(mut ranges) = self else { return Self::Full };
        ranges.push((from, to));
        ranges.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for (a, b) in ranges {
            match merged.last_mut() {
                Some((_, end)) if a <= end.saturating_add(1) => *end = (*end).max(b),
                _ => merged.push((a, b)),
            }
        }
        Self::Lines(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_before_there_were_skills_is_read() {
        let check = |json: &str, skills: &[&str]| {
            let slots: Slots = serde_json::from_str(json).unwrap();
            assert_eq!(slots.skills, skills);
            assert_eq!(serde_json::to_string(&slots).unwrap(), json);
        };
        check(r#"{"todos":[],"reads":{}}"#, &[]);
        check(r#"{"todos":[],"reads":{},"skills":["knots","tides"]}"#, &["knots", "tides"]);
    }

    #[test]
    fn extents_join_when_they_touch() {
        let seen = ReadExtent::Lines(vec![(1, 10)]).with(20, 30);
        assert!(seen.covers(2, 9) && seen.covers(25, 30) && !seen.covers(9, 20));
        assert_eq!(seen.with(11, 19), ReadExtent::Lines(vec![(1, 30)]));
        assert!(ReadExtent::Full.with(1, 2).covers(1, u64::MAX));
    }
}
