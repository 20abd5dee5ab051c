//! Heaps of several pools, run: general pools in regions of their own, slabs in one, and what
//! object pools record in another.
//!
//! Invariant: part i of the range is general pool i's, the next one the slabs', the one behind
//! it that of their records; no part reaches into another.

use std::ptr::NonNull;

use metes_config::{Config, StoreKind};
use metes_heap::index::Index;
use metes_heap::{
    AnyPool, Composite, Description, Hardened, Memory, ObjectPools, Sources, Spot, Store, Tagged,
};

use super::{Running, Subject, byte, exposed, of_word};
use crate::memory::Range;
use crate::shares::parts;

/// What slabs may still take; general pools have all of theirs.
struct Slabs {
    left: usize,
}

// SAFETY: slabs lie behind one another in a part of `left` bytes that is theirs alone.
unsafe impl Sources for Slabs {
    fn increment(&self) -> usize {
        1
    }

    fn grow(&mut self, _pool: usize, _bytes: usize) -> bool {
        false
    }

    fn grow_slabs(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left;
        if fits {
            self.left -= bytes;
        }
        fits
    }
}

struct Composed<S: Store> {
    heap: Composite<'static, AnyPool<S::Block>, S>,
    slabs: Slabs,
    base: usize,
    /// Bytes of a part, as a power of two.
    part_log2: u32,
    /// Which part is that of slabs.
    slab_part: usize,
}

impl<S> Subject for Composed<S>
where
    S: Store<Place = NonNull<u8>>,
    AnyPool<S::Block>: Index<S>,
{
    #[inline(always)]
    fn allocate(&mut self, size: usize) -> usize {
        // SAFETY: the slabs are those of this heap.
        match unsafe { self.heap.allocate(size, 1, &mut self.slabs) } {
            Some(Spot::Block(_, place)) => exposed(place),
            Some(Spot::Slot(offset)) => self.base + (self.slab_part << self.part_log2) + offset,
            None => 0,
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: usize) {
        let part = (block - self.base) >> self.part_log2;
        let spot = match part == self.slab_part {
            true => Spot::Slot((block - self.base) & ((1 << self.part_log2) - 1)),
            // SAFETY: blocks of this heap are not zero.
            false => Spot::Block(part, unsafe { of_word(block) }),
        };
        // SAFETY: the trait's contract.
        let _ = unsafe { self.heap.free(spot) };
    }

    #[inline(always)]
    unsafe fn read(&mut self, block: usize, at: usize) -> u8 {
        // SAFETY: the trait's contract.
        unsafe { byte(block, at) }
    }
}

/// Runs a heap of several pools, whose records are verified if its store is hardened.
pub(super) fn open<'m>(config: &Config, memory: &'m mut Range) -> Option<Running<'m>> {
    match config.store {
        // The keys are the same in every run, so that counts repeat.
        StoreKind::Hardened => {
            let store = |_| Hardened::new(KEY);
            run::<Hardened>(&config.heap, store, memory)
        }
        _ => run(&config.heap, |_| Tagged::<true>::new(), memory),
    }
}

/// The secret of hardened heaps in the laboratory.
pub(super) const KEY: u64 = 0x6D65_7465_735F_6B65;

fn run<'m, S>(
    heap: &Description,
    store: impl FnMut(usize) -> S,
    memory: &'m mut Range,
) -> Option<Running<'m>>
where
    S: Store<Place = NonNull<u8>, Region = Memory> + 'static,
    AnyPool<S::Block>: Index<S>,
{
    let part = memory.length() / parts(heap);
    let slab_part = heap.general.len();
    // SAFETY: both lie within the range, which is borrowed for as long as the heap runs.
    let begin = |number: usize| unsafe { memory.base().add(number * part) };
    let cut = heap.slabs();
    let objects = match cut.is_empty() {
        true => ObjectPools::none(),
        false => {
            let records = begin(slab_part + 1).as_ptr();
            let slabs = part / cut.bytes();
            let (words, slots) = (cut.memory_words(slabs), slabs * cut.slots());
            let bytes = words * size_of::<usize>();
            if bytes + slots * size_of::<u16>() > part {
                return None;
            }
            // SAFETY: the part of records is mapped, aligned to itself, initialised as all
            // mapped memory is, and long enough; nothing else refers to it while the heap runs.
            unsafe {
                let table = std::slice::from_raw_parts_mut(records.cast::<usize>(), words);
                let slack = std::slice::from_raw_parts_mut(records.add(bytes).cast(), slots);
                ObjectPools::new(&cut, table, slack)
            }
        }
    };
    let mut composite = Composite::describe(heap, store, objects);
    for number in 0..slab_part {
        // SAFETY: a part of its own.
        let region = unsafe { Memory::from_raw(begin(number), part) };
        composite.general(number)?.add_region(region).ok()?;
    }
    let composed = Composed {
        heap: composite,
        slabs: Slabs { left: part },
        base: exposed(memory.base()),
        part_log2: part.trailing_zeros(),
        slab_part,
    };
    Some(Running::new(composed, false))
}
