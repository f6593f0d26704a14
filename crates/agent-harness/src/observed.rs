//! A value that is watched: read by anyone, changed by whoever holds it, and told of when it is another one.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use tokio::sync::watch;

/// A value that is watched (requirement K1). Clones share it.
///
/// A change that leaves the value as it is tells nobody. Of one that does not, [`Observed::with_on_change`] is told first,
/// with the old value and the new one, and then it is shown and its watchers wake. Changes come one after the other, from
/// whatever thread, and none is lost.
///
/// A change may itself change the value, and so may what is told of it: that change is made right after the one at work. A
/// change that panics changes nothing, and its caller goes on panicking; when what is told panics, it is logged, and the
/// value is shown all the same. Neither keeps others from changing it later.
///
/// ```
/// use agent_harness::Observed;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let count = Observed::new(1);
/// let mut watch = count.watch();
/// count.update(|count| *count += 1);
/// assert_eq!((count.get(), watch.changed().await), (2, Some(2)));
/// count.update(|count| *count = 2); // It is 2: nobody is told.
/// drop(count);
/// assert_eq!(watch.changed().await, None);
/// # });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Observed<T>(Arc<Inner<T>>);

/// Sees an [`Observed`] value and cannot change it. Dropping it ends the watch.
#[derive(Clone)]
pub struct Watch<T> {
    receiver: watch::Receiver<T>,
    /// What was last told here, so that the same is not told twice.
    seen: T,
}

/// Is told the old value and the new one.
type OnChange<T> = Box<dyn Fn(&T, &T) + Send + Sync>;
type Change<T> = Box<dyn FnOnce(&mut T) + Send>;
type Panic = Box<dyn Any + Send>;

struct Inner<T> {
    shown: watch::Sender<T>,
    on_change: Option<OnChange<T>>,
    /// Held by the thread that changes the value.
    turn: Mutex<()>,
    at_work: Mutex<AtWork<T>>,
}

/// The thread that changes the value, and what it was asked to change meanwhile by itself.
struct AtWork<T> {
    thread: Option<ThreadId>,
    later: VecDeque<Change<T>>,
}

impl<T> Observed<T> {
    /// A value with nobody who is told first.
    pub fn new(value: T) -> Self {
        Self::of(value, None)
    }

    /// A value of whose changes this is told first, with the old one and the new one; it sees the old one where it looks.
    pub fn with_on_change(value: T, on_change: impl Fn(&T, &T) + Send + Sync + 'static) -> Self {
        Self::of(value, Some(Box::new(on_change)))
    }

    fn of(value: T, on_change: Option<OnChange<T>>) -> Self {
        let (shown, at_work) = (watch::Sender::new(value), AtWork { thread: None, later: VecDeque::new() });
        Self(Arc::new(Inner { shown, on_change, turn: Mutex::default(), at_work: Mutex::new(at_work) }))
    }

    /// How many watch it.
    pub fn watchers(&self) -> usize {
        self.0.shown.receiver_count()
    }
}

impl<T: Clone + PartialEq> Observed<T> {
    /// The value now.
    pub fn get(&self) -> T {
        self.0.shown.borrow().clone()
    }

    /// Watches it from now on.
    pub fn watch(&self) -> Watch<T> {
        let mut receiver = self.0.shown.subscribe();
        let seen = receiver.borrow_and_update().clone();
        Watch { receiver, seen }
    }

    /// Changes it. From within another change of this value by the same thread it is changed right after, otherwise when
    /// this returns.
    ///
    /// The change must not wait for another thread that changes the value.
    pub fn update(&self, change: impl FnOnce(&mut T) + Send + 'static) {
        let me = thread::current().id();
        if self.0.at_work().thread == Some(me) {
            return self.0.at_work().later.push_back(Box::new(change));
        }
        let turn = locked(&self.0.turn);
        self.0.at_work().thread = Some(me);
        let mut panic = self.0.apply(change).err();
        while let Some(change) = self.0.next() {
            let later = self.0.apply(change).err();
            panic = panic.or(later);
        }
        drop(turn);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl<T> Inner<T> {
    fn at_work(&self) -> MutexGuard<'_, AtWork<T>> {
        locked(&self.at_work)
    }

    /// What else is to be changed; when that is nothing, the thread is done.
    fn next(&self) -> Option<Change<T>> {
        let mut at_work = self.at_work();
        let next = at_work.later.pop_front();
        if next.is_none() {
            at_work.thread = None;
        }
        next
    }
}

impl<T: Clone + PartialEq> Inner<T> {
    /// Makes one change on a copy, and shows that when it is another value.
    fn apply(&self, change: impl FnOnce(&mut T)) -> Result<(), Panic> {
        catch_unwind(AssertUnwindSafe(|| {
            let old = self.shown.borrow().clone();
            let mut new = old.clone();
            change(&mut new);
            if new != old {
                self.tell(&old, &new);
                self.shown.send_replace(new);
            }
        }))
    }

    fn tell(&self, old: &T, new: &T) {
        let Some(on_change) = &self.on_change else { return };
        if catch_unwind(AssertUnwindSafe(|| on_change(old, new))).is_err() {
            tracing::warn!("what is told of a change broke down; the change is made");
        }
    }
}

impl<T: Clone + PartialEq> Watch<T> {
    /// The value now, whether or not it was told here.
    pub fn get(&self) -> T {
        self.receiver.borrow().clone()
    }

    /// The next value that is another one than was last told here, the newest if there were several; `None` when nobody is
    /// left who could change it. Cancel-safe.
    pub async fn changed(&mut self) -> Option<T> {
        loop {
            self.receiver.changed().await.ok()?;
            let now = self.receiver.borrow_and_update().clone();
            if now != self.seen {
                self.seen = now.clone();
                return Some(now);
            }
        }
    }
}

/// No code of others runs while it is held, or their panics are caught.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Clone for Observed<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Default> Default for Observed<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: Debug> Debug for Observed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Observed").field(&*self.0.shown.borrow()).finish()
    }
}

impl<T: Debug> Debug for Watch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watch").field(&*self.receiver.borrow()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;
    use std::time::Duration;

    use super::*;

    fn block<F: Future>(future: F) -> F::Output {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
    }

    /// An observed number that writes down what is told first.
    fn told_first() -> (Observed<i32>, Arc<Mutex<Vec<String>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = log.clone();
        let on_change = move |old: &i32, new: &i32| lines.lock().unwrap().push(format!("{old}->{new}"));
        (Observed::with_on_change(0, on_change), log)
    }

    async fn soon<T: Clone + PartialEq>(watch: &mut Watch<T>) -> Option<Option<T>> {
        tokio::time::timeout(Duration::from_secs(1), watch.changed()).await.ok()
    }

    #[test]
    fn only_what_is_another_value_is_told() {
        let check = |changes: &[i32], first: &[&str], then: Option<i32>| {
            block(async {
                let (value, log) = told_first();
                let mut watch = value.watch();
                for change in changes.iter().copied() {
                    value.update(move |value| *value = change);
                }
                assert_eq!(*log.lock().unwrap(), first, "{changes:?}");
                assert_eq!(soon(&mut watch).await, then.map(Some), "{changes:?}");
                assert_eq!(soon(&mut watch).await, None, "it is told once");
                assert_eq!(watch.get(), value.get());
            });
        };
        check(&[], &[], None);
        check(&[0, 0], &[], None);
        check(&[1], &["0->1"], Some(1));
        check(&[1, 1, 2], &["0->1", "1->2"], Some(2));
        check(&[1, 0], &["0->1", "1->0"], None);
    }

    #[test]
    fn what_is_told_first_comes_before_watchers_wake() {
        block(async {
            let place = Arc::new(OnceLock::<Watch<i32>>::new());
            let (inner, seen) = (place.clone(), Arc::new(Mutex::new(Vec::new())));
            let lines = seen.clone();
            let value = Observed::with_on_change(0, move |_: &i32, _: &i32| {
                let watch = inner.get().unwrap();
                lines.lock().unwrap().push((watch.get(), watch.receiver.has_changed().unwrap()));
            });
            place.set(value.watch()).unwrap();
            value.update(|value| *value = 5);
            assert_eq!(*seen.lock().unwrap(), [(0, false)]);
            assert_eq!(place.get().unwrap().receiver.has_changed().ok(), Some(true));
        });
    }

    #[test]
    fn a_watch_ends_when_it_is_dropped_and_when_nobody_can_change_the_value() {
        block(async {
            let value = Observed::new(String::new());
            let (one, mut other) = (value.watch(), value.watch());
            assert_eq!(value.watchers(), 2);
            drop(one);
            assert_eq!(value.watchers(), 1);
            let clone = value.clone();
            drop(value);
            clone.update(|value| value.push('a'));
            drop(clone);
            assert_eq!(other.changed().await, Some("a".to_owned()), "what was told last is still told");
            assert_eq!((other.changed().await, other.get()), (None, "a".to_owned()));
        });
    }

    #[test]
    fn changes_of_many_threads_are_all_made() {
        let (value, log) = told_first();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..500).for_each(|_| value.update(|value| *value += 1)));
            }
        });
        assert_eq!(value.get(), 4_000);
        let expect: Vec<String> = (0..4_000).map(|n| format!("{n}->{}", n + 1)).collect();
        assert_eq!(*log.lock().unwrap(), expect, "and each is told in its order");
    }

    #[test]
    fn a_watcher_sees_the_newest_however_slow_it_is() {
        block(async {
            let value = Observed::new(0);
            let mut watch = value.watch();
            let writer = tokio::spawn(async move {
                for at in 1..=100 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    value.update(move |value| *value = at);
                }
            });
            let mut seen = Vec::new();
            while let Some(now) = watch.changed().await {
                seen.push(now);
                tokio::time::sleep(Duration::from_millis(203)).await;
            }
            writer.await.unwrap();
            assert_eq!(seen, [1, 21, 41, 61, 82, 100]);
        });
    }

    #[test]
    fn a_change_within_a_change_is_made_right_after() {
        let (value, log) = told_first();
        let inner = value.clone();
        value.update(move |value| {
            inner.update(|value| *value *= 10);
            *value = 3;
        });
        assert_eq!(value.get(), 30);
        assert_eq!(*log.lock().unwrap(), ["0->3", "3->30"]);

        let place = Arc::new(OnceLock::<Observed<i32>>::new());
        let inner = place.clone();
        let value = Observed::with_on_change(0, move |_, new: &i32| {
            if *new < 3 {
                inner.get().unwrap().update(|value| *value += 1);
            }
        });
        place.set(value.clone()).unwrap();
        value.update(|value| *value = 1);
        assert_eq!(value.get(), 3);
    }

    #[test]
    fn a_change_that_panics_changes_nothing_and_locks_nobody_out() {
        let value = Observed::new(1);
        let (inner, other) = (value.clone(), value.clone());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            value.update(move |value| {
                inner.update(|value| *value += 1);
                *value = 100;
                panic!("the pen broke");
            });
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"the pen broke"), "its caller is told");
        assert_eq!(value.get(), 2, "what was asked for meanwhile is made");
        thread::spawn(move || other.update(|value| *value += 1)).join().unwrap();
        assert_eq!(value.get(), 3);
    }

    #[test]
    fn what_is_told_first_may_break_down() {
        let value = Observed::with_on_change(0, |_, new: &i32| assert_ne!(*new, 1, "it breaks down"));
        let watch = value.watch();
        value.update(|value| *value = 1);
        assert_eq!(watch.get(), 1, "the value is shown");
        value.update(|value| *value = 2);
        assert_eq!(watch.get(), 2);
    }
}
