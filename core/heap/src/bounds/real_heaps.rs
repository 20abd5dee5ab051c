//! Real heaps in exactly the bytes that their bound names: no request within the demand may be
//! refused, with tags and without, aligned, resized in place, in phases and at random.

extern crate std;

use std::vec::Vec;

use super::{Demand, Geometry, HeapKind, bound};
use crate::index::Index;
use crate::index::any::AnyIndex;
use crate::index::fixed::SizeTable;
use crate::store::ledger::{ByHandle, Handle, Ledger, Record};
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
    heap: Heap<AnyIndex<store::ledger::LedgerBlock>, Ledger<'a, ByHandle>>,
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

/// Attacks `kind` in a heap of its bound; `false` where there is no finite bound.
fn attack(
    kind: IndexKind,
    limits: Limits,
    shape: store::Geometry,
    demand: Demand,
    seed: u64,
) -> bool {
    let mut index = AnyIndex::new(kind, limits);
    let heads = Index::<Ledger<'_, ByHandle>>::heads(&mut index, 1 << 20, shape).unwrap();
    let geometry = Geometry::of(&shape, heads);
    let promised = bound(&HeapKind::of(kind, limits), &geometry, &demand).unwrap();
    let Some(bytes) = promised.heap_bytes else {
        return false;
    };
    let mut records = std::vec![Record::SPARE; 4096];
    let ledger = Ledger::new(&mut records, ByHandle, shape);
    let mut heap = Heap::new(AnyIndex::new(kind, limits), ledger);
    heap.add_region(bytes as usize).unwrap();
    let mut attack = Attack {
        heap,
        demand,
        held: Vec::new(),
        live: 0,
        numbers: Numbers(seed),
        what: std::format!("{kind:?} {limits:?} {shape:?} {demand:?} in {bytes}"),
    };
    attack.run(600);
    true
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
                    attacked += usize::from(attack(kind, limits, shape, demand, seed));
                }
            }
        }
    }
    // Heaps that never merge promise nothing when blocks are cut in place; buddies serve
    // alignments only up to that of their first block.
    assert_eq!(attacked, (21 * 7 - 4 * 3 - 2) * 4 * 3);
}
