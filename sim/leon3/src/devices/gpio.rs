//! GRGPIO (GRLIB IP core manual, "GRGPIO"): lines that are inputs or outputs, and interrupt.
//!
//! | offset | register | or | and | xor |
//! | --- | --- | --- | --- | --- |
//! | 0x00 | data: the lines as they are | | | |
//! | 0x04 | output | 0x54 | 0x64 | 0x74 |
//! | 0x08 | direction, 1 for outputs | 0x58 | 0x68 | 0x78 |
//! | 0x0c | interrupt mask | 0x5c | 0x6c | 0x7c |
//! | 0x10 | polarity: high level or rising edge | | | |
//! | 0x14 | edge, otherwise level | | | |
//! | 0x1c | capability | | | |
//! | 0x40 | lines that can interrupt | | | |
//! | 0x44 | interrupt flags, cleared by ones | | | |
//!
//! Line *i* interrupts on `interrupt + i`; a level holds its line of the interrupt controller ([`Device::holds`]). Inputs
//! are set by the user, each change with its cycle; outputs are recorded. Assumptions: a change is seen at once (the
//! port's synchronisers take two cycles in silicon); what software writes to polarity or edge makes no edge. Not
//! there: maps of interrupts, bypass, input enable, pulses.
//!
//! Invariant: a line is its output where the direction is out, else what the user set; `record` has every change of
//! what the port drives, in the order of time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Access, Device, GAISLER, Identity, NEVER, saved_by_serde};

/// Interrupt flags are there.
const HAS_FLAGS: u32 = 1 << 16;

/// What the port drives from a cycle on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driven {
    /// The cycle.
    pub at: u64,
    /// The lines that it drives.
    pub lines: u32,
    /// What it drives them to; 0 elsewhere.
    pub values: u32,
}

/// A port of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpio {
    /// The lines there are, a bit each.
    there: u32,
    interrupt: u8,
    /// The lines that can interrupt.
    can: u32,
    input: u32,
    output: u32,
    direction: u32,
    mask: u32,
    polarity: u32,
    edge: u32,
    flags: u32,
    /// What inputs will be, each with its cycle and the lines it is about.
    coming: VecDeque<(u64, u32, u32)>,
    record: Vec<Driven>,
}

impl Gpio {
    /// A port of `lines` lines (1 to 32); line *i* of those in `can` interrupts on `interrupt + i`.
    pub fn new(lines: u32, interrupt: u8, can: u32) -> Gpio {
        let there = u32::MAX >> (32 - lines.clamp(1, 32));
        Gpio {
            there,
            interrupt,
            can: can & there,
            input: 0,
            output: 0,
            direction: 0,
            mask: 0,
            polarity: 0,
            edge: 0,
            flags: 0,
            coming: VecDeque::new(),
            record: Vec::new(),
        }
    }

    /// Lets the inputs of `lines` be `values` from cycle `at` on, behind what was set before.
    pub fn set(&mut self, at: u64, lines: u32, values: u32) {
        let at = at.max(self.coming.back().map_or(0, |&(at, ..)| at));
        self.coming.push_back((at, lines & self.there, values));
    }

    /// The lines as they are.
    pub fn lines(&self) -> u32 {
        self.output & self.direction | self.input & !self.direction
    }

    /// What the port has driven, change by change, since the last call.
    pub fn driven(&mut self) -> Vec<Driven> {
        std::mem::take(&mut self.record)
    }

    /// Lines whose level asks for an interrupt.
    fn levels(&self) -> u32 {
        !(self.lines() ^ self.polarity) & self.mask & !self.edge
    }

    /// The lines of the interrupt controller for `lines`; those beyond 31 are none.
    fn routed(&self, lines: u32) -> u32 {
        lines.checked_shl(u32::from(self.interrupt)).unwrap_or(0)
    }

    /// Lines were `before`: edges interrupt, and flags are raised.
    fn look(&mut self, before: u32, access: &mut Access) {
        let lines = self.lines();
        let rising = lines & !before & self.polarity;
        let falling = before & !lines & !self.polarity;
        let edges = (rising | falling) & self.mask & self.edge;
        for line in 1..32 {
            if self.routed(edges) >> line & 1 == 1 {
                access.interrupt(line);
            }
        }
        self.flags |= edges | self.levels();
    }

    fn register(&mut self, offset: u32) -> Option<&mut u32> {
        match offset & 0xf {
            0x4 => Some(&mut self.output),
            0x8 => Some(&mut self.direction),
            0xc => Some(&mut self.mask),
            _ => None,
        }
    }

    fn store(&mut self, offset: u32, value: u32) {
        let (there, can) = (self.there, self.can);
        match offset {
            0x10 => self.polarity = value & can,
            0x14 => self.edge = value & can,
            0x44 => self.flags &= !value,
            _ => {
                let Some(register) = self.register(offset) else {
                    return;
                };
                *register = match offset >> 4 {
                    0 => value,
                    5 => *register | value,
                    6 => *register & value,
                    7 => *register ^ value,
                    _ => *register,
                } & there;
                self.mask &= can;
            }
        }
    }

    fn drives(&self) -> (u32, u32) {
        (self.direction, self.output & self.direction)
    }
}

impl Device for Gpio {
    fn name(&self) -> &'static str {
        "GRGPIO"
    }

    fn identity(&self) -> Option<Identity> {
        Some(Identity {
            vendor: GAISLER,
            device: 0x01a,
            version: 2,
            interrupt: self.interrupt,
        })
    }

    fn read(&mut self, offset: u32, _access: &mut Access) -> u32 {
        match offset {
            0x00 => self.lines(),
            0x10 => self.polarity,
            0x14 => self.edge,
            0x1c => HAS_FLAGS | (self.there.count_ones() - 1),
            0x40 => self.can,
            0x44 => self.flags,
            0x04..0x10 | 0x54..0x60 | 0x64..0x70 | 0x74..0x80 => {
                self.register(offset).map_or(0, |register| *register)
            }
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        let (before, driven) = (self.lines(), self.drives());
        self.store(offset, value);
        self.look(before, access);
        let (lines, values) = self.drives();
        if (lines, values) != driven {
            self.record.push(Driven {
                at: access.now,
                lines,
                values,
            });
        }
    }

    fn next(&self) -> u64 {
        self.coming.front().map_or(NEVER, |&(at, ..)| at)
    }

    fn holds(&self) -> u32 {
        self.routed(self.levels())
    }

    fn advance(&mut self, access: &mut Access) {
        while let Some(&(at, lines, values)) = self.coming.front()
            && at <= access.now
        {
            self.coming.pop_front();
            let before = self.lines();
            self.input = self.input & !lines | values & lines;
            self.look(before, access);
        }
    }

    saved_by_serde!();
}

#[cfg(test)]
mod tests;
