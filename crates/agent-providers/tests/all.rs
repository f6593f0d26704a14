//! What the crate promises, over recorded bytes and through its public face.

#[cfg(test)]
mod anthropic;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod gemini;
#[cfg(feature = "http")]
#[cfg(test)]
mod http;
#[cfg(test)]
mod ollama;
#[cfg(test)]
mod openai_chat;
#[cfg(test)]
mod openai_responses;
#[cfg(test)]
mod support;
