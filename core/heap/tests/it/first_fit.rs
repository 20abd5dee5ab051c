//! First fit by a tree: it decides as a list in address order does, offset for offset, over every store, with regions
//! in any order and memory that grows; and by size classes as the naive search does that rounds requests up.
//!
//! Invariant: every comparison is between a heap and something that shares no index with it.

use metes_heap::index::Index;
use metes_heap::index::first_fit::{Classes, Exact, FirstFit, Short, Summary};
use metes_heap::index::list::ConstantList;
use metes_heap::store::tagged::Memory;
use metes_heap::{
    ByHandle, Counted, Fit, Geometry, Hardened, Heap, Ledger, ListFit, Order, Record, RegionError,
    Source, State, Store, Tagged, UnitRecord,
};
use metes_oracle::{Shadow, Step, memory, steps, steps_with_slack};
use proptest::prelude::*;

use crate::common::zeroed;

const ARENA: usize = if cfg!(miri) { 8 << 10 } else { 64 << 10 };
const WORD: usize = size_of::<usize>();
const CASES: u32 = match (cfg!(miri), cfg!(debug_assertions)) {
    (true, _) => 1,
    (_, true) => 60,
    _ => 400,
};
/// Steps of a case.
const STEPS: usize = if cfg!(miri) { 20 } else { 200 };

fn config() -> ProptestConfig {
    let config = ProptestConfig {
        cases: CASES,
        ..ProptestConfig::default()
    };
    if cfg!(miri) {
        // Miri opens no files.
        return ProptestConfig {
            failure_persistence: None,
            ..config
        };
    }
    config
}

type List<B> = ListFit<ConstantList<{ Fit::First as usize }, { Order::Address as usize }>, B>;
type Block<S> = <S as Store>::Block;

/// Where the first block is, from the beginning of the memory: offsets are compared from there.
fn first<I: Index<S>, S: Store>(heap: &Heap<I, S>) -> usize {
    let mut first = usize::MAX;
    heap.walk(|info| first = first.min(info.offset)).unwrap();
    first
}

/// The step without an alignment above the granule: these are of addresses, and control structures differ in length.
fn unaligned(step: Step) -> Step {
    match step {
        Step::Allocate { size, .. } => Step::Allocate { size, align: 1 },
        other => other,
    }
}

/// Takes the steps with both heaps; each verifies itself after every one.
fn alike<I, J, S, T>(one: Heap<I, S>, two: Heap<J, T>, steps: &[Step])
where
    I: Index<S>,
    J: Index<T>,
    S: Store,
    T: Store,
    S::Place: metes_oracle::Payload,
    T::Place: metes_oracle::Payload,
{
    let begin = (first(&one), first(&two));
    let (mut one, mut two) = (Shadow::new(one), Shadow::new(two));
    for (number, &step) in steps.iter().enumerate() {
        let step = unaligned(step);
        let decided = (
            one.step(step).map(|offset| offset.wrapping_sub(begin.0)),
            two.step(step).map(|offset| offset.wrapping_sub(begin.1)),
        );
        assert_eq!(decided.0, decided.1, "step {number}: {step:?}");
        one.verify();
        two.verify();
    }
    one.drain();
    two.drain();
    one.verify();
    two.verify();
}

/// A heap over `bytes` for its blocks, whatever its index needs in front of them.
fn heap<I, S>(index: I, store: S, bytes: usize, zero: bool) -> Heap<I, S>
where
    I: Index<S>,
    S: Store<Region = Memory>,
{
    let mut heap = Heap::new(index, store);
    // The length of the control structure follows what is reserved, which is more than the memory.
    heap.reserve_span(2 * bytes);
    let geometry = heap.store().geometry();
    let control = heap.smallest_region() - geometry.minimum;
    let bytes = control + bytes;
    let region = match zero {
        true => zeroed(bytes),
        false => memory(bytes),
    };
    heap.add_region(region).unwrap();
    heap
}

/// Memory of `control` bytes and `bytes` for blocks, these at a page's beginning: alignments then pass over as much in
/// front of whatever control structure.
fn behind(control: usize, bytes: usize) -> Memory {
    const PAGE: usize = 4096;
    let region = memory(control.next_multiple_of(PAGE) + bytes);
    let skipped = control.next_multiple_of(PAGE) - control;
    // SAFETY: the rest of that memory.
    unsafe { Memory::from_raw(region.start().add(skipped), control + bytes) }
}

/// Aligned requests among others.
fn aligned(steps: &[Step]) {
    fn over<I: Index<Tagged>>(index: I) -> (Heap<I, Tagged>, usize) {
        let mut heap = Heap::new(index, <Tagged>::new());
        // The length of the control structure follows what is reserved, which is more than the memory.
        heap.reserve_span(2 * ARENA);
        let geometry = heap.store().geometry();
        let region = behind(heap.smallest_region() - geometry.minimum, ARENA);
        heap.add_region(region).unwrap();
        let begin = region.start().as_ptr().addr() + first(&heap);
        (heap, begin)
    }
    let (mut tree, tree_begin) = over(FirstFit::<Exact, _>::new());
    let (mut list, list_begin) = over(List::new());
    let mut held = Vec::new();
    for &step in steps {
        match step {
            Step::Allocate { size, align } => {
                let both = (tree.allocate(size, align), list.allocate(size, align));
                assert_eq!(
                    both.0.map(|place| place.as_ptr().addr() - tree_begin),
                    both.1.map(|place| place.as_ptr().addr() - list_begin),
                    "{step:?}"
                );
                held.extend(both.0.zip(both.1));
            }
            Step::Free { which } if !held.is_empty() => {
                let (one, two) = held.swap_remove(which % held.len());
                // SAFETY: both are in use.
                unsafe { (tree.free(one).unwrap(), list.free(two).unwrap()) };
            }
            _ => {}
        }
        tree.check().unwrap();
    }
}

fn all_stores<E: Summary>(steps: &[Step], arena: usize) {
    let list = || heap(List::new(), <Tagged>::new(), arena, false);
    alike(
        heap(FirstFit::<E, _>::new(), <Tagged>::new(), arena, false),
        list(),
        steps,
    );
    let bare = heap(
        FirstFit::<E, _>::new(),
        Tagged::<false>::new(),
        arena,
        false,
    );
    alike(bare, list(), steps);
    let hardened = heap(FirstFit::<E, _>::new(), Hardened::new(7), arena, true);
    alike(
        hardened,
        heap(List::new(), Hardened::new(7), arena, true),
        steps,
    );
    let counted = heap(
        FirstFit::<E, _>::new(),
        Counted::new(<Tagged>::new()),
        arena,
        false,
    );
    alike(counted, list(), steps);
}

/// Records outside the memory: of bytes with the geometry of tags, and of granules.
fn all_ledgers<E: Summary>(steps: &[Step], arena: usize) {
    for geometry in [Geometry::tagged(WORD), Geometry::out_of_band(64)] {
        let (mut one, mut two) = (vec![Record::SPARE; 1 << 14], vec![Record::SPARE; 1 << 14]);
        let mut tree = Heap::new(
            FirstFit::<E, Block<Ledger<'_, ByHandle>>>::new(),
            Ledger::new(&mut one, ByHandle, geometry),
        );
        let mut list = Heap::new(List::new(), Ledger::new(&mut two, ByHandle, geometry));
        tree.reserve_span(2 * arena);
        let control = tree.smallest_region() - list.smallest_region();
        tree.add_region(arena + control).unwrap();
        list.add_region(arena).unwrap();
        alike(tree, list, steps);
    }
    let (mut one, mut two) = (
        vec![UnitRecord::SPARE; 1 << 14],
        vec![UnitRecord::SPARE; 1 << 14],
    );
    let geometry = Geometry::out_of_band(16);
    let mut tree = Heap::new(
        FirstFit::<E, _>::new(),
        Ledger::new(&mut one, ByHandle, geometry),
    );
    let mut list = Heap::new(List::new(), Ledger::new(&mut two, ByHandle, geometry));
    tree.add_region(arena / 16).unwrap();
    list.add_region(arena / 16).unwrap();
    let mut held = Vec::new();
    for &step in steps {
        match step {
            Step::Allocate { size, align } => {
                let both = (tree.allocate(size, align), list.allocate(size, align));
                let offsets = (
                    both.0.map(|place| tree.place_offset(place)),
                    both.1.map(|place| list.place_offset(place)),
                );
                assert_eq!(offsets.0, offsets.1, "{step:?}");
                held.extend(both.0.zip(both.1));
            }
            Step::Free { which } if !held.is_empty() => {
                let (one, two) = held.swap_remove(which % held.len());
                tree.release_place(one).unwrap();
                list.release_place(two).unwrap();
            }
            _ => {}
        }
        tree.check().unwrap();
    }
}

/// What is free, in address order, and which of it a request of `need` granules gets when it asks for `served`.
fn naive<I: Index<S>, S: Store>(heap: &Heap<I, S>, served: usize, need: usize) -> Option<usize> {
    let granule = heap.store().geometry().granule;
    let mut found = None;
    let mut last = None;
    let mut end = 0;
    heap.walk(|info| {
        let granules = info.size / granule;
        if info.state == State::Free {
            if granules >= served && found.is_none() {
                found = Some(info.offset);
            }
            last = (granules >= need).then_some(info.offset);
        } else {
            last = None;
        }
        end = info.offset + info.size;
    })
    .unwrap();
    // The block at the end serves last, by its size.
    found.or(last)
}

/// Every decision by size classes is that of the naive search.
fn by_classes(steps: &[Step]) {
    let mut shadow = Shadow::new(heap(
        FirstFit::<Classes, _>::new(),
        <Tagged>::new(),
        ARENA,
        false,
    ));
    let geometry = Geometry::tagged(WORD);
    for &step in steps {
        let expected = match step {
            Step::Allocate { size, align } if align <= geometry.granule => {
                let need = geometry.granules(geometry.block_for(size).unwrap());
                Some(naive(&shadow.heap, Classes::served(need), need))
            }
            _ => None,
        };
        let offset = shadow.step(step);
        if let Some(expected) = expected {
            assert_eq!(offset, expected.map(|at| at + geometry.header), "{step:?}");
        }
        shadow.verify();
    }
    shadow.drain();
    shadow.verify();
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn decides_as_a_list_in_address_order(steps in steps(STEPS)) {
        all_stores::<Exact>(&steps, ARENA);
        all_stores::<Short>(&steps, ARENA);
    }

    #[test]
    fn decides_as_a_list_where_requests_are_aligned(steps in steps(STEPS)) {
        aligned(&steps);
    }

    #[test]
    fn decides_as_a_list_where_blocks_are_large(steps in steps_with_slack(STEPS)) {
        all_stores::<Exact>(&steps, 8 * ARENA);
    }

    #[test]
    fn decides_as_a_list_with_records_elsewhere(steps in steps(STEPS)) {
        all_ledgers::<Exact>(&steps, ARENA);
    }

    #[test]
    fn by_classes_the_first_block_of_the_next_class_serves(steps in steps(STEPS)) {
        by_classes(&steps);
    }

    #[test]
    fn classes_hold_with_records_elsewhere(steps in steps(STEPS)) {
        let mut records = vec![Record::SPARE; 1 << 14];
        let ledger = Ledger::new(&mut records, ByHandle, Geometry::tagged(WORD));
        let mut tree = Heap::new(FirstFit::<Classes, _>::new(), ledger);
        tree.add_region(ARENA).unwrap();
        let mut tags = Heap::new(FirstFit::<Classes, _>::new(), <Tagged>::new());
        tags.add_region(memory(ARENA)).unwrap();
        alike(tree, tags, &steps);
    }
}

/// Memory of a single group: what is kept of it has room on every store.
#[test]
fn a_single_group_has_room_for_its_tree() {
    for bytes in [128, 512, 1000] {
        let mut records = vec![Record::SPARE; 64];
        let ledger = Ledger::new(&mut records, ByHandle, Geometry::tagged(WORD));
        let mut heap = Heap::new(FirstFit::<Classes, _>::new(), ledger);
        heap.add_region(bytes).unwrap();
        let mut held = Vec::new();
        while let Some(place) = heap.allocate(1, 1) {
            held.push(place);
        }
        assert!(!held.is_empty());
        for place in held {
            heap.release_place(place).unwrap();
        }
        assert_eq!(heap.check(), Ok(()));
    }
}

/// Memory that is granted behind a region, of its own.
struct Behind {
    left: usize,
    increment: usize,
}

// SAFETY: the tests make a region of the first part of their memory, and grant the rest.
unsafe impl Source for Behind {
    fn increment(&self) -> usize {
        self.increment
    }

    fn grow(&mut self, bytes: usize) -> bool {
        let granted = bytes <= self.left;
        self.left -= if granted { bytes } else { 0 };
        granted
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn decides_as_a_list_that_grows(steps in steps(STEPS), increment in 1usize..=40) {
        let begin = 4096;
        let mut list = Heap::new(List::new(), <Tagged>::new());
        list.reserve_span(ARENA);
        let mut tree = Heap::new(FirstFit::<Exact, _>::new(), <Tagged>::new());
        tree.reserve_span(ARENA + 4096);
        let control = tree.smallest_region() - list.smallest_region();
        let lists = list.smallest_region();
        list.add_region(memory(lists + ARENA).shortened(lists + begin)).unwrap();
        tree.add_region(memory(lists + control + ARENA).shortened(lists + control + begin)).unwrap();
        let from = (first(&list), first(&tree));
        let (mut list, mut tree) = (Shadow::new(list), Shadow::new(tree));
        let source = || Behind { left: ARENA - begin - 1024, increment: increment * 2 * WORD };
        let (mut behind_list, mut behind_tree) = (source(), source());
        for step in steps {
            let step = unaligned(step);
            let decided = (
                list.step_from(step, &mut behind_list).map(|offset| offset - from.0),
                tree.step_from(step, &mut behind_tree).map(|offset| offset - from.1),
            );
            prop_assert_eq!(decided.0, decided.1, "{:?}", step);
            tree.verify();
        }
    }

    /// Regions of one memory, added in any order: addresses decide, not the order of addition.
    #[test]
    fn decides_as_a_list_over_several_regions(
        steps in steps(STEPS),
        order in Just([0usize, 1, 2, 3]).prop_shuffle(),
    ) {
        const PART: usize = 16 << 10;
        let span = 5 * PART;
        // The table lies in the region that is added first: a part of its own, so that others are alike.
        let whole = memory(8 * PART);
        let part = |number: usize, bytes: usize| {
            // SAFETY: disjoint parts of one memory.
            unsafe { Memory::from_raw(whole.start().add(number * PART), bytes) }
        };
        let mut tree = Heap::new(FirstFit::<Exact, _>::new(), <Tagged>::new());
        let mut list = Heap::new(List::new(), <Tagged>::new());
        tree.reserve_span(span);
        list.reserve_span(span);
        let control = tree.smallest_region() - list.smallest_region();
        let other = memory(8 * PART);
        let twin = |number: usize, bytes: usize| {
            // SAFETY: as above.
            unsafe { Memory::from_raw(other.start().add(number * PART), bytes) }
        };
        let mut places = Vec::new();
        for (time, &number) in order.iter().enumerate() {
            let extra = if time == 0 { control } else { 0 };
            tree.add_region(part(number * 2, PART / 2 + number * 128 + extra)).unwrap();
            list.add_region(twin(number * 2, PART / 2 + number * 128)).unwrap();
            tree.check().unwrap();
            for (one, two) in places.drain(..) {
                // SAFETY: allocated below.
                unsafe { tree.free(one) }.unwrap();
                // SAFETY: as above.
                unsafe { list.free(two) }.unwrap();
            }
            for &step in &steps {
                match step {
                    Step::Allocate { size, .. } => {
                        let both = (tree.allocate(size, 1), list.allocate(size, 1));
                        prop_assert_eq!(both.0.is_some(), both.1.is_some());
                        if let (Some(one), Some(two)) = both {
                            let at = |place: std::ptr::NonNull<u8>, base: std::ptr::NonNull<u8>| {
                                place.as_ptr().addr() - base.as_ptr().addr()
                            };
                            let from = at(one, whole.start());
                            // The first region's blocks begin behind its table.
                            let shift = if from / PART == order[0] * 2 { control } else { 0 };
                            prop_assert_eq!(from - shift, at(two, other.start()), "{:?}", step);
                            places.push((one, two));
                        }
                    }
                    Step::Free { which } if !places.is_empty() => {
                        let (one, two) = places.swap_remove(which % places.len());
                        // SAFETY: allocated above.
                        unsafe { tree.free(one) }.unwrap();
                        // SAFETY: as above.
                        unsafe { list.free(two) }.unwrap();
                    }
                    _ => {}
                }
                tree.check().unwrap();
            }
        }
    }
}

#[test]
fn a_region_that_was_not_reserved_is_refused() {
    let mut heap = Heap::new(FirstFit::<Exact, _>::new(), <Tagged>::new());
    heap.add_region(memory(ARENA)).unwrap();
    assert_eq!(
        heap.add_region(memory(ARENA)),
        Err(RegionError::SpanExceeded)
    );
    heap.check().unwrap();
}

#[test]
fn memory_of_more_granules_than_a_summary_can_say_is_refused() {
    let mut heap = Heap::new(FirstFit::<Short, _>::new(), <Tagged>::new());
    let bytes = (Short::LARGEST + 1) * 2 * WORD;
    assert_eq!(
        heap.add_region(memory(bytes)),
        Err(RegionError::SpanExceeded)
    );
    let mut heap = Heap::new(FirstFit::<Short, _>::new(), <Tagged>::new());
    heap.add_region(memory(bytes - 2 * WORD)).unwrap();
}

/// What programs do that write where they may not: bits of the memory change between the steps.
fn overwritten(steps: &[Step], flips: &[usize]) {
    const BYTES: usize = if cfg!(miri) { 4 << 10 } else { 16 << 10 };
    let memory = zeroed(BYTES);
    let mut heap = Heap::new(FirstFit::<Exact, _>::new(), Hardened::new(11));
    heap.add_region(memory).unwrap();
    let mut held = Vec::new();
    for (number, &step) in steps.iter().enumerate() {
        if let Some(&bit) = flips.get(number % (flips.len() * 3)) {
            // Every third in the table, which is short.
            let bit = bit % if number % 3 == 0 { 512 * 8 } else { BYTES * 8 };
            // SAFETY: the memory is the heap's, and nothing borrows it now.
            unsafe { *memory.start().as_ptr().add(bit / 8) ^= 1 << (bit % 8) };
        }
        match step {
            Step::Allocate { size, align } => held.extend(heap.allocate(size, align)),
            Step::Free { which } if !held.is_empty() => {
                let place = held.swap_remove(which % held.len());
                // SAFETY: a hardened heap may be given any address.
                let _ = unsafe { heap.free(place) };
            }
            _ => {}
        }
        let _ = heap.check();
        let _ = heap.statistics();
    }
    metes_oracle::give_back(memory);
}

/// Bits of the memory of a heap without verification change while it is looked at.
fn looked_at(steps: &[Step], flips: &[usize]) {
    const BYTES: usize = if cfg!(miri) { 4 << 10 } else { 16 << 10 };
    let memory = zeroed(BYTES);
    let mut heap = Heap::new(FirstFit::<Exact, _>::new(), <Tagged>::new());
    heap.add_region(memory).unwrap();
    let mut held = Vec::new();
    for (number, &step) in steps.iter().enumerate() {
        match step {
            Step::Allocate { size, align } => held.extend(heap.allocate(size, align)),
            Step::Free { which } if !held.is_empty() => {
                let place = held.swap_remove(which % held.len());
                // SAFETY: in use, and forgotten.
                unsafe { heap.free(place) }.unwrap();
            }
            _ => {}
        }
        let bit = flips[number % flips.len()] % if number % 2 == 0 { 512 * 8 } else { BYTES * 8 };
        let byte = memory.start().as_ptr().wrapping_add(bit / 8);
        // SAFETY: as above.
        unsafe { *byte ^= 1 << (bit % 8) };
        let _ = heap.check();
        let _ = heap.statistics();
        // SAFETY: as above.
        unsafe { *byte ^= 1 << (bit % 8) };
        assert_eq!(heap.check(), Ok(()));
    }
    metes_oracle::give_back(memory);
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_overwritten_heap_stays_in_its_memory(
        steps in steps(STEPS),
        flips in prop::collection::vec(any::<usize>(), 1..60),
    ) {
        overwritten(&steps, &flips);
        looked_at(&steps, &flips);
    }
}
