//! The machine that a heap is to run on: what blocks look like there.
//!
//! Invariant: a replay for a target places every block where the emitted C does on that target.

use metes_heap::{Geometry, bounds};
use serde::Serialize;

/// Where heaps are to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// A host: words of 64 bits.
    #[default]
    Host,
    /// A WebAssembly module: words of 32 bits, blocks at multiples of 16 as `max_align_t` demands there.
    Wasm32,
}

impl Target {
    /// Sizes and offsets of records, with boundary tags.
    pub const fn geometry(self) -> Geometry {
        match self {
            Target::Host => Geometry::tagged(8),
            // The smallest block has a granule of payload, by which size classes file it.
            Target::Wasm32 => Geometry {
                granule: 16,
                minimum: 32,
                ..Geometry::tagged(4)
            },
        }
    }

    /// The same, as bounds are computed from it.
    pub const fn bounds(self) -> bounds::Geometry {
        match self {
            Target::Host => bounds::Geometry::TAGGED_64,
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
