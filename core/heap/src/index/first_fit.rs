//! Address-ordered first fit in constant time.
//!
//! Memory is divided into *groups* of as many granules as a word has bits. Of each group its *summary* is kept, the
//! largest free block that ends in it, and above the groups a binary tree of maxima, whose depth is fixed when the heap
//! gets its memory. A request goes down the tree to the first group with a block that serves, and within the group to
//! the first such block: the decision of a list in address order, offset for offset, for the order of free blocks by
//! their ends is that by their beginnings. (By ends, since an allocation cuts blocks at their beginnings, so that what is
//! left is found where the whole was.)
//!
//! Within a group:
//! - Where a store's blocks are found by their addresses (boundary tags), a word has a bit for each granule of the group
//!   that is free and belongs to a block which ends in it. Free blocks are never neighbours, so a run of ones is a
//!   block; the lowest run may reach back into groups before, and its footer says how far. Both questions, which run is
//!   the first of a length and which is the longest, take a number of steps that depends on the width of a word alone.
//! - Elsewhere (records outside the memory) the blocks that end in a group are a list in address order, of at most half
//!   as many blocks as it has granules.
//!
//! When the largest block of a group is taken out, its summary and those above it are left as they are, too large, until
//! the next request or until something as large ends there again: most programs free what they have just allocated,
//! and then nothing is to be computed. At most two groups are so left.
//!
//! The block at the very end of the memory, the *wilderness*, is kept apart and serves last, as in
//! [`ListFit`](super::list::ListFit).
//!
//! Invariants: the summary of a group is that of the largest free block in it, or larger if the group is *pending*; a
//! node of the tree is the maximum of the two below it; the wilderness is in no group.

mod groups;
mod runs;
mod summary;
mod tree;

pub use summary::{Classes, Exact, Short, Summary};

use core::marker::PhantomData;

use super::{Index, apart_is_sound};
use crate::store::{Extent, Geometry, Store};
use groups::{Ending, Place};
use tree::{NO_GROUP, Tree};

/// Most regions of a heap with this index.
pub const REGIONS: usize = 8;

/// A region: where it begins, and which groups are its own.
#[derive(Clone, Copy, Debug)]
struct Part<B> {
    /// The first block, where blocks are found by address; else of no meaning.
    first: B,
    /// The offset of the first block, where they are not.
    offset: usize,
    /// Number of its first group.
    group: usize,
    /// Groups up to the next region's.
    groups: usize,
}

/// Address-ordered first fit by a tree over addresses; `B` is the store's block. See the module. A store that neither has
/// addresses nor keeps numbers beside lists, as [`Distant`](crate::Distant), has no place for the tree: it refuses every region.
#[derive(Clone, Debug)]
// In this order, what every call reads lies in as few cache lines as it can.
#[repr(C)]
pub struct FirstFit<E, B> {
    tree: Tree,
    /// Groups whose summaries may be too large, the older first.
    pending: [usize; 2],
    wilderness: Option<B>,
    /// Where the block that was taken out last ended: most often the next one put in ends there too, what is left of it or
    /// what it was merged with.
    ended: Option<(B, Ending)>,
    count: usize,
    /// In the order of their addresses.
    parts: [Option<Part<B>>; REGIONS],
    /// Groups that are free for further regions, at the end of the tree.
    spare: usize,
    summary: PhantomData<E>,
}

/// First fit that decides as a list in address order does, by exact sizes.
pub type FirstFitTree<B> = FirstFit<Exact, B>;
/// First fit by size classes of a byte.
pub type FirstFitClasses<B> = FirstFit<Classes, B>;

// SAFETY: the table lies in the memory of the heap's store, which is the heap's alone.
unsafe impl<E: Send, B: Send> Send for FirstFit<E, B> {}

impl<E: Summary, B> Default for FirstFit<E, B> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Summary, B> FirstFit<E, B> {
    /// An empty index.
    pub const fn new() -> Self {
        FirstFit {
            tree: Tree::NEW,
            pending: [NO_GROUP; 2],
            wilderness: None,
            ended: None,
            count: 0,
            parts: [const { None }; REGIONS],
            spare: 0,
            summary: PhantomData,
        }
    }
}

impl<E: Summary, B: Copy + Eq> FirstFit<E, B> {
    /// The region that holds a block.
    #[inline(always)]
    fn part<S: Store<Block = B>>(&self, store: &S, block: B) -> Part<B> {
        let mut found = self.parts[0];
        if S::ADDRESSED && self.count > 1 {
            for part in self.parts[1..self.count].iter().flatten() {
                if store.precedes(block, part.first) {
                    break;
                }
                found = Some(*part);
            }
        }
        debug_assert!(found.is_some(), "a heap with blocks has a region");
        // SAFETY: blocks come of regions, and the first one was attached before it had any.
        unsafe { found.unwrap_unchecked() }
    }

    /// The region that a group belongs to.
    #[inline(always)]
    fn part_of(&self, group: usize) -> Part<B> {
        let mut found = self.parts[0];
        if self.count > 1 {
            for part in self.parts[1..self.count].iter().flatten() {
                if group < part.group {
                    break;
                }
                found = Some(*part);
            }
        }
        debug_assert!(found.is_some(), "groups belong to regions");
        // SAFETY: as in `part`.
        unsafe { found.unwrap_unchecked() }
    }

    /// Where a free block of `size` bytes lies.
    #[inline(always)]
    fn place<S: Store<Block = B>>(&self, store: &S, block: B, size: usize) -> Place {
        if S::ADDRESSED
            && let Some((end, ending)) = self.ended
            && store.after(block, size) == end
        {
            return ending.place(store.geometry().granules(size));
        }
        let part = self.part(store, block);
        let from = match S::ADDRESSED {
            true => store.distance(part.first, block),
            false => store.offset(block) - part.offset,
        };
        Place::new::<S>(&self.tree, part.group, from, size, store.geometry())
    }

    /// The exact summary of a group.
    #[inline(always)]
    fn largest<S: Store<Block = B>>(&self, store: &S, group: usize) -> u32 {
        let part = self.part_of(group);
        E::of(groups::largest(store, &self.tree, &part, group))
    }

    /// Makes the summaries above the older pending group right.
    #[inline(always)]
    fn settle<S: Store<Block = B>>(&mut self, store: &mut S) {
        let group = self.pending[0];
        if group == NO_GROUP {
            return;
        }
        self.pending = [self.pending[1], NO_GROUP];
        let largest = self.largest(store, group);
        self.tree.lower::<E, S>(store, group, largest);
    }

    /// A block with this summary was taken out of a group.
    #[inline(always)]
    fn left<S: Store<Block = B>>(&mut self, store: &mut S, group: usize, summary: u32) {
        if self.tree.summary::<E, S>(store, group) != summary || self.pending.contains(&group) {
            // Another one is as large or larger, or that is not known already.
            return;
        }
        if self.pending[1] != NO_GROUP {
            self.settle(store);
        }
        match self.pending[0] {
            NO_GROUP => self.pending[0] = group,
            _ => self.pending[1] = group,
        }
    }

    /// Gives a region its groups, behind those of regions at lower addresses, and moves those of the others.
    fn insert_part<S: Store<Block = B>>(&mut self, store: &mut S, first: B, groups: usize) {
        let mut at = self.count;
        while at > 0
            && let Some(before) = self.parts[at - 1]
            && S::ADDRESSED
            && store.precedes(first, before.first)
        {
            at -= 1;
        }
        let group = match at {
            0 => 0,
            _ => self.parts[at - 1].map_or(0, |before| before.group + before.groups),
        };
        self.parts[at..=self.count].rotate_right(1);
        self.parts[at] = Some(Part {
            first,
            offset: match S::ADDRESSED {
                true => 0,
                false => store.offset(first),
            },
            group,
            groups,
        });
        self.count += 1;
        self.spare -= groups;
        for part in self.parts[at + 1..self.count].iter_mut().flatten() {
            part.group += groups;
        }
    }
}

// SAFETY: what `take` returns is what the bits or lists of a group say is free, and these change as the heap tells, or
// the wilderness, which is a block that the heap inserted.
unsafe impl<E: Summary, S: Store> Index<S> for FirstFit<E, S::Block> {
    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        if geometry.granules(span) > E::LARGEST || !(S::ADDRESSED || S::NUMBERED) {
            return None;
        }
        let heads = self.tree.plan::<E, S>(span, geometry);
        self.spare = self.tree.groups();
        Some(heads)
    }

    #[inline(always)]
    fn reads_lists_first(&self) -> bool {
        // Without memory there is no tree.
        true
    }

    fn attach(&mut self, store: &mut S, base: S::Block) {
        self.tree.lay::<E, S>(store);
        self.ended = None;
        // All that was reserved, so that the region may grow; further ones take of it.
        let groups = self.spare;
        self.insert_part(store, base, groups);
    }

    fn has_room_for_region(&self, store: &S, length: usize) -> bool {
        let used: usize = (0..)
            .map_while(|number| store.region(number)?.ok())
            .map(|Extent { room, .. }| self.tree.groups_for::<S>(room, store.geometry()))
            .sum();
        let needed = self.tree.groups_for::<S>(length, store.geometry());
        self.count < REGIONS && used + needed <= self.tree.groups()
    }

    fn attach_further(&mut self, store: &mut S, first: S::Block, room: usize) {
        while self.pending[0] != NO_GROUP {
            self.settle(store);
        }
        self.ended = None;
        // Each region keeps the groups that it fills.
        let mut group = 0;
        for number in 0..self.count {
            let Some(part) = self.parts[number] else {
                break;
            };
            let mut filled = 0;
            for region in 0..self.count {
                if let Some(Ok(Extent { first, room })) = store.region(region)
                    && first == part.first
                {
                    filled = self.tree.groups_for::<S>(room, store.geometry());
                }
            }
            self.parts[number] = Some(Part {
                group,
                groups: filled,
                ..part
            });
            group += filled;
        }
        self.spare = self.tree.groups() - group;
        let groups = self.tree.groups_for::<S>(room, store.geometry());
        self.insert_part(store, first, groups);
        let from = self.part(store, first).group;
        if from < group {
            self.tree.shift::<E, S>(store, from..group, groups);
        }
    }

    fn may_extend(&self, store: &S, room: usize) -> bool {
        let sentinel = store.sentinel();
        let part = self.part(store, sentinel);
        let last = part.group + part.groups == self.tree.groups() - self.spare;
        let groups = part.groups + if last { self.spare } else { 0 };
        self.tree.groups_for::<S>(room, store.geometry()) <= groups
    }

    #[inline(always)]
    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        if self.wilderness.is_none() && store.header(store.after(block, size)).size == 0 {
            self.wilderness = Some(block);
            store.touch(1, 1);
            return;
        }
        let place = self.place(store, block, size);
        self.tree.reach::<E, S>(store, place.group);
        groups::insert(store, &self.tree, place, block);
        let summary = E::of(place.granules);
        let before = self.tree.summary::<E, S>(store, place.group);
        if summary >= before {
            // Whatever it was, this is the largest now.
            if self.pending[1] == place.group {
                self.pending[1] = NO_GROUP;
            } else if self.pending[0] == place.group {
                self.pending = [self.pending[1], NO_GROUP];
            }
            if summary > before {
                self.tree.raise::<E, S>(store, place.group, summary);
            }
        }
        if self.pending[1] != NO_GROUP {
            self.settle(store);
        }
    }

    #[inline(always)]
    fn remove(&mut self, store: &mut S, block: S::Block, size: usize) {
        store.touch(1, 0);
        if self.wilderness == Some(block) {
            self.wilderness = None;
            store.touch(0, 1);
            return;
        }
        let place = self.place(store, block, size);
        self.ended = Some((store.after(block, size), place.ending()));
        groups::remove(store, &self.tree, place, block);
        self.left(store, place.group, E::of(place.granules));
    }

    fn insert_is_sound(&self, _store: &S, _size: usize) -> bool {
        true
    }

    #[inline(always)]
    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        store.free_is_sound(block)
    }

    #[inline(always)]
    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        while self.pending[0] != NO_GROUP {
            self.settle(store);
        }
        let granules = store.geometry().granules(need);
        let wanted = E::wanted(granules);
        if let Some(group) = self.tree.first::<E, S>(store, wanted) {
            let part = self.part_of(group);
            let found = groups::first(store, &self.tree, &part, group, E::served(granules));
            let (block, place) = found?;
            let size = place.granules << store.geometry().granule.trailing_zeros();
            self.ended = Some((store.after(block, size), place.ending()));
            groups::remove(store, &self.tree, place, block);
            // Nothing is pending.
            if self.tree.summary::<E, S>(store, group) == E::of(place.granules) {
                self.pending[0] = group;
            }
            return Some((block, size));
        }
        let block = self.wilderness?;
        let size = store.header(block).size;
        if size < need || !apart_is_sound(store, block) {
            return None;
        }
        self.wilderness = None;
        store.touch(1, 1);
        Some((block, size))
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
        for part in self.parts[..self.count].iter().flatten() {
            for group in part.group..part.group + part.groups {
                let mut largest = 0;
                let walked =
                    groups::each(store, &self.tree, part, group, &mut |block, granules| {
                        largest = largest.max(E::of(granules));
                        visit(block)
                    });
                let summary = self.tree.summary::<E, S>(store, group);
                let pending = self.pending.contains(&group);
                if !walked || summary < largest || (summary > largest && !pending) {
                    return false;
                }
            }
        }
        self.tree.is_sound::<E, S>(store)
    }
}
