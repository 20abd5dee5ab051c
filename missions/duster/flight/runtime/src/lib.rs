//! LEON3 without an operating system: traps, register windows, interrupts that nest, the start of each core, sleep.
//!
//! A program gives `main(core)`, `on_interrupt(level)` and `on_fault(trap, pc)`. Each core has a stack of its own
//! ([`STACK`] bytes); interrupts run on the stack of what they interrupt.
//!
//! *Invariant:* interrupts are taken at levels above the core's PIL alone; [`masked`] raises it for as long as a closure
//! runs and puts it back as it was.
#![no_std]
#![feature(asm_experimental_arch)]

use core::arch::{asm, global_asm};

global_asm!(include_str!("traps.s"));

/// Bytes of a core's stack (`STACK` in `traps.s`).
pub const STACK: usize = 0x8000;

unsafe extern "C" {
    fn sleep_while(word: *const u32, seen: u32);
    /// Ends the program: error mode, from which a simulated unit stops and a real one is reset by its watchdog.
    pub safe fn halt() -> !;
}

/// PIL of all interrupts but the one that cannot be masked.
const MASKED: u32 = 0xf00;

/// The processor's state register.
fn state() -> u32 {
    let state: u32;
    // SAFETY: reads %psr, nothing else.
    unsafe { asm!("rd %psr, {}", out(reg) state, options(nomem, nostack, preserves_flags)) };
    state
}

/// The number of the core that asks.
#[must_use]
pub fn core() -> usize {
    let configuration: u32;
    // SAFETY: reads %asr17, nothing else.
    unsafe {
        asm!("rd %asr17, {}", out(reg) configuration, options(nomem, nostack, preserves_flags))
    };
    (configuration >> 28) as usize
}

/// Sets PIL, leaving what else is in %psr.
fn set_level(level: u32) {
    let state = state() & !MASKED | level & MASKED;
    // SAFETY: the window and all other bits stay as they are; an interrupt between the read and the write leaves %psr as it
    // found it. Memory is not moved across this, as `nomem` is not said.
    unsafe { asm!("wr {}, 0, %psr", "nop", "nop", "nop", in(reg) state, options(nostack)) };
}

/// Lets interrupts come.
pub fn unmask() {
    set_level(0);
}

/// Runs `work` while no interrupt comes.
pub fn masked<T>(work: impl FnOnce() -> T) -> T {
    let before = state() & MASKED;
    set_level(MASKED);
    let result = work();
    set_level(before);
    result
}

/// Sleeps until an interrupt, unless the word is no longer `seen`; a change by an interrupt is never slept over.
pub fn sleep(word: &core::sync::atomic::AtomicU32, seen: u32) {
    // SAFETY: the word is read, once or several times.
    unsafe { sleep_while(word.as_ptr(), seen) };
}
