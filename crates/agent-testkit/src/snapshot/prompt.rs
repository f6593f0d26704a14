//! An assembled prompt with how long each of its texts stays the same.

use agent_core::Ttl;
use agent_prompt::{ExplainedBlock, Explanation, Loser, estimate_tokens};

use super::redact::Redactions;

/// Shows what will be sent ahead of the conversation: a head line for each tool and text, then its words
/// (requirement V4).
///
/// A head line names stability, key, layer, source, tokens, hash and breakpoint, so that a text that moves to another
/// stability, or a breakpoint that moves at all, shows in a diff. Literal texts of the redactions are replaced before
/// tokens are counted, and a hash over one of them is `[hash]`: a temporary folder moves nothing.
///
/// ```
/// use agent_prompt::{Beside, Fragment, Layer, Prompt, Session, Static, Value};
/// use agent_testkit::{Redactions, render_prompt};
///
/// let mut prompt = Prompt::default();
/// prompt.add(Fragment::<Static>::new(Layer::Session, "role", "You fix bugs.")?);
/// prompt.add(Fragment::<Session>::new(Layer::Session, "place", Value::session("You work in /tmp/run-7."))?);
///
/// let shown = render_prompt(
///     &prompt.assemble().explain(Beside::default()),
///     &Redactions::default().hashes().path("/tmp/run-7", "[dir]"),
/// );
/// assert!(shown.contains("[static] role · session · code · 4 tokens · [hash 1]\n    You fix bugs."), "{shown}");
/// assert!(shown.contains("[session] place · session · code · 5 tokens · [hash]\n    You work in [dir]."), "{shown}");
/// # Ok::<(), agent_prompt::FragmentError>(())
/// ```
pub fn render_prompt(explanation: &Explanation, redactions: &Redactions) -> String {
    let shown = Shown { explanation, redactions };
    let mut lines = shown.tools();
    lines.extend(shown.system());
    if !explanation.notes.is_empty() {
        lines.push(format!("notes · {} texts", explanation.notes.len()));
    }
    explanation.notes.iter().for_each(|note| lines.extend(shown.block(note)));
    for absent in &explanation.absent {
        lines.push(format!("[not said] {} · {} · {}", absent.key, absent.layer, absent.source));
        lines.extend(absent.losers.iter().map(loser));
    }
    for found in &explanation.diagnostics {
        lines.push(format!("[warning] {}: {}", found.what, found.why));
    }
    lines.push(String::new());
    redactions.apply(&lines.join("\n"))
}

struct Shown<'a> {
    explanation: &'a Explanation,
    redactions: &'a Redactions,
}

impl Shown<'_> {
    fn tools(&self) -> Vec<String> {
        let Explanation { tools, tools_hash, .. } = self.explanation;
        if tools.is_empty() {
            return Vec::new();
        }
        let mut lines = vec![format!("tools · {} tools · {tools_hash}", tools.len())];
        lines.extend(tools.iter().map(|tool| {
            let mark = breakpoint(tool.breakpoint);
            format!("[tool] {} · {} tokens · {}{mark}", tool.name, tool.estimated_tokens, tool.hash)
        }));
        lines
    }

    fn system(&self) -> Vec<String> {
        let Explanation { blocks, system_hash, static_blocks, .. } = self.explanation;
        let tokens: usize = blocks.iter().map(|block| self.tokens(block)).sum();
        let hash = if blocks.iter().any(|block| self.is_changed(block)) { "[hash]" } else { system_hash };
        let texts = blocks.len();
        let mut lines =
            vec![format!("system · {texts} texts, {static_blocks} static · {tokens} tokens · {hash}")];
        blocks.iter().for_each(|block| lines.extend(self.block(block)));
        lines
    }

    fn block(&self, explained: &ExplainedBlock) -> Vec<String> {
        let block = &explained.block;
        let hash = if self.is_changed(explained) { "[hash]" } else { &block.hash };
        let mut lines = vec![format!(
            "[{}] {} · {} · {} · {} tokens · {hash}{}",
            block.stability.name(),
            block.key,
            block.layer,
            block.source,
            self.tokens(explained),
            breakpoint(explained.breakpoint)
        )];
        lines.extend(block.declared.map(|why| format!("  (declared static: {why})")));
        let cut = |cut: agent_prompt::Cut| format!("  (cut: {} bytes left out)", cut.left_out_bytes);
        lines.extend(block.cut.map(cut));
        lines.extend(block.losers.iter().map(loser));
        let words = self.redactions.words(block.text.as_str());
        lines.extend(words.split('\n').map(|line| format!("    {line}").trim_end_matches(' ').to_owned()));
        lines
    }

    fn tokens(&self, block: &ExplainedBlock) -> usize {
        estimate_tokens(self.redactions.words(block.block.text.as_str()).len())
    }

    /// Whether what it says differs from one machine to another.
    fn is_changed(&self, block: &ExplainedBlock) -> bool {
        self.redactions.words(block.block.text.as_str()) != block.block.text.as_str()
    }
}

fn loser(loser: &Loser) -> String {
    let what = loser.stability.map_or("suppression", agent_prompt::Stability::name);
    let stays = if loser.stays { ", sent all the same" } else { "" };
    format!("  (over: {what} · {} · {}{stays})", loser.layer, loser.source)
}

fn breakpoint(ttl: Option<Ttl>) -> String {
    ttl.map(|ttl| format!(" · breakpoint {}", ttl.name())).unwrap_or_default()
}
