//! The search for a range of values, past all nodes that have none of their marks.
//!
//! Invariant: only marks change here, and only such as no element below has are dropped.

use super::super::lanes::{self, Key};
use super::super::marks::Mark;
use super::{Position, Sorted};

/// Values that are searched for.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Wanted {
    pub(in super::super) least: u32,
    /// How much larger values may be.
    pub(in super::super) span: u32,
    /// The marks of all such values that elements have.
    pub(in super::super) marks: Mark,
}

impl<K: Key, T: Copy> Sorted<K, T> {
    /// The first element at or behind `from` whose value is wanted; `mark_of` says what
    /// mark elements with a value were given. O(log n) where marks are told apart.
    #[inline(never)]
    pub(in super::super) fn find_marked(
        &mut self,
        from: Position,
        wanted: Wanted,
        mark_of: impl Fn(u32) -> Mark,
    ) -> Option<Position> {
        if self.length == 0 {
            return None;
        }
        for root in from.root..self.root.inners.len() {
            if self.root.marks[root] & wanted.marks == 0 || self.root.largest[root] < wanted.least {
                continue;
            }
            let begin = Position {
                root,
                inner: 0,
                slot: 0,
            };
            let at = if root == from.root { from } else { begin };
            let found = self.find_below(at, wanted, &mark_of);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Finds the first wanted entry at or behind a position, below one entry of the root.
    #[inline(always)]
    fn find_below(
        &mut self,
        from: Position,
        wanted: Wanted,
        mark_of: &impl Fn(u32) -> Mark,
    ) -> Option<Position> {
        let node = &mut self.inners[self.root.inners[from.root] as usize];
        for inner in from.inner..node.length {
            if node.marks[inner] & wanted.marks == 0 || node.largest[inner] < wanted.least {
                continue;
            }
            let leaf = &self.leaves[node.leaves[inner] as usize];
            let count = node.counts[inner] as usize;
            let mask = lanes::within(&leaf.values, count, wanted.least, wanted.span);
            let before = if inner == from.inner { from.slot } else { 0 };
            let behind = mask.checked_shr(before as u32).unwrap_or(0);
            let slot = before + behind.trailing_zeros() as usize;
            if slot < count {
                return Some(Position {
                    inner,
                    slot,
                    ..from
                });
            }
            if node.stale[inner] {
                let marks = leaf.values[..count].iter();
                node.marks[inner] = marks.fold(0, |all, &value| all | mark_of(value));
                node.stale[inner] = false;
            }
        }
        self.root.marks[from.root] = node.all_marks();
        None
    }
}
