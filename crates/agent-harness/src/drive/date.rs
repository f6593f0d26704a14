//! The day: told with the user's first message, and with a note when it changed (requirement A3).

use agent_core::{Entry, UserMessage};
use agent_prompt::Date;

use super::Drive;
use crate::HarnessError;

impl Drive {
    /// Tells the day where the model does not know it: in front of the words of a session's first message, and with
    /// a note ahead of a later one.
    pub(super) fn date_message(&mut self, message: UserMessage) -> Result<UserMessage, HarnessError> {
        match self.news().filter(|_| self.live.history.is_empty()) {
            Some(today) => {
                self.live.told = Some(today);
                Ok(today.open(&message)?)
            }
            None => {
                self.note_date()?;
                Ok(message)
            }
        }
    }

    /// Appends a note when the model does not know the day; whether it did.
    ///
    /// Entries are whole messages and steps, so that it never stands between a call and its result.
    pub(super) fn note_date(&mut self) -> Result<bool, HarnessError> {
        let Some(today) = self.news() else { return Ok(false) };
        self.live.push(Entry::Note(today.note()))?;
        self.live.told = Some(today);
        Ok(true)
    }

    /// Today, when the model is to know it and does not.
    fn news(&self) -> Option<Date> {
        if !self.config.tells_date {
            return None;
        }
        let clock = &self.config.clock;
        let today = Date::at(clock.now_ms(), clock.utc_offset_minutes())?;
        (self.live.told != Some(today)).then_some(today)
    }
}
