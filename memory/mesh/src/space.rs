//! The heap space map: one address space over the heaps of all nodes (paper, section II, figure 2).
//!
//! Invariant: an address names one byte of one heap or none; both directions are a shift and a mask, the same on every
//! node, and need no table.

use core::fmt;

/// A node, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u32);

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A byte of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The node whose heap it is.
    pub node: Node,
    /// Bytes from the heap's beginning.
    pub offset: u64,
}

/// Why there is no such space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// No node, or more than tags can name.
    Nodes {
        /// How many were asked for.
        asked: u32,
    },
    /// No byte a heap.
    Empty,
    /// The space does not begin where a heap may.
    Base {
        /// What it would have to be a multiple of.
        multiple: u64,
    },
    /// The last heap would lie behind the last address.
    End,
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Impossible::Nodes { asked } => {
                let most = HeapSpace::MOST_NODES;
                write!(f, "{asked} nodes: give 1 to {most}")
            }
            Impossible::Empty => write!(f, "a heap of 0 bytes: give each node some"),
            Impossible::Base { multiple } => {
                write!(
                    f,
                    "the heap space begins at a multiple of {multiple:#x} bytes"
                )
            }
            Impossible::End => {
                write!(
                    f,
                    "so many heaps do not fit into 64 bits of addresses: give fewer bytes a node"
                )
            }
        }
    }
}

impl core::error::Error for Impossible {}

/// Which addresses are whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeapSpace {
    base: u64,
    size: u64,
    /// log2 of the addresses a node, of which the first `size` are bytes.
    shift: u32,
    nodes: u32,
}

impl HeapSpace {
    /// Most nodes of a space: what a tag can name.
    pub const MOST_NODES: u32 = (1 << 14) - 1;

    /// A space for `nodes` heaps of `size` bytes each, from `base` on. A heap begins at each power of two that holds
    /// `size`; addresses between a heap's end and the next beginning are nobody's.
    ///
    /// # Errors
    /// [`Impossible`] says what to give instead.
    pub fn new(base: u64, size: u64, nodes: u32) -> Result<HeapSpace, Impossible> {
        if nodes == 0 || nodes > HeapSpace::MOST_NODES {
            return Err(Impossible::Nodes { asked: nodes });
        }
        if size == 0 {
            return Err(Impossible::Empty);
        }
        let stride = size.checked_next_power_of_two().ok_or(Impossible::End)?;
        if base & (stride - 1) != 0 {
            return Err(Impossible::Base { multiple: stride });
        }
        let last = stride.checked_mul(u64::from(nodes) - 1);
        last.and_then(|last| last.checked_add(stride - 1))
            .and_then(|last| base.checked_add(last))
            .ok_or(Impossible::End)?;
        Ok(HeapSpace {
            base,
            size,
            shift: stride.trailing_zeros(),
            nodes,
        })
    }

    /// How many nodes.
    #[inline]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// Bytes of each heap.
    #[inline]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Addresses from the beginning of a heap to that of the next: a power of two.
    pub fn stride(&self) -> u64 {
        1 << self.shift
    }

    /// The first address.
    pub fn base(&self) -> u64 {
        self.base
    }

    /// All nodes, beginning with `first` and coming back to the one before it.
    pub fn from(&self, first: Node) -> impl Iterator<Item = Node> + use<> {
        let nodes = self.nodes;
        (0..nodes).map(move |step| Node((first.0 % nodes + step) % nodes))
    }

    /// Whose byte an address is; none if nobody's. O(1).
    #[inline]
    pub fn place(&self, address: u64) -> Option<Place> {
        let within = address.checked_sub(self.base)?;
        let (node, offset) = (within >> self.shift, within & ((1 << self.shift) - 1));
        (node < u64::from(self.nodes) && offset < self.size).then_some(Place {
            node: Node(node as u32),
            offset,
        })
    }

    /// The address of a place. O(1).
    #[inline]
    pub fn address(&self, place: Place) -> u64 {
        debug_assert!(
            place.node.0 < self.nodes && place.offset < self.size,
            "a place of this space"
        );
        self.base + (u64::from(place.node.0) << self.shift) + place.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_address_is_one_place(
            size in 1u64..1 << 20,
            nodes in 1u32..=64,
            node in 0u32..64,
            offset in 0u64..1 << 20,
        ) {
            let space = HeapSpace::new(0x6000_0000, size, nodes);
            let space = match space {
                Err(error) => {
                    let base = matches!(error, Impossible::Base { .. });
                    prop_assert!(base);
                    return Ok(());
                }
                Ok(space) => space,
            };
            let place = Place { node: Node(node % nodes), offset: offset % size };
            prop_assert_eq!(space.place(space.address(place)), Some(place));
            // What lies before, behind and between is nobody's.
            let first = space.address(Place { node: Node(0), offset: 0 });
            prop_assert_eq!(space.place(first - 1), None);
            let last = space.address(Place { node: Node(nodes - 1), offset: size - 1 });
            prop_assert_eq!(space.place(last + 1), None);
        }
    }

    #[test]
    fn what_is_no_space_is_told() {
        assert_eq!(
            HeapSpace::new(0, 4096, 0),
            Err(Impossible::Nodes { asked: 0 })
        );
        assert_eq!(
            HeapSpace::new(0, 1, 1 << 14),
            Err(Impossible::Nodes { asked: 1 << 14 })
        );
        assert_eq!(HeapSpace::new(0, 0, 1), Err(Impossible::Empty));
        assert_eq!(
            HeapSpace::new(4096, 5000, 1),
            Err(Impossible::Base { multiple: 8192 })
        );
        assert_eq!(HeapSpace::new(0, u64::MAX, 1), Err(Impossible::End));
        assert_eq!(HeapSpace::new(0, 1 << 60, 17), Err(Impossible::End));
        assert!(HeapSpace::new(0, 1 << 60, 16).is_ok());
    }
}
