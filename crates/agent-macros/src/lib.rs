//! The attribute that makes a tool of an async function.
//!
//! Do not depend on this crate: `agent-tools` (feature `macros`) and `agent` re-export it, beside what it expands to.
//!
//! **It never knows** what a tool does or how it is run: it writes the `ToolConfig` that one would write by hand.

mod expand;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Makes a tool of an async function. The documentation is in `agent_tools::tool`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expanded(options, item, "::agent_tools")
}

/// The same for users of the facade, which has all names under its own path.
#[proc_macro_attribute]
pub fn facade_tool(options: TokenStream, item: TokenStream) -> TokenStream {
    expanded(options, item, "::agent")
}

fn expanded(options: TokenStream, item: TokenStream, home: &str) -> TokenStream {
    let item = proc_macro2::TokenStream::from(item);
    let expanded = expand::expand(options.into(), item.clone(), home);
    // The function stays where it cannot be a tool, so that the one mistake is told and none that follow from it.
    expanded.unwrap_or_else(|error| expand::refused(&error, item)).into()
}
