//! All parts of a run in order, what came of them as text, and whether that is good enough.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::Fault;
use crate::cases;
use crate::child::Sabotage;
use crate::figures::Spread;
use crate::options::Options;
use crate::place::PLACES;
use crate::plot::Plot;
use crate::stepped::{self, Tally, Whole};
use crate::{random, sizes};

/// The plots that are killed everywhere.
const PLOTS: [Plot; 2] = [Plot::Work, Plot::Park];
/// From a kill to the next model call.
const LIMIT: Duration = Duration::from_secs(2);
/// What is shown of many faults.
const SHOWN: usize = 12;

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let faults = runtime.block_on(all(options, out))?;
    if faults.is_empty() {
        return Ok(());
    }
    for fault in faults.iter().take(SHOWN) {
        writeln!(out, "FAULT {fault}")?;
    }
    Err(format!(
        "{} faults; each names its trial, which `--points all` or the same `--seed` repeats",
        faults.len()
    )
    .into())
}

async fn all(options: &Options, out: &mut dyn Write) -> Result<Vec<String>, Fault> {
    let mut faults = Vec::new();
    let mut wholes = Vec::new();
    for plot in PLOTS {
        wholes.push(Whole::play(plot).await?);
    }
    if options.points {
        let start = Instant::now();
        let mut tally = Tally::default();
        for whole in &wholes {
            tally.add(stepped::all(whole, options.sabotage).await?);
        }
        for (place, points) in PLACES.iter().zip(tally.points) {
            writeln!(out, "{:<24} {points:>5} kills", place.name())?;
        }
        if tally.points.contains(&0) && options.sabotage.is_none() {
            faults.push("a kind of point was never reached: nothing of it is shown".to_owned());
        }
        faults.extend(told("every point", tally, start, out)?);
    }
    if options.random > 0 {
        let start = Instant::now();
        let tally = random::all(&wholes, options.random, options.seed).await?;
        faults.extend(told(&format!("random moments, seed {}", options.seed), tally, start, out)?);
    }
    if options.cases {
        faults.extend(cases::all(&wholes, out).await?);
    }
    if options.proves {
        faults.extend(proofs(&wholes, out).await?);
    }
    if options.sizes {
        faults.extend(sizes::measure(out).await?);
    }
    Ok(faults)
}

/// Says what came of many kills; what is wrong with it.
fn told(what: &str, tally: Tally, start: Instant, out: &mut dyn Write) -> Result<Vec<String>, Fault> {
    let mut faults = tally.faults;
    writeln!(
        out,
        "{what}: {} kills, {} faults, {} calls whose end is not known and which the model was told of, {:.1} s",
        tally.kills,
        faults.len(),
        tally.unknown,
        start.elapsed().as_secs_f64(),
    )?;
    if tally.kills == 0 {
        faults.push(format!("{what}: nothing was killed, so nothing is shown"));
    }
    match Spread::of(tally.recoveries) {
        None => faults.push(format!("{what}: no model call came after a kill, so no recovery was measured")),
        Some(Spread { count, p50, p99, max }) => {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            writeln!(
                out,
                "{what}: from a kill to the next model call: p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms of {count} (eve 0.80.1: 860 s)",
                ms(p50),
                ms(p99),
                ms(max),
            )?;
            if max > LIMIT {
                faults.push(format!(
                    "{what}: it took {:.0} ms to go on, at most {:.0} are allowed",
                    ms(max),
                    ms(LIMIT)
                ));
            }
        }
    }
    Ok(faults)
}

/// Breaks the journal on purpose: a check that does not see it is none.
async fn proofs(wholes: &[Whole], out: &mut dyn Write) -> Result<Vec<String>, Fault> {
    let mut faults = Vec::new();
    for sabotage in [Sabotage::Results, Sabotage::Intents] {
        let Some(whole) = wholes.first() else { break };
        let tally = stepped::after_tools(whole, sabotage).await?;
        writeln!(out, "sabotage {sabotage:?}: {} kills, {} faults found", tally.kills, tally.faults.len())?;
        if tally.faults.is_empty() {
            faults.push(format!("the journal was broken ({sabotage:?}), and nothing was found out"));
        }
    }
    Ok(faults)
}
