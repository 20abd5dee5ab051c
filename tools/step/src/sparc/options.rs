//! What a bound is asked for: the machine's costs, and what the code alone does not tell.
//!
//! Invariant: nothing here makes a bound smaller than the code would have it, but what is said of loops, targets and
//! functions that do not return.

use std::collections::{BTreeMap, BTreeSet};

use metes_leon3::Image;
use metes_leon3::cache::{Cost, Geometry};
use metes_leon3::decode::Kind;
use metes_leon3::timing::Timing;

use super::Work;

/// What is known of the handlers of window overflow and underflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowTraps {
    /// Nothing.
    #[default]
    Unknown,
    /// They are entered from the trap table at this address, and bounded as the function is.
    Table(u32),
    /// What they take, of overflow and of underflow, from the first instruction in the trap table to the `rett`.
    Handlers([Work; 2]),
}

/// What a bound is asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cycles of instructions.
    pub timing: Timing,
    /// Cycles of misses and of devices.
    pub cost: Cost,
    /// Bytes of a line of the caches of instructions and of data, powers of two from 4.
    pub lines: [u32; 2],
    /// Whether loads and stores may be those of devices or read-only memory; else they are all of RAM.
    pub devices: bool,
    /// Register windows of the core.
    pub windows: u32,
    /// The handlers of window overflow and underflow.
    pub window_traps: WindowTraps,
    /// By the head of a loop: how often it is reached, at most, each time the loop is entered.
    pub loops: BTreeMap<u32, u64>,
    /// By the address of a jump or call through a register: where it may go.
    pub targets: BTreeMap<u32, Vec<u32>>,
    /// Functions that do not return: handlers of panics, say.
    pub ending: BTreeSet<u32>,
    /// Software traps from which nothing returns; others are refused.
    pub ending_traps: BTreeSet<u8>,
}

impl Default for Options {
    /// The simulator's LEON3 of 8 windows: its table of cycles, its caches and bus. `ta 0` (halt), `ta 1` (breakpoint)
    /// and `ta 5` (a compiler's abort) end a path.
    fn default() -> Options {
        Options {
            timing: Timing::leon3(),
            cost: Cost::CACHES,
            lines: [Geometry::PAPER.line; 2],
            devices: false,
            windows: 8,
            window_traps: WindowTraps::Unknown,
            loops: BTreeMap::new(),
            targets: BTreeMap::new(),
            ending: BTreeSet::new(),
            ending_traps: BTreeSet::from([0, 1, 5]),
        }
    }
}

/// A text that names no place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` names no place: {why}; write an address (0x40001234), a symbol, or a symbol and how far behind it (malloc+0x1c)"
)]
pub struct NoPlace {
    text: String,
    why: &'static str,
}

impl Options {
    /// The address that `text` names in `image`: `0x40001234`, `malloc` or `malloc+0x1c`.
    ///
    /// # Errors
    /// It names none.
    pub fn address(image: &Image, text: &str) -> Result<u32, NoPlace> {
        let no = |why| NoPlace {
            text: text.to_owned(),
            why,
        };
        // A symbol may have a plus in its name.
        if let Some(symbol) = image.symbol(text) {
            return Ok(symbol.address);
        }
        if let Some(address) = number(text) {
            return Ok(address);
        }
        let (name, behind) = text.rsplit_once('+').ok_or(no("no symbol is called so"))?;
        let symbol = image.symbol(name).ok_or(no("no symbol is called so"))?;
        let behind = number(behind).ok_or(no("what follows the plus is no number"))?;
        symbol
            .address
            .checked_add(behind)
            .ok_or(no("it lies behind the last address"))
    }

    /// Functions whose names `ends` does not return from join [`Options::ending`].
    pub fn end_in(&mut self, image: &Image, ends: impl Fn(&str) -> bool) {
        let named = image.symbols().iter().filter(|symbol| ends(&symbol.name));
        self.ending.extend(named.map(|symbol| symbol.address));
    }

    /// Cycles of a line of instructions from memory.
    pub(super) fn line_of_instructions(&self) -> u64 {
        self.line(0)
    }

    fn line(&self, cache: usize) -> u64 {
        let further = u64::from(self.lines[cache] / 4).saturating_sub(1);
        u64::from(self.cost.first) + further * u64::from(self.cost.further)
    }

    /// Cycles of an instruction's access beyond itself, at best and at worst. A store costs those after it the time that it
    /// keeps the bus for.
    pub(super) fn access(&self, kind: Kind) -> [u64; 2] {
        let (reads, writes) = words(kind);
        let device = if self.devices {
            reads * u64::from(self.cost.device_read) + writes * u64::from(self.cost.device_write)
        } else {
            0
        };
        let read = if reads > 0 { self.line(1) } else { 0 };
        [
            device,
            device.max(read + writes * u64::from(self.cost.write)),
        ]
    }
}

/// Decimal, or hexadecimal behind `0x`.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Words that an instruction reads and writes.
fn words(kind: Kind) -> (u64, u64) {
    use Kind::*;
    match kind {
        Ld | Ldub | Lduh | Ldsb | Ldsh | Lda | Lduba | Lduha | Ldsba | Ldsha | Ldf | Ldfsr => {
            (1, 0)
        }
        Ldd | Ldda | Lddf => (2, 0),
        St | Stb | Sth | Sta | Stba | Stha | Stf | Stfsr => (0, 1),
        Std | Stda | Stdf | Stdfq => (0, 2),
        Ldstub | Ldstuba | Swap | Swapa | Casa => (1, 1),
        _ => (0, 0),
    }
}
