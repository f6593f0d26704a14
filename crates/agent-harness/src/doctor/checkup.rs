//! What a self-check found: ten items with a verdict, evidence and advice.

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
    pub verdict: Verdict,
    /// What was looked at and seen, with names and numbers. Never empty.
    pub evidence: Vec<String>,
    /// What to do; empty when nothing is to be done.
    pub advice: Vec<String>,
}

/// How an item stands, from good to bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the four verdicts of requirement V5")]
pub enum Verdict {
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
        self.items.iter().chain(&self.also).any(|finding| finding.verdict == Verdict::Fail)
    }

    /// An item by its name.
    pub fn item(&self, name: &str) -> Option<&Finding> {
        self.items.iter().chain(&self.also).find(|finding| finding.name == name)
    }
}

impl Finding {
    pub(super) fn new(name: &'static str, title: &'static str) -> Self {
        Self { name, title, verdict: Verdict::Pass, evidence: Vec::new(), advice: Vec::new() }
    }

    pub(super) fn absent(name: &'static str, title: &'static str, why: &str) -> Self {
        Self { verdict: Verdict::Absent, evidence: vec![why.to_owned()], ..Self::new(name, title) }
    }

    /// Something seen that is as it should be.
    pub(super) fn saw(&mut self, evidence: impl Into<String>) {
        self.evidence.push(evidence.into());
    }

    pub(super) fn warn(&mut self, evidence: impl Into<String>, advice: impl Into<String>) {
        self.judge(Verdict::Warn, evidence.into(), advice.into());
    }

    pub(super) fn fail(&mut self, evidence: impl Into<String>, advice: impl Into<String>) {
        self.judge(Verdict::Fail, evidence.into(), advice.into());
    }

    fn judge(&mut self, verdict: Verdict, evidence: String, advice: String) {
        self.verdict = self.verdict.max(verdict);
        self.evidence.push(evidence);
        if !self.advice.contains(&advice) {
            self.advice.push(advice);
        }
    }
}

impl Verdict {
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
        let count = |verdict| number_of(&self.items, verdict);
        let words = [Verdict::Pass, Verdict::Warn, Verdict::Fail, Verdict::Absent];
        let counts = words.map(|verdict| format!("{} {}", count(verdict), verdict.name()));
        write!(f, "{} of {}", counts.join(", "), self.items.len())?;
        for verdict in [Verdict::Warn, Verdict::Fail] {
            let beside = number_of(&self.also, verdict);
            if beside > 0 {
                write!(f, "; beside them {beside} {}", verdict.name())?;
            }
        }
        writeln!(f)
    }
}

fn number_of(findings: &[Finding], verdict: Verdict) -> usize {
    findings.iter().filter(|finding| finding.verdict == verdict).count()
}

fn show(f: &mut fmt::Formatter<'_>, number: &str, finding: &Finding) -> fmt::Result {
    writeln!(f, "{number} {:<6} {}", finding.verdict.name(), finding.title)?;
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
