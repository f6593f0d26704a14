//! The directory of memories: one file each, and the index beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::folder::{Entry, Expect, Folder, Turn};
use crate::front::{front_matter, is_steering, tidy};
use crate::index::{INDEX_FILE, INDEX_READ, Index, IndexView, StrangeFile};
use crate::memory::{MEMORY_BYTES, scalar};
use crate::relevant::Ranking;
use crate::{INDEX_BYTES, INDEX_LINES, Memory, MemoryError, MemoryFault, MemoryName};

/// A directory of memories, opened once (requirements C1 and C4).
///
/// Writers of any number of threads and processes take turns; readers wait for nobody and see each file before or after a
/// change. Every file that is written is a memory, and its entry in `MEMORY.md` follows in the same turn. Nothing is
/// followed: a link, a pipe or a folder under a name that is asked for is an error. Calls block, for some seconds at worst
/// where another writer hangs, so an async program makes them on a thread that may.
#[derive(Debug)]
pub struct MemoryDir(Folder);

/// What is in the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The memories, in the order of their names.
    pub memories: Vec<StoredMemory>,
    /// Files that are no memories, and why.
    pub strange: Vec<StrangeFile>,
}

/// A memory as it lies on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredMemory {
    /// The memory.
    pub memory: Memory,
    /// When the file was last changed, in nanoseconds since 1970.
    pub changed: i128,
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The memory that was written or removed, by the name that it has or had.
    pub name: MemoryName,
    /// Memories that had no entry in the index, and have one now.
    pub listed: Vec<MemoryName>,
    /// Entries that were taken out of the index, because their file is gone.
    pub dropped: Vec<MemoryName>,
    /// Lines of the index now.
    pub lines: usize,
    /// Bytes of it.
    pub bytes: usize,
}

impl MemoryDir {
    /// Opens a directory; what is missing of it is made, for the user alone.
    ///
    /// # Errors
    /// When it cannot be made or opened.
    pub fn open(path: &Path) -> Result<Self, MemoryError> {
        Folder::open(path).map(Self)
    }

    /// Where it is, as it was opened.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// All memories, and what lies beside them.
    ///
    /// # Errors
    /// When the directory cannot be read, or holds too many files.
    pub fn list(&self) -> Result<Listing, MemoryError> {
        let mut listing = Listing::default();
        for entry in self.0.entries()? {
            if entry.name == INDEX_FILE {
                continue;
            }
            match self.stored(&entry) {
                Ok(Some(memory)) => listing.memories.push(StoredMemory { memory, changed: entry.changed }),
                Ok(None) => {}
                Err(why) => {
                    listing.strange.push(StrangeFile { file: shown(&entry.name), why: why.to_string() })
                }
            }
        }
        Ok(listing)
    }

    /// The file of a memory as it is, with `\n` line endings.
    ///
    /// # Errors
    /// When there is none, or it is no file that can be read. A file that is no memory is given all the same.
    pub fn read(&self, name: &MemoryName) -> Result<String, MemoryError> {
        let text = self.0.text(&name.file(), MEMORY_BYTES)?;
        text.map(|text| tidy(&text)).map_or_else(|| Err(self.missing(name)), Ok)
    }

    /// A memory.
    ///
    /// # Errors
    /// As for [`MemoryDir::read`], and when the file is no memory.
    pub fn memory(&self, name: &MemoryName) -> Result<Memory, MemoryError> {
        checked(name, &self.read(name)?)
    }

    /// `MEMORY.md` as it is, with `\n` line endings; empty when there is none.
    ///
    /// # Errors
    /// When it is no file that can be read.
    pub fn index_text(&self) -> Result<String, MemoryError> {
        Ok(tidy(&self.index_bytes()?.unwrap_or_default()))
    }

    /// The index as a session is shown it. An index that cannot be read is made of the memories, and says so.
    ///
    /// # Errors
    /// When the directory itself cannot be read.
    pub fn index(&self) -> Result<IndexView, MemoryError> {
        let (index, fault) = match self.index_bytes() {
            Ok(text) => (Index::parse(&text.unwrap_or_default()), None),
            Err(fault) => (Index::default(), Some(fault.to_string())),
        };
        let listing = self.list()?;
        let mut ages: BTreeMap<MemoryName, i128> = BTreeMap::new();
        let mut unlisted: Vec<&StoredMemory> = Vec::new();
        for stored in &listing.memories {
            ages.insert(stored.memory.name().clone(), stored.changed);
            if !index.lists(stored.memory.name()) {
                unlisted.push(stored);
            }
        }
        // A file that is there and no memory is told as such, and is not gone.
        for name in listing.strange.iter().filter_map(|strange| MemoryName::of_file(&strange.file).ok()) {
            ages.entry(name).or_insert(i128::MIN);
        }
        unlisted.sort_by_key(|stored| std::cmp::Reverse(stored.changed));
        let unlisted: Vec<Memory> = unlisted.into_iter().map(|stored| stored.memory.clone()).collect();
        Ok(IndexView { strange: listing.strange, fault, ..index.view(&ages, &unlisted) })
    }

    /// The memories that words are most about, by name and description; the best first, at most so many.
    ///
    /// # Errors
    /// As for [`MemoryDir::list`].
    pub fn find(&self, words: &str, most: usize) -> Result<Vec<Memory>, MemoryError> {
        let memories = self.list()?.memories;
        let mut ranking = Ranking::default();
        for StoredMemory { memory, .. } in &memories {
            ranking.add(memory.name().as_str(), &[(memory.description(), 1.0)]);
        }
        let found = ranking.find(words, most);
        Ok(found.into_iter().filter_map(|at| memories.get(at)).map(|stored| stored.memory.clone()).collect())
    }

    /// Keeps a new memory.
    ///
    /// # Errors
    /// When one of its name exists, the index is full, or nothing can be written.
    pub fn add(&self, memory: &Memory) -> Result<Written, MemoryError> {
        self.create(memory.name(), &memory.render())
    }

    /// The same from the text of its file, which may hold more fields than a [`Memory`].
    ///
    /// # Errors
    /// The same, and when the text is no memory of this name.
    pub fn create(&self, name: &MemoryName, text: &str) -> Result<Written, MemoryError> {
        let text = ended(text);
        let memory = checked(name, &text)?;
        let turn = self.0.turn()?;
        if self.0.holds(&name.file())? {
            return Err(MemoryError::Exists(name.to_string()));
        }
        let change = |index: &mut Index| index.put(&memory, None);
        self.room(&change)?;
        let named = |error| about(error, name);
        turn.write(&name.file(), text.as_bytes(), Expect::Absent).map_err(named)?;
        self.enter(&turn, name, &change)
    }

    /// Changes the file of a memory as it is now to what `edit` makes of it, while no other writer can come between.
    ///
    /// # Errors
    /// What `edit` says, such as [`MemoryError::Refused`]; when there is no such memory, what comes out is none, the index is
    /// full, or nothing can be written.
    pub fn edit(
        &self,
        name: &MemoryName,
        edit: impl FnOnce(&str) -> Result<String, MemoryError>,
    ) -> Result<Written, MemoryError> {
        let turn = self.0.turn()?;
        let file = name.file();
        let before = self.0.text(&file, MEMORY_BYTES)?.ok_or_else(|| self.missing(name))?;
        let text = ended(&edit(&tidy(&before))?);
        let memory = checked(name, &text)?;
        // What was broken by hand may be mended like this, and has no words to keep.
        let old = Memory::parse(&before).ok();
        let change = |index: &mut Index| index.put(&memory, old.as_ref());
        self.room(&change)?;
        let named = |error| about(error, name);
        turn.write(&file, text.as_bytes(), Expect::Bytes(before.as_bytes())).map_err(named)?;
        self.enter(&turn, name, &change)
    }

    /// Compare and replace: puts `after` in place of `before`, which is what [`MemoryDir::read`] gave.
    ///
    /// # Errors
    /// [`MemoryError::Changed`] when the file says something else by now; else as for [`MemoryDir::edit`].
    pub fn replace(&self, name: &MemoryName, before: &str, after: &str) -> Result<Written, MemoryError> {
        self.edit(name, |now| {
            if now == before { Ok(after.to_owned()) } else { Err(MemoryError::Changed(name.to_string())) }
        })
    }

    /// Removes a memory and its entry. A file that is no memory, and an entry without a file, can be removed like this too.
    ///
    /// # Errors
    /// When there is neither, or it cannot be removed.
    pub fn remove(&self, name: &MemoryName) -> Result<Written, MemoryError> {
        let turn = self.0.turn()?;
        let index = Index::parse(&self.index_bytes()?.unwrap_or_default());
        if !self.0.holds(&name.file())? && !index.lists(name) {
            return Err(self.missing(name));
        }
        turn.remove(&name.file())?;
        self.enter(&turn, name, &|index: &mut Index| index.drop(name))
    }

    /// Gives a memory another name, in its file too. Nothing else of the file changes.
    ///
    /// # Errors
    /// When there is no such memory, one of the new name exists, or nothing can be written.
    pub fn rename(&self, from: &MemoryName, to: &MemoryName) -> Result<Written, MemoryError> {
        let turn = self.0.turn()?;
        let before = self.0.text(&from.file(), MEMORY_BYTES)?.ok_or_else(|| self.missing(from))?;
        if self.0.holds(&to.file())? {
            return Err(MemoryError::Exists(to.to_string()));
        }
        checked(from, &before)?;
        let text = renamed(&tidy(&before), to);
        let memory = checked(to, &text)?;
        let change = |index: &mut Index| {
            index.drop(from);
            index.put(&memory, None);
        };
        self.room(&change)?;
        turn.write(&to.file(), text.as_bytes(), Expect::Absent).map_err(|error| about(error, to))?;
        // A program that dies here leaves both, and loses nothing.
        turn.remove(&from.file())?;
        self.enter(&turn, to, &change)
    }

    fn index_bytes(&self) -> Result<Option<String>, MemoryError> {
        self.0.text(INDEX_FILE, INDEX_READ)
    }

    /// Whether the index has room for a change, before anything is written. One that is over its caps already may shrink.
    fn room(&self, change: &dyn Fn(&mut Index)) -> Result<(), MemoryError> {
        let before = Index::parse(&self.index_bytes()?.unwrap_or_default());
        let mut after = before.clone();
        change(&mut after);
        let ((had_lines, had_bytes), (lines, bytes)) = (before.size(), after.size());
        if after.is_over() && (lines > had_lines || bytes > had_bytes) {
            return Err(MemoryError::IndexFull { lines, bytes, oldest: before.oldest(OLDEST) });
        }
        Ok(())
    }

    /// Makes a change of the index, and mends what a program left that died between a file and its entry.
    fn enter(
        &self,
        turn: &Turn<'_>,
        name: &MemoryName,
        change: &dyn Fn(&mut Index),
    ) -> Result<Written, MemoryError> {
        let listing = self.list()?;
        let mut tries = TRIES;
        loop {
            let before = self.index_bytes()?;
            let mut index = Index::parse(before.as_deref().unwrap_or_default());
            change(&mut index);
            let (listed, dropped) = mend(&mut index, &listing);
            let text = index.render();
            let expect = before.as_ref().map_or(Expect::Absent, |before| Expect::Bytes(before.as_bytes()));
            tries -= 1;
            match turn.write(INDEX_FILE, text.as_bytes(), expect) {
                Ok(()) => {
                    let (lines, bytes) = index.size();
                    return Ok(Written { name: name.clone(), listed, dropped, lines, bytes });
                }
                // A person saved it this moment: their words count, and ours are made anew on top of them.
                Err(MemoryError::Changed(_) | MemoryError::Exists(_)) if tries > 0 => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// The memory in a file; `None` when it was removed since it was listed.
    fn stored(&self, entry: &Entry) -> Result<Option<Memory>, MemoryError> {
        if !entry.is_file {
            return Err(MemoryError::NotAFile { file: shown(&entry.name), kind: entry.kind });
        }
        if !entry.name.ends_with(crate::name::SUFFIX) {
            let why = "only `.md` files are memories; put it elsewhere".to_owned();
            return Err(MemoryError::Refused(why));
        }
        let name = MemoryName::of_file(&entry.name)?;
        let text = self.0.text(&name.file(), MEMORY_BYTES)?;
        text.map(|text| checked(&name, &text)).transpose()
    }

    fn missing(&self, name: &MemoryName) -> MemoryError {
        // A hint that cannot be had is left out; that there is none is what counts.
        let near = self.find(name.as_str(), NEAR).unwrap_or_default();
        let mut near: Vec<String> = near.iter().map(|memory| memory.name().to_string()).collect();
        if near.is_empty() {
            let all = self.list().unwrap_or_default().memories;
            near = all.iter().take(NEAR).map(|stored| stored.memory.name().to_string()).collect();
        }
        MemoryError::Missing { name: name.to_string(), near }
    }
}

impl Written {
    /// What to do before the index is full; `None` while there is room.
    pub fn advice(&self) -> Option<String> {
        let is_near = self.lines * 10 > INDEX_LINES * 9 || self.bytes * 10 > INDEX_BYTES * 9;
        is_near.then(|| {
            format!(
                "The index has {} of {INDEX_LINES} lines and {} of {INDEX_BYTES} bytes: merge memories on one subject, or delete what no longer holds, before you add more.",
                self.lines, self.bytes
            )
        })
    }
}

/// Enters what has no entry, while there is room, and drops entries whose file is gone.
fn mend(index: &mut Index, listing: &Listing) -> (Vec<MemoryName>, Vec<MemoryName>) {
    let strange = listing.strange.iter().filter_map(|strange| MemoryName::of_file(&strange.file).ok());
    let memories = listing.memories.iter().map(|stored| stored.memory.name().clone());
    let exists: BTreeSet<MemoryName> = memories.chain(strange).collect();
    let dropped = index.drop_dangling(&exists);
    let mut listed = Vec::new();
    for StoredMemory { memory, .. } in &listing.memories {
        if index.lists(memory.name()) {
            continue;
        }
        let mut more = index.clone();
        more.put(memory, None);
        if !more.is_over() {
            listed.push(memory.name().clone());
            *index = more;
        }
    }
    (listed, dropped)
}

/// The memory of this name that a text is.
fn checked(name: &MemoryName, text: &str) -> Result<Memory, MemoryError> {
    let fault = |fault| MemoryError::Fault { file: name.file(), fault };
    let memory = Memory::parse(text).map_err(fault)?;
    if memory.name() != name {
        return Err(fault(MemoryFault::OtherName { said: memory.name().clone(), file: name.file() }));
    }
    Ok(memory)
}

/// A text with another value of `name`, which stands at the margin of the front matter.
fn renamed(text: &str, to: &MemoryName) -> String {
    let Ok(split) = front_matter(text) else { return text.to_owned() };
    let begin = text.len() - split.body.len();
    let head = text[..begin].split_inclusive('\n').map(|line| {
        if line.starts_with("name:") { format!("name: {}\n", scalar(to.as_str())) } else { line.to_owned() }
    });
    head.chain([split.body.to_owned()]).collect()
}

/// A file ends with a line ending.
fn ended(text: &str) -> String {
    let text = tidy(text);
    if text.ends_with('\n') { text } else { format!("{text}\n") }
}

/// An error of a file, told by the name of its memory.
fn about(error: MemoryError, name: &MemoryName) -> MemoryError {
    if let MemoryError::Changed(_) = error {
        return MemoryError::Changed(name.to_string());
    }
    if let MemoryError::Exists(_) = error {
        return MemoryError::Exists(name.to_string());
    }
    error
}

/// A name of a file for people: nothing in it steers a terminal.
fn shown(name: &str) -> String {
    name.chars().map(|one| if is_steering(one) { '\u{fffd}' } else { one }).collect()
}

/// Names that are offered for a missing one.
const NEAR: usize = 3;
/// Names that are offered for removal where the index is full.
const OLDEST: usize = 5;
/// How often the index is made anew when a person saves it at the same moment.
const TRIES: usize = 5;
