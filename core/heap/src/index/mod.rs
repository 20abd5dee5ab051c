//! Indexes: which free block serves a request?
//!
//! An index keeps the free blocks of a store in lists whose heads the store
//! provides, and answers a request with one of them. Splitting, coalescing and
//! growth are the heap's; an index only says how far they may go.
//!
//! Invariant kept by every index: a block is in exactly one list from `insert`
//! until `take` returns it or `remove` is called with it.

pub use crate::forward_index;

use crate::store::{Geometry, Store};

pub mod any;
pub mod buddy;
pub mod classes;
pub mod dedicated;
pub mod first_fit;
pub mod fixed;
mod forward;
pub mod kingsley;
pub mod lea;
pub mod links;
pub mod list;

/// How far blocks may be merged and cut (seed parameters *maximum coalesced
/// size* and *minimum split size* of Mamagkakis et al., EMSOFT 2006).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Two free blocks merge only if the result is at most this large; zero
    /// switches coalescing off.
    pub coalesce_up_to: usize,
    /// A block is split only if the remainder is at least this large;
    /// `usize::MAX` switches splitting off.
    pub split_down_to: usize,
}

impl Limits {
    /// Always coalesce, always split.
    pub const NONE: Limits = Limits {
        coalesce_up_to: usize::MAX,
        split_down_to: 0,
    };
}

/// Chooses free blocks of a store.
///
/// # Safety
/// An implementor passes to the store only blocks that the store or the heap
/// gave it and that are still free, and returns from [`take`](Index::take) only
/// blocks that were inserted and not yet removed or taken.
pub unsafe trait Index<S: Store> {
    /// Blocks have sizes and places fixed by halving (buddy): splits cascade and
    /// only buddies merge. The same answer for the life of the index.
    #[inline(always)]
    fn halves(&self) -> bool {
        false
    }

    /// Whether a request reads a list before anything else. Where not, a heap
    /// without memory refuses without being asked whether it has any.
    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        true
    }

    /// List heads needed when no block exceeds `span` bytes; `None` when the
    /// index has no classes for so large a span.
    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize>;

    /// The number of the first list: the others follow.
    #[inline(always)]
    fn first_head(&self) -> usize {
        0
    }

    /// Tells of the first region: `base` is the first block.
    fn attach(&mut self, store: &mut S, base: S::Block) {
        let _ = (store, base);
    }

    /// Whether it can take a region of so many bytes more.
    fn has_room_for_region(&self, store: &S, length: usize) -> bool {
        let _ = (store, length);
        true
    }

    /// Tells of a region after the first: its first block, and the bytes of its blocks.
    fn attach_further(&mut self, store: &mut S, first: S::Block, room: usize) {
        let _ = (store, first, room);
    }

    /// Whether the last region may grow to so many bytes of blocks.
    #[inline(always)]
    fn may_extend(&self, store: &S, room: usize) -> bool {
        let _ = (store, room);
        true
    }

    /// The block size that serves a need, where the index rounds it further.
    #[inline(always)]
    fn block_size(&self, need: usize) -> usize {
        need
    }

    /// Adds a free block with written header.
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize);

    /// Takes a given free block out.
    fn remove(&mut self, store: &mut S, block: S::Block, size: usize);

    /// Finds a block for `need`, takes it out and returns it with its size.
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)>;

    /// Whether [`insert`](Index::insert) of a block of `size` bytes follows sound links
    /// only. Asked only of stores that [verify](Store::VERIFIES); nothing changes.
    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        let _ = (store, size);
        true
    }

    /// Whether [`remove`](Index::remove) of a block follows sound links only. Asked only of stores
    /// that [verify](Store::VERIFIES).
    #[inline(always)]
    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        store.list_is_sound(block)
    }

    /// Whether [`retain`](Index::retain) of a block of `size` bytes follows sound links only; true
    /// where the block is not retained.
    #[inline(always)]
    fn retain_is_sound(&self, store: &S, size: usize) -> bool {
        let _ = (store, size);
        true
    }

    /// How far blocks may merge and split.
    #[inline(always)]
    fn limits(&self) -> Limits {
        Limits::NONE
    }

    /// Keeps a freed block aside for requests of its own size. A kept block
    /// stays used in the eyes of its neighbours.
    #[inline(always)]
    fn retain(&mut self, store: &mut S, block: S::Block, size: usize) -> bool {
        let _ = (store, block, size);
        false
    }

    /// A block kept aside for exactly this need.
    #[inline(always)]
    fn recall(&mut self, store: &mut S, need: usize) -> Option<S::Block> {
        let _ = (store, need);
        None
    }

    /// Whether the blocks kept aside are to be merged before a block for `need` is
    /// looked for.
    #[inline(always)]
    fn gathers(&self, store: &S, need: usize) -> bool {
        let _ = (store, need);
        false
    }

    /// Whether the index ever gives a block up that it keeps aside.
    #[inline(always)]
    fn relinquishes(&self) -> bool {
        false
    }

    /// Gives up a block kept aside, so that it is merged; `None` when none is kept
    /// or the index never gives one up.
    #[inline(always)]
    fn relinquish(&mut self, store: &mut S) -> Option<S::Block> {
        let _ = store;
        None
    }

    /// The block before which memory is fresh, when the index keeps it apart.
    #[inline(always)]
    fn wilderness(&self) -> Option<S::Block> {
        None
    }

    /// Calls `visit` with every free block the index holds and the head of its
    /// list; `false` stops. For `check`: linear.
    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool;
}

/// Walks the list behind head `number`; `false` once `visit` says so, or when a link
/// names what is no block or the backward links contradict the forward ones.
pub(crate) fn walk_list<S: Store>(
    store: &S,
    number: usize,
    visit: &mut dyn FnMut(S::Block) -> bool,
) -> bool {
    let head = store.head(number);
    let mut before = head;
    let mut block = store.next(head);
    while block != head {
        if !store.can_be_listed(block) || store.previous(block) != before || !visit(block) {
            return false;
        }
        before = block;
        block = store.next(block);
    }
    store.previous(head) == before
}

/// Whether a free block that was found in the middle of a list may be taken out and
/// given out; true of stores that do not verify.
#[inline(always)]
pub(crate) fn take_is_sound<S: Store>(store: &S, block: S::Block) -> bool {
    !S::VERIFIES || (store.list_is_sound(block) && store.free_is_sound(block))
}

/// Whether the first block behind a head may be taken out and given out; true of stores that do not
/// verify.
#[inline(always)]
pub(crate) fn first_is_sound<S: Store>(store: &S, head: S::Block, block: S::Block) -> bool {
    !S::VERIFIES || store.sound_first(head) == Some(block)
}

/// Whether a search without a limit of its own may go on from a block of a list: what
/// is linked in both directions leads back to the head.
#[inline(always)]
pub(crate) fn step_is_sound<S: Store>(store: &S, block: S::Block) -> bool {
    !S::VERIFIES || store.forward_is_sound(block)
}

/// Whether a free block that is kept apart from every list may be given out; true of stores that do
/// not verify.
#[inline(always)]
pub(crate) fn apart_is_sound<S: Store>(store: &S, block: S::Block) -> bool {
    !S::VERIFIES || store.free_is_sound(block)
}

/// Whether every link of list `number` is sound, so that it can be walked.
pub(crate) fn whole_list_is_sound<S: Store>(store: &S, number: usize) -> bool {
    let head = store.head(number);
    let mut block = head;
    loop {
        // Forward links that lead back make a ring through the head: a block with
        // two predecessors contradicts one of them.
        if !store.forward_is_sound(block) {
            return false;
        }
        block = store.next(block);
        if block == head {
            return true;
        }
    }
}
