//! `Vec` and `Box` on bare metal: TLSF on 16 KiB of static memory as the global
//! allocator, locked by keeping interrupts out.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::{boxed::Box, vec::Vec};
use core::panic::PanicInfo;

use cortex_m as _; // brings the critical section
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use metes_heap::{Tlsf, global::StaticHeap, lock::CriticalSection};

#[global_allocator]
static HEAP: StaticHeap<CriticalSection, Tlsf<8>, { 16 * 1024 }> =
    StaticHeap::new(CriticalSection, Tlsf::new());

#[entry]
fn main() -> ! {
    let squares: Vec<u32> = (1..=100).map(|n| n * n).collect();
    let sum: Box<u32> = Box::new(squares.iter().sum());
    let used = HEAP.statistics();
    hprintln!(
        "sum {}, {} bytes live in {} blocks",
        sum,
        used.live,
        used.blocks
    );

    drop((squares, sum));
    let passed = used.live == 100 * 4 + 4 && HEAP.statistics().live == 0 && HEAP.check().is_ok();
    hprintln!("{} passed, {} failed", passed as u32, !passed as u32);
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

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    hprintln!("FAILED: {}", info);
    finish(false)
}
