//! The registers of the unit's devices (GRLIB IP core manual), by their names.
//!
//! A [`Device`] is an address; what it is asked is a load, what it is told a store, nothing more. Who may use which device
//! is for the program to keep: it makes each one once.
//!
//! *Invariant:* accesses are volatile, a word each, at multiples of four within the device.
#![no_std]

/// The registers of a device.
#[derive(Clone, Copy, Debug)]
pub struct Device(*mut u32);

// SAFETY: a device is no memory: what one core stores the other loads, in the order of the bus.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// The device at this address.
    ///
    /// # Safety
    /// There is a device of this unit, whose registers reach as far as they are used.
    #[must_use]
    pub const unsafe fn at(address: usize) -> Device {
        Device(address as *mut u32)
    }

    /// Reads the register at `offset` bytes.
    #[inline(always)]
    #[must_use]
    pub fn read(self, offset: usize) -> u32 {
        debug_assert!(offset.is_multiple_of(4));
        // SAFETY: a register of the device that `at` was promised; a load has no effect on memory.
        unsafe { self.0.add(offset / 4).read_volatile() }
    }

    /// Writes the register at `offset` bytes.
    #[inline(always)]
    pub fn write(self, offset: usize, value: u32) {
        debug_assert!(offset.is_multiple_of(4));
        // SAFETY: as for `read`; no device of the unit writes memory.
        unsafe { self.0.add(offset / 4).write_volatile(value) }
    }
}

/// IRQMP.
pub mod interrupts {
    /// Pending.
    pub const PENDING: usize = 0x04;
    /// Clears pending ones.
    pub const CLEAR: usize = 0x0c;
    /// Status, and the start of other cores.
    pub const START: usize = 0x10;
    /// Lines that reach every core.
    pub const BROADCAST: usize = 0x14;
    /// The mask of core 0; that of the next core four bytes on.
    pub const MASK: usize = 0x40;
}

/// GPTIMER.
pub mod timer {
    /// Reload value of the scaler.
    pub const SCALER_RELOAD: usize = 0x04;
    /// Counter of the first timer.
    pub const COUNTER: usize = 0x10;
    /// Its reload value.
    pub const RELOAD: usize = 0x14;
    /// Its control.
    pub const CONTROL: usize = 0x18;
    /// Bytes from a timer's registers to those of the next.
    pub const NEXT: usize = 0x10;
    /// On, begins anew, loads now, interrupts.
    pub const RUN: u32 = 0b1111;
}

/// APBUART.
pub mod uart {
    /// Data.
    pub const DATA: usize = 0x00;
    /// Status.
    pub const STATUS: usize = 0x04;
    /// Control.
    pub const CONTROL: usize = 0x08;
    /// Divisor.
    pub const SCALER: usize = 0x0c;
    /// Status: something was received.
    pub const READY: u32 = 1;
    /// Status: the sender's FIFO is full.
    pub const FULL: u32 = 1 << 9;
    /// Status: something that was received was lost.
    pub const OVERRUN: u32 = 1 << 4;
    /// Control: receiver and sender on.
    pub const ON: u32 = 3;
    /// Control: interrupts while the sender's FIFO is less than half full.
    pub const SEND_INTERRUPT: u32 = 1 << 9;
    /// Control: interrupts while the receiver's FIFO is at least half full.
    pub const RECEIVE_INTERRUPT: u32 = 1 << 10;
    /// Bytes of a FIFO.
    pub const DEPTH: u32 = 32;
}

/// SPICTRL.
pub mod spi {
    /// Mode.
    pub const MODE: usize = 0x20;
    /// Events.
    pub const EVENT: usize = 0x24;
    /// Slave select.
    pub const SELECT: usize = 0x38;
    /// Automatic slave select.
    pub const AUTOMATIC_SELECT: usize = 0x3c;
    /// Automated mode: configuration.
    pub const AUTOMATIC: usize = 0x40;
    /// Automated mode: period.
    pub const PERIOD: usize = 0x44;
    /// Automated mode: words of a set, a bit each.
    pub const MASK: usize = 0x50;
    /// Automated mode: words to send.
    pub const SEND: usize = 0x200;
    /// Automated mode: words received.
    pub const RECEIVED: usize = 0x400;
    /// Event: a set can be read.
    pub const NOT_EMPTY: u32 = 1 << 9;
    /// Mode: automated, highest bit first, master, on, automatic slave select.
    pub const AUTOMATED: u32 = 1 << 31 | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 14;
    /// Configuration: sets one after the other, begun now.
    pub const IN_ORDER: u32 = 1 << 5 | 1 << 1;
}

/// GRGPIO.
pub mod gpio {
    /// The lines as they are.
    pub const DATA: usize = 0x00;
    /// Direction.
    pub const DIRECTION: usize = 0x08;
    /// Raises lines.
    pub const RAISE: usize = 0x54;
    /// Lets those lines stay that are ones.
    pub const KEEP: usize = 0x64;
    /// Toggles lines.
    pub const TOGGLE: usize = 0x74;
}

/// The flash memory.
pub mod flash {
    /// Busy, and whether the last operation failed.
    pub const STATUS: usize = 0x00;
    /// Address, bytes.
    pub const ADDRESS: usize = 0x04;
    /// Command.
    pub const COMMAND: usize = 0x08;
    /// The page buffer.
    pub const BUFFER: usize = 0x200;
    /// Programs the page at the address.
    pub const PROGRAM: u32 = 1;
    /// Erases the sector at the address.
    pub const ERASE: u32 = 2;
    /// Reads the page at the address.
    pub const READ: u32 = 3;
    /// Status: busy.
    pub const BUSY: u32 = 1;
    /// Status: the last operation failed.
    pub const FAILED: u32 = 2;
}
