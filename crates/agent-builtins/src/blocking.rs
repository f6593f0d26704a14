//! Work that computes or blocks, on threads that may do so: the async threads only wait.

use agent_core::Cancel;

use crate::sandbox::SandboxError;

/// Does work on a thread that may block. The work is told to stop when the call is cancelled, and when nobody waits
/// for it any more: a thread cannot be taken away from it.
pub(crate) async fn blocking<T, W>(cancel: &Cancel, work: W) -> Result<T, SandboxError>
where
    T: Send + 'static,
    W: FnOnce(&Cancel) -> T + Send + 'static,
{
    let waiting = Waiting(cancel.child());
    let told = waiting.0.clone();
    tokio::task::spawn_blocking(move || work(&told)).await.map_err(SandboxError::Worker)
}

/// Dropped with the future that waits.
struct Waiting(Cancel);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    /// Work that ends only when it is told to; whether it was, after `stop` had its way with the waiting future.
    async fn check(stop: impl AsyncFnOnce(&Cancel, tokio::task::JoinHandle<()>)) {
        let (cancel, (begun, begins), (ended, ends)) = (Cancel::new(), channel(), channel());
        let own = cancel.clone();
        let waiting = tokio::spawn(async move {
            let work = move |told: &Cancel| {
                begun.send(()).unwrap();
                if hears(told) {
                    ended.send(()).unwrap();
                }
            };
            blocking(&own, work).await.unwrap();
        });
        begins.recv_timeout(Duration::from_secs(10)).unwrap();
        stop(&cancel, waiting).await;
        ends.recv_timeout(Duration::from_secs(5)).expect("the work was told to stop");
    }

    /// Bounded, so that work which is told nothing fails the test instead of holding up its end.
    fn hears(told: &Cancel) -> bool {
        (0..10_000).any(|_| {
            std::thread::sleep(Duration::from_millis(1));
            told.is_cancelled()
        })
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn work_stops_when_it_is_cancelled_or_dropped() {
        check(async |cancel, waiting| {
            cancel.cancel();
            waiting.await.unwrap();
        })
        .await;
        check(async |cancel, waiting| {
            waiting.abort();
            assert!(waiting.await.unwrap_err().is_cancelled());
            assert!(!cancel.is_cancelled(), "the call itself is not cancelled by it");
        })
        .await;
    }
}
