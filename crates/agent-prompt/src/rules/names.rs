//! Which files hold rules, and in which order they are looked for.

use agent_core::Layer;
use serde::{Deserialize, Serialize};

use super::path::{PathRefusal, RulePath, RuleRoot};

/// How many imports may lead from a rule file to the text it takes in.
pub const IMPORT_DEPTH: usize = 5;
/// How many files one rule file may take in.
pub const IMPORTS: usize = 50;

/// Names of rule files and limits of their imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..RuleConfig::default()")]
pub struct RuleConfig {
    /// Files shared by everyone who works on the project, in every folder from the workspace's root to the current one.
    pub project: Vec<String>,
    /// Files of this user in the same folders, which are not shared.
    pub local: Vec<String>,
    /// Files in the user's folder of settings.
    pub user: Vec<String>,
    /// Files in the folder of whoever runs the agent: policy.
    pub managed: Vec<String>,
    /// How many imports may lead to a text.
    pub import_depth: usize,
    /// How many files one rule file may take in.
    pub imports: usize,
}

/// A file that may hold rules.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCandidate {
    /// Where it would be.
    pub path: RulePath,
    /// On whose authority it would speak.
    pub layer: Layer,
}

impl Default for RuleConfig {
    fn default() -> Self {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        Self {
            project: names(["AGENTS.md", "CLAUDE.md"]),
            local: names(["AGENTS.local.md", "CLAUDE.local.md"]),
            user: names(["AGENTS.md", "CLAUDE.md"]),
            managed: names(["AGENTS.md", "CLAUDE.md"]),
            import_depth: IMPORT_DEPTH,
            imports: IMPORTS,
        }
    }
}

impl RuleConfig {
    /// The files to look for, in the order of the walk: the user's, then from the workspace's root down to `folder`
    /// (relative to the root, `""` for the root itself), then the managed ones. Those that exist are given to
    /// [`RuleFiles::add`](crate::RuleFiles::add) in this order; the nearest one has the last word.
    pub fn candidates(&self, folder: &str) -> Result<Vec<RuleCandidate>, PathRefusal> {
        let below = |root, layer, prefix: &str, name: &String| {
            let path = RulePath::new(root, &format!("{prefix}{name}"))?;
            Ok(RuleCandidate { path, layer })
        };
        let user = self.user.iter().map(|name| below(RuleRoot::User, Layer::User, "", name));
        let mut found = user.collect::<Result<Vec<_>, _>>()?;
        for prefix in RulePath::prefixes(folder)? {
            let layers = [(Layer::Project, &self.project), (Layer::Local, &self.local)];
            for (layer, name) in
                layers.into_iter().flat_map(|(layer, names)| names.iter().map(move |name| (layer, name)))
            {
                found.push(below(RuleRoot::Workspace, layer, &prefix, name)?);
            }
        }
        for name in &self.managed {
            found.push(below(RuleRoot::Managed, Layer::Managed, "", name)?);
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_goes_from_the_user_to_the_nearest_folder() {
        let config = RuleConfig { local: vec!["MY.md".into()], ..RuleConfig::default() };
        let found = config.candidates("crates/a").unwrap();
        let lines: Vec<_> = found.iter().map(|one| format!("{} {}", one.layer, one.path)).collect();
        insta::assert_snapshot!(lines.join("\n"), @"
        user user:AGENTS.md
        user user:CLAUDE.md
        project AGENTS.md
        project CLAUDE.md
        local MY.md
        project crates/AGENTS.md
        project crates/CLAUDE.md
        local crates/MY.md
        project crates/a/AGENTS.md
        project crates/a/CLAUDE.md
        local crates/a/MY.md
        managed managed:AGENTS.md
        managed managed:CLAUDE.md
        ");
        assert_eq!(config.candidates("../elsewhere"), Err(PathRefusal::Escape));
        let escaping = RuleConfig { project: vec!["../AGENTS.md".into()], ..RuleConfig::default() };
        assert_eq!(escaping.candidates(""), Err(PathRefusal::Escape), "a name cannot escape either");
    }
}
