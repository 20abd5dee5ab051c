//! What a heap can do wrong. Invariant: each variant says enough to find the place.

use core::fmt;

/// A broken promise of a heap, found by a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A block does not start at a multiple of the alignment asked for.
    Misaligned {
        /// Where the block starts.
        address: usize,
        /// The alignment asked for.
        align: usize,
    },
    /// A block is not wholly inside a region of the heap.
    Outside {
        /// Where the block starts.
        address: usize,
        /// Bytes asked for.
        size: usize,
    },
    /// Two live blocks share a byte.
    Overlap {
        /// Where the new block starts.
        address: usize,
        /// Where the older block starts.
        other: usize,
    },
    /// A byte of a live block changed although nobody wrote to it.
    Contents {
        /// Where the block starts.
        address: usize,
        /// Offset of the byte that changed.
        offset: usize,
    },
    /// Memory promised to be zero is not.
    NotZero {
        /// Where the block starts.
        address: usize,
        /// Offset of the first byte that is not zero.
        offset: usize,
    },
    /// The heap's count of live bytes is not the sum of the live requests.
    Accounting {
        /// Sum of the live requests.
        expected: usize,
        /// What the heap says.
        found: usize,
    },
    /// A request was refused although there is room.
    Refused {
        /// Bytes asked for.
        size: usize,
        /// Alignment asked for.
        align: usize,
    },
    /// A request that no heap could serve was served.
    Granted {
        /// Bytes asked for.
        size: usize,
        /// Alignment asked for.
        align: usize,
    },
    /// A block that is not live was freed without an error.
    BadFree {
        /// What was freed.
        address: usize,
    },
    /// After everything was freed the heap cannot serve what it could when new.
    NotCoalesced {
        /// Largest block served by the new heap.
        fresh: usize,
        /// Largest block served now.
        now: usize,
    },
    /// The heap did not take a region that it should, or took one that it should not.
    RegionRefused,
    /// The heap's own `check()` found its records broken after that many operations.
    Corrupt {
        /// Operations since the case began.
        operations: usize,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Misaligned { address, align } => {
                write!(f, "block at {address:#x} is not aligned to {align}")
            }
            Self::Outside { address, size } => {
                write!(
                    f,
                    "block of {size} bytes at {address:#x} is outside its region"
                )
            }
            Self::Overlap { address, other } => {
                write!(
                    f,
                    "block at {address:#x} overlaps the live block at {other:#x}"
                )
            }
            Self::Contents { address, offset } => {
                write!(f, "byte {offset} of the live block at {address:#x} changed")
            }
            Self::NotZero { address, offset } => {
                write!(
                    f,
                    "byte {offset} of the zeroed block at {address:#x} is not zero"
                )
            }
            Self::Accounting { expected, found } => {
                write!(f, "{expected} bytes are live, the heap says {found}")
            }
            Self::Refused { size, align } => {
                write!(
                    f,
                    "{size} bytes aligned to {align} refused although there is room"
                )
            }
            Self::Granted { size, align } => {
                write!(
                    f,
                    "{size} bytes aligned to {align} granted although nothing holds that"
                )
            }
            Self::BadFree { address } => {
                write!(
                    f,
                    "{address:#x} is not live, but was freed without an error"
                )
            }
            Self::NotCoalesced { fresh, now } => write!(
                f,
                "all is free, but the largest block is {now} bytes where it was {fresh}"
            ),
            Self::RegionRefused => write!(
                f,
                "the heap did not take a region that it should, or took one that it should not"
            ),
            Self::Corrupt { operations } => {
                write!(f, "check() failed after {operations} operations")
            }
        }
    }
}
