//! Why energy and time cannot be told.

use std::fmt;

use metes_config::spell_size;

/// Why a hierarchy is none, or cannot price a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnergyError {
    /// A file with levels or a table is wrong, and where.
    File(Box<metes_config::Error>),
    /// A specification of levels is wrong.
    Spec(String),
    /// No shipped table has this name.
    NoTable {
        /// The name.
        table: String,
        /// The shipped ones.
        known: Vec<&'static str>,
    },
    /// A size lies outside of a table's rows.
    OutOfRange {
        /// The table.
        table: String,
        /// The size asked for, bytes.
        size: u64,
        /// Smallest and largest size of its rows, bytes.
        rows: (u64, u64),
    },
    /// A table lacks a figure, which the level must give itself.
    Lacking {
        /// The table.
        table: String,
        /// The figure, by its key.
        figure: &'static str,
    },
    /// A heap gives some figures of its levels, but not all.
    Incomplete {
        /// The heap.
        heap: String,
        /// The level that lacks one.
        level: String,
        /// The figure, by its key.
        figure: &'static str,
    },
    /// A heap gives a level a figure that no memory has.
    Absurd {
        /// The heap.
        heap: String,
        /// The level.
        level: String,
        /// The figure, by its key.
        figure: &'static str,
    },
    /// A heap has pools in a level that the hierarchy does not have.
    NoLevel {
        /// Number of the level, counted from zero.
        level: usize,
        /// Names of the levels there are.
        names: Vec<String>,
    },
    /// A heap gives a level a size that the hierarchy does not have for it.
    TooLarge {
        /// The level's name.
        level: String,
        /// What the heap asks for, bytes.
        size: u64,
        /// The largest there is, bytes.
        most: u64,
    },
    /// The pools took more than the level holds.
    TooSmall {
        /// The level's name.
        level: String,
        /// What the level holds, bytes.
        size: u64,
        /// What its pools took, bytes.
        taken: u64,
    },
    /// The trace counts accesses in words that no memory has.
    WideWord {
        /// Bytes of its words.
        access_word: u32,
    },
    /// A result is beyond what its integer holds: 18.4 kJ, or 213 days.
    Overflow,
    /// The shipped tables cannot be read: a fault of this library.
    Shipped(String),
}

impl fmt::Display for EnergyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EnergyError::File(error) => error.fmt(f),
            EnergyError::Spec(why) => f.write_str(why),
            EnergyError::NoTable { table, known } => write!(
                f,
                "there is no table `{table}`: those shipped are {}; your own is a file, \
                 named `….toml`",
                known.join(", ")
            ),
            EnergyError::OutOfRange { table, size, rows } => write!(
                f,
                "{} is outside of the rows of {table}, which go from {} to {}: choose a size \
                 between them, another table, or give the level's figures themselves",
                spell(*size),
                spell(rows.0),
                spell(rows.1)
            ),
            EnergyError::Lacking { table, figure } => write!(
                f,
                "{table} does not say `{figure}`: give it with the level, in a levels file"
            ),
            EnergyError::Incomplete {
                heap,
                level,
                figure,
            } => write!(
                f,
                "{heap} does not say `{figure}` of level `{level}`: give `read_energy`, \
                 `write_energy` and `latency` with every level, or price it with --levels"
            ),
            EnergyError::Absurd {
                heap,
                level,
                figure,
            } => write!(
                f,
                "`{figure}` of level `{level}` in {heap} is more than any memory takes: energies \
                 are joules a word, latencies nanoseconds"
            ),
            EnergyError::NoLevel { level, names } => write!(
                f,
                "the heap has pools in memory level {level}, and the hierarchy has only {} \
                 ({}), counted from 0: add a level or move the pools",
                names.len(),
                names.join(", ")
            ),
            EnergyError::TooLarge { level, size, most } => write!(
                f,
                "the heap asks for {} in level `{level}`, which has at most {}: give the heap \
                 less or the level more",
                spell(*size),
                spell(*most)
            ),
            EnergyError::TooSmall { level, size, taken } => write!(
                f,
                "level `{level}` of {} is too small for its pools by {} bytes: they take {} \
                 bytes; give it more or move pools to another level",
                spell(*size),
                taken.saturating_sub(*size),
                taken
            ),
            EnergyError::WideWord { access_word } => write!(
                f,
                "the trace counts accesses in words of {access_word} bytes, and at most 256 make \
                 sense: record it again"
            ),
            EnergyError::Overflow => f.write_str(
                "energy or time is beyond what the results hold (18.4 kJ, 213 days): \
                 look at the figures of the levels",
            ),
            EnergyError::Shipped(why) => {
                write!(f, "the shipped energy tables cannot be read: {why}")
            }
        }
    }
}

impl std::error::Error for EnergyError {}

impl From<metes_config::Error> for EnergyError {
    fn from(error: metes_config::Error) -> Self {
        EnergyError::File(Box::new(error))
    }
}

/// A size for people.
pub(crate) fn spell(size: u64) -> String {
    usize::try_from(size).map_or_else(|_| size.to_string(), spell_size)
}
