//! What a mesh is made of, from TOML, each figure with its source.
//!
//! *Invariant:* parameters that pass [`Parameters::check`] make a mesh: nothing that they say can make a run panic, hang or
//! count wrongly.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::mesh::Topology;

/// How routers carry packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// X-Y routing, each link a timeline of reservations: [`Timelines`](crate::mesh::Timelines).
    Timelines,
    /// X-Y routing through input queues: [`Buffered`](crate::mesh::Buffered).
    Buffered,
    /// No queues, hot potato: [`Deflection`](crate::mesh::Deflection).
    Deflection,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Timelines, Kind::Buffered, Kind::Deflection];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Timelines => "timelines",
            Kind::Buffered => "buffered",
            Kind::Deflection => "deflection",
        })
    }
}

impl FromStr for Kind {
    type Err = ParametersError;

    fn from_str(text: &str) -> Result<Kind, ParametersError> {
        let named = |kind: &Kind| kind.to_string() == text;
        let kind = Kind::ALL.into_iter().find(named);
        kind.ok_or_else(|| ParametersError::NoSuchNetwork(text.to_owned()))
    }
}

/// What a mesh is made of. All times are in cycles of one clock, which all nodes share.
///
/// ```
/// use metes_noc::{Kind, Parameters};
/// let parameters = Parameters::parse("columns = 4\nrows = 4\nnetwork = \"buffered\"\nqueue = 4")?;
/// assert_eq!((parameters.queue, parameters.hop()), (4, 4));
/// assert_eq!(parameters, Parameters { queue: 4, ..Parameters::new(4, 4, Kind::Buffered) });
/// let error = Parameters::parse("columns = 4\nrows = 0\nnetwork = \"buffered\"").unwrap_err();
/// assert_eq!(error.to_string(), "rows is 0, and must be from 1 to 256");
/// # Ok::<(), metes_noc::ParametersError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Nodes in a row: 1 to 256.
    pub columns: usize,
    /// Nodes in a column: 1 to 256.
    pub rows: usize,
    /// How routers carry packets. Nostrum's switches deflect (Millberg et al., VLSI Design 2004, has the protocol; that the
    /// switch is a hot potato's is an assumption from elsewhere); link timelines are the cheap model of any mesh.
    pub network: Kind,
    /// Cycles from the core to its router: 1 to 1024, by default 1. Assumption; with [`interface_out`](Self::interface_out)
    /// it is also what the latencies of BookSim2 have beside those of routers.
    #[serde(default = "one")]
    pub interface_in: u64,
    /// Cycles from the router to its core: 0 to 1024, by default 1. Assumption.
    #[serde(default = "one")]
    pub interface_out: u64,
    /// Cycles of a hop, through a router and over a link, when nobody is in the way: 1 to 1024. By default 4 if buffered
    /// (measured on BookSim2: virtual channel, switch, traversal, link), else 1 (assumption for Nostrum).
    #[serde(default)]
    pub hop: Option<u64>,
    /// Cycles for which a packet keeps a link from others: 1 to `hop`, by default 1, a packet being one flit. Assumption.
    /// Under deflection only 1.
    #[serde(default = "one")]
    pub occupancy: u64,
    /// Packets for which an input of a buffered router has room: 1 to 1024, by default 8 (the default of BookSim2, there for
    /// each virtual channel).
    #[serde(default = "eight")]
    pub queue: u64,
    /// Cycles from when a packet leaves a queue of a buffered router to when the router before knows: 1 to 1024, by
    /// default 2 (the examples of BookSim2).
    #[serde(default = "two")]
    pub credit: u64,
}

fn one() -> u64 {
    1
}

fn two() -> u64 {
    2
}

fn eight() -> u64 {
    8
}

/// Parameters or faults that there cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The text is no TOML, or says what is not understood.
    #[error("{0}")]
    Syntax(String),
    /// No network has this name.
    #[error("there is no network `{0}`: take timelines, buffered or deflection")]
    NoSuchNetwork(String),
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
    /// A packet would arrive before it has left.
    #[error(
        "occupancy is {occupancy} and hop {hop}: a packet cannot keep a link for longer than it takes a hop; raise hop, or \
         lower occupancy"
    )]
    OccupancyBeyondHop {
        /// Cycles for which a packet keeps a link.
        occupancy: u64,
        /// Cycles of a hop.
        hop: u64,
    },
    /// A deflection router would have to hold packets.
    #[error(
        "occupancy is {0}, but a deflection router cannot hold a packet back: set occupancy to 1, or take timelines or \
         buffered"
    )]
    OccupancyOfDeflection(u64),
    /// A fault names a link that is not there.
    #[error(
        "there is no link between {one} and {other}: name two neighbours, in numbers along rows from 0 on"
    )]
    NoSuchLink {
        /// A node.
        one: usize,
        /// Another, which is not its neighbour.
        other: usize,
    },
    /// A fault names a node that is not there.
    #[error("there is no node {node}: the mesh has {nodes}, with numbers from 0 on")]
    NoSuchNode {
        /// The node that was named.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
}

impl ParametersError {
    /// What the reader of TOML says, in one line.
    #[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
    pub(crate) fn syntax(error: toml::de::Error) -> ParametersError {
        let text = error.to_string();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        ParametersError::Syntax(lines.collect::<Vec<_>>().join(" "))
    }
}

/// The longest time of one thing.
const LONGEST: u64 = 1024;

impl Parameters {
    /// A mesh with the default of everything else.
    #[must_use]
    pub fn new(columns: usize, rows: usize, network: Kind) -> Parameters {
        Parameters {
            columns,
            rows,
            network,
            interface_in: one(),
            interface_out: one(),
            hop: None,
            occupancy: one(),
            queue: eight(),
            credit: two(),
        }
    }

    /// Reads parameters from TOML. Linear.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn parse(text: &str) -> Result<Parameters, ParametersError> {
        let parameters: Parameters = toml::from_str(text).map_err(ParametersError::syntax)?;
        parameters.check()?;
        Ok(parameters)
    }

    /// Cycles of a hop.
    #[must_use]
    pub fn hop(&self) -> u64 {
        self.hop.unwrap_or(match self.network {
            Kind::Buffered => 4,
            Kind::Timelines | Kind::Deflection => 1,
        })
    }

    /// Nodes and links.
    ///
    /// # Panics
    /// When columns or rows do not pass [`check`](Self::check).
    #[must_use]
    pub fn topology(&self) -> Topology {
        Topology::new(self.columns, self.rows)
    }

    /// The cycles of a packet that meets no other, from one node to another. O(1).
    ///
    /// # Panics
    /// As [`topology`](Self::topology).
    #[must_use]
    pub fn latency(&self, from: usize, to: usize) -> u64 {
        let hops = self.topology().hops(from, to) as u64;
        // Into its core, too, a packet leaves a buffered router through the switch.
        let passed = hops + u64::from(self.network == Kind::Buffered);
        self.interface_in + passed * self.hop() + self.interface_out
    }

    /// Whether such a mesh can be. O(1).
    ///
    /// # Errors
    /// What cannot be, and what to do.
    pub fn check(&self) -> Result<(), ParametersError> {
        let side = Topology::LONGEST_SIDE as u64;
        for (name, value, least, most) in [
            ("columns", self.columns as u64, 1, side),
            ("rows", self.rows as u64, 1, side),
            ("interface_in", self.interface_in, 1, LONGEST),
            ("interface_out", self.interface_out, 0, LONGEST),
            ("hop", self.hop(), 1, LONGEST),
            ("occupancy", self.occupancy, 1, LONGEST),
            ("queue", self.queue, 1, LONGEST),
            ("credit", self.credit, 1, LONGEST),
        ] {
            if !(least..=most).contains(&value) {
                return Err(ParametersError::OutOfRange {
                    name,
                    value,
                    least,
                    most,
                });
            }
        }
        if self.occupancy > 1 && self.network == Kind::Deflection {
            return Err(ParametersError::OccupancyOfDeflection(self.occupancy));
        }
        if self.occupancy > self.hop() {
            return Err(ParametersError::OccupancyBeyondHop {
                occupancy: self.occupancy,
                hop: self.hop(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::mesh::{Faults, Mesh};

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_a_line(
            lines in prop::collection::vec(
                prop_oneof![
                    "(columns|rows|hop|queue|lost|nodes|links) = ([0-9]{1,20}|-1|\\[[0-9]\\]|\\[\\{ node = 1, from = 2 \\}\\])",
                    Just("network = \"buffered\"".to_owned()),
                    "\\PC{0,20}",
                ],
                0..6,
            ),
        ) {
            let text = lines.join("\n");
            let errors = [Parameters::parse(&text).err(), Faults::parse(&text).err()];
            for error in errors.into_iter().flatten() {
                prop_assert!(!error.to_string().contains('\n'), "{}", error);
            }
            if let Ok(parameters) = Parameters::parse(&text) {
                prop_assert_eq!(parameters.check(), Ok(()));
            }
        }

        #[test]
        fn any_figures_make_a_mesh_or_an_error(
            sides in (0..5usize, 0..5usize),
            figures in prop::collection::vec(prop_oneof![0..5u64, Just(1024), any::<u64>()], 6),
            network in prop::sample::select(Kind::ALL.to_vec()),
            ends in (0..20usize, 0..20usize),
        ) {
            let parameters = Parameters {
                interface_in: figures[0],
                interface_out: figures[1],
                hop: Some(figures[2]),
                occupancy: figures[3],
                queue: figures[4],
                credit: figures[5],
                ..Parameters::new(sides.0, sides.1, network)
            };
            if let Ok(mut mesh) = Mesh::new(&parameters, &Faults::default())
                && mesh.send(0, ends.0, ends.1).is_ok()
            {
                let mut all = Vec::new();
                mesh.advance(100_000, &mut all);
                prop_assert_eq!(all[0].cycle, parameters.latency(ends.0, ends.1));
            }
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for network in Kind::ALL {
            let parameters = Parameters {
                hop: Some(7),
                ..Parameters::new(5, 3, network)
            };
            let text = toml::to_string(&parameters).expect("plain data");
            assert_eq!(Parameters::parse(&text), Ok(parameters));
            assert_eq!(network.to_string().parse(), Ok(network));
        }
    }

    #[test]
    fn what_cannot_be_is_named_with_its_remedy() {
        let said = |text: &str| {
            let text = format!("columns = 2\nrows = 2\n{text}");
            Parameters::parse(&text)
                .expect_err("it cannot be")
                .to_string()
        };
        assert_eq!(
            said("network = \"timelines\"\ninterface_in = 0"),
            "interface_in is 0, and must be from 1 to 1024"
        );
        assert_eq!(
            said("network = \"timelines\"\noccupancy = 2"),
            "occupancy is 2 and hop 1: a packet cannot keep a link for longer than it takes a hop; raise hop, or lower occupancy"
        );
        assert!(
            said("network = \"deflection\"\nhop = 4\noccupancy = 2").contains("set occupancy to 1")
        );
        assert!(said("network = \"torus\"").contains("unknown variant `torus`"));
        assert!(said("network = \"buffered\"\nqueues = 2").contains("unknown field `queues`"));
        assert!(said("network = \"buffered\"\nhop = -1").contains("invalid value"));
        assert!(!said("network = ").contains('\n'));
        assert!(
            "torus"
                .parse::<Kind>()
                .unwrap_err()
                .to_string()
                .contains("`torus`")
        );
        assert!(Faults::parse("links = [{ between = [0, 1] }]").is_err());
        assert!(Faults::parse("losses = []").is_err());
    }
}
