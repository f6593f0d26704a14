//! OpenAI Responses, sent without state: the format of OpenAI itself, and of xAI and others who took it over.

mod content;
pub(crate) mod decode;
pub(crate) mod encode;
mod event;
mod held;
pub(crate) mod import;
mod item;
mod message;
mod segment;
mod settings;
mod shape;
mod tools;
mod usage;
