//! The heaps under test. Invariant: each heap of the list is both checked and measured.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use metes_heap::index::first_fit::{FirstFitClasses, FirstFitTree};
use metes_heap::store::tagged::TaggedBlock;
use metes_heap::{
    Buddy, Dedicated, HalfFit, Heap, Kingsley, ListFit, Memory, SegregatedFit, Tagged, Tlsf,
    index::list::ConstantList,
};

use crate::board::Board;
use crate::ledger::TlsfLedger;
use crate::report::Report;
use crate::requests::{self, Addresses, Requests};
use crate::subject::{Seams, Subject};
use crate::{Arena, SMALLEST_ARENA, cases, churn};

/// The alignment that every block has.
const GRANULE: usize = 2 * size_of::<usize>();

macro_rules! catalogue {
    ($($type:ident = $name:literal, $index:ty = $new:expr, $statistics:literal, $seams:expr;)+) => {
        $(
            struct $type(Heap<$index, Tagged<$statistics>>);

            impl Subject for $type {
                const NAME: &'static str = $name;
                const SEAMS: Seams = $seams;

                fn create() -> Self {
                    let mut heap = Heap::new($new, Tagged::new());
                    heap.reserve_span(SMALLEST_ARENA);
                    Self(heap)
                }

                fn add_region(&mut self, region: &'static mut [MaybeUninit<u8>]) -> bool {
                    self.0.add_region(Memory::from_static(region)).is_ok()
                }

                #[inline(always)]
                fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
                    self.0.allocate(size, align)
                }

                fn allocate_zeroed(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
                    self.0.allocate_zeroed(size, align)
                }

                #[inline(always)]
                unsafe fn free(&mut self, block: NonNull<u8>, _align: usize) {
                    // SAFETY: the caller's promise. `Tagged` cannot tell a bad free, so
                    // there is no error to look at.
                    let _ = unsafe { self.0.free(block) };
                }

                #[inline(always)]
                unsafe fn resize(
                    &mut self,
                    block: NonNull<u8>,
                    size: usize,
                    align: usize,
                ) -> Option<NonNull<u8>> {
                    // SAFETY: the caller's promise; as in `free`.
                    unsafe { self.0.resize(block, size, align) }.ok().flatten()
                }

                fn sound(&self) -> bool {
                    self.0.check().is_ok()
                }

                fn live(&self) -> Option<usize> {
                    $statistics.then(|| self.0.statistics().live)
                }
            }
        )+

        /// Runs every case on every heap.
        pub(crate) fn test_all(arena: &mut Arena, report: &mut Report<'_>) {
            $(cases::all::<$type>(arena, report);)+
            cases::all::<TlsfLedger>(arena, report);
        }

        /// Measures the churn on every heap.
        pub(crate) fn measure_all(
            arena: &mut Arena,
            board: &mut impl Board,
            overhead: u32,
            report: &mut Report<'_>,
        ) {
            churn::head(report);
            $(churn::measure::<$type>(arena, board, overhead, report);)+
            churn::measure::<TlsfLedger>(arena, board, overhead, report);
        }

        /// Plays requests on the heap that they name; false if there is none.
        pub(crate) fn play(
            requests: &Requests,
            arena: &mut Arena,
            board: &mut impl Board,
            overhead: u32,
            report: &mut Report<'_>,
        ) -> bool {
            $(if requests.heap == $name {
                requests::play::<Addresses<$type>>(requests.words, arena, board, overhead, report);
                return true;
            })+
            false
        }
    };
}

/// An index of one list, over blocks with boundary tags.
type List<const FIT: usize, const ORDER: usize> = ListFit<ConstantList<FIT, ORDER>, TaggedBlock>;

/// Block sizes of 32 and 64 bytes of payload.
const POOLS: [usize; 2] = [
    (32 + size_of::<usize>()).next_multiple_of(GRANULE),
    (64 + size_of::<usize>()).next_multiple_of(GRANULE),
];

const ANY: Seams = Seams::ANY;
const ROUNDS: Seams = Seams {
    exact: false,
    ..ANY
};
const KEEPS: Seams = Seams {
    coalesces: false,
    ..ROUNDS
};
const BUDDY: Seams = Seams {
    regions: 1,
    largest_align: GRANULE,
    ..ANY
};

catalogue! {
    Tlsf32 = "tlsf:second_level=32", Tlsf<32> = Tlsf::new(), true, ROUNDS;
    Tlsf8 = "tlsf:second_level=8", Tlsf<8> = Tlsf::new(), true, ROUNDS;
    Tlsf32Bare = "tlsf, no statistics", Tlsf<32> = Tlsf::new(), false, ROUNDS;
    Half = "half-fit", HalfFit = HalfFit::new(), true, ROUNDS;
    Segregated = "segregated-fit", SegregatedFit = SegregatedFit::new(), true, ANY;
    BinaryBuddy = "buddy", Buddy = Buddy::new(), true, BUDDY;
    PowerClasses = "kingsley", Kingsley<TaggedBlock> = Kingsley::new(), true, KEEPS;
    FirstFit = "first-fit, LIFO", List<0, 0> = ListFit::new(), true, ANY;
    NextFit = "next-fit, FIFO", List<1, 1> = ListFit::new(), true, ANY;
    BestFit = "best-fit, by address", List<2, 2> = ListFit::new(), true, ANY;
    Tree = "first-fit:search=tree", FirstFitTree<TaggedBlock> = FirstFitTree::new(), true, ANY;
    TreeByClass = "first-fit:search=tree,summary=class", FirstFitClasses<TaggedBlock> = FirstFitClasses::new(), true, ROUNDS;
    Pools = "2 pools before tlsf", Dedicated<Tlsf<8>, 2> = Dedicated::new(POOLS, Tlsf::new()), true, KEEPS;
}
