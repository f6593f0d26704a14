//! Names on the wire: every tool name and call id becomes one that the provider takes, and comes back (case M12).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_core::hex;
use sha2::{Digest, Sha256};

/// The wire names a model's encoders gave out, shared with its decoders.
///
/// A wire name is a pure function of the real name, so it is the same after a restart and whichever other tools
/// there are; only the way back needs memory.
#[derive(Debug, Clone, Default)]
pub struct ToolNames(Arc<Mutex<BTreeMap<String, String>>>);

impl ToolNames {
    /// The name to send; remembered when it differs from the real one.
    ///
    /// ```
    /// use agent_providers::ToolNames;
    ///
    /// let names = ToolNames::default();
    /// assert_eq!(names.wire("read_file"), "read_file");
    /// let wire = names.wire("calendar.respond").into_owned();
    /// assert!(wire.starts_with("calendar_respond_"));
    /// assert_eq!(names.real(&wire), "calendar.respond");
    /// ```
    pub fn wire<'n>(&self, real: &'n str) -> Cow<'n, str> {
        let wire = tool_name(real);
        if let Cow::Owned(wire) = &wire {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            known.insert(wire.clone(), real.to_owned());
        }
        wire
    }

    /// The real name of a tool the model called.
    pub fn real(&self, wire: &str) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(wire).map_or_else(|| wire.to_owned(), Clone::clone)
    }
}

/// The name itself when every provider takes it; some want a letter or an underscore at its beginning.
fn tool_name(real: &str) -> Cow<'_, str> {
    let begins_well = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well(real) {
        return wire_name(real, LONGEST_TOOL_NAME);
    }
    let mut wire = hashed(real);
    if !begins_well(&wire) {
        wire.replace_range(..1, "_");
    }
    Cow::Owned(wire)
}

/// A call's id in the provider's grammar; a renamed call (`X~2`) is outside of it.
pub(crate) fn wire_id(id: &str) -> Cow<'_, str> {
    wire_name(id, usize::MAX)
}

/// The same for a provider that takes ids of at most `longest` bytes.
pub(crate) fn wire_id_within(id: &str, longest: usize) -> Cow<'_, str> {
    wire_name(id, longest)
}

/// The name itself when it is 1 to `longest` of `A-Z a-z 0-9 _ -`; otherwise its good characters and a hash of it.
fn wire_name(real: &str, longest: usize) -> Cow<'_, str> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !real.is_empty() && real.len() <= longest && real.chars().all(good) {
        return Cow::Borrowed(real);
    }
    Cow::Owned(hashed(real))
}

/// The good characters of a name and a hash of it; every other one is an underscore.
fn hashed(real: &str) -> String {
    let kept = real.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let mut wire: String = kept.take(LONGEST_TOOL_NAME - HASH_DIGITS - 1).collect();
    wire.push('_');
    wire.push_str(&hex(&Sha256::digest(real.as_bytes()))[..HASH_DIGITS]);
    wire
}

const LONGEST_TOOL_NAME: usize = 64;
const HASH_DIGITS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_names_are_valid_unique_and_reversible() {
        let long = "x".repeat(70);
        let (a, b, digits) = (format!("{long}a"), format!("{long}b"), "9".repeat(80));
        let real =
            ["a.b", "a_b", "a/b", "\u{65e5}\u{5386}", "mcp__server__tool", &a, &b, "", "2fa", "-x", &digits];
        let names = ToolNames::default();
        let wire: Vec<String> = real.iter().map(|name| names.wire(name).into_owned()).collect();
        for (wire, real) in wire.iter().zip(real) {
            assert!((1..=64).contains(&wire.len()), "{wire}");
            assert!(wire.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{wire}");
            assert!(wire.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'), "{wire}");
            assert_eq!(names.real(wire), real);
            assert_eq!(ToolNames::default().wire(real), *wire, "the same after a restart");
        }
        let unique: std::collections::BTreeSet<_> = wire.iter().collect();
        assert_eq!(unique.len(), real.len());
        assert_eq!(wire[1], "a_b", "a good name is sent as it is");
    }

    #[test]
    fn renamed_ids_fit_the_grammar() {
        assert_eq!(wire_id("toolu_1"), "toolu_1");
        let renamed = wire_id("toolu_1~2");
        assert!(renamed.starts_with("toolu_1_2_") && !renamed.contains('~'));
        assert_eq!(wire_id(&"y".repeat(200)).len(), 200, "long ids are fine");
    }
}
