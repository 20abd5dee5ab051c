//! The heap of a node: its records outside of any memory, laid out as on the target, each word that is read or written
//! counted.
//!
//! *Invariant:* offsets are those that the heap would give on a target of 32 bits with the same index; nothing but the cost of
//! an operation follows from the host.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use metes_heap::store::ledger::Handle;
use metes_heap::{
    AnyIndex, ByHandle, Counted, Geometry, Heap, IndexKind, Ledger, Limits, Record, State, Store,
};
use metes_mesh::LocalHeap;

/// The word of the target.
const WORD: usize = 4;
/// Bytes that two blocks lie apart at least.
const APART: usize = Geometry::tagged(WORD).minimum;

type Records = Counted<Ledger<'static, ByHandle>>;
type Index = AnyIndex<<Records as Store>::Block>;

/// What kind of heap: an index and its limits.
#[derive(Clone, Copy, Debug)]
pub struct HeapKind {
    /// The index.
    pub index: IndexKind,
    /// What it splits and merges.
    pub limits: Limits,
}

/// Why there is no such heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a heap of {bytes} bytes has no room for its own records: give more")]
pub struct TooSmall {
    /// Its bytes.
    pub bytes: u64,
}

/// Most words of records that a request to a heap of size classes reads and writes, for any index of the kind: its paths have
/// no loop, so it is the greatest sum over their branches (a block is taken from a list and cut on both sides).
pub const MOST_ACCESSES_OF_ALLOCATE: u64 = 36;
/// Most of a free (merged on both sides).
pub const MOST_ACCESSES_OF_FREE: u64 = 31;

/// A heap of a node.
pub struct NodeHeap {
    heap: ManuallyDrop<Heap<Index, Records>>,
    /// The records that the heap borrows.
    records: NonNull<[Record]>,
    kind: HeapKind,
    /// The handle of the block that begins in each granule.
    handles: Vec<Option<Handle>>,
    bytes: u64,
}

impl NodeHeap {
    /// A heap of so many bytes.
    ///
    /// # Errors
    /// [`TooSmall`].
    pub fn new(kind: HeapKind, bytes: u64) -> Result<NodeHeap, TooSmall> {
        let geometry = Geometry::tagged(WORD);
        let region = bytes as usize / geometry.granule * geometry.granule;
        let mut index: Index = AnyIndex::new(kind.index, kind.limits);
        let heads = metes_heap::index::Index::<Records>::heads(&mut index, region, geometry);
        let heads = heads.ok_or(TooSmall { bytes })?;
        // A record for each block, for each list, and for the sentinel.
        let most = region / geometry.minimum + heads + 2;
        let records = NonNull::from(Box::leak(vec![Record::SPARE; most].into_boxed_slice()));
        // SAFETY: the box's own records, which nothing else uses, and which are given back after the heap: see `drop`.
        let borrowed: &'static mut [Record] = unsafe { &mut *records.as_ptr() };
        let store = Counted::new(Ledger::new(borrowed, ByHandle, geometry));
        let mut made = NodeHeap {
            heap: ManuallyDrop::new(Heap::new(index, store)),
            records,
            kind,
            handles: vec![None; region / geometry.granule],
            bytes: region as u64,
        };
        let added = made.heap.add_region(region);
        added.map_err(|_| TooSmall { bytes })?;
        Ok(made)
    }

    /// Words of records read and written so far.
    #[must_use]
    pub fn accesses(&self) -> u64 {
        self.heap.store().reads() + self.heap.store().writes()
    }

    /// Whether it could serve a block now: for whoever judges a refusal, and counted as any other accesses.
    pub fn has_room(&mut self, size: u64, align: u64) -> bool {
        let taken = self.allocate(size, align);
        if let Some(offset) = taken {
            self.release(offset);
        }
        taken.is_some()
    }

    /// Gives the block at `offset` back; false if none begins there.
    pub fn release(&mut self, offset: u64) -> bool {
        let granule = self.granule(offset);
        let Some(handle) = self.handles.get_mut(granule).and_then(Option::take) else {
            return false;
        };
        // SAFETY: a ledger resolves blocks in use only, and touches no memory.
        unsafe { self.heap.free(handle) }.is_ok()
    }

    /// Bytes of blocks in use with their records, and bytes that are free. Linear.
    #[must_use]
    pub fn used_and_free(&self) -> (u64, u64) {
        let (mut used, mut free) = (0, 0);
        let walked = self.heap.walk(|block| {
            let of = match block.state {
                State::Free => &mut free,
                _ => &mut used,
            };
            *of += block.size as u64;
        });
        debug_assert!(walked.is_ok(), "the heap is whole");
        (used, free)
    }

    /// Bytes of it, those of its own lists included.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn granule(&self, offset: u64) -> usize {
        offset as usize / Geometry::tagged(WORD).granule
    }
}

impl Drop for NodeHeap {
    fn drop(&mut self) {
        // SAFETY: the heap is dropped once, here, and with it the only reference to the records, which are a box's.
        unsafe {
            ManuallyDrop::drop(&mut self.heap);
            drop(Box::from_raw(self.records.as_ptr()));
        }
    }
}

impl LocalHeap for NodeHeap {
    const APART: u64 = APART as u64;

    fn allocate(&mut self, size: u64, align: u64) -> Option<u64> {
        let size = usize::try_from(size).ok()?;
        let align = usize::try_from(align).ok()?;
        let handle = self.heap.allocate(size, align)?;
        let offset = self.heap.place_offset(handle) as u64;
        let granule = self.granule(offset);
        self.handles[granule] = Some(handle);
        Some(offset)
    }

    unsafe fn free(&mut self, offset: u64) {
        let freed = self.release(offset);
        debug_assert!(freed, "a block in use is freed");
    }

    unsafe fn rebuild(&mut self, used: impl Iterator<Item = u64> + Clone) -> bool {
        let granule = Geometry::tagged(WORD).granule as u64;
        let handles = &self.handles;
        let places = used.filter_map(|offset| handles[(offset / granule) as usize]);
        let index = AnyIndex::new(self.kind.index, self.kind.limits);
        // SAFETY: as the caller says; the heap has no source.
        unsafe { self.heap.rebuild(index, places) }.is_ok()
    }

    fn live(&self) -> u64 {
        self.heap.live() as u64
    }

    fn blocks(&self) -> u64 {
        self.heap.blocks() as u64
    }

    fn is_whole(&self) -> bool {
        self.heap.check().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metes_random::Random;

    fn tlsf() -> HeapKind {
        HeapKind {
            index: IndexKind::Classes {
                second_level: 8,
                probes: 0,
            },
            limits: Limits::NONE,
        }
    }

    #[test]
    fn a_heap_is_cut_and_merged() {
        let mut heap = NodeHeap::new(tlsf(), 4096).expect("it has room");
        let mut random = Random::new(1);
        let mut blocks = Vec::new();
        let (used, free) = heap.used_and_free();
        assert_eq!(used, 0);
        for _ in 0..2000 {
            if random.below(2) == 0 {
                blocks.extend(heap.allocate(random.between(1, 300), 8));
            } else if !blocks.is_empty() {
                let at = random.below(blocks.len() as u64) as usize;
                assert!(heap.release(blocks.swap_remove(at)));
            }
            let (used, now_free) = heap.used_and_free();
            assert_eq!(used + now_free, free);
            assert_eq!(heap.blocks(), blocks.len() as u64);
        }
        for offset in blocks {
            assert!(offset % 8 == 0 && offset < 4096);
            assert!(heap.release(offset));
            assert!(!heap.release(offset));
        }
        assert_eq!(heap.used_and_free(), (0, free));
        assert!(heap.accesses() > 0 && heap.is_whole());
    }

    #[test]
    fn a_heap_without_room_for_itself_is_told() {
        let error = NodeHeap::new(tlsf(), 64).err();
        assert_eq!(error, Some(TooSmall { bytes: 64 }));
    }

    /// Every branch is met: aligned or not, cut on no side, one or both, lists that become empty or stay.
    #[test]
    fn accesses_are_bounded() {
        let (mut allocate, mut free) = (0, 0);
        for seed in 0..120 {
            let second_level = [8, 16, 32][seed as usize % 3];
            let index = IndexKind::Classes {
                second_level,
                probes: 0,
            };
            let kind = HeapKind { index, ..tlsf() };
            let mut heap = NodeHeap::new(kind, 4096 << (seed % 4)).expect("it has room");
            let mut random = Random::new(seed);
            let largest = if seed % 3 == 0 { 64 } else { 700 };
            let mut blocks = Vec::new();
            for _ in 0..2000 {
                let before = heap.accesses();
                if random.below(100) < 55 {
                    let align = if seed % 2 == 0 {
                        8
                    } else {
                        1 << random.between(3, 6)
                    };
                    blocks.extend(heap.allocate(random.between(1, largest), align));
                    allocate = allocate.max(heap.accesses() - before);
                } else if !blocks.is_empty() {
                    let at = random.below(blocks.len() as u64) as usize;
                    assert!(heap.release(blocks.swap_remove(at)));
                    free = free.max(heap.accesses() - before);
                }
            }
        }
        assert_eq!(allocate, MOST_ACCESSES_OF_ALLOCATE);
        assert_eq!(free, MOST_ACCESSES_OF_FREE);
    }
}
