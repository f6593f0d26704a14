//! Cancellation that reaches the leaves, without a runtime.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use event_listener::{Event, listener};

/// A signal to stop, cheap to clone, that can be waited for in any runtime.
///
/// Cancelling a token cancels every child made from it; a child cancels nothing above it. Once cancelled, a
/// token stays so.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    wake: Event,
    children: Mutex<Vec<Weak<Inner>>>,
}

impl Cancel {
    /// A token that nothing cancels yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is cancelled together with this one, or alone.
    #[must_use]
    pub fn child(&self) -> Self {
        let child = Self::new();
        let mut children = self.0.children.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_cancelled() {
            child.0.cancelled.store(true, Ordering::SeqCst);
        } else {
            children.retain(|other| other.strong_count() > 0);
            children.push(Arc::downgrade(&child.0));
        }
        drop(children);
        child
    }

    /// Cancels this token and its children.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until it is cancelled; dropping the wait is safe.
    pub async fn cancelled(&self) {
        while !self.is_cancelled() {
            listener!(self.0.wake => listener);
            if self.is_cancelled() {
                return;
            }
            listener.await;
        }
    }
}

impl Inner {
    fn cancel(&self) {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        self.cancelled.store(true, Ordering::SeqCst);
        let children = std::mem::take(&mut *children);
        self.wake.notify(usize::MAX);
        for child in children.iter().filter_map(Weak::upgrade) {
            child.cancel();
        }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Wake, Waker};

    use super::*;

    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn cancelling_wakes_waiters_below_and_not_above() {
        let top = Cancel::new();
        let (left, right) = (top.child(), top.child());
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let mut wait = pin!(right.cancelled());
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        left.cancel();
        assert!(!top.is_cancelled() && !right.is_cancelled());
        top.cancel();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        assert!(top.child().is_cancelled(), "a late child is born cancelled");
    }
}
