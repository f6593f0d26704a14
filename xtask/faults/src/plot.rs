//! What is said to the agent, and what the model says: the same in every process.

use agent_testkit::{Reply, Script};
use serde::{Deserialize, Serialize};

/// A conversation that is played, killed and taken up again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Plot {
    /// Two messages, with tools that read, write and run commands.
    Work,
    /// A turn that waits for an approval and for an answer.
    Park,
    /// Commands with large outputs, for a store that fills up.
    Bulk,
    /// A model that does not answer until it is let go.
    Wait,
}

/// A part of a plot that a process plays by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Sends what was not sent yet, until all is said or the turn waits for somebody.
    Play,
    /// Replies to what the turn waits for, and plays on.
    Answer,
}

impl Plot {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Park => "park",
            Self::Bulk => "bulk",
            Self::Wait => "wait",
        }
    }

    /// What the user says, in order.
    pub(crate) fn messages(self) -> &'static [&'static str] {
        match self {
            Self::Work => &["Write the report.", "Now sign it."],
            Self::Park | Self::Bulk | Self::Wait => &["Begin."],
        }
    }

    /// The processes that play it to its end when none is killed.
    pub(crate) fn phases(self) -> &'static [Phase] {
        match self {
            Self::Park => &[Phase::Play, Phase::Answer],
            Self::Work | Self::Bulk | Self::Wait => &[Phase::Play],
        }
    }

    /// What the model says, with this pause before each event of an answer.
    pub(crate) fn script(self, pause_ms: Option<u64>) -> Script {
        self.replies().into_iter().map(|reply| Reply { delay_ms: pause_ms, ..reply }).collect()
    }

    fn replies(self) -> Vec<Reply> {
        let bash = |command: &str| serde_json::json!({ "command": command }).to_string();
        match self {
            Self::Work => vec![
                Reply::text("I look first.")
                    .call("read_file", r#"{"path":"notes.txt"}"#)
                    .call("glob", r#"{"pattern":"*.txt"}"#),
                Reply::text("Now I write.")
                    .call("bash", bash("echo counted >> log.txt"))
                    .call("write_file", r#"{"path":"report.txt","content":"draft\n"}"#),
                Reply::tool("edit_file", r#"{"path":"report.txt","edits":[{"old":"draft","new":"report"}]}"#)
                    .call("todo", r#"{"items":[{"id":"1","text":"Sign it.","status":"pending"}]}"#),
                Reply::text("It is written."),
                Reply::tool("bash", bash("echo signed >> log.txt")),
                Reply::text("It is signed."),
            ],
            Self::Park => vec![
                Reply::text("May I?")
                    .call("bash", bash("echo planted >> log.txt"))
                    .call("ask_question", r#"{"question":"Which bed?","options":[{"label":"tulips"}]}"#),
                Reply::tool("read_file", r#"{"path":"notes.txt"}"#),
                Reply::text("It is planted."),
            ],
            Self::Bulk => {
                let mut replies: Vec<_> = (0..12)
                    .map(|n| Reply::tool("bash", bash(&format!("echo {n} >> log.txt; seq 1 4000"))))
                    .collect();
                replies.push(Reply::text("All is counted."));
                replies
            }
            Self::Wait => vec![Reply::text("Here it is.").held()],
        }
    }
}
