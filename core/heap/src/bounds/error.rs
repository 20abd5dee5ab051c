//! Why a bound cannot be given: each error names the cause and the remedy.

use core::fmt;

/// A quantity of the input, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Peak live bytes, M.
    Live,
    /// Largest request, n.
    Largest,
    /// Smallest request, l.
    Smallest,
    /// Block granule.
    Granule,
    /// Record bytes per block.
    Record,
    /// Smallest block.
    Minimum,
    /// Largest alignment.
    Alignment,
}

impl Quantity {
    const fn name(self) -> &'static str {
        match self {
            Quantity::Live => "peak live bytes (M)",
            Quantity::Largest => "largest block (n)",
            Quantity::Smallest => "smallest block (l)",
            Quantity::Granule => "granule",
            Quantity::Record => "record bytes",
            Quantity::Minimum => "smallest block of the heap",
            Quantity::Alignment => "alignment",
        }
    }
}

/// Why no bound could be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundError {
    /// A quantity that must be positive is zero.
    Zero(Quantity),
    /// A quantity that must be a power of two is not.
    NotPowerOfTwo {
        /// Which.
        quantity: Quantity,
        /// Its value.
        value: u64,
    },
    /// A size of 2^60 bytes or more.
    TooLarge {
        /// Which.
        quantity: Quantity,
        /// Its value.
        value: u64,
    },
    /// l > n.
    SmallestAboveLargest {
        /// l.
        smallest: u64,
        /// n.
        largest: u64,
    },
    /// M < n: the largest request could never be live.
    LiveBelowLargest {
        /// M.
        live: u64,
        /// n.
        largest: u64,
    },
    /// The smallest block is not a multiple of the granule.
    MinimumNotOnGranule {
        /// Smallest block.
        minimum: u64,
        /// Granule.
        granule: u64,
    },
    /// The largest request does not fit the slots of the pool.
    SlotTooSmall {
        /// Slot bytes.
        slot: u64,
        /// n.
        largest: u64,
    },
    /// A parameter of the heap is out of range.
    Parameter {
        /// Which.
        name: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The requests from `from` to `to` bytes go to no pool, or to two, of the composite.
    Routing {
        /// First size without exactly one pool.
        from: u64,
    },
    /// The bound exceeds 2^128 bytes.
    Overflow,
}

impl fmt::Display for BoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Zero(what) => write!(f, "{} is zero: give at least 1", what.name()),
            Self::NotPowerOfTwo { quantity, value } => write!(
                f,
                "{} {value} is not a power of two: take {} or {}",
                quantity.name(),
                1u64 << value.ilog2(),
                1u128 << (value.ilog2() + 1),
            ),
            Self::TooLarge { quantity, value } => write!(
                f,
                "{} {value} is too large: give less than 2^60",
                quantity.name()
            ),
            Self::SmallestAboveLargest { smallest, largest } => write!(
                f,
                "smallest block (l) {smallest} exceeds largest block (n) {largest}: \
                 lower l or raise n"
            ),
            Self::LiveBelowLargest { live, largest } => write!(
                f,
                "peak live bytes (M) {live} is below the largest block (n) {largest}: \
                 M counts every live block, so give at least n"
            ),
            Self::MinimumNotOnGranule { minimum, granule } => write!(
                f,
                "smallest block of the heap {minimum} is no multiple of the granule {granule}: \
                 round it up"
            ),
            Self::SlotTooSmall { slot, largest } => write!(
                f,
                "largest block (n) {largest} does not fit the pool's slots of {slot} bytes: \
                 give slots of at least n or route large blocks elsewhere"
            ),
            Self::Parameter {
                name,
                value,
                allowed,
            } => {
                write!(f, "{name} {value} is out of range: give {allowed}")
            }
            Self::Routing { from } => write!(
                f,
                "requests of {from} bytes go to no pool or to two pools: \
                 give the pools of a composite adjacent size ranges in increasing order"
            ),
            Self::Overflow => write!(f, "the bound exceeds 2^128 bytes: lower M or n, or raise l"),
        }
    }
}

impl core::error::Error for BoundError {}
