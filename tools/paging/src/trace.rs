//! A program's blocks and touches, replayed on both systems: how long its calls may take at most,
//! and how many pages have frames.
//!
//! Time is counted in instructions: for each call, what it did, each part of it at the most that
//! the part can take ([`Costs`]). A system's *footprint* is its pages with a frame.
//!
//! Invariant: both systems see the same steps in the same order, and place blocks by the same TLSF.

use std::collections::HashMap;

use metes_pages::{Access, Domain, Frames, PagedHeap, Pages20, zeroed};
use metes_trace::TouchOperation;
use serde::Serialize;

use crate::bench::Costs;
use crate::conventional::Conventional;
use crate::placement::Blocks;

/// Pages of the address space, 4 KiB each, and frames.
pub const PAGES: u32 = 1 << 20;
/// log2 of the bytes of a page.
pub const SHIFT: u32 = 12;

/// What one system did with the steps.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Played {
    /// Allocations.
    pub allocations: u64,
    /// Frees.
    pub frees: u64,
    /// Most instructions of an allocation.
    pub allocate_max: u64,
    /// Most instructions of a free.
    pub free_max: u64,
    /// Most pages with a frame.
    pub footprint: u32,
    /// Page faults of the program's own accesses.
    pub faults: u64,
    /// Page faults of the heap's tags.
    pub tag_faults: u64,
    /// Calls, in their order.
    #[serde(skip)]
    pub calls: Vec<Point>,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Whether it was an allocation.
    pub allocation: bool,
    /// Bytes of the block.
    pub size: u64,
    /// Instructions.
    pub instructions: u64,
    /// Pages with a frame behind it.
    pub pages: u32,
}

/// Why steps could not be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPlayed {
    /// A block that the address space has no room for.
    #[error("step {step}: no room for a block of {size} bytes in {PAGES} pages of 4 KiB")]
    NoRoom {
        /// Number of the step, from 1.
        step: usize,
        /// Bytes of the block.
        size: u64,
    },
    /// So many blocks in use at a time.
    #[error("{blocks} blocks are in use at a time, of which no table can be made here: {why}")]
    Blocks {
        /// How many.
        blocks: usize,
        /// Why not.
        why: String,
    },
    /// A block that is not in use, or a touch beyond its end, or a name given twice.
    #[error("step {step}: block {block} is not in use, has no such byte, or is allocated twice")]
    Block {
        /// Number of the step, from 1.
        step: usize,
        /// The block.
        block: u64,
    },
}

/// One of the two systems.
trait System {
    fn allocate(&mut self, size: u64, align: u64) -> Option<(u64, u64)>;
    fn free(&mut self, address: u64) -> Option<u64>;
    /// Whether it was a page fault.
    fn touch(&mut self, address: u64) -> bool;
    fn mapped(&self) -> u32;
    fn tag_faults(&self) -> u64;
}

/// Replays steps on the constant-time system, and on the conventional one.
///
/// # Errors
/// Steps that do not belong together, or need more than the address space.
pub fn play(steps: &[TouchOperation], costs: &Costs) -> Result<(Played, Played), NotPlayed> {
    let blocks = most_blocks(steps);
    let bytes = u64::from(PAGES) << SHIFT;
    let mut space = zeroed::<Pages20>();
    space.open(PAGES, Domain::FIRST).expect("its own size");
    let mut sharers = vec![0; PAGES as usize];
    let unmade = |why: metes_device::heap::Unmade| NotPlayed::Blocks {
        blocks,
        why: why.to_string(),
    };
    let placement = Blocks::new(bytes, blocks).map_err(unmade)?;
    let heap = PagedHeap::new(placement, &mut space, &mut sharers, SHIFT).expect("as many pages");
    let links = vec![0; PAGES as usize].into_boxed_slice();
    let frames = Frames::new(links, PAGES).expect("as many links");
    let constant = run(
        steps,
        Constant {
            heap,
            frames,
            costs,
        },
    )?;
    let table = Conventional::new(PAGES, SHIFT, blocks).map_err(unmade)?;
    let conventional = run(
        steps,
        Linear {
            heap: table,
            costs,
            tag_faults: 0,
        },
    )?;
    Ok((constant, conventional))
}

/// The most blocks in use at a time, at least one.
fn most_blocks(steps: &[TouchOperation]) -> usize {
    let (mut used, mut most) = (0_usize, 1);
    for step in steps {
        match step {
            TouchOperation::Allocate { .. } => used += 1,
            TouchOperation::Free { .. } => used = used.saturating_sub(1),
            TouchOperation::Read { .. } | TouchOperation::Write { .. } => {}
        }
        most = most.max(used);
    }
    most
}

fn run(steps: &[TouchOperation], mut system: impl System) -> Result<Played, NotPlayed> {
    let mut played = Played::default();
    let mut used = HashMap::<u64, (u64, u64)>::new();
    for (number, &step) in steps.iter().enumerate() {
        let bad = |block| NotPlayed::Block {
            step: number + 1,
            block,
        };
        match step {
            TouchOperation::Allocate { block, size, align } => {
                let no_room = NotPlayed::NoRoom {
                    step: number + 1,
                    size,
                };
                let (address, instructions) = system
                    .allocate(size.max(1), u64::from(align))
                    .ok_or(no_room)?;
                if used.insert(block, (address, size.max(1))).is_some() {
                    return Err(bad(block));
                }
                played.allocations += 1;
                played.allocate_max = played.allocate_max.max(instructions);
                let pages = system.mapped();
                played.calls.push(Point {
                    allocation: true,
                    size,
                    instructions,
                    pages,
                });
            }
            TouchOperation::Free { block } => {
                let (address, size) = used.remove(&block).ok_or(bad(block))?;
                let instructions = system.free(address).ok_or(bad(block))?;
                played.frees += 1;
                played.free_max = played.free_max.max(instructions);
                let pages = system.mapped();
                played.calls.push(Point {
                    allocation: false,
                    size,
                    instructions,
                    pages,
                });
            }
            TouchOperation::Read { block, offset } | TouchOperation::Write { block, offset } => {
                let &(address, size) = used.get(&block).ok_or(bad(block))?;
                if offset >= size {
                    return Err(bad(block));
                }
                played.faults += u64::from(system.touch(address + offset));
            }
        }
        played.footprint = played.footprint.max(system.mapped());
    }
    played.tag_faults = system.tag_faults();
    Ok(played)
}

/// The constant-time system.
struct Constant<'a, 'b> {
    heap: PagedHeap<'a, Blocks, Tables20, Index20>,
    frames: Frames<Box<[u32]>>,
    costs: &'b Costs,
}

type Tables20 = metes_pages::Wide<{ 1 << 20 }>;
type Index20 = metes_pages::index::Bitmap64<16384, 256, 4>;

impl System for Constant<'_, '_> {
    fn allocate(&mut self, size: u64, align: u64) -> Option<(u64, u64)> {
        let (before, _) = self.heap.regions();
        let offset = self.heap.allocate(size, align).ok()?;
        let maps = self.heap.regions().0 - before;
        Some((offset, self.costs.place + maps * self.costs.map))
    }

    fn free(&mut self, address: u64) -> Option<u64> {
        let (_, before) = self.heap.regions();
        self.heap.free(address, &mut self.frames).ok()?;
        let unmaps = self.heap.regions().1 - before;
        Some(self.costs.release + unmaps * self.costs.unmap)
    }

    fn touch(&mut self, address: u64) -> bool {
        let touched = self.heap.touch(address, Access::Write, &mut self.frames);
        matches!(touched, Ok((_, Some(_))))
    }

    fn mapped(&self) -> u32 {
        self.heap.space().mapped()
    }

    fn tag_faults(&self) -> u64 {
        0
    }
}

/// The conventional system.
struct Linear<'b> {
    heap: Conventional,
    costs: &'b Costs,
    tag_faults: u64,
}

impl System for Linear<'_> {
    fn allocate(&mut self, size: u64, align: u64) -> Option<(u64, u64)> {
        let (address, work) = self.heap.allocate(size, align)?;
        self.tag_faults += u64::from(work.faults);
        let faults = u64::from(work.faults) * self.costs.table_map_page;
        Some((address, self.costs.place + faults))
    }

    fn free(&mut self, address: u64) -> Option<u64> {
        let work = self.heap.free(address)?;
        let pages = match work.unmapped {
            0 => 0,
            pages => self.costs.table_unmap + u64::from(pages) * self.costs.table_unmap_page,
        };
        Some(self.costs.release + pages)
    }

    fn touch(&mut self, address: u64) -> bool {
        self.heap.touch(address)
    }

    fn mapped(&self) -> u32 {
        self.heap.mapped()
    }

    fn tag_faults(&self) -> u64 {
        self.tag_faults
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use metes_random::Random;

    use super::*;

    /// Pages that have a frame: those that were touched since a block was last on them. Linear.
    #[derive(Default)]
    struct Naive {
        blocks: BTreeMap<u64, u64>,
        touched: BTreeSet<u64>,
    }

    impl Naive {
        fn release(&mut self) {
            let covered: BTreeSet<u64> = self
                .blocks
                .iter()
                .flat_map(|(&offset, &size)| offset >> SHIFT..=(offset + size - 1) >> SHIFT)
                .collect();
            self.touched.retain(|page| covered.contains(page));
        }
    }

    #[test]
    fn pages_have_frames_while_blocks_that_were_touched_lie_on_them() {
        for seed in 0..4 {
            let mut random = Random::new(seed);
            let pages = 500;
            let mut space = zeroed::<metes_pages::Pages12>();
            space.open(pages, Domain::FIRST).unwrap();
            let mut sharers = vec![0; pages as usize];
            let blocks = Blocks::new(u64::from(pages) << SHIFT, 400).unwrap();
            let mut heap = PagedHeap::new(blocks, &mut space, &mut sharers, SHIFT).unwrap();
            let mut frames = Frames::new(vec![0; 500].into_boxed_slice(), 500).unwrap();
            let mut naive = Naive::default();
            for _ in 0..1000 {
                let some = random.below(naive.blocks.len().max(1) as u64) as usize;
                let some = naive
                    .blocks
                    .iter()
                    .nth(some)
                    .map(|(&offset, &size)| (offset, size));
                match (random.below(4), some) {
                    (0, _) => {
                        // Sizes at and around pages are as likely as others.
                        let longest = 1 << random.below(18);
                        let size = match random.below(3) {
                            0 => (1 + random.below(4)) << SHIFT,
                            _ => 1 + random.below(longest),
                        };
                        let align = 1 << random.below(14);
                        if let Ok(offset) = heap.allocate(size, align) {
                            assert_eq!(offset % align, 0);
                            naive.blocks.insert(offset, size);
                        }
                    }
                    (1, Some((offset, _))) => {
                        heap.free(offset, &mut frames).unwrap();
                        assert!(heap.free(offset, &mut frames).is_err(), "twice");
                        naive.blocks.remove(&offset);
                        naive.release();
                    }
                    (_, Some((offset, size))) => {
                        let byte = offset + random.below(size);
                        let (_, mapped) = heap.touch(byte, Access::Write, &mut frames).unwrap();
                        assert_eq!(mapped.is_some(), naive.touched.insert(byte >> SHIFT));
                    }
                    (_, None) => {}
                }
                assert_eq!(heap.space().mapped() as usize, naive.touched.len());
                assert_eq!(frames.used() as usize, naive.touched.len());
            }
            for offset in naive.blocks.into_keys() {
                heap.free(offset, &mut frames).unwrap();
            }
            assert_eq!((heap.space().regions(), frames.used()), (0, 0));
        }
    }

    #[test]
    fn both_systems_replay_the_same_steps() {
        let text = "a,0,10000\na,1,100000\nw,1,0\nw,1,99999\nw,1,50000\nf,0\nf,1";
        let steps = metes_trace::TouchReader::new(text.as_bytes(), "a test".as_ref());
        let steps: Vec<_> = steps.collect::<Result<_, _>>().unwrap();
        let costs = Costs {
            place: 1_000,
            release: 2_000,
            map: 10,
            unmap: 20,
            map_page: 30,
            access: 5,
            table_map_page: 40,
            table_access: 5,
            table_unmap: 50,
            table_unmap_page: 1,
        };
        let (constant, conventional) = play(&steps, &costs).unwrap();
        assert_eq!(
            (constant.footprint, constant.faults, constant.tag_faults),
            (3, 3, 0)
        );
        // Pages of its own and two that it shares, one of which block 0 had made.
        assert_eq!((constant.allocate_max, constant.free_max), (1_020, 2_060));
        // The heap's end falls from page 27 to page 1 when the last block goes.
        assert_eq!(
            (conventional.allocate_max, conventional.free_max),
            (1_080, 2_076)
        );
        assert_eq!(
            play(&steps[2..], &costs).unwrap_err(),
            NotPlayed::Block { step: 1, block: 1 }
        );
    }
}
