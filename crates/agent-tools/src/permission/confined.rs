//! A run that is for one thing: nothing runs but what a rule allows, and calls that only read where these are wanted.

use super::{Matter, PermissionDecision, Subject};
use crate::Access;

/// Closes [`Permissions`](super::Permissions): where no rule speaks, neither the tool, a hook, a classifier nor the mode is
/// heard, and the call is refused. What would ask a person is refused too, for there is nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Confinement {
    /// Whether calls that only read may run where no rule speaks; see [`Matter::only_reads`].
    pub reads: bool,
    /// What the model is told of a call that is refused: what may run, and what to do instead.
    pub words: String,
}

impl Matter<'_> {
    /// Whether the call is known to change nothing: a tool that declares that it only looks, or a text for a shell each
    /// command of which is known to only read, with words that make it do nothing else. A tool that wants a person, and
    /// what cannot be known before it runs, is no such call.
    pub fn only_reads(&self) -> bool {
        if self.own.is_some_and(|own| own != PermissionDecision::Allow) {
            return false;
        }
        match (self.access, self.subject) {
            (Access::Read, _) => true,
            (Access::Execute, Some(Subject::Command(text))) => super::shell::script(text).only_reads(),
            (Access::Session | Access::Edit | Access::Network, _)
            | (Access::Execute, None | Some(Subject::Path { .. } | Subject::Url { .. } | Subject::Text(_))) => {
                false
            }
        }
    }
}

impl Confinement {
    /// The decision where no rule speaks.
    pub(super) fn decide(&self, matter: &Matter<'_>) -> PermissionDecision {
        if self.reads && matter.only_reads() { PermissionDecision::Allow } else { PermissionDecision::Deny }
    }
}
