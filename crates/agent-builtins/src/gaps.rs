//! What a listing or a search did not look at, in words for the end of its answer.

use crate::sandbox::{Found, Walk, Walked};

/// Where an answer may be incomplete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Gaps {
    binary: u64,
    unreadable: u64,
    /// The bound at which the walk stopped.
    stopped: Option<u64>,
}

impl Gaps {
    pub(crate) fn of_walk(walked: &Walked, walk: &Walk) -> Self {
        Self { binary: 0, unreadable: walked.unreadable, stopped: walked.more.then_some(walk.most) }
    }

    pub(crate) fn of_search(found: &Found, walk: &Walk) -> Self {
        Self { binary: found.binary, unreadable: found.unreadable, stopped: found.more.then_some(walk.most) }
    }

    /// Each gap with a semicolon before it; nothing when there is none.
    pub(crate) fn words(self) -> String {
        let mut text = String::new();
        if self.binary > 0 {
            text.push_str(&format!("; {} binary files were passed over", self.binary));
        }
        if self.unreadable > 0 {
            text.push_str(&format!(
                "; {} files or directories could not be read, see their permissions with bash: `ls -la`",
                self.unreadable
            ));
        }
        if let Some(most) = self.stopped {
            text.push_str(&format!(
                "; it stopped after {most} files and directories, so there may be more: name a directory in `path`"
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_gap_is_named() {
        let check = |binary, unreadable, more, expect: &str| {
            let (found, walk) =
                (Found { binary, unreadable, more, ..Found::default() }, Walk { most: 9, ..Walk::default() });
            assert_eq!(Gaps::of_search(&found, &walk).words(), expect);
        };
        check(0, 0, false, "");
        check(2, 0, false, "; 2 binary files were passed over");
        check(
            0,
            3,
            true,
            "; 3 files or directories could not be read, see their permissions with bash: `ls -la`; it stopped after 9 files and directories, so there may be more: name a directory in `path`",
        );
        let (walked, walk) = (Walked { unreadable: 1, ..Walked::default() }, Walk::default());
        assert!(Gaps::of_walk(&walked, &walk).words().starts_with("; 1 files or directories could not"));
    }
}
