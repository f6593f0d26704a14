//! The limit of a tool call, and whether a measurement keeps it.

use super::subjects::Subject;
use crate::figures::times;

/// What a call costs with nothing around it, and as the driver runs it.
#[derive(Clone, Copy)]
pub(super) struct Cost {
    pub(super) bare: f64,
    pub(super) whole: f64,
}

/// What was measured of one tool.
pub(super) struct Line {
    pub(super) subject: Subject,
    /// `None` where they were not to be counted, or could not be.
    pub(super) instructions: Option<Cost>,
    pub(super) cpu_us: Cost,
}

/// The limit, if it is broken, in words.
pub(super) fn broken(line: &Line) -> Option<String> {
    if !line.subject.is_judged() {
        return None;
    }
    let (what, cost) = match line.instructions {
        Some(cost) => ("instructions", cost),
        None => ("processor time", line.cpu_us),
    };
    let name = line.subject.name();
    if cost.bare <= 0.0 || cost.whole <= 0.0 {
        return Some(format!("{name}: no {what} of a call: one that costs nothing was not measured"));
    }
    let ratio = times(cost.whole, cost.bare)?;
    (ratio > MOST).then(|| {
        format!("{name}: a call costs {ratio:.2} times a bare one in {what}, at most {MOST} is allowed")
    })
}

const MOST: f64 = 3.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(subject: Subject, instructions: Option<[f64; 2]>, cpu_us: [f64; 2], expect: Option<&str>) {
        let cost = |[bare, whole]: [f64; 2]| Cost { bare, whole };
        let line = Line { subject, instructions: instructions.map(cost), cpu_us: cost(cpu_us) };
        let told = broken(&line);
        match (&told, expect) {
            (Some(told), Some(part)) => assert!(told.contains(part), "{told}"),
            (told, expect) => assert_eq!(told.as_deref(), expect),
        }
    }

    #[test]
    fn limits() {
        check(Subject::ReadFile, Some([100.0, 300.0]), [10.0, 90.0], None);
        check(
            Subject::ReadFile,
            Some([100.0, 301.0]),
            [10.0, 10.0],
            Some("read_file: a call costs 3.01 times a bare one in instructions"),
        );
        check(Subject::ReadFile, None, [10.0, 30.0], None);
        check(Subject::ReadFile, None, [10.0, 31.0], Some("3.10 times a bare one in processor time"));
        check(Subject::Bash, None, [1_000.0, 3_100.0], Some("bash: a call costs 3.10 times"));
    }

    #[test]
    fn what_was_not_measured_is_not_passed() {
        check(Subject::ReadFile, Some([0.0, 0.0]), [10.0, 10.0], Some("no instructions of a call"));
        check(Subject::ReadFile, Some([10.0, -1.0]), [10.0, 10.0], Some("no instructions of a call"));
        check(Subject::Bash, None, [0.0, 10.0], Some("no processor time of a call"));
    }

    #[test]
    fn a_function_that_does_nothing_has_no_limit() {
        check(Subject::Closure, Some([1.0, 90.0]), [1.0, 90.0], None);
        check(Subject::Command, Some([1.0, 90.0]), [1.0, 90.0], None);
    }
}
