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

/// Pieces that an encoder joined once and that all its later bodies begin with. It only grows.
///
/// Pieces are gathered into blocks, so that a body of thousands of them is a handful of buffers. A full block is sealed:
/// it is never copied, moved or changed again, and a body takes a range of blocks in one step, however long it is. Only
/// the pieces behind the last sealed block, at most [`BLOCK_BYTES`] and one piece, are copied: into each body, or, once
/// they were lent ([`SharedBuffers::lend`]), when the next piece comes while a body still has them. So the work of a call
/// is proportional to what is new. It is not `Clone`: it has one writer.
///
/// Blocks grow with what is sealed, from 4 KiB to [`BLOCK_BYTES`]: of a thousand short conversations each holds little
/// beside its words, and a long one has few buffers.
///
/// ```
/// use agent_core::{Body, SharedBuffers};
///
/// let mut shared = SharedBuffers::default();
/// shared.push(b"once ");
/// let mut first = Body::default();
/// first.push_shared(&shared, 0..1);
/// shared.push(b"upon ");
/// let mut second = Body::default();
/// second.push_shared(&shared, 0..2);
/// second.push("a time".into());
/// assert_eq!((first.to_vec(), second.to_vec()), (b"once ".to_vec(), b"once upon a time".to_vec()));
/// assert_eq!(second.len(), 16);
/// ```
#[derive(Default)]
pub struct SharedBuffers {
    sealed: Arc<Shelves>,
    blocks: usize,
    /// Bytes of all blocks.
    sealed_len: usize,
    /// Pieces of all blocks.
    sealed_pieces: usize,
    /// What is not sealed yet.
    open: Open,
    /// Where each piece ends, counted from the beginning of the first one.
    ends: Vec<usize>,
}

/// A block is sealed when it has at least so many bytes, or earlier.
pub const BLOCK_BYTES: usize = 32 * 1024;

#[derive(Clone)]
enum Part {
    One(Bytes),
    /// Invariant: every slot of the range is filled.
    Shared(Arc<Shelves>, Range<usize>),
}

/// Pieces behind the last sealed block.
enum Open {
    /// They grow.
    Own(Vec<u8>),
    /// Bodies share them.
    Lent(Bytes),
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

    /// Appends a range of pieces without touching them one by one; what lies past their end is left out.
    pub fn push_shared(&mut self, shared: &SharedBuffers, range: Range<usize>) {
        self.push_bytes(shared, shared.start(range.start)..shared.start(range.end));
    }

    /// Appends a part of one piece, in bytes from its beginning; what lies past its end is left out.
    pub fn push_part(&mut self, shared: &SharedBuffers, piece: usize, part: Range<usize>) {
        let (start, end) = (shared.start(piece), shared.start(piece + 1));
        self.push_bytes(shared, (start + part.start).min(end)..start.saturating_add(part.end).min(end));
    }

    /// Appends a range of bytes: whole blocks as they are, what is cut off of a block as a slice of it, and of what is
    /// not sealed a slice where it is lent, else a copy.
    fn push_bytes(&mut self, shared: &SharedBuffers, range: Range<usize>) {
        let sealed = range.start..range.end.min(shared.sealed_len);
        if !sealed.is_empty() {
            self.push_sealed(shared, sealed);
        }
        let open = range.start.max(shared.sealed_len)..range.end;
        if !open.is_empty() {
            // Ranges come from `start`, which ends where the bytes do: there is always such a part.
            let part = open.start - shared.sealed_len..open.end - shared.sealed_len;
            self.push(match &shared.open {
                Open::Own(own) => Bytes::copy_from_slice(own.get(part).unwrap_or_default()),
                Open::Lent(lent) => lent.slice(part),
            });
        }
    }

    fn push_sealed(&mut self, shared: &SharedBuffers, range: Range<usize>) {
        let (first, last) = (shared.block(range.start), shared.block(range.end - 1));
        let mut whole = first..last + 1;
        let start = shared.block_start(first);
        if range.start > start {
            let end = range.end.min(shared.block_start(first + 1));
            self.push_slice(shared, first, range.start - start..end - start);
            whole.start += 1;
        }
        let (start, end) = (shared.block_start(last), shared.block_start(last + 1));
        let is_cut = range.end < end && whole.contains(&last);
        whole.end -= usize::from(is_cut);
        if !whole.is_empty() {
            self.len += shared.block_start(whole.end) - shared.block_start(whole.start);
            self.parts.push(Part::Shared(shared.sealed.clone(), whole));
        }
        if is_cut {
            self.push_slice(shared, last, 0..range.end - start);
        }
    }

    fn push_slice(&mut self, shared: &SharedBuffers, block: usize, part: Range<usize>) {
        if let Some(slot) = shared.sealed.slot(block) {
            self.push(slot.buffer.slice(part));
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
    /// Appends a piece; an empty one is left out.
    pub fn push(&mut self, piece: &[u8]) {
        if piece.is_empty() {
            return;
        }
        let len = self.open.append(piece);
        self.ends.push(self.sealed_len + len);
        if len >= (self.sealed_len / 4).clamp(FIRST_BLOCK, BLOCK_BYTES) {
            self.seal();
        }
    }

    /// Lets bodies share what is not sealed yet, until the next piece comes: for who builds a body, keeps it and is still
    /// for a while, as a session that waits.
    pub fn lend(&mut self) {
        self.open = Open::Lent(std::mem::take(&mut self.open).into_bytes());
    }

    fn seal(&mut self) {
        let buffer = std::mem::take(&mut self.open).into_bytes();
        self.sealed_len += buffer.len();
        self.sealed_pieces = self.ends.len();
        self.sealed.fill(self.blocks, Slot { buffer, end: self.sealed_len });
        self.blocks += 1;
    }

    /// The bytes of the piece at a position; empty when there is none.
    pub fn piece(&self, at: usize) -> &[u8] {
        let (start, end) = (self.start(at), self.start(at + 1));
        if start >= self.sealed_len {
            return self.open.bytes().get(start - self.sealed_len..end - self.sealed_len).unwrap_or_default();
        }
        // A piece is never cut: a block ends where one does.
        let block = self.block(start);
        let before = self.block_start(block);
        let slot = self.sealed.slot(block);
        slot.and_then(|slot| slot.buffer.get(start - before..end - before)).unwrap_or_default()
    }

    /// How many pieces there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// How many pieces, from the first one on, are in sealed blocks.
    pub fn sealed_count(&self) -> usize {
        self.sealed_pieces
    }

    /// The piece at a position as a part of its block, which it shares; `None` as long as that is not sealed.
    pub fn sealed_piece(&self, at: usize) -> Option<Bytes> {
        if at >= self.sealed_pieces {
            return None;
        }
        let (start, end) = (self.start(at), self.start(at + 1));
        let block = self.block(start);
        let before = self.block_start(block);
        self.sealed.slot(block).map(|slot| slot.buffer.slice(start - before..end - before))
    }

    /// Where a piece begins; past the last one, where that one ends.
    fn start(&self, piece: usize) -> usize {
        let before = piece.min(self.ends.len()).checked_sub(1);
        before.and_then(|at| self.ends.get(at)).copied().unwrap_or(0)
    }

    /// The block that holds a sealed byte.
    fn block(&self, byte: usize) -> usize {
        let (mut low, mut high) = (0, self.blocks);
        while low < high {
            let middle = low.midpoint(high);
            if self.block_start(middle + 1) <= byte { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Where a block begins; past the last one, where that one ends.
    fn block_start(&self, block: usize) -> usize {
        block.checked_sub(1).and_then(|at| self.sealed.slot(at)).map_or(0, |slot| slot.end)
    }
}

impl Open {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(own) => own,
            Self::Lent(lent) => lent,
        }
    }

    /// Appends a piece; how many bytes there are then. What was lent stays as it is for those who have it.
    ///
    /// Room is made by pages: doubling would leave every short conversation as much unused as it has words.
    fn append(&mut self, piece: &[u8]) -> usize {
        let room = |len: usize| (len + piece.len()).next_multiple_of(PAGE);
        let mut own = match std::mem::take(self) {
            Self::Own(own) => own,
            Self::Lent(lent) => {
                let mut own = Vec::with_capacity(room(lent.len()));
                own.extend_from_slice(&lent);
                own
            }
        };
        if own.len() + piece.len() > own.capacity() {
            own.reserve_exact(room(own.len()) - own.len());
        }
        own.extend_from_slice(piece);
        let len = own.len();
        *self = Self::Own(own);
        len
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Own(mut own) => {
                own.shrink_to_fit();
                Bytes::from(own)
            }
            Self::Lent(lent) => lent,
        }
    }
}

impl Default for Open {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl fmt::Debug for SharedBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBuffers")
            .field("count", &self.ends.len())
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
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

/// Bytes of the first blocks.
const FIRST_BLOCK: usize = 4 * 1024;
const PAGE: usize = 2 * 1024;
const FIRST_SHELF: usize = 32;
/// Enough for as many blocks as 32 bits can count.
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

    /// Pieces of these sizes, each of a byte of its own.
    fn shared(sizes: &[usize]) -> (SharedBuffers, Vec<Vec<u8>>) {
        let mut shared = SharedBuffers::default();
        let pieces = (0u8..=u8::MAX).cycle().zip(sizes).map(|(n, size)| vec![n; *size]);
        let pieces: Vec<_> = pieces.filter(|piece| !piece.is_empty()).collect();
        for (at, piece) in pieces.iter().enumerate() {
            shared.push(piece);
            if at % 3 == 1 {
                shared.lend();
            }
        }
        (shared, pieces)
    }

    fn places(body: &Body) -> Vec<(*const u8, usize)> {
        body.buffers().map(|buffer| (buffer.as_ptr(), buffer.len())).collect()
    }

    #[test]
    fn what_is_sealed_stays_the_same_buffers() {
        let (mut shared, _) = shared(&[BLOCK_BYTES / 3; 10]);
        shared.push(b"not sealed");
        let mut early = Body::default();
        early.push_shared(&shared, 0..11);
        (0..10).for_each(|_| shared.push(&[7; BLOCK_BYTES / 3]));
        let mut late = Body::default();
        late.push_shared(&shared, 0..usize::MAX);
        assert!(early.parts.len() == 2 && late.parts.len() <= 2, "blocks are taken in one step");
        let sealed = early.buffers().count() - 1;
        assert_eq!(places(&early)[..sealed], places(&late)[..sealed]);
        assert_eq!(places(&early.clone()), places(&early));
        assert!(late.to_vec().starts_with(&early.to_vec()));
        assert_eq!(late.len(), 20 * (BLOCK_BYTES / 3) + b"not sealed".len());
    }

    #[test]
    fn a_block_is_as_large_as_what_is_before_it_allows() {
        let mut shared = SharedBuffers::default();
        let mut sizes = Vec::new();
        for _ in 0..600 {
            shared.push(&[7; 500]);
            if let Open::Own(own) = &shared.open {
                assert!(own.capacity() < own.len() + PAGE, "little is held unused");
            }
            let sealed = shared.sealed_len - sizes.iter().sum::<usize>();
            sizes.extend((sealed > 0).then_some(sealed));
        }
        assert_eq!(sizes.first(), Some(&4_500), "nine pieces fill the first one");
        assert!(sizes.is_sorted() && sizes.last() >= Some(&BLOCK_BYTES), "{sizes:?}");
        assert!(sizes.len() < 20, "a long list is few blocks: {sizes:?}");
    }

    #[test]
    fn what_is_lent_is_shared_and_never_changed() {
        let mut shared = SharedBuffers::default();
        shared.push(b"once ");
        shared.lend();
        let bodies: [Body; 2] = std::array::from_fn(|_| {
            let mut body = Body::default();
            body.push_shared(&shared, 0..1);
            body
        });
        assert_eq!(places(&bodies[0]), places(&bodies[1]), "no body has a copy");
        shared.push(b"upon ");
        let mut later = Body::default();
        later.push_shared(&shared, 0..2);
        assert_eq!((bodies[0].to_vec(), later.to_vec()), (b"once ".to_vec(), b"once upon ".to_vec()));
    }

    proptest::proptest! {
        #[test]
        fn ranges_are_slices_of_the_list(
            sizes in proptest::collection::vec(proptest::prop_oneof![0usize..40, 5_000usize..50_000], 0..40),
            cuts in proptest::collection::vec((0usize..45, 0usize..45, 0usize..50_000, 0usize..50_000), 0..6),
        ) {
            let (shared, pieces) = shared(&sizes);
            let (mut body, mut expect) = (Body::default(), Vec::new());
            for (from, to, left, right) in cuts {
                body.push_shared(&shared, from..to);
                body.push(Bytes::from_static(b"|"));
                body.push_part(&shared, from, left..right);
                let part = pieces.get(from).map(Vec::as_slice).unwrap_or_default();
                let first = from.min(pieces.len());
                expect.extend_from_slice(&pieces[first..to.clamp(first, pieces.len())].concat());
                expect.push(b'|');
                let left = left.min(part.len());
                expect.extend_from_slice(&part[left..right.clamp(left, part.len())]);
                proptest::prop_assert_eq!(shared.piece(from), part);
                let sealed = shared.sealed_piece(from);
                proptest::prop_assert_eq!(sealed.is_some(), from < shared.sealed_count());
                proptest::prop_assert!(sealed.is_none_or(|piece| piece == part && piece.as_ptr() == shared.piece(from).as_ptr()));
            }
            proptest::prop_assert_eq!(body.len(), expect.len());
            proptest::prop_assert_eq!(body.to_vec(), expect);
            proptest::prop_assert_eq!(shared.count(), pieces.len());
        }
    }
}
