//! Watchpoints: who reads or writes a place in memory, or changes a register.
//!
//! Invariant: what is told of an access is what the instruction did; an access that traps did nothing.

use std::fmt;
use std::str::FromStr;

use crate::bus::Bus;
use crate::core::Core;
use crate::observer::{Observer, Touch};

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Bytes of memory, or registers of devices.
    Memory {
        /// The first address.
        address: u32,
        /// How many.
        size: u32,
        /// Whether reads are told.
        reads: bool,
        /// Whether writes are told.
        writes: bool,
        /// Tell accesses with this value alone.
        value: Option<u64>,
    },
    /// A register of the current window, 0 to 31.
    Register(u8),
}

/// A text that names nothing to watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is nothing to watch; write read:, write: or access: with an address, bytes and a value if wanted \
     (write:0x40001000+4=7), or a register (%o0)"
)]
pub struct NoWatch(String);

const REGISTERS: [&str; 4] = ["g", "o", "l", "i"];

impl FromStr for Watched {
    type Err = NoWatch;

    fn from_str(text: &str) -> Result<Watched, NoWatch> {
        let none = || NoWatch(text.to_owned());
        if let Some(name) = text.strip_prefix('%') {
            return register(name).map(Watched::Register).ok_or_else(none);
        }
        let (kind, place) = text.split_once(':').ok_or_else(none)?;
        let (reads, writes) = match kind {
            "read" => (true, false),
            "write" => (false, true),
            "access" => (true, true),
            _ => return Err(none()),
        };
        let (place, value) = match place.split_once('=') {
            Some((place, value)) => (place, Some(number(value).ok_or_else(none)?)),
            None => (place, None),
        };
        let (address, size) = place.split_once('+').unwrap_or((place, "4"));
        let narrow = |text| number(text).and_then(|number| u32::try_from(number).ok());
        let (address, size) = narrow(address).zip(narrow(size)).ok_or_else(none)?;
        if size == 0 {
            return Err(none());
        }
        Ok(Watched::Memory {
            address,
            size,
            reads,
            writes,
            value,
        })
    }
}

/// The number of `g0` to `i7`, `sp` or `fp`.
fn register(name: &str) -> Option<u8> {
    match name {
        "sp" => return Some(14),
        "fp" => return Some(30),
        _ => {}
    }
    let group = REGISTERS
        .iter()
        .position(|&group| name.starts_with(group))?;
    let number: u8 = name[1..].parse().ok().filter(|&number| number < 8)?;
    Some(8 * group as u8 + number)
}

/// Decimal, or hexadecimal behind `0x`.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Something watched that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// The core.
    pub core: usize,
    /// The cycle.
    pub cycle: u64,
    /// The instruction that did it; for a register the one before which it was found changed.
    pub pc: u32,
    /// What it did.
    pub what: What,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// An access to memory.
    Access(Touch),
    /// A register that is another one now.
    Register {
        /// Its number.
        register: u8,
        /// What it was.
        old: u32,
        /// What it is.
        new: u32,
    },
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "core {} cycle {} pc {:#010x}: ",
            self.core, self.cycle, self.pc
        )?;
        match self.what {
            What::Access(touch) => {
                let done = if touch.write { "writes" } else { "reads" };
                let digits = 2 * touch.size as usize;
                write!(
                    f,
                    "{done} {:0digits$x} at {:#010x}",
                    touch.value, touch.address
                )
            }
            What::Register { register, old, new } => {
                let group = REGISTERS[usize::from(register) / 8];
                write!(f, "%{group}{} was {old:08x}, is {new:08x}", register % 8)
            }
        }
    }
}

/// Watches, and hands on what is met.
pub struct Watch<F> {
    watched: Vec<Watched>,
    /// Each core's registers, as they were last, and the window.
    before: Vec<Option<([u32; 32], usize)>>,
    met: F,
}

impl<F: FnMut(Met)> Watch<F> {
    /// Watches all of `watched`.
    pub fn new(watched: Vec<Watched>, met: F) -> Watch<F> {
        Watch {
            watched,
            before: Vec::new(),
            met,
        }
    }
}

impl<F: FnMut(Met)> Observer for Watch<F> {
    fn before(&mut self, core: &Core, _bus: &Bus) -> bool {
        self.before
            .resize(self.before.len().max(core.number + 1), None);
        let now = (core.registers.all(), core.registers.current());
        // In another window the same name is another register.
        if let Some(before) = self.before[core.number].replace(now)
            && before.1 == now.1
        {
            for watched in &self.watched {
                let &Watched::Register(register) = watched else {
                    continue;
                };
                let (old, new) = (
                    before.0[usize::from(register)],
                    now.0[usize::from(register)],
                );
                if old != new {
                    (self.met)(Met {
                        core: core.number,
                        cycle: core.cycles,
                        pc: core.pc,
                        what: What::Register { register, old, new },
                    });
                }
            }
        }
        false
    }

    fn touched(&mut self, core: &Core, touch: Touch) {
        let wanted = |watched: &Watched| match *watched {
            Watched::Register(_) => false,
            Watched::Memory {
                address,
                size,
                reads,
                writes,
                value,
            } => {
                let end = u64::from(address) + u64::from(size);
                let overlaps = u64::from(touch.address) < end
                    && u64::from(touch.address) + u64::from(touch.size) > u64::from(address);
                let kind = if touch.write { writes } else { reads };
                overlaps && kind && value.is_none_or(|value| value == touch.value)
            }
        };
        if self.watched.iter().any(wanted) {
            (self.met)(Met {
                core: core.number,
                cycle: core.cycles,
                pc: touch.pc,
                what: What::Access(touch),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Image;
    use crate::machine::{Configuration, Machine};

    /// sethi 0x40000400, %g1; mov 7, %g2; st %g2, [%g1 + 4]; ldub [%g1 + 7], %g3; ta 0
    const TOUCHES: [u32; 5] = [
        0x0310_0001,
        0x8410_2007,
        0xc420_6004,
        0xc608_6007,
        0x91d0_2000,
    ];

    fn met(watched: &str) -> Vec<String> {
        let image = Image::of_words(0x4000_0000, &TOUCHES);
        let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
        let mut met = Vec::new();
        let watched = vec![watched.parse().unwrap()];
        machine.run(
            100,
            &mut Watch::new(watched, |what| met.push(what.to_string())),
        );
        met
    }

    #[test]
    fn accesses_and_changes_are_told() {
        let write = "core 0 cycle 4 pc 0x40000008: writes 00000007 at 0x40000404";
        let read = "core 0 cycle 5 pc 0x4000000c: reads 07 at 0x40000407";
        assert_eq!(met("write:0x40000404"), [write]);
        assert_eq!(met("access:0x40000407+1"), [write, read]);
        assert_eq!(met("read:0x40000400+64=7"), [read]);
        assert_eq!(met("write:0x40000400+64=8"), [""; 0]);
        assert_eq!(met("write:0x40000408"), [""; 0]);
        assert_eq!(
            met("%g2"),
            ["core 0 cycle 2 pc 0x40000008: %g2 was 00000000, is 00000007"]
        );
    }

    #[test]
    fn what_is_nothing_to_watch_is_refused() {
        for text in [
            "",
            "%",
            "%x1",
            "%g8",
            "write:",
            "write:x",
            "write:1+0",
            "touch:1",
            "write:1=",
            "write:0x1ffffffff",
        ] {
            assert!(text.parse::<Watched>().is_err(), "{text}");
        }
        assert_eq!("%sp".parse(), Ok(Watched::Register(14)));
    }
}
