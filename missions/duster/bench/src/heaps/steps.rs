//! Instructions of single calls, exact, on the host.
//!
//! The heaps are those that an embedded user would build: index and store constants of the type, boundary tags in memory. Counted
//! are the requests around the place where most blocks are live; before it they are made uncounted.
//!
//! *Invariant:* what is counted is the call of the allocator and nothing of the replay.

use std::ptr::NonNull;

use metes_duster_pools::{BinPool, BucketPool, Pool, Region, SlotPool};
use metes_heap::index::list::ConstantList;
use metes_heap::store::Store;
use metes_heap::{Fit, HalfFit, Heap, ListFit, Order, SegregatedFit, Tagged, Tlsf};
use metes_step::{Call, Stepper};

use super::subjects::Kind;
use super::trace::{Event, Requests};

/// The right to count.
pub(super) struct Steps(Stepper);

/// Memory beside the partition's own, as tags of the host have twice as many bytes.
const MORE: usize = 4;

impl Steps {
    /// None where instructions cannot be counted.
    pub(super) fn new() -> Option<Steps> {
        Stepper::new().ok().map(Steps)
    }

    /// The most instructions of an allocation and of a free among `counted` requests.
    pub(super) fn most(
        &mut self,
        kind: &Kind,
        bytes: usize,
        requests: &Requests,
        counted: usize,
    ) -> Option<[u64; 2]> {
        type Block = <Tagged as Store>::Block;
        type First =
            ListFit<ConstantList<{ Fit::First as usize }, { Order::Address as usize }>, Block>;
        type Best =
            ListFit<ConstantList<{ Fit::Best as usize }, { Order::Address as usize }>, Block>;
        let bytes = bytes * MORE;
        let mut memory = vec![0u64; bytes / 8];
        let start = NonNull::from(memory.as_mut_slice()).cast();
        macro_rules! heap {
            ($index:expr) => {{
                let mut heap = Heap::new($index, <Tagged>::new());
                // SAFETY: the vector outlives the heap, and nobody else reaches it.
                heap.add_region(unsafe { metes_heap::Memory::from_raw(start, bytes) })
                    .ok()?;
                self.drive(&mut heap, requests, counted)
            }};
        }
        // SAFETY: the vector outlives the pool, nobody else reaches it, and nothing is written into blocks.
        let region = || unsafe { Region::new(start, bytes) };
        let most = match kind {
            Kind::Metes("tlsf:second_level=8") => heap!(Tlsf::<8>::new()),
            Kind::Metes("tlsf") => heap!(Tlsf::<32>::new()),
            Kind::Metes("half-fit") => heap!(HalfFit::new()),
            Kind::Metes("segregated-fit") => heap!(<SegregatedFit>::new()),
            Kind::Metes("first-fit") => heap!(First::new()),
            Kind::Metes("best-fit") => heap!(Best::new()),
            Kind::Metes(_) => return None,
            Kind::Buckets(_, sizes) => self.drive(
                &mut Direct(BucketPool::new(region(), sizes).ok()?),
                requests,
                counted,
            ),
            Kind::Slots(_, slots) => self.drive(
                &mut Direct(SlotPool::new(region(), slots, true).ok()?),
                requests,
                counted,
            ),
            Kind::Bins(_, slots) => self.drive(
                &mut Direct(BinPool::new(region(), slots).ok()?),
                requests,
                counted,
            ),
        };
        drop(memory);
        Some(most)
    }

    fn drive<S: Stepped>(
        &mut self,
        subject: &mut S,
        requests: &Requests,
        counted: usize,
    ) -> [u64; 2] {
        let mut held = vec![0usize; requests.blocks()];
        let peak = requests.peak();
        let window = peak.saturating_sub(counted / 2)..peak.saturating_add(counted - counted / 2);
        let subject: *mut S = subject;
        let mut most = [0, 0];
        for (at, event) in requests.events().iter().enumerate().take(window.end) {
            let (kind, call) = match *event {
                Event::Allocate { size, .. } => (
                    0,
                    call(allocate::<S> as *const () as usize, subject, size as usize),
                ),
                Event::Free { block } if held[block as usize] != 0 => (
                    1,
                    call(
                        free::<S> as *const () as usize,
                        subject,
                        held[block as usize],
                    ),
                ),
                Event::Free { .. } => continue,
            };
            let result = if window.contains(&at) {
                // SAFETY: the functions below, with the subject and a size, or a block of it that is live.
                let (result, count) = unsafe { self.0.call(call) };
                most[kind] = count.max(most[kind]);
                result
            } else {
                // SAFETY: as above.
                unsafe { call.invoke() }
            };
            match *event {
                Event::Allocate { block, .. } => held[block as usize] = result,
                Event::Free { block } => held[block as usize] = 0,
            }
        }
        most
    }
}

fn call<S>(function: usize, subject: *mut S, argument: usize) -> Call {
    Call {
        function,
        arguments: [subject as usize, argument, 0, 0, 0],
    }
}

/// An allocator whose calls are counted.
trait Stepped {
    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>>;

    /// # Safety
    /// The block is live.
    unsafe fn free(&mut self, place: NonNull<u8>);
}

impl<I: metes_heap::index::Index<Tagged>> Stepped for Heap<I, Tagged> {
    #[inline(always)]
    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        Heap::allocate(self, size, 8)
    }

    #[inline(always)]
    unsafe fn free(&mut self, place: NonNull<u8>) {
        // SAFETY: as promised here.
        let _ = unsafe { Heap::free(self, place) };
    }
}

/// A pool whose type is known where it is called.
struct Direct<P>(P);

impl<P: Pool> Stepped for Direct<P> {
    #[inline(always)]
    fn allocate(&mut self, size: usize) -> Option<NonNull<u8>> {
        self.0.allocate(size)
    }

    #[inline(always)]
    unsafe fn free(&mut self, place: NonNull<u8>) {
        let _ = self.0.free(place);
    }
}

extern "C" fn allocate<S: Stepped>(subject: *mut S, size: usize) -> usize {
    // SAFETY: `Steps::drive` gives the subject, which it has alone.
    let subject = unsafe { &mut *subject };
    subject.allocate(size).map_or(0, |place| place.addr().get())
}

extern "C" fn free<S: Stepped>(subject: *mut S, place: usize) {
    // SAFETY: as above; the place was given by `allocate` of this subject.
    unsafe {
        if let Some(place) = NonNull::new(std::ptr::with_exposed_provenance_mut(place)) {
            (*subject).free(place);
        }
    }
}
