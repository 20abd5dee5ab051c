//! What each policy promises, and what is refused.

use std::ptr::NonNull;
use std::time::{Duration, Instant};

use metes_regions::{Error, Options, PAGE, Policy, Regions, TABLE};

use crate::support::{POLICIES, page, read, resident, signal_of, touch};

const BY_CALLS: Policy = Policy::Graveyard {
    slice: 16,
    threaded: false,
};
const BY_THREAD: Policy = Policy::Graveyard {
    slice: 16,
    threaded: true,
};

fn regions(policy: Policy) -> Regions {
    Regions::reserve(Options::new(64 << 20, policy)).expect("addresses")
}

#[test]
fn what_is_no_region_is_refused_and_nothing_changes() {
    for policy in POLICIES {
        let mut regions = regions(policy);
        let region = regions.map(3).unwrap();
        let other = regions.map(1).unwrap();
        let before = regions.statistics();
        let inside = NonNull::new(page(region.start, 1)).unwrap();
        let odd = NonNull::new(page(region.start, 1).wrapping_sub(1)).unwrap();
        for address in [inside, odd] {
            let Err(Error::Inside { start, .. }) = regions.unmap(address) else {
                panic!("{policy:?}: split");
            };
            assert_eq!(start, region.start.addr().get());
            assert!(matches!(
                regions.resize(address, 5),
                Err(Error::Inside { .. })
            ));
            assert!(matches!(regions.pages(address), Err(Error::Inside { .. })));
        }
        let local = 0_u8;
        assert!(matches!(
            regions.unmap(NonNull::from(&local)),
            Err(Error::Foreign(_))
        ));
        assert!(matches!(regions.map(0), Err(Error::Zero)));
        assert!(matches!(regions.resize(region.start, 0), Err(Error::Zero)));
        assert!(matches!(
            regions.map(usize::MAX),
            Err(Error::TooLong { most: 16384, .. })
        ));
        assert!(matches!(
            regions.map(16384),
            Err(Error::Addresses { pages: 16384 })
        ));
        assert!(matches!(
            regions.map_aligned(1, 3),
            Err(Error::Alignment(3))
        ));
        assert!(matches!(
            regions.map_aligned(1, 64 * TABLE),
            Err(Error::Alignment(_))
        ));
        assert!(regions.resize(region.start, 1 << 40).is_err());
        assert_eq!(regions.statistics().mapped, before.mapped);
        regions.unmap(region.start).unwrap();
        assert!(matches!(
            regions.unmap(region.start),
            Err(Error::NotMapped(_))
        ));
        assert!(matches!(
            regions.resize(region.start, 2),
            Err(Error::NotMapped(_))
        ));
        regions.unmap(other.start).unwrap();
        assert_eq!(regions.statistics().mapped, 0);
        assert_eq!(regions.check(), Ok(()));
    }
    for policy in [
        Policy::Bounded(0),
        Policy::Graveyard {
            slice: 0,
            threaded: true,
        },
    ] {
        assert!(matches!(
            Regions::reserve(Options::new(PAGE, policy)),
            Err(Error::Zero)
        ));
    }
    assert!(matches!(
        Regions::reserve(Options::new(PAGE - 1, Policy::Retain)),
        Err(Error::Zero)
    ));
    assert!(matches!(
        Regions::reserve(Options::new(1 << 60, Policy::Retain)),
        Err(Error::System { .. })
    ));
}

#[test]
fn there_are_as_many_regions_as_were_allowed() {
    let mut regions = Regions::reserve(Options {
        regions: 3,
        ..Options::new(1 << 20, Policy::Immediate)
    })
    .unwrap();
    // Holes between regions need records, too.
    let all: Vec<_> = (0..3).map(|_| regions.map_aligned(1, 4).unwrap()).collect();
    assert!(matches!(regions.map(1), Err(Error::Regions(3))));
    regions.unmap(all[1].start).unwrap();
    regions.map(1).unwrap();
    assert_eq!(regions.check(), Ok(()));
}

#[test]
fn stale_accesses_trap_where_that_is_promised() {
    for policy in POLICIES {
        let traps = !matches!(policy, Policy::Retain | Policy::Bounded(_));
        for pages in [1, 100, TABLE, 3 * TABLE + 17] {
            let mut regions = regions(policy);
            let region = regions.map(pages).unwrap();
            touch(&region, 0..pages, 1);
            regions.unmap(region.start).unwrap();
            for number in [0, pages / 2, pages - 1] {
                let at = page(region.start, number);
                let read = signal_of(|| {
                    // SAFETY: it is the point that this may not be read; the child may die of it.
                    let _ = unsafe { at.read_volatile() };
                });
                // SAFETY: as above.
                let write = signal_of(|| unsafe { at.write_volatile(1) });
                let expected = traps.then_some(libc::SIGSEGV);
                assert_eq!([read, write], [expected; 2], "{policy:?} {pages}");
            }
        }
    }
}

#[test]
fn a_region_maps_what_was_promised_of_its_contents() {
    for policy in POLICIES {
        let mut regions = regions(policy);
        let keeps = matches!(policy, Policy::Retain | Policy::Bounded(_));
        for round in 0..3 {
            let region = regions.map(2 * TABLE).unwrap();
            assert_eq!(region.zeroed, !keeps || round == 0, "{policy:?}");
            if region.zeroed {
                assert!((0..2 * TABLE).all(|number| read(region.start, number) == 0));
            }
            touch(&region, 0..2 * TABLE, 9);
            regions.unmap(region.start).unwrap();
        }
    }
}

#[test]
fn debts_are_paid_as_slowly_as_was_said() {
    let mut regions = regions(Policy::Bounded(10));
    let large = regions.map(1000).unwrap();
    touch(&large, 0..1000, 1);
    let small = regions.map(1).unwrap();
    regions.unmap(large.start).unwrap();
    assert_eq!(regions.statistics().waiting, 990, "the unmap pays, too");
    for calls in 1..=20 {
        regions.resize(small.start, 1).unwrap();
        assert_eq!(regions.statistics().waiting, 990 - 10 * calls);
        let count = resident(large.start, 1000).iter().filter(|is| **is).count();
        assert_eq!(count, 990 - 10 * calls);
    }
    // What is mapped again owes nothing.
    assert_eq!(regions.map(1000).unwrap().start, large.start);
    assert_eq!(regions.statistics().waiting, 0);
    assert_eq!(regions.pay(1000).unwrap(), 0);
}

#[test]
fn retained_frames_stay_until_they_are_asked_for() {
    let mut regions = regions(Policy::Retain);
    let region = regions.map(300).unwrap();
    touch(&region, 0..300, 5);
    regions.unmap(region.start).unwrap();
    assert_eq!(resident(region.start, 300), [true; 300]);
    assert_eq!(regions.statistics().waiting, 300);
    assert_eq!(regions.pay(100).unwrap(), 100);
    assert_eq!(regions.pay(1000).unwrap(), 200);
    assert_eq!(resident(region.start, 300), [false; 300]);
    assert_eq!(regions.statistics().released, 300);
}

#[test]
fn graves_are_emptied_slice_by_slice() {
    let mut regions = regions(BY_CALLS);
    assert!(!regions.has_reaper());
    let pages = 2 * TABLE + 5;
    let one = regions.map(pages).unwrap();
    let two = regions.map(TABLE).unwrap();
    touch(&one, 0..pages, 1);
    touch(&two, 0..TABLE, 1);
    let small = regions.map(3).unwrap();
    touch(&small, 0..3, 1);
    regions.unmap(small.start).unwrap();
    assert_eq!(regions.statistics().waiting, 0, "small ones go at once");
    regions.unmap(one.start).unwrap();
    regions.unmap(two.start).unwrap();
    assert_eq!(regions.statistics().waiting, pages + TABLE);
    assert_eq!(regions.statistics().fallbacks, 0);
    assert_eq!(resident(one.start, pages), vec![false; pages]);
    let mut left = pages + TABLE;
    while left != 0 {
        let paid = regions.pay(100).unwrap();
        assert_eq!(paid, left.min(100));
        left -= paid;
        assert_eq!(regions.statistics().waiting, left);
    }
    assert_eq!(regions.pay(100).unwrap(), 0);
    assert_eq!(regions.statistics().released, pages + TABLE + 3);
    assert_eq!(regions.statistics().most_waiting, pages + TABLE);
}

#[test]
fn a_full_graveyard_lets_regions_go_at_once() {
    let mut regions = Regions::reserve(Options::new(16 << 20, BY_CALLS)).unwrap();
    // As much may wait as there was at once.
    let most = regions.map(3 * TABLE).unwrap();
    regions.unmap(most.start).unwrap();
    assert_eq!(regions.pay(3 * TABLE).unwrap(), 3 * TABLE);
    let mut fallbacks = 0;
    for round in 0..40 {
        let region = regions.map(TABLE).unwrap();
        touch(&region, 0..TABLE, 1);
        regions.unmap(region.start).unwrap();
        // One grave and a half is emptied every third round.
        if round % 3 == 0 {
            regions.pay(TABLE + TABLE / 2).unwrap();
        }
        let statistics = regions.statistics();
        assert!(statistics.waiting <= 3 * TABLE);
        fallbacks = statistics.fallbacks;
        assert_eq!(
            statistics.released + statistics.waiting,
            (3 + round + 1) * TABLE
        );
    }
    assert!((10..30).contains(&fallbacks), "{fallbacks}");
    while regions.pay(1000).unwrap() != 0 {}
    assert_eq!(regions.statistics().released, 43 * TABLE);
}

/// Waits until a thread did what it has to do.
fn until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(100), "it never did");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_reaper_empties_graves_and_sleeps_and_ends() {
    for _ in 0..20 {
        let mut regions = regions(BY_THREAD);
        for round in 1..=5 {
            let region = regions.map(5 * TABLE).unwrap();
            touch(&region, 0..5 * TABLE, 1);
            regions.unmap(region.start).unwrap();
            if round % 2 == 0 {
                until(|| regions.statistics().waiting == 0);
            }
        }
        assert!(regions.has_reaper());
        assert_eq!(regions.pay(10).unwrap(), 0);
        // Dropped with graves that may wait yet.
    }
}

#[test]
fn a_child_of_a_fork_reaps_by_itself() {
    let mut regions = regions(BY_THREAD);
    let bury = |regions: &mut Regions, pages: usize| {
        let region = regions.map(pages).unwrap();
        touch(&region, 0..pages, 1);
        regions.unmap(region.start).unwrap();
    };
    // So much that it waits yet when the child begins. There is no room for as much again to wait beside it, so that
    // the child's own goes at once; what came with the child goes all the same.
    bury(&mut regions, 12 * TABLE);
    let ended = signal_of(|| {
        bury(&mut regions, 5 * TABLE);
        while regions.statistics().waiting != 0 {
            // SAFETY: has no precondition.
            unsafe { libc::sched_yield() };
        }
    });
    assert_eq!(ended, None);
    until(|| regions.statistics().waiting == 0);
}

#[test]
fn what_a_program_did_to_its_pages_does_not_keep_them() {
    for policy in POLICIES {
        let mut regions = regions(policy);
        let region = regions.map(3 * TABLE).unwrap();
        touch(&region, 0..3 * TABLE, 1);
        // Attributes of its own make the middle a mapping of its own.
        // SAFETY: pages of the region.
        let advised = unsafe {
            let middle = page(region.start, TABLE + 100).cast();
            libc::madvise(middle, 300 * PAGE, libc::MADV_DONTFORK)
        };
        assert_eq!(advised, 0);
        let grown = regions.resize(region.start, 4 * TABLE).unwrap();
        assert!((0..3 * TABLE).all(|number| read(grown.start, number) == 1));
        // SAFETY: as above.
        let advised = unsafe {
            let middle = page(grown.start, 2 * TABLE + 9).cast();
            libc::madvise(middle, 30 * PAGE, libc::MADV_DONTFORK)
        };
        assert_eq!(advised, 0);
        regions.unmap(grown.start).unwrap();
        assert_eq!(regions.statistics().fallbacks, 0);
        if !matches!(policy, Policy::Retain | Policy::Bounded(_)) {
            assert_eq!(resident(grown.start, 4 * TABLE), vec![false; 4 * TABLE]);
        }
    }
}
