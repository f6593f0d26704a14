//! What the model is shown of an answer: a page, what it is instead of one, or why there is none.

use std::fmt::Write as _;

use agent_core::Cancel;
use agent_tools::ToolError;
use reqwest::{Response, StatusCode};
use url::Url;

use super::body::{self, Overflow};
use super::kind::{Kind, Media};
use super::page::{self, Form};
use super::{Fetched, Format, Input, clip};
use crate::blocking::blocking;

/// A page, as far as it was asked for.
pub(super) async fn show(fetched: Fetched, input: &Input, cancel: &Cancel) -> Result<String, ToolError> {
    let Fetched { url, status, media, kind, bytes } = fetched;
    let text = media.decode(&bytes, kind);
    let form = match input.format.unwrap_or(Format::Markdown) {
        Format::Markdown => Some(Form::Markdown),
        Format::Text => Some(Form::Text),
        Format::Html => None,
    };
    let name = if media.name.is_empty() { "not named" } else { clip(&media.name, 100) };
    let mut out = format!("URL: {url}\nStatus: {status}\nContent type: {name}\n");
    let (text, is_cut) = match form.filter(|_| kind == Kind::Html) {
        Some(form) => {
            let work = move |told: &Cancel| page::convert(text, url, form, told);
            let page = blocking(cancel, work).await?.map_err(unconverted)?;
            if !page.title.is_empty() {
                // Writing to a String cannot fail.
                let _ = writeln!(out, "Title: {}", clip(&page.title, TITLE_CHARS));
            }
            (page.text, page.is_cut)
        }
        None => (text, false),
    };
    out.push('\n');
    if text.trim().is_empty() && !is_cut {
        out.push_str("[the page has no text; a page that a program in the browser fills cannot be read, so look for its data or for another page]");
        return Ok(out);
    }
    let most = input.max_chars.unwrap_or(CHARS).min(MOST_CHARS);
    let shown = clip(&text, most);
    out.push_str(shown);
    if shown.len() < text.len() {
        let _ = write!(out, "\n\n{}", rest(text.chars().count(), most));
    }
    if is_cut {
        out.push_str(
            "\n\n[the page goes on, but is too deep or has too many parts to be converted; call again with format html]",
        );
    }
    Ok(out)
}

/// What is no text.
pub(super) fn binary(url: &Url, media: &Media, size: &str) -> ToolError {
    let name = if media.name.is_empty() { "a type that is not named" } else { clip(&media.name, 100) };
    ToolError::failed(format!(
        "{url} is no text: it came as {name}, {size}, so it cannot be shown. Look for the same as a web page, or download it into a file with bash and use a program for its kind."
    ))
}

/// An error status, with the beginning of what the server says of it.
pub(super) async fn failure(url: &Url, status: StatusCode, media: &Media, response: Response) -> ToolError {
    let next = match status.as_u16() {
        401 | 403 | 407 => "It wants a login or refuses programs, and none is sent: look for a public page.",
        404 | 410 => "Check the address, or begin at a page above it.",
        429 => "Wait before you ask this host again.",
        500..=599 => "The server has a fault: call again later, or look for another page.",
        _ => "Check the address.",
    };
    let mut words = format!("{url} answered {status}. {next}");
    // The status alone is an answer, whatever becomes of the words behind it.
    let bytes = match body::read(response, ERROR_BYTES, Overflow::Cut).await {
        Ok(bytes) if media.kind_of(&bytes) != Kind::Binary => bytes,
        Ok(_) | Err(_) => return ToolError::failed(words),
    };
    let text = media.decode(&bytes, media.kind_of(&bytes));
    let text = match media.kind_of(&bytes) {
        Kind::Html => {
            let base = url.clone();
            let converted =
                blocking(&Cancel::new(), move |told| page::convert(text, base, Form::Text, told)).await;
            converted.ok().and_then(Result::ok).map(|page| page.text).unwrap_or_default()
        }
        Kind::Text | Kind::Binary | Kind::Unknown => text,
    };
    let text = clip(text.trim(), ERROR_CHARS);
    if !text.is_empty() {
        // Writing to a String cannot fail.
        let _ = write!(words, " The body begins:\n\n{text}");
    }
    ToolError::failed(words)
}

fn unconverted(error: std::io::Error) -> ToolError {
    ToolError::failed(format!("The page cannot be converted: {error}. Call again with format html."))
}

/// How much is not shown, and how to see more.
fn rest(total: usize, shown: usize) -> String {
    let left = total - shown;
    let next = match total {
        total if total <= MOST_CHARS => format!("call again with max_chars {total} to see all"),
        _ if shown < MOST_CHARS => {
            format!("call again with max_chars up to {MOST_CHARS}, or fetch a page that says less")
        }
        _ => "fetch a page that says less, or download it into a file with bash and search that".to_owned(),
    };
    format!("[{left} of {total} characters left; {next}]")
}

const CHARS: usize = 40_000;
pub(super) const MOST_CHARS: usize = 100_000;
const ERROR_BYTES: usize = 64 * 1024;
const ERROR_CHARS: usize = 2_000;
const TITLE_CHARS: usize = 300;
