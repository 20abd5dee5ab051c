//! What operations may take, and by which means they are computed.
//!
//! Invariant: all of it that modules of operations know: the operations of an [`Algebra`] stand above
//! them.

use crate::optimisations::Optimisations;

/// Most pieces that an operation may look at, unless another limit is set.
pub const LIMIT: u64 = 10_000_000;

/// How operations are to be computed: what they may take, and by which means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algebra {
    /// Most pieces, or pairs of pieces, that an operation may look at.
    pub limit: u64,
    /// Which optimisations may be used.
    pub optimisations: Optimisations,
    /// On how many threads large envelopes are computed; results are the same. By default 1.
    pub threads: usize,
}

impl Default for Algebra {
    fn default() -> Self {
        Algebra {
            limit: LIMIT,
            optimisations: Optimisations::all(),
            threads: 1,
        }
    }
}
