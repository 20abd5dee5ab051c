//! Text on the first serial line.
//!
//! Invariant: a byte is sent when there is room for it, so none is lost.

use core::fmt::{self, Write};

/// Registers of the APBUART: data, status, control.
const UART: *mut u32 = 0x8000_0100 as *mut u32;

/// The serial line; one core at a time prints.
pub(crate) struct Uart;

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the registers of the UART: enable sending (control bit 1), wait
            // until the holding register is empty (status bit 2), send.
            unsafe {
                UART.add(2).write_volatile(0b10);
                while UART.add(1).read_volatile() & 0b100 == 0 {}
                UART.write_volatile(u32::from(byte));
            }
        }
        Ok(())
    }
}
