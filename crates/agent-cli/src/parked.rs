//! What a parked turn waits for: put to the person at the terminal, or told with the command that answers it.

use std::io::{self, Write};

use agent::{InputRequest, Question, Reply, SessionId, Wait};
use agent_core::{RawJson, ToolOutput};

use crate::args::AgentArgs;
use crate::ask;
use crate::error::CliError;
use crate::show::{plain, short};

/// The person's reply; `None` when nobody is there or the request is left open.
pub(crate) async fn ask(request: &InputRequest) -> Result<Option<Reply>, CliError> {
    let request = request.clone();
    let asked = tokio::task::spawn_blocking(move || put(&request)).await;
    Ok(asked.map_err(io::Error::other)??)
}

/// Says on standard error what is waited for, and how to answer.
pub(crate) fn tell_how(
    session: &SessionId,
    requests: &[InputRequest],
    args: &AgentArgs,
) -> Result<(), CliError> {
    let mut err = io::stderr();
    for request in requests {
        for line in lines(session, request, &args.flags()) {
            writeln!(err, "{line}")?;
        }
    }
    Ok(())
}

/// A request in words, and the commands that answer it; `flags` are those that the session's agent needs.
pub(crate) fn lines(session: &SessionId, request: &InputRequest, flags: &str) -> Vec<String> {
    let id = &request.id;
    let how = |reply: &str, what: &str| {
        let command = format!("agent resume {}{flags} --{reply}", quoted(session.as_str()));
        format!("    {what}: {command}")
    };
    let mut lines = vec![format!("{id} waits: {}", summary(request))];
    match &request.wait {
        Wait::Approval(approval) => {
            lines.push(how(&format!("approve {id}"), "run it"));
            if !approval.remembers.is_empty() {
                lines.push(how(&format!("always {id}"), "run it, and always in this session"));
            }
        }
        Wait::Question(question) => {
            let first = question.options.first().map_or("TEXT", |choice| choice.label.as_str());
            lines.push(how(&format!("answer {id} {}", quoted(first)), "answer"));
        }
        Wait::Authorization(_) => lines.push(how(&format!("signed-in {id}"), "once you have signed in")),
        Wait::Action(_) | Wait::ClientTool { .. } => {
            lines.push(how(&format!("result {id} '{{\"…\":\"…\"}}'"), "give its result"));
        }
    }
    lines.push(how(&format!("deny {id} 'why'"), "refuse"));
    lines
}

/// What a request asks, on one line.
fn summary(request: &InputRequest) -> String {
    match &request.wait {
        Wait::Approval(approval) => short(&approval.prompt),
        Wait::Question(question) => {
            let options: Vec<_> = question.options.iter().map(|choice| choice.label.as_str()).collect();
            let offered =
                if options.is_empty() { String::new() } else { format!(" [{}]", options.join(" | ")) };
            format!("{}{}", short(&question.question), plain(&offered).replace('\n', "↵"))
        }
        Wait::Authorization(sign_in) => {
            format!("sign in to {} at {}", short(&sign_in.service), short(&sign_in.url))
        }
        Wait::Action(action) => {
            format!("{} ({}) is done elsewhere: {}", request.tool, action.kind, short(action.input.get()))
        }
        Wait::ClientTool { input } => format!("{}({}) runs elsewhere", request.tool, short(input.get())),
    }
}

/// Blocks until there is a reply that the request takes, or nobody is there.
fn put(request: &InputRequest) -> io::Result<Option<Reply>> {
    match &request.wait {
        Wait::Approval(approval) => ask::approval(approval),
        Wait::Question(question) => asked(&question_text(question), |line| chosen(question, line)),
        Wait::Authorization(_) => {
            let text = format!("\n{}\nEnter once you have signed in; other words refuse: ", summary(request));
            asked(&text, |line| {
                Some(if line.is_empty() { Reply::SignedIn } else { Reply::Decline(Some(line.to_owned())) })
            })
        }
        Wait::Action(_) | Wait::ClientTool { .. } => {
            let text = format!("\n{}\nIts result, as one line of JSON: ", summary(request));
            asked(&text, |line| RawJson::parse(line).ok().map(|json| Reply::Output(ToolOutput::Json(json))))
        }
    }
}

/// Asks until a line can be understood.
fn asked(text: &str, understand: impl Fn(&str) -> Option<Reply>) -> io::Result<Option<Reply>> {
    while let Some(line) = ask::read_line(text)? {
        if let Some(reply) = understand(line.trim()) {
            return Ok(Some(reply));
        }
    }
    Ok(None)
}

fn question_text(question: &Question) -> String {
    let mut text = format!("\n{}\n", plain(&question.question));
    for (at, choice) in question.options.iter().enumerate() {
        let meaning = choice.description.as_ref().map_or_else(String::new, |words| format!(" — {words}"));
        text.push_str(&plain(&format!("  {}. {}{meaning}\n", at + 1, choice.label)));
    }
    text.push_str(match (question.options.is_empty(), question.multiple) {
        (true, _) => "Your answer: ",
        (false, false) => "A number, or other words: ",
        (false, true) => "Numbers with commas between them, or other words: ",
    });
    text
}

/// The options that the numbers name, or the words.
fn chosen(question: &Question, line: &str) -> Option<Reply> {
    if line.is_empty() {
        return None;
    }
    let by_number = |word: &str| {
        let number: usize = word.trim().parse().ok()?;
        question.options.get(number.checked_sub(1)?).map(|choice| choice.label.clone())
    };
    let words = || vec![line.to_owned()];
    let said = if question.multiple {
        line.split(',').map(by_number).collect::<Option<Vec<_>>>().unwrap_or_else(words)
    } else {
        by_number(line).map_or_else(words, |label| vec![label])
    };
    Some(Reply::Answer(said))
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", plain(word).replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use agent::{CallId, Choice, RequestId};

    use super::*;

    fn question(multiple: bool) -> Question {
        let choice = |label: &str| Choice { label: label.into(), description: None };
        let options = vec![choice("the red one"), choice("blue")];
        Question { question: "Which?".into(), options, multiple }
    }

    #[test]
    fn numbers_name_options_and_other_words_are_an_answer() {
        let check = |multiple: bool, line: &str, expect: Option<&[&str]>| {
            let reply = chosen(&question(multiple), line);
            let said = expect.map(|said| Reply::Answer(said.iter().map(|it| (*it).to_owned()).collect()));
            assert_eq!(reply, said, "{line:?}");
        };
        check(false, "1", Some(&["the red one"]));
        check(false, "2", Some(&["blue"]));
        check(false, "3", Some(&["3"]));
        check(false, "0", Some(&["0"]));
        check(false, "1,2", Some(&["1,2"]));
        check(false, "green", Some(&["green"]));
        check(false, "", None);
        check(true, "2, 1", Some(&["blue", "the red one"]));
        check(true, "2, green", Some(&["2, green"]));
    }

    #[test]
    fn the_command_that_answers_is_told() {
        let session = SessionId::new("s").unwrap();
        let request = InputRequest {
            id: RequestId::given("req_1"),
            call: CallId::new("c").unwrap(),
            tool: "ask_question".into(),
            wait: Wait::Question(question(false)),
            asked_ms: 0,
            expires_ms: None,
        };
        insta::assert_snapshot!(lines(&session, &request, " --data-dir 'my data'").join("\n"), @"
        req_1 waits: Which? [the red one | blue]
            answer: agent resume s --data-dir 'my data' --answer req_1 'the red one'
            refuse: agent resume s --data-dir 'my data' --deny req_1 'why'
        ");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a-b/c.d"), "a-b/c.d");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
