//! Measurements as a table: CSV with a header that names quantities and units.
//!
//! `cpu_mhz`, where it varies `memory_mhz` (also `_hz`, `_khz`, `_ghz`) and some of `time_s` (`_ms`, `_us`, `_ns`), `power_w` (`_mw`),
//! `energy_j` (`_mj`, `_uj`), `voltage_v` (`_mv`). Of time, power and energy the third follows from two. Other columns are
//! ignored, and named; lines that begin with `#` are comments.
//!
//! Invariant: whatever is read is finite, positive, and known by its line; nothing is guessed of a unit.

use serde::Serialize;

use crate::model::{Point, Quantity};

/// Most rows of a table.
pub const MOST_ROWS: usize = 1_000_000;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its line in the file, from 1.
    pub line: u64,
    /// Where it was made.
    pub point: Point,
    /// Time of the task, ms.
    pub time: Option<f64>,
    /// Mean power, W.
    pub power: Option<f64>,
    /// Energy, mJ.
    pub energy: Option<f64>,
}

impl Row {
    /// What was measured of a quantity, or follows from the two others.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Time => self.time.or_else(|| Some(self.energy? / self.power?)),
            Quantity::Power => self.power.or_else(|| Some(self.energy? / self.time?)),
        }
    }

    /// The energy, measured or time × power, mJ.
    #[must_use]
    pub fn energy(&self) -> Option<f64> {
        self.energy.or_else(|| Some(self.time? * self.power?))
    }
}

/// A table of measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// The rows, in their order.
    pub rows: Vec<Row>,
    /// Columns that say nothing here.
    pub ignored: Vec<String>,
    /// Whether the memory's frequency is told. If not it stands as 1 GHz, and no term of it can be fitted.
    pub memory: bool,
}

/// Why a table is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// No CSV.
    #[error("no CSV: {0}")]
    Csv(String),
    /// A quantity whose unit is unknown or cannot be its.
    #[error("column {column}: '{unit}' is no unit of {quantity}: {known} are")]
    Unit {
        /// The column's name.
        column: String,
        /// What stands for a unit.
        unit: String,
        /// What is measured.
        quantity: &'static str,
        /// The units there are.
        known: String,
    },
    /// A quantity without a unit.
    #[error("column {column} has no unit: name it {column}_{unit}, for example")]
    NoUnit {
        /// The column's name.
        column: String,
        /// A unit of it.
        unit: &'static str,
    },
    /// Two columns of one quantity.
    #[error("columns {first} and {second} say the same: keep one")]
    Twice {
        /// The first column.
        first: String,
        /// The second one.
        second: String,
    },
    /// A frequency is not there.
    #[error(
        "there is no column of the {0}: the header names cpu_mhz, memory_mhz, and some of time_ms, power_w, energy_mj, voltage_v"
    )]
    Lacking(&'static str),
    /// A value that is none, or cannot be.
    #[error("line {line}, column {column}: '{value}' is {why}")]
    Value {
        /// Where.
        line: u64,
        /// The column's name.
        column: String,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// More rows than may be.
    #[error("more than {MOST_ROWS} rows: give the mean of each pair")]
    TooMany,
    /// No row.
    #[error("there is no row below the header")]
    Empty,
}

/// A quantity that a column may have: its name, and units with their factors to those of the library.
type Known = (&'static str, &'static [(&'static str, f64)]);

const FREQUENCY: &[(&str, f64)] = &[("mhz", 1e-3), ("hz", 1e-9), ("khz", 1e-6), ("ghz", 1.0)];

const KNOWN: [Known; 6] = [
    ("cpu", FREQUENCY),
    ("memory", FREQUENCY),
    (
        "time",
        &[("ms", 1.0), ("s", 1e3), ("us", 1e-3), ("ns", 1e-6)],
    ),
    ("power", &[("w", 1.0), ("mw", 1e-3)]),
    ("energy", &[("mj", 1.0), ("j", 1e3), ("uj", 1e-3)]),
    ("voltage", &[("v", 1.0), ("mv", 1e-3)]),
];

/// A column that is read: its index, name and factor.
struct Column {
    index: usize,
    name: String,
    factor: f64,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// [`TableError`], with line and column.
    pub fn parse(text: &str) -> Result<Table, TableError> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.trim_start_matches('\u{feff}').as_bytes());
        let wrong = |error: csv::Error| TableError::Csv(error.to_string());
        let header = reader.headers().map_err(wrong)?.clone();
        let (columns, ignored) = columns(&header)?;
        let [cpu, memory, time, power, energy, voltage] = columns;
        let cpu = cpu.ok_or(TableError::Lacking("processor's frequency"))?;
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(wrong)?;
            if rows.len() >= MOST_ROWS {
                return Err(TableError::TooMany);
            }
            let line = record.position().map_or(0, csv::Position::line);
            let must = |column: &Column| value(&record, line, column);
            let may = |column: &Option<Column>| match column {
                Some(column) if record.get(column.index) != Some("") => must(column).map(Some),
                _ => Ok(None),
            };
            rows.push(Row {
                line,
                point: Point {
                    cpu: must(&cpu)?,
                    memory: memory.as_ref().map_or(Ok(1.0), must)?,
                    voltage: may(&voltage)?,
                },
                time: may(&time)?,
                power: may(&power)?,
                energy: may(&energy)?,
            });
        }
        if rows.is_empty() {
            return Err(TableError::Empty);
        }
        Ok(Table {
            rows,
            ignored,
            memory: memory.is_some(),
        })
    }

    /// The rows in which a quantity is known, with its values.
    #[must_use]
    pub fn of(&self, quantity: Quantity) -> Vec<(Row, f64)> {
        self.rows
            .iter()
            .filter_map(|row| Some((*row, row.of(quantity)?)))
            .collect()
    }

    /// Whether every row has a voltage.
    #[must_use]
    pub fn has_voltages(&self) -> bool {
        self.rows.iter().all(|row| row.point.voltage.is_some())
    }
}

/// The columns of [`KNOWN`], and the names of all others.
fn columns(header: &csv::StringRecord) -> Result<([Option<Column>; 6], Vec<String>), TableError> {
    let mut found = [const { None }; 6];
    let mut ignored = Vec::new();
    for (index, name) in header.iter().enumerate() {
        let lower = name.to_ascii_lowercase();
        let (quantity, unit) = lower.split_once('_').unwrap_or((&lower, ""));
        let Some(number) = KNOWN.iter().position(|(known, _)| *known == quantity) else {
            ignored.push(name.to_owned());
            continue;
        };
        let (quantity, units) = KNOWN[number];
        if unit.is_empty() {
            return Err(TableError::NoUnit {
                column: name.to_owned(),
                unit: units[0].0,
            });
        }
        let Some((_, factor)) = units.iter().find(|(known, _)| *known == unit) else {
            let known: Vec<_> = units.iter().map(|(unit, _)| *unit).collect();
            return Err(TableError::Unit {
                column: name.to_owned(),
                unit: unit.to_owned(),
                quantity,
                known: known.join(", "),
            });
        };
        let column = Column {
            index,
            name: name.to_owned(),
            factor: *factor,
        };
        if let Some(first) = found[number].replace(column) {
            return Err(TableError::Twice {
                first: first.name,
                second: name.to_owned(),
            });
        }
    }
    Ok((found, ignored))
}

fn value(record: &csv::StringRecord, line: u64, column: &Column) -> Result<f64, TableError> {
    let text = record.get(column.index).unwrap_or("");
    let wrong = |why| TableError::Value {
        line,
        column: column.name.clone(),
        value: text.chars().take(40).collect(),
        why,
    };
    let value: f64 = text.parse().map_err(|_| wrong("no number"))?;
    let value = value * column.factor;
    match value {
        value if !value.is_finite() => Err(wrong("not finite")),
        value if value <= 0.0 => Err(wrong("not positive")),
        // So that no square or cube of it leaves the numbers.
        value if !(1e-30..=1e30).contains(&value) => Err(wrong("no value of this world")),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_converted_and_the_third_follows() {
        let text =
            "# a comment\nrun,cpu_khz,memory_ghz,energy_j,power_mw\n1,600000,0.2,0.009,2500\n";
        let table = Table::parse(text).expect("a table");
        assert_eq!(table.ignored, ["run"]);
        let row = table.rows[0];
        assert_eq!((row.line, row.point), (3, Point::new(0.6, 0.2)));
        assert_eq!(row.of(Quantity::Power), Some(2.5));
        assert!((row.of(Quantity::Time).expect("from two") - 3.6).abs() < 1e-12);
        assert!(!table.has_voltages() && table.memory);
        let alone = Table::parse("cpu_mhz,time_ms\n600,2\n").expect("a table");
        assert!(!alone.memory);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        for (text, says) in [
            ("", "no column of the processor's frequency"),
            ("cpu_kg,memory_mhz\n1,2\n", "'kg' is no unit of cpu"),
            ("cpu,memory_mhz\n1,2\n", "name it cpu_mhz"),
            ("cpu_mhz,cpu_hz,memory_mhz\n1,2,3\n", "say the same"),
            ("cpu_mhz,memory_mhz\n", "no row"),
            (
                "cpu_mhz,memory_mhz\n1,x\n",
                "line 2, column memory_mhz: 'x' is no number",
            ),
            ("cpu_mhz,memory_mhz\n1,-2\n", "not positive"),
            ("cpu_mhz,memory_mhz\n1,nan\n", "not finite"),
            ("cpu_mhz,memory_mhz\n1,0\n", "not positive"),
            ("cpu_mhz,memory_mhz\n1,1e60\n", "this world"),
            ("cpu_mhz,memory_mhz\n1\n", "no CSV"),
        ] {
            let error = Table::parse(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }
}
