//! MCTRL and FTMCTRL, the memory controllers (GRLIB IP core manual): their configuration registers.
//!
//! | offset | register |
//! | --- | --- |
//! | 0x0 | MCFG1: ROM and I/O: wait states, widths, write enable |
//! | 0x4 | MCFG2: SRAM and SDRAM: wait states, sizes, refresh |
//! | 0x8 | MCFG3: refresh period; of an FTMCTRL its error correction |
//!
//! What software writes it reads back, and nothing follows from it: what an access costs is the machine's model of time
//! ([`crate::cache::Cost`]), memory is as large as the machine is configured, and a ROM is never written, whatever its
//! write enable says (a flash memory would want a sequence of commands). The error correction of an FTMCTRL (EDAC, its
//! diagnostic reads and writes) is not modelled.
//!
//! Invariant: registers change by writes alone.

use serde::{Deserialize, Serialize};

use super::{Access, Device, ESA, Identity, saved_by_serde};

/// After reset: 15 wait states for reads and writes of a ROM that is 32 bits wide (on a board the width is read from
/// pins: an assumption).
const RESET: [u32; 3] = [0x2ff, 0, 0];

/// Registers of a memory controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryController {
    registers: [u32; 3],
}

impl MemoryController {
    /// As after reset.
    pub fn new() -> MemoryController {
        MemoryController { registers: RESET }
    }
}

impl Default for MemoryController {
    fn default() -> MemoryController {
        MemoryController::new()
    }
}

impl Device for MemoryController {
    fn name(&self) -> &'static str {
        "MCTRL"
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity {
            vendor: ESA,
            device: 0x00f,
            version: 1,
            interrupt: 0,
        })
    }

    fn read(&mut self, offset: u32, _access: &mut Access) -> u32 {
        let register = self.registers.get((offset / 4) as usize);
        register.copied().unwrap_or(0)
    }

    fn write(&mut self, offset: u32, value: u32, _access: &mut Access) {
        if let Some(register) = self.registers.get_mut((offset / 4) as usize) {
            *register = value;
        }
    }

    saved_by_serde!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut controller = MemoryController::new();
        let mut access = Access::new(0, 0);
        assert_eq!(controller.read(0, &mut access), 0x2ff);
        for offset in [0, 4, 8, 12] {
            controller.write(offset, 0x1234 + offset, &mut access);
        }
        let read = [0, 4, 8, 12].map(|offset| controller.read(offset, &mut access));
        assert_eq!(read, [0x1234, 0x1238, 0x123c, 0]);
    }
}
