//! Writing what a person wants to be remembered into the settings file of its layer.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use agent::{PermissionRule, RuleSink, RuleSinkError, ToolSettings};
use agent_core::{Layer, RawJson};
use async_trait::async_trait;

use super::object::{Member, Object};
use super::{LOCAL, PROJECT, file};

/// The settings files that rules can be kept in.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    files: Vec<(Layer, PathBuf)>,
}

impl Keeper {
    /// The files of the workspace count only where it is trusted: a rule in them would hold nowhere else.
    pub(super) fn new(workspace: &Path, user_file: Option<&Path>, is_trusted: bool) -> Self {
        let mut files = Vec::new();
        if is_trusted {
            files.push((Layer::Local, workspace.join(LOCAL)));
            files.push((Layer::Project, workspace.join(PROJECT)));
        }
        files.extend(user_file.map(|path| (Layer::User, path.to_owned())));
        Self { files }
    }

    /// The layers that can be written to.
    pub(crate) fn layers(&self) -> impl Iterator<Item = Layer> {
        self.files.iter().map(|(layer, _)| *layer)
    }

    fn keep(&self, rules: &[PermissionRule]) -> io::Result<()> {
        if let Some(rule) = rules.iter().find(|rule| !self.layers().any(|layer| layer == rule.layer)) {
            return Err(io::Error::other(format!("there is no settings file for `{rule}`")));
        }
        for (layer, path) in &self.files {
            let own: Vec<_> = rules.iter().filter(|rule| rule.layer == *layer).collect();
            if !own.is_empty() {
                let named =
                    |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                keep_in(*layer, path, &own).map_err(named)?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl RuleSink for Keeper {
    async fn remember(&self, rules: &[PermissionRule]) -> Result<(), RuleSinkError> {
        let (keeper, rules) = (self.clone(), rules.to_vec());
        let kept = tokio::task::spawn_blocking(move || keeper.keep(&rules)).await;
        kept.map_err(|error| RuleSinkError::from(io::Error::other(error)))??;
        Ok(())
    }
}

/// Adds rules that allow to one file, which is replaced as a whole or not at all.
fn keep_in(layer: Layer, path: &Path, rules: &[&PermissionRule]) -> io::Result<()> {
    let before = match file::text(path) {
        Ok(text) => text,
        Err(error) if file::is_missing(&error) => "{}".to_owned(),
        Err(error) => return Err(error),
    };
    // What cannot be read is not written over.
    ToolSettings::read(layer, &before).map_err(io::Error::other)?;
    let after = with_rules(&before, rules)?;
    replace(path, &after)
}

/// The text with these patterns among those that are allowed; everything else of it stays as it was written.
fn with_rules(text: &str, rules: &[&PermissionRule]) -> serde_json::Result<String> {
    let mut top: Object = serde_json::from_str(text)?;
    let mut permissions = top.object("permissions")?;
    let mut allow = permissions.list("allow")?;
    for rule in rules {
        let pattern = RawJson::of(&rule.pattern)?;
        if !allow.contains(&pattern) {
            allow.push(pattern);
        }
    }
    permissions.put("allow", Member::List(allow));
    top.put("permissions", Member::Object(permissions));
    Ok(serde_json::to_string_pretty(&top)? + "\n")
}

/// A file that is a link is replaced where it leads.
#[expect(clippy::disallowed_methods, reason = "the program owns its settings files")]
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let path = file::real(path).unwrap_or_else(|| path.to_owned());
    let folder = path.parent().ok_or_else(|| io::Error::other("it lies in no folder"))?;
    std::fs::create_dir_all(folder)?;
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    whole.write_all(text.as_bytes())?;
    if let Ok(known) = std::fs::metadata(&path) {
        whole.as_file().set_permissions(known.permissions())?;
    }
    whole.as_file().sync_all()?;
    whole.persist(&path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, layer: Layer) -> PermissionRule {
        PermissionRule::allow(pattern.parse().unwrap()).from_layer(layer)
    }

    #[test]
    fn everything_else_stays_as_it_was_written() {
        let check = |text: &str, pattern: &str| {
            with_rules(text, &[&rule(pattern, Layer::User)]).unwrap().trim_end().to_owned()
        };
        insta::assert_snapshot!(check("{}", "bash(git status)"), @r#"
        {
          "permissions": {
            "allow": [
              "bash(git status)"
            ]
          }
        }
        "#);
        let written = r#"{"trust": ["/a"], "permissions": {"deny": ["x"],"allow": ["bash"], "mode":"plan"}, "hooks": []}"#;
        insta::assert_snapshot!(check(written, "grep"), @r#"
        {
          "trust": ["/a"],
          "permissions": {
            "deny": ["x"],
            "allow": [
              "bash",
              "grep"
            ],
            "mode": "plan"
          },
          "hooks": []
        }
        "#);
        let known = check(r#"{"permissions":{"allow":["bash"]}}"#, "bash");
        assert_eq!(known.matches("bash").count(), 1, "{known}");
    }

    #[test]
    fn rules_go_to_the_file_of_their_layer() {
        let home = tempfile::tempdir().unwrap();
        let user = home.path().join("config/settings.json");
        let keeper = Keeper::new(home.path(), Some(&user), true);
        keeper.keep(&[rule("bash(a)", Layer::User), rule("bash(b)", Layer::Local)]).unwrap();
        keeper.keep(&[rule("bash(c)", Layer::Local)]).unwrap();
        let read = |layer, path: &Path| {
            let settings = ToolSettings::read(layer, &file::text(path).unwrap()).unwrap();
            settings.rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(read(Layer::User, &user), "allow bash(a) (user)");
        let local = home.path().join(LOCAL);
        assert_eq!(read(Layer::Local, &local), "allow bash(b) (local), allow bash(c) (local)");
        assert!(file::text(&home.path().join(PROJECT)).is_err(), "nothing was said of the project");
        let refused = keeper.keep(&[rule("bash", Layer::Managed)]).unwrap_err().to_string();
        assert_eq!(refused, "there is no settings file for `allow bash (managed)`");
    }

    #[test]
    fn what_cannot_be_read_is_not_written_over() {
        let home = tempfile::tempdir().unwrap();
        let user = home.path().join("settings.json");
        replace(&user, "{ half").unwrap();
        let keeper = Keeper::new(home.path(), Some(&user), false);
        let refused = keeper.keep(&[rule("bash", Layer::User)]).unwrap_err().to_string();
        assert!(refused.contains("settings.json") && refused.contains("cannot be read"), "{refused}");
        assert_eq!(file::text(&user).unwrap(), "{ half");
        assert_eq!(
            keeper.layers().collect::<Vec<_>>(),
            [Layer::User],
            "an untrusted workspace keeps no rules"
        );
    }
}
