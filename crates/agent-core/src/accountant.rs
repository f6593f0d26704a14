//! How many tokens a session's next request has: reported by the provider where it can be, estimated since.

use std::fmt;
use std::sync::Arc;

use crate::{
    AssistantPart, ContentPart, Entry, EntryId, FilePart, FileSource, History, HistoryView, Message,
    Rendered, Rewrite, SystemBlock, ToolCard, ToolOutput, Trim, UserPart, floor_boundary,
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
/// is estimated. Taking in an entry costs what the entry is long; asking costs nothing.
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
}

/// What the count starts from.
#[derive(Debug, Clone, Copy)]
enum Base {
    /// All input tokens of a request, as its provider counted them.
    Reported(u64),
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
        Self { counter, entries: Vec::new(), fixed: 0, base: Base::Estimated(0, None), since: 0 }
    }

    /// What lies before the conversation: system text and tools.
    pub fn set_fixed(&mut self, system: &[SystemBlock], tools: &[ToolCard]) {
        let blocks = system.iter().map(|block| self.counter.text(block.text()));
        let cards = tools.iter().map(|card| {
            let texts = [card.name(), card.description(), card.input_schema().get()];
            texts.into_iter().map(|text| self.counter.text(text)).sum::<u64>()
        });
        self.fixed = blocks.sum::<u64>().saturating_add(cards.sum());
    }

    /// Takes in the entries that were added, and nothing else; all of them after a boundary.
    pub fn follow(&mut self, history: &History) {
        let known = self.entries.len();
        let mut rewritten = None;
        for (position, entry) in history.entries().iter().enumerate().skip(known) {
            let id = EntryId::at(position);
            let tokens = self.piece(Rendered::Entry { id, entry, trim: Trim::default() });
            self.entries.push(tokens);
            self.since = self.since.saturating_add(tokens);
            rewritten = if matches!(entry, Entry::Boundary(_)) { Some(id) } else { rewritten };
        }
        if rewritten.is_some() {
            // What was reported was said of a request that is no longer sent (case P02).
            self.base = Base::Estimated(self.whole(history.view()), rewritten);
            self.since = 0;
        }
    }

    /// Takes what a provider said of a request that held the first `entries` entries: all of its input tokens, cached
    /// or not. Nothing is heard that is older than the last boundary, or that says nothing.
    pub fn report(&mut self, input_tokens: u64, entries: usize) {
        let is_old = matches!(self.base, Base::Estimated(_, Some(at)) if entries <= at.position());
        if input_tokens == 0 || is_old {
            return;
        }
        self.base = Base::Reported(input_tokens);
        self.since = self.entries.get(entries..).unwrap_or_default().iter().sum();
    }

    /// Tokens of the next request, as far as known.
    pub fn used(&self) -> u64 {
        let base = match self.base {
            Base::Reported(tokens) => tokens,
            Base::Estimated(tokens, _) => self.fixed.saturating_add(tokens),
        };
        base.saturating_add(self.since)
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

    /// Tokens that a step added on average, of the last `steps` steps; 0 before the first one.
    pub fn growth(&self, history: &History, steps: usize) -> u64 {
        let mut sum = 0_u64;
        let mut counted = 0_u64;
        for (position, entry) in history.entries().iter().enumerate().rev() {
            if let Entry::Step(_) = entry {
                counted += 1;
                sum = sum.saturating_add(self.entry_tokens(EntryId::at(position)));
            }
            if counted as usize >= steps {
                break;
            }
        }
        sum.checked_div(counted).unwrap_or(0)
    }

    /// An estimate of the next request, whatever was reported: what [`Self::would_be`] is to be compared with.
    pub fn estimated(&self, history: &History) -> u64 {
        self.fixed.saturating_add(self.whole(history.view()))
    }

    /// What the next request would have if the history got this boundary now: an estimate of all of it.
    pub fn would_be(&self, history: &History, rewrite: &Rewrite) -> u64 {
        self.fixed.saturating_add(self.whole(history.view().with(rewrite)))
    }

    /// An estimate of all that a view shows.
    fn whole(&self, view: HistoryView<'_>) -> u64 {
        let pieces = view.rendered().map(|piece| match piece {
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
            Message::Note(words) => self.counter.text(words),
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

    fn output(&self, output: &ToolOutput, clip: Option<usize>) -> u64 {
        let ToolOutput::Content(parts) = output else { return self.clipped(&output.plain(), clip) };
        let part = |part: &ContentPart| match (part, clip) {
            (ContentPart::Text(words), _) => self.clipped(words.as_str(), clip),
            (ContentPart::File(file), None) => self.counter.file(file),
            (ContentPart::Provider(part), None) => self.counter.text(part.raw.get()),
            (ContentPart::File(_) | ContentPart::Provider(_), Some(_)) => CLIP_NOTICE,
        };
        parts.iter().map(part).sum()
    }

    fn clipped(&self, words: &str, clip: Option<usize>) -> u64 {
        let Some(bytes) = clip.filter(|bytes| words.len() > *bytes) else { return self.counter.text(words) };
        let kept = floor_boundary(words, bytes);
        self.counter.text(&words[..kept]).saturating_add(CLIP_NOTICE)
    }
}

/// Tokens of the words that stand for what was clipped.
const CLIP_NOTICE: u64 = 12;

/// Tokens of a file by the class of its size.
fn media(file: &FilePart) -> u64 {
    let bytes = match &file.source {
        FileSource::Base64(data) => data.len() as u64 * 3 / 4,
        FileSource::Url(_) | FileSource::Reference { .. } => 0,
    };
    if file.media_type.starts_with("text/") {
        return bytes.div_ceil(4);
    }
    match bytes {
        0..=65_536 => 800,
        65_537..=1_048_576 => 1_600,
        _ => 3_200,
    }
}
