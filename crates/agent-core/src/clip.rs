//! Results that are shown clipped: the one place that says what stands in their place, for codecs and for the accountant.

use std::borrow::Cow;

use crate::{BlobHash, Clip, FilePart, FileSource, ProviderPart, ceil_boundary, floor_boundary};

/// Head and tail of a long text with a note of what is gone between them. Where that had the handles of outputs that are
/// kept whole elsewhere, the note has them, so that the model can read them again; so it has the handle of the text itself,
/// where that was put there (requirement P10). `name` gives it: the text's hash, so that the note follows from the history
/// alone. Every hash is as long as another, so that whoever only counts may give any.
pub fn clipped(text: &str, clip: Option<Clip>, name: impl FnOnce(&str) -> BlobHash) -> Cow<'_, str> {
    let Some(clip) = clip.filter(|clip| text.len() > clip.bytes) else { return Cow::Borrowed(text) };
    let head = floor_boundary(text, clip.bytes.div_ceil(2));
    let tail = ceil_boundary(text, text.len() - clip.bytes / 2);
    let is_named = clip.offloaded && BlobHash::handles_in(text).next().is_none();
    if is_named && tail - head <= OWN_NOTE {
        // The note would be as long as what it stands for.
        return Cow::Borrowed(text);
    }
    let handles = if is_named { format!("; whole: {}", name(text)) } else { handles(text, head, tail) };
    Cow::Owned(format!("{}\n[{} bytes removed{handles}]\n{}", &text[..head], tail - head, &text[tail..]))
}

/// The words in place of a file in a clipped result: it is gone whole, half of one is of no use.
pub fn clipped_file(file: &FilePart, clip: Option<Clip>) -> Option<String> {
    match (&file.source, clip) {
        (FileSource::Base64(data), Some(clip)) if data.len() > clip.bytes => {
            Some(format!("[{}, {} bytes removed]", file.label(), data.len()))
        }
        (FileSource::Base64(_) | FileSource::Url(_) | FileSource::Reference { .. }, _) => None,
    }
}

/// The same for a part that only its provider understands.
pub fn clipped_part(part: &ProviderPart, clip: Option<Clip>) -> Option<String> {
    let size = part.raw.get().len();
    clip.filter(|clip| size > clip.bytes).map(|_| format!("[{}, {size} bytes removed]", part.kind))
}

/// The handles that are not whole in the head or in the tail, as the note has them.
fn handles(text: &str, head: usize, tail: usize) -> String {
    let mut found: Vec<&str> = Vec::new();
    for (at, handle) in BlobHash::handles_in(text) {
        let is_cut = at < tail && at + handle.len() > head;
        if is_cut && found.len() < MOST_HANDLES && !found.contains(&handle) {
            found.push(handle);
        }
    }
    let known = |handle: &str| text[..head].contains(handle) || text[tail..].contains(handle);
    found.retain(|handle| !known(handle));
    if found.is_empty() { String::new() } else { format!("; whole: {}", found.join(", ")) }
}

/// Bytes of a note with a handle.
const OWN_NOTE: usize = 110;
/// A text that lists many handles is no output that was capped.
const MOST_HANDLES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn short(text: &str, bytes: usize, offloaded: bool) -> Cow<'_, str> {
        clipped(text, Some(Clip { bytes, offloaded }), |_| BlobHash::of_digest(&[0x7b; 32]))
    }

    proptest::proptest! {
        #[test]
        fn clips_say_what_they_removed_and_split_no_character(text in "\\PC{0,60}", limit in 0usize..90) {
            let short = short(&text, limit, false);
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
            let short = short(text, limit, false).into_owned();
            short.split_once("\n[").unwrap().1.rsplit_once("]\n").unwrap().0.to_owned()
        };
        let (a, b) = (blob('a'), blob('b'));
        let capped =
            format!("{}\n[… 9000 bytes left out; path \"{a}\" …]\n{}", "x".repeat(300), "y".repeat(200));
        assert_eq!(note(&capped, 100), format!("{} bytes removed; whole: {a}", capped.len() - 100));
        assert_eq!(
            short(&capped, 100, true),
            short(&capped, 100, false),
            "what it names is whole, and it is not"
        );
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

    #[test]
    fn a_text_that_was_put_whole_elsewhere_is_named() {
        let text = "x".repeat(400);
        insta::assert_snapshot!(short(&text, 20, true), @r"
        xxxxxxxxxx
        [380 bytes removed; whole: blob:7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b7b]
        xxxxxxxxxx
        ");
        // What is gone is worth less than the note.
        assert_eq!(short(&text, 300, true), text.as_str());
        assert_eq!(short(&text, 400, true), text.as_str());
        assert!(short(&text, 20, false).contains("[380 bytes removed]"));
    }

    proptest::proptest! {
        #[test]
        fn naming_a_text_never_makes_it_longer(text in "\\PC{0,400}", bytes in 0usize..500) {
            let short = short(&text, bytes, true);
            proptest::prop_assert!(short.len() <= text.len(), "{short}");
        }
    }

    fn file(media_type: &str, data: &str, name: Option<&str>) -> FilePart {
        let source = FileSource::Base64(data.into());
        FilePart { media_type: media_type.into(), source, name: name.map(str::to_owned) }
    }

    #[test]
    fn clipped_files_are_gone_whole() {
        let clip = |bytes| Some(Clip { bytes, offloaded: false });
        let given = file("image/png", "AAAA", Some("a.png"));
        assert_eq!(clipped_file(&given, clip(3)).unwrap(), "[a.png (image/png), 4 bytes removed]");
        assert_eq!((clipped_file(&given, clip(4)), clipped_file(&given, None)), (None, None));
        let raw = crate::RawJson::parse(r#"{"a":1}"#).unwrap();
        let given = ProviderPart { provider: "p".into(), kind: "odd".into(), raw };
        assert_eq!(clipped_part(&given, clip(6)).unwrap(), "[odd, 7 bytes removed]");
        assert_eq!((clipped_part(&given, clip(7)), clipped_part(&given, None)), (None, None));
    }
}
