//! Compact-fit heaps behind [`FixedArena`]: moving ones, whose handles go through the
//! harness as they are, and the non-compacting one under plain addresses.

use std::ptr::NonNull;

use metes_heap::Memory;
use metes_heap::compact::{
    CompactFit, Copying, Handle as Moved, Kappa, NonCompacting, Options, Partition,
};

use crate::peer::{FixedArena, Handle, Kind, Peer};

pub(super) const HEAPS: &[Peer] = &[
    Peer::metes::<Moving<1>>("metes-compact-fit:kappa=1", Kind::Moving, true),
    Peer::metes::<Moving<2>>("metes-compact-fit:kappa=2", Kind::Moving, false),
    Peer::metes::<Moving<4>>("metes-compact-fit:kappa=4", Kind::Moving, false),
    Peer::metes::<Moving<0>>("metes-compact-fit:kappa=inf", Kind::Moving, false),
    Peer::metes::<Still>("metes-compact-fit:moving=no", Kind::Arena, true),
];

/// Pages that hold the largest request of the workloads on space.
const PARTITION: Partition = Partition {
    page: 1 << 14,
    largest: (1 << 14) - 8,
    ..Partition::DEFAULT
};

/// Blocks move; κ = 0 stands for infinity.
struct Moving<const KAPPA: u32>(CompactFit<Copying>);

impl<const KAPPA: u32> FixedArena for Moving<KAPPA> {
    const RECORD: usize = 8;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        let options = Options {
            partition: PARTITION,
            kappa: match KAPPA {
                0 => Kappa::Infinite,
                kappa => Kappa::Finite(kappa),
            },
            increment: None,
        };
        // SAFETY: the arena is ours alone while the heap lives.
        let memory = unsafe { Memory::from_raw(NonNull::new(base)?, length) };
        CompactFit::new(&options, memory).ok().map(Moving)
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        // A handle is never zero: identities begin at one.
        self.0
            .allocate(size, align)
            .map_or(0, |handle| handle.to_bits() as usize)
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, _: usize, _: usize) {
        let _ = self.0.free(Moved::from_bits(handle as u64));
    }

    #[inline(always)]
    unsafe fn resize(&mut self, handle: Handle, _: usize, new: usize, align: usize) -> Handle {
        match self.0.resize(Moved::from_bits(handle as u64), new, align) {
            Ok(()) => handle,
            Err(_) => 0,
        }
    }
}

/// Blocks stay; programs hold addresses.
struct Still(NonCompacting<false>);

impl FixedArena for Still {
    const RECORD: usize = 0;

    unsafe fn new(base: *mut u8, length: usize) -> Option<Self> {
        let partition = Partition {
            largest: 1 << 14,
            ..PARTITION
        };
        // SAFETY: the arena is ours alone while the heap lives.
        let memory = unsafe { Memory::from_raw(NonNull::new(base)?, length) };
        NonCompacting::new(&partition, memory).ok().map(Still)
    }

    #[inline(always)]
    fn allocate(&mut self, size: usize, align: usize) -> Handle {
        self.0
            .allocate(size, align)
            .map_or(0, |block| block.as_ptr().expose_provenance())
    }

    #[inline(always)]
    unsafe fn free(&mut self, handle: Handle, _: usize, _: usize) {
        let block = std::ptr::with_exposed_provenance_mut(handle);
        let _ = NonNull::new(block).map(|block| self.0.free(block));
    }
}
