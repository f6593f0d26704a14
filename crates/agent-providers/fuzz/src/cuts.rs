//! The ways one input is cut into chunks, made of the input itself so that it needs no header.

/// Three cuts of the bytes: byte by byte, into small equal pieces, and at places that depend on the content.
pub(crate) fn cuts(data: &[u8]) -> [Vec<&[u8]>; 3] {
    let mut state = seed(data);
    let mut uneven = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let size = 1 + (next(&mut state) % 40) as usize;
        let (piece, after) = rest.split_at(size.min(rest.len()));
        uneven.push(piece);
        // An empty chunk is a chunk too.
        uneven.extend((size == 7).then_some(&b""[..]));
        rest = after;
    }
    let size = 2 + (next(&mut state) % 9) as usize;
    [data.chunks(1).collect(), data.chunks(size).collect(), uneven]
}

/// A number made of the bytes; never 0, where the generator would stand still.
pub(crate) fn seed(data: &[u8]) -> u64 {
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    data.iter().fold(0xcbf2_9ce4_8422_2325, hash) | 1
}

/// The next number of a xorshift generator.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_joins_to_the_input() {
        let data: Vec<u8> = (0..=255).cycle().take(3000).collect();
        for cut in cuts(&data) {
            assert_eq!(cut.concat(), data);
        }
        assert!(cuts(b"").iter().all(Vec::is_empty));
    }
}
