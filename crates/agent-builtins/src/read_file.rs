//! The tool that reads a file, or an output that was kept outside the history, page by page.

use std::fmt::Write as _;
use std::sync::Arc;

use agent_core::{BlobHash, Cancel, ceil_boundary};
use agent_tools::Call;
use agent_tools::{Access, OutputCap, Tool, ToolConfig, ToolError};

use crate::blocking::blocking;
use crate::sandbox::{Fingerprint, Sandbox};
use crate::text::{Endings, NotText, TextFile, count_lines};
use crate::{built, near, stamp};

/// Reads text with numbered lines and stamps what was shown (requirements T8, T10).
pub fn read_file(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let place = Arc::clone(&sandbox);
    let read = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move {
            if input.path.starts_with(BLOB) {
                read_blob(&call, input).await
            } else {
                read_path(&*sandbox, &call, input).await
            }
        }
    };
    let config = ToolConfig::new("read_file", DESCRIPTION.trim_end(), Access::Read, read);
    // Above what a page can have, so that the cap never cuts a page whose lines were stamped as seen.
    built(
        config
            .cap(OutputCap { lines: 2_100, bytes: 64_000, line_chars: 2_200 })
            .subject_later(move |input: Input| crate::path_subject(Arc::clone(&place), input.path)),
    )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The file, relative to the workspace or absolute inside it; or `blob:HASH` as named in a shortened output.
    path: String,
    /// The first line to show, counted from 1. Default 1.
    offset: Option<u64>,
    /// How many lines to show. Default and most: 2000.
    limit: Option<u64>,
}

/// A stretch of lines as it is shown.
#[derive(Debug, Default)]
struct Page {
    text: String,
    /// 1-based inclusive ranges of lines that are whole in `text`.
    whole: Vec<(u64, u64)>,
    last: u64,
    total: u64,
}

/// An answer, and what of the file it shows.
struct Shown {
    text: String,
    /// Nothing when a change through UTF-8 would damage the file.
    seen: Option<(Fingerprint, Page)>,
}

async fn read_path(sandbox: &dyn Sandbox, call: &Call, input: Input) -> Result<String, ToolError> {
    let file = match sandbox.read(&call.permit, &input.path, LARGEST).await {
        Ok(file) => file,
        Err(error) => return Err(near::explain(sandbox, &call.permit, &call.cx.cancel, error).await.into()),
    };
    let path = file.path.clone();
    let shown = blocking(&call.cx.cancel, move |_| show(&file.bytes, &input)).await??;
    // Only here, where somebody still waits for the answer, is it sure that the model sees it.
    if let Some((print, page)) = &shown.seen {
        stamp::add(&call.cx.slots, &path, print, &page.whole, page.total);
    }
    Ok(shown.text)
}

fn show(bytes: &[u8], input: &Input) -> Result<Shown, ToolError> {
    let text = match TextFile::decode(bytes) {
        Ok(text) => text,
        Err(NotText::OtherEncoding(at)) => return show_lossy(bytes, at, input),
        Err(not) => return Err(refusal(&input.path, bytes.len(), &not)),
    };
    let page = Page::of(&text.body, &input.path, input)?;
    let mut notes = vec![];
    if text.bom {
        notes.push("byte order mark");
    }
    match Endings::of(&text.body) {
        Endings::Windows => notes.push("CRLF line endings"),
        Endings::Mixed => notes.push("mixed LF and CRLF line endings"),
        Endings::Unix => {}
    }
    if !text.body.is_empty() && !text.body.ends_with('\n') {
        notes.push("no final newline");
    }
    Ok(Shown { text: page.show(bytes.len(), &notes), seen: Some((Fingerprint::of(bytes), page)) })
}

/// Text in an old 8-bit encoding can be looked at, but a change through UTF-8 would damage it, so it gets no stamp.
fn show_lossy(bytes: &[u8], at: usize, input: &Input) -> Result<Shown, ToolError> {
    let page = Page::of(&String::from_utf8_lossy(bytes), &input.path, input)?;
    let note = format!(
        "not UTF-8, first at byte {at}; such bytes are shown as \u{fffd}. It cannot be changed with edit_file or write_file: convert or change it with bash, for example iconv or sed"
    );
    Ok(Shown { text: page.show(bytes.len(), &[&note]), seen: None })
}

async fn read_blob(call: &Call, input: Input) -> Result<String, ToolError> {
    let missing = || {
        ToolError::failed(format!(
            "There is no `{}` in this session. Copy the handle exactly from the shortened output, or run that tool again.",
            input.path
        ))
    };
    let hash = input.path.strip_prefix(BLOB).and_then(BlobHash::parse).ok_or_else(missing)?;
    let bytes = call.cx.blobs.get(&hash).await.map_err(ToolError::failed)?.ok_or_else(missing)?;
    let work = move |_: &Cancel| {
        let page = Page::of(&String::from_utf8_lossy(&bytes), &input.path, &input)?;
        Ok(page.show(bytes.len(), &[]))
    };
    blocking(&call.cx.cancel, work).await?
}

fn refusal(path: &str, len: usize, not: &NotText) -> ToolError {
    let what = not.what();
    let next = match not {
        NotText::Utf16(_) => {
            "Convert it with bash, for example `iconv -f UTF-16 -t UTF-8`, and read the result."
        }
        NotText::Binary(_) | NotText::OtherEncoding(_) => {
            "Look at it with bash, for example `file`, `xxd | head` or a program for its kind."
        }
    };
    ToolError::failed(format!("`{path}` {what}, {len} bytes, so it is not shown. {next}"))
}

impl Page {
    fn of(body: &str, path: &str, input: &Input) -> Result<Self, ToolError> {
        let total = count_lines(body);
        // Models write 0 for "from the start".
        let first = input.offset.unwrap_or(1).max(1);
        let most = input.limit.unwrap_or(LINES).min(LINES);
        if most == 0 {
            return Err(ToolError::failed(
                "A limit of 0 shows nothing; ask for at least 1 line, or leave limit out.",
            ));
        }
        if total == 0 {
            return Ok(Self::default());
        }
        if first > total {
            return Err(ToolError::failed(format!(
                "`{path}` has {total} lines, so there is no line {first}. Read from a line up to {total}, or leave offset out."
            )));
        }
        let mut page = Self { last: first - 1, total, ..Self::default() };
        let wanted = usize::try_from(first - 1).unwrap_or(usize::MAX);
        for line in body.split_inclusive('\n').skip(wanted).take(usize::try_from(most).unwrap_or(usize::MAX))
        {
            if !page.push(line) {
                break;
            }
        }
        Ok(page)
    }

    /// Adds a line; false when the page is full. The first line always fits, because it is clipped.
    fn push(&mut self, line: &str) -> bool {
        let number = self.last + 1;
        let line = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        let (shown, cut) = clip(line);
        let mut added = format!("{number:>6}\t{shown}");
        if cut > 0 {
            // Writing to a String cannot fail.
            let _ = write!(
                added,
                " [… {cut} bytes of this line left out; go on with bash: sed -n {number}p FILE | tail -c +{}]",
                shown.len() + 1
            );
        }
        added.push('\n');
        if self.text.len() + added.len() > BYTES {
            return false;
        }
        self.text.push_str(&added);
        self.last = number;
        match self.whole.last_mut() {
            Some((_, to)) if cut == 0 && *to + 1 == number => *to = number,
            _ if cut == 0 => self.whole.push((number, number)),
            _ => {}
        }
        true
    }

    fn show(&self, bytes: usize, notes: &[&str]) -> String {
        if self.total == 0 {
            return format!("[the file is empty: 0 lines, {bytes} bytes]");
        }
        let first = self.text.trim_start().split('\t').next().unwrap_or("1");
        let mut foot = match self.last {
            last if last == self.total && first == "1" => format!("all {} lines, {bytes} bytes", self.total),
            last if last == self.total => {
                format!("lines {first}-{last} of {}, {bytes} bytes; this is the end", self.total)
            }
            last => format!(
                "lines {first}-{last} of {}, {bytes} bytes; go on with offset {}",
                self.total,
                last + 1
            ),
        };
        for note in notes {
            foot.push_str("; ");
            foot.push_str(note);
        }
        format!("{}[{foot}]", self.text)
    }
}

/// The head of a line, and how many bytes were cut.
fn clip(line: &str) -> (&str, usize) {
    let end = line.char_indices().nth(LINE_CHARS).map_or(line.len(), |(at, _)| ceil_boundary(line, at));
    (&line[..end], line.len() - end)
}

const BLOB: &str = "blob:";
const DESCRIPTION: &str = include_str!("../prompt/read_file.md");
/// Larger files are looked at with programs that need not hold them.
const LARGEST: u64 = 64 * 1024 * 1024;
const LINES: u64 = 2_000;
const BYTES: usize = 50_000;
const LINE_CHARS: usize = 2_000;
