//! What a boundary clips is put whole into the blob store before it, so that the model can read it again (requirement P10).

use agent_core::{BlobHash, ContentPart, Entry, EntryId, History, Rendered, Rewrite, ToolOutput};

use super::Drive;
use crate::HarnessError;

impl Drive {
    /// Stores the words that a boundary will clip, and gives the boundary that says so. Nothing is written of it yet: a crash
    /// leaves blobs that nothing names, and never a name without its blob.
    pub(super) async fn offload(&self, mut rewrite: Rewrite) -> Result<Rewrite, HarnessError> {
        if let Rewrite::Cleared { offloaded, .. } = &mut rewrite {
            *offloaded = true;
        }
        for words in clipped_anew(&self.live.history, &rewrite) {
            self.config.store.put_blob(&self.live.meta.id, words.as_bytes()).await?;
        }
        Ok(rewrite)
    }
}

/// The words of results that the view would clip with this boundary, and that are not stored for a boundary before it.
fn clipped_anew<'h>(history: &'h History, rewrite: &Rewrite) -> Vec<&'h str> {
    let Rewrite::Cleared { results_to, keep_bytes, .. } = rewrite else { return Vec::new() };
    let stored = stored(history);
    let shown = history.view().settled().filter_map(|piece| match piece {
        Rendered::Entry { id, entry: Entry::Step(step), .. } if id < *results_to => Some((id, step)),
        Rendered::Entry { .. } | Rendered::Summary { .. } | Rendered::Continue => None,
    });
    let words = shown.flat_map(|(id, step)| {
        let results = step.results().iter().flat_map(|result| words_of(&result.output));
        results.map(move |words| (id, words))
    });
    let clips = |to: EntryId, bytes: usize, (id, words): (EntryId, &str)| id < to && words.len() > bytes;
    words
        .filter(|it| clips(*results_to, *keep_bytes, *it))
        .filter(|it| !stored.is_some_and(|(to, bytes)| clips(to, bytes, *it)))
        // It was shortened before, and names what is whole.
        .filter(|(_, words)| BlobHash::handles_in(words).next().is_none())
        .map(|(_, words)| words)
        .collect()
}

/// Up to where the newest clearing stored what is longer than so many bytes.
fn stored(history: &History) -> Option<(EntryId, usize)> {
    history.entries().iter().rev().find_map(|entry| match entry {
        Entry::Boundary(Rewrite::Cleared { results_to, keep_bytes, offloaded: true, .. }) => {
            Some((*results_to, *keep_bytes))
        }
        Entry::Boundary(_) | Entry::User(_) | Entry::Note(_) | Entry::Step(_) => None,
    })
}

/// The words in an output, each as it is clipped by itself.
fn words_of(output: &ToolOutput) -> Vec<&str> {
    match output {
        ToolOutput::Text(words) | ToolOutput::Error(words) | ToolOutput::Denied(words) => {
            vec![words.as_str()]
        }
        ToolOutput::Json(json) => vec![json.get()],
        ToolOutput::Content(parts) => parts
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text(words) => Some(words.as_str()),
                // A file is no words that could be read page by page.
                ContentPart::File(_) | ContentPart::Provider(_) | _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}
