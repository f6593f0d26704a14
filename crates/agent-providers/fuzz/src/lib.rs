//! What must hold for any bytes: one check a target, shared by the fuzzer and by the stable runner.
//!
//! A check panics where a promise is broken. Files in `fuzz_targets/` only name their check; `TARGETS` lists all.

pub mod classify;
mod cuts;
pub mod decode;
pub mod import;
pub mod mutator;
pub mod sse;

/// One target of the fuzzer.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its file in `fuzz_targets/` and of its folder in `corpus/`.
    pub name: &'static str,
    /// Panics when the bytes break a promise.
    pub check: fn(&[u8]),
}

impl Target {
    /// The target of a name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }
}

/// All targets.
pub const TARGETS: [Target; 8] = [
    Target { name: "decode_anthropic", check: decode::anthropic },
    Target { name: "decode_openai_chat", check: decode::openai_chat },
    Target { name: "decode_openai_responses", check: decode::openai_responses },
    Target { name: "decode_gemini", check: decode::gemini },
    Target { name: "decode_ollama", check: decode::ollama },
    Target { name: "sse", check: sse::check },
    Target { name: "classify", check: classify::check },
    Target { name: "import_request", check: import::check },
];

/// The body of a file in `fuzz_targets/`: an entry for the fuzzer, or a word about how to start it.
#[macro_export]
macro_rules! entry {
    ($name:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| {
            if let Some(target) = $crate::Target::named(stringify!($name)) {
                (target.check)(data);
            }
        });

        #[cfg(not(fuzzing))]
        fn main() {
            println!("start it with: cargo xtask fuzz {}", stringify!($name));
        }
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agent_providers::WireFormat;

    use super::*;

    #[test]
    fn names_are_unique_and_every_format_has_its_decoder() {
        let names: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(names.len(), TARGETS.len());
        for format in WireFormat::ALL {
            let name = format!("decode_{}", format.as_str().replace('-', "_"));
            assert!(Target::named(&name).is_some(), "{name}");
        }
        assert!(Target::named("nothing").is_none());
    }
}
