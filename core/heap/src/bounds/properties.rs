//! What holds of every bound on every input.

extern crate std;

use std::string::ToString;

use proptest::prelude::*;

use super::any_fit::{Ceiling, bytes as any_fit_bytes, refused_at};
use super::demand::Load;
use super::tests::{BEST, FIRST, LIFO, LOWEST_BUDDY, heap_bytes};
use super::*;

fn limits() -> impl Strategy<Value = Limits> {
    let coalescing = prop_oneof![
        4 => Just(Coalescing::Always),
        1 => Just(Coalescing::Never),
        1 => any::<u64>().prop_map(Coalescing::UpTo),
    ];
    let splitting = prop_oneof![
        4 => Just(Splitting::Always),
        1 => Just(Splitting::Never),
        1 => any::<u64>().prop_map(Splitting::Above),
    ];
    (any::<bool>(), any::<u8>(), coalescing, splitting).prop_map(
        |(whole, depth, coalescing, splitting)| Limits {
            depth_percent: if whole { 100 } else { depth },
            maximum_fit_percent: None,
            coalescing,
            splitting,
        },
    )
}

fn heaps() -> impl Strategy<Value = HeapKind<'static>> {
    let order = prop_oneof![Just(Order::Address), Just(Order::Lifo), Just(Order::Fifo)];
    let choice = prop_oneof![
        Just(BuddyChoice::LowestAddress),
        Just(BuddyChoice::SmallestThenLowest),
        Just(BuddyChoice::Any),
    ];
    prop_oneof![
        (order, limits()).prop_map(|(order, limits)| HeapKind::FirstFit { order, limits }),
        limits().prop_map(|limits| HeapKind::BestFit {
            order: Order::Fifo,
            limits
        }),
        limits().prop_map(|limits| HeapKind::ExactFit {
            order: Order::Lifo,
            limits
        }),
        (0u32..14, limits(), any::<bool>()).prop_map(|(log, limits, whole)| {
            HeapKind::SegregatedFit {
                per_doubling: 1 << log,
                search: if whole {
                    ClassSearch::WholeClass
                } else {
                    ClassSearch::NextClass
                },
                limits,
            }
        }),
        any::<bool>().prop_map(|power_of_two| HeapKind::HalfFit { power_of_two }),
        (0u32..14).prop_map(|log| HeapKind::FirstFitByClass {
            per_doubling: 1 << log
        }),
        (0u32..14).prop_map(|log| HeapKind::Tlsf {
            second_level: 1 << log
        }),
        (choice, any::<Option<u64>>())
            .prop_map(|(choice, outside)| HeapKind::Buddy { choice, outside }),
        any::<u64>().prop_map(|page| HeapKind::Kingsley { page }),
        (any::<u64>(), magnitude()).prop_map(|(slot, slab)| HeapKind::ObjectPool { slot, slab }),
    ]
}

/// A u64 whose magnitude, not value, is uniform.
fn magnitude() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

fn policies() -> [HeapKind<'static>; 10] {
    [
        FIRST,
        HeapKind::FirstFitByClass { per_doubling: 8 },
        LIFO,
        BEST,
        HeapKind::HalfFit {
            power_of_two: false,
        },
        HeapKind::HalfFit { power_of_two: true },
        HeapKind::Tlsf { second_level: 4 },
        HeapKind::Tlsf { second_level: 32 },
        LOWEST_BUDDY,
        HeapKind::Kingsley { page: 0 },
    ]
}

const GEOMETRIES: [Geometry; 4] = [
    Geometry::UNIT,
    Geometry::TAGGED_64,
    Geometry::TAGGED_32,
    Geometry::outside(8),
];

proptest! {
    #[test]
    fn never_panics(
        heap in heaps(),
        geometry in [magnitude(), magnitude(), magnitude(), magnitude()],
        powers in (0u32..64, 0u32..64, any::<bool>()),
        demand in [magnitude(), magnitude(), magnitude()],
        doubling in any::<bool>(),
    ) {
        let mut geometry = Geometry {
            granule: geometry[0],
            record: geometry[1],
            minimum: geometry[2],
            control: geometry[3],
        };
        let mut asked = Demand::new(demand[0], demand[1], demand[2]);
        if powers.2 {
            // Mostly consistent input, so that the arithmetic is reached.
            geometry.granule = 1 << powers.0.min(59);
            geometry.minimum = geometry.granule;
            asked.alignment = 1 << powers.1;
            let mut sorted = demand.map(|value| value.max(1));
            sorted.sort_unstable();
            asked.smallest = sorted[0];
            asked.largest = sorted[1];
            asked.live = sorted[2];
        }
        if doubling {
            asked = asked.doubling();
        }
        match bound(&heap, &geometry, &asked) {
            Ok(bound) => {
                let _ = bound.formula().to_string();
                if let Some(bytes) = bound.heap_bytes {
                    prop_assert!(bytes >= bound.necessary_bytes, "{heap:?} {bound:?}");
                    prop_assert!(bytes >= asked.live.into() || doubling || asked.smallest > 1);
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn fast_maximum_is_the_maximum(
        live in 1u64..4000,
        largest in 1u64..400,
        smallest in 1u64..100,
        geometry in 0usize..4,
        alignment in 0u32..8,
        per_doubling in 0u32..7,
    ) {
        let largest = largest.min(live);
        let mut demand = Demand::new(live, largest, smallest.min(largest));
        demand.alignment = 1 << alignment;
        let load = Load::new(&GEOMETRIES[geometry], &demand).unwrap();
        let power = load.rounded_to_power(false, demand.alignment);
        let classes = Ceiling::Classes { per_doubling: 1 << per_doubling };
        for (load, ceiling) in
            [(load, Ceiling::Exact), (load, classes), (power, Ceiling::Exact)]
        {
            let brute = (load.smallest..=load.largest)
                .map(|request| refused_at(&load, ceiling, request).unwrap())
                .max()
                .unwrap();
            let equal = load.gross(load.smallest) == load.gross(load.largest)
                && load.pad == 0 && load.slack < load.gross(load.smallest);
            if !equal {
                let fast = any_fit_bytes(&load, ceiling).unwrap();
                prop_assert_eq!(fast, brute / load.granule * load.granule);
            }
        }
    }

    #[test]
    fn more_demand_needs_no_less(
        live in 1u64..100_000,
        largest in 1u64..3000,
        smallest in 1u64..300,
        more in 0u64..500,
        geometry in 0usize..4,
    ) {
        let largest = largest.min(live);
        let smallest = smallest.min(largest);
        let wider = (largest + more).min(live);
        let lower = smallest.saturating_sub(more).max(1);
        let base = Demand::new(live, largest, smallest);
        let geometry = GEOMETRIES[geometry];
        for heap in policies() {
            let bytes = heap_bytes(heap, geometry, base).unwrap();
            for demand in [
                Demand { live: live + more, ..base },
                Demand { largest: wider, ..base },
                Demand { smallest: lower, ..base },
            ] {
                let grown = heap_bytes(heap, geometry, demand).unwrap();
                prop_assert!(grown >= bytes, "{heap:?} {base:?} {bytes} {demand:?} {grown}");
            }
        }
    }

    #[test]
    fn every_bound_is_at_least_the_necessary_one(
        live in 1u64..1_000_000,
        largest in 1u64..10_000,
        smallest in 1u64..1000,
        geometry in 0usize..4,
    ) {
        let largest = largest.min(live);
        let demand = Demand::new(live, largest, smallest.min(largest));
        for heap in policies() {
            let got = bound(&heap, &GEOMETRIES[geometry], &demand).unwrap();
            for candidate in got.used.iter().chain(got.others.iter().flatten()) {
                prop_assert!(candidate.bytes >= got.necessary_bytes, "{heap:?} {demand:?} {got:?}");
            }
        }
    }
}
