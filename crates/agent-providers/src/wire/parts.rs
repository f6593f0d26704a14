//! What every encoder does with parts that its wire or its provider cannot take: words in their place, and a word
//! about it.

use std::borrow::Cow;

use agent_core::{FilePart, FileSource, ProviderData, ProviderPart, ToolCard};

use super::base64::decoded_text;
use super::form::Cx;
use super::json::{Fields, sound};

impl Cx<'_> {
    /// A part as it was received, where this provider made it; of others it is told that they are left out.
    pub(crate) fn own<'p>(&mut self, what: &str, part: &'p ProviderPart) -> Option<Cow<'p, str>> {
        let ProviderPart { provider, kind, raw } = part;
        if *provider == self.profile.provider && raw.is_object() {
            return Some(sound(raw.get()));
        }
        self.note(what, format!("a {kind:?} part of {provider} means nothing to this provider; left out"));
        None
    }

    /// Tells of a part of a kind that this wire does not have.
    pub(crate) fn no_form(&mut self, what: &str) {
        self.note(what, "this kind of part has no form on this wire; left out");
    }

    /// The words in place of a file that is not sent.
    pub(crate) fn not_sent(&mut self, file: &FilePart, why: &str) -> String {
        self.note("file", format!("{} was named in words: {why}", file.label()));
        format!("[{}: not sent, {why}]", file.label())
    }

    /// What this provider is told of a tool besides what the card says.
    pub(crate) fn own_data<'t>(&self, tool: &'t ToolCard) -> Option<&'t ProviderData> {
        tool.data().filter(|data| data.provider == self.profile.provider)
    }

    /// The same, as fields to lay over the tool's entry.
    pub(crate) fn own_fields(&self, tool: &ToolCard) -> Vec<(String, String)> {
        let fields = self.own_data(tool).and_then(|data| Fields::read(data.json.get())).unwrap_or_default();
        fields.0.into_iter().map(|(key, raw)| (key.into_owned(), sound(raw.get()).into_owned())).collect()
    }

    /// The entry of a tool that this provider runs; of those that others run it is told that they are left out.
    pub(crate) fn hosted<'t>(&mut self, tool: &'t ToolCard) -> Option<Cow<'t, str>> {
        let data = self.own_data(tool);
        if data.is_none() {
            self.note("tools", format!("the tool {:?} is run by another provider; left out", tool.name()));
        }
        data.map(|data| sound(data.json.get()))
    }
}

/// The words of a document of plain text, with its name, where the wire has no such documents.
pub(crate) fn document_words(file: &FilePart) -> Option<String> {
    let FileSource::Base64(data) = &file.source else { return None };
    let is_text = file.media_type.starts_with("text/");
    let words = is_text.then(|| decoded_text(data)).flatten().filter(|words| !words.trim().is_empty())?;
    Some(match file.name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => format!("{name}:\n{words}"),
        None => words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(media_type: &str, data: &str, name: Option<&str>) -> FilePart {
        let source = FileSource::Base64(data.into());
        FilePart { media_type: media_type.into(), source, name: name.map(str::to_owned) }
    }

    #[test]
    fn documents_of_text_are_words() {
        let check = |given: FilePart, expect: Option<&str>| {
            assert_eq!(document_words(&given).as_deref(), expect, "{given:?}");
        };
        check(file("text/plain", "dGVh", None), Some("tea"));
        check(file("text/csv", "dGVh", Some("a.csv")), Some("a.csv:\ntea"));
        check(file("text/plain; charset=utf-8", "dGVh", Some("")), Some("tea"));
        check(file("text/plain", "//8=", None), None);
        check(file("text/plain", "IA==", None), None);
        check(file("application/pdf", "dGVh", None), None);
        let source = FileSource::Url("https://a.example".into());
        check(FilePart { source, ..file("text/plain", "", None) }, None);
    }
}
