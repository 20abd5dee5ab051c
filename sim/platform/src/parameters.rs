//! What the platform is made of, from TOML; the file of defaults names the source of each figure.
//!
//! *Invariant:* parameters that pass [`Parameters::check`] make a platform: nothing that they say can make a run panic or
//! hang, or sums of cycles overflow.

use metes_mesh::{HeapSpace, Impossible};
use metes_noc::ParametersError as NetworkError;
use serde::{Deserialize, Serialize};

/// The defaults, each with its source.
pub const DEFAULTS: &str = include_str!("../platform.toml");

/// What the platform is made of.
///
/// ```
/// use metes_platform::Parameters;
/// let parameters = Parameters::sized(4, 4);
/// assert_eq!(parameters.nodes(), 16);
/// let error = Parameters::parse("heap = 0").unwrap_err();
/// assert_eq!(error.to_string(), "heap is 0, and must be from 256 to 268435456");
/// # Ok::<(), metes_platform::ParametersError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Bytes of the heap of each node, its records included.
    pub heap: u64,
    /// The mesh of routers.
    pub network: metes_noc::Parameters,
    /// The core of each node.
    pub core: Core,
    /// Its controller.
    pub controller: Controller,
    /// How the papers' managers are understood.
    pub papers: Papers,
    /// What is done about messages that are not answered.
    pub recovery: Recovery,
}

/// A core, and what code of a manager takes on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Core {
    /// Cycles of 100 instructions.
    pub cycles_per_100_instructions: u64,
    /// Instructions of the heap space map and the search for a request.
    pub map_allocate: u64,
    /// Those for a free.
    pub map_free: u64,
    /// Instructions of the search for each further heap.
    pub map_visit: u64,
    /// Cycles from a command to when the controller begins.
    pub command: u64,
    /// Cycles from the controller's end to when the core knows.
    pub answer: u64,
    /// Instructions of a request to a heap in C, beside those for words of records.
    pub c_allocate: u64,
    /// Those of a free.
    pub c_free: u64,
    /// Those for each word of a record.
    pub c_access: u64,
}

/// Microinstructions of a controller, each a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// A request, beside words of records.
    pub allocate: u64,
    /// A free, beside words of records.
    pub free: u64,
    /// A word of a record.
    pub access: u64,
    /// Taking or giving back a lock.
    pub lock: u64,
    /// Putting a message together.
    pub send: u64,
    /// Taking one apart.
    pub receive: u64,
    /// An address into node and offset.
    pub translate: u64,
    /// A record of a priority table.
    pub table: u64,
    /// A step of the protocol of Metes.
    pub step: u64,
}

/// The order in which a priority table has the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableOrder {
    /// The same for all.
    Global,
    /// The nearest first.
    Distance,
}

/// How the papers' managers are understood where they leave it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Papers {
    /// Whether the microcoded manager sends one message for lock, request and unlocking.
    pub microcoded_fused: bool,
    /// Whether the proposed one does.
    pub proposed_fused: bool,
    /// The order of the microcoded manager's tables.
    pub table: TableOrder,
}

/// What is done about messages that are not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recovery {
    /// Cycles until a request is sent again.
    pub timeout: u64,
    /// How often it is sent, before its node is taken for dead.
    pub tries: u64,
    /// Cycles until a death is noticed.
    pub detection: u64,
}

/// Parameters that there cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The text is no TOML, or says what is not understood.
    #[error("{0}")]
    Syntax(String),
    /// The network cannot be.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// More nodes than a run takes.
    #[error("{columns} x {rows} nodes: give {most} in all at most", most = MOST_NODES)]
    Nodes {
        /// Nodes in a row.
        columns: usize,
        /// Nodes in a column.
        rows: usize,
    },
    /// More memory than a run keeps records of.
    #[error("{nodes} heaps of {heap} bytes: give {most} bytes in all at most", most = MOST_BYTES)]
    TooMuch {
        /// How many nodes.
        nodes: usize,
        /// Bytes of each heap.
        heap: u64,
    },
    /// A figure beyond its limits.
    #[error("{name} is {value}, and must be from {least} to {most}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// What it was.
        value: u64,
        /// The least that it may be.
        least: u64,
        /// The most that it may be.
        most: u64,
    },
}

/// Most nodes of a platform.
pub const MOST_NODES: usize = 4096;
/// Most bytes of all heaps: the host keeps some five times as many of records.
const MOST_BYTES: u64 = 64 << 20;
/// Most cycles or instructions that something small takes.
const MOST: u64 = 1 << 20;

impl Default for Parameters {
    /// Four nodes, all by the file of defaults.
    fn default() -> Self {
        toml::from_str(DEFAULTS).expect("the file of defaults is whole")
    }
}

impl Parameters {
    /// So many columns and rows, all else by default.
    #[must_use]
    pub fn sized(columns: usize, rows: usize) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.network.columns = columns;
        parameters.network.rows = rows;
        parameters
    }

    /// Reads parameters from TOML; what the text does not name is as in [`DEFAULTS`].
    ///
    /// # Errors
    /// [`ParametersError`] says what to change.
    pub fn parse(text: &str) -> Result<Parameters, ParametersError> {
        let syntax = |error| ParametersError::Syntax(in_one_line(text, &error));
        let mut all: toml::Table = toml::from_str(DEFAULTS).expect("the file of defaults is whole");
        overlay(&mut all, toml::from_str(text).map_err(syntax)?);
        let parameters: Parameters = all.try_into().map_err(syntax)?;
        parameters.check()?;
        Ok(parameters)
    }

    /// Whether they can be.
    ///
    /// # Errors
    /// What cannot be, and what to do.
    pub fn check(&self) -> Result<(), ParametersError> {
        self.network.check()?;
        let (columns, rows) = (self.network.columns, self.network.rows);
        if columns * rows > MOST_NODES {
            return Err(ParametersError::Nodes { columns, rows });
        }
        let Parameters {
            core,
            controller,
            recovery,
            ..
        } = self;
        let small = [
            ("core.map_allocate", core.map_allocate),
            ("core.map_free", core.map_free),
            ("core.map_visit", core.map_visit),
            ("core.command", core.command),
            ("core.answer", core.answer),
            ("core.c_allocate", core.c_allocate),
            ("core.c_free", core.c_free),
            ("core.c_access", core.c_access),
            ("controller.allocate", controller.allocate),
            ("controller.free", controller.free),
            ("controller.access", controller.access),
            ("controller.lock", controller.lock),
            ("controller.send", controller.send),
            ("controller.receive", controller.receive),
            ("controller.translate", controller.translate),
            ("controller.table", controller.table),
            ("controller.step", controller.step),
        ];
        let limits = small
            .map(|(name, value)| (name, value, 0, MOST))
            .into_iter()
            .chain([
                ("heap", self.heap, 256, 1 << 28),
                (
                    "core.cycles_per_100_instructions",
                    core.cycles_per_100_instructions,
                    1,
                    MOST,
                ),
                ("recovery.timeout", recovery.timeout, 1, 1 << 40),
                ("recovery.tries", recovery.tries, 1, 64),
                ("recovery.detection", recovery.detection, 1, 1 << 40),
            ]);
        for (name, value, least, most) in limits {
            if !(least..=most).contains(&value) {
                return Err(ParametersError::OutOfRange {
                    name,
                    value,
                    least,
                    most,
                });
            }
        }
        if self.heap * self.nodes() as u64 > MOST_BYTES {
            return Err(ParametersError::TooMuch {
                nodes: self.nodes(),
                heap: self.heap,
            });
        }
        Ok(())
    }

    /// How many nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.network.columns * self.network.rows
    }

    /// Where heaps lie: one behind the other, from where the paper has them (section II), or its multiple where they are larger.
    ///
    /// # Errors
    /// No heaps can lie so.
    pub fn space(&self) -> Result<HeapSpace, Impossible> {
        const BASE: u64 = 0x6000_0000;
        let stride = self.heap.next_power_of_two();
        HeapSpace::new(
            BASE.next_multiple_of(stride),
            self.heap,
            self.nodes() as u32,
        )
    }

    /// Cycles of so many instructions of a core, rounded up.
    #[must_use]
    pub fn cycles(&self, instructions: u64) -> u64 {
        let each = u128::from(self.core.cycles_per_100_instructions);
        let cycles = (u128::from(instructions) * each).div_ceil(100);
        u64::try_from(cycles).unwrap_or(u64::MAX >> 2)
    }
}

/// What the reader of TOML says of a text, in one line, and where.
pub(crate) fn in_one_line(text: &str, error: &toml::de::Error) -> String {
    let said = error.message().lines().collect::<Vec<_>>().join(" ");
    match error.span().and_then(|span| text.get(..span.start)) {
        Some(before) => format!("line {}: {said}", before.matches('\n').count() + 1),
        None => said,
    }
}

/// Puts what `changes` names into `all`, table by table.
fn overlay(all: &mut toml::Table, changes: toml::Table) {
    for (key, value) in changes {
        match (all.get_mut(&key), value) {
            (Some(toml::Value::Table(part)), toml::Value::Table(changes)) => overlay(part, changes),
            (_, value) => {
                all.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_be() {
        assert_eq!(Parameters::default().check(), Ok(()));
        assert_eq!(Parameters::parse(""), Ok(Parameters::default()));
    }

    #[test]
    fn what_is_named_is_changed_alone() {
        let parsed = Parameters::parse("[network]\ncolumns = 3\n[core]\nmap_free = 7");
        let mut expected = Parameters::sized(3, 2);
        expected.core.map_free = 7;
        assert_eq!(parsed, Ok(expected));
    }

    #[test]
    fn what_cannot_be_is_told() {
        for (text, error) in [
            ("heap = 1", "heap is 1, and must be from 256 to 268435456"),
            (
                "[core]\ncommand = 9999999",
                "core.command is 9999999, and must be from 0 to 1048576",
            ),
            (
                "[network]\ncolumns = 0",
                "columns is 0, and must be from 1 to 256",
            ),
            (
                "heap = 268435456",
                "4 heaps of 268435456 bytes: give 67108864 bytes in all at most",
            ),
            (
                "[network]\ncolumns = 256\nrows = 256",
                "256 x 256 nodes: give 4096 in all at most",
            ),
        ] {
            assert_eq!(Parameters::parse(text).unwrap_err().to_string(), error);
        }
        for text in ["heaps = 1", "[core]\nspeed = 1", "heap = \"x\"", "="] {
            let error = Parameters::parse(text).unwrap_err();
            assert!(!error.to_string().contains('\n'));
            assert!(
                matches!(error, ParametersError::Syntax(_)),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn instructions_take_cycles() {
        let parameters = Parameters::default();
        assert_eq!(parameters.cycles(0), 0);
        assert_eq!(parameters.cycles(1), 2);
        assert_eq!(parameters.cycles(1000), 1170);
    }
}
