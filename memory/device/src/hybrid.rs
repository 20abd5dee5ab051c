//! Pools of small slots and lists of everything else, over one range (the paper's hybrid,
//! section III-C).
//!
//! A *slab* is a block of the lists, as long as 64 of the smallest slots and aligned to its
//! length, cut into equal slots whose states are one word: the first free slot is found by one
//! instruction. A size has a list of those of its slabs that have a free slot; a slab that
//! becomes empty goes back to the lists at once, so nothing is hoarded. What finds no slab
//! goes to the lists.
//!
//! **Time.** O(1): at most a step in a slab and one operation of the lists.
//!
//! Invariant: a slab is on its size's list exactly when it has a free slot, and every slab has
//! one in use.

use metes_heap::store::ledger::Lookup;
use metes_heap::{BadFree, Corruption};

use crate::heap::{Block, Classes, Extent, ListHeap, Lists, OffsetHeap, Refusal, Span, Unmade};

/// Slots of a slab, at most: bits of a word.
const SLOTS: usize = 64;
const NONE: u32 = u32::MAX;

/// Which requests slots serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SlotSizes {
    /// Bytes of the smallest slot: a power of two, the granule at least.
    pub smallest: u64,
    /// Requests of up to so many bytes go to slots: at most 16 times the smallest.
    pub largest: u64,
    /// Most slabs at a time. A slab has a record of 40 bytes and one of 4 for every slot.
    pub slabs: usize,
}

/// Why a hybrid heap was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoHybrid {
    /// The sizes of slots make no sense.
    #[error("slots of {} to {} bytes in {} slabs: the smallest is a power of two and a granule at least, the largest at most 16 times as large, and there is a slab", .0.smallest, .0.largest, .0.slabs)]
    Slots(SlotSizes),
    /// The lists were not made.
    #[error(transparent)]
    Lists(#[from] Unmade),
}

/// Names a block of a hybrid heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HybridPlace<P> {
    /// A block of the lists.
    Block(P),
    /// A slot of a slab.
    Slot(Slot),
}

/// A slot, as it was when it was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    slab: u32,
    slot: u32,
    generation: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slab<P> {
    /// Bits of free slots.
    free: u64,
    offset: u64,
    /// Of the lists; none of a spare record.
    block: Option<P>,
    /// The slabs of its size that have a free slot, or the spare records.
    next: u32,
    previous: u32,
    size: u8,
}

#[derive(Clone, Copy, Debug)]
struct Size {
    bytes: u64,
    /// All bits of a slab.
    all: u64,
    first: u32,
}

/// Pools below a threshold, lists above it.
#[derive(Debug)]
pub struct HybridHeap<L: Lookup, I: Lists<L> = Classes> {
    lists: ListHeap<L, I>,
    slot_sizes: SlotSizes,
    slab_shift: u32,
    sizes: Vec<Size>,
    /// The number of the size that serves n times the smallest slot.
    by_units: [u8; 17],
    slabs: Box<[Slab<L::Place>]>,
    spare: u32,
    /// Of the slots of slab s those from 64 s on: odd while a slot is in use.
    generations: Box<[u32]>,
    /// Requested bytes of a slot in use, less than 2^32.
    requested: Box<[u32]>,
    /// The slab at each multiple of a slab's length in the range.
    slab_at: Box<[u32]>,
    slots_used: usize,
    slabs_used: usize,
}

/// Sizes of slots in units of the smallest: at most a quarter of a slot is lost to rounding
/// above the smallest.
const UNITS: [u64; 9] = [1, 2, 3, 4, 6, 8, 10, 12, 16];

impl<L: Lookup, I: Lists<L>> HybridHeap<L, I> {
    /// Pools in front of the lists that `lists` makes. O(records).
    ///
    /// # Errors
    /// [`NoHybrid`].
    pub fn new(
        extent: Extent,
        slot_sizes: SlotSizes,
        lists: impl FnOnce(Extent) -> Result<ListHeap<L, I>, Unmade>,
    ) -> Result<Self, NoHybrid> {
        let SlotSizes {
            smallest,
            largest,
            slabs,
        } = slot_sizes;
        let sound = smallest.is_power_of_two()
            && smallest >= extent.granule
            && smallest <= 1 << 24
            && largest >= smallest
            && largest <= 16 * smallest
            && (1..NONE as usize / SLOTS).contains(&slabs);
        if !sound {
            return Err(NoHybrid::Slots(slot_sizes));
        }
        let lists = lists(extent)?;
        let slab_bytes = SLOTS as u64 * smallest;
        let mut sizes = Vec::new();
        let mut by_units = [0; 17];
        let most = largest.div_ceil(smallest);
        for (number, &size) in UNITS.iter().enumerate() {
            let below = if number == 0 { 0 } else { UNITS[number - 1] };
            if below >= most {
                break;
            }
            by_units[below as usize + 1..=size as usize].fill(number as u8);
            let bytes = size * smallest;
            sizes.push(Size {
                bytes,
                all: u64::MAX >> (SLOTS as u64 - slab_bytes / bytes),
                first: NONE,
            });
        }
        let records = (0..slabs as u32).map(|number| Slab {
            free: 0,
            offset: 0,
            block: None,
            next: if number + 1 < slabs as u32 {
                number + 1
            } else {
                NONE
            },
            previous: NONE,
            size: 0,
        });
        Ok(HybridHeap {
            lists,
            slot_sizes,
            slab_shift: slab_bytes.trailing_zeros(),
            sizes,
            by_units,
            slabs: records.collect(),
            spare: 0,
            generations: vec![0; slabs * SLOTS].into_boxed_slice(),
            requested: vec![0; slabs * SLOTS].into_boxed_slice(),
            slab_at: vec![NONE; extent.bytes.div_ceil(slab_bytes) as usize].into_boxed_slice(),
            slots_used: 0,
            slabs_used: 0,
        })
    }

    /// Allocates `bytes` bytes at a multiple of `align` (a power of two). O(1).
    ///
    /// # Errors
    /// [`Refusal`]; the heap is unchanged.
    pub fn allocate(
        &mut self,
        bytes: u64,
        align: u64,
    ) -> Result<Block<HybridPlace<L::Place>>, Refusal> {
        let SlotSizes {
            smallest, largest, ..
        } = self.slot_sizes;
        // Slots are as aligned as the smallest of them.
        if bytes != 0
            && bytes <= largest
            && align.is_power_of_two()
            && align <= smallest
            && let Some(block) = self.allocate_slot(bytes)
        {
            return Ok(block);
        }
        let Block { place, offset } = self.lists.allocate(bytes, align)?;
        Ok(Block {
            place: HybridPlace::Block(place),
            offset,
        })
    }

    fn allocate_slot(&mut self, bytes: u64) -> Option<Block<HybridPlace<L::Place>>> {
        let units = bytes.div_ceil(self.slot_sizes.smallest) as usize;
        let number = self.by_units[units];
        let mut first = self.sizes[usize::from(number)].first;
        if first == NONE {
            first = self.make_slab(number)?;
        }
        let slab = &mut self.slabs[first as usize];
        let slot = slab.free.trailing_zeros();
        slab.free &= slab.free - 1;
        let offset = slab.offset + u64::from(slot) * self.sizes[usize::from(number)].bytes;
        if slab.free == 0 {
            self.unlink(first);
        }
        let at = first as usize * SLOTS + slot as usize;
        self.generations[at] = self.generations[at].wrapping_add(1);
        self.requested[at] = bytes as u32;
        self.slots_used += 1;
        Some(Block {
            place: HybridPlace::Slot(Slot {
                slab: first,
                slot,
                generation: self.generations[at],
            }),
            offset,
        })
    }

    /// Cuts a block of the lists into slots. `None` when there is no block or no record.
    #[cold]
    fn make_slab(&mut self, size: u8) -> Option<u32> {
        let number = self.spare;
        if number == NONE {
            return None;
        }
        let bytes = 1 << self.slab_shift;
        let Block { place, offset } = self.lists.allocate(bytes, bytes).ok()?;
        let slab = &mut self.slabs[number as usize];
        self.spare = slab.next;
        *slab = Slab {
            free: self.sizes[usize::from(size)].all,
            offset,
            block: Some(place),
            next: NONE,
            previous: NONE,
            size,
        };
        self.slab_at[(offset >> self.slab_shift) as usize] = number;
        self.link(number);
        self.slabs_used += 1;
        Some(number)
    }

    /// Frees a block; any place may be tried. O(1).
    ///
    /// # Errors
    /// [`BadFree`]; the heap is unchanged.
    pub fn free(&mut self, place: HybridPlace<L::Place>) -> Result<(), BadFree> {
        let slot = match place {
            HybridPlace::Block(place) if self.is_slab(place) => return Err(BadFree::Foreign),
            HybridPlace::Block(place) => return self.lists.free(place),
            HybridPlace::Slot(slot) => slot,
        };
        let at = self.resolve(slot)?;
        self.generations[at] = self.generations[at].wrapping_add(1);
        self.slots_used -= 1;
        let slab = &mut self.slabs[slot.slab as usize];
        let full = slab.free == 0;
        slab.free |= 1 << slot.slot;
        let empty = slab.free == self.sizes[usize::from(slab.size)].all;
        if full {
            self.link(slot.slab);
        }
        if empty {
            self.give_slab_back(slot.slab);
        }
        Ok(())
    }

    #[cold]
    fn give_slab_back(&mut self, number: u32) {
        self.unlink(number);
        self.slabs_used -= 1;
        let slab = &mut self.slabs[number as usize];
        let (offset, block) = (slab.offset, slab.block.take());
        slab.next = self.spare;
        self.spare = number;
        self.slab_at[(offset >> self.slab_shift) as usize] = NONE;
        if let Some(block) = block {
            let freed = self.lists.free(block);
            debug_assert_eq!(freed, Ok(()), "a slab is a block in use");
        }
    }

    /// Whether a place of the lists, which the program may have made up from an offset, is
    /// that of a slab.
    fn is_slab(&self, place: L::Place) -> bool {
        let Ok(Span { offset, .. }) = self.lists.span(place) else {
            return false;
        };
        let number = self.slab_at[(offset >> self.slab_shift) as usize];
        number != NONE && self.slabs[number as usize].offset == offset
    }

    /// Where the records of a slot in use are.
    fn resolve(&self, slot: Slot) -> Result<usize, BadFree> {
        let slab = self.slabs.get(slot.slab as usize).ok_or(BadFree::Foreign)?;
        let at = slot.slab as usize * SLOTS + slot.slot as usize;
        if slot.slot >= SLOTS as u32 || self.generations[at] != slot.generation {
            return Err(BadFree::NotInUse);
        }
        if slab.block.is_none() || slab.free >> slot.slot & 1 == 1 {
            return Err(BadFree::NotInUse);
        }
        Ok(at)
    }

    /// The slot that begins at `offset`; `None` where no slab lies, so that the lists are to
    /// be asked. O(1).
    ///
    /// # Errors
    /// [`BadFree`] for an offset inside a slab where no slot in use begins.
    pub fn slot_at(&self, offset: u64) -> Result<Option<Slot>, BadFree> {
        let number = match self.slab_at.get((offset >> self.slab_shift) as usize) {
            None => return Err(BadFree::Foreign),
            Some(&NONE) => return Ok(None),
            Some(&number) => number,
        };
        let slab = &self.slabs[number as usize];
        let bytes = self.sizes[usize::from(slab.size)].bytes;
        let within = offset - slab.offset;
        let slot = (within / bytes) as u32;
        if !within.is_multiple_of(bytes) || self.sizes[usize::from(slab.size)].all >> slot & 1 == 0
        {
            return Err(BadFree::Foreign);
        }
        if slab.free >> slot & 1 == 1 {
            return Err(BadFree::NotInUse);
        }
        Ok(Some(Slot {
            slab: number,
            slot,
            generation: self.generations[number as usize * SLOTS + slot as usize],
        }))
    }

    /// Where a block in use is, and what was requested. O(1).
    ///
    /// # Errors
    /// [`BadFree`] as [`free`](Self::free).
    pub fn span(&self, place: HybridPlace<L::Place>) -> Result<Span, BadFree> {
        match place {
            HybridPlace::Block(place) if self.is_slab(place) => Err(BadFree::Foreign),
            HybridPlace::Block(place) => self.lists.span(place),
            HybridPlace::Slot(slot) => {
                let at = self.resolve(slot)?;
                let slab = &self.slabs[slot.slab as usize];
                let bytes = self.sizes[usize::from(slab.size)].bytes;
                Ok(Span {
                    offset: slab.offset + u64::from(slot.slot) * bytes,
                    requested: self.requested[at].into(),
                })
            }
        }
    }

    fn link(&mut self, number: u32) {
        let size = usize::from(self.slabs[number as usize].size);
        let next = self.sizes[size].first;
        let slab = &mut self.slabs[number as usize];
        slab.next = next;
        slab.previous = NONE;
        if next != NONE {
            self.slabs[next as usize].previous = number;
        }
        self.sizes[size].first = number;
    }

    fn unlink(&mut self, number: u32) {
        let Slab {
            next,
            previous,
            size,
            ..
        } = self.slabs[number as usize];
        if next != NONE {
            self.slabs[next as usize].previous = previous;
        }
        match previous {
            NONE => self.sizes[usize::from(size)].first = next,
            previous => self.slabs[previous as usize].next = next,
        }
    }

    /// Blocks in use, slots and others.
    pub fn used(&self) -> usize {
        self.lists.used() - self.slabs_used + self.slots_used
    }

    /// The lists, in which slabs are blocks.
    pub fn lists(&self) -> &ListHeap<L, I> {
        &self.lists
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong with the lists.
    ///
    /// # Panics
    /// When the slabs' books are wrong: an error of ours.
    pub fn check(&self) -> Result<(), Corruption> {
        self.lists.check()?;
        let mut listed = vec![false; self.slabs.len()];
        for (number, size) in self.sizes.iter().enumerate() {
            let (mut slab, mut before) = (size.first, NONE);
            while slab != NONE {
                let record = &self.slabs[slab as usize];
                assert_eq!(record.previous, before, "links of slabs");
                assert_eq!(
                    usize::from(record.size),
                    number,
                    "a slab's list is its size's"
                );
                listed[slab as usize] = true;
                before = slab;
                slab = record.next;
            }
        }
        let mut used = 0;
        for (number, (slab, listed)) in self.slabs.iter().zip(listed).enumerate() {
            if slab.block.is_none() {
                assert!(!listed, "a spare record is on no list");
                continue;
            }
            let all = self.sizes[usize::from(slab.size)].all;
            assert_eq!(slab.free & !all, 0, "slots that there are");
            assert_eq!(listed, slab.free != 0, "what has a free slot is listed");
            assert_ne!(slab.free, all, "an empty slab goes back");
            assert_eq!(
                self.slab_at[(slab.offset >> self.slab_shift) as usize],
                number as u32,
                "a slab is found by its place"
            );
            for slot in 0..SLOTS {
                let generation = self.generations[number * SLOTS + slot];
                let in_use = all >> slot & 1 == 1 && slab.free >> slot & 1 == 0;
                assert_eq!(
                    generation & 1 == 1,
                    in_use,
                    "generations of slots in use are odd"
                );
                used += usize::from(in_use);
            }
        }
        assert_eq!(used, self.slots_used, "slots in use");
        let slabs = self.slabs.iter().filter(|slab| slab.block.is_some());
        assert_eq!(slabs.count(), self.slabs_used, "slabs in use");
        Ok(())
    }
}

impl<L: Lookup + core::fmt::Debug, I: Lists<L>> OffsetHeap for HybridHeap<L, I> {
    type Place = HybridPlace<L::Place>;

    fn extent(&self) -> Extent {
        self.lists.extent()
    }

    fn used(&self) -> usize {
        HybridHeap::used(self)
    }

    #[inline]
    fn allocate(&mut self, bytes: u64, align: u64) -> Result<Block<Self::Place>, Refusal> {
        HybridHeap::allocate(self, bytes, align)
    }

    #[inline]
    fn free(&mut self, place: Self::Place) -> Result<(), BadFree> {
        HybridHeap::free(self, place)
    }

    #[inline]
    fn span(&self, place: Self::Place) -> Result<Span, BadFree> {
        HybridHeap::span(self, place)
    }

    fn each_used(&self, visit: &mut dyn FnMut(Span)) {
        self.lists.each_used(&mut |span| {
            let number = self.slab_at[(span.offset >> self.slab_shift) as usize];
            if number == NONE || self.slabs[number as usize].offset != span.offset {
                return visit(span);
            }
            let slab = &self.slabs[number as usize];
            let Size { bytes, all, .. } = self.sizes[usize::from(slab.size)];
            for slot in (0..SLOTS as u64).filter(|slot| (all & !slab.free) >> slot & 1 == 1) {
                visit(Span {
                    offset: slab.offset + slot * bytes,
                    requested: self.requested[number as usize * SLOTS + slot as usize].into(),
                });
            }
        });
    }

    fn check(&self) -> Result<(), Corruption> {
        HybridHeap::check(self)
    }
}
