//! Inserting and removing elements of a [`Sorted`] list: nodes split when they are
//! full, and join when two neighbours have become small.
//!
//! Invariant: that of the list, between any two calls.

use super::super::lanes::{self, Key, WIDTH};
use super::super::marks::Mark;
use super::{Entry, FEW, Inner, JOINED, Leaf, Position, Sorted, shift_in, shift_out};

impl<K: Key, T: Copy> Sorted<K, T> {
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
    /// which is no other element's; `mark` is for [`find_marked`](Self::find_marked).
    /// Positions found before are void. Amortised O(log n).
    #[inline(never)]
    pub(in super::super) fn insert(
        &mut self,
        at: Position,
        key: K,
        value: u32,
        item: T,
        mark: Mark,
    ) {
        if self.length == 0 {
            self.insert_first(key, value, item, mark);
            return;
        }
        let number = self.root.inners[at.root] as usize;
        let count = self.inners[number].counts[at.inner] as usize;
        if count == WIDTH {
            self.insert_split(at, key, value, item, mark);
            return;
        }
        let node = &mut self.inners[number];
        let leaf = &mut self.leaves[node.leaves[at.inner] as usize];
        shift_in(&mut leaf.keys, at.slot, count, key);
        shift_in(&mut leaf.values, at.slot, count, value);
        shift_in(&mut leaf.items, at.slot, count, item);
        node.counts[at.inner] += 1;
        node.largest[at.inner] = node.largest[at.inner].max(value);
        node.marks[at.inner] |= mark;
        self.root.marks[at.root] |= mark;
        self.root.counts[at.root] += 1;
        self.root.largest[at.root] = self.root.largest[at.root].max(value);
        self.length += 1;
    }

    #[cold]
    fn insert_first(&mut self, key: K, value: u32, item: T, mark: Mark) {
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
                marks: mark,
                node: leaf,
            },
        );
        self.root.firsts.push(key);
        self.root.largest.push(value);
        self.root.counts.push(1);
        self.root.marks.push(mark);
        self.root.inners.push(inner);
        self.length = 1;
    }

    /// Splits a full leaf, then inserts.
    #[cold]
    fn insert_split(&mut self, at: Position, key: K, value: u32, item: T, mark: Mark) {
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
            // Which of them have moved is not known without asking for each size.
            marks: if at_end { 0 } else { node.marks[at.inner] },
            node: right,
        };
        node.stale[at.inner] = true;
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
            self.root.marks.insert(place, 0);
            self.refresh(at.root);
            self.refresh(place);
        } else {
            self.inners[number].insert(at.inner + 1, entry);
        }
        let place = self.locate(key);
        self.insert(place, key, value, item, mark);
    }

    /// Recomputes what the root says of an inner node.
    fn refresh(&mut self, root: usize) {
        let node = &self.inners[self.root.inners[root] as usize];
        self.root.counts[root] = node.count();
        self.root.largest[root] = lanes::largest(&node.largest);
        self.root.marks[root] = node.all_marks();
    }

    /// Takes the element at a settled position out. Positions found before are void.
    /// Amortised O(log n).
    #[inline(never)]
    pub(in super::super) fn remove(&mut self, at: Position) {
        let node = &mut self.inners[self.root.inners[at.root] as usize];
        let leaf = &mut self.leaves[node.leaves[at.inner] as usize];
        let count = node.counts[at.inner] as usize;
        let value = leaf.values[at.slot];
        shift_out(&mut leaf.keys, at.slot, count, K::END);
        shift_out(&mut leaf.values, at.slot, count, 0);
        leaf.items.copy_within(at.slot + 1..count, at.slot);
        node.counts[at.inner] -= 1;
        node.stale[at.inner] = true;
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
        node.marks[inner] |= node.marks[inner + 1];
        node.stale[inner] = true;
        self.drop_leaf(number, inner + 1);
    }

    fn drop_inner(&mut self, root: usize) {
        self.spare_inners.push(self.root.inners.remove(root));
        self.root.firsts.remove(root);
        self.root.counts.remove(root);
        self.root.largest.remove(root);
        self.root.marks.remove(root);
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
