//! Compaction that the provider did by itself: told like one of ours.

use agent_core::{AssistantPart, EventBody, Response, Usage};
use agent_turn::Report;

use super::Drive;
use crate::gauge::size;

/// The tier's name in events.
const TIER: &str = "server_compaction";
/// The same for rules by which the provider leaves parts of each request unread.
const EDITING: &str = "server_context_editing";
/// The provider's word for the block that holds what it made of the conversation.
const BLOCK: &str = "compaction";

impl Drive {
    /// Takes how large the context is from an answer's usage, and tells when the provider made it smaller.
    pub(super) fn take_size(&mut self, report: &Report, usage: &Usage) {
        let before = self.live.accountant.used();
        let last = size(usage);
        self.live.accountant.report(last, self.live.history.len());
        if let Report::Response(pending) = report
            && has_compacted(pending.response())
        {
            let tier = TIER.to_owned();
            self.out.stage(EventBody::CompactionRequested { before, tier: tier.clone() });
            // How long that took is not told apart from the answer.
            self.out.stage(EventBody::CompactionCompleted { before, after: last, tier, millis: 0 });
        }
        self.tell_level();
    }

    /// Whether the provider edited the conversation for this answer otherwise than for the one before. That is told as what it
    /// is, and explains why less is read from its cache.
    pub(super) fn is_edited(&self, answer: &Report, cleared: u64) -> bool {
        let Report::Response(pending) = answer else { return false };
        cleared != self.live.cleared || has_compacted(pending.response())
    }

    /// Tells that the provider left parts of the request unread. It does so with every request from then on, which is told
    /// again only when it is more.
    pub(super) fn tell_cleared(&mut self, tokens: u64, usage: &Usage) {
        if std::mem::replace(&mut self.live.cleared, tokens) >= tokens {
            return;
        }
        let after = size(usage);
        let (before, tier) = (after.saturating_add(tokens), EDITING.to_owned());
        self.out.stage(EventBody::CompactionRequested { before, tier: tier.clone() });
        self.out.stage(EventBody::CompactionCompleted { before, after, tier, millis: 0 });
    }
}

/// Whether the provider put a summary of its own in the place of all before this answer.
pub(crate) fn has_compacted(response: &Response) -> bool {
    response.parts.iter().any(|part| match part {
        AssistantPart::Provider(part) => part.kind == BLOCK,
        AssistantPart::Text(_) | AssistantPart::Reasoning(_) | AssistantPart::ToolCall(_) | _ => false,
    })
}
