//! Text that changes by itself: clocks, dates, identifiers, paths. No place for it in a prefix.

use agent_core::{ceil_boundary, floor_boundary};
use serde::Serialize;

use crate::{Level, Request};

/// A kind of text that changes without anyone changing the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Volatile {
    /// A time of day.
    Clock,
    /// A day.
    Date,
    /// Seconds or milliseconds since 1970.
    Timestamp,
    /// "3 minutes ago".
    RelativeTime,
    /// A UUID.
    Uuid,
    /// A long hexadecimal name: a hash, a session's or request's id.
    Token,
    /// A path of one machine or one run.
    Path,
    /// A number by itself.
    Counter,
}

impl Volatile {
    /// Its name in JSON and in reports, for example `relative_time`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Date => "date",
            Self::Timestamp => "timestamp",
            Self::RelativeTime => "relative_time",
            Self::Uuid => "uuid",
            Self::Token => "token",
            Self::Path => "path",
            Self::Counter => "counter",
        }
    }

    /// In a sentence that begins with "It looks like".
    pub(super) fn described(self) -> &'static str {
        match self {
            Self::Clock => "a time of day",
            Self::Date => "a date",
            Self::Timestamp => "a timestamp",
            Self::RelativeTime => "a relative time",
            Self::Uuid => "a UUID",
            Self::Token => "an identifier made for one session or request",
            Self::Path => "a path of one machine or run",
            Self::Counter => "a counter",
        }
    }
}

/// A place in the stable start of a prompt that will probably change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Suspect {
    /// The block.
    pub path: String,
    /// What it looks like.
    pub looks_like: Volatile,
    /// The words around it.
    pub excerpt: String,
}

/// Looks through tools and system text for what looks volatile: a check before the first cache miss.
pub fn suspects(request: &Request) -> Vec<Suspect> {
    let stable = request.blocks.iter().filter(|block| block.level < Level::Messages);
    let found = stable.filter_map(|block| {
        let text = block.text();
        let (looks_like, at) = find(&text)?;
        Some(Suspect { path: block.path.clone(), looks_like, excerpt: window(&text, at, at, 24) })
    });
    found.collect()
}

/// The words that differ, before and after, and what they look like.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) before: String,
    pub(super) after: String,
    pub(super) looks_like: Option<Volatile>,
}

impl Change {
    pub(super) fn between(before: &str, after: &str) -> Self {
        let head = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        let room = before.len().min(after.len()) - head;
        let ends = before.bytes().rev().zip(after.bytes().rev());
        let tail = ends.take(room).take_while(|(a, b)| a == b).count();
        let words = |text: &str, around| window(text, head, text.len() - tail, around);
        let looks = |around| classify(&words(before, around)).or_else(|| classify(&words(after, around)));
        // A number alone says little: words around it may say more.
        let near = looks(0).filter(|found| *found != Volatile::Counter);
        let looks_like = near.or_else(|| looks(20)).or_else(|| looks(0));
        Self { before: words(before, 0), after: words(after, 0), looks_like }
    }
}

/// Part of a text, widened to whole words, in one line, and cut to a length that is read.
fn window(text: &str, from: usize, to: usize, around: usize) -> String {
    let from = floor_boundary(text, from.saturating_sub(around));
    let to = ceil_boundary(text, (to + around).min(text.len()));
    let is_edge = |c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '(' | ')' | ',');
    let start = text[..from].rfind(is_edge).map_or(0, |at| ceil_boundary(text, at + 1));
    let end = text[to..].find(is_edge).map_or(text.len(), |at| to + at);
    let words = text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    if words.len() <= MOST { words } else { format!("{}…", &words[..floor_boundary(&words, MOST)]) }
}

fn classify(text: &str) -> Option<Volatile> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    find(text).map(|(found, _)| found).or_else(|| number(text.trim()).then_some(Volatile::Counter))
}

/// The first kind found, the surer ones first, and where.
fn find(text: &str) -> Option<(Volatile, usize)> {
    let lower = text.to_ascii_lowercase();
    let kinds: [(Volatile, Finder); 7] = [
        (Volatile::Uuid, uuid),
        (Volatile::Clock, clock),
        (Volatile::Date, date),
        (Volatile::RelativeTime, relative),
        (Volatile::Path, path),
        (Volatile::Timestamp, timestamp),
        (Volatile::Token, token),
    ];
    kinds.into_iter().find_map(|(kind, finder)| Some((kind, finder(&lower)?)))
}

/// Where something stands in a text of small letters.
type Finder = fn(&str) -> Option<usize>;

/// Runs of letters, digits and the marks given.
fn words<'t>(text: &'t str, marks: &'t [char]) -> impl Iterator<Item = (usize, &'t str)> {
    let split = text.split(move |c: char| !(c.is_ascii_alphanumeric() || marks.contains(&c)));
    let words = split.filter(|word| !word.is_empty());
    words.map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

fn digits(text: &str, least: usize, most: usize) -> Option<u32> {
    let good = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if good { text.parse().ok() } else { None }
}

/// `9:05`, `23:59:59`, also behind the `t` of a date.
fn clock(text: &str) -> Option<usize> {
    let is_clock = |word: &str| {
        let word = word.rsplit('t').next().unwrap_or(word);
        let mut parts = word.split(':');
        let hour = parts.next().and_then(|it| digits(it, 1, 2)).is_some_and(|hour| hour < 24);
        let minute = parts.next().map(|it| it.trim_end_matches(|c: char| c.is_ascii_alphabetic()));
        let minute = minute.and_then(|it| digits(it, 2, 2));
        hour && minute.is_some_and(|minute| minute < 60)
    };
    words(text, &[':']).find(|(_, word)| is_clock(word)).map(|(at, _)| at)
}

/// `2026-11-30`, `2026/11/30`, `30 november`, `monday`.
fn date(text: &str) -> Option<usize> {
    let numeric = |word: &str| {
        let parts: Vec<&str> = word.split(['-', '/']).collect();
        let [year, month, day, ..] = parts[..] else { return false };
        let day = day.get(..2).and_then(|it| digits(it, 2, 2));
        digits(year, 4, 4).is_some_and(|it| (1970..2200).contains(&it))
            && digits(month, 2, 2).is_some_and(|it| (1..=12).contains(&it))
            && day.is_some_and(|it| (1..=31).contains(&it))
    };
    if let Some((at, _)) = words(text, &['-', '/']).find(|(_, word)| numeric(word)) {
        return Some(at);
    }
    let listed: Vec<(usize, &str)> = words(text, &[]).collect();
    let is_day = |word: Option<&(usize, &str)>| word.is_some_and(|(_, word)| digits(word, 1, 4).is_some());
    let named = listed.iter().enumerate().find(|(at, (_, word))| {
        let beside = is_day(listed.get(at + 1)) || at.checked_sub(1).is_some_and(|at| is_day(listed.get(at)));
        MONTHS.contains(word) && beside
    });
    named.map(|(_, (at, _))| *at)
}

fn relative(text: &str) -> Option<usize> {
    let listed: Vec<(usize, &str)> = words(text, &[]).collect();
    let found = listed.windows(3).find(|three| {
        let unit = three[1].1.trim_end_matches('s');
        digits(three[0].1, 1, 6).is_some() && UNITS.contains(&unit) && three[2].1 == "ago"
    });
    found.map(|three| three[0].0)
}

fn timestamp(text: &str) -> Option<usize> {
    let is_stamp = |word: &str| {
        matches!(word.len(), 10 | 13)
            && word.bytes().all(|byte| byte.is_ascii_digit())
            && ["15", "16", "17", "18", "19"].iter().any(|start| word.starts_with(start))
    };
    words(text, &[]).find(|(_, word)| is_stamp(word)).map(|(at, _)| at)
}

fn uuid(text: &str) -> Option<usize> {
    let is_uuid = |word: &str| {
        let parts: Vec<&str> = word.split('-').collect();
        let sizes = parts.iter().map(|part| part.len());
        sizes.eq([8, 4, 4, 4, 12]) && parts.iter().all(|part| is_hex(part))
    };
    words(text, &['-']).find(|(_, word)| is_uuid(word)).map(|(at, _)| at)
}

fn token(text: &str) -> Option<usize> {
    let is_token = |word: &str| {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        word.len() >= 16 && is_hex(word) && digits > 0 && digits < word.len()
    };
    words(text, &[]).find(|(_, word)| is_token(word)).map(|(at, _)| at)
}

fn path(text: &str) -> Option<usize> {
    let windows = text.find("\\users\\");
    windows.or_else(|| ROOTS.iter().find_map(|root| text.find(&format!("/{root}/"))))
}

fn is_hex(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Bytes of an excerpt.
const MOST: usize = 90;
/// Without may, which is a verb more often.
const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "jan",
    "feb",
    "mar",
    "apr",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
];
const UNITS: &[&str] = &["second", "sec", "minute", "min", "hour", "day", "week", "month"];
/// Folders at the root of a path that belong to one machine, one user or one run.
const ROOTS: &[&str] = &["home", "private", "tmp", "users", "var/folders", "workspace"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_recognised() {
        let check = |before: &str, after: &str, expect: Option<Volatile>| {
            let change = Change::between(before, after);
            assert_eq!(change.looks_like, expect, "{change:?}");
        };
        check("It is 12:04:05 now.", "It is 12:04:06 now.", Some(Volatile::Clock));
        check("Now: 2026-11-30T23:59:59Z", "Now: 2026-12-01T00:00:01Z", Some(Volatile::Clock));
        check("Today is 2026-11-30.", "Today is 2026-12-01.", Some(Volatile::Date));
        check("Today is 30 November.", "Today is 31 November.", Some(Volatile::Date));
        check("Seen 3 minutes ago", "Seen 4 minutes ago", Some(Volatile::RelativeTime));
        check("at 1764500000", "at 1764500001", Some(Volatile::Timestamp));
        check(
            "id 0198f2aa-7b11-7c22-8d33-1234567890ab",
            "id 0198f2aa-7b11-7c22-8d33-1234567890ac",
            Some(Volatile::Uuid),
        );
        check("cch=4fd1c2a90b7e6d55", "cch=4fd1c2a90b7e6d56", Some(Volatile::Token));
        check("in /tmp/run-1/x", "in /tmp/run-2/x", Some(Volatile::Path));
        check("request 7 of many", "request 8 of many", Some(Volatile::Counter));
        check("agents: ask, plan", "agents: ask", None);
        check("Be brief — é", "Be brief — è", None);
    }

    #[test]
    fn a_kind_has_one_name() {
        let all = [
            Volatile::Clock,
            Volatile::Date,
            Volatile::Timestamp,
            Volatile::RelativeTime,
            Volatile::Uuid,
            Volatile::Token,
            Volatile::Path,
            Volatile::Counter,
        ];
        for kind in all {
            assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{}\"", kind.name()));
        }
    }

    #[test]
    fn plain_instructions_are_no_suspects() {
        let check = |text: &str, expect: Option<Volatile>| {
            assert_eq!(find(text).map(|(kind, _)| kind), expect, "{text}");
        };
        check("You may use 3 tools. See rule 4:2 and section 1:1000.", None);
        check("You may 2 things", None);
        check("ratio 16:9", None);
        check("Answer in 2 sentences. The year 1990 matters.", None);
    }
}
