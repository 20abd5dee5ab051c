//! Heaps that are broken on purpose, to prove that the checks find it and that a run
//! that found something ends as failed. Invariant: each has exactly one fault, which
//! shows only every so often.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::naive::Naive;
use crate::subject::{Seams, Subject};

/// None: the correct heap.
pub const GOOD: u8 = 0;
/// Every so often a block is handed out twice.
pub const OVERLAPS: u8 = 1;
/// Every so often a block starts a byte late.
pub const MISALIGNS: u8 = 2;
/// Every so often a freed block stays live.
pub const LEAKS: u8 = 3;
/// After a while the count of live bytes is one too high.
pub const MISCOUNTS: u8 = 4;
/// Every so often zeroed memory is as it was.
pub const FORGETS_ZERO: u8 = 5;
/// Every so often a move loses the contents.
pub const RESIZES_WITHOUT_COPY: u8 = 6;
/// Every so often a free writes into another live block.
pub const SCRIBBLES: u8 = 7;
/// After a while `sound` fails.
pub const UNSOUND: u8 = 8;
/// Every so often a block lies outside the memory of the heap.
pub const LEAVES_REGION: u8 = 9;
/// Sizes near the largest number wrap around.
pub const OVERFLOWS_SIZE: u8 = 10;
/// Resize changes the block even if it refuses.
pub const MOVES_ON_REFUSAL: u8 = 11;

/// The naive heap with one fault.
pub struct Broken<const FAULT: u8> {
    heap: Naive,
    last: Option<NonNull<u8>>,
    operations: usize,
}

impl<const FAULT: u8> Broken<FAULT> {
    fn now(&mut self, fault: u8) -> bool {
        self.operations += 1;
        FAULT == fault && self.operations.is_multiple_of(7)
    }
}

impl<const FAULT: u8> Subject for Broken<FAULT> {
    const NAME: &'static str = "broken";
    const SEAMS: Seams = Seams::ANY;

    fn create() -> Self {
        Self {
            heap: Naive::create(),
            last: None,
            operations: 0,
        }
    }

    fn add_region(&mut self, region: &'static mut [MaybeUninit<u8>]) -> bool {
        self.heap.add_region(region)
    }

    fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if FAULT == OVERFLOWS_SIZE && size > usize::MAX / 2 {
            return self.heap.allocate(size.wrapping_add(64) % 1024, 1);
        }
        if self.now(OVERLAPS) && self.last.is_some() {
            return self.last;
        }
        let block = self.heap.allocate(size, align)?;
        self.last = Some(block);
        if self.now(MISALIGNS) && align > 1 {
            return NonNull::new(block.as_ptr().wrapping_add(1));
        }
        if self.now(LEAVES_REGION) {
            return NonNull::new(block.as_ptr().wrapping_add(1 << 20));
        }
        Some(block)
    }

    fn allocate_zeroed(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if self.now(FORGETS_ZERO) {
            self.heap.allocate(size, align)
        } else {
            self.heap.allocate_zeroed(size, align)
        }
    }

    unsafe fn free(&mut self, block: NonNull<u8>, align: usize) {
        if self.last == Some(block) {
            self.last = None;
        }
        if self.now(LEAKS) {
            return;
        }
        if self.now(SCRIBBLES)
            && let Some(other) = self.last
        {
            // SAFETY: the start of a live block of the arena.
            unsafe { other.write(!other.read()) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.heap.free(block, align) }
    }

    unsafe fn resize(
        &mut self,
        block: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        if FAULT == MOVES_ON_REFUSAL {
            // SAFETY: a live block has at least one byte.
            unsafe { block.write(0) };
        }
        if self.now(RESIZES_WITHOUT_COPY) {
            let new = self.heap.allocate(size, align)?;
            // SAFETY: the caller's promise.
            unsafe { self.heap.free(block, align) };
            return Some(new);
        }
        // SAFETY: the caller's promise.
        unsafe { self.heap.resize(block, size, align) }
    }

    fn sound(&self) -> bool {
        self.heap.sound() && !(FAULT == UNSOUND && self.operations > 50)
    }

    fn live(&self) -> Option<usize> {
        let extra = usize::from(FAULT == MISCOUNTS && self.operations > 50);
        self.heap.live().map(|live| live + extra)
    }
}
