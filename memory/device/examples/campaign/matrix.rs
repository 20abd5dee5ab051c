//! Every heap on every backend that it can lie on.

use std::cell::Cell;
use std::fmt::Debug;

use metes_device::backend::Backend;
use metes_device::fixed::{FixedError, FixedHeap};
use metes_device::heap::{
    Block, Classes, DirectHeap, Extent, HandleHeap, HashedHeap, ListHeap, Lists, OffsetHeap,
    PaperHeap, Span, refusable,
};
use metes_device::hybrid::{HybridHeap, HybridPlace, NoHybrid, SlotSizes};
use metes_device::shared::{SharedHeap, SharedPlace};
use metes_device::sparse::{Pages, Plan, PlanError, SparseHeap, SparseRefusal};
use metes_heap::store::ledger::{Direct, Handle, Lookup};
use metes_heap::{BadFree, ByHandle, Corruption};

use crate::device::{Device, Watched, said};
use crate::streams;
use crate::trial::{self, REGIMES, Regime, Rules, Subject, Tally};

/// How much a combination is tried.
pub(crate) struct Work<'a> {
    pub(crate) operations: u64,
    pub(crate) seed: u64,
    /// Where the trial is, for whoever reports its end.
    pub(crate) at: &'a Cell<u64>,
}

/// A heap, as the command line names it.
pub(crate) struct HeapKind {
    pub(crate) name: &'static str,
    /// Whether it lies on pages.
    pub(crate) paged: bool,
    /// Tries it on a backend.
    pub(crate) run: fn(Device, &Work) -> Result<Tally, String>,
}

/// On one memory.
const fn whole(name: &'static str, run: fn(Device, &Work) -> Result<Tally, String>) -> HeapKind {
    HeapKind {
        name,
        paged: false,
        run,
    }
}

/// On pages.
const fn paged(name: &'static str, run: fn(Device, &Work) -> Result<Tally, String>) -> HeapKind {
    HeapKind {
        name,
        paged: true,
        run,
    }
}

pub(crate) const HEAPS: [HeapKind; 14] = [
    whole("tlsf", |device, work| {
        fixed(device, work, by_handle, HandleHeap::<Classes>::by_handle)
    }),
    whole("tlsf:store=table", |device, work| {
        fixed(device, work, by_offset, DirectHeap::<Classes>::direct)
    }),
    whole("tlsf:store=hash", |device, work| {
        fixed(device, work, by_offset, HashedHeap::<Classes>::hashed)
    }),
    whole("segregated-fit", |device, work| {
        fixed(device, work, of_the_paper, PaperHeap::hashed)
    }),
    whole("hybrid", |device, work| {
        fixed(device, work, hybrid_by_handle, make_hybrid_by_handle)
    }),
    whole("hybrid:store=table", |device, work| {
        fixed(device, work, hybrid_by_offset, make_hybrid_by_offset)
    }),
    whole("shared", shared),
    whole("streams", streams::fixed),
    paged("sparse", |device, work| {
        sparse(device, work, by_handle, HandleHeap::<Classes>::by_handle)
    }),
    paged("sparse:store=table", |device, work| {
        sparse(device, work, by_offset, DirectHeap::<Classes>::direct)
    }),
    paged("sparse:store=hash", |device, work| {
        sparse(device, work, by_offset, HashedHeap::<Classes>::hashed)
    }),
    paged("sparse segregated-fit", |device, work| {
        sparse(device, work, of_the_paper, PaperHeap::hashed)
    }),
    paged("sparse hybrid", |device, work| {
        sparse(device, work, hybrid_by_handle, make_hybrid_by_handle)
    }),
    paged("sparse streams", streams::sparse),
];

/// Why a heap does not lie on a backend; `None` where it does.
pub(crate) fn impossible(heap: &HeapKind, device: Device) -> Option<&'static str> {
    (heap.paged && device == Device::OpenCl).then_some("OpenCL maps no memory to parts of a buffer")
}

/// The rules of a heap by handle, over an extent.
pub(crate) fn by_handle(extent: Extent) -> Rules<Handle> {
    Rules {
        strangers: strangers(extent, HandleHeap::<Classes>::by_handle),
        ..rules(extent, true)
    }
}

pub(crate) fn by_offset(extent: Extent) -> Rules<usize> {
    Rules {
        forge: |offset| Some(offset as usize),
        ..rules(extent, false)
    }
}

fn of_the_paper(extent: Extent) -> Rules<usize> {
    Rules {
        // One class a power of two, and a block of the class above always serves.
        refusable: |granules| granules.next_power_of_two() - 1,
        ..by_offset(extent)
    }
}

fn hybrid_by_handle(extent: Extent) -> Rules<HybridPlace<Handle>> {
    let strangers = strangers(extent, HandleHeap::<Classes>::by_handle);
    Rules {
        slab: slab(extent),
        strangers: strangers.into_iter().map(HybridPlace::Block).collect(),
        ..rules(extent, true)
    }
}

fn hybrid_by_offset(extent: Extent) -> Rules<HybridPlace<usize>> {
    Rules {
        forge: |offset| Some(HybridPlace::Block(offset as usize)),
        slab: slab(extent),
        ..rules(extent, false)
    }
}

/// What holds for every heap.
pub(crate) fn rules<P>(extent: Extent, by_handle: bool) -> Rules<P> {
    Rules {
        bytes: extent.bytes,
        granule: extent.granule,
        blocks: extent.blocks,
        parts: 1,
        refusable: |granules| refusable(granules, 1),
        by_handle,
        forge: |_| None,
        strangers: Vec::new(),
        slab: |_| None,
        plan: None,
    }
}

/// Places of a heap with so many more records that the other never numbered one of them.
fn strangers<H: OffsetHeap, E: Debug>(
    extent: Extent,
    make: fn(Extent) -> Result<H, E>,
) -> Vec<H::Place> {
    if cfg!(miri) {
        // Making them takes longer there than everything else.
        return Vec::new();
    }
    let blocks = 16 * extent.blocks;
    let larger = Extent {
        bytes: blocks as u64 * 256,
        granule: 256,
        blocks,
    };
    let Ok(mut heap) = make(larger) else {
        return Vec::new();
    };
    let all = (0..blocks).map_while(|_| heap.allocate(256, 1).ok());
    let mut places: Vec<H::Place> = all.map(|block| block.place).collect();
    places.split_off(places.len().saturating_sub(100))
}

/// A slab has 64 of the smallest slots, which are as long as a granule.
fn slab<P>(extent: Extent) -> fn(HybridPlace<P>) -> Option<u64> {
    match extent.granule {
        256 => |place| matches!(place, HybridPlace::Slot(_)).then_some(64 * 256),
        _ => |place| matches!(place, HybridPlace::Slot(_)).then_some(64 * 4096),
    }
}

fn slots(extent: Extent) -> SlotSizes {
    SlotSizes {
        smallest: extent.granule,
        largest: 16 * extent.granule,
        slabs: 40,
    }
}

fn make_hybrid_by_handle(extent: Extent) -> Result<HybridHeap<ByHandle>, NoHybrid> {
    HybridHeap::new(extent, slots(extent), ListHeap::by_handle)
}

fn make_hybrid_by_offset(extent: Extent) -> Result<HybridHeap<Direct<'static>>, NoHybrid> {
    HybridHeap::new(extent, slots(extent), ListHeap::direct)
}

/// The bytes that a heap over a range has free.
pub(crate) trait FreeBytes: OffsetHeap {
    fn free_bytes(&self) -> u64;
}

impl<L: Lookup + Debug, I: Lists<L>> FreeBytes for ListHeap<L, I> {
    fn free_bytes(&self) -> u64 {
        self.statistics().free_bytes as u64
    }
}

impl<L: Lookup + Debug, I: Lists<L>> FreeBytes for HybridHeap<L, I> {
    fn free_bytes(&self) -> u64 {
        self.lists().statistics().free_bytes as u64
    }
}

/// Granules of 256 bytes serve every backend here: OpenCL and Vulkan ask for less.
const GRANULE: u64 = 256;
/// Most blocks in use of a small heap and of a large one, fewer where the making of records for
/// them takes long.
const BLOCKS: [usize; 2] = if cfg!(miri) { [100, 50] } else { [3000, 250] };

pub(crate) fn extent(device: Device, backend: &Watched, regime: Regime) -> Extent {
    match (regime.small, device.is_free()) {
        (true, _) => Extent {
            bytes: backend.granularity().max(1 << 20),
            granule: GRANULE,
            blocks: BLOCKS[0],
        },
        (false, false) => Extent {
            bytes: 64 << 20,
            granule: GRANULE,
            blocks: BLOCKS[1],
        },
        (false, true) => Extent {
            bytes: if cfg!(miri) { 1 << 24 } else { 1 << 34 },
            granule: 4096,
            blocks: BLOCKS[1],
        },
    }
}

/// Every regime, for an equal share of the operations.
pub(crate) fn regimes(
    work: &Work,
    mut run: impl FnMut(Regime, u64, u64) -> Result<Tally, String>,
) -> Result<Tally, String> {
    let mut all = Tally::default();
    let share = work.operations.div_ceil(REGIMES.len() as u64);
    // Each makes a heap and looks at all of it, for which Miri takes long.
    let regimes = if cfg!(miri) { 1 } else { REGIMES.len() };
    for (number, regime) in REGIMES.into_iter().enumerate().take(regimes) {
        let seed = work.seed.wrapping_add(number as u64);
        let done = trial::caught(|| run(regime, share, seed));
        all.add(&done.map_err(|wrong| {
            format!(
                "{}, operation {} of seed {seed}: {wrong}",
                regime.name,
                work.at.get()
            )
        })?);
    }
    Ok(all)
}

fn fixed<H: FreeBytes, E: Into<FixedError>>(
    device: Device,
    work: &Work,
    rules: fn(Extent) -> Rules<H::Place>,
    make: fn(Extent) -> Result<H, E>,
) -> Result<Tally, String> {
    regimes(work, |regime, operations, seed| {
        let backend = device.open(false)?;
        let extent = extent(device, &backend, regime);
        if backend.alignment() > extent.granule {
            return Err(format!("it aligns to {} bytes", backend.alignment()));
        }
        let heap = FixedHeap::new(backend.clone(), extent, make).map_err(said)?;
        trial::run(
            Fixed(heap),
            rules(extent),
            &backend,
            regime,
            operations,
            seed,
            work.at,
        )
    })
}

/// Four parts, all used by this thread: its own until that is full, then the others.
fn shared(device: Device, work: &Work) -> Result<Tally, String> {
    const PARTS: u64 = 4;
    let make =
        |extent, parts| SharedHeap::new(extent, parts, ListHeap::<ByHandle, Classes>::by_handle);
    regimes(work, |regime, operations, seed| {
        let backend = device.open(false)?;
        let extent = extent(device, &backend, regime);
        let extent = Extent {
            blocks: extent.blocks / 2,
            ..extent
        };
        let heap = FixedHeap::new(backend.clone(), extent, |extent| {
            make(extent, PARTS as usize)
        })
        .map_err(said)?;
        // Of a part that the heap does not have.
        let larger = make(extent, 64).map_err(said)?;
        let all = (0..64).map_while(|_| larger.allocate(extent.bytes / 64, 1).ok());
        let place = |block: Block<SharedPlace<Handle>>| (block.offset, block.place);
        let beyond = PARTS * (extent.bytes / 64);
        let strangers = all.map(place).filter(|(offset, _)| *offset >= beyond);
        let rules = Rules {
            parts: PARTS,
            strangers: strangers.map(|(_, place)| place).collect(),
            ..rules(extent, true)
        };
        trial::run(
            Shared(heap),
            rules,
            &backend,
            regime,
            operations,
            seed,
            work.at,
        )
    })
}

/// Pages as long as the backend has them, half as many at a time as there are addresses, or a
/// quarter.
pub(crate) fn plan(backend: &Watched, regime: Regime) -> Plan {
    let page = backend.granularity().max(1 << 16);
    let (addresses, cap) = if regime.small { (32, 16) } else { (1024, 256) };
    Plan {
        addresses: addresses * page,
        cap: cap * page,
        page,
        granule: if page >= 1 << 20 { 4096 } else { GRANULE },
        blocks: BLOCKS[usize::from(!regime.small)],
        moves: 3,
    }
}

fn sparse<H: FreeBytes, E: Into<PlanError>>(
    device: Device,
    work: &Work,
    rules: fn(Extent) -> Rules<H::Place>,
    make: fn(Extent) -> Result<H, E>,
) -> Result<Tally, String> {
    regimes(work, |regime, operations, seed| {
        let backend = device.open(true)?;
        let plan = plan(&backend, regime);
        let heap = SparseHeap::new(backend.clone(), plan, make).map_err(said)?;
        let rules = Rules {
            plan: Some(plan),
            ..rules(heap.places().extent())
        };
        trial::run(
            Sparse(heap),
            rules,
            &backend,
            regime,
            operations,
            seed,
            work.at,
        )
    })
}

/// On one memory.
pub(crate) struct Fixed<H: OffsetHeap>(pub(crate) FixedHeap<Watched, H>);

impl<H: FreeBytes> Subject for Fixed<H> {
    type Place = H::Place;

    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<H::Place>, SparseRefusal> {
        Ok(self.0.allocate(bytes, align)?)
    }

    fn free(&mut self, place: H::Place) -> Result<(), BadFree> {
        self.0.free(place)
    }

    fn span(&self, place: H::Place) -> Result<Span, BadFree> {
        self.0.places().span(place)
    }

    fn used(&self) -> usize {
        self.0.places().used()
    }

    fn in_use(&self) -> Vec<Span> {
        self.0.in_use()
    }

    fn free_bytes(&self) -> Option<u64> {
        Some(self.0.places().free_bytes())
    }

    fn check(&self) -> Result<(), Corruption> {
        self.0.check()
    }

    fn start(&self) -> u64 {
        self.0.range().start
    }
}

/// On one memory, for threads.
struct Shared(FixedHeap<Watched, SharedHeap<HandleHeap>>);

impl Subject for Shared {
    type Place = SharedPlace<Handle>;

    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<Self::Place>, SparseRefusal> {
        Ok(self.0.places().allocate(bytes, align)?)
    }

    fn free(&mut self, place: Self::Place) -> Result<(), BadFree> {
        self.0.places().free(place)
    }

    fn span(&self, place: Self::Place) -> Result<Span, BadFree> {
        self.0.places().span(place)
    }

    fn used(&self) -> usize {
        self.0.places().used()
    }

    fn in_use(&self) -> Vec<Span> {
        self.0.places().in_use()
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn check(&self) -> Result<(), Corruption> {
        self.0.places().check()
    }

    fn start(&self) -> u64 {
        self.0.range().start
    }
}

/// On pages.
pub(crate) struct Sparse<H: OffsetHeap>(pub(crate) SparseHeap<Watched, H>);

impl<H: FreeBytes> Subject for Sparse<H> {
    type Place = H::Place;

    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<H::Place>, SparseRefusal> {
        self.0.allocate(bytes, align)
    }

    fn free(&mut self, place: H::Place) -> Result<(), BadFree> {
        self.0.free(place)
    }

    fn span(&self, place: H::Place) -> Result<Span, BadFree> {
        self.0.places().span(place)
    }

    fn used(&self) -> usize {
        self.0.places().used()
    }

    fn in_use(&self) -> Vec<Span> {
        self.0.in_use()
    }

    fn free_bytes(&self) -> Option<u64> {
        Some(self.0.places().free_bytes())
    }

    fn check(&self) -> Result<(), Corruption> {
        self.0.check()
    }

    fn start(&self) -> u64 {
        self.0.range().start
    }

    fn pages(&self) -> Option<Pages> {
        Some(self.0.pages())
    }

    fn asleep(&self) -> bool {
        self.0.asleep()
    }

    fn sleep(&mut self) -> Result<(), SparseRefusal> {
        self.0.sleep()
    }

    fn wake(&mut self) -> Result<(), SparseRefusal> {
        self.0.wake()
    }

    fn trim(&mut self, keep: u64) -> Result<u64, SparseRefusal> {
        self.0.trim(keep)
    }
}
