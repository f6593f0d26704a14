//! What a child may do: never more than its parent, and never more than its kind (case A05).

use std::sync::{Arc, Mutex};

use agent_harness::{Answer, Asker, AskerError, ChildKind, NobodyToAsk};
use agent_testkit::Reply;
use agent_tools::{AskRequest, PermissionMode, PermissionRule, Permissions};
use async_trait::async_trait;

use super::{family, kind, put, results, tasks, with};
use crate::support::{Agent, Effects, Points, block};

/// A person who says yes, and what they were asked.
#[derive(Debug, Default)]
struct Yes(Mutex<Vec<String>>);

#[async_trait]
impl Asker for Yes {
    async fn ask(&self, request: &AskRequest) -> Result<Answer, AskerError> {
        self.0.lock().unwrap().push(request.tool().to_owned());
        Ok(Answer::Allow)
    }
}

fn of(mode: PermissionMode, deny: &[&str], allow: &[&str], ask: &[&str]) -> Permissions {
    let pattern = |text: &&str| text.parse().unwrap();
    let deny = deny.iter().map(|text| PermissionRule::deny(pattern(text)));
    let allow = allow.iter().map(|text| PermissionRule::allow(pattern(text)));
    let ask = ask.iter().map(|text| PermissionRule::ask(pattern(text)));
    Permissions { mode, rules: deny.chain(allow).chain(ask).collect(), ..Permissions::default() }
}

struct Row {
    name: &'static str,
    parent: Permissions,
    child: Option<Permissions>,
    /// Whether somebody answers, and then says yes.
    is_answered: bool,
    /// What was asked, and what was done.
    expect: (usize, &'static [&'static str]),
}

fn rows() -> Vec<Row> {
    use PermissionMode::{Bypass, Default, Plan};
    let row = |name, parent, child, is_answered, expect| Row { name, parent, child, is_answered, expect };
    let all = || of(Bypass, &[], &[], &[]);
    vec![
        row("both allow", all(), Some(all()), false, (0, &["a"])),
        row("like the parent", all(), None, false, (0, &["a"])),
        row(
            "the parent denies what the child allows",
            of(Bypass, &["put"], &[], &[]),
            Some(of(Bypass, &[], &["put"], &[])),
            true,
            (0, &[]),
        ),
        row(
            "the child denies what the parent allows",
            of(Bypass, &[], &["put"], &[]),
            Some(of(Bypass, &["put"], &[], &[])),
            true,
            (0, &[]),
        ),
        row("the child denies this part", all(), Some(of(Bypass, &["put(a)"], &[], &[])), true, (0, &[])),
        row("the child denies another", all(), Some(of(Bypass, &["put(b)"], &[], &[])), true, (0, &["a"])),
        row("a parent in plan mode", of(Plan, &[], &[], &[]), Some(all()), true, (0, &[])),
        row(
            "the parent asks and nobody answers",
            of(Bypass, &[], &[], &["put"]),
            Some(all()),
            false,
            (0, &[]),
        ),
        row(
            "the parent asks and a person says yes",
            of(Bypass, &[], &[], &["put"]),
            Some(all()),
            true,
            (1, &["a"]),
        ),
        row("the child asks and nobody answers", all(), Some(of(Default, &[], &[], &[])), false, (0, &[])),
        row(
            "the child asks and the parent's person says yes",
            all(),
            Some(of(Default, &[], &[], &[])),
            true,
            (1, &["a"]),
        ),
        row(
            "the child allows what the parent's mode asks",
            of(Default, &[], &[], &[]),
            Some(of(Default, &[], &["put"], &[])),
            false,
            (0, &[]),
        ),
    ]
}

fn agent(
    parent: &Permissions,
    child: Option<Permissions>,
    asker: Option<&Arc<Yes>>,
    effects: &Effects,
) -> Agent {
    let kind = ChildKind { permissions: child, ..kind("putter", vec![put("a"), Reply::text("I am done.")]) };
    let agent = family(vec![tasks(&["putter"]), Reply::text("ok")], vec![kind], &Points::default(), effects);
    with(agent, |config| {
        config.permissions = parent.clone();
        config.asker = match asker {
            Some(yes) => yes.clone(),
            None => Arc::new(NobodyToAsk),
        };
    })
}

#[test]
fn both_hold() {
    block(async {
        for Row { name, parent, child, is_answered, expect } in rows() {
            let (effects, yes) = (Effects::default(), Arc::new(Yes::default()));
            let agent = agent(&parent, child, is_answered.then_some(&yes), &effects);
            let (_, end) = agent.say("go").await;
            assert!(end.reason.is_success(), "{name}: nobody waits for ever: {:?}", end.reason);
            let asked = yes.0.lock().unwrap().len();
            assert_eq!(
                (asked, effects.all()),
                (expect.0, expect.1.iter().map(ToString::to_string).collect()),
                "{name}"
            );
            assert!(results(&agent).await.contains("I am done."), "{name}: the child was told and went on");
        }
    });
}

/// Nothing is global: what one child may does not change with what another may, or when that one ends.
#[test]
fn siblings_keep_their_own() {
    block(async {
        let effects = Effects::default();
        let strict = || Some(of(PermissionMode::Bypass, &["put"], &[], &[]));
        let putter = |name: &str, what, permissions, delay_ms| {
            let wait = Reply::tool("look", r#"{"what":"x"}"#).slowly(delay_ms);
            ChildKind { permissions, ..kind(name, vec![wait, put(what), Reply::text("I am done.")]) }
        };
        let kinds = vec![
            putter("strict early", "a", strict(), 0),
            putter("free", "b", None, 50),
            putter("strict late", "c", strict(), 100),
        ];
        let script = vec![tasks(&["strict early", "free", "strict late"]), put("d"), Reply::text("ok")];
        let agent = family(script, kinds, &Points::default(), &effects);
        agent.say("go").await;
        assert_eq!(effects.all(), ["b", "d"]);
    });
}

/// A grandchild is below both.
#[test]
fn each_level_narrows() {
    block(async {
        let effects = Effects::default();
        let strict = of(PermissionMode::Bypass, &["put"], &[], &[]);
        let middle = kind("middle", vec![tasks(&["last"]), Reply::text("I am done.")]);
        let free = of(PermissionMode::Bypass, &[], &["put"], &[]);
        let last = kind("last", vec![put("a"), Reply::text("I am done.")]);
        let kinds = vec![
            ChildKind { permissions: Some(strict), ..middle },
            ChildKind { permissions: Some(free), ..last },
        ];
        let script = vec![tasks(&["middle"]), tasks(&["last"]), Reply::text("ok")];
        let agent = family(script, kinds, &Points::default(), &effects);
        agent.say("go").await;
        assert_eq!(effects.all(), ["a"], "below the parent alone it may");
    });
}
