//! How Anthropic's requests are written: the order of their parts and what stands between them.

use agent_core::{
    ModelProfile, ModelRequest, Note, Rendered, Setting, StepRecord, SystemBlock, ToolCard, Ttl,
};

use memchr::memmem;

use super::segment::{Blocks, Needs, Renderer, Role, follow_uses, is_compaction, may_go_on, reminder_role};
use super::settings::{betas, tail};
use crate::wire::form::{Cx, Form, Head, Run};
use crate::wire::json::write;
use crate::wire::marks::cache_control;
use crate::wire::schema::Rules;
use crate::wire::tail::Tail;

/// `{"model","system","tools","messages","max_tokens",…,"stream"}`; blocks of one role are joined into one message.
#[derive(Debug, Default)]
pub(crate) struct MessagesForm {
    needs: Needs,
}

impl Form for MessagesForm {
    type Role = Role;
    const LIST: &'static [u8] = br#""messages":["#;
    const SYSTEM_IN_LIST: bool = false;
    const RULES: Rules = Rules::Anthropic;
    const MODEL_MAY_NOT_END: bool = true;

    fn start(&self, profile: &ModelProfile) -> Vec<u8> {
        let mut start = br#"{"model":"#.to_vec();
        write(&mut start, &profile.model);
        start.push(b',');
        start
    }

    fn system(&self, blocks: &[SystemBlock], _cx: &mut Cx<'_>) -> Head {
        let (mut bytes, mut splices) = (br#""system":["#.to_vec(), Vec::new());
        for (at, block) in blocks.iter().enumerate() {
            bytes.extend_from_slice(if at > 0 { b"," } else { b"" });
            bytes.extend_from_slice(br#"{"type":"text","text":"#);
            write(&mut bytes, block.text());
            splices.push(bytes.len());
            bytes.push(b'}');
        }
        bytes.extend_from_slice(b"],");
        Head { bytes, splices }
    }

    fn tools(&self, tools: &[ToolCard], cx: &mut Cx<'_>) -> Head {
        super::tools::tools(tools, cx)
    }

    fn runs(&self, piece: Rendered<'_>, cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        Renderer { cx, needs: &self.needs }.runs(piece)
    }

    fn reminders(&self, notes: &[Note], cx: &mut Cx<'_>) -> Vec<Run<Role>> {
        let mut blocks = Blocks::default();
        notes.iter().for_each(|note| blocks.text(note.text.as_str()));
        vec![blocks.run(reminder_role(cx.profile))]
    }

    /// A message opens where the role changes. The first message must be the user's, unless it stands for others.
    fn glue(last: Option<Role>, next: Option<Role>) -> &'static [u8] {
        use Role as R;
        match (last, next) {
            (None, Some(R::User | R::Note | R::TurnNote | R::Reminder)) => br#"{"role":"user","content":["#,
            (None, Some(R::System)) => br#"{"role":"system","content":["#,
            (None, Some(R::TurnSystem)) => {
                br#"{"role":"system","clear_at":"next_user_message","content":["#
            }
            (None, Some(R::Compacted)) => br#"{"role":"assistant","content":["#,
            (None, Some(R::Assistant)) => {
                br#"{"role":"user","content":[{"type":"text","text":"(no content)"}]},{"role":"assistant","content":["#
            }
            (Some(R::User), Some(R::User | R::Note | R::TurnNote | R::Reminder))
            | (Some(R::Note | R::TurnNote | R::Reminder), Some(R::User))
            | (Some(R::System), Some(R::System))
            | (Some(R::TurnSystem), Some(R::TurnSystem))
            | (Some(R::Assistant | R::Compacted), Some(R::Assistant | R::Compacted)) => b",",
            (Some(_), Some(R::Assistant | R::Compacted)) => br#"]},{"role":"assistant","content":["#,
            (Some(_), Some(R::User | R::Note | R::TurnNote | R::Reminder)) => {
                br#"]},{"role":"user","content":["#
            }
            (Some(_), Some(R::System)) => br#"]},{"role":"system","content":["#,
            (Some(_), Some(R::TurnSystem)) => {
                br#"]},{"role":"system","clear_at":"next_user_message","content":["#
            }
            (Some(_), None) => b"]}]",
            (None, None) => b"]",
        }
    }

    /// White space at the end of the model's last words is refused.
    fn ending(bytes: &[u8]) -> Option<Vec<u8>> {
        let at = memmem::rfind(bytes, TEXT)? + TEXT.len();
        let (block, words) = bytes.split_at_checked(at)?;
        let words: String = serde_json::from_slice(words.strip_suffix(b"}")?).ok()?;
        let kept = words.trim_end();
        if kept.len() == words.len() || kept.is_empty() {
            return None;
        }
        let mut out = block.to_vec();
        write(&mut out, kept);
        out.push(b'}');
        Some(out)
    }

    fn is_open(role: Role) -> bool {
        matches!(role, Role::Note | Role::TurnNote | Role::Reminder)
    }

    /// The system may speak after the user, at the end or before the model, in one message: what is meant for a turn
    /// stays with what is not where both speak at once.
    fn settle(group: &mut [Role], mut before: Option<Role>, next: Option<Role>) {
        let may_follow = matches!(next, None | Some(Role::Assistant | Role::Compacted));
        let lasting = group.iter().rposition(|role| *role == Role::Note);
        for (at, role) in group.iter_mut().enumerate() {
            let is_mixed = before == Some(Role::System) || lasting.is_some_and(|lasting| at < lasting);
            let is_scoped = match *role {
                Role::TurnNote => !is_mixed,
                Role::Reminder => before == Some(Role::TurnSystem),
                Role::Note
                | Role::User
                | Role::System
                | Role::TurnSystem
                | Role::Assistant
                | Role::Compacted => false,
            };
            *role = match before {
                Some(Role::User | Role::System | Role::TurnSystem) if may_follow && is_scoped => {
                    Role::TurnSystem
                }
                Some(Role::User | Role::System | Role::TurnSystem) if may_follow => Role::System,
                _ => Role::User,
            };
            before = Some(*role);
        }
    }

    fn keeps_scope(asked: Role, settled: Role) -> Option<bool> {
        (asked == Role::TurnNote).then_some(settled == Role::TurnSystem)
    }

    fn pending(&self, step: &StepRecord, profile: &ModelProfile, pending: &mut Vec<String>) {
        follow_uses(step, &profile.provider, pending);
        if !may_go_on(step) {
            pending.clear();
        }
    }

    fn replaces(&self, step: &StepRecord, profile: &ModelProfile) -> bool {
        is_compaction(step, &profile.provider)
    }

    fn is_model(role: Role) -> bool {
        matches!(role, Role::Assistant | Role::Compacted)
    }

    fn marker(&self, ttl: Ttl) -> &'static [u8] {
        cache_control(ttl)
    }

    fn tail(&self, request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
        tail(request, cx)
    }

    fn headers(
        &self,
        request: &ModelRequest<'_>,
        profile: &ModelProfile,
        scoped: bool,
    ) -> Vec<(String, String)> {
        let refuses_fast = profile.refuses.contains(&Setting::Fast);
        let mut all = self.needs.all();
        all.extend(scoped.then_some(CLEAR_AT));
        all.extend(betas(request.settings, refuses_fast, &profile.provider));
        all.sort_unstable();
        all.dedup();
        if all.is_empty() { Vec::new() } else { vec![("anthropic-beta".to_owned(), all.join(","))] }
    }

    fn end(&self, stream: bool) -> &'static [u8] {
        if stream { br#","stream":true}"# } else { br#","stream":false}"# }
    }
}

/// System messages that are limited to a turn.
const CLEAR_AT: &str = "mid-conversation-system-clear-at-2026-08-21";
/// The beginning of words without anything attached.
const TEXT: &[u8] = br#"{"type":"text","text":"#;
