//! A request body: shared buffers in order, of which the beginning may be the same for many bodies.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// A request body: shared buffers in order, and their exact total length.
///
/// Cloning copies no payload, and no list either of what came from [`SharedBuffers`].
#[derive(Clone, Default)]
pub struct Body {
    parts: Vec<Part>,
    len: usize,
}

/// Buffers that an encoder joined once and that all its later bodies begin with. It only grows.
///
/// A body takes a range of them in one step, however long it is, so that the work of a call can be proportional to
/// what is new. It is not `Clone`: with one writer, a buffer that was lent never becomes another one.
///
/// ```
/// use agent_core::{Body, SharedBuffers};
///
/// let mut shared = SharedBuffers::default();
/// shared.push("once ".into());
/// let mut first = Body::default();
/// first.push_shared(&shared, 0..1);
/// shared.push("upon ".into());
/// let mut second = Body::default();
/// second.push_shared(&shared, 0..2);
/// second.push("a time".into());
/// assert_eq!((first.to_vec(), second.to_vec()), (b"once ".to_vec(), b"once upon a time".to_vec()));
/// assert_eq!(second.len(), 16);
/// ```
#[derive(Default)]
pub struct SharedBuffers {
    shelves: Arc<Shelves>,
    count: usize,
}

#[derive(Clone)]
enum Part {
    One(Bytes),
    /// Invariant: every slot of the range is filled.
    Shared(Arc<Shelves>, Range<usize>),
}

/// Slots in shelves that double in size: a slot, once filled, never moves, so readers need no lock.
#[derive(Default)]
struct Shelves([OnceLock<Box<[OnceLock<Slot>]>>; SHELVES]);

struct Slot {
    buffer: Bytes,
    /// Bytes of this buffer and of all before it.
    end: usize,
}

impl Body {
    /// Appends a buffer; an empty one is left out.
    pub fn push(&mut self, buffer: Bytes) {
        if !buffer.is_empty() {
            self.len += buffer.len();
            self.parts.push(Part::One(buffer));
        }
    }

    /// Appends a range of shared buffers without touching them one by one; what lies past their end is left out.
    pub fn push_shared(&mut self, shared: &SharedBuffers, range: Range<usize>) {
        let range = range.start..range.end.min(shared.count);
        if !range.is_empty() {
            let end_of = |count: usize| {
                count.checked_sub(1).and_then(|at| shared.shelves.slot(at)).map_or(0, |slot| slot.end)
            };
            self.len += end_of(range.end) - end_of(range.start);
            self.parts.push(Part::Shared(shared.shelves.clone(), range));
        }
    }

    /// The buffers, in order.
    pub fn buffers(&self) -> impl Iterator<Item = &Bytes> {
        self.parts.iter().flat_map(|part| part.range().filter_map(|at| part.buffer(at)))
    }

    /// The buffers, in order, each shared when its turn comes: what a transport sends.
    pub fn into_buffers(self) -> impl Iterator<Item = Bytes> + Send + 'static {
        self.parts.into_iter().flat_map(|part| part.range().filter_map(move |at| part.buffer(at).cloned()))
    }

    /// Exact length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All bytes in one piece: a copy, for tests and logs. The wire takes the buffers.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.len);
        self.buffers().for_each(|buffer| all.extend_from_slice(buffer));
        all
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("len", &self.len)
            .field("parts", &self.parts.len())
            .finish_non_exhaustive()
    }
}

impl SharedBuffers {
    /// Appends a buffer; an empty one is left out.
    pub fn push(&mut self, buffer: Bytes) {
        if buffer.is_empty() {
            return;
        }
        let before =
            self.count.checked_sub(1).and_then(|at| self.shelves.slot(at)).map_or(0, |slot| slot.end);
        self.shelves.fill(self.count, Slot { end: before + buffer.len(), buffer });
        self.count += 1;
    }

    /// The buffer at a position.
    pub fn get(&self, at: usize) -> Option<&Bytes> {
        self.shelves.slot(at).map(|slot| &slot.buffer)
    }

    /// How many buffers there are.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl fmt::Debug for SharedBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffers").field("count", &self.count).finish_non_exhaustive()
    }
}

impl Part {
    fn range(&self) -> Range<usize> {
        match self {
            Self::One(_) => 0..1,
            Self::Shared(_, range) => range.clone(),
        }
    }

    fn buffer(&self, at: usize) -> Option<&Bytes> {
        match self {
            Self::One(buffer) => Some(buffer),
            Self::Shared(shelves, _) => shelves.slot(at).map(|slot| &slot.buffer),
        }
    }
}

impl Shelves {
    fn slot(&self, at: usize) -> Option<&Slot> {
        let (shelf, place) = place(at);
        self.0.get(shelf)?.get()?.get(place)?.get()
    }

    /// The one writer fills each slot once.
    fn fill(&self, at: usize, slot: Slot) {
        let (shelf, place) = place(at);
        let empty = || (0..FIRST_SHELF << shelf).map(|_| OnceLock::new()).collect();
        self.0[shelf].get_or_init(empty)[place].get_or_init(|| slot);
    }
}

/// Shelf and place of a slot: the n-th shelf begins at `FIRST_SHELF * (2^n - 1)`.
fn place(at: usize) -> (usize, usize) {
    let from_one = at / FIRST_SHELF + 1;
    let shelf = from_one.ilog2() as usize;
    (shelf, at - FIRST_SHELF * ((1 << shelf) - 1))
}

const FIRST_SHELF: usize = 32;
/// Enough for as many buffers as 32 bits can count.
const SHELVES: usize = 28;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_counts_its_bytes() {
        let mut body = Body::default();
        body.push(Bytes::from_static(b"ab"));
        body.push(Bytes::new());
        body.push(Bytes::from_static(b"c"));
        assert_eq!((body.len(), body.buffers().count(), body.to_vec()), (3, 2, b"abc".to_vec()));
    }

    #[test]
    fn shelves_hold_every_slot_once() {
        let mut next = (0, 0);
        for at in 0..1_000 {
            assert_eq!(place(at), next, "{at}");
            next = if next.1 + 1 == FIRST_SHELF << next.0 { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
        }
        assert!(place(u32::MAX as usize).0 < SHELVES);
    }

    #[test]
    fn a_range_is_taken_in_one_step_and_stays_the_same_buffers() {
        let mut shared = SharedBuffers::default();
        (0..100u8).for_each(|n| shared.push(vec![n; 3].into()));
        let mut early = Body::default();
        early.push_shared(&shared, 0..100);
        (100..200u8).for_each(|n| shared.push(vec![n; 3].into()));
        let mut late = Body::default();
        late.push_shared(&shared, 0..200);
        assert_eq!((late.parts.len(), late.len(), early.len()), (1, 600, 300));
        let at = |body: &Body| body.buffers().map(|buffer| buffer.as_ptr()).collect::<Vec<_>>();
        assert_eq!(at(&early), at(&late)[..100]);
        assert_eq!(at(&early.clone()), at(&early));
        assert!(early.into_buffers().eq(late.buffers().take(100).cloned()));
    }

    proptest::proptest! {
        #[test]
        fn ranges_are_slices_of_the_list(
            sizes in proptest::collection::vec(0usize..4, 0..150),
            cuts in proptest::collection::vec((0usize..160, 0usize..160), 0..6),
        ) {
            let mut shared = SharedBuffers::default();
            let buffers: Vec<Bytes> =
                (0u8..).zip(&sizes).map(|(n, size)| vec![n; *size].into()).filter(|b: &Bytes| !b.is_empty()).collect();
            buffers.iter().for_each(|buffer| shared.push(buffer.clone()));
            let (mut body, mut expect) = (Body::default(), Vec::new());
            for (from, to) in cuts {
                body.push_shared(&shared, from..to);
                body.push(Bytes::from_static(b"|"));
                let from = from.min(buffers.len());
                expect.extend_from_slice(&buffers[from..to.clamp(from, buffers.len())].concat());
                expect.push(b'|');
            }
            proptest::prop_assert_eq!(body.len(), expect.len());
            proptest::prop_assert_eq!(body.to_vec(), expect);
            proptest::prop_assert_eq!(shared.count(), buffers.len());
        }
    }
}
