//! The same trace in real memory and on the ledger: offset for offset the same.
//!
//! The real side is what a preload library does: boundary tags in reserved
//! memory that grows by pages, object pools beside it. The predicted side is a
//! replay. Hashes over all placements, footprints and failures must agree.

use std::alloc::Layout;
use std::ptr::NonNull;

use metes_explore::{Arena, Events, Operation, Options, Placements, Replayer};
use metes_heap::{Composite, Description, Memory, ObjectPools, Sources, Spot, Tagged};
use proptest::prelude::*;

/// Reserved bytes a pool; no trace of these tests needs more.
const RESERVED: usize = 1 << 28;
const PAGE: usize = 4096;

/// Memory of one pool, aligned as host arenas are.
struct Range(NonNull<u8>);

impl Range {
    const LAYOUT: Layout = match Layout::from_size_align(RESERVED, 1 << 21) {
        Ok(layout) => layout,
        Err(_) => panic!("a valid layout"),
    };

    fn reserve() -> Self {
        // SAFETY: the layout has a size.
        let memory = unsafe { std::alloc::alloc(Self::LAYOUT) };
        Range(NonNull::new(memory).expect("address space for a test"))
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.0.as_ptr(), Self::LAYOUT) };
    }
}

struct Reserved {
    used: [usize; 4],
}

// SAFETY: `used` never exceeds the reserved range behind each pool.
unsafe impl Sources for Reserved {
    fn increment(&self) -> usize {
        PAGE
    }

    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        let fits = self.used[pool] + bytes <= RESERVED;
        self.used[pool] += if fits { bytes } else { 0 };
        fits
    }

    fn grow_slabs(&mut self, _bytes: usize) -> bool {
        true
    }
}

struct Ran {
    hashes: Placements,
    footprint: usize,
    failed: u64,
    peak_live: usize,
}

/// Serves the events with boundary tags in real memory, and writes into every block.
fn in_memory(description: &Description, events: &Events) -> Ran {
    let count = description.general.len();
    let ranges: Vec<Range> = (0..count).map(|_| Range::reserve()).collect();
    let cut = description.slabs();
    let mut slabs = vec![0; cut.memory_words(4096)];
    let mut slack = vec![0; 4096 * cut.slots()];
    let objects = ObjectPools::new(&cut, &mut slabs, &mut slack);
    let mut heap = Composite::describe(description, |_| <Tagged>::new(), objects);
    let mut sources = Reserved { used: [0; 4] };
    for (pool, range) in ranges.iter().enumerate() {
        let general = heap.general(pool).expect("a general pool");
        general.reserve_span(1 << 36);
        let first = general.smallest_region().next_multiple_of(PAGE);
        sources.used[pool] = first;
        // SAFETY: the range is ours and outlives the heap.
        let memory = unsafe { Memory::from_raw(range.0, first) };
        general.add_region(memory).expect("a first region");
    }
    let offset = |spot: Spot<NonNull<u8>>| match spot {
        Spot::Slot(offset) => offset as u64 | 1 << 60,
        Spot::Block(pool, place) => {
            let within = place.addr().get() - ranges[pool].0.addr().get();
            ((pool as u64) << 44) + within as u64
        }
    };
    let scribble = |spot: Spot<NonNull<u8>>, size: usize| {
        if let Spot::Block(_, place) = spot {
            // SAFETY: the block is in use and holds `size` bytes.
            unsafe { place.as_ptr().write_bytes(0xa5, size) };
        }
    };
    let mut hashes = Placements::EMPTY;
    let mut failed = 0;
    let mut held: Vec<Option<Spot<NonNull<u8>>>> = vec![None; events.slots()];
    for event in events.as_slice() {
        let entry = &mut held[event.slot() as usize];
        let size = event.size();
        match event.operation() {
            Operation::Free => {
                let Some(spot) = entry.take() else { continue };
                hashes.add(Operation::Free, offset(spot), 0);
                // SAFETY: in use, and nothing else points there.
                unsafe { heap.free(spot) }.expect("a live block");
            }
            operation => {
                let new = match *entry {
                    // SAFETY: in use; ranges lie behind the pools.
                    Some(spot) => unsafe {
                        heap.resize(spot, size, event.align(), &mut sources, |_, _, _| {})
                    }
                    .expect("a live block"),
                    // SAFETY: the sources are this heap's.
                    None => unsafe { heap.allocate(size, event.align(), &mut sources) },
                };
                match new {
                    Some(spot) => {
                        scribble(spot, size);
                        hashes.add(operation, offset(spot), size as u64);
                        *entry = Some(spot);
                    }
                    None => failed += 1,
                }
            }
        }
        debug_assert_eq!(heap.check(), Ok(()));
    }
    assert_eq!(heap.check(), Ok(()));
    Ran {
        hashes,
        footprint: heap.footprint(),
        failed,
        peak_live: heap.peak_live(),
    }
}

/// Most bytes, at once, of the blocks that the live requests need at least.
fn blocks_at_peak(events: &Events) -> usize {
    let mut held = vec![0; events.slots()];
    let (mut now, mut most) = (0, 0);
    for event in events.as_slice() {
        let entry: &mut usize = &mut held[event.slot() as usize];
        now -= *entry;
        *entry = match event.operation() {
            Operation::Free => 0,
            _ => (event.size() + 8).next_multiple_of(16).max(32),
        };
        now += *entry;
        most = most.max(now);
    }
    most
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_ledger_place_every_block_alike(
        description in crate::support::heap(),
        steps in crate::support::steps(400),
    ) {
        prop_assume!(description.validate(16, 8).is_ok());
        let events = crate::support::trace(&steps);
        let ran = in_memory(&description, &events);
        let options = Options { arena: Arena::HOST, ..Options::default() };
        let (replay, _) = Replayer::new().replay("any", &description, &events, &options);
        prop_assert_eq!(replay.placements, format!("{:016x}", ran.hashes.placements));
        prop_assert_eq!(replay.requests, format!("{:016x}", ran.hashes.requests));
        prop_assert_eq!(replay.footprint, ran.footprint as u64);
        prop_assert_eq!(replay.failed, ran.failed);
        prop_assert_eq!(replay.peak_live, ran.peak_live as u64);
        // What a heap holds at its peak it must have taken from the system.
        prop_assert!(replay.footprint >= replay.peak_live);
        if description.slabs().is_empty() && replay.failed == 0 {
            let least = blocks_at_peak(&events) as u64 + replay.control_bytes;
            prop_assert!(replay.footprint >= least, "{} < {least}", replay.footprint);
        }
    }
}
