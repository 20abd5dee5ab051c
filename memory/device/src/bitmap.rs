//! Equal slots over a range, a bit each: pages of a key-value cache, objects of one kind.
//!
//! Bits stand in words of 64 and each word has a bit in the level above, which says whether
//! one of its bits is set (the paper's bitmasks, section II-B, bounded as it asks: a word is
//! searched by one instruction). So the first free slot is found in one step a level, of which
//! there are at most six for 2^32 slots, and slots are always given out lowest first.
//!
//! Invariant: a bit of a level above the lowest is set exactly when the word that it stands
//! for is not zero; a slot's bit is set exactly when it is free.

use metes_heap::BadFree;

const BITS: u32 = u64::BITS;
/// 64^6 slots, more than are numbered.
const LEVELS: usize = 6;

/// A pool of equal slots.
#[derive(Debug)]
pub struct BitmapPool {
    /// All levels, the lowest first.
    words: Box<[u64]>,
    /// Where each level begins.
    starts: [u32; LEVELS],
    levels: usize,
    slots: u32,
    used: u32,
    slot_bytes: u64,
}

/// Why a pool was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{slots} slots of {slot_bytes} bytes: take 1 to 2^32 - 64 slots of at least a byte, in fewer than 2^63 bytes"
)]
pub struct NoPool {
    /// Slots asked for.
    pub slots: u64,
    /// Bytes of each.
    pub slot_bytes: u64,
}

impl BitmapPool {
    /// A pool of `slots` free slots of `slot_bytes` bytes each. O(slots / 64), and nothing is
    /// allocated later: a bit a slot and one more for every 64.
    ///
    /// # Errors
    /// [`NoPool`].
    pub fn new(slots: u64, slot_bytes: u64) -> Result<Self, NoPool> {
        let error = NoPool { slots, slot_bytes };
        let most = u64::from(u32::MAX - BITS) + 1;
        let bytes = slots.checked_mul(slot_bytes).ok_or(error)?;
        if bytes == 0 || bytes > i64::MAX as u64 || slots > most {
            return Err(error);
        }
        let mut starts = [0; LEVELS];
        let mut levels = 0;
        let mut total = 0;
        let mut bits = slots as u32;
        loop {
            let words = bits.div_ceil(BITS);
            starts[levels] = total;
            levels += 1;
            total += words;
            bits = words;
            if words == 1 {
                break;
            }
        }
        let mut pool = BitmapPool {
            words: vec![0; total as usize].into_boxed_slice(),
            starts,
            levels,
            slots: slots as u32,
            used: 0,
            slot_bytes,
        };
        let mut bits = pool.slots;
        for start in &starts[..levels] {
            let words = bits.div_ceil(BITS);
            for word in 0..words {
                pool.words[(start + word) as usize] = match bits - word * BITS {
                    left if left < BITS => (1 << left) - 1,
                    _ => u64::MAX,
                };
            }
            bits = words;
        }
        Ok(pool)
    }

    /// Takes the lowest free slot; its number. `None` when all are used. O(1): a step a level.
    #[inline]
    pub fn allocate(&mut self) -> Option<u32> {
        let mut position = 0;
        for start in self.starts[..self.levels].iter().rev() {
            let word = self.words[(start + position) as usize];
            if word == 0 {
                // The top level only: all slots are used.
                debug_assert_eq!(self.used, self.slots);
                return None;
            }
            position = position * BITS + word.trailing_zeros();
        }
        let slot = position;
        for start in &self.starts[..self.levels] {
            let word = &mut self.words[(start + position / BITS) as usize];
            *word &= !(1 << (position % BITS));
            if *word != 0 {
                break;
            }
            position /= BITS;
        }
        self.used += 1;
        Some(slot)
    }

    /// Frees a slot; any number may be tried. O(1): a step a level.
    ///
    /// # Errors
    /// [`BadFree::Foreign`] where there is no such slot, [`BadFree::NotInUse`] of a free one.
    #[inline]
    pub fn free(&mut self, slot: u32) -> Result<(), BadFree> {
        if !self.in_use(slot)? {
            return Err(BadFree::NotInUse);
        }
        let mut position = slot;
        for start in &self.starts[..self.levels] {
            let word = &mut self.words[(start + position / BITS) as usize];
            let before = *word;
            *word |= 1 << (position % BITS);
            if before != 0 {
                break;
            }
            position /= BITS;
        }
        self.used -= 1;
        Ok(())
    }

    /// Whether a slot is in use. O(1).
    ///
    /// # Errors
    /// [`BadFree::Foreign`] where there is no such slot.
    #[inline]
    pub fn in_use(&self, slot: u32) -> Result<bool, BadFree> {
        if slot >= self.slots {
            return Err(BadFree::Foreign);
        }
        Ok(self.words[(slot / BITS) as usize] >> (slot % BITS) & 1 == 0)
    }

    /// The slot whose bytes begin at `offset`.
    ///
    /// # Errors
    /// [`BadFree::Foreign`] where none begins there.
    pub fn at(&self, offset: u64) -> Result<u32, BadFree> {
        let slot = offset / self.slot_bytes;
        if !offset.is_multiple_of(self.slot_bytes) || slot >= u64::from(self.slots) {
            return Err(BadFree::Foreign);
        }
        Ok(slot as u32)
    }

    /// Bytes from the beginning of the range to a slot.
    pub fn offset(&self, slot: u32) -> u64 {
        u64::from(slot) * self.slot_bytes
    }

    /// Slots, used and free.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots in use.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Host memory that the pool takes, in bytes.
    pub fn record_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}
