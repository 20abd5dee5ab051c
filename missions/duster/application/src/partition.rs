//! Partitions: the memory of a task, and the blocks in it.
//!
//! A partition is a heap of Metes over memory of its own, reached by one core alone: no lock, and no task can use up or
//! fragment the memory of another. Which heap is the declaration's choice (`metes tune` on the mission's trace); built with
//! a feature, the pools of others stand in its place, for comparison.
//!
//! *Invariant:* a [`Block`] is live in exactly one partition, and there is one `Block` for it; so it is freed once.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::declared::{PARTITIONS, TICK};

#[cfg(not(any(
    feature = "cfe-pools",
    feature = "satrs-pools",
    feature = "fprime-bins"
)))]
mod heap;
#[cfg(not(any(
    feature = "cfe-pools",
    feature = "satrs-pools",
    feature = "fprime-bins"
)))]
use heap::Memory;
#[cfg(any(
    feature = "cfe-pools",
    feature = "satrs-pools",
    feature = "fprime-bins"
))]
mod pools;
#[cfg(any(
    feature = "cfe-pools",
    feature = "satrs-pools",
    feature = "fprime-bins"
))]
use pools::Memory;

/// A live block of a partition.
#[must_use = "a block that is dropped is lost to its partition"]
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    length: u32,
    partition: u8,
}

// SAFETY: a block is the only one that names its memory, which is nobody's else until it is freed; so it may go to the
// other core with it. It is freed where its partition is.
unsafe impl Send for Block {}

impl Block {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is live, of this length, initialised as all of the partition was (a heap writes words into
        // it, nothing less), and this is the only block for it.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.length as usize) }
    }

    /// Its bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and it is borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.length as usize) }
    }

    /// The number of its partition in the declaration.
    pub fn partition(&self) -> usize {
        usize::from(self.partition)
    }
}

/// What a partition holds and has held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Its bytes.
    pub size: u32,
    /// Bytes that are requested and live.
    pub used: u32,
    /// The most that these were.
    pub peak: u32,
    /// A request of so many bytes would be served.
    pub largest_free: u32,
    /// Blocks allocated so far.
    pub allocations: u32,
    /// Blocks freed so far.
    pub frees: u32,
    /// Requests refused so far.
    pub refusals: u32,
    /// The longest that an allocation or a free has taken, in units of 100 nanoseconds; where there is no clock, 0.
    pub worst: u32,
}

/// The memory of a task.
pub struct Partition {
    number: u8,
    memory: Memory,
    statistics: Statistics,
}

impl Partition {
    /// Partition `number` of the declaration over `memory`, as large as declared.
    pub fn new(number: usize, memory: &'static mut [u8]) -> Self {
        debug_assert_eq!(memory.len(), PARTITIONS[number].size);
        let size = memory.len() as u32;
        // SAFETY: what is initialised may be taken for what need not be; the heap leaves nothing uninitialised in it.
        let memory = unsafe { &mut *(&raw mut *memory as *mut [MaybeUninit<u8>]) };
        Partition {
            number: number as u8,
            memory: Memory::new(memory, PARTITIONS[number].demands),
            statistics: Statistics {
                size,
                ..Statistics::default()
            },
        }
    }

    /// A block of `size` bytes, which hold whatever they held; none if there is no room. Time: the heap's bound.
    #[inline(never)]
    pub fn allocate(&mut self, size: usize) -> Option<Block> {
        let begun = clock();
        let start = partition_allocate(&mut self.memory, size);
        self.took(begun);
        let Some(start) = start else {
            self.statistics.refusals = self.statistics.refusals.saturating_add(1);
            return None;
        };
        let it = &mut self.statistics;
        it.allocations = it.allocations.wrapping_add(1);
        it.used += size as u32;
        it.peak = it.peak.max(it.used);
        Some(Block {
            start,
            length: size as u32,
            partition: self.number,
        })
    }

    /// Frees a block of this partition. Time: the heap's bound.
    #[inline(never)]
    pub fn free(&mut self, block: Block) {
        debug_assert_eq!(block.partition, self.number);
        if block.partition != self.number {
            return;
        }
        let begun = clock();
        // SAFETY: a `Block` is made by `allocate` of its partition alone and is not copied, so it is live, and freed now.
        let freed = unsafe { partition_free(&mut self.memory, block.start) };
        self.took(begun);
        debug_assert!(freed);
        let it = &mut self.statistics;
        it.frees = it.frees.wrapping_add(1);
        it.used -= block.length;
    }

    fn took(&mut self, begun: u32) {
        let now = clock();
        let took = if now >= begun { now } else { now + TURN } - begun;
        self.statistics.worst = self.statistics.worst.max(took);
    }

    /// What it holds and has held. O(1).
    pub fn statistics(&self) -> Statistics {
        Statistics {
            largest_free: self.memory.largest_free() as u32,
            ..self.statistics
        }
    }
}

/// The clock's turn: a tick, which no call of a heap is as long as.
const TURN: u32 = TICK * 10;

/// Units of 100 nanoseconds since the last tick. The unit has it under this name, and not by a pointer, so that the longest path
/// through a task is known; hosts have none.
#[cfg(target_arch = "sparc")]
fn clock() -> u32 {
    unsafe extern "C" {
        safe fn partition_clock() -> u32;
    }
    partition_clock()
}

#[cfg(not(target_arch = "sparc"))]
fn clock() -> u32 {
    0
}

/// The heap's own call, by a name that tools find in the image.
#[unsafe(no_mangle)]
#[inline(never)]
fn partition_allocate(memory: &mut Memory, size: usize) -> Option<NonNull<u8>> {
    memory.allocate(size)
}

/// As [`partition_allocate`].
///
/// # Safety
/// `block` is live in `memory`.
#[unsafe(no_mangle)]
#[inline(never)]
unsafe fn partition_free(memory: &mut Memory, block: NonNull<u8>) -> bool {
    // SAFETY: as promised here.
    unsafe { memory.free(block) }
}

#[cfg(test)]
mod tests;
