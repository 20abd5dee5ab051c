//! Composites: routing, object pools, growth, and agreement of the stores.

use std::collections::BTreeMap;

use metes_heap::compact::Partition;
use metes_heap::description::{DedicatedPool, General, LEVELS, List, ObjectPoolKind};
use metes_heap::store::Store;
use metes_heap::{
    AnyPool, BadFree, ByHandle, Composite, Counted, Description, Fit, Geometry, IndexKind, Ledger,
    Levels, Limits, ObjectPools, Order, Record, Slabs, Sources, Spot, Tagged,
};
use metes_oracle::{Step, memory, steps};
use proptest::prelude::*;

const WORD: usize = size_of::<usize>();
const SPAN: usize = 1 << 20;
const SLABS: usize = 64;
/// Records of a ledger, more than steps can need; making them takes Miri long.
const RECORDS: usize = if cfg!(miri) { 256 } else { 4096 };

/// Grants memory up to fixed limits and keeps account of it.
struct Ends {
    pools: [usize; 4],
    slabs: usize,
    levels: Levels,
    increment: usize,
}

// SAFETY: `memory(SPAN)` lies behind each pool's first region, and slabs are
// offsets only.
unsafe impl Sources for Ends {
    fn increment(&self) -> usize {
        self.increment
    }
    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        let room = self.pools[pool] + bytes <= SPAN / 4 && self.levels.take(pool, bytes);
        self.pools[pool] += if room { bytes } else { 0 };
        room
    }
    fn grow_slabs(&mut self, bytes: usize) -> bool {
        let room = self.levels.take_slab(bytes);
        self.slabs += if room { bytes } else { 0 };
        room
    }
}

/// Pool (9 for slots) and offset.
type Key = (usize, usize);
/// A block the program held: where, how large, what it held.
type Held<S> = (Key, usize, Spot<<S as Store>::Place>);
type Any<'a, S> = Composite<'a, AnyPool<<S as Store>::Block>, S>;

/// A composite and the intervals that it should have given out.
struct Shadow<'a, S: Store> {
    heap: Any<'a, S>,
    ends: Ends,
    held: BTreeMap<Key, (usize, Spot<S::Place>)>,
    order: Vec<Key>,
    live: usize,
}

impl<'a, S: Store> Shadow<'a, S> {
    fn new(
        description: &Description,
        sizes: Sizes,
        store: impl FnMut(usize) -> S,
        mut add: impl FnMut(&mut metes_heap::Heap<AnyPool<S::Block>, S>, usize),
        slabs: &'a mut [usize],
        slack: &'a mut [u16],
    ) -> Self {
        let objects = ObjectPools::new(&description.slabs(), slabs, slack);
        let mut heap = Composite::describe(description, store, objects);
        let mut ends = Ends {
            pools: [0; 4],
            slabs: 0,
            levels: Levels::of(description, sizes),
            increment: if sizes == [None; LEVELS] { 4096 } else { 16 },
        };
        for pool in 0..description.general.len() {
            let heap = heap.general(pool).unwrap();
            heap.reserve_span(ends.levels.span(pool, SPAN));
            let first = heap.smallest_region().next_multiple_of(ends.increment);
            assert!(
                ends.levels.take(pool, first),
                "its level holds its first region"
            );
            ends.pools[pool] = first;
            add(heap, first);
        }
        Shadow {
            heap,
            ends,
            held: BTreeMap::new(),
            order: vec![],
            live: 0,
        }
    }

    fn key(&mut self, spot: Spot<S::Place>) -> Key {
        match spot {
            Spot::Slot(offset) => (9, offset),
            Spot::Block(pool, place) => {
                (pool, self.heap.general(pool).unwrap().place_offset(place))
            }
        }
    }

    fn enter(&mut self, spot: Spot<S::Place>, size: usize) -> Key {
        let key = self.key(spot);
        if let Some((&(pool, before), &(length, _))) = self.held.range(..=key).next_back() {
            assert!(
                pool != key.0 || (before + length <= key.1 && before != key.1),
                "overlap"
            );
        }
        if let Some((&(pool, after), _)) = self.held.range(key..).next() {
            assert!(pool != key.0 || key.1 + size <= after, "overlap");
        }
        self.held.insert(key, (size, spot));
        self.order.push(key);
        self.live += size;
        key
    }

    fn leave(&mut self, which: usize) -> Option<Held<S>> {
        if self.order.is_empty() {
            return None;
        }
        let key = self.order.swap_remove(which % self.order.len());
        let (size, spot) = self.held.remove(&key).unwrap();
        self.live -= size;
        Some((key, size, spot))
    }

    fn step(&mut self, step: Step) -> Option<Key> {
        match step {
            Step::Allocate { size, align } => {
                // SAFETY: `ends` are this heap's.
                let spot = unsafe { self.heap.allocate(size, align, &mut self.ends) }?;
                Some(self.enter(spot, size))
            }
            Step::Free { which } => {
                let (key, size, spot) = self.leave(which)?;
                // SAFETY: in use, and forgotten.
                let freed = unsafe { self.heap.free(spot) };
                assert_eq!(freed, Ok(size), "requested bytes are exact");
                Some(key)
            }
            Step::Resize { which, size } => {
                let (key, old, spot) = self.leave(which)?;
                // SAFETY: in use, and forgotten if it moved.
                let moved = unsafe {
                    self.heap
                        .resize(spot, size, 1, &mut self.ends, |_, _, _| {})
                        .expect("in use")
                };
                Some(self.enter(
                    moved.unwrap_or(spot),
                    if moved.is_some() { size } else { old },
                ))
                .filter(|_| moved.is_some() || key == (0, 0))
            }
        }
    }

    fn verify(&self, description: &Description, sizes: Sizes) {
        let ranges: Vec<General> = description.general.iter().collect();
        for (&(pool, _), (size, _)) in &self.held {
            if pool != 9 {
                let General { from, up_to, .. } = ranges[pool];
                assert!((from..=up_to).contains(size), "a pool holds its range");
            }
        }
        let taken = self.ends.levels.taken();
        for (level, limit) in sizes.into_iter().enumerate() {
            let of = |(number, _): &(usize, &General)| usize::from(ranges[*number].level) == level;
            let pools: usize = (ranges.iter().enumerate().filter(of))
                .map(|(number, _)| self.ends.pools[number])
                .sum();
            assert!(
                pools <= taken[level] && limit.is_none_or(|limit| taken[level] <= limit),
                "the level's size"
            );
        }
        self.heap.check().unwrap_or_else(|fault| panic!("{fault}"));
        let statistics = self.heap.statistics();
        assert_eq!(
            (statistics.live, statistics.blocks),
            (self.live, self.held.len())
        );
        let regions: usize = self.ends.pools.iter().sum();
        assert!(self.heap.footprint() >= self.live);
        assert_eq!(
            self.heap.footprint(),
            regions + self.ends.slabs + self.heap.objects().record_bytes(),
            "the footprint is what was taken"
        );
    }
}

/// The size of each level that has one.
type Sizes = [Option<usize>; LEVELS];

/// Size classes in front of a general pool.
fn partitioned(partition: Partition) -> Description {
    Description {
        partition: Some(partition),
        ..Description::of(IndexKind::tlsf(8))
    }
}

fn descriptions() -> Vec<(Description, Sizes)> {
    let general = General::of;
    let object = |size| ObjectPoolKind {
        size,
        slab: 4096,
        level: 0,
    };
    let dedicated = |size| DedicatedPool::new(size, 0);
    let best = IndexKind::list(Fit::Best, Order::Address);
    let whole = vec![
        Description {
            objects: List::from_slice(&[object(16), object(64), object(512)]),
            ..Description::of(IndexKind::tlsf(16))
        },
        Description {
            general: List::from_slice(&[
                General {
                    up_to: 100,
                    ..general(IndexKind::Kingsley)
                },
                General {
                    up_to: 500,
                    ..general(best)
                },
                general(IndexKind::tlsf(8)),
            ]),
            dedicated: List::from_slice(&[dedicated(24), dedicated(80), dedicated(400)]),
            objects: List::from_slice(&[object(32)]),
            partition: None,
        },
        Description {
            dedicated: List::from_slice(&[dedicated(24), dedicated(40), dedicated(56)]),
            ..Description::of(IndexKind::Buddy { lowest: false })
        },
        Description::of(IndexKind::list(Fit::First, Order::Lifo)),
        partitioned(Partition {
            page: 8192,
            smallest: 16,
            largest: 1000,
            ..Partition::DEFAULT
        }),
        partitioned(Partition {
            page: 1024,
            smallest: 48,
            largest: 1024,
            factor: 1500,
            ..Partition::DEFAULT
        }),
    ];
    // A scratchpad of a few KiB for three block sizes and small requests,
    // then another, then main memory; what finds no room spills.
    let levels = Description {
        general: List::from_slice(&[
            General {
                from: if WORD == 8 { 25 } else { 21 },
                up_to: if WORD == 8 { 40 } else { 28 },
                limits: Limits {
                    coalesce_up_to: 0,
                    split_down_to: 0,
                },
                ..general(IndexKind::list(Fit::Exact, Order::Lifo))
            },
            General {
                up_to: 300,
                ..general(IndexKind::tlsf(4))
            },
            General {
                from: 100,
                level: 1,
                ..general(best)
            },
            General {
                level: 2,
                ..general(IndexKind::tlsf(8))
            },
        ]),
        dedicated: List::from_slice(&[dedicated(72)]),
        objects: List::EMPTY,
        partition: None,
    };
    let sizes = [Some(8 << 10), Some(16 << 10), None, None];
    let whole = whole.into_iter().map(|heap| (heap, [None; LEVELS]));
    whole.chain([(levels, sizes)]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn composites_grow_and_agree(steps in steps(if cfg!(miri) { 30 } else { 400 })) {
        for (description, sizes) in descriptions() {
            description.validate(2 * WORD, WORD).unwrap();
            let slabs = description.slabs();
            let words = slabs.memory_words(SLABS);
            let (mut one, mut two) = (vec![0; words], vec![0; words]);
            let slots = SLABS * slabs.slots();
            let (mut slack_one, mut slack_two) = (vec![0; slots], vec![0; slots]);
            let mut records: Vec<Vec<Record>> = vec![vec![Record::SPARE; RECORDS]; 4];
            let mut records = records.iter_mut();
            let mut tagged = Shadow::<Tagged>::new(
                &description,
                sizes,
                |_| Tagged::new(),
                |heap, first| {
                    let whole = memory(SPAN);
                    heap.add_region(whole.shortened(first)).unwrap();
                },
                &mut one,
                &mut slack_one,
            );
            let mut ledger = Shadow::new(
                &description,
                sizes,
                |_| {
                    let records = records.next().unwrap();
                    Counted::new(Ledger::new(records, ByHandle, Geometry::tagged(WORD)))
                },
                |heap, first| heap.add_region(first).unwrap(),
                &mut two,
                &mut slack_two,
            );
            for (number, &step) in steps.iter().enumerate() {
                assert_eq!(tagged.step(step), ledger.step(step), "{step:?}");
                // Linear each time, which Miri takes long for.
                if !cfg!(miri) || number % 10 == 9 {
                    tagged.verify(&description, sizes);
                    ledger.verify(&description, sizes);
                }
            }
            tagged.verify(&description, sizes);
            assert_eq!(tagged.heap.footprint(), ledger.heap.footprint());
            assert_eq!(tagged.heap.spilled(), ledger.heap.spilled());
        }
    }
}

#[test]
fn object_pools_detect_every_bad_free() {
    let kinds = List::from_slice(&[ObjectPoolKind {
        size: 48,
        slab: 4096,
        level: 0,
    }]);
    let slabs = Slabs::Pools(kinds);
    let mut memory = vec![0; slabs.memory_words(2)];
    let mut pools = ObjectPools::new(&slabs, &mut memory, &mut []);
    let places: Vec<usize> = (0..170)
        .map_while(|_| pools.allocate(48, 16, |_| true))
        .collect();
    assert_eq!(
        places.len(),
        2 * (4096 / 48),
        "two slabs, full to the last slot"
    );
    pools.check().unwrap();
    assert_eq!(pools.free(4096 * 2), Err(BadFree::Foreign));
    assert_eq!(pools.free(8), Err(BadFree::Foreign));
    assert_eq!(
        pools.free(85 * 48),
        Err(BadFree::Foreign),
        "behind the last slot"
    );
    assert!(pools.free(48).is_ok());
    assert_eq!(pools.free(48), Err(BadFree::NotInUse));
    for &place in places.iter().filter(|&&place| place != 48) {
        pools.free(place).unwrap();
        pools.check().unwrap();
    }
    assert_eq!(pools.free(0), Err(BadFree::NotInUse), "its slab is empty");
    assert_eq!(pools.extent(), 8192, "empty slabs are kept for reuse");
    assert!(pools.allocate(1, 1, |_| false).is_some());
}

/// Two levels: a scratchpad that holds three blocks of 48 bytes, and the rest.
fn scratchpad() -> (Description, Sizes) {
    let near = General {
        from: 20,
        up_to: 40,
        ..General::of(IndexKind::list(Fit::First, Order::Lifo))
    };
    let far = General {
        level: 1,
        ..General::of(IndexKind::tlsf(4))
    };
    // Control structure of one list: see `Geometry::first_block`.
    let geometry = Geometry::tagged(WORD);
    let control = geometry.first_block(1, geometry.granule) + geometry.sentinel;
    let block = geometry.block_for(40).unwrap();
    // What grows behind the smallest first block is no smaller than that.
    let size = (control + 3 * block + 16).next_multiple_of(16);
    let description = Description {
        general: List::from_slice(&[near, far]),
        ..Description::of(IndexKind::tlsf(4))
    };
    (description, [Some(size), None, None, None])
}

#[test]
fn refused_requests_spill_and_come_back() {
    let (description, sizes) = scratchpad();
    description.validate(2 * WORD, WORD).unwrap();
    let mut heap = Shadow::<Tagged>::new(
        &description,
        sizes,
        |_| Tagged::new(),
        |heap, first| heap.add_region(memory(SPAN).shortened(first)).unwrap(),
        &mut [],
        &mut [],
    );
    let allocate = |heap: &mut Shadow<'_, Tagged>, size| {
        let key = heap.step(Step::Allocate { size, align: 1 });
        heap.verify(&description, sizes);
        key.unwrap().0
    };
    let last = |heap: &Shadow<'_, Tagged>| heap.order.len() - 1;
    assert_eq!(
        [30, 40, 40].map(|size| allocate(&mut heap, size)),
        [0, 0, 0]
    );
    assert_eq!(heap.heap.spilled(), 0);
    // The scratchpad is full; other sizes never ask it.
    assert_eq!(
        [40, 19, 41].map(|size| allocate(&mut heap, size)),
        [1, 1, 1]
    );
    assert_eq!(
        heap.heap.spilled(),
        1,
        "41 and 19 are no business of the scratchpad"
    );
    // A spilled block that grows within the range stays while there is no room.
    let (which, size) = (last(&heap), 39);
    assert_eq!(heap.step(Step::Resize { which, size }).unwrap().0, 1);
    assert_eq!(heap.heap.spilled(), 2);
    heap.step(Step::Free { which: 1 }).unwrap();
    assert_eq!(heap.order.len(), 5);
    let which = heap.order.iter().position(|key| key.0 == 1).unwrap();
    assert_eq!(heap.step(Step::Resize { which, size: 38 }).unwrap().0, 0);
    heap.verify(&description, sizes);
    // Out of the range it leaves, although it lies in the scratchpad.
    let which = heap.order.iter().position(|key| key.0 == 0).unwrap();
    assert_eq!(heap.step(Step::Resize { which, size: 8 }).unwrap().0, 1);
    heap.verify(&description, sizes);
    assert_eq!(allocate(&mut heap, 20), 0);
    // What no pool can serve fails once, and leaves everything as it was.
    let (live, blocks) = (heap.live, heap.held.len());
    assert_eq!(
        heap.step(Step::Allocate {
            size: SPAN,
            align: 1
        }),
        None
    );
    heap.verify(&description, sizes);
    let statistics = heap.heap.statistics();
    assert_eq!((statistics.live, statistics.blocks), (live, blocks));
    assert_eq!(statistics.failures, 1);
}

#[test]
fn contradictory_pools_are_refused() {
    use metes_heap::description::Invalid;
    let of = |pools: &[General]| Description {
        general: List::from_slice(pools),
        ..Description::of(IndexKind::tlsf(8))
    };
    let any = General::of(IndexKind::tlsf(8));
    let near = |from, up_to, level| General {
        from,
        up_to,
        level,
        ..any
    };
    let far = General { level: 1, ..any };
    let cases = [
        (of(&[]), Err(Invalid::NoGeneralPool)),
        (of(&[any, far]), Ok(())),
        (of(&[any, any]), Err(Invalid::GeneralBounds)),
        (
            of(&[near(0, 100, 0), near(0, 90, 1), any]),
            Err(Invalid::GeneralBounds),
        ),
        (of(&[near(50, 100, 0), near(0, 100, 0), any]), Ok(())),
        (
            of(&[near(0, 100, 0), near(50, 100, 0), any]),
            Err(Invalid::GeneralBounds),
        ),
        (of(&[near(9, 8, 0), any]), Err(Invalid::GeneralRange)),
        (of(&[near(1, usize::MAX, 0)]), Err(Invalid::LastPool)),
        (of(&[near(0, 100, 0)]), Err(Invalid::LastPool)),
        (of(&[near(0, 100, 4), any]), Err(Invalid::Level)),
        (
            Description {
                dedicated: List::from_slice(&[DedicatedPool::new(24, 1)]),
                ..of(&[any, far])
            },
            Err(Invalid::DedicatedLevel),
        ),
    ];
    for (description, expected) in cases {
        assert_eq!(description.validate(16, 8), expected, "{description:?}");
    }
    assert!(of(&[near(0, 100, 0), far]).partitions());
    assert!(of(&[near(0, 100, 0), near(101, 200, 1), any]).partitions());
    assert!(!of(&[near(50, 100, 0), any]).partitions());
    assert!(!of(&[any, far]).partitions());
    assert!(!scratchpad().0.partitions());
}
