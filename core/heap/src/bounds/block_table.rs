//! Compact-fit behind a block table: memory for the frames of the live blocks, and for tables.
//!
//! Proof: `docs/guarantees.md#behind-a-block-table`. Free page-blocks have no frames, so what κ
//! bounds here are logical pages: their records and entries, not their memory.

use super::compact::{CITATION, compact_fit};
use super::demand::product;
use super::{
    Bound, BoundError, Candidate, Demand, Geometry, Load, Standing, Text, Time, Times, necessary,
};
use crate::compact::{ENTRY, Kappa, Needs, Options};

/// The guarantee of [`CompactFit::with_block_table`](crate::compact::CompactFit::with_block_table)
/// for a demand, with at most `moves` moves under way at once. O(classes), and some steps more
/// where tables are large.
///
/// # Errors
/// As [`compact_fit`].
pub fn block_table(options: &Options, moves: u64, demand: &Demand) -> Result<Bound, BoundError> {
    let pages = compact_fit(options, moves, demand)?.pages;
    let granule = options.partition.granule as u128;
    let live = u128::from(demand.live);
    let (frames, request) = densest(options, demand);
    let blocks = product(live, frames)? / request;
    let frame_bytes = product(blocks, granule)?;
    let handles = product(live / u128::from(demand.smallest), ENTRY as u128)?;
    let bytes = Room::new(options).of(pages, frame_bytes + handles)?;
    let candidate = Candidate {
        method: "compaction of a table",
        bytes,
        standing: Standing::Proved,
        formula: Text::format(format_args!(
            "{granule} floor(M f/r) + 8 floor(M/l) + tables, M = {live}; a request of r = {request} \
             takes the most frames a byte, f = {frames}: {frame_bytes} + {handles} + {} with {pages} \
             logical pages",
            bytes - frame_bytes - handles
        )),
        citation: CITATION,
        proof: "docs/guarantees.md#behind-a-block-table",
    };
    let mut bound = Bound {
        time: Times {
            allocate: Time::Linear,
            free: Time::Linear,
            resize: Time::Linear,
            access: Time::Constant,
        },
        heap_bytes: None,
        outside_bytes: 0,
        used: None,
        others: Default::default(),
        necessary_bytes: necessary(&Geometry::UNIT, demand)?,
        note: Some(
            "blocks are not contiguous, so it may do with less than is necessary for others",
        ),
    };
    bound.offer(&Load::new(&Geometry::UNIT, demand)?, candidate);
    Ok(bound)
}

/// The most frames a requested byte: frames of a page-block, and the smallest request that it
/// serves.
fn densest(options: &Options, demand: &Demand) -> (u128, u128) {
    let (mut most, mut below) = ((0, 1), 0);
    for block in options.partition.classes(Needs::RECORD) {
        let request = demand.smallest.max(below + 1);
        below = (block - Needs::RECORD) as u64;
        if request > below || request > demand.largest {
            continue;
        }
        let own = (
            (block / options.partition.granule) as u128,
            u128::from(request),
        );
        if own.0 * most.1 > most.0 * own.1 {
            most = own;
        }
    }
    most
}

/// What the layout of a heap leaves of its memory.
struct Room {
    fixed: u128,
    alignment: u128,
    record: u128,
    page: u128,
    /// Bytes of the entries of a page.
    entries: u128,
    /// Logical pages beside those that memory could fill.
    slack: u128,
}

impl Room {
    fn new(options: &Options) -> Self {
        let needs = Needs::of(options);
        let partition = &options.partition;
        let classes = partition.classes(Needs::RECORD).count() as u128;
        let slack = match options.kappa {
            Kappa::Finite(kappa) => u128::from(kappa.min(8)),
            Kappa::Infinite => 8,
        };
        Room {
            fixed: needs.fixed as u128,
            alignment: needs.alignment as u128,
            record: needs.page_record as u128,
            page: partition.page as u128,
            entries: (partition.page / partition.granule * size_of::<u32>()) as u128,
            slack: classes * slack,
        }
    }

    /// Records of pages in `bytes` of memory, at most and at least.
    fn records(&self, bytes: u128) -> (u128, u128) {
        let each = self.page / 2 + self.record;
        let left = bytes.saturating_sub(self.fixed);
        (left / each, left.saturating_sub(self.alignment) / each)
    }

    /// Logical pages that `bytes` have at least, and bytes of frames and handles.
    fn left(&self, bytes: u128) -> (u128, u128) {
        let (most, least) = self.records(bytes);
        let wanted = bytes / self.page * 5 / 4 + self.slack;
        let tables = self.fixed + self.alignment + most * self.record;
        let space = bytes.saturating_sub(tables);
        let pages = least.min(wanted).min(space / 2 / self.entries);
        let behind = most.min(wanted) * self.entries + 2 * ENTRY as u128 + 16;
        (pages, space.saturating_sub(behind))
    }

    /// Bytes with at least so many logical pages, and so many bytes of frames and handles.
    fn of(&self, pages: u128, inner: u128) -> Result<u128, BoundError> {
        let inner = inner.max(self.page + ENTRY as u128);
        let by_memory = product(
            pages.saturating_sub(self.slack).div_ceil(5) * 4 + 4,
            self.page,
        )?;
        let by_records = product(pages, self.page / 2 + self.record)? + self.fixed + self.alignment;
        let mut bytes = by_memory.max(by_records).max(inner);
        loop {
            let (own, left) = self.left(bytes);
            if own >= pages && left >= inner {
                return Ok(bytes);
            }
            let lacking = inner.saturating_sub(left);
            let entries = product(pages.saturating_sub(own), 2 * self.entries)?;
            let next = bytes.checked_add(lacking.max(entries).max(16));
            bytes = next.ok_or(BoundError::Overflow)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::Memory;
    use crate::compact::{CompactFit, Partition};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        /// Phases that fill the heap with one size and thin it out, in exactly the bytes of the
        /// bound.
        #[test]
        fn nothing_within_the_demand_is_refused(
            page in 8_u32..14,
            granule in 4_u32..7,
            kappa in 0_u32..12,
            live in 1_u64..60_000,
            largest in 1_u64..2000,
            smallest in 1_u64..200,
            seed: u64,
        ) {
            let page = 1_usize << page;
            let options = Options {
                partition: Partition {
                    page,
                    smallest: 64,
                    largest: page - 8,
                    factor: 1250,
                    granule: 1 << granule,
                },
                kappa: if kappa == 0 { Kappa::Infinite } else { Kappa::Finite(kappa) },
                increment: None,
            };
            let largest = largest.min(page as u64 - 8);
            let smallest = smallest.min(largest);
            let demand = Demand::new(live.max(largest), largest, smallest);
            let bound = block_table(&options, 0, &demand).unwrap();
            let bytes = bound.heap_bytes.unwrap() as usize;
            let mut memory = vec![0_u64; bytes.div_ceil(8) + 1];
            let start = core::ptr::NonNull::from(memory.as_mut_slice()).cast();
            // SAFETY: the heap is dropped before the memory.
            let memory_of_heap = unsafe { Memory::from_raw(start, bytes) };
            let mut heap = CompactFit::with_block_table(&options, memory_of_heap).unwrap();
            let mut state = seed | 1;
            let mut next = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                (state >> 33) % below
            };
            let mut held: Vec<(crate::compact::Handle, u64)> = Vec::new();
            let mut now = 0;
            for _ in 0..12 {
                let size = smallest + next(largest - smallest + 1);
                while now + size <= demand.live {
                    let block = heap.allocate(size as usize, 1);
                    prop_assert!(block.is_ok(), "{:?} of {} in {} with {} live", block, size, bytes, now);
                    held.push((block.unwrap(), size));
                    now += size;
                }
                let every = 2 + next(6);
                held.retain(|&(handle, size)| {
                    let stays = next(every) == 0;
                    if !stays {
                        heap.free(handle).unwrap();
                        now -= size;
                    }
                    stays
                });
            }
            drop(memory);
        }
    }
}
