//! What a session read of which file: a map that can tell cheaply whether it changed.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::ReadStamp;

/// Stamps of files by real path relative to the workspace (requirement T10). Reads as the map that it holds; changes go
/// through its own functions, which note that there was one, so that nobody has to compare a session's whole reading.
///
/// It is written and read as that map.
#[derive(Debug, Default)]
pub struct Reads {
    stamps: BTreeMap<String, ReadStamp>,
    mark: ReadsMark,
}

/// Another one after every change, and the same in a clone. Invariant: under one mark there is one content.
#[derive(Debug, Clone, Default)]
pub struct ReadsMark(Option<Arc<()>>);

impl Reads {
    /// Nothing was read.
    pub const fn new() -> Self {
        Self { stamps: BTreeMap::new(), mark: ReadsMark(None) }
    }

    /// Replaces what is known of a file.
    pub fn insert(&mut self, path: String, stamp: ReadStamp) {
        if self.stamps.get(&path) != Some(&stamp) {
            self.stamps.insert(path, stamp);
            self.mark = ReadsMark::another();
        }
    }

    /// Changes what is known of a file, when something is.
    pub fn change(&mut self, path: &str, change: impl FnOnce(&mut ReadStamp)) {
        let Some(stamp) = self.stamps.get_mut(path) else { return };
        let before = stamp.clone();
        change(stamp);
        if *stamp != before {
            self.mark = ReadsMark::another();
        }
    }

    /// Every file counts as unread.
    pub fn clear(&mut self) {
        if !self.stamps.is_empty() {
            *self = Self::new();
        }
    }

    /// Whether this is the other, or a clone of it, and neither was changed since. Costs the same for any number of files;
    /// two that were filled apart are not the same, even where they are equal.
    pub fn is_same(&self, other: &Self) -> bool {
        self.mark == other.mark
    }

    /// What is another one after a change; it copies no stamp.
    pub fn mark(&self) -> ReadsMark {
        self.mark.clone()
    }
}

impl Deref for Reads {
    type Target = BTreeMap<String, ReadStamp>;

    fn deref(&self) -> &Self::Target {
        &self.stamps
    }
}

impl Clone for Reads {
    fn clone(&self) -> Self {
        #[cfg(test)]
        tests::note_work();
        Self { stamps: self.stamps.clone(), mark: self.mark.clone() }
    }
}

impl PartialEq for Reads {
    fn eq(&self, other: &Self) -> bool {
        if self.is_same(other) {
            return true;
        }
        #[cfg(test)]
        tests::note_work();
        self.stamps == other.stamps
    }
}

impl Eq for Reads {}

impl From<BTreeMap<String, ReadStamp>> for Reads {
    fn from(stamps: BTreeMap<String, ReadStamp>) -> Self {
        let mark = if stamps.is_empty() { ReadsMark::default() } else { ReadsMark::another() };
        Self { stamps, mark }
    }
}

impl<const N: usize> From<[(String, ReadStamp); N]> for Reads {
    fn from(stamps: [(String, ReadStamp); N]) -> Self {
        BTreeMap::from(stamps).into()
    }
}

impl FromIterator<(String, ReadStamp)> for Reads {
    fn from_iter<I: IntoIterator<Item = (String, ReadStamp)>>(stamps: I) -> Self {
        stamps.into_iter().collect::<BTreeMap<_, _>>().into()
    }
}

impl IntoIterator for Reads {
    type Item = (String, ReadStamp);
    type IntoIter = std::collections::btree_map::IntoIter<String, ReadStamp>;

    fn into_iter(self) -> Self::IntoIter {
        self.stamps.into_iter()
    }
}

impl Extend<(String, ReadStamp)> for Reads {
    fn extend<I: IntoIterator<Item = (String, ReadStamp)>>(&mut self, stamps: I) {
        for (path, stamp) in stamps {
            self.insert(path, stamp);
        }
    }
}

impl Serialize for Reads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.stamps.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Reads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

impl ReadsMark {
    fn another() -> Self {
        Self(Some(Arc::new(())))
    }
}

impl PartialEq for ReadsMark {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // A mark that is held is not given again, so that one address is one moment.
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::{ReadExtent, Slots};

    thread_local! {
        /// How often stamps were copied or compared as a whole.
        static WORK: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn note_work() {
        WORK.set(WORK.get() + 1);
    }

    fn stamp(len: u64) -> ReadStamp {
        ReadStamp { hash: format!("{len:064}"), len, seen: ReadExtent::Full }
    }

    fn slots(files: u64) -> Slots {
        let reads = (0..files).map(|at| (format!("src/{at}.rs"), stamp(at))).collect();
        Slots { reads, skills: vec!["knots".into()], ..Slots::default() }
    }

    #[track_caller]
    fn check(change: impl Fn(&mut Slots), expect: bool) {
        for files in [1, 1_000] {
            let (mut slots, before) = (slots(files), slots(files));
            WORK.set(0);
            let ((), is_changed) = slots.change(&change);
            assert_eq!(WORK.get(), 0, "what was read of {files} files is neither copied nor compared");
            assert_eq!(is_changed, expect);
            assert_eq!(is_changed, slots != before, "it is so");
        }
    }

    #[test]
    fn a_change_is_noticed_without_a_look_at_all() {
        check(|_| {}, false);
        check(|slots| slots.reads.insert("a".into(), stamp(7)), true);
        check(|slots| slots.reads.insert("src/0.rs".into(), stamp(7)), true);
        check(|slots| slots.reads.insert("src/0.rs".into(), stamp(0)), false);
        check(|slots| slots.reads.change("src/0.rs", |stamp| stamp.len = 9), true);
        check(|slots| slots.reads.change("src/0.rs", |stamp| stamp.len = 0), false);
        check(|slots| slots.reads.change("nowhere", |stamp| stamp.len = 9), false);
        check(|slots| slots.reads.clear(), true);
        check(|slots| slots.reads = Reads::new(), true);
        check(|slots| slots.reads.extend([("src/0.rs".to_owned(), stamp(0))]), false);
        check(|slots| slots.reads.extend([("src/0.rs".to_owned(), stamp(1))]), true);
        check(|slots| slots.skills.push("tides".into()), true);
        check(|slots| slots.skills = vec!["knots".into()], false);
        check(|slots| slots.notes = Some(crate::SessionNotes::default()), true);
        check(|slots| slots.allowed.push("bash(ls)".into()), true);
        check(|slots| slots.todos.clear(), false);
        check(|slots| *slots = Slots::default(), true);
    }

    #[test]
    fn one_mark_is_one_content() {
        let mut one: Reads = [("a".to_owned(), stamp(1))].into_iter().collect();
        let other = one.clone();
        assert!(one.is_same(&other));
        one.insert("a".into(), stamp(2));
        one.insert("a".into(), stamp(1));
        assert!(!one.is_same(&other) && one == other, "there and back is a change, to the same");
        one.clear();
        assert!(one.is_same(&Reads::new()) && one != other);
        assert!(Reads::from(BTreeMap::new()).is_same(&Reads::default()));
    }

    #[test]
    fn it_is_written_as_the_map_it_holds() {
        let reads = slots(3).reads;
        let json = serde_json::to_string(&reads).unwrap();
        assert_eq!(json, serde_json::to_string(&*reads).unwrap());
        assert_eq!(serde_json::from_str::<Reads>(&json).unwrap(), reads);
        assert_eq!(serde_json::to_string(&Reads::new()).unwrap(), "{}");
    }
}
