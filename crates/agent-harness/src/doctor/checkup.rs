//! What a self-check found: ten items with a status, evidence and advice.

use std::fmt;

use serde::Serialize;

/// What was found about an agent: as text by `Display`, as JSON by serde.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Checkup {
    /// The model, `provider/name`.
    pub model: String,
    /// The ten items, in their order.
    pub items: Vec<Finding>,
    /// What else was looked at.
    pub also: Vec<Finding>,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Its name, for programs.
    pub name: &'static str,
    /// What should be true.
    pub title: &'static str,
    /// Whether it is.
    pub status: CheckStatus,
    /// What was looked at and seen, with names and numbers. Never empty.
    pub evidence: Vec<String>,
    /// What to do; empty when nothing is to be done.
    pub advice: Vec<String>,
}

/// How an item stands, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the four of requirement V5")]
pub enum CheckStatus {
    /// The part it is about does not exist yet.
    Absent,
    /// It is so.
    Pass,
    /// It works, and could cost or hurt.
    Warn,
    /// It is not so.
    Fail,
}

impl Checkup {
    /// Whether an item failed.
    pub fn has_failed(&self) -> bool {
        self.items.iter().chain(&self.also).any(|finding| finding.status == CheckStatus::Fail)
    }

    /// An item by its name.
    pub fn item(&self, name: &str) -> Option<&Finding> {
        self.items.iter().chain(&self.also).find(|finding| finding.name == name)
    }
}

impl Finding {
    pub(super) fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title, status: CheckStatus::Pass, evidence: Vec::new(), advice: Vec::new() }
    }

    pub(super) fn absent(name: &'static str, title: &'static str, why: &str) -> Self {
        Self { status: CheckStatus::Absent, evidence: vec![why.to_owned()], ..Self::new(name, title) }
    }

    /// Something seen that is as it should be.
    pub(super) fn saw(&mut self, evidence: impl Into<String>) {
        self.evidence.push(evidence.into());
    }

    pub(super) fn warn(&mut self, evidence: impl Into<String>, advice: impl Into<String>) {
        self.judge(CheckStatus::Warn, evidence.into(), advice.into());
    }

    pub(super) fn fail(&mut self, evidence: impl Into<String>, advice: impl Into<String>) {
        self.judge(CheckStatus::Fail, evidence.into(), advice.into());
    }

    fn judge(&mut self, status: CheckStatus, evidence: String, advice: String) {
        self.status = self.status.max(status);
        self.evidence.push(evidence);
        if !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
    }
}

impl CheckStatus {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Pass => "pass",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

impl fmt::Display for Checkup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "self-check of an agent with {}", self.model)?;
        for (number, finding) in (1..).zip(&self.items) {
            show(f, &format!("{number:>2}"), finding)?;
        }
        for finding in &self.also {
            show(f, " *", finding)?;
        }
        let count = |status| number_of(&self.items, status);
        let words = [CheckStatus::Pass, CheckStatus::Warn, CheckStatus::Fail, CheckStatus::Absent];
        let counts = words.map(|status| format!("{} {}", count(status), status.name()));
        write!(f, "{} of {}", counts.join(", "), self.items.len())?;
        for status in [CheckStatus::Warn, CheckStatus::Fail] {
            let beside = number_of(&self.also, status);
            if beside > 0 {
                write!(f, "; beside them {beside} {}", status.name())?;
            }
        }
        writeln!(f)
    }
}

fn number_of(findings: &[Finding], status: CheckStatus) -> usize {
    findings.iter().filter(|finding| finding.status == status).count()
}

fn show(f: &mut fmt::Formatter<'_>, number: &str, finding: &Finding) -> fmt::Result {
    writeln!(f, "{number} {:<6} {}", finding.status.name(), finding.title)?;
    for evidence in &finding.evidence {
        wrapped(f, "", evidence)?;
    }
    for advice in &finding.advice {
        wrapped(f, "→ ", advice)?;
    }
    Ok(())
}

/// Words under the title, broken at spaces.
fn wrapped(f: &mut fmt::Formatter<'_>, lead: &str, words: &str) -> fmt::Result {
    let mut line = lead.to_owned();
    let mut is_empty = true;
    for word in words.split_whitespace() {
        if !is_empty && line.chars().count() + word.chars().count() + 1 > COLUMNS - INDENT {
            writeln!(f, "{:INDENT$}{line}", "")?;
            line = " ".repeat(lead.chars().count());
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    writeln!(f, "{:INDENT$}{line}", "")
}

const COLUMNS: usize = 80;
const INDENT: usize = 10;
