//! A body of remembered bytes, in one buffer or in many.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::Join;

pub(super) fn join(how: Join, head: &Bytes, messages: &[Bytes]) -> reqwest::Body {
    let size = head.len() + END.len() + messages.iter().map(|message| message.len() + 1).sum::<usize>() - 1;
    match how {
        Join::Fragments => {
            let mut body = Vec::with_capacity(size);
            pieces(head, messages).for_each(|piece| body.extend_from_slice(&piece));
            body.into()
        }
        Join::Segments => {
            reqwest::Body::wrap(Segments { pieces: pieces(head, messages).collect(), left: size as u64 })
        }
    }
}

fn pieces<'b>(head: &'b Bytes, messages: &'b [Bytes]) -> impl Iterator<Item = Bytes> + 'b {
    let comma = Bytes::from_static(b",");
    let messages = messages.iter().enumerate().flat_map(move |(index, message)| {
        let before = (index > 0).then(|| comma.clone());
        before.into_iter().chain([message.clone()])
    });
    [head.clone()].into_iter().chain(messages).chain([Bytes::from_static(END)])
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
