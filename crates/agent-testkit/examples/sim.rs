//! The simulated provider as a program: `sim SCRIPT`.
//!
//! It listens on the loopback interface, prints its address (`http://127.0.0.1:41234`), and ends when its standard input
//! does, so that it never outlives who started it.

use std::error::Error;
use std::io::{Read, Write};

use agent_testkit::{Script, SimProvider};

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::disallowed_methods, reason = "a program: it reads its script and tells its address")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [script] = args.as_slice() else {
        return Err("usage: sim SCRIPT; SCRIPT is a JSON array of replies".into());
    };
    let script = Script::parse(&std::fs::read_to_string(script)?)?;
    let sim = SimProvider::start(script)?;
    writeln!(std::io::stdout(), "{}", sim.base_url())?;
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    sim.shutdown().await;
    Ok(())
}
