//! What things take, each with its source.
//!
//! *Invariant:* settings that fit a machine make a memory; nothing that they say can make a run panic or hang.

use metes_noc::{Kind, Parameters, ParametersError};
use serde::{Deserialize, Serialize};

/// What a mesh of LEON3s is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The network; of link timelines, as cores are not simulated in the order of time.
    pub network: Parameters,
    /// Bytes of the memory of all nodes: a multiple of 4, up to 256 MiB.
    pub memory: u32,
    /// Cycles for which a node's memory serves an access, and no other meanwhile: 1 to 1024. By default 1, beside the
    /// instruction's own: an assumption (memory beside the core, without a cache).
    #[serde(default = "one")]
    pub service: u64,
}

fn one() -> u64 {
    1
}

/// Settings that do not fit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// The network cannot be.
    #[error(transparent)]
    Network(#[from] ParametersError),
    /// It is of another kind.
    #[error(
        "the network is of the kind {0}: cores are simulated out of the order of time, which timelines alone can; say \
         network = \"timelines\""
    )]
    Kind(Kind),
    /// Not a node for each core.
    #[error(
        "a mesh of {nodes} nodes has no place for each of {cores} cores: enlarge columns or rows"
    )]
    Nodes {
        /// Its nodes.
        nodes: usize,
        /// Cores of the machine.
        cores: usize,
    },
    /// Too much memory, or none, or a part of a word.
    #[error("{bytes} bytes of memory: give a multiple of 4 up to {most}", most = MOST)]
    Memory {
        /// How many were asked for.
        bytes: u32,
    },
    /// A memory that is too slow, or too quick.
    #[error("service is {service} cycles, and must be from 1 to 1024")]
    Service {
        /// How many were asked for.
        service: u64,
    },
    /// Its memory would lie where RAM is.
    #[error(
        "RAM of {ram} bytes reaches to where the memory of the mesh begins: give the machine less"
    )]
    Ram {
        /// Bytes of RAM.
        ram: usize,
    },
}

/// Most bytes of memory.
const MOST: u32 = 256 << 20;

impl Settings {
    /// A mesh of so many columns and rows with so many bytes of memory, all else by default.
    #[must_use]
    pub fn new(columns: usize, rows: usize, memory: u32) -> Settings {
        Settings {
            network: Parameters::new(columns, rows, Kind::Timelines),
            memory,
            service: one(),
        }
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// What does not fit, and what to do.
    pub fn check(&self, cores: usize) -> Result<(), Unfit> {
        self.network.check()?;
        if self.network.network != Kind::Timelines {
            return Err(Unfit::Kind(self.network.network));
        }
        let nodes = self.network.topology().nodes();
        if nodes < cores {
            return Err(Unfit::Nodes { nodes, cores });
        }
        if self.memory == 0 || self.memory > MOST || !self.memory.is_multiple_of(4) {
            return Err(Unfit::Memory { bytes: self.memory });
        }
        if !(1..=1024).contains(&self.service) {
            return Err(Unfit::Service {
                service: self.service,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told() {
        let good = Settings::new(4, 4, 1 << 20);
        assert_eq!(good.check(16), Ok(()));
        let refused = |change: fn(&mut Settings), cores| {
            let mut settings = good.clone();
            change(&mut settings);
            settings.check(cores).expect_err("it does not fit")
        };
        let nodes = 16;
        assert_eq!(refused(|_| {}, 17), Unfit::Nodes { nodes, cores: 17 });
        for bytes in [0, 6, MOST + 4] {
            let mut settings = good.clone();
            settings.memory = bytes;
            assert_eq!(settings.check(1), Err(Unfit::Memory { bytes }));
        }
        let slow = refused(|settings| settings.service = 0, 1);
        assert_eq!(slow, Unfit::Service { service: 0 });
        let kind = refused(|settings| settings.network.network = Kind::Buffered, 1);
        assert_eq!(kind, Unfit::Kind(Kind::Buffered));
        assert!(kind.to_string().contains("timelines"));
        let none = refused(|settings| settings.network.columns = 0, 1);
        assert!(matches!(none, Unfit::Network(_)));
    }
}
