//! Results that are shown clipped: the one place that says what stands in their place, for codecs and for the accountant.

use std::borrow::Cow;

use crate::{BlobHash, FilePart, FileSource, ProviderPart, ceil_boundary, floor_boundary};

/// Head and tail of a long text with a note of what is gone between them. Where that had the handles of outputs that are kept
/// whole elsewhere, the note has them, so that the model can read them again (requirement P10).
pub fn clipped(text: &str, limit: Option<usize>) -> Cow<'_, str> {
    let Some(limit) = limit.filter(|limit| text.len() > *limit) else { return Cow::Borrowed(text) };
    let head = floor_boundary(text, limit.div_ceil(2));
    let tail = ceil_boundary(text, text.len() - limit / 2);
    let handles = handles(text, head, tail);
    Cow::Owned(format!("{}\n[{} bytes removed{handles}]\n{}", &text[..head], tail - head, &text[tail..]))
}

/// The words in place of a file in a clipped result: it is gone whole, half of one is of no use.
pub fn clipped_file(file: &FilePart, clip: Option<usize>) -> Option<String> {
    match (&file.source, clip) {
        (FileSource::Base64(data), Some(limit)) if data.len() > limit => {
            Some(format!("[{}, {} bytes removed]", file.label(), data.len()))
        }
        (FileSource::Base64(_) | FileSource::Url(_) | FileSource::Reference { .. }, _) => None,
    }
}

/// The same for a part that only its provider understands.
pub fn clipped_part(part: &ProviderPart, clip: Option<usize>) -> Option<String> {
    let size = part.raw.get().len();
    clip.filter(|limit| size > *limit).map(|_| format!("[{}, {size} bytes removed]", part.kind))
}

/// The handles that are not whole in the head or in the tail, as the note has them.
fn handles(text: &str, head: usize, tail: usize) -> String {
    let mut found: Vec<&str> = Vec::new();
    for (at, _) in text.match_indices(SCHEME) {
        let end = at + SCHEME.len() + HEX_DIGITS;
        let is_cut = at < tail && end > head;
        let hash = text.get(at + SCHEME.len()..end).filter(|hash| is_cut && BlobHash::parse(hash).is_some());
        if hash.is_some() && found.len() < MOST_HANDLES && !found.contains(&&text[at..end]) {
            found.push(&text[at..end]);
        }
    }
    let known = |handle: &str| text[..head].contains(handle) || text[tail..].contains(handle);
    found.retain(|handle| !known(handle));
    if found.is_empty() { String::new() } else { format!("; whole: {}", found.join(", ")) }
}

/// How a [`BlobHash`] is written where a path may stand.
const SCHEME: &str = "blob:";
const HEX_DIGITS: usize = 64;
/// A text that lists many handles is no output that was capped.
const MOST_HANDLES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn clips_say_what_they_removed_and_split_no_character(text in "\\PC{0,60}", limit in 0usize..90) {
            let short = clipped(&text, Some(limit));
            if text.len() <= limit {
                proptest::prop_assert_eq!(short.as_ref(), text.as_str());
            } else {
                let (head, rest) = short.split_once("\n[").unwrap();
                let (removed, tail) = rest.rsplit_once(" bytes removed]\n").unwrap();
                proptest::prop_assert_eq!(head.len() + removed.parse::<usize>().unwrap() + tail.len(), text.len());
                proptest::prop_assert!(text.starts_with(head) && text.ends_with(tail));
                proptest::prop_assert!(head.len() + tail.len() <= limit);
            }
        }
    }

    #[test]
    fn handles_that_are_cut_out_stand_in_the_note() {
        let blob = |digit: char| format!("blob:{}", digit.to_string().repeat(64));
        let note = |text: &str, limit| {
            let short = clipped(text, Some(limit)).into_owned();
            short.split_once("\n[").unwrap().1.rsplit_once("]\n").unwrap().0.to_owned()
        };
        let (a, b) = (blob('a'), blob('b'));
        let capped =
            format!("{}\n[… 9000 bytes left out; path \"{a}\" …]\n{}", "x".repeat(300), "y".repeat(200));
        assert_eq!(note(&capped, 100), format!("{} bytes removed; whole: {a}", capped.len() - 100));
        // Cut through, the head is no handle any more.
        assert_eq!(note(&format!("x{a}{}", "y".repeat(100)), 40), format!("130 bytes removed; whole: {a}"));
        // It is whole in the head, or no handle at all.
        assert_eq!(note(&format!("{a} {}", "y".repeat(100)), 138), "32 bytes removed");
        assert_eq!(note(&format!("{a} {} {a}", "y".repeat(100)), 138), "102 bytes removed");
        assert_eq!(note(&format!("xxxx blob:abc {}", "y".repeat(100)), 4), "110 bytes removed");
        assert_eq!(note(&format!("xxxx {a} {b} {a} yyyy"), 8), format!("211 bytes removed; whole: {a}, {b}"));
        let many: String = ('0'..='9').map(blob).collect();
        assert_eq!(note(&format!("x{many}y"), 2).matches("blob:").count(), 3);
    }

    fn file(media_type: &str, data: &str, name: Option<&str>) -> FilePart {
        let source = FileSource::Base64(data.into());
        FilePart { media_type: media_type.into(), source, name: name.map(str::to_owned) }
    }

    #[test]
    fn clipped_files_are_gone_whole() {
        let given = file("image/png", "AAAA", Some("a.png"));
        assert_eq!(clipped_file(&given, Some(3)).unwrap(), "[a.png (image/png), 4 bytes removed]");
        assert_eq!((clipped_file(&given, Some(4)), clipped_file(&given, None)), (None, None));
        let raw = crate::RawJson::parse(r#"{"a":1}"#).unwrap();
        let given = ProviderPart { provider: "p".into(), kind: "odd".into(), raw };
        assert_eq!(clipped_part(&given, Some(6)).unwrap(), "[odd, 7 bytes removed]");
        assert_eq!((clipped_part(&given, Some(7)), clipped_part(&given, None)), (None, None));
    }
}
