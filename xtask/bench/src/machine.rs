//! The machine a measurement was made on, in one line.

/// Processor, cores, kernel and day, as far as the system tells.
pub(crate) fn describe() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let day = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    line(processor(&info), cores, kernel.trim(), &day)
}

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
    fn the_machine_is_named() {
        let info = "processor\t: 0\nmodel name\t: Quick Chip 9\nmodel name\t: Quick Chip 9\n";
        assert_eq!(
            line(processor(info), 2, "6.1", "2030-01-02"),
            "Quick Chip 9, 2 cores, kernel 6.1, 2030-01-02"
        );
        assert_eq!(processor(""), "processor unknown");
    }
}
