//! The body of an answer: unpacked while it comes, and counted as it will be read.

use std::io::{self, Write};

use agent_tools::ToolError;
use flate2::write::{MultiGzDecoder, ZlibDecoder};
use reqwest::Response;
use reqwest::header::CONTENT_ENCODING;

/// What becomes of a body that is larger than was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overflow {
    /// It is refused.
    Refuse,
    /// Its beginning is enough.
    Cut,
}

/// Reads a body of at most so many bytes, unpacked.
pub(super) async fn read(
    mut response: Response,
    most: usize,
    overflow: Overflow,
) -> Result<Vec<u8>, ToolError> {
    let declared = response.content_length();
    let mut unpacking = Unpacking::new(&response, most)?;
    if overflow == Overflow::Refuse && declared.is_some_and(|bytes| bytes > most as u64) {
        return Err(too_large(most));
    }
    let mut received = 0;
    while let Some(chunk) = response.chunk().await.map_err(|error| broken(&error))? {
        received += chunk.len();
        let fed = unpacking.feed(&chunk);
        // What unpacks to less than was sent was made to keep a reader busy.
        if unpacking.is_full() || received > unpacking.capped().bytes.len() + SLACK {
            return match overflow {
                Overflow::Refuse => Err(too_large(most)),
                Overflow::Cut => Ok(unpacking.into_bytes()),
            };
        }
        fed.map_err(|error| broken(&error))?;
    }
    if received == 0 { Ok(vec![]) } else { unpacking.finish() }
}

fn too_large(most: usize) -> ToolError {
    ToolError::failed(format!(
        "The body is larger than {most} bytes, so it is not shown. Fetch a smaller page, such as one chapter, or download it into a file with bash and look at parts of it."
    ))
}

fn broken(cause: &dyn std::error::Error) -> ToolError {
    let mut deepest = cause;
    while let Some(deeper) = deepest.source() {
        deepest = deeper;
    }
    ToolError::failed(format!(
        "The body broke off or cannot be unpacked ({deepest}), so nothing of it is shown. Call again; if it fails again, look for another page."
    ))
}

/// Where the bytes of a body go.
enum Unpacking {
    Plain(Capped),
    Gzip(MultiGzDecoder<Capped>),
    Deflate(ZlibDecoder<Capped>),
}

/// Takes bytes up to a number, and fails at the first one more.
struct Capped {
    bytes: Vec<u8>,
    most: usize,
    is_full: bool,
}

impl Unpacking {
    fn new(response: &Response, most: usize) -> Result<Self, ToolError> {
        let capped = Capped { bytes: Vec::new(), most, is_full: false };
        let names = response.headers().get_all(CONTENT_ENCODING);
        let names: Vec<_> = names.iter().map(|name| String::from_utf8_lossy(name.as_bytes())).collect();
        let name = names.join(",").trim().to_ascii_lowercase();
        match name.as_str() {
            "" | "identity" => Ok(Self::Plain(capped)),
            "gzip" | "x-gzip" => Ok(Self::Gzip(MultiGzDecoder::new(capped))),
            "deflate" => Ok(Self::Deflate(ZlibDecoder::new(capped))),
            other => Err(ToolError::failed(format!(
                "The server packed the body as `{}` though only gzip was asked for, so it cannot be read. Look for another page.",
                super::clip(other, 60)
            ))),
        }
    }

    fn feed(&mut self, chunk: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(capped) => capped.write_all(chunk),
            Self::Gzip(decoder) => decoder.write_all(chunk),
            Self::Deflate(decoder) => decoder.write_all(chunk),
        }
    }

    fn is_full(&self) -> bool {
        self.capped().is_full
    }

    fn capped(&self) -> &Capped {
        match self {
            Self::Plain(capped) => capped,
            Self::Gzip(decoder) => decoder.get_ref(),
            Self::Deflate(decoder) => decoder.get_ref(),
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        self.capped().bytes.clone()
    }

    fn finish(self) -> Result<Vec<u8>, ToolError> {
        let most = self.capped().most;
        let done = match self {
            Self::Plain(capped) => Ok(capped),
            Self::Gzip(decoder) => decoder.finish(),
            Self::Deflate(decoder) => decoder.finish(),
        };
        match done {
            Ok(capped) if capped.is_full => Err(too_large(most)),
            Ok(capped) => Ok(capped.bytes),
            Err(error) => Err(broken(&error)),
        }
    }
}

impl Write for Capped {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let free = self.most - self.bytes.len();
        if buffer.len() > free {
            self.bytes.extend_from_slice(&buffer[..free]);
            self.is_full = true;
            return Err(io::Error::other("more than was asked for"));
        }
        self.bytes.extend_from_slice(buffer);
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What may have come without being unpacked yet, and what packing may add.
const SLACK: usize = 64 * 1024;
