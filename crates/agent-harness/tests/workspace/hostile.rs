//! A repository whose own settings name programs: none of them runs when a session begins.

use super::repository::Repository;
use super::{Place, block};

/// A repository with a commit, and a command that leaves a mark beside it.
fn repository() -> (Place, Repository, String) {
    let place = Place::new(&[]);
    let repository = Repository::init(place.path("work"));
    repository.commit("a.txt", "First");
    let trap = place.path("trap");
    place.write("trap", format!("#!/bin/sh\ntouch {}\n", place.path("mark").display()).as_bytes());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&trap, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let trap = trap.display().to_string();
    (place, repository, trap)
}

/// `spring`: what shows that the trap works with an ordinary git. Gives what the environment told instead.
#[track_caller]
fn check((place, repository, _): &(Place, Repository, String), spring: &[&str]) -> Vec<String> {
    let mark = place.path("mark");
    let environment = block(place.workspace("work").environment()).unwrap();
    assert!(!mark.exists(), "a program of the repository ran");
    repository.try_git(spring, b"");
    assert!(mark.exists(), "the trap is none");
    let repository = environment.facts.repository.expect("the repository is told all the same");
    assert_eq!(repository.branch.as_deref(), Some("main"));
    let problems = environment.problems.iter().map(|problem| format!("{}: {}", problem.what, problem.why));
    problems.chain(repository.status).collect()
}

#[test]
fn a_monitor_of_files() {
    let trapped = repository();
    trapped.1.git(&["config", "core.fsmonitor", &trapped.2]);
    assert_eq!(check(&trapped, &["status"]), [""]);
}

#[test]
fn filters() {
    for kind in ["clean", "process"] {
        let trapped = repository();
        trapped.1.git(&["config", &format!("filter.a b.c.{kind}"), &trapped.2]);
        trapped.1.git(&["config", "filter.a b.c.required", "true"]);
        trapped.1.git(&["config", "filter.x.clean", &trapped.2]);
        trapped.0.write("work/.git/info/attributes", b"* filter=x\n");
        trapped.0.write("work/a.txt", b"Other\n");
        assert_eq!(check(&trapped, &["status"]), [" M a.txt"], "{kind}");
    }
}

#[test]
fn a_filter_that_cannot_be_turned_off() {
    let trapped = repository();
    trapped.1.git(&["config", "filter.x=y.clean", &trapped.2]);
    trapped.0.write("work/.git/info/attributes", b"* filter=x=y\n");
    trapped.0.write("work/a.txt", b"Other\n");
    insta::assert_snapshot!(check(&trapped, &["status"]).join("\n"), @"environment.status: git was not asked for it, because the settings of the repository hold filters that cannot be turned off: a name with `=` or without UTF-8, or too many of them; rename them");
}

#[test]
fn a_checker_of_signatures() {
    let trapped = repository();
    let tree = trapped.1.git(&["rev-parse", "HEAD^{tree}"]);
    let who = "Eve <eve@example.org> 1700000000 +0000";
    let commit = format!(
        "tree {tree}\nauthor {who}\ncommitter {who}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP \
         SIGNATURE-----\n\nSigned\n"
    );
    let written = trapped.1.try_git(&["hash-object", "-t", "commit", "-w", "--stdin"], commit.as_bytes());
    let id = String::from_utf8(written.stdout).unwrap();
    trapped.1.git(&["update-ref", "refs/heads/main", id.trim()]);
    trapped.1.git(&["config", "gpg.program", &trapped.2]);
    trapped.1.git(&["config", "log.showSignature", "true"]);
    assert_eq!(check(&trapped, &["log"]), [""]);
}

#[test]
fn an_origin_that_lends_missing_objects() {
    let trapped = repository();
    trapped.1.git(&["config", "remote.origin.url", &format!("ext::{}", trapped.2)]);
    trapped.1.git(&["config", "remote.origin.promisor", "true"]);
    trapped.1.git(&["config", "protocol.ext.allow", "always"]);
    trapped.1.git(&["config", "core.repositoryFormatVersion", "1"]);
    trapped.1.git(&["config", "extensions.partialClone", "origin"]);
    let tree = trapped.1.git(&["rev-parse", "HEAD^{tree}"]);
    let (folder, file) = tree.split_at(2);
    std::fs::remove_file(trapped.0.path(&format!("work/.git/objects/{folder}/{file}"))).unwrap();
    insta::assert_snapshot!(check(&trapped, &["status"]).join("\n"), @"environment.status: it is left out: git refused: error: bad tree object HEAD");
}

#[test]
fn hooks_pagers_and_aliases() {
    let trapped = repository();
    for name in ["core.pager", "pager.log", "pager.status", "core.editor", "diff.external", "core.sshCommand"]
    {
        trapped.1.git(&["config", name, &trapped.2]);
    }
    for alias in ["status", "log", "rev-parse", "symbolic-ref", "for-each-ref", "config", "trap"] {
        trapped.1.git(&["config", &format!("alias.{alias}"), &format!("!{}", trapped.2)]);
    }
    trapped.1.git(&["config", "core.hooksPath", &trapped.0.path("hooks").display().to_string()]);
    for hook in ["post-index-change", "fsmonitor-watchman", "reference-transaction"] {
        std::fs::create_dir_all(trapped.0.path("hooks")).unwrap();
        std::fs::copy(&trapped.2, trapped.0.path(&format!("hooks/{hook}"))).unwrap();
    }
    assert_eq!(check(&trapped, &["trap"]), [""]);
}
