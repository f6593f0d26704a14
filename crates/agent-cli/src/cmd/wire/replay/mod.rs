//! `agent wire replay`: recorded exchanges decoded, imported and held against each other.

mod plain;

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use agent_core::{Entry, History, StepRecord, ToolCall};
use agent_providers::{
    Decoded, Dialect, ResponseHead, Transcript, WireFormat, decode_response, import_request,
};
use agent_testkit::{Exchange, read_exchanges};
use plain::Plain;

use super::{dialect, profile};
use crate::args::ReplayArgs;
use crate::env;
use crate::error::CliError;
use crate::show::plain;

/// How many bytes a read of the network brings when a recorded body is played.
const READ: usize = 1_400;

/// What came of one exchange.
struct Row {
    format: WireFormat,
    status: u16,
    says: String,
    relation: &'static str,
    mismatches: Vec<String>,
    /// What a client did of its own accord.
    notes: Vec<String>,
}

pub(crate) fn replay(args: &ReplayArgs) -> Result<ExitCode, CliError> {
    let mut out = stdout();
    let (mut exchanges, mut mismatches) = (0, 0);
    for file in &args.files {
        for (position, row) in replay_file(args, file)?.into_iter().enumerate() {
            exchanges += 1;
            mismatches += usize::from(!row.mismatches.is_empty());
            let verdict = if row.mismatches.is_empty() { "ok" } else { "MISMATCH" };
            let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
            writeln!(
                out,
                "{verdict:8} {name}:{} {} {}, {}",
                position + 1,
                row.status,
                row.says,
                row.relation
            )?;
            for line in row.mismatches.iter().chain(&row.notes) {
                writeln!(out, "         {}", plain(line))?;
            }
        }
    }
    writeln!(out, "{exchanges} exchanges, {mismatches} with a mismatch")?;
    Ok(if mismatches == 0 && exchanges > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn replay_file(args: &ReplayArgs, file: &Path) -> Result<Vec<Row>, CliError> {
    let mut rows = Vec::new();
    let mut before: Option<(History, Decoded)> = None;
    let exchanges = read_exchanges(file)?;
    let path = exchanges.first().map_or("", |exchange| exchange.request.path.as_str());
    let dialect = &match &args.format {
        Some(format) => dialect(format, args.provider.as_deref())?,
        None => dialect(format_of(path), args.provider.as_deref())?,
    };
    for exchange in exchanges {
        let decoded = decode(dialect, &exchange);
        let mut row = Row {
            format: dialect.format,
            status: exchange.response.status,
            says: says(&decoded),
            relation: "begins",
            mismatches: against_plain(dialect.format, &exchange, &decoded),
            notes: Vec::new(),
        };
        let Some(body) = exchange.request.body.as_deref().filter(|body| !body.is_empty()) else {
            row.relation = "asks without a body";
            rows.push(row);
            continue;
        };
        match import_request(dialect, body.as_bytes()) {
            Ok(imported) => {
                let imported = Transcript::from(imported);
                row.mismatches.extend(against_encoder(dialect, &imported));
                if let Some((history, answer)) = &before {
                    row.relation = relate(history, answer, &imported.history, &mut row);
                }
                before = Some((imported.history, decoded));
            }
            Err(error) => row.mismatches.push(format!("request: {error}")),
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The format that is spoken at a path; an unknown one is taken for the first of all.
fn format_of(path: &str) -> &'static str {
    let path = path.split('?').next().unwrap_or_default();
    let known = PATHS.iter().find(|(end, _)| path.ends_with(end));
    known.map_or("anthropic", |(_, format)| format)
}

const PATHS: [(&str, &str); 5] = [
    ("/chat/completions", "openai-chat"),
    ("/responses", "openai-responses"),
    (":generateContent", "gemini"),
    (":streamGenerateContent", "gemini"),
    ("/api/chat", "ollama"),
];

fn decode(dialect: &Dialect, exchange: &Exchange) -> Decoded {
    let headers: Vec<(String, String)> = exchange.response.headers.clone().into_iter().collect();
    let head = ResponseHead { status: Some(exchange.response.status), headers: &headers, now: env::now() };
    let chunks: Vec<&[u8]> = exchange.response.body.chunks(READ).collect();
    decode_response(dialect, &chunks, &head)
}

fn says(decoded: &Decoded) -> String {
    match &decoded.error {
        Some(error) => error.kind.as_str().to_owned(),
        None => format!(
            "{} bytes of text, {} calls, {} tokens in, {} out",
            decoded.text.len(),
            decoded.calls.len(),
            decoded.usage.total_input(),
            decoded.usage.output
        ),
    }
}

/// An answer must be whole and say what a plain reading of its body says; a failure must be known as one.
fn against_plain(format: WireFormat, exchange: &Exchange, decoded: &Decoded) -> Vec<String> {
    if exchange.response.status >= 300 {
        let missing =
            decoded.error.is_none().then(|| "status: a failure was decoded as an answer".to_owned());
        return missing.into_iter().collect();
    }
    if let Some(error) = &decoded.error {
        return vec![format!("answer: {error}")];
    }
    match Plain::read(format, &String::from_utf8_lossy(&exchange.response.body)) {
        Some(plain) => plain.differences(decoded),
        None => vec!["answer: the body cannot be read plainly".to_owned()],
    }
}

/// What was imported and encoded, and imported and encoded again, must be the same bytes: nothing gets lost on the way.
fn against_encoder(dialect: &Dialect, transcript: &Transcript) -> Vec<String> {
    let encode = |transcript: &Transcript| {
        let encoded = transcript.encode(dialect, profile(dialect, &transcript.model));
        encoded.request.body.to_vec()
    };
    let once = encode(transcript);
    match import_request(dialect, &once) {
        Ok(again) => {
            let again = Transcript { model: transcript.model.clone(), ..Transcript::from(again) };
            let is_same = encode(&again) == once;
            let changed = "request: encoded, imported and encoded again it is another one".to_owned();
            (!is_same).then_some(changed).into_iter().collect()
        }
        Err(error) => vec![format!("request: encoded it cannot be imported ({error})")],
    }
}

/// How a request goes on from the one before: the same again, a new conversation, or longer by the answer.
fn relate(before: &History, answer: &Decoded, now: &History, row: &mut Row) -> &'static str {
    let (old, new) = (before.entries(), now.entries());
    if old == new {
        return "repeats";
    }
    if old.first() != new.first() {
        return "begins anew";
    }
    if let Some(at) = old.iter().zip(new).position(|(old, new)| old != new) {
        row.mismatches.push(format!("request: it does not extend the one before; entry {at} differs"));
        return "diverges";
    }
    match new.get(old.len()) {
        Some(Entry::Step(step)) => against_answer(step, answer, row),
        // An answer that says nothing has no place in the next request.
        _ if answer.text.trim().is_empty() && answer.calls.is_empty() => {}
        _ => row.mismatches.push("request: the answer before it is not in it".to_owned()),
    }
    "extends"
}

/// The step in the next request must be what the answer was decoded as. A client may have edited a call of its own
/// accord (a repaired name, a hook): that is told, and is no mismatch as long as the call is the same one.
fn against_answer(step: &StepRecord, answer: &Decoded, row: &mut Row) {
    if step.text() != answer.text {
        row.mismatches.push("request: the text of the answer before it is another one".to_owned());
    }
    let sent: Vec<&ToolCall> = step.pairs().map(|(call, _)| call).collect();
    // Formats without ids number the calls of a request, or of an answer.
    let has_ids = !matches!(row.format, WireFormat::Gemini | WireFormat::Ollama);
    let id = |call: &&ToolCall| if has_ids { call.id.to_string() } else { "a call".to_owned() };
    let ids = |calls: &[&ToolCall]| calls.iter().map(id).collect::<Vec<_>>();
    let said: Vec<&ToolCall> = answer.calls.iter().collect();
    if ids(&sent) != ids(&said) {
        let (sent, said) = (ids(&sent), ids(&said));
        row.mismatches
            .push(format!("request: the calls of the answer before it are {sent:?}, decoded were {said:?}"));
        return;
    }
    for (sent, said) in sent.iter().zip(said).filter(|(sent, said)| sent.name != said.name) {
        row.notes.push(format!(
            "the client sent {} back as a call of `{}`, not `{}`",
            said.id, sent.name, said.name
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_its_format() {
        let check = |path: &str, expect: &str| assert_eq!(format_of(path), expect, "{path}");
        check("/v1/messages", "anthropic");
        check("/api/v1/chat/completions", "openai-chat");
        check("/v1/responses?x=1", "openai-responses");
        check("/v1beta/models/m:streamGenerateContent?alt=sse", "gemini");
        check("/v1beta/models/m:generateContent", "gemini");
        check("/api/chat", "ollama");
        check("", "anthropic");
    }
}
