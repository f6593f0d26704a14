//! Bytes that are no text, as they stand in a recording.

/// Two digits a byte, in lower case.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    agent_core::hex(bytes)
}

/// `None` for anything but pairs of hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|value| u8::try_from(value).ok());
    digits.chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&all)), Some(all));
        assert_eq!(from_hex("aB"), Some(vec![0xab]));
        for bad in ["a", "0g", "+1", "\u{e9}"] {
            assert_eq!(from_hex(bad), None, "{bad}");
        }
    }
}
