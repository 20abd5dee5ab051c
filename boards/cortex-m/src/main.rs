//! Self-test of `metes-heap` on ARM Cortex-M3: QEMU `mps2-an385`.
//!
//! Output and outcome go through semihosting; QEMU ends with status 0 or 1.
//! Instructions are counted by SysTick: under `-icount shift=7` each instruction
//! takes 128 ns of virtual time, more than the 40 ns of a tick at 25 MHz, so that
//! every single instruction shows.
#![no_std]
#![no_main]

use core::arch::global_asm;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::addr_of_mut;

use cortex_m::peripheral::{Peripherals, SYST, syst::SystClkSource};
use cortex_m_rt::{ExceptionFrame, entry, exception};
use cortex_m_semihosting::{debug, hio, hprintln};
use metes_selftest::board::Sequence;
use metes_selftest::{Board, SMALLEST_ARENA};

/// Virtual nanoseconds of a tick of SysTick and of an instruction.
const TICK: u32 = 40;
const INSTRUCTION: u32 = 128;
/// SysTick counts down in 24 bits.
const MASK: u32 = 0xFF_FFFF;

static mut ARENA: [MaybeUninit<u8>; SMALLEST_ARENA] = [MaybeUninit::uninit(); SMALLEST_ARENA];

global_asm!(
    r#"
    .pushsection .text.nops, "ax"
    .macro nops name, count
    .balign 4
    .thumb_func
\name:
    .rept \count
    nop
    .endr
    bx lr
    .endm
    nops nops_0, 0
    nops nops_1, 1
    nops nops_2, 2
    nops nops_37, 37
    nops nops_1000, 1000
    .popsection
"#
);

unsafe extern "C" {
    safe fn nops_0();
    safe fn nops_1();
    safe fn nops_2();
    safe fn nops_37();
    safe fn nops_1000();
}

struct Mps2;

impl Board for Mps2 {
    fn name(&self) -> &'static str {
        "thumbv7m (QEMU mps2-an385, Cortex-M3)"
    }

    fn counting(&self) -> &'static str {
        "SysTick at 40 ns a tick under QEMU -icount shift=7, 128 ns per executed instruction"
    }

    #[inline(always)]
    fn read(&mut self) -> u32 {
        SYST::get_current()
    }

    #[inline(always)]
    fn instructions(&self, before: u32, after: u32) -> u32 {
        // Counts down. Two readings are off by less than a tick together, an
        // instruction is three ticks, so that rounding gives the exact number.
        let ticks = u64::from(before.wrapping_sub(after) & MASK);
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

#[entry]
fn main() -> ! {
    if let Some(mut devices) = Peripherals::take() {
        devices.SYST.set_clock_source(SystClkSource::Core);
        devices.SYST.set_reload(MASK);
        devices.SYST.clear_current();
        devices.SYST.enable_counter();
    }
    let Ok(mut out) = hio::hstdout() else {
        finish(false)
    };
    // SAFETY: `main` is entered once, and nothing else names the arena.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) };
    let passed = if cfg!(feature = "broken") {
        metes_selftest::run_broken(&mut out, arena)
    } else if cfg!(feature = "requests") {
        metes_selftest::run_requests(&mut out, arena, &mut Mps2, &metes_selftest::REQUESTS)
    } else {
        metes_selftest::run(&mut out, arena, &mut Mps2)
    };
    finish(passed)
}

/// Ends QEMU with status 0 if all is well, else 1.
fn finish(passed: bool) -> ! {
    debug::exit(if passed {
        debug::EXIT_SUCCESS
    } else {
        debug::EXIT_FAILURE
    });
    loop {
        core::hint::spin_loop();
    }
}

// SAFETY: the handler only reports and ends the run.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    hprintln!("FAILED: hard fault {:?}", frame);
    finish(false)
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    hprintln!("FAILED: {}", info);
    finish(false)
}
