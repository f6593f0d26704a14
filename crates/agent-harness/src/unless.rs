//! Work that ends when it is cancelled.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use agent_core::Cancel;

/// What the work gives; `None` once it is cancelled, also when the work would be done at that very moment.
///
/// The signal is only waited for while the work waits.
pub(crate) async fn unless_cancelled<T>(cancel: &Cancel, work: impl Future<Output = T>) -> Option<T> {
    let (mut cancelled, mut work) = (pin!(cancel.cancelled()), pin!(work));
    poll_fn(|cx| {
        if cancel.is_cancelled() {
            return Poll::Ready(None);
        }
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        cancelled.as_mut().poll(cx).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    /// Polls once, cancels when told to, polls again: what came of each poll.
    fn check(cancels: bool, ready_at: u32, expect: [Poll<Option<u32>>; 2]) {
        let (cancel, mut polls) = (Cancel::new(), 0);
        let work = poll_fn(|_| {
            polls += 1;
            if polls > ready_at { Poll::Ready(polls) } else { Poll::Pending }
        });
        let mut work = pin!(unless_cancelled(&cancel, work));
        let mut cx = Context::from_waker(Waker::noop());
        let first = work.as_mut().poll(&mut cx);
        if cancels {
            cancel.cancel();
        }
        assert_eq!([first, work.as_mut().poll(&mut cx)], expect, "cancels {cancels}, ready at {ready_at}");
    }

    #[test]
    fn a_signal_comes_before_what_is_done_by_then() {
        check(false, 1, [Poll::Pending, Poll::Ready(Some(2))]);
        check(false, 9, [Poll::Pending, Poll::Pending]);
        check(true, 9, [Poll::Pending, Poll::Ready(None)]);
        check(true, 1, [Poll::Pending, Poll::Ready(None)]);
    }

    #[tokio::test]
    async fn a_signal_wakes_work_that_waits() {
        let cancel = Cancel::new();
        let waits = unless_cancelled(&cancel, std::future::pending::<()>());
        let (waited, ()) = tokio::join!(waits, async { cancel.cancel() });
        assert_eq!(waited, None);
    }
}
