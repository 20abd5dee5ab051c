//! The campaign of `examples/campaign`, shorter; and heaps and backends with planted faults, each
//! of which it must find.

use std::cell::Cell;

use crate::clock::Account;
use crate::device::{self, Device, Watched};
use crate::matrix::{Fixed, HEAPS, HeapKind, Sparse, Work, by_handle, by_offset, impossible};
use crate::streams::{self, Ordered, Whole};
use crate::trial::{self, REGIMES, Regime, Rules, Subject, Tally};
use metes_device::backend::offsets::Offsets;
use metes_device::backend::timeline::Stream;
use metes_device::backend::{Backend, Capacity, Error, Memory, Range};
use metes_device::fixed::FixedHeap;
use metes_device::heap::{Block, Classes, DirectHeap, Extent, HandleHeap, Refusal, Span};
use metes_device::sparse::{Pages, Plan, SparseHeap, SparseRefusal};
use metes_device::streams::StreamError;
use metes_heap::store::ledger::Handle;
use metes_heap::{BadFree, Corruption};

/// Operations of a combination.
const OPERATIONS: u64 = if cfg!(miri) { 100 } else { 100_000 };

/// Every heap that the backend can have.
fn every_heap_on(device: Device) {
    for heap in &HEAPS {
        // What lies on pages has no unsafe code of its own.
        if impossible(heap, device).is_some() || cfg!(miri) && heap.paged {
            continue;
        }
        if heap.paged
            && let Err(reason) = device.open(true)
        {
            println!("not tried: {}: {reason}", heap.name);
            continue;
        }
        let at = Cell::new(0);
        let work = Work {
            operations: OPERATIONS,
            seed: 1,
            at: &at,
        };
        let name = format!("{} on {}", heap.name, device.name());
        match (heap.run)(device, &work) {
            Ok(tally) => {
                println!("{name}: {tally:?}");
                assert!(
                    cfg!(miri) || is_worth(&tally, heap, device),
                    "{name}: {tally:?}"
                );
            }
            Err(wrong) => panic!("{name}, {wrong}"),
        }
    }
}

/// Whether everything came that a trial is to see.
fn is_worth(tally: &Tally, heap: &HeapKind, device: Device) -> bool {
    let streams = heap.name.ends_with("streams");
    let gpu = device == Device::Cuda && device::on_gpu();
    let mut reasons = vec!["empty", "alignment", "too large"];
    match streams {
        true => reasons.push("out of memory"),
        false => reasons.extend(["no block", "blocks"]),
    }
    if heap.paged {
        reasons.extend(["pages", "device"]);
    }
    if heap.paged && !streams {
        reasons.push("budget");
    }
    let came = |reason: &&str| tally.reasons.get(*reason).is_some_and(|&count| count > 0);
    tally.bad_frees > 0
        && tally.bad_frees == tally.bad_frees_found
        && tally.leaks > 0
        && reasons.iter().all(came)
        && (!heap.paged || tally.moves > 0)
        // A GPU's streams are never held up.
        && (!streams || gpu || tally.waits > 0 && tally.orders > 0)
}

#[test]
fn every_heap_on_offsets() {
    every_heap_on(Device::Offsets);
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn every_heap_on_guarded_memory() {
    every_heap_on(Device::Guarded);
}

#[cfg(all(feature = "cuda", target_os = "linux"))]
#[test]
fn every_heap_on_cuda() {
    every_heap_on(Device::Cuda);
}

#[cfg(feature = "opencl")]
#[test]
fn every_heap_on_opencl() {
    every_heap_on(Device::OpenCl);
}

/// On a lavapipe that binds sparsely where the system's does not and `scripts/setup` laid one.
#[cfg(feature = "vulkan")]
#[test]
fn every_heap_on_vulkan() {
    if Device::Vulkan.open(true).is_err()
        && let Some(lavapipe) = device::newer_lavapipe()
    {
        let mut again = device::again_on(&lavapipe).unwrap();
        let arguments = ["--exact", "campaign::every_heap_on_vulkan", "--nocapture"];
        let output = again.args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}{errors}");
        assert!(said.contains("sparse on vulkan: "), "{said}");
        return print!("{said}");
    }
    every_heap_on(Device::Vulkan);
}

/// What is wrong with a heap.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Now and then a block begins a granule too early.
    Overlaps,
    /// Now and then a block is not as aligned as was asked for.
    Misaligned,
    /// A block has less memory than was asked for.
    Short,
    /// Now and then a free is not counted.
    MiscountsFrees,
    /// A handle that was freed is freed again.
    AcceptsStale,
    /// What begins nowhere is freed.
    AcceptsForeign,
    /// Now and then a request is refused that fits.
    RefusesWhatFits,
    /// The refusal says that more is free than there is.
    MiscountsFree,
    /// One block is not reported.
    HidesALeak,
    /// Blocks are said to lie a page beyond where they do.
    PageOff,
}

/// A heap with a fault.
struct Mutant<S: Subject> {
    inner: S,
    fault: Fault,
    calls: u64,
    extra: usize,
    /// What blocks are said to be that are not.
    lies: Vec<(S::Place, Span)>,
}

impl<S: Subject> Mutant<S> {
    /// In one call of 50.
    fn strikes(&mut self, fault: Fault) -> bool {
        self.calls += u64::from(self.fault == fault);
        self.fault == fault && self.calls.is_multiple_of(50)
    }
}

impl<S: Subject> Subject for Mutant<S> {
    type Place = S::Place;

    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<S::Place>, SparseRefusal> {
        if self.strikes(Fault::RefusesWhatFits) {
            let block = self.inner.allocate(bytes, align)?;
            assert_eq!(self.inner.free(block.place), Ok(()));
            let live: u64 = self.in_use().iter().map(|span| span.requested).sum();
            let refusal = Refusal::NoBlock {
                wanted: bytes,
                free: SMALL.bytes - live,
            };
            return Err(refusal.into());
        }
        if align > 256 && self.strikes(Fault::Misaligned) {
            return self.inner.allocate(bytes, 1);
        }
        let short = bytes > 1 << 10 && self.strikes(Fault::Short);
        let mut block = match self.inner.allocate(if short { 1 } else { bytes }, align) {
            Err(SparseRefusal::Place(Refusal::NoBlock { wanted, free }))
                if self.fault == Fault::MiscountsFree =>
            {
                let free = free + 1;
                return Err(Refusal::NoBlock { wanted, free }.into());
            }
            answer => answer?,
        };
        let early = align <= 256 && block.offset > 0 && self.strikes(Fault::Overlaps);
        block.offset -= if early { 256 } else { 0 };
        if early || short {
            let span = Span {
                offset: block.offset,
                requested: bytes,
            };
            self.lies.push((block.place, span));
        }
        Ok(block)
    }

    fn free(&mut self, place: S::Place) -> Result<(), BadFree> {
        match (self.inner.free(place), self.fault) {
            (Err(BadFree::NotInUse), Fault::AcceptsStale) => Ok(()),
            (Err(BadFree::Foreign), Fault::AcceptsForeign) => Ok(()),
            (Ok(()), _) => {
                self.extra += usize::from(self.strikes(Fault::MiscountsFrees));
                Ok(())
            }
            (answer, _) => answer,
        }
    }

    fn span(&self, place: S::Place) -> Result<Span, BadFree> {
        let lie = self.lies.iter().find(|lie| lie.0 == place);
        lie.map_or_else(|| self.inner.span(place), |lie| Ok(lie.1))
    }

    fn used(&self) -> usize {
        self.inner.used() + self.extra
    }

    fn in_use(&self) -> Vec<Span> {
        let mut spans = self.inner.in_use();
        if self.fault == Fault::HidesALeak {
            spans.pop();
        }
        spans
    }

    fn free_bytes(&self) -> Option<u64> {
        self.inner.free_bytes()
    }

    fn check(&self) -> Result<(), Corruption> {
        self.inner.check()
    }

    fn start(&self) -> u64 {
        let off = self.fault == Fault::PageOff;
        self.inner.start() + if off { 1 << 16 } else { 0 }
    }

    fn pages(&self) -> Option<Pages> {
        self.inner.pages()
    }

    fn asleep(&self) -> bool {
        self.inner.asleep()
    }
}

const SMALL: Extent = Extent {
    bytes: 1 << 20,
    granule: 256,
    blocks: 3000,
};

/// What the campaign says of a heap.
fn verdict<S: Subject>(
    heap: S,
    fault: Option<Fault>,
    rules: Rules<S::Place>,
    backend: &Watched,
    regime: Regime,
) -> Result<Tally, String> {
    let at = Cell::new(0);
    let Some(fault) = fault else {
        return trial::run(heap, rules, backend, regime, 20_000, 1, &at);
    };
    let mutant = Mutant {
        inner: heap,
        fault,
        calls: 0,
        extra: 0,
        lies: Vec::new(),
    };
    trial::run(mutant, rules, backend, regime, 20_000, 1, &at)
}

/// Of a heap by handle, and of one by offset.
fn verdicts(fault: Option<Fault>, regime: Regime) -> [Result<Tally, String>; 2] {
    let backend = || Watched::new(Box::new(Offsets::new(1 << 30, 1 << 16).unwrap())).unwrap();
    let (first, second) = (backend(), backend());
    let make = HandleHeap::<Classes>::by_handle;
    let by_handles = Fixed(FixedHeap::new(first.clone(), SMALL, make).unwrap());
    let make = DirectHeap::<Classes>::direct;
    let by_offsets = Fixed(FixedHeap::new(second.clone(), SMALL, make).unwrap());
    [
        verdict(by_handles, fault, by_handle(SMALL), &first, regime),
        verdict(by_offsets, fault, by_offset(SMALL), &second, regime),
    ]
}

#[test]
fn heaps_with_a_fault_are_found() {
    for regime in REGIMES {
        for verdict in verdicts(None, regime) {
            assert!(verdict.is_ok(), "{verdict:?}");
        }
    }
    for (fault, said) in [
        (Fault::Overlaps, "overlaps a block in use"),
        (Fault::Misaligned, "not aligned"),
        (Fault::Short, "overlaps a block in use"),
        (Fault::MiscountsFrees, "blocks are in use"),
        (Fault::AcceptsStale, "was freed"),
        (Fault::AcceptsForeign, "was freed"),
        (Fault::RefusesWhatFits, "are free in one piece"),
        (Fault::MiscountsFree, "that is not why"),
        (Fault::HidesALeak, "not those that are reported"),
    ] {
        // A heap by offset takes what was freed for what never was.
        let kinds = if fault == Fault::AcceptsStale { 1 } else { 2 };
        for verdict in verdicts(Some(fault), REGIMES[3]).into_iter().take(kinds) {
            let wrong = verdict.expect_err("a planted fault is not found");
            println!("{fault:?}: {wrong}");
            assert!(wrong.contains(said), "{fault:?}: {wrong}");
        }
    }
}

/// A heap on pages that backs other addresses than it gives out.
#[test]
fn blocks_without_memory_are_found() {
    let backend = Watched::new(Box::new(Offsets::new(1 << 30, 1 << 16).unwrap())).unwrap();
    let plan = Plan {
        addresses: 1 << 25,
        cap: 1 << 24,
        page: 1 << 16,
        granule: 256,
        blocks: 3000,
        moves: 1000,
    };
    let make = HandleHeap::<Classes>::by_handle;
    let heap = SparseHeap::new(backend.clone(), plan, make).unwrap();
    let extent = Extent {
        bytes: plan.addresses,
        ..SMALL
    };
    let rules = Rules {
        plan: Some(plan),
        ..by_handle(extent)
    };
    let fault = Some(Fault::PageOff);
    let wrong = verdict(Sparse(heap), fault, rules, &backend, REGIMES[0]).unwrap_err();
    println!("{wrong}");
    assert!(wrong.contains("no memory under"), "{wrong}");
}

/// A backend that keeps what it is given back.
#[derive(Debug)]
struct Hoarder(Offsets);

impl Backend for Hoarder {
    fn name(&self) -> &'static str {
        "hoarder"
    }

    fn granularity(&self) -> u64 {
        self.0.granularity()
    }

    fn paged(&self) -> bool {
        true
    }

    fn alignment(&self) -> u64 {
        1
    }

    fn capacity(&self) -> Result<Capacity, Error> {
        self.0.capacity()
    }

    fn reserve(&mut self, bytes: u64) -> Result<Range, Error> {
        self.0.reserve(bytes)
    }

    fn unreserve(&mut self, range: Range) -> Result<(), Error> {
        self.0.unreserve(range)
    }

    fn create(&mut self, bytes: u64) -> Result<Memory, Error> {
        self.0.create(bytes)
    }

    fn map(&mut self, address: u64, memory: Memory) -> Result<(), Error> {
        self.0.map(address, memory)
    }

    fn unmap(&mut self, address: u64, bytes: u64) -> Result<Memory, Error> {
        self.0.unmap(address, bytes)
    }

    fn release(&mut self, _: Memory) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn backends_that_refund_nothing_are_found() {
    let hoarder = Hoarder(Offsets::new(1 << 30, 1 << 16).unwrap());
    let backend = Watched::new(Box::new(hoarder)).unwrap();
    let make = HandleHeap::<Classes>::by_handle;
    let heap = Fixed(FixedHeap::new(backend.clone(), SMALL, make).unwrap());
    let wrong = verdict(heap, None, by_handle(SMALL), &backend, REGIMES[0]).unwrap_err();
    assert!(wrong.contains("bytes of the backend are free"), "{wrong}");
}

/// A heap that forgets that other streams use its blocks.
struct Forgetful(Whole);

streams::ordered!(Forgetful, heap => heap.0.places(), heap.0.places_mut(), {
    fn use_on(&mut self, place: Handle, _: Stream) -> Result<(), StreamError> {
        self.0.places().span(place)?;
        Ok(())
    }

    fn pages(&self) -> Option<Pages> {
        None
    }

    fn trim(&mut self, _: u64) -> Result<u64, SparseRefusal> {
        Ok(0)
    }

    fn sleep(&mut self) -> Result<(), SparseRefusal> {
        Ok(())
    }

    fn wake(&mut self) -> Result<(), SparseRefusal> {
        Ok(())
    }
});

#[test]
fn heaps_that_give_blocks_out_too_early_are_found() {
    let at = Cell::new(0);
    let work = Work {
        operations: 100_000,
        seed: 1,
        at: &at,
    };
    let wrong = streams::fixed_as(Device::Offsets, &work, Forgetful).unwrap_err();
    println!("{wrong}");
    assert!(wrong.contains("may still use it"), "{wrong}");
}
