//! Object pools: equal slots found by find-first-set, without a record a block.
//!
//! Memory is a range of *slabs* of one power-of-two size. A slab belongs to one
//! pool at a time and is cut into slots of that pool's size; which slots are
//! free stands in a bitmap in a table outside the slabs, so that the memory
//! itself is never touched and a bad free is always detected. Both operations
//! take constant time: a bitmap has at most [`SLOTS`] bits.
//!
//! Invariant: a slab with free and used slots is in its pool's list; a slab
//! without used slots is in the list of empty ones, which all pools share; a
//! slab without free slots is in no list.

use crate::description::{List, OBJECTS, ObjectPoolKind};
use crate::store::BadFree;

/// Most slots in a slab.
pub const SLOTS: usize = 256;
/// Largest object size in bytes.
pub const LARGEST: usize = 1024;
/// Slot sizes are multiples of this, and slots are aligned to it.
pub const GRANULE: usize = 16;

const BITS: usize = usize::BITS as usize;
const WORDS: usize = SLOTS / BITS;
const NONE: u32 = u32::MAX;
/// The pool of a slab that belongs to none.
const EMPTY: u8 = u8::MAX;

/// The record of one slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slab {
    /// Bit set: the slot is free.
    free: [usize; WORDS],
    next: u32,
    previous: u32,
    used: u16,
    pool: u8,
}

impl Slab {
    /// A record to fill a table with.
    pub const UNUSED: Slab = Slab {
        free: [0; WORDS],
        next: NONE,
        previous: NONE,
        used: 0,
        pool: EMPTY,
    };
}

#[derive(Clone, Copy, Debug)]
struct Pool {
    size: usize,
    slots: usize,
    /// First slab with free and used slots.
    partly: u32,
}

/// The object pools of a heap. Places are offsets into the range of slabs.
#[derive(Debug)]
pub struct ObjectPools<'a> {
    slabs: &'a mut [Slab],
    /// Slack of every slot, when requested sizes are to be kept exactly.
    slack: &'a mut [u16],
    pools: [Pool; OBJECTS],
    count: usize,
    /// Pool that serves a request, by its size in granules.
    by_size: [u8; LARGEST / GRANULE + 1],
    slab_log2: u32,
    /// First slab without used slots.
    empty: u32,
    /// Slabs in the range so far.
    extent: usize,
}

/// What a free released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// Requested bytes (the slot size where they are not kept).
    pub requested: usize,
}

impl<'a> ObjectPools<'a> {
    /// Pools of the given kinds (valid, see [`Description::validate`]), with
    /// room for `slabs.len()` slabs. `slack`, either empty or [`SLOTS`] entries
    /// a slab, keeps requested sizes.
    ///
    /// [`Description::validate`]: crate::Description::validate
    pub fn new(
        kinds: &List<ObjectPoolKind, OBJECTS>,
        slabs: &'a mut [Slab],
        slack: &'a mut [u16],
    ) -> Self {
        let mut pools = [Pool {
            size: 0,
            slots: 0,
            partly: NONE,
        }; OBJECTS];
        let mut by_size = [EMPTY; LARGEST / GRANULE + 1];
        let mut slab_log2 = 12;
        let mut count = 0;
        let mut from = 0;
        for kind in kinds.iter() {
            slab_log2 = kind.slab.trailing_zeros();
            pools[count] = Pool {
                size: kind.size,
                slots: kind.slab / kind.size,
                partly: NONE,
            };
            let to = kind.size / GRANULE;
            by_size[from..=to].fill(count as u8);
            from = to + 1;
            count += 1;
        }
        ObjectPools {
            slabs,
            slack,
            pools,
            count,
            by_size,
            slab_log2,
            empty: NONE,
            extent: 0,
        }
    }

    /// No pools.
    pub fn none() -> Self {
        Self::new(&List::EMPTY, &mut [], &mut [])
    }

    /// Whether a request goes to an object pool.
    #[inline(always)]
    pub fn serves(&self, size: usize, align: usize) -> bool {
        self.pool_for(size, align).is_some()
    }

    #[inline(always)]
    fn pool_for(&self, size: usize, align: usize) -> Option<usize> {
        if size > LARGEST || align > GRANULE {
            return None;
        }
        let pool = self.by_size[size.div_ceil(GRANULE)];
        (pool != EMPTY).then_some(pool as usize)
    }

    /// Bytes of a slab.
    pub fn slab_bytes(&self) -> usize {
        1 << self.slab_log2
    }

    /// Bytes of the range of slabs so far.
    pub fn extent(&self) -> usize {
        self.extent << self.slab_log2
    }

    /// Bytes of the records of those slabs.
    pub fn record_bytes(&self) -> usize {
        self.extent * size_of::<Slab>()
    }

    /// Allocates a slot for `size` bytes; `grow` adds one slab behind the range.
    /// O(1). `None` when no pool serves it or no slab is to be had.
    #[inline(always)]
    pub fn allocate(
        &mut self,
        size: usize,
        align: usize,
        grow: impl FnOnce(usize) -> bool,
    ) -> Option<usize> {
        let pool = self.pool_for(size, align)?;
        let mut number = self.pools[pool].partly;
        if number == NONE {
            number = self.fresh(pool, grow)?;
        }
        let Pool {
            size: slot_size,
            slots,
            ..
        } = self.pools[pool];
        let slab = &mut self.slabs[number as usize];
        let word = slab.free.iter().position(|&word| word != 0)?;
        let bit = slab.free[word].trailing_zeros() as usize;
        slab.free[word] &= slab.free[word] - 1;
        slab.used += 1;
        if usize::from(slab.used) == slots {
            self.unlink(number);
        }
        let slot = word * BITS + bit;
        if let Some(slack) = self.slack.get_mut(number as usize * SLOTS + slot) {
            *slack = (slot_size - size) as u16;
        }
        Some(((number as usize) << self.slab_log2) + slot * slot_size)
    }

    /// Gives an empty slab to a pool.
    fn fresh(&mut self, pool: usize, grow: impl FnOnce(usize) -> bool) -> Option<u32> {
        let number = if self.empty != NONE {
            let number = self.empty;
            self.empty = self.slabs[number as usize].next;
            number
        } else {
            if self.extent >= self.slabs.len() || !grow(self.slab_bytes()) {
                return None;
            }
            self.extent += 1;
            (self.extent - 1) as u32
        };
        let mut free = [0; WORDS];
        for (index, word) in free.iter_mut().enumerate() {
            let left = self.pools[pool].slots.saturating_sub(index * BITS);
            *word = if left >= BITS {
                usize::MAX
            } else {
                (1 << left) - 1
            };
        }
        let slab = &mut self.slabs[number as usize];
        *slab = Slab {
            free,
            pool: pool as u8,
            ..Slab::UNUSED
        };
        self.link(number);
        Some(number)
    }

    fn link(&mut self, number: u32) {
        let pool = self.slabs[number as usize].pool as usize;
        let first = self.pools[pool].partly;
        self.slabs[number as usize].next = first;
        self.slabs[number as usize].previous = NONE;
        if first != NONE {
            self.slabs[first as usize].previous = number;
        }
        self.pools[pool].partly = number;
    }

    fn unlink(&mut self, number: u32) {
        let Slab {
            next,
            previous,
            pool,
            ..
        } = self.slabs[number as usize];
        if next != NONE {
            self.slabs[next as usize].previous = previous;
        }
        match previous {
            NONE => self.pools[pool as usize].partly = next,
            _ => self.slabs[previous as usize].next = next,
        }
    }

    /// The slab and slot of a used place.
    #[inline(always)]
    fn resolve(&self, place: usize) -> Result<(usize, usize, usize), BadFree> {
        let number = place >> self.slab_log2;
        if number >= self.extent {
            return Err(BadFree::Foreign);
        }
        let slab = &self.slabs[number];
        if slab.pool == EMPTY {
            return Err(BadFree::NotInUse);
        }
        let size = self.pools[slab.pool as usize].size;
        let within = place & (self.slab_bytes() - 1);
        let slot = within / size;
        if !within.is_multiple_of(size) || slot >= self.pools[slab.pool as usize].slots {
            return Err(BadFree::Foreign);
        }
        if slab.free[slot / BITS] >> (slot % BITS) & 1 == 1 {
            return Err(BadFree::NotInUse);
        }
        Ok((number, slot, size))
    }

    /// Frees a slot. O(1).
    ///
    /// # Errors
    /// [`BadFree`] always, when the place is not one in use.
    #[inline(always)]
    pub fn free(&mut self, place: usize) -> Result<Released, BadFree> {
        let (number, slot, size) = self.resolve(place)?;
        let requested = self.requested_of(number, slot, size);
        let slab = &mut self.slabs[number];
        let full = slab.used as usize == self.pools[slab.pool as usize].slots;
        slab.free[slot / BITS] |= 1 << (slot % BITS);
        slab.used -= 1;
        let empty = slab.used == 0;
        if full && !empty {
            self.link(number as u32);
        } else if empty {
            if !full {
                self.unlink(number as u32);
            }
            let next = self.empty;
            let slab = &mut self.slabs[number];
            slab.pool = EMPTY;
            slab.next = next;
            self.empty = number as u32;
        }
        Ok(Released { requested })
    }

    #[inline(always)]
    fn requested_of(&self, number: usize, slot: usize, size: usize) -> usize {
        let slack = self.slack.get(number * SLOTS + slot).copied().unwrap_or(0);
        size - usize::from(slack)
    }

    /// Requested bytes and slot size at a place.
    ///
    /// # Errors
    /// [`BadFree`] when it is not in use.
    pub fn sizes(&self, place: usize) -> Result<(usize, usize), BadFree> {
        let (number, slot, size) = self.resolve(place)?;
        Ok((self.requested_of(number, slot, size), size))
    }

    /// Resizes within the slot; `false` when another pool or none would serve
    /// the new size.
    ///
    /// # Errors
    /// [`BadFree`] when the place is not in use.
    pub fn resize(&mut self, place: usize, to: usize, align: usize) -> Result<bool, BadFree> {
        let (number, slot, size) = self.resolve(place)?;
        if self.pool_for(to, align) != Some(self.slabs[number].pool as usize) {
            return Ok(false);
        }
        if let Some(slack) = self.slack.get_mut(number * SLOTS + slot) {
            *slack = (size - to) as u16;
        }
        Ok(true)
    }

    /// Calls `visit` with offset, slot size and requested bytes of every used slot.
    pub fn walk(&self, mut visit: impl FnMut(usize, usize, usize)) {
        for (number, slab) in self.slabs[..self.extent].iter().enumerate() {
            if slab.pool == EMPTY {
                continue;
            }
            let Pool { size, slots, .. } = self.pools[slab.pool as usize];
            for slot in 0..slots {
                if slab.free[slot / BITS] >> (slot % BITS) & 1 == 0 {
                    let offset = (number << self.slab_log2) + slot * size;
                    visit(offset, size, self.requested_of(number, slot, size));
                }
            }
        }
    }

    /// Verifies bitmaps against counts and lists. Linear in slabs.
    ///
    /// # Errors
    /// [`Corruption::List`](crate::Corruption::List).
    pub fn check(&self) -> Result<(), crate::Corruption> {
        let broken = crate::Corruption::List;
        let mut partly = 0;
        let mut empty = 0;
        for slab in &self.slabs[..self.extent] {
            let free: usize = slab
                .free
                .iter()
                .map(|word| word.count_ones() as usize)
                .sum();
            match slab.pool {
                EMPTY => empty += 1,
                pool => {
                    let slots = self.pools[pool as usize].slots;
                    if free + usize::from(slab.used) != slots || slab.used == 0 {
                        return Err(broken);
                    }
                    partly += usize::from(free != 0);
                }
            }
        }
        let mut number = self.empty;
        while number != NONE {
            let slab = self.slabs.get(number as usize).ok_or(broken)?;
            if slab.pool != EMPTY || empty == 0 {
                return Err(broken);
            }
            empty -= 1;
            number = slab.next;
        }
        for (pool, state) in self.pools[..self.count].iter().enumerate() {
            let mut number = state.partly;
            let mut before = NONE;
            while number != NONE {
                let slab = self.slabs.get(number as usize).ok_or(broken)?;
                if slab.pool as usize != pool || slab.previous != before || partly == 0 {
                    return Err(broken);
                }
                partly -= 1;
                before = number;
                number = slab.next;
            }
        }
        if partly != 0 || empty != 0 {
            Err(broken)
        } else {
            Ok(())
        }
    }
}
