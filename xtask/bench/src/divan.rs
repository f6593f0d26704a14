//! Benches of a crate's `benches/` folder: run, and read from the tree that divan prints.

use std::process::{Command, Stdio};

use crate::bench::Fault;

/// One measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Leaf {
    /// Its names below that of the program, outermost first.
    pub(crate) path: Vec<String>,
    pub(crate) median_ns: f64,
    /// In the middle run, where the bench counts them.
    pub(crate) bytes_a_second: Option<f64>,
    pub(crate) items_a_second: Option<f64>,
}

/// Runs `cargo bench --bench NAME` of a crate.
pub(crate) fn run(package: &str, bench: &str, feature: Option<&str>) -> Result<Vec<Leaf>, Fault> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["bench", "--quiet", "--package", package, "--bench", bench]);
    cargo.args(feature.iter().flat_map(|feature| ["--features", feature]));
    cargo.env("DIVAN_BYTES_FORMAT", "decimal").stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = cargo.output()?;
    let told = String::from_utf8_lossy(&output.stdout);
    let leaves = read(&told);
    if output.status.success() && !leaves.is_empty() {
        Ok(leaves)
    } else {
        Err(format!("`cargo bench --package {package} --bench {bench}` gave no measurement: {told}").into())
    }
}

/// Every line with a time, and the lines of its counters below it.
fn read(told: &str) -> Vec<Leaf> {
    let mut leaves: Vec<Leaf> = Vec::new();
    let (mut columns, mut path) = (None, Vec::new());
    for line in told.lines() {
        let chars: Vec<char> = line.chars().collect();
        if columns.is_none() {
            columns = Columns::of(line);
            continue;
        }
        let Some(columns) = &columns else { continue };
        let (depth, name) = columns.name(&chars);
        let value = columns.median(&chars);
        if let Some((depth, name)) = depth.zip(name) {
            path.truncate(depth);
            path.push(name);
            if let Some(median_ns) = value.as_deref().and_then(nanoseconds) {
                let path = path.clone();
                leaves.push(Leaf { path, median_ns, bytes_a_second: None, items_a_second: None });
            }
        } else if let (Some(leaf), Some(value)) = (leaves.last_mut(), value) {
            leaf.bytes_a_second = leaf.bytes_a_second.or_else(|| scaled(&value, "B/s"));
            leaf.items_a_second = leaf.items_a_second.or_else(|| scaled(&value, "item/s"));
        }
    }
    leaves
}

/// Where columns begin, in characters.
struct Columns {
    fastest: usize,
    median: usize,
}

impl Columns {
    fn of(header: &str) -> Option<Self> {
        let at = |word: &str| {
            header.find(word).map(|byte| header.get(..byte).map_or(0, |head| head.chars().count()))
        };
        Some(Self { fastest: at("fastest")?, median: at("median")? })
    }

    /// How deep in the tree a line's name stands, and the name; nothing on a line without one.
    fn name(&self, line: &[char]) -> (Option<usize>, Option<String>) {
        let head: String = line.iter().take(self.fastest).collect();
        let Some(branch) = head.find(['├', '╰']) else { return (None, None) };
        let (above, own) = head.split_at(branch);
        let name = own.trim_start_matches(['├', '╰', '─']).trim().to_owned();
        (Some(above.chars().count() / BRANCH), Some(name))
    }

    fn median(&self, line: &[char]) -> Option<String> {
        let cell: String = line.iter().skip(self.median).take_while(|char| **char != '│').collect();
        Some(cell.trim().to_owned()).filter(|cell| !cell.is_empty())
    }
}

/// Characters of one step into the tree.
const BRANCH: usize = 3;

fn nanoseconds(value: &str) -> Option<f64> {
    let (number, unit) = value.split_once(' ')?;
    let scale = match unit {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

/// A number with this unit, which may have a prefix such as `M`.
fn scaled(value: &str, unit: &str) -> Option<f64> {
    let (number, told) = value.split_once(' ')?;
    let scale = match told.strip_suffix(unit)? {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: &str = "\
Timer precision: 20 ns
sse                 fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ split                          │               │               │               │         │
│  ├─ 16 KiB        1.1 ms        │ 9 ms          │ 2.5 ms        │ 3 ms          │ 100     │ 100
│  │                900 MB/s      │ 100 MB/s      │ 480 MB/s      │ 400 MB/s      │         │
│  │                9 Mitem/s     │ 1 Mitem/s     │ 3.5 Mitem/s   │ 4 Mitem/s     │         │
│  ╰─ 1 event       7 µs          │ 9 µs          │ 8 µs          │ 8 µs          │ 100     │ 100
╰─ text             1 s           │ 2 s           │ 1.5 s         │ 2 s           │ 9       │ 9
";

    #[test]
    fn a_tree_becomes_its_leaves() {
        let leaves = read(TOLD);
        let paths: Vec<String> = leaves.iter().map(|leaf| leaf.path.join("/")).collect();
        assert_eq!(paths, ["split/16 KiB", "split/1 event", "text"]);
        let medians: Vec<f64> = leaves.iter().map(|leaf| leaf.median_ns).collect();
        assert_eq!(medians, [2.5e6, 8e3, 1.5e9]);
        assert_eq!(leaves[0].bytes_a_second, Some(480e6));
        assert_eq!(leaves[0].items_a_second, Some(3.5e6));
        assert_eq!(leaves[2].bytes_a_second, None);
    }

    #[test]
    fn nothing_is_read_from_nothing() {
        assert_eq!(read(""), []);
        assert_eq!(read("error: no such bench\n"), []);
    }
}
