//! Anthropic Messages: what answers mean, and what is sent.

mod ask;
mod corpus;
mod decode;
mod encode;
mod round_trip;
mod settings;
mod stable;
mod tools;
mod turns;
