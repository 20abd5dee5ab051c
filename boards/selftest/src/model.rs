//! The shadow: which intervals must be live, and what must be in them.
//!
//! Invariant: the live blocks of the shadow are pairwise disjoint, aligned, inside the
//! region, and filled with a pattern of their own from the moment they are allocated
//! until they are freed. Every step compares the heap with that.

use core::ptr::NonNull;

use crate::Arena;
use crate::fault::Fault;
use crate::subject::Subject;

/// Most blocks the shadow can follow at once.
pub const SLOTS: usize = 128;

#[derive(Clone, Copy)]
struct Block {
    at: NonNull<u8>,
    size: usize,
    align: usize,
    pattern: u8,
}

/// A heap together with what must be live in it.
pub struct Shadow<'a, S> {
    heap: &'a mut S,
    arena: &'a Arena,
    region: (usize, usize),
    blocks: [Option<Block>; SLOTS],
    live: usize,
    operations: usize,
}

impl<'a, S: Subject> Shadow<'a, S> {
    /// Follows `heap`, whose blocks must lie in `region` of the arena.
    pub fn new(heap: &'a mut S, arena: &'a Arena, region: (usize, usize)) -> Self {
        Self {
            heap,
            arena,
            region,
            blocks: [None; SLOTS],
            live: 0,
            operations: 0,
        }
    }

    /// True if the slot holds a live block.
    pub fn is_live(&self, slot: usize) -> bool {
        self.blocks[slot].is_some()
    }

    /// Where the block in a slot begins.
    pub fn place(&self, slot: usize) -> Option<NonNull<u8>> {
        self.blocks[slot].map(|block| block.at)
    }

    /// Bytes that are live.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Allocates into an empty slot; `Ok(false)` if the heap refuses. O(slots + size).
    pub fn allocate(&mut self, slot: usize, size: usize, align: usize) -> Result<bool, Fault> {
        self.operations += 1;
        let Some(at) = self.heap.allocate(size, align) else {
            return Ok(false);
        };
        self.enter(slot, at, size, align)?;
        Ok(true)
    }

    /// Allocates zeroed memory into an empty slot, and looks whether it is zero; `Ok(false)` if the
    /// heap refuses. O(slots + size).
    pub fn allocate_zeroed(
        &mut self,
        slot: usize,
        size: usize,
        align: usize,
    ) -> Result<bool, Fault> {
        self.operations += 1;
        let Some(at) = self.heap.allocate_zeroed(size, align) else {
            return Ok(false);
        };
        self.accept(at, size, align)?;
        for offset in 0..size {
            // SAFETY: `accept` found the block inside the arena and disjoint.
            if unsafe { at.add(offset).read() } != 0 {
                return Err(Fault::NotZero {
                    address: at.as_ptr().addr(),
                    offset,
                });
            }
        }
        self.enter(slot, at, size, align)?;
        Ok(true)
    }

    /// Allocates where the heap has room.
    pub fn must_allocate(&mut self, slot: usize, size: usize, align: usize) -> Result<(), Fault> {
        let served = self.allocate(slot, size, align)?;
        self.must(served, size, align)
    }

    /// Allocates zeroed memory where the heap has room.
    pub fn must_allocate_zeroed(
        &mut self,
        slot: usize,
        size: usize,
        align: usize,
    ) -> Result<(), Fault> {
        let served = self.allocate_zeroed(slot, size, align)?;
        self.must(served, size, align)
    }

    /// Resizes where the heap has room.
    pub fn must_resize(&mut self, slot: usize, size: usize) -> Result<(), Fault> {
        let served = self.resize(slot, size)?;
        self.must(served, size, 1)
    }

    /// A request that any heap of this size serves; one that keeps freed blocks in
    /// their classes may run out.
    fn must(&self, served: bool, size: usize, align: usize) -> Result<(), Fault> {
        if served || !S::SEAMS.coalesces {
            Ok(())
        } else {
            Err(Fault::Refused { size, align })
        }
    }

    /// Frees the block of a slot after comparing its contents; an empty slot is left.
    pub fn free(&mut self, slot: usize) -> Result<(), Fault> {
        let Some(block) = self.blocks[slot] else {
            return Ok(());
        };
        self.compare(&block, block.at, block.size)?;
        self.blocks[slot] = None;
        self.live -= block.size;
        self.operations += 1;
        // SAFETY: the shadow holds only blocks this heap gave out and did not get back.
        unsafe { self.heap.free(block.at, block.align) };
        Ok(())
    }

    /// Resizes the block of a slot; `Ok(false)` if the heap refuses, when the block
    /// must be as it was.
    pub fn resize(&mut self, slot: usize, size: usize) -> Result<bool, Fault> {
        let Some(old) = self.blocks[slot] else {
            return Ok(false);
        };
        self.compare(&old, old.at, old.size)?;
        self.operations += 1;
        // SAFETY: as in `free`.
        let moved = unsafe { self.heap.resize(old.at, size, old.align) };
        let Some(at) = moved else {
            self.compare(&old, old.at, old.size)?;
            return Ok(false);
        };
        self.blocks[slot] = None;
        self.live -= old.size;
        self.accept(at, size, old.align)?;
        self.compare(&old, at, old.size.min(size))?;
        self.enter(slot, at, size, old.align)?;
        Ok(true)
    }

    /// Tries to free an address at which no live block begins; the heap must refuse and stay as it is.
    pub fn free_wrongly(&mut self, address: NonNull<u8>) -> Result<(), Fault> {
        self.operations += 1;
        if !self.heap.refuses(address) {
            return Err(Fault::BadFree {
                address: address.as_ptr().addr(),
            });
        }
        self.audit()
    }

    /// Frees all that is live, then looks at the books. O(slots).
    pub fn free_all(&mut self) -> Result<(), Fault> {
        for slot in 0..SLOTS {
            self.free(slot)?;
        }
        self.audit()
    }

    /// Compares the heap's books with the shadow and lets the heap check itself.
    pub fn audit(&self) -> Result<(), Fault> {
        if !self.heap.sound() {
            return Err(Fault::Corrupt {
                operations: self.operations,
            });
        }
        if let Some(found) = self.heap.live()
            && found != self.live
        {
            return Err(Fault::Accounting {
                expected: self.live,
                found,
            });
        }
        for block in self.blocks.iter().flatten() {
            self.compare(block, block.at, block.size)?;
        }
        Ok(())
    }

    /// Size of the largest block the heap serves now, found by bisection to 16 bytes;
    /// it is freed again. O(log region).
    pub fn largest(&mut self) -> usize {
        let (mut served, mut refused) = (0, self.region.1 - self.region.0 + 1);
        while refused - served > 16 {
            let size = usize::midpoint(served, refused);
            match self.heap.allocate(size, 1) {
                Some(block) => {
                    // SAFETY: just allocated.
                    unsafe { self.heap.free(block, 1) };
                    served = size;
                }
                None => refused = size,
            }
        }
        served
    }

    /// Checks where a new block is: aligned, inside, apart from every live block.
    fn accept(&self, at: NonNull<u8>, size: usize, align: usize) -> Result<(), Fault> {
        let address = at.as_ptr().addr();
        if !address.is_multiple_of(align) {
            return Err(Fault::Misaligned { address, align });
        }
        if !self.arena.holds(address, size, self.region) {
            return Err(Fault::Outside { address, size });
        }
        for other in self.blocks.iter().flatten() {
            let start = other.at.as_ptr().addr();
            if address < start + other.size && start < address + size {
                return Err(Fault::Overlap {
                    address,
                    other: start,
                });
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        slot: usize,
        at: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> Result<(), Fault> {
        self.accept(at, size, align)?;
        let block = Block {
            at,
            size,
            align,
            pattern: (self.operations as u8).wrapping_mul(29) | 1,
        };
        for offset in 0..size {
            // SAFETY: `accept` found the block inside the arena and disjoint.
            unsafe { at.add(offset).write(block.byte(offset)) };
        }
        self.blocks[slot] = Some(block);
        self.live += size;
        Ok(())
    }

    /// Compares `size` bytes at `at` with the pattern of `block`.
    fn compare(&self, block: &Block, at: NonNull<u8>, size: usize) -> Result<(), Fault> {
        for offset in 0..size {
            // SAFETY: every block the shadow holds or `accept`s is inside the arena.
            if unsafe { at.add(offset).read() } != block.byte(offset) {
                return Err(Fault::Contents {
                    address: at.as_ptr().addr(),
                    offset,
                });
            }
        }
        Ok(())
    }
}

impl Block {
    fn byte(&self, offset: usize) -> u8 {
        self.pattern.wrapping_add(offset as u8) ^ (offset >> 8) as u8
    }
}
