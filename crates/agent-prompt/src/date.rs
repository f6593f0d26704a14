//! Today's date: in the user's first message, and appended when it changes (requirement A3).

use std::fmt;

use agent_core::{EmptyMessage, Entry, HistoryView, Note, NoteKind, Rendered, Text, UserMessage, UserPart};

use crate::stability::Turn;
use crate::value::Dynamic;

/// A day of the calendar. Where it is today is for the caller to know; nothing here reads a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

/// A day that no calendar has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no day {year}-{month}-{day}; give a year up to 9999, a month 1-12 and a day of that month")]
#[non_exhaustive]
pub struct NoSuchDay {
    /// The year given.
    pub year: u16,
    /// The month given.
    pub month: u8,
    /// The day given.
    pub day: u8,
}

const BEFORE: &str = "Today's date is ";
const AFTER: &str = ".";
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

impl Date {
    /// A day of the Gregorian calendar, year 0 to 9999.
    pub fn new(year: u16, month: u8, day: u8) -> Result<Self, NoSuchDay> {
        let is_a_day = year <= 9999 && (1..=month_length(year, month)).contains(&day);
        if is_a_day { Ok(Self { year, month, day }) } else { Err(NoSuchDay { year, month, day }) }
    }

    /// The day at a moment, in milliseconds since 1970 UTC, where clocks are `offset_minutes` ahead of UTC; `None` outside
    /// of the years 0 to 9999.
    pub fn at(unix_ms: i64, offset_minutes: i32) -> Option<Self> {
        let local_ms = unix_ms.checked_add(i64::from(offset_minutes) * MINUTE_MS)?;
        civil(local_ms.div_euclid(DAY_MS))
    }

    /// `Today's date is YYYY-MM-DD.`
    pub fn sentence(self) -> String {
        format!("{BEFORE}{self}{AFTER}")
    }

    /// The user's first message with the date in front, as a part of its own.
    pub fn open(self, message: &UserMessage) -> Result<UserMessage, EmptyMessage> {
        let date = Text::new(self.sentence()).map(UserPart::Text);
        UserMessage::new(date.into_iter().chain(message.parts().iter().cloned()).collect())
    }

    /// What the user said of a message that [`Self::open`] may have put a date in front of.
    pub fn opened(message: &UserMessage) -> &[UserPart] {
        match message.parts() {
            [UserPart::Text(first), rest @ ..]
                if !rest.is_empty() && Self::read(first.as_str()).is_some() =>
            {
                rest
            }
            parts => parts,
        }
    }

    /// The note to append when the model was last told another day.
    pub fn change_since(self, told: Self) -> Option<Note> {
        (self != told).then(|| self.note())
    }

    /// The date that the model knows from the conversation as it sees it: the last note of a date, or the beginning of
    /// a user message. `None` before the first message, and when a compaction hid it.
    pub fn told(view: HistoryView<'_>) -> Option<Self> {
        let dates = view.rendered().filter_map(|piece| match piece {
            Rendered::Entry { entry, .. } => Self::told_by(entry),
            Rendered::Summary { .. } | Rendered::Continue => None,
        });
        dates.last()
    }

    /// The note that tells the date: after a change, or when a compaction hid the first message.
    pub fn note(self) -> Note {
        Note { kind: NoteKind::Date, text: Text::or(self.sentence(), BEFORE) }
    }

    fn told_by(entry: &Entry) -> Option<Self> {
        match entry {
            Entry::User(message) => match message.parts().first() {
                Some(UserPart::Text(text)) => Self::read(text.as_str()),
                _ => None,
            },
            Entry::Note(note) if note.kind == NoteKind::Date => Self::read(note.text.as_str()),
            Entry::Note(_) | Entry::Step(_) | Entry::Boundary(_) => None,
        }
    }

    /// Reads exactly what [`Self::sentence`] writes.
    fn read(sentence: &str) -> Option<Self> {
        let digits = sentence.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
        let mut numbers = digits.splitn(3, '-');
        let (year, month, day) = (numbers.next()?, numbers.next()?, numbers.next()?);
        let date = Self::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()?;
        (date.sentence() == sentence).then_some(date)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// A date is told once a turn at most.
impl Dynamic for Date {
    type Lasts = Turn;

    fn render(&self) -> String {
        self.sentence()
    }
}

/// The day of the calendar that lies so many days after 1970-01-01.
///
/// Years are counted from March, so that the leap day is the last one: 146,097 days are 400 years.
fn civil(days: i64) -> Option<Date> {
    let days = days.checked_add(719_468)?;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    Date::new(u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?).ok()
}

fn month_length(year: u16, month: u8) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{AssistantPart, EntryId, History, Response, Rewrite, StepRecord};

    use super::*;

    fn date(year: u16, month: u8, day: u8) -> Date {
        Date::new(year, month, day).unwrap()
    }

    #[test]
    fn only_days_of_the_calendar() {
        for (year, month, day) in [
            (2026, 0, 1),
            (2026, 13, 1),
            (2026, 2, 29),
            (1900, 2, 29),
            (2026, 4, 31),
            (2026, 1, 0),
            (10000, 1, 1),
        ] {
            assert_eq!(Date::new(year, month, day), Err(NoSuchDay { year, month, day }));
        }
        for (year, month, day) in [(2024, 2, 29), (2000, 2, 29), (2026, 12, 31)] {
            assert_eq!(Date::read(&date(year, month, day).sentence()), Some(date(year, month, day)));
        }
        assert_eq!(date(2026, 3, 7).sentence(), "Today's date is 2026-03-07.");
    }

    #[test]
    fn the_day_of_a_moment() {
        let cases = [
            (0, 0, "1970-01-01"),
            (-1, 0, "1969-12-31"),
            (951_782_400_000, 0, "2000-02-29"),
            (1_796_083_199_999, 0, "2026-11-30"),
            (1_796_083_200_000, 0, "2026-12-01"),
            (1_796_083_200_000, -1, "2026-11-30"),
            (1_796_083_199_999, 60, "2026-12-01"),
        ];
        for (ms, offset, expect) in cases {
            assert_eq!(Date::at(ms, offset).unwrap().to_string(), expect, "{ms} {offset}");
        }
        assert_eq!((Date::at(i64::MAX, 60), Date::at(i64::MIN, 0)), (None, None));
    }

    proptest::proptest! {
        #[test]
        fn days_follow_each_other(day in -700_000i64..2_900_000) {
            let (one, next) = (civil(day).unwrap(), civil(day + 1).unwrap());
            let same_month = next.day == one.day + 1 && (next.year, next.month) == (one.year, one.month);
            let new_month = next.day == 1 && one.day == month_length(one.year, one.month);
            proptest::prop_assert!((same_month || new_month) && one < next);
        }
    }

    #[test]
    fn near_misses_are_not_dates() {
        for text in [
            "Today's date is 2026-3-07.",
            "Today's date is 2026-03-07",
            "today's date is 2026-03-07.",
            "Today's date is +2026-03-07.",
        ] {
            assert_eq!(Date::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_first_message_tells_the_date_and_a_change_is_appended() {
        let (first, second) = (date(2026, 11, 30), date(2026, 12, 1));
        let mut history = History::new();
        assert_eq!(Date::told(history.view()), None);
        let opened = first.open(&UserMessage::text("Go on.").unwrap()).unwrap();
        insta::assert_snapshot!(opened.plain(), @"
        Today's date is 2026-11-30.
        Go on.
        ");
        assert_eq!(Date::opened(&opened), UserMessage::text("Go on.").unwrap().parts());
        let undated = UserMessage::text("Today's date is 2026-11-30.").unwrap();
        assert_eq!(Date::opened(&undated), undated.parts(), "a user may say no more than the date");
        history.push(Entry::User(opened)).unwrap();
        let told = Date::told(history.view()).unwrap();
        assert_eq!((told, first.change_since(told)), (first, None), "the same day adds nothing");

        let note = second.change_since(told).unwrap();
        assert_eq!((note.kind, note.text.as_str()), (NoteKind::Date, "Today's date is 2026-12-01."));
        history.push(Entry::Note(note)).unwrap();
        assert_eq!(Date::told(history.view()), Some(second));

        // A stored history tells the same to another process.
        let stored: Vec<_> =
            history.entries().iter().map(|entry| agent_core::RawJson::of(entry).unwrap()).collect();
        assert_eq!(Date::told(History::load(&stored).unwrap().0.view()), Some(second));
    }

    #[test]
    fn a_date_hidden_by_a_compaction_is_not_known() {
        let mut history = History::new();
        history
            .push(Entry::User(date(2026, 11, 30).open(&UserMessage::text("Go.").unwrap()).unwrap()))
            .unwrap();
        let answer = Response::of(vec![AssistantPart::text("Done.").unwrap()]);
        history.push(Entry::Step(StepRecord::new(answer, vec![]).unwrap())).unwrap();
        let rewrite = Rewrite::Summary {
            text: Text::new("Work was done.").unwrap(),
            kept_from: EntryId::at(2),
            strip_reasoning: false,
        };
        history.push(Entry::Boundary(rewrite)).unwrap();
        assert_eq!(Date::told(history.view()), None);
        history.push(Entry::Note(date(2026, 11, 30).note())).unwrap();
        assert_eq!(Date::told(history.view()), Some(date(2026, 11, 30)));
    }
}
