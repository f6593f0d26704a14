//! What must hold for any bytes: one check a target, shared by the fuzzer and by the stable runner.
//!
//! A check panics where a promise is broken. Files in `fuzz_targets/` only name their check; `TARGETS` lists all.

pub mod classify;
mod cuts;
pub mod decode;
pub mod import;
pub mod mutator;
pub mod sse;

use agent_providers::WireFormat;

/// One target of the fuzzer.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is that of its file in `fuzz_targets/` and of its folder in `corpus/`.
    pub name: &'static str,
    /// Panics when the bytes break a promise.
    pub check: fn(&[u8]),
    /// The format it is about; a target without one is always ready.
    pub format: Option<&'static str>,
}

impl Target {
    /// The target of a name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }

    /// Whether this build has the format that the target is about.
    pub fn is_ready(self) -> bool {
        self.format.is_none_or(|format| WireFormat::parse(format).is_some())
    }
}

/// All targets.
pub const TARGETS: [Target; 8] = [
    Target { name: "decode_anthropic", check: decode::anthropic, format: Some("anthropic") },
    Target { name: "decode_openai_chat", check: decode::openai_chat, format: Some("openai-chat") },
    Target {
        name: "decode_openai_responses",
        check: decode::openai_responses,
        format: Some("openai-responses"),
    },
    Target { name: "decode_gemini", check: decode::gemini, format: Some("gemini") },
    Target { name: "decode_ollama", check: decode::ollama, format: Some("ollama") },
    Target { name: "sse", check: sse::check, format: None },
    Target { name: "classify", check: classify::check, format: None },
    Target { name: "import_request", check: import::check, format: None },
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
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for target in TARGETS {
            let found = Target::named(target.name).map(|found| found.format);
            assert_eq!(found, Some(target.format));
        }
        assert!(Target::named("nothing").is_none());
    }
}
