//! Shows a run: as text for people, or as JSON Lines for programs.

use std::io::{self, Write};

use agent::{Event, EventBody, ModelSpending, Spending, TurnEnd, Usage};
use agent_core::{ActionCall, ActionOutcome};

/// Where events go.
pub(crate) trait Screen {
    /// Shows one event.
    fn event(&mut self, event: &Event) -> io::Result<()>;
    /// Shows how the turn ended.
    fn end(&mut self, end: &TurnEnd, session: &str) -> io::Result<()>;
    /// Shows what the process spent on each model, where that is for people.
    fn spent(&mut self, _spent: &Spending) -> io::Result<()> {
        Ok(())
    }
}

/// Text as it streams, calls and results in short.
pub(crate) struct TextScreen<W> {
    out: W,
    /// Whether the cursor stands behind words.
    mid_line: bool,
}

/// One event a line.
pub(crate) struct JsonScreen<W>(pub(crate) W);

const SHORT: usize = 100;

impl<W: Write> TextScreen<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, mid_line: false }
    }

    /// One line of its own.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        self.fresh_line()?;
        writeln!(self.out, "{}", plain(text))
    }

    fn words(&mut self, text: &str) -> io::Result<()> {
        let text = plain(text);
        if let Some(last) = text.chars().last() {
            self.mid_line = last != '\n';
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn fresh_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.mid_line) {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn call(&mut self, call: &ActionCall) -> io::Result<()> {
        self.line(&format!("• {}({})", call.tool, short(&call.input)))
    }

    fn result(&mut self, tool: &str, outcome: ActionOutcome, preview: &str, bytes: u64) -> io::Result<()> {
        let sign = match outcome {
            ActionOutcome::Completed => "✓",
            ActionOutcome::Denied => "⊘",
            ActionOutcome::Failed | ActionOutcome::Cancelled | _ => "✗",
        };
        self.line(&format!("  {sign} {tool}: {} ({bytes} bytes)", short(preview)))
    }
}

impl<W: Write> Screen for TextScreen<W> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a screen shows what people want to see; the rest is for --json"
    )]
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.body {
            EventBody::TextDelta { text, .. } => self.words(text),
            EventBody::ActionsRequested { calls } => calls.iter().try_for_each(|call| self.call(call)),
            EventBody::ActionResult { tool, outcome, preview, bytes, .. } => {
                self.result(tool, *outcome, preview, *bytes)
            }
            EventBody::RequestDiagnostic(diagnostic) => {
                self.line(&format!("note: {}: {}", diagnostic.what, diagnostic.why))
            }
            EventBody::CacheBreak { expected, read, message, .. } => {
                let message = plain(message);
                self.line(&format!("note: {read} of {expected} tokens were read from the cache. {message}"))
            }
            EventBody::CompactionRequested { before, tier } => {
                self.line(&format!("note: the context has {before} tokens and is made smaller ({tier})"))
            }
            EventBody::CompactionCompleted { before, after, tier, millis } => {
                let seconds = std::time::Duration::from_millis(*millis).as_secs_f64();
                self.line(&format!("note: {before} tokens became {after} ({tier}, {seconds:.1} s)"))
            }
            EventBody::CompactionFailed { tier, message } => {
                self.line(&format!("note: the context was not made smaller ({tier}): {}", short(message)))
            }
            EventBody::ContextLevel { level, used, window } if level != "calm" => {
                self.line(&format!("note: {used} of {window} tokens are used (level {level})"))
            }
            EventBody::SubagentStarted { child, task, .. } => {
                self.line(&format!("  sub-agent {child} begins: {}", short(task.as_str())))
            }
            EventBody::SubagentCompleted { child, reason, .. } => {
                let how = reason.as_ref().map_or_else(|| "broke down".to_owned(), ToString::to_string);
                self.line(&format!("  sub-agent {child}: {how}"))
            }
            EventBody::HistoryRepaired { entry, .. } => {
                self.line(&format!("note: entry {entry} of the stored history was mended"))
            }
            EventBody::Tombstone { reason, .. } => {
                self.line(&format!("note: the answer so far is void ({reason})"))
            }
            EventBody::StepRetrying { attempt, kind, message, wait_ms, .. } => {
                self.fresh_line()?;
                // What a program reads from standard output is the answer.
                writeln!(io::stderr(), "{}", retrying(*attempt, kind.as_str(), message, *wait_ms))
            }
            EventBody::StepCompleted { .. } => self.fresh_line(),
            EventBody::StepFailed { kind, message, .. } => {
                self.line(&format!("model call failed, {}: {}", kind.as_str(), plain(message)))
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, end: &TurnEnd, session: &str) -> io::Result<()> {
        self.line(&format!("\n{} · {} steps · session {session}", end.reason, end.steps))?;
        self.line(&usage_line(&end.usage))?;
        if end.children == Usage::default() {
            return Ok(());
        }
        self.line(&format!("sub-agents, not in it: {}", usage_line(&end.children)))
    }

    fn spent(&mut self, spent: &Spending) -> io::Result<()> {
        spent.iter().try_for_each(|(model, spent)| self.line(&cost_line(model, spent)))
    }
}

impl<W: Write> Screen for JsonScreen<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, event)?;
        self.0.write_all(b"\n")?;
        self.0.flush()
    }

    fn end(&mut self, _end: &TurnEnd, _session: &str) -> io::Result<()> {
        Ok(())
    }
}

/// A failed attempt, on one line.
fn retrying(attempt: u32, kind: &str, message: &str, wait_ms: u64) -> String {
    let wait = std::time::Duration::from_millis(wait_ms).as_secs_f64();
    let next = attempt.saturating_add(2);
    format!("model call failed, {kind}: {}; attempt {next} in {wait:.1} s", short(message))
}

/// What one model cost.
fn cost_line(model: &str, spent: &ModelSpending) -> String {
    let requests =
        if spent.requests == 1 { "1 request".to_owned() } else { format!("{} requests", spent.requests) };
    match spent.cost_usd {
        Some(usd) => format!("cost: {model} ${usd:.4} in {requests}"),
        None => format!("cost: {model} not known, for it has no prices, in {requests}"),
    }
}

/// Tokens by component.
pub(crate) fn usage_line(usage: &Usage) -> String {
    format!(
        "tokens: input {} · cache read {} · cache write {} (5m {}, 1h {}) · output {} (reasoning {})",
        usage.input,
        usage.cache_read,
        usage.cache_write(),
        usage.cache_write_5m,
        usage.cache_write_1h,
        usage.output,
        usage.reasoning
    )
}

/// The beginning of a text, on one line.
pub(crate) fn short(text: &str) -> String {
    let line = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Text that cannot steer the terminal or hide in it: control characters, those that turn the direction, and those that
/// take no room become visible. What joins letters and emoji stays.
pub(crate) fn plain(text: &str) -> String {
    let visible = |c: char| match c {
        '\n' | '\t' => c,
        '\u{1b}' => '␛',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' => '\u{fffd}',
        '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_is_one_line() {
        assert_eq!(
            retrying(0, "overloaded", "busy\nnow", 34_450),
            "model call failed, overloaded: busy now; attempt 2 in 34.5 s"
        );
    }

    #[test]
    fn text_cannot_steer_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\rc\u{202e}d\n"), "a␛[2Jb\u{fffd}c\u{fffd}d\n");
        assert_eq!(plain("r\u{200b}m\u{2028}\u{e0072}"), "r\u{fffd}m\u{fffd}\u{fffd}");
        assert_eq!(plain("שלום"), "שלום");
        assert_eq!(short(&"word ".repeat(40)).chars().count(), SHORT + 1);
    }
}
