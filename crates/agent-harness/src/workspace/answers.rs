//! What git's answers mean; a pure function of each of them.

use std::collections::BTreeSet;

use super::git::Answer;

/// Settings that are asked for, as a pattern of `git config --get-regexp`.
pub(super) const SETTINGS_ASKED: &str = r"^(user\.name|init\.defaultbranch|filter\..*)$";
/// How branches are asked for: a name, and where it points when it is only a pointer.
pub(super) const BRANCH_FORMAT: &str = "--format=%(refname)%00%(symref)";
/// What the clone knows of the branch that others merge into.
pub(super) const ORIGIN_HEAD: &str = "refs/remotes/origin/HEAD";
const ORIGIN: &str = "refs/remotes/origin/";
/// Where branches live.
pub(super) const HEADS: &str = "refs/heads/";

/// What `git config --null --get-regexp` printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) user: Option<String>,
    /// The name that new repositories give their first branch.
    pub(super) init_branch: Option<String>,
    /// Programs that may run over files when git compares them.
    filters: BTreeSet<String>,
    /// Whether a filter has a name that cannot be said on a command line, or may not have been seen.
    has_hidden_filter: bool,
}

impl Settings {
    pub(super) fn of(answer: &Answer) -> Self {
        let mut settings = Self { has_hidden_filter: answer.is_cut, ..Self::default() };
        for entry in answer.out.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let (key, value) = halves(entry, b'\n');
            settings.take(key, value);
        }
        settings
    }

    /// A later value takes the place of an earlier one.
    fn take(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"user.name" => self.user = word(value),
            b"init.defaultbranch" => self.init_branch = word(value),
            _ => match std::str::from_utf8(key).ok().filter(|key| !key.contains('=')) {
                Some(key) => {
                    let name = key.strip_prefix("filter.").and_then(|rest| rest.rsplit_once('.'));
                    self.filters.extend(name.map(|(name, _)| name.to_owned()));
                }
                None => self.has_hidden_filter = true,
            },
        }
    }

    /// Settings under which no filter runs; `None` when that cannot be had.
    pub(super) fn without_filters(&self) -> Option<Vec<String>> {
        let off = |name: &String| {
            ["clean=", "process=", "required=false"].map(|end| format!("filter.{name}.{end}"))
        };
        (!self.has_hidden_filter).then(|| self.filters.iter().flat_map(off).collect())
    }
}

/// The branch that work is merged into: the one of the clone's origin, else the usual first one if there is one.
pub(super) fn default_branch(refs: &Answer, settings: &Settings, branch: Option<&str>) -> Option<String> {
    let lines = || refs.out.split(|byte| *byte == b'\n').map(|line| halves(line, 0));
    let origin = lines().find(|(name, _)| *name == ORIGIN_HEAD.as_bytes());
    if let Some(name) = origin.and_then(|(_, target)| target.strip_prefix(ORIGIN.as_bytes())) {
        return word(name);
    }
    let usual = settings.init_branch.as_ref()?;
    let full = format!("{HEADS}{usual}");
    let exists = branch == Some(usual) || lines().any(|(name, _)| name == full.as_bytes());
    exists.then(|| usual.clone())
}

/// The first line, without white space around it; `None` when it is blank.
pub(super) fn word(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.trim().lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The whole lines of an answer.
pub(super) fn lines(answer: &Answer) -> Vec<String> {
    let text = String::from_utf8_lossy(whole(answer));
    text.lines().map(str::to_owned).collect()
}

/// An answer without the line that was cut in the middle.
fn whole(answer: &Answer) -> &[u8] {
    let end = answer.out.iter().rposition(|byte| *byte == b'\n');
    if answer.is_cut { &answer.out[..end.unwrap_or(0)] } else { &answer.out }
}

fn halves(bytes: &[u8], border: u8) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == border) {
        Some(position) => (&bytes[..position], &bytes[position + 1..]),
        None => (bytes, b""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(out: &[u8]) -> Answer {
        Answer { code: Some(0), out: out.to_vec(), ..Answer::default() }
    }

    fn cut(out: &[u8]) -> Answer {
        Answer { is_cut: true, ..said(out) }
    }

    #[test]
    fn settings() {
        let settings =
            Settings::of(&said(b"user.name\nAda\0user.name\n Bob \xFF \0init.defaultbranch\ntrunk\0"));
        assert_eq!(settings.user.as_deref(), Some("Bob \u{FFFD}"), "the last one counts");
        assert_eq!(settings.init_branch.as_deref(), Some("trunk"));
        assert_eq!(settings.without_filters(), Some(vec![]));
        assert_eq!(Settings::of(&said(b"")), Settings::default());
        assert_eq!(Settings::of(&said(b"user.name\0")).user, None, "a key without a value");
        assert_eq!(Settings::of(&said(b"user.name\n \0")).user, None);
    }

    #[track_caller]
    fn check_filters(answer: &Answer, expect: Option<&[&str]>) {
        let expect = expect.map(|settings| settings.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        assert_eq!(Settings::of(answer).without_filters(), expect);
    }

    #[test]
    fn filters_are_turned_off_by_name() {
        check_filters(
            &said(b"filter.lfs.clean\ngit-lfs clean -- %f\0filter.lfs.required\ntrue\0filter.a.b.process\nx\ny\0"),
            Some(&[
                "filter.a.b.clean=",
                "filter.a.b.process=",
                "filter.a.b.required=false",
                "filter.lfs.clean=",
                "filter.lfs.process=",
                "filter.lfs.required=false",
            ]),
        );
        check_filters(&said(b"filter.lonely\nx\0"), Some(&[]));
        check_filters(&said(b"filter.a=b.clean\nx\0"), None);
        check_filters(&said(b"filter.\xFF.clean\nx\0"), None);
        check_filters(&cut(b"user.name\nAda\0"), None);
    }

    #[track_caller]
    fn check_default(refs: &[u8], init: Option<&str>, branch: Option<&str>, expect: Option<&str>) {
        let settings = Settings { init_branch: init.map(str::to_owned), ..Settings::default() };
        assert_eq!(default_branch(&said(refs), &settings, branch).as_deref(), expect);
    }

    #[test]
    fn the_default_branch() {
        let origin = b"refs/heads/main\0\nrefs/remotes/origin/HEAD\0refs/remotes/origin/release/2.x\n";
        check_default(origin, Some("main"), Some("main"), Some("release/2.x"));
        check_default(b"refs/heads/main\0\n", Some("main"), Some("fix"), Some("main"));
        check_default(b"refs/heads/main/x\0\n", Some("main"), Some("fix"), None);
        check_default(b"", Some("main"), Some("main"), Some("main"));
        check_default(b"", Some("main"), Some("master"), None);
        check_default(b"", None, Some("main"), None);
        // An origin's HEAD that points elsewhere, or was fetched as a plain branch, names nothing.
        check_default(b"refs/remotes/origin/HEAD\0refs/heads/x\n", None, None, None);
        check_default(b"refs/remotes/origin/HEAD\0\n", Some("main"), Some("main"), Some("main"));
        check_default(
            b"refs/remotes/origin/HEAD\0refs/remotes/origin/n\xFFme\n",
            None,
            None,
            Some("n\u{FFFD}me"),
        );
    }

    #[test]
    fn lines_are_whole() {
        assert_eq!(lines(&said(b" M a\n?? \"b\\nc\"\n")), [" M a", "?? \"b\\nc\""]);
        assert_eq!(lines(&said(b"?? \xFF\n")), ["?? \u{FFFD}"]);
        assert_eq!(lines(&cut(b" M a\n?? no one kn")), [" M a"]);
        assert_eq!(lines(&cut(b"endless")), Vec::<String>::new());
        assert_eq!(lines(&said(b"")), Vec::<String>::new());
    }

    #[test]
    fn words() {
        assert_eq!(word(b"fix/parser\n").as_deref(), Some("fix/parser"));
        assert_eq!(word("größer ☃\n".as_bytes()).as_deref(), Some("größer ☃"));
        assert_eq!(word(b" \n"), None);
    }
}
