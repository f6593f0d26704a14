//! Words that formats share: clipped results, names of files, inputs that must be objects.

use std::borrow::Cow;

use agent_core::{BlobHash, Clip, FilePart, ToolInput, ceil_boundary, floor_boundary};

use sha2::{Digest as _, Sha256};

use super::json::{quoted, sound};

/// Head and tail of a long text with a note of what is gone between them. Where that had the handles of outputs that are kept
/// whole elsewhere, the note has them, so that the model can read them again; so it has the handle of the text itself,
/// where that was put there (requirement P10). That is its hash, so that the note follows from the history alone.
pub(crate) fn clipped(text: &str, clip: Option<Clip>) -> Cow<'_, str> {
    let Some(clip) = clip.filter(|clip| text.len() > clip.bytes) else { return Cow::Borrowed(text) };
    let head = floor_boundary(text, clip.bytes.div_ceil(2));
    let tail = ceil_boundary(text, text.len() - clip.bytes / 2);
    let is_named = clip.offloaded && BlobHash::handles_in(text).next().is_none();
    if is_named && tail - head <= OWN_NOTE {
        // The note would be as long as what it stands for.
        return Cow::Borrowed(text);
    }
    let handles = if is_named { own_handle(text) } else { handles(text, head, tail) };
    Cow::Owned(format!("{}\n[{} bytes removed{handles}]\n{}", &text[..head], tail - head, &text[tail..]))
}

fn own_handle(text: &str) -> String {
    let hash = BlobHash::of_digest(&Sha256::digest(text.as_bytes()).into());
    format!("; whole: {hash}")
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

/// A file in words.
pub(crate) fn label(file: &FilePart) -> String {
    match &file.name {
        Some(name) => format!("{name} ({})", file.media_type),
        None => file.media_type.clone(),
    }
}

/// The input of a call, byte for byte; what is no JSON object is wrapped into one, where the wire takes no other.
pub(crate) fn object_input(input: &ToolInput) -> Cow<'_, str> {
    match input.object() {
        Some(object) => sound(object),
        None => Cow::Owned(format!(r#"{{"invalid_json":{}}}"#, quoted(input.as_str()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn clips_say_what_they_removed_and_split_no_character(text in "\\PC{0,60}", limit in 0usize..90) {
            let short = clipped(&text, Some(Clip { bytes: limit, offloaded: false }));
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
            let short = clipped(text, Some(Clip { bytes: limit, offloaded: false })).into_owned();
            short.split_once("\n[").unwrap().1.rsplit_once("]\n").unwrap().0.to_owned()
        };
        let (a, b) = (blob('a'), blob('b'));
        let capped =
            format!("{}\n[… 9000 bytes left out; path \"{a}\" …]\n{}", "x".repeat(300), "y".repeat(200));
        assert_eq!(note(&capped, 100), format!("{} bytes removed; whole: {a}", capped.len() - 100));
        let clip = |offloaded| clipped(&capped, Some(Clip { bytes: 100, offloaded }));
        assert_eq!(clip(true), clip(false), "what it names is whole, and it is not");
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
    fn a_text_that_was_put_whole_elsewhere_is_named_by_its_hash() {
        let clip = |bytes| Some(Clip { bytes, offloaded: true });
        let text = "x".repeat(400);
        insta::assert_snapshot!(clipped(&text, clip(20)), @r"
        xxxxxxxxxx
        [380 bytes removed; whole: blob:7b0bd700ce066ef35190fde2dd7a0bcce426b8e10e4d32613ab550105545faad]
        xxxxxxxxxx
        ");
        assert_eq!(clipped(&text, clip(20)), clipped(&text, clip(20)), "it follows from the text alone");
        // What is gone is worth less than the note.
        assert_eq!(clipped(&text, clip(300)), text.as_str());
        assert_eq!(clipped(&text, clip(400)), text.as_str());
        let unnamed = clipped(&text, Some(Clip { bytes: 20, offloaded: false }));
        assert!(unnamed.contains("[380 bytes removed]"), "{unnamed}");
    }

    proptest::proptest! {
        #[test]
        fn naming_a_text_never_makes_it_longer(text in "\\PC{0,400}", bytes in 0usize..500) {
            let short = clipped(&text, Some(Clip { bytes, offloaded: true }));
            proptest::prop_assert!(short.len() <= text.len(), "{short}");
        }
    }

    #[test]
    fn inputs_are_objects() {
        let check = |given: ToolInput, expect: &str| assert_eq!(object_input(&given), expect);
        check(
            ToolInput::finished(r#"{ "b":1.0,"a":12345678901234567890 }"#),
            r#"{ "b":1.0,"a":12345678901234567890 }"#,
        );
        check(ToolInput::finished("[1]"), r#"{"invalid_json":"[1]"}"#);
        check(ToolInput::finished("{\"a"), r#"{"invalid_json":"{\"a"}"#);
        check(ToolInput::cut("{\"a"), r#"{"invalid_json":"{\"a"}"#);
        check(ToolInput::cut(""), r#"{"invalid_json":""}"#);
        check(ToolInput::finished(r#"{"a":"\ud83d"}"#), "{\"a\":\"\u{fffd}\"}");
    }
}
