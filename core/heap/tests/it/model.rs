//! Every index over every store against a naive model of intervals: no overlap,
//! alignment, payload intact, exact accounting, full coalescing; and the same
//! sequence on `Tagged` and on `Ledger` decides the same, offset for offset.

use metes_heap::description::IndexKind;
use metes_heap::index::dedicated::{ChosenKeeping, UNLIMITED};
use metes_heap::store::Store;
use metes_heap::{
    AnyIndex, Buddy, ByHandle, Counted, Dedicated, Direct, Fit, Geometry, HalfFit, Hardened,
    Hashed, Heap, Kingsley, Ledger, Limits, Links, Order, Record, RegionError, SegregatedFit,
    Tagged, Tlsf, UnitRecord,
};
use metes_oracle::{Shadow, Step, kinds, limits, memory, steps, steps_with_slack};
use proptest::prelude::*;

const ARENA: usize = 48 << 10;
/// An arena in which a block can be larger than its request by more than a header can say.
const WIDE: usize = 512 << 10;
const WORD: usize = size_of::<usize>();

const ORDERS: [Order; 3] = [Order::Lifo, Order::Fifo, Order::Address];
const LINKS: [Links; 2] = [Links::Single, Links::Double];

type Pair<'a, I, J> = (Shadow<I, Tagged>, Shadow<J, Counted<Ledger<'a, ByHandle>>>);

/// Runs the steps on both stores; they must decide the same.
fn run_pair<I, J>(mut pair: Pair<'_, I, J>, steps: &[Step], coalesces: bool)
where
    I: metes_heap::index::Index<Tagged>,
    J: for<'a> metes_heap::index::Index<Counted<Ledger<'a, ByHandle>>>,
{
    pair.0.heap.add_region(memory(ARENA)).unwrap();
    pair.1.heap.add_region(ARENA).unwrap();
    let whole = pair.0.heap.statistics().largest_free;
    for &step in steps {
        let tagged = pair.0.step(step);
        let ledger = pair.1.step(step);
        assert_eq!(tagged, ledger, "the stores decide differently at {step:?}");
        pair.0.verify();
        pair.1.verify();
    }
    assert_eq!(pair.0.heap.footprint(), pair.1.heap.footprint());
    pair.0.drain();
    pair.1.drain();
    pair.0.verify();
    pair.1.verify();
    if coalesces {
        assert_eq!(
            pair.0.heap.statistics().largest_free,
            whole,
            "all memory is one block again"
        );
    }
    assert!(pair.1.heap.store().reads() > 0);
}

fn run_kind(kind: IndexKind, limits: Limits, steps: &[Step]) {
    let mut records = vec![Record::SPARE; RECORDS];
    let ledger = Counted::new(Ledger::new(&mut records, ByHandle, Geometry::tagged(WORD)));
    let coalesces = limits == Limits::NONE
        && !matches!(
            kind,
            IndexKind::Kingsley
                | IndexKind::FixedSizes { .. }
                | IndexKind::Buddy { .. }
                | IndexKind::Lea { keep_up_to: 1.. }
        );
    let pair = (
        Shadow::new(Heap::new(AnyIndex::new(kind, limits), <Tagged>::new())),
        Shadow::new(Heap::new(AnyIndex::new(kind, limits), ledger)),
    );
    run_pair(pair, steps, coalesces);
}

/// Records of granules decide as records of bytes do.
fn run_units(kind: IndexKind, steps: &[Step]) {
    const GRANULE: usize = 16;
    if matches!(kind, IndexKind::Lea { .. }) {
        // Its threshold is a number of bytes.
        return;
    }
    let geometry = Geometry::out_of_band(GRANULE);
    let (mut bytes, mut units) = (
        vec![Record::SPARE; RECORDS],
        vec![UnitRecord::SPARE; RECORDS],
    );
    let index = || AnyIndex::new(kind, Limits::NONE);
    let mut pair = (
        Heap::new(index(), Ledger::new(&mut bytes, ByHandle, geometry)),
        Heap::new(index(), Ledger::new(&mut units, ByHandle, geometry)),
    );
    pair.0.add_region(ARENA).unwrap();
    match pair.1.add_region(ARENA / GRANULE) {
        Err(RegionError::Unmerged) => return,
        added => added.unwrap(),
    }
    let mut held = Vec::new();
    for (number, &step) in steps.iter().enumerate() {
        match step {
            Step::Allocate { size, align } => {
                let both = (pair.0.allocate(size, align), pair.1.allocate(size, align));
                assert_eq!(both.0.is_some(), both.1.is_some(), "{kind:?} {step:?}");
                if let (Some(one), Some(two)) = both {
                    held.push((one, two, size));
                }
            }
            Step::Free { which } if !held.is_empty() => {
                let (one, two, _) = held.swap_remove(which % held.len());
                assert_eq!(pair.0.release_place(one), Ok(()));
                assert_eq!(pair.1.release_place(two), Ok(()));
                assert!(pair.1.release_place(two).is_err());
            }
            Step::Resize { which, size } if !held.is_empty() => {
                let which = which % held.len();
                let (one, two, _) = held[which];
                // SAFETY: a ledger resolves blocks in use only and touches no memory.
                let both = unsafe { (pair.0.resize(one, size, 1), pair.1.resize(two, size, 1)) };
                let (one, two) = (both.0.unwrap(), both.1.unwrap());
                assert_eq!(one.is_some(), two.is_some(), "{kind:?} {step:?}");
                if let (Some(one), Some(two)) = (one, two) {
                    held[which] = (one, two, size);
                }
            }
            _ => {}
        }
        if number.is_multiple_of(VERIFY_EVERY) {
            pair.0.check().unwrap();
            pair.1.check().unwrap();
            for &(one, two, size) in &held {
                assert_eq!(
                    pair.0.place_offset(one),
                    GRANULE * pair.1.place_offset(two),
                    "{kind:?}"
                );
                // SAFETY: both are in use.
                let requested = unsafe { pair.1.requested(two) };
                assert_eq!(requested, Ok(size));
            }
        }
    }
    let (one, two) = (pair.0.statistics(), pair.1.statistics());
    assert_eq!((one.live, one.blocks), (two.live, two.blocks));
    assert_eq!(one.largest_free, GRANULE * two.largest_free);
    assert_eq!(one.free_bytes, GRANULE * two.free_bytes);
}

fn cases() -> ProptestConfig {
    // Miri is about four hundred times slower than the machine.
    ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 48 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const STEPS: usize = if cfg!(miri) { 25 } else { 400 };
/// Records of a ledger, more than steps can need. Making thousands is most of what Miri did here.
const RECORDS: usize = if cfg!(miri) { 128 } else { 4096 };
/// Verifying is linear, which takes Miri long.
const VERIFY_EVERY: usize = if cfg!(miri) { 5 } else { 1 };

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_index_without_limits(steps in steps(STEPS)) {
        let kinds = kinds();
        for &kind in &kinds {
            run_kind(kind, Limits::NONE, &steps);
            run_units(kind, &steps);
        }
    }

    #[test]
    fn every_index_with_limits(steps in steps(STEPS), limits in limits(), which in any::<prop::sample::Index>()) {
        let kind = *which.get(&kinds());
        run_kind(kind, limits, &steps);
    }

    #[test]
    fn dedicated_pools(
        steps in steps(STEPS),
        which in any::<prop::sample::Index>(),
        order in prop::array::uniform4(prop::sample::select(&ORDERS)),
        links in prop::array::uniform4(prop::sample::select(&LINKS)),
        limit in prop::array::uniform4(prop::sample::select(&[1u32, 2, 5, UNLIMITED])),
    ) {
        let kind = *which.get(&kinds());
        let sizes = [2 * WORD * 2, 2 * WORD * 4, 112, 0];
        let keeping = ChosenKeeping { order, links, limit };
        let index = || Dedicated::with(sizes, keeping, AnyIndex::new(kind, Limits::NONE));
        let other = Dedicated::with(sizes, keeping, AnyIndex::new(kind, Limits::NONE));
        let mut records = vec![Record::SPARE; RECORDS];
        let ledger = Counted::new(Ledger::new(&mut records, ByHandle, Geometry::tagged(WORD)));
        run_pair(
            (Shadow::new(Heap::new(index(), <Tagged>::new())), Shadow::new(Heap::new(other, ledger))),
            &steps,
            false,
        );
    }

    /// Links change what is read and written, never where a block lies.
    #[test]
    fn links_decide_no_placement(
        steps in steps(STEPS),
        limits in limits(),
        fit in prop::sample::select(&[Fit::First, Fit::Next, Fit::Best, Fit::Worst, Fit::Exact]),
        order in prop::sample::select(&ORDERS),
        depth_percent in prop::sample::select(&[100u32, 30]),
        kept in prop::sample::select(&ORDERS),
    ) {
        let sizes = [2 * WORD * 2, 2 * WORD * 4, 112, 0];
        let heap = |links| {
            let kind = IndexKind::List { fit, order, depth_percent, max_fit_percent: 0, links };
            let keeping = ChosenKeeping { order: [kept; 4], links: [links; 4], ..ChosenKeeping::DEFAULT };
            let index = Dedicated::with(sizes, keeping, AnyIndex::new(kind, limits));
            Shadow::new(Heap::new(index, <Tagged>::new()))
        };
        let mut pair = (heap(Links::Single), heap(Links::Double));
        pair.0.heap.add_region(memory(ARENA)).unwrap();
        pair.1.heap.add_region(memory(ARENA)).unwrap();
        for &step in &steps {
            let single = pair.0.step(step);
            prop_assert_eq!(single, pair.1.step(step), "at {:?}", step);
            pair.0.verify();
        }
    }

    /// Blocks much larger than their requests, every usable byte of them written: the
    /// requested sizes stay what they were, wherever the store keeps them.
    #[test]
    fn usable_bytes_hold_no_record(
        steps in steps_with_slack(if cfg!(miri) { 12 } else { 60 }),
        limits in limits(),
        dedicated in prop::array::uniform4(1usize..WIDE / 4 / WORD),
        some in prop::collection::vec(prop::sample::select(kinds()), 8),
    ) {
        let sizes = dedicated.map(|granules| granules * 2 * WORD);
        let own = memory(WIDE);
        // SAFETY: memory of this test alone; a hardened heap wants it initialised.
        unsafe { own.start().write_bytes(0, WIDE) };
        let mut records = vec![Record::SPARE; 1024];
        for kind in some {
            macro_rules! run {
                ($store:expr, $region:expr) => {{
                    let index = Dedicated::new(sizes, AnyIndex::new(kind, limits));
                    let mut shadow = Shadow::new(Heap::new(index, $store));
                    shadow.heap.add_region($region).unwrap();
                    run_filled(shadow, &steps);
                }};
            }
            run!(Ledger::new(&mut records, ByHandle, Geometry::tagged(WORD)), WIDE);
            run!(<Tagged>::new(), own);
            run!(Tagged::<false>::new(), own);
            run!(Counted::new(<Tagged>::new()), own);
            run!(Hardened::new(1), own);
        }
        metes_oracle::give_back(own);
    }

    #[test]
    fn out_of_band(steps in steps(STEPS), granule_log2 in 0u32..9, hashed: bool) {
        let granule = 1usize << granule_log2;
        let length = 32 << 10;
        let mut records = vec![Record::SPARE; RECORDS];
        let mut table = vec![0u32; length / granule];
        let mut hash = vec![(0usize, 0u32); 2 * RECORDS];
        let geometry = Geometry::out_of_band(granule);
        for kind in kinds().into_iter().step_by(if cfg!(miri) { 2 } else { 5 }) {
            let index = || AnyIndex::new(kind, Limits::NONE);
            if hashed {
                let ledger = Ledger::new(&mut records, Hashed::new(&mut hash), geometry);
                run_alone(Heap::new(index(), ledger), length, &steps);
            } else {
                let ledger = Ledger::new(&mut records, Direct::new(&mut table, granule), geometry);
                run_alone(Heap::new(index(), ledger), length, &steps);
            }
        }
    }
}

fn run_filled<I, S>(mut shadow: Shadow<I, S>, steps: &[Step])
where
    S: Store,
    S::Place: metes_oracle::Payload,
    I: metes_heap::index::Index<S>,
{
    for (number, &step) in steps.iter().enumerate() {
        shadow.step(step);
        if number.is_multiple_of(VERIFY_EVERY) {
            shadow.verify();
        }
    }
    shadow.drain();
    shadow.verify();
}

fn run_alone<I, S>(heap: Heap<I, S>, length: usize, steps: &[Step])
where
    S: Store<Region = usize>,
    S::Place: metes_oracle::Payload,
    I: metes_heap::index::Index<S>,
{
    let mut shadow = Shadow::new(heap);
    shadow.heap.add_region(length).unwrap();
    for (number, &step) in steps.iter().enumerate() {
        // Alignments are relative to the beginning of the memory.
        shadow.step(step);
        if number.is_multiple_of(VERIFY_EVERY) {
            shadow.verify();
        }
    }
    shadow.drain();
    shadow.verify();
}

#[test]
fn a_ledger_short_of_records_refuses_and_stays_sound() {
    let (step, rounds) = if cfg!(miri) { (18, 30) } else { (1, 200) };
    for records_left in (4..40).step_by(step) {
        let mut records = vec![Record::SPARE; 160 + records_left];
        let ledger = Ledger::new(&mut records, ByHandle, Geometry::out_of_band(16));
        let mut shadow = Shadow::new(Heap::new(Tlsf::<8>::new(), ledger));
        if shadow.heap.add_region(1 << 16).is_err() {
            continue;
        }
        let mut served = 0;
        for round in 0..rounds {
            served += usize::from(
                shadow
                    .step(Step::Allocate {
                        size: 16 + round % 48,
                        align: 1,
                    })
                    .is_some(),
            );
            if round % 3 == 2 {
                shadow.step(Step::Free { which: round * 7 });
            }
            if round.is_multiple_of(VERIFY_EVERY) {
                shadow.verify();
            }
        }
        shadow.verify();
        assert!(served > 0);
    }
}

#[test]
fn bad_frees_are_detected_by_a_ledger() {
    use metes_heap::BadFree;
    let mut records = vec![Record::SPARE; 512];
    let ledger = Ledger::new(&mut records, ByHandle, Geometry::out_of_band(16));
    let mut heap = Heap::new(Tlsf::<8>::new(), ledger);
    heap.add_region(1 << 12).unwrap();
    let place = heap.allocate(100, 1).unwrap();
    let other = heap.allocate(100, 1).unwrap();
    assert_eq!(heap.release_place(place), Ok(()));
    assert_eq!(
        heap.release_place(place),
        Err(BadFree::NotInUse),
        "double free"
    );
    let again = heap.allocate(100, 1).unwrap();
    assert_ne!(
        again, place,
        "the record is used again under another generation"
    );
    assert_eq!(
        heap.release_place(place),
        Err(BadFree::NotInUse),
        "stale handle"
    );
    assert_eq!(heap.release_place(other), Ok(()));
    assert_eq!(heap.release_place(again), Ok(()));
    heap.check().unwrap();

    let mut records = vec![Record::SPARE; 512];
    let mut table = vec![0u32; 256];
    let ledger = Ledger::new(
        &mut records,
        Direct::new(&mut table, 16),
        Geometry::out_of_band(16),
    );
    let mut heap = Heap::new(Tlsf::<8>::new(), ledger);
    heap.add_region(1 << 12).unwrap();
    let place = heap.allocate(100, 1).unwrap();
    assert_eq!(
        heap.release_place(place + 16),
        Err(BadFree::Foreign),
        "inside a block"
    );
    assert_eq!(
        heap.release_place(1 << 20),
        Err(BadFree::Foreign),
        "outside the memory"
    );
    assert_eq!(heap.release_place(place), Ok(()));
    assert_eq!(
        heap.release_place(place),
        Err(BadFree::NotInUse),
        "double free"
    );
}

#[test]
fn regions_are_added_at_run_time() {
    for kind in kinds() {
        let mut shadow = Shadow::new(Heap::new(
            AnyIndex::new(kind, Limits::NONE),
            <Tagged>::new(),
        ));
        shadow.heap.reserve_span(ARENA);
        shadow.heap.add_region(memory(8 << 10)).unwrap();
        let before = shadow.heap.footprint();
        assert_eq!(
            shadow.heap.allocate(9 << 10, 1),
            None,
            "too large for the first region"
        );
        for bytes in [16 << 10, 4 << 10] {
            let added = shadow.heap.add_region(memory(bytes));
            match kind {
                IndexKind::Buddy { .. } => assert_eq!(added, Err(RegionError::OneRegionOnly)),
                _ => assert_eq!(added, Ok(())),
            }
        }
        if matches!(kind, IndexKind::Buddy { .. }) {
            continue;
        }
        assert!(shadow.heap.footprint() >= before + (20 << 10) - 16);
        assert_eq!(
            shadow.heap.add_region(memory(2 * ARENA)),
            Err(RegionError::SpanExceeded)
        );
        assert!(matches!(
            shadow.heap.add_region(memory(6 * WORD)),
            Err(RegionError::TooSmall(missing)) if missing > 0 && missing < 6 * WORD
        ));
        let mut served = 0;
        // Places of different regions have the same offsets: check them by address.
        let mut held = std::collections::BTreeMap::new();
        while let Some(place) = shadow.heap.allocate(200, 1) {
            let address = place.as_ptr().addr();
            assert!(
                held.range(address.saturating_sub(199)..address + 200)
                    .next()
                    .is_none()
            );
            held.insert(address, place);
            served += 200;
        }
        // Kingsley keeps blocks for their class, and limited searches may refuse.
        let limited = matches!(kind, IndexKind::List { depth_percent, max_fit_percent, .. }
            if depth_percent < 100 || max_fit_percent != 0)
            || matches!(
                kind,
                IndexKind::List {
                    fit: Fit::Exact,
                    ..
                }
            );
        let rounds = matches!(kind, IndexKind::Kingsley | IndexKind::FixedSizes { .. });
        if !rounds && !limited {
            assert!(
                served > 20 << 10,
                "{kind:?} serves from every region: {served}"
            );
        }
        for (_, place) in held {
            // SAFETY: in use, and forgotten.
            unsafe { shadow.heap.free(place) }.unwrap();
        }
        shadow.heap.check().unwrap();
        assert_eq!(shadow.heap.statistics().live, 0);
    }
}

#[test]
fn a_heap_without_memory_refuses() {
    for kind in kinds() {
        let index = Dedicated::new([64, 0], AnyIndex::new(kind, Limits::NONE));
        let mut heap = Heap::new(index, <Tagged>::new());
        for size in [0, 1, 40, 56, 4096, usize::MAX / 2, usize::MAX] {
            for align in [1, 16, 4096, 1 << (usize::BITS - 1)] {
                assert_eq!(heap.allocate(size, align), None);
            }
        }
        heap.check().unwrap();
    }
}

#[test]
fn huge_requests_and_alignments_are_refused() {
    for kind in kinds() {
        let mut heap = Heap::new(AnyIndex::new(kind, Limits::NONE), <Tagged>::new());
        heap.add_region(memory(ARENA)).unwrap();
        for size in [
            ARENA,
            usize::MAX / 4,
            usize::MAX / 2,
            usize::MAX / 2 + 1,
            usize::MAX - 7,
            usize::MAX,
        ] {
            for align in [1, 64, 1 << (usize::BITS - 2), 1 << (usize::BITS - 1)] {
                assert_eq!(
                    heap.allocate(size, align),
                    None,
                    "{size} aligned to {align}"
                );
            }
        }
        assert_eq!(
            heap.allocate(16, 3 << 6),
            None,
            "an alignment is a power of two"
        );
        heap.check().unwrap();
    }
}

/// The emitted constants and the run-time parameters are the same algorithm.
#[test]
fn constant_and_chosen_parameters_decide_the_same() {
    fn offsets<I: metes_heap::index::Index<Tagged>>(index: I) -> Vec<Option<usize>> {
        let mut shadow = Shadow::new(Heap::new(index, <Tagged>::new()));
        shadow.heap.add_region(memory(ARENA)).unwrap();
        let mut state = 9u32;
        (0..if cfg!(miri) { 60 } else { 600 })
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let which = (state >> 8) as usize;
                let step = if state >> 31 == 0 {
                    Step::Allocate {
                        size: which % 700,
                        align: 1,
                    }
                } else {
                    Step::Free { which }
                };
                shadow.step(step)
            })
            .collect()
    }
    let chosen = |kind| offsets(AnyIndex::new(kind, Limits::NONE));
    assert_eq!(offsets(Tlsf::<32>::new()), chosen(IndexKind::tlsf(32)));
    assert_eq!(offsets(HalfFit::new()), chosen(IndexKind::tlsf(1)));
    assert_eq!(
        offsets(<SegregatedFit>::new()),
        chosen(IndexKind::Classes {
            second_level: 1,
            probes: usize::MAX
        })
    );
    assert_eq!(offsets(Kingsley::new()), chosen(IndexKind::Kingsley));
    assert_eq!(
        offsets(<Buddy>::new()),
        chosen(IndexKind::Buddy { lowest: false })
    );
}
