//! Settings as they stand in files: permission rules and hooks, a file for each layer.

use std::path::PathBuf;

use agent_core::Layer;
use serde::Deserialize;

use crate::{HookSpec, Pattern, PermissionDecision, PermissionMode, PermissionRule};

/// What one file of settings says.
///
/// ```
/// use agent_core::Layer;
/// use agent_tools::ToolSettings;
///
/// let text = r#"{"permissions": {"allow": ["bash(cargo test:*)"], "deny": ["read_file(secrets/**)"]}}"#;
/// let settings = ToolSettings::read(Layer::Project, text)?;
/// assert_eq!(settings.rules[0].to_string(), "deny read_file(secrets/**) (project)");
/// # Ok::<(), agent_tools::SettingsError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a record of settings")]
pub struct ToolSettings {
    /// The mode, where it names one.
    pub mode: Option<PermissionMode>,
    /// The rules, the strictest first.
    pub rules: Vec<PermissionRule>,
    /// The hooks, in their order.
    pub hooks: Vec<HookSpec>,
    /// Paths of workspaces whose own settings may grant permissions and run hooks. Whoever puts layers together goes by
    /// those of the user and of the managed settings; a workspace cannot vouch for itself.
    pub trust: Vec<String>,
    /// What they say of memories. Whoever puts layers together goes by those of trusted sources, never of a project (requirement
    /// C4).
    pub memory: MemorySettings,
}

/// What settings say of memories.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::exhaustive_structs, reason = "a record of settings")]
pub struct MemorySettings {
    /// Whether an agent keeps memories.
    pub on: Option<bool>,
    /// The directory that they are in.
    pub dir: Option<PathBuf>,
}

/// A file of settings that cannot be read. Nothing of it holds: half of a policy is none.
#[derive(Debug, thiserror::Error)]
#[error(
    "the {layer} settings cannot be read: at `{path}`: {cause}. They are one JSON object: {{\"permissions\": {{\"mode\", \"allow\": [RULE], \"ask\": [RULE], \"deny\": [RULE]}}, \"hooks\": [{{\"on\", \"tools\", \"command\", \"timeout_ms\"}}], \"trust\": [PATH], \"memory\": {{\"on\", \"dir\"}}}}"
)]
#[non_exhaustive]
pub struct SettingsError {
    /// Whose settings.
    pub layer: Layer,
    /// Where in the file.
    pub path: String,
    /// What is wrong there.
    pub cause: serde_json::Error,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    permissions: Rules,
    hooks: Vec<HookSpec>,
    trust: Vec<String>,
    memory: MemorySettings,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rules {
    mode: Option<Mode>,
    allow: Vec<Pattern>,
    ask: Vec<Pattern>,
    deny: Vec<Pattern>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Default,
    Plan,
    AcceptEdits,
    Bypass,
}

impl ToolSettings {
    /// The settings of one layer.
    ///
    /// # Errors
    /// When the text is not what settings are, which is better than a rule that was meant and does not hold.
    pub fn read(layer: Layer, text: &str) -> Result<Self, SettingsError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let File { permissions, hooks, trust, memory } = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| SettingsError {
                layer,
                path: error.path().to_string(),
                cause: error.into_inner(),
            })?;
        reader.end().map_err(|cause| SettingsError { layer, path: ".".to_owned(), cause })?;
        let Rules { mode, allow, ask, deny } = permissions;
        let rules = |decision, patterns: Vec<Pattern>| {
            patterns.into_iter().map(move |pattern| PermissionRule { layer, decision, pattern })
        };
        let rules = rules(PermissionDecision::Deny, deny)
            .chain(rules(PermissionDecision::Ask, ask))
            .chain(rules(PermissionDecision::Allow, allow))
            .collect();
        let mode = mode.map(|mode| match mode {
            Mode::Default => PermissionMode::Default,
            Mode::Plan => PermissionMode::Plan,
            Mode::AcceptEdits => PermissionMode::AcceptEdits,
            Mode::Bypass => PermissionMode::Bypass,
        });
        Ok(Self { mode, rules, hooks, trust, memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        let check = |text: &str, expect: &str| {
            let shown = match ToolSettings::read(Layer::Managed, text) {
                Ok(settings) => {
                    let rules: Vec<_> = settings.rules.iter().map(ToString::to_string).collect();
                    let hooks: Vec<_> =
                        settings.hooks.iter().map(|hook| format!("{:?} {}", hook.on, hook.tools)).collect();
                    format!("{:?} {rules:?} {hooks:?}", settings.mode)
                }
                Err(error) => format!("! at {}: {}", error.path, error.cause),
            };
            assert_eq!(shown, expect);
        };
        check("{}", "None [] []");
        check(
            r#"{"permissions":{"mode":"accept-edits","allow":["bash(git status)"],"ask":["bash"],"deny":["web_fetch(domain:a.example)"]}}"#,
            r#"Some(AcceptEdits) ["deny web_fetch(domain:a.example) (managed)", "ask bash (managed)", "allow bash(git status) (managed)"] []"#,
        );
        check(
            r#"{"hooks":[{"on":"pre_tool","tools":"bash","command":"./look"}]}"#,
            r#"None [] ["PreTool bash"]"#,
        );
        check(r#"{"hooks":[{"on":"post_tool","command":"./look"}]}"#, r#"None [] ["PostTool *"]"#);
        check(
            r#"{"permissions":{"allow":["bash("]}}"#,
            "! at permissions.allow[0]: \"bash(\" is no permission pattern: the argument has no closing bracket. Write TOOL or TOOL(ARGUMENT), for example bash(cargo test:*), edit_file(src/**) or web_fetch(domain:docs.rs) at line 1 column 33",
        );
        check(
            r#"{"permision":{}}"#,
            "! at permision: unknown field `permision`, expected one of `permissions`, `hooks`, `trust`, `memory` at line 1 column 12",
        );
        check("{} {}", "! at .: trailing characters at line 1 column 4");
    }
}
