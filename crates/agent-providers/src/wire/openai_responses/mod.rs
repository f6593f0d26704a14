//! OpenAI Responses, sent without state: the format of OpenAI itself, and of xAI and others who took it over.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod import;
mod item;
mod message;
mod segment;
mod settings;
mod shape;
mod tools;
mod usage;
