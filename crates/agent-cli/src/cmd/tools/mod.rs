//! `agent tools`: the built-in tools as the model sees them, and one of them run.

mod call;

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use agent::{
    Access, Concurrency, IsolatedSandbox, LocalSandbox, PermissionMode, PrivateAddresses, Sandbox, Skills,
    Tool, ToolSet, ToolTraits, WebFetchConfig, builtins,
};
use agent_core::RawJson;
use serde::Serialize;

pub(crate) use call::call;

use crate::args::{ReachArgs, SandboxArg, SkillArgs, ToolsListArgs, ToolsShowArgs};
use crate::env;
use crate::error::CliError;
use crate::show::plain;
use crate::{skills, tell};

/// A tool as JSON, in short.
#[derive(Serialize)]
struct Listed<'t> {
    name: &'t str,
    access: &'static str,
    /// What happens to a call in the default mode, where no rule speaks.
    default: &'static str,
    does: &'t str,
}

/// A tool as JSON, with its card as the model sees it.
#[derive(Serialize)]
struct Shown<'t> {
    name: &'t str,
    description: &'t str,
    input_schema: &'t RawJson,
    traits: Traits,
}

/// What the harness knows of a tool.
#[derive(Serialize)]
struct Traits {
    access: &'static str,
    default: &'static str,
    idempotent: bool,
    parallel: bool,
    deadline_ms: Option<u128>,
    cap: Cap,
    summarise: bool,
    /// How its outputs are shown to people.
    render: &'static str,
}

#[derive(Serialize)]
struct Cap {
    lines: usize,
    bytes: usize,
    line_chars: usize,
}

pub(crate) fn list(args: &ToolsListArgs) -> Result<ExitCode, CliError> {
    let tools = here(&args.skills)?;
    let mut out = stdout();
    for tool in tools.iter() {
        let Listed { name, access, default, does } = listed(&**tool);
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&Listed { name, access, default, does })?)?;
        } else {
            writeln!(out, "{name:<12}  {access:<8}  {default:<5}  {}", plain(does))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn show(args: &ToolsShowArgs) -> Result<ExitCode, CliError> {
    let tools = here(&args.skills)?;
    let tool = named(&tools, &args.name)?;
    let (card, traits) = (tool.card(), Traits::of(tool.traits()));
    let mut out = stdout();
    if args.json {
        let (name, description, input_schema) = (card.name(), card.description(), card.input_schema());
        let shown = Shown { name, description, input_schema, traits };
        writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{}\n\n{}\n", card.name(), plain(card.description()))?;
    writeln!(out, "input schema: {}\n", card.input_schema())?;
    let Traits { access, default, idempotent, parallel, deadline_ms, cap, summarise, render } = traits;
    writeln!(out, "access: {access}")?;
    writeln!(out, "in the default mode: {default}")?;
    writeln!(out, "runs: {}", if parallel { "beside other calls" } else { "alone" })?;
    writeln!(out, "may run again after a crash: {}", if idempotent { "yes" } else { "no" })?;
    let deadline = deadline_ms.map_or_else(|| "none of its own".to_owned(), |millis| format!("{millis} ms"));
    writeln!(out, "deadline: {deadline}")?;
    let Cap { lines, bytes, line_chars } = cap;
    writeln!(out, "output: at most {lines} lines, {bytes} bytes, {line_chars} characters a line")?;
    writeln!(
        out,
        "long outputs: {}",
        if summarise { "shortened by a model" } else { "cut, and kept whole" }
    )?;
    writeln!(out, "shown as: {render}")?;
    Ok(ExitCode::SUCCESS)
}

/// The tools on the directory that the program is started in.
fn here(args: &SkillArgs) -> Result<ToolSet, CliError> {
    let workspace = Path::new(".");
    let skills = skills::find(workspace, args, false)?;
    tell::skipped(&skills)?;
    on(workspace, &ReachArgs::usual(), &skills)
}

/// The built-in tools on a workspace, the one for pages, and the one that loads skills where there are some. What was to be
/// isolated and cannot be is an error.
pub(crate) fn on(workspace: &Path, reach: &ReachArgs, skills: &Skills) -> Result<ToolSet, CliError> {
    let sandbox: Arc<dyn Sandbox> = match reach.sandbox {
        SandboxArg::Local => Arc::new(LocalSandbox::open(workspace)?.env(env::vars())),
        SandboxArg::Isolated => Arc::new(IsolatedSandbox::open(workspace, env::vars())?),
    };
    let private = PrivateAddresses::Only(reach.allow_host.clone());
    let fetch = builtins::web_fetch(WebFetchConfig { private, ..WebFetchConfig::default() });
    let tools = ToolSet::builder().extend(builtins::all(sandbox)).extend([fetch]);
    Ok(tools.extend(builtins::load_skill(skills)).freeze()?)
}

/// One of them.
pub(crate) fn named<'t>(tools: &'t ToolSet, name: &str) -> Result<&'t Arc<dyn Tool>, CliError> {
    tools.get(name).ok_or_else(|| CliError::NoTool { given: name.to_owned(), known: tools.names() })
}

fn listed(tool: &dyn Tool) -> Listed<'_> {
    let (card, traits) = (tool.card(), tool.traits());
    Listed {
        name: card.name(),
        access: kind(traits.access),
        default: in_default_mode(traits),
        does: first_sentence(card.description()),
    }
}

impl Traits {
    fn of(traits: &ToolTraits) -> Self {
        let cap = traits.cap;
        Self {
            access: kind(traits.access),
            default: in_default_mode(traits),
            idempotent: traits.idempotent,
            parallel: traits.concurrency == Concurrency::Parallel,
            deadline_ms: traits.deadline.map(|deadline| deadline.as_millis()),
            cap: Cap { lines: cap.lines, bytes: cap.bytes, line_chars: cap.line_chars },
            summarise: traits.summarise,
            render: traits.render.name(),
        }
    }
}

fn in_default_mode(traits: &ToolTraits) -> &'static str {
    traits.permission.unwrap_or_else(|| PermissionMode::Default.decide(traits.access)).name()
}

fn kind(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Session => "session",
        Access::Edit => "edit",
        Access::Execute => "execute",
        Access::Network => "network",
    }
}

/// Up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |at| &text[..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sentences() {
        let check = |text: &str, expect: &str| assert_eq!(first_sentence(text), expect);
        check("Finds files. Use it.", "Finds files.");
        check("Reads a.txt and b.txt. Next.", "Reads a.txt and b.txt.");
        check("Only one.", "Only one.");
        check("", "");
    }
}
