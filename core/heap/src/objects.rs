//! Object pools: equal slots found by find-first-set, without a record a block.
//!
//! Memory is a range of *slabs* of one power-of-two size. A slab belongs to one
//! pool at a time and is cut into slots of that pool's size; which slots are
//! free stands in a bitmap in a table outside the slabs, so that the memory
//! itself is never touched and a bad free is always detected. Both operations
//! take constant time.
//!
//! With the size classes of a [`Partition`](crate::compact::Partition) for pools
//! this is *optimised, non-compacting compact-fit* (Kirsch and Sokolova): κ = ∞,
//! so no block moves, programs hold addresses, and page-blocks need no record.
//!
//! Invariant: a slab with free and used slots is in its pool's list; a slab
//! without used slots is in the list of empty ones, which all pools share; a
//! slab without free slots is in no list.

mod slabs;
mod table;

use crate::store::BadFree;
pub use slabs::Slabs;
use table::Table;

/// Most slots in a slab of object pools.
pub const SLOTS: usize = 256;
/// Largest object size of object pools in bytes.
pub const LARGEST: usize = 1024;
/// Slot sizes are multiples of this, and slots are aligned to it.
pub const GRANULE: usize = 16;

const BITS: usize = usize::BITS as usize;
/// Words of a bitmap that are searched one by one; longer ones have a summary.
const PLAIN: usize = SLOTS / BITS;
const NONE: u32 = u32::MAX;
/// The pool of a slab that belongs to none.
const EMPTY: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Pool {
    size: u32,
    slots: u32,
    /// First slab with free and used slots.
    partly: u32,
    /// ⌈2³² / size⌉: finds the slot at an offset. Exact: what it is too large by,
    /// times an offset, stays below 2³² / size, for slots of up to 2¹⁰ bytes in
    /// slabs of up to 2¹⁸ bytes (256 slots) and for any slots in pages of 2¹⁶.
    reciprocal: u32,
}

const _: () = assert!(align_of::<Pool>() <= align_of::<usize>());

impl Pool {
    fn new(size: usize, slab: usize) -> Self {
        Pool {
            size: size as u32,
            slots: (slab / size) as u32,
            partly: NONE,
            reciprocal: (1u64 << 32).div_ceil(size as u64) as u32,
        }
    }

    /// The slot that begins `within` bytes into a slab, if one does.
    #[inline(always)]
    fn slot_at(&self, within: usize) -> Option<usize> {
        let slot = ((within as u64 * u64::from(self.reciprocal)) >> 32) as u32;
        (slot * self.size == within as u32 && slot < self.slots).then_some(slot as usize)
    }
}

/// The object pools of a heap. Places are offsets into the range of slabs.
#[derive(Debug)]
pub struct ObjectPools<'a> {
    pools: &'a mut [Pool],
    /// Pool that serves a request, by its size in granules.
    by_size: &'a [u8],
    table: Table<'a>,
    /// Slack of every slot, when requested sizes are to be kept exactly.
    slack: &'a mut [u16],
    /// Entries of `slack` a slab.
    slots: usize,
    /// Requests below this are served.
    limit: usize,
    slab_log2: u32,
    /// Bytes of a slab's record.
    record: usize,
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
    /// Pools for the slabs of a valid [`Description`](crate::Description), with room for
    /// as many slabs as `memory` describes: [`Slabs::memory_words`] for so many. `slack`,
    /// either empty or [`Slabs::slots`] entries a slab, keeps requested sizes. Memory too
    /// small for the tables, or no slabs: no pools.
    pub fn new(slabs: &Slabs, memory: &'a mut [usize], slack: &'a mut [u16]) -> Self {
        let tables = slabs.table_words();
        if slabs.is_empty() || memory.len() < tables {
            return Self::none();
        }
        let (tables, records) = memory.split_at_mut(tables);
        let count = slabs.sizes().count();
        let first = tables.as_mut_ptr();
        // SAFETY: the tables' words hold `count` pools and behind them the entries, by
        // `table_words`; both are written here before they are referred to.
        let (pools, by_size) = unsafe {
            let pools = first.cast::<Pool>();
            let by_size = pools.add(count).cast::<u8>();
            let mut from = 0;
            for (number, size) in slabs.sizes().enumerate() {
                pools.add(number).write(Pool::new(size, slabs.bytes()));
                let to = size.min(slabs.largest()).div_ceil(GRANULE);
                for entry in from..=to {
                    by_size.add(entry).write(number as u8);
                }
                from = to + 1;
            }
            (
                core::slice::from_raw_parts_mut(pools, count),
                core::slice::from_raw_parts(by_size, slabs.entries()),
            )
        };
        ObjectPools {
            pools,
            by_size,
            table: Table::new(records, slabs.words(), slabs.summarised()),
            slack,
            slots: slabs.slots(),
            limit: slabs.largest() + 1,
            slab_log2: slabs.bytes().trailing_zeros(),
            record: slabs.record_bytes(),
            empty: NONE,
            extent: 0,
        }
    }

    /// No pools.
    pub fn none() -> Self {
        ObjectPools {
            pools: &mut [],
            by_size: &[],
            table: Table::new(&mut [], 1, false),
            slack: &mut [],
            slots: 0,
            limit: 0,
            slab_log2: 12,
            record: 0,
            empty: NONE,
            extent: 0,
        }
    }

    /// Whether a request goes to an object pool.
    #[inline(always)]
    pub fn serves(&self, size: usize, align: usize) -> bool {
        self.pool_for(size, align).is_some()
    }

    #[inline(always)]
    fn pool_for(&self, size: usize, align: usize) -> Option<usize> {
        if size >= self.limit || align > GRANULE {
            return None;
        }
        Some(usize::from(self.by_size[size.div_ceil(GRANULE)]))
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
        self.extent * self.record
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
        let number = self.pool_for(size, align)?;
        let mut slab = self.pools[number].partly;
        if slab == NONE {
            slab = self.fresh(number, grow)?;
        }
        let pool = self.pools[number];
        let record = self.table.slab(slab as usize);
        let slot = self.table.take(slab as usize)?;
        let used = record.used.get() + 1;
        record.used.set(used);
        if u32::from(used) == pool.slots {
            self.unlink(slab);
        }
        if let Some(slack) = self.slack.get_mut(slab as usize * self.slots + slot) {
            *slack = (pool.size as usize - size) as u16;
        }
        Some(((slab as usize) << self.slab_log2) + slot * pool.size as usize)
    }

    /// Gives an empty slab to a pool.
    fn fresh(&mut self, pool: usize, grow: impl FnOnce(usize) -> bool) -> Option<u32> {
        let number = if self.empty != NONE {
            let number = self.empty;
            self.empty = self.table.slab(number as usize).next.get();
            number
        } else {
            if self.extent >= self.table.count || !grow(self.slab_bytes()) {
                return None;
            }
            self.table.make(self.extent);
            self.extent += 1;
            (self.extent - 1) as u32
        };
        let slots = self.pools[pool].slots as usize;
        self.table.clear(number as usize, slots);
        let slab = self.table.slab(number as usize);
        slab.used.set(0);
        slab.pool.set(pool as u8);
        self.link(number);
        Some(number)
    }

    fn link(&mut self, number: u32) {
        let slab = self.table.slab(number as usize);
        let pool = &mut self.pools[usize::from(slab.pool.get())];
        slab.next.set(pool.partly);
        slab.previous.set(NONE);
        if pool.partly != NONE {
            self.table.slab(pool.partly as usize).previous.set(number);
        }
        pool.partly = number;
    }

    fn unlink(&mut self, number: u32) {
        let slab = self.table.slab(number as usize);
        let (next, previous) = (slab.next.get(), slab.previous.get());
        if next != NONE {
            self.table.slab(next as usize).previous.set(previous);
        }
        match previous {
            NONE => self.pools[usize::from(slab.pool.get())].partly = next,
            _ => self.table.slab(previous as usize).next.set(next),
        }
    }

    /// The slab, the slot and the slot's size of a used place.
    #[inline(always)]
    fn resolve(&self, place: usize) -> Result<(usize, usize, usize), BadFree> {
        let number = place >> self.slab_log2;
        if number >= self.extent {
            return Err(BadFree::Foreign);
        }
        let pool = usize::from(self.table.slab(number).pool.get());
        // A slab of no pool has the number of none.
        let Some(pool) = self.pools.get(pool) else {
            return Err(BadFree::NotInUse);
        };
        let within = place & (self.slab_bytes() - 1);
        let slot = pool.slot_at(within).ok_or(BadFree::Foreign)?;
        match self.table.free(number, slot) {
            false => Ok((number, slot, pool.size as usize)),
            true => Err(BadFree::NotInUse),
        }
    }

    /// Frees a slot. O(1).
    ///
    /// # Errors
    /// [`BadFree`] always, when the place is not one in use.
    #[inline(always)]
    pub fn free(&mut self, place: usize) -> Result<Released, BadFree> {
        let (number, slot, size) = self.resolve(place)?;
        let requested = self.requested_of(number, slot, size);
        let slab = self.table.slab(number);
        let used = slab.used.get();
        let full = u32::from(used) == self.pools[usize::from(slab.pool.get())].slots;
        self.table.release(number, slot);
        slab.used.set(used - 1);
        if used == 1 {
            self.vacate(number as u32, full);
        } else if full {
            self.link(number as u32);
        }
        Ok(Released { requested })
    }

    /// A slab has no used slots any more; one that was full is in no list.
    fn vacate(&mut self, number: u32, full: bool) {
        if !full {
            self.unlink(number);
        }
        let slab = self.table.slab(number as usize);
        slab.pool.set(EMPTY);
        slab.next.set(self.empty);
        self.empty = number;
    }

    #[inline(always)]
    fn requested_of(&self, number: usize, slot: usize, size: usize) -> usize {
        let slack = self.slack.get(number * self.slots + slot);
        size - usize::from(slack.copied().unwrap_or(0))
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
        let pool = usize::from(self.table.slab(number).pool.get());
        if self.pool_for(to, align) != Some(pool) {
            return Ok(false);
        }
        if let Some(slack) = self.slack.get_mut(number * self.slots + slot) {
            *slack = (size - to) as u16;
        }
        Ok(true)
    }

    /// Calls `visit` with offset, slot size and requested bytes of every used slot.
    pub fn walk(&self, mut visit: impl FnMut(usize, usize, usize)) {
        for number in 0..self.extent {
            let pool = usize::from(self.table.slab(number).pool.get());
            let Some(pool) = self.pools.get(pool) else {
                continue;
            };
            let size = pool.size as usize;
            for slot in (0..pool.slots as usize).filter(|&slot| !self.table.free(number, slot)) {
                let offset = (number << self.slab_log2) + slot * size;
                visit(offset, size, self.requested_of(number, slot, size));
            }
        }
    }

    /// Verifies bitmaps against counts and lists. Linear in slabs.
    ///
    /// # Errors
    /// [`Corruption::List`](crate::Corruption::List).
    pub fn check(&self) -> Result<(), crate::Corruption> {
        let broken = crate::Corruption::List;
        let (mut partly, mut empty) = (0, 0);
        for number in 0..self.extent {
            let slab = self.table.slab(number);
            let used = usize::from(slab.used.get());
            let Some(pool) = self.pools.get(usize::from(slab.pool.get())) else {
                empty += 1;
                continue;
            };
            let slots = pool.slots as usize;
            let free = self.table.count_free(number, slots).ok_or(broken)?;
            if free + used != slots || used == 0 {
                return Err(broken);
            }
            partly += usize::from(free != 0);
        }
        empty -= self.length(self.empty, EMPTY, empty).ok_or(broken)?;
        for (number, pool) in self.pools.iter().enumerate() {
            let length = self.length(pool.partly, number as u8, partly);
            partly -= length.ok_or(broken)?;
        }
        match (partly, empty) {
            (0, 0) => Ok(()),
            _ => Err(broken),
        }
    }

    /// Slabs in a list of those of one pool, or `None` if it is broken or longer than `most`.
    fn length(&self, first: u32, pool: u8, most: usize) -> Option<usize> {
        let (mut number, mut before, mut count) = (first, NONE, 0);
        while number != NONE {
            if number as usize >= self.extent || count == most {
                return None;
            }
            let slab = self.table.slab(number as usize);
            let linked = pool == EMPTY || slab.previous.get() == before;
            if slab.pool.get() != pool || !linked {
                return None;
            }
            count += 1;
            before = number;
            number = slab.next.get();
        }
        Some(count)
    }
}
