//! Every formula against numbers worked out by hand.

extern crate std;

use std::format;
use std::string::ToString;

use super::any_fit::Ceiling;
use super::*;

pub(super) const UNIT: Geometry = Geometry::UNIT;

pub(super) const BEST: HeapKind<'static> = HeapKind::BestFit {
    order: Order::Lifo,
    limits: Limits::NONE,
};
pub(super) const FIRST: HeapKind<'static> = HeapKind::FirstFit {
    order: Order::Address,
    limits: Limits::NONE,
};
pub(super) const LIFO: HeapKind<'static> = HeapKind::FirstFit {
    order: Order::Lifo,
    limits: Limits::NONE,
};
pub(super) const LOWEST_BUDDY: HeapKind<'static> = HeapKind::Buddy {
    choice: BuddyChoice::LowestAddress,
    outside: None,
};

pub(super) fn heap_bytes(heap: HeapKind<'_>, geometry: Geometry, demand: Demand) -> Option<u128> {
    bound(&heap, &geometry, &demand).unwrap().heap_bytes
}

fn load(geometry: &Geometry) -> super::demand::Load {
    super::demand::Load::new(geometry, &Demand::new(1 << 20, 1 << 10, 1)).unwrap()
}

fn unit(heap: HeapKind<'_>, live: u64, largest: u64) -> u128 {
    heap_bytes(heap, UNIT, Demand::new(live, largest, 1)).unwrap()
}

#[test]
fn any_fit_in_units() {
    // l = g = 1, w = 0: H = max over s <= n of (M-s) s + s = s (M+1-s).
    assert_eq!(unit(BEST, 6, 3), 12); // 3 * 4
    assert_eq!(unit(LIFO, 6, 2), 10); // 2 * 5
    assert_eq!(unit(BEST, 8, 8), 20); // s = 4 or 5: 4 * 5; not s = n
    assert_eq!(unit(BEST, 8, 1), 8); // one size never fragments
}

#[test]
fn any_fit_with_tags() {
    // Tagged 64-bit, M = 4096, n = 256, l = 64: g = 16, record 8, smallest block 32.
    // Block of 64: 80; waste 16 there, record + g - 1 = 23 above; slack 32 - 16 = 16; w = 39.
    // Last block: 256 + 8 -> 272, smallest request with it 249. R = 4096 - 249 = 3847.
    // 3847 + floor(3847 * (39 + 272 - 16) / 64) + 272 = 3847 + floor(1134865 / 64) + 272
    //   = 3847 + 17732 + 272 = 21851 -> multiple of 16: 21840; + 8 control = 21848.
    // The vertex (A + g - w) / 2 with A = 4096 + 23 lies at 2048, above n, so n decides.
    let bytes = heap_bytes(BEST, Geometry::TAGGED_64, Demand::new(4096, 256, 64));
    assert_eq!(bytes, Some(21848));
}

#[test]
fn any_fit_with_alignment() {
    // Unit geometry, M = 10, n = 2, l = 1, alignment 4: holes of s + 4 + 1 are asked for.
    // s = 2: s' = 7, (10-2)(1 + 6) + 7 = 63; s = 1: s' = 6, 9 * 6 + 6 = 60.
    let mut demand = Demand::new(10, 2, 1);
    demand.alignment = 4;
    assert_eq!(heap_bytes(BEST, UNIT, demand), Some(63));
    // Kingsley would cut a piece off in front, and never merge it.
    let kingsley = HeapKind::Kingsley { page: 0 };
    assert_eq!(heap_bytes(kingsley, UNIT, demand), None);
}

#[test]
fn tlsf_searches_from_the_class_ceiling() {
    // Two classes to a doubling: boundaries 1, 2, 3, 4, 6, 8; s = 5 is searched from 6.
    let tlsf = HeapKind::Tlsf { second_level: 2 };
    // M = 8, n = 5, l = 1: s = 5: 3 + 3 * 5 + 6 = 24; s = 4: 4 + 4 * 3 + 4 = 20.
    assert_eq!(unit(tlsf, 8, 5), 24);
    // Best fit finds 5 itself: 3 + 3 * 4 + 5 = 20.
    assert_eq!(unit(BEST, 8, 5), 20);
    let classes = Ceiling::Classes { per_doubling: 32 };
    for needed in 1..5000u128 {
        let ceiling = classes.of(needed, &load(&UNIT));
        assert!(ceiling >= needed && ceiling - needed <= needed / 32);
    }
    // 16-byte granule, 8-byte records: below 32 * 16 bytes of payload classes are exact.
    let tagged = load(&Geometry::TAGGED_64);
    assert_eq!(classes.of(512, &tagged), 512);
    // Payloads of 512 + 31 * 16 and of 1024 are exact; 1040 lies between 1024 and 1056.
    assert_eq!(classes.of(16 + 1008, &tagged), 16 + 1008);
    assert_eq!(classes.of(16 + 1024, &tagged), 16 + 1024);
    assert_eq!(classes.of(16 + 1040, &tagged), 16 + 1056);
    // A power of two and its record is found again, whatever it is.
    for log2 in 5..20 {
        assert_eq!(classes.of(16 + (1 << log2), &tagged), 16 + (1 << log2));
    }
}

#[test]
fn the_ceiling_is_that_of_the_index() {
    use crate::index::classes::{class_base, class_ceiling};
    let tagged = load(&Geometry::TAGGED_64);
    for log2 in 0..7 {
        let classes = Ceiling::Classes {
            per_doubling: 1 << log2,
        };
        for granules in 1..3000 {
            // A block is a granule, for its record, larger than what it is filed by.
            let index = (1 + class_base(class_ceiling(granules, log2), log2)) * 16;
            assert_eq!(
                classes.of((1 + granules as u128) * 16, &tagged),
                index as u128
            );
        }
    }
}

#[test]
fn indexes_have_bounds() {
    use crate::IndexKind;
    let limits = crate::Limits::NONE;
    let tlsf = HeapKind::of(IndexKind::tlsf(32), limits);
    assert_eq!(tlsf, HeapKind::Tlsf { second_level: 32 });
    let half = HeapKind::of(IndexKind::tlsf(1), limits);
    assert_eq!(half.name(), "half-fit");
    let list = IndexKind::list(crate::Fit::First, crate::Order::Address);
    assert_eq!(HeapKind::of(list, limits), FIRST);
    let off = crate::Limits {
        coalesce_up_to: 0,
        split_down_to: 0,
    };
    let exact = IndexKind::list(crate::Fit::Exact, crate::Order::Lifo);
    assert_eq!(unit(HeapKind::of(exact, off), 8, 3), 22);
    // TLSF with blocks merged up to 64 bytes only: nothing is proved.
    let capped = crate::Limits {
        coalesce_up_to: 64,
        split_down_to: 0,
    };
    let heap = HeapKind::of(IndexKind::tlsf(32), capped);
    assert_eq!(heap_bytes(heap, UNIT, Demand::new(100, 10, 1)), None);
    let tagged = crate::store::Geometry::tagged(8);
    // Control: prologue 16, two heads of 16, sentinel 8, and up to 15 to align the first payload.
    let geometry = Geometry::of(&tagged, 2);
    assert_eq!(geometry.minimum, 32);
    let needed = tagged.first_block(2, 16) + tagged.sentinel;
    assert_eq!(geometry.control, needed as u64);
}

#[test]
fn descriptions_have_bounds() {
    use crate::description::{DedicatedPool, Description, General, List, ObjectPoolKind};
    use crate::{Fit, IndexKind, Order};
    let best = IndexKind::list(Fit::Best, Order::Lifo);
    let mut heap = Description::of(best);
    let demand = Demand::new(6, 3, 1);
    let got = described(&heap, &UNIT, &demand).unwrap();
    assert_eq!(got.heap_bytes, Some(12));
    assert!(got.used.is_some());
    // One dedicated list: M = 12, s = 3: 9 * 3 + 3. The lower bound stays that of M = 6.
    heap.dedicated.push(DedicatedPool::new(2, 0));
    let got = described(&heap, &UNIT, &demand).unwrap();
    assert_eq!(got.heap_bytes, Some(30));
    assert_eq!(got.necessary_bytes, 8);
    // One that keeps a block: M = 8, s = 3: 5 * 3 + 3.
    heap.dedicated = List::from_slice(&[DedicatedPool {
        limit: Some(1),
        ..DedicatedPool::new(2, 0)
    }]);
    let got = described(&heap, &UNIT, &demand).unwrap();
    assert_eq!((got.heap_bytes, got.necessary_bytes), (Some(18), 8));
    // The limit counts where it is less than what was live, and bounds what is kept with tags, too.
    let few = DedicatedPool {
        limit: Some(9),
        ..DedicatedPool::new(2, 0)
    };
    heap.dedicated = List::from_slice(&[few]);
    let got = described(&heap, &UNIT, &demand).unwrap();
    assert_eq!(got.heap_bytes, Some(30));
    for demand in [demand, demand.resizing()] {
        let got = described(&heap, &Geometry::TAGGED_64, &demand).unwrap();
        let more = Demand {
            live: 6 + 9 * 24,
            ..demand
        };
        let without = described(&Description::of(best), &Geometry::TAGGED_64, &more).unwrap();
        assert_eq!(got.heap_bytes, without.heap_bytes);
    }
    heap.dedicated = List::from_slice(&[DedicatedPool::new(2, 0)]);
    // With tags, blocks of 48 for requests of 32 may be kept for ever.
    let got = described(&heap, &Geometry::TAGGED_64, &demand).unwrap();
    assert_eq!(got.heap_bytes, None);
    let got = described(&heap, &UNIT, &demand.resizing()).unwrap();
    assert_eq!(got.heap_bytes, None);
    // Slabs of 512 for up to 32 bytes, TLSF to 1000, best fit beyond.
    let general = |up_to, index| General {
        up_to,
        ..General::of(index)
    };
    let heap = Description {
        general: List::from_slice(&[general(1000, IndexKind::tlsf(4)), general(usize::MAX, best)]),
        dedicated: List::EMPTY,
        objects: List::from_slice(&[ObjectPoolKind {
            size: 32,
            slab: 512,
            level: 0,
        }]),
        partition: None,
    };
    let demand = Demand::new(4000, 1500, 20);
    let got = described(&heap, &Geometry::outside(16), &demand).unwrap();
    // 200 slots, 16 to a slab, 13 slabs; then each general pool by itself.
    let middle = Demand::new(4000, 1000, 33);
    let upper = Demand::new(4000, 1500, 1001);
    let tlsf = HeapKind::Tlsf { second_level: 4 };
    let sum = 13 * 512
        + heap_bytes(tlsf, Geometry::outside(16), middle).unwrap()
        + heap_bytes(BEST, Geometry::outside(16), upper).unwrap();
    assert_eq!(got.heap_bytes, Some(sum));
    // Without large requests the last pool needs nothing.
    let small = described(&heap, &Geometry::outside(16), &Demand::new(4000, 32, 20)).unwrap();
    assert_eq!(small.heap_bytes, Some(13 * 512));
    // A limited level, or a range with a hole before it: nothing is proved, and that is said.
    let ranged = Description {
        general: List::from_slice(&[
            General {
                from: 64,
                ..general(1000, best)
            },
            General::of(best),
        ]),
        ..heap
    };
    let near = [Some(1 << 20), None, None, None];
    for (heap, sizes) in [(heap, near), (ranged, [None; 4])] {
        let got = described_in(&heap, &sizes, &Geometry::outside(16), &demand).unwrap();
        assert_eq!((got.heap_bytes, got.used), (None, None));
        assert!(got.note.unwrap().contains("no finite bound is proved"));
        assert!(got.necessary_bytes > 0);
    }
}

/// Why `described` gives no bound for dedicated lists without limit over boundary tags, and what a limit is for.
#[test]
fn dedicated_lists_keep_without_limit_unless_they_have_one() {
    use crate::index::dedicated::{ChosenKeeping, UNLIMITED};
    for limit in [UNLIMITED, 1, 100] {
        let keeping = ChosenKeeping {
            limit: [limit],
            ..ChosenKeeping::DEFAULT
        };
        let rounds = rounds_until_full(keeping);
        assert_eq!(rounds < 1000, limit == UNLIMITED, "{rounds} at {limit}");
        assert!(rounds > 100, "{rounds}");
    }
}

/// Rounds in which blocks that nobody asks for are kept, until memory is full; at most a thousand.
fn rounds_until_full(keeping: crate::index::dedicated::ChosenKeeping<1>) -> usize {
    use crate::store::ledger::{ByHandle, Ledger, Record};
    use crate::{Dedicated, Heap, Tlsf, store};
    let mut records = std::vec![Record::SPARE; 2048];
    let ledger = Ledger::new(&mut records, ByHandle, store::Geometry::tagged(8));
    let index = Dedicated::with([64], keeping, Tlsf::<32>::new());
    let mut heap = Heap::new(index, ledger);
    heap.add_region(1 << 16).unwrap();
    let mut rounds = 0;
    // Four blocks of 32 and a hole of 64 between two of them: 128 bytes of blocks are live.
    while let (Some(low), Some(a), Some(b), Some(high)) = (
        heap.allocate(24, 1),
        heap.allocate(24, 1),
        heap.allocate(24, 1),
        heap.allocate(24, 1),
    ) {
        heap.release_place(a).unwrap();
        heap.release_place(b).unwrap();
        // Needs 48; where it gets the hole of 64, the 16 left over stay with it.
        let Some(kept) = heap.allocate(40, 1) else {
            break;
        };
        heap.release_place(kept).unwrap();
        heap.release_place(low).unwrap();
        heap.release_place(high).unwrap();
        rounds += 1;
        if rounds == 1000 {
            break;
        }
    }
    assert_eq!(heap.check(), Ok(()));
    rounds
}

#[test]
fn equal_blocks_do_not_fragment() {
    // Requests of 65 to 72 bytes all take 80 with tags: 10 of them live, l = 72.
    let demand = Demand::new(720, 72, 72);
    assert_eq!(heap_bytes(BEST, Geometry::TAGGED_64, demand), Some(800 + 8));
    // They hold 64 bytes and a granule's rest, a class boundary: TLSF(1) finds them, too.
    let tlsf = HeapKind::Tlsf { second_level: 1 };
    assert_eq!(heap_bytes(tlsf, Geometry::TAGGED_64, demand), Some(800 + 8));
    // Blocks of 96 hold 80 and are searched from 128 + 16 on: freed ones are passed over, pairs are
    // found. 9 live and 9 holes of 96, and 144 at the end: 9 * 192 + 144 + 8.
    let demand = Demand::new(880, 88, 88);
    assert_eq!(
        heap_bytes(tlsf, Geometry::TAGGED_64, demand),
        Some(9 * 192 + 144 + 8)
    );
}

#[test]
fn first_fit_frontier() {
    // n = 2: G(1) = M. For s = 2 holes are at most 1, a block of 1 owns 2 cells, one of 2 owns 3:
    // (2/3) p - (2/3 - 1/2) G(1) <= M - 2, so p <= 1.5 (M - 2 + M/6), H = floor(p) + 2.
    assert_eq!(unit(FIRST, 4, 2), 6); // p <= 4
    assert_eq!(unit(FIRST, 6, 2), 9); // p <= 7.5
    // any-fit for (8, 2): 2 * 7 = 14; frontier: p <= 1.5 (6 + 8/6) = 11, H = 13.
    assert_eq!(unit(FIRST, 8, 2), 13);
    // n = 3, M = 6: holes at most 2; weights 1/3, 2/4, 3/5; G = 6, 9:
    // p <= 5/3 (3 + 6/6 + 9/10) = 8.17, H = 11.
    assert_eq!(unit(FIRST, 6, 3), 11);
}

#[test]
fn frontiers_do_not_cover_resizing_in_place() {
    // First fit (6, 2): frontier 9, any-fit 2 * 5 = 10. Buddies (8, 2): 12 and 14.
    let demand = Demand::new(6, 2, 1).resizing();
    assert_eq!(heap_bytes(FIRST, UNIT, demand), Some(10));
    let demand = Demand::new(8, 2, 1).doubling().resizing();
    assert_eq!(heap_bytes(LOWEST_BUDDY, UNIT, demand), Some(14));
    // Cut in place and never merged: nothing is proved.
    let kingsley = HeapKind::Kingsley { page: 0 };
    assert_eq!(heap_bytes(kingsley, UNIT, demand), None);
}

#[test]
fn first_fit_is_never_below_what_was_played() {
    // docs/guarantees.md#small-heaps: every sequence was tried.
    for (live, largest, found) in [
        (4, 2, 6),
        (6, 2, 9),
        (6, 3, 10),
        (8, 2, 12),
        (8, 3, 15),
        (8, 4, 16),
        (10, 3, 19),
        (10, 4, 20),
    ] {
        assert!(unit(FIRST, live, largest) >= found);
        for per_doubling in [4, 8, 16] {
            let by_class = HeapKind::FirstFitByClass { per_doubling };
            assert!(unit(by_class, live, largest) >= unit(FIRST, live, largest));
        }
    }
}

#[test]
fn first_fit_by_requests_and_blocks() {
    // Tags of a 64-bit machine, M = 1600, one block size: requests 64 to 72, block 80, remainder
    // at most 16, holes at most 64 = 80 - 16. A block owns 80 + 64, or 96: 64 of 144 are requests.
    // p <= 1536 * 144 / 64 + 2 * 16 = 3488, ends at 3488 + 80 + 16; any fit: equal blocks only if
    // no remainder may stay, so 24 blocks of 96 and holes of 64, and 80: above.
    let demand = Demand::new(1600, 72, 64);
    let got = bound(&FIRST, &Geometry::TAGGED_64, &demand).unwrap();
    let frontier = got.used.iter().chain(got.others.iter().flatten());
    let frontier = frontier.filter(|candidate| candidate.method.contains("frontier"));
    let bytes: std::vec::Vec<u128> = frontier.map(|candidate| candidate.bytes).collect();
    assert_eq!(bytes, [3488 + 96 + 8]);
}

#[test]
fn first_fit_resized_in_place_counts_each_block_at_its_largest() {
    let plain = Demand::new(1 << 20, 4096, 64);
    let tags = Geometry::TAGGED_64;
    let bytes = |demand| heap_bytes(FIRST, tags, demand).unwrap();
    // With resizing a hole behind a remainder may be small; without count the any-fit bound holds.
    assert!(bytes(plain) <= bytes(plain.resizing_at_largest()));
    assert!(bytes(plain.resizing_at_largest()) < 9 << 20);
    assert!(bytes(plain.resizing()) > 60 << 20);
    // Nothing of the kind is proved for buddies.
    let demand = Demand::new(8, 2, 1).doubling().resizing_at_largest();
    assert_eq!(heap_bytes(LOWEST_BUDDY, UNIT, demand), Some(14));
}

#[test]
fn first_fit_by_class_searches_from_the_class() {
    // Eight classes: 17 to 18 granules search 18; holes below are 17 at most.
    let load = load(&Geometry::outside(16));
    let rounded = Ceiling::Rounded { per_doubling: 8 };
    for granules in 1..5000_u128 {
        let ceiling = rounded.of(granules * 16, &load) / 16;
        assert!(ceiling >= granules && (ceiling - granules) * 8 < granules);
        let step = (1 << ceiling.ilog2()) / 8;
        assert!(
            ceiling < 16 || ceiling.is_multiple_of(step),
            "{granules} {ceiling}"
        );
    }
    assert_eq!(rounded.of(17 * 16, &load), 18 * 16);
    // Finer classes never cost more, and the finest are exact.
    let demand = Demand::new(1 << 20, 4096, 64);
    let bytes = |heap| heap_bytes(heap, Geometry::TAGGED_64, demand).unwrap();
    let by_class = |per_doubling| bytes(HeapKind::FirstFitByClass { per_doubling });
    assert!(by_class(4) >= by_class(8) && by_class(8) >= by_class(16));
    assert_eq!(by_class(512), bytes(FIRST));
}

#[test]
fn first_fit_constants() {
    // The table of docs/guarantees.md#first-fit, in thousandths of M.
    let demand = Demand::new(1 << 20, 4096, 64);
    let whole = Geometry {
        minimum: 16,
        ..Geometry::TAGGED_64
    };
    let by_class = |per_doubling| HeapKind::FirstFitByClass { per_doubling };
    let heaps = [FIRST, by_class(16), by_class(8), by_class(4)];
    for (geometry, expected, resized) in [
        (Geometry::TAGGED_64, [8149, 8265, 8418, 8761], 8181),
        (whole, [7954, 8069, 8221, 8560], 7954),
        (Geometry::TAGGED_32, [7942, 8073, 8242, 8612], 7950),
        (Geometry::outside(16), [7770, 7801, 7864, 8025], 7770),
    ] {
        let thousandths = |heap, demand| {
            let bytes = heap_bytes(heap, geometry, demand).unwrap();
            (bytes * 1000 + (1 << 19)) >> 20
        };
        assert_eq!(heaps.map(|heap| thousandths(heap, demand)), expected);
        assert_eq!(thousandths(FIRST, demand.resizing_at_largest()), resized);
    }
}

#[test]
fn first_fit_frontier_stays_below_knuth() {
    // M H_n / ln 2 with H_n and ln 2 as rationals: the recursion is at least as good, up to
    // the rounding of each class (sizes to 16 are exact).
    for largest in 1..=16u64 {
        let live = 10_000;
        let harmonic: f64 = (1..=largest).map(|j| 1.0 / j as f64).sum();
        let knuth = live as f64 * harmonic / core::f64::consts::LN_2;
        assert!(unit(FIRST, live, largest) as f64 <= knuth);
    }
}

#[test]
fn first_fit_grows_with_the_logarithm() {
    // docs/guarantees.md#first-fit: at most M (2 + log2(n/l)) with exact classes; classes of
    // 1/16 cost a little more. M = 1 MiB, n = 4096, l = 64: 8 M.
    let geometry = Geometry::outside(1);
    let bytes = heap_bytes(FIRST, geometry, Demand::new(1 << 20, 4096, 64)).unwrap();
    assert!(bytes < 8 << 20, "{bytes}");
    assert!(bytes > 4 << 20, "{bytes}");
}

#[test]
fn buddy_frontier() {
    let doubling = |live, largest| {
        let demand = Demand::new(live, largest, 1).doubling();
        heap_bytes(LOWEST_BUDDY, UNIT, demand).unwrap()
    };
    // G(0) = M; G(1) = 2 floor((M + ceil(M/2)) / 2).
    assert_eq!(doubling(4, 2), 6); // 2 floor(6/2)
    assert_eq!(doubling(6, 2), 8); // 2 floor(9/2)
    assert_eq!(doubling(8, 2), 12);
    assert_eq!(doubling(12, 2), 18);
    // G(2) = 4 floor((8 + ceil(8/4) + 2 ceil(12/4)) / 4) = 16.
    assert_eq!(doubling(8, 4), 16);
    // M = 1 MiB, n = 64: 2^20 (1 + 6/2); Robson's 4 * 2^20 - 63 rounded up to 64.
    assert_eq!(doubling(1 << 20, 64), 4 << 20);
}

#[test]
fn buddy_of_any_choice() {
    let any = HeapKind::Buddy {
        choice: BuddyChoice::Any,
        outside: Some(1),
    };
    let demand = Demand::new(8, 2, 1).doubling();
    let got = bound(&any, &UNIT, &demand).unwrap();
    // s = 2: 6 live ones keep 6 chunks busy, one more: 7 * 2; s = 1: 8.
    assert_eq!(got.heap_bytes, Some(14));
    // One record byte for each smallest block.
    assert_eq!(got.outside_bytes, 14);
}

#[test]
fn buddy_record_in_or_out() {
    // 64-byte requests: with 8 bytes inside the block each takes 128, outside 64.
    let demand = Demand::new(6400, 64, 64);
    let inside = Geometry {
        granule: 16,
        record: 8,
        minimum: 32,
        control: 0,
    };
    assert_eq!(heap_bytes(LOWEST_BUDDY, inside, demand), Some(12800));
    assert_eq!(
        heap_bytes(LOWEST_BUDDY, Geometry::outside(16), demand),
        Some(6400)
    );
}

#[test]
fn half_fit() {
    // Exact blocks: class ceiling is the next power of two. M = 8, n = 3, l = 1:
    // s = 3: s' = 4: 5 + 5 * 3 + 4 = 24; s = 2: 6 + 6 + 2 = 14.
    let exact = HeapKind::HalfFit {
        power_of_two: false,
    };
    assert_eq!(unit(exact, 8, 3), 24);
    // Power-of-two blocks, doubling sizes, (8, 4): Herter 8 (1 + 2) = 24; any-fit with s = 4:
    // 4 + 4 * 3 + 4 = 20, the smaller.
    let rounded = HeapKind::HalfFit { power_of_two: true };
    let got = bound(&rounded, &UNIT, &Demand::new(8, 4, 1).doubling()).unwrap();
    assert_eq!(got.heap_bytes, Some(20));
    assert_eq!(got.used.unwrap().method, "any-fit");
    assert_eq!(got.others[0].unwrap().bytes, 24);
    // M = 64, n = 16: any-fit 48 + 48 * 15 + 16 = 784, Herter 64 * 5 = 320.
    let got = bound(&rounded, &UNIT, &Demand::new(64, 16, 1).doubling()).unwrap();
    assert_eq!(got.heap_bytes, Some(320));
    assert_eq!(got.used.unwrap().standing, Standing::Published);
}

#[test]
fn storage_of_powers_of_two() {
    let kingsley = HeapKind::Kingsley { page: 0 };
    // M = 8, n = 4, l = 1: 8 * 1, 4 * 2, and threes and fours in blocks of 4: floor(8/3) = 2.
    assert_eq!(unit(kingsley, 8, 4), 8 + 8 + 8);
    // Pages of 16: each class is rounded up to one page.
    assert_eq!(unit(HeapKind::Kingsley { page: 16 }, 8, 4), 48);
    // Exact lists, never merged: sizes 1, 2, 3: 8 + 4 * 2 + 2 * 3.
    let never = Limits {
        coalescing: Coalescing::Never,
        ..Limits::NONE
    };
    assert_eq!(
        unit(
            HeapKind::ExactFit {
                order: Order::Lifo,
                limits: never
            },
            8,
            3
        ),
        22
    );
    // Merged, the holes of exact fit outgrow every request.
    let merged = HeapKind::ExactFit {
        order: Order::Lifo,
        limits: Limits::NONE,
    };
    assert_eq!(heap_bytes(merged, UNIT, Demand::new(8, 3, 1)), None);
}

#[test]
fn pools_and_composites() {
    let pool = HeapKind::ObjectPool { slot: 48, slab: 0 };
    let demand = Demand::new(1000, 48, 40);
    let got = bound(&pool, &Geometry::outside(16), &demand).unwrap();
    // floor(1000 / 40) = 25 slots of 48, 25 bits.
    assert_eq!((got.heap_bytes, got.outside_bytes), (Some(1200), 4));
    // Slabs of 512 hold 10 slots: three slabs.
    let slabs = HeapKind::ObjectPool {
        slot: 48,
        slab: 512,
    };
    let bytes = heap_bytes(slabs, Geometry::outside(16), demand);
    assert_eq!(bytes, Some(1536));
    let parts = [
        Part {
            smallest: 1,
            largest: 48,
            live: Some(400),
            heap: pool,
            geometry: Geometry::outside(16),
        },
        Part {
            smallest: 49,
            largest: u64::MAX,
            live: None,
            heap: BEST,
            geometry: UNIT,
        },
    ];
    let composite = HeapKind::Composite(&parts);
    let demand = Demand::new(1000, 50, 40);
    // Pool: 10 slots of 48. General: sizes 49 and 50, M = 1000, l = 49:
    // s = 50: 950 + floor(950 * 49 / 49) + 50 = 1950; s = 49: 951 + floor(951*48/49) + 49 = 1931.
    assert_eq!(heap_bytes(composite, UNIT, demand), Some(480 + 1950));
    let gap = HeapKind::Composite(&parts[1..]);
    let error = bound(&gap, &UNIT, &demand).unwrap_err();
    assert_eq!(error, BoundError::Routing { from: 40 });
}

#[test]
fn limited_searches_have_no_finite_bound() {
    let shallow = Limits {
        depth_percent: 50,
        ..Limits::NONE
    };
    let close = Limits {
        maximum_fit_percent: Some(150),
        ..Limits::NONE
    };
    let unmerged = Limits {
        coalescing: Coalescing::Never,
        ..Limits::NONE
    };
    for limits in [shallow, close, unmerged] {
        let heap = HeapKind::FirstFit {
            order: Order::Lifo,
            limits,
        };
        let got = bound(&heap, &UNIT, &Demand::new(100, 10, 1)).unwrap();
        assert_eq!(got.heap_bytes, None);
        assert!(!got.formula().as_str().is_empty());
    }
}

#[test]
fn coalescing_up_to_the_heap_is_coalescing() {
    let up_to = |limit| HeapKind::BestFit {
        order: Order::Lifo,
        limits: Limits {
            coalescing: Coalescing::UpTo(limit),
            ..Limits::NONE
        },
    };
    let demand = Demand::new(6, 3, 1);
    assert_eq!(heap_bytes(up_to(12), UNIT, demand), Some(12));
    assert_eq!(heap_bytes(up_to(11), UNIT, demand), None);
}

#[test]
fn splitting_limit_is_slack() {
    // Remainders below 3 stay in the block: each may be 2 too large. M = 6, n = 3, l = 1, w = 2:
    // s = 3: 3 + 3 * (2 + 2) + 3 = 18.
    let heap = HeapKind::BestFit {
        order: Order::Lifo,
        limits: Limits {
            splitting: Splitting::Above(3),
            ..Limits::NONE
        },
    };
    assert_eq!(unit(heap, 6, 3), 18);
}

#[test]
fn robson_lower_bound() {
    let necessary = |live, largest, smallest| {
        let demand = Demand::new(live, largest, smallest);
        bound(&BEST, &UNIT, &demand).unwrap().necessary_bytes
    };
    assert_eq!(necessary(8, 4, 1), 13); // 8 * 2 - 4 + 1
    assert_eq!(necessary(8, 2, 1), 11); // 8 * 1.5 - 2 + 1
    assert_eq!(necessary(1 << 20, 64, 1), (4 << 20) - 63);
    assert_eq!(necessary(100, 1, 1), 100);
    assert_eq!(necessary(117, 2, 2), 116); // 58 blocks of 2; the last byte is never live
    // Units of 16 bytes, 64 of them, n = 64 bytes: 16 (64 * 2 - 4) + 1.
    assert_eq!(necessary(1024, 64, 16), 1985);
}

#[test]
fn errors_name_cause_and_remedy() {
    let error = |live, largest, smallest| {
        bound(&BEST, &UNIT, &Demand::new(live, largest, smallest)).unwrap_err()
    };
    assert_eq!(error(0, 1, 1), BoundError::Zero(Quantity::Live));
    assert!(error(5, 9, 1).to_string().contains("give at least n"));
    assert!(error(9, 4, 5).to_string().contains("lower l or raise n"));
    assert!(matches!(
        error(u64::MAX, u64::MAX, 1),
        BoundError::TooLarge { .. }
    ));
    let odd = Geometry {
        granule: 24,
        ..Geometry::TAGGED_64
    };
    let text = bound(&BEST, &odd, &Demand::new(9, 9, 9))
        .unwrap_err()
        .to_string();
    assert!(text.contains("take 16 or 32"), "{text}");
    let skew = Geometry {
        minimum: 40,
        ..Geometry::TAGGED_64
    };
    let text = bound(&BEST, &skew, &Demand::new(9, 9, 9))
        .unwrap_err()
        .to_string();
    assert!(text.contains("no multiple of the granule"), "{text}");
    let tlsf = HeapKind::Tlsf { second_level: 5 };
    let text = bound(&tlsf, &UNIT, &Demand::new(9, 9, 9))
        .unwrap_err()
        .to_string();
    assert!(text.contains("second_level 5"), "{text}");
    let pool = HeapKind::ObjectPool { slot: 8, slab: 0 };
    let text = bound(&pool, &UNIT, &Demand::new(9, 9, 9))
        .unwrap_err()
        .to_string();
    assert!(text.contains("slots of at least n"), "{text}");
}

#[test]
fn times_follow_the_lists() {
    let notation = |heap: HeapKind<'_>| {
        let times = heap.times().unwrap();
        [times.allocate, times.free, times.resize].map(Time::notation)
    };
    let tlsf = HeapKind::Tlsf { second_level: 32 };
    let constant = ["O(1)", "O(1)", "O(1) in place, O(n) to move"];
    assert_eq!(notation(tlsf), constant);
    let searched = "O(holes) in place, O(holes + n) to move";
    assert_eq!(notation(FIRST), ["O(holes)", "O(holes)", searched]);
    assert_eq!(notation(LIFO), ["O(holes)", "O(1)", searched]);
    let pool = |slab| HeapKind::ObjectPool { slot: 16, slab };
    assert_eq!(notation(pool(0))[0], "O(slots/64)");
    // A composite is as slow as its slowest pool.
    let part = |heap| Part {
        smallest: 1,
        largest: 9,
        live: None,
        heap,
        geometry: UNIT,
    };
    let parts = [part(pool(4096)), part(LIFO), part(tlsf)];
    assert_eq!(notation(HeapKind::Composite(&parts)), notation(LIFO));
    assert_eq!(notation(HeapKind::Composite(&parts[2..])), constant);
}

#[test]
fn the_text_is_cut_not_overrun() {
    let long = "é".repeat(200);
    let text = Text::format(format_args!("{long}"));
    assert_eq!(text.as_str().len(), 256);
    assert_eq!(format!("{text}"), "é".repeat(128));
}
