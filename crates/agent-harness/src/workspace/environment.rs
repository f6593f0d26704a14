//! The environment as git and the system describe it at this moment.

use agent_core::Diagnostic;
use agent_prompt::{ENVIRONMENT_COMMITS, EnvironmentFacts, RepositoryFacts};

use super::answers::{self, BRANCH_FORMAT, HEADS, ORIGIN_HEAD, SETTINGS_ASKED, Settings};
use super::git::{Answer, Git, Silence};
use super::place::Place;

/// What was found out about where the agent works, and what could not be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// The facts at the moment of looking. [`EnvironmentFacts::snapshot`] makes text of them; outside a repository there
    /// is none.
    pub facts: EnvironmentFacts,
    /// Questions that got no answer; what they would have told is left out of the facts.
    pub problems: Vec<Diagnostic>,
}

/// Asks git in one place.
#[derive(Debug)]
struct Questions<'a> {
    git: &'a Git,
    place: &'a Place,
}

/// Questions that got no answer so far.
type Problems = Vec<Diagnostic>;

pub(super) async fn look(git: &Git, place: &Place) -> Environment {
    let mut problems = Vec::new();
    let repository =
        if place.is_in_repository { Questions { git, place }.repository(&mut problems).await } else { None };
    let cwd = place.folder.display().to_string();
    let facts = EnvironmentFacts { platform: std::env::consts::OS.to_owned(), cwd, repository };
    Environment { facts, problems }
}

impl Questions<'_> {
    async fn ask(&self, question: &[&str]) -> Result<Answer, Silence> {
        self.git.ask(&self.place.folder, &[], question).await
    }

    /// `None` when git sees no work tree here.
    async fn repository(&self, problems: &mut Problems) -> Option<RepositoryFacts> {
        let (inside, settings, head) = tokio::join!(
            self.ask(&["rev-parse", "--is-inside-work-tree"]),
            self.ask(&["config", "--null", "--get-regexp", SETTINGS_ASKED]),
            self.ask(&["rev-parse", "--verify", "--quiet", "HEAD"]),
        );
        let inside = expect(problems, "repository", inside, &[0])?;
        if answers::word(&inside.out).as_deref() != Some("true") {
            return None;
        }
        // 1 is the answer when none of the settings is there, and when there is no commit yet.
        let settings = Settings::of(&expect(problems, "settings", settings, &[0, 1])?);
        let head = expect(problems, "commits", head, &[0, 1])?;
        self.details(problems, &settings, head.code == Some(0)).await
    }

    async fn details(
        &self,
        problems: &mut Problems,
        settings: &Settings,
        has_commits: bool,
    ) -> Option<RepositoryFacts> {
        let usual = format!("{HEADS}{}", settings.init_branch.as_deref().unwrap_or_default());
        let references = ["for-each-ref", BRANCH_FORMAT, ORIGIN_HEAD, &usual];
        let (branch, refs, commits, status) = tokio::join!(
            self.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"]),
            self.ask(&references),
            self.commits(has_commits),
            self.status(settings),
        );
        // 1 is the answer when no branch is checked out.
        let branch = expect(problems, "branch", branch, &[0, 1])?;
        let branch = answers::word(&branch.out);
        let refs = expect(problems, "default branch", refs, &[0]).unwrap_or_default();
        let commits = expect(problems, "commits", commits, &[0]).unwrap_or_default();
        let status = match status {
            Some(status) => expect(problems, "status", status, &[0]),
            None => {
                problems.push(Diagnostic { what: "environment.status".into(), why: HIDDEN_FILTER.into() });
                None
            }
        };
        Some(RepositoryFacts {
            default_branch: answers::default_branch(&refs, settings, branch.as_deref()),
            branch,
            user: settings.user.clone(),
            commits: answers::lines(&commits),
            status: status.map(|status| answers::lines(&status).join("\n")),
        })
    }

    async fn commits(&self, has_commits: bool) -> Result<Answer, Silence> {
        if !has_commits {
            return Ok(Answer { code: Some(0), ..Answer::default() });
        }
        let number = format!("--max-count={ENVIRONMENT_COMMITS}");
        self.ask(&["log", "--oneline", "--no-decorate", "--no-color", "--no-show-signature", &number]).await
    }

    /// `None` when asking could start a program of the repository's choice.
    async fn status(&self, settings: &Settings) -> Option<Result<Answer, Silence>> {
        let off = settings.without_filters()?;
        let question = ["status", "--short", "--untracked-files=normal", "--ignore-submodules=dirty"];
        Some(self.git.ask(&self.place.folder, &off, &question).await)
    }
}

const HIDDEN_FILTER: &str = "git was not asked for it, because the settings of the repository hold filters that cannot \
                             be turned off: a name with `=` or without UTF-8, or too many of them; rename them";

/// The answer, when it is one of these; anything else is told.
fn expect(
    problems: &mut Problems,
    what: &str,
    answer: Result<Answer, Silence>,
    codes: &[i32],
) -> Option<Answer> {
    let why = match answer {
        // One that was cut was stopped by this side.
        Ok(answer) if answer.is_cut || answer.code.is_some_and(|code| codes.contains(&code)) => {
            return Some(answer);
        }
        Ok(answer) => match answers::word(&answer.err) {
            Some(line) => format!("git refused: {line}"),
            None => format!("git ended with {:?} and said nothing", answer.code),
        },
        Err(silence) => silence.to_string(),
    };
    problems.push(Diagnostic { what: format!("environment.{what}"), why: format!("it is left out: {why}") });
    None
}
