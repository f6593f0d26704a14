//! What the check gives: a permit, a question to a person, or a refusal.

use agent_core::{CallId, RawJson};

use super::{ClassifierError, Pattern, Ruling, Subject};
use crate::{Access, ToolError};

/// Permission to run one call with one input, once (requirement T2).
///
/// It cannot be cloned or built outside the check; a tool consumes it, and every effect of a sandbox asks to see
/// it. So code that runs a tool unchecked does not compile.
#[derive(Debug)]
pub struct Permit {
    call: CallId,
    tool: String,
    input: RawJson,
    /// What the tool declared; effects of another kind are refused.
    access: Access,
    /// The file that was looked at, with every link followed.
    real_path: Option<String>,
}

/// What the check says.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle all three")]
pub enum Verdict {
    /// Run it.
    Allow(Permit),
    /// A person decides.
    Ask(AskRequest),
    /// Do not run it; the words are for the model.
    Deny(String),
}

/// A question to a person. Answering it consumes it.
#[derive(Debug)]
pub struct AskRequest {
    permit: Permit,
    subject: Option<Subject>,
    ruling: Ruling,
    /// Why it is put again.
    again: Option<String>,
    /// Why no classifier has looked.
    fault: Option<Box<ClassifierError>>,
}

/// What is special in a pattern for paths.
const GLOB: [char; 6] = ['*', '?', '[', '{', '\\', '!'];

/// A call as it would run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exact<'a> {
    pub(super) call: &'a CallId,
    pub(super) tool: &'a str,
    pub(super) input: &'a RawJson,
    pub(super) access: Access,
}

impl Permit {
    pub(super) fn new(exact: Exact<'_>, subject: Option<&Subject>) -> Self {
        let real_path = match subject {
            Some(Subject::Path { real, .. }) => real.clone(),
            Some(Subject::Command(_) | Subject::Url { .. } | Subject::Text(_)) | None => None,
        };
        let Exact { call, tool, input, access } = exact;
        Self { call: call.clone(), tool: tool.to_owned(), input: input.clone(), access, real_path }
    }

    /// Whether an effect of this kind is covered: a tool that declared that it only reads was allowed as a reader, so
    /// it may not write. Every effect of a sandbox asks this.
    ///
    /// # Errors
    /// When it is not.
    pub fn allows(&self, effect: Access) -> Result<(), ToolError> {
        let covered = match effect {
            Access::Read | Access::Session => true,
            Access::Edit => matches!(self.access, Access::Edit | Access::Execute),
            Access::Execute | Access::Network => self.access == effect,
        };
        if covered { Ok(()) } else { Err(ToolError::BeyondAccess { declared: self.access, effect }) }
    }

    /// Whether it is for this very tool and input, so that what was checked is what runs (case A02); a tool asks before
    /// it acts.
    ///
    /// # Errors
    /// When it is not.
    pub fn covers(&self, tool: &str, input: &RawJson) -> Result<(), ToolError> {
        if self.tool == tool && self.input == *input { Ok(()) } else { Err(ToolError::WrongPermit) }
    }

    /// Whether it is for the file that lies here now: a link that was put in the way since the check leads elsewhere. A
    /// sandbox asks this when it has opened a file to change it.
    ///
    /// # Errors
    /// When the check looked at another file.
    pub fn covers_path(&self, real: &str) -> Result<(), ToolError> {
        match &self.real_path {
            Some(checked) if checked != real => {
                Err(ToolError::MovedPath { checked: checked.clone(), found: real.to_owned() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The file that was checked, with every link followed, where the check looked at one.
    pub fn checked_path(&self) -> Option<&str> {
        self.real_path.as_deref()
    }

    /// The call it is for.
    pub fn call(&self) -> &CallId {
        &self.call
    }
}

impl AskRequest {
    pub(super) fn new(permit: Permit, subject: Option<Subject>, ruling: Ruling) -> Self {
        Self { permit, subject, ruling, again: None, fault: None }
    }

    pub(super) fn with_fault(self, fault: Option<ClassifierError>) -> Self {
        Self { fault: fault.map(Box::new), ..self }
    }

    /// The failure of the classifier that was to look first; to be told.
    pub fn classifier_fault(&self) -> Option<&ClassifierError> {
        self.fault.as_deref()
    }

    /// The tool.
    pub fn tool(&self) -> &str {
        &self.permit.tool
    }

    /// The whole input, exactly as it would run.
    pub fn input(&self) -> &RawJson {
        &self.permit.input
    }

    /// What to show first: the command, the path, or the whole input.
    pub fn subject(&self) -> &str {
        self.subject.as_ref().map_or(self.permit.input.get(), Subject::shown)
    }

    /// Why a person is asked.
    pub fn reason(&self) -> &'static str {
        self.permit.access.what_it_does()
    }

    /// Which rule or mode asks, and for which part of the input.
    pub fn ruling(&self) -> &Ruling {
        &self.ruling
    }

    /// The call.
    pub fn call(&self) -> &CallId {
        &self.permit.call
    }

    /// The patterns that "always allow" would remember: this very subject, or the host of an address. Empty where a rule
    /// asks that a remembered one cannot outrank, or where nothing exact can be said.
    pub fn remembers(&self) -> Vec<Pattern> {
        if self.ruling.is_firm() {
            return Vec::new();
        }
        let exact = |text: &str| vec![text.to_owned()];
        let arguments = match &self.subject {
            Some(Subject::Command(text)) => super::subject::exact_commands(text).unwrap_or_default(),
            Some(Subject::Path { real, .. }) => {
                // What is special in a pattern would fit other files too.
                real.as_deref().filter(|real| !real.contains(GLOB)).map(exact).unwrap_or_default()
            }
            Some(Subject::Url { host, .. }) => exact(&format!("domain:{host}")),
            Some(Subject::Text(text)) => exact(text),
            // Nothing of the input decides, so that the tool itself is meant.
            None => return vec![Pattern::tool(&self.permit.tool)],
        };
        // A star says more than the person saw.
        let shown = arguments.into_iter().filter(|argument| !argument.contains('*'));
        shown.map(|argument| Pattern::with_argument(&self.permit.tool, argument)).collect()
    }

    /// The same question once more, because the answer could not be used: the words say why.
    #[must_use]
    pub fn again(self, why: impl Into<String>) -> Self {
        Self { again: Some(why.into()), ..self }
    }

    /// Why the answer before could not be used; to be shown with the question that is put again.
    pub fn asked_again(&self) -> Option<&str> {
        self.again.as_deref()
    }

    /// The person allows it.
    pub fn allow(self) -> Permit {
        self.permit
    }

    /// The person refuses; the words for the model, with the person's own if any.
    pub fn deny(self, words: Option<&str>) -> String {
        let said = words.map_or_else(String::new, |words| format!(" They say: {words:?}."));
        format!(
            "User denied `{}`; it was not run.{said} Do not repeat the call; find another way or ask what they want.",
            self.permit.tool
        )
    }

    /// Nobody can be asked; the words for the model.
    pub fn nobody_to_ask(self) -> String {
        let part =
            self.ruling.part.as_deref().map_or_else(String::new, |part| format!(" (because of {part})"));
        format!(
            "`{}` was not run{part}: it needs a person's permission and nobody can be asked in this session. Do not repeat the call; use tools that need none, or finish by telling the user which command to allow.",
            self.permit.tool
        )
    }
}
