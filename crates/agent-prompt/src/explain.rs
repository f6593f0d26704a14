//! What will be sent, block by block, without asking a model (requirement A6).

use std::fmt;

use agent_core::{Diagnostic, Mark, MarkPoint, SystemBlock, ToolCard, Ttl};
use serde::Serialize;

use crate::assemble::{Assembled, Block, Notes};
use crate::hash::{tool_hash, tools_hash};
use crate::merge::{Absent, Loser};

/// Bytes that are counted as one token where nothing better is known.
pub const BYTES_PER_TOKEN: usize = 4;

/// What else is explained beside the system prompt.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "an argument record: a literal with ..Beside::default()")]
pub struct Beside<'a> {
    /// The tools, in the order they are sent.
    pub tools: &'a [ToolCard],
    /// Notes of the turn and the step.
    pub notes: &'a [&'a Notes],
    /// Cache breakpoints.
    pub marks: &'a [Mark],
}

/// What will be sent: as text by `Display`, as JSON by [`Self::to_json`] or serde.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// `cache.system_hash`.
    pub system_hash: String,
    /// The hash over all tools.
    pub tools_hash: String,
    /// Bytes of the system prompt.
    pub system_bytes: usize,
    /// Tokens of the system prompt, estimated.
    pub estimated_tokens: usize,
    /// How many blocks at the beginning are static.
    pub static_blocks: usize,
    /// The tools in the order they are sent, which is before the system prompt.
    pub tools: Vec<ExplainedTool>,
    /// The blocks of the system prompt.
    pub blocks: Vec<ExplainedBlock>,
    /// Notes of the turn and the step.
    pub notes: Vec<ExplainedBlock>,
    /// Keys under which nothing is said.
    pub absent: Vec<Absent>,
    /// What was cut or could not be taken as given.
    pub diagnostics: Vec<Diagnostic>,
}

/// One text with what it weighs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedBlock {
    /// The text and its origin.
    #[serde(flatten)]
    pub block: Block,
    /// Its length in bytes.
    pub bytes: usize,
    /// Its tokens, estimated.
    pub estimated_tokens: usize,
    /// The cache breakpoint at its end.
    pub breakpoint: Option<Ttl>,
}

/// One tool with what it weighs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExplainedTool {
    /// Its name.
    pub name: String,
    /// Bytes of name, description and schema.
    pub bytes: usize,
    /// Its tokens, estimated.
    pub estimated_tokens: usize,
    /// First 16 hex digits of SHA-256 of all that is told of it.
    pub hash: String,
    /// The cache breakpoint behind it.
    pub breakpoint: Option<Ttl>,
}

/// Tokens of so many bytes where nothing better is known, rounded up.
pub fn estimate_tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

impl Assembled {
    /// What will be sent. No model is asked; tokens are estimated.
    pub fn explain(&self, beside: Beside<'_>) -> Explanation {
        let marked = |point| beside.marks.iter().find(|mark| mark.at == point).map(|mark| mark.ttl);
        let mut tools: Vec<_> = beside.tools.iter().map(ExplainedTool::of).collect();
        if let Some(last) = tools.last_mut() {
            last.breakpoint = marked(MarkPoint::Tools);
        }
        let mut blocks: Vec<_> = self.blocks.iter().map(ExplainedBlock::of).collect();
        for (position, block) in blocks.iter_mut().enumerate() {
            block.breakpoint = marked(MarkPoint::System(position));
        }
        let noted = beside.notes.iter();
        Explanation {
            system_hash: self.system_hash(),
            tools_hash: tools_hash(beside.tools),
            system_bytes: blocks.iter().map(|block| block.bytes).sum(),
            estimated_tokens: blocks.iter().map(|block| block.estimated_tokens).sum(),
            static_blocks: self.static_blocks(),
            tools,
            blocks,
            notes: noted.clone().flat_map(|notes| &notes.blocks).map(ExplainedBlock::of).collect(),
            absent: self
                .absent
                .iter()
                .chain(noted.clone().flat_map(|notes| &notes.absent))
                .cloned()
                .collect(),
            diagnostics: self
                .diagnostics
                .iter()
                .chain(noted.flat_map(|notes| &notes.diagnostics))
                .cloned()
                .collect(),
        }
    }
}

impl Assembled {
    /// What a session sends that began earlier, and keeps the system prompt it began with: `system`, of which the first
    /// `static_blocks` are static. Blocks that this prompt still says have their origin; others come from
    /// [`crate::Source::Stored`].
    pub fn explain_stored(
        &self,
        system: &[SystemBlock],
        static_blocks: usize,
        beside: Beside<'_>,
    ) -> Explanation {
        let known = |text: &str| self.blocks.iter().find(|block| block.text.as_str() == text).cloned();
        let blocks = system.iter().enumerate().map(|(position, block)| {
            let is_static = position < static_blocks;
            known(block.text()).unwrap_or_else(|| Block::stored(position, block, is_static))
        });
        let blocks = blocks.collect();
        let stored = Self { caps: self.caps.clone(), blocks, absent: Vec::new(), diagnostics: Vec::new() };
        Explanation { static_blocks, ..stored.explain(beside) }
    }
}

impl Explanation {
    /// All of it as JSON with line breaks.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }
}

impl ExplainedBlock {
    fn of(block: &Block) -> Self {
        let bytes = block.text.as_str().len();
        Self { block: block.clone(), bytes, estimated_tokens: estimate_tokens(bytes), breakpoint: None }
    }
}

impl ExplainedTool {
    fn of(tool: &ToolCard) -> Self {
        let bytes = tool.name().len() + tool.description().len() + tool.input_schema().get().len();
        let (name, hash) = (tool.name().to_owned(), tool_hash(tool));
        Self { name, bytes, estimated_tokens: estimate_tokens(bytes), hash, breakpoint: None }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tools {}: {} tools", self.tools_hash, self.tools.len())?;
        for tool in &self.tools {
            let ExplainedTool { name, bytes, estimated_tokens: tokens, hash, .. } = tool;
            writeln!(f, "- {name}: {bytes} bytes, about {tokens} tokens, {hash}")?;
            show_breakpoint(f, tool.breakpoint)?;
        }
        let (blocks, bytes, tokens) = (self.blocks.len(), self.system_bytes, self.estimated_tokens);
        writeln!(
            f,
            "system {}: {blocks} blocks ({} static), {bytes} bytes, about {tokens} tokens",
            self.system_hash, self.static_blocks
        )?;
        show_blocks(f, &self.blocks)?;
        if !self.notes.is_empty() {
            writeln!(f, "notes: {}", self.notes.len())?;
        }
        show_blocks(f, &self.notes)?;
        for absent in &self.absent {
            writeln!(f, "not said: {}, by {} ({})", absent.key, absent.source, absent.layer)?;
            show_losers(f, &absent.losers)?;
        }
        for diagnostic in &self.diagnostics {
            writeln!(f, "warning: {}: {}", diagnostic.what, diagnostic.why)?;
        }
        Ok(())
    }
}

fn show_blocks(f: &mut fmt::Formatter<'_>, blocks: &[ExplainedBlock]) -> fmt::Result {
    for (number, ExplainedBlock { block, bytes, estimated_tokens: tokens, breakpoint }) in (1..).zip(blocks) {
        let Block { key, layer, source, stability, hash, .. } = block;
        let who = format!("{number}. {key}: {} from {source} ({layer})", stability.name());
        show_line(f, &who, &format!("{bytes} bytes, about {tokens} tokens, {hash}"))?;
        if let Some(why) = block.declared {
            writeln!(f, "   declared static: {why}")?;
        }
        if let Some(cut) = block.cut {
            writeln!(f, "   cut: {} bytes kept, {} left out", cut.kept_bytes, cut.left_out_bytes)?;
        }
        show_losers(f, &block.losers)?;
        for line in block.text.as_str().lines() {
            show_wrapped(f, line)?;
        }
        show_breakpoint(f, *breakpoint)?;
    }
    Ok(())
}

/// One line where both fit, else two.
fn show_line(f: &mut fmt::Formatter<'_>, who: &str, what: &str) -> fmt::Result {
    let together = who.chars().count() + what.chars().count() + 2 <= COLUMNS;
    writeln!(f, "{who}{}{what}", if together { ", " } else { ",\n   " })
}

/// A line of a text, broken at spaces where it is too long to be read.
fn show_wrapped(f: &mut fmt::Formatter<'_>, line: &str) -> fmt::Result {
    let mut shown = String::new();
    for word in line.split_inclusive(' ') {
        let too_long = shown.chars().count() + word.trim_end().chars().count() > COLUMNS - 5;
        if too_long && !shown.is_empty() {
            writeln!(f, "   | {}", shown.trim_end())?;
            shown.clear();
        }
        shown.push_str(word);
    }
    writeln!(f, "{}", format!("   | {shown}").trim_end())
}

fn show_losers(f: &mut fmt::Formatter<'_>, losers: &[Loser]) -> fmt::Result {
    for loser in losers {
        let what = loser.stability.map_or("suppression", |stability| stability.name());
        write!(f, "   over: {what} from {} ({}), {} bytes", loser.source, loser.layer, loser.bytes)?;
        writeln!(f, "{}", if loser.stays { ", which is sent all the same" } else { "" })?;
    }
    Ok(())
}

fn show_breakpoint(f: &mut fmt::Formatter<'_>, breakpoint: Option<Ttl>) -> fmt::Result {
    match breakpoint {
        Some(Ttl::FiveMinutes) => writeln!(f, "   ^ cache breakpoint, 5m"),
        Some(ttl) => writeln!(f, "   ^ cache breakpoint, {}", ttl.name()),
        None => Ok(()),
    }
}

/// How wide the text is where words can be broken.
const COLUMNS: usize = 80;
