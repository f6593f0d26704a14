//! A value that is worked out once a session.

/// A value that is worked out once and then stays, until it is invalidated on purpose.
///
/// The one who works it out may be asynchronous, so the memo takes no closure: while [`Self::get`] gives `None`, work the
/// value out and [`Self::fill`] it in.
///
/// ```
/// use agent_prompt::Memo;
///
/// let mut memo = Memo::new();
/// assert_eq!(memo.get(), None);
/// assert_eq!(memo.fill("first look"), &"first look");
/// assert_eq!(memo.fill("second look"), &"first look", "what was said stays said");
/// memo.invalidate();
/// assert_eq!(memo.fill("third look"), &"third look");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memo<T>(Option<T>);

impl<T> Memo<T> {
    /// A memo without a value.
    pub fn new() -> Self {
        Self(None)
    }

    /// The value, when it was worked out and not invalidated since.
    pub fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// Takes the value unless there is one already; gives the one that counts.
    pub fn fill(&mut self, value: T) -> &T {
        self.0.get_or_insert(value)
    }

    /// Forgets the value, so that it is worked out again.
    pub fn invalidate(&mut self) {
        self.0 = None;
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self::new()
    }
}
