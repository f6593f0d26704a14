//! What the crate promises, over recorded bytes and through its public face.

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod encode;
#[cfg(test)]
mod framing;
#[cfg(feature = "http")]
#[cfg(test)]
mod http;
#[cfg(test)]
mod openai_responses;
#[cfg(test)]
mod support;
