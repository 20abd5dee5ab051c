//! The tree of maxima over the groups, in the room of list heads.
//!
//! A complete binary tree in the order of a binary heap: node 1 is the root, below node `i` are `2i` and `2i + 1`, and
//! leaf `leaves + g` is the summary of group `g`. Leaves behind the last group are not kept, but for one beside it.
//! The *root* is the node above all groups that ever had a block, which for most programs are few of those that there is
//! memory for: what goes down begins there, and what goes up ends there, as the entries above it and beside it are
//! larger than every summary. (Above node 1, and beside it, is entry 0.)
//!
//! Invariant: each node from the root down is the maximum of the two below it; groups that are not below it have no block.

use core::ops::Range;

use super::groups;
use super::summary::Summary;
use crate::store::{Geometry, Store};

/// log2 of the granules of a group where it is a list, and the geometry asks for nothing else.
const LISTED_LOG2: u32 = 5;

/// No group: no tree has so many.
pub(super) const NO_GROUP: usize = usize::MAX;

/// Where the tree is and how deep. What it holds lies in the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    /// Where the entries are, where the store has addresses.
    entries: *mut u8,
    /// Where the words of the groups are, there.
    words: *mut usize,
    /// log2 of the granules of a group, elsewhere.
    width_log2: u32,
    /// A power of two, at least the groups.
    leaves: usize,
    groups: usize,
    /// The node above all groups that ever had a block.
    root: usize,
    /// Groups below the root: leaves have numbers from `leaves` on.
    reach: usize,
}

impl Tree {
    pub(super) const NEW: Tree = Tree {
        entries: core::ptr::null_mut(),
        words: core::ptr::null_mut(),
        width_log2: 0,
        leaves: 1,
        groups: 0,
        root: 1,
        reach: 1,
    };

    /// Groups that it has room for.
    #[inline(always)]
    pub(super) fn groups(&self) -> usize {
        self.groups
    }

    /// Entries, those above the root and beside the last leaf included.
    fn entries(&self) -> usize {
        self.leaves + self.groups.next_multiple_of(2)
    }

    fn of(granules: usize, width_log2: u32) -> Tree {
        let groups = (granules >> width_log2) + 1;
        let leaves = groups.next_power_of_two();
        // Two groups at least, as what is beside the root is no summary.
        let reach = leaves.min(2);
        Tree {
            width_log2,
            groups,
            leaves,
            root: leaves / reach,
            reach,
            ..Tree::NEW
        }
    }

    /// Plans a tree over memory of so many bytes; returns the list heads in whose room it lies.
    pub(super) fn plan<E: Summary, S: Store>(&mut self, span: usize, geometry: Geometry) -> usize {
        let granules = geometry.granules(span);
        if geometry.head == 0 {
            // A list for each group, and two numbers in each head.
            *self = Tree::of(granules, LISTED_LOG2);
            return self.groups.max(self.entries().div_ceil(2));
        }
        // A word for each group, and the entries; where the records are elsewhere, as many, so that blocks lie alike.
        let word = geometry.head / 2;
        *self = Tree::of(granules, (8 * word).ilog2());
        let bytes = self.groups * word + self.entries() * E::BYTES;
        // Of a single group, three entries are four numbers elsewhere.
        let heads = bytes.div_ceil(geometry.head).max(2);
        if !S::ADDRESSED {
            // Of groups four times as wide, lists and numbers have room in these heads.
            *self = Tree::of(granules, (32 * word).ilog2());
            debug_assert!(self.groups <= heads && self.entries() <= 2 * heads);
        }
        heads
    }

    /// log2 of the granules of a group.
    #[inline(always)]
    pub(super) fn width_log2<S: Store>(&self) -> u32 {
        match S::ADDRESSED {
            true => usize::BITS.ilog2(),
            false => self.width_log2,
        }
    }

    /// Groups that `bytes` of blocks may need.
    pub(super) fn groups_for<S: Store>(&self, bytes: usize, geometry: Geometry) -> usize {
        (geometry.granules(bytes) >> self.width_log2::<S>()) + 1
    }

    /// Writes an empty tree.
    pub(super) fn lay<E: Summary, S: Store>(&mut self, store: &mut S) {
        if S::ADDRESSED {
            self.words = store.table().cast();
            // SAFETY: the heads that were planned have room for both (the contract of `table`).
            unsafe {
                self.entries = self.words.add(self.groups).cast();
                self.words.write_bytes(0, self.groups);
            }
        }
        for at in 0..self.entries() {
            self.set::<E, S>(store, at, 0);
        }
        self.fence::<E, S>(store);
    }

    /// Writes what ends ways up beside the root and above it.
    fn fence<E: Summary, S: Store>(&self, store: &mut S) {
        self.set::<E, S>(store, self.root ^ 1, ABOVE);
        self.set::<E, S>(store, self.root / 2, ABOVE);
    }

    /// Makes the root one that is above a group.
    #[inline(always)]
    pub(super) fn reach<E: Summary, S: Store>(&mut self, store: &mut S, group: usize) {
        if group >= self.reach {
            self.raise_root::<E, S>(store, group);
        }
    }

    /// A step a level that the root rises.
    #[cold]
    fn raise_root<E: Summary, S: Store>(&mut self, store: &mut S, group: usize) {
        let largest = self.get::<E, S>(store, self.root);
        store.touch(1, 1);
        self.set::<E, S>(store, self.root ^ 1, 0);
        while group >= self.reach {
            self.reach *= 2;
            self.root /= 2;
            store.touch(0, 1);
            self.set::<E, S>(store, self.root, largest);
        }
        store.touch(0, 2);
        self.fence::<E, S>(store);
    }

    /// The word of a group, where the store has addresses.
    #[inline(always)]
    pub(super) fn word(&self, group: usize) -> usize {
        debug_assert!(group < self.groups);
        // SAFETY: a group that was planned, in the table that was laid.
        unsafe { *self.words.add(group) }
    }

    #[inline(always)]
    pub(super) fn set_word(&self, group: usize, word: usize) {
        debug_assert!(group < self.groups);
        // SAFETY: as `word`.
        unsafe { *self.words.add(group) = word }
    }

    #[inline(always)]
    fn get<E: Summary, S: Store>(&self, store: &S, at: usize) -> u32 {
        debug_assert!(at < self.entries());
        if S::ADDRESSED {
            // SAFETY: an entry that was planned, in the table that was laid.
            unsafe { E::get(self.entries, at) }
        } else {
            store.number(at)
        }
    }

    #[inline(always)]
    fn set<E: Summary, S: Store>(&self, store: &mut S, at: usize, summary: u32) {
        debug_assert!(at < self.entries());
        if S::ADDRESSED {
            // SAFETY: as `get`.
            unsafe { E::set(self.entries, at, summary) }
        } else {
            store.set_number(at, summary);
        }
    }

    /// The summary of a group.
    #[inline(always)]
    pub(super) fn summary<E: Summary, S: Store>(&self, store: &S, group: usize) -> u32 {
        store.touch(1, 0);
        self.get::<E, S>(store, self.leaves + group)
    }

    /// The first group with a summary of at least `wanted`. A step a level.
    #[inline(always)]
    pub(super) fn first<E: Summary, S: Store>(&self, store: &S, wanted: u32) -> Option<usize> {
        store.touch(1, 0);
        let mut node = self.root;
        if self.get::<E, S>(store, node) < wanted {
            return None;
        }
        while node < self.leaves {
            node *= 2;
            if S::VERIFIES && node + 1 >= self.entries() {
                return None;
            }
            store.touch(1, 0);
            node += usize::from(self.get::<E, S>(store, node) < wanted);
        }
        let group = node - self.leaves;
        (!S::VERIFIES || group < self.groups).then_some(group)
    }

    /// Raises the summary of a group, and the nodes above it that are below.
    #[inline(always)]
    pub(super) fn raise<E: Summary, S: Store>(&self, store: &mut S, group: usize, summary: u32) {
        debug_assert!(group < self.reach);
        let mut node = self.leaves + group;
        // Ends above the root at the latest.
        while self.get::<E, S>(store, node) < summary {
            store.touch(1, 1);
            self.set::<E, S>(store, node, summary);
            node /= 2;
            if S::VERIFIES && node == 0 {
                // What stands above the root was overwritten.
                return;
            }
        }
        store.touch(1, 0);
    }

    /// Lowers the summary of a group, and the nodes above it that it alone held up.
    #[inline(always)]
    pub(super) fn lower<E: Summary, S: Store>(&self, store: &mut S, group: usize, summary: u32) {
        let mut node = self.leaves + group;
        let mut summary = summary;
        store.touch(1, 0);
        let before = self.get::<E, S>(store, node);
        if summary == before {
            return;
        }
        loop {
            store.touch(1, 1);
            self.set::<E, S>(store, node, summary);
            let beside = self.get::<E, S>(store, node ^ 1);
            if beside >= before {
                // It alone holds up what is above, or this is the root.
                return;
            }
            summary = summary.max(beside);
            node /= 2;
            if S::VERIFIES && node == 0 {
                return;
            }
        }
    }

    /// Moves what is known of groups behind the beginning of a range by so many groups, to make room there.
    pub(super) fn shift<E: Summary, S: Store>(
        &mut self,
        store: &mut S,
        range: Range<usize>,
        by: usize,
    ) {
        for group in range.clone().rev() {
            let summary = self.get::<E, S>(store, self.leaves + group);
            self.set::<E, S>(store, self.leaves + group + by, summary);
            groups::shift(store, self, group, by);
        }
        for group in range.start..range.start + by {
            self.set::<E, S>(store, self.leaves + group, 0);
            groups::clear(store, self, group);
        }
        // As if all groups were reached.
        self.set::<E, S>(store, self.root ^ 1, 0);
        (self.root, self.reach) = (1, self.leaves);
        self.fence::<E, S>(store);
        for node in (1..self.leaves).rev() {
            if 2 * node + 1 < self.entries() {
                let largest = self.below::<E, S>(store, node);
                self.set::<E, S>(store, node, largest);
            }
        }
    }

    fn below<E: Summary, S: Store>(&self, store: &S, node: usize) -> u32 {
        let left = self.get::<E, S>(store, 2 * node);
        left.max(self.get::<E, S>(store, 2 * node + 1))
    }

    /// Whether every node is the maximum of those below it, and no group that is not reached has a block. Linear.
    pub(super) fn is_sound<E: Summary, S: Store>(&self, store: &S) -> bool {
        let get = |at| self.get::<E, S>(store, at);
        let below_root = |node: usize| node >> (node.ilog2() - self.root.ilog2()) == self.root;
        let exact = (self.root..self.leaves)
            .filter(|&node| below_root(node))
            .all(|node| {
                let below = match 2 * node + 1 < self.entries() {
                    true => self.below::<E, S>(store, node),
                    false => 0,
                };
                get(node) == below
            });
        exact
            && get(self.root ^ 1) == get(self.root / 2)
            && get(self.root ^ 1) > get(self.root)
            && (self.reach..self.groups).all(|group| get(self.leaves + group) == 0)
    }
}

/// Above every summary, in any width.
const ABOVE: u32 = u32::MAX;
