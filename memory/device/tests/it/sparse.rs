//! Fixed and sparse heaps: what comes of devices that are short of memory, of plans and of budgets.

use crate::device::Watched;
use metes_device::backend::guarded::Guarded;
use metes_device::backend::{Backend, Error};
use metes_device::fixed::{FixedError, FixedHeap};
use metes_device::heap::{Classes, DirectHeap, Extent, HandleHeap, ListHeap, Refusal};
use metes_device::hybrid::{HybridHeap, SlotSizes};
use metes_device::sparse::{Plan, PlanError, SparseHeap, SparseRefusal};
use metes_heap::ByHandle;

const PAGE: u64 = 1 << 16;

fn plan(cap: u64, moves: u64) -> Plan {
    Plan {
        addresses: 64 << 20,
        cap,
        page: PAGE,
        granule: 256,
        blocks: 2000,
        moves,
    }
}

fn sparse(memory: u64, plan: Plan) -> SparseHeap<Guarded, HandleHeap> {
    let backend = Guarded::new(memory, PAGE).unwrap();
    SparseHeap::new(backend, plan, ListHeap::<ByHandle, Classes>::by_handle).unwrap()
}

#[test]
fn memory_that_others_took_is_done_without() {
    // The device has less than the cap.
    let mut heap = sparse(10 * PAGE, plan(64 * PAGE, 100));
    let block = heap.allocate(8 * PAGE, PAGE).unwrap();
    assert!(matches!(
        heap.allocate(4 * PAGE, PAGE),
        Err(SparseRefusal::Backend(Error::OutOfMemory { .. }))
    ));
    heap.check().unwrap();
    heap.free(block.place).unwrap();
    // Idle pages move to where memory is needed.
    let other = heap.allocate(10 * PAGE, PAGE).unwrap();
    assert_eq!(heap.pages().live, 10);
    heap.free(other.place).unwrap();
    assert_eq!(heap.trim(0).unwrap(), 10);
    assert_eq!(heap.backend().capacity().unwrap().free, 10 * PAGE);
}

#[test]
fn fragmented_memory_serves_large_blocks() {
    // Every second page is live: half the memory is free, in pieces of a page.
    let mut heap = sparse(1 << 30, plan(128 * PAGE, 100));
    let blocks: Vec<_> = (0..128)
        .map(|_| heap.allocate(PAGE, PAGE).unwrap())
        .collect();
    for block in blocks.iter().step_by(2) {
        heap.free(block.place).unwrap();
    }
    let large = heap.allocate(64 * PAGE, PAGE).unwrap();
    assert_eq!(heap.pages().moved, 64);
    assert_eq!(heap.pages().most_moved, 64);
    assert!(matches!(
        heap.allocate(1, 1),
        Err(SparseRefusal::Pages { .. })
    ));
    heap.free(large.place).unwrap();
    heap.check().unwrap();
}

#[test]
fn the_budget_is_kept() {
    let mut heap = sparse(1 << 30, plan(16 * PAGE, 3));
    let blocks: Vec<_> = (0..16)
        .map(|_| heap.allocate(PAGE, PAGE).unwrap())
        .collect();
    for block in blocks.iter().step_by(2) {
        heap.free(block.place).unwrap();
    }
    assert_eq!(
        heap.allocate(4 * PAGE, PAGE),
        Err(SparseRefusal::Budget {
            wanted: 4,
            budget: 3
        })
    );
    assert_eq!(heap.pages().moved, 0);
    assert!(heap.allocate(3 * PAGE, PAGE).is_ok());
    heap.check().unwrap();
}

#[test]
fn plans_that_cannot_be_are_refused_with_their_reason() {
    let made = |plan: Plan| {
        let backend = Guarded::new(1 << 30, PAGE).unwrap();
        SparseHeap::new(backend, plan, ListHeap::<ByHandle, Classes>::by_handle).map(drop)
    };
    let good = plan(16 * PAGE, 1);
    assert_eq!(made(good), Ok(()));
    for page in [PAGE / 2, PAGE + 1, 0] {
        assert_eq!(
            made(Plan { page, ..good }),
            Err(PlanError::Page {
                page,
                granularity: PAGE
            })
        );
    }
    for cap in [0, PAGE + 1, good.addresses + PAGE] {
        assert!(matches!(
            made(Plan { cap, ..good }),
            Err(PlanError::Cap { .. })
        ));
    }
    assert!(matches!(
        made(Plan {
            granule: 100,
            ..good
        }),
        Err(PlanError::Heap(_))
    ));
    // More addresses than a process has.
    assert!(matches!(
        made(Plan {
            addresses: 1 << 50,
            page: 1 << 20,
            granule: 1 << 20,
            cap: 1 << 20,
            ..good
        }),
        Err(PlanError::Backend(Error::Addresses { .. }))
    ));
}

#[test]
fn fixed_heaps_give_everything_back() {
    let extent = Extent {
        bytes: 1 << 20,
        granule: 256,
        blocks: 100,
    };
    let watched = || {
        let guarded = Guarded::new(1 << 20, 1 << 20).unwrap();
        Watched::new(Box::new(guarded)).unwrap()
    };
    let backend = watched();
    let mut heap: FixedHeap<_, DirectHeap> =
        FixedHeap::new(backend.clone(), extent, ListHeap::direct).unwrap();
    let block = heap.allocate(1000, 256).unwrap();
    assert_eq!(heap.address(block.place), Ok(heap.range().start));
    assert_eq!(heap.in_use().len(), 1);
    assert!(matches!(
        heap.allocate(1 << 20, 1),
        Err(Refusal::NoBlock { .. })
    ));
    heap.check().unwrap();
    drop(heap);
    assert_eq!(backend.check_empty(), Ok(()));
    // A device that fails on the way leaves nothing behind.
    for fails_after in 0..3 {
        let backend = watched();
        backend.seen.borrow_mut().fails_after = Some(fails_after);
        let made = FixedHeap::<_, DirectHeap>::new(backend.clone(), extent, ListHeap::direct);
        assert!(matches!(
            made,
            Err(FixedError::Backend(Error::Device { .. }))
        ));
        assert_eq!(backend.check_empty(), Ok(()));
    }
}

#[test]
fn hybrid_heaps_lie_on_pages_too() {
    let backend = Guarded::new(1 << 30, PAGE).unwrap();
    let slots = SlotSizes {
        smallest: 256,
        largest: 4096,
        slabs: 100,
    };
    let mut heap = SparseHeap::new(backend, plan(16 << 20, 100), |extent| {
        HybridHeap::<ByHandle, Classes>::new(extent, slots, ListHeap::by_handle)
    })
    .unwrap();
    let blocks: Vec<_> = (1..2000)
        .map(|bytes| heap.allocate(bytes, 1).unwrap())
        .collect();
    heap.check().unwrap();
    assert_eq!(heap.in_use().len(), 1999);
    for block in blocks {
        heap.free(block.place).unwrap();
    }
    heap.check().unwrap();
    assert_eq!(heap.pages().live, 0);
}
