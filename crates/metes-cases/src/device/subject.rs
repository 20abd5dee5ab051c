//! What is asked of a heap that is measured, ours or a peer's.

use metes_device::heap::{
    Classes, DirectHeap, Extent, HandleHeap, HashedHeap, ListHeap, PaperHeap,
};
use metes_device::hybrid::{HybridHeap, HybridPlace, SlotSizes};
use metes_heap::store::ledger::{ByHandle, Handle};

use super::workload::ROUND;

/// A heap over a range of offsets.
pub trait Subject: Sized {
    /// Its name in tables.
    const NAME: &'static str;
    /// What names a block.
    type Place: Copy;
    /// A heap over `extent`; `None` where it cannot be made.
    fn make(extent: Extent) -> Option<Self>;
    /// A block of `bytes` bytes, or `None` at once.
    fn allocate(&mut self, bytes: u64) -> Option<Self::Place>;
    /// Frees a block in use.
    fn free(&mut self, place: Self::Place);
    /// Where a block in use begins.
    fn offset(&self, place: Self::Place) -> u64;
}

/// TLSF with four probes, blocks by handle.
#[derive(Debug)]
pub struct ByHandles(HandleHeap<Classes>);
/// The same, blocks by address in a table.
#[derive(Debug)]
pub struct ByTable(DirectHeap<Classes>);
/// The same, blocks by address hashed.
#[derive(Debug)]
pub struct ByHash(HashedHeap<Classes>);
/// The paper's segregated fit.
#[derive(Debug)]
pub struct Paper(PaperHeap);
/// Pools of up to 4 KiB in front of the first.
#[derive(Debug)]
pub struct Hybrid(HybridHeap<ByHandle, Classes>);

macro_rules! lists {
    ($subject:ident, $name:literal, $place:ty, $make:expr) => {
        impl Subject for $subject {
            const NAME: &'static str = $name;
            type Place = $place;

            fn make(extent: Extent) -> Option<Self> {
                $make(extent).ok().map($subject)
            }

            #[inline(always)]
            fn allocate(&mut self, bytes: u64) -> Option<$place> {
                Some(self.0.allocate(bytes, 1).ok()?.place)
            }

            #[inline(always)]
            fn free(&mut self, place: $place) {
                let freed = self.0.free(place);
                debug_assert_eq!(freed, Ok(()), "a block in use");
            }

            fn offset(&self, place: $place) -> u64 {
                self.0.span(place).map_or(u64::MAX, |span| span.offset)
            }
        }
    };
}

lists!(ByHandles, "tlsf:probes=4", Handle, ListHeap::by_handle);
lists!(ByTable, "tlsf:probes=4,find=table", usize, ListHeap::direct);
lists!(ByHash, "tlsf:probes=4,find=hash", usize, ListHeap::hashed);
lists!(Paper, "segregated-fit (paper)", usize, PaperHeap::hashed);
lists!(
    Hybrid,
    "hybrid:largest=4096",
    HybridPlace<Handle>,
    make_hybrid
);

fn make_hybrid(extent: Extent) -> Result<HybridHeap<ByHandle, Classes>, ()> {
    let slots = SlotSizes {
        smallest: extent.granule.max(ROUND),
        largest: 16 * extent.granule.max(ROUND),
        slabs: (extent.blocks / 4).max(16),
    };
    HybridHeap::new(extent, slots, ListHeap::by_handle).map_err(drop)
}
