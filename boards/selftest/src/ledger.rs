//! A heap whose records lie outside the memory it manages, as a subject: the ledger
//! hands out offsets, this adapter turns them into addresses.
//!
//! Invariant: the tables take the beginning of the region, the managed memory the rest,
//! and offset 0 is at `base`, which is aligned to [`ALIGN`].

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use metes_heap::{Direct, Geometry, Heap, Ledger, Record, Tlsf};

use crate::subject::{Seams, Subject};

/// Bytes of a granule: the sizes of blocks are multiples of it.
const GRANULE: usize = 16;
/// Alignment of offset 0, and so the largest that an offset can promise.
const ALIGN: usize = 1024;
/// Bytes of region for each record. Blocks of the churn are 90 bytes on average, half
/// of the region is tables and slack.
const PER_RECORD: usize = 160;

type Inner = Heap<Tlsf<8>, Ledger<'static, Direct<'static>>>;

/// TLSF over a ledger with a direct table.
pub(crate) struct TlsfLedger {
    heap: Option<(Inner, NonNull<u8>)>,
}

impl TlsfLedger {
    /// The offset of an address, if it is one of the heap's.
    fn offset(base: NonNull<u8>, block: NonNull<u8>) -> usize {
        block.addr().get().wrapping_sub(base.addr().get())
    }
}

/// Cuts `count` elements off the front of `memory`, aligned; `None` if they do not fit.
fn cut<T>(
    memory: &'static mut [MaybeUninit<u8>],
    count: usize,
    fill: impl Fn() -> T,
) -> Option<(&'static mut [T], &'static mut [MaybeUninit<u8>])> {
    let skip = memory.as_ptr().align_offset(align_of::<T>());
    let bytes = count.checked_mul(size_of::<T>())?;
    let (_, memory) = memory.split_at_mut_checked(skip)?;
    let (front, rest) = memory.split_at_mut_checked(bytes)?;
    let start = front.as_mut_ptr().cast::<T>();
    for index in 0..count {
        // SAFETY: `start` is aligned and `front` holds `count` elements.
        unsafe { start.add(index).write(fill()) };
    }
    // SAFETY: all elements were written; `front` is used by nothing else any more.
    let table = unsafe { core::slice::from_raw_parts_mut(start, count) };
    Some((table, rest))
}

/// Tables, then managed memory; `None` if they do not fit.
fn lay(region: &'static mut [MaybeUninit<u8>]) -> Option<(Inner, NonNull<u8>)> {
    let length = region.len();
    let (table, rest) = cut(region, length / GRANULE, || 0_u32)?;
    let (records, rest) = cut(rest, length / PER_RECORD, || Record::SPARE)?;
    let skip = rest.as_ptr().align_offset(ALIGN);
    let (_, managed) = rest.split_at_mut_checked(skip)?;
    let ledger = Ledger::new(
        records,
        Direct::new(table, GRANULE),
        Geometry::out_of_band(GRANULE),
    );
    let mut heap = Heap::new(Tlsf::new(), ledger);
    heap.add_region(managed.len()).ok()?;
    Some((heap, NonNull::from(managed).cast()))
}

impl Subject for TlsfLedger {
    const NAME: &'static str = "tlsf, ledger";
    const SEAMS: Seams = Seams {
        exact: false,
        regions: 1,
        tells_bad_frees: true,
        ..Seams::ANY
    };

    fn create() -> Self {
        Self { heap: None }
    }

    fn add_region(&mut self, region: &'static mut [MaybeUninit<u8>]) -> bool {
        if self.heap.is_some() {
            return false;
        }
        self.heap = lay(region);
        self.heap.is_some()
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let (heap, base) = self.heap.as_mut()?;
        let offset = heap.allocate(size, align)?;
        // SAFETY: the ledger's offsets lie inside the managed memory.
        Some(unsafe { base.add(offset) })
    }

    fn allocate_zeroed(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let block = self.allocate(size, align)?;
        // SAFETY: the block is new and has `size` bytes.
        unsafe { block.write_bytes(0, size) };
        Some(block)
    }

    #[inline(always)]
    unsafe fn free(&mut self, block: NonNull<u8>, _align: usize) {
        if let Some((heap, base)) = self.heap.as_mut() {
            // The audit after it finds out if it was refused.
            let _ = heap.release_place(Self::offset(*base, block));
        }
    }

    /// The ledger touches no memory: where the block moves, its contents are moved here.
    unsafe fn resize(
        &mut self,
        block: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        let (heap, base) = self.heap.as_mut()?;
        let place = Self::offset(*base, block);
        // SAFETY: a ledger resolves blocks in use only and touches no memory.
        let kept = unsafe { heap.usable_size(place) }.ok()?.min(size);
        // SAFETY: as above.
        let offset = unsafe { heap.resize(place, size, align) }.ok()??;
        // SAFETY: both places had `kept` bytes and lie inside the managed memory, which
        // may overlap.
        unsafe {
            let new = base.add(offset);
            new.copy_from(block, kept);
            Some(new)
        }
    }

    fn refuses(&mut self, block: NonNull<u8>) -> bool {
        self.heap
            .as_mut()
            .is_some_and(|(heap, base)| heap.release_place(Self::offset(*base, block)).is_err())
    }

    fn sound(&self) -> bool {
        self.heap
            .as_ref()
            .is_none_or(|(heap, _)| heap.check().is_ok())
    }

    fn live(&self) -> Option<usize> {
        self.heap.as_ref().map(|(heap, _)| heap.statistics().live)
    }
}
