//! The paper's two algorithms, carried out literally, with a switch for every correction.
//!
//! "Segregated-fit and TLSF on a host for device memory" prints allocation and deallocation in
//! segregated fit (algorithms 1 and 2). Here they run line by line. With every correction they
//! keep all invariants and place every block where [`PaperHeap`] does; with any one left out, a
//! handful of requests breaks an invariant, and the test says which (docs/device.md lists them).
//!
//! What is read in the printed algorithms' favour: `ht[a]` of an address without a record is a
//! new one that is not free, as in C++; blocks are held by reference; bits are numbered from
//! zero; `prev_free` and `next_free` are `prev` and `next`; null is address 0.

use std::collections::{BTreeMap, HashMap, HashSet};

use metes_device::heap::{Extent, PaperHeap};
use metes_random::Random;

/// What the printed algorithms need. Each is an error of theirs while it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Correction {
    /// Algorithm 1: look for a list among those that are not empty.
    SeekAvailable,
    /// Algorithm 1: refuse when there is none.
    Refuse,
    /// Algorithm 1: clear the bit of a list that becomes empty.
    ClearTaken,
    /// Algorithm 1: the new head of a list has no predecessor.
    ResetHead,
    /// Algorithm 2: take the left neighbour off its list before it is put on another.
    UnlinkLeft,
    /// Algorithm 2: clear the bit of that list if it becomes empty.
    ClearLeft,
    /// Algorithm 2: `remove(right)` unlinks it from its neighbours on the list.
    UnlinkRight,
    /// Algorithm 2: and if it was the head, its successor becomes it.
    MoveHead,
    /// Algorithm 2: the block that is freed is on no list, so its bit is not to be cleared.
    KeepBit,
    /// Algorithm 2: nor is it to be unlinked; `remove(it)` erases its record alone.
    EraseOnly,
    /// Algorithm 2: when all three merge, the record of the middle one is erased, too.
    EraseMiddle,
    /// Algorithm 2: free only a block in use.
    CheckUse,
}
use Correction::*;

const ALL: [Correction; 12] = [
    SeekAvailable,
    Refuse,
    ClearTaken,
    ResetHead,
    UnlinkLeft,
    ClearLeft,
    UnlinkRight,
    MoveHead,
    KeepBit,
    EraseOnly,
    EraseMiddle,
    CheckUse,
];

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Breach {
    /// A list that does not exist is read.
    NoSuchList,
    /// Null is given out although the list of a larger class has a block.
    NullInsteadOfABlock,
    /// The bit of an empty list is set: the next request of its class gets null.
    BitOfAnEmptyList,
    /// The bit of a list with blocks is clear: requests that fit are refused.
    NoBitOfAList,
    /// A list leads to what is no free block of its class.
    ListHoldsNoFreeBlock,
    /// A list leads back into itself.
    Cycle,
    /// A free block is on no list: it is lost.
    LostBlock,
    /// A predecessor is not who it should be.
    WrongPredecessor,
    /// The table has a record where no block begins.
    StaleRecord,
    /// A block in use is given out again, or one outside the memory.
    Overlap,
    /// What is not in use was freed.
    BadFreeObeyed,
}
use Breach::*;

/// How a printed test for the block that is freed is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rounding {
    /// As printed.
    Ceil,
    /// As everywhere else.
    Floor,
}

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    size: u64,
    free: bool,
    next: u64,
    prev: u64,
    prev_adj: u64,
}

/// The addresses begin here, as 0 is null.
const BASE: u64 = 64;
const NULL: u64 = 0;
const CLASSES: usize = 64;

struct Printed {
    corrected: HashSet<Correction>,
    rounding: Rounding,
    ht: HashMap<u64, Block>,
    free_lists: [u64; CLASSES],
    bitmask: u64,
    length: u64,
}

fn floor_log2(size: u64) -> u32 {
    size.ilog2()
}

fn ceil_log2(size: u64) -> u32 {
    size.next_power_of_two().ilog2()
}

impl Printed {
    fn new(length: u64, corrected: impl IntoIterator<Item = Correction>) -> Self {
        let whole = Block {
            size: length,
            free: true,
            ..Block::default()
        };
        let mut free_lists = [NULL; CLASSES];
        free_lists[floor_log2(length) as usize] = BASE;
        Printed {
            corrected: corrected.into_iter().collect(),
            rounding: Rounding::Ceil,
            ht: HashMap::from([(BASE, whole)]),
            free_lists,
            bitmask: 1 << floor_log2(length),
            length,
        }
    }

    fn has(&self, correction: Correction) -> bool {
        self.corrected.contains(&correction)
    }

    /// `ht[addr]`
    fn ht(&mut self, addr: u64) -> &mut Block {
        self.ht.entry(addr).or_default()
    }

    /// Algorithm 1. Null where nothing is given.
    fn allocate(&mut self, size: u64) -> Result<u64, Breach> {
        // Find available free list large enough to accommodate
        let mut requested_bins = 1_u64 << ceil_log2(size);
        if self.has(SeekAvailable) {
            requested_bins = self.bitmask & !(requested_bins - 1);
        }
        if self.has(Refuse) && requested_bins == 0 {
            return Ok(NULL);
        }
        // ffs, from zero
        let order = requested_bins.trailing_zeros() as usize;
        // Lookup head of candidate list in hashtable
        let it = *self.free_lists.get(order).ok_or(NoSuchList)?;
        let next_free = self.ht(it).next;
        self.free_lists[order] = next_free;
        if self.has(ResetHead) {
            self.ht(next_free).prev = NULL;
        }
        if self.has(ClearTaken) && next_free == NULL {
            self.bitmask &= !(1 << order);
        }
        self.ht(it).free = false;
        // Split off surplus portion of block
        if size < self.ht(it).size {
            let mut new_block = Block {
                size: self.ht(it).size - size,
                free: true,
                prev_adj: it,
                ..Block::default()
            };
            let addr = it + size;
            self.ht(it).size = size;
            // Place new block at head of free list in its size class
            let bin_idx = floor_log2(new_block.size) as usize;
            new_block.next = self.free_lists[bin_idx];
            new_block.prev = NULL;
            self.ht(new_block.next).prev = addr;
            self.free_lists[bin_idx] = addr;
            self.bitmask |= 1 << bin_idx;
            self.ht(addr + new_block.size).prev_adj = addr;
            // Insert into the hashtable
            *self.ht(addr) = new_block;
        }
        Ok(it)
    }

    /// Algorithm 2; whether the address was accepted.
    fn deallocate(&mut self, addr: u64) -> bool {
        let known = self.ht.get(&addr);
        if self.has(CheckUse) && known.is_none_or(|block| block.free || block.size == 0) {
            return false;
        }
        let mut it = addr;
        let left = self.ht(it).prev_adj;
        let right = it + self.ht(it).size;
        if self.ht(left).free {
            if self.has(UnlinkLeft) {
                self.unlink_left(left);
            }
            if self.ht(right).free {
                // Coalesce all 3, erase it and right
                self.ht(left).size += self.ht[&it].size + self.ht[&right].size;
                let behind = right + self.ht(right).size;
                self.ht(behind).prev_adj = left;
                // Update bitmask
                self.unset_bit_of(right);
                self.remove(right);
                if self.has(EraseMiddle) {
                    self.ht.remove(&it);
                }
            } else {
                // Coalesce left block, erase it
                self.ht(left).size += self.ht[&it].size;
                self.ht(right).prev_adj = left;
                let Block {
                    prev, next, size, ..
                } = *self.ht(it);
                if !self.has(KeepBit) && prev == next {
                    let unset_bit = match self.rounding {
                        Rounding::Ceil => 1_u64 << ceil_log2(size),
                        Rounding::Floor => 1_u64 << floor_log2(size),
                    };
                    self.bitmask &= !unset_bit;
                }
                match self.has(EraseOnly) {
                    true => drop(self.ht.remove(&it)),
                    false => self.remove(it),
                }
            }
            it = left;
        } else if self.ht(right).free {
            // Coalesce right block
            self.ht(it).size += self.ht[&right].size;
            let behind = right + self.ht(right).size;
            self.ht(behind).prev_adj = it;
            // Update bitmask
            self.unset_bit_of(right);
            self.remove(right);
        }
        // Put coalesced block in free list in its size class
        let bin_idx = floor_log2(self.ht(it).size.max(1)) as usize;
        let next = self.free_lists[bin_idx];
        self.ht(it).next = next;
        self.ht(next).prev = it;
        self.ht(it).prev = NULL;
        self.free_lists[bin_idx] = it;
        self.ht(it).free = true;
        self.bitmask |= 1 << bin_idx;
        true
    }

    /// `if right.prev = right.next`: clears the bit of its class.
    fn unset_bit_of(&mut self, right: u64) {
        let Block {
            prev, next, size, ..
        } = *self.ht(right);
        if prev == next {
            self.bitmask &= !(1 << floor_log2(size));
        }
    }

    /// `remove`, which the paper does not define.
    fn remove(&mut self, block: u64) {
        self.unlink(block);
        self.ht.remove(&block);
    }

    fn unlink(&mut self, block: u64) {
        let Block {
            prev, next, size, ..
        } = *self.ht(block);
        if self.has(UnlinkRight) {
            self.ht(next).prev = prev;
            if prev != NULL {
                self.ht(prev).next = next;
            }
        }
        if self.has(MoveHead) && prev == NULL {
            self.free_lists[floor_log2(size) as usize] = next;
        }
    }

    /// A correction: nothing is printed here.
    fn unlink_left(&mut self, left: u64) {
        let Block {
            prev, next, size, ..
        } = *self.ht(left);
        let bin_idx = floor_log2(size) as usize;
        self.ht(next).prev = prev;
        match prev {
            NULL => self.free_lists[bin_idx] = next,
            prev => self.ht(prev).next = next,
        }
        if self.has(ClearLeft) && self.free_lists[bin_idx] == NULL {
            self.bitmask &= !(1 << bin_idx);
        }
    }

    /// Whether lists, bits and table are those of the memory, in which `live` blocks are used.
    fn check(&self, live: &BTreeMap<u64, u64>) -> Result<(), Breach> {
        // What is free is what is not in use.
        let mut free = BTreeMap::new();
        let mut at = BASE;
        for (&addr, &size) in live {
            if addr > at {
                free.insert(at, addr - at);
            }
            at = addr + size;
        }
        if at < BASE + self.length {
            free.insert(at, BASE + self.length - at);
        }
        let mut listed = HashSet::new();
        for (class, &head) in self.free_lists.iter().enumerate() {
            let (mut before, mut block) = (NULL, head);
            while block != NULL {
                if !listed.insert(block) {
                    return Err(Cycle);
                }
                let record = self.ht.get(&block).ok_or(ListHoldsNoFreeBlock)?;
                let size = free.get(&block).ok_or(ListHoldsNoFreeBlock)?;
                if record.size != *size || floor_log2(*size) as usize != class {
                    return Err(ListHoldsNoFreeBlock);
                }
                if record.prev != before {
                    return Err(WrongPredecessor);
                }
                before = block;
                block = record.next;
            }
        }
        if free.keys().any(|addr| !listed.contains(addr)) {
            return Err(LostBlock);
        }
        for (class, &head) in self.free_lists.iter().enumerate() {
            match (self.bitmask >> class & 1 == 1, head != NULL) {
                (true, false) => return Err(BitOfAnEmptyList),
                (false, true) => return Err(NoBitOfAList),
                _ => {}
            }
        }
        // Null and the end of the memory may have records, which are no blocks.
        for (&addr, record) in &self.ht {
            let block = live.contains_key(&addr) || free.contains_key(&addr);
            if !block && addr != NULL && addr != BASE + self.length {
                return Err(StaleRecord);
            }
            if block && record.free != free.contains_key(&addr) {
                return Err(StaleRecord);
            }
        }
        Ok(())
    }
}

/// A request, as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Allocate(u64),
    Free(u64),
    FreeAgain(u64),
}

/// Makes `count` random requests, and `see` each answer; the requests until something broke,
/// and what.
fn broken(
    heap: &mut Printed,
    seed: u64,
    count: usize,
    mut see: impl FnMut(Told, u64),
) -> Option<(Vec<Told>, Breach)> {
    let mut random = Random::new(seed);
    let mut live: BTreeMap<u64, u64> = BTreeMap::new();
    let mut freed: Vec<u64> = Vec::new();
    let mut told = Vec::new();
    let largest = heap.length / 2;
    for _ in 0..count {
        let kind = random.below(8);
        if kind == 0 && !freed.is_empty() {
            let addr = freed[random.below(freed.len() as u64) as usize];
            if !live.contains_key(&addr) {
                told.push(Told::FreeAgain(addr));
                if heap.deallocate(addr) {
                    return Some((told, BadFreeObeyed));
                }
            }
        } else if kind < 4 && !live.is_empty() {
            let index = random.below(live.len() as u64) as usize;
            let addr = *live.keys().nth(index)?;
            told.push(Told::Free(addr));
            live.remove(&addr);
            freed.push(addr);
            if !heap.deallocate(addr) {
                return Some((told, LostBlock));
            }
            see(Told::Free(addr), addr);
        } else {
            let size = 1 + random.below(largest);
            told.push(Told::Allocate(size));
            let class = ceil_log2(size) as usize;
            let fits = heap.free_lists[class..].iter().any(|&head| head != NULL);
            match heap.allocate(size) {
                Err(breach) => return Some((told, breach)),
                Ok(NULL) if fits => return Some((told, NullInsteadOfABlock)),
                Ok(NULL) => see(Told::Allocate(size), NULL),
                Ok(addr) => {
                    let end = addr + size;
                    let inside = addr >= BASE && end <= BASE + heap.length;
                    let before = live.range(..end).next_back();
                    if !inside || before.is_some_and(|(at, length)| at + length > addr) {
                        return Some((told, Overlap));
                    }
                    live.insert(addr, size);
                    see(Told::Allocate(size), addr);
                }
            }
        }
        if let Err(breach) = heap.check(&live) {
            return Some((told, breach));
        }
    }
    None
}

#[test]
fn corrected_they_are_sound_and_place_blocks_where_the_library_does() {
    for (seed, length) in [(1, 64), (2, 1000), (3, 4096), (4, 100_000)] {
        let mut heap = Printed::new(length, ALL);
        let mut library = PaperHeap::hashed(Extent {
            bytes: length,
            granule: 1,
            blocks: length as usize,
        })
        .unwrap();
        let mut served = 0;
        let found = broken(&mut heap, seed, 5000, |told, addr| match told {
            Told::Allocate(size) => {
                let offset = library.allocate(size, 1).ok().map(|block| block.offset);
                assert_eq!(offset, addr.checked_sub(BASE), "{size} bytes");
                served += u64::from(offset.is_some());
            }
            _ => {
                let place = usize::try_from(addr - BASE).unwrap();
                library.free(place).unwrap();
            }
        });
        assert_eq!(found, None);
        assert!(served > 1000, "{served}");
        library.check().unwrap();
    }
}

/// The shortest sequence of requests that was found to break something.
fn witness(make: impl Fn() -> Printed) -> Option<(Vec<Told>, Breach)> {
    (1..12).find_map(|count| (0..3000).find_map(|seed| broken(&mut make(), seed, count, |_, _| {})))
}

#[test]
fn every_correction_is_needed() {
    let expected = [
        (SeekAvailable, NullInsteadOfABlock),
        (Refuse, NoSuchList),
        (ClearTaken, BitOfAnEmptyList),
        (ResetHead, WrongPredecessor),
        (UnlinkLeft, ListHoldsNoFreeBlock),
        (ClearLeft, BitOfAnEmptyList),
        (UnlinkRight, ListHoldsNoFreeBlock),
        (MoveHead, ListHoldsNoFreeBlock),
        (KeepBit, NoBitOfAList),
        (EraseOnly, LostBlock),
        (EraseMiddle, StaleRecord),
        (CheckUse, BadFreeObeyed),
    ];
    assert_eq!(expected.map(|(correction, _)| correction), ALL);
    let found = ALL.map(|left_out| {
        let corrected = || ALL.into_iter().filter(move |other| *other != left_out);
        let (told, breach) = witness(|| Printed::new(16, corrected())).unwrap();
        println!("{left_out:?}: {breach:?} after {told:?}");
        (left_out, breach)
    });
    assert_eq!(found, expected);
}

#[test]
fn as_printed_the_first_request_gets_null() {
    let (told, breach) = witness(|| Printed::new(16, [])).unwrap();
    assert!(matches!(told[..], [Told::Allocate(_)]), "{told:?}");
    assert_eq!(breach, NullInsteadOfABlock);
}

#[test]
fn the_bit_of_the_freed_block_is_wrong_by_floor_too() {
    let corrected = ALL.into_iter().filter(|other| *other != KeepBit);
    let found = witness(|| Printed {
        rounding: Rounding::Floor,
        ..Printed::new(16, corrected.clone())
    });
    assert_eq!(found.map(|(_, breach)| breach), Some(NoBitOfAList));
}

/// `right.prev = right.next` tells a list's only block exactly where heads have no predecessor:
/// it is not wrong by itself.
#[test]
fn the_printed_test_for_an_only_block_relies_on_heads_without_predecessor() {
    let class = floor_log2(8) as usize;
    for (left_out, cleared) in [(None, true), (Some(ResetHead), false)] {
        let corrected = ALL.into_iter().filter(|other| Some(*other) != left_out);
        let mut heap = Printed::new(64, corrected);
        let held: Vec<u64> = (0..8).map(|_| heap.allocate(8).unwrap()).collect();
        assert!(heap.deallocate(held[2]) && heap.deallocate(held[4]));
        assert_eq!(heap.allocate(8), Ok(held[4]));
        // The block at 2 is the only one of its class, and merges with that at 1.
        assert!(heap.deallocate(held[1]));
        assert_eq!(heap.bitmask >> class & 1 == 0, cleared);
        assert_eq!(heap.free_lists[class] == NULL, cleared);
        assert!(!heap.ht.contains_key(&held[2]));
    }
}
