//! Why one request read less from the cache than the one before left in it, told from the two bodies and a time.

use std::time::Duration;

use agent_core::Ttl;
use serde_json::value::RawValue;

use super::compare::{Side, first_difference};
use super::{Cause, Divergence};
use crate::prefix::Prefix;
use crate::request::{array, object};
use crate::{Estimate, Missed, Request, RuleBook, Scheme, Simulator};

/// Two requests of one session, sent one after the other and both answered.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "an argument record, written as a literal by drivers")]
pub struct Sent<'a> {
    /// The body of the earlier one; none when it is not known, for example because another process sent it.
    pub before: Option<&'a [u8]>,
    /// The body of the later one, which read less than the earlier one had left in the cache.
    pub after: &'a [u8],
    /// How long after the earlier one it was sent, where that is known.
    pub age: Option<Duration>,
    /// How long the end of the conversation was marked to live.
    pub ttl: Ttl,
}

/// Why less was read than was there (requirement A7).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The first segment that is another one than before: `tools[3]`, `system[1]`, `messages[12].content[0]`, or
    /// a setting's name. None when the bytes are the same, or the earlier request is not known.
    pub segment: Option<String>,
    /// The cause in one word: [`Cause::name`], `clock_in_system` and the like for words in the system text that
    /// change by themselves, or `unknown`.
    pub cause: String,
    /// What happened and what to do, in sentences.
    pub message: String,
}

/// Says why the later request read less than the earlier one had left: its bytes changed, the entry ran out, it lies too
/// far back, or the provider dropped it.
///
/// Bodies of formats that [`Request::read`] does not know are compared member by member.
///
/// ```
/// use std::time::Duration;
/// use agent_cache::{RuleBook, Sent, loss};
/// use agent_core::Ttl;
///
/// let body = |clock: &str| {
///     format!(r#"{{"model":"claude-opus-5","system":"It is {clock}.","messages":[{{"role":"user","content":"Hi"}}]}}"#)
/// };
/// let (before, after) = (body("12:04:05"), body("12:04:06"));
/// let sent = Sent {
///     before: Some(before.as_bytes()),
///     after: after.as_bytes(),
///     age: Some(Duration::from_secs(1)),
///     ttl: Ttl::FiveMinutes,
/// };
/// let found = loss(&RuleBook::builtin(), "anthropic", &sent);
/// assert_eq!((found.segment.as_deref(), found.cause.as_str()), (Some("system"), "clock_in_system"));
/// ```
pub fn loss(book: &RuleBook, provider: &str, sent: &Sent<'_>) -> Loss {
    let after = Request::read(sent.after, None).ok();
    let known_before = sent.before.filter(|body| std::str::from_utf8(body).ok().and_then(object).is_some());
    let before = known_before.and_then(|body| Request::read(body, None).ok());
    let provider = known(book, provider, after.as_ref());
    let pair = before.as_ref().zip(after.as_ref()).filter(|(before, after)| before.format == after.format);
    let changed = match pair {
        Some((before, after)) => changed(book, provider, before, after),
        None => known_before.and_then(|before| changed_member(before, sent.after)),
    };
    if let Some(found) = changed {
        return Loss::changed(found);
    }
    let model = after.as_ref().map_or("", |request| request.model.as_str());
    let lives = Duration::from_secs(book.rules(provider, model).seconds(sent.ttl));
    if let Some(age) = sent.age.filter(|age| !lives.is_zero() && *age > lives) {
        let (age, lives) = (spoken(age), spoken(lives));
        let what =
            format!("The last request was sent {age} before this one, and what it left is kept for {lives}.");
        return Loss::unchanged(Cause::Expired, &what);
    }
    let missed = pair.and_then(|(before, after)| missed(book, provider, (before, after), sent.age));
    match (missed, known_before) {
        (Some(cause), _) => {
            Loss::unchanged(cause, "All that the last request sent was sent again, byte for byte.")
        }
        (None, Some(_)) => {
            let what = "All that the last request sent was sent again, byte for byte, and the provider did not read it.";
            Loss::unchanged(Cause::ServiceMiss, what)
        }
        (None, None) => Loss { segment: None, cause: "unknown".into(), message: UNKNOWN.into() },
    }
}

const UNKNOWN: &str = "The last request is not known here, as after a restart, so that this one cannot be held against it. When it happens again without a pause, log the requests of both processes and compare them with `agent cache audit`.";

/// A provider with rules: the one named, or whose format the request has.
fn known<'a>(book: &RuleBook, provider: &'a str, request: Option<&Request>) -> &'a str {
    let Some(request) = request else { return provider };
    if book.rules(provider, &request.model).scheme != Scheme::None {
        return provider;
    }
    request.format.provider()
}

fn changed(book: &RuleBook, provider: &str, before: &Request, after: &Request) -> Option<Divergence> {
    let rules = book.rules(provider, &after.model);
    let prefix = |request| Prefix::of(request, &rules, &Estimate::default());
    let (old, new) = (prefix(before), prefix(after));
    let found = first_difference(
        Side { request: before, prefix: &old },
        Side { request: after, prefix: &new },
        &rules,
    )?;
    // A session is one conversation, whatever became of its first message.
    let is_new = found.cause == Cause::NewConversation;
    Some(if is_new { Divergence::new(found.path, Cause::MessageEdited) } else { found })
}

/// What the provider's rules say of an entry that is there and was not read.
fn missed(
    book: &RuleBook,
    provider: &str,
    (before, after): (&Request, &Request),
    age: Option<Duration>,
) -> Option<Cause> {
    let mut simulator = Simulator::new(book.clone(), provider);
    simulator.ask(before, Duration::ZERO).ok()?;
    let outcome = simulator.ask(after, age.unwrap_or_default()).ok()?;
    let is_marked = simulator.rules(after).scheme == Scheme::Marked;
    match outcome.missed? {
        Missed::BeyondLookback { .. } => Some(Cause::BeyondLookback),
        Missed::NoMarker if is_marked => Some(Cause::NoMarker),
        // How many tokens there are is only estimated here, and the provider did keep them.
        Missed::NoMarker
        | Missed::BelowMinimum { .. }
        | Missed::Expired { .. }
        | Missed::NotYetReadable { .. } => None,
    }
}

/// The first member of a body, or element of its list, that is another one; lists may grow.
fn changed_member(before: &[u8], after: &[u8]) -> Option<Divergence> {
    let (before, after) = (std::str::from_utf8(before).ok()?, std::str::from_utf8(after).ok()?);
    let (before, after) = (object(before)?, object(after)?);
    before.0.iter().find_map(|(key, old)| {
        let new = after.get(key);
        let at = new.and_then(|new| first_element(old, new));
        let differs = new.is_none_or(|new| new.get() != old.get());
        let path = match at {
            Some(None) => return None,
            Some(Some(at)) => format!("{key}[{at}]"),
            None if differs => key.clone(),
            None => return None,
        };
        Some(Divergence::new(path, cause_of(key)))
    })
}

/// Of two lists the first element that is another one, if any; `None` when they are no lists.
fn first_element(old: &RawValue, new: &RawValue) -> Option<Option<usize>> {
    let (old, new) = (array(old)?, array(new)?);
    let same = old.iter().zip(&new).take_while(|(old, new)| old.get() == new.get()).count();
    Some((same < old.len()).then_some(same))
}

fn cause_of(key: &str) -> Cause {
    match key {
        "model" => Cause::ModelChanged,
        "tools" => Cause::ToolChanged,
        "system" | "systemInstruction" | "system_instruction" => Cause::SystemChanged,
        "contents" | "messages" | "input" => Cause::MessageEdited,
        _ => Cause::SettingChanged,
    }
}

impl Loss {
    fn changed(found: Divergence) -> Self {
        let Divergence { path, cause, looks_like, before, after, advice } = found;
        let what = match (before.as_str(), after.as_str()) {
            ("", "") => format!("`{path}` is not what it was in the last request."),
            ("", after) => format!("`{path}` is new in this place: {after}."),
            (before, "") => format!("`{path}` is gone; it was {before}."),
            (before, after) => {
                format!("`{path}` is not what it was in the last request: {before} became {after}.")
            }
        };
        let name = match looks_like {
            Some(looks_like) if cause == Cause::SystemChanged => format!("{}_in_system", looks_like.name()),
            Some(_) | None => cause.name().to_owned(),
        };
        Self { segment: Some(path), cause: name, message: format!("{what} {advice}") }
    }

    fn unchanged(cause: Cause, what: &str) -> Self {
        Self { segment: None, cause: cause.name().to_owned(), message: format!("{what} {}", cause.advice()) }
    }
}

/// A time as people say it.
fn spoken(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of Anthropic's with these tools, system text and conversation.
    fn claude(tools: &str, system: &str, messages: &str) -> String {
        format!(
            r#"{{"model":"claude-opus-5-5","tools":[{tools}],"system":"{system}","messages":[{messages}]}}"#
        )
    }

    fn gemini(system: &str, contents: &str) -> String {
        format!(r#"{{"contents":[{contents}],"systemInstruction":{{"parts":[{{"text":"{system}"}}]}}}}"#)
    }

    #[track_caller]
    fn check(provider: &str, (before, after): (&str, &str), age: u64, expect: (&str, &str)) -> String {
        let sent = Sent {
            before: (!before.is_empty()).then_some(before.as_bytes()),
            after: after.as_bytes(),
            age: Some(Duration::from_secs(age)),
            ttl: Ttl::FiveMinutes,
        };
        let found = loss(&RuleBook::builtin(), provider, &sent);
        assert_eq!((found.cause.as_str(), found.segment.as_deref().unwrap_or("-")), expect, "{found:?}");
        found.message
    }

    const HI: &str = r#"{"role":"user","content":"Hi"}"#;
    const MORE: &str = r#"{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes?"}"#;
    const READ: &str = r#"{"name":"read","input_schema":{}}"#;
    const EDIT: &str = r#"{"name":"edit","input_schema":{}}"#;

    #[test]
    fn changed_bytes_are_named() {
        let one = claude(&format!("{READ},{EDIT}"), "It is 12:04:05.", HI);
        let tools = claude(&format!("{EDIT},{READ}"), "It is 12:04:05.", MORE);
        check("anthropic", (&one, &tools), 1, ("tools_reordered", "tools[0]"));
        let clock = claude(&format!("{READ},{EDIT}"), "It is 12:05:06.", MORE);
        let said = check("anthropic", (&one, &clock), 1, ("clock_in_system", "system"));
        assert!(said.contains("It looks like a time of day."), "{said}");
        // A gateway that nothing is known of takes the rules of the format.
        check("gateway", (&one, &clock), 1, ("clock_in_system", "system"));
        // What changed is the cause, however old the entry.
        check("anthropic", (&one, &clock), 9_999, ("clock_in_system", "system"));
        let edited = claude(&format!("{READ},{EDIT}"), "It is 12:04:05.", &MORE.replace("Hi", "Ho"));
        check("anthropic", (&one, &edited), 1, ("message_edited", "messages[0].content"));
    }

    #[test]
    fn the_same_bytes_ran_out_or_were_dropped() {
        let (one, more) = (claude("", "Be brief.", HI), claude("", "Be brief.", MORE));
        let said = check("anthropic", (&one, &more), 301, ("expired", "-"));
        assert!(said.starts_with("The last request was sent 5 min before this one"), "{said}");
        let said = check("anthropic", ("", &more), 7_300, ("expired", "-"));
        assert!(said.contains("2 h before"), "{said}");
        let marked = |body: &str| body.replace(r#""system":"Be brief.""#, MARKED_SYSTEM);
        let said = check("anthropic", (&marked(&one), &marked(&more)), 299, ("service_miss", "-"));
        assert!(said.contains("byte for byte, and the provider did not read it"), "{said}");
        check("anthropic", (&one, &more), 299, ("no_marker", "-"));
        let said = check("anthropic", ("", &more), 299, ("unknown", "-"));
        assert!(said.contains("not known here"), "{said}");
    }

    const MARKED_SYSTEM: &str =
        r#""system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]"#;

    #[test]
    fn other_formats_are_compared_member_by_member() {
        let one = gemini("Be brief.", r#"{"role":"user","parts":[]}"#);
        let more = gemini("Be brief.", r#"{"role":"user","parts":[]},{"role":"model","parts":[]}"#);
        check("gemini", (&one, &more), 1, ("service_miss", "-"));
        check("gemini", (&one, &gemini("Be loud.", "")), 1, ("message_edited", "contents[0]"));
        check("gemini", (&one, &more.replace("brief", "loud")), 1, ("system_changed", "systemInstruction"));
        check("gemini", ("not JSON", &more), 1, ("unknown", "-"));
    }
}
