//! The index of memories in the prompt of a session that begins.

use std::sync::Arc;

use agent_core::Diagnostic;
use agent_memory::{INDEX_FILE, IndexView, MemoryDir, instructions};
use agent_prompt::{Fragment, Layer, Prompt, Session, Source, Value};
use async_trait::async_trait;

use super::on_disk;
use crate::{PromptSource, SourceError};

/// Tells a session that begins of memories, and which there are, in the layer [`Layer::Auto`].
///
/// A session keeps what it was told: a memory that is written while it runs moves no byte of its prompt, in whatever process it
/// is taken up. Who writes one knows it from the result of the call, and the next session from its index.
#[derive(Debug, Clone)]
pub struct MemoryIndex {
    memories: Arc<MemoryDir>,
}

impl MemoryIndex {
    /// The index of these memories.
    pub fn new(memories: impl Into<Arc<MemoryDir>>) -> Self {
        Self { memories: memories.into() }
    }
}

#[async_trait]
impl PromptSource for MemoryIndex {
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError> {
        let memories = self.memories.clone();
        let index = on_disk("the index of memories", move || memories.index()).await;
        // What was learnt is a help and no policy: a session begins without, and says so.
        let index = match index {
            Ok(index) => index,
            Err(error) => {
                prompt.report(Diagnostic { what: KEY.to_owned(), why: error.to_string() });
                return Ok(());
            }
        };
        if let Some(why) = not_shown(&index) {
            prompt.report(Diagnostic { what: KEY.to_owned(), why });
        }
        match Fragment::<Session>::new(Layer::Auto, KEY, Value::session(instructions(&index))) {
            Ok(fragment) => prompt.add(fragment.with_source(Source::File(INDEX_FILE.to_owned()))),
            Err(error) => prompt.report(Diagnostic { what: KEY.to_owned(), why: error.to_string() }),
        };
        Ok(())
    }
}

/// What of the index a session is not shown, for the person.
fn not_shown(index: &IndexView) -> Option<String> {
    let dangling = index.dangling.iter().map(|name| format!("`{name}` has an entry and no file"));
    let strange = index.strange.iter().map(|strange| format!("{}: {}", strange.file, strange.why));
    let left_out = (!index.left_out.is_empty())
        .then(|| format!("{} lines of {INDEX_FILE} are over its caps and not shown", index.left_out.len()));
    let all: Vec<String> =
        index.fault.clone().into_iter().chain(left_out).chain(dangling).chain(strange).collect();
    let (shown, more) = all.split_at(all.len().min(MOST));
    let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
    (!shown.is_empty()).then(|| format!("{}{more}", shown.join("; ")))
}

/// The fragment's key.
const KEY: &str = "memory";
/// Most faults that are told one by one.
const MOST: usize = 10;
