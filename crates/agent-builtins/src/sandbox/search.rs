//! Searching text with ripgrep's own libraries, file by file in the order of paths.

use std::io;
use std::path::Path;

use agent_core::Cancel;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};

use super::root::{Root, open_file};
use super::{Found, FoundLine, Role, SandboxError, Search};

pub(super) fn search(root: &Root, search: &Search, cancel: &Cancel) -> Result<Found, SandboxError> {
    let matcher = matcher(search)?;
    let mut files: Vec<String> =
        super::walk::walk(root, &search.walk, cancel)?.files.into_iter().map(|file| file.path).collect();
    files.sort_unstable();
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .before_context(search.context)
        .after_context(search.context)
        .binary_detection(BinaryDetection::quit(0))
        .build();
    let mut found = Found::default();
    for path in files {
        if cancel.is_cancelled() {
            return Err(SandboxError::Cancelled);
        }
        // A link inside the workspace names a file that the walk finds under its own name; others are not ours.
        let Ok(file) = open_file(&root.dir, Path::new(&path)) else { continue };
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            continue;
        }
        let mut sink = Collect::new(&path, search.keep.saturating_sub(matches(&found)));
        // A file that cannot be read to its end still shows what was found in it.
        let _ = searcher.search_file(&matcher, &file.into_std(), &mut sink);
        sink.add_to(&mut found);
    }
    Ok(found)
}

fn matches(found: &Found) -> usize {
    found.lines.iter().filter(|line| line.role == Role::Match).count()
}

fn matcher(search: &Search) -> Result<RegexMatcher, SandboxError> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(search.ignore_case)
        .fixed_strings(search.literal)
        .multi_line(true)
        .crlf(true)
        .line_terminator(Some(b'\n'));
    let built = builder.build(&search.pattern);
    built.map_err(|cause| SandboxError::Pattern { pattern: search.pattern.clone(), cause: Box::new(cause) })
}

/// What one file adds.
struct Collect<'p> {
    path: &'p str,
    lines: Vec<FoundLine>,
    room: usize,
    /// Whether there was a match that found no room.
    cut: bool,
    count: u64,
    binary: bool,
}

impl<'p> Collect<'p> {
    fn new(path: &'p str, room: usize) -> Self {
        Self { path, lines: Vec::new(), room, cut: false, count: 0, binary: false }
    }

    fn add_to(self, found: &mut Found) {
        if self.binary {
            found.binary += 1;
            return;
        }
        found.searched += 1;
        if self.count > 0 {
            found.files.push((self.path.to_owned(), self.count));
            found.lines.extend(self.lines);
        }
    }

    fn push(&mut self, bytes: &[u8], number: Option<u64>, role: Role) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']).to_owned();
        self.lines.push(FoundLine { path: self.path.to_owned(), number: number.unwrap_or(0), text, role });
    }
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.count += 1;
        if self.room > 0 {
            self.room -= 1;
            self.push(found.bytes(), found.line_number(), Role::Match);
        } else {
            self.cut = true;
            // These led up to a match that is not shown.
            while self.lines.last().is_some_and(|line| line.role == Role::Before) {
                self.lines.pop();
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let role = match context.kind() {
            SinkContextKind::Before => Role::Before,
            SinkContextKind::After | SinkContextKind::Other => Role::After,
        };
        if !self.cut {
            self.push(context.bytes(), context.line_number(), role);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary |= finish.binary_byte_offset().is_some();
        Ok(())
    }
}
