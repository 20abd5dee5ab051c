//! The memory of a library's own Rust code: a bump allocator of its own.
//!
//! Reading the description of a heap allocates, but a library that is malloc,
//! or that promises not to use it, cannot allocate there. So the code allocates
//! here: from a small buffer, then from mappings. When all is freed, which is
//! so whenever a description has been read, it begins anew.
//!
//! Invariant: nothing here calls a function of the malloc family.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};

const BUFFER: usize = 64 << 10;
const MAPPING: usize = 1 << 20;

#[repr(align(16))]
struct Buffer(UnsafeCell<[u8; BUFFER]>);

// SAFETY: only `Scratch` hands out parts of it, each once.
unsafe impl Sync for Buffer {}

static BUFFER_MEMORY: Buffer = Buffer(UnsafeCell::new([0; BUFFER]));

struct Room {
    start: *mut u8,
    next: *mut u8,
    end: *mut u8,
    /// Blocks in use.
    blocks: usize,
}

/// The allocator.
pub struct Scratch {
    busy: AtomicBool,
    room: UnsafeCell<Room>,
}

// SAFETY: `room` is used by whoever set `busy`, and by nobody else.
unsafe impl Sync for Scratch {}

impl Scratch {
    /// With its buffer alone, all of it free. For one static: the buffer is the library's only one.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "for a static alone")]
    pub const fn new() -> Self {
        Scratch {
            busy: AtomicBool::new(false),
            room: UnsafeCell::new(Room {
                start: ptr::null_mut(),
                blocks: 0,
                next: ptr::null_mut(),
                end: ptr::null_mut(),
            }),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Room) -> T) -> T {
        while self.busy.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        // SAFETY: `busy` was ours to set, so nobody else has the room.
        let result = work(unsafe { &mut *self.room.get() });
        self.busy.store(false, Ordering::Release);
        result
    }
}

impl Room {
    fn take(&mut self, layout: Layout) -> *mut u8 {
        if self.next.is_null() {
            self.start = BUFFER_MEMORY.0.get().cast();
            self.next = self.start;
            self.end = self.next.wrapping_add(BUFFER);
        }
        for _ in 0..2 {
            let gap = self.next.addr().wrapping_neg() & (layout.align() - 1);
            let left = self.end.addr() - self.next.addr();
            if let Some(needed) = layout.size().checked_add(gap)
                && needed <= left
            {
                let block = self.next.wrapping_add(gap);
                self.next = self.next.wrapping_add(needed);
                self.blocks += 1;
                return block;
            }
            if !self.map(layout) {
                break;
            }
        }
        ptr::null_mut()
    }

    fn map(&mut self, layout: Layout) -> bool {
        let Some(needed) = layout.size().checked_add(layout.align()) else {
            return false;
        };
        let Some(length) = needed.checked_next_multiple_of(MAPPING) else {
            return false;
        };
        // SAFETY: an anonymous mapping at a place of the kernel's choice.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return false;
        }
        self.start = mapped.cast();
        self.next = self.start;
        self.end = self.next.wrapping_add(length);
        true
    }
}

// SAFETY: blocks are disjoint, inside the buffer or a mapping that stays; room
// is used again only when its block was freed as the latest, or all are free.
unsafe impl GlobalAlloc for Scratch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|room| room.take(layout))
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.with(|room| {
            room.blocks -= 1;
            if room.blocks == 0 {
                room.next = room.start;
            } else if block.wrapping_add(layout.size()) == room.next {
                room.next = block;
            }
        });
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.with(|room| {
            let last = block.wrapping_add(layout.size()) == room.next;
            if last && size <= room.end.addr() - block.addr() {
                room.next = block.wrapping_add(size);
                return block;
            }
            // SAFETY: the size is not zero and does not overflow with the
            // alignment, by the contract of `realloc`.
            let new = room.take(unsafe { Layout::from_size_align_unchecked(size, layout.align()) });
            if !new.is_null() {
                // SAFETY: two distinct blocks of at least that many bytes.
                unsafe { ptr::copy_nonoverlapping(block, new, layout.size().min(size)) };
                // The old block is free, and not the latest.
                room.blocks -= 1;
            }
            new
        })
    }
}
