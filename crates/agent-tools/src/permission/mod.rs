//! The permission check: nothing runs without a permit, and only this folder makes one.

mod classifier;
mod confined;
mod permit;
mod rule;
mod shell;
mod spelling;
mod subject;

use std::sync::Arc;

use agent_core::{CallId, Layer, RawJson};

pub use classifier::{Classified, Classifier, ClassifierError};
pub use confined::Confinement;
pub use permit::{AskRequest, Permit, Verdict};
pub use rule::{Pattern, PatternError, PermissionDecision, PermissionRule};
pub use subject::Subject;

use crate::{Access, Tool};
use permit::Exact;
use subject::Facts;

/// The permission policy of an agent: a mode and rules. What decides first, from top to bottom (requirement T2):
///
/// 1. a rule that refuses, whatever its layer;
/// 2. plan mode, where nothing is edited;
/// 3. a rule of [`Layer::Managed`] that asks;
/// 4. a part of the input that is only known when it runs, where it could be what a rule of 1 or 3 speaks of: it asks;
/// 5. a permission given in this session: a rule of [`Layer::Session`], or a hook;
/// 6. a rule that asks;
/// 7. a part that is only known when it runs, where it could be what such a rule speaks of;
/// 8. a rule that allows;
/// 9. the tool's own [`ToolTraits::permission`](crate::ToolTraits::permission);
/// 10. the mode.
///
/// Where 9 or 10 would ask a person, the classifier is asked first, if there is one. What 3 to 7 ask, it is not.
///
/// So a project's rules cannot grant what managed ones forbid, and nothing that is remembered outranks a refusal.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Permissions {
    /// What happens where no rule speaks.
    pub mode: PermissionMode,
    /// The rules, of all layers.
    pub rules: Vec<PermissionRule>,
    /// Who looks at calls before a person is asked.
    pub classifier: Option<Arc<dyn Classifier>>,
    /// What these permissions never go beyond, in a sub-agent those of its parent (case A05): a call is judged by both, and
    /// the stricter of the two holds. The classifier of a ceiling is not asked.
    pub ceiling: Option<Arc<Permissions>>,
    /// Closes them for a run that is for one thing: what no rule allows is refused, in words of its own, and 5 hears no hook.
    pub confinement: Option<Confinement>,
}

/// What happens where no rule speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the documented modes")]
pub enum PermissionMode {
    /// Readers run; edits, programs and the network ask.
    #[default]
    Default,
    /// Readers run, and what a rule allows of programs and the network; everything else is refused.
    Plan,
    /// Readers and edits run; programs and the network ask.
    AcceptEdits,
    /// Everything runs that no rule refuses.
    Bypass,
}

/// A call that wants to run.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by drivers")]
pub struct Proposal<'a> {
    /// The tool.
    pub tool: &'a dyn Tool,
    /// The call.
    pub call: &'a CallId,
    /// The input, exactly as it would run.
    pub input: &'a RawJson,
    /// What the model wrote, when a hook or a person put another input in its place. What is refused of either is refused
    /// (case A02).
    pub written: Option<&'a RawJson>,
    /// Permissions that were given in this session.
    pub remembered: &'a [PermissionRule],
    /// The hook that allows it.
    pub allowed_by: Option<&'a str>,
    /// The hook that wants a person to decide: what would be allowed is asked then, and what is refused stays refused.
    pub asked_by: Option<&'a str>,
    /// Whether a classifier looked at it already, and a person is to be asked.
    pub is_classified: bool,
}

impl<'a> Proposal<'a> {
    /// A call as the model wrote it, in a session in which nothing is remembered.
    pub fn new(tool: &'a dyn Tool, call: &'a CallId, input: &'a RawJson) -> Self {
        Self {
            tool,
            call,
            input,
            written: None,
            remembered: &[],
            allowed_by: None,
            asked_by: None,
            is_classified: false,
        }
    }
}

impl Proposal<'_> {
    /// Whether nobody but the mode or the tool wants a person.
    fn may_be_classified(&self, ruling: &Ruling) -> bool {
        ruling.decision == PermissionDecision::Ask
            && ruling.is_default()
            && self.asked_by.is_none()
            && !self.is_classified
    }
}

/// What happens to a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a record read by drivers and people")]
pub struct Ruling {
    /// What happens.
    pub decision: PermissionDecision,
    /// What decided.
    pub by: DecidedBy,
    /// The part of the input that decided, where it was one: what a rule speaks of, or what no rule that allows covers.
    pub part: Option<String>,
}

/// What decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "explained to people case by case")]
pub enum DecidedBy {
    /// A rule.
    Rule(PermissionRule),
    /// The mode.
    Mode(PermissionMode),
    /// The tool's own wish.
    Tool,
    /// A hook, by its name.
    Hook(String),
    /// A classifier.
    Classifier {
        /// Its name.
        name: String,
        /// Why it refuses; empty when it allows.
        why: String,
    },
    /// Rules for parts of the input cannot be held against a part that is only known when it runs.
    Unknown,
    /// The run is for one thing.
    Confinement,
}

impl Permissions {
    /// Checks one call at the start of its execution. Tools are never hidden; a refusal teaches.
    pub async fn check(&self, proposal: Proposal<'_>) -> Verdict {
        let Proposal { tool, call, input, written, .. } = proposal;
        let name = tool.card().name();
        let access = tool.traits().access;
        let confinement = self.levels().find_map(|level| level.confinement.as_ref());
        // Most calls are decided without a look at their input.
        let looks = confinement.is_some_and(|it| it.reads && access == Access::Execute)
            || self
                .all_rules()
                .chain(proposal.remembered)
                .any(|rule| rule.pattern.names(name) && rule.pattern.argument().is_some());
        let subject = if looks { Some(Subject::of(tool, input).await) } else { None };
        let before = match written.filter(|_| looks) {
            Some(written) => Some(Subject::of(tool, written).await),
            None => None,
        };
        let own = tool.traits().permission;
        let matter = Matter { tool: name, access, own, subject: subject.as_ref(), before: before.as_ref() };
        let mut ruling = self.rule_on(&matter, proposal.remembered, proposal.allowed_by);
        if let Some(hook) = proposal.asked_by.filter(|_| ruling.decision == PermissionDecision::Allow) {
            let by = DecidedBy::Hook(hook.to_owned());
            ruling = Ruling { decision: PermissionDecision::Ask, by, part: None };
        }
        let mut fault = None;
        if let Some(classifier) = self.classifier.as_deref().filter(|_| proposal.may_be_classified(&ruling)) {
            let looked = match &subject {
                Some(_) => None,
                None => Some(Subject::of(tool, input).await),
            };
            let matter = Matter { subject: subject.as_ref().or(looked.as_ref()), ..matter };
            match classifier.classify(&matter, input).await {
                Ok(said) => ruling = ruling.classified(classifier.name(), said),
                Err(error) => fault = Some(error),
            }
        }
        let exact = Exact { call, tool: name, input, access };
        if let Some(it) = confinement.filter(|_| ruling.decision != PermissionDecision::Allow) {
            return Verdict::Deny(ruling.confined_refusal(name, it));
        }
        match ruling.decision {
            PermissionDecision::Allow => Verdict::Allow(Permit::new(exact, subject.as_ref())),
            PermissionDecision::Deny => Verdict::Deny(ruling.refusal(name)),
            PermissionDecision::Ask => {
                let subject = match subject {
                    Some(subject) => Some(subject),
                    None => tool.subject(input).await,
                };
                let permit = Permit::new(exact, subject.as_ref());
                Verdict::Ask(AskRequest::new(permit, subject, ruling).with_fault(fault))
            }
        }
    }

    /// The same permissions below a ceiling: nothing is allowed that either refuses, and nothing runs unasked that either
    /// asks for. A classifier among them gives way to the ceiling's, since only that one was trusted to allow.
    #[must_use]
    pub fn within(self, ceiling: Arc<Self>) -> Self {
        let ceiling = match self.ceiling {
            None => ceiling,
            Some(own) => Arc::new((*own).clone().within(ceiling)),
        };
        Self { classifier: ceiling.classifier.clone(), ceiling: Some(ceiling), ..self }
    }

    /// What happens to a call, and why: pure, so that rules can be tried without a session.
    pub fn rule_on(
        &self,
        matter: &Matter<'_>,
        remembered: &[PermissionRule],
        allowed_by: Option<&str>,
    ) -> Ruling {
        let own = self.rule_below(matter, remembered, allowed_by);
        let Some(ceiling) = &self.ceiling else { return own };
        let above = ceiling.rule_on(matter, remembered, allowed_by);
        if above.strictness() > own.strictness() { above } else { own }
    }

    /// The rules, and those of the ceilings.
    fn all_rules(&self) -> impl Iterator<Item = &PermissionRule> {
        self.levels().flat_map(|level| &level.rules)
    }

    fn levels(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |below| below.ceiling.as_deref())
    }

    /// What these say, whatever is above them.
    fn rule_below(
        &self,
        matter: &Matter<'_>,
        remembered: &[PermissionRule],
        allowed_by: Option<&str>,
    ) -> Ruling {
        let rules = Rules::of(self.rules.iter().chain(remembered), matter);
        let plans = self.mode == PermissionMode::Plan && matter.access == Access::Edit;
        let hook = |name: &str| Ruling {
            decision: PermissionDecision::Allow,
            by: DecidedBy::Hook(name.to_owned()),
            part: None,
        };
        rules
            .strict(PermissionDecision::Deny, |_| true)
            .or_else(|| plans.then(|| self.by_mode(matter.access)))
            .or_else(|| rules.strict(PermissionDecision::Ask, |layer| layer == Layer::Managed))
            .or_else(|| rules.unknown(is_firm))
            .or_else(|| rules.allowed(|layer| layer == Layer::Session))
            .or_else(|| allowed_by.filter(|_| self.confinement.is_none()).map(hook))
            .or_else(|| rules.strict(PermissionDecision::Ask, |_| true))
            .or_else(|| rules.unknown(|rule| rule.decision == PermissionDecision::Ask))
            .or_else(|| rules.allowed(|_| true))
            .or_else(|| self.by_confinement(matter))
            .or_else(|| self.by_tool(matter.own?))
            .unwrap_or_else(|| {
                let ruling = self.by_mode(matter.access);
                let part =
                    if ruling.decision == PermissionDecision::Allow { None } else { rules.uncovered() };
                Ruling { part, ..ruling }
            })
    }

    fn by_confinement(&self, matter: &Matter<'_>) -> Option<Ruling> {
        let decision = self.confinement.as_ref()?.decide(matter);
        Some(Ruling { decision, by: DecidedBy::Confinement, part: None })
    }

    fn by_tool(&self, decision: PermissionDecision) -> Option<Ruling> {
        let is_lifted = self.mode == PermissionMode::Bypass && decision != PermissionDecision::Deny;
        (!is_lifted).then_some(Ruling { decision, by: DecidedBy::Tool, part: None })
    }

    fn by_mode(&self, access: Access) -> Ruling {
        Ruling { decision: self.mode.decide(access), by: DecidedBy::Mode(self.mode), part: None }
    }
}

/// What is judged: a tool, its kind of effect, and what of the input rules look at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by drivers and by whoever tries rules")]
pub struct Matter<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Its kind of effect.
    pub access: Access,
    /// What the tool itself wants where no rule speaks.
    pub own: Option<PermissionDecision>,
    /// What rules look at.
    pub subject: Option<&'a Subject>,
    /// The same of the input that the model wrote, when another took its place.
    pub before: Option<&'a Subject>,
}

/// The rules for one tool, and what they are held against.
struct Rules<'a> {
    rules: Vec<&'a PermissionRule>,
    facts: Option<Facts<'a>>,
    before: Option<Facts<'a>>,
}

impl<'a> Rules<'a> {
    fn of(all: impl Iterator<Item = &'a PermissionRule>, matter: &Matter<'a>) -> Self {
        let rules: Vec<_> = all.filter(|rule| rule.pattern.names(matter.tool)).collect();
        let looks = rules.iter().any(|rule| rule.pattern.argument().is_some());
        let facts = |subject: Option<&'a Subject>| subject.filter(|_| looks).map(Facts::of);
        Self { rules, facts: facts(matter.subject), before: facts(matter.before) }
    }

    /// The rule that refuses or asks, and the part of the input of which it speaks. Of several that of the highest layer.
    fn strict(&self, decision: PermissionDecision, layer: impl Fn(Layer) -> bool) -> Option<Ruling> {
        let rules = self.rules.iter().filter(|rule| rule.decision == decision && layer(rule.layer));
        let touched = rules.filter_map(|rule| {
            let part = match rule.pattern.argument() {
                None => None,
                Some(argument) => Some(self.touched_by(argument)?),
            };
            Some((*rule, part))
        });
        let (rule, part) = touched.max_by_key(|(rule, _)| rule.layer)?;
        Some(Ruling { decision, by: DecidedBy::Rule(rule.clone()), part })
    }

    fn touched_by(&self, argument: &str) -> Option<String> {
        [&self.facts, &self.before].into_iter().flatten().find_map(|facts| facts.touched_by(argument))
    }

    /// Whether rules that allow cover all of the input; the last one that was needed is named.
    fn allowed(&self, layer: impl Fn(Layer) -> bool) -> Option<Ruling> {
        let allow = |rule: &&&PermissionRule| rule.decision == PermissionDecision::Allow && layer(rule.layer);
        let rules: Vec<_> = self.rules.iter().filter(allow).copied().collect();
        let whole = rules.iter().find(|rule| rule.pattern.argument().is_none());
        let rule = match whole {
            Some(rule) => rule,
            None => {
                let facts = self.facts.as_ref()?;
                let arguments: Vec<&str> = rules.iter().filter_map(|rule| rule.pattern.argument()).collect();
                if arguments.is_empty() || facts.uncovered_by(&arguments).is_some() {
                    return None;
                }
                let alone = |rule: &&&PermissionRule| {
                    rule.pattern.argument().is_some_and(|argument| facts.touched_by(argument).is_some())
                };
                rules.iter().find(alone)?
            }
        };
        Some(Ruling { decision: PermissionDecision::Allow, by: DecidedBy::Rule((*rule).clone()), part: None })
    }

    /// The part of the input that rules for other parts of it do not allow.
    fn uncovered(&self) -> Option<String> {
        let allow = |rule: &&&PermissionRule| rule.decision == PermissionDecision::Allow;
        let arguments: Vec<&str> =
            self.rules.iter().filter(allow).filter_map(|rule| rule.pattern.argument()).collect();
        if arguments.is_empty() { None } else { self.facts.as_ref()?.uncovered_by(&arguments) }
    }

    /// A part that is only known when it runs could be what such a rule speaks of.
    fn unknown(&self, speaks: fn(&PermissionRule) -> bool) -> Option<Ruling> {
        let of_parts =
            self.rules.iter().filter(|rule| speaks(rule)).filter_map(|rule| rule.pattern.argument());
        let arguments: Vec<&str> = of_parts.collect();
        let mut all = [&self.facts, &self.before].into_iter().flatten();
        let part = all.find_map(|facts| {
            let unread = facts.unknown().filter(|_| !arguments.is_empty()).map(str::to_owned);
            unread.or_else(|| arguments.iter().find_map(|argument| facts.may_be_touched_by(argument)))
        })?;
        Some(Ruling { decision: PermissionDecision::Ask, by: DecidedBy::Unknown, part: Some(part) })
    }
}

/// Whether nothing that is allowed in a session outranks a rule.
fn is_firm(rule: &PermissionRule) -> bool {
    match rule.decision {
        PermissionDecision::Deny => true,
        PermissionDecision::Ask => rule.layer == Layer::Managed,
        PermissionDecision::Allow => false,
    }
}

impl PermissionMode {
    /// What happens to a kind of tool where no rule speaks.
    pub fn decide(self, access: Access) -> PermissionDecision {
        match (self, access) {
            (_, Access::Read | Access::Session) | (Self::Bypass, _) | (Self::AcceptEdits, Access::Edit) => {
                PermissionDecision::Allow
            }
            (Self::Plan, Access::Edit | Access::Execute | Access::Network) => PermissionDecision::Deny,
            (Self::Default, Access::Edit | Access::Execute | Access::Network)
            | (Self::AcceptEdits, Access::Execute | Access::Network) => PermissionDecision::Ask,
        }
    }

    /// The name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Plan => "plan",
            Self::AcceptEdits => "accept-edits",
            Self::Bypass => "bypass",
        }
    }
}

impl Ruling {
    /// Whether no rule spoke.
    fn is_default(&self) -> bool {
        matches!(self.by, DecidedBy::Mode(_) | DecidedBy::Tool)
    }

    /// Of two rulings that ask, the one that a classifier or a memory may not answer is the stricter.
    fn strictness(&self) -> (PermissionDecision, bool, bool) {
        (self.decision, !self.is_default(), self.is_firm())
    }

    /// Whether nothing that is remembered in a session can lift it.
    pub(crate) fn is_firm(&self) -> bool {
        match &self.by {
            DecidedBy::Rule(rule) => rule.layer == Layer::Managed,
            // A hook asks anew each time.
            DecidedBy::Hook(_) | DecidedBy::Confinement => true,
            DecidedBy::Mode(_) | DecidedBy::Tool | DecidedBy::Unknown | DecidedBy::Classifier { .. } => false,
        }
    }

    /// The same once a classifier has looked.
    fn classified(self, name: &str, said: Classified) -> Self {
        let (decision, why) = match said {
            Classified::Ask => return self,
            Classified::Allow => (PermissionDecision::Allow, String::new()),
            Classified::Deny(why) => (PermissionDecision::Deny, why),
        };
        Self { decision, by: DecidedBy::Classifier { name: name.to_owned(), why }, part: None }
    }

    /// The words for the model in a run that is for one thing.
    fn confined_refusal(&self, tool: &str, confinement: &Confinement) -> String {
        let part = self.part.as_deref().map_or_else(String::new, |part| format!(" because of `{part}`"));
        format!("`{tool}` was not run{part}: {}", confinement.words)
    }

    /// The words for the model.
    fn refusal(&self, tool: &str) -> String {
        if self.by == DecidedBy::Mode(PermissionMode::Plan) {
            return format!(
                "`{tool}` was not run: this session is in plan mode, where nothing may be changed. Read what you need and present your plan; the user will leave plan mode to have it carried out."
            );
        }
        if let DecidedBy::Classifier { name, why } = &self.by {
            return format!(
                "`{tool}` was not run: the classifier `{name}` refuses it. {why} Do not repeat the call; reach the goal with other tools, or tell the user what you need and why."
            );
        }
        let part = self.part.as_deref().map_or_else(String::new, |part| format!(" because of `{part}`"));
        format!(
            "`{tool}` was not run: a permission rule of this session refuses it{part}. Do not call it again; reach the goal with other tools, or tell the user what you need and why."
        )
    }
}

impl Access {
    fn what_it_does(self) -> &'static str {
        match self {
            Self::Read => "it reads",
            Self::Session => "it changes the session's own state",
            Self::Edit => "it changes files",
            Self::Execute => "it runs a program",
            Self::Network => "it reaches the network",
        }
    }
}

#[cfg(test)]
mod tests;
