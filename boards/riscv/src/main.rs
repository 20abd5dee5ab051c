//! Self-test of `metes-heap` on 32-bit RISC-V: QEMU `virt`, no firmware.
//!
//! Output goes to the UART, the outcome to the machine's test finisher, which ends
//! QEMU with status 0 or 1. Instructions are counted by `minstret`, which under
//! `-icount shift=0` advances by one per executed instruction.
#![no_std]
#![no_main]

use core::arch::{asm, global_asm};
use core::fmt::{self, Write};
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::addr_of_mut;

use metes_selftest::board::Sequence;
use metes_selftest::{Board, SMALLEST_ARENA};

/// The 16550 UART and the test finisher of the `virt` machine.
const UART: *mut u8 = 0x1000_0000 as *mut u8;
const FINISHER: *mut u32 = 0x0010_0000 as *mut u32;

static mut ARENA: [MaybeUninit<u8>; SMALLEST_ARENA] = [MaybeUninit::uninit(); SMALLEST_ARENA];

global_asm!(
    r#"
    .pushsection .text.start, "ax"
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la t0, trap
    csrw mtvec, t0
    la sp, __stack_top
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sw zero, 0(t0)
    addi t0, t0, 4
    j 1b
2:  call main
    .balign 4
trap:
    csrr a0, mcause
    csrr a1, mepc
    csrr a2, mtval
    la sp, __stack_top
    call trapped
    .popsection

    .pushsection .text.nops, "ax"
    .option push
    .option norvc
    .balign 4
nops_0:    ret
nops_1:    nop
           ret
nops_2:    .rept 2
           nop
           .endr
           ret
nops_37:   .rept 37
           nop
           .endr
           ret
nops_1000: .rept 1000
           nop
           .endr
           ret
    .option pop
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

struct Virt;

impl Board for Virt {
    fn name(&self) -> &'static str {
        "riscv32imac (QEMU virt)"
    }

    fn counting(&self) -> &'static str {
        "minstret under QEMU -icount shift=0, one step per executed instruction"
    }

    #[inline(always)]
    fn read(&mut self) -> u32 {
        let count: u32;
        // SAFETY: reads a counter. The memory clobber keeps the operation that is
        // counted between its two readings.
        unsafe { asm!("csrr {}, minstret", out(reg) count, options(nostack)) };
        count
    }

    #[inline(always)]
    fn instructions(&self, before: u32, after: u32) -> u32 {
        after.wrapping_sub(before)
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

struct Uart;

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the transmit register and the line status of the UART (bit 5:
            // there is room).
            unsafe {
                while UART.add(5).read_volatile() & 0x20 == 0 {}
                UART.write_volatile(byte);
            }
        }
        Ok(())
    }
}

#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    // SAFETY: `main` is entered once, and nothing else names the arena.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) };
    let passed = if cfg!(feature = "broken") {
        metes_selftest::run_broken(&mut Uart, arena)
    } else if cfg!(feature = "requests") {
        metes_selftest::run_requests(&mut Uart, arena, &mut Virt, &metes_selftest::REQUESTS)
    } else {
        metes_selftest::run(&mut Uart, arena, &mut Virt)
    };
    finish(passed)
}

/// Ends QEMU with status 0 if all is well, else 1.
fn finish(passed: bool) -> ! {
    // SAFETY: the finisher's only register; the machine stops with this store.
    unsafe { FINISHER.write_volatile(if passed { 0x5555 } else { 0x1_3333 }) };
    loop {
        core::hint::spin_loop();
    }
}

#[unsafe(no_mangle)]
extern "C" fn trapped(cause: usize, at: usize, value: usize) -> ! {
    let _ = writeln!(
        Uart,
        "FAILED: trap, mcause {cause:#x} mepc {at:#x} mtval {value:#x}"
    );
    finish(false)
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    let _ = writeln!(Uart, "FAILED: {info}");
    finish(false)
}
