//! Large blocks of a host's heap as mappings of their own: which blocks are, and what they take.
//!
//! A host can give a block whole pages instead of a part of a pool. Such a block grows by pages, in
//! place or by moving them to other addresses, without a copy, and its memory goes back to the host
//! when it is freed. Here is decided which requests are served so; the mappings themselves are made by
//! whoever stands behind the heap, and a replay only counts them.
//!
//! The rule, for a threshold of `t` bytes:
//!
//! - an allocation of at least `t` bytes is mapped, but a size of which a mapping was allocated and
//!   freed again (at most [`TRANSIENT`] bytes) comes and goes: from then on allocations that need no
//!   more pages than it are served by the pools;
//! - a block of a pool that is resized to at least `t` bytes and to more than it had is mapped, so
//!   what grows moves once from its pool;
//! - a mapped block stays one until it is resized to less than a quarter of `t`;
//! - there are at most [`MOST_BLOCKS`] mapped blocks; requests beyond are served by the pools;
//! - what the pools refuse is mapped, whatever its size: a tree that is laid out for what a program was
//!   seen to need refuses beyond, and a host need not. A replay says what the pools refuse.
//!
//! New pages cost a host more than what is written on them, so those of the block that was freed last
//! after having grown (at most [`TRANSIENT`] bytes) are kept: the *spare*. The next block of a pool
//! that grows enough takes its place and grows into it. The spare is given back as soon as the heap
//! would take more with it than 1/32 above the most that it has needed without it.
//!
//! Invariant: what is decided, and the bytes that are counted, depend on the requests and on what the
//! pools take alone, never on addresses.

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// The threshold of hosts: that of the C library.
pub const THRESHOLD: usize = 128 << 10;
/// Bytes of the largest block whose free tells that its size comes and goes, and of the largest spare.
pub const TRANSIENT: usize = 32 << 20;
/// Most mapped blocks at once: a host lets a process have so many mappings, and more.
pub const MOST_BLOCKS: usize = 1 << 14;
/// Bytes of one entry of the table of mapped blocks.
pub const ENTRY: usize = 32;
/// Entries of the smallest table: a page.
pub const FEWEST_ENTRIES: usize = PAGE / ENTRY;
/// Blocks larger than this are refused: pools of hosts are laid out for as much.
const LARGEST: usize = if usize::BITS < 64 {
    (1 << 27) - PAGE
} else {
    ((1_u64 << 36) - PAGE as u64) as usize
};
/// The spare may take the heap one part in so many above what it has needed.
pub const SPARE_SHARE: usize = 32;

/// Bytes of the whole pages that `size` bytes need.
#[inline(always)]
pub const fn pages(size: usize) -> usize {
    size.saturating_add(PAGE - 1) / PAGE * PAGE
}

/// Most bytes that a heap takes whose pools take at most `pools`, where at most `live` requested
/// bytes live at once and blocks from `threshold` bytes on are mapped. O(1).
///
/// *Proof.* A mapped block has a quarter of the threshold at least, so there are at most
/// k = ⌊live/⌊threshold/4⌋⌋ of them, and never more than [`MOST_BLOCKS`]; their pages are their bytes,
/// at most `live`, and less than a page each beside them. The table has the least power of two
/// of entries from 2k on, and [`FEWEST_ENTRIES`] at least. With the spare that is at most one part
/// in [`SPARE_SHARE`] more, since the spare goes as soon as it would take the heap further. What
/// pools take only grows while what lives in them may be mapped later, so both count whole. ∎
pub fn most(threshold: usize, pools: u128, live: u64) -> u128 {
    let live = u128::from(live);
    let blocks = (live / (threshold as u128 / 4).max(1)).min(MOST_BLOCKS as u128);
    let entries = (2 * blocks).next_power_of_two().max(FEWEST_ENTRIES as u128);
    let needed = pools + live + blocks * (PAGE as u128 - 1) + entries * ENTRY as u128;
    needed + needed / SPARE_SHARE as u128
}

/// A mapped block, as its owner keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedBlock {
    /// Its number in the order in which mapped blocks were made: the same in every run.
    pub number: u64,
    /// Requested bytes.
    pub size: usize,
    /// Bytes of the allocation that made it; 0 where a resize did.
    allocated: usize,
}

impl MappedBlock {
    /// Bytes of its pages.
    pub const fn pages(&self) -> usize {
        pages(self.size)
    }
}

/// Which blocks are mapped, and what these take.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// `usize::MAX` where nothing is mapped.
    threshold: usize,
    /// Least bytes of an allocation that is mapped.
    from: usize,
    blocks: usize,
    /// Bytes of the blocks' pages.
    bytes: usize,
    /// Entries of the table.
    entries: usize,
    next: u64,
    /// Bytes of the spare, and the number of the block that it lies behind, if it does.
    spare: usize,
    owner: Option<u64>,
    /// Most bytes so far that pools, mapped blocks and table took together, and those with the
    /// spare, as far as it was looked at.
    needed: usize,
    most: usize,
}

impl Mapped {
    /// Blocks of at least `threshold` bytes are mapped; `None`: none is.
    pub const fn new(threshold: Option<usize>) -> Self {
        let threshold = match threshold {
            Some(threshold) => threshold,
            None => usize::MAX,
        };
        Mapped {
            threshold,
            from: threshold,
            blocks: 0,
            bytes: 0,
            entries: 0,
            next: 0,
            spare: 0,
            owner: None,
            needed: 0,
            most: 0,
        }
    }

    /// Whether an allocation of `size` bytes aligned to `align` is to be mapped. O(1).
    #[inline(always)]
    pub fn serves(&self, size: usize, align: usize) -> bool {
        size >= self.from && self.has_room(size, align)
    }

    /// Least bytes of an allocation that may be mapped: it never falls. O(1).
    #[inline(always)]
    pub fn from(&self) -> usize {
        self.from
    }

    /// Whether a block of a pool may have to be mapped when it is resized to `size` bytes: the quick
    /// half of [`serves_growth`](Self::serves_growth). O(1).
    #[inline(always)]
    pub fn reaches(&self, size: usize) -> bool {
        size >= self.threshold
    }

    /// Whether a block of a pool is to be mapped when it is resized from `from` to `size` bytes. O(1).
    #[inline(always)]
    pub fn serves_growth(&self, from: usize, size: usize) -> bool {
        self.reaches(size) && size > from && self.has_room(size, 1)
    }

    /// Whether a block of `size` bytes aligned to `align` that the pools refuse is to be mapped. O(1).
    pub fn serves_refused(&self, size: usize, align: usize) -> bool {
        self.threshold != usize::MAX && self.has_room(size, align)
    }

    /// Whether a mapped block stays one when it is resized to `size` bytes. O(1).
    pub fn keeps(&self, size: usize) -> bool {
        size >= self.threshold / 4 && size <= LARGEST
    }

    /// Whether a mapped block may be resized to `size` bytes that the pools refuse. O(1).
    pub fn keeps_refused(&self, size: usize) -> bool {
        size <= LARGEST
    }

    #[cold]
    fn has_room(&self, size: usize, align: usize) -> bool {
        size.saturating_add(align) <= LARGEST && self.blocks < MOST_BLOCKS
    }

    /// Entries that the table needs for one block more: the table is at most half full.
    pub fn entries_for_next(&self) -> usize {
        let wanted = (2 * (self.blocks + 1)).max(FEWEST_ENTRIES);
        self.entries.max(wanted.next_power_of_two())
    }

    /// Bytes of the spare where it lies behind no block, so that the next
    /// [`take_over`](Self::take_over) begins with it.
    pub fn free_spare(&self) -> usize {
        match self.owner {
            None => self.spare,
            Some(_) => 0,
        }
    }

    /// Bytes that lie behind a block's pages for it to grow into.
    pub fn spare_of(&self, block: &MappedBlock) -> usize {
        match self.owner {
            Some(owner) if owner == block.number => self.spare,
            _ => 0,
        }
    }

    /// Counts a new mapping for an allocation.
    pub fn allocate(&mut self, size: usize) -> MappedBlock {
        self.begin(size, size)
    }

    /// Counts a new mapping for a block that a pool had: on the [free spare](Self::free_spare), made
    /// longer where it is too short, if there is one.
    pub fn take_over(&mut self, size: usize) -> MappedBlock {
        let block = self.begin(size, 0);
        if self.owner.is_none() {
            self.spare = self.spare.saturating_sub(block.pages());
            self.owner = (self.spare != 0).then_some(block.number);
        }
        block
    }

    fn begin(&mut self, size: usize, allocated: usize) -> MappedBlock {
        self.entries = self.entries_for_next();
        self.blocks += 1;
        self.bytes += pages(size);
        let number = self.next;
        self.next += 1;
        MappedBlock {
            number,
            size,
            allocated,
        }
    }

    /// Counts a resize: a block with a spare grows into it, and what it leaves is spare; `beside`
    /// are the bytes that all pools have taken.
    pub fn resize(&mut self, block: &mut MappedBlock, size: usize, beside: usize) {
        self.look(beside);
        let (before, after) = (block.pages(), pages(size));
        self.bytes = self.bytes - before + after;
        if self.owner == Some(block.number) {
            self.spare = (self.spare + before).saturating_sub(after).min(TRANSIENT);
            self.owner = self.owner.filter(|_| self.spare != 0);
        }
        block.size = size;
    }

    /// Counts a free, or that a pool took over; `beside` as for [`resize`](Self::resize). Whether the
    /// pages are the spare now, which an earlier one makes room for: if so, the first
    /// [`free_spare`](Self::free_spare) bytes of the block's pages and of what lay behind them.
    #[must_use]
    pub fn free(&mut self, block: &MappedBlock, beside: usize) -> bool {
        self.look(beside);
        let behind = self.spare_of(block);
        self.blocks -= 1;
        self.bytes -= block.pages();
        let allocated = pages(block.allocated);
        if block.allocated != 0 && allocated <= TRANSIENT {
            self.from = self.from.max(allocated + 1);
        }
        let grew = block.pages() > allocated;
        if grew {
            self.spare = (block.pages() + behind).min(TRANSIENT);
            self.owner = None;
        }
        grew
    }

    /// To be asked after every request, which may have made pools or mappings grow, and before a
    /// [`free`](Self::free), as a pool may just have grown for what was in the block: whether
    /// the spare is to be given back, which it is then.
    #[inline(always)]
    #[must_use]
    pub fn gives_back(&mut self, beside: impl FnOnce() -> usize) -> bool {
        self.spare != 0 && self.overdraws(beside())
    }

    #[cold]
    fn overdraws(&mut self, beside: usize) -> bool {
        let now = self.need(beside);
        let needed = self.needed.max(now);
        let overdraws = now + self.spare > needed + needed / SPARE_SHARE;
        match overdraws {
            true => (self.spare, self.owner) = (0, None),
            false => self.most = self.most.max(now + self.spare),
        }
        overdraws
    }

    /// Counts that the spare was given back unasked; `beside` as for [`resize`](Self::resize).
    pub fn drop_spare(&mut self, beside: usize) {
        self.look(beside);
        (self.spare, self.owner) = (0, None);
    }

    /// Bytes of the spare, wherever it lies.
    #[inline(always)]
    pub fn spare(&self) -> usize {
        self.spare
    }

    fn need(&self, beside: usize) -> usize {
        beside + self.bytes + self.record_bytes()
    }

    /// What pools take only grows, so the most is reached where mappings are about to shrink, or
    /// at the end.
    fn look(&mut self, beside: usize) {
        self.needed = self.needed.max(self.need(beside));
        self.most = self.footprint(beside);
    }

    /// Most bytes that the heap took from the system at once: the pages of mapped blocks, the spare,
    /// the table, and `beside`, what all pools have taken. O(1).
    pub fn footprint(&self, beside: usize) -> usize {
        self.most.max(self.need(beside) + self.spare)
    }

    /// Bytes of the table.
    pub fn record_bytes(&self) -> usize {
        self.entries * ENTRY
    }

    /// Bytes of the pages of mapped blocks now.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Mapped blocks now.
    pub fn blocks(&self) -> usize {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const T: usize = THRESHOLD;

    #[test]
    fn no_requests_take_more_than_the_most() {
        // Blocks of all sizes come, grow, shrink and go, with most of the bytes that may live.
        const LIVE: usize = 64 << 20;
        let mut state = 88_172_645_463_325_252_u64;
        let mut draw = |most: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % most
        };
        for threshold in [PAGE, 20_000, T] {
            let mut mapped = Mapped::new(Some(threshold));
            let mut blocks: Vec<MappedBlock> = Vec::new();
            let (mut live, mut pools) = (0, 0);
            for _ in 0..20_000 {
                let size = match draw(3) {
                    0 => threshold / 4 + draw(threshold),
                    1 => threshold + draw(100),
                    _ => threshold + draw(LIVE / 4),
                };
                match draw(4) {
                    0 if live + size <= LIVE && mapped.serves(size, 1) => {
                        blocks.push(mapped.allocate(size));
                        live += size;
                    }
                    1 if live + size <= LIVE && mapped.serves_growth(1, size) => {
                        blocks.push(mapped.take_over(size));
                        live += size;
                    }
                    2 if !blocks.is_empty() => {
                        let at = draw(blocks.len());
                        let block = &mut blocks[at];
                        if live - block.size + size <= LIVE && mapped.keeps(size) {
                            live = live - block.size + size;
                            mapped.resize(block, size, pools);
                        }
                    }
                    3 if !blocks.is_empty() => {
                        let block = blocks.swap_remove(draw(blocks.len()));
                        live -= block.size;
                        let _ = mapped.free(&block, pools);
                    }
                    _ => pools += draw(2) * PAGE,
                }
                let _ = mapped.gives_back(|| pools);
                let most = most(threshold, pools as u128, LIVE as u64);
                assert!(mapped.footprint(pools) as u128 <= most);
            }
            // It is no idle bound: at least half of it was taken.
            let most = most(threshold, pools as u128, LIVE as u64);
            assert!(2 * mapped.footprint(pools) as u128 >= most, "{threshold}");
        }
    }

    #[test]
    fn nothing_is_mapped_without_a_threshold() {
        let mapped = Mapped::new(None);
        for size in [1, T, 1 << 30, usize::MAX - 1] {
            assert!(!mapped.serves(size, 16) && !mapped.serves_growth(1, size));
            assert!(!mapped.serves_refused(size, 16));
        }
        assert_eq!(mapped.footprint(4096), 4096);
    }

    #[test]
    fn what_is_allocated_and_freed_comes_and_goes() {
        let mut mapped = Mapped::new(Some(T));
        assert!(!mapped.serves(T - 1, 16) && mapped.serves(T, 16));
        let block = mapped.allocate(T + 1);
        assert_eq!(mapped.footprint(0), T + PAGE + PAGE, "pages and table");
        assert!(!mapped.free(&block, 0), "its pages go");
        // As many pages as were freed, and one byte more.
        assert!(!mapped.serves(T + PAGE, 16) && mapped.serves(T + PAGE + 1, 16));
        // Growth is no sign of it, nor is what a pool had.
        assert!(mapped.serves_growth(16, T));
        let block = mapped.take_over(1 << 20);
        assert!(mapped.free(&block, 0), "its pages are the spare");
        assert!(mapped.serves(T + PAGE + 1, 16));
        // A buffer that was cut comes with the size that it was allocated with.
        let mut block = mapped.allocate(1 << 20);
        mapped.resize(&mut block, 1 << 18, 0);
        assert!(!mapped.free(&block, 0));
        assert!(!mapped.serves(1 << 20, 16));
        // What is larger than that stays mapped for ever.
        let block = mapped.allocate(TRANSIENT + 1);
        assert!(!mapped.free(&block, 0));
        assert!(mapped.serves((1 << 20) + 1, 16));
    }

    #[test]
    fn blocks_grow_into_mappings_and_stay_there_for_long() {
        let mapped = Mapped::new(Some(T));
        assert!(mapped.serves_growth(T - 1, T) && !mapped.serves_growth(T, T));
        assert!(!mapped.serves_growth(2 * T, T), "what shrinks stays");
        assert!(mapped.keeps(T / 4) && !mapped.keeps(T / 4 - 1));
    }

    #[test]
    fn sizes_beyond_the_span_and_blocks_beyond_the_most_are_not_mapped() {
        let mut mapped = Mapped::new(Some(T));
        assert!(mapped.serves(LARGEST - 16, 16) && !mapped.serves(LARGEST - 15, 16));
        assert!(!mapped.serves(usize::MAX, 16) && !mapped.keeps(usize::MAX));
        assert!(mapped.serves_refused(1, 16) && !mapped.serves_refused(usize::MAX, 16));
        assert!(mapped.keeps_refused(1) && !mapped.keeps_refused(usize::MAX));
        for _ in 0..MOST_BLOCKS {
            assert!(mapped.serves(T, 16));
            mapped.allocate(T);
        }
        assert!(!mapped.serves(T, 16) && !mapped.serves_growth(1, T));
        assert_eq!(mapped.record_bytes(), 2 * MOST_BLOCKS * ENTRY);
    }

    #[test]
    fn the_most_is_that_of_pools_and_mappings_together() {
        let mut mapped = Mapped::new(Some(T));
        let mut block = mapped.allocate(T);
        mapped.resize(&mut block, 4 * T, PAGE);
        mapped.resize(&mut block, T, 2 * PAGE);
        let peak = 2 * PAGE + 4 * T + PAGE;
        assert_eq!(mapped.footprint(3 * PAGE), peak);
        // The pools grow while less is mapped.
        assert_eq!(mapped.footprint(5 * T), 5 * T + T + PAGE);
        assert!(!mapped.free(&block, 4 * T));
        assert_eq!(mapped.footprint(4 * T), 5 * T + PAGE);
        assert_eq!((mapped.bytes(), mapped.blocks()), (0, 0));
    }

    #[test]
    fn what_grew_leaves_a_spare_that_the_next_grows_into() {
        let mut mapped = Mapped::new(Some(T));
        let mut first = mapped.take_over(T);
        mapped.resize(&mut first, 8 * T, 0);
        assert!(mapped.free(&first, 0));
        assert_eq!(mapped.free_spare(), 8 * T);
        let peak = 8 * T + PAGE;
        let mut second = mapped.take_over(2 * T);
        assert_eq!((mapped.spare_of(&second), mapped.free_spare()), (6 * T, 0));
        let other = mapped.take_over(T);
        assert_eq!(mapped.spare_of(&other), 0, "one block has it");
        mapped.resize(&mut second, 5 * T, 0);
        assert_eq!(mapped.spare_of(&second), 3 * T);
        mapped.resize(&mut second, T, 0);
        assert_eq!(mapped.spare_of(&second), 7 * T, "what it leaves is spare");
        mapped.resize(&mut second, 9 * T, 0);
        assert_eq!(mapped.spare_of(&second), 0);
        assert_eq!(mapped.footprint(0), peak.max(10 * T + PAGE));
        // What was freed last is kept, without what is above the most.
        assert!(mapped.free(&other, 0) && mapped.free(&second, 0));
        assert_eq!(mapped.free_spare(), 9 * T);
        let large = mapped.take_over(2 * TRANSIENT);
        assert_eq!(mapped.free_spare(), 0, "it is longer than the spare was");
        assert!(mapped.free(&large, 0));
        assert_eq!(mapped.free_spare(), TRANSIENT);
    }

    #[test]
    fn the_spare_goes_when_the_heap_would_need_more_for_it() {
        let mut mapped = Mapped::new(Some(T));
        let block = mapped.take_over(32 * T);
        assert!(mapped.free(&block, 0));
        assert!(!mapped.gives_back(|| T), "one part in 32");
        assert_eq!(mapped.footprint(T), 33 * T + PAGE);
        assert!(mapped.gives_back(|| T + 2 * PAGE));
        assert_eq!(
            (mapped.free_spare(), mapped.footprint(T)),
            (0, 33 * T + PAGE)
        );
        assert!(!mapped.gives_back(|| 64 * T), "there is none");
    }
}
