//! The seam between a model and the network: one request out, a head and a stream of bytes back.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use agent_core::{Body, ModelError};
use async_trait::async_trait;
use bytes::Bytes;
use futures_core::Stream;

/// Carries a request to a server and its answer back (requirement V6). `HttpTransport` (feature `http`) is the real one;
/// a test plays a recorded one.
///
/// It sends once, follows no redirect and retries nothing. Limits on waiting and on sizes are kept by the model above it,
/// for every transport alike. Whoever no longer wants an answer drops the future or the body: both must then let go of
/// the connection.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transport",
    note = "use `HttpTransport` of agent-providers, a tape of agent-testkit, or implement `Transport`"
)]
pub trait Transport: fmt::Debug + Send + Sync {
    /// Sends a request and waits for the head of the answer, whatever its status.
    ///
    /// Errors are of kind `transport` when the network failed, with words that hold no address and no key. An answer that
    /// breaks off gives an error as the last item of its body.
    async fn send(&self, request: TransportRequest) -> Result<TransportResponse, ModelError>;
}

/// A request on its way out.
#[derive(Clone)]
#[expect(clippy::exhaustive_structs, reason = "built by the model, read by every transport")]
pub struct TransportRequest {
    /// The HTTP method, for example `POST`.
    pub method: Cow<'static, str>,
    /// The whole address. Requests of one model share it.
    pub url: Arc<str>,
    /// Names in lower case, each once, and values. The length of the body is not among them. Requests of one model
    /// share them.
    pub headers: Arc<[(String, String)]>,
    /// The body, as the buffers it was encoded into.
    pub body: Body,
}

/// An answer: its head, and its body while it arrives.
#[expect(clippy::exhaustive_structs, reason = "built by every transport, read by the model")]
pub struct TransportResponse {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The bytes, cut anywhere.
    pub body: ByteStream,
}

/// Bytes as they arrive; at most one error, which is the last item.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, ModelError>> + Send>>;

/// Values of headers and the address may hold secrets: only names are shown.
impl fmt::Debug for TransportRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("TransportRequest")
            .field("method", &self.method)
            .field("headers", &names)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for TransportResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("TransportResponse")
            .field("status", &self.status)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}
