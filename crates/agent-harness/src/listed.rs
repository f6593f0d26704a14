//! Which cards of a session go on the wire: decided here alone, by what the model's provider can do (requirement A4).

use std::borrow::Cow;
use std::collections::BTreeSet;

use agent_core::{ModelProfile, SessionMeta, ToolCard, ToolChoice};

/// The tools of a session or of a turn as each kind of provider is sent them: made once, lent for each step.
#[derive(Debug)]
pub(crate) struct Listed {
    all: Vec<ToolCard>,
    /// Where none is deferred, every provider is sent all.
    apart: Option<Apart>,
}

#[derive(Debug)]
struct Apart {
    /// Where deferred tools are sent with their mark: no dispatcher.
    marked: Vec<ToolCard>,
    /// Where they are called through the dispatcher: none of them.
    hidden: Vec<ToolCard>,
}

impl Listed {
    pub(crate) fn of(all: Vec<ToolCard>) -> Self {
        let of = |marks: bool| all.iter().filter(|card| is_sent(card, marks)).cloned().collect();
        let is_plain = all.iter().all(|card| !card.is_deferred() && !card.is_dispatcher());
        let apart = (!is_plain).then(|| Apart { marked: of(true), hidden: of(false) });
        Self { all, apart }
    }

    /// What a model is sent.
    pub(crate) fn sent_to(&self, profile: &ModelProfile) -> &[ToolCard] {
        match &self.apart {
            None => &self.all,
            Some(apart) if profile.deferred_tools => &apart.marked,
            Some(apart) => &apart.hidden,
        }
    }

    /// All of them, as the session keeps them.
    pub(crate) fn all(&self) -> &[ToolCard] {
        &self.all
    }
}

/// What a model is sent of a session's tools, for who asks once.
pub(crate) fn sent<'m>(meta: &'m SessionMeta, profile: &ModelProfile) -> Cow<'m, [ToolCard]> {
    sent_of(&meta.tools, profile)
}

/// The same of any list.
pub(crate) fn sent_of<'c>(cards: &'c [ToolCard], profile: &ModelProfile) -> Cow<'c, [ToolCard]> {
    if cards.iter().all(|card| is_sent(card, profile.deferred_tools)) {
        return Cow::Borrowed(cards);
    }
    cards.iter().filter(|card| is_sent(card, profile.deferred_tools)).cloned().collect()
}

fn is_sent(card: &ToolCard, marks: bool) -> bool {
    if marks { !card.is_dispatcher() } else { !card.is_deferred() }
}

/// The tools of a step that names the only ones which may be called, where the others are left out.
///
/// Deferred tools are no part of the prefix, and a reference in the conversation to one that is missing is refused: so
/// they stay. The dispatcher stays where an active tool is called through it.
pub(crate) fn narrowed(tools: &[ToolCard], active: &BTreeSet<String>) -> Vec<ToolCard> {
    let is_listed = |name: &String| tools.iter().any(|card| card.name() == name);
    let calls_through = active.iter().any(|name| !is_listed(name));
    let stays = |card: &&ToolCard| {
        active.contains(card.name()) || card.is_deferred() || (card.is_dispatcher() && calls_through)
    };
    let left: Vec<ToolCard> = tools.iter().filter(stays).cloned().collect();
    // A list of nothing but deferred tools is refused.
    if left.iter().all(ToolCard::is_deferred) { tools.to_vec() } else { left }
}

/// A choice as it can be sent: a tool that is called through the dispatcher is named by it.
pub(crate) fn choice<'c>(choice: &'c ToolChoice, tools: &[ToolCard]) -> Cow<'c, ToolChoice> {
    let Some(dispatcher) = tools.iter().find(|card| card.is_dispatcher()) else {
        return Cow::Borrowed(choice);
    };
    let on_wire = |name: &String| match tools.iter().any(|card| card.name() == name) {
        true => name.clone(),
        false => dispatcher.name().to_owned(),
    };
    match choice {
        ToolChoice::Tool(name) => Cow::Owned(ToolChoice::Tool(on_wire(name))),
        ToolChoice::Allowed { tools: names, required } => {
            let mut named: Vec<String> = Vec::new();
            for name in names.iter().map(on_wire) {
                if !named.contains(&name) {
                    named.push(name);
                }
            }
            Cow::Owned(ToolChoice::Allowed { tools: named, required: *required })
        }
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::None | _ => Cow::Borrowed(choice),
    }
}

#[cfg(test)]
mod tests {
    use agent_core::RawJson;

    use super::*;

    fn cards() -> Vec<ToolCard> {
        let card = |name: &str| ToolCard::new(name, "", &RawJson::empty_object()).unwrap();
        vec![
            card("read"),
            card("find"),
            card("do").dispatcher(),
            card("mail").deferred(),
            card("pay").deferred(),
        ]
    }

    fn model(deferred_tools: bool) -> ModelProfile {
        ModelProfile { deferred_tools, ..ModelProfile::conservative("p", "m") }
    }

    fn names(cards: &[ToolCard]) -> String {
        cards.iter().map(ToolCard::name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn who_can_load_later_is_sent_all_but_the_dispatcher() {
        let listed = Listed::of(cards());
        for marks in [true, false] {
            let expect = if marks { "read find mail pay" } else { "read find do" };
            assert_eq!(names(listed.sent_to(&model(marks))), expect);
            assert_eq!(names(&sent_of(&cards(), &model(marks))), expect);
            let plain = Listed::of(cards()[..2].to_vec());
            assert_eq!(names(plain.sent_to(&model(marks))), "read find");
            assert!(std::ptr::eq(plain.sent_to(&model(marks)), plain.all()), "nothing is copied");
        }
    }

    #[test]
    fn narrowing_keeps_what_is_found_callable() {
        let listed = Listed::of(cards());
        let check = |marks: bool, active: &[&str], expect: &str| {
            let active = active.iter().map(ToString::to_string).collect();
            assert_eq!(names(&narrowed(listed.sent_to(&model(marks)), &active)), expect, "{active:?}");
        };
        check(true, &["read"], "read mail pay");
        check(true, &["mail"], "read find mail pay");
        check(false, &["read"], "read");
        check(false, &["read", "mail"], "read do");
        check(false, &["mail"], "do");
    }

    #[test]
    fn a_choice_names_what_is_on_the_wire() {
        let listed = Listed::of(cards());
        let check = |marks: bool, given: ToolChoice, expect: ToolChoice| {
            assert_eq!(*choice(&given, listed.sent_to(&model(marks))), expect);
        };
        let one = |name: &str| ToolChoice::Tool(name.to_owned());
        let of = |names: &[&str]| ToolChoice::Allowed {
            tools: names.iter().map(ToString::to_string).collect(),
            required: true,
        };
        check(false, one("mail"), one("do"));
        check(true, one("mail"), one("mail"));
        check(false, one("read"), one("read"));
        check(false, of(&["read", "mail", "pay"]), of(&["read", "do"]));
        check(false, ToolChoice::Auto, ToolChoice::Auto);
    }
}
