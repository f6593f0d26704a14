//! The policy of a run: what settings files and the command line say of permissions and hooks, put together by layer.

mod file;
mod keep;
mod object;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use agent::memory::TrustedSource;
use agent::{
    HookSpec, LocalSandbox, MemorySettings, Pattern, PermissionDecision, PermissionMode, PermissionRule,
    Permissions, ToolSettings,
};
use agent_core::Layer;

pub(crate) use file::{is_missing, text};
pub(crate) use keep::Keeper;

use crate::args::{PermissionsCheckArgs, RuleArgs};
use crate::env;
use crate::error::CliError;

/// What the settings of a workspace and its user come to.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The workspace, without links on its path.
    pub(crate) workspace: PathBuf,
    /// The mode and the rules.
    pub(crate) permissions: Permissions,
    /// The hooks that may run, those of the highest layer first.
    pub(crate) hooks: Vec<HookSpec>,
    /// Where rules go that a person wants to be remembered.
    pub(crate) keeper: Keeper,
    /// Whether the user trusts the workspace.
    pub(crate) is_trusted: bool,
    /// What is said of memories.
    pub(crate) memory: MemorySaid,
    /// What of the workspace's own settings does not hold.
    withheld: Option<Withheld>,
}

/// What trusted settings say of memories; a project is never one of them (requirement C4).
#[derive(Debug, Default)]
pub(crate) struct MemorySaid {
    /// Whether they are kept.
    pub(crate) on: bool,
    /// Where, and who said so.
    pub(crate) dirs: Vec<(TrustedSource, PathBuf)>,
}

/// What the command line says.
#[derive(Debug, Default)]
pub(crate) struct Given<'a> {
    pub(crate) mode: Option<PermissionMode>,
    pub(crate) allow: &'a [Pattern],
    pub(crate) ask: &'a [Pattern],
    pub(crate) deny: &'a [Pattern],
    pub(crate) managed: Option<&'a Path>,
}

/// What the files of a workspace would grant, had its user said that they trust it.
#[derive(Debug)]
struct Withheld {
    what: Vec<String>,
    user_file: Option<PathBuf>,
}

/// The settings of a project, shared by all who work on it.
const PROJECT: &str = ".agent/settings.json";
/// The user's own settings for a project.
const LOCAL: &str = ".agent/settings.local.json";
/// The user's settings for everything, in the folder of their settings.
const USER: &str = "settings.json";
/// Where both files of a workspace are: what a model writes there would be its own permission in the next session.
const FOLDER: &str = ".agent";
const FILES: &str = "settings*.json";

/// Reads all settings that count in a workspace.
///
/// A workspace comes from anywhere, so what its files grant (rules that allow, a looser mode, hooks) holds only where the
/// user's or the managed settings say that it is trusted. What they refuse or ask about always holds.
pub(crate) fn load(workspace: &Path, given: &Given<'_>) -> Result<Settings, CliError> {
    let workspace = LocalSandbox::open(workspace)?.path().to_owned();
    let user_file = env::config_dir().map(|folder| folder.join(USER));
    let managed = match given.managed.map(Path::to_owned).or_else(env::managed_settings) {
        Some(path) => file::required(Layer::Managed, &path)?,
        None => ToolSettings::default(),
    };
    let user = user_file.as_deref().map_or(Ok(None), |path| file::optional(Layer::User, path))?;
    let user = user.unwrap_or_default();
    let mut project = file::optional(Layer::Project, &workspace.join(PROJECT))?.unwrap_or_default();
    let mut local = file::optional(Layer::Local, &workspace.join(LOCAL))?.unwrap_or_default();

    let is_trusted = trusts(&user, &workspace) || trusts(&managed, &workspace);
    let mut what = Vec::new();
    if !is_trusted {
        let usual = user.mode.unwrap_or_default();
        what.extend(withhold(PROJECT, usual, &mut project));
        what.extend(withhold(LOCAL, usual, &mut local));
    }
    let memory = memory([&managed, &local, &user]);
    let mode = managed.mode.or(given.mode).or(local.mode).or(project.mode).or(user.mode).unwrap_or_default();
    let own = guards(&workspace, user_file.as_deref());
    let mut permissions =
        Permissions { mode, rules: own.chain(given.rules()).collect(), ..Permissions::default() };
    let mut hooks = Vec::new();
    for layer in [managed, project, local, user] {
        permissions.rules.extend(layer.rules);
        hooks.extend(layer.hooks);
    }
    let keeper = Keeper::new(&workspace, user_file.as_deref(), is_trusted);
    let withheld = (!what.is_empty()).then_some(Withheld { what, user_file });
    Ok(Settings { workspace, permissions, hooks, keeper, is_trusted, memory, withheld })
}

impl RuleArgs {
    /// What `agent run` is given.
    pub(crate) fn given(&self) -> Given<'_> {
        Given {
            mode: self.permission_mode.map(Into::into),
            allow: &self.allow,
            ask: &self.ask_rule,
            deny: &self.deny,
            managed: self.managed.managed_settings.as_deref(),
        }
    }
}

impl PermissionsCheckArgs {
    /// The same of a check, so that it says what a run would do.
    pub(crate) fn given(&self) -> Given<'_> {
        Given {
            mode: self.mode.map(Into::into),
            allow: &self.allow,
            ask: &self.ask,
            deny: &self.deny,
            managed: self.managed.managed_settings.as_deref(),
        }
    }
}

impl Settings {
    /// What of the workspace's own settings does not hold, in words for the person.
    pub(crate) fn withheld(&self) -> Option<String> {
        let Withheld { what, user_file } = self.withheld.as_ref()?;
        let place = match user_file {
            Some(file) => file.display().to_string(),
            None => format!("{USER} in the folder that AGENT_CONFIG_DIR names"),
        };
        Some(format!(
            "settings of this workspace grant what holds only where you trust it ({}). Read them first; to trust it, put \"trust\": [{:?}] into {place}",
            what.join("; "),
            self.workspace
        ))
    }
}

impl Given<'_> {
    /// The rules. What is allowed is allowed for this session, above what the settings ask about; beside rules that ask on
    /// the same command line it is of their layer, where the stricter one counts.
    fn rules(&self) -> impl Iterator<Item = PermissionRule> {
        let allowed = if self.ask.is_empty() { Layer::Session } else { Layer::User };
        let rule = |layer, decision| {
            move |pattern: &Pattern| PermissionRule { layer, decision, pattern: pattern.clone() }
        };
        let deny = self.deny.iter().map(rule(Layer::User, PermissionDecision::Deny));
        let ask = self.ask.iter().map(rule(Layer::User, PermissionDecision::Ask));
        deny.chain(ask).chain(self.allow.iter().map(rule(allowed, PermissionDecision::Allow)))
    }
}

/// What settings say of memories, the most trusted first.
fn memory(layers: [&ToolSettings; 3]) -> MemorySaid {
    let sources = [TrustedSource::Managed, TrustedSource::Local, TrustedSource::User];
    let dirs = sources.into_iter().zip(layers);
    let dirs = dirs.filter_map(|(source, settings)| Some((source, settings.memory.dir.clone()?))).collect();
    MemorySaid { on: layers.iter().find_map(|settings| settings.memory.on).unwrap_or_default(), dirs }
}

/// Whether settings name the workspace among the trusted ones, by its whole path: `.` would be every one.
fn trusts(settings: &ToolSettings, workspace: &Path) -> bool {
    let mut whole = settings.trust.iter().map(Path::new).filter(|path| path.is_absolute());
    whole.any(|path| file::real(path).is_some_and(|path| path == workspace))
}

/// Takes out what settings grant, and says what that was. `usual` is the mode without them.
fn withhold(name: &str, usual: PermissionMode, settings: &mut ToolSettings) -> Vec<String> {
    let mut what = Vec::new();
    settings.rules.retain(|rule| {
        let grants = rule.decision == PermissionDecision::Allow;
        if grants {
            what.push(format!("{name}: allow {}", rule.pattern));
        }
        !grants
    });
    if let Some(mode) = settings.mode.filter(|mode| looseness(*mode) > looseness(usual)) {
        settings.mode = None;
        what.push(format!("{name}: mode {}", mode.name()));
    }
    if std::mem::take(&mut settings.memory) != MemorySettings::default() {
        what.push(format!("{name}: memory"));
    }
    what.extend(settings.hooks.drain(..).map(|hook| format!("{name}: hook {:?}", hook.command)));
    what
}

/// How much a mode lets happen.
fn looseness(mode: PermissionMode) -> u8 {
    match mode {
        PermissionMode::Plan => 0,
        PermissionMode::Default => 1,
        PermissionMode::AcceptEdits => 2,
        PermissionMode::Bypass => 3,
    }
}

/// Settings are asked about before they are changed by a tool that edits, whatever the mode, whatever the session allows and
/// wherever links lead: else who may edit could allow themselves everything.
fn guards(workspace: &Path, user_file: Option<&Path>) -> impl Iterator<Item = PermissionRule> {
    let below = |path: &Path| {
        let path = file::real(path).unwrap_or_else(|| path.to_owned());
        path.strip_prefix(workspace).ok().and_then(Path::to_str).map(str::to_owned)
    };
    let folder = below(&workspace.join(FOLDER)).map(|folder| format!("{folder}/{FILES}"));
    let linked = [PROJECT, LOCAL].into_iter().filter_map(|name| below(&workspace.join(name)));
    let linked = linked.filter(|file| !file.starts_with(FOLDER));
    let files = [format!("{FOLDER}/{FILES}")].into_iter().chain(folder).chain(linked);
    let files: BTreeSet<String> = files.chain(user_file.and_then(below)).collect();
    files.into_iter().flat_map(|file| {
        let rule = move |tool| {
            PermissionRule::ask(Pattern::with_argument(tool, file.clone())).from_layer(Layer::Managed)
        };
        ["write_file", "edit_file"].into_iter().map(rule)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_workspace_grants_is_withheld() {
        let check = |usual: PermissionMode, text: &str, expect: (&str, &str)| {
            let mut settings = ToolSettings::read(Layer::Project, text).unwrap();
            let withheld = withhold("F", usual, &mut settings).join("; ");
            let rules: Vec<_> = settings.rules.iter().map(|rule| rule.decision.name()).collect();
            let kept = format!("{:?} {} {}", settings.mode, rules.join(" "), settings.hooks.len());
            assert_eq!((withheld.as_str(), kept.as_str()), expect, "{text}");
        };
        let mode = PermissionMode::Default;
        check(mode, "{}", ("", "None  0"));
        check(
            mode,
            r#"{"permissions":{"mode":"bypass","allow":["bash"],"ask":["grep"],"deny":["glob"]}}"#,
            ("F: allow bash; F: mode bypass", "None deny ask 0"),
        );
        check(mode, r#"{"permissions":{"mode":"plan"}}"#, ("", "Some(Plan)  0"));
        check(PermissionMode::Plan, r#"{"permissions":{"mode":"default"}}"#, ("F: mode default", "None  0"));
        check(
            PermissionMode::AcceptEdits,
            r#"{"permissions":{"mode":"accept-edits"},"hooks":[{"on":"pre_tool","command":"./look"}]}"#,
            (r#"F: hook "./look""#, "Some(AcceptEdits)  0"),
        );
    }

    #[test]
    fn of_memories_the_most_trusted_is_heard() {
        let read = |text: &str| ToolSettings::read(Layer::User, text).unwrap();
        let check = |texts: [&str; 3], expect: (bool, &[(TrustedSource, &str)])| {
            let [managed, local, user] = texts.map(read);
            let MemorySaid { on, dirs } = memory([&managed, &local, &user]);
            let dirs: Vec<_> = dirs.iter().map(|(source, dir)| (*source, dir.to_str().unwrap())).collect();
            assert_eq!((on, &dirs[..]), expect, "{texts:?}");
        };
        check(["{}"; 3], (false, &[]));
        let on = r#"{"memory":{"on":true,"dir":"/u/m"}}"#;
        let off = r#"{"memory":{"on":false,"dir":"/m/m"}}"#;
        check(["{}", "{}", on], (true, &[(TrustedSource::User, "/u/m")]));
        check([off, "{}", on], (false, &[(TrustedSource::Managed, "/m/m"), (TrustedSource::User, "/u/m")]));
    }

    #[test]
    fn only_a_whole_path_is_trusted() {
        let here = Path::new(".").canonicalize().unwrap();
        let trusting = |path: &str| ToolSettings { trust: vec![path.to_owned()], ..ToolSettings::default() };
        assert!(trusts(&trusting(here.to_str().unwrap()), &here));
        assert!(!trusts(&trusting("."), &here));
    }

    #[test]
    fn rules_of_the_command_line() {
        let pattern = |text: &str| vec![text.parse::<Pattern>().unwrap()];
        let (allow, ask, deny) = (pattern("bash"), pattern("grep"), pattern("glob"));
        let shown =
            |given: Given<'_>| given.rules().map(|rule| rule.to_string()).collect::<Vec<_>>().join(", ");
        assert_eq!(shown(Given { allow: &allow, ..Given::default() }), "allow bash (session)");
        let all = Given { allow: &allow, ask: &ask, deny: &deny, ..Given::default() };
        assert_eq!(shown(all), "deny glob (user), ask grep (user), allow bash (user)");
    }

    #[test]
    fn settings_within_the_workspace_are_guarded() {
        let home = tempfile::tempdir().unwrap();
        let workspace = home.path().canonicalize().unwrap();
        let shown = |user: &Path| {
            let rules: Vec<_> = guards(&workspace, Some(user)).map(|rule| rule.to_string()).collect();
            rules.join("\n")
        };
        insta::assert_snapshot!(shown(Path::new("/elsewhere/settings.json")), @"
        ask write_file(.agent/settings*.json) (managed)
        ask edit_file(.agent/settings*.json) (managed)
        ");
        std::fs::create_dir(workspace.join("real")).unwrap();
        std::os::unix::fs::symlink("real", workspace.join(FOLDER)).unwrap();
        insta::assert_snapshot!(shown(&workspace.join(USER)), @"
        ask write_file(.agent/settings*.json) (managed)
        ask edit_file(.agent/settings*.json) (managed)
        ask write_file(real/settings*.json) (managed)
        ask edit_file(real/settings*.json) (managed)
        ask write_file(settings.json) (managed)
        ask edit_file(settings.json) (managed)
        ");
    }
}
