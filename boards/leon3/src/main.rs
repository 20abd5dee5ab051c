//! Self-test of `metes-heap` on LEON3 (SPARC V8): QEMU `leon3_generic`.
//!
//! Output goes to the APBUART. A run that passed ends QEMU with status 0, one that
//! failed makes it abort. Instructions are counted by the GPTIMER: under
//! `-icount shift=7` each instruction takes 128 ns of virtual time, more than the
//! 25 ns of a tick at 40 MHz, so that every single instruction shows. The window
//! overflow and underflow handlers of this crate are counted where they run.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod uart;

use core::arch::global_asm;
use core::fmt::Write;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::addr_of_mut;

use metes_selftest::board::{Sequence, count};
use metes_selftest::{Board, SMALLEST_ARENA};
use uart::Uart;

/// Registers of the GPTIMER: scaler and its reload, then timer 1: counter, reload,
/// control.
const TIMER: *mut u32 = 0x8000_0300 as *mut u32;

/// Virtual nanoseconds of a tick of the timer and of an instruction.
const TICK: u32 = 25;
const INSTRUCTION: u32 = 128;

static mut ARENA: [MaybeUninit<u8>; SMALLEST_ARENA] = [MaybeUninit::uninit(); SMALLEST_ARENA];

global_asm!(include_str!("traps.s"), include_str!("start.s"));

unsafe extern "C" {
    safe fn nops_0();
    safe fn nops_1();
    safe fn nops_2();
    safe fn nops_37();
    safe fn nops_1000();
    safe fn deep(depth: u32) -> u32;
    safe fn end_passed() -> !;
    safe fn end_failed() -> !;
}

struct Leon3;

impl Leon3 {
    fn start_timer() {
        // SAFETY: the registers of timer 1, which nothing else uses: scaler off,
        // reload with the largest value, load and run, again and again.
        unsafe {
            TIMER.add(1).write_volatile(0);
            TIMER.add(5).write_volatile(u32::MAX);
            TIMER.add(6).write_volatile(0b111);
        }
    }
}

impl Board for Leon3 {
    fn name(&self) -> &'static str {
        "sparc gr712rc (QEMU leon3_generic)"
    }

    fn counting(&self) -> &'static str {
        "GPTIMER at 25 ns a tick under QEMU -icount shift=7, 128 ns per executed instruction; \
         window traps included"
    }

    #[inline(always)]
    fn read(&mut self) -> u32 {
        // SAFETY: the counter register of timer 1; reading has no effect.
        unsafe { TIMER.add(4).read_volatile() }
    }

    #[inline(always)]
    fn instructions(&self, before: u32, after: u32) -> u32 {
        // Counts down. Two readings are off by less than a tick together, an
        // instruction is five ticks, so that rounding gives the exact number.
        let ticks = u64::from(before.wrapping_sub(after));
        ((ticks * u64::from(TICK) + u64::from(INSTRUCTION / 2)) / u64::from(INSTRUCTION)) as u32
    }

    fn sequences(&self) -> &'static [Sequence] {
        &[
            (0, nops_0),
            (1, nops_1),
            (2, nops_2),
            (37, nops_37),
            (1000, nops_1000),
        ]
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    Leon3::start_timer();
    if deep(20) != 20 {
        let _ = writeln!(Uart, "FAILED: the register windows do not come back");
        end_failed();
    }
    let _ = writeln!(
        Uart,
        "window overflow and underflow: {} instructions together",
        window_traps()
    );
    // SAFETY: `main` is entered once, and nothing else names the arena.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) };
    let passed = if cfg!(feature = "broken") {
        metes_selftest::run_broken(&mut Uart, arena)
    } else if cfg!(feature = "requests") {
        metes_selftest::run_requests(&mut Uart, arena, &mut Leon3, &metes_selftest::REQUESTS)
    } else {
        metes_selftest::run(&mut Uart, arena, &mut Leon3)
    };
    if passed { end_passed() } else { end_failed() }
}

/// Instructions of one overflow trap and the underflow trap that undoes it: what a
/// call costs more where the windows are all in use.
#[inline(never)]
fn window_traps() -> u32 {
    /// Instructions of one level of `deep`.
    const LEVEL: u32 = 9;
    let cost = |depth| count(&mut Leon3, || deep(depth)).0;
    // The first one also spills the windows of the callers of this function, which
    // come back only when it returns.
    cost(20);
    cost(21) - cost(20) - LEVEL
}

#[unsafe(no_mangle)]
extern "C" fn trapped(kind: u32, at: usize) -> ! {
    let _ = writeln!(Uart, "FAILED: trap {kind:#04x} at {at:#x}");
    end_failed()
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    let _ = writeln!(Uart, "FAILED: {info}");
    end_failed()
}
