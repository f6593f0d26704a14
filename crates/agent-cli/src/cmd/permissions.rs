//! `agent permissions check`: what the rules say of a call, and why; nothing runs.

use std::io::{Write, stdout};
use std::process::ExitCode;

use agent::{DecidedBy, Matter, Ruling, Subject, Tool, ToolSet};
use agent_core::RawJson;
use serde::Serialize;

use super::tools::{named, on};
use crate::args::{PermissionsCheckArgs, ReachArgs, SkillArgs};
use crate::error::CliError;
use crate::settings::Settings;
use crate::show::plain;
use crate::{settings, skills, tell};

/// A ruling as JSON.
#[derive(Serialize)]
struct Shown<'r> {
    tool: &'r str,
    decision: &'static str,
    /// `rule`, `mode`, `tool`, `hook` or `unknown`.
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    /// The part of the input that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<&'r str>,
}

pub(crate) async fn check(args: PermissionsCheckArgs) -> Result<ExitCode, CliError> {
    let settings = settings::load(&args.cwd, &args.given())?;
    tell::withheld(&settings)?;
    let skills = skills::find(&args.cwd, &SkillArgs::default(), false)?;
    let tools = on(&args.cwd, &ReachArgs::usual(), &skills)?;
    let tool = named(&tools, &args.tool)?;
    let input = RawJson::parse(args.input.as_str()).map_err(|cause| CliError::ToolInput { cause })?;
    if let Err(error) = tool.validate(&input) {
        tell::note(&format!("the call would not run, whatever is allowed: {error}"))?;
    }
    let subject = subject(&**tool, &input).await;
    let matter = Matter {
        tool: tool.card().name(),
        access: tool.traits().access,
        own: tool.traits().permission,
        subject: Some(&subject),
        before: None,
    };
    inert(&settings, &tools)?;
    let ruling = settings.permissions.rule_on(&matter, &[], None);
    let mut out = stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&Shown::of(&args.tool, &ruling))?)?;
    } else {
        writeln!(out, "{}\ndecided by: {}", ruling.decision.name(), plain(&reason(&ruling)))?;
        if let Some(part) = &ruling.part {
            writeln!(out, "because of: {}", plain(part).replace('\n', "↵"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Rules that speak of no tool, which a slip of the pen makes: nothing else would ever say so.
fn inert(settings: &Settings, tools: &ToolSet) -> Result<(), CliError> {
    for rule in &settings.permissions.rules {
        if !tools.iter().any(|tool| rule.pattern.names(tool.card().name())) {
            tell::note(&format!(
                "the rule {rule} speaks of none of the tools there are here: {}",
                tools.names()
            ))?;
        }
    }
    Ok(())
}

/// What rules look at: the input itself where the tool names no part of it.
async fn subject(tool: &dyn Tool, input: &RawJson) -> Subject {
    tool.subject(input).await.unwrap_or_else(|| Subject::Text(input.get().to_owned()))
}

fn reason(ruling: &Ruling) -> String {
    match &ruling.by {
        DecidedBy::Rule(rule) => format!("the rule {rule}"),
        DecidedBy::Mode(mode) => format!("the mode {}, for no rule covers the call", mode.name()),
        DecidedBy::Tool => "the tool itself, for no rule covers the call".to_owned(),
        DecidedBy::Hook(name) => format!("the hook {name}"),
        DecidedBy::Classifier { name, .. } => format!("the classifier {name}"),
        DecidedBy::Confinement => "what the run is for, and no rule covers the call".to_owned(),
        DecidedBy::Unknown => {
            "a part that is only known when it runs, which rules cannot be held against".to_owned()
        }
    }
}

impl<'r> Shown<'r> {
    fn of(tool: &'r str, ruling: &'r Ruling) -> Self {
        let shown = |by| Self {
            tool,
            decision: ruling.decision.name(),
            by,
            rule: None,
            layer: None,
            mode: None,
            part: ruling.part.as_deref(),
        };
        match &ruling.by {
            DecidedBy::Rule(rule) => {
                let (pattern, layer) = (rule.pattern.to_string(), rule.layer.name());
                Self { rule: Some(pattern), layer: Some(layer), ..shown("rule") }
            }
            DecidedBy::Mode(mode) => Self { mode: Some(mode.name()), ..shown("mode") },
            DecidedBy::Tool => shown("tool"),
            DecidedBy::Hook(_) => shown("hook"),
            DecidedBy::Classifier { .. } => shown("classifier"),
            DecidedBy::Unknown => shown("unknown"),
            DecidedBy::Confinement => shown("confinement"),
        }
    }
}
