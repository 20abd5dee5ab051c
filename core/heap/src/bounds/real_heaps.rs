//! Real heaps in exactly the bytes that their bound names: no request within the demand may be
//! refused, with tags and without, aligned, resized in place, behind lists that keep some blocks, in phases and at
//! random.

extern crate std;

use std::vec::Vec;

use super::{Demand, Geometry, described};
use crate::composite::AnyPool;
use crate::description::{DedicatedPool, Description, General, List};
use crate::index::Index;
use crate::index::any::AnyIndex;
use crate::index::fixed::SizeTable;
use crate::store::ledger::{ByHandle, Handle, Ledger, LedgerBlock, Record};
use crate::{Fit, Heap, IndexKind, Limits, Order, store};

/// A small generator of numbers (Lehmer, full period): the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

struct Attack<'a> {
    heap: Heap<AnyPool<LedgerBlock>, Ledger<'a, ByHandle>>,
    demand: Demand,
    held: Vec<(Handle, u64)>,
    live: u64,
    numbers: Numbers,
    what: std::string::String,
}

impl Attack<'_> {
    fn request(&mut self) -> u64 {
        let Demand {
            smallest, largest, ..
        } = self.demand;
        let spread = largest - smallest + 1;
        match self.numbers.below(4) {
            0 => smallest,
            1 => largest,
            2 => smallest + self.numbers.below(spread),
            _ => smallest + self.numbers.below(spread.isqrt() + 1).min(spread - 1),
        }
    }

    fn allocate(&mut self) {
        let size = self.request();
        while self.live + size > self.demand.live {
            self.free();
        }
        let align = match self.numbers.below(3) {
            0 => self.demand.alignment,
            _ => 1,
        };
        let place = self.heap.allocate(size as usize, align as usize);
        let place = place.unwrap_or_else(|| {
            panic!(
                "{size} aligned to {align} refused at {} live: {}",
                self.live, self.what
            )
        });
        self.held.push((place, size));
        self.live += size;
    }

    fn free(&mut self) {
        let which = self.numbers.below(self.held.len() as u64) as usize;
        let (place, size) = self.held.swap_remove(which);
        self.heap.release_place(place).unwrap();
        self.live -= size;
    }

    /// Shrinks a block where it lies.
    fn shrink(&mut self) {
        if let Some((place, size)) = self.held.pop() {
            let less = self.demand.smallest + self.numbers.below(size - self.demand.smallest + 1);
            if self.demand.live_at_largest {
                // Grown again, perhaps; never moved, and counted at the largest it was.
                // SAFETY: a ledger checks the place and touches no memory.
                let resized = unsafe { self.heap.resize_where_it_is(place, less as usize, 1) };
                resized.unwrap();
                self.held.push((place, size));
                return;
            }
            // SAFETY: a ledger checks the place and touches no memory.
            let moved = unsafe { self.heap.resize(place, less as usize, 1) };
            self.live -= size - less;
            self.held
                .push((moved.unwrap().expect("shrinking succeeds"), less));
        }
    }

    fn run(&mut self, rounds: usize) {
        for round in 0..rounds {
            match self.numbers.below(12) {
                0 => {
                    // Free about half: holes between what stays.
                    for _ in 0..self.held.len() / 2 {
                        self.free();
                    }
                }
                1 | 2 if !self.held.is_empty() => self.free(),
                3 if self.demand.resized_in_place => self.shrink(),
                _ => self.allocate(),
            }
            if round % 64 == 0 {
                assert_eq!(self.heap.check(), Ok(()));
            }
        }
    }
}

/// Attacks a heap of one general pool in the bytes of its bound; `false` where there is no finite bound.
fn attack(heap: &Description, shape: store::Geometry, demand: Demand, seed: u64) -> bool {
    let pool = heap.general.iter().next().unwrap();
    let index = || {
        let inner = AnyIndex::new(pool.index, pool.limits);
        AnyPool::describe::<Ledger<'_, ByHandle>>(heap.dedicated.iter(), shape, inner)
    };
    let heads = Index::<Ledger<'_, ByHandle>>::heads(&mut index(), 1 << 20, shape).unwrap();
    let geometry = Geometry::of(&shape, heads);
    let promised = described(heap, &geometry, &demand).unwrap();
    let Some(bytes) = promised.heap_bytes else {
        return false;
    };
    let mut records = std::vec![Record::SPARE; 4096];
    let ledger = Ledger::new(&mut records, ByHandle, shape);
    let what = std::format!("{heap:?} {shape:?} {demand:?} in {bytes}");
    let mut heap = Heap::new(index(), ledger);
    heap.add_region(bytes as usize).unwrap();
    let mut attack = Attack {
        heap,
        demand,
        held: Vec::new(),
        live: 0,
        numbers: Numbers(seed),
        what,
    };
    attack.run(600);
    true
}

/// A heap of one pool.
fn alone(index: IndexKind, limits: Limits) -> Description {
    let mut heap = Description::of(index);
    heap.general = List::from_slice(&[General {
        limits,
        ..General::of(index)
    }]);
    heap
}

#[test]
fn no_request_within_the_demand_is_refused() {
    let uncut = Limits {
        coalesce_up_to: 0,
        split_down_to: 0,
    };
    let coarse = Limits {
        split_down_to: 96,
        ..Limits::NONE
    };
    let list = IndexKind::list;
    let classes = |second_level, probes| IndexKind::Classes {
        second_level,
        probes,
    };
    let fixed = |sizes| IndexKind::FixedSizes {
        sizes: SizeTable::new(sizes).unwrap(),
    };
    let kinds = [
        (list(Fit::First, Order::Address), Limits::NONE),
        (list(Fit::First, Order::Lifo), Limits::NONE),
        (list(Fit::First, Order::Fifo), coarse),
        (list(Fit::Next, Order::Address), Limits::NONE),
        (list(Fit::Best, Order::Lifo), Limits::NONE),
        (list(Fit::Best, Order::Address), coarse),
        (list(Fit::Worst, Order::Lifo), Limits::NONE),
        (list(Fit::Exact, Order::Lifo), uncut),
        (classes(32, 0), Limits::NONE),
        (classes(4, 0), coarse),
        (classes(4, 3), Limits::NONE),
        (classes(1, 0), Limits::NONE),
        (classes(1, usize::MAX), Limits::NONE),
        (IndexKind::Kingsley, Limits::NONE),
        (IndexKind::Lea { keep_up_to: 128 }, Limits::NONE),
        (fixed(&[64, 128, 512]), Limits::NONE),
        (fixed(&[96, 192, 288]), Limits::NONE),
        (
            IndexKind::FirstFit {
                by_class: false,
                span: None,
            },
            Limits::NONE,
        ),
        (
            IndexKind::FirstFit {
                by_class: true,
                span: None,
            },
            Limits::NONE,
        ),
        (IndexKind::Buddy { lowest: false }, Limits::NONE),
        (IndexKind::Buddy { lowest: true }, Limits::NONE),
    ];
    let shapes = [
        store::Geometry::tagged(8),
        store::Geometry::tagged(4),
        store::Geometry::out_of_band(1),
        store::Geometry::out_of_band(16),
    ];
    let plain = [
        Demand::new(2000, 300, 1),
        Demand::new(3000, 257, 60),
        Demand::new(1024, 64, 64),
        Demand::new(700, 700, 40),
    ];
    let aligned = Demand {
        alignment: 64,
        ..plain[1]
    };
    let mut attacked = 0;
    for (kind, limits) in kinds {
        for shape in shapes {
            for demand in plain.into_iter().chain([
                plain[1].resizing(),
                plain[1].resizing_at_largest(),
                aligned,
            ]) {
                let buddy = matches!(kind, IndexKind::Buddy { .. });
                if buddy && demand.alignment > 1 {
                    continue;
                }
                for seed in 1..4 {
                    attacked += usize::from(attack(&alone(kind, limits), shape, demand, seed));
                }
            }
        }
    }
    // Heaps that never merge promise nothing when blocks are cut in place; buddies serve
    // alignments only up to that of their first block.
    assert_eq!(attacked, (21 * 7 - 4 * 3 - 2) * 4 * 3);
}

/// Lists keep what they may, whatever brought it about: their limits are all that is proved of them.
#[test]
fn lists_with_limits_keep_no_more_than_their_bound_counts() {
    let list = IndexKind::list;
    let fixed = IndexKind::FixedSizes {
        sizes: SizeTable::new(&[64, 128, 512]).unwrap(),
    };
    let tree = IndexKind::FirstFit {
        by_class: true,
        span: None,
    };
    let kinds = [
        list(Fit::First, Order::Address),
        list(Fit::Best, Order::Lifo),
        list(Fit::Next, Order::Address),
        IndexKind::tlsf(32),
        IndexKind::tlsf(1),
        IndexKind::Lea { keep_up_to: 64 },
        IndexKind::Kingsley,
        fixed,
        tree,
        IndexKind::Buddy { lowest: true },
        IndexKind::Buddy { lowest: false },
    ];
    let shapes = [
        store::Geometry::tagged(8),
        store::Geometry::tagged(4),
        store::Geometry::out_of_band(1),
        store::Geometry::out_of_band(16),
    ];
    let plain = [Demand::new(2000, 300, 1), Demand::new(3000, 257, 60)];
    let aligned = Demand {
        alignment: 64,
        ..plain[1]
    };
    let lists = |pools: &[(usize, u32)]| {
        let pools: Vec<DedicatedPool> = { pools.iter() }
            .map(|&(size, most)| DedicatedPool {
                limit: Some(most),
                ..DedicatedPool::new(size, 0)
            })
            .collect();
        List::from_slice(&pools)
    };
    let kept = [
        lists(&[(64, 1)]),
        lists(&[(24, 3), (40, 3), (60, 5), (240, 2)]),
        lists(&[(1, 1000)]),
    ];
    let mut attacked = 0;
    for kind in kinds {
        for dedicated in kept {
            let heap = Description {
                dedicated,
                ..alone(kind, Limits::NONE)
            };
            for shape in shapes {
                for demand in plain.into_iter().chain([
                    plain[1].resizing(),
                    plain[1].resizing_at_largest(),
                    aligned,
                ]) {
                    let buddy = matches!(kind, IndexKind::Buddy { .. });
                    if buddy && demand.alignment > 1 {
                        continue;
                    }
                    for seed in 1..4 {
                        attacked += usize::from(attack(&heap, shape, demand, seed));
                    }
                }
            }
        }
    }
    // As without lists: those that never merge promise nothing where blocks are cut, buddies serve few alignments.
    assert_eq!(attacked, (11 * 5 - 2 * 3 - 2) * 3 * 4 * 3);
}
