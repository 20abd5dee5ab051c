//! What every heap declares of its time, and of its fragmentation.
//!
//! Two numbers can make an operation slow. The *block axis* is n, the bytes of the block that is
//! allocated, freed or accessed. The *heap axis* is everything else in the heap: free blocks
//! (holes), live blocks, managed bytes. The slides of Kirsch and Sokolova (ARTIST summer school
//! 2009) call a time *predictable* if it depends on n alone, in their words "on the size of the
//! involved object"; a time that grows along the heap axis is to them *unbounded in n*.
//! [`Growth`] says how fast a time grows along one axis, and [`Time::along`] derives it from what
//! a heap declares.
//!
//! What does not depend on a block's size or the heap's state (that a shared heap waits for other
//! threads) is declared in [`compact::complexity`](crate::compact::complexity).
//!
//! Declared here is an upper bound. `metes reproduce complexity` counts the instructions of every
//! declared operation as either number grows.

use core::fmt;

use crate::bounds::HeapKind;
use crate::compact::complexity::Configuration;
use crate::compact::{Kappa, Options};
use crate::description::{Description, IndexKind};
use crate::fragmented::Shape;
use crate::index::Limits;
use crate::{Links, Order};

/// How fast a cost grows with one number, slowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Growth {
    /// Not at all.
    Constant,
    /// With the logarithm.
    Logarithmic,
    /// In proportion.
    Linear,
    /// With the square.
    Quadratic,
}

impl Growth {
    /// The usual notation, of a number called n.
    pub const fn notation(self) -> &'static str {
        match self {
            Growth::Constant => "O(1)",
            Growth::Logarithmic => "O(log n)",
            Growth::Linear => "O(n)",
            Growth::Quadratic => "O(n^2)",
        }
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.notation())
    }
}

/// The number that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// n: bytes of the block.
    Block,
    /// Blocks, holes or bytes of the heap.
    Heap,
    /// ι: bytes of an increment of compact-fit's moves.
    Increment,
}

impl Axis {
    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Axis::Block => "block",
            Axis::Heap => "heap",
            Axis::Increment => "increment",
        }
    }
}

/// A time bound, in increasing order of growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Time {
    /// A number of steps that depends on nothing.
    Constant,
    /// Logarithm of the managed bytes H over the smallest block l: halvings or merges.
    Orders,
    /// Words of the bitmap: slots / 64.
    Words,
    /// Logarithm of the bytes of the object.
    Logarithmic,
    /// Bytes of the object.
    Linear,
    /// Number of holes, at most live blocks + 1.
    Holes,
    /// Holes that enter sorted lists, each a walk over holes.
    HolesSquared,
    /// Bytes copied when the block must move, constant otherwise.
    Moved,
    /// Orders, and bytes copied.
    OrdersMoved,
    /// Words of the bitmap, and bytes copied.
    WordsMoved,
    /// Holes, and bytes copied.
    HolesMoved,
    /// Squared holes, and bytes copied.
    HolesSquaredMoved,
}

impl Time {
    pub(crate) const fn and_move(self) -> Self {
        match self {
            Time::Constant => Time::Moved,
            Time::Orders => Time::OrdersMoved,
            Time::Words => Time::WordsMoved,
            Time::Holes => Time::HolesMoved,
            Time::HolesSquared => Time::HolesSquaredMoved,
            other => other,
        }
    }

    /// The usual notation.
    pub const fn notation(self) -> &'static str {
        match self {
            Time::Constant => "O(1)",
            Time::Orders => "O(log(H/l))",
            Time::Words => "O(slots/64)",
            Time::Logarithmic => "O(log n)",
            Time::Linear => "O(n)",
            Time::Holes => "O(holes)",
            Time::HolesSquared => "O(holes^2)",
            Time::Moved => "O(1) in place, O(n) to move",
            Time::OrdersMoved => "O(log(H/l)) in place, O(n) to move",
            Time::WordsMoved => "O(slots/64 + n)",
            Time::HolesMoved => "O(holes) in place, O(holes + n) to move",
            Time::HolesSquaredMoved => "O(holes) in place, O(holes^2 + n) to move",
        }
    }

    /// How fast it grows along an axis while the other stays.
    pub const fn along(self, axis: Axis) -> Growth {
        match axis {
            Axis::Block => match self {
                Time::Constant | Time::Orders | Time::Words | Time::Holes | Time::HolesSquared => {
                    Growth::Constant
                }
                Time::Logarithmic => Growth::Logarithmic,
                Time::Linear
                | Time::Moved
                | Time::OrdersMoved
                | Time::WordsMoved
                | Time::HolesMoved
                | Time::HolesSquaredMoved => Growth::Linear,
            },
            Axis::Heap => match self {
                Time::Constant | Time::Logarithmic | Time::Linear | Time::Moved => Growth::Constant,
                Time::Orders | Time::OrdersMoved => Growth::Logarithmic,
                Time::Words | Time::WordsMoved | Time::Holes | Time::HolesMoved => Growth::Linear,
                Time::HolesSquared | Time::HolesSquaredMoved => Growth::Quadratic,
            },
            Axis::Increment => Growth::Constant,
        }
    }

    /// How fast it grows with n whatever else the heap holds; `None` where it is unbounded in
    /// n, and so not predictable.
    pub const fn in_block(self) -> Option<Growth> {
        match self.along(Axis::Heap) {
            Growth::Constant => Some(self.along(Axis::Block)),
            _ => None,
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.notation())
    }
}

/// Time of each operation of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Allocate.
    pub allocate: Time,
    /// Free, merging included.
    pub free: Time,
    /// Resize, the copy of a moved block included.
    pub resize: Time,
    /// Reach a byte of a block: dereference.
    pub access: Time,
}

impl Times {
    /// Those of a heap whose blocks are contiguous, and resized in place or by moving.
    pub(crate) fn contiguous(allocate: Time, free: Time) -> Self {
        Times {
            allocate,
            free,
            resize: allocate.max(free).and_move(),
            access: Time::Constant,
        }
    }
}

/// Whether the degree of fragmentation depends on the number of allocations and frees alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictability {
    /// It does, up to what the heap bounds (compact-fit: κ pages a class).
    Predictable,
    /// It depends on the order in which blocks were allocated and freed.
    Unpredictable,
}

impl Predictability {
    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Predictability::Predictable => "predictable",
            Predictability::Unpredictable => "unpredictable",
        }
    }
}

/// What a heap declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// Time of each operation.
    pub times: Times,
    /// Whether fragmentation is predictable.
    pub fragmentation: Predictability,
}

impl IndexKind {
    /// What a heap with this index and these limits declares.
    pub fn declares(self, limits: Limits) -> Declaration {
        let mut times = HeapKind::of(self, limits).declared();
        match self {
            // To take a block out of the middle of such a list is to look for what precedes it.
            IndexKind::List {
                links: Links::Single,
                ..
            } if limits.coalesce_up_to != 0 => times.free = times.free.max(Time::Holes),
            // A large request merges the blocks that were kept aside, each into a sorted bin.
            IndexKind::Lea { .. } => times.allocate = times.allocate.max(Time::HolesSquared),
            // By the depth of the tree, which follows the memory.
            IndexKind::FirstFit { .. } => {
                (times.allocate, times.free) = (Time::Orders, Time::Orders)
            }
            _ => {}
        }
        Declaration {
            times: Times::contiguous(times.allocate, times.free),
            fragmentation: Predictability::Unpredictable,
        }
    }
}

impl Description {
    /// What this heap declares: its slowest pool. Requests that a partition serves take O(1).
    pub fn declares(&self) -> Declaration {
        let (mut allocate, mut free) = (Time::Constant, Time::Constant);
        for pool in self.general.iter() {
            let times = pool.index.declares(pool.limits).times;
            allocate = allocate.max(times.allocate);
            free = free.max(times.free);
        }
        // A dedicated list by address is walked when a block enters it.
        if (self.dedicated.iter()).any(|pool| pool.order == Order::Address) {
            free = free.max(Time::Holes);
        }
        Declaration {
            times: Times::contiguous(allocate, free),
            fragmentation: Predictability::Unpredictable,
        }
    }
}

impl Options {
    /// What [`CompactFit::new`](crate::compact::CompactFit::new) declares: blocks are copied.
    pub const fn declares(&self) -> Declaration {
        let configuration = Configuration::of(self, false);
        Declaration {
            times: Times {
                allocate: configuration.malloc().in_block(),
                free: configuration.free().in_block(),
                resize: Time::Linear,
                access: configuration.dereference().in_block(),
            },
            fragmentation: fragmentation(self.kappa),
        }
    }

    /// What [`CompactFit::with_block_table`](crate::compact::CompactFit::with_block_table)
    /// declares: an entry of the table for each frame of a block is written by malloc and free.
    pub const fn declares_with_block_table(&self) -> Declaration {
        Declaration {
            times: Times {
                allocate: Time::Linear,
                free: Time::Linear,
                resize: Time::Linear,
                access: Time::Constant,
            },
            fragmentation: fragmentation(self.kappa),
        }
    }
}

const fn fragmentation(kappa: Kappa) -> Predictability {
    match kappa {
        Kappa::Finite(_) => Predictability::Predictable,
        Kappa::Infinite => Predictability::Unpredictable,
    }
}

impl Shape {
    /// What [`Fragmented`](crate::fragmented::Fragmented) of this shape declares.
    pub const fn declares(self) -> Declaration {
        Declaration {
            times: Times {
                allocate: Time::Linear,
                free: Time::Linear,
                resize: Time::Linear,
                access: match self {
                    Shape::Chain => Time::Linear,
                    Shape::Tree => Time::Logarithmic,
                },
            },
            fragmentation: Predictability::Predictable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fit;

    #[test]
    fn predictable_is_what_does_not_depend_on_the_heap() {
        assert_eq!(Time::Linear.in_block(), Some(Growth::Linear));
        assert_eq!(Time::Logarithmic.in_block(), Some(Growth::Logarithmic));
        assert_eq!(Time::Moved.in_block(), Some(Growth::Linear));
        for time in [Time::Orders, Time::Holes, Time::HolesSquared, Time::Words] {
            assert_eq!(time.in_block(), None, "{time}");
        }
        let both = Time::HolesMoved;
        assert_eq!(both.along(Axis::Block), Growth::Linear);
        assert_eq!(both.along(Axis::Heap), Growth::Linear);
    }

    #[test]
    fn what_an_index_adds_to_its_kind_is_declared() {
        let times = |index: IndexKind, limits| {
            let Times { allocate, free, .. } = index.declares(limits).times;
            (allocate, free)
        };
        let lifo = IndexKind::list(Fit::First, Order::Lifo);
        assert_eq!(times(lifo, Limits::NONE), (Time::Holes, Time::Constant));
        let single = IndexKind::List {
            fit: Fit::First,
            order: Order::Lifo,
            depth_percent: 100,
            max_fit_percent: 0,
            links: Links::Single,
        };
        assert_eq!(times(single, Limits::NONE), (Time::Holes, Time::Holes));
        let apart = Limits {
            coalesce_up_to: 0,
            ..Limits::NONE
        };
        assert_eq!(times(single, apart), (Time::Holes, Time::Constant));
        let lea = IndexKind::Lea { keep_up_to: 128 };
        assert_eq!(times(lea, Limits::NONE), (Time::HolesSquared, Time::Holes));
    }

    #[test]
    fn compact_fit_is_as_predictable_as_kappa_is_finite() {
        let moving = Options::DEFAULT.declares();
        assert_eq!(moving.times.allocate, Time::Constant);
        assert_eq!(moving.times.free, Time::Linear);
        assert_eq!(moving.fragmentation, Predictability::Predictable);
        let still = Options {
            kappa: Kappa::Infinite,
            ..Options::DEFAULT
        };
        assert_eq!(still.declares().times.free, Time::Constant);
        assert_eq!(
            still.declares().fragmentation,
            Predictability::Unpredictable
        );
    }
}
