//! A sorted list that knows positions: counting, searching and changing in O(log n).
//!
//! Elements have a key by which they are sorted, a value that is searched for, and an
//! item. They lie in leaves of up to 64, the leaves under inner nodes of up to 64, the
//! inner nodes under one root that grows; so all but the largest lists take two short
//! searches. Each entry above a leaf carries the number of elements below it, the
//! largest value among them, and the marks that elements were given.
//!
//! Invariant: keys rise over the leaves in order; every key under an entry but the first
//! of a node is at least the entry's `first` and every key before it is less; counts and
//! maxima are exact; marks are those of all elements below and, where they are `stale`,
//! perhaps some of elements that left; entries behind a node's length are padding (largest key, value 0);
//! no leaf is empty and no inner node without leaves, but for one each of an empty list.

// The larger operations are never inlined: dozens of copies of them take longer to fetch
// than the calls.

use super::lanes::{self, Key, WIDTH};
use super::marks::Mark;

mod change;
mod marked;

pub(super) use marked::Wanted;

/// Nodes with fewer elements are joined with a neighbour where both fit well.
const FEW: usize = WIDTH / 4;
/// Two neighbours with at most so many elements together become one.
const JOINED: usize = 3 * WIDTH / 4;

#[derive(Clone, Copy, Debug)]
struct Leaf<K, T> {
    keys: [K; WIDTH],
    values: [u32; WIDTH],
    items: [T; WIDTH],
}

#[derive(Clone, Copy, Debug)]
struct Inner<K> {
    firsts: [K; WIDTH],
    largest: [u32; WIDTH],
    counts: [u32; WIDTH],
    marks: [Mark; WIDTH],
    stale: [bool; WIDTH],
    leaves: [u32; WIDTH],
    length: usize,
}

impl<K: Key> Inner<K> {
    const EMPTY: Self = Inner {
        firsts: [K::END; WIDTH],
        largest: [0; WIDTH],
        counts: [0; WIDTH],
        marks: [0; WIDTH],
        stale: [false; WIDTH],
        leaves: [0; WIDTH],
        length: 0,
    };

    fn insert(&mut self, at: usize, entry: Entry<K>) {
        shift_in(&mut self.firsts, at, self.length, entry.first);
        shift_in(&mut self.largest, at, self.length, entry.largest);
        shift_in(&mut self.counts, at, self.length, entry.count);
        shift_in(&mut self.marks, at, self.length, entry.marks);
        shift_in(&mut self.stale, at, self.length, true);
        shift_in(&mut self.leaves, at, self.length, entry.node);
        self.length += 1;
    }

    fn remove(&mut self, at: usize) {
        shift_out(&mut self.firsts, at, self.length, K::END);
        shift_out(&mut self.largest, at, self.length, 0);
        shift_out(&mut self.counts, at, self.length, 0);
        shift_out(&mut self.marks, at, self.length, 0);
        shift_out(&mut self.stale, at, self.length, false);
        shift_out(&mut self.leaves, at, self.length, 0);
        self.length -= 1;
    }

    /// Moves the entries from `at` on behind those of another node.
    fn split_to(&mut self, at: usize, other: &mut Self) {
        for index in at..self.length {
            other.insert(
                other.length,
                Entry {
                    first: self.firsts[index],
                    largest: self.largest[index],
                    count: self.counts[index],
                    marks: self.marks[index],
                    node: self.leaves[index],
                },
            );
        }
        self.firsts[at..].fill(K::END);
        self.largest[at..].fill(0);
        self.counts[at..].fill(0);
        self.marks[at..].fill(0);
        self.length = at;
    }

    fn count(&self) -> u32 {
        lanes::sum(&self.counts)
    }

    fn all_marks(&self) -> Mark {
        self.marks.iter().fold(0, |all, marks| all | marks)
    }
}

/// What a node says of one below it.
struct Entry<K> {
    first: K,
    largest: u32,
    count: u32,
    marks: Mark,
    node: u32,
}

#[derive(Clone, Debug)]
struct Root<K> {
    firsts: Vec<K>,
    largest: Vec<u32>,
    counts: Vec<u32>,
    marks: Vec<Mark>,
    inners: Vec<u32>,
}

/// Where an element is, or where one with a key would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    root: usize,
    inner: usize,
    slot: usize,
}

/// A part of a leaf: its slots from `at` up to `end`.
pub(super) struct Part<'s> {
    at: Position,
    end: usize,
    values: &'s [u32; WIDTH],
    /// The largest value of the whole leaf.
    pub(super) largest: u32,
}

impl Part<'_> {
    /// The values.
    #[inline(always)]
    pub(super) fn values(&self) -> &[u32] {
        &self.values[self.at.slot..self.end.max(self.at.slot)]
    }

    /// The first element with a value in `base..=base + span`, modulo 2³².
    #[inline(always)]
    pub(super) fn first_within(&self, base: u32, span: u32) -> Option<Position> {
        let mask = lanes::within(self.values, self.end, base, span);
        let slot = self.at.slot + mask.checked_shr(self.at.slot as u32)?.trailing_zeros() as usize;
        (slot < self.end).then_some(Position { slot, ..self.at })
    }
}

/// See the module. `T` is the item.
#[derive(Clone, Debug)]
pub(super) struct Sorted<K, T> {
    leaves: Vec<Leaf<K, T>>,
    spare_leaves: Vec<u32>,
    inners: Vec<Inner<K>>,
    spare_inners: Vec<u32>,
    root: Root<K>,
    length: usize,
}

#[inline(always)]
fn shift_in<T: Copy>(array: &mut [T; WIDTH], at: usize, length: usize, new: T) {
    array.copy_within(at..length, at + 1);
    array[at] = new;
}

#[inline(always)]
fn shift_out<T: Copy>(array: &mut [T; WIDTH], at: usize, length: usize, padding: T) {
    array.copy_within(at + 1..length, at);
    array[length - 1] = padding;
}

impl<K: Key, T: Copy> Sorted<K, T> {
    /// An empty list; takes no memory before the first element.
    pub(super) const fn new() -> Self {
        Sorted {
            leaves: Vec::new(),
            spare_leaves: Vec::new(),
            inners: Vec::new(),
            spare_inners: Vec::new(),
            root: Root {
                firsts: Vec::new(),
                largest: Vec::new(),
                counts: Vec::new(),
                marks: Vec::new(),
                inners: Vec::new(),
            },
            length: 0,
        }
    }

    /// Elements in the list.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Forgets every element and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.leaves.clear();
        self.spare_leaves.clear();
        self.inners.clear();
        self.spare_inners.clear();
        self.root.firsts.clear();
        self.root.largest.clear();
        self.root.counts.clear();
        self.root.marks.clear();
        self.root.inners.clear();
        self.length = 0;
    }

    /// The position of the first element.
    #[inline(always)]
    pub(super) fn first(&self) -> Position {
        Position {
            root: 0,
            inner: 0,
            slot: 0,
        }
    }

    #[inline(always)]
    fn inner(&self, position: Position) -> &Inner<K> {
        &self.inners[self.root.inners[position.root] as usize]
    }

    #[inline(always)]
    fn leaf(&self, position: Position) -> &Leaf<K, T> {
        &self.leaves[self.inner(position).leaves[position.inner] as usize]
    }

    /// Where an element with `key` is or would be: before the first one whose key is not
    /// less, perhaps behind the end of its leaf. O(log n).
    #[inline(never)]
    pub(super) fn locate(&self, key: K) -> Position {
        if self.length == 0 {
            return self.first();
        }
        let firsts = &self.root.firsts;
        let root = if firsts.len() == 1 {
            0
        } else {
            firsts[1..].partition_point(|&first| first <= key)
        };
        let node = &self.inners[self.root.inners[root] as usize];
        let inner = K::child(&node.firsts, node.length, key);
        let leaf = &self.leaves[node.leaves[inner] as usize];
        Position {
            root,
            inner,
            slot: K::below(&leaf.keys, node.counts[inner] as usize, key),
        }
    }

    /// The element at a position, or the next one where the position is behind a leaf.
    #[inline(always)]
    pub(super) fn settle(&self, position: Position) -> Option<Position> {
        if self.length == 0 {
            return None;
        }
        let node = self.inner(position);
        if position.slot < node.counts[position.inner] as usize {
            return Some(position);
        }
        let (root, inner) = if position.inner + 1 < node.length {
            (position.root, position.inner + 1)
        } else if position.root + 1 < self.root.inners.len() {
            (position.root + 1, 0)
        } else {
            return None;
        };
        Some(Position {
            root,
            inner,
            slot: 0,
        })
    }

    /// The key of the element at a settled position.
    #[inline(always)]
    pub(super) fn key(&self, position: Position) -> K {
        self.leaf(position).keys[position.slot]
    }

    /// The value of the element at a settled position.
    #[inline(always)]
    pub(super) fn value(&self, position: Position) -> u32 {
        self.leaf(position).values[position.slot]
    }

    /// The item of the element at a settled position.
    #[inline(always)]
    pub(super) fn item(&self, position: Position) -> T {
        self.leaf(position).items[position.slot]
    }

    /// The position behind a settled one.
    #[inline(always)]
    pub(super) fn behind(&self, position: Position) -> Option<Position> {
        self.settle(Position {
            slot: position.slot + 1,
            ..position
        })
    }

    /// The key behind that of a settled position.
    #[inline(always)]
    pub(super) fn key_after(&self, position: Position) -> Option<K> {
        self.behind(position).map(|next| self.key(next))
    }

    /// Elements before a position. O(log n).
    #[inline(never)]
    pub(super) fn rank(&self, position: Position) -> usize {
        if self.length == 0 {
            return 0;
        }
        let roots = lanes::sum(&self.root.counts[..position.root]);
        let inners = lanes::sum(&self.inner(position).counts[..position.inner]);
        roots as usize + inners as usize + position.slot
    }

    /// The position with so many elements before it, which must be below the length.
    #[inline(never)]
    pub(super) fn select(&self, rank: usize) -> Position {
        let mut left = rank as u32;
        let mut root = 0;
        while left >= self.root.counts[root] {
            left -= self.root.counts[root];
            root += 1;
        }
        let node = &self.inners[self.root.inners[root] as usize];
        let mut inner = 0;
        while left >= node.counts[inner] {
            left -= node.counts[inner];
            inner += 1;
        }
        Position {
            root,
            inner,
            slot: left as usize,
        }
    }

    /// The first element at or behind `from` whose value is at least `least` (not 0).
    #[inline(never)]
    pub(super) fn find(&self, from: Position, least: u32) -> Option<Position> {
        if self.length == 0 {
            return None;
        }
        let span = u32::MAX - least;
        let node = self.inner(from);
        if node.largest[from.inner] >= least {
            let count = node.counts[from.inner] as usize;
            let mask = lanes::within(&self.leaf(from).values, count, least, span);
            let behind = mask.checked_shr(from.slot as u32).unwrap_or(0);
            if behind != 0 {
                let slot = from.slot + behind.trailing_zeros() as usize;
                return Some(Position { slot, ..from });
            }
        }
        let mask = lanes::within(&node.largest, node.length, least, span);
        let behind = mask & u64::MAX.checked_shl(from.inner as u32 + 1).unwrap_or(0);
        let (root, node, mask) = if behind != 0 {
            (from.root, node, behind)
        } else {
            let more = &self.root.largest[from.root + 1..];
            let root = from.root + 1 + more.iter().position(|&largest| largest >= least)?;
            let node = &self.inners[self.root.inners[root] as usize];
            let mask = lanes::within(&node.largest, node.length, least, span);
            (root, node, mask)
        };
        let inner = mask.trailing_zeros() as usize;
        let leaf = &self.leaves[node.leaves[inner] as usize];
        let mask = lanes::within(&leaf.values, node.counts[inner] as usize, least, span);
        Some(Position {
            root,
            inner,
            slot: mask.trailing_zeros() as usize,
        })
    }

    /// Calls `visit` with the leaves between two positions, in order, until it says `false`.
    #[inline(always)]
    pub(super) fn parts(
        &self,
        from: Position,
        to: Position,
        mut visit: impl FnMut(Part<'_>) -> bool,
    ) {
        if self.length == 0 {
            return;
        }
        let mut at = from;
        loop {
            let node = self.inner(at);
            let leaf = &self.leaves[node.leaves[at.inner] as usize];
            let count = node.counts[at.inner] as usize;
            let last = (at.root, at.inner) == (to.root, to.inner);
            let more = visit(Part {
                at,
                end: if last { to.slot } else { count },
                values: &leaf.values,
                largest: node.largest[at.inner],
            });
            if last || !more {
                return;
            }
            match self.settle(Position { slot: count, ..at }) {
                Some(next) => at = next,
                None => return,
            }
        }
    }

    /// The items in order.
    pub(super) fn items(&self) -> impl Iterator<Item = T> + '_ {
        let mut at = self.settle(self.first());
        std::iter::from_fn(move || {
            let now = at?;
            at = self.behind(now);
            Some(self.item(now))
        })
    }

    /// The position behind all elements.
    #[inline(always)]
    pub(super) fn end(&self) -> Position {
        let Some(root) = self.root.inners.len().checked_sub(1) else {
            return self.first();
        };
        let node = &self.inners[self.root.inners[root] as usize];
        Position {
            root,
            inner: node.length - 1,
            slot: node.counts[node.length - 1] as usize,
        }
    }
}
