//! The machine a measurement was made on, in one line.

/// Processor, cores, kernel and day, as far as the system tells.
pub(crate) fn describe() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    line(processor(&info), cores, kernel.trim(), &day)
}

/// Seconds of processor time of all processes that were started here and have ended, theirs included; 0 where the
/// system does not tell.
pub(crate) fn children_cpu_s() -> f64 {
    children_ticks(&std::fs::read_to_string("/proc/self/stat").unwrap_or_default()) / TICKS_A_SECOND
}

/// Fields 16 and 17; the name in field 2 may hold spaces.
fn children_ticks(stat: &str) -> f64 {
    let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    behind_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
}

/// What Linux counts these fields in, on every machine of today.
const TICKS_A_SECOND: f64 = 100.0;

fn processor(info: &str) -> &str {
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    model.and_then(|rest| rest.split_once(':')).map_or("processor unknown", |(_, name)| name.trim())
}

fn line(processor: &str, cores: usize, kernel: &str, day: &str) -> String {
    let kernel = if kernel.is_empty() { std::env::consts::OS } else { kernel };
    format!("{processor}, {cores} cores, kernel {kernel}, {day}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_children_is_found() {
        let stat = "7 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 250 30 20 0";
        assert!((children_ticks(stat) - 280.0).abs() < f64::EPSILON, "{}", children_ticks(stat));
        assert!(children_ticks("") == 0.0);
    }

    #[test]
    fn the_machine_is_named() {
        let info = "processor\t: 0\nmodel name\t: Quick Chip 9\nmodel name\t: Quick Chip 9\n";
        assert_eq!(
            line(processor(info), 2, "6.1", "2030-01-02"),
            "Quick Chip 9, 2 cores, kernel 6.1, 2030-01-02"
        );
        assert_eq!(processor(""), "processor unknown");
    }
}
