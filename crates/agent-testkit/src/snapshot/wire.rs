//! Requests as they go over the wire, and what of one the next begins with.

use agent_cache::{Audit, Divergence, MarkedBlock, Request, RequestError, Row, RuleBook, Simulator};

use super::pretty::pretty;
use super::redact::Redactions;

/// A request that cannot be shown.
#[derive(Debug, thiserror::Error)]
#[error("request {number}: {cause}")]
#[non_exhaustive]
pub struct SnapshotError {
    /// Its number, from 1.
    pub number: usize,
    /// What is wrong with it.
    #[source]
    pub cause: RequestError,
}

/// Shows one request as it goes over the wire: a line with format, model and markers, then the body (requirement V4).
///
/// The body is broken into lines and otherwise what was sent: order of members, numbers and the bytes of every string
/// stay, so that a snapshot shows what a key-sorted comparison hides. Takes bodies of Anthropic Messages, OpenAI Chat
/// Completions and OpenAI Responses.
///
/// ```
/// use agent_testkit::{Redactions, render_request};
///
/// let body = r#"{"model":"claude-opus-5-5","max_tokens":9,"system":[{"type":"text","text":"Be brief.",
///     "cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"It is 2026-11-30."}]}"#;
/// let shown = render_request(body.as_bytes(), &Redactions::default())?;
/// assert!(shown.starts_with("anthropic · claude-opus-5-5 · 2 blocks · marks system[0] 5m\n{\n"), "{shown}");
/// assert!(shown.contains(r#"{"role":"user","content":"It is [date]."}"#), "{shown}");
/// # Ok::<(), agent_testkit::SnapshotError>(())
/// ```
pub fn render_request(body: &[u8], redactions: &Redactions) -> Result<String, SnapshotError> {
    let read = read(&[body], redactions)?;
    let mut shown = String::new();
    for (request, row) in read.iter().zip(rows(&read)) {
        let (format, model, blocks) = (request.format.name(), &request.model, request.blocks.len());
        // It was read as JSON, so it is text.
        let json = pretty(&String::from_utf8_lossy(body));
        shown = format!("{format} · {model} · {blocks} blocks · {}\n{json}\n", marks(&row.marks));
    }
    Ok(redactions.apply(&shown))
}

/// Shows, a line for each of consecutive requests, what it shares with the one before it (requirement V4).
///
/// Bytes and tokens shared, hashes of tools and system text, markers, and what a cache reads and writes by the rules
/// of the format's inventor; below, where a prefix broke, the first block that differs and why. Keep it as a snapshot
/// and a prefix that begins to move fails a test. Literal texts of the redactions are replaced before anything is
/// compared or counted; forms, such as dates, only in what is shown, so that a day that changes is still a break.
///
/// ```
/// use agent_testkit::{Redactions, render_prefixes};
///
/// let body = |clock: &str| format!(
///     r#"{{"model":"claude-opus-5-5","max_tokens":9,"system":[{{"type":"text","text":"It is {clock}. {}",
///         "cache_control":{{"type":"ephemeral"}}}}],"messages":[{{"role":"user","content":"Hi"}}]}}"#,
///     "Be brief. ".repeat(400),
/// );
/// let shown = render_prefixes(&[body("12:00:01"), body("12:00:02")], &Redactions::default())?;
/// assert!(shown.contains("\n2 · 0 of "), "{shown}");
/// assert!(shown.contains("broke at system[0]: system_changed, "), "{shown}");
/// # Ok::<(), agent_testkit::SnapshotError>(())
/// ```
pub fn render_prefixes<R: AsRef<[u8]>>(
    requests: &[R],
    redactions: &Redactions,
) -> Result<String, SnapshotError> {
    let bodies: Vec<&[u8]> = requests.iter().map(AsRef::as_ref).collect();
    Ok(render_rows(&rows(&read(&bodies, redactions)?), redactions))
}

/// Shows the rows of an audit as [`render_prefixes`] does, for those who made it by other rules or with times.
pub fn render_rows(rows: &[Row], redactions: &Redactions) -> String {
    let mut lines = Vec::new();
    for row in rows {
        let Row { step, usage, bytes, shared_bytes, shared_tokens, tools_hash, system_hash, .. } = row;
        lines.push(format!(
            "{step} · {shared_bytes} of {bytes} bytes, {shared_tokens} tokens shared · tools {tools_hash} · \
             system {system_hash} · {} · read {}, written {}, new {}",
            marks(&row.marks),
            usage.cache_read,
            usage.cache_write(),
            usage.input
        ));
        lines.extend(row.divergence.iter().flat_map(|found| divergence(found, row.lost)));
    }
    lines.push(String::new());
    redactions.apply(&lines.join("\n"))
}

fn divergence(found: &Divergence, lost: u64) -> Vec<String> {
    let cause = found.cause.name();
    if !found.cause.is_fault() {
        return vec![format!("    no fault at {}: {cause}", found.path)];
    }
    let mut lines = vec![format!("    broke at {}: {cause}, {lost} tokens lost", found.path)];
    for (when, words) in [("before", &found.before), ("after", &found.after)] {
        if !words.is_empty() {
            lines.push(format!("      {when}: {words}"));
        }
    }
    lines
}

fn read(bodies: &[&[u8]], redactions: &Redactions) -> Result<Vec<Request>, SnapshotError> {
    let numbered = (1..).zip(bodies);
    let requests = numbered.map(|(number, body)| {
        Request::read(&redactions.apply_literals(body), None).map_err(|cause| SnapshotError { number, cause })
    });
    requests.collect()
}

/// What the rules of the first request's format say of all of them, one right after the other.
fn rows(requests: &[Request]) -> Vec<Row> {
    let provider = requests.first().map_or("", |first| first.format.provider());
    let mut audit = Audit::new(Simulator::new(RuleBook::builtin(), provider), None);
    requests.iter().map(|request| audit.step(request, None, None)).collect()
}

fn marks(marks: &[MarkedBlock]) -> String {
    if marks.is_empty() {
        return "no marks".to_owned();
    }
    let marks: Vec<_> = marks.iter().map(|mark| format!("{} {}", mark.path, mark.ttl.name())).collect();
    format!("marks {}", marks.join(", "))
}
