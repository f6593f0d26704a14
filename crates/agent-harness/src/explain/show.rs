//! An explained request as text for a terminal of 80 columns.

use std::fmt;

use super::{ExplainedBreakpoint, ExplainedMessage, ExplainedRequest};

impl fmt::Display for ExplainedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begins = if self.is_new { "would begin" } else { "is stored" };
        writeln!(f, "session {} {begins}, model {}", self.session, self.model)?;
        let (bytes, tokens, marks) = (self.body_bytes, self.body_estimated_tokens, self.breakpoints.len());
        writeln!(f, "request: {bytes} bytes, about {tokens} tokens, {marks} cache breakpoints")?;
        for ExplainedBreakpoint { at, ttl } in &self.breakpoints {
            writeln!(f, "  cache breakpoint behind {at}, {}", ttl.name())?;
        }
        if self.assumes_message {
            writeln!(f, "assumed: no message was given, so a stand-in ends the conversation")?;
        }
        for tool in &self.assumes_results {
            writeln!(f, "assumed: the open call of {tool} runs first; its result is a stand-in")?;
        }
        for (name, value) in &self.headers {
            writeln!(f, "header {name}: {value}")?;
        }
        write!(f, "{}", self.prompt)?;
        writeln!(f, "messages: {}", self.messages.len())?;
        for (number, message) in (1..).zip(&self.messages) {
            show(f, number, message)?;
        }
        for diagnostic in &self.request_diagnostics {
            writeln!(f, "warning: {}: {}", diagnostic.what, diagnostic.why)?;
        }
        Ok(())
    }
}

fn show(f: &mut fmt::Formatter<'_>, number: usize, message: &ExplainedMessage) -> fmt::Result {
    let ExplainedMessage { entry, kind, parts, bytes, estimated_tokens: tokens, breakpoint } = message;
    let entry = entry.map_or_else(|| "this call only".to_owned(), |entry| format!("entry {entry}"));
    writeln!(f, "{number}. {}, {entry}: {bytes} bytes, about {tokens} tokens", kind.name())?;
    for part in parts {
        let what = &part.what;
        let room = COLUMNS.saturating_sub(what.chars().count() + part.bytes.to_string().len() + 14);
        let excerpt: String = part.excerpt.chars().take(room).collect();
        writeln!(f, "   {what}, {} bytes | {excerpt}", part.bytes)?;
    }
    match breakpoint {
        Some(ttl) => writeln!(f, "   ^ cache breakpoint, {}", ttl.name()),
        None => Ok(()),
    }
}

const COLUMNS: usize = 80;
