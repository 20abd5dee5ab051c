//! What a program's touches come to in pages: the operations that a heap over constant-time pages
//! makes, for whoever replays them elsewhere, such as the simulated core.
//!
//! Invariant: every operation is one that the heap's space granted, in its order.

use std::collections::{BTreeSet, HashMap};

use metes_pages::{Access, Domain, Frames, PagedHeap, Pages16, Rights, zeroed};
use metes_trace::TouchOperation;

use crate::operations::Operation;
use crate::placement::Blocks;

/// Pages that a space of this module has at most.
pub const MOST_PAGES: u32 = 1 << 16;

/// The page operations of steps, with pages of `1 << shift` bytes: as many steps as come to at most
/// `most` operations and fit into `pages` pages. Writes write the number of their step. O(1) a
/// step, and the regions that it makes or frees.
///
/// # Panics
/// If there are no pages, or more than [`MOST_PAGES`].
pub fn lower(steps: &[TouchOperation], pages: u32, shift: u32, most: usize) -> Vec<Operation> {
    let mut space = zeroed::<Pages16>();
    space.open(pages, Domain::FIRST).expect("1 to 65536 pages");
    let mut sharers = vec![0; pages as usize];
    let blocks = Blocks::new(u64::from(pages) << shift, 1 << 20).expect("sizes that fit");
    let mut heap = PagedHeap::new(blocks, &mut space, &mut sharers, shift).expect("as many pages");
    let links = vec![0; pages as usize].into_boxed_slice();
    let mut frames = Frames::new(links, pages).expect("as many links");
    let mut used = HashMap::<u64, (u64, u64)>::new();
    let mut starts = BTreeSet::new();
    let mut operations = Vec::new();
    let page = |byte: u64| (byte >> shift) as u32;
    for (number, &step) in steps.iter().enumerate() {
        let before = operations.len();
        match step {
            TouchOperation::Allocate { block, size, align } => {
                let Ok(offset) = heap.allocate(size.max(1), u64::from(align)) else {
                    break;
                };
                used.insert(block, (offset, size.max(1)));
                let mut at = page(offset);
                while at <= page(offset + size.max(1) - 1) {
                    let Some(region) = heap.space().region(at) else {
                        break;
                    };
                    if starts.insert(region.start) {
                        operations.push(Operation::Map {
                            start: region.start,
                            count: region.pages,
                            rights: Rights::READ_WRITE,
                        });
                    }
                    at = region.start + region.pages;
                }
            }
            TouchOperation::Free { block } => {
                let Some((offset, size)) = used.remove(&block) else {
                    break;
                };
                if heap.free(offset, &mut frames).is_err() {
                    break;
                }
                let there = starts.range(page(offset)..=page(offset + size - 1));
                let gone: Vec<u32> = there
                    .copied()
                    .filter(|&start| {
                        heap.space()
                            .region(start)
                            .is_none_or(|it| it.rights.is_none())
                    })
                    .collect();
                for start in gone {
                    starts.remove(&start);
                    operations.push(Operation::Unmap(start));
                }
            }
            TouchOperation::Read { block, offset } | TouchOperation::Write { block, offset } => {
                let Some(&(address, _)) = used.get(&block) else {
                    break;
                };
                let writes = matches!(step, TouchOperation::Write { .. });
                let access = if writes { Access::Write } else { Access::Read };
                if heap.touch(address + offset, access, &mut frames).is_err() {
                    break;
                }
                let page = page(address + offset);
                operations.push(match writes {
                    true => Operation::Write {
                        page,
                        value: number as u64,
                    },
                    false => Operation::Read(page),
                });
            }
        }
        if operations.len() > most {
            operations.truncate(before);
            break;
        }
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Outcome, replay};

    #[test]
    fn lowered_operations_are_all_granted() {
        let text = "a,0,10000\na,1,100000\nw,1,0\nw,1,99999\nr,1,50000\nf,0\na,2,100\nf,1\nf,2";
        let steps = metes_trace::TouchReader::new(text.as_bytes(), "a test".as_ref());
        let steps: Vec<_> = steps.collect::<Result<_, _>>().unwrap();
        let operations = lower(&steps, 64, 12, 100);
        let replayed = replay(&operations, 64, 64).unwrap();
        let done = |outcome: &Outcome| matches!(outcome, Outcome::Ok | Outcome::Fault);
        assert!(
            replayed.results.iter().all(done),
            "{replayed:?}\n{operations:?}"
        );
        assert_eq!(
            (replayed.regions, replayed.frames_used, replayed.faults),
            (0, 0, 3)
        );
        let maps = |it: &&Operation| matches!(it, Operation::Map { .. });
        assert_eq!(operations.iter().filter(maps).count(), 5);
        // Whole steps only: each of the first two is two regions.
        assert_eq!(lower(&steps, 64, 12, 3).len(), 2);
        assert_eq!(
            lower(&steps, 4, 12, 100).len(),
            2,
            "the second block has no room"
        );
    }
}
