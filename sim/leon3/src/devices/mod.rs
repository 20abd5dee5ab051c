//! Devices on the bus, and what one is to the machine.
//!
//! A device is registers and, if it acts by itself, the cycle at which it wants to: nothing is polled. A user adds one
//! by implementing [`Device`] and attaching it with [`crate::Bus::attach`].

#[cfg(test)]
mod beside;
pub(crate) mod flash;
mod gpio;
mod gptimer;
mod irqmp;
mod memory_controller;
mod numbers;
mod spictrl;
mod uart;

pub use flash::{Contents, Flash};
pub use gpio::{Driven, Gpio};
pub use gptimer::{Clock, Gptimer};
pub use irqmp::Irqmp;
pub use memory_controller::MemoryController;
pub use numbers::Numbers;
pub use spictrl::{SpiSlave, Spictrl};
pub use uart::Uart;

use std::any::Any;

/// The cycle of what never happens.
pub const NEVER: u64 = u64::MAX;

/// Who a device is, as the plug-and-play records tell it (GRLIB's `devices` package).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Vendor: 1 is Gaisler.
    pub vendor: u8,
    /// Device of that vendor, 12 bits.
    pub device: u16,
    /// Version, 5 bits.
    pub version: u8,
    /// Its first interrupt line, 0 if it has none.
    pub interrupt: u8,
}

/// Gaisler, the vendor of GRLIB's devices.
pub const GAISLER: u8 = 1;
/// The European Space Agency, the vendor of the memory controller.
pub const ESA: u8 = 4;

/// What a device may know and do while it is accessed or acts.
#[derive(Debug)]
pub struct Access {
    /// The cycle it is.
    pub now: u64,
    /// The core that accesses, 0 when the device acts by itself.
    pub core: usize,
    /// The core's own cycle: before [`now`](Self::now) where others, which have run before it in this slice, were here later.
    pub cycle: u64,
    /// No core will access at an earlier cycle than this.
    pub past: u64,
    /// The bits of the word that the core stores; a peripheral device takes all of them.
    pub bits: u32,
    /// Whether this is one half of an exchange: `casa`, `swap`, `ldstub`. The load comes first; `casa` may store nothing.
    pub exchange: bool,
    raised: u32,
    started: u64,
    waits: u64,
}

impl Access {
    /// An access by `core` at cycle `now`.
    pub fn new(now: u64, core: usize) -> Access {
        Access {
            now,
            core,
            cycle: now,
            past: now,
            bits: u32::MAX,
            exchange: false,
            raised: 0,
            started: 0,
            waits: 0,
        }
    }

    /// Lets the core wait for so many cycles, beside what every access takes.
    pub fn wait(&mut self, cycles: u64) {
        self.waits += cycles;
    }

    /// For how many cycles the core waits.
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// Pulses interrupt line `line`, 1 to 31; 0 is no line.
    pub fn interrupt(&mut self, line: u8) {
        self.raised |= (1 << (line & 31)) & !1;
    }

    /// Starts the cores of `bits`, bit *i* for core *i*, that wait or sleep.
    pub fn start(&mut self, bits: u64) {
        self.started |= bits;
    }

    /// The cores that were started, a bit each.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// The lines that were pulsed, a bit each.
    pub fn raised(&self) -> u32 {
        self.raised
    }
}

/// A device with registers of 32 bits.
///
/// Invariant of the bus: a device is asked what it wants ([`Device::next`], [`Device::holds`]) after it is accessed, has
/// acted, or may have been changed by the user; and it has acted up to a cycle before it is accessed at that cycle.
pub trait Device: Any + Send {
    /// Its name in messages.
    fn name(&self) -> &'static str;

    /// Its plug-and-play record; none for what real hardware does not have.
    fn identity(&self) -> Option<Identity>;

    /// Reads the register at `offset`, a multiple of 4.
    fn read(&mut self, offset: u32, access: &mut Access) -> u32;

    /// Writes the register at `offset`, a multiple of 4.
    fn write(&mut self, offset: u32, value: u32, access: &mut Access);

    /// The cycle at which it acts next.
    fn next(&self) -> u64 {
        NEVER
    }

    /// The interrupt lines that it holds, bit *i* for line *i*: such a line is pending again as soon as it is
    /// acknowledged, as long as its cause lasts. For pulses there is [`Access::interrupt`].
    fn holds(&self) -> u32 {
        0
    }

    /// The interrupt lines that it may pulse or hold if nobody accesses it any more, a bit each; bit 0 if it may end the
    /// run or start a core. Where every core sleeps and nothing of this wakes one, the run is over.
    fn may_raise(&self) -> u32 {
        if self.next() == NEVER { 0 } else { u32::MAX }
    }

    /// Acts: called at cycle [`Device::next`], or a little later where a core was in the midst of an instruction.
    fn advance(&mut self, _access: &mut Access) {}

    /// Everything it holds, as bytes.
    fn save(&self) -> Vec<u8>;

    /// Holds what [`Device::save`] gave.
    ///
    /// # Errors
    /// The bytes are none of this device's.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), String>;

    /// Whether it wants the run to end, as a watchdog does.
    fn expired(&self) -> bool {
        false
    }

    /// Text that it has printed since the last call, for devices that print.
    fn printed(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// [`Device::save`] and [`Device::restore`] of a device that serde knows.
macro_rules! saved_by_serde {
    () => {
        fn save(&self) -> Vec<u8> {
            postcard::to_stdvec(self).expect("plain data")
        }

        fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
            *self = postcard::from_bytes(bytes).map_err(|error| error.to_string())?;
            Ok(())
        }
    };
}
pub(crate) use saved_by_serde;
