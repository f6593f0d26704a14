//! Searching text with ripgrep's own libraries, file by file in the order of paths.

use std::io::{self, Read};
use std::path::Path;

use agent_core::Cancel;
use cap_std::fs::File;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkFinish, SinkMatch,
};

use super::root::{Root, open_file};
use super::{Found, FoundLine, Role, SandboxError, Search};

pub(super) fn search(root: &Root, search: &Search, cancel: &Cancel) -> Result<Found, SandboxError> {
    let matcher = matcher(search)?;
    let walked = super::walk::walk(root, &search.walk, cancel)?;
    let mut files: Vec<String> = walked.files.into_iter().map(|file| file.path).collect();
    files.sort_unstable();
    let mut searcher = searcher(search);
    let listed = files.len() as u64;
    let mut found = Found { unreadable: walked.unreadable, listed, more: walked.more, ..Found::default() };
    let mut room = search.keep;
    for path in files {
        let Some(file) = open(root, &path, &mut found) else { continue };
        let mut sink = Collect::new(&path, room);
        let read = searcher.search_reader(&matcher, Stoppable { of: file, cancel }, &mut sink);
        if cancel.is_cancelled() {
            return Err(SandboxError::Cancelled);
        }
        room = sink.room;
        sink.add_to(&mut found, read.is_ok());
    }
    Ok(found)
}

fn searcher(search: &Search) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(search.context)
        .after_context(search.context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LONGEST_LINE))
        .build()
}

/// A file to search; what should be one and cannot be opened is counted.
fn open(root: &Root, path: &str, found: &mut Found) -> Option<File> {
    let path = Path::new(path);
    match open_file(&root.dir, path).and_then(|file| Ok((file.metadata()?, file))) {
        Ok((meta, file)) => meta.is_file().then_some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        // A link inside the workspace names a file that the walk finds under its own name; others are not ours.
        Err(_) if root.is_link(path) => None,
        Err(_) => {
            found.unreadable += 1;
            None
        }
    }
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

/// The beginning of a line without its ending, cut between two characters, and how many bytes were cut.
fn beginning(line: &[u8]) -> (&[u8], u64) {
    let line =
        &line[..line.len() - line.iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()];
    let mut end = line.len().min(KEPT_OF_LINE);
    while end < line.len() && end > KEPT_OF_LINE - 4 && line[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    (&line[..end], (line.len() - end) as u64)
}

/// Reads until it is cancelled: a search through one huge file must end too.
struct Stoppable<'c, R> {
    of: R,
    cancel: &'c Cancel,
}

impl<R: Read> Read for Stoppable<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.of.read(into)
    }
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

    /// A file that cannot be read to its end still shows what was found in it.
    fn add_to(self, found: &mut Found, whole: bool) {
        if self.binary {
            found.binary += 1;
            return;
        }
        *(if whole { &mut found.searched } else { &mut found.unreadable }) += 1;
        if self.count > 0 {
            found.files.push((self.path.to_owned(), self.count));
            found.lines.extend(self.lines);
        }
    }

    fn push(&mut self, bytes: &[u8], number: Option<u64>, role: Role) {
        let (kept, left_out) = beginning(bytes);
        let text = String::from_utf8_lossy(kept).into_owned();
        let (path, number) = (self.path.to_owned(), number.unwrap_or(0));
        self.lines.push(FoundLine { path, number, text, left_out, role });
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

/// A line that is longer is held in no memory; its file counts as one that cannot be read.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// More of a line than any tool shows.
const KEPT_OF_LINE: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn look_for(pattern: &str) -> Search {
        Search { pattern: pattern.to_owned(), keep: 10, ..Search::default() }
    }

    #[test]
    fn a_search_in_a_file_without_end_stops_when_cancelled() {
        let cancel = Cancel::new();
        let stop = cancel.clone();
        let (ended, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let search = look_for("needle");
            let mut sink = Collect::new("endless", 10);
            let reader = Stoppable { of: io::repeat(b'\n'), cancel: &stop };
            let read = searcher(&search).search_reader(matcher(&search).unwrap(), reader, &mut sink);
            ended.send(read.is_err()).unwrap();
        });
        assert!(ends.recv_timeout(Duration::from_millis(50)).is_err(), "it goes on until it is told to stop");
        cancel.cancel();
        assert_eq!(ends.recv_timeout(Duration::from_secs(10)), Ok(true));
    }

    /// Memory of a process is a regular file whose beginning nobody can read, not even an administrator.
    #[test]
    #[cfg(target_os = "linux")]
    fn what_cannot_be_read_is_counted_and_not_called_searched() {
        let root = Root::open(Path::new("/proc/self")).unwrap();
        let mut search = look_for("needle");
        search.walk.start = "mem".to_owned();
        let found = super::search(&root, &search, &Cancel::new()).unwrap();
        assert_eq!((found.searched, found.binary, found.unreadable, found.listed), (0, 0, 1, 1));
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let check = |line: &str, kept: usize, left_out: u64| {
            let (beginning, cut) = beginning(line.as_bytes());
            assert_eq!((beginning.len(), cut), (kept, left_out));
            assert!(std::str::from_utf8(beginning).is_ok());
        };
        check("", 0, 0);
        check("short\r\n", 5, 0);
        check(&"x".repeat(5_000), 4_096, 904);
        check(&format!("x{}\n", "é".repeat(4_000)), 4_095, 3_906);
        check(&format!("xx{}", "🌍".repeat(2_000)), 4_094, 3_908);
    }
}
