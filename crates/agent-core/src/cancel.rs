//! Cancellation that reaches the leaves, without a runtime.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use event_listener::{Event, EventListener};

/// A signal to stop, cheap to clone, that can be waited for in any runtime.
///
/// Cancelling a token cancels every child made from it; a child cancels nothing above it. Once cancelled, a
/// token stays so.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

/// Waits until a token is cancelled.
///
/// It asks to be woken once for each task that polls it, and not at every poll: beside work that is polled for every
/// event of a stream, that costs more than most events do.
#[derive(Debug)]
#[must_use = "it waits for nothing until it is awaited"]
pub struct Cancelled {
    cancel: Cancel,
    /// Who is woken.
    asked: Option<(Waker, EventListener)>,
}

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
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { cancel: self.clone(), asked: None }
    }
}

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { cancel, asked } = self.get_mut();
        if cancel.is_cancelled() {
            return Poll::Ready(());
        }
        if asked.as_ref().is_some_and(|(waker, _)| waker.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        let mut listener = cancel.0.wake.listen();
        // What was cancelled in between wakes nobody who listens from now on.
        if cancel.is_cancelled() || Pin::new(&mut listener).poll(cx).is_ready() {
            return Poll::Ready(());
        }
        *asked = Some((cx.waker().clone(), listener));
        Poll::Pending
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

    #[test]
    fn who_polls_last_is_woken_once_however_often_it_polls() {
        let cancel = Cancel::new();
        let counts = [(); 2].map(|()| Arc::new(Count(AtomicUsize::new(0))));
        let wakers = counts.clone().map(Waker::from);
        let mut wait = pin!(cancel.cancelled());
        for waker in [&wakers[0], &wakers[0], &wakers[1], &wakers[1]] {
            assert!(wait.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        }
        cancel.cancel();
        assert_eq!(counts.map(|count| count.0.load(Ordering::SeqCst)), [0, 1]);
        assert!(wait.as_mut().poll(&mut Context::from_waker(&wakers[0])).is_ready());
    }
}
