//! What one tool keeps in a session, from call to call and from process to process.

use std::sync::Arc;

use agent_core::{RawJson, Slots};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{SlotsHandle, ToolError};

/// One JSON value of a tool, under the tool's [`state_key`](crate::Tool::state_key) (requirement T11). It is journaled with the
/// result of the call that changed it, so keep it small.
///
/// ```
/// use agent_tools::ToolCx;
///
/// let cx = ToolCx::for_test("session", "call_1")?;
/// assert_eq!(cx.state.get::<u32>()?, None);
/// assert_eq!(cx.state.update(|seen: Option<u32>| seen.unwrap_or(0) + 1)?, 1);
/// assert_eq!(cx.state.get::<u32>()?, Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ToolState(Arc<Place>);

#[derive(Debug)]
struct Place {
    key: String,
    slots: SlotsHandle,
}

impl ToolState {
    /// What is kept under this key.
    pub fn new(key: impl Into<String>, slots: SlotsHandle) -> Self {
        Self(Arc::new(Place { key: key.into(), slots }))
    }

    /// The value; `None` before the first one is kept.
    ///
    /// # Errors
    /// When what is kept is no `T`.
    pub fn get<T: DeserializeOwned>(&self) -> Result<Option<T>, ToolError> {
        self.0.slots.read(|slots| self.stored(slots))
    }

    /// Keeps a value in place of the one before.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn set<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), ToolError> {
        let json = RawJson::of(value).map_err(|cause| self.fault(cause))?;
        self.0.slots.update(|slots| slots.tools.insert(self.0.key.clone(), json));
        Ok(())
    }

    /// Keeps what becomes of the value, with no other call of the session in between; gives it back.
    ///
    /// # Errors
    /// When what is kept is no `T`, or the new one cannot be written as JSON; then nothing changes.
    pub fn update<T: Serialize + DeserializeOwned>(
        &self,
        change: impl FnOnce(Option<T>) -> T,
    ) -> Result<T, ToolError> {
        self.0.slots.update(|slots| {
            let changed = change(self.stored(slots)?);
            let json = RawJson::of(&changed).map_err(|cause| self.fault(cause))?;
            slots.tools.insert(self.0.key.clone(), json);
            Ok(changed)
        })
    }

    /// Keeps nothing any more.
    pub fn clear(&self) {
        self.0.slots.update(|slots| slots.tools.remove(&self.0.key));
    }

    fn stored<T: DeserializeOwned>(&self, slots: &Slots) -> Result<Option<T>, ToolError> {
        slots.tools.get(&self.0.key).map(RawJson::to).transpose().map_err(|cause| self.fault(cause))
    }

    fn fault(&self, cause: serde_json::Error) -> ToolError {
        ToolError::State { key: self.0.key.clone(), cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_apart_and_what_does_not_fit_changes_nothing() {
        let slots = SlotsHandle::default();
        let (one, other) = (ToolState::new("tool:a", slots.clone()), ToolState::new("tool:b", slots.clone()));
        one.set(&7).unwrap();
        assert_eq!((one.get::<u8>().unwrap(), other.get::<u8>().unwrap()), (Some(7), None));
        let version = slots.version();
        let misfit = one.update(|_: Option<String>| String::new()).unwrap_err();
        insta::assert_snapshot!(misfit, @"What this tool keeps in the session under `tool:a` cannot be used: invalid type: integer `7`, expected a string at line 1 column 1. Do not repeat the call; tell the user that the tool must be mended.");
        one.set(&7).unwrap();
        assert_eq!(slots.version(), version, "nothing is journaled when nothing changed");
        one.clear();
        assert_eq!(one.get::<u8>().unwrap(), None);
        assert_eq!(serde_json::to_value(slots.snapshot()).unwrap().get("tools"), None);
    }
}
