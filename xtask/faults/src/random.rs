//! Kills from outside at random moments, again and again in one conversation.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};

use crate::Fault;
use crate::figures::Chance;
use crate::plot::Plot;
use crate::stepped::{AT_ONCE, Tally, Whole};
use crate::trial::{End, How, Trial};

/// The most kills of one conversation: then it is left to come to its end.
const MOST_KILLS: usize = 3;
/// Before each event of an answer, so that answers are hit too.
const PAUSE_MS: u64 = 1;

/// Plays so many conversations, each with moments of its own.
pub(crate) async fn all(wholes: &[Whole], trials: u64, seed: u64) -> Result<Tally, Fault> {
    let mut lengths = Vec::new();
    for whole in wholes {
        lengths.push(length(whole.plot).await?);
    }
    let mut tally = Tally::default();
    let one = |number: u64| {
        let at = usize::try_from(number).unwrap_or_default() % wholes.len().max(1);
        let (whole, length) = (wholes.get(at), lengths.get(at).copied().unwrap_or_default());
        async move {
            let whole = whole.ok_or("there is no plot")?;
            one(whole, number, Chance::new(seed.wrapping_mul(1_000_003).wrapping_add(number)), length).await
        }
    };
    let mut done = stream::iter(0..trials).map(one).buffered(AT_ONCE);
    while let Some(one) = done.next().await {
        tally.add(one?);
    }
    Ok(tally)
}

/// How long the longest process of a plot takes here.
async fn length(plot: Plot) -> Result<Duration, Fault> {
    let mut trial = Trial::paced(plot, None, Some(PAUSE_MS))?;
    let mut longest = Duration::ZERO;
    for phase in plot.phases() {
        let start = Instant::now();
        trial.run(*phase, How::default()).await?;
        longest = longest.max(start.elapsed());
    }
    Ok(longest)
}

async fn one(whole: &Whole, number: u64, mut chance: Chance, length: Duration) -> Result<Tally, Fault> {
    let name = format!("`{}`, conversation {number}", whole.plot.name());
    let mut trial = Trial::paced(whole.plot, None, Some(PAUSE_MS))?;
    let mut tally = Tally::default();
    for phase in whole.plot.phases() {
        loop {
            let micros = chance.below(u64::try_from(length.as_micros()).unwrap_or(u64::MAX));
            let after = Some(Duration::from_micros(micros)).filter(|_| trial.kills.len() < MOST_KILLS);
            match trial.run(*phase, How { after, ..How::default() }).await? {
                End::Done(_) => break,
                End::Killed => {}
                End::Failed(error) => {
                    tally.faults.push(format!("{name}, after {} kills: {error}", trial.kills.len()));
                    break;
                }
            }
        }
    }
    tally.take(&name, whole, &trial).await?;
    Ok(tally)
}
