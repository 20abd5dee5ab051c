//! The unit as core 0's software reaches it.
//!
//! *Invariant:* nothing waits; memory is read within DDR alone, and written behind the image's code and constants alone.

use core::sync::atomic::{AtomicU32, Ordering};

use duster_registers::{flash, gpio, uart};
use metes_duster_application::Hardware;
use metes_duster_application::declared::MEMORY;
use metes_duster_application::hardware::PAGE;
use metes_duster_protocol::definitions::{ResetCause, Supply};

use crate::clock;
use crate::devices::{FLASH, GPIO, UARTS, lines};
use crate::line;

/// DDR.
const BASE: u32 = 0x4000_0000;
/// Words of a page.
const WORDS: usize = PAGE / 4;

/// Load of core 0, per mille.
pub(crate) static LOAD: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" {
    /// The first byte behind code and constants.
    static __constants_end: u8;
}

/// The unit's devices, but for the probes.
pub(crate) struct Devices;

fn supply_line(supply: Supply) -> duster_registers::Device {
    match supply {
        Supply::High => UARTS[1],
        Supply::Low => UARTS[2],
    }
}

/// Sends what a line has room for.
#[inline(never)]
fn send(device: duster_registers::Device, bytes: &[u8]) {
    for &byte in bytes {
        if device.read(uart::STATUS) & uart::FULL != 0 {
            return;
        }
        device.write(uart::DATA, byte.into());
    }
}

impl Hardware for Devices {
    fn now(&self) -> u64 {
        clock::microseconds(0)
    }

    fn reset_cause(&self) -> ResetCause {
        if GPIO.read(gpio::DATA) & lines::WATCHDOG != 0 {
            ResetCause::Watchdog
        } else {
            ResetCause::Power
        }
    }

    fn load(&self) -> u16 {
        LOAD.load(Ordering::Relaxed) as u16
    }

    fn line_free(&self) -> usize {
        line::free()
    }

    fn line_send(&mut self, bytes: &[u8]) {
        line::transmit(bytes);
    }

    fn line_receive(&mut self) -> Option<u8> {
        line::next()
    }

    fn supply_send(&mut self, supply: Supply, bytes: &[u8]) {
        send(supply_line(supply), bytes);
    }

    fn supply_receive(&mut self, supply: Supply) -> Option<u8> {
        let device = supply_line(supply);
        let there = device.read(uart::STATUS) & uart::READY != 0;
        there.then(|| device.read(uart::DATA) as u8)
    }

    fn log(&mut self, bytes: &[u8]) {
        send(UARTS[3], bytes);
    }

    fn tripped(&self) -> bool {
        GPIO.read(gpio::DATA) & lines::TRIPPED != 0
    }

    fn inhibit(&mut self, inhibited: bool) {
        if inhibited {
            GPIO.write(gpio::RAISE, lines::INHIBIT);
        } else {
            GPIO.write(gpio::KEEP, !lines::INHIBIT);
        }
    }

    fn flash_busy(&self) -> bool {
        FLASH.read(flash::STATUS) & flash::BUSY != 0
    }

    fn flash_failed(&mut self) -> bool {
        let failed = FLASH.read(flash::STATUS) & flash::FAILED != 0;
        if failed {
            FLASH.write(flash::STATUS, flash::FAILED);
        }
        failed
    }

    fn flash_read(&mut self, page: u32) {
        FLASH.write(flash::ADDRESS, page * PAGE as u32);
        FLASH.write(flash::COMMAND, flash::READ);
    }

    #[inline(never)]
    fn flash_buffer(&self, bytes: &mut [u8; PAGE]) {
        for word in 0..WORDS {
            let value = FLASH.read(flash::BUFFER + 4 * word);
            if let Some(place) = bytes.get_mut(4 * word..4 * word + 4) {
                place.copy_from_slice(&value.to_be_bytes());
            }
        }
    }

    #[inline(never)]
    fn flash_program(&mut self, page: u32, bytes: &[u8; PAGE]) {
        for (word, value) in bytes.as_chunks::<4>().0.iter().enumerate() {
            FLASH.write(flash::BUFFER + 4 * word, u32::from_be_bytes(*value));
        }
        FLASH.write(flash::ADDRESS, page * PAGE as u32);
        FLASH.write(flash::COMMAND, flash::PROGRAM);
    }

    fn flash_erase(&mut self, sector: u32) {
        let bytes = metes_duster_application::hardware::PAGES_OF_SECTOR * PAGE as u32;
        FLASH.write(flash::ADDRESS, sector * bytes);
        FLASH.write(flash::COMMAND, flash::ERASE);
    }

    fn kick(&mut self) {
        clock::kick();
    }

    fn image(&self) -> &[u8] {
        let bytes = (&raw const __constants_end) as usize - BASE as usize;
        // SAFETY: the image begins where DDR does, and what lies before this symbol no software writes.
        unsafe { core::slice::from_raw_parts(BASE as *const u8, bytes) }
    }

    fn memory(&self, address: u32, length: u32) -> Option<&[u8]> {
        let end = address.checked_add(length)?;
        if address < BASE || end > BASE + MEMORY {
            return None;
        }
        // SAFETY: DDR of the unit. What another core or an interrupt writes meanwhile is read as it is or as it was: these
        // bytes are sent to the ground and decide nothing here.
        Some(unsafe { core::slice::from_raw_parts(address as *const u8, length as usize) })
    }

    #[inline(never)]
    fn write_memory(&mut self, address: u32, bytes: &[u8]) -> bool {
        let Some(end) = u32::try_from(bytes.len())
            .ok()
            .and_then(|length| address.checked_add(length))
        else {
            return false;
        };
        if address < (&raw const __constants_end) as u32 || end > BASE + MEMORY {
            return false;
        }
        for (number, &byte) in bytes.iter().enumerate() {
            // SAFETY: DDR of the unit, neither code nor constants. That the ground may change any other byte is what this
            // service is for; it is allowed in modes alone in which nothing is acquired.
            unsafe { (address as *mut u8).add(number).write_volatile(byte) };
        }
        true
    }
}
