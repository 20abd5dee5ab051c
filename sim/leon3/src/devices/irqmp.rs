//! IRQMP, the interrupt controller (GRLIB IP core manual, "IRQMP"), with extended interrupts.
//!
//! What differs between an ordinary and an extended line: an extended one (16 to 31) has no force, no broadcast and no
//! level; those that are pending and unmasked for a core make it see line `extended` ("eirq"), whether that line
//! itself is masked or not, and when it acknowledges that line, the highest of them is cleared and its number kept for
//! software to read. A controller without extended lines has 16 bits of mask and pending.
//!
//! A line that a device holds is pending again after it is acknowledged or cleared.
//!
//! Invariant: a core is told the highest level that is pending or forced and unmasked for it; acknowledging takes a
//! forced interrupt before a pending one. Every line that is held and not broadcast is pending.

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
    /// Lines that devices hold.
    held: u32,
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
            held: 0,
            broadcast: 0,
            mask: [0; MOST_SERVED],
            force: [0; MOST_SERVED],
            acknowledged: [0; MOST_SERVED],
            waiting: 0,
        }
    }

    /// The lines there are, a bit each.
    fn lines(&self) -> u32 {
        if self.extended == 0 { 0xfffe } else { !1 }
    }

    /// From now on these lines are held, and no others.
    pub fn hold(&mut self, lines: u32) {
        self.held = lines;
        self.raise(lines);
    }

    /// Lines that are pulsed become pending; those that are broadcast are forced at every core.
    pub fn raise(&mut self, lines: u32) {
        let lines = lines & self.lines();
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
        let extended = if lines >> 16 != 0 {
            1 << self.extended
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
        let forced = self.force[core] & bit != 0;
        if level == self.extended && level != 0 {
            let lines = self.pending & self.mask[core] >> 16 << 16;
            self.acknowledged[core] = lines.checked_ilog2().unwrap_or(0);
            self.pending &= !(lines & 1 << self.acknowledged[core]);
        }
        self.force[core] &= !bit;
        if !forced {
            self.pending &= !bit;
        }
        self.raise(self.held);
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
            0x04 => self.pending = value & self.lines(),
            0x08 => self.force[0] = value & 0xfffe,
            0x0c => self.pending &= !value,
            0x10 => access.start(u64::from(value & self.waiting)),
            0x14 if self.cores > 1 => self.broadcast = value & 0xfffe,
            0x40..0x80 if core < self.cores => self.mask[core] = value & self.lines(),
            0x80..0xc0 if core < self.cores => {
                // Lower half sets, upper half clears.
                let force = self.force[core] | value & 0xfffe;
                self.force[core] = force & !(value >> 16);
            }
            _ => {}
        }
        self.raise(self.held);
    }

    saved_by_serde!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// Lines, a Boolean each.
    #[derive(Clone, Default)]
    struct Wires([bool; 32]);

    impl Wires {
        fn of(bits: u32) -> Wires {
            Wires(std::array::from_fn(|line| bits >> line & 1 == 1))
        }

        fn bits(&self) -> u32 {
            (0..32).map(|line| u32::from(self.0[line]) << line).sum()
        }
    }

    /// The controller line by line.
    struct Plain {
        cores: usize,
        extended: usize,
        level: Wires,
        pending: Wires,
        held: Wires,
        broadcast: Wires,
        mask: Vec<Wires>,
        force: Vec<Wires>,
        acknowledged: Vec<usize>,
    }

    impl Plain {
        fn lines(&self) -> std::ops::Range<usize> {
            1..if self.extended == 0 { 16 } else { 32 }
        }

        fn arrive(&mut self, lines: &Wires) {
            for line in self.lines().filter(|&line| lines.0[line]) {
                if line < 16 && self.broadcast.0[line] {
                    self.force.iter_mut().for_each(|force| force.0[line] = true);
                } else {
                    self.pending.0[line] = true;
                }
            }
        }

        /// The highest extended line that `core` may see.
        fn highest(&self, core: usize) -> Option<usize> {
            let sees = |&line: &usize| self.pending.0[line] && self.mask[core].0[line];
            (16..32).rev().find(sees)
        }

        fn level(&self, core: usize) -> u8 {
            for first in [true, false] {
                for line in (1..16).rev().filter(|&line| self.level.0[line] == first) {
                    let own = self.pending.0[line] || self.force[core].0[line];
                    let extended = line == self.extended && self.highest(core).is_some();
                    if own && self.mask[core].0[line] || extended {
                        return line as u8;
                    }
                }
            }
            0
        }

        fn acknowledge(&mut self, core: usize, level: usize) {
            if level == self.extended {
                let highest = self.highest(core);
                self.acknowledged[core] = highest.unwrap_or(0);
                if let Some(line) = highest {
                    self.pending.0[line] = false;
                }
            }
            if self.force[core].0[level] {
                self.force[core].0[level] = false;
            } else {
                self.pending.0[level] = false;
            }
            self.arrive(&self.held.clone());
        }

        fn write(&mut self, offset: u32, value: u32) {
            let core = (offset >> 2 & 15) as usize;
            for line in self.lines() {
                let (bit, low) = (value >> line & 1 == 1, line < 16);
                match offset {
                    0x00 if low => self.level.0[line] = bit,
                    0x04 => self.pending.0[line] = bit,
                    0x08 if low => self.force[0].0[line] = bit,
                    0x0c => self.pending.0[line] &= !bit,
                    0x14 if low && self.cores > 1 => self.broadcast.0[line] = bit,
                    0x40..0x80 if core < self.cores => self.mask[core].0[line] = bit,
                    0x80..0xc0 if core < self.cores && low => {
                        let clear = value >> (line + 16) & 1 == 1;
                        let force = &mut self.force[core].0[line];
                        *force = (*force || bit) && !clear;
                    }
                    _ => {}
                }
            }
            self.arrive(&self.held.clone());
        }

        fn read(&self, offset: u32) -> u32 {
            let core = (offset >> 2 & 15) as usize;
            match offset {
                0x00 => self.level.bits(),
                0x04 => self.pending.bits(),
                0x08 => self.force[0].bits(),
                0x14 => self.broadcast.bits(),
                0x40..0x80 => self.mask.get(core).map_or(0, Wires::bits),
                0x80..0xc0 => self.force.get(core).map_or(0, Wires::bits),
                0xc0.. => self.acknowledged.get(core).map_or(0, |&line| line as u32),
                _ => 0,
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Do {
        Raise(u32),
        Hold(u32),
        Write(u32, u32),
        Take(usize),
    }

    fn act() -> impl Strategy<Value = Do> {
        let sparse = || (any::<u32>(), any::<u32>()).prop_map(|(a, b)| a & b & a.rotate_left(7));
        let offset = || prop_oneof![0u32..6, 16u32..20, 32u32..36].prop_map(|r| r * 4);
        prop_oneof![
            3 => sparse().prop_map(Do::Raise),
            1 => sparse().prop_map(Do::Hold),
            3 => (offset(), any::<u32>()).prop_map(|(o, v)| Do::Write(o, v)),
            1 => (offset(), sparse()).prop_map(|(o, v)| Do::Write(o, v)),
            3 => (0usize..3).prop_map(Do::Take),
        ]
    }

    proptest! {
        /// Levels, and what is read, after each pulse, held line, write and acknowledgement.
        #[test]
        fn interrupts_come_as_if_line_by_line(
            cores in 1usize..4,
            extended in prop_oneof![Just(0u8), 1u8..15],
            all in proptest::collection::vec(act(), 1..200),
        ) {
            let mut irqmp = Irqmp::new(cores, extended);
            let mut plain = Plain {
                cores,
                extended: extended.into(),
                level: Wires::default(),
                pending: Wires::default(),
                held: Wires::default(),
                broadcast: Wires::default(),
                mask: vec![Wires::default(); cores],
                force: vec![Wires::default(); cores],
                acknowledged: vec![0; cores],
            };
            let mut access = Access::new(0, 0);
            for act in all {
                match act {
                    Do::Raise(lines) => {
                        irqmp.raise(lines);
                        plain.arrive(&Wires::of(lines));
                    }
                    Do::Hold(lines) => {
                        irqmp.hold(lines);
                        plain.held = Wires::of(lines);
                        plain.arrive(&Wires::of(lines));
                    }
                    // Starting cores is another matter.
                    Do::Write(0x10, _) => {}
                    Do::Write(offset, value) => {
                        irqmp.write(offset, value, &mut access);
                        plain.write(offset, value);
                    }
                    Do::Take(core) if core < cores && irqmp.level(core) != 0 => {
                        let level = irqmp.level(core);
                        irqmp.acknowledge(core, level);
                        plain.acknowledge(core, level.into());
                    }
                    Do::Take(_) => {}
                }
                for core in 0..cores {
                    prop_assert_eq!(irqmp.level(core), plain.level(core));
                }
                for offset in (0..0x100).step_by(4).filter(|&offset| offset != 0x10) {
                    prop_assert_eq!(irqmp.read(offset, &mut access), plain.read(offset));
                }
            }
        }
    }
}
