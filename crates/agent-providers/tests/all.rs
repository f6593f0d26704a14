//! What the crate promises, over recorded bytes and through its public face.

#[cfg(test)]
mod chat_corpus;
#[cfg(test)]
mod choice;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod corpus_gemini;
#[cfg(test)]
mod corpus_ollama;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod decode_chat;
#[cfg(test)]
mod decode_gemini;
#[cfg(test)]
mod decode_ollama;
#[cfg(test)]
mod encode;
#[cfg(test)]
mod encode_chat;
#[cfg(test)]
mod encode_gemini;
#[cfg(test)]
mod encode_ollama;
#[cfg(test)]
mod errors;
#[cfg(feature = "http")]
#[cfg(test)]
mod http;
#[cfg(test)]
mod openai_responses;
#[cfg(test)]
mod support;
