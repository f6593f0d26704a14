//! A kill at every point: the first process dies at the n-th one, for each n until there is none.

use std::time::Duration;

use futures_util::{StreamExt, stream};

use crate::Fault;
use crate::check;
use crate::child::{Sabotage, idempotent};
use crate::place::{PLACES, Place};
use crate::plot::Plot;
use crate::trial::{End, How, Scene, Trial};

/// What came of many trials.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Points at which a process was killed, by kind.
    pub(crate) points: [usize; PLACES.len()],
    pub(crate) kills: usize,
    pub(crate) recoveries: Vec<Duration>,
    /// Calls whose end nobody knows, which the model was told.
    pub(crate) unknown: usize,
    /// What is wrong, each with its trial.
    pub(crate) faults: Vec<String>,
}

/// A plot played without a kill: what all others are compared with.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) plot: Plot,
    pub(crate) scene: Scene,
    /// The points of each phase, by kind.
    pub(crate) points: Vec<Vec<u64>>,
    pub(crate) idempotent: Vec<String>,
}

impl Whole {
    pub(crate) async fn play(plot: Plot) -> Result<Self, Fault> {
        let mut trial = Trial::new(plot, None)?;
        let mut points = Vec::new();
        for phase in plot.phases() {
            match trial.run(*phase, How::default()).await? {
                End::Done(passed) => points.push(passed),
                other @ (End::Killed | End::Failed(_)) => {
                    return Err(format!("the plot `{}` does not play: {other:?}", plot.name()).into());
                }
            }
        }
        let scene = trial.scene().await?;
        let idempotent = idempotent(&trial.path().join("work"))?;
        let whole = Self { plot, scene, points, idempotent };
        let faults = check::faults(&whole.scene, &[], &whole.scene, &whole.idempotent);
        if faults.is_empty() { Ok(whole) } else { Err(faults.join("; ").into()) }
    }

    /// What is wrong with a trial that came to its end.
    pub(crate) async fn judge(&self, trial: &Trial) -> Result<Vec<String>, Fault> {
        let end = trial.scene().await?;
        let mut faults = check::faults(&self.scene, &trial.kills, &end, &self.idempotent);
        // A request that was shown is the one that is answered, whatever happened in between.
        let known = self.scene.picture.iter().flat_map(|picture| picture.asked.keys());
        let known: Vec<_> = known.collect();
        let shown = trial.kills.iter().filter_map(|left| left.picture.as_ref());
        let other = shown.flat_map(|picture| &picture.requests).filter(|id| !known.contains(id));
        faults
            .extend(other.map(|id| format!("the request {id} is not one of those of a run without a kill")));
        if let Some(refusal) = trial.sim.refusals().first() {
            faults.push(format!("the provider refused a request: {}", refusal.message));
        }
        Ok(faults)
    }
}

impl Tally {
    pub(crate) async fn take(&mut self, name: &str, whole: &Whole, trial: &Trial) -> Result<(), Fault> {
        self.kills += trial.kills.len();
        self.recoveries.extend(&trial.recoveries);
        let end = trial.scene().await?.picture.unwrap_or_default();
        self.unknown += end.results.values().filter(|(_, text)| check::is_unknown(text)).count();
        self.faults.extend(whole.judge(trial).await?.into_iter().map(|fault| format!("{name}: {fault}")));
        Ok(())
    }

    pub(crate) fn add(&mut self, other: Self) {
        for (own, more) in self.points.iter_mut().zip(other.points) {
            *own += more;
        }
        self.kills += other.kills;
        self.recoveries.extend(other.recoveries);
        self.unknown += other.unknown;
        self.faults.extend(other.faults);
    }
}

/// Kills at every point of every phase of a plot.
pub(crate) async fn all(whole: &Whole, sabotage: Option<Sabotage>) -> Result<Tally, Fault> {
    let mut tally = Tally::default();
    for (at, counts) in whole.points.iter().enumerate() {
        for place in PLACES {
            let known = counts.get(place.index()).copied().unwrap_or_default();
            let trials = stream::iter(1..=known).map(|n| one(whole, at, (place, n), sabotage));
            let mut trials = trials.buffered(AT_ONCE);
            while let Some(done) = trials.next().await {
                tally.add(done?.1);
            }
            // Until a run passes without reaching the point: how many there are may differ by how calls overlap.
            for number in known + 1.. {
                let (was_killed, done) = one(whole, at, (place, number), sabotage).await?;
                tally.add(done);
                if !was_killed {
                    break;
                }
            }
        }
    }
    Ok(tally)
}

/// Kills behind the effects of tools and behind the writes that follow, where a broken journal must show.
pub(crate) async fn after_tools(whole: &Whole, sabotage: Sabotage) -> Result<Tally, Fault> {
    let counts = whole.points.first().cloned().unwrap_or_default();
    let places = [Place::AfterTool, Place::AfterWrite].into_iter();
    let points = places.flat_map(|place| {
        (1..=counts.get(place.index()).copied().unwrap_or_default()).map(move |number| (place, number))
    });
    let mut tally = Tally::default();
    let mut trials = stream::iter(points).map(|point| one(whole, 0, point, Some(sabotage))).buffered(AT_ONCE);
    while let Some(done) = trials.next().await {
        tally.add(done?.1);
    }
    Ok(tally)
}

/// Plays a plot, killed at one point of one phase; whether there is that point.
async fn one(
    whole: &Whole,
    at: usize,
    point: (Place, u64),
    sabotage: Option<Sabotage>,
) -> Result<(bool, Tally), Fault> {
    let (place, number) = point;
    let name = format!("`{}`, process {}, {} {number}", whole.plot.name(), at + 1, place.name());
    let mut trial = Trial::new(whole.plot, sabotage)?;
    let mut tally = Tally::default();
    let mut was_killed = false;
    for (position, phase) in whole.plot.phases().iter().enumerate() {
        if position == at {
            let how = How { kill: Some(point), ..How::default() };
            match trial.run(*phase, how).await? {
                End::Killed => was_killed = true,
                End::Done(_) => continue,
                End::Failed(error) => tally.faults.push(format!("{name}: {error}")),
            }
        }
        match trial.run(*phase, How::default()).await? {
            End::Done(_) => {}
            other @ (End::Killed | End::Failed(_)) => {
                tally.faults.push(format!("{name}: the next process ended: {other:?}"))
            }
        }
    }
    if let Some(reached) = tally.points.get_mut(place.index()).filter(|_| was_killed) {
        *reached += 1;
    }
    tally.take(&name, whole, &trial).await?;
    Ok((was_killed, tally))
}

/// Processes wait for the disk and for each other, so that more than there are processors are kept busy.
pub(crate) const AT_ONCE: usize = 4;
