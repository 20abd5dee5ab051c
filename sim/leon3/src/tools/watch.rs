//! Watchpoints: registers and memory, to be logged or to pause the machine.
//!
//! A point is written `KIND:PLACE[+BYTES][=VALUE]`: `r` (read), `w` (written) or `a` (either) for memory, at a number or
//! a symbol, whose size is then the range; `x` (executed) for the instruction there, or any of so many bytes; `c` (changed)
//! for a register of the current window or `psr`, `wim`, `tbr`, `y`, `fsr`, `%f0` to `%f31`. With a value only accesses of
//! that value count, or changes to it. Registers are looked at before each instruction, so a change of window counts as one.
//!
//! Invariant: hits are in the order in which they happened, each once; a point that pauses does so once a hit, before the
//! next instruction.

use super::{Once, disassemble};
use crate::bus::Bus;
use crate::core::Core;
use crate::image::Image;
use crate::observer::{Observer, Touch};

/// Largest range whose old values are kept.
const KEPT: u32 = 1 << 20;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Of the current window, 0 to 31.
    Integer(u8),
    /// A floating-point register, 0 to 31.
    Float(u8),
    /// Processor state.
    Psr,
    /// Window invalid mask.
    Wim,
    /// Trap base.
    Tbr,
    /// Y.
    Y,
    /// Floating-point state.
    Fsr,
}

impl Register {
    /// The register called `name`, with or without `%`.
    pub fn named(name: &str) -> Option<Register> {
        let name = name.strip_prefix('%').unwrap_or(name);
        Some(match name {
            "psr" => Register::Psr,
            "wim" => Register::Wim,
            "tbr" => Register::Tbr,
            "y" => Register::Y,
            "fsr" => Register::Fsr,
            "sp" => Register::Integer(14),
            "fp" => Register::Integer(30),
            _ => {
                let (bank, number) = (name.get(..1)?, name.get(1..)?.parse::<u8>().ok()?);
                match bank {
                    "f" if number < 32 => Register::Float(number),
                    "r" if number < 32 => Register::Integer(number),
                    _ => Register::Integer(
                        8 * "goli".find(bank)? as u8 + Some(number).filter(|&number| number < 8)?,
                    ),
                }
            }
        })
    }

    /// What it holds in `core`.
    pub fn of(self, core: &Core) -> u32 {
        match self {
            Register::Integer(number) => core.registers.get(number & 31),
            Register::Float(number) => core.float.registers[usize::from(number & 31)],
            Register::Psr => core.psr(),
            Register::Wim => core.wim,
            Register::Tbr => core.tbr,
            Register::Y => core.y,
            Register::Fsr => core.float.fsr,
        }
    }
}

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A register of every core.
    Register(Register),
    /// Bytes of memory or devices.
    Memory {
        /// The first.
        address: u32,
        /// How many.
        size: u32,
        /// Whether reading counts.
        read: bool,
        /// Whether writing counts.
        write: bool,
    },
    /// Instructions of these bytes.
    Code {
        /// The first.
        address: u32,
        /// How many.
        size: u32,
    },
}

/// A watchpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// What is watched.
    pub place: Place,
    /// The only value that counts, if one is given.
    pub value: Option<u64>,
    /// Whether a hit pauses the machine.
    pub pauses: bool,
}

/// A text that is no watchpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no watchpoint: {why}; write r:, w:, a: or x: and an address or symbol, or c: and a register, then +BYTES \
     and =VALUE if wanted"
)]
pub struct NoPoint {
    text: String,
    why: &'static str,
}

impl Point {
    /// Reads a watchpoint, which pauses.
    ///
    /// # Errors
    /// It is none, or names a symbol that `image` lacks.
    pub fn parse(text: &str, image: &Image) -> Result<Point, NoPoint> {
        let no = |why| NoPoint {
            text: text.to_owned(),
            why,
        };
        let (kind, rest) = text.split_once(':').ok_or(no("it has no kind"))?;
        let (place, value) = match rest.split_once('=') {
            Some((place, value)) => (
                place,
                Some(number(value).ok_or(no("its value is no number"))?),
            ),
            None => (rest, None),
        };
        let place = match kind {
            "c" => Place::Register(Register::named(place).ok_or(no("there is no such register"))?),
            "r" | "w" | "a" | "x" => {
                let (name, size) = match place.split_once('+') {
                    Some((name, size)) => {
                        (name, Some(number(size).ok_or(no("its size is no number"))?))
                    }
                    None => (place, None),
                };
                let (address, own) = match (number(name), image.symbol(name)) {
                    (Some(address), _) => (address, 4),
                    (None, Some(symbol)) if kind == "x" => (u64::from(symbol.address), 4),
                    (None, Some(symbol)) => (u64::from(symbol.address), symbol.size.max(1)),
                    (None, None) => return Err(no("there is no such symbol")),
                };
                let size = size.unwrap_or(u64::from(own));
                let inside =
                    size > 0 && address.checked_add(size).is_some_and(|end| end <= 1 << 32);
                if !inside {
                    return Err(no("its range is empty or leaves the address space"));
                }
                let (address, size) = (address as u32, size as u32);
                match kind {
                    "x" if value.is_some() => return Err(no("what is executed has no value")),
                    "x" => Place::Code { address, size },
                    _ => Place::Memory {
                        address,
                        size,
                        read: kind != "w",
                        write: kind != "r",
                    },
                }
            }
            _ => return Err(no("its kind is none of r, w, a, x, c")),
        };
        Ok(Point {
            place,
            value,
            pauses: true,
        })
    }
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// What an instruction did that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It accessed memory or a device.
    Accessed(Touch),
    /// It changed a register.
    Changed,
    /// It is about to be executed.
    Executes,
}

/// Something watched that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Number of the point, in the order in which they were given.
    pub point: usize,
    /// The core.
    pub core: usize,
    /// The instruction.
    pub pc: u32,
    /// Its word, if it is in memory.
    pub word: Option<u32>,
    /// The core's cycle.
    pub cycle: u64,
    /// What it did.
    pub event: Event,
    /// What was there before, if that is known.
    pub old: Option<u64>,
    /// What is there now, or was read.
    pub new: u64,
}

impl Hit {
    /// It in a line, with symbols of `image`.
    pub fn line(&self, image: &Image) -> String {
        let place = match image.symbol_at(self.pc) {
            Some(symbol) => format!(
                "{:#010x} <{}+{:#x}>",
                self.pc,
                symbol.name,
                self.pc - symbol.address
            ),
            None => format!("{:#010x}", self.pc),
        };
        let word = self.word.map_or(String::new(), |word| {
            format!(" ({})", disassemble(word, self.pc))
        });
        let old = self
            .old
            .map_or(String::new(), |old| format!("{old:#x} -> "));
        let (point, core, cycle, new) = (self.point, self.core, self.cycle, self.new);
        let what = match self.event {
            Event::Accessed(Touch {
                write,
                size,
                address,
                ..
            }) => {
                let does = if write { "writes" } else { "reads" };
                format!("{does} {size} bytes at {address:#010x}: {old}{new:#x}")
            }
            Event::Changed => format!("changes the register: {old}{new:#x}"),
            Event::Executes => "is about to execute".to_owned(),
        };
        format!("watchpoint {point}: core {core} at {place}{word}, cycle {cycle}, {what}")
    }
}

/// Where a core was last.
#[derive(Clone, Debug, Default)]
struct Last {
    pc: u32,
    word: Option<u32>,
    registers: Vec<u32>,
}

/// Watches points.
#[derive(Clone, Debug)]
pub struct Watch {
    points: Vec<Point>,
    /// What was in the range of each point; nothing for registers and large ranges.
    kept: Option<Vec<Vec<u8>>>,
    cores: Vec<Last>,
    hits: Vec<Hit>,
    pause: bool,
    once: Once,
}

impl Watch {
    /// Watches `points`, all from the first instruction that is looked at.
    pub fn new(points: Vec<Point>) -> Watch {
        Watch {
            points,
            kept: None,
            cores: Vec::new(),
            hits: Vec::new(),
            pause: false,
            once: Once::default(),
        }
    }

    /// What has happened since the last call.
    pub fn hits(&mut self) -> Vec<Hit> {
        std::mem::take(&mut self.hits)
    }

    #[cold]
    fn begin(&mut self, bus: &Bus) {
        let bytes = |point: &Point| match point.place {
            Place::Memory { address, size, .. } if size <= KEPT => {
                let mut bytes = vec![0; size as usize];
                if bus.peek(address, &mut bytes) {
                    bytes
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        };
        self.kept = Some(self.points.iter().map(bytes).collect());
    }

    fn look_at_registers(&mut self, core: &Core) {
        let last = &mut self.cores[core.number];
        let first = last.registers.is_empty();
        last.registers.resize(self.points.len(), 0);
        for (index, point) in self.points.iter().enumerate() {
            let Place::Register(register) = point.place else {
                continue;
            };
            let new = register.of(core);
            let old = std::mem::replace(&mut last.registers[index], new);
            if first || old == new || point.value.is_some_and(|value| value != u64::from(new)) {
                continue;
            }
            self.pause |= point.pauses;
            self.hits.push(Hit {
                point: index,
                core: core.number,
                pc: last.pc,
                word: last.word,
                cycle: core.cycles,
                event: Event::Changed,
                old: Some(old.into()),
                new: new.into(),
            });
        }
    }

    fn look_at_code(&mut self, core: &Core) {
        for (index, point) in self.points.iter().enumerate() {
            let Place::Code { address, size } = point.place else {
                continue;
            };
            if core.pc.wrapping_sub(address) < size {
                self.pause |= point.pauses;
                self.hits.push(Hit {
                    point: index,
                    core: core.number,
                    pc: core.pc,
                    word: self.cores[core.number].word,
                    cycle: core.cycles,
                    event: Event::Executes,
                    old: None,
                    new: core.pc.into(),
                });
            }
        }
    }
}

impl Observer for Watch {
    fn before(&mut self, core: &Core, bus: &Bus) -> bool {
        if self.kept.is_none() {
            self.begin(bus);
        }
        if self.cores.len() <= core.number {
            self.cores.resize_with(core.number + 1, Last::default);
        }
        if self.once.first(core) {
            self.look_at_registers(core);
            let last = &mut self.cores[core.number];
            last.pc = core.pc;
            last.word = bus.word(core.pc);
            self.look_at_code(core);
        }
        std::mem::take(&mut self.pause)
    }

    fn touched(&mut self, core: &Core, touch: Touch) {
        for (index, point) in self.points.iter().enumerate() {
            let Place::Memory {
                address,
                size,
                read,
                write,
            } = point.place
            else {
                continue;
            };
            let (begin, end) = (u64::from(address), u64::from(address) + u64::from(size));
            let (first, behind) = (
                u64::from(touch.address),
                u64::from(touch.address) + u64::from(touch.size),
            );
            if first >= end || behind <= begin {
                continue;
            }
            let kept = self.kept.as_mut().map(|kept| &mut kept[index]);
            let old = kept.and_then(|kept| replace(kept, address, touch));
            let counts = if touch.write { write } else { read };
            if counts && point.value.is_none_or(|value| value == touch.value) {
                self.pause |= point.pauses;
                self.hits.push(Hit {
                    point: index,
                    core: core.number,
                    pc: touch.pc,
                    word: self.cores.get(core.number).and_then(|last| last.word),
                    cycle: core.cycles,
                    event: Event::Accessed(touch),
                    old: old.filter(|_| touch.write),
                    new: touch.value,
                });
            }
        }
    }
}

/// Puts what was written into `kept`, the bytes from `base`; the value before, if all of it lies there.
fn replace(kept: &mut [u8], base: u32, touch: Touch) -> Option<u64> {
    let bytes = touch.value.to_be_bytes();
    let mut old = Some(0);
    for (index, &byte) in bytes[8 - touch.size as usize..].iter().enumerate() {
        let place = u64::from(touch.address) + index as u64;
        let place = place
            .checked_sub(u64::from(base))
            .and_then(|place| kept.get_mut(place as usize));
        old = old
            .zip(place.as_ref().map(|place| u64::from(**place)))
            .map(|(old, byte)| old << 8 | byte);
        if let Some(place) = place.filter(|_| touch.write) {
            *place = byte;
        }
    }
    old
}
