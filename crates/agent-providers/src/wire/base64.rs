//! Base64 for documents of plain text, which one provider takes as text and our types hold as a file.

/// Bytes as padded base64.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| (group << 8) | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = usize::try_from((group >> (18 - 6 * at)) & 63).unwrap_or_default();
            out.push(if at > chunk.len() { '=' } else { char::from(DIGITS[digit]) });
        }
    }
    out
}

/// The text in base64, of either alphabet, padded or not; `None` for anything else.
pub(crate) fn decoded_text(text: &str) -> Option<String> {
    let text = text.trim_end_matches('=').as_bytes();
    if text.len() % 4 == 1 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    for chunk in text.chunks(4) {
        let mut group = 0_u32;
        for at in 0..4 {
            group = (group << 6) | chunk.get(at).map_or(Some(0), |byte| value(*byte))?;
        }
        bytes.extend(group.to_be_bytes().into_iter().skip(1).take(chunk.len() - 1));
    }
    String::from_utf8(bytes).ok()
}

fn value(byte: u8) -> Option<u32> {
    Some(match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_texts_have_known_forms() {
        let check = |text: &str, expect: &str| {
            assert_eq!(encoded(text.as_bytes()), expect);
            assert_eq!(decoded_text(expect).as_deref(), Some(text));
            assert_eq!(decoded_text(expect.trim_end_matches('=')).as_deref(), Some(text), "without padding");
        };
        check("", "");
        check("f", "Zg==");
        check("fo", "Zm8=");
        check("foo", "Zm9v");
        check("caf\u{e9}?>", "Y2Fmw6k/Pg==");
        assert_eq!(decoded_text("Y2Fmw6k_Pg").as_deref(), Some("caf\u{e9}?>"), "the alphabet of addresses");
        for bad in ["Z", "Zm9vY", "Zm 9", "//8="] {
            assert_eq!(decoded_text(bad), None, "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_comes_back(text in "\\PC{0,40}") {
            proptest::prop_assert_eq!(decoded_text(&encoded(text.as_bytes())), Some(text));
        }
    }
}
