//! Wire codecs of model providers: requests to bytes, bytes to events, failures to classes.
//!
//! Depend on this crate to talk to a provider: with feature `http` it sends requests itself, without it you bring
//! the transport. Programs that only read recorded traffic need no feature and no runtime.
//!
//! **This crate knows** how a provider's requests and answers look on the wire, how its errors are told apart, and
//! which bytes of a request must never change again once they were sent.
//!
//! **It never knows** what a tool does, what a session is, or when to try again (`RetryPolicy` of `agent-harness`).
//!
//! To change what it knows: a format is a folder of `wire/`; how a service differs from Chat Completions is a line of
//! `wire/openai_chat/quirks.rs`, where it lives and takes its key a row of `vendor.rs`; a model is an entry of `models/`;
//! a failure is told by `classify/table.rs` and proven by a line of `fixtures/errors/vendors.jsonl`.
//!
//! ```
//! use agent_core::{FinishKind, ResponseBuilder};
//! use agent_providers::{StreamDecoder, ToolNames, WireFormat};
//!
//! let stream = concat!(
//!     "data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"m\"}}\n\n",
//!     "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"hi\"}}\n\n",
//!     "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
//!     "data: {\"type\":\"message_stop\"}\n\n",
//! );
//! let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
//! let mut answer = ResponseBuilder::default();
//! for chunk in stream.as_bytes().chunks(7) {
//!     for event in decoder.push(chunk) {
//!         answer.take(event?);
//!     }
//! }
//! assert!(decoder.is_complete());
//! assert_eq!(answer.finish().ok_or("no end")?.finish.kind, FinishKind::Stop);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalog;
mod classify;
mod decoded;
#[cfg(feature = "http")]
mod http;
mod lines;
mod names;
mod sse;
mod transport;
mod vendor;
mod wire;

pub use catalog::{Catalog, CatalogError};
pub use classify::{ResponseHead, classify};
pub use decoded::{Decoded, decode_response};
#[cfg(feature = "http")]
pub use http::{ApiKey, ConfigError, HttpConfig, HttpModel, HttpTransport, is_loopback, without_secrets};
pub use names::ToolNames;
pub use sse::{DEFAULT_EVENT_LIMIT, Frame, Payload, SseError, SseFrames};
pub use transport::{ByteStream, Transport, TransportRequest, TransportResponse};
pub use vendor::{Auth, Vendor};
pub use wire::{
    Dialect, Events, ImportError, Imported, StreamDecoder, Transcript, TranscriptError, WireFormat,
    decode_body, encoder, import_request, openai_chat,
};
