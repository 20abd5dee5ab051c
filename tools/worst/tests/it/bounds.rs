//! No adversary exceeds a bound, and the known ones come as far as is known.

use metes_config::named;
use metes_worst::{Request, Worst, worst};

fn attack(heap: &str, request: Request) -> Worst {
    let config = metes_config::spec(heap).unwrap();
    worst(&config, &request, &mut |_, _| ()).unwrap()
}

/// Space alone.
fn space(live: u64, largest: u64, smallest: u64, operations: u64) -> Request {
    Request {
        live,
        largest,
        smallest,
        operations,
        counted: 0,
        ..Request::ON_HOST
    }
}

#[test]
fn no_bound_is_exceeded() {
    let mut bounded = 0;
    let heaps = named().into_iter().map(|(name, _)| name);
    let others = [
        "first-fit:order=lifo",
        "first-fit:order=fifo",
        "first-fit:search=tree",
        "first-fit:search=tree,summary=class",
        "next-fit:order=lifo",
        "best-fit:order=lifo",
        "worst-fit:order=fifo",
        "exact-fit:coalesce_up_to=never",
        "tlsf:second_level=2",
        "tlsf:second_level=8",
        "segregated-fit:probes=3",
        "buddy:order=address",
        "compact-fit:kappa=1,page=8KiB,largest=8184",
        "compact-fit:kappa=3,page=8KiB,largest=8184,factor=1.5",
        "compact-fit:kappa=inf,page=8KiB,largest=8184,factor=2",
    ];
    for heap in heaps.chain(others) {
        for (live, largest, smallest) in [(20_000, 600, 16), (9000, 8000, 40), (4096, 64, 64)] {
            let found = attack(heap, space(live, largest, smallest, 150_000));
            assert_eq!(found.refused_in_bound, 0, "{heap}: {:?}", found.program);
            assert!(found.holds, "{heap}: {found:?}");
            if let Some(tightness) = found.tightness {
                assert!(tightness <= 1.0, "{heap} {tightness}");
                assert!(found.operations_in_bound > 10_000);
                bounded += 1;
            }
            assert!(found.peak_live <= live);
        }
    }
    assert!(bounded >= 50, "{bounded}");
}

/// A bound that is one granule per block too small is exceeded: the check can fail.
#[test]
fn a_wrong_bound_is_found_out() {
    use metes_heap::bounds::Demand;
    use metes_worst::Replayed;
    use metes_worst::space::SpaceSearch;

    let config = metes_config::spec("kingsley").unwrap();
    let demand = Demand::new(20_000, 600, 16);
    let bound = metes_config::guarantee(&config, &demand)
        .unwrap()
        .heap_bytes
        .unwrap();
    let search = |bound| {
        SpaceSearch {
            victim: &mut Replayed::new(&config),
            demand,
            bound: Some(bound),
            operations: 300_000,
            seed: 1,
        }
        .run(&mut |_| ())
        .unwrap()
    };
    assert_eq!(search(bound as u64).refused_in_bound, 0);
    let wrong = search(bound as u64 * 9 / 10);
    assert!(wrong.refused_in_bound > 0);
    assert!(wrong.refused_by.is_some());
}

#[test]
fn known_adversaries_come_as_far_as_is_known() {
    // Robson's ramp: about ½ log2 64 + 1 with records.
    let request = space(1 << 18, 4096, 64, 1_500_000);
    let first = attack("first-fit", request);
    assert!(first.arena_ratio > 3.5, "{}", first.arena_ratio);
    let robson = first
        .programs
        .iter()
        .find(|row| row.program == "Robson, oblivious");
    assert!(robson.is_some_and(|row| row.footprint > 3 * row.peak_live));
    // Best fit: towards M n (TAOCP 1, exercise 2.5-42); TLSF is no better.
    for heap in ["best-fit", "tlsf", "segregated-fit", "worst-fit"] {
        let found = attack(heap, request);
        assert!(found.arena_ratio > 15.0, "{heap} {}", found.arena_ratio);
    }
    // Storage bounds are attained.
    let found = attack("kingsley", request);
    assert!(found.tightness.is_some_and(|tightness| tightness > 0.99));
    // Exact fit creeps on for ever.
    let found = attack("exact-fit", request);
    assert_eq!(found.bound_ratio, None);
    assert!(found.arena_ratio > 50.0);
}

#[test]
fn the_same_seed_finds_the_same() {
    let request = space(10_000, 500, 20, 200_000);
    let [first, second] = [(); 2].map(|()| attack("tlsf", request));
    assert_eq!(first.program, second.program);
    assert_eq!(first.traces.space, second.traces.space);
    assert_eq!(first.programs, second.programs);
}
