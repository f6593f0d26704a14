//! The limits of a step, and whether a measurement keeps them.

/// Something counted over runs of three lengths, as it was at their ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Totals of runs of [`LENGTHS`] steps.
    pub(crate) totals: Vec<u64>,
}

/// What a step costs, early and late.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerStep {
    /// In steps 110 to 200.
    pub(crate) early: f64,
    /// In steps 200 to 400.
    pub(crate) late: f64,
}

/// The counts of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) allocations: Counted,
    /// `None` where they were not to be counted, or could not be.
    pub(crate) instructions: Option<Counted>,
}

impl Counted {
    /// A step's share, in which what a run costs once has gone.
    pub(crate) fn per_step(&self) -> PerStep {
        let share = |from: usize, to: usize| {
            let (Some(first), Some(last)) = (self.totals.get(from), self.totals.get(to)) else { return 0.0 };
            let steps = LENGTHS.get(to).zip(LENGTHS.get(from)).map_or(1, |(to, from)| to - from);
            last.saturating_sub(*first) as f64 / steps as f64
        };
        PerStep { early: share(0, 1), late: share(1, 2) }
    }
}

/// Every limit that is broken, in words; nothing when all are kept.
pub(crate) fn broken(counts: &Counts) -> Vec<String> {
    let mut found = judge("allocations", &counts.allocations, MOST_ALLOCATIONS);
    if let Some(instructions) = &counts.instructions {
        found.extend(judge("instructions", instructions, MOST_INSTRUCTIONS));
    }
    found
}

fn judge(what: &str, counted: &Counted, most: f64) -> Vec<String> {
    let PerStep { early, late } = counted.per_step();
    if early <= 0.0 || late <= 0.0 {
        return vec![format!("no {what} were counted: a step without any was not measured")];
    }
    let mut found = Vec::new();
    if early > most {
        found.push(format!("{early:.0} {what} a step in steps 110 to 200, at most {most:.0} are allowed"));
    }
    let growth = late / early;
    if growth > MOST_GROWTH {
        found.push(format!(
            "{what} grow {growth:.2} times up to step 400, at most {MOST_GROWTH} is allowed: something walks the history"
        ));
    }
    found
}

/// Steps of the runs whose totals are compared.
pub(crate) const LENGTHS: [u32; 3] = [110, 200, 400];
const MOST_ALLOCATIONS: f64 = 300.0;
const MOST_INSTRUCTIONS: f64 = 1_000_000.0;
const MOST_GROWTH: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;

    /// Totals of a client that costs so much a step, early and late.
    fn counted(early: u64, late: u64) -> Counted {
        let at_110 = 5_000_000 + 110 * early;
        Counted { totals: vec![at_110, at_110 + 90 * early, at_110 + 90 * early + 200 * late] }
    }

    #[track_caller]
    fn check(allocations: (u64, u64), instructions: Option<(u64, u64)>, expect: &[&str]) {
        let counts = Counts {
            allocations: counted(allocations.0, allocations.1),
            instructions: instructions.map(|(early, late)| counted(early, late)),
        };
        let found = broken(&counts);
        assert_eq!(found.len(), expect.len(), "{found:#?}");
        for (told, part) in found.iter().zip(expect) {
            assert!(told.contains(part), "{told:?} does not say {part:?}");
        }
    }

    #[test]
    fn limits() {
        check((300, 360), Some((1_000_000, 1_200_000)), &[]);
        check((139, 139), None, &[]);
        check((301, 301), Some((900_000, 900_000)), &["301 allocations a step"]);
        check((200, 241), Some((900_000, 900_000)), &["allocations grow 1.21 times"]);
        check((200, 200), Some((1_000_001, 1_000_001)), &["1000001 instructions a step"]);
        check((200, 200), Some((500_000, 700_000)), &["instructions grow 1.40 times"]);
        check(
            (400, 800),
            Some((2_000_000, 4_000_000)),
            &["400 alloc", "grow 2.00", "2000000 inst", "grow 2.00"],
        );
    }

    #[test]
    fn what_was_not_measured_is_not_passed() {
        check((0, 0), None, &["no allocations were counted"]);
        check((200, 0), None, &["no allocations were counted"]);
        check((200, 200), Some((0, 0)), &["no instructions were counted"]);
        let falling = Counted { totals: vec![900, 400, 100] };
        assert!(!judge("allocations", &falling, 300.0).is_empty());
    }
}
