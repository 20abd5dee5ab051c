//! Into which class a request falls, and what it counts.

use std::fmt;

use metes_heap::bounds::Geometry;

/// How requests are divided. Any division gives a bound; a finer one knows lifetimes better and
/// adds up bursts that did not coincide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Classes {
    /// By the next power of two.
    #[default]
    Powers,
    /// Each size apart.
    Sizes,
    /// By the size of the block that a heap of this geometry makes of the request.
    Blocks(Geometry),
}

impl Classes {
    /// The largest request of the class of a request.
    #[must_use]
    pub fn of(&self, size: u64) -> u64 {
        match self {
            Classes::Powers => size.max(1).checked_next_power_of_two().unwrap_or(u64::MAX),
            Classes::Sizes => size,
            Classes::Blocks(geometry) => block(geometry, size).saturating_sub(geometry.record),
        }
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Classes::Powers => "powers of two",
            Classes::Sizes => "each size",
            Classes::Blocks(_) => "block sizes",
        })
    }
}

/// What of a request is added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// The bytes asked for: what M means in the bounds of heaps.
    #[default]
    Requested,
    /// The bytes asked for, fewer counting as so many: bounds of heaps know a smallest request, and
    /// blocks of no bytes at all would be free in them.
    AtLeast(u64),
    /// The bytes of the block that a heap of this geometry makes of it, record included.
    Block(Geometry),
}

impl Counted {
    pub(crate) fn bytes(&self, size: u64) -> u64 {
        match self {
            Counted::Requested => size,
            Counted::AtLeast(least) => size.max(*least),
            Counted::Block(geometry) => block(geometry, size),
        }
    }
}

/// The size of the block of a request. Sizes of a trace are below 2^63, so nothing overflows
/// with the granules of heaps; if it did, the largest number would stand for it.
fn block(geometry: &Geometry, size: u64) -> u64 {
    size.saturating_add(geometry.record)
        .checked_next_multiple_of(geometry.granule.max(1))
        .unwrap_or(u64::MAX)
        .max(geometry.minimum)
}
