//! What gives out a device's memory: heaps of ours over it, and the driver itself.
//!
//! All have one interface, in which blocks are named by slots, so that the same loop times all of
//! them.
//!
//! Invariant: an allocator that is dropped has given back what it took of the device.

use metes_device::backend::cuda::Cuda;
use metes_device::backend::{self, Backend, timeline::Stream as Followed};
use metes_device::fixed::{FixedError, FixedHeap};
use metes_device::heap::{DirectHeap, Extent, HandleHeap, ListHeap, OffsetHeap, PaperHeap, Unmade};
use metes_device::sparse::{Plan, PlanError, SparseHeap};
use metes_device::stream_pages::{NoHeap, SparseStreamHeap};
use metes_device::streams::{Crossing, Streams};

use cudarc::driver::sys::{CUdeviceptr, CUmemoryPool};

use super::super::measure::{Candidate, Measured};
use super::super::subject::Subject;
use super::super::workload::{ROUND, Workload};
use super::driver::{Device, Stream};

/// Memory of a heap over pages, in percent of the peak of live bytes: pages then hardly move.
const CAP_PERCENT: u64 = 115;

/// Gives out memory to slots.
pub(super) trait Allocator {
    /// A block for a slot that is free; whether there was one.
    fn allocate(&mut self, slot: usize, bytes: u64) -> bool;
    /// Frees the block of a slot, if it has one.
    fn free(&mut self, slot: usize);
    /// Pages mapped and moved so far; nothing of what has none.
    fn pages(&self) -> Option<[u64; 2]> {
        None
    }
}

/// An allocator that uses a device, or why there is none.
type Made<'a> = Result<Box<dyn Allocator + 'a>, NotMade>;

/// A kind of allocator.
pub(super) struct Kind {
    /// Its name in tables.
    pub(super) name: &'static str,
    /// What it does, in a line.
    pub(super) about: &'static str,
    /// Makes one on the device for a workload.
    pub(super) make: for<'a> fn(&'a Device, &Workload) -> Made<'a>,
}

/// Why an allocator was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotMade {
    #[error(transparent)]
    Backend(#[from] backend::Error),
    #[error(transparent)]
    Fixed(#[from] FixedError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Streams(#[from] NoHeap),
    #[error(transparent)]
    Timeline(#[from] metes_device::backend::timeline::Error),
    #[error("no arena of up to 8 times the peak serves it")]
    Arena,
}

/// All of them; others are compared with the first.
pub(super) const KINDS: [Kind; 8] = [
    Kind {
        name: "tlsf",
        about: "HandleHeap over memory taken once, the smallest arena of whole pages that serves",
        make: |device, workload| fixed(device, workload, <HandleHeap>::by_handle),
    },
    Kind {
        name: "tlsf:store=table",
        about: "DirectHeap, likewise",
        make: |device, workload| fixed(device, workload, <DirectHeap>::direct),
    },
    Kind {
        name: "segregated-fit",
        about: "PaperHeap, likewise",
        make: |device, workload| fixed(device, workload, PaperHeap::hashed),
    },
    Kind {
        name: "sparse",
        about: "SparseHeap over pages that are created and mapped when first needed",
        make: sparse,
    },
    Kind {
        name: "sparse, by streams",
        about: "SparseStreamHeap, likewise; frees ordered by a stream",
        make: by_streams,
    },
    Kind {
        name: "cuMemAlloc",
        about: "cuMemAlloc and cuMemFree (cudaMalloc and cudaFree)",
        make: |device, workload| {
            Ok(Box::new(Plain {
                device,
                slots: vec![0; workload.slots],
            }))
        },
    },
    Kind {
        name: "cuMemAllocAsync",
        about: "cuMemAllocAsync and cuMemFreeAsync (cudaMallocAsync), the default pool",
        make: |device, workload| pooled(device, workload, device.default_pool()?, false),
    },
    Kind {
        name: "cuMemAllocAsync, keeping",
        about: "likewise, a pool whose release threshold is the maximum",
        make: |device, workload| pooled(device, workload, device.keeping_pool()?, true),
    },
];

/// A heap over one memory, of the smallest arena in which it serves the workload.
fn fixed<'a, H>(
    device: &Device,
    workload: &Workload,
    heap: fn(Extent) -> Result<H, Unmade>,
) -> Made<'a>
where
    H: OffsetHeap + Subject + 'a,
    <H as OffsetHeap>::Place: 'a,
{
    let candidate = Candidate {
        name: String::new(),
        store: "",
        constant: true,
        counted: false,
        make: |extent| heap(extent).ok(),
    };
    let cuda = Cuda::open(device.ordinal)?;
    let page = cuda.granularity();
    let smallest = candidate.smallest_arena(workload).ok_or(NotMade::Arena)?;
    // A larger arena need not serve what a smaller one does.
    let mut arenas = (smallest.div_ceil(page)..).map(|pages| pages * page);
    let bytes = arenas
        .find(|&bytes| candidate.completes(workload, bytes) || bytes > 8 * workload.peak)
        .filter(|&bytes| bytes <= 8 * workload.peak)
        .ok_or(NotMade::Arena)?;
    let extent = Extent {
        bytes,
        granule: ROUND,
        blocks: workload.blocks + 1,
    };
    Ok(Box::new(Fixed {
        heap: FixedHeap::new(cuda, extent, heap)?,
        slots: std::iter::repeat_with(|| None)
            .take(workload.slots)
            .collect(),
    }))
}

struct Fixed<H: OffsetHeap> {
    heap: FixedHeap<Cuda, H>,
    slots: Vec<Option<H::Place>>,
}

impl<H: OffsetHeap> Allocator for Fixed<H> {
    fn allocate(&mut self, slot: usize, bytes: u64) -> bool {
        let block = self.heap.allocate(bytes, ROUND);
        self.slots[slot] = block.ok().map(|block| block.place);
        self.slots[slot].is_some()
    }

    fn free(&mut self, slot: usize) {
        if let Some(place) = self.slots[slot].take() {
            let freed = self.heap.free(place);
            debug_assert!(freed.is_ok(), "a block in use: {freed:?}");
        }
    }
}

/// How a heap over pages uses the device for a workload.
fn plan(cuda: &Cuda, workload: &Workload) -> Plan {
    let page = cuda.granularity();
    Plan {
        addresses: (2 * workload.peak).next_multiple_of(page),
        cap: (workload.peak * CAP_PERCENT / 100).next_multiple_of(page),
        page,
        granule: ROUND,
        blocks: workload.blocks + 1,
        moves: u64::MAX,
    }
}

fn sparse<'a>(device: &'a Device, workload: &Workload) -> Made<'a> {
    let cuda = Cuda::open(device.ordinal)?;
    let plan = plan(&cuda, workload);
    Ok(Box::new(Sparse {
        heap: SparseHeap::new(cuda, plan, ListHeap::by_handle)?,
        slots: vec![None; workload.slots],
    }))
}

struct Sparse {
    heap: SparseHeap<Cuda, HandleHeap>,
    slots: Vec<Option<<HandleHeap as OffsetHeap>::Place>>,
}

impl Allocator for Sparse {
    fn allocate(&mut self, slot: usize, bytes: u64) -> bool {
        let block = self.heap.allocate(bytes, ROUND);
        self.slots[slot] = block.ok().map(|block| block.place);
        self.slots[slot].is_some()
    }

    fn free(&mut self, slot: usize) {
        if let Some(place) = self.slots[slot].take() {
            let freed = self.heap.free(place);
            debug_assert!(freed.is_ok(), "a block in use: {freed:?}");
        }
    }

    fn pages(&self) -> Option<[u64; 2]> {
        let pages = self.heap.pages();
        Some([pages.mapped, pages.moved])
    }
}

fn by_streams<'a>(device: &'a Device, workload: &Workload) -> Made<'a> {
    let cuda = Cuda::open(device.ordinal)?;
    let plan = plan(&cuda, workload);
    let timeline = cuda.streams(1)?;
    let options = Streams {
        batch: 64,
        crossing: Crossing::Wait,
    };
    let stream = device.stream()?;
    let mut heap = SparseStreamHeap::new(cuda, plan, timeline, options)?;
    // SAFETY: a stream of the device's primary context, which is dropped behind the heap.
    let followed = unsafe { heap.timeline().join(stream.raw) }?;
    Ok(Box::new(ByStreams {
        heap,
        followed,
        slots: vec![None; workload.slots],
        _stream: stream,
    }))
}

struct ByStreams<'a> {
    heap: SparseStreamHeap<Cuda, metes_device::backend::cuda::Streams>,
    followed: Followed,
    slots: Vec<Option<metes_heap::store::ledger::Handle>>,
    _stream: Stream<'a>,
}

impl Allocator for ByStreams<'_> {
    fn allocate(&mut self, slot: usize, bytes: u64) -> bool {
        let block = self.heap.allocate(self.followed, bytes, ROUND);
        self.slots[slot] = block.ok().map(|block| block.place);
        self.slots[slot].is_some()
    }

    fn free(&mut self, slot: usize) {
        if let Some(place) = self.slots[slot].take() {
            let freed = self.heap.free(place);
            debug_assert!(freed.is_ok(), "a block in use: {freed:?}");
        }
    }

    fn pages(&self) -> Option<[u64; 2]> {
        let pages = self.heap.pages();
        Some([pages.mapped, pages.moved])
    }
}

/// The driver's own blocks. A slot without one has address 0.
struct Plain<'a> {
    device: &'a Device,
    slots: Vec<CUdeviceptr>,
}

impl Allocator for Plain<'_> {
    fn allocate(&mut self, slot: usize, bytes: u64) -> bool {
        self.slots[slot] = self.device.allocate(bytes).unwrap_or(0);
        self.slots[slot] != 0
    }

    fn free(&mut self, slot: usize) {
        let address = std::mem::take(&mut self.slots[slot]);
        if address != 0 {
            let freed = self.device.free(address);
            debug_assert!(freed.is_ok(), "a block in use: {freed:?}");
        }
    }
}

impl Drop for Plain<'_> {
    fn drop(&mut self) {
        for slot in 0..self.slots.len() {
            self.free(slot);
        }
    }
}

fn pooled<'a>(device: &'a Device, workload: &Workload, pool: CUmemoryPool, own: bool) -> Made<'a> {
    Ok(Box::new(Pooled {
        device,
        stream: device.stream()?,
        pool,
        own,
        slots: vec![0; workload.slots],
    }))
}

/// Blocks of a pool of the driver's, for one stream.
struct Pooled<'a> {
    device: &'a Device,
    stream: Stream<'a>,
    pool: CUmemoryPool,
    /// Whether the pool goes with this.
    own: bool,
    slots: Vec<CUdeviceptr>,
}

impl Allocator for Pooled<'_> {
    fn allocate(&mut self, slot: usize, bytes: u64) -> bool {
        let Ok(pools) = self.device.pools() else {
            return false;
        };
        let (bytes, stream) = (bytes as usize, self.stream.raw);
        let place = &raw mut self.slots[slot];
        // SAFETY: a place for one address, a pool and a stream of ours.
        let code = unsafe {
            match self.own {
                true => (pools.cuMemAllocFromPoolAsync)(place, bytes, self.pool, stream),
                false => (pools.cuMemAllocAsync)(place, bytes, stream),
            }
        };
        let served = self.device.check("cuMemAllocAsync", code).is_ok();
        if !served {
            self.slots[slot] = 0;
        }
        served
    }

    fn free(&mut self, slot: usize) {
        let address = std::mem::take(&mut self.slots[slot]);
        if let Ok(pools) = self.device.pools()
            && address != 0
        {
            // SAFETY: a block of the pool, freed once, behind the stream's work.
            let code = unsafe { (pools.cuMemFreeAsync)(address, self.stream.raw) };
            debug_assert_eq!(code, 0, "a block in use");
        }
    }
}

impl Drop for Pooled<'_> {
    fn drop(&mut self) {
        for slot in 0..self.slots.len() {
            self.free(slot);
        }
        let _ = self.stream.synchronize();
        if let Ok(pools) = self.device.pools() {
            // SAFETY: a pool without blocks in use; ours is destroyed once.
            unsafe {
                (pools.cuMemPoolTrimTo)(self.pool, 0);
                if self.own {
                    (pools.cuMemPoolDestroy)(self.pool);
                }
            }
        }
    }
}
