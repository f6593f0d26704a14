//! What a boundary clips is put whole into the blob store before it, so that the model can read it again (requirement P10).

use agent_core::{BlobHash, ContentPart, Entry, EntryId, History, Rendered, Rewrite, ToolOutput};
use futures_util::future::try_join_all;

use super::Drive;
use crate::HarnessError;

impl Drive {
    /// Stores the words that a boundary will clip, and gives the boundary that says so. Nothing is written of it yet: a crash
    /// leaves blobs that nothing names, and never a name without its blob.
    pub(super) async fn offload(&self, mut rewrite: Rewrite) -> Result<Rewrite, HarnessError> {
        if let Rewrite::Cleared { offloaded, .. } = &mut rewrite {
            *offloaded = true;
        }
        let words = clipped_anew(&self.live.history, &rewrite).into_iter();
        let puts = words.map(|words| self.config.store.put_blob(&self.live.meta.id, words.as_bytes()));
        // All at once, so that a store can write them with one wait for the disk.
        try_join_all(puts).await?;
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
    history.entries().iter().enumerate().rev().find_map(|(position, entry)| match entry {
        // One that reaches past itself was mended away, and what came behind it is stored by nobody.
        Entry::Boundary(Rewrite::Cleared { results_to, keep_bytes, offloaded: true, .. })
            if results_to.position() <= position =>
        {
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
                ContentPart::Tool(found) => Some(found.words.as_str()),
                // A file is no words that could be read page by page.
                ContentPart::File(_) | ContentPart::Provider(_) | _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{AssistantPart, CallId, Response, StepRecord, Text, ToolCall, ToolInput, ToolResult};

    use super::*;

    /// A step with one call, whose result is so many bytes of this letter.
    fn step(letter: char, bytes: usize) -> Entry {
        let id = CallId::new(letter.to_string()).unwrap();
        let call =
            ToolCall { id: id.clone(), name: "look".into(), input: ToolInput::finished("{}"), data: None };
        let output = ToolOutput::text(letter.to_string().repeat(bytes));
        let said = Response::of(vec![AssistantPart::ToolCall(call)]);
        Entry::Step(StepRecord::new(said, vec![ToolResult { call: id, output }]).unwrap())
    }

    fn cleared(results_to: usize, keep_bytes: usize, offloaded: bool) -> Rewrite {
        Rewrite::Cleared {
            results_to: EntryId::at(results_to),
            keep_bytes,
            strip_reasoning: false,
            offloaded,
        }
    }

    #[test]
    fn only_what_no_boundary_stored_before_is_stored() {
        /// Letters of the results that are stored for a clearing of all to `keep_bytes`.
        fn check(entries: Vec<Entry>, keep_bytes: usize, expect: &str) {
            let (history, _) = History::mended(entries);
            let rewrite = cleared(history.len(), keep_bytes, true);
            let letters: String =
                clipped_anew(&history, &rewrite).iter().filter_map(|words| words.chars().next()).collect();
            assert_eq!(letters, expect, "{:?}", history.entries());
        }
        let behind = |boundary: Rewrite| {
            vec![step('a', 900), step('b', 300), Entry::Boundary(boundary), step('c', 900)]
        };
        check(vec![step('a', 900), step('b', 300)], 400, "a");
        check(behind(cleared(2, 400, true)), 400, "c");
        check(behind(cleared(2, 400, true)), 200, "bc");
        check(behind(cleared(1, 200, true)), 200, "bc");
        check(behind(cleared(2, 400, false)), 400, "ac");
        // It names results that were not there, so it is none.
        check(behind(cleared(9, 200, true)), 200, "abc");
        let text = Text::new("They sailed.").unwrap();
        let summary = Rewrite::Summary { text, kept_from: EntryId::at(1), strip_reasoning: false };
        check(behind(summary), 200, "bc");
    }

    #[test]
    fn what_names_a_blob_is_whole_there() {
        let capped = format!("{}blob:{}", "x".repeat(300), "0a".repeat(32));
        let id = CallId::new("c").unwrap();
        let call =
            ToolCall { id: id.clone(), name: "t".into(), input: ToolInput::finished("{}"), data: None };
        let result = ToolResult { call: id, output: ToolOutput::text(capped) };
        let said = Response::of(vec![AssistantPart::ToolCall(call)]);
        let (history, _) = History::mended(vec![Entry::Step(StepRecord::new(said, vec![result]).unwrap())]);
        assert!(clipped_anew(&history, &cleared(1, 40, true)).is_empty());
    }
}
