//! A heap too simple to be wrong, to try the checks on: first fit over a sorted list
//! of intervals kept outside the memory. Invariant: intervals are sorted and disjoint.

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use crate::subject::{Seams, Subject};

const BLOCKS: usize = 400;
const REGIONS: usize = 2;

#[derive(Clone, Copy, Default)]
struct Interval {
    start: usize,
    size: usize,
}

/// First fit over intervals.
pub struct Naive {
    regions: [Option<(NonNull<u8>, usize)>; REGIONS],
    used: [Interval; BLOCKS],
    count: usize,
}

impl Naive {
    fn place(&self, size: usize, align: usize) -> Option<(usize, NonNull<u8>)> {
        for (base, len) in self.regions.iter().flatten() {
            let (start, end) = (base.addr().get(), base.addr().get() + len);
            let mut at = start.checked_next_multiple_of(align)?;
            let mut index = 0;
            loop {
                let next = self.used[..self.count].get(index);
                if let Some(next) = next
                    && next.start + next.size <= at
                {
                    index += 1;
                    continue;
                }
                let limit = next.map_or(end, |next| next.start.min(end));
                if at.checked_add(size).is_some_and(|top| top <= limit) {
                    // SAFETY: `at + size` is at most the end of this region.
                    return Some((index, unsafe { base.add(at - start) }));
                }
                match next {
                    Some(next) if next.start < end => {
                        at = (next.start + next.size).checked_next_multiple_of(align)?;
                        index += 1;
                    }
                    _ => break,
                }
            }
        }
        None
    }

    fn find(&self, block: NonNull<u8>) -> Option<usize> {
        self.used[..self.count]
            .iter()
            .position(|used| used.start == block.addr().get())
    }
}

impl Subject for Naive {
    const NAME: &'static str = "naive";
    const SEAMS: Seams = Seams::ANY;

    fn create() -> Self {
        Self {
            regions: [None; REGIONS],
            used: [Interval::default(); BLOCKS],
            count: 0,
        }
    }

    fn add_region(&mut self, region: &'static mut [MaybeUninit<u8>]) -> bool {
        let Some(slot) = self.regions.iter_mut().find(|slot| slot.is_none()) else {
            return false;
        };
        *slot = Some((NonNull::from(&mut *region).cast(), region.len()));
        true
    }

    fn allocate(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        if self.count == BLOCKS {
            return None;
        }
        let (index, at) = self.place(size, align)?;
        self.used.copy_within(index..self.count, index + 1);
        self.used[index] = Interval {
            start: at.addr().get(),
            size,
        };
        self.count += 1;
        Some(at)
    }

    fn allocate_zeroed(&mut self, size: usize, align: usize) -> Option<NonNull<u8>> {
        let at = self.allocate(size, align)?;
        // SAFETY: `size` bytes at `at` are the new block.
        unsafe { at.write_bytes(0, size) };
        Some(at)
    }

    unsafe fn free(&mut self, block: NonNull<u8>, _align: usize) {
        // A block that is not live stays without effect: a broken heap built on this
        // one may hand anything in.
        let Some(index) = self.find(block) else {
            return;
        };
        self.used.copy_within(index + 1..self.count, index);
        self.count -= 1;
    }

    unsafe fn resize(
        &mut self,
        block: NonNull<u8>,
        size: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        let old = self.used[self.find(block)?].size;
        let new = self.allocate(size, align)?;
        // SAFETY: both blocks are live and disjoint; `old` and `size` are their sizes.
        unsafe {
            new.copy_from_nonoverlapping(block, old.min(size));
            self.free(block, align);
        }
        Some(new)
    }

    fn sound(&self) -> bool {
        self.used[..self.count]
            .windows(2)
            .all(|pair| pair[0].start + pair[0].size <= pair[1].start)
    }

    fn live(&self) -> Option<usize> {
        Some(self.used[..self.count].iter().map(|used| used.size).sum())
    }
}
