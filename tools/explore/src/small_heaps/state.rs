//! The state of a heap of at most 32 cells: which cells are used, where blocks start, and what
//! the policy remembers besides.
//!
//! Invariant: `starts` is a subset of `used`, the first used cell after a hole is a start, and
//! no bit lies at or above the heap's size.

/// Largest heap that the search can hold, in cells.
pub const MOST_CELLS: u32 = 32;

/// Most holes a free list of a [`State`] can order: 5 bits each.
const MOST_LISTED: u32 = 12;

/// A heap state; equal states behave equally from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// Bit c: cell c belongs to a live block.
    pub used: u32,
    /// Bit c: a live block starts at cell c.
    pub starts: u32,
    /// Order of the free lists, or the place where next fit goes on; 0 where a policy needs
    /// neither.
    pub memory: u64,
}

/// A hole: first cell and number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// First cell.
    pub start: u32,
    /// Number of cells.
    pub length: u32,
}

impl State {
    /// The heap without live blocks; `memory` as the policy starts.
    pub const fn empty(memory: u64) -> Self {
        Self {
            used: 0,
            starts: 0,
            memory,
        }
    }

    /// Cells of live blocks.
    pub fn live(&self) -> u32 {
        self.used.count_ones()
    }

    /// The holes of a heap of `cells`, by address.
    pub fn holes(self, cells: u32) -> impl Iterator<Item = Hole> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = at + (u64::from(!self.used) >> at).trailing_zeros();
            if start >= cells {
                return None;
            }
            let hole = self.hole_at(start, cells);
            at = start + hole.length;
            Some(hole)
        })
    }

    /// The hole that starts at the free cell `start`.
    pub fn hole_at(self, start: u32, cells: u32) -> Hole {
        let used_above = u64::from(self.used) >> start | 1 << (cells - start);
        Hole {
            start,
            length: used_above.trailing_zeros(),
        }
    }

    /// The hole around the free cell `cell`.
    pub fn hole_around(self, cell: u32, cells: u32) -> Hole {
        let below = u64::from(self.used) & ((1 << cell) - 1);
        self.hole_at(64 - below.leading_zeros(), cells)
    }

    /// Starts of the live blocks.
    pub fn blocks(self) -> impl Iterator<Item = u32> {
        let mut rest = self.starts;
        core::iter::from_fn(move || {
            (rest != 0).then(|| {
                let start = rest.trailing_zeros();
                rest &= rest - 1;
                start
            })
        })
    }

    /// Cells of the block that starts at `start`.
    pub fn length_of(self, start: u32) -> u32 {
        let ends = (u64::from(self.starts) | !u64::from(self.used)) >> (start + 1);
        ends.trailing_zeros() + 1
    }

    /// Marks a block of `length` cells at `start` live.
    pub fn place(&mut self, start: u32, length: u32) {
        self.used |= mask(start, length);
        self.starts |= 1 << start;
    }

    /// Marks the block at `start` free.
    pub fn remove(&mut self, start: u32) {
        let length = self.length_of(start);
        self.used &= !mask(start, length);
        self.starts &= !(1 << start);
    }

    /// True where all of the cells are free and inside the heap.
    pub fn is_free(self, start: u32, length: u32, cells: u32) -> bool {
        start + length <= cells && self.used & mask(start, length) == 0
    }
}

fn mask(start: u32, length: u32) -> u32 {
    ((((1u64) << length) - 1) << start) as u32
}

/// An ordered list of hole starts packed into a word: 4 bits of length, then 5 bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(pub u64);

impl List {
    /// Number of holes in the list.
    pub fn length(self) -> u32 {
        (self.0 & 15) as u32
    }

    /// The starts from first to last.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.length()).map(move |index| (self.0 >> (4 + 5 * index) & 31) as u32)
    }

    /// The list of the given starts.
    ///
    /// # Panics
    /// With more than 12 holes, which a heap of at most 24 cells cannot have.
    pub fn collect(starts: impl Iterator<Item = u32>) -> Self {
        let mut word = 0;
        let mut length = 0;
        for start in starts {
            assert!(length < MOST_LISTED, "free list of a small heap overflows");
            word |= u64::from(start) << (4 + 5 * length);
            length += 1;
        }
        Self(word | u64::from(length))
    }
}
