//! What is known of models, as data: a table that comes with the crate, and the user's own laid over it.

mod entry;
mod name;

use std::sync::{Arc, LazyLock};

use agent_core::ModelProfile;

use entry::Entry;
use name::{Pattern, plain};

/// Tables of models, the later ones laid over the earlier ones.
///
/// An entry names a model, or with a star every model whose name begins so; `providers` limits it to the tags of
/// some dialects ([`crate::Dialect::provider`]). Dates, editions and vendor prefixes around a model's name are
/// ignored. In each table the families that fit are laid over each other, the shortest name first, and then the
/// entries of the longest name that fits. A field that no entry gives is as [`ModelProfile::conservative`] has it.
///
/// ```
/// use agent_providers::Catalog;
///
/// let catalog = Catalog::builtin();
/// assert_eq!(catalog.profile("anthropic", "claude-haiku-4-5-20251001").context_window, 200_000);
/// assert!(catalog.profile("anthropic", "us.anthropic.claude-opus-5-5-v1:0").binds_thinking_to_prefix);
///
/// let mine = r#"{"models":[{"model":"llama3.1:8b","providers":["ollama"],"context_window":131072}]}"#;
/// let profile = catalog.with_overrides(mine)?.profile("ollama", "llama3.1:8b");
/// assert_eq!((profile.context_window, profile.max_output, profile.known), (131_072, 4_096, true));
/// # Ok::<(), agent_providers::CatalogError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Catalog {
    tables: Vec<Arc<[Entry]>>,
}

/// A table of models that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The file is no table.
    #[error(
        "the table of models cannot be read: {cause}; write {{\"models\":[{{\"model\":\"NAME\",\"context_window\":200000}}]}}"
    )]
    File {
        /// What the reader said.
        #[source]
        cause: serde_json::Error,
    },
    /// The day of the whole file is none.
    #[error("as_of of the table of models: {date:?} is no day; write it as 2026-11-30")]
    Date {
        /// What was given.
        date: String,
    },
    /// An entry has a field that cannot be used.
    #[error("entry {entry} of the table of models, {model}: {field}: {problem}")]
    Entry {
        /// Its position, from 1.
        entry: usize,
        /// The model's name in quotes, as far as it can be read.
        model: String,
        /// The field.
        field: String,
        /// What is wrong with it, and what to write.
        problem: String,
    },
}

impl Catalog {
    /// The table that comes with the crate, every entry of it with the day of its source.
    pub fn builtin() -> Self {
        Self { tables: vec![Arc::clone(&BUILTIN)] }
    }

    /// Lays a table of the user's over what is known: `{"as_of":"2026-11-30","models":[…]}`, where an entry has the
    /// model's name and any of the fields of [`ModelProfile`], and `prices` has at least `input` and `output`.
    ///
    /// Of a model that the table names, what it leaves out stays as it was; the model then counts as known.
    pub fn with_overrides(mut self, json: &str) -> Result<Self, CatalogError> {
        self.tables.push(entry::read(json)?.into());
        Ok(self)
    }

    /// The profile of a provider's model. `provider` is the tag of its dialect.
    pub fn profile(&self, provider: &str, model: &str) -> ModelProfile {
        let mut profile = ModelProfile::conservative(provider, model);
        let name = plain(model);
        for table in &self.tables {
            lay_table(table, provider, &name, &mut profile);
        }
        profile
    }
}

/// Whether two names are of one model, with whatever dates, editions and vendors around them.
pub(crate) fn is_one_model(one: &str, other: &str) -> bool {
    let fits = |name: &str, model: &str| Pattern::Model(plain(name)).fits(&plain(model));
    one == other || fits(one, other) || fits(other, one)
}

impl Default for Catalog {
    fn default() -> Self {
        Self::builtin()
    }
}

fn lay_table(table: &[Entry], provider: &str, name: &str, profile: &mut ModelProfile) {
    let fits = |entry: &&Entry| entry.is_for(provider) && entry.pattern.fits(name);
    let (mut families, mut models): (Vec<&Entry>, Vec<&Entry>) =
        table.iter().filter(fits).partition(|entry| matches!(entry.pattern, Pattern::Family(_)));
    // Entries of one length keep the order of the file, so that the later one wins.
    families.sort_by_key(|entry| entry.pattern.length());
    let longest = models.iter().map(|entry| entry.pattern.length()).max();
    models.retain(|entry| Some(entry.pattern.length()) == longest);
    families.into_iter().chain(models).for_each(|entry| entry.lay_over(profile));
}

static BUILTIN: LazyLock<Arc<[Entry]>> = LazyLock::new(|| {
    let files = FILES.iter().map(|(file, text)| {
        entry::read(text).unwrap_or_else(|error| {
            // A test reads every file, so that this is never reached in a release.
            tracing::error!(file, error = &error as &dyn std::error::Error, "a table of models is left out");
            Vec::new()
        })
    });
    files.flatten().collect::<Vec<_>>().into()
});

const FILES: &[(&str, &str)] = &[
    ("anthropic.json", include_str!("../../models/anthropic.json")),
    ("openai.json", include_str!("../../models/openai.json")),
    ("gemini.json", include_str!("../../models/gemini.json")),
    ("compatible.json", include_str!("../../models/compatible.json")),
    ("openrouter.json", include_str!("../../models/openrouter.json")),
];

#[cfg(test)]
mod tests;
