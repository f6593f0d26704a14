//! A body of remembered bytes, in one buffer or in many.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Join;

/// The conversation as bytes, each message with the comma ahead of it.
pub(super) struct Remembered {
    how: Join,
    /// The head of the body first; never changed, but joined with their neighbours in `Segments`.
    pieces: Vec<Bytes>,
}

impl Remembered {
    pub(super) fn new(how: Join, head: Vec<u8>) -> Self {
        Self { how, pieces: vec![head.into()] }
    }

    /// Keeps a message. Segments grow like the digits of a counter, so that a body has few of them and each byte is
    /// copied a few times in the life of a session, not at every step.
    pub(super) fn push(&mut self, message: Vec<u8>) {
        let mut piece = Bytes::from(message);
        if matches!(self.how, Join::Segments) {
            while let Some(last) = self.pieces.pop_if(|last| last.len() < 2 * piece.len()) {
                piece = [last, piece].concat().into();
            }
        }
        self.pieces.push(piece);
    }

    pub(super) fn body(&self) -> reqwest::Body {
        let size = END.len() + self.pieces.iter().map(Bytes::len).sum::<usize>();
        match self.how {
            Join::Fragments => {
                let mut body = Vec::with_capacity(size);
                self.pieces.iter().for_each(|piece| body.extend_from_slice(piece));
                body.extend_from_slice(END);
                body.into()
            }
            Join::Segments => {
                let end = [Bytes::from_static(END)];
                let pieces = self.pieces.iter().cloned().chain(end).collect();
                reqwest::Body::wrap(Segments { pieces, left: size as u64 })
            }
        }
    }
}

struct Segments {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl Body for Segments {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

const END: &[u8] = b"]}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_few_and_the_same_bytes() {
        let mut remembered =
            [Join::Fragments, Join::Segments].map(|how| Remembered::new(how, b"head ".to_vec()));
        for number in 0..300 {
            for kept in &mut remembered {
                kept.push(format!(",message {number:03}").into_bytes());
            }
        }
        let [fragments, segments] = remembered;
        assert_eq!(fragments.pieces.len(), 301);
        assert!(segments.pieces.len() < 12, "{}", segments.pieces.len());
        assert_eq!(fragments.pieces.concat(), segments.pieces.concat());
        assert_eq!(fragments.body().as_bytes().map(<[u8]>::len), Some(5 + 300 * 12 + 2));
    }
}
