//! A searched list without the walk.
//!
//! The list of [`ListFit`](metes_heap::index::list::ListFit) is an order of free blocks:
//! latest first, earliest first, or by address. Each order is a key, the *place* (a falling
//! counter, a rising one, the offset), and the number of blocks that a walk visits is the
//! rank of the one it ends at. Short lists are kept [sorted](super::sorted) by place, where
//! the sizes of 64 neighbours are compared at once. Long lists of fits that choose by size
//! are sorted by size and place, and only the [ranks](super::ranks) of places are kept
//! beside. Next fit begins in the middle and needs both orders. No links are written.
//!
//! Invariant: every decision, and every read and write told to the store, is the one that
//! `ListFit` would have made with the same parameters.

use metes_heap::index::links::Links;
use metes_heap::index::list::{ChosenList, ListParameters};
use metes_heap::index::{Index, Limits};
use metes_heap::store::ledger::LedgerBlock;
use metes_heap::{Fit, Geometry, Order, Store};

use super::ranks::Ranks;
use super::sorted::{Position, Sorted};

mod search;

use search::Searched;

/// From so many blocks on the list is sorted by size, where the fit asks for it; below,
/// comparing all sizes is quicker.
const LONG: usize = 256;
/// The same for next fit, which then keeps two orders.
const LONG_NEXT: usize = 1024;
/// Below this share of that many blocks the order by size is given up again.
const SHORT_SHARE: usize = 4;
/// Up to so many blocks of sizes that qualify are compared by place in the list.
const RIVALS: usize = 256;

/// See the module.
#[derive(Debug)]
pub(crate) struct QuickList {
    parameters: ChosenList,
    /// By place; sizes in granules. Empty while `ranks` stand for it.
    places: Sorted<u32, LedgerBlock>,
    /// By size and place, while the list is long; the value is the place's complement, so
    /// that the largest is the earliest.
    sizes: Sorted<u64, LedgerBlock>,
    /// The places, while the list is long and has no order by place.
    ranks: Ranks,
    long: bool,
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
            sizes: Sorted::new(),
            ranks: Ranks::default(),
            long: false,
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

    /// Takes the block at a position of the order that was searched out of the list.
    #[inline(always)]
    fn take_out(&mut self, at: Position) -> Taken {
        self.refused = None;
        let mut taken = if self.ranked() {
            let key = self.sizes.key(at);
            let place = key as u32;
            let rank = if self.single() { self.rank(place) } else { 0 };
            let block = self.sizes.item(at);
            self.sizes.remove(at);
            self.ranks.remove(self.number(place));
            Taken {
                block,
                size: (key >> 32) as u32,
                rank,
                last: false,
            }
        } else {
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
            if self.long {
                self.sizes.remove(self.sizes.locate(key(size, place)));
            }
            Taken {
                block,
                size,
                rank,
                last: false,
            }
        };
        self.length -= 1;
        if self.long && self.length < self.long_from() / SHORT_SHARE {
            self.shorten();
        }
        taken.last =
            self.single() && self.parameters.order == Order::Fifo && taken.rank == self.length;
        taken
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

    #[inline(always)]
    fn long_from(&self) -> usize {
        match self.parameters.fit {
            Fit::Next => LONG_NEXT,
            _ => LONG,
        }
    }

    /// Whether sizes are searched for in a way that the order by place does not serve.
    fn asks_for_sizes(&self) -> bool {
        self.parameters.max_fit_percent != 0
            || matches!(self.parameters.fit, Fit::Best | Fit::Exact)
    }

    /// Begins the order by size, and ranks in the place of the order by place.
    #[cold]
    fn lengthen(&mut self) {
        self.long = true;
        let mut at = self.places.settle(self.places.first());
        while let Some(now) = at {
            let (place, size) = (self.places.key(now), self.places.value(now));
            self.enter_sizes(place, size, self.places.item(now));
            at = self.places.behind(now);
        }
        if self.ranked() {
            self.places.clear();
        }
    }

    /// Gives up what `lengthen` began.
    #[cold]
    fn shorten(&mut self) {
        let ranked = self.ranked();
        let mut at = self.sizes.settle(self.sizes.first());
        while let Some(now) = at
            && ranked
        {
            let key = self.sizes.key(now);
            let place = key as u32;
            self.ranks.remove(self.number(place));
            let entry = self.places.locate(place);
            let size = (key >> 32) as u32;
            self.places.insert(entry, place, size, self.sizes.item(now));
            at = self.sizes.behind(now);
        }
        self.sizes.clear();
        self.long = false;
    }

    #[inline(always)]
    fn enter_sizes(&mut self, place: u32, size: u32, block: LedgerBlock) {
        let key = key(size, place);
        self.sizes
            .insert(self.sizes.locate(key), key, !place, block);
        if self.ranked() {
            self.ranks.insert(self.number(place));
        }
    }

    /// Adds a block; returns how many links finding its place reads.
    #[inline(never)]
    fn enter(&mut self, place: u32, size: u32, block: LedgerBlock) -> u32 {
        self.refused = None;
        let order = self.parameters.order;
        let mut walked = u32::from(order == Order::Fifo);
        if self.ranked() {
            if order == Order::Address {
                walked = self.ranks.rank(self.number(place)) as u32 + 1;
            }
        } else {
            let at = match order {
                Order::Lifo => self.places.first(),
                Order::Fifo => self.places.end(),
                Order::Address => {
                    let at = self.places.locate(place);
                    walked = self.places.rank(at) as u32 + 1;
                    at
                }
            };
            self.places.insert(at, place, size, block);
        }
        self.length += 1;
        if self.long {
            self.enter_sizes(place, size, block);
        } else if self.length > self.long_from() && self.asks_for_sizes() {
            self.lengthen();
        }
        walked
    }

    /// Takes out a block of which place and size are known.
    #[inline(never)]
    fn leave(&mut self, place: u32, size: u32) -> Taken {
        let at = if self.ranked() {
            self.sizes.locate(key(size, place))
        } else {
            self.places.locate(place)
        };
        self.take_out(at)
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
        let Searched {
            found,
            visited,
            early,
        } = if depth == 0 {
            Searched::all(None, 0)
        } else if self.ranked() {
            self.search_sizes(need, depth)
        } else {
            self.search_places(need, depth)
        };
        let Some(at) = found else {
            self.refused = Some((need, visited));
            return (None, visited, false);
        };
        if self.parameters.fit == Fit::Next {
            self.rover = Some(self.places.key(at));
        }
        (Some(self.take_out(at)), visited, early)
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

/// A size and a place as one key.
#[inline(always)]
fn key(size: u32, place: u32) -> u64 {
    u64::from(size) << 32 | u64::from(place)
}

// SAFETY: blocks come from the store or the heap, and leave the orders when they are
// taken or removed; the wilderness is in none.
unsafe impl<S: Store<Block = LedgerBlock>> Index<S> for QuickList {
    fn heads(&mut self, _span: usize, geometry: Geometry) -> Option<usize> {
        self.granule_log2 = geometry.granule.trailing_zeros();
        Some(1)
    }

    fn ceiling(&self, need: usize) -> usize {
        need
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
        let taken = self.leave(self.place(store, block), self.granules(size));
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
        self.wilderness.is_none_or(&mut listed)
            && if self.ranked() {
                self.sizes.len() == self.ranks.len() && self.sizes.items().all(listed)
            } else {
                self.places.len() == self.length && self.places.items().all(listed)
            }
    }
}
