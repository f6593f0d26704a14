//! The permission check: nothing runs without a permit, and only this file makes one.

use agent_core::{CallId, RawJson, ToolCall};

use crate::{Access, Tool, ToolError};

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
    subject: String,
    reason: String,
}

/// The permission policy of a session: a mode and rules. Deny wins over ask, ask over allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Permissions {
    /// What happens where no rule speaks.
    pub mode: PermissionMode,
    /// Rules for tools by name.
    pub rules: Vec<PermissionRule>,
}

/// What happens where no rule speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the documented modes")]
pub enum PermissionMode {
    /// Readers run; edits, programs and the network ask.
    #[default]
    Default,
    /// Readers run; everything else is refused.
    Plan,
    /// Readers and edits run; programs and the network ask.
    AcceptEdits,
    /// Everything runs that no rule refuses.
    Bypass,
}

/// A rule for one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct")]
pub struct PermissionRule {
    /// The tool's name.
    pub tool: String,
    /// What happens to its calls.
    pub decision: PermissionDecision,
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "ordered by strictness: the strictest wins")]
pub enum PermissionDecision {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It is refused.
    Deny,
}

impl Permissions {
    /// Checks one call at the start of its execution. Tools are never hidden; a refusal teaches.
    pub fn check(&self, tool: &dyn Tool, call: &ToolCall, input: &RawJson) -> Verdict {
        let access = tool.traits().access;
        let by_rule = self.rules.iter().filter(|rule| rule.tool == call.name).map(|rule| rule.decision).max();
        let decision = by_rule.unwrap_or_else(|| self.mode.decide(access));
        match decision {
            PermissionDecision::Allow => Verdict::Allow(Permit::for_call(call, input, access)),
            PermissionDecision::Deny => Verdict::Deny(self.refusal(&call.name, by_rule.is_some())),
            PermissionDecision::Ask => Verdict::Ask(AskRequest {
                permit: Permit::for_call(call, input, access),
                subject: tool.subject(input).unwrap_or_else(|| input.get().to_owned()),
                reason: access.what_it_does().to_owned(),
            }),
        }
    }

    fn refusal(&self, tool: &str, by_rule: bool) -> String {
        if !by_rule && self.mode == PermissionMode::Plan {
            return format!(
                "`{tool}` was not run: this session is in plan mode, where nothing may be changed. Read what you need and present your plan; the user will leave plan mode to have it carried out."
            );
        }
        format!(
            "`{tool}` was not run: a permission rule of this session refuses it. Do not call it again; reach the goal with other tools, or tell the user what you need and why."
        )
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

impl AskRequest {
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
        &self.subject
    }

    /// Why a person is asked.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The call.
    pub fn call(&self) -> &CallId {
        &self.permit.call
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
        format!(
            "`{}` was not run: it needs a person's permission and nobody can be asked in this session. Do not repeat the call; use tools that need none, or finish by telling the user which command to allow.",
            self.permit.tool
        )
    }
}

impl Permit {
    fn for_call(call: &ToolCall, input: &RawJson, access: Access) -> Self {
        Self { call: call.id.clone(), tool: call.name.clone(), input: input.clone(), access }
    }

    /// Whether an effect of this kind is covered: a tool that declared that it only reads was allowed as a reader, so
    /// it may not write. Every effect of a sandbox asks this.
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
    pub fn covers(&self, tool: &str, input: &RawJson) -> Result<(), ToolError> {
        if self.tool == tool && self.input == *input { Ok(()) } else { Err(ToolError::WrongPermit) }
    }

    /// The call it is for.
    pub fn call(&self) -> &CallId {
        &self.call
    }
}

#[cfg(test)]
mod tests {
    use agent_core::ToolInput;

    use super::*;
    use crate::ToolConfig;

    fn check(mode: PermissionMode, rules: &[(&str, PermissionDecision)], access: Access) -> &'static str {
        let rules = rules
            .iter()
            .map(|(tool, decision)| PermissionRule { tool: (*tool).into(), decision: *decision })
            .collect();
        let tool =
            ToolConfig::new("t", "Test.", access, |_, _: serde_json::Value| async { Ok(String::new()) });
        let tool = tool.build().unwrap();
        let input = RawJson::empty_object();
        let call = ToolCall {
            id: CallId::new("c").unwrap(),
            name: "t".into(),
            input: ToolInput::Json(input.clone()),
            data: None,
        };
        match (Permissions { mode, rules }).check(&*tool, &call, &input) {
            Verdict::Allow(_) => "allow",
            Verdict::Ask(_) => "ask",
            Verdict::Deny(_) => "deny",
        }
    }

    #[test]
    fn modes_and_rules() {
        use Access::{Edit, Execute, Network, Read, Session};
        let row = |mode| [Read, Session, Edit, Execute, Network].map(|access| check(mode, &[], access));
        assert_eq!(row(PermissionMode::Default), ["allow", "allow", "ask", "ask", "ask"]);
        assert_eq!(row(PermissionMode::Plan), ["allow", "allow", "deny", "deny", "deny"]);
        assert_eq!(row(PermissionMode::AcceptEdits), ["allow", "allow", "allow", "ask", "ask"]);
        assert_eq!(row(PermissionMode::Bypass), ["allow"; 5]);
        let both = [("t", PermissionDecision::Allow), ("t", PermissionDecision::Deny)];
        assert_eq!(check(PermissionMode::Default, &both, Read), "deny", "deny wins over allow");
        assert_eq!(
            check(PermissionMode::Bypass, &[("t", PermissionDecision::Deny)], Edit),
            "deny",
            "bypass does not lift a refusal"
        );
        assert_eq!(
            check(PermissionMode::Plan, &[("t", PermissionDecision::Allow)], Execute),
            "allow",
            "a rule speaks before the mode"
        );
        assert_eq!(check(PermissionMode::Default, &[("other", PermissionDecision::Deny)], Read), "allow");
    }

    #[test]
    fn a_permit_covers_what_the_tool_declared() {
        use Access::{Edit, Execute, Network, Read, Session};
        let input = RawJson::empty_object();
        let call = ToolCall {
            id: CallId::new("c").unwrap(),
            name: "t".into(),
            input: ToolInput::Json(input.clone()),
            data: None,
        };
        let row = |declared| {
            let permit = Permit::for_call(&call, &input, declared);
            [Read, Edit, Execute, Network].map(|effect| permit.allows(effect).is_ok())
        };
        assert_eq!(row(Read), [true, false, false, false]);
        assert_eq!(row(Session), [true, false, false, false]);
        assert_eq!(row(Edit), [true, true, false, false]);
        assert_eq!(row(Execute), [true, true, true, false]);
        assert_eq!(row(Network), [true, false, false, true]);
    }

    #[test]
    fn a_permit_is_for_one_input() {
        let input = RawJson::parse(r#"{"a":1}"#).unwrap();
        let call = ToolCall {
            id: CallId::new("c").unwrap(),
            name: "t".into(),
            input: ToolInput::Json(input.clone()),
            data: None,
        };
        let permit = Permit::for_call(&call, &input, Access::Edit);
        assert!(permit.covers("t", &input).is_ok());
        assert!(permit.covers("u", &input).is_err());
        assert!(permit.covers("t", &RawJson::parse(r#"{"a":2}"#).unwrap()).is_err());
    }
}
