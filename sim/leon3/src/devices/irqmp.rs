//! IRQMP, the interrupt controller (GRLIB IP core manual, "IRQMP"), with extended interrupts.
//!
//! Invariant: a core is told the highest level that is pending or forced and unmasked for it; acknowledging takes a
//! forced interrupt before a pending one.

use serde::{Deserialize, Serialize};

use super::{Access, Device, GAISLER, Identity, saved_by_serde};

/// Cores that one controller serves.
const MOST_SERVED: usize = 16;

/// An interrupt controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Irqmp {
    cores: usize,
    /// The line on which lines 16 to 31 arrive, 0 if there are none.
    extended: u8,
    /// Lines of level 1 come before those of level 0.
    level: u32,
    pending: u32,
    broadcast: u32,
    mask: [u32; MOST_SERVED],
    force: [u32; MOST_SERVED],
    acknowledged: [u32; MOST_SERVED],
    /// Cores that wait to be started, or sleep.
    waiting: u32,
}

impl Irqmp {
    /// A controller of `cores` cores, whose extended lines arrive on line `extended` (0: there are none).
    pub fn new(cores: usize, extended: u8) -> Irqmp {
        Irqmp {
            cores: cores.min(MOST_SERVED),
            extended: extended & 15,
            level: 0,
            pending: 0,
            broadcast: 0,
            mask: [0; MOST_SERVED],
            force: [0; MOST_SERVED],
            acknowledged: [0; MOST_SERVED],
            waiting: 0,
        }
    }

    /// Lines that are pulsed become pending; those that are broadcast are forced at every core.
    pub fn raise(&mut self, lines: u32) {
        let broadcast = lines & self.broadcast;
        for force in &mut self.force[..self.cores] {
            *force |= broadcast & 0xfffe;
        }
        self.pending |= lines & !broadcast;
    }

    /// The level that `core` sees, 0 for none.
    pub fn level(&self, core: usize) -> u8 {
        if core >= self.cores {
            return 0;
        }
        let lines = self.seen(core);
        let high = lines & self.level;
        match if high != 0 { high } else { lines } {
            0 => 0,
            lines => lines.ilog2() as u8,
        }
    }

    /// Levels that are pending or forced, and unmasked.
    fn seen(&self, core: usize) -> u32 {
        let lines = (self.pending | self.force[core]) & self.mask[core];
        let extended = if self.extended != 0 && lines >> 16 != 0 {
            1 << self.extended & self.mask[core]
        } else {
            0
        };
        (lines | extended) & 0xfffe
    }

    /// The level that `core` would see were `line` pulsed now.
    pub(crate) fn level_with(&self, core: usize, line: u32) -> u8 {
        let mut then = self.clone();
        then.raise(1 << line);
        then.level(core)
    }

    /// `core` takes the interrupt of `level`.
    pub fn acknowledge(&mut self, core: usize, level: u8) {
        let bit = 1 << level;
        if self.force[core] & bit != 0 {
            self.force[core] &= !bit;
            return;
        }
        let lines = self.pending & self.mask[core] >> 16 << 16;
        if level == self.extended && level != 0 && lines != 0 {
            let line = lines.ilog2();
            self.acknowledged[core] = line;
            self.pending &= !(1 << line);
        } else {
            self.acknowledged[core] = 0;
        }
        self.pending &= !bit;
    }

    /// Tells which cores wait, a bit each.
    pub(crate) fn wait(&mut self, core: usize, waits: bool) {
        if core < MOST_SERVED {
            self.waiting = self.waiting & !(1 << core) | u32::from(waits) << core;
        }
    }
}

impl Device for Irqmp {
    fn name(&self) -> &'static str {
        "IRQMP"
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity {
            vendor: GAISLER,
            device: 0x00d,
            version: 3,
            interrupt: 0,
        })
    }

    fn read(&mut self, offset: u32, _access: &mut Access) -> u32 {
        let core = (offset >> 2 & 15) as usize;
        match offset {
            0x00 => self.level,
            0x04 => self.pending,
            0x08 => self.force[0],
            0x10 => {
                let broadcast = u32::from(self.cores > 1) << 27;
                (self.cores as u32 - 1) << 28
                    | broadcast
                    | u32::from(self.extended) << 16
                    | self.waiting
            }
            0x14 => self.broadcast,
            0x40..0x80 => self.mask[core],
            0x80..0xc0 => self.force[core],
            0xc0..0x100 => self.acknowledged[core],
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        let core = (offset >> 2 & 15) as usize;
        match offset {
            0x00 => self.level = value & 0xfffe,
            0x04 => self.pending = value & !1,
            0x08 => self.force[0] = value & 0xfffe,
            0x0c => self.pending &= !value,
            0x10 => access.start(u64::from(value & self.waiting)),
            0x14 => self.broadcast = value & 0xfffe,
            0x40..0x80 => self.mask[core] = value & !1,
            0x80..0xc0 => {
                // Lower half sets, upper half clears.
                let force = self.force[core] | value & 0xfffe;
                self.force[core] = force & !(value >> 16);
            }
            _ => {}
        }
    }

    saved_by_serde!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_masks_and_forces() {
        let mut irqmp = Irqmp::new(2, 12);
        let mut access = Access::new(0, 0);
        irqmp.raise(1 << 3 | 1 << 9);
        assert_eq!(irqmp.level(0), 0, "all masked");
        irqmp.write(0x40, 0xffff_fffe, &mut access);
        irqmp.write(0x44, 1 << 3, &mut access);
        assert_eq!((irqmp.level(0), irqmp.level(1)), (9, 3));
        irqmp.write(0x00, 1 << 3, &mut access);
        assert_eq!(irqmp.level(0), 3, "level 1 before level 0");
        irqmp.write(0x80, 1 << 3, &mut access);
        irqmp.acknowledge(0, 3);
        assert_eq!(irqmp.level(0), 3, "the forced one went first");
        irqmp.acknowledge(0, 3);
        assert_eq!((irqmp.level(0), irqmp.level(1)), (9, 0));
        irqmp.acknowledge(0, 9);
        irqmp.raise(1 << 20 | 1 << 17);
        assert_eq!(irqmp.level(0), 12, "extended lines arrive on 12");
        irqmp.acknowledge(0, 12);
        assert_eq!(irqmp.read(0xc0, &mut access), 20);
        assert_eq!(irqmp.level(0), 12);
        irqmp.acknowledge(0, 12);
        assert_eq!((irqmp.read(0xc0, &mut access), irqmp.level(0)), (17, 0));
    }

    #[test]
    fn what_is_broadcast_reaches_every_core() {
        let mut irqmp = Irqmp::new(4, 0);
        let mut access = Access::new(0, 0);
        for core in 0..4 {
            irqmp.write(0x40 + 4 * core, 0xfffe, &mut access);
        }
        irqmp.write(0x14, 1 << 8, &mut access);
        irqmp.raise(1 << 8);
        irqmp.acknowledge(2, 8);
        assert_eq!([0, 1, 2, 3].map(|core| irqmp.level(core)), [8, 8, 0, 8]);
    }
}
