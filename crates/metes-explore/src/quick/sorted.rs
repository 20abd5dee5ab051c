//! A sorted list that knows positions: counting, searching and changing in O(log n).
//!
//! Elements have a key by which they are sorted, a value that is searched for, and an
//! item. They lie in leaves of up to 64, the leaves under inner nodes of up to 64, the
//! inner nodes under one root that grows; so all but the largest lists take two short
//! searches. Each entry above a leaf carries the number of elements below it and the
//! largest value among them.
//!
//! Invariant: keys rise over the leaves in order; every key under an entry but the first
//! of a node is at least the entry's `first` and every key before it is less; counts and
//! maxima are exact; entries behind a node's length are padding (largest key, value 0);
//! no leaf is empty and no inner node without leaves, but for one each of an empty list.

// The larger operations are never inlined: dozens of copies of them take longer to fetch
// than the calls.

use super::lanes::{self, Key, WIDTH};

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
    leaves: [u32; WIDTH],
    length: usize,
}

impl<K: Key> Inner<K> {
    const EMPTY: Self = Inner {
        firsts: [K::END; WIDTH],
        largest: [0; WIDTH],
        counts: [0; WIDTH],
        leaves: [0; WIDTH],
        length: 0,
    };

    fn insert(&mut self, at: usize, entry: Entry<K>) {
        shift_in(&mut self.firsts, at, self.length, entry.first);
        shift_in(&mut self.largest, at, self.length, entry.largest);
        shift_in(&mut self.counts, at, self.length, entry.count);
        shift_in(&mut self.leaves, at, self.length, entry.node);
        self.length += 1;
    }

    fn remove(&mut self, at: usize) {
        shift_out(&mut self.firsts, at, self.length, K::END);
        shift_out(&mut self.largest, at, self.length, 0);
        shift_out(&mut self.counts, at, self.length, 0);
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
                    node: self.leaves[index],
                },
            );
        }
        self.firsts[at..].fill(K::END);
        self.largest[at..].fill(0);
        self.counts[at..].fill(0);
        self.length = at;
    }

    fn count(&self) -> u32 {
        lanes::sum(&self.counts)
    }
}

/// What a node says of one below it.
struct Entry<K> {
    first: K,
    largest: u32,
    count: u32,
    node: u32,
}

#[derive(Clone, Debug)]
struct Root<K> {
    firsts: Vec<K>,
    largest: Vec<u32>,
    counts: Vec<u32>,
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
                inners: Vec::new(),
            },
            length: 0,
        }
    }

    /// The largest value; 0 for none.
    #[inline(always)]
    pub(super) fn largest(&self) -> u32 {
        lanes::largest(&self.root.largest)
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

    /// The last element before `end` whose value is at least `least` (not 0).
    #[inline(never)]
    pub(super) fn find_last(&self, end: Position, least: u32) -> Option<Position> {
        if self.length == 0 {
            return None;
        }
        let span = u32::MAX - least;
        let last = |mask: u64| 63 - mask.leading_zeros() as usize;
        let below = |mask: u64, end: usize| {
            mask & 1_u64.checked_shl(end as u32).unwrap_or(0).wrapping_sub(1)
        };
        let in_leaf = |node: &Inner<K>, inner: usize, end: usize| {
            let leaf = &self.leaves[node.leaves[inner] as usize];
            below(lanes::within(&leaf.values, end, least, span), end)
        };
        let node = self.inner(end);
        if node.largest[end.inner] >= least {
            let mask = in_leaf(node, end.inner, end.slot);
            if mask != 0 {
                return Some(Position {
                    slot: last(mask),
                    ..end
                });
            }
        }
        let before = below(
            lanes::within(&node.largest, end.inner, least, span),
            end.inner,
        );
        let (root, node, mask) = if before != 0 {
            (end.root, node, before)
        } else {
            let less = &self.root.largest[..end.root];
            let root = less.iter().rposition(|&largest| largest >= least)?;
            let node = &self.inners[self.root.inners[root] as usize];
            let mask = lanes::within(&node.largest, node.length, least, span);
            (root, node, below(mask, node.length))
        };
        let inner = last(mask);
        let slot = last(in_leaf(node, inner, node.counts[inner] as usize));
        Some(Position { root, inner, slot })
    }

    /// The largest value from one position up to another, which is not before it; 0 for none.
    #[inline(never)]
    pub(super) fn largest_between(&self, from: Position, to: Position) -> u32 {
        if self.length == 0 {
            return 0;
        }
        let values = |at: Position| &self.leaf(at).values;
        if (from.root, from.inner) == (to.root, to.inner) {
            return lanes::largest(&values(from)[from.slot..to.slot]);
        }
        let ends =
            lanes::largest(&values(from)[from.slot..]).max(lanes::largest(&values(to)[..to.slot]));
        let (first, last) = (self.inner(from), self.inner(to));
        if from.root == to.root {
            return ends.max(lanes::largest(&first.largest[from.inner + 1..to.inner]));
        }
        ends.max(lanes::largest(&first.largest[from.inner + 1..]))
            .max(lanes::largest(&last.largest[..to.inner]))
            .max(lanes::largest(&self.root.largest[from.root + 1..to.root]))
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

    fn new_leaf(&mut self, filler: T) -> u32 {
        if let Some(leaf) = self.spare_leaves.pop() {
            let old = &mut self.leaves[leaf as usize];
            old.keys = [K::END; WIDTH];
            old.values = [0; WIDTH];
            return leaf;
        }
        self.leaves.push(Leaf {
            keys: [K::END; WIDTH],
            values: [0; WIDTH],
            items: [filler; WIDTH],
        });
        (self.leaves.len() - 1) as u32
    }

    fn new_inner(&mut self) -> u32 {
        if let Some(inner) = self.spare_inners.pop() {
            self.inners[inner as usize] = Inner::EMPTY;
            return inner;
        }
        self.inners.push(Inner::EMPTY);
        (self.inners.len() - 1) as u32
    }

    /// Adds an element at the position that [`locate`](Self::locate) gave for its key,
    /// which is no other element's. Positions found before are void. Amortised O(log n).
    #[inline(never)]
    pub(super) fn insert(&mut self, at: Position, key: K, value: u32, item: T) {
        if self.length == 0 {
            self.insert_first(key, value, item);
            return;
        }
        let number = self.root.inners[at.root] as usize;
        let count = self.inners[number].counts[at.inner] as usize;
        if count == WIDTH {
            self.insert_split(at, key, value, item);
            return;
        }
        let node = &mut self.inners[number];
        let leaf = &mut self.leaves[node.leaves[at.inner] as usize];
        shift_in(&mut leaf.keys, at.slot, count, key);
        shift_in(&mut leaf.values, at.slot, count, value);
        shift_in(&mut leaf.items, at.slot, count, item);
        node.counts[at.inner] += 1;
        node.largest[at.inner] = node.largest[at.inner].max(value);
        self.root.counts[at.root] += 1;
        self.root.largest[at.root] = self.root.largest[at.root].max(value);
        self.length += 1;
    }

    #[cold]
    fn insert_first(&mut self, key: K, value: u32, item: T) {
        self.clear();
        let leaf = self.new_leaf(item);
        let inner = self.new_inner();
        let first = &mut self.leaves[leaf as usize];
        first.keys[0] = key;
        first.values[0] = value;
        self.inners[inner as usize].insert(
            0,
            Entry {
                first: key,
                largest: value,
                count: 1,
                node: leaf,
            },
        );
        self.root.firsts.push(key);
        self.root.largest.push(value);
        self.root.counts.push(1);
        self.root.inners.push(inner);
        self.length = 1;
    }

    /// Splits a full leaf, then inserts.
    #[cold]
    fn insert_split(&mut self, at: Position, key: K, value: u32, item: T) {
        let last_root = at.root + 1 == self.root.inners.len();
        let number = self.root.inners[at.root] as usize;
        // A list that grows at its end fills its nodes.
        let at_end = at.slot == WIDTH && last_root && at.inner + 1 == self.inners[number].length;
        let cut = if at_end { WIDTH } else { WIDTH / 2 };
        let left = self.inners[number].leaves[at.inner] as usize;
        let right = self.new_leaf(item);
        if !at_end {
            let Leaf {
                keys,
                values,
                items,
            } = self.leaves[left];
            let moved = WIDTH - cut;
            let new = &mut self.leaves[right as usize];
            new.keys[..moved].copy_from_slice(&keys[cut..]);
            new.values[..moved].copy_from_slice(&values[cut..]);
            new.items[..moved].copy_from_slice(&items[cut..]);
            let old = &mut self.leaves[left];
            old.keys[cut..].fill(K::END);
            old.values[cut..].fill(0);
        }
        let first = if at_end {
            key
        } else {
            self.leaves[right as usize].keys[0]
        };
        let new_count = WIDTH - cut;
        let largest = lanes::largest(&self.leaves[right as usize].values);
        let node = &mut self.inners[number];
        if at.inner == 0 {
            // Smaller keys may have come since; from now on another entry follows.
            node.firsts[0] = self.leaves[left].keys[0];
        }
        node.counts[at.inner] = cut as u32;
        node.largest[at.inner] = lanes::largest(&self.leaves[left].values);
        let entry = Entry {
            first,
            largest,
            count: new_count as u32,
            node: right,
        };
        if self.inners[number].length == WIDTH {
            let end = at_end || (last_root && at.inner + 1 == WIDTH);
            let cut = if end { WIDTH } else { WIDTH / 2 };
            let other = self.new_inner();
            let (one, two) = pair(&mut self.inners, number, other as usize);
            one.split_to(cut, two);
            if at.inner < cut && at.inner + 1 != WIDTH {
                one.insert(at.inner + 1, entry);
            } else {
                two.insert(at.inner + 1 - cut, entry);
            }
            let place = at.root + 1;
            self.root.firsts.insert(place, two.firsts[0]);
            self.root.inners.insert(place, other);
            self.root.counts.insert(place, 0);
            self.root.largest.insert(place, 0);
            self.refresh(at.root);
            self.refresh(place);
        } else {
            self.inners[number].insert(at.inner + 1, entry);
        }
        let place = self.locate(key);
        self.insert(place, key, value, item);
    }

    /// Recomputes what the root says of an inner node.
    fn refresh(&mut self, root: usize) {
        let node = &self.inners[self.root.inners[root] as usize];
        self.root.counts[root] = node.count();
        self.root.largest[root] = lanes::largest(&node.largest);
    }

    /// Takes the element at a settled position out. Positions found before are void.
    /// Amortised O(log n).
    #[inline(never)]
    pub(super) fn remove(&mut self, at: Position) {
        let node = &mut self.inners[self.root.inners[at.root] as usize];
        let leaf = &mut self.leaves[node.leaves[at.inner] as usize];
        let count = node.counts[at.inner] as usize;
        let value = leaf.values[at.slot];
        shift_out(&mut leaf.keys, at.slot, count, K::END);
        shift_out(&mut leaf.values, at.slot, count, 0);
        leaf.items.copy_within(at.slot + 1..count, at.slot);
        node.counts[at.inner] -= 1;
        self.root.counts[at.root] -= 1;
        self.length -= 1;
        if value == node.largest[at.inner] {
            node.largest[at.inner] = lanes::largest(&leaf.values);
            if value == self.root.largest[at.root] {
                self.root.largest[at.root] = lanes::largest(&node.largest);
            }
        }
        // A lone leaf may be short, and an empty list is begun anew.
        if count <= FEW && node.length + self.root.inners.len() > 2 {
            self.thin(at);
        }
    }

    /// Joins a leaf that has become short with a neighbour, and its inner node likewise.
    #[cold]
    fn thin(&mut self, at: Position) {
        let number = self.root.inners[at.root] as usize;
        let node = &self.inners[number];
        let count = node.counts[at.inner] as usize;
        let with = |other: usize| count + node.counts[other] as usize <= JOINED;
        if count == 0 {
            self.drop_leaf(number, at.inner);
        } else if at.inner + 1 < node.length && with(at.inner + 1) {
            self.join_leaves(number, at.inner);
        } else if at.inner > 0 && with(at.inner - 1) {
            self.join_leaves(number, at.inner - 1);
        } else {
            return;
        }
        let length = self.inners[number].length;
        let roots = self.root.inners.len();
        let length_of = |root: usize| self.inners[self.root.inners[root] as usize].length;
        if length > FEW || roots == 1 {
            return;
        }
        if length == 0 {
            self.drop_inner(at.root);
        } else if at.root + 1 < roots && length + length_of(at.root + 1) <= JOINED {
            self.join_inners(at.root);
        } else if at.root > 0 && length + length_of(at.root - 1) <= JOINED {
            self.join_inners(at.root - 1);
        }
    }

    fn drop_leaf(&mut self, number: usize, inner: usize) {
        let node = &mut self.inners[number];
        self.spare_leaves.push(node.leaves[inner]);
        node.remove(inner);
    }

    /// Moves the leaf behind `inner` to the end of the one at `inner`.
    fn join_leaves(&mut self, number: usize, inner: usize) {
        let node = &mut self.inners[number];
        let (left, right) = (node.leaves[inner], node.leaves[inner + 1]);
        let (have, more) = (node.counts[inner] as usize, node.counts[inner + 1] as usize);
        let (one, two) = pair(&mut self.leaves, left as usize, right as usize);
        one.keys[have..have + more].copy_from_slice(&two.keys[..more]);
        one.values[have..have + more].copy_from_slice(&two.values[..more]);
        one.items[have..have + more].copy_from_slice(&two.items[..more]);
        node.counts[inner] += more as u32;
        node.largest[inner] = node.largest[inner].max(node.largest[inner + 1]);
        self.drop_leaf(number, inner + 1);
    }

    fn drop_inner(&mut self, root: usize) {
        self.spare_inners.push(self.root.inners.remove(root));
        self.root.firsts.remove(root);
        self.root.counts.remove(root);
        self.root.largest.remove(root);
    }

    fn join_inners(&mut self, root: usize) {
        let (left, right) = (self.root.inners[root], self.root.inners[root + 1]);
        let (one, two) = pair(&mut self.inners, left as usize, right as usize);
        // What lay under the second node's first entry is bounded by the root's.
        two.firsts[0] = self.root.firsts[root + 1];
        two.split_to(0, one);
        self.drop_inner(root + 1);
        self.refresh(root);
    }
}

/// Two different elements of a slice.
fn pair<T>(slice: &mut [T], one: usize, two: usize) -> (&mut T, &mut T) {
    if one < two {
        let (low, high) = slice.split_at_mut(two);
        (&mut low[one], &mut high[0])
    } else {
        let (low, high) = slice.split_at_mut(one);
        (&mut high[0], &mut low[two])
    }
}
