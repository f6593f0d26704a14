//! The data lines of a stream of events, handed over without a copy where they lie in one chunk.

use crate::bench::Fault;

/// What is left of the last chunk.
#[derive(Default)]
pub(super) struct Lines(Vec<u8>);

impl Lines {
    /// Hands over the data of every line that is now whole.
    pub(super) fn feed(
        &mut self,
        chunk: &[u8],
        mut on_data: impl FnMut(&[u8]) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut rest = chunk;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, others) = rest.split_at(end);
            rest = others.get(1..).unwrap_or_default();
            if self.0.is_empty() {
                data(line).map_or(Ok(()), &mut on_data)?;
            } else {
                self.0.extend_from_slice(line);
                data(&self.0).map_or(Ok(()), &mut on_data)?;
                self.0.clear();
            }
        }
        self.0.extend_from_slice(rest);
        Ok(())
    }
}

fn data(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(b"data: ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_lines() {
        let stream = b"event: a\ndata: one\n\ndata: two\n\n";
        for size in 1..stream.len() {
            let (mut lines, mut seen) = (Lines::default(), Vec::new());
            for chunk in stream.chunks(size) {
                let fed = lines.feed(chunk, |data| {
                    seen.push(String::from_utf8_lossy(data).into_owned());
                    Ok(())
                });
                assert!(fed.is_ok());
            }
            assert_eq!(seen, ["one", "two"], "in chunks of {size}");
        }
    }
}
