//! What decides how a compact-fit heap partitions its memory, and the checks of it.
//!
//! Invariant: a [`Partition`] that was made divides pages into classes of page-blocks
//! whose sizes grow strictly, and serves every request up to its largest.

use core::fmt;

/// Sizes of page-blocks are multiples of this, and blocks are aligned to it.
pub const GRANULE: usize = 16;
/// Most size classes of a heap.
pub const CLASSES: usize = 128;
/// Largest page in bytes: the place of a page-block in its page is found by one
/// multiplication of 32 bits.
pub const LARGEST_PAGE: usize = 1 << 16;
/// Smallest page in bytes.
pub const SMALLEST_PAGE: usize = 256;

/// The partial compaction bound κ: most not-full pages of a size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kappa {
    /// At most this many (1 compacts fully).
    Finite(u32),
    /// Never compacts.
    Infinite,
}

impl Kappa {
    /// The bound as a number; [`u32::MAX`] stands for infinity.
    pub const fn limit(self) -> u32 {
        match self {
            Kappa::Finite(limit) => limit,
            Kappa::Infinite => u32::MAX,
        }
    }
}

impl fmt::Display for Kappa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kappa::Finite(limit) => write!(f, "{limit}"),
            Kappa::Infinite => f.write_str("inf"),
        }
    }
}

/// How memory is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// Bytes of a page, a power of two.
    pub page: usize,
    /// Bytes of the smallest page-block, record included.
    pub smallest: usize,
    /// Largest request in bytes.
    pub largest: usize,
    /// Each class is at least this many thousandths of the one before it.
    pub factor: u32,
    /// Sizes of page-blocks are multiples of this, a power of two from [`GRANULE`].
    pub granule: usize,
}

impl Partition {
    /// The partition of the first implementation: pages of 16 KiB, a growth of one
    /// eighth, requests up to half a page.
    pub const DEFAULT: Partition = Partition {
        page: 1 << 14,
        smallest: 32,
        largest: 1 << 13,
        factor: 1125,
        granule: GRANULE,
    };

    /// The classes, smallest first: bytes of their page-blocks. `record` is what a
    /// page-block holds beside the request.
    ///
    /// A class is widened to the largest page-block of which as many fit a page:
    /// what would be page-internal fragmentation serves requests instead.
    /// If the largest request and its record do not fit a page, which [`validate`](Self::validate)
    /// refuses, the last class is the page.
    pub fn classes(&self, record: usize) -> Classes {
        let whole = self.largest.saturating_add(record).min(self.page);
        Classes {
            partition: *self,
            target: raised(whole, self.granule),
            next: Some(raised(self.smallest, self.granule)),
        }
    }

    /// Checks the partition for page-blocks with records of `record` bytes.
    ///
    /// # Errors
    /// [`Unfit`] says what contradicts what.
    pub fn validate(&self, record: usize) -> Result<(), Unfit> {
        let Partition {
            page,
            smallest,
            largest,
            factor,
            granule,
        } = *self;
        if !page.is_power_of_two() || !(SMALLEST_PAGE..=LARGEST_PAGE).contains(&page) {
            return Err(Unfit::Page(page));
        }
        if !granule.is_power_of_two() || !(GRANULE..=page).contains(&granule) {
            return Err(Unfit::Granule(granule));
        }
        if smallest < GRANULE || smallest <= record {
            return Err(Unfit::Smallest(smallest));
        }
        if largest == 0 || largest.saturating_add(record) > page {
            return Err(Unfit::Largest {
                largest,
                record,
                page,
            });
        }
        if smallest > largest + record {
            return Err(Unfit::SmallestAbove { smallest, largest });
        }
        if factor <= 1000 {
            return Err(Unfit::Factor(factor));
        }
        let count = self.classes(record).count();
        if count > CLASSES {
            return Err(Unfit::Classes(count));
        }
        Ok(())
    }
}

const fn raised(bytes: usize, granule: usize) -> usize {
    (bytes + granule - 1) & !(granule - 1)
}

/// The sizes of the classes of a [`Partition`], smallest first.
#[derive(Clone, Debug)]
pub struct Classes {
    partition: Partition,
    target: usize,
    next: Option<usize>,
}

impl Iterator for Classes {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let least = self.next?.min(self.target);
        let Partition { page, granule, .. } = self.partition;
        let block = (page / (page / least)) & !(granule - 1);
        let grown = (block as u64 * u64::from(self.partition.factor)).div_ceil(1000);
        self.next =
            (block < self.target).then(|| raised(grown as usize, granule).max(block + granule));
        Some(block)
    }
}

/// Everything that decides what a compact-fit heap does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// How memory is partitioned.
    pub partition: Partition,
    /// The partial compaction bound κ of every class.
    pub kappa: Kappa,
    /// The compaction increment ι in bytes: most bytes that one atomic step of a
    /// move touches; `None` moves at once.
    pub increment: Option<usize>,
}

impl Options {
    /// Full compaction at once over the default partition.
    pub const DEFAULT: Options = Options {
        partition: Partition::DEFAULT,
        kappa: Kappa::Finite(1),
        increment: None,
    };

    /// Checks the options for page-blocks with records of `record` bytes.
    ///
    /// # Errors
    /// [`Unfit`] says what contradicts what.
    pub fn validate(&self, record: usize) -> Result<(), Unfit> {
        self.partition.validate(record)?;
        if self.kappa.limit() == 0 {
            return Err(Unfit::Kappa);
        }
        match self.increment {
            Some(increment) if increment == 0 || increment > self.partition.page => {
                Err(Unfit::Increment {
                    increment,
                    page: self.partition.page,
                })
            }
            _ => Ok(()),
        }
    }
}

/// Why a compact-fit heap cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The page is no power of two within the limits.
    Page(usize),
    /// The granule is no power of two within the limits.
    Granule(usize),
    /// The smallest page-block holds no granule beside its record.
    Smallest(usize),
    /// The largest request and its record do not fit a page.
    Largest {
        /// Bytes of the largest request.
        largest: usize,
        /// Bytes of a page-block's record.
        record: usize,
        /// Bytes of a page.
        page: usize,
    },
    /// The smallest page-block exceeds the largest request.
    SmallestAbove {
        /// Bytes of the smallest page-block.
        smallest: usize,
        /// Bytes of the largest request.
        largest: usize,
    },
    /// Classes do not grow.
    Factor(u32),
    /// There are too many classes.
    Classes(usize),
    /// κ is zero.
    Kappa,
    /// ι is zero or beyond the page.
    Increment {
        /// Bytes of the increment.
        increment: usize,
        /// Bytes of a page.
        page: usize,
    },
    /// The memory holds no page beside the tables; it lacks this many bytes.
    TooSmall(usize),
    /// The program has made as many heaps as can be told apart.
    Identities,
    /// No thread is to use the heap.
    Threads,
    /// Fewer instances than threads.
    Instances {
        /// Instances of the heap.
        instances: usize,
        /// Threads that would share them.
        threads: usize,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Unfit::Page(page) => write!(
                f,
                "a page of {page} bytes: it must be a power of two from {SMALLEST_PAGE} to {LARGEST_PAGE}"
            ),
            Unfit::Granule(bytes) => write!(
                f,
                "a granule of {bytes} bytes: it must be a power of two from {GRANULE} to the page"
            ),
            Unfit::Smallest(bytes) => write!(
                f,
                "a smallest page-block of {bytes} bytes: it must be at least {GRANULE} and exceed its record"
            ),
            Unfit::Largest {
                largest,
                record,
                page,
            } => write!(
                f,
                "the page of {page} bytes is smaller than the largest class: {largest} bytes and \
                 {record} of record; enlarge the page or lower the largest request"
            ),
            Unfit::SmallestAbove { smallest, largest } => write!(
                f,
                "the smallest page-block of {smallest} bytes exceeds the largest request of {largest}"
            ),
            Unfit::Factor(factor) => write!(
                f,
                "a growth factor of {}.{:03}: classes grow only above 1",
                factor / 1000,
                factor % 1000
            ),
            Unfit::Classes(count) => write!(
                f,
                "{count} size classes, at most {CLASSES}: raise the factor or the smallest page-block"
            ),
            Unfit::Kappa => {
                f.write_str("kappa is 0: the page being filled is not full; take at least 1")
            }
            Unfit::Increment { increment, page } => write!(
                f,
                "an increment of {increment} bytes: take 1 to {page}, the bytes of a page"
            ),
            Unfit::TooSmall(lacking) => write!(
                f,
                "the memory is too small by {lacking} bytes for the tables and one page"
            ),
            Unfit::Identities => {
                f.write_str("the program has made 65 535 compact-fit heaps: reuse them")
            }
            Unfit::Threads => f.write_str("a heap for 0 threads: name at least one"),
            Unfit::Instances { instances, threads } => write!(
                f,
                "{threads} threads for {instances} instances: give each thread an instance, or \
                 share one between threads"
            ),
        }
    }
}

impl core::error::Error for Unfit {}
