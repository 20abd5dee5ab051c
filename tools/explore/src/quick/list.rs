//! A searched list without the walk.
//!
//! The list of [`ListFit`](metes_heap::index::list::ListFit) is an order of free blocks:
//! latest first, earliest first, or by address. Each order is a key, the *place* (a falling
//! counter, a rising one, the offset), and the number of blocks that a walk visits is the
//! rank of the one it ends at. Short lists are kept [sorted](super::sorted) by place, where
//! the sizes of 64 neighbours are compared at once. Of a list that has become long,
//! blocks stand by [size](super::sizes), each size in the order of places, and only the
//! [ranks](super::ranks) of places are kept beside. Next fit begins in the middle: its list
//! stays sorted by place, with [marks](super::marks) that say where which sizes are. No
//! links are written.
//!
//! Invariant: every decision, and every read and write told to the store, is the one that
//! `ListFit` would have made with the same parameters.

use metes_heap::index::links::Links;
use metes_heap::index::list::{ChosenList, ListParameters};
use metes_heap::index::{Index, Limits};
use metes_heap::store::ledger::LedgerBlock;
use metes_heap::{Fit, Geometry, Order, Store};

use super::marks::Marks;
use super::ranks::Ranks;
use super::sizes::Sizes;
use super::sorted::{Position, Sorted};

mod search;

/// A list that has had more blocks than this is kept by size, but for next fit; below,
/// comparing all sizes is quicker.
const LONG: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuickList {
    parameters: ChosenList,
    /// By place; sizes in granules. Empty once the list is long.
    places: Sorted<u32, LedgerBlock>,
    /// The blocks of a long list by size; empty as long as it is short.
    sizes: Sizes<LedgerBlock>,
    /// The places of a long list, as numbers that rise with the age or the address.
    ranks: Ranks,
    long: bool,
    /// Where sizes are in the order by place, if the search asks for that.
    marks: Marks,
    length: usize,
    /// A need that the list as it is does not serve, and what finding that out visits.
    refused: Option<(usize, usize)>,
    /// The place of the block that has each record; not of an order by address.
    place_of: Vec<u32>,
    /// The place of the block that enters next.
    next: u32,
    granule_log2: u32,
    /// The place where next fit goes on.
    rover: Option<u32>,
    wilderness: Option<LedgerBlock>,
}

/// A block, if any was found; how many blocks were visited; and
/// whether the search returned early.
type Chosen = (Option<Taken>, usize, bool);

/// A block taken out of the list.
struct Taken {
    block: LedgerBlock,
    /// In granules.
    size: u32,
    /// Blocks before it, where links are single.
    rank: usize,
    /// Whether the link of the head to the last block must be written.
    last: bool,
}

impl QuickList {
    /// An empty index.
    pub(crate) fn with(parameters: ChosenList) -> Self {
        QuickList {
            parameters,
            places: Sorted::new(),
            sizes: Sizes::new(),
            ranks: Ranks::default(),
            long: false,
            marks: Marks::default(),
            length: 0,
            refused: None,
            place_of: Vec::new(),
            next: match parameters.order {
                Order::Lifo => u32::MAX - 1,
                Order::Fifo | Order::Address => 0,
            },
            granule_log2: 0,
            rover: None,
            wilderness: None,
        }
    }

    /// Blocks that one search may try.
    #[inline(always)]
    fn depth(&self) -> usize {
        let percent = self.parameters.depth_percent as usize;
        let length = self.length;
        if percent >= 100 {
            return length;
        }
        (length / 100 * percent + length % 100 * percent / 100)
            .max(1)
            .min(length)
    }

    /// How many granules more than `need` the largest block that qualifies has.
    #[inline(always)]
    fn span(&self, need: usize) -> u32 {
        let largest = match self.parameters.max_fit_percent as usize {
            0 => return u32::MAX - self.granules(need),
            percent => (need / 100).saturating_mul(percent) + need % 100 * percent / 100,
        };
        self.granules(largest) - self.granules(need)
    }

    /// Whole granules; as many as no block has, for more than are counted.
    #[inline(always)]
    fn granules(&self, size: usize) -> u32 {
        u32::try_from(size >> self.granule_log2).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn single(&self) -> bool {
        self.parameters.links == Links::Single
    }

    /// Whether searches go by marks.
    #[inline(always)]
    fn marked(&self) -> bool {
        self.parameters.fit == Fit::Next && self.parameters.max_fit_percent != 0
    }

    /// Takes the block at a position out of the list, which is short or next fit's.
    #[inline(always)]
    fn take_at(&mut self, at: Position) -> Taken {
        let (place, size) = (self.places.key(at), self.places.value(at));
        let rank = if self.single() {
            self.places.rank(at)
        } else {
            0
        };
        let block = self.places.item(at);
        if self.parameters.fit == Fit::Next && self.rover == Some(place) {
            self.rover = self.places.key_after(at);
        }
        self.places.remove(at);
        if self.marked() {
            self.marks.leave(size);
        }
        self.taken(block, size, rank)
    }

    /// Takes a block out of a long list.
    #[inline(always)]
    fn take_of(&mut self, size: u32, place: u32, block: LedgerBlock) -> Taken {
        let rank = if self.single() { self.rank(place) } else { 0 };
        self.sizes.remove(size, block.record() as u32);
        self.ranks.remove(self.number(place));
        self.taken(block, size, rank)
    }

    #[inline(always)]
    fn taken(&mut self, block: LedgerBlock, size: u32, rank: usize) -> Taken {
        self.refused = None;
        self.length -= 1;
        Taken {
            block,
            size,
            rank,
            last: self.single() && self.parameters.order == Order::Fifo && rank == self.length,
        }
    }

    /// Words that taking a block out of the list reads and writes, length and rover
    /// included.
    #[inline(always)]
    fn unlinking(&self, last: bool) -> (u32, u32) {
        if self.single() {
            (1 + 2, 1 + u32::from(last) + 1)
        } else {
            (2 + 2, 2 + 1)
        }
    }

    /// Keeps the list by size from now on.
    #[cold]
    fn lengthen(&mut self) {
        self.long = true;
        let mut at = self.places.settle(self.places.first());
        while let Some(now) = at {
            let (place, size) = (self.places.key(now), self.places.value(now));
            self.enter_sizes(place, size, self.places.item(now));
            at = self.places.behind(now);
        }
        self.places.clear();
    }

    #[inline(always)]
    fn enter_sizes(&mut self, place: u32, size: u32, block: LedgerBlock) {
        let record = block.record() as u32;
        self.sizes.insert(size, place, record, block);
        self.ranks.insert(self.number(place));
    }

    /// Adds a block; returns how many links finding its place reads.
    #[inline(never)]
    fn enter(&mut self, place: u32, size: u32, block: LedgerBlock) -> u32 {
        self.refused = None;
        self.length += 1;
        if !self.long {
            return self.enter_places(place, size, block);
        }
        self.enter_sizes(place, size, block);
        match self.parameters.order {
            Order::Lifo => 0,
            Order::Fifo => 1,
            Order::Address => self.ranks.rank(self.number(place)) as u32 + 1,
        }
    }

    #[inline(always)]
    fn enter_places(&mut self, place: u32, size: u32, block: LedgerBlock) -> u32 {
        let (at, walked) = match self.parameters.order {
            Order::Lifo => (self.places.first(), 0),
            Order::Fifo => (self.places.end(), 1),
            Order::Address => {
                let at = self.places.locate(place);
                (at, self.places.rank(at) as u32 + 1)
            }
        };
        let mark = if self.marked() {
            self.marks.enter(size)
        } else {
            0
        };
        self.places.insert(at, place, size, block, mark);
        if self.length > LONG && self.parameters.fit != Fit::Next {
            self.lengthen();
        }
        walked
    }

    /// Takes out a block of which place and size are known.
    #[inline(never)]
    fn leave(&mut self, place: u32, size: u32, block: LedgerBlock) -> Taken {
        if self.long {
            self.take_of(size, place, block)
        } else {
            self.take_at(self.places.locate(place))
        }
    }

    /// Searches for a block and takes it out, with its size in granules; also returns
    /// what the search visits, and whether it returns at the block visited last, without
    /// reading the link behind.
    #[inline(never)]
    fn choose(&mut self, need: usize) -> Chosen {
        if let Some((refused, visited)) = self.refused
            && refused == need
        {
            return (None, visited, false);
        }
        let depth = self.depth();
        let (taken, visited, early) = if depth == 0 {
            (None, 0, false)
        } else if self.long {
            let searched = self.search_sizes(need, depth);
            let first = searched.found;
            let taken = first.map(|first| self.take_of(first.size, first.place, first.block));
            (taken, searched.visited, searched.early)
        } else {
            let searched = self.search_places(need, depth);
            if let Some(at) = searched.found
                && self.parameters.fit == Fit::Next
            {
                self.rover = Some(self.places.key(at));
            }
            let taken = searched.found.map(|at| self.take_at(at));
            (taken, searched.visited, searched.early)
        };
        if taken.is_none() {
            self.refused = Some((need, visited));
        }
        (taken, visited, early)
    }

    /// The place at which a block enters or is.
    #[inline(always)]
    fn place<S: Store<Block = LedgerBlock>>(&self, store: &S, block: LedgerBlock) -> u32 {
        match self.parameters.order {
            Order::Address => self.granules(store.offset(block)),
            Order::Lifo | Order::Fifo => self.place_of[block.record()],
        }
    }
}

// SAFETY: blocks come from the store or the heap, and leave the orders when they are
// taken or removed; the wilderness is in none.
unsafe impl<S: Store<Block = LedgerBlock>> Index<S> for QuickList {
    fn heads(&mut self, _span: usize, geometry: Geometry) -> Option<usize> {
        self.granule_log2 = geometry.granule.trailing_zeros();
        Some(1)
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        if self.wilderness.is_none() && store.header(store.after(block, size)).size == 0 {
            self.wilderness = Some(block);
            store.touch(1, 1);
            return;
        }
        let size = self.granules(size);
        let place = match self.parameters.order {
            Order::Address => self.granules(store.offset(block)),
            order => {
                let place = self.next;
                let number = block.record();
                if number >= self.place_of.len() {
                    self.place_of.resize(number + number / 2 + 64, 0);
                }
                self.place_of[number] = place;
                if order == Order::Lifo {
                    self.next -= 1;
                } else {
                    self.next += 1;
                }
                place
            }
        };
        let walked = self.enter(place, size, block);
        // The link behind the place and the links to and from the block; the length.
        let fifo = self.parameters.order == Order::Fifo;
        let (reads, writes) = match self.parameters.links {
            Links::Double => (1, 4),
            Links::Single => (u32::from(!fifo), 2 + u32::from(fifo)),
        };
        store.touch(walked + reads + 1, writes + 1);
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        if self.wilderness == Some(block) {
            self.wilderness = None;
            store.touch(1, 1);
            return;
        }
        let taken = self.leave(self.place(store, block), self.granules(size), block);
        // With single links what precedes the block is looked for from the head.
        let walked = if self.single() {
            taken.rank as u32 + 1
        } else {
            0
        };
        let (reads, writes) = self.unlinking(taken.last);
        // The wilderness is compared with first.
        store.touch(1 + walked + reads, writes);
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(LedgerBlock, usize)> {
        // With single links the rover precedes the block where the search begins.
        let begins = u32::from(self.single() && self.rover.is_some());
        let (found, visited, early) = self.choose(need);
        // Parameters and length, the link of the head, then header and link of each.
        let reads = 2 + 1 + begins + 2 * visited as u32 - u32::from(early);
        if let Some(taken) = found {
            let (more, writes) = self.unlinking(taken.last);
            store.touch(reads + more, writes);
            return Some((taken.block, (taken.size as usize) << self.granule_log2));
        }
        store.touch(reads, 0);
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need {
            return None;
        }
        self.wilderness = None;
        store.touch(1, 1);
        Some((block, size))
    }

    #[inline(always)]
    fn limits(&self) -> Limits {
        self.parameters.limits()
    }

    #[inline(always)]
    fn wilderness(&self) -> Option<LedgerBlock> {
        self.wilderness
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(LedgerBlock) -> bool) -> bool {
        let mut listed = |block| store.header(block).size != 0 && visit(block);
        if !self.wilderness.is_none_or(&mut listed) {
            return false;
        }
        if !self.long {
            return self.places.len() == self.length && self.places.items().all(listed);
        }
        let mut sound = self.sizes.len() == self.length && self.ranks.len() == self.length;
        self.sizes
            .each(|_, _, block| sound = sound && listed(block));
        sound
    }
}
