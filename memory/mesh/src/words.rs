//! The words that nodes share, and what their bits mean.
//!
//! Invariant: 0 is a lock that nobody holds, and a tag where no block begins.

use crate::space::Node;

/// Bits of a node's number in a lock word; above them stands the epoch.
const NUMBER: u32 = 16;
/// Bits of a node's number in a tag.
const TAG_NUMBER: u16 = (1 << 14) - 1;
const UPPER: u16 = 1 << 14;
const FREED: u16 = 1 << 15;

/// Who holds a lock: a node, in the epoch in which it took it. An epoch is odd while its node is taken for dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The node.
    pub node: Node,
    /// Its epoch.
    pub epoch: u64,
}

impl Holder {
    /// The lock word of a holder; 0 of none.
    #[inline]
    pub fn word(holder: Option<Holder>) -> u64 {
        holder.map_or(0, |holder| {
            holder.epoch << NUMBER | u64::from(holder.node.0 + 1)
        })
    }

    /// The holder that a lock word names.
    #[inline]
    pub fn of(word: u64) -> Option<Holder> {
        let number = (word & ((1 << NUMBER) - 1)) as u32;
        let node = Node(number.checked_sub(1)?);
        Some(Holder {
            node,
            epoch: word >> NUMBER,
        })
    }
}

/// What a granule of a heap says: whether a block begins in it, which node it belongs to, and whether it was freed and
/// is not yet in its heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The node that the block belongs to: the one that allocated it, or adopted it.
    pub owner: Node,
    /// Whether it begins in the granule's upper half.
    pub upper: bool,
    /// Whether it was freed.
    pub freed: bool,
}

impl Tag {
    /// The tag as it is stored; 0 of none.
    #[inline]
    pub fn bits(tag: Option<Tag>) -> u16 {
        tag.map_or(0, |tag| {
            (tag.owner.0 as u16 + 1) & TAG_NUMBER
                | if tag.upper { UPPER } else { 0 }
                | if tag.freed { FREED } else { 0 }
        })
    }

    /// The tag of these bits.
    #[inline]
    pub fn of(bits: u16) -> Option<Tag> {
        let owner = u32::from(bits & TAG_NUMBER).checked_sub(1)?;
        Some(Tag {
            owner: Node(owner),
            upper: bits & UPPER != 0,
            freed: bits & FREED != 0,
        })
    }
}

/// What the holder of a heap's lock is at, so that another one may go on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing: the heap is whole.
    Nothing,
    /// Freeing the block at this offset, which is off the chain of parked ones, or its first; the heap is whole.
    Free(u64),
    /// Changing the heap.
    Change,
}

impl Work {
    #[inline]
    pub(crate) fn word(self) -> u64 {
        match self {
            Work::Nothing => 0,
            Work::Change => 1,
            // Offsets are aligned to 8 at least.
            Work::Free(offset) => offset | 2,
        }
    }

    #[inline]
    pub(crate) fn of(word: u64) -> Work {
        match word & 3 {
            0 => Work::Nothing,
            2 => Work::Free(word & !3),
            _ => Work::Change,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_written() {
        for node in [0, 1, 300, crate::HeapSpace::MOST_NODES - 1] {
            let node = Node(node);
            for epoch in [0, 1, 1 << 40] {
                let holder = Some(Holder { node, epoch });
                assert_eq!(Holder::of(Holder::word(holder)), holder);
            }
            for (upper, freed) in [(false, false), (true, false), (false, true), (true, true)] {
                let tag = Some(Tag {
                    owner: node,
                    upper,
                    freed,
                });
                assert_ne!(Tag::bits(tag), 0);
                assert_eq!(Tag::of(Tag::bits(tag)), tag);
            }
        }
        assert_eq!(Holder::of(0), None);
        assert_eq!(Tag::of(0), None);
        for work in [Work::Nothing, Work::Change, Work::Free(0), Work::Free(8)] {
            assert_eq!(Work::of(work.word()), work);
        }
    }
}
