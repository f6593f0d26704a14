//! Asks on the terminal: `TOOL(INPUT) — reason [Y/n]`.

use std::io::{BufRead, Write};

use agent::{Answer, AskRequest, Asker, AskerError};
use async_trait::async_trait;

use crate::show::plain;

/// Asks the person at the terminal; Enter allows (requirement T2).
#[derive(Debug)]
pub(crate) struct TerminalAsker;

#[async_trait]
impl Asker for TerminalAsker {
    async fn ask(&self, request: &AskRequest) -> Result<Answer, AskerError> {
        let question =
            format!("\n{}({}) — {} [Y/n] ", request.tool(), plain(request.subject()), request.reason());
        let asked = tokio::task::spawn_blocking(move || read_answer(&question)).await;
        let line = asked.map_err(|error| AskerError::from(std::io::Error::other(error)))??;
        Ok(line.map_or(Answer::Nobody, |line| understand(&line)))
    }
}

/// One line from the terminal; `None` at its end.
fn read_answer(question: &str) -> std::io::Result<Option<String>> {
    let mut err = std::io::stderr();
    err.write_all(question.as_bytes())?;
    err.flush()?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then_some(line))
}

/// Enter, `y` and `yes` allow; `n` and `no` deny; any other words deny and are passed on.
fn understand(line: &str) -> Answer {
    let line = line.trim();
    match line.to_ascii_lowercase().as_str() {
        "" | "y" | "yes" => Answer::Allow,
        "n" | "no" => Answer::Deny(None),
        _ => Answer::Deny(Some(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        for yes in ["\n", "y\n", " Yes \n"] {
            assert_eq!(understand(yes), Answer::Allow, "{yes:?}");
        }
        assert_eq!(understand("n\n"), Answer::Deny(None));
        assert_eq!(understand("use rg instead\n"), Answer::Deny(Some("use rg instead".into())));
    }
}
