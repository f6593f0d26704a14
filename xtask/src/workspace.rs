//! The workspace as cargo describes it: members, floors, arrows, features.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::command::Call;
use crate::error::Error;

/// One crate of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Where it lives, from the root, with forward slashes: `crates/agent-core`.
    pub(crate) folder: String,
    pub(crate) floor: Option<u64>,
    pub(crate) arrows: Vec<Arrow>,
    pub(crate) features: Vec<String>,
}

/// One declared dependency.
#[derive(Debug)]
pub(crate) struct Arrow {
    pub(crate) to: String,
    pub(crate) kind: Kind,
    /// Whether a version is asked for beside (or instead of) a path.
    pub(crate) versioned: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

impl Member {
    /// Whether it is one of the crates that the floors are about.
    pub(crate) fn is_on_a_floor(&self) -> bool {
        self.folder.starts_with("crates/")
    }

    /// Whether it is a program that xtask runs, which may know the crates.
    pub(crate) fn is_a_helper(&self) -> bool {
        self.folder.starts_with("xtask/")
    }
}

/// The checkout that holds this program.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = PathBuf::from(here);
    here.parent().map_or(here.clone(), Path::to_path_buf)
}

pub(crate) fn members(root: &Path) -> Result<Vec<Member>, Error> {
    let call = Call::cargo("metadata --format-version 1 --no-deps");
    parse(&call.capture(root)?).map_err(|source| Error::Metadata { command: call.to_string(), source })
}

/// Names of all crates in the normal dependency tree of one member with its default features, itself left out.
pub(crate) fn tree(root: &Path, name: &str) -> Result<Vec<String>, Error> {
    let listed = Call::cargo(&format!("tree --package {name} --edges normal --prefix none")).capture(root)?;
    Ok(tree_names(&listed, name))
}

fn tree_names(listed: &str, own: &str) -> Vec<String> {
    let mut names: Vec<String> =
        listed.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names.retain(|name| name != own);
    names
}

fn parse(json: &str) -> Result<Vec<Member>, serde_json::Error> {
    let metadata: Metadata = serde_json::from_str(json)?;
    let root = metadata.workspace_root;
    Ok(metadata.packages.into_iter().map(|package| package.into_member(&root)).collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_root: PathBuf,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    features: BTreeMap<String, Vec<String>>,
    metadata: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    req: String,
    kind: Option<Kind>,
}

impl Package {
    fn into_member(self, root: &Path) -> Member {
        let folder = self.manifest_path.parent().unwrap_or(root);
        let folder = folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().replace('\\', "/");
        let floor = self.metadata.as_ref().and_then(|value| value.pointer("/layers/floor"));
        Member {
            name: self.name,
            folder,
            floor: floor.and_then(serde_json::Value::as_u64),
            arrows: self.dependencies.into_iter().map(Dependency::into_arrow).collect(),
            features: self.features.into_keys().collect(),
        }
    }
}

impl Dependency {
    fn into_arrow(self) -> Arrow {
        // Cargo writes `*` where a manifest names a path and no version.
        Arrow { to: self.name, kind: self.kind.unwrap_or(Kind::Normal), versioned: self.req != "*" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_metadata_becomes_members() {
        let json = r#"{ "workspace_root": "/x", "packages": [
            { "name": "agent-core", "manifest_path": "/x/crates/agent-core/Cargo.toml", "metadata": { "layers": { "floor": 0 } },
              "features": { "default": [], "http": [] }, "dependencies": [
                { "name": "serde", "req": "^1", "kind": null },
                { "name": "agent-testkit", "req": "*", "kind": "dev" } ] },
            { "name": "xtask", "manifest_path": "/x/xtask/Cargo.toml", "metadata": null, "features": {}, "dependencies": [] } ] }"#;
        let members = parse(json).unwrap();
        let core = &members[0];
        assert_eq!((core.folder.as_str(), core.floor), ("crates/agent-core", Some(0)));
        assert_eq!(core.features, ["default", "http"]);
        assert_eq!((core.arrows[0].kind, core.arrows[0].versioned), (Kind::Normal, true));
        assert_eq!((core.arrows[1].kind, core.arrows[1].versioned), (Kind::Dev, false));
        assert!(core.is_on_a_floor());
        assert!(!members[1].is_on_a_floor() && members[1].floor.is_none());
    }

    #[test]
    fn a_tree_is_named_once_and_without_itself() {
        let listed =
            "agent-core v0.1.0 (/x)\nserde v1.0.2\nserde_derive v1.0.2 (proc-macro)\n\nserde v1.0.2 (*)\n";
        assert_eq!(tree_names(listed, "agent-core"), ["serde", "serde_derive"]);
    }

    #[test]
    fn this_workspace_is_read() {
        let members = members(&root()).unwrap();
        assert!(members.iter().any(|member| member.name == "xtask" && member.folder == "xtask"));
    }
}
