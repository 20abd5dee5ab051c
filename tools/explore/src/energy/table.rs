//! Tables of memories: what an access costs, by size.
//!
//! The shipped table holds runs of CACTI 6.5-P at 130 nm and rows of DRAM from
//! data sheets and literature; `cacti_130nm.csv` names the source of each. A
//! size between two rows is interpolated on logarithmic axes (a power law
//! between neighbours, which is what the rows themselves follow roughly), with a
//! software logarithm, so that every machine gets the same integers.
//!
//! Invariant: figures come from a row or from between two rows, never from
//! beyond them; what they come from is said with them.

use serde::{Deserialize, Serialize};

use super::error::{EnergyError, spell};

/// What an access to a memory costs, in the integers that are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Energy of one read, femtojoule.
    pub read_fj: u64,
    /// Energy of one write, femtojoule.
    pub write_fj: u64,
    /// Time of one access, picoseconds.
    pub latency_ps: u64,
    /// Power that leaks at all times, microwatt.
    pub leakage_uw: u64,
}

/// Which leakage is charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Leakage {
    /// Interpolated between 180 and 90 nm on a logarithmic axis where a row has
    /// that, else what the tool says.
    #[default]
    Interpolated,
    /// What the tool says: interpolated linearly, which the leaky 90 nm corner
    /// dominates.
    Tool,
    /// None: dynamic energy alone, as published comparisons often have it.
    None,
}

/// One memory of a table. `None` where the source does not say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// Bytes; `None` where the row holds for any size.
    pub(crate) size: Option<u64>,
    pub(crate) read_nj: f64,
    pub(crate) write_nj: f64,
    pub(crate) latency_ns: Option<f64>,
    pub(crate) leakage_mw: Option<f64>,
    pub(crate) leakage_interpolated_mw: Option<f64>,
    /// Where it comes from.
    pub(crate) source: String,
}

/// Memories of one kind by rising size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table {
    /// What errors call it.
    pub(crate) name: String,
    /// Bits of one access.
    pub(crate) word_bits: u32,
    pub(crate) rows: Vec<Row>,
}

/// Figures before they become integers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Measures {
    pub(crate) read_nj: f64,
    pub(crate) write_nj: f64,
    pub(crate) latency_ns: Option<f64>,
    pub(crate) leakage_mw: Option<f64>,
}

impl Row {
    fn measures(&self, leakage: Leakage) -> Measures {
        Measures {
            read_nj: self.read_nj,
            write_nj: self.write_nj,
            latency_ns: self.latency_ns,
            leakage_mw: match leakage {
                Leakage::None => Some(0.0),
                Leakage::Tool => self.leakage_mw,
                Leakage::Interpolated => self.leakage_interpolated_mw.or(self.leakage_mw),
            },
        }
    }
}

impl Table {
    /// What a memory of `size` bytes costs, and where that comes from.
    ///
    /// # Errors
    /// [`EnergyError::OutOfRange`] beyond the rows.
    pub(crate) fn at(
        &self,
        size: u64,
        leakage: Leakage,
    ) -> Result<(Measures, String), EnergyError> {
        let exact = |row: &&Row| row.size.is_none_or(|own| own == size);
        if let Some(row) = self.rows.iter().find(exact) {
            return Ok((row.measures(leakage), row.source.clone()));
        }
        let mut pairs = self.rows.windows(2);
        let around = pairs.find_map(|pair| match pair {
            [low, high] => match (low.size?, high.size?) {
                (from, to) if from < size && size < to => Some((low, from, high, to)),
                _ => None,
            },
            _ => None,
        });
        let Some((low, from, high, to)) = around else {
            let sizes = || self.rows.iter().filter_map(|row| row.size);
            let rows = (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0));
            let table = self.name.clone();
            return Err(EnergyError::OutOfRange { table, size, rows });
        };
        let share = (log(size) - log(from)) / (log(to) - log(from));
        let (first, second) = (low.measures(leakage), high.measures(leakage));
        let both = |a: Option<f64>, b: Option<f64>| Some(between(a?, b?, share));
        let measures = Measures {
            read_nj: between(first.read_nj, second.read_nj, share),
            write_nj: between(first.write_nj, second.write_nj, share),
            latency_ns: both(first.latency_ns, second.latency_ns),
            leakage_mw: both(first.leakage_mw, second.leakage_mw),
        };
        let source = format!(
            "interpolated at {} on logarithmic axes between {} and {}",
            spell(size),
            low.source,
            high.source
        );
        Ok((measures, source))
    }
}

fn log(size: u64) -> f64 {
    libm::log2(size as f64)
}

/// The value at `share` of the way, on a logarithmic axis; on a linear one where
/// an end is zero and has no logarithm.
fn between(low: f64, high: f64, share: f64) -> f64 {
    if low == 0.0 || high == 0.0 {
        return low + (high - low) * share;
    }
    let (low, high) = (libm::log2(low), libm::log2(high));
    libm::exp2(low + (high - low) * share)
}

/// Largest figure of an access or of leakage, in its unit: a joule, a second, a
/// kilowatt. Whatever is larger is a slip of the unit.
pub(crate) const MOST: [f64; 3] = [1e9, 1e9, 1e6];

impl Measures {
    /// As integers; what is missing is named.
    pub(crate) fn figures(&self, table: &str) -> Result<Figures, EnergyError> {
        let lacking = |figure| EnergyError::Lacking {
            table: table.to_owned(),
            figure,
        };
        // No figure is above `MOST`, so each fits 64 bits.
        let whole = |value: f64, factor: f64| (value * factor).round() as u64;
        Ok(Figures {
            read_fj: whole(self.read_nj, 1e6),
            write_fj: whole(self.write_nj, 1e6),
            latency_ps: whole(self.latency_ns.ok_or(lacking("latency_ns"))?, 1e3),
            leakage_uw: whole(self.leakage_mw.ok_or(lacking("leakage_mw"))?, 1e3),
        })
    }
}

/// The shipped rows, as they came out of their tools.
const CSV: &str = include_str!("cacti_130nm.csv");

/// A shipped table: its name, and the kinds of rows and the memory it holds.
struct Shipped {
    name: &'static str,
    kinds: &'static [&'static str],
    cell: &'static str,
}

const fn shipped_as(
    name: &'static str,
    kinds: &'static [&'static str],
    cell: &'static str,
) -> Shipped {
    Shipped { name, kinds, cell }
}

const SHIPPED: [Shipped; 9] = [
    shipped_as("sram", &["sram_spm", "sram_main"], "itrs-hp"),
    shipped_as("cache", &["cache_2way_32B"], "itrs-hp"),
    shipped_as(
        "lpddr-333-hit",
        &["dram_row_hit"],
        "MICRON_2Gb_LPDDR-333_16bit_A",
    ),
    shipped_as(
        "lpddr-333-miss",
        &["dram_row_miss_BL8"],
        "MICRON_2Gb_LPDDR-333_16bit_A",
    ),
    shipped_as(
        "ddr2-800-hit",
        &["dram_row_hit"],
        "MICRON_1Gb_DDR2-800_16bit_H",
    ),
    shipped_as(
        "ddr2-800-miss",
        &["dram_row_miss_BL8"],
        "MICRON_1Gb_DDR2-800_16bit_H",
    ),
    shipped_as("lpddr-per-bit", &["dram_per_bit"], "LPDDR (generic)"),
    shipped_as("ddr3-per-bit", &["dram_per_bit"], "DDR3 (generic)"),
    shipped_as("lpddr4-per-bit", &["dram_per_bit"], "LPDDR4 (generic)"),
];

/// A row of the shipped file; columns that no figure needs are left out.
#[derive(Deserialize)]
struct Line {
    kind: String,
    capacity_bytes: Option<u64>,
    word_bits: u32,
    cell: String,
    #[serde(rename = "read_nJ")]
    read_nj: f64,
    #[serde(rename = "write_nJ")]
    write_nj: f64,
    access_ns: Option<f64>,
    #[serde(rename = "leak_mW_tool")]
    leakage_mw: Option<f64>,
    #[serde(rename = "leak_mW_loginterp")]
    leakage_interpolated_mw: Option<f64>,
    tool: String,
}

impl Line {
    fn row(self) -> Row {
        let what = match self.capacity_bytes {
            Some(size) => spell(size),
            None => self.cell,
        };
        // A tool is named up to the version that produced the row.
        let tool = self.tool.split(" from ").next().unwrap_or_default();
        Row {
            size: self.capacity_bytes,
            read_nj: self.read_nj,
            write_nj: self.write_nj,
            latency_ns: self.access_ns,
            leakage_mw: self.leakage_mw,
            leakage_interpolated_mw: self.leakage_interpolated_mw,
            source: format!("cacti_130nm.csv: {} {what} ({tool})", self.kind),
        }
    }
}

/// Names of the shipped tables.
pub(crate) fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|shipped| shipped.name).collect()
}

/// A shipped table.
///
/// # Errors
/// [`EnergyError::NoTable`] for a name that is none.
pub(crate) fn shipped(name: &str) -> Result<Table, EnergyError> {
    let Some(shipped) = SHIPPED.iter().find(|shipped| shipped.name == name) else {
        return Err(EnergyError::NoTable {
            table: name.to_owned(),
            known: names(),
        });
    };
    let mut table = Table {
        name: format!("the table `{name}`"),
        word_bits: 32,
        rows: Vec::new(),
    };
    for line in csv::Reader::from_reader(CSV.as_bytes()).deserialize::<Line>() {
        let line = line.map_err(|error| EnergyError::Shipped(error.to_string()))?;
        if shipped.kinds.contains(&line.kind.as_str()) && line.cell == shipped.cell {
            table.word_bits = line.word_bits;
            table.rows.push(line.row());
        }
    }
    table.rows.sort_by_key(|row| row.size);
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(name: &str, size: u64, leakage: Leakage) -> (Figures, String) {
        let table = shipped(name).unwrap();
        let (measures, source) = table.at(size, leakage).unwrap();
        (measures.figures(name).unwrap(), source)
    }

    #[test]
    fn every_row_of_the_file_is_in_one_table() {
        let lines = csv::Reader::from_reader(CSV.as_bytes())
            .deserialize::<Line>()
            .count();
        let rows: usize = names()
            .iter()
            .map(|name| shipped(name).unwrap().rows.len())
            .sum();
        assert_eq!((lines, rows), (23, 23));
    }

    /// Nanojoule of a read and of a write, and nanoseconds, as published with the
    /// table: rounded to three digits.
    #[test]
    fn rows_are_those_published() {
        let published = [
            (4, 0.0170, 0.0225, 1.20),
            (8, 0.0313, 0.0312, 1.22),
            (16, 0.0436, 0.0440, 1.44),
            (32, 0.0823, 0.0604, 1.54),
            (64, 0.1127, 0.0909, 2.03),
            (128, 0.196, 0.130, 2.23),
            (256, 0.261, 0.195, 2.79),
            (512, 0.382, 0.316, 3.44),
            (1024, 0.511, 0.444, 4.14),
            (2048, 0.700, 0.633, 4.95),
            (4096, 0.974, 0.842, 5.84),
            (8192, 1.335, 1.204, 7.03),
        ];
        for (kib, read, write, latency) in published {
            let (own, source) = figures("sram", kib << 10, Leakage::Tool);
            let near = |own: u64, unit: f64, wanted: f64, digit: f64| {
                assert!(
                    (own as f64 / unit - wanted).abs() <= digit,
                    "{kib} KiB: {own} {wanted}"
                );
            };
            near(own.read_fj, 1e6, read, 0.0006);
            near(own.write_fj, 1e6, write, 0.0006);
            near(own.latency_ps, 1e3, latency, 0.006);
            assert!(source.contains("CACTI 6.5-P"), "{source}");
        }
        assert_eq!(figures("cache", 4096, Leakage::Tool).0.read_fj, 25_009);
        assert_eq!(
            figures("lpddr-333-hit", 1 << 28, Leakage::Tool).0.read_fj,
            1_052_000
        );
        assert_eq!(
            figures("ddr2-800-miss", 1 << 27, Leakage::Tool).0.write_fj,
            7_065_000
        );
    }

    #[test]
    fn leakage_is_the_column_chosen() {
        let of = |name, leakage| figures(name, 65536, leakage).0.leakage_uw;
        assert_eq!(of("sram", Leakage::Tool), 8208);
        assert_eq!(of("sram", Leakage::Interpolated), 2467);
        assert_eq!(of("sram", Leakage::None), 0);
        assert_eq!(
            of("ddr2-800-hit", Leakage::Interpolated),
            66_380,
            "the tool's, for want of the other"
        );
    }

    /// Half-way between 64 and 128 KiB on a logarithmic axis lie 90.5 KiB and the
    /// geometric means of both rows.
    #[test]
    fn sizes_between_rows_follow_a_power_law() {
        let (own, source) = figures("sram", 92_682, Leakage::Tool);
        let mean = |low: f64, high: f64| (low * high).sqrt().round();
        let near =
            |own: u64, wanted: f64| assert!((own as f64 - wanted).abs() <= 1.0, "{own} {wanted}");
        near(own.read_fj, mean(112_745.0, 195_982.0));
        near(own.write_fj, mean(90_914.4, 129_832.0));
        near(own.latency_ps, mean(2027.17, 2234.97));
        near(own.leakage_uw, mean(8207.69, 15_142.8));
        assert!(
            source.starts_with("interpolated at 92682 on log"),
            "{source}"
        );
        assert!(
            source.contains("64 KiB") && source.contains("128 KiB"),
            "{source}"
        );
    }

    #[test]
    fn an_end_of_zero_is_met_on_a_straight_line() {
        assert_eq!(between(0.0, 8.0, 0.25), 2.0);
        assert_eq!(between(8.0, 0.0, 0.25), 6.0);
        assert_eq!(between(1.0, 16.0, 0.25), 2.0);
    }

    #[test]
    fn nothing_is_made_up_beyond_the_rows() {
        for size in [1, 4095, 8 * 1024 * 1024 + 1, u64::MAX] {
            let error = shipped("sram")
                .unwrap()
                .at(size, Leakage::Tool)
                .unwrap_err();
            let EnergyError::OutOfRange { rows, .. } = error else {
                panic!("{error}")
            };
            assert_eq!(rows, (4096, 8 << 20));
        }
        let (measures, _) = shipped("ddr3-per-bit")
            .unwrap()
            .at(1 << 30, Leakage::Tool)
            .unwrap();
        let error = measures.figures("the table `ddr3-per-bit`").unwrap_err();
        assert!(error.to_string().contains("`latency_ns`"), "{error}");
        let error = shipped("sarm").unwrap_err().to_string();
        assert!(error.contains("sram, cache, lpddr-333-hit"), "{error}");
    }
}
