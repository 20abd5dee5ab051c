//! A heap described by data.
//!
//! The same description drives exploration (run-time parameters over a counted
//! ledger), running (boundary tags behind malloc) and emission (constants that a
//! compiler specialises). It is plain data: `Copy`, no allocation.
//!
//! Invariant of a valid description ([`Description::validate`]): at least one
//! general pool; the bounds of general pools rise and the last has none; the
//! sizes of object pools rise and differ, so do those of dedicated pools.

use crate::index::Limits;
use crate::index::fixed::SizeTable;
use crate::index::links::Links;
use crate::index::list::{Fit, Order};
use crate::objects;

/// Most dedicated pools in one heap.
pub const DEDICATED: usize = 16;
/// Most object pools in one heap.
pub const OBJECTS: usize = 16;
/// Most general pools in one heap.
pub const GENERAL: usize = 4;

/// An index and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// One searched list.
    List {
        /// Which block serves.
        fit: Fit,
        /// Where a freed block goes.
        order: Order,
        /// Share of the list that is searched, in percent (1..=100).
        depth_percent: u32,
        /// Largest block that qualifies, in percent of the need; 0: no limit.
        max_fit_percent: u32,
        /// Whether blocks know what precedes them: the same placements, other
        /// words read and written.
        links: Links,
    },
    /// Size classes: TLSF (no probes), half-fit (second level 1, no probes),
    /// segregated fit (probes without limit).
    Classes {
        /// Classes per power of two, a power of two.
        second_level: u32,
        /// Blocks tried in the class that the request itself falls into.
        probes: usize,
    },
    /// Power-of-two classes without coalescing.
    Kingsley,
    /// A list for each of a few block sizes, without coalescing (OSE-style).
    FixedSizes {
        /// The sizes.
        sizes: SizeTable,
    },
    /// Binary buddy; lowest address first if `lowest`.
    Buddy {
        /// Lowest address instead of latest freed.
        lowest: bool,
    },
}

/// A pool for requests up to a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct General {
    /// Largest request in bytes; `usize::MAX` for the last pool.
    pub up_to: usize,
    /// How it chooses blocks.
    pub index: IndexKind,
    /// How far it merges and splits.
    pub limits: Limits,
    /// Memory level it lies in, counted from zero.
    pub level: u8,
}

/// A free list for blocks of one size, kept apart once freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DedicatedPool {
    /// Largest request in bytes; serves all requests that need the same block.
    pub size: usize,
    /// Memory level it lies in, counted from zero.
    pub level: u8,
    /// Where a freed block enters; requests take from the front.
    pub order: Order,
    /// Whether blocks know what precedes them.
    pub links: Links,
}

impl DedicatedPool {
    /// A list for requests of `size` bytes in level `level`, in LIFO order with
    /// double links.
    pub const fn new(size: usize, level: u8) -> Self {
        DedicatedPool {
            size,
            level,
            order: Order::Lifo,
            links: Links::Double,
        }
    }
}

/// Slabs of equal slots with a bitmap and no record a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectPoolKind {
    /// Slot size in bytes, a multiple of the granule; serves requests above the
    /// next smaller object pool's size up to this.
    pub size: usize,
    /// Bytes of a slab, a power of two; the same in all object pools of a heap.
    pub slab: usize,
    /// Memory level it lies in, counted from zero.
    pub level: u8,
}

/// Up to `N` items in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct List<T, const N: usize> {
    items: [Option<T>; N],
}

impl<T: Copy, const N: usize> List<T, N> {
    /// No items.
    pub const EMPTY: Self = List { items: [None; N] };

    /// A list of the given items; those beyond the `N`th are dropped.
    pub const fn from_slice(slice: &[T]) -> Self {
        let mut items = [None; N];
        let mut index = 0;
        while index < slice.len() && index < N {
            items[index] = Some(slice[index]);
            index += 1;
        }
        List { items }
    }

    /// Appends an item; `false` when there is no room.
    pub fn push(&mut self, item: T) -> bool {
        match self.items.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => {
                *slot = Some(item);
                true
            }
            None => false,
        }
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.items.iter().map_while(|item| *item)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.first().is_none_or(|item| item.is_none())
    }
}

/// A heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Description {
    /// Pools for everything, by rising size of request.
    pub general: List<General, GENERAL>,
    /// Free lists in front of them, by rising size.
    pub dedicated: List<DedicatedPool, DEDICATED>,
    /// Slabs in front of both, by rising size.
    pub objects: List<ObjectPoolKind, OBJECTS>,
}

/// Why a description is not a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// There is no general pool.
    NoGeneralPool,
    /// The upper bounds of general pools do not rise to the end of all sizes.
    GeneralBounds,
    /// Sizes of dedicated pools do not rise, or two need the same block.
    DedicatedSizes,
    /// Sizes of object pools do not rise, are no multiples of 16 up to 1024, or a
    /// slab holds fewer than 2 or more than 256 slots.
    ObjectSizes,
    /// A slab is no power of two of at least 512 bytes, or slabs differ.
    Slab,
    /// The second level is no power of two between 1 and 32.
    SecondLevel,
    /// The depth of search is not between 1 and 100 %, or the maximum fit is
    /// below 100 %.
    Search,
}

impl core::fmt::Display for Invalid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Invalid::NoGeneralPool => "a heap needs a general pool",
            Invalid::GeneralBounds => {
                "the upper bounds of general pools must rise, and the last pool must have none"
            }
            Invalid::DedicatedSizes => {
                "dedicated pools must have rising sizes that need different blocks"
            }
            Invalid::ObjectSizes => {
                "object pools must have rising sizes, multiples of 16 up to 1024, and from 2 to 256 slots a slab"
            }
            Invalid::Slab => "a slab must be a power of two of at least 512 bytes, the same for all object pools",
            Invalid::SecondLevel => "second_level must be a power of two from 1 to 32",
            Invalid::Search => "depth must be from 1 to 100 percent, max_fit at least 100 percent",
        })
    }
}

impl core::error::Error for Invalid {}

impl IndexKind {
    /// TLSF with so many classes per power of two.
    pub const fn tlsf(second_level: u32) -> Self {
        IndexKind::Classes {
            second_level,
            probes: 0,
        }
    }

    /// A searched list without limits.
    pub const fn list(fit: Fit, order: Order) -> Self {
        IndexKind::List {
            fit,
            order,
            depth_percent: 100,
            max_fit_percent: 0,
            links: Links::Double,
        }
    }

    /// Whether each operation takes constant time, whatever the heap's state.
    pub const fn constant_time(&self) -> bool {
        match self {
            IndexKind::List { .. } => false,
            IndexKind::Classes { probes, .. } => *probes <= 16,
            // Halving and merging are bounded by the word, not by a constant
            // that a designer would accept as one: log2 of the largest block.
            IndexKind::Buddy { lowest } => !*lowest,
            IndexKind::Kingsley | IndexKind::FixedSizes { .. } => true,
        }
    }

    const fn validate(&self) -> Result<(), Invalid> {
        match *self {
            IndexKind::List {
                depth_percent,
                max_fit_percent,
                ..
            } if depth_percent == 0
                || depth_percent > 100
                || (max_fit_percent != 0 && max_fit_percent < 100) =>
            {
                Err(Invalid::Search)
            }
            IndexKind::Classes { second_level, .. }
                if !second_level.is_power_of_two() || second_level > 32 =>
            {
                Err(Invalid::SecondLevel)
            }
            _ => Ok(()),
        }
    }
}

impl Description {
    /// A heap of one general pool that takes everything.
    pub const fn of(index: IndexKind) -> Self {
        let pool = General {
            up_to: usize::MAX,
            index,
            limits: Limits::NONE,
            level: 0,
        };
        Description {
            general: List::from_slice(&[pool]),
            dedicated: List::EMPTY,
            objects: List::EMPTY,
        }
    }

    /// Verifies the description for blocks cut by `granule` with `header` bytes
    /// of record.
    ///
    /// # Errors
    /// The first thing that is [`Invalid`].
    pub fn validate(&self, granule: usize, header: usize) -> Result<(), Invalid> {
        let mut bound = 0;
        for pool in self.general.iter() {
            pool.index.validate()?;
            if pool.up_to <= bound {
                return Err(Invalid::GeneralBounds);
            }
            bound = pool.up_to;
        }
        match bound {
            usize::MAX => {}
            0 => return Err(Invalid::NoGeneralPool),
            _ => return Err(Invalid::GeneralBounds),
        }
        let mut last = 0;
        for pool in self.dedicated.iter() {
            let block = pool.size.saturating_add(header).div_ceil(granule);
            if pool.size == 0 || block <= last {
                return Err(Invalid::DedicatedSizes);
            }
            last = block;
        }
        let mut last = 0;
        for pool in self.objects.iter() {
            let common = self.objects.iter().all(|other| other.slab == pool.slab);
            if !pool.slab.is_power_of_two() || pool.slab < 512 || !common {
                return Err(Invalid::Slab);
            }
            if pool.size <= last
                || pool.size % objects::GRANULE != 0
                || pool.size > objects::LARGEST.min(pool.slab / 2)
                || pool.slab / pool.size > objects::SLOTS
            {
                return Err(Invalid::ObjectSizes);
            }
            last = pool.size;
        }
        Ok(())
    }
}
