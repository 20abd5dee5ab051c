//! A program with an allocator of its own, which never gives anything back.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;

struct Bump(UnsafeCell<[u8; 1 << 20]>, UnsafeCell<usize>);

// SAFETY: a module has one thread.
unsafe impl Sync for Bump {}

// SAFETY: blocks lie behind one another in memory that nobody else has.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.0.get().cast::<u8>();
        // SAFETY: one thread, and no reference is kept.
        let taken = unsafe { &mut *self.1.get() };
        let at = (start.addr() + *taken).next_multiple_of(layout.align()) - start.addr();
        if at + layout.size() > 1 << 20 {
            return std::ptr::null_mut();
        }
        *taken = at + layout.size();
        start.wrapping_add(at)
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static BUMP: Bump = Bump(UnsafeCell::new([0; 1 << 20]), UnsafeCell::new(0));

fn main() {
    let mut kept = Vec::new();
    for number in 0..2000_u32 {
        kept.push(format!("{number}"));
        if number % 3 == 0 {
            kept.swap_remove(number as usize % kept.len());
        }
    }
    println!("{} {}", kept.len(), kept.iter().map(String::len).sum::<usize>());
}
