//! How many tokens a session's next request has: reported by the provider where it can be, estimated since.

use std::fmt;
use std::sync::Arc;

use crate::{
    AssistantPart, BlobHash, Clip, ContentPart, Entry, EntryId, FilePart, FileSource, History, Message,
    Rendered, Rewrite, SystemBlock, ToolCard, ToolOutput, Trim, Usage, UserPart, clipped, clipped_file,
    clipped_part,
};

/// Counts the tokens of text. A tokenizer of the model's own, or [`BytesPerToken`].
pub trait TokenCounter: fmt::Debug + Send + Sync {
    /// Tokens of a text, rounded up.
    fn text(&self, text: &str) -> u64;

    /// Tokens of a file; by default by the class of its size.
    fn file(&self, file: &FilePart) -> u64 {
        media(file)
    }
}

/// The usual estimate: so many bytes of UTF-8 are a token (requirement P7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "one number with a name")]
pub struct BytesPerToken(pub u64);

/// The accountant of one session: the one place where tokens of the context are counted (requirement P7).
///
/// What the provider reported of the last request counts, as long as no boundary came after it; what was appended since
/// is estimated. It is the size of one request, and never a sum over requests. Taking in an entry costs what the entry
/// is long; asking costs nothing. A session that is taken up again counts what it counted before ([`Self::resume`]).
///
/// ```
/// use agent_core::{Accountant, Entry, History, UserMessage};
///
/// let (mut accountant, mut history) = (Accountant::default(), History::new());
/// history.push(Entry::User(UserMessage::text("Sort the list.")?))?;
/// accountant.follow(&history);
/// assert_eq!(accountant.used(), 4);
/// accountant.report(1_300, history.len());
/// history.push(Entry::User(UserMessage::text("And then?")?))?;
/// accountant.follow(&history);
/// assert_eq!(accountant.used(), 1_303);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Accountant {
    counter: Arc<dyn TokenCounter>,
    /// Estimates of the entries, in order.
    entries: Vec<u64>,
    /// Estimate of what lies before the conversation.
    fixed: u64,
    base: Base,
    /// Estimate of what was appended since the base.
    since: u64,
    /// Estimate of words to go on at the end of the view, as long as nobody answered them.
    words: u64,
}

/// What the count starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// All input tokens of a request, as its provider counted them, and how many entries it held.
    Reported(u64, usize),
    /// An estimate of the conversation up to an entry, that one included; none before the first.
    Estimated(u64, Option<EntryId>),
}

impl Default for BytesPerToken {
    fn default() -> Self {
        Self(4)
    }
}

impl TokenCounter for BytesPerToken {
    fn text(&self, text: &str) -> u64 {
        (text.len() as u64).div_ceil(self.0.max(1))
    }
}

impl Default for Accountant {
    fn default() -> Self {
        Self::new(Arc::new(BytesPerToken::default()))
    }
}

impl Accountant {
    /// An accountant that knows nothing yet.
    pub fn new(counter: Arc<dyn TokenCounter>) -> Self {
        Self { counter, entries: Vec::new(), fixed: 0, base: Base::Estimated(0, None), since: 0, words: 0 }
    }

    /// What lies before the conversation: system text and tools. A deferred one counts where it is found.
    pub fn set_fixed(&mut self, system: &[SystemBlock], tools: &[ToolCard]) {
        let blocks = system.iter().map(|block| self.counter.text(block.text()));
        let cards = tools.iter().filter(|card| !card.is_deferred()).map(|card| {
            let texts = [card.name(), card.description(), card.input_schema().get()];
            texts.into_iter().map(|text| self.counter.text(text)).sum::<u64>()
        });
        self.fixed = blocks.sum::<u64>().saturating_add(cards.sum());
    }

    /// Takes in the entries that were added, and nothing else; all of them after a boundary.
    pub fn follow(&mut self, history: &History) {
        let known = self.entries.len();
        let all = history.entries();
        for (position, entry) in all.iter().enumerate().skip(known) {
            let (id, trim) = (EntryId::at(position), Trim::default());
            self.entries.push(self.piece(Rendered::Entry { id, entry, trim }));
        }
        let seen = self.reported();
        if let Some(at) = newest_boundary(all, known).filter(|at| *at >= seen) {
            // What was reported was said of a request that is no longer sent (case P02).
            self.base = Base::Estimated(self.sum(history.view().settled()), Some(EntryId::at(at)));
            self.since = 0;
        } else if seen > 0 {
            // The request may have held more than is taken in so far: then nothing is new.
            let new = self.entries.get(known.max(seen)..).unwrap_or_default();
            self.since = new.iter().fold(self.since, |sum, tokens| sum.saturating_add(*tokens));
        } else if let Some(added) = history.view().added(known) {
            self.since = self.since.saturating_add(self.sum(added));
        }
        self.words = if self.reported() == all.len() || !history.view().goes_on() {
            0
        } else {
            self.piece(Rendered::Continue)
        };
    }

    /// Takes what a provider said of a request that held the first `entries` entries: all of its input tokens, cached
    /// or not ([`crate::Usage::total_input`]). Nothing is heard that is older than what was heard last or than the last
    /// boundary, or that says nothing.
    pub fn report(&mut self, input_tokens: u64, entries: usize) {
        let is_old = match self.base {
            Base::Estimated(_, Some(at)) => entries <= at.position(),
            Base::Estimated(_, None) => entries == 0,
            Base::Reported(_, heard) => entries < heard,
        };
        if input_tokens == 0 || is_old {
            return;
        }
        self.base = Base::Reported(input_tokens, entries);
        // Nothing, while the request held more than is taken in so far.
        self.since = self.entries.get(entries..).unwrap_or_default().iter().sum();
        self.words = 0;
    }

    /// Takes in the history of a session that was stored, with what its steps say was reported: the count is the one
    /// of the process that stored it. `size` is the input of the request that a step's usage is of; 0 when not said.
    pub fn resume(&mut self, history: &History, size: impl Fn(&Usage) -> u64) {
        self.follow(history);
        let steps = history.entries().iter().enumerate().rev();
        let steps = steps.take_while(|(_, entry)| !matches!(entry, Entry::Boundary(_)));
        let reported = steps.filter_map(|(position, entry)| match entry {
            Entry::Step(step) => Some((size(step.usage()), position)).filter(|(tokens, _)| *tokens > 0),
            Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
        });
        if let Some((tokens, position)) = reported.into_iter().next() {
            self.report(tokens, position);
        }
    }

    /// Tokens of the next request, as far as known.
    pub fn used(&self) -> u64 {
        let base = match self.base {
            Base::Reported(tokens, _) => tokens,
            Base::Estimated(tokens, _) => self.fixed.saturating_add(tokens),
        };
        base.saturating_add(self.since).saturating_add(self.words)
    }

    /// How many entries the request held of which was reported; 0 without one.
    fn reported(&self) -> usize {
        match self.base {
            Base::Reported(_, entries) => entries,
            Base::Estimated(..) => 0,
        }
    }

    /// Estimated tokens of what no compaction makes smaller: system text and tools.
    pub fn fixed(&self) -> u64 {
        self.fixed
    }

    /// Estimated tokens of an entry, as it was appended.
    pub fn entry_tokens(&self, id: EntryId) -> u64 {
        self.entries.get(id.position()).copied().unwrap_or(0)
    }

    /// Estimated tokens of a text.
    pub fn text(&self, text: &str) -> u64 {
        self.counter.text(text)
    }

    /// Tokens that a step added on average, of the last `steps` steps; 0 before the first one. It looks back no further
    /// than to the first of these.
    pub fn growth(&self, history: &History, steps: usize) -> u64 {
        let all = history.entries().iter().enumerate().rev();
        let last = all.filter(|(_, entry)| matches!(entry, Entry::Step(_))).take(steps);
        let mut counted = 0_u64;
        let mut sum = 0_u64;
        for (position, _) in last {
            counted += 1;
            sum = sum.saturating_add(self.entry_tokens(EntryId::at(position)));
        }
        sum.checked_div(counted).unwrap_or(0)
    }

    /// An estimate of the next request, whatever was reported: what [`Self::would_be`] is to be compared with.
    pub fn estimated(&self, history: &History) -> u64 {
        self.fixed.saturating_add(self.sum(history.view().rendered()))
    }

    /// What the next request would have if the history got this boundary now: an estimate of all of it.
    pub fn would_be(&self, history: &History, rewrite: &Rewrite) -> u64 {
        self.fixed.saturating_add(self.sum(history.view().with(rewrite).rendered()))
    }

    /// An estimate of all these pieces.
    fn sum<'h>(&self, pieces: impl Iterator<Item = Rendered<'h>>) -> u64 {
        let pieces = pieces.map(|piece| match piece {
            Rendered::Entry { id, trim, .. } if trim == Trim::default() => self.entry_tokens(id),
            Rendered::Entry { .. } | Rendered::Summary { .. } | Rendered::Continue => self.piece(piece),
        });
        pieces.sum()
    }

    fn piece(&self, piece: Rendered<'_>) -> u64 {
        piece.messages().map(|message| self.message(message)).sum()
    }

    fn message(&self, message: Message<'_>) -> u64 {
        match message {
            Message::User(said) => said.parts().iter().map(|part| self.user(part)).sum(),
            Message::Note(words) | Message::TurnNote(words) => self.counter.text(words),
            Message::Summary(words) => self.counter.text(words.as_str()),
            Message::Assistant(parts, trim) => {
                let shown = parts
                    .iter()
                    .filter(|part| !(trim.strip_reasoning && matches!(part, AssistantPart::Reasoning(_))));
                shown.map(|part| self.assistant(part)).sum()
            }
            Message::Tool(_, results, trim) => {
                results.iter().map(|result| self.output(&result.output, trim.clip_results)).sum()
            }
        }
    }

    fn user(&self, part: &UserPart) -> u64 {
        match part {
            UserPart::Text(words) => self.counter.text(words.as_str()),
            UserPart::File(file) => self.counter.file(file),
            UserPart::Provider(part) => self.counter.text(part.raw.get()),
        }
    }

    fn assistant(&self, part: &AssistantPart) -> u64 {
        match part {
            AssistantPart::Text(words) => self.counter.text(words.text.as_str()),
            AssistantPart::Reasoning(thought) => self.counter.text(&thought.text),
            AssistantPart::ToolCall(call) => {
                self.counter.text(&call.name).saturating_add(self.counter.text(call.input.as_str()))
            }
            AssistantPart::Provider(part) => self.counter.text(part.raw.get()),
        }
    }

    /// As codecs render it, the words in place of what is clipped included.
    fn output(&self, output: &ToolOutput, clip: Option<Clip>) -> u64 {
        let words = |words: &str| self.counter.text(&clipped(words, clip, |_| BlobHash::of_digest(&[0; 32])));
        let ToolOutput::Content(parts) = output else { return words(&output.shared()) };
        let removed = |notice: Option<String>| notice.map(|notice| self.counter.text(&notice));
        let part = |part: &ContentPart| match part {
            ContentPart::Text(text) => words(text.as_str()),
            // What a reference expands to is about what the words say.
            ContentPart::Tool(found) => words(found.words.as_str()),
            ContentPart::File(file) => {
                removed(clipped_file(file, clip)).unwrap_or_else(|| self.counter.file(file))
            }
            ContentPart::Provider(part) => {
                removed(clipped_part(part, clip)).unwrap_or_else(|| self.counter.text(part.raw.get()))
            }
        };
        parts.iter().map(part).sum()
    }
}

/// The newest boundary among the entries from this position on.
fn newest_boundary(entries: &[Entry], from: usize) -> Option<usize> {
    let new = entries.get(from..)?;
    new.iter().rposition(|entry| matches!(entry, Entry::Boundary(_))).map(|at| from + at)
}

/// Tokens of a file by the class of its size; of one that is elsewhere, by the smallest.
fn media(file: &FilePart) -> u64 {
    let bytes = match &file.source {
        FileSource::Base64(data) => data.len() as u64 * 3 / 4,
        FileSource::Url(_) | FileSource::Reference { .. } => 0,
    };
    match bytes {
        1.. if file.media_type.starts_with("text/") => bytes.div_ceil(4),
        0..=65_536 => 800,
        65_537..=1_048_576 => 1_600,
        _ => 3_200,
    }
}

#[cfg(test)]
mod tests;
