//! The sub-agents of a run: kinds that are defined in Markdown files, and one like the agent itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::builtins::{self, AgentFile, AgentKind};
use agent::prompt::{Fragment, Layer, Prompt, Session, Value};
use agent::{ChildKind, Children, HttpConfig, HttpModel, ToolSet, Vendor};
use agent_core::LanguageModel;

use crate::env;
use crate::error::CliError;
use crate::settings;
use crate::tell;

/// Where definitions are: below a workspace.
const PROJECT: &str = ".agent/agents";
/// Where they are in the folder of the user's settings.
const USER: &str = "agents";
/// Most files of a folder that are looked at.
const FILES: usize = 100;

/// What was found, or wanted without a definition.
#[derive(Debug, Default)]
pub(crate) struct Agents {
    found: Vec<(PathBuf, AgentFile)>,
    is_wanted: bool,
}

/// What every kind is made with.
pub(crate) struct Made<'a> {
    /// All tools of the run.
    pub(crate) tools: ToolSet,
    /// How its models are reached.
    pub(crate) models: Option<&'a HttpConfig>,
    /// What stands behind the instructions of each.
    pub(crate) beside: &'a [(&'static str, String)],
}

/// Reads the definitions. A workspace comes from anywhere, and a kind may choose a dearer model, so its own count where the
/// user trusts it; the workspace's come first. `bare` leaves all of them out.
pub(crate) fn find(
    workspace: &Path,
    is_trusted: bool,
    is_wanted: bool,
    bare: bool,
) -> Result<Agents, CliError> {
    let mut agents = Agents { found: Vec::new(), is_wanted };
    if bare {
        return Ok(agents);
    }
    let project = workspace.join(PROJECT);
    if is_trusted {
        agents.read(&project)?;
    } else if let n @ 1.. = files(&project)?.len() {
        tell::note(&format!(
            "the sub-agents of this workspace ({n} in {PROJECT}) are left out; they hold only where you trust it, which you say with \"trust\" in your own settings"
        ))?;
    }
    if let Some(folder) = env::config_dir() {
        agents.read(&folder.join(USER))?;
    }
    Ok(agents)
}

impl Agents {
    fn read(&mut self, folder: &Path) -> Result<(), CliError> {
        for path in files(folder)? {
            let skip = |why: &dyn std::fmt::Display| skipped(&path, why);
            match settings::text(&path) {
                Err(cause) => skip(&cause)?,
                Ok(text) => match AgentFile::read(&text) {
                    Err(why) => skip(&why)?,
                    Ok(file) => match self.found.iter().find(|(_, known)| known.name == file.name) {
                        Some((first, _)) => skip(&format!("{} has that name", first.display()))?,
                        None => self.found.push((path, file)),
                    },
                },
            }
        }
        Ok(())
    }

    /// The tools with `agent` among them, and the kinds; `None` where there are no sub-agents. A definition that this run cannot
    /// follow keeps no other away.
    pub(crate) fn children(&self, made: Made<'_>) -> Result<Option<(ToolSet, Children)>, CliError> {
        let mut kinds = Vec::with_capacity(self.found.len());
        for (path, file) in &self.found {
            match made.model(file) {
                Ok(model) => kinds.push((path, file, model)),
                Err(why) => skipped(path, &why)?,
            }
        }
        if kinds.is_empty() && !self.is_wanted {
            return Ok(None);
        }
        let named = kinds
            .iter()
            .map(|(_, file, _)| AgentKind { name: file.name.clone(), description: file.description.clone() });
        let tool = builtins::agent(&named.collect::<Vec<_>>());
        let tools = ToolSet::builder().extend(made.tools.iter().cloned()).with(tool).freeze()?;
        let made = Made { tools, ..made };
        let kinds = kinds.into_iter().map(|(path, file, model)| made.kind(path, file, model));
        let kinds = kinds.collect::<Result<_, CliError>>()?;
        Ok(Some((made.tools, Children { kinds, ..Children::default() })))
    }
}

impl Made<'_> {
    fn kind(
        &self,
        path: &Path,
        file: &AgentFile,
        model: Option<Arc<dyn LanguageModel>>,
    ) -> Result<ChildKind, CliError> {
        let wanted = file.tools.iter().flatten();
        let missing: Vec<_> = wanted.filter(|name| self.tools.get(name).is_none()).cloned().collect();
        if !missing.is_empty() {
            tell::note(&format!(
                "the sub-agent of {} goes without {}, which this run has not; it has: {}",
                path.display(),
                missing.join(", "),
                self.tools.names()
            ))?;
        }
        let tools = file.tools.as_ref();
        let tools = tools.map(|names| self.tools.only(|tool| names.iter().any(|name| name == tool)));
        let mut prompt = Prompt::default();
        let own = std::iter::once(("agent", file.prompt.clone()));
        for (key, text) in own.chain(self.beside.iter().cloned()) {
            prompt.add(Fragment::<Session>::new(Layer::Session, key, Value::session(text))?);
        }
        let (name, description) = (file.name.clone(), file.description.clone());
        Ok(ChildKind { name, description, model, prompt: Some(prompt), tools, ..ChildKind::default() })
    }

    /// Its own model, when it has one; or why this run cannot have that.
    fn model(&self, file: &AgentFile) -> Result<Option<Arc<dyn LanguageModel>>, String> {
        let (Some(given), Some(config)) = (&file.model, self.models) else { return Ok(None) };
        let model = same_vendor(&config.vendor, given)?;
        let model = HttpModel::new(HttpConfig { model, ..config.clone() });
        Ok(Some(Arc::new(model.map_err(|error| error.to_string())?)))
    }
}

fn skipped(path: &Path, why: &dyn std::fmt::Display) -> io::Result<()> {
    tell::note(&format!("the sub-agent of {} is left out: {why}", path.display()))
}

/// The name of a model at the provider of the run, whose key and address it shares.
fn same_vendor(vendor: &Vendor, given: &str) -> Result<String, String> {
    match given.split_once('/') {
        Some((provider, name)) if provider == vendor.name => Ok(name.to_owned()),
        Some((provider, _)) if Vendor::named(provider).is_some() => Err(format!(
            "`model: {given}` is of another provider than the run, which has a key for {} alone; name one of its models, or leave `model` out",
            vendor.name
        )),
        Some(_) | None => Ok(given.to_owned()),
    }
}

/// The Markdown files of a folder by their names; none where there is no folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let failed = |cause: io::Error| CliError::File { path: folder.to_owned(), cause };
    let entries = match folder.read_dir() {
        Ok(entries) => entries,
        Err(error) if settings::is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    files.sort();
    if files.len() > FILES {
        tell::note(&format!(
            "{} holds more than {FILES} sub-agents; the others are left out",
            folder.display()
        ))?;
        files.truncate(FILES);
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_of_the_provider_of_the_run() {
        let vendor = Vendor::named("anthropic").unwrap();
        let check = |given: &str, expect: Result<&str, &str>| {
            let got = same_vendor(&vendor, given);
            match expect {
                Ok(name) => assert_eq!(got.as_deref(), Ok(name), "{given}"),
                Err(part) => assert!(got.unwrap_err().contains(part), "{given}"),
            }
        };
        check("small", Ok("small"));
        check("anthropic/small", Ok("small"));
        check("house/small", Ok("house/small"));
        check("openai/small", Err("a key for anthropic alone"));
    }
}
