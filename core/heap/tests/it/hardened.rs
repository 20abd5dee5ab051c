//! The hardened store: it decides what plain boundary tags decide, refuses every bad
//! free, and finds whatever overwrites a record before it relies on it.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use metes_heap::description::IndexKind;
use metes_heap::index::dedicated::{ChosenKeeping, UNLIMITED};
use metes_heap::store::tagged::Memory;
use metes_heap::{
    AnyIndex, BadFree, ByHandle, Counted, Dedicated, Geometry, Hardened, Heap, Ledger, Limits,
    Links, MOST_DOUBTS, Order, Overwritten, Record, RegionError, Source, Tagged, Tlsf,
};
use metes_oracle::{Shadow, Step, limits, steps};
use proptest::prelude::*;

use crate::common::{kinds, zeroed};

const ARENA: usize = 48 << 10;
const WORD: usize = size_of::<usize>();
const GEOMETRY: Geometry = Geometry::hardened(WORD);
const SECRET: u64 = 0x5eed_0001;

type Guarded = Heap<Tlsf<8>, Hardened>;

fn heap() -> (Guarded, Memory) {
    let memory = zeroed(ARENA);
    let mut heap = Heap::new(Tlsf::new(), Hardened::new(SECRET));
    heap.add_region(memory).unwrap();
    (heap, memory)
}

/// A heap with some blocks of `size` in use.
fn filled(size: usize, count: usize) -> (Guarded, Vec<NonNull<u8>>) {
    let (mut heap, _) = heap();
    let places = (0..count).map(|number| {
        let place = heap.allocate(size, 1).unwrap();
        // SAFETY: the heap gave these bytes.
        unsafe { place.write_bytes(number as u8 + 1, size) };
        place
    });
    let places = places.collect();
    (heap, places)
}

fn free(heap: &mut Guarded, place: NonNull<u8>) -> Result<(), BadFree> {
    // SAFETY: a hardened heap takes any address; the tests forget what they free.
    unsafe { heap.free(place) }
}

/// Sizes without slack and with every amount of it.
fn sizes() -> impl Iterator<Item = usize> {
    let all = (1..=72).chain([100, 255, 256, 504, 1000, 1021, 2040]);
    all.step_by(if cfg!(miri) { 17 } else { 1 })
}

#[test]
fn double_frees_are_refused_whatever_merged_in_between() {
    // A refused free walks the heap, which takes Miri long.
    for size in sizes().step_by(if cfg!(miri) { 2 } else { 1 }) {
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 2, 0], [2, 0, 1, 3]] {
            let (mut heap, places) = filled(size, 5);
            for (freed, &which) in order.iter().enumerate() {
                assert_eq!(free(&mut heap, places[which]), Ok(()));
                for &again in &order[..=freed] {
                    assert_eq!(
                        free(&mut heap, places[again]),
                        Err(BadFree::NotInUse),
                        "size {size}, {order:?}, {again} after {which}"
                    );
                }
                heap.check().unwrap();
            }
            assert_eq!(free(&mut heap, places[4]), Ok(()));
            assert_eq!(heap.statistics().live, 0);
        }
    }
}

#[test]
fn foreign_places_are_refused_and_nothing_outside_is_read() {
    let (mut heap, places) = filled(200, 3);
    let before = heap.statistics();
    let mut local = [0_u128; 4];
    static STATIC: [u128; 4] = [7; 4];
    let end = heap.footprint();
    let base = places[0]
        .as_ptr()
        .wrapping_sub(heap.place_offset(places[0]));
    let foreign = [
        local.as_mut_ptr().cast::<u8>(),
        STATIC.as_ptr().cast_mut().cast(),
        std::ptr::without_provenance_mut(16),
        std::ptr::without_provenance_mut(usize::MAX & !15),
        std::ptr::without_provenance_mut(0x1000),
        base,
        base.wrapping_add(16),
        base.wrapping_add(end),
        base.wrapping_add(end - GEOMETRY.header + GEOMETRY.header),
        base.wrapping_sub(64),
    ];
    for place in foreign {
        let refused = free(&mut heap, NonNull::new(place).unwrap());
        assert_eq!(refused, Err(BadFree::Foreign), "{place:?}");
    }
    for offset in 1..200 {
        let inside = NonNull::new(places[1].as_ptr().wrapping_add(offset)).unwrap();
        assert_eq!(free(&mut heap, inside), Err(BadFree::Foreign), "+{offset}");
        // SAFETY: any address may be asked about.
        unsafe {
            assert_eq!(heap.requested(inside), Err(BadFree::Foreign));
            assert_eq!(heap.resize(inside, 10, 1), Err(BadFree::Foreign));
        }
    }
    let after = heap.statistics();
    assert_eq!((before.live, before.blocks), (after.live, after.blocks));
    heap.check().unwrap();
}

#[test]
fn a_block_freed_to_another_heap_is_foreign_even_at_its_address() {
    let (_, memory) = {
        let (mut heap, memory) = heap();
        for size in [32, 64, 96] {
            heap.allocate(size, 1).unwrap();
        }
        (heap, memory)
    };
    // Fewer than would close the heap, whatever the word.
    let granules = ARENA / GEOMETRY.granule;
    let fewer = granules.div_ceil(MOST_DOUBTS as usize - 1);
    let stale = (0..granules).step_by(fewer).map(|number| {
        memory
            .start()
            .as_ptr()
            .wrapping_add(number * GEOMETRY.granule)
    });
    let mut other = Heap::new(Tlsf::<8>::new(), Hardened::new(SECRET + 1));
    other.add_region(memory).unwrap();
    for place in stale {
        assert!(free(&mut other, NonNull::new(place).unwrap()).is_err());
    }
    other.check().unwrap();
}

#[test]
fn every_overflow_is_found_when_the_block_is_freed() {
    for size in sizes() {
        for bytes in [1, 2, 4, 8, 16, 32] {
            for value in [0_u8, 0x41, 0xff] {
                let (mut heap, places) = filled(size, 4);
                let end = places[1].as_ptr().wrapping_add(size);
                // SAFETY: inside the region, as four blocks are.
                let held = unsafe { std::slice::from_raw_parts_mut(end, bytes) };
                if held.iter().all(|&byte| byte == value) {
                    continue;
                }
                held.fill(value);
                let before = heap.statistics().live;
                let found = free(&mut heap, places[1]);
                assert!(
                    matches!(
                        found,
                        Err(BadFree::Overwritten(Overwritten::Slack | Overwritten::Next))
                    ),
                    "size {size}, {bytes} bytes of {value}: {found:?}"
                );
                assert_eq!(free(&mut heap, places[0]), Ok(()), "another block is freed");
                if let Some(statistics) = heap.check().is_ok().then(|| heap.statistics()) {
                    assert_eq!(statistics.live, before - size);
                }
            }
        }
    }
}

#[test]
fn an_underflow_is_found_when_the_block_is_freed() {
    for size in [1, 24, 40, 100, 1000] {
        for bytes in 1..=GEOMETRY.header {
            let (mut heap, places) = filled(size, 4);
            let header = places[1].as_ptr().wrapping_sub(bytes);
            // SAFETY: the header in front of the place.
            unsafe { header.write(!header.read()) };
            assert_eq!(
                free(&mut heap, places[1]),
                Err(BadFree::Overwritten(Overwritten::Header))
            );
            let found = free(&mut heap, places[0]);
            let next = BadFree::Overwritten(Overwritten::Next);
            assert_eq!(found, Err(next), "the block in front sees it too");
            assert_eq!(free(&mut heap, places[3]), Ok(()));
        }
    }
}

/// Every byte of a free block's record, written to: found when its neighbours are
/// freed, when it would be given out, and by `check`.
#[test]
fn writes_to_free_records_are_found() {
    let size = 100;
    let capacity = GEOMETRY.block_for(size).unwrap() - GEOMETRY.header;
    let record = (0..2 * WORD).chain(capacity - WORD..capacity);
    for offset in record {
        for neighbour in [0, 2] {
            let (mut heap, places) = filled(size, 4);
            free(&mut heap, places[1]).unwrap();
            // SAFETY: a byte of the block.
            unsafe { *places[1].as_ptr().wrapping_add(offset) ^= 0x10 };
            let live = heap.statistics().live;
            let found = free(&mut heap, places[neighbour]);
            let expected = [Overwritten::Free, Overwritten::Links].map(BadFree::Overwritten);
            assert!(expected.map(Err).contains(&found), "+{offset}: {found:?}");
            assert_eq!(heap.statistics().live, live, "the heap is unchanged");
            assert!(heap.check().is_err());
            assert_eq!(heap.allocate(size, 1), None, "+{offset} is not given out");
            assert!(heap.fault().is_some());
        }
    }
}

#[test]
fn a_forged_free_block_is_not_unlinked() {
    // The classical write-what-where: a link of a free block names a fake block in
    // memory that the program controls, with links and header of its own.
    // The smallest of a class, which a request of the same size is served from.
    let size = 256;
    let block = (size + GEOMETRY.header).next_multiple_of(GEOMETRY.granule);
    let (mut heap, places) = filled(size, 5);
    free(&mut heap, places[1]).unwrap();
    let victim = places[1].as_ptr().wrapping_sub(GEOMETRY.header).addr();
    let fake = places[3].as_ptr().cast::<usize>();
    // SAFETY: words of a used and of a free block.
    unsafe {
        for word in 0..12 {
            fake.add(word).write(victim);
        }
        fake.write(block | 1);
        places[1].as_ptr().cast::<usize>().write(fake.addr());
    }
    assert!(free(&mut heap, places[0]).is_err());
    assert!(free(&mut heap, places[2]).is_err());
    assert_eq!(heap.allocate(size, 1), None);
    assert_eq!(heap.fault(), Some(Overwritten::Links));
}

/// Whoever may go on after a refusal could try every check there is: one of them passes.
#[test]
fn a_check_cannot_be_guessed_by_trying_on() {
    let (mut heap, places) = filled(1000, 3);
    let inner = places[0].as_ptr().wrapping_add(256);
    let header = inner.wrapping_sub(GEOMETRY.header).cast::<usize>();
    let tries = match cfg!(miri) || cfg!(debug_assertions) {
        true => 2 * MOST_DOUBTS as usize,
        false => 1 << 24,
    };
    for check in 0..tries {
        // SAFETY: words of a used block.
        unsafe {
            match WORD {
                8 => header.write(752 | check.wrapping_shl(40)),
                _ => {
                    header.write(752);
                    header.add(1).write(check << 8);
                }
            }
        }
        let refused = free(&mut heap, NonNull::new(inner).unwrap());
        assert!(refused.is_err(), "check {check:x} passed");
    }
    // Closed: what is there stays, and nothing more is given out.
    assert!(heap.store().closed());
    let overwritten = Err(BadFree::Overwritten(Overwritten::Header));
    assert_eq!(free(&mut heap, places[1]), overwritten);
    assert_eq!(heap.allocate(100, 1), None);
    // SAFETY: a hardened heap takes any address.
    unsafe {
        assert!(heap.resize(places[2], 10, 1).is_err());
        assert!(heap.allocate_from(100_000, 1, &mut Behind).is_none());
        assert_eq!(places[1].as_ptr().read(), 2);
    }
}

/// What is no guess closes nothing: addresses outside, and blocks that are free.
#[test]
fn frees_that_are_plainly_wrong_do_not_close_a_heap() {
    let (mut heap, places) = filled(100, 3);
    free(&mut heap, places[0]).unwrap();
    for _ in 0..2 * MOST_DOUBTS {
        assert_eq!(free(&mut heap, places[0]), Err(BadFree::NotInUse));
        let outside = NonNull::from(&heap).cast::<u8>();
        assert_eq!(free(&mut heap, outside), Err(BadFree::Foreign));
    }
    free(&mut heap, places[1]).unwrap();
    assert!(heap.allocate(100, 1).is_some());
}

#[test]
fn a_list_head_that_an_underflow_reached_is_found() {
    let (mut heap, places) = filled(100, 3);
    free(&mut heap, places[1]).unwrap();
    let offset = heap.place_offset(places[0]);
    let region = places[0].as_ptr().wrapping_sub(offset);
    // SAFETY: the control structure of the region, without the first header.
    unsafe { region.write_bytes(0x41, offset - GEOMETRY.header) };
    assert!(free(&mut heap, places[0]).is_err());
    assert_eq!(heap.allocate(100, 1), None);
    assert!(heap.check().is_err());
}

/// The memory behind a region is the heap's for the asking.
struct Behind;

// SAFETY: the tests that use it shorten a region of `ARENA` bytes, and ask for less.
unsafe impl Source for Behind {
    fn increment(&self) -> usize {
        4096
    }

    fn grow(&mut self, _: usize) -> bool {
        true
    }
}

#[test]
fn a_footer_at_the_end_that_names_another_free_block_is_not_followed() {
    for kind in kinds() {
        let memory = zeroed(ARENA);
        let mut heap = Heap::new(AnyIndex::new(kind, Limits::NONE), Hardened::new(SECRET));
        heap.reserve_span(ARENA);
        heap.add_region(memory.shortened(8192)).unwrap();
        let places = [0; 3].map(|_| heap.allocate(200, 1).unwrap());
        // SAFETY: in use, and forgotten.
        unsafe { heap.free(places[0]) }.unwrap();
        let end = heap.footprint() - GEOMETRY.sentinel;
        let other = places[0].as_ptr().wrapping_sub(GEOMETRY.header).addr();
        // SAFETY: the last word in front of the sentinel; the last block is free.
        unsafe {
            let footer = memory.start().as_ptr().wrapping_add(end - WORD);
            footer.cast::<usize>().write(other);
        }
        // SAFETY: `ARENA` bytes are there, more than is asked for with all that is free.
        let place = unsafe { heap.allocate_from(9000, 1, &mut Behind) };
        assert_eq!(place, None, "{kind:?}");
        assert_eq!(heap.fault(), Some(Overwritten::Free), "{kind:?}");
    }
}

#[test]
fn usable_bytes_are_those_requested() {
    for size in sizes() {
        let (heap, places) = filled(size, 2);
        // SAFETY: in use.
        assert_eq!(unsafe { heap.usable_size(places[0]) }, Ok(size));
    }
}

#[test]
fn regions_are_limited_in_number() {
    let mut heap = Heap::new(Tlsf::<8>::new(), Hardened::new(SECRET));
    heap.reserve_span(ARENA);
    let mut added = 0;
    let refused = loop {
        match heap.add_region(zeroed(4 << 10)) {
            Ok(()) => added += 1,
            Err(why) => break why,
        }
    };
    assert_eq!(refused, RegionError::OutOfRecords);
    assert_eq!(added, metes_heap::store::hardened::REGIONS);
    let mut held = vec![];
    while let Some(place) = heap.allocate(300, 1) {
        held.push(place);
    }
    assert!(held.len() > added * 6, "every region serves");
    for place in held {
        assert_eq!(free(&mut heap, place), Ok(()));
        assert_eq!(free(&mut heap, place), Err(BadFree::NotInUse));
    }
    heap.check().unwrap();
}

fn cases() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const STEPS: usize = if cfg!(miri) { 25 } else { 300 };

type Any<S> = Dedicated<AnyIndex<<S as metes_heap::Store>::Block>, 4, ChosenKeeping<4>>;

fn index<S: metes_heap::Store>(kind: IndexKind, limits: Limits, dedicated: bool) -> Any<S> {
    let sizes = if dedicated {
        [4 * WORD, 8 * WORD, 112, 0]
    } else {
        [0; 4]
    };
    let keeping = ChosenKeeping {
        order: [Order::Lifo, Order::Fifo, Order::Address, Order::Lifo],
        links: [Links::Single, Links::Double, Links::Single, Links::Double],
        limit: [2, UNLIMITED, 3, UNLIMITED],
    };
    Dedicated::with(sizes, keeping, AnyIndex::new(kind, limits))
}

/// A write to the heap's memory that the program was not given.
#[derive(Clone, Copy, Debug)]
struct Write {
    /// Before which step.
    at: usize,
    /// Where: a granule of the arena and a byte of it.
    granule: usize,
    byte: usize,
    value: Value,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    Byte(u8),
    Flip(u8),
    Word(usize),
    /// The word that lies at another place of the heap.
    Copy(usize),
    Zeros(usize),
}

fn writes(steps: usize) -> impl Strategy<Value = Vec<Write>> {
    let value = prop_oneof![
        any::<u8>().prop_map(Value::Byte),
        (0u8..8).prop_map(|bit| Value::Flip(1 << bit)),
        any::<usize>().prop_map(Value::Word),
        any::<usize>().prop_map(Value::Copy),
        (1usize..200).prop_map(Value::Zeros),
    ];
    let write =
        (0..steps, any::<usize>(), any::<usize>(), value).prop_map(|(at, granule, byte, value)| {
            Write {
                at,
                granule,
                byte,
                value,
            }
        });
    prop::collection::vec(write, 1..4)
}

/// Writes into the memory, mostly near its beginning, where the blocks are.
fn apply(memory: Memory, write: Write, extent: usize) {
    let granules = extent.min(memory.bytes()) / GEOMETRY.granule;
    let byte = write.byte % GEOMETRY.granule;
    let start = memory.start().as_ptr();
    let at = write.granule % granules * GEOMETRY.granule;
    // SAFETY: inside the memory, which is initialised.
    unsafe {
        match write.value {
            Value::Byte(value) => start.add(at + byte).write(value),
            Value::Flip(bits) => *start.add(at + byte) ^= bits,
            Value::Word(value) => start
                .add(at + byte / WORD * WORD)
                .cast::<usize>()
                .write(value),
            Value::Copy(from) => {
                let from = from % granules * GEOMETRY.granule;
                let word = start.add(from + byte / WORD * WORD).cast::<usize>().read();
                start
                    .add(at + byte / WORD * WORD)
                    .cast::<usize>()
                    .write(word);
            }
            Value::Zeros(bytes) => {
                start.add(at).write_bytes(0, bytes.min(memory.bytes() - at));
            }
        }
    }
}

proptest! {
    #![proptest_config(cases())]

    /// Without a fault the store decides nothing.
    #[test]
    fn it_decides_what_a_ledger_of_its_geometry_decides(
        steps in steps(STEPS), limits in limits(), dedicated: bool,
    ) {
        for kind in kinds() {
            let mut records = vec![Record::SPARE; 4096];
            let ledger = Counted::new(Ledger::new(&mut records, ByHandle, GEOMETRY));
            let mut hardened = Shadow::new(Heap::new(index::<Hardened>(kind, limits, dedicated), Hardened::new(SECRET)));
            let mut ledger = Shadow::new(Heap::new(index::<Counted<Ledger<'_, ByHandle>>>(kind, limits, dedicated), ledger));
            let mut tagged = Shadow::new(Heap::new(index::<Tagged>(kind, limits, dedicated), <Tagged>::new()));
            hardened.heap.add_region(zeroed(ARENA)).unwrap();
            ledger.heap.add_region(ARENA).unwrap();
            tagged.heap.add_region(zeroed(ARENA)).unwrap();
            for &step in &steps {
                let decided = hardened.step(step);
                prop_assert_eq!(decided, ledger.step(step), "{:?} at {:?}", kind, step);
                if GEOMETRY == Geometry::tagged(WORD) {
                    prop_assert_eq!(decided, tagged.step(step), "{:?} at {:?}", kind, step);
                }
                prop_assert_eq!(hardened.heap.fault(), None);
                hardened.verify();
            }
            hardened.drain();
            hardened.verify();
        }
    }

    /// Whatever is written into the memory of a heap, nothing is read or written
    /// outside it, nothing loops or panics, and blocks given out never overlap.
    #[test]
    fn any_write_is_detected_or_harmless(
        steps in steps(STEPS), writes in writes(STEPS), limits in limits(), dedicated: bool,
    ) {
        for kind in kinds() {
            let memory = zeroed(ARENA);
            let mut heap = Heap::new(index::<Hardened>(kind, limits, dedicated), Hardened::new(SECRET));
            heap.add_region(memory).unwrap();
            corrupt(kind, heap, memory, &steps, &writes)?;
        }
    }
}

/// Runs the steps, ignores what is refused, and follows which bytes are whose.
fn corrupt<I: metes_heap::index::Index<Hardened>>(
    kind: IndexKind,
    mut heap: Heap<I, Hardened>,
    memory: Memory,
    steps: &[Step],
    writes: &[Write],
) -> Result<(), TestCaseError> {
    let mut held: Vec<(NonNull<u8>, usize)> = vec![];
    let mut suspect = false;
    let mut extent = 1 << 12;
    let inside = |held: &[(NonNull<u8>, usize)], place: NonNull<u8>, size: usize| {
        let start = place.addr().get();
        let bounds = memory.start().addr().get();
        prop_assert!(start >= bounds && start + size <= bounds + memory.bytes());
        for &(other, length) in held {
            let other = other.addr().get();
            prop_assert!(
                start + size <= other || other + length <= start,
                "blocks overlap"
            );
        }
        Ok(())
    };
    for (number, &step) in steps.iter().enumerate() {
        for &write in writes.iter().filter(|write| write.at == number) {
            apply(memory, write, extent);
            suspect = true;
        }
        let whole = |refused: &BadFree| suspect && matches!(refused, BadFree::Overwritten(_));
        match step {
            Step::Allocate { size, align } => {
                if let Some(place) = heap.allocate(size, align) {
                    inside(&held, place, size)?;
                    // SAFETY: the heap gave these bytes.
                    unsafe { place.write_bytes(0x55, size) };
                    held.push((place, size));
                    extent = extent.max(heap.place_offset(place) + size + 64);
                }
            }
            Step::Free { which } if !held.is_empty() => {
                let which = which % held.len();
                // SAFETY: in use; a refused block stays in use.
                match unsafe { heap.free(held[which].0) } {
                    Ok(()) => drop(held.swap_remove(which)),
                    Err(refused) => {
                        prop_assert!(whole(&refused), "{kind:?}, step {number}: {refused:?}")
                    }
                }
            }
            Step::Resize { which, size } if !held.is_empty() => {
                let which = which % held.len();
                // SAFETY: as above.
                match unsafe { heap.resize(held[which].0, size, 1) } {
                    Ok(Some(place)) => {
                        held.swap_remove(which);
                        inside(&held, place, size)?;
                        // SAFETY: as above.
                        unsafe { place.write_bytes(0x66, size) };
                        held.push((place, size));
                    }
                    Ok(None) => {}
                    Err(refused) => {
                        prop_assert!(whole(&refused), "{kind:?}, step {number}: {refused:?}")
                    }
                }
            }
            Step::Free { .. } | Step::Resize { .. } => {}
        }
        prop_assert!(suspect || heap.fault().is_none());
        if !suspect {
            prop_assert_eq!(heap.check(), Ok(()));
        }
    }
    // Neither a walk nor a check trusts the memory.
    let _ = heap.check();
    let _ = heap.statistics();
    Ok(())
}

#[test]
fn static_memory_of_a_program_is_initialised() {
    static mut BYTES: [MaybeUninit<u8>; 8192] = [const { MaybeUninit::zeroed() }; 8192];
    let start = NonNull::new(&raw mut BYTES).unwrap().cast();
    // SAFETY: nothing else uses the bytes, and they live as long as the program.
    let memory = unsafe { Memory::from_raw(start, 8192) };
    let mut heap = Heap::new(Tlsf::<8>::new(), Hardened::new(SECRET));
    heap.add_region(memory).unwrap();
    let place = heap.allocate(100, 16).unwrap();
    assert_eq!(free(&mut heap, place), Ok(()));
}
