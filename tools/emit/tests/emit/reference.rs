//! The decisions of `metes_heap::Composite`, in the driver's words.
//!
//! Invariant: memory grows as in the driver: by the same increment, from the
//! same first regions, up to the same limit.

use std::alloc::Layout;
use std::ptr::NonNull;

use metes_heap::description::{Description, LEVELS};
use metes_heap::heap::Length;
use metes_heap::store::Geometry;
use metes_heap::{
    AnyPool, ByHandle, Composite, Counted, Ledger, Levels, Memory, ObjectPools, Record, Sources,
    Spot, Store, Tagged,
};

use crate::sample::Operation;
use crate::support::ARENA;

const ARENA_ALIGNMENT: usize = 1 << 21;

struct Grown {
    lengths: Vec<usize>,
    slabs: usize,
    increment: usize,
    levels: Levels,
}

// SAFETY: `grow` accounts for memory that `tagged` has reserved behind each
// region (and that a ledger does not touch), up to the limit.
unsafe impl Sources for Grown {
    fn increment(&self) -> usize {
        self.increment
    }

    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        let fits = bytes <= ARENA - self.lengths[pool] && self.levels.take(pool, bytes);
        if fits {
            self.lengths[pool] += bytes;
        }
        fits
    }

    fn grow_slabs(&mut self, bytes: usize) -> bool {
        let fits = bytes <= ARENA - self.slabs && self.levels.take_slab(bytes);
        if fits {
            self.slabs += bytes;
        }
        fits
    }
}

/// The span of hosts.
const SPAN: usize = 1 << 36;

/// One decision: the offset of the block given, if any, and the footprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) offset: Option<u64>,
    pub(crate) footprint: usize,
    /// Bytes of the records of slabs, part of the footprint.
    pub(crate) slab_records: usize,
}

/// What a heap decided, operation by operation, and its statistics.
pub(crate) struct Decisions {
    pub(crate) decisions: Vec<Decision>,
    pub(crate) statistics: metes_heap::Statistics,
    /// Record words read and written in the general pools of each level, where
    /// the store counts them.
    pub(crate) touched: [(u64, u64); LEVELS],
    pub(crate) spilled: u64,
}

/// A heap, and the memory around it.
#[derive(Clone, Copy)]
pub(crate) struct Placed<'d> {
    pub(crate) description: &'d Description,
    pub(crate) sizes: [Option<usize>; LEVELS],
    pub(crate) increment: usize,
}

impl<'d> Placed<'d> {
    /// Levels without limit, and pages.
    pub(crate) fn of(description: &'d Description) -> Self {
        Placed {
            description,
            sizes: [None; LEVELS],
            increment: 4096,
        }
    }
}

impl Decisions {
    /// In the driver's words: a line an operation, then that of the check.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |decision: &Decision| match decision.offset {
            Some(offset) => format!("{offset} {}", decision.footprint),
            None => format!("- {}", decision.footprint),
        };
        let mut lines: Vec<String> = self.decisions.iter().map(line).collect();
        lines.push("check 0".to_string());
        lines
    }
}

/// The decisions over boundary tags, in real memory.
pub(crate) fn tagged(description: &Description, operations: &[Operation]) -> Decisions {
    tagged_in(Placed::of(description), operations)
}

/// The decisions over boundary tags, in real memory, with memory levels.
pub(crate) fn tagged_in(place: Placed<'_>, operations: &[Operation]) -> Decisions {
    let description = place.description;
    let layout = Layout::from_size_align(ARENA, ARENA_ALIGNMENT).unwrap();
    let memories: Vec<NonNull<u8>> = description
        .general
        .iter()
        // SAFETY: the layout is not empty.
        .map(|_| NonNull::new(unsafe { std::alloc::alloc(layout) }).unwrap())
        .collect();
    let decisions = with_objects(description, |objects| {
        let store = |_| Counted::new(<Tagged>::new());
        let composite = Composite::describe(description, store, objects);
        run(
            composite,
            place,
            SPAN,
            |store| (store.reads(), store.writes()),
            operations,
            |pool, bytes| {
                // SAFETY: `ARENA` bytes lie there until the composite is dropped.
                unsafe { Memory::from_raw(memories[pool], bytes) }
            },
        )
    });
    for memory in memories {
        // SAFETY: allocated above with this layout; the heap in it is gone.
        unsafe { std::alloc::dealloc(memory.as_ptr(), layout) };
    }
    decisions
}

/// The decisions over a ledger with the geometry of boundary tags.
pub(crate) fn ledger(description: &Description, operations: &[Operation]) -> Decisions {
    ledger_of(description, operations, 8, SPAN)
}

/// The decisions over a ledger with the geometry of boundary tags, with memory levels.
pub(crate) fn ledger_in(place: Placed<'_>, operations: &[Operation]) -> Decisions {
    counted(place, operations, 8, SPAN)
}

/// The decisions for words of so many bytes and indexes of such a span.
pub(crate) fn ledger_of(
    description: &Description,
    operations: &[Operation],
    word: usize,
    span: usize,
) -> Decisions {
    counted(Placed::of(description), operations, word, span)
}

fn counted(place: Placed<'_>, operations: &[Operation], word: usize, span: usize) -> Decisions {
    let description = place.description;
    let mut tables: Vec<Vec<Record>> = description
        .general
        .iter()
        .map(|_| vec![Record::SPARE; 40_000])
        .collect();
    let mut tables = tables.iter_mut();
    with_objects(description, |objects| {
        let store = |_| {
            let ledger = Ledger::new(tables.next().unwrap(), ByHandle, Geometry::tagged(word));
            Counted::new(ledger)
        };
        let composite = Composite::describe(description, store, objects);
        let count = |store: &Counted<_>| (store.reads(), store.writes());
        run(composite, place, span, count, operations, |_, bytes| bytes)
    })
}

/// Runs `body` with the object pools of a description, over tables for `ARENA`.
pub(crate) fn with_objects<R>(
    description: &Description,
    body: impl FnOnce(ObjectPools<'_>) -> R,
) -> R {
    let slabs = description.slabs();
    let capacity = ARENA.checked_div(slabs.bytes()).unwrap_or(0);
    let mut memory = vec![0; slabs.memory_words(capacity)];
    let mut slack = vec![0; capacity * slabs.slots()];
    body(ObjectPools::new(&slabs, &mut memory, &mut slack))
}

fn run<S: Store>(
    mut heap: Composite<'_, AnyPool<S::Block>, S>,
    place: Placed<'_>,
    span: usize,
    count: impl Fn(&S) -> (u64, u64),
    operations: &[Operation],
    region: impl Fn(usize, usize) -> S::Region,
) -> Decisions
where
    S::Region: Length,
{
    let counts = |heap: &Composite<'_, AnyPool<S::Block>, S>| -> Vec<(u64, u64)> {
        heap.pools().map(|pool| count(pool.store())).collect()
    };
    let mut grown = Grown {
        lengths: Vec::new(),
        slabs: 0,
        increment: place.increment,
        levels: Levels::of(place.description, place.sizes),
    };
    for pool in 0..heap.pools().count() {
        let general = heap.general(pool).unwrap();
        general.reserve_span(grown.levels.span(pool, span));
        let bytes = general.smallest_region().next_multiple_of(place.increment);
        assert!(grown.levels.take(pool, bytes), "the level holds its pools");
        general.add_region(region(pool, bytes)).unwrap();
        grown.lengths.push(bytes);
    }
    let mut touched = [(0, 0); LEVELS];
    let mut places: Vec<Option<Spot<S::Place>>> = vec![None; operations.len()];
    let mut decisions = Vec::new();
    for (number, &operation) in operations.iter().enumerate() {
        if number % 97 == 0 {
            assert_eq!(heap.check(), Ok(()), "before operation {number}");
        }
        // What a check reads is not counted.
        let before = counts(&heap);
        let spot = operate(&mut heap, &mut grown, &mut places, operation);
        for (number, (now, before)) in counts(&heap).into_iter().zip(before).enumerate() {
            let level = &mut touched[grown.levels.of_general(number)];
            *level = (level.0 + now.0 - before.0, level.1 + now.1 - before.1);
        }
        decisions.push(Decision {
            offset: spot.map(|spot| offset(&heap, spot)),
            footprint: heap.footprint(),
            slab_records: heap.objects().record_bytes(),
        });
    }
    assert_eq!(heap.check(), Ok(()));
    Decisions {
        decisions,
        statistics: heap.statistics(),
        touched,
        spilled: heap.spilled(),
    }
}

/// The spot that an operation gave, if it gave one.
fn operate<S: Store>(
    heap: &mut Composite<'_, AnyPool<S::Block>, S>,
    grown: &mut Grown,
    places: &mut [Option<Spot<S::Place>>],
    operation: Operation,
) -> Option<Spot<S::Place>> {
    match operation {
        Operation::Allocate { id, size, align } => {
            // SAFETY: `grown` is what lies behind this heap's memory.
            places[id] = unsafe { heap.allocate(size, align, grown) };
            places[id]
        }
        Operation::Free { id } => {
            if let Some(spot) = places[id].take() {
                // SAFETY: the block is in use and its bytes are not.
                unsafe { heap.free(spot) }.unwrap();
            }
            None
        }
        Operation::Resize { id, size, align } => {
            let spot = places[id]?;
            // SAFETY: as for both above. Payloads do not matter here.
            let moved = unsafe { heap.resize(spot, size, align, grown, |_, _, _| {}) }.unwrap()?;
            places[id] = Some(moved);
            places[id]
        }
    }
}

fn offset<S: Store>(heap: &Composite<'_, AnyPool<S::Block>, S>, spot: Spot<S::Place>) -> u64 {
    match spot {
        Spot::Slot(offset) => (1 << 60) + offset as u64,
        Spot::Block(pool, place) => {
            let general = heap.pools().nth(pool).unwrap();
            ((pool as u64) << 44) + general.place_offset(place) as u64
        }
    }
}
