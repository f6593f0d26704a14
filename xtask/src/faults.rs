//! Agents that are killed at every point and go on, by a program of its own: `xtask/faults`, built in release.
//!
//! This crate depends on no crate of the workspace, so it only starts that program, which judges what it finds.

use crate::Shop;
use crate::command::Call;
use crate::error::Error;

/// What to do, in the words of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) words: Vec<String>,
}

impl Options {
    /// The gate of `ci`: every point, and few random moments.
    pub(crate) fn gate() -> Self {
        Self { words: vec!["--quick".to_owned()] }
    }
}

pub(crate) fn run(options: &Options, shop: &mut Shop<'_>) -> Result<(), Error> {
    shop.out.flush()?;
    call(options).run(&shop.root)
}

fn call(options: &Options) -> Call {
    let call = Call::cargo("run --release --quiet --package agent-faults --");
    options.words.iter().fold(call, |call, word| call.arg(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_run_in_release() {
        let gate = call(&Options::gate()).to_string();
        assert_eq!(gate, "cargo run --release --quiet --package agent-faults -- --quick");
    }
}
