//! The tools that are called, and what stands around their calls: rules, hooks, a person who once said "always".

use std::path::Path;
use std::sync::Arc;

use agent::prepare::RawJson;
use agent::{
    Access, After, Answer, AskRequest, Asker, AskerError, Before, HookCx, HookError, LocalSandbox, Pattern,
    PermissionMode, PermissionRule, Permissions, ToolConfig, ToolHook, ToolOutput, ToolSet, builtins,
};
use async_trait::async_trait;

use crate::bench::Fault;

/// A tool that is called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    ReadFile,
    Bash,
    Command,
    Closure,
}

impl Subject {
    pub(super) const ALL: [Self; 4] = [Self::ReadFile, Self::Bash, Self::Command, Self::Closure];

    /// The tool's name, and its word on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::Bash => "bash",
            Self::Command => "command",
            Self::Closure => "closure",
        }
    }

    /// Whether it has a limit.
    pub(super) fn is_judged(self) -> bool {
        match self {
            Self::ReadFile | Self::Bash => true,
            Self::Command | Self::Closure => false,
        }
    }

    /// Whether its instructions come out the same each time: a process that is waited for is looked at as often as it
    /// takes.
    pub(super) fn is_counted(self) -> bool {
        self != Self::Bash
    }

    /// Whether it needs little time and no quiet machine.
    pub(super) fn is_quick(self) -> bool {
        self.is_counted()
    }

    /// How many steps a run has.
    pub(super) fn steps(self) -> u32 {
        match self {
            Self::Bash => 2,
            Self::ReadFile | Self::Command | Self::Closure => 20,
        }
    }

    pub(super) fn input(self) -> &'static str {
        match self {
            Self::ReadFile => r#"{"path":"src/notes.txt"}"#,
            Self::Bash | Self::Command => r#"{"command":"cat src/notes.txt"}"#,
            Self::Closure => r#"{"command":"notes"}"#,
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    command: String,
}

/// The built-in tools on this folder and those of the bench; `mark` has an effect for which a person is asked.
pub(super) fn tools(folder: &Path) -> Result<ToolSet, Fault> {
    std::fs::create_dir_all(folder.join("src"))?;
    std::fs::write(folder.join("src/notes.txt"), text())?;
    let at_once = |_, input: Input| async move {
        std::hint::black_box(input.command);
        Ok(text())
    };
    let command = ToolConfig::new("command", "Prints notes.", Access::Execute, at_once)
        .subject(|input: Input| agent::Subject::Command(input.command))
        .idempotent();
    let as_text = |input: Input| agent::Subject::Text(input.command);
    let closure = ToolConfig::new("closure", "Prints notes.", Access::Read, at_once).subject(as_text);
    let marked = |_, input: Input| async { Ok(input.command) };
    let mark = ToolConfig::new("mark", "Marks.", Access::Edit, marked).subject(as_text);
    let sandbox = Arc::new(LocalSandbox::open(folder)?);
    Ok(ToolSet::builder().extend(builtins::all(sandbox)).with(command).with(closure).with(mark).freeze()?)
}

/// 4 KiB in 64 lines.
fn text() -> String {
    let line = "the quick brown fox jumps over the lazy dog and comes back again\n";
    line.bytes().skip(1).map(char::from).collect::<String>().repeat(64)
}

/// As a careful user has them, for each tool that is called some of each kind.
pub(super) fn permissions() -> Result<Permissions, Fault> {
    let mut rules = Vec::new();
    type Rule = fn(Pattern) -> PermissionRule;
    let kinds: [(Rule, &[&str]); 3] =
        [(PermissionRule::deny, &DENIED), (PermissionRule::ask, &ASKED), (PermissionRule::allow, &ALLOWED)];
    for (rule, patterns) in kinds {
        for pattern in patterns {
            rules.push(rule(pattern.parse()?));
        }
    }
    Ok(Permissions { mode: PermissionMode::Default, rules, ..Permissions::default() })
}

const DENIED: [&str; 8] = [
    "bash(rm -rf:*)",
    "bash(git push --force:*)",
    "bash(curl:*)",
    "command(rm -rf:*)",
    "command(git push --force:*)",
    "read_file(secrets/**)",
    "read_file(**/.env)",
    "closure(*password*)",
];
const ASKED: [&str; 5] =
    ["bash(git push:*)", "command(git push:*)", "edit_file(Cargo.toml)", "write_file(docs/**)", "web_fetch"];
const ALLOWED: [&str; 11] = [
    "bash(cat:*)",
    "bash(git status)",
    "bash(git diff:*)",
    "bash(cargo test:*)",
    "command(cat:*)",
    "command(git status)",
    "command(cargo test:*)",
    "read_file(src/**)",
    "edit_file(src/**)",
    "web_fetch(domain:docs.rs)",
    "closure(notes*)",
];

/// Says "always" to whatever is asked.
#[derive(Debug)]
pub(super) struct Always;

#[async_trait]
impl Asker for Always {
    async fn ask(&self, _request: &AskRequest) -> Result<Answer, AskerError> {
        Ok(Answer::Always(agent_core::Layer::Session))
    }
}

/// Looks at each call and at what came of it, and has nothing to say.
#[derive(Debug)]
pub(super) struct Looks(pub(super) &'static str);

#[async_trait]
impl ToolHook for Looks {
    fn name(&self) -> &str {
        self.0
    }

    async fn before(&self, _cx: &HookCx<'_>, input: &RawJson) -> Result<Before, HookError> {
        let blocks = input.get().contains("/etc/shadow");
        Ok(if blocks { Before::block("Not this file.") } else { Before::default() })
    }

    async fn after(
        &self,
        _cx: &HookCx<'_>,
        _input: &RawJson,
        output: &ToolOutput,
    ) -> Result<After, HookError> {
        std::hint::black_box(output.is_error());
        Ok(After::default())
    }
}
