//! What attacks the model: the zones, and chance; and the tests.

use std::collections::BTreeMap;
use std::vec::Vec;

use super::super::any_fit::Ceiling;
use super::super::first_fit::request_of;
use super::super::{Demand, Geometry, bound, tests};
use super::Model;
use crate::index::any::AnyIndex;
use crate::store::ledger::{ByHandle, Ledger, Record};
use crate::{Fit, Heap, IndexKind, Limits, Order, store};

/// The zones of `docs/guarantees.md#first-fit`: block sizes grow by `permille`, each fills what the
/// fewest bytes of the smaller ones leave; of a zone of blocks of j stays every ceil(s/j)th. How high
/// it comes.
fn zones(model: &mut Model<'_>, demand: &Demand, permille: u64) -> u64 {
    let granule = model.load.granule as u64;
    let (mut block, last) = (model.block(demand.smallest), model.block(demand.largest));
    let mut held: Vec<(u32, u64, u64)> = Vec::new();
    loop {
        let request = request_of(&model.load, block.into()) as u64;
        let mut end = 0;
        let mut at = 0;
        held.sort_unstable_by_key(|block| block.1);
        while at < held.len() {
            // Frees from `at` on while the hole stays too small.
            while let Some(&(_, next, _)) = held.get(at + 1)
                && next - end < block
            {
                model.free(held.remove(at).0);
            }
            end = held[at].2;
            at += 1;
        }
        while model.live() + request <= demand.live {
            let name = model.allocate(request);
            let piece = model.pieces[model.position(name)];
            held.push((name, piece.begin, piece.end));
        }
        if block == last {
            return model.high();
        }
        block = (block * permille / 1000)
            .next_multiple_of(granule)
            .max(block + granule)
            .min(last);
    }
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Requests by chance, in phases; `resized` also resizes in place, M counted at the largest.
fn chance(model: &mut Model<'_>, demand: &Demand, rounds: usize, numbers: &mut Numbers) {
    let mut names = Vec::new();
    for _ in 0..rounds {
        let spread = demand.largest - demand.smallest + 1;
        let wide = numbers.below(2) == 0;
        let size = demand.smallest + numbers.below(if wide { spread } else { spread.isqrt() });
        match numbers.below(10) {
            0 => {
                for _ in 0..names.len() / 2 {
                    let which = numbers.below(names.len() as u64) as usize;
                    model.free(names.swap_remove(which));
                }
            }
            1 | 2 if !names.is_empty() => {
                let which = numbers.below(names.len() as u64) as usize;
                if model.resized && model.live() + size <= demand.live {
                    model.resize(names[which], size);
                } else {
                    model.free(names.swap_remove(which));
                }
            }
            _ => {
                while model.live() + size > demand.live {
                    let which = numbers.below(names.len() as u64) as usize;
                    model.free(names.swap_remove(which));
                }
                names.push(model.allocate(size));
            }
        }
    }
}

const SHAPES: [Geometry; 4] = [
    Geometry::UNIT,
    Geometry::TAGGED_64,
    Geometry::TAGGED_32,
    Geometry::outside(16),
];

#[test]
fn every_lemma_holds_at_every_request() {
    let demands = [
        Demand::new(1000, 100, 1),
        Demand::new(4000, 257, 60),
        Demand::new(3000, 512, 64),
        Demand::new(2000, 1000, 24),
    ];
    let rounded = |per_doubling| Ceiling::Rounded { per_doubling };
    let mut numbers = Numbers(7);
    for geometry in SHAPES {
        for demand in demands {
            for ceiling in [Ceiling::Exact, rounded(4), rounded(16)] {
                for resized in [false, true] {
                    let mut model = Model::new(&geometry, &demand, ceiling, resized);
                    chance(&mut model, &demand, 300, &mut numbers);
                }
                for permille in [1030, 1200, 2000] {
                    let mut model = Model::new(&geometry, &demand, ceiling, false);
                    zones(&mut model, &demand, permille);
                }
            }
        }
    }
}

/// What the zones come to on the list of this crate, in hundredths of M, and the bound.
fn attacked(shape: store::Geometry, demand: &Demand, permille: u64) -> (u64, u64) {
    let geometry = Geometry::of(&shape, 1);
    let first_fit = tests::FIRST;
    let promised = bound(&first_fit, &geometry, demand)
        .unwrap()
        .heap_bytes
        .unwrap() as u64;
    let mut records = std::vec![Record::SPARE; 1 << 14];
    let ledger = Ledger::new(&mut records, ByHandle, shape);
    let kind = IndexKind::list(Fit::First, Order::Address);
    let mut heap = Heap::new(AnyIndex::new(kind, Limits::NONE), ledger);
    heap.add_region(promised as usize).unwrap();
    let mut model = Model::new(&geometry, demand, Ceiling::Exact, false);
    model.list = Some((heap, BTreeMap::new(), None));
    let high = zones(&mut model, demand, permille);
    (high * 100 / demand.live, promised * 100 / demand.live)
}

#[test]
fn the_zones_bring_the_list_far() {
    // Boundary tags: 64 to 1024 bytes; records and rounding count in both numbers.
    let (found, promised) = attacked(
        store::Geometry::tagged(8),
        &Demand::new(64 << 10, 1024, 64),
        1000,
    );
    assert!(
        found >= 430 && promised <= 640 && found <= promised,
        "{found} {promised}"
    );
    // Blocks of whole granules, records outside.
    let (found, promised) = attacked(
        store::Geometry::out_of_band(16),
        &Demand::new(64 << 10, 1024, 64),
        1000,
    );
    assert!(
        found >= 400 && promised <= 600 && found <= promised,
        "{found} {promised}"
    );
}
