//! What of an output enters the history (requirements T5, T6): the original is kept, then it is compacted, then capped.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use agent_core::{
    ActionOutcome, BlobHash, ContentPart, Diagnostic, RawJson, ReadExtent, ReadStamp, Text, ToolOutput, Usage,
};
use agent_tools::{Access, OutputCap, Subject, Tool};

use super::execute::words_of_panic;
use super::summarise::{Summary, summarise};
use super::{Done, Site};
use crate::HarnessError;

/// An output that was shortened, and what that cost.
#[derive(Default)]
pub(super) struct Short {
    /// `None` when the output stays as it is.
    pub(super) output: Option<ToolOutput>,
    pub(super) spent: Usage,
}

/// Shortens the output of a call before it first enters the history. The original goes to the blob store first, so
/// nothing is lost.
pub(super) async fn shorten(
    site: &Site<'_>,
    done: &mut Done,
    whole: &Arc<str>,
) -> Result<Short, HarnessError> {
    let compacted = compacted(done);
    if compacted.is_none() && site.cap(done).fits(whole) && !is_for_model(site, done, whole) {
        return Ok(Short::default());
    }
    // On the heap: most outputs are short, and every call would reserve what this takes.
    Box::pin(shortened(site, done, whole, compacted)).await
}

/// What the tool says of its output, or else the cheap model where it is asked, or else what the cap leaves of it.
async fn shortened(
    site: &Site<'_>,
    done: &mut Done,
    whole: &Arc<str>,
    compacted: Option<String>,
) -> Result<Short, HarnessError> {
    let cap = site.cap(done);
    let hash = site.config.store.put_blob(&site.session, whole.as_bytes()).await?;
    let (words, spent) = match compacted {
        Some(words) => (Some(words), Usage::default()),
        None if is_for_model(site, done, whole) => {
            let Summary { words, spent, told } = summarise(site, done, whole).await?;
            done.said.told.extend(told);
            (words, spent)
        }
        None => (None, Usage::default()),
    };
    let text = match words {
        Some(words) => Some(named(&cap, &words, whole.len(), &hash)),
        None if cap.fits(whole) => None,
        None => Some(cap.apply(whole, &read_on(&hash)).text),
    };
    let Some(text) = text else { return Ok(Short { output: None, spent }) };
    forget_full_read(site, done).await;
    Ok(Short { output: Some(in_place_of(&done.output, text)), spent })
}

/// Keeps an output that a hook gave under the cap of the tool.
pub(super) async fn keep(
    site: &Site<'_>,
    done: &Done,
    output: ToolOutput,
) -> Result<ToolOutput, HarnessError> {
    forget_full_read(site, done).await;
    let (whole, cap) = (output.shared(), site.cap(done));
    if cap.fits(&whole) {
        return Ok(output);
    }
    let text = offload(site, &cap, &whole).await?;
    Ok(in_place_of(&output, text))
}

/// A text under a cap, with a handle on all of it.
pub(super) async fn offload(site: &Site<'_>, cap: &OutputCap, whole: &str) -> Result<String, HarnessError> {
    if cap.fits(whole) {
        return Ok(whole.to_owned());
    }
    let hash = site.config.store.put_blob(&site.session, whole.as_bytes()).await?;
    Ok(cap.apply(whole, &read_on(&hash)).text)
}

impl Site<'_> {
    fn cap(&self, done: &Done) -> OutputCap {
        self.config.tools.get(&done.call.name).map(|tool| tool.traits().cap).unwrap_or_default()
    }
}

/// What the tool itself says is worth keeping of what it gave.
fn compacted(done: &mut Done) -> Option<String> {
    let (tool, input) = (done.made_by.as_ref()?, done.input.as_ref()?);
    match catch_unwind(AssertUnwindSafe(|| tool.compact(input, &done.output))) {
        Ok(words) => words,
        Err(panic) => {
            let why = format!(
                "the output of {} stays as it is: its compactor broke down ({})",
                done.call.name,
                words_of_panic(&*panic)
            );
            done.said.told.push(Diagnostic { what: "compact".to_owned(), why });
            None
        }
    }
}

/// Whether the cheap model is asked: the tool opts in, there is one, and it is worth it.
fn is_for_model(site: &Site<'_>, done: &Done, whole: &str) -> bool {
    let opts_in = done.made_by.as_ref().is_some_and(|tool| tool.traits().summarise);
    opts_in
        && done.outcome == ActionOutcome::Completed
        && site.config.summary_model.is_some()
        && site.shortening.allows()
        && site.config.counter.text(whole) > MOST_TOKENS
}

/// A compaction with a handle on the original.
fn named(cap: &OutputCap, words: &str, bytes: usize, hash: &BlobHash) -> String {
    let read_on = read_on(hash);
    if cap.fits(words) {
        return format!("{}\n[shortened from {bytes} bytes; {read_on}]", words.trim_end());
    }
    cap.apply(words, &read_on).text
}

fn read_on(hash: &BlobHash) -> String {
    format!("read on with read_file, path \"{hash}\"")
}

/// A text in place of the words of an output, which stays of its kind. Files are not words, and stay.
fn in_place_of(output: &ToolOutput, text: String) -> ToolOutput {
    match output {
        ToolOutput::Content(parts) => {
            let files = parts.iter().filter(|part| matches!(part, ContentPart::File(_))).cloned();
            let words = ContentPart::Text(Text::or(text, "(no output)"));
            ToolOutput::Content(std::iter::once(words).chain(files).collect())
        }
        ToolOutput::Denied(_) => ToolOutput::denied(text),
        ToolOutput::Error(_) => ToolOutput::error(text),
        ToolOutput::Text(_) | ToolOutput::Json(_) | _ => ToolOutput::text(text),
    }
}

/// What was read is not all shown any more: it counts as seen in no part, until it is read again (requirement T10).
async fn forget_full_read(site: &Site<'_>, done: &Done) {
    let (Some(tool), Some(input)) = (&done.made_by, &done.input) else { return };
    if tool.traits().access != Access::Read {
        return;
    }
    let Some(path) = path_of(&**tool, input).await else { return };
    let unseen = |stamp: &mut ReadStamp| stamp.seen = ReadExtent::Lines(Vec::new());
    site.slots.update(|slots| slots.reads.change(&path, unseen));
}

async fn path_of(tool: &dyn Tool, input: &RawJson) -> Option<String> {
    match tool.subject(input).await? {
        Subject::Path { real, .. } => real,
        Subject::Command(_) | Subject::Url { .. } | Subject::Text(_) => None,
    }
}

/// Tokens up to which an output is not worth a model's while.
const MOST_TOKENS: u64 = 1_000;
