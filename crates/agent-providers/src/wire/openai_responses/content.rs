//! The content of items that are not the model's: words, images and documents.

use agent_core::{FilePart, FileSource};

use crate::wire::form::Cx;
use crate::wire::json::quoted;

/// Parts of an item's content while they are written.
#[derive(Debug, Default)]
pub(super) struct Parts {
    bytes: Vec<u8>,
    /// Where a marker behind each part goes.
    splices: Vec<usize>,
}

impl Parts {
    /// Words; blank ones would be refused and are left out.
    pub(super) fn text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.push(&format!(r#"{{"type":"input_text","text":{}}}"#, quoted(text)));
        }
    }

    /// A part as JSON.
    pub(super) fn push(&mut self, part: &str) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
        self.bytes.extend_from_slice(part.as_bytes());
        self.splices.push(self.bytes.len() - 1);
    }

    /// Appends the parts as a list; gives where a marker behind each goes.
    pub(super) fn append_to(mut self, out: &mut Vec<u8>) -> Vec<usize> {
        if self.bytes.is_empty() {
            self.text(NO_CONTENT);
        }
        out.push(b'[');
        let splices = self.splices.iter().map(|at| out.len() + at).collect();
        out.extend_from_slice(&self.bytes);
        out.push(b']');
        splices
    }

    /// The parts as a message of a role, and where a marker behind each goes.
    pub(super) fn into_item(self, role: &str) -> (Vec<u8>, Vec<usize>) {
        let mut out = format!(r#"{{"type":"message","role":"{role}","content":"#).into_bytes();
        let splices = self.append_to(&mut out);
        out.push(b'}');
        (out, splices)
    }
}

/// A message of words that is not the model's, and where a marker behind each text goes.
pub(super) fn input_item<'t>(role: &str, texts: impl Iterator<Item = &'t str>) -> (Vec<u8>, Vec<usize>) {
    let mut parts = Parts::default();
    texts.for_each(|text| parts.text(text));
    parts.into_item(role)
}

/// An image or document; one the provider or model cannot take is named in words instead.
pub(super) fn file(parts: &mut Parts, file: &FilePart, cx: &mut Cx<'_>) {
    let is_image = file.media_type.starts_with("image/");
    let is_document = ["application/", "text/"].iter().any(|start| file.media_type.starts_with(start));
    let source = match &file.source {
        _ if is_image && !cx.profile.vision => Err("the model does not see images"),
        _ if !is_image && !is_document => Err("only images and documents are taken"),
        FileSource::Base64(data) => Ok(in_message(file, data, is_image)),
        FileSource::Url(url) => {
            let key = if is_image { "image_url" } else { "file_url" };
            Ok(format!(r#","{key}":{}"#, quoted(url)))
        }
        FileSource::Reference { provider, id } if *provider == cx.profile.provider => {
            Ok(format!(r#","file_id":{}"#, quoted(id)))
        }
        FileSource::Reference { .. } => Err("it was uploaded to another provider"),
        _ => Err("its bytes are in a place this wire does not know"),
    };
    match source {
        Ok(source) => {
            let kind = if is_image { "input_image" } else { "input_file" };
            parts.push(&format!(r#"{{"type":"{kind}"{source}}}"#));
        }
        Err(why) => parts.text(&cx.not_sent(file, why)),
    }
}

/// A file whose bytes are in the message.
fn in_message(file: &FilePart, data: &str, is_image: bool) -> String {
    let url = quoted(&format!("data:{};base64,{data}", file.media_type));
    if is_image {
        return format!(r#","image_url":{url}"#);
    }
    // The provider tells the kind of a file by its name.
    let name = file.name.clone().filter(|name| !name.is_empty());
    let ending = match file.media_type.split_once('/') {
        Some(("text", "plain")) | None => "txt",
        Some((_, ending)) => ending,
    };
    let name = name.unwrap_or_else(|| format!("file.{ending}"));
    format!(r#","filename":{},"file_data":{url}"#, quoted(&name))
}

pub(super) const USER: &str = "user";
/// Stands in for a message without content.
const NO_CONTENT: &str = "(no content)";
