//! Numbers of cores, for machines of more than the 16 that `%asr17` and IRQMP know. No LEON3 has it.
//!
//! | offset | read | write |
//! | --- | --- | --- |
//! | 0 | the number of the core that reads | |
//! | 4 | how many cores there are | starts cores 0 to 31, a bit each |
//! | 8 | | starts cores 32 to 63 |
//!
//! Invariant: it holds nothing that changes.

use serde::{Deserialize, Serialize};

use super::{Access, Device, Identity, saved_by_serde};

/// Tells cores their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    cores: u32,
}

impl Numbers {
    /// Numbers of `cores` cores.
    pub fn new(cores: usize) -> Numbers {
        Numbers {
            cores: cores as u32,
        }
    }
}

impl Device for Numbers {
    fn name(&self) -> &'static str {
        "numbers of cores"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, offset: u32, access: &mut Access) -> u32 {
        match offset {
            0 => access.core as u32,
            4 => self.cores,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        match offset {
            4 => access.start(u64::from(value)),
            8 => access.start(u64::from(value) << 32),
            _ => {}
        }
    }

    saved_by_serde!();
}
