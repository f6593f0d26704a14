//! Read before write: what the session saw of a file decides what it may change (requirement T10).

use agent_core::{ReadExtent, ReadStamp};
use agent_tools::SlotsHandle;

use crate::sandbox::Fingerprint;

/// What the session knows of a file's present content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Known {
    /// It was never read.
    Unread,
    /// It was read, and changed since.
    Stale,
    /// It was read as it is now, this much of it.
    Current(ReadExtent),
}

/// Looks a file up by its real path.
pub(crate) fn known(slots: &SlotsHandle, path: &str, now: &Fingerprint) -> Known {
    slots.read(|slots| match slots.reads.get(path) {
        None => Known::Unread,
        Some(stamp) if stamp.hash == now.hash && stamp.len == now.len => Known::Current(stamp.seen.clone()),
        Some(_) => Known::Stale,
    })
}

/// Adds lines that were shown in full, as 1-based inclusive ranges, to what is known of the file.
pub(crate) fn add(slots: &SlotsHandle, path: &str, now: &Fingerprint, lines: &[(u64, u64)], total: u64) {
    let before = match known(slots, path, now) {
        Known::Current(seen) => seen,
        Known::Unread | Known::Stale => ReadExtent::Lines(Vec::new()),
    };
    let seen = lines.iter().fold(before, |seen, (from, to)| seen.with(*from, *to));
    set(slots, path, now, if total == 0 || seen.covers(1, total) { ReadExtent::Full } else { seen });
}

/// Replaces what is known of the file.
pub(crate) fn set(slots: &SlotsHandle, path: &str, now: &Fingerprint, seen: ReadExtent) {
    let stamp = ReadStamp { hash: now.hash.clone(), len: now.len, seen };
    slots.update(|slots| slots.reads.insert(path.to_owned(), stamp));
}

/// Why a file that was never read is not changed.
pub(crate) fn unread(path: &str) -> String {
    format!(
        "`{path}` exists and you have not read it; nothing was changed. Read it with read_file, then repeat the call."
    )
}

/// Why a file that changed is not changed.
pub(crate) fn stale(path: &str) -> String {
    format!(
        "`{path}` changed since you read it; nothing was changed. Read it again with read_file, then repeat the call on what is there now."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_to_the_whole_and_content_decides() {
        let slots = SlotsHandle::default();
        let (one, two) = (Fingerprint::of(b"one"), Fingerprint::of(b"two"));
        assert_eq!(known(&slots, "f", &one), Known::Unread);
        add(&slots, "f", &one, &[(1, 2)], 5);
        assert_eq!(known(&slots, "f", &one), Known::Current(ReadExtent::Lines(vec![(1, 2)])));
        assert_eq!(known(&slots, "f", &two), Known::Stale, "equal length, other bytes");
        add(&slots, "f", &one, &[(3, 5)], 5);
        assert_eq!(known(&slots, "f", &one), Known::Current(ReadExtent::Full));
        add(&slots, "f", &two, &[(1, 1)], 5);
        assert_eq!(
            known(&slots, "f", &two),
            Known::Current(ReadExtent::Lines(vec![(1, 1)])),
            "the old part counts no more"
        );
        add(&slots, "empty", &one, &[], 0);
        assert_eq!(known(&slots, "empty", &one), Known::Current(ReadExtent::Full));
    }
}
