//! What all processes of one command bear, so that they are found wherever they went.

use std::hash::{BuildHasher as _, RandomState};

use super::processes::Process;
use super::unique::unique;

/// How the variable begins that marks the processes of a command. A command inside a command adds its own mark and
/// keeps the outer one, so the outer one still finds it.
pub(super) const MARK: &str = "AGENT_CALL_";

/// Two marks that no other command of this machine bears: a variable of the environment, and a resource limit.
///
/// `env -i` takes the variable away; the limit is kept by whatever a process starts, whoever its parent is and in
/// whatever session. It is that on file locks, which Linux has and no longer heeds.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    variable: String,
    limit: Option<Limit>,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    value: u64,
    /// Whether the hard limit bears an outer command's mark and stays as it is, so that this one has the soft limit.
    soft: bool,
}

impl Mark {
    pub(super) fn new() -> Self {
        Self { variable: format!("{MARK}{}", unique()), limit: Limit::new() }
    }

    /// The variable's name; its value is `1`.
    pub(super) fn variable(&self) -> &str {
        &self.variable
    }

    /// The limit in digits; empty on a system that has none to spare.
    pub(super) fn limit(&self) -> String {
        self.limit.map(|limit| limit.value.to_string()).unwrap_or_default()
    }

    /// Which limits are set, as `ulimit` is told; empty is both.
    pub(super) fn kind(&self) -> &'static str {
        if self.limit.is_some_and(|limit| limit.soft) { "-S" } else { "" }
    }

    /// Whether a process bears one of the two.
    pub(super) fn is_on(&self, process: &Process) -> bool {
        process.bears(format!("{}=1", self.variable).as_bytes())
            || self.limit.is_some_and(|limit| process.has_lock_limit(limit.value))
    }
}

impl Limit {
    #[cfg(target_os = "linux")]
    fn new() -> Option<Self> {
        let hard = rustix::process::getrlimit(rustix::process::Resource::Locks).maximum;
        let random = RandomState::new().hash_one(()) % RANDOM;
        // A hard limit can only be lowered, so a command inside a command has to stay below.
        let value = hard.unwrap_or(TOP).checked_sub(1 + random)?;
        Some(Self { value, soft: hard.is_some() })
    }

    #[cfg(not(target_os = "linux"))]
    fn new() -> Option<Self> {
        None
    }
}

/// Every shell can read it, and it leaves room for a command inside a command.
const TOP: u64 = 1 << 62;
const RANDOM: u64 = 1 << 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_differ() {
        let (one, other) = (Mark::new(), Mark::new());
        assert_ne!(one.variable(), other.variable());
        assert!(cfg!(not(target_os = "linux")) || one.limit() != other.limit());
    }
}
