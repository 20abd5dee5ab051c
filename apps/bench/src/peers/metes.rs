//! Our own heaps, each behind [`FixedArena`]: one line a heap in [`HEAPS`].

use std::mem::{ManuallyDrop, transmute};
use std::ptr::NonNull;

use metes_heap::index::Index;
use metes_heap::index::first_fit::{FirstFitClasses, FirstFitTree};
use metes_heap::index::list::ConstantList;
use metes_heap::store::ledger::{ByHandle, Handle as Place, Layout, Ledger, Record, UnitRecord};
use metes_heap::store::tagged::{Memory, Tagged, TaggedBlock};
use metes_heap::{
    Buddy, Fit, Geometry, HalfFit, Hardened, Heap, ListFit, Order, SegregatedFit, Store, Tlsf,
};

use crate::peer::{ALIGN, FixedArena, Handle, Kind, Peer};
use crate::peers::rust::OFFSET_BLOCKS;

/// Our heaps; the last argument says whether they claim constant time.
pub(super) const HEAPS: &[Peer] = &[
    Peer::metes::<Inside<Tlsf<32>, Tagged<false>>>("metes-tlsf", Kind::Arena, true),
    Peer::metes::<Inside<Tlsf<32>, Tagged<true>>>("metes-tlsf:statistics=yes", Kind::Arena, true),
    Peer::metes::<Inside<Tlsf<32>, Hardened>>("metes-tlsf:store=hardened", Kind::Arena, true),
    Peer::metes::<Inside<Tlsf<8>, Tagged<false>>>("metes-tlsf:second_level=8", Kind::Arena, true),
    // To choose the default by, not under the gate.
    Peer::arena::<Inside<SegregatedFit<32, 1>, Tagged<false>>>(
        "metes-tlsf:probes=1",
        "",
        Kind::Arena,
    ),
    Peer::arena::<Inside<SegregatedFit<32, 2>, Tagged<false>>>(
        "metes-tlsf:probes=2",
        "",
        Kind::Arena,
    ),
    Peer::metes::<Inside<HalfFit, Tagged<false>>>("metes-half-fit", Kind::Arena, true),
    Peer::metes::<Inside<Buddy, Tagged<false>>>("metes-buddy", Kind::Arena, false),
    Peer::metes::<Inside<SegregatedFit, Tagged<false>>>("metes-segregated-fit", Kind::Arena, false),
    Peer::metes::<Inside<FirstFitTree<TaggedBlock>, Tagged<false>>>(
        "metes-first-fit:search=tree",
        Kind::Arena,
        true,
    ),
    Peer::metes::<Inside<FirstFitClasses<TaggedBlock>, Tagged<false>>>(
        "metes-first-fit:search=tree,summary=class",
        Kind::Arena,
        true,
    ),
    // The list whose decisions the tree takes: not under the gate.
    Peer::arena::<Inside<FirstFitList, Tagged<false>>>("metes-first-fit", "", Kind::Arena),
    Peer::metes::<Outside<Tlsf<32>>>("metes-tlsf:store=ledger", Kind::OutOfBand, true),
    Peer::metes::<Outside<HalfFit>>("metes-half-fit:store=ledger", Kind::OutOfBand, true),
    Peer::metes::<Outside<Buddy>>("metes-buddy:store=ledger", Kind::OutOfBand, false),
    Peer::metes::<Outside<SegregatedFit<32, 4>, UnitRecord>>(
        "metes-segregated-fit:second_level=32,probes=4,store=unit-ledger",
        Kind::OutOfBand,
        true,
    ),
];

/// First fit over one list in address order.
type FirstFitList =
    ListFit<ConstantList<{ Fit::First as usize }, { Order::Address as usize }>, TaggedBlock>;

/// Records inside the arena.
struct Inside<I, S: Store>(Heap<I, S>);

/// Makes a store without a region.
trait Fresh: Store<Region = Memory, Place = NonNull<u8>> {
    /// Bytes of a block's record.
    const RECORD: usize;
    /// A store without a region.
    fn fresh() -> Self;
}

impl<const STATISTICS: bool> Fresh for Tagged<STATISTICS> {
    const RECORD: usize = Geometry::tagged(size_of::<usize>()).header;

    fn fresh() -> Self {
        Tagged::new()
    }
}

impl Fresh for Hardened {
    const RECORD: usize = Geometry::hardened(size_of::<usize>()).header;

    fn fresh() -> Self {
        // One and the same, so that every run counts the same instructions.
        Hardened::new(0x6d_6574_6573)
    }
}

impl<I: Index<S> + Default, S: Fresh> FixedArena for Inside<I, S> {
    const RECORD: usize = <S as Fresh>::RECORD;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        let mut heap = Heap::new(I::default(), S::fresh());
        // SAFETY: the arena is ours alone while the heap lives.
        let memory = unsafe { Memory::from_raw(NonNull::new(base)?, length) };
        heap.add_region(memory).ok()?;
        Some(Inside(heap))
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        self.0
            .allocate(size, align)
            .map_or(0, |place| place.as_ptr().expose_provenance())
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, size: usize, _: usize) {
        // SAFETY: the trait's contract.
        let _ = unsafe { self.0.free_sized(place(handle), size) };
    }

    #[inline(always)]
    unsafe fn resize(&mut self, handle: Handle, _: usize, new: usize, align: usize) -> Handle {
        // SAFETY: the trait's contract.
        match unsafe { self.0.resize(place(handle), new, align) } {
            Ok(Some(place)) => place.as_ptr().expose_provenance(),
            Ok(None) | Err(_) => 0,
        }
    }
}

#[inline]
fn place(handle: Handle) -> NonNull<u8> {
    // SAFETY: handles of live blocks are never zero.
    unsafe { NonNull::new_unchecked(std::ptr::with_exposed_provenance_mut(handle)) }
}

/// Records outside the arena, found by handle, as many as offset-allocator gets.
struct Outside<I, R: Layout + 'static = Record> {
    heap: ManuallyDrop<Heap<I, Ledger<'static, ByHandle, R>>>,
    records: *mut [R],
}

impl<I, R: Layout> Drop for Outside<I, R> {
    fn drop(&mut self) {
        // SAFETY: both are dropped once, the heap, which borrows the records, first.
        unsafe {
            ManuallyDrop::drop(&mut self.heap);
            drop(Box::from_raw(self.records));
        }
    }
}

// A place is odd in its generation while it is live, hence never zero.
const _: () = assert!(size_of::<Place>() == size_of::<Handle>());

impl<I: Index<Ledger<'static, ByHandle, R>> + Default, R: Layout> FixedArena for Outside<I, R> {
    const RECORD: usize = 0;

    unsafe fn new(_: *mut u8, length: usize) -> Option<Self> {
        let records = vec![R::SPARE; OFFSET_BLOCKS as usize].into_boxed_slice();
        let records = Box::into_raw(records);
        // SAFETY: the box is not freed before the heap is dropped.
        let borrowed = unsafe { &mut *records };
        let ledger = Ledger::new(borrowed, ByHandle, Geometry::out_of_band(ALIGN));
        let mut outside = Outside {
            heap: ManuallyDrop::new(Heap::new(I::default(), ledger)),
            records,
        };
        // What counts in granules has a region of so many.
        let length = if R::UNITS { length / ALIGN } else { length };
        outside.heap.add_region(length).ok()?;
        Some(outside)
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        match self.heap.allocate(size, align) {
            // SAFETY: same size, plain data.
            Some(place) => unsafe { transmute::<Place, Handle>(place) },
            None => 0,
        }
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, _: usize, _: usize) {
        // SAFETY: same size, plain data; a ledger refuses what is not its own.
        let _ = unsafe { self.heap.free(transmute::<Handle, Place>(handle)) };
    }

    #[inline(always)]
    unsafe fn resize(&mut self, handle: Handle, _: usize, new: usize, align: usize) -> Handle {
        // SAFETY: same size, plain data; a ledger refuses what is not its own.
        match unsafe {
            self.heap
                .resize(transmute::<Handle, Place>(handle), new, align)
        } {
            // SAFETY: as above.
            Ok(Some(place)) => unsafe { transmute::<Place, Handle>(place) },
            Ok(None) | Err(_) => 0,
        }
    }
}
