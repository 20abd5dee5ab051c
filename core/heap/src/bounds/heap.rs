//! The heaps that have bounds, their parameters, and the time of each operation.

use super::any_fit::Ceiling;
use super::{BoundError, Demand, Geometry};
use crate::complexity::{Time, Times};
use crate::index::fixed::SizeTable;

/// Order of a free list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Increasing address.
    Address,
    /// Last freed first.
    Lifo,
    /// First freed first.
    Fifo,
}

/// Which neighbouring holes are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coalescing {
    /// All, at once.
    Always,
    /// None, ever.
    Never,
    /// Those whose union is at most this many bytes.
    UpTo(u64),
}

/// Which remainders are split off a hole that is larger than the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Splitting {
    /// Every remainder that can be a block.
    Always,
    /// None.
    Never,
    /// Remainders of at least this many bytes.
    Above(u64),
}

/// Limits of a search and of the work on free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Share of the free list that a search examines, 1 to 100.
    pub depth_percent: u8,
    /// Largest acceptable hole in percent of the request; `None`: any.
    pub maximum_fit_percent: Option<u64>,
    /// Which holes are merged.
    pub coalescing: Coalescing,
    /// Which remainders are split off.
    pub splitting: Splitting,
}

impl Limits {
    /// Whole search, any hole, everything merged and split.
    pub const NONE: Self = Self {
        depth_percent: 100,
        maximum_fit_percent: None,
        coalescing: Coalescing::Always,
        splitting: Splitting::Always,
    };

    /// Why a search under these limits may refuse although a hole fits, if it may.
    pub(super) fn refuses(&self) -> Option<&'static str> {
        if self.depth_percent < 100 {
            Some(
                "no finite bound holds in general: a search limited in depth stops before the \
                 hole that fits, and the heap creeps upwards (docs/guarantees.md#limited-search)",
            )
        } else if self.maximum_fit_percent.is_some() {
            Some(
                "no finite bound holds in general: a hole above the maximum fit is refused \
                 however large it grows (docs/guarantees.md#limited-search)",
            )
        } else if self.splitting == Splitting::Never {
            Some(
                "no finite bound is proved: without splitting one small request may keep a hole \
                 of any size busy",
            )
        } else {
            None
        }
    }
}

/// Where a search in size classes begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassSearch {
    /// The class of the request is searched to its end first, so any hole that fits is found.
    WholeClass,
    /// Only classes all of whose members fit, perhaps after a bounded number of probes in the
    /// class of the request: constant time, and the probes add nothing provable.
    NextClass,
}

/// Which free chunk a buddy heap takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuddyChoice {
    /// The lowest address at which an aligned chunk is free, whatever chunk it is cut from.
    LowestAddress,
    /// The smallest free chunk that fits, the lowest of several.
    SmallestThenLowest,
    /// Any free chunk that fits, for example the last freed.
    Any,
}

/// A pool of a composite heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Smallest request routed to this pool.
    pub smallest: u64,
    /// Largest request routed to this pool.
    pub largest: u64,
    /// Most bytes live in this pool at once, if known to be less than the whole demand.
    pub live: Option<u64>,
    /// The heap of this pool.
    pub heap: HeapKind<'a>,
    /// Its block geometry.
    pub geometry: Geometry,
}

/// A named heap with the parameters that its bounds depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapKind<'a> {
    /// The first hole that fits.
    FirstFit {
        /// Order of the free list.
        order: Order,
        /// Limits of the search.
        limits: Limits,
    },
    /// The lowest hole of at least the block's size rounded up to a class of sizes; the block
    /// itself is cut to its size. Holes by address, all merged and split.
    FirstFitByClass {
        /// Classes to a power of two, counted in granules of whole blocks: 1 to 4096.
        per_doubling: u32,
    },
    /// The first hole that fits from where the last search ended.
    NextFit {
        /// Order of the free list.
        order: Order,
        /// Limits of the search.
        limits: Limits,
    },
    /// The smallest hole that fits.
    BestFit {
        /// Order of the free list.
        order: Order,
        /// Limits of the search.
        limits: Limits,
    },
    /// The largest hole.
    WorstFit {
        /// Order of the free list.
        order: Order,
        /// Limits of the search.
        limits: Limits,
    },
    /// A hole of exactly the block's size, else memory that was never used. Bounded only
    /// without coalescing: then each size keeps its own blocks.
    ExactFit {
        /// Order of the free list.
        order: Order,
        /// Limits of the search.
        limits: Limits,
    },
    /// Free lists by size class.
    SegregatedFit {
        /// Classes to a power of two, 1 to 4096.
        per_doubling: u32,
        /// Where the search begins.
        search: ClassSearch,
        /// Limits of the search.
        limits: Limits,
    },
    /// Ogasawara's half-fit: a class for each power of two.
    HalfFit {
        /// Blocks are rounded up to powers of two, as o1heap does.
        power_of_two: bool,
    },
    /// Two-level segregated fit.
    Tlsf {
        /// Classes to a power of two, 1 to 4096.
        second_level: u32,
    },
    /// Binary buddies, each aligned to its own size.
    Buddy {
        /// Which free chunk is taken.
        choice: BuddyChoice,
        /// Bytes of record for each smallest block, kept outside the managed memory; `None`
        /// where the record is in the block (then the geometry's `record` counts).
        outside: Option<u64>,
    },
    /// Power-of-two free lists, never merged (Kingsley, BSD).
    Kingsley {
        /// Bytes taken from the system at once for a class; 0: block by block.
        page: u64,
    },
    /// A free list for each of a few block sizes, never merged (OSE-style).
    FixedSizes {
        /// The sizes; larger blocks are powers of two.
        sizes: SizeTable,
    },
    /// Bitmaps of equal slots.
    ObjectPool {
        /// Bytes of a slot.
        slot: u64,
        /// Bytes of a slab of slots with a bitmap of its own; 0: one bitmap over all slots.
        slab: u64,
    },
    /// Pools by size range, in increasing order.
    Composite(&'a [Part<'a>]),
}

impl HeapKind<'_> {
    /// The usual name.
    pub const fn name(&self) -> &'static str {
        match self {
            HeapKind::FirstFit { .. } => "first-fit",
            HeapKind::FirstFitByClass { .. } => "first-fit by class",
            HeapKind::NextFit { .. } => "next-fit",
            HeapKind::BestFit { .. } => "best-fit",
            HeapKind::WorstFit { .. } => "worst-fit",
            HeapKind::ExactFit { .. } => "exact-fit",
            HeapKind::SegregatedFit { .. } => "segregated-fit",
            HeapKind::HalfFit { .. } => "half-fit",
            HeapKind::Tlsf { .. } => "tlsf",
            HeapKind::Buddy { .. } => "buddy",
            HeapKind::Kingsley { .. } => "kingsley",
            HeapKind::FixedSizes { .. } => "ose",
            HeapKind::ObjectPool { .. } => "object-pool",
            HeapKind::Composite(_) => "composite",
        }
    }

    /// The guarantee of this heap; see [`super::bound`].
    ///
    /// # Errors
    /// As [`super::bound`].
    pub fn bound(&self, geometry: &Geometry, demand: &Demand) -> Result<super::Bound, BoundError> {
        super::bound(self, geometry, demand)
    }

    pub(super) fn limits(&self) -> &Limits {
        match self {
            HeapKind::FirstFit { limits, .. }
            | HeapKind::NextFit { limits, .. }
            | HeapKind::BestFit { limits, .. }
            | HeapKind::WorstFit { limits, .. }
            | HeapKind::ExactFit { limits, .. }
            | HeapKind::SegregatedFit { limits, .. } => limits,
            _ => &Limits::NONE,
        }
    }

    /// How far the search of this heap looks past holes that fit.
    pub(super) fn ceiling(&self) -> Result<Ceiling, BoundError> {
        let classes = |name, per_doubling: u32| {
            if (1..=4096).contains(&per_doubling) && per_doubling.is_power_of_two() {
                Ok(Ceiling::Classes { per_doubling })
            } else {
                Err(BoundError::Parameter {
                    name,
                    value: per_doubling.into(),
                    allowed: "a power of two from 1 to 4096",
                })
            }
        };
        match *self {
            HeapKind::Tlsf { second_level } => classes("second_level", second_level),
            HeapKind::HalfFit {
                power_of_two: false,
            } => classes("second_level", 1),
            HeapKind::SegregatedFit {
                per_doubling,
                search,
                ..
            } => {
                let classes = classes("classes per doubling", per_doubling)?;
                Ok(match search {
                    ClassSearch::WholeClass => Ceiling::Exact,
                    ClassSearch::NextClass => classes,
                })
            }
            HeapKind::FirstFitByClass { per_doubling } => {
                classes("classes per doubling", per_doubling)?;
                Ok(Ceiling::Rounded { per_doubling })
            }
            HeapKind::FixedSizes { sizes } => Ok(Ceiling::Table(sizes)),
            _ => Ok(Ceiling::Exact),
        }
    }

    /// Time of each operation.
    ///
    /// # Errors
    /// A parameter out of range.
    pub fn times(&self) -> Result<Times, BoundError> {
        let limits = self.limits();
        if !(1..=100).contains(&limits.depth_percent) {
            return Err(BoundError::Parameter {
                name: "depth of search",
                value: limits.depth_percent.into(),
                allowed: "1 to 100 percent",
            });
        }
        self.ceiling()?;
        if let HeapKind::Composite(parts) = self {
            for part in *parts {
                part.heap.times()?;
            }
        }
        Ok(self.declared())
    }

    /// Time of each operation, of whatever the parameters say.
    pub(crate) fn declared(&self) -> Times {
        let (allocate, free) = match *self {
            HeapKind::FirstFit { order, .. }
            | HeapKind::NextFit { order, .. }
            | HeapKind::BestFit { order, .. }
            | HeapKind::WorstFit { order, .. }
            | HeapKind::ExactFit { order, .. } => match order {
                Order::Address => (Time::Holes, Time::Holes),
                Order::Lifo | Order::Fifo => (Time::Holes, Time::Constant),
            },
            HeapKind::SegregatedFit {
                search: ClassSearch::WholeClass,
                ..
            } => (Time::Holes, Time::Constant),
            // By a tree whose depth follows the memory.
            HeapKind::FirstFitByClass { .. } => (Time::Orders, Time::Orders),
            HeapKind::SegregatedFit { .. } | HeapKind::HalfFit { .. } | HeapKind::Tlsf { .. } => {
                (Time::Constant, Time::Constant)
            }
            HeapKind::Buddy { choice, .. } => match choice {
                BuddyChoice::Any => (Time::Orders, Time::Orders),
                // The lists of the orders are kept by address.
                _ => (Time::Holes, Time::Holes),
            },
            HeapKind::Kingsley { .. } | HeapKind::FixedSizes { .. } => {
                (Time::Constant, Time::Constant)
            }
            HeapKind::ObjectPool { slab: 0, .. } => (Time::Words, Time::Constant),
            HeapKind::ObjectPool { .. } => (Time::Constant, Time::Constant),
            HeapKind::Composite(parts) => {
                let mut worst = (Time::Constant, Time::Constant);
                for part in parts {
                    let times = part.heap.declared();
                    worst = (worst.0.max(times.allocate), worst.1.max(times.free));
                }
                worst
            }
        };
        Times::contiguous(allocate, free)
    }
}
