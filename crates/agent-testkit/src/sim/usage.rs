//! What an exchange costs: the prompt as the provider's cache accounts for it, the answer by its size.

use agent_core::Usage;

use crate::script::Reply;

/// Adds a reply to the accounted prompt, unless the script says what is reported. A token of an answer is four bytes.
pub(super) fn account(prompt: Usage, reply: &Reply) -> Usage {
    if let Some(usage) = &reply.usage {
        return usage.clone();
    }
    let reasoning = reply.reasoning.as_ref().map_or(0, |text| text.len() as u64);
    Usage { output: tokens(reply.written() as u64), reasoning: tokens(reasoning), ..prompt }
}

fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_has_the_last_word() {
        let prompt = Usage { input: 3, cache_read: 90, ..Usage::default() };
        let usage = account(prompt.clone(), &Reply::text("12345").thinking("1"));
        assert_eq!(usage, Usage { output: 2, reasoning: 1, ..prompt.clone() });
        let said = Usage { input: 7, ..Usage::default() };
        assert_eq!(account(prompt, &Reply::text("x").costing(said.clone())), said);
    }
}
