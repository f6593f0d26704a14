//! Rule files as data: walked files in their order, what they import, and the fragments they become.

mod import;
mod names;
mod path;

pub use import::{ImportRefusal, RefusedImport};
pub use names::{IMPORT_DEPTH, IMPORTS, RuleCandidate, RuleConfig};
pub use path::{PathRefusal, RulePath, RuleRoot};

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{Diagnostic, Layer};

use crate::assemble::Prompt;
use crate::fragment::Fragment;
use crate::source::Source;
use crate::stability::Session;
use crate::value::Value;
use import::Expansion;

/// Rule files that were read, in the order of the walk, and the files they import.
///
/// Whoever reads files asks [`RuleConfig::candidates`] what to look for, gives what exists to [`Self::add`], and then
/// gives every path of [`Self::wanted`] to [`Self::provide`] until none is wanted:
///
/// ```
/// use agent_prompt::{RuleConfig, RuleFiles};
///
/// let on_disk = |path: &str| match path {
///     "AGENTS.md" => Some("Write short functions.\n@docs/style.md".to_owned()),
///     "docs/style.md" => Some("Two spaces.".to_owned()),
///     _ => None,
/// };
/// let mut rules = RuleFiles::new(RuleConfig::default());
/// for candidate in rules.config().candidates("src")? {
///     // The root is part of the path: `user:AGENTS.md` and `managed:AGENTS.md` are other files.
///     if let Some(text) = on_disk(&candidate.path.to_string()) {
///         rules.add(candidate, text);
///     }
/// }
/// while let Some(path) = rules.wanted().pop_first() {
///     let text = on_disk(&path.to_string());
///     rules.provide(path, text);
/// }
/// assert_eq!(rules.resolve().rules[0].text, "Write short functions.\nFrom docs/style.md:\nTwo spaces.");
/// # Ok::<(), agent_prompt::PathRefusal>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct RuleFiles {
    config: RuleConfig,
    files: Vec<(RuleCandidate, String)>,
    /// What was looked for because a file imports it; `None` when it does not exist.
    library: BTreeMap<RulePath, Option<String>>,
}

/// Rules with their imports put in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedRules {
    /// The rules in the order of the walk.
    pub rules: Vec<Rule>,
    /// Imports that were not followed.
    pub refused: Vec<RefusedImport>,
    /// Files that say what an earlier one of their layer says, with that one; they are not sent twice.
    pub repeated: Vec<(RulePath, RulePath)>,
}

/// One rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The file.
    pub path: RulePath,
    /// On whose authority it speaks.
    pub layer: Layer,
    /// Its text with what it imports, each behind a line `From PATH:`; without white space at the end.
    pub text: String,
}

impl RuleFiles {
    /// No files yet.
    pub fn new(config: RuleConfig) -> Self {
        Self { config, ..Self::default() }
    }

    /// What is looked for.
    pub fn config(&self) -> &RuleConfig {
        &self.config
    }

    /// Adds a file that was found on the walk. The order of adding is the order of the walk: later files have the last
    /// word in their layer. A path that was added before is read anew and keeps its place.
    pub fn add(&mut self, candidate: RuleCandidate, text: impl Into<String>) -> &mut Self {
        let text = text.into();
        match self.files.iter_mut().find(|(known, _)| known.path == candidate.path) {
            Some(known) => *known = (candidate, text),
            None => self.files.push((candidate, text)),
        }
        self
    }

    /// Imported files that nobody looked for yet.
    pub fn wanted(&self) -> BTreeSet<RulePath> {
        self.expansions().flat_map(|(_, expansion)| expansion.wanted).collect()
    }

    /// The text of an imported file, or `None` when there is none.
    ///
    /// Whoever reads it must not follow a symbolic link out of the root.
    pub fn provide(&mut self, path: RulePath, text: Option<String>) -> &mut Self {
        self.library.insert(path, text);
        self
    }

    /// The rules with their imports put in. Blank files are left out.
    pub fn resolve(&self) -> ResolvedRules {
        let mut resolved = ResolvedRules::default();
        for (candidate, expansion) in self.expansions() {
            resolved.refused.extend(expansion.refused);
            resolved.push(Rule {
                path: candidate.path.clone(),
                layer: candidate.layer,
                text: expansion.text.trim_end().to_owned(),
            });
        }
        resolved
    }

    fn expansions(&self) -> impl Iterator<Item = (&RuleCandidate, Expansion<'_>)> {
        self.files.iter().map(|(candidate, text)| (candidate, Expansion::of(self, &candidate.path, text)))
    }

    fn is_rule_file(&self, path: &RulePath) -> bool {
        self.files.iter().any(|(candidate, _)| candidate.path == *path)
    }
}

impl ResolvedRules {
    fn push(&mut self, rule: Rule) {
        if rule.text.trim().is_empty() {
            return;
        }
        let says_the_same = |known: &&Rule| known.layer == rule.layer && known.text == rule.text;
        match self.rules.iter().find(says_the_same) {
            Some(known) => self.repeated.push((rule.path, known.path.clone())),
            None => self.rules.push(rule),
        }
    }

    fn diagnostics(&self) -> impl Iterator<Item = Diagnostic> {
        let refused = self.refused.iter().take(REPORTED).map(|import| Diagnostic {
            what: format!("rules.{}:{}", import.file, import.line),
            why: format!("{} is not imported: {}", import.target, import.refusal),
        });
        let repeated = self.repeated.iter().map(|(path, known)| Diagnostic {
            what: format!("rules.{path}"),
            why: format!("it says the same as {known} and is sent once; keep one of the two"),
        });
        let more = self.refused.get(REPORTED).map(|next| Diagnostic {
            what: format!("rules.{}:{}", next.file, next.line),
            why: format!(
                "{} is not imported, nor are {} imports behind it; mend those above first",
                next.target,
                self.refused.len() - REPORTED - 1
            ),
        });
        refused.chain(more).chain(repeated)
    }
}

/// Imports that are each told of when they are not followed; a file may have thousands.
const REPORTED: usize = 20;

impl Prompt {
    /// Adds rule files as session fragments with the keys `rules:PATH`, in the order of the walk, and reports the imports
    /// that were not followed. A higher layer can keep one out by [`Self::suppress`] of its key.
    pub fn add_rules(&mut self, files: &RuleFiles) -> &mut Self {
        let resolved = files.resolve();
        for diagnostic in resolved.diagnostics() {
            self.report(diagnostic);
        }
        for (rank, rule) in (1..).zip(resolved.rules) {
            let path = rule.path.to_string();
            match Fragment::<Session>::new(rule.layer, &format!("rules:{path}"), Value::session(rule.text)) {
                Ok(fragment) => {
                    self.add(fragment.with_source(Source::File(path)).with_rank(rank));
                }
                Err(error) => {
                    self.report(Diagnostic { what: format!("rules.{path}"), why: error.to_string() });
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `input`: files as `//- path` (walked) or `//- path import`; `expect`: the texts, then what was refused.
    fn check(input: &str, config: RuleConfig) -> String {
        let mut rules = RuleFiles::new(config);
        for file in input.split("//- ").skip(1) {
            let (head, text) = file.split_once('\n').unwrap();
            let (path, kind) = head.split_once(' ').unwrap_or((head, "walked"));
            let path = RulePath::new(RuleRoot::Workspace, path).unwrap();
            if kind == "import" {
                rules.provide(path, Some(text.to_owned()));
            } else {
                let layer = if path.to_string().contains(".local.") { Layer::Local } else { Layer::Project };
                rules.add(RuleCandidate { path, layer }, text);
            }
        }
        let resolved = rules.resolve();
        let texts =
            resolved.rules.iter().map(|rule| format!("== {} {}\n{}\n", rule.layer, rule.path, rule.text));
        let diagnostics = resolved.diagnostics().map(|one| format!("!! {}: {}\n", one.what, one.why));
        let wanted = rules.wanted().into_iter().map(|path| format!("?? {path}\n"));
        texts.chain(diagnostics).chain(wanted).collect()
    }

    #[test]
    fn imports_are_put_in_place() {
        insta::assert_snapshot!(check(
            "//- AGENTS.md\nFirst.\n@docs/a.md\nLast.\n```\n@docs/a.md\n```\n//- docs/a.md import\nA.\n@b.md\n//- docs/b.md import\nB.\n",
            RuleConfig::default(),
        ), @"
        == project AGENTS.md
        First.
        From docs/a.md:
        A.
        From docs/b.md:
        B.
        Last.
        ```
        @docs/a.md
        ```
        ");
    }

    #[test]
    fn refused_imports_stay_as_lines_and_are_reported() {
        insta::assert_snapshot!(check(
            "//- AGENTS.md\n@../secret.md\n@/etc/hosts\n@~/x.md\n@a.md\n@nowhere.md\n//- a.md import\n@b.md\n//- b.md import\n@a.md\n@AGENTS.md\n",
            RuleConfig::default(),
        ), @"
        == project AGENTS.md
        @../secret.md
        @/etc/hosts
        @~/x.md
        From a.md:
        From b.md:
        @a.md
        @AGENTS.md
        @nowhere.md
        !! rules.AGENTS.md:1: ../secret.md is not imported: it leads out of the folder that the rules may come from; move the file inside
        !! rules.AGENTS.md:2: /etc/hosts is not imported: it is absolute; write it relative to the file that names it
        !! rules.AGENTS.md:3: ~/x.md is not imported: it is absolute; write it relative to the file that names it
        !! rules.b.md:1: a.md is not imported: it takes in the file that it is taken into; remove one of the two imports
        !! rules.b.md:2: AGENTS.md is not imported: it takes in the file that it is taken into; remove one of the two imports
        !! rules.AGENTS.md:5: nowhere.md is not imported: no file is there that can be read; check the path, which is relative to the file that names it
        ?? nowhere.md
        ");
    }

    #[test]
    fn thousands_of_refused_imports_are_told_in_a_few_lines() {
        let lines: String = (0..5_000).map(|at| format!("@../x{at}.md\n")).collect();
        let told = check(&format!("//- AGENTS.md\n{lines}"), RuleConfig::default());
        let told: Vec<&str> = told.lines().filter(|line| line.starts_with("!!")).collect();
        assert_eq!(told.len(), REPORTED + 1);
        insta::assert_snapshot!(told[REPORTED], @"!! rules.AGENTS.md:21: ../x20.md is not imported, nor are 4979 imports behind it; mend those above first");
    }

    #[test]
    fn depth_and_number_are_limited() {
        let chain = "//- AGENTS.md\n@a.md\n@b.md\n@c.md\n//- a.md import\nA\n@deep.md\n//- b.md import\nB\n//- c.md import\nC\n//- deep.md import\nD\n";
        insta::assert_snapshot!(check(chain, RuleConfig { import_depth: 1, imports: 2, ..RuleConfig::default() }), @"
        == project AGENTS.md
        From a.md:
        A
        @deep.md
        From b.md:
        B
        @c.md
        !! rules.a.md:2: deep.md is not imported: more than 1 imports in a row lead to it; import it from a file nearer to the rules
        !! rules.AGENTS.md:3: c.md is not imported: the rule file takes in 2 files already, which is the most allowed; join some of them
        ");
    }

    #[test]
    fn a_text_is_sent_once() {
        insta::assert_snapshot!(check(
            "//- AGENTS.md\nRules.\n//- CLAUDE.md\n@AGENTS.md\n//- x/AGENTS.md\nRules.\n\n//- AGENTS.local.md\nRules.\n@m.md\n@m.md\n//- m.md import\nM.\n//- y/AGENTS.md\n \n",
            RuleConfig::default(),
        ), @"
        == project AGENTS.md
        Rules.
        == local AGENTS.local.md
        Rules.
        From m.md:
        M.
        !! rules.x/AGENTS.md: it says the same as AGENTS.md and is sent once; keep one of the two
        ");
    }
}
