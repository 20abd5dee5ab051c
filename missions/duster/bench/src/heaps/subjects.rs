//! The allocators, under one interface for a replay.
//!
//! *Invariant:* a heap of Metes here places blocks as it would on a target of 32 bits, and touches no memory; a pool is the
//! flight software's own.

use metes_duster_pools::{BinPool, BucketPool, Pool, Region, SlotPool, Slots};
use metes_heap::index::Index;
use metes_heap::store::ledger::Handle;
use metes_heap::store::{Geometry, Store};
use metes_heap::{AnyIndex, ByHandle, Heap, Ledger, Record};

use super::trace::{Event, Requests};

/// Heaps of Metes that are compared, the mission's first.
pub const METES: [&str; 6] = [
    "tlsf:second_level=8",
    "tlsf",
    "half-fit",
    "segregated-fit",
    "first-fit",
    "best-fit",
];

/// An allocator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A heap of Metes, by its name.
    Metes(&'static str),
    /// Buckets in the manner of cFE, of these sizes.
    Buckets(&'static str, Vec<u32>),
    /// Slots in the manner of satrs, that spill.
    Slots(&'static str, Vec<Slots>),
    /// Bins in the manner of F´.
    Bins(&'static str, Vec<Slots>),
}

impl Kind {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Kind::Metes(name) => (*name).to_owned(),
            Kind::Buckets(how, _) => format!("cFE buckets, {how}"),
            Kind::Slots(how, _) => format!("satrs slots, {how}"),
            Kind::Bins(how, _) => format!("F´ bins, {how}"),
        }
    }

    /// The pool of this kind over `memory`; none of a heap, or if it does not fit.
    pub(super) fn pool(&self, region: Region) -> Option<Box<dyn Pool>> {
        Some(match self {
            Kind::Metes(_) => return None,
            Kind::Buckets(_, sizes) => Box::new(BucketPool::new(region, sizes).ok()?),
            Kind::Slots(_, slots) => Box::new(SlotPool::new(region, slots, true).ok()?),
            Kind::Bins(_, slots) => Box::new(BinPool::new(region, slots).ok()?),
        })
    }
}

/// What came of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) refusals: u64,
    /// Where most blocks are live, at last: the largest request that would be served.
    pub(super) largest_free: usize,
    /// Bytes of the memory that nobody has asked for.
    pub(super) free: usize,
}

/// Makes all requests `times` times in `bytes` of memory, up to the first refusal if that decides; none if the allocator does not fit into it.
pub(super) fn replay(
    kind: &Kind,
    bytes: usize,
    requests: &Requests,
    times: usize,
    decided: bool,
) -> Option<Outcome> {
    match kind {
        Kind::Metes(name) => outside(name, bytes, requests, times, decided),
        _ => {
            let mut memory = Memory::new(bytes);
            let mut pool = kind.pool(memory.region())?;
            Some(drive(requests, times, decided, &mut pool))
        }
    }
}

/// A heap of Metes over records alone.
fn outside(
    name: &str,
    bytes: usize,
    requests: &Requests,
    times: usize,
    decided: bool,
) -> Option<Outcome> {
    let config = metes_config::spec(name).ok()?;
    let (kind, limits) = config.one_pool()?;
    let geometry = Geometry::tagged(4);
    let mut index = AnyIndex::new(kind, limits);
    let heads = Index::<Ledger<'_, ByHandle>>::heads(&mut index, bytes, geometry)?;
    let mut records = vec![Record::SPARE; bytes / geometry.minimum + heads + 2];
    let mut heap = Heap::new(index, Ledger::new(&mut records, ByHandle, geometry));
    heap.add_region(bytes / geometry.granule * geometry.granule)
        .ok()?;
    Some(drive(requests, times, decided, &mut heap))
}

/// An allocator as a replay drives it.
trait Subject {
    type Place: Copy;

    fn allocate(&mut self, size: usize) -> Option<Self::Place>;

    fn free(&mut self, place: Self::Place);

    /// The largest request that would be served, and bytes that nobody has asked for.
    fn left(&self) -> (usize, usize);
}

impl Subject for Box<dyn Pool> {
    type Place = std::ptr::NonNull<u8>;

    fn allocate(&mut self, size: usize) -> Option<Self::Place> {
        self.as_mut().allocate(size)
    }

    fn free(&mut self, place: Self::Place) {
        let freed = self.as_mut().free(place);
        debug_assert_eq!(freed, Ok(()));
    }

    fn left(&self) -> (usize, usize) {
        let it = self.statistics();
        (self.largest_free(), it.size - it.used)
    }
}

type Outside<'a> = Ledger<'a, ByHandle>;

impl Subject for Heap<AnyIndex<<Outside<'_> as Store>::Block>, Outside<'_>> {
    type Place = Handle;

    fn allocate(&mut self, size: usize) -> Option<Handle> {
        Heap::allocate(self, size, 8)
    }

    fn free(&mut self, place: Handle) {
        let freed = self.release_place(place);
        debug_assert_eq!(freed, Ok(()));
    }

    fn left(&self) -> (usize, usize) {
        let it = self.statistics();
        (it.largest_free, it.footprint - it.live)
    }
}

fn drive<S: Subject>(requests: &Requests, times: usize, decided: bool, subject: &mut S) -> Outcome {
    let mut held: Vec<Option<S::Place>> = vec![None; requests.blocks()];
    let mut outcome = Outcome::default();
    let peak = requests.peak();
    for time in 0..times {
        for (at, event) in requests.events().iter().enumerate() {
            match *event {
                Event::Allocate { block, size } => {
                    let place = subject.allocate(size as usize);
                    outcome.refusals += u64::from(place.is_none());
                    if decided && place.is_none() {
                        return outcome;
                    }
                    held[block as usize] = place;
                }
                Event::Free { block } => {
                    if let Some(place) = held[block as usize].take() {
                        subject.free(place);
                    }
                }
            }
            // Late, and while there is something to see.
            if !decided && time + 1 == times && at == peak {
                (outcome.largest_free, outcome.free) = subject.left();
            }
        }
    }
    outcome
}

/// Memory of a pool, on the host.
pub(super) struct Memory {
    words: Vec<u64>,
    bytes: usize,
}

impl Memory {
    pub(super) fn new(bytes: usize) -> Memory {
        Memory {
            words: vec![0; bytes.div_ceil(8)],
            bytes,
        }
    }

    /// The memory, for one pool that is gone before.
    pub(super) fn region(&mut self) -> Region {
        let start = std::ptr::NonNull::from(self.words.as_mut_slice()).cast();
        // SAFETY: whoever asks keeps the vector as long as the pool and reaches it by the pool alone; nothing is written into
        // blocks.
        unsafe { Region::new(start, self.bytes) }
    }
}
