//! Files as text, and names for those that are none.

/// A text file without its byte order mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextFile {
    pub(crate) body: String,
    pub(crate) bom: bool,
}

/// Why bytes are no text that tools can change safely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotText {
    /// The kind in words.
    Binary(&'static str),
    /// Text in 16-bit units; which byte comes first.
    Utf16(&'static str),
    /// Text in some other 8-bit encoding; the first byte that is not UTF-8.
    OtherEncoding(usize),
}

/// The line endings of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endings {
    /// `\n` or none at all.
    Unix,
    /// `\r\n`.
    Windows,
    /// Both.
    Mixed,
}

impl TextFile {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, NotText> {
        if let Some(order) = utf16(bytes) {
            return Err(NotText::Utf16(order));
        }
        let magic = || MAGIC.iter().find(|(_, magic)| bytes.starts_with(magic)).map(|(kind, _)| *kind);
        match std::str::from_utf8(bytes) {
            Ok(text) if !bytes.contains(&0) => {
                let body = text.strip_prefix(BOM);
                Ok(Self { body: body.unwrap_or(text).to_owned(), bom: body.is_some() })
            }
            Err(error) if !bytes.contains(&0) => {
                Err(magic().map_or(NotText::OtherEncoding(error.valid_up_to()), NotText::Binary))
            }
            Ok(_) | Err(_) => Err(NotText::Binary(magic().unwrap_or("binary data"))),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mark = if self.bom { BOM } else { "" };
        format!("{mark}{}", self.body).into_bytes()
    }
}

impl Endings {
    pub(crate) fn of(text: &str) -> Self {
        let windows = text.matches("\r\n").count();
        match text.matches('\n').count() {
            _ if windows == 0 => Self::Unix,
            all if all == windows => Self::Windows,
            _ => Self::Mixed,
        }
    }
}

impl NotText {
    /// What the file is, for a sentence that begins with its name.
    pub(crate) fn what(&self) -> String {
        match self {
            Self::Binary(kind) => format!("is not text ({kind})"),
            Self::Utf16(order) => format!("is text in UTF-16 ({order})"),
            Self::OtherEncoding(at) => format!("is not UTF-8 (first at byte {at})"),
        }
    }
}

/// Lines as people count them: a final line ending does not begin another line.
pub(crate) fn count_lines(text: &str) -> u64 {
    text.split_inclusive('\n').count() as u64
}

/// The 1-based line a byte is on.
pub(crate) fn line_at(text: &str, at: usize) -> u64 {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

fn utf16(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some("little-endian"),
        [0xfe, 0xff, ..] => Some("big-endian"),
        _ => unmarked_utf16(bytes),
    }
}

/// Text in Latin letters without a mark shows by its zeros, which are all on one side.
fn unmarked_utf16(bytes: &[u8]) -> Option<&'static str> {
    let sample = &bytes[..bytes.len().min(1024) & !1];
    let pairs = sample.chunks_exact(2);
    let (count, zero) = (pairs.len(), |side: usize| pairs.clone().filter(|pair| pair[side] == 0).count());
    let (first, second) = (zero(0), zero(1));
    let most = |zeros: usize| count >= 4 && zeros * 10 >= count * 9;
    if first == 0 && most(second) {
        Some("little-endian")
    } else if second == 0 && most(first) {
        Some("big-endian")
    } else {
        None
    }
}

const BOM: &str = "\u{feff}";

const MAGIC: [(&str, &[u8]); 13] = [
    ("a PNG image", b"\x89PNG\r\n\x1a\n"),
    ("a JPEG image", b"\xff\xd8\xff"),
    ("a GIF image", b"GIF8"),
    ("a WebP or other RIFF file", b"RIFF"),
    ("a PDF document", b"%PDF-"),
    ("a ZIP archive or office document", b"PK\x03\x04"),
    ("a gzip archive", b"\x1f\x8b"),
    ("a zstd archive", b"\x28\xb5\x2f\xfd"),
    ("an xz archive", b"\xfd7zXZ\0"),
    ("an ELF program", b"\x7fELF"),
    ("a WebAssembly module", b"\0asm"),
    ("a SQLite database", b"SQLite format 3\0"),
    ("a Java class file", b"\xca\xfe\xba\xbe"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: &str) {
        let said = match TextFile::decode(bytes) {
            Ok(text) => {
                assert_eq!(text.encode(), bytes, "the same bytes come back");
                format!("bom={} {:?} {:?}", text.bom, Endings::of(&text.body), text.body)
            }
            Err(not) => not.what(),
        };
        assert_eq!(said, expect);
    }

    #[test]
    fn text_and_what_is_none() {
        check(b"", r#"bom=false Unix """#);
        check(b"a\nb", r#"bom=false Unix "a\nb""#);
        check(b"\xef\xbb\xbfa\r\nb\r\n", r#"bom=true Windows "a\r\nb\r\n""#);
        check(b"a\r\nb\nc", r#"bom=false Mixed "a\r\nb\nc""#);
        check(b"\x89PNG\r\n\x1a\n\0\0", "is not text (a PNG image)");
        check(&[&[b'x'; 9000][..], b"\0y"].concat(), "is not text (binary data)");
        check(b"\xff\xfea\0b\0", "is text in UTF-16 (little-endian)");
        check(b"\0a\0b\0c\0d\0e", "is text in UTF-16 (big-endian)");
        check(b"caf\xe9", "is not UTF-8 (first at byte 3)");
    }

    #[test]
    fn lines_are_counted_as_people_do() {
        assert_eq!(["", "a", "a\n", "a\nb", "\n\n"].map(count_lines), [0, 1, 1, 2, 2]);
        assert_eq!([0, 1, 2, 3].map(|at| line_at("a\nb\n", at)), [1, 1, 2, 2]);
    }
}
