//! Images, documents and sounds as content parts, both ways.

use agent_core::{FilePart, FileSource};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::quirks::{DocumentPart, Quirks};
use crate::wire::json::{Fields, Loose, object, others, quoted};

/// A part for a file, or why there is none.
pub(super) fn part(
    file: &FilePart,
    quirks: &Quirks,
    sees: bool,
    provider: &str,
) -> Result<String, &'static str> {
    if let FileSource::Reference { provider: owner, id } = &file.source {
        let takes = matches!(quirks.documents, DocumentPart::File | DocumentPart::FileOrUrl);
        return match takes && owner == provider {
            true => Ok(format!(r#"{{"type":"file","file":{{"file_id":{}}}}}"#, quoted(id))),
            false => Err("it was uploaded to another provider"),
        };
    }
    match kind(&file.media_type) {
        Kind::Image if !quirks.images => Err("this provider is not known to take images (quirk `images`)"),
        Kind::Image if !sees => Err("the model does not see images"),
        Kind::Image => Ok(format!(r#"{{"type":"image_url","image_url":{{"url":{}}}}}"#, address(file)?)),
        Kind::Video if !quirks.video => Err("this provider is not known to take videos (quirk `video`)"),
        Kind::Video => Ok(format!(r#"{{"type":"video_url","video_url":{{"url":{}}}}}"#, address(file)?)),
        Kind::Audio if !quirks.audio => Err("this provider is not known to take sounds (quirk `audio`)"),
        Kind::Audio => audio(file),
        Kind::Document => document(file, quirks.documents),
        Kind::Other => Err("only images, sounds, videos and PDF documents are taken; send the words as text"),
    }
}

/// The file in a part of a recorded message; `None` where our types would not say all of the part.
pub(super) fn read(raw: &str) -> Option<FilePart> {
    let part: WirePart<'_> = object(raw).ok()?;
    match part.kind.as_str() {
        "image_url" => located(&part.image_url.and_then(url)?, "image/*", None),
        "video_url" => located(&part.video_url.and_then(url)?, "video/*", None),
        "document_url" => {
            located(&part.document_url.and_then(url)?, PDF, part.document_name.0.map(Into::into))
        }
        "input_audio" => audio_of(part.input_audio?),
        "file" => file_of(part.file?),
        _ => None,
    }
}

fn audio_of(raw: &RawValue) -> Option<FilePart> {
    let sound: WireAudio<'_> = object(raw.get()).ok().filter(|_| holds_only(raw, &["data", "format"]))?;
    let media_type = format!("audio/{}", sound.format.as_str());
    Some(FilePart { media_type, source: FileSource::Base64(sound.data.0?.into_owned()), name: None })
}

/// A document by its data or its address, or an upload; the importer names whose.
fn file_of(raw: &RawValue) -> Option<FilePart> {
    let file: WireFile<'_> = object(raw.get()).ok()?;
    match (file.file_data.0, file.file_id.0) {
        (Some(data), None) if holds_only(raw, &["file_data", "filename"]) => {
            let known = located(&data, PDF, file.filename.0.map(Into::into))?;
            let is_address = data.starts_with("http");
            let is_pdf = matches!(known.source, FileSource::Base64(_)) && known.media_type == PDF;
            (is_address || is_pdf).then_some(known)
        }
        (None, Some(id)) if holds_only(raw, &["file_id"]) => {
            let source = FileSource::Reference { provider: String::new(), id: id.into_owned() };
            Some(FilePart { media_type: PDF.to_owned(), source, name: None })
        }
        (Some(_) | None, _) => None,
    }
}

/// Whether nothing but these fields says anything.
fn holds_only(raw: &RawValue, known: &[&str]) -> bool {
    Fields::read(raw.get()).is_some_and(|fields| others(&fields, known).is_none())
}

#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    image_url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    video_url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    document_url: Option<&'a RawValue>,
    #[serde(borrow, default)]
    document_name: Loose<'a>,
    #[serde(borrow, default)]
    input_audio: Option<&'a RawValue>,
    #[serde(borrow, default)]
    file: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireAudio<'a> {
    #[serde(borrow, default)]
    data: Loose<'a>,
    #[serde(borrow, default)]
    format: Loose<'a>,
}

#[derive(Deserialize)]
struct WireFile<'a> {
    #[serde(borrow, default)]
    filename: Loose<'a>,
    #[serde(borrow, default)]
    file_data: Loose<'a>,
    #[serde(borrow, default)]
    file_id: Loose<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Image,
    Video,
    Audio,
    Document,
    Other,
}

fn kind(media_type: &str) -> Kind {
    match media_type.split_once('/') {
        Some(("image", _)) => Kind::Image,
        Some(("video", _)) => Kind::Video,
        Some(("audio", _)) => Kind::Audio,
        _ if media_type == PDF => Kind::Document,
        _ => Kind::Other,
    }
}

/// The address of a file as JSON; its data stand in the address.
fn address(file: &FilePart) -> Result<String, &'static str> {
    match &file.source {
        FileSource::Base64(data) => Ok(quoted(&format!("data:{};base64,{data}", file.media_type))),
        FileSource::Url(url) => Ok(quoted(url)),
        FileSource::Reference { .. } | _ => Err("it has neither data nor an address"),
    }
}

fn audio(file: &FilePart) -> Result<String, &'static str> {
    let FileSource::Base64(data) = &file.source else {
        return Err("sounds are taken as data only, not by their address");
    };
    let format = match file.media_type.as_str() {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        other => other.strip_prefix("audio/").unwrap_or(other),
    };
    let (data, format) = (quoted(data), quoted(format));
    Ok(format!(r#"{{"type":"input_audio","input_audio":{{"data":{data},"format":{format}}}}}"#))
}

fn document(file: &FilePart, how: DocumentPart) -> Result<String, &'static str> {
    let name = file.name.as_deref().filter(|name| !name.is_empty());
    match (how, &file.source) {
        (DocumentPart::None, _) => {
            Err("this provider is not known to take documents (quirk `documents`); send the words as text")
        }
        (DocumentPart::File, FileSource::Url(_)) => {
            Err("documents are taken as data or uploads only, not by their address")
        }
        (DocumentPart::File | DocumentPart::FileOrUrl, _) => {
            let (name, data) = (quoted(name.unwrap_or("document.pdf")), address(file)?);
            Ok(format!(r#"{{"type":"file","file":{{"filename":{name},"file_data":{data}}}}}"#))
        }
        (DocumentPart::DocumentUrl, _) => {
            let name = name.map(|name| format!(r#","document_name":{}"#, quoted(name))).unwrap_or_default();
            Ok(format!(r#"{{"type":"document_url","document_url":{}{name}}}"#, address(file)?))
        }
    }
}

/// An address in an object, or bare; `None` where more is said of it, such as how closely an image is looked at.
fn url(raw: &RawValue) -> Option<String> {
    let Some(fields) = Fields::read(raw.get()) else { return serde_json::from_str(raw.get()).ok() };
    let is_auto = fields.get("detail").is_none_or(|raw| matches!(raw.get(), "\"auto\"" | "null"));
    let url = fields.get("url").filter(|_| is_auto && holds_only(raw, &["url", "detail"]))?;
    serde_json::from_str(url.get()).ok()
}

/// A file at an address, which may hold the data itself.
fn located(url: &str, media_type: &str, name: Option<String>) -> Option<FilePart> {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    let (media_type, source) = match inline {
        Some((media_type, data)) => (media_type, FileSource::Base64(data.to_owned())),
        None => (media_type, FileSource::Url(url.to_owned())),
    };
    (!url.is_empty()).then(|| FilePart { media_type: media_type.to_owned(), source, name })
}

const PDF: &str = "application/pdf";

#[cfg(test)]
mod tests {
    use super::*;

    /// A part is read as a file that is written as the same part.
    #[track_caller]
    fn check(provider: &str, raw: &str) {
        let file = read(raw).unwrap();
        assert_eq!(part(&file, &Quirks::of(provider), true, "").unwrap(), raw);
    }

    #[test]
    fn parts_are_read_and_written() {
        check("openai-chat", r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}"#);
        check("openai-chat", r#"{"type":"image_url","image_url":{"url":"https://a.example/b"}}"#);
        check(
            "openai-chat",
            r#"{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AA=="}}"#,
        );
        check("openai-chat", r#"{"type":"file","file":{"file_id":"file_1"}}"#);
        check("openai-chat", r#"{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}"#);
        check(
            "openrouter",
            r#"{"type":"file","file":{"filename":"a.pdf","file_data":"https://a.example/b.pdf"}}"#,
        );
        check("openrouter", r#"{"type":"video_url","video_url":{"url":"https://a.example/b"}}"#);
        check(
            "mistral",
            r#"{"type":"document_url","document_url":"https://a.example/b","document_name":"b"}"#,
        );
        assert_eq!(
            read(r#"{"type":"image_url","image_url":"https://a.example/b"}"#).unwrap().media_type,
            "image/*"
        );
    }

    #[test]
    fn what_our_types_would_not_say_wholly_is_no_file() {
        for raw in [
            "7",
            r#"{"type":"hologram"}"#,
            r#"{"type":"image_url"}"#,
            r#"{"type":"image_url","image_url":""}"#,
            r#"{"type":"image_url","image_url":{"url":"https://a.example/b","detail":"high"}}"#,
            r#"{"type":"video_url","video_url":{"url":"https://a.example/b","fps":2}}"#,
            r#"{"type":"input_audio","input_audio":{"data":"AA==","format":"wav","speed":2}}"#,
            r#"{"type":"file","file":{"file_data":"AA=="}}"#,
            r#"{"type":"file","file":{"file_data":"data:text/csv;base64,AA=="}}"#,
            r#"{"type":"file","file":{"file_id":"f","filename":"a.pdf"}}"#,
            r#"{"type":"file","file":{"file_id":"f","file_data":"data:application/pdf;base64,AA=="}}"#,
        ] {
            assert_eq!(read(raw), None, "{raw}");
        }
    }

    #[test]
    fn what_is_not_taken_says_why() {
        let check = |provider: &str, media: &str, source: FileSource, sees: bool, expect: &str| {
            let file = FilePart { media_type: media.into(), source, name: None };
            let why = part(&file, &Quirks::of(provider), sees, "us").unwrap_err();
            assert!(why.contains(expect), "{why}");
        };
        let (data, url) = (|| FileSource::Base64("AA==".into()), || FileSource::Url("https://a".into()));
        let upload = FileSource::Reference { provider: "them".into(), id: "f".into() };
        check("deepseek", "image/png", data(), true, "take images");
        check("openai-chat", "image/png", data(), false, "does not see");
        check("openai-chat", "application/pdf", url(), true, "not by their address");
        check("openai-chat", "application/pdf", upload, true, "another provider");
        check("openai-chat", "audio/wav", url(), true, "as data only");
        check("openai-chat", "text/csv", data(), true, "send the words as text");
        check("groq", "application/pdf", data(), true, "take documents");
        check("groq", "video/mp4", data(), true, "take videos");
    }
}
