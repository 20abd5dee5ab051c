//! The machine that a heap is to run on: what blocks look like there.
//!
//! Invariant: a replay for a target places every block where the emitted C does on that target.

use metes_heap::{Geometry, Slabs, bounds};
use serde::Serialize;

/// Where heaps are to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A host: words of 64 bits.
    #[default]
    Host,
    /// A machine of 32-bit words without an operating system: Cortex-M, LEON3. Blocks at multiples of 8, as `max_align_t`
    /// demands there.
    Bare32,
    /// A WebAssembly module: words of 32 bits, blocks at multiples of 16 as `max_align_t` demands there.
    Wasm32,
}

impl Target {
    /// Sizes and offsets of records, with boundary tags.
    pub const fn geometry(self) -> Geometry {
        match self {
            Target::Host => Geometry::tagged(8),
            Target::Bare32 => Geometry::tagged(4),
            // The smallest block has a granule of payload, by which size classes file it.
            Target::Wasm32 => Geometry {
                granule: 16,
                minimum: 32,
                ..Geometry::tagged(4)
            },
        }
    }

    /// Bits of a word.
    pub(crate) const fn bits(self) -> usize {
        match self {
            Target::Host => usize::BITS as usize,
            Target::Bare32 | Target::Wasm32 => 32,
        }
    }

    /// Words of the bitmap of a slab, a summary included.
    pub(crate) fn bitmap(self, slabs: &Slabs) -> usize {
        slabs.slots().div_ceil(self.bits()) + usize::from(slabs.summarised())
    }

    /// Bytes of the record of a slab: two links, count and pool, the bitmap.
    pub(crate) fn slab_record(self, slabs: &Slabs) -> usize {
        match self {
            Target::Host => slabs.record_bytes(),
            Target::Bare32 | Target::Wasm32 => 12 + 4 * self.bitmap(slabs),
        }
    }

    /// Whether emitted C has room for a summary of the slots of a slab, which is one word.
    pub fn summarises(self, slabs: &Slabs) -> bool {
        !slabs.summarised() || slabs.slots() <= self.bits() * self.bits()
    }

    /// The same, as bounds are computed from it.
    pub const fn bounds(self) -> bounds::Geometry {
        match self {
            Target::Host => bounds::Geometry::TAGGED_64,
            Target::Bare32 => bounds::Geometry::TAGGED_32,
            Target::Wasm32 => bounds::Geometry {
                granule: 16,
                minimum: 32,
                ..bounds::Geometry::TAGGED_32
            },
        }
    }

    /// Whether it is a host.
    pub(crate) fn is_host(&self) -> bool {
        *self == Target::Host
    }
}
