//! What a program asks of a heap, and what a request turns into inside a block.
//!
//! Invariant of [`Load`]: every field passed the checks of [`Load::new`], so the arithmetic of
//! the other files stays below 2^127: block sizes are below 2^61, live bytes below 2^64.

use super::{BoundError, Quantity};

/// How a heap lays out its blocks. All fields in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Every block starts at and is a multiple of this; a power of two.
    pub granule: u64,
    /// Record bytes inside each block (0 where records live outside the managed memory).
    pub record: u64,
    /// Smallest block, record included; a multiple of the granule. A remainder smaller than
    /// this is never split off.
    pub minimum: u64,
    /// Bytes of the managed memory that never hold a block: sentinels, control structure.
    pub control: u64,
}

impl Geometry {
    /// Boundary tags on a 64-bit machine: granule 16, record 8, smallest block 32, sentinel 8.
    pub const TAGGED_64: Self = Self {
        granule: 16,
        record: 8,
        minimum: 32,
        control: 8,
    };
    /// Boundary tags on a 32-bit machine: granule 8, record 4, smallest block 16, sentinel 4.
    pub const TAGGED_32: Self = Self {
        granule: 8,
        record: 4,
        minimum: 16,
        control: 4,
    };
    /// Blocks of any size at any place, records outside: the model of the literature.
    pub const UNIT: Self = Self {
        granule: 1,
        record: 0,
        minimum: 1,
        control: 0,
    };

    /// Records outside the managed memory, blocks in multiples of `granule`.
    pub const fn outside(granule: u64) -> Self {
        Self {
            granule,
            record: 0,
            minimum: granule,
            control: 0,
        }
    }
}

/// Which sizes between the smallest and the largest are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Any number of bytes from the smallest to the largest.
    Any,
    /// The smallest times a power of two, up to the largest.
    Doubling,
}

/// What a program asks of its heap. All fields in requested bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// M: most bytes live at once, the request being served included.
    pub live: u64,
    /// n: largest request.
    pub largest: u64,
    /// l: smallest request.
    pub smallest: u64,
    /// Largest alignment requested, a power of two; values up to the granule cost nothing.
    pub alignment: u64,
    /// Which sizes between l and n occur.
    pub sizes: Sizes,
    /// Blocks are shrunk or grown where they lie. The any-fit bounds cover that; that of first
    /// fit by address does if `live_at_largest`; that of buddies does not.
    pub resized_in_place: bool,
    /// M counts each live block at the largest request that it has had since it was allocated.
    /// So it does by itself where blocks only grow in place.
    pub live_at_largest: bool,
}

impl Demand {
    /// A demand for any sizes at the heap's natural alignment.
    pub const fn new(live: u64, largest: u64, smallest: u64) -> Self {
        Self {
            live,
            largest,
            smallest,
            alignment: 1,
            sizes: Sizes::Any,
            resized_in_place: false,
            live_at_largest: false,
        }
    }

    /// This demand, of a program that also resizes blocks in place.
    pub const fn resizing(mut self) -> Self {
        self.resized_in_place = true;
        self
    }

    /// This demand, of a program that also resizes blocks in place, with M counting each live
    /// block at the largest request that it has had.
    pub const fn resizing_at_largest(mut self) -> Self {
        self.resized_in_place = true;
        self.live_at_largest = true;
        self
    }

    /// This demand, restricted to the smallest size times powers of two.
    pub const fn doubling(mut self) -> Self {
        self.sizes = Sizes::Doubling;
        self
    }
}

/// How a request is rounded to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the next multiple of the granule.
    Granule,
    /// To the next power of two.
    PowerOfTwo,
}

/// A checked demand on a checked geometry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) live: u128,
    pub(super) largest: u128,
    pub(super) smallest: u128,
    pub(super) sizes: Sizes,
    pub(super) granule: u128,
    pub(super) record: u128,
    pub(super) minimum: u128,
    pub(super) control: u128,
    /// Bytes a hole must have beyond the block so that the block fits at its alignment.
    pub(super) pad: u128,
    /// Most bytes a block takes beyond its size because the rest is too small to split off.
    pub(super) slack: u128,
    pub(super) rounding: Rounding,
}

const LIMIT: u64 = 1 << 60;

impl Load {
    pub(super) fn new(geometry: &Geometry, demand: &Demand) -> Result<Self, BoundError> {
        let Geometry {
            granule,
            record,
            minimum,
            control,
        } = *geometry;
        let named = [
            (Quantity::Live, demand.live),
            (Quantity::Largest, demand.largest),
            (Quantity::Smallest, demand.smallest),
            (Quantity::Granule, granule),
            (Quantity::Minimum, minimum),
            (Quantity::Alignment, demand.alignment),
        ];
        for (quantity, value) in named {
            if value == 0 {
                return Err(BoundError::Zero(quantity));
            }
        }
        for (quantity, value) in [
            (Quantity::Granule, granule),
            (Quantity::Alignment, demand.alignment),
        ] {
            if !value.is_power_of_two() {
                return Err(BoundError::NotPowerOfTwo { quantity, value });
            }
        }
        let record_quantity = (Quantity::Record, record);
        for (quantity, value) in named[1..].iter().chain([&record_quantity]) {
            if *value >= LIMIT {
                return Err(BoundError::TooLarge {
                    quantity: *quantity,
                    value: *value,
                });
            }
        }
        if demand.smallest > demand.largest {
            return Err(BoundError::SmallestAboveLargest {
                smallest: demand.smallest,
                largest: demand.largest,
            });
        }
        if demand.largest > demand.live {
            return Err(BoundError::LiveBelowLargest {
                live: demand.live,
                largest: demand.largest,
            });
        }
        if minimum % granule != 0 {
            return Err(BoundError::MinimumNotOnGranule { minimum, granule });
        }
        let (granule, minimum) = (u128::from(granule), u128::from(minimum));
        let alignment = u128::from(demand.alignment);
        // A hole of block + alignment - granule always holds an aligned place, and the piece cut
        // off in front must itself be a block. The heaps ask for the round sum.
        let pad = if alignment > granule {
            alignment + minimum
        } else {
            0
        };
        Ok(Self {
            live: demand.live.into(),
            largest: demand.largest.into(),
            smallest: demand.smallest.into(),
            sizes: demand.sizes,
            granule,
            record: record.into(),
            minimum,
            control: control.into(),
            pad,
            slack: minimum - granule,
            rounding: Rounding::Granule,
        })
    }

    /// This load on a heap that rounds blocks to powers of two and aligns each to its own size
    /// (`natural`), or not.
    pub(super) fn rounded_to_power(mut self, natural: bool, alignment: u64) -> Self {
        self.rounding = Rounding::PowerOfTwo;
        self.slack = 0;
        let alignment = u128::from(alignment);
        if natural && alignment > self.granule {
            self.pad = 0;
            if self.record == 0 {
                self.minimum = self.minimum.max(alignment);
            } else {
                self.record += alignment - self.granule;
            }
        }
        self
    }

    /// Block size of a request of `r` bytes, record included.
    pub(super) fn gross(&self, r: u128) -> u128 {
        let bytes = (r + self.record).max(self.minimum);
        match self.rounding {
            Rounding::Granule => bytes.next_multiple_of(self.granule),
            Rounding::PowerOfTwo => bytes.next_power_of_two(),
        }
    }

    /// Smallest request of the demand that needs a block larger than `block`.
    pub(super) fn request_above(&self, block: u128) -> u128 {
        let block = match self.rounding {
            Rounding::Granule => block,
            Rounding::PowerOfTwo => 1 << block.ilog2(),
        };
        let request = (block + 1).saturating_sub(self.record).max(self.smallest);
        match self.sizes {
            Sizes::Any => request,
            Sizes::Doubling => {
                let factor = request.div_ceil(self.smallest).next_power_of_two();
                self.smallest * factor
            }
        }
    }

    /// Largest request that occurs: n, or the largest doubling of l below it.
    pub(super) fn top_request(&self) -> u128 {
        match self.sizes {
            Sizes::Any => self.largest,
            Sizes::Doubling => self.smallest << (self.largest / self.smallest).ilog2(),
        }
    }

    /// Each block size with the smallest request that takes it, in increasing order.
    pub(super) fn steps(&self) -> impl Iterator<Item = (u128, u128)> + '_ {
        let mut next = self.smallest;
        core::iter::from_fn(move || {
            let request = next;
            (request <= self.largest).then(|| {
                let block = self.gross(request);
                next = self.request_above(block);
                (request, block)
            })
        })
    }

    /// w: most bytes by which a block exceeds its request, slack included.
    ///
    /// Within one block size the excess is greatest at the smallest request; beyond the first
    /// block size that is record + granule - 1 everywhere.
    pub(super) fn waste(&self) -> u128 {
        let first = self.gross(self.smallest);
        let mut waste = first - self.smallest;
        match self.sizes {
            Sizes::Any => {
                if self.request_above(first) <= self.largest {
                    waste = waste.max(self.record + self.granule - 1);
                }
            }
            Sizes::Doubling => {
                for (request, block) in self.steps() {
                    waste = waste.max(block - request);
                }
            }
        }
        waste + self.slack
    }

    /// Upper bound on the bytes of all blocks whose requests add up to at most `requested`.
    pub(super) fn occupied(&self, requested: u128) -> Result<u128, BoundError> {
        let total = match self.rounding {
            Rounding::Granule => {
                let blocks = requested / self.smallest;
                requested + product(blocks, self.waste())?
            }
            Rounding::PowerOfTwo => {
                let (block, request) = self.density();
                product(requested, block)? / request
            }
        };
        Ok(total)
    }

    /// The block size and request with the greatest quotient block / request (powers of two:
    /// at most 61 block sizes).
    fn density(&self) -> (u128, u128) {
        let mut best = (0, 1);
        for (request, block) in self.steps() {
            // block / request > best.0 / best.1, without division; both below 2^122.
            if block * best.1 > best.0 * request {
                best = (block, request);
            }
        }
        best
    }
}

pub(super) fn product(a: u128, b: u128) -> Result<u128, BoundError> {
    a.checked_mul(b).ok_or(BoundError::Overflow)
}
