//! Where the unit's devices are.
//!
//! *Invariant:* each device is used by one module, but the GPIO, whose registers change lines without reading them.

use duster_registers::Device;

macro_rules! devices {
    ($($(#[$doc:meta])* $name:ident = $address:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: Device =
            // SAFETY: the unit has this device here (docs/leon3-devices.md, system.toml).
            unsafe { Device::at($address) };)*
    };
}

devices! {
    /// IRQMP.
    INTERRUPTS = 0x8000_0200;
    /// GPTIMER: the tick, and the watchdog.
    TIMER = 0x8000_0300;
    /// GRGPIO.
    GPIO = 0x8000_0900;
    /// The flash memory.
    FLASH = 0x8000_7000;
}

/// APBUARTs.
pub(crate) const UARTS: [Device; 4] =
    // SAFETY: the unit has these lines here.
    unsafe {
        [
            Device::at(0x8000_0100),
            Device::at(0x8000_1000),
            Device::at(0x8000_1100),
            Device::at(0x8000_1200),
        ]
    };

/// SPICTRLs, in the order of the probes.
pub(crate) const SPI: [Device; 3] =
    // SAFETY: the unit has these controllers here.
    unsafe {
        [
            Device::at(0x8000_4000),
            Device::at(0x8000_5000),
            Device::at(0x8000_6000),
        ]
    };

/// Lines of the GPIO port beside those that say which task runs.
pub(crate) mod lines {
    /// High voltage is inhibited.
    pub(crate) const INHIBIT: u32 = 1 << 16;
    /// The high-voltage supply has tripped; an input.
    pub(crate) const TRIPPED: u32 = 1 << 17;
    /// The watchdog's latch: it has reset the unit; an input.
    pub(crate) const WATCHDOG: u32 = 1 << 22;
    /// Raised as time begins.
    pub(crate) const EPOCH: u32 = 1 << 18;
    /// Changes as a grain is detected.
    pub(crate) const DETECTED: u32 = 1 << 19;
    /// Changes as a deadline is missed.
    pub(crate) const LATE: u32 = 1 << 20;
}
