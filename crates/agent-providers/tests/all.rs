//! What the crate promises, over recorded bytes and through its public face.

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod encode;
#[cfg(feature = "http")]
#[cfg(test)]
mod http;
#[cfg(test)]
mod support;
