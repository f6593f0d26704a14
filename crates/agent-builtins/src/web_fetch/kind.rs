//! What a body is: text or not, and in which encoding.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// The media type of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Media {
    /// `text/html`; empty where the server said none.
    pub(super) name: String,
    /// What the header says of the encoding.
    charset: Option<String>,
}

/// What is done with a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Converted.
    Html,
    /// Passed on.
    Text,
    /// Not shown.
    Binary,
    /// Its bytes decide.
    Unknown,
}

impl Media {
    /// Reads the header.
    pub(super) fn parse(header: &str) -> Self {
        let mut parts = header.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (key, value) = part.split_once('=')?;
            key.trim()
                .eq_ignore_ascii_case("charset")
                .then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        });
        Self { name, charset }
    }

    /// What its name says.
    pub(super) fn kind(&self) -> Kind {
        match self.name.as_str() {
            "text/html" | "application/xhtml+xml" => Kind::Html,
            // Servers say these of whatever they do not know.
            "" | "application/octet-stream" | "binary/octet-stream" | "unknown/unknown" => Kind::Unknown,
            name if name.starts_with("text/") || name.ends_with("+json") || name.ends_with("+xml") => {
                Kind::Text
            }
            name if TEXT.contains(&name) => Kind::Text,
            _ => Kind::Binary,
        }
    }

    /// What it is once the bytes are there.
    pub(super) fn kind_of(&self, bytes: &[u8]) -> Kind {
        let start = &bytes[..bytes.len().min(SNIFFED)];
        match self.kind() {
            Kind::Binary => Kind::Binary,
            Kind::Html => Kind::Html,
            Kind::Text | Kind::Unknown if Encoding::for_bom(bytes).is_none() && start.contains(&0) => {
                Kind::Binary
            }
            Kind::Text => Kind::Text,
            Kind::Unknown if looks_like_html(start) => Kind::Html,
            Kind::Unknown => Kind::Text,
        }
    }

    /// The text, never a failure: what no encoding explains is shown as U+FFFD.
    pub(super) fn decode(&self, bytes: &[u8], kind: Kind) -> String {
        let said = self.charset.as_deref().and_then(|label| Encoding::for_label(label.as_bytes()));
        let declared = || match kind {
            Kind::Html => declared_in(bytes),
            Kind::Text | Kind::Unknown | Kind::Binary => None,
        };
        let guessed = || if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 };
        // A byte order mark outranks all of them.
        let (text, _, _) = said.or_else(declared).unwrap_or_else(guessed).decode(bytes);
        text.into_owned()
    }
}

fn looks_like_html(start: &[u8]) -> bool {
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let start = start.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    ["<!doctype html", "<html", "<head", "<body"].iter().any(|tag| start.starts_with(tag))
}

/// The encoding that a page names in its first lines.
fn declared_in(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(SNIFFED)]).to_ascii_lowercase();
    let named = start.split("<meta").skip(1).chain(start.strip_prefix("<?xml")).find_map(|tag| {
        let tag = tag.split('>').next().unwrap_or_default();
        let (_, value) = tag.split_once("charset").or_else(|| tag.split_once("encoding"))?;
        let value = value.trim_start().strip_prefix('=')?.trim_start_matches([' ', '"', '\'']);
        let label =
            value.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '/' | '?')).next()?;
        Encoding::for_label(label.as_bytes())
    })?;
    // These words could not have been read in it.
    Some(if named == UTF_16LE || named == UTF_16BE { UTF_8 } else { named })
}

/// As far as a page may say what it is.
const SNIFFED: usize = 1024;

const TEXT: [&str; 17] = [
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/ndjson",
    "application/sql",
    "application/toml",
    "application/x-httpd-php",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-toml",
    "application/x-yaml",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let check = |header: &str, bytes: &[u8], expect: Kind| {
            assert_eq!(Media::parse(header).kind_of(bytes), expect, "{header}");
        };
        check("text/html; charset=utf-8", b"", Kind::Html);
        check("Text/HTML", b"", Kind::Html);
        check("application/xhtml+xml", b"", Kind::Html);
        check("text/plain", b"<html>", Kind::Text);
        check("text/plain", b"\x7fELF\0\0", Kind::Binary);
        check("text/plain", b"\xff\xfea\0", Kind::Text);
        check("text/markdown", b"# a", Kind::Text);
        check("application/json", b"{}", Kind::Text);
        check("application/vnd.api+json", b"{}", Kind::Text);
        check("image/svg+xml", b"<svg/>", Kind::Text);
        check("image/png", b"", Kind::Binary);
        check("application/pdf", b"%PDF", Kind::Binary);
        check("", b" \n<!DOCTYPE HTML>", Kind::Html);
        check("", b"plain", Kind::Text);
        check("", b"a\0b", Kind::Binary);
        check("application/octet-stream", b"fn main() {}", Kind::Text);
        check("application/octet-stream", b"PK\x03\x04\0", Kind::Binary);
    }

    #[test]
    fn encodings() {
        let check = |header: &str, bytes: &[u8], expect: &str| {
            let media = Media::parse(header);
            assert_eq!(media.decode(bytes, media.kind_of(bytes)), expect, "{header}");
        };
        check("text/plain; charset=ISO-8859-1", b"caf\xe9", "caf\u{e9}");
        check("text/plain; format=flowed; Charset=\"utf-8\"", "caf\u{e9}".as_bytes(), "caf\u{e9}");
        check("text/plain; charset=shift_jis", b"\x83\x65", "\u{30c6}");
        check("text/plain; charset=no-such", b"caf\xe9", "caf\u{e9}");
        check("text/plain", "caf\u{e9}".as_bytes(), "caf\u{e9}");
        check("text/plain", b"caf\xe9", "caf\u{e9}");
        check("text/plain; charset=utf-8", b"a\xffb", "a\u{fffd}b");
        check("text/plain; charset=utf-8", b"\xff\xfea\0", "a");
        check("text/plain; charset=latin1", b"\xef\xbb\xbf\xc3\xa9", "\u{e9}");
        let page = |head: &str| [head.as_bytes(), b"\xef"].concat();
        let read =
            |header: &str, head: &str, last: &str| check(header, &page(head), &format!("{head}{last}"));
        read("text/html", "<meta charset=koi8-r>", "\u{41e}");
        read("text/html", "<META http-equiv=x content='text/html; charset=windows-1251'>", "\u{43f}");
        read("text/html; charset=windows-1252", "<meta charset=koi8-r>", "\u{ef}");
        read("text/html", "<?xml version='1.0' encoding='koi8-r'?><html>", "\u{41e}");
        read("text/html", "<meta charset=utf-16>", "\u{fffd}");
    }
}
