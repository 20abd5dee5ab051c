//! A heap described by data.
//!
//! The same description drives exploration (run-time parameters over a counted
//! ledger), running (boundary tags behind malloc) and emission (constants that a
//! compiler specialises). It is plain data: `Copy`, no allocation.
//!
//! Invariant of a valid description ([`Description::validate`]): at least one
//! general pool; the upper bounds of general pools do not fall, and the last
//! pool takes every request; the sizes of object pools rise and differ, so do
//! those of dedicated pools; all object pools lie in one memory level, and a
//! dedicated pool lies in that of the general pool which serves its size.

use crate::compact::{Partition, Unfit};
use crate::composite::Sizes;
use crate::index::Limits;
use crate::index::fixed::SizeTable;
use crate::index::lea::LARGEST_KEPT;
use crate::index::links::Links;
use crate::index::list::{Fit, Order};
use crate::objects::{self, Slabs};

/// Most dedicated pools in one heap.
pub const DEDICATED: usize = 16;
/// Most object pools in one heap.
pub const OBJECTS: usize = 16;
/// Most general pools in one heap.
pub const GENERAL: usize = 4;

/// Most memory levels of a heap.
pub const LEVELS: usize = 4;

/// What a growing heap whose tables follow its memory is laid out for, where nothing is said.
pub const GROWING_SPAN: usize = 256 << 20;
/// The least that such a heap is laid out for: a page.
pub const SMALLEST_SPAN: usize = 4096;
/// The most, which leaves every size a summary: 2³¹ granules.
pub const LARGEST_SPAN: usize = match usize::BITS {
    64 => 1 << (usize::BITS / 2 + 3),
    _ => 1 << (usize::BITS - 2),
};

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
    /// Best fit in sorted bins with deferred coalescing (Lea-style).
    Lea {
        /// Largest block that is kept aside when freed, in bytes, record included;
        /// a multiple of 16 up to 256, 0 for none.
        keep_up_to: u32,
    },
    /// A list for each of a few block sizes, without coalescing (OSE-style).
    FixedSizes {
        /// The sizes.
        sizes: SizeTable,
    },
    /// First fit in address order by a tree over addresses, which always merges and splits.
    FirstFit {
        /// Summaries are size classes of a byte instead of sizes.
        by_class: bool,
        /// Bytes up to which a heap that grows is laid out; `None`: [`GROWING_SPAN`]. A larger
        /// region is laid out for itself.
        span: Option<usize>,
    },
    /// Binary buddy; lowest address first if `lowest`.
    Buddy {
        /// Lowest address instead of latest freed.
        lowest: bool,
    },
}

/// A pool for a range of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct General {
    /// Smallest request in bytes; zero for the last pool.
    pub from: usize,
    /// Largest request in bytes; `usize::MAX` for the last pool.
    pub up_to: usize,
    /// How it chooses blocks.
    pub index: IndexKind,
    /// How far it merges and splits.
    pub limits: Limits,
    /// Memory level it lies in, counted from zero.
    pub level: u8,
}

impl General {
    /// A pool for every request, in the nearest level, that merges and splits
    /// without limit.
    pub const fn of(index: IndexKind) -> Self {
        General {
            from: 0,
            up_to: usize::MAX,
            index,
            limits: Limits::NONE,
            level: 0,
        }
    }

    /// The requests that it takes.
    pub const fn sizes(&self) -> Sizes {
        Sizes::between(self.from, self.up_to)
    }
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
    /// Most blocks that it keeps; `None`: all. What it has no room for is merged.
    pub limit: Option<u32>,
}

impl DedicatedPool {
    /// A list for requests of `size` bytes in level `level`, in LIFO order with
    /// double links, without limit.
    pub const fn new(size: usize, level: u8) -> Self {
        DedicatedPool {
            size,
            level,
            order: Order::Lifo,
            links: Links::Double,
            limit: None,
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
    /// Pools for everything, in the order in which a request asks those in whose
    /// range it lies: by rising largest request.
    pub general: List<General, GENERAL>,
    /// Free lists in front of those general pools that lie in the same level, by
    /// rising size.
    pub dedicated: List<DedicatedPool, DEDICATED>,
    /// Slabs in front of both, by rising size.
    pub objects: List<ObjectPoolKind, OBJECTS>,
    /// In place of object pools, pages of size classes for requests up to their
    /// largest: non-compacting compact-fit, in the nearest level.
    pub partition: Option<Partition>,
}

/// Why a description is not a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// There is no general pool.
    NoGeneralPool,
    /// The upper bounds of general pools fall, or two pools of one level take
    /// the same requests.
    GeneralBounds,
    /// The smallest request of a general pool is above its largest.
    GeneralRange,
    /// The last general pool does not take every request.
    LastPool,
    /// A pool lies in a level that a heap cannot have.
    Level,
    /// A dedicated pool lies in another level than the general pool that serves
    /// its size.
    DedicatedLevel,
    /// Object pools lie in different levels.
    ObjectLevels,
    /// Sizes of dedicated pools do not rise, or two need the same block.
    DedicatedSizes,
    /// A dedicated pool keeps no block, or more than 2³² − 2.
    DedicatedLimit,
    /// Sizes of object pools do not rise, are no multiples of 16 up to 1024, or a
    /// slab holds fewer than 2 or more than 256 slots.
    ObjectSizes,
    /// A slab is no power of two of at least 512 bytes, or slabs differ.
    Slab,
    /// A heap has both object pools and a partition.
    PartitionBesideObjects,
    /// The partition contradicts itself.
    Partition(Unfit),
    /// A page has more page-blocks than a word's bits squared.
    PageBlocks,
    /// The largest block kept aside is no multiple of 16 up to 256.
    KeptSize,
    /// The second level is no power of two between 1 and 32.
    SecondLevel,
    /// The span of first fit by a tree is below 4 KiB or above 32 GiB.
    Span,
    /// The depth of search is not between 1 and 100 %, or the maximum fit is
    /// below 100 %.
    Search,
}

impl core::fmt::Display for Invalid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Invalid::Partition(unfit) => return unfit.fmt(f),
            Invalid::PartitionBesideObjects => {
                "a partition takes the place of object pools: leave out one of them"
            }
            Invalid::PageBlocks => {
                "a page has more page-blocks than this machine's words can tell apart: raise the smallest, or lower the page"
            }
            Invalid::NoGeneralPool => "a heap needs a general pool",
            Invalid::GeneralBounds => {
                "the upper bounds of general pools must rise, or pools that take the same requests lie in different levels"
            }
            Invalid::GeneralRange => {
                "the smallest request of a general pool must not be above its largest"
            }
            Invalid::LastPool => {
                "the last general pool must take every request, so it can have neither a smallest nor a largest one"
            }
            Invalid::Level => "a pool must lie in one of 4 memory levels, counted from 0",
            Invalid::DedicatedLevel => {
                "a dedicated pool must lie in the level of the general pool that serves its size; in another level it is a general pool for a range of requests"
            }
            Invalid::ObjectLevels => "all object pools must lie in the same memory level",
            Invalid::DedicatedSizes => {
                "dedicated pools must have rising sizes that need different blocks"
            }
            Invalid::DedicatedLimit => {
                "a dedicated pool must keep from 1 to 4294967294 blocks, or have no limit"
            }
            Invalid::ObjectSizes => {
                "object pools must have rising sizes, multiples of 16 up to 1024, and from 2 to 256 slots a slab"
            }
            Invalid::Slab => "a slab must be a power of two of at least 512 bytes, the same for all object pools",
            Invalid::KeptSize => "keep_up_to must be a multiple of 16 up to 256, or 0",
            Invalid::SecondLevel => "second_level must be a power of two from 1 to 32",
            Invalid::Span => "span must be from 4 KiB to 32 GiB: what the memory may grow to",
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
            IndexKind::List { .. } | IndexKind::Lea { .. } => false,
            IndexKind::Classes { probes, .. } => *probes <= 16,
            // Halving and merging are bounded by the word, not by a constant
            // that a designer would accept as one: log2 of the largest block.
            // So is the depth of a tree over addresses.
            IndexKind::Buddy { lowest } => !*lowest,
            IndexKind::FirstFit { .. } => true,
            IndexKind::Kingsley | IndexKind::FixedSizes { .. } => true,
        }
    }

    /// Bytes that a pool which grows is laid out for, where other indexes are laid out for `span`.
    pub const fn span(&self, span: usize) -> usize {
        let own = match *self {
            IndexKind::FirstFit { span: None, .. } => GROWING_SPAN,
            IndexKind::FirstFit {
                span: Some(own), ..
            } => own,
            _ => return span,
        };
        if own < span { own } else { span }
    }

    const fn validate(&self) -> Result<(), Invalid> {
        match *self {
            IndexKind::Lea { keep_up_to }
                if !keep_up_to.is_multiple_of(16) || keep_up_to > LARGEST_KEPT =>
            {
                Err(Invalid::KeptSize)
            }
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
            IndexKind::FirstFit {
                span: Some(span), ..
            } if span < SMALLEST_SPAN || span > LARGEST_SPAN => Err(Invalid::Span),
            _ => Ok(()),
        }
    }
}

impl Description {
    /// A heap of one general pool that takes everything.
    pub const fn of(index: IndexKind) -> Self {
        Description {
            general: List::from_slice(&[General::of(index)]),
            dedicated: List::EMPTY,
            objects: List::EMPTY,
            partition: None,
        }
    }

    /// How the slabs of object pools, or the pages of the partition, are cut.
    pub fn slabs(&self) -> Slabs {
        match self.partition {
            Some(partition) => Slabs::Classes(partition),
            None => Slabs::Pools(self.objects),
        }
    }

    /// The dedicated pools in front of a general pool: those of its level.
    pub fn dedicated_of(&self, pool: &General) -> impl Iterator<Item = DedicatedPool> + '_ {
        let level = pool.level;
        self.dedicated
            .iter()
            .filter(move |dedicated| dedicated.level == level)
    }

    /// The general pool that requests of `size` bytes ask first.
    pub fn route(&self, size: usize) -> Option<General> {
        self.general.iter().find(|pool| pool.sizes().contain(size))
    }

    /// Whether the general pools partition the requests: each takes what is above
    /// the largest request of the one before. Then, as long as no pool refuses,
    /// what one pool holds does not depend on another.
    pub fn partitions(&self) -> bool {
        let mut before: Option<usize> = None;
        self.general.iter().all(|pool| {
            let next = before.map_or(0, |before| before.saturating_add(1));
            let adjacent = pool.from <= next && before.is_none_or(|before| pool.up_to > before);
            before = Some(pool.up_to);
            adjacent
        })
    }

    /// Verifies the description for blocks cut by `granule` with `header` bytes
    /// of record.
    ///
    /// # Errors
    /// The first thing that is [`Invalid`].
    pub fn validate(&self, granule: usize, header: usize) -> Result<(), Invalid> {
        self.validate_general()?;
        let mut last = 0;
        for pool in self.dedicated.iter() {
            let block = pool.size.saturating_add(header).div_ceil(granule);
            if pool.size == 0 || block <= last {
                return Err(Invalid::DedicatedSizes);
            }
            if matches!(pool.limit, Some(0 | u32::MAX)) {
                return Err(Invalid::DedicatedLimit);
            }
            if self
                .route(pool.size)
                .is_none_or(|general| general.level != pool.level)
            {
                return Err(Invalid::DedicatedLevel);
            }
            last = block;
        }
        self.validate_objects()?;
        self.validate_partition()
    }

    fn validate_partition(&self) -> Result<(), Invalid> {
        let Some(partition) = self.partition else {
            return Ok(());
        };
        if !self.objects.is_empty() {
            return Err(Invalid::PartitionBesideObjects);
        }
        partition.validate(0).map_err(Invalid::Partition)?;
        let most = (usize::BITS * usize::BITS) as usize;
        match self.slabs().slots() > most {
            true => Err(Invalid::PageBlocks),
            false => Ok(()),
        }
    }

    fn validate_general(&self) -> Result<(), Invalid> {
        let mut before: Option<General> = None;
        for pool in self.general.iter() {
            pool.index.validate()?;
            if usize::from(pool.level) >= LEVELS {
                return Err(Invalid::Level);
            }
            if pool.from > pool.up_to {
                return Err(Invalid::GeneralRange);
            }
            // Of pools with the same largest request the narrower comes first,
            // so that a set of pools has one order only.
            let least = before.map_or(1, |before| before.up_to);
            let twin = before.is_some_and(|before| {
                before.up_to == pool.up_to
                    && (before.from < pool.from
                        || (before.from == pool.from && before.level == pool.level))
            });
            if pool.up_to < least || twin {
                return Err(Invalid::GeneralBounds);
            }
            before = Some(pool);
        }
        match before {
            None => Err(Invalid::NoGeneralPool),
            Some(last) if last.from != 0 || last.up_to != usize::MAX => Err(Invalid::LastPool),
            Some(_) => Ok(()),
        }
    }

    fn validate_objects(&self) -> Result<(), Invalid> {
        let mut last = 0;
        let mut level = None;
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
            if usize::from(pool.level) >= LEVELS {
                return Err(Invalid::Level);
            }
            if level.is_some_and(|level| level != pool.level) {
                return Err(Invalid::ObjectLevels);
            }
            level = Some(pool.level);
            last = pool.size;
        }
        Ok(())
    }
}
