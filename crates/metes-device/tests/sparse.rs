//! Fixed and sparse heaps on backends, with a device that fails now and then.

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use common::{Random, operations};
use metes_device::backend::guarded::Guarded;
use metes_device::backend::offsets::Offsets;
use metes_device::backend::{Backend, Capacity, Error, Memory, Range};
use metes_device::fixed::{FixedError, FixedHeap};
use metes_device::heap::{Classes, DirectHeap, Extent, HandleHeap, ListHeap, Refusal};
use metes_device::hybrid::{HybridHeap, SlotSizes};
use metes_device::sparse::{Plan, PlanError, SparseHeap, SparseRefusal};
use metes_heap::ByHandle;

const PAGE: u64 = 1 << 16;

/// What a backend was asked, and whether it is to fail.
#[derive(Debug, Default)]
struct Seen {
    /// Lengths by address of what is mapped.
    mapped: BTreeMap<u64, u64>,
    created: u64,
    reserved: u64,
    /// Fails the call after so many.
    fails_after: Option<u32>,
    failures: u32,
}

/// A backend that is watched.
#[derive(Debug)]
struct Watched<B> {
    inner: B,
    seen: Rc<RefCell<Seen>>,
}

impl<B: Backend> Watched<B> {
    fn new(inner: B) -> (Self, Rc<RefCell<Seen>>) {
        let seen = Rc::new(RefCell::new(Seen::default()));
        let watched = Watched {
            inner,
            seen: Rc::clone(&seen),
        };
        (watched, seen)
    }

    fn may_fail(&self, call: &'static str) -> Result<(), Error> {
        let mut seen = self.seen.borrow_mut();
        match &mut seen.fails_after {
            None => Ok(()),
            Some(0) => {
                seen.fails_after = None;
                seen.failures += 1;
                Err(Error::Device {
                    call,
                    code: 999,
                    text: "made to fail".into(),
                })
            }
            Some(left) => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

impl<B: Backend> Backend for Watched<B> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn granularity(&self) -> u64 {
        self.inner.granularity()
    }

    fn paged(&self) -> bool {
        self.inner.paged()
    }

    fn alignment(&self) -> u64 {
        self.inner.alignment()
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        self.inner.capacity()
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
        self.may_fail("reserve")?;
        let range = self.inner.reserve(bytes)?;
        self.seen.borrow_mut().reserved += bytes;
        Ok(range)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.inner.unreserve(range)?;
        self.seen.borrow_mut().reserved -= range.bytes;
        Ok(())
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.may_fail("create")?;
        let memory = self.inner.create(bytes)?;
        self.seen.borrow_mut().created += bytes;
        Ok(memory)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
        self.may_fail("map")?;
        self.inner.map(address, memory)?;
        // All memories of a test are as long as the first.
        let bytes = self.granularity();
        self.seen.borrow_mut().mapped.insert(address, bytes);
        Ok(())
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        self.may_fail("unmap")?;
        let memory = self.inner.unmap(address, bytes)?;
        self.seen.borrow_mut().mapped.remove(&address);
        Ok(memory)
    }

    fn release(&mut self, memory: Memory) -> Result<(), Error> {
        self.may_fail("release")?;
        self.inner.release(memory)?;
        let bytes = self.granularity();
        self.seen.borrow_mut().created -= bytes;
        Ok(())
    }
}

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

type Sparse<B> = SparseHeap<Watched<B>, HandleHeap>;

fn sparse<B: Backend>(inner: B, plan: Plan) -> (Sparse<B>, Rc<RefCell<Seen>>) {
    let (backend, seen) = Watched::new(inner);
    let heap = SparseHeap::new(backend, plan, ListHeap::<ByHandle, Classes>::by_handle).unwrap();
    (heap, seen)
}

fn assert_backed(seen: &Seen, start: u64, bytes: u64) {
    let mut page = start / PAGE * PAGE;
    while page < start + bytes {
        assert!(seen.mapped.contains_key(&page), "no memory at {page:#x}");
        page += PAGE;
    }
}

/// Random operations on a device that fails now and then, sleeps and wakes.
fn exercise<B: Backend>(inner: B, operations: u64, fails: bool, seed: u64) {
    let cap = 16 << 20;
    let (mut heap, seen) = sparse(inner, plan(cap, 40));
    let mut random = Random(seed);
    let mut held: Vec<(metes_heap::store::ledger::Handle, u64, u64)> = Vec::new();
    let mut refused = [0_u32; 4];
    for operation in 0..operations {
        let grow = if operation / 2_000 % 2 == 0 { 60 } else { 42 };
        if fails && random.below(200) == 0 {
            seen.borrow_mut().fails_after = Some(random.below(40) as u32);
        }
        if random.below(5000) == 0 {
            let slept = heap.sleep();
            assert!(heap.asleep());
            assert!(matches!(heap.allocate(1, 1), Err(SparseRefusal::Asleep)));
            if slept.is_ok() {
                assert_eq!((seen.borrow().mapped.len(), seen.borrow().created), (0, 0));
            }
            while heap.wake().is_err() {
                assert!(fails && heap.asleep());
            }
            for &(_, address, bytes) in &held {
                assert_backed(&seen.borrow(), address, bytes);
            }
        }
        if random.below(1000) == 0 {
            let keep = random.below(50);
            if heap.trim(keep).is_ok() {
                assert!(heap.pages().idle + heap.pages().spare <= keep);
            }
        }
        if random.below(100) < grow {
            let bytes = 1 + (random.below(4 << 20) >> random.below(22));
            let before = heap.pages();
            match heap.allocate(bytes, 256) {
                Ok(block) => {
                    let address = heap.range().start + block.offset;
                    assert_eq!(heap.address(block.place), Ok(address));
                    assert_backed(&seen.borrow(), address, bytes);
                    assert!(heap.pages().moved - before.moved <= 40);
                    held.push((block.place, address, bytes));
                }
                Err(SparseRefusal::Pages { wanted, free, cap }) => {
                    assert!(wanted > free && free <= cap - before.live);
                    refused[0] += 1;
                }
                Err(SparseRefusal::Budget { wanted, budget }) => {
                    assert!(wanted > budget);
                    refused[1] += 1;
                }
                Err(SparseRefusal::Backend(_)) => {
                    assert!(fails);
                    refused[2] += 1;
                }
                Err(SparseRefusal::Place(_)) => refused[3] += 1,
                Err(SparseRefusal::Asleep | SparseRefusal::Timeline(_)) => {
                    panic!("awake, and without streams")
                }
            }
        } else if !held.is_empty() {
            let position = random.below(held.len() as u64) as usize;
            let (place, _, _) = held.swap_remove(position);
            heap.free(place).unwrap();
            assert!(heap.free(place).is_err());
        }
        assert!(seen.borrow().created <= cap);
        if operation % (operations / 50) == 0 {
            heap.check().unwrap();
            assert_eq!(heap.places().used(), held.len());
        }
    }
    assert!(refused[0] > 0, "the cap was never met");
    if fails {
        assert!(refused[2] > 0 && seen.borrow().failures > 10);
    }
    let mut left: Vec<_> = heap.in_use().iter().map(|span| span.offset).collect();
    left.sort_unstable();
    let mut expected: Vec<_> = held
        .iter()
        .map(|held| held.1 - heap.range().start)
        .collect();
    expected.sort_unstable();
    assert_eq!(left, expected, "leaks are reported, and nothing else");
    seen.borrow_mut().fails_after = None;
    drop(heap);
    let seen = seen.borrow();
    assert_eq!((seen.mapped.len(), seen.created, seen.reserved), (0, 0, 0));
}

#[test]
fn sparse_heaps_back_every_block() {
    exercise(
        Guarded::new(1 << 30, PAGE).unwrap(),
        operations() / 10,
        false,
        1,
    );
}

#[test]
fn a_device_that_fails_loses_nothing() {
    exercise(
        Guarded::new(1 << 30, PAGE).unwrap(),
        operations() / 20,
        true,
        2,
    );
}

#[test]
fn offsets_serve_as_well() {
    exercise(
        Offsets::new(1 << 30, PAGE).unwrap(),
        operations() / 20,
        true,
        3,
    );
}

#[test]
fn memory_that_others_took_is_done_without() {
    // The device has less than the cap.
    let (mut heap, _) = sparse(Guarded::new(10 * PAGE, PAGE).unwrap(), plan(64 * PAGE, 100));
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
    let (mut heap, _) = sparse(Guarded::new(1 << 30, PAGE).unwrap(), plan(128 * PAGE, 100));
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
    let (mut heap, _) = sparse(Guarded::new(1 << 30, PAGE).unwrap(), plan(16 * PAGE, 3));
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
    let (backend, seen) = Watched::new(Guarded::new(1 << 20, 1 << 20).unwrap());
    let mut heap: FixedHeap<_, DirectHeap> =
        FixedHeap::new(backend, extent, ListHeap::direct).unwrap();
    let block = heap.allocate(1000, 256).unwrap();
    assert_eq!(heap.address(block.place), Ok(heap.range().start));
    assert_eq!(heap.in_use().len(), 1);
    assert!(matches!(
        heap.allocate(1 << 20, 1),
        Err(Refusal::NoBlock { .. })
    ));
    heap.check().unwrap();
    drop(heap);
    let left = {
        let seen = seen.borrow();
        (seen.mapped.len(), seen.created, seen.reserved)
    };
    assert_eq!(left, (0, 0, 0));
    // A device that fails on the way leaves nothing behind.
    for fails_after in 0..3 {
        let (backend, seen) = Watched::new(Guarded::new(1 << 20, 1 << 20).unwrap());
        seen.borrow_mut().fails_after = Some(fails_after);
        let made = FixedHeap::<_, DirectHeap>::new(backend, extent, ListHeap::direct);
        assert!(matches!(
            made,
            Err(FixedError::Backend(Error::Device { .. }))
        ));
        let seen = seen.borrow();
        assert_eq!((seen.mapped.len(), seen.created, seen.reserved), (0, 0, 0));
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
