//! The floor: the least that a loop over remembered bytes has to do, without a harness around it.
//!
//! Each message is written once and kept as bytes. A step joins them to a body (`fragments`) or sends them as they
//! lie, in few pieces (`segments`), splits the answer at line breaks and reads each event into borrowed fields.

mod body;
mod heard;
mod lines;

use std::sync::Arc;

use serde_json::json;

use crate::bench::{self, Fault, Job, Measured, Outcome};

/// How remembered bytes become a body.
#[derive(Clone, Copy)]
pub(crate) enum Join {
    /// Copied into one buffer at each step, so that a step could choose among them.
    Fragments,
    /// Sent without a copy, in pieces that are joined as they age.
    Segments,
}

pub(crate) fn measure(name: &'static str, join: Join, job: &Arc<Job>) -> Result<Measured, Fault> {
    // Another client may have chosen already; the address is plain HTTP, so that nothing hangs on it.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().build()?;
    bench::measure(name, job, |number| session(client.clone(), join, Arc::clone(job), number))
}

async fn session(
    client: reqwest::Client,
    join: Join,
    job: Arc<Job>,
    number: usize,
) -> Result<Outcome, Fault> {
    let url: reqwest::Url = format!("{}/v1/messages", job.base_url).parse()?;
    let prompt = json!({ "role": "user", "content": [{ "type": "text", "text": job.prompt(number) }] });
    let mut remembered = body::Remembered::new(join, head()?);
    remembered.push(serde_json::to_vec(&prompt)?);
    let mut outcome = Outcome::default();
    loop {
        let request = client.post(url.clone()).header("content-type", "application/json");
        let request = request.header("x-api-key", "none").header("anthropic-version", "2023-06-01");
        let mut response = request.body(remembered.body()).send().await?.error_for_status()?;
        let (mut lines, mut heard) = (lines::Lines::default(), heard::Heard::default());
        while let Some(chunk) = response.chunk().await? {
            lines.feed(&chunk, |data| heard.event(data))?;
        }
        outcome.heard += heard.text.len();
        let Some(call) = heard.call.take() else {
            outcome.last = heard.text.len();
            outcome.kept = Some(Box::new(remembered));
            return Ok(outcome);
        };
        outcome.calls += 1;
        for message in heard::messages(&heard, &call, &bench::echo())? {
            remembered.push(message);
        }
    }
}

/// The body up to the first message.
fn head() -> Result<Vec<u8>, Fault> {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" }, "seq": { "type": "integer" } }, "required": ["text", "seq"] });
    let tools = json!([{ "name": "echo", "description": bench::ECHO_ABOUT, "input_schema": schema }]);
    let system = json!([{ "type": "text", "text": bench::SYSTEM }]);
    let fields = json!({ "model": bench::MODEL, "max_tokens": 1024, "stream": true, "system": system, "tools": tools });
    let mut head = serde_json::to_vec(&fields)?;
    head.pop();
    head.extend_from_slice(b",\"messages\":[");
    Ok(head)
}
