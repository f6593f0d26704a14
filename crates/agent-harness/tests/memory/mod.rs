//! What is kept beyond a session's window.

mod auto;
mod index;
