//! Fixed block sizes: a short table, a free list a size, no coalescing.
//!
//! The segregated storage of small real-time kernels: a pool has up to eight
//! block sizes, a request is rounded up to the next of them, a freed block goes to
//! the list of its size for ever, and what no list has is cut from the end of the
//! pool (the *wilderness*). Mamagkakis et al. (EMSOFT 2006) compare with that of
//! Enea OSE and say no more of it than its name and source; the sizes, what happens
//! above the largest and the LIFO order of the lists are assumptions of this crate,
//! stated in `docs/parts.md#ose`.
//!
//! Requests above the largest size, which such kernels refuse, are rounded to
//! powers of two with a list each, so that every program can be replayed.
//!
//! Invariant: list 0 holds blocks smaller than the first size (what alignment and
//! the ends of regions leave), list `i` blocks of at least size `i` and less than
//! the next; the wilderness is in no list.

use super::{Index, Limits, apart_is_sound, first_is_sound, step_is_sound, walk_list};
use crate::store::{Geometry, Store};

/// Most sizes in a table.
pub const SIZES: usize = 8;
/// Sizes are multiples of this, the smallest block of 64-bit targets: what is left
/// of a region's end and is no block of its own makes no block of one size a block
/// of the next.
pub const SIZE_STEP: u32 = 32;

/// Up to eight rising block sizes in bytes, records included; multiples of 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SizeTable {
    /// Unused entries, at the end, are zero.
    sizes: [u32; SIZES],
}

impl SizeTable {
    /// 64 bytes to 64 KiB; an assumption, see the module.
    pub const DEFAULT: SizeTable = SizeTable {
        sizes: [64, 128, 256, 512, 1024, 4096, 16384, 65536],
    };

    /// A table of the given sizes; `None` when there are none, more than eight, or
    /// they do not rise in multiples of 32 up to 2³¹.
    pub const fn new(sizes: &[u32]) -> Option<Self> {
        if sizes.is_empty() || sizes.len() > SIZES {
            return None;
        }
        let mut table = [0; SIZES];
        let mut last = 0;
        let mut index = 0;
        while index < sizes.len() {
            let size = sizes[index];
            if size <= last || !size.is_multiple_of(SIZE_STEP) || size > 1 << 31 {
                return None;
            }
            table[index] = size;
            last = size;
            index += 1;
        }
        Some(SizeTable { sizes: table })
    }

    /// The sizes, rising.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.sizes.iter().copied().take_while(|&size| size != 0)
    }

    /// The block for a need: the smallest size that holds it, above the largest
    /// the next power of two.
    pub fn block_size(&self, need: usize) -> usize {
        match self.iter().find(|&size| size as usize >= need) {
            Some(size) => size as usize,
            None => power(need),
        }
    }
}

/// The power of two that holds `need`; half the addresses stand for whatever is larger.
#[inline(always)]
fn power(need: usize) -> usize {
    need.checked_next_power_of_two()
        .unwrap_or(1 << (usize::BITS - 1))
}

/// The index; `B` is the store's block.
#[derive(Clone, Debug)]
pub struct FixedSizes<B> {
    /// In bytes, multiples of the store's granule once there are heads.
    sizes: [usize; SIZES],
    count: usize,
    heads: usize,
    wilderness: Option<B>,
}

impl<B> FixedSizes<B> {
    /// An empty index.
    pub const fn new(table: SizeTable) -> Self {
        let mut sizes = [0; SIZES];
        let mut count = 0;
        while count < SIZES && table.sizes[count] != 0 {
            sizes[count] = table.sizes[count] as usize;
            count += 1;
        }
        FixedSizes {
            sizes,
            count,
            heads: 0,
            wilderness: None,
        }
    }

    /// The list of blocks of `size` bytes.
    #[inline(always)]
    fn list(&self, size: usize) -> usize {
        let mut list = 0;
        while list < self.count && self.sizes[list] <= size {
            list += 1;
        }
        let first_power = power(self.sizes[self.count - 1] + 1);
        if size < first_power {
            return list;
        }
        self.count + 1 + (size.ilog2() - first_power.ilog2()) as usize
    }
}

// SAFETY: lists are changed by `link_after` and `unlink` only; the wilderness is
// a block the heap inserted and that is in no list.
unsafe impl<S: Store> Index<S> for FixedSizes<S::Block> {
    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        for size in &mut self.sizes[..self.count] {
            *size = size.next_multiple_of(geometry.granule);
        }
        self.heads = self.list(span) + 1;
        Some(self.heads)
    }

    #[inline(always)]
    fn block_size(&self, need: usize) -> usize {
        for &size in &self.sizes[..self.count] {
            if need <= size {
                return size;
            }
        }
        power(need)
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        store.touch(1, 0);
        if self.wilderness.is_none() && store.header(store.after(block, size)).size == 0 {
            self.wilderness = Some(block);
            store.touch(0, 1);
            return;
        }
        let head = store.head(self.list(size));
        store.link_after(head, block);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, _size: usize) {
        store.touch(1, 0);
        if self.wilderness == Some(block) {
            self.wilderness = None;
            store.touch(0, 1);
        } else {
            store.unlink(block);
        }
    }

    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        // Also where it becomes the wilderness: that depends on its place.
        store.forward_is_sound(store.head(self.list(size)))
    }

    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        self.wilderness == Some(block) || store.list_is_sound(block)
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        let list = self.list(need);
        if list >= self.heads {
            return None;
        }
        let head = store.head(list);
        let block = store.next(head);
        if block != head || !step_is_sound(store, head) {
            if !first_is_sound(store, head, block) {
                return None;
            }
            let size = store.header(block).size;
            store.unlink(block);
            return Some((block, size));
        }
        store.touch(1, 0);
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need || !apart_is_sound(store, block) {
            return None;
        }
        self.wilderness = None;
        store.touch(0, 1);
        Some((block, size))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        Limits {
            coalesce_up_to: 0,
            split_down_to: 0,
        }
    }

    #[inline(always)]
    fn wilderness(&self) -> Option<S::Block> {
        self.wilderness
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        if let Some(block) = self.wilderness
            && !visit(block)
        {
            return false;
        }
        (0..self.heads).all(|list| {
            walk_list(store, list, &mut |block| {
                self.list(store.header(block).size) == list && visit(block)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tagged;

    #[test]
    fn every_block_size_begins_its_list() {
        let tables = [
            SizeTable::DEFAULT,
            SizeTable::new(&[32]).unwrap(),
            SizeTable::new(&[96, 1536, 1568, 55_296]).unwrap(),
        ];
        for table in tables {
            let mut index = FixedSizes::new(table);
            Index::<Tagged>::heads(&mut index, 1 << 20, Geometry::tagged(8));
            for need in (32..200_000).step_by(16) {
                let size = Index::<Tagged>::block_size(&index, need);
                assert!(size >= need && size == table.block_size(need));
                assert_eq!(
                    index.list(size),
                    index.list(size + 1),
                    "a list from {size} on"
                );
                assert!(
                    index.list(size - 1) < index.list(size),
                    "no list before {size}"
                );
            }
        }
    }

    #[test]
    fn tables_that_do_not_rise_are_refused() {
        let nine: std::vec::Vec<u32> = (1..10).map(|size| 32 * size).collect();
        for sizes in [&[][..], &[16], &[80], &[64, 64], &[128, 64], &nine] {
            assert_eq!(SizeTable::new(sizes), None, "{sizes:?}");
        }
    }
}
