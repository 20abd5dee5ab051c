//! `Vec` and `Box` on bare metal: TLSF on a static arena as the global allocator.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::{boxed::Box, vec::Vec};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::RefCell;
use core::mem::MaybeUninit;
use core::panic::PanicInfo;
use core::ptr::{NonNull, addr_of_mut, null_mut};

use cortex_m as _; // brings the critical section
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use critical_section::Mutex;
use metes_heap::{Heap, Memory, Tagged, Tlsf};

/// A heap behind a lock that keeps interrupts out.
struct Allocator(Mutex<RefCell<Heap<Tlsf<8>, Tagged>>>);

#[global_allocator]
static HEAP: Allocator = Allocator(Mutex::new(RefCell::new(Heap::new(
    Tlsf::new(),
    Tagged::new(),
))));

static mut ARENA: [MaybeUninit<u8>; 16 * 1024] = [MaybeUninit::uninit(); 16 * 1024];

impl Allocator {
    fn with<T>(&self, act: impl FnOnce(&mut Heap<Tlsf<8>, Tagged>) -> T) -> T {
        critical_section::with(|lock| act(&mut self.0.borrow_ref_mut(lock)))
    }
}

// SAFETY: the heap hands out disjoint blocks of at least the size and the alignment
// asked for, and the lock makes its operations one at a time.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|heap| heap.allocate(layout.size(), layout.align()))
            .map_or(null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the caller gives back a block of this allocator.
            let _ = self.with(|heap| unsafe { heap.free(block) });
        }
    }
}

#[entry]
fn main() -> ! {
    // SAFETY: `main` runs once, and nothing else names the arena.
    let arena = unsafe { &mut *addr_of_mut!(ARENA) };
    let added = HEAP.with(|heap| heap.add_region(Memory::from_static(arena)));
    let squares: Vec<u32> = (1..=100).map(|n| n * n).collect();
    let sum: Box<u32> = Box::new(squares.iter().sum());
    let statistics = HEAP.with(|heap| heap.statistics());
    hprintln!("sum {}, {} bytes live", sum, statistics.live);

    drop((squares, sum));
    let live = HEAP.with(|heap| heap.statistics().live);
    let passed = added.is_ok() && statistics.live == 100 * 4 + 4 && live == 0;
    hprintln!("{} passed, {} failed", passed as u32, !passed as u32);
    finish(passed)
}

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
