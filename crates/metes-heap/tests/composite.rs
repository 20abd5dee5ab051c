//! Composites: routing, object pools, growth, and agreement of the stores.

mod common;

use std::collections::BTreeMap;

use common::{Step, memory, steps};
use metes_heap::description::{DedicatedPool, General, List, ObjectPoolKind};
use metes_heap::store::Store;
use metes_heap::{
    AnyPool, BadFree, ByHandle, Composite, Counted, Description, Fit, Geometry, IndexKind, Ledger,
    Limits, ObjectPools, Order, Record, Slab, Sources, Spot, Tagged,
};
use proptest::prelude::*;

const WORD: usize = size_of::<usize>();
const SPAN: usize = 1 << 20;
const INCREMENT: usize = 4096;
const SLABS: usize = 64;

/// Grants memory up to fixed limits and keeps account of it.
struct Ends {
    pools: [usize; 4],
    slabs: usize,
}

// SAFETY: `memory(SPAN)` lies behind each pool's first region, and slabs are
// offsets only.
unsafe impl Sources for Ends {
    fn increment(&self) -> usize {
        INCREMENT
    }
    fn grow(&mut self, pool: usize, bytes: usize) -> bool {
        let room = self.pools[pool] + bytes <= SPAN / 4;
        self.pools[pool] += if room { bytes } else { 0 };
        room
    }
    fn grow_slabs(&mut self, bytes: usize) -> bool {
        self.slabs += bytes;
        true
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
        store: impl FnMut(usize) -> S,
        mut add: impl FnMut(&mut metes_heap::Heap<AnyPool<S::Block>, S>, usize),
        slabs: &'a mut [Slab],
        slack: &'a mut [u16],
    ) -> Self {
        let objects = ObjectPools::new(&description.objects, slabs, slack);
        let mut heap = Composite::describe(description, store, objects);
        let mut ends = Ends {
            pools: [0; 4],
            slabs: 0,
        };
        for pool in 0..description.general.len() {
            let heap = heap.general(pool).unwrap();
            heap.reserve_span(SPAN);
            let first = heap.smallest_region().next_multiple_of(INCREMENT);
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

    fn verify(&self) {
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

fn descriptions() -> Vec<Description> {
    let general = |index| General {
        up_to: usize::MAX,
        index,
        limits: Limits::NONE,
        level: 0,
    };
    let object = |size| ObjectPoolKind {
        size,
        slab: 4096,
        level: 0,
    };
    let dedicated = |size| DedicatedPool::new(size, 0);
    let best = IndexKind::list(Fit::Best, Order::Address);
    vec![
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
        },
        Description {
            dedicated: List::from_slice(&[dedicated(24), dedicated(40), dedicated(56)]),
            ..Description::of(IndexKind::Buddy { lowest: false })
        },
        Description::of(IndexKind::list(Fit::First, Order::Lifo)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 1 } else { 64 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn composites_grow_and_agree(steps in steps(if cfg!(miri) { 50 } else { 400 })) {
        for description in descriptions() {
            description.validate(2 * WORD, WORD).unwrap();
            let (mut one, mut two) = (vec![Slab::UNUSED; SLABS], vec![Slab::UNUSED; SLABS]);
            let (mut slack_one, mut slack_two) = (vec![0; SLABS * 256], vec![0; SLABS * 256]);
            let mut records: Vec<Vec<Record>> = vec![vec![Record::SPARE; 4096]; 4];
            let mut records = records.iter_mut();
            let mut tagged = Shadow::<Tagged>::new(
                &description,
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
                |_| {
                    let records = records.next().unwrap();
                    Counted::new(Ledger::new(records, ByHandle, Geometry::tagged(WORD)))
                },
                |heap, first| heap.add_region(first).unwrap(),
                &mut two,
                &mut slack_two,
            );
            for &step in &steps {
                assert_eq!(tagged.step(step), ledger.step(step), "{step:?}");
                tagged.verify();
                ledger.verify();
            }
            assert_eq!(tagged.heap.footprint(), ledger.heap.footprint());
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
    let mut slabs = [Slab::UNUSED; 2];
    let mut pools = ObjectPools::new(&kinds, &mut slabs, &mut []);
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
