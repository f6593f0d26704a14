//! Other frameworks on the same work, as a harness outside this project measured them.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Deserialize;

use crate::bench::Fault;
use crate::benches::Found;
use crate::figures::{Table, Unit, median, times};
use crate::options::Ask;

pub(crate) const HEADING: &str = "Beside other frameworks";

pub(crate) const ABOUT: &str = "\
These figures come from a separate harness, which is no part of this project: it runs each framework's own loop, in its
own process, against one server that answers at once, with the work described above and its own floors. Our client there
is `crates/agent/examples/bench_client.rs`. The harness verified the requests of each client before it took times: every
call, result and text, in order. CPU is that of the client's loop alone, without start-up; medians of interleaved runs.
*By ours* is how many times the CPU of `agent-memory`. The wish is 10 times less than any of them at N = 50, and 30 times
less than rig and the AI SDK at N = 500. A library without a loop of its own, such as genai, cannot be ten times dearer in
so short a run: that would be less than `floor-segments`. The file it wrote is read by
`cargo xtask bench peers --from FILE`.";

/// A line of the harness's file: a run, or what the clients are called.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Names { names: BTreeMap<String, String> },
    Run(Run),
}

#[derive(Deserialize)]
struct Run {
    client: String,
    n: u32,
    sessions: u32,
    ok: bool,
    #[serde(default)]
    user_s: f64,
    #[serde(default)]
    sys_s: f64,
    #[serde(default)]
    maxrss_kb: f64,
}

/// Steps of the runs that are shown.
const LENGTHS: [u32; 2] = [50, 500];

pub(crate) fn measure(ask: &Ask, _: &mut dyn Write) -> Result<Found, Fault> {
    let file = ask.from.as_ref().ok_or("other frameworks are measured elsewhere: add `--from FILE`")?;
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    read(&text)
}

fn read(text: &str) -> Result<Found, Fault> {
    let (mut names, mut runs) = (BTreeMap::new(), Vec::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match serde_json::from_str(line)? {
            Line::Names { names: told } => names.extend(told),
            Line::Run(run) if run.ok && run.sessions == 1 => runs.push(run),
            Line::Run(run) if run.sessions == 1 => {
                return Err(format!("a run of {} over {} steps failed: repeat it", run.client, run.n).into());
            }
            Line::Run(_) => {}
        }
    }
    let mut clients: Vec<&str> = Vec::new();
    for run in &runs {
        if !clients.contains(&run.client.as_str()) {
            clients.push(&run.client);
        }
    }
    let mut found = Found { tables: vec![table(&clients, &names, &runs)?], ..Found::default() };
    found.broken = broken(&clients, &runs);
    found.notes.push(format!("Runs of each kind: {}.", runs.len() / clients.len().max(1) / LENGTHS.len()));
    Ok(found)
}

fn table(clients: &[&str], names: &BTreeMap<String, String>, runs: &[Run]) -> Result<Table, Fault> {
    let columns = LENGTHS.map(|steps| [format!("CPU µs a step, N = {steps}"), "by ours".to_owned()]);
    let mut all: Vec<(&str, Unit)> = columns
        .iter()
        .flat_map(|[cpu, ratio]| [(cpu.as_str(), Unit::Whole), (ratio.as_str(), Unit::Times)])
        .collect();
    all.push(("peak MiB, N = 500", Unit::Tenth));
    let mut table = Table::new("client", &all);
    for client in clients {
        let mut cells = Vec::new();
        for steps in LENGTHS {
            let ours =
                cpu(runs, OURS, steps).ok_or("our client was not run: add it to the harness as `ours`")?;
            let own = cpu(runs, client, steps);
            cells.extend([own, own.and_then(|own| times(own, ours))]);
        }
        let last = of(runs, client, LENGTHS.into_iter().max().unwrap_or(0));
        cells.push(median(last.map(|run| run.maxrss_kb / 1_024.0).collect()));
        table.row(names.get(*client).map_or(client, String::as_str), cells);
    }
    Ok(table)
}

/// What is claimed: so many times less than the heavy ones in a long run, and than any other in a short one.
fn broken(clients: &[&str], runs: &[Run]) -> Vec<String> {
    let mut found = Vec::new();
    let is_peer = |client: &&&str| !client.starts_with(OURS) && !client.starts_with("floor");
    for client in clients.iter().filter(is_peer) {
        let by_ours =
            |steps| cpu(runs, client, steps).zip(cpu(runs, OURS, steps)).map(|(own, ours)| own / ours);
        let wanted = [(50, 10.0, true), (500, 30.0, HEAVY.iter().any(|heavy| client.starts_with(heavy)))];
        for (steps, least, is_wanted) in wanted {
            if let Some(ratio) = by_ours(steps).filter(|ratio| is_wanted && *ratio < least) {
                found.push(format!(
                    "{client} needs {ratio:.1} times the CPU of ours at N = {steps}, {least} were claimed"
                ));
            }
        }
    }
    found
}

/// What 30 times less was claimed of.
const HEAVY: [&str; 2] = ["rig", "ai7"];
const OURS: &str = "ours";

fn cpu(runs: &[Run], client: &str, steps: u32) -> Option<f64> {
    median(of(runs, client, steps).map(|run| (run.user_s + run.sys_s) * 1e6 / f64::from(steps)).collect())
}

fn of<'r>(runs: &'r [Run], client: &'r str, steps: u32) -> impl Iterator<Item = &'r Run> {
    runs.iter().filter(move |run| run.client == client && run.n == steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(client: &str, n: u32, us_a_step: f64) -> String {
        let user_s = us_a_step * f64::from(n) / 1e6;
        format!(
            r#"{{"client":"{client}","n":{n},"sessions":1,"ok":true,"user_s":{user_s},"sys_s":0.0,"maxrss_kb":2048}}"#
        )
    }

    #[test]
    fn a_file_of_the_harness_is_read() {
        let lines = [
            r#"{"names":{"rig":"rig 9.9"}}"#.to_owned(),
            line("ours", 50, 100.0),
            line("ours", 500, 200.0),
            line("rig", 50, 2_000.0),
            line("rig", 500, 5_000.0),
            line("genai", 50, 500.0),
        ];
        let found = read(&lines.join("\n")).unwrap();
        let rows = &found.tables[0].rows;
        assert_eq!(rows[1].name, "rig 9.9");
        assert_eq!(rows[1].cells, [Some(2_000.0), Some(20.0), Some(5_000.0), Some(25.0), Some(2.0)]);
        assert_eq!(rows[2].cells, [Some(500.0), Some(5.0), None, None, None]);
        assert_eq!(found.broken.len(), 2, "{:?}", found.broken);
        assert!(found.broken[0].starts_with("rig needs 25.0 times the CPU of ours at N = 500"));
        assert!(found.broken[1].starts_with("genai needs 5.0 times the CPU of ours at N = 50"));
    }

    #[test]
    fn a_run_that_failed_is_not_passed_over() {
        let failed = r#"{"client":"rig","n":50,"sessions":1,"ok":false,"error":"timeout"}"#;
        assert!(
            read(failed).err().is_some_and(|fault| fault.to_string().contains("rig over 50 steps failed"))
        );
        assert!(read(&line("rig", 50, 1.0)).is_err(), "without ours there is nothing to compare");
        assert!(measure(&Ask::default(), &mut Vec::new()).is_err());
    }
}
