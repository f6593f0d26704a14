//! What was measured, as numbers: kept beside the page that shows them, each part with its machine and day.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bench::Fault;

/// Everything that was measured last, by the name of the bench.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures(pub(crate) BTreeMap<String, Section>);

/// What one bench found.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Section {
    /// Machine and day.
    pub(crate) measured_on: String,
    /// Sentences that belong to these numbers.
    pub(crate) notes: Vec<String>,
    pub(crate) tables: Vec<Table>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Table {
    /// What the rows are; stands above their names.
    pub(crate) rows_are: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) unit: Unit,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) name: String,
    /// One for each column; none where it was not measured.
    pub(crate) cells: Vec<Option<f64>>,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Whole,
    Tenth,
    /// How many times another one, two places.
    Times,
}

impl Figures {
    /// Those that are kept; none when nothing was measured yet.
    pub(crate) fn read(path: &Path) -> Result<Self, Fault> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let read = serde_json::from_str(&std::fs::read_to_string(path)?);
        let help =
            |error| format!("{} cannot be read ({error}): measure anew, or take it from git", path.display());
        Ok(read.map_err(help)?)
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), Fault> {
        Ok(std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")?)
    }
}

impl Table {
    pub(crate) fn new(rows_are: &str, columns: &[(&str, Unit)]) -> Self {
        let columns = columns.iter().map(|(name, unit)| Column { name: (*name).to_owned(), unit: *unit });
        Self { rows_are: rows_are.to_owned(), columns: columns.collect(), rows: Vec::new() }
    }

    /// Adds a row, rounded to what is shown, so that the file does not change by more than the page.
    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = Option<f64>>) {
        let rounded = cells.into_iter().zip(&self.columns).map(|(cell, column)| {
            cell.filter(|number| number.is_finite()).map(|number| column.unit.round(number))
        });
        let cells = rounded.collect();
        self.rows.push(Row { name: name.to_owned(), cells });
    }
}

impl Unit {
    pub(crate) fn places(self) -> usize {
        match self {
            Self::Whole => 0,
            Self::Tenth => 1,
            Self::Times => 2,
        }
    }

    fn round(self, number: f64) -> f64 {
        let unit = [1.0, 10.0, 100.0].get(self.places()).copied().unwrap_or(1.0);
        (number * unit).round() / unit
    }
}

/// How many times another number this is.
pub(crate) fn times(number: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| number / other)
}

/// The middle of some numbers; none of none.
pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_is_shown() {
        let mut table = Table::new("client", &[("a", Unit::Whole), ("b", Unit::Tenth), ("c", Unit::Times)]);
        table.row("one", [Some(1.26), Some(1.26), times(1.0, 3.0)]);
        table.row("two", [None, Some(f64::NAN), times(1.0, 0.0)]);
        let cells: Vec<_> = table.rows.iter().map(|row| row.cells.clone()).collect();
        assert_eq!(cells, [vec![Some(1.0), Some(1.3), Some(0.33)], vec![None; 3]]);
    }

    #[test]
    fn figures_survive_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures.json");
        assert_eq!(Figures::read(&path).unwrap(), Figures::default());
        let table = Table::new("client", &[("a", Unit::Times)]);
        let section = Section { measured_on: "here".into(), notes: vec!["So.".into()], tables: vec![table] };
        let figures = Figures(BTreeMap::from([("step".to_owned(), section)]));
        figures.write(&path).unwrap();
        assert_eq!(Figures::read(&path).unwrap(), figures);
        std::fs::write(&path, "{").unwrap();
        assert!(Figures::read(&path).unwrap_err().to_string().contains("measure anew"));
    }

    #[test]
    fn the_middle_number() {
        assert_eq!(median(vec![9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(Vec::new()), None);
    }
}
